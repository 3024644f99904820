/*
 * DIR/tools: a folder per tool. Reading happens on a pool thread, because secrets of manifests may
 * come from commands and disks may be slow; the loop only compares the outcome with what it has.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/custom/custom_source.h"
#include "agent/custom/module.h"
#include "agent/custom/program.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/trust.h"
#include "net/filewatch.h"

#define FOLDERS_MAX 128
#define FILES_MAX   512 /* of one folder */
#define SETTLE_MS   150

/* One folder, as found. */
struct folder_entry {
        char *name, *path;
        char *module; /* the file to load; NULL: a program */
        struct manifest manifest;
        char print[SHA256_HEX_SIZE]; /* changes with the files */
        struct error error;          /* kind ERR_NONE: fine */
};

/* A folder in use. */
struct known {
        char print[SHA256_HEX_SIZE];
        struct custom_source *program; /* NULL: a module, or broken */
        bool module, seen;
        char problem[500];
        struct filewatch *watch;
};

struct folder_scan {
        struct custom_folder *folder; /* NULL: freed meanwhile */
        char *path, *dir;
        struct folder_entry *entries;
        size_t count;
};

struct custom_folder {
        struct custom_tools *all;
        char *path;
        struct filewatch *watch;
        struct map known; /* by name */
        struct custom_source *modules;
        char modules_print[SHA256_HEX_SIZE];
        struct folder_scan *scanning;
        bool again, read_once;
};

/* ---- on the pool ---- */

static void entry_release(struct folder_entry *e)
{
        manifest_release(&e->manifest);
        free(e->name);
        free(e->path);
        free(e->module);
}

/* Every file of the folder must be ours, because each may be run. Adds them to the print. */
static int check_files(struct folder_entry *e, struct buf *print)
{
        struct dirent **names = NULL;
        int n = scandir(e->path, &names, NULL, alphasort), rc = 0;

        if (n < 0)
                return error_set(&e->error, ERR_IO, "cannot read '%s': %s", e->path,
                                 strerror(errno));
        if (n > FILES_MAX)
                rc = error_set(&e->error, ERR_LIMIT, "'%s' has more than %d files", e->path,
                               FILES_MAX);
        for (int i = 0; i < n && rc == 0; i++) {
                const char *name = names[i]->d_name;
                char *path = mem_printf("%s/%s", e->path, name);
                struct stat st;

                if (*name != '.' && strcmp(name, "node_modules") != 0) {
                        rc = trust_check(path, TRUST_OWN_LINKS, &e->error);
                        if (rc == 0 && stat(path, &st) == 0)
                                buf_addf(print, "%s %lld %lld.%09ld\n", name, (long long)st.st_size,
                                         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
                }
                free(path);
        }
        for (int i = 0; i < n; i++)
                free(names[i]);
        free(names);
        return rc;
}

static char *find_module(const char *folder)
{
        static const char *const names[] = { "index.ts", "index.mts", "index.js", "index.mjs" };

        for (size_t i = 0; i < COUNT(names); i++) {
                char *path = mem_printf("%s/%s", folder, names[i]);

                if (access(path, F_OK) == 0)
                        return path;
                free(path);
        }
        return NULL;
}

static int read_manifest(struct folder_entry *e, struct buf *print)
{
        char *path = mem_printf("%s/tool.json", e->path), *shown;
        struct buf text;
        int fd, rc;

        buf_init(&text, 0);
        rc = trust_open(path, TRUST_NO_LINKS, &fd, &e->error);
        if (rc > 0) {
                rc = file_read_fd(fd, path, MANIFEST_MAX, &text, &e->error);
                close(fd);
                shown = mem_printf("%s/tool.json", e->name);
                if (rc == 0)
                        rc = manifest_read(shown, e->path, text.data, text.len, &e->manifest,
                                           &e->error);
                free(shown);
                buf_add(print, text.data, text.len);
        } else if (rc == 0) {
                rc = manifest_read("tool.json", NULL, "{}", 2, &e->manifest, &e->error);
        }
        buf_release(&text);
        free(path);
        return rc;
}

static int read_entry(struct folder_entry *e, const char *dir, struct buf *print)
{
        if (trust_check(e->path, TRUST_NO_LINKS, &e->error) < 0 || check_files(e, print) < 0 ||
            read_manifest(e, print) < 0)
                return -1;
        if (e->manifest.command.count == 0)
                e->module = find_module(e->path);
        if (e->module)
                return module_host_write(dir, &e->error);
        if (e->manifest.command.count == 0)
                return error_set(&e->error, ERR_INVALID,
                                 "'%s' has neither a tool.json with a command nor an index.ts or "
                                 "index.js",
                                 e->path);
        if (!e->manifest.name && !custom_is_key(e->name))
                return error_set(&e->error, ERR_INVALID,
                                 "the name of the folder may have letters, digits, '_' and '-' "
                                 "only, unless tool.json has a name");
        if (!e->manifest.description)
                return error_set(&e->error, ERR_INVALID, "%s/tool.json: missing key 'description'",
                                 e->name);
        return 0;
}

static void scan_work(void *arg)
{
        struct folder_scan *s = arg;
        struct dirent **names = NULL;
        int n = scandir(s->path, &names, NULL, alphasort);
        struct error untrusted = { 0 };

        trust_check(s->path, TRUST_NO_LINKS, &untrusted);
        s->entries = mem_array(FOLDERS_MAX, sizeof(*s->entries));
        for (int i = 0; i < n; i++) {
                char *path = mem_printf("%s/%s", s->path, names[i]->d_name);
                struct stat st;

                if (names[i]->d_name[0] != '.' && lstat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
                    strcmp(names[i]->d_name, "node_modules") != 0 && s->count < FOLDERS_MAX) {
                        struct folder_entry *e = &s->entries[s->count++];
                        struct buf print;

                        buf_init(&print, 0);
                        e->name = mem_strdup(names[i]->d_name);
                        e->path = mem_strdup(path);
                        e->error = untrusted;
                        if (e->error.kind == ERR_NONE)
                                read_entry(e, s->dir, &print);
                        buf_addstr(&print, e->error.text);
                        crypto_sha256_hex(print.data, print.len, e->print);
                        buf_release(&print);
                }
                free(path);
        }
        for (int i = 0; i < n; i++)
                free(names[i]);
        free(names);
}

/* ---- on the loop ---- */

static void start_scan(struct custom_folder *f);

static void on_change(void *arg, const char *name)
{
        (void)name;
        start_scan(arg);
}

static void known_drop(struct known *k)
{
        if (k->program)
                custom_source_retire(k->program);
        filewatch_free(k->watch);
        free(k);
}

/* A folder that is new or has changed. */
static void apply(struct custom_folder *f, struct folder_entry *e)
{
        struct known *k = map_get(&f->known, e->name);
        bool fresh = !k;

        if (fresh) {
                k = mem_zalloc(sizeof(*k));
                k->watch = filewatch_new(custom_options(f->all)->loop, e->path, NULL, SETTLE_MS,
                                         on_change, f, NULL);
                map_put(&f->known, e->name, k);
        }
        k->seen = true;
        if (!fresh && strcmp(k->print, e->print) == 0)
                return;
        memcpy(k->print, e->print, sizeof(k->print));
        if (k->program)
                custom_source_retire(k->program);
        k->program = NULL;
        k->module = e->module && e->error.kind == ERR_NONE;
        memcpy(k->problem, e->error.text, sizeof(k->problem));
        if (e->error.kind != ERR_NONE) {
                log_warn("custom tool cannot be used", LOG_S("tool", e->name),
                         LOG_S("why", k->problem));
        } else if (!k->module) {
                k->program = program_new(f->all, e->name, e->path, &e->manifest);
                custom_source_add(k->program);
        }
}

/* All modules share one Node process; if one of them changes, a new process takes over. */
static void apply_modules(struct custom_folder *f, struct folder_scan *s)
{
        struct module_spec specs[FOLDERS_MAX];
        char print[SHA256_HEX_SIZE];
        struct custom_source *old;
        struct buf all;
        size_t n = 0;

        buf_init(&all, 0);
        for (size_t i = 0; i < s->count; i++) {
                struct folder_entry *e = &s->entries[i];

                if (!e->module || e->error.kind != ERR_NONE)
                        continue;
                specs[n++] = (struct module_spec){ e->name, e->module, &e->manifest };
                buf_addf(&all, "%s %s\n", e->name, e->print);
        }
        crypto_sha256_hex(all.data, all.len, print);
        buf_release(&all);
        if (strcmp(print, f->modules_print) == 0)
                return;
        memcpy(f->modules_print, print, sizeof(print));
        old = f->modules;
        f->modules = n > 0 ? module_host_new(f->all, specs, n) : NULL;
        if (f->modules) {
                custom_source_add(f->modules);
                /* calls wait for the new process instead of finding no tool */
                if (old)
                        custom_source_move(old, f->modules);
        }
        if (old)
                custom_source_retire(old);
}

static void scan_done(void *arg)
{
        struct folder_scan *s = arg;
        struct custom_folder *f = s->folder;
        const char *name;
        void *value;

        if (f) {
                f->scanning = NULL;
                f->read_once = true;
                for (size_t i = 0; map_each(&f->known, &i, &name, &value);)
                        ((struct known *)value)->seen = false;
                for (size_t i = 0; i < s->count; i++)
                        apply(f, &s->entries[i]);
                for (size_t i = 0; map_each(&f->known, &i, &name, &value);) {
                        struct known *k = value;

                        if (k->seen)
                                continue;
                        map_remove(&f->known, name);
                        known_drop(k);
                }
                apply_modules(f, s);
                custom_changed(f->all);
                if (f->again)
                        start_scan(f);
        }
        for (size_t i = 0; i < s->count; i++)
                entry_release(&s->entries[i]);
        free(s->entries);
        free(s->path);
        free(s->dir);
        free(s);
}

static void start_scan(struct custom_folder *f)
{
        f->again = f->scanning != NULL;
        if (f->scanning)
                return;
        f->scanning = mem_zalloc(sizeof(*f->scanning));
        f->scanning->folder = f;
        f->scanning->path = mem_strdup(f->path);
        f->scanning->dir = mem_strdup(custom_options(f->all)->dir);
        loop_work(custom_options(f->all)->loop, scan_work, scan_done, f->scanning);
}

struct custom_folder *custom_folder_new(struct custom_tools *all)
{
        struct custom_folder *f = mem_zalloc(sizeof(*f));
        struct error err = { 0 };

        f->all = all;
        f->path = mem_printf("%s/tools", custom_options(all)->dir);
        crypto_sha256_hex("", 0, f->modules_print);
        map_init(&f->known);
        if (file_make_dirs(f->path, &err) < 0 ||
            !(f->watch = filewatch_new(custom_options(all)->loop, f->path, NULL, SETTLE_MS,
                                       on_change, f, &err)))
                log_warn("changes of custom tools are not noticed", LOG_S("why", err.text));
        start_scan(f);
        return f;
}

void custom_folder_free(struct custom_folder *f)
{
        const char *name;
        void *value;

        if (f->scanning)
                f->scanning->folder = NULL;
        for (size_t i = 0; map_each(&f->known, &i, &name, &value);) {
                struct known *k = value;

                k->program = NULL; /* custom_free has retired it */
                known_drop(k);
        }
        map_release(&f->known);
        filewatch_free(f->watch);
        free(f->path);
        free(f);
}

bool custom_folder_known(const struct custom_folder *f)
{
        return f && f->read_once;
}

void custom_folder_status(const struct custom_folder *f, struct buf *out)
{
        const char *name;
        void *value;

        for (size_t i = 0; map_each(&f->known, &i, &name, &value);) {
                const struct known *k = value;

                if (!*k->problem)
                        continue;
                jsonw_open(out, '{');
                jsonw_str(out, "kind", "folder");
                jsonw_str(out, "name", name);
                jsonw_str(out, "state", "broken");
                jsonw_int(out, "tools", 0);
                jsonw_str(out, "problem", k->problem);
                jsonw_close(out, '}');
        }
}
