#include "agent/workspace/skills.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workspace/front_matter.h"
#include "base/beneath.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"

#define IGNORE_BYTES  8192
#define CACHE_ENTRIES 500
#define NAME_BYTES    100 /* of a file or folder */

/* ---- one skill ---- */

void skill_release(struct skill *s)
{
        free(s->name);
        free(s->description);
        free(s->location);
}

struct skill_head {
        struct skill *skill;
        const char *path;
        struct buf *warnings;
};

/* In one line, without control characters: it goes into the prompt. */
static char *one_line(const char *text, size_t max)
{
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, max);
        char *line = utf8_clean(text, n);

        for (char *p = line; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        n = strlen(line);
        while (n > 0 && line[n - 1] == ' ')
                line[--n] = '\0';
        return line;
}

static void on_pair(void *arg, const char *key, const char *value)
{
        const struct skill_head *h = arg;
        struct skill *s = h->skill;

        if (strcmp(key, "name") == 0) {
                char *name = one_line(value, SKILL_NAME_MAX), *last = s->name;

                s->name = name[0] ? name : last;
                free(s->name == name ? last : name);
        } else if (strcmp(key, "description") == 0) {
                free(s->description);
                s->description = one_line(value, SKILL_DESCRIPTION_MAX);
                if (strlen(value) > SKILL_DESCRIPTION_MAX)
                        buf_addf(h->warnings,
                                 "%s: the description has %zu bytes and is cut after %d\n", h->path,
                                 strlen(value), SKILL_DESCRIPTION_MAX);
        } else if (strcmp(key, "disable-model-invocation") == 0) {
                s->is_hidden = strcmp(value, "true") == 0;
        }
}

static bool is_good_name(const char *name)
{
        size_t n = strlen(name);

        return n > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
               name[0] != '-' && name[n - 1] != '-' && !strstr(name, "--");
}

int skill_parse(struct skill *out, const char *text, size_t n, const char *default_name,
                const char *path, struct buf *warnings, struct error *err)
{
        struct skill_head h = { out, path, warnings };
        int rc;

        *out = (struct skill){ .name = one_line(default_name, SKILL_NAME_MAX) };
        rc = front_matter_read(text, n, on_pair, &h, err);
        if (rc == 0)
                rc = error_set(err, ERR_INVALID,
                               "it does not begin with a line \"---\", name, description and "
                               "another line \"---\"");
        else if (rc > 0 && !out->name[0])
                rc = error_set(err, ERR_INVALID, "it has no name");
        else if (rc > 0 && (!out->description || !out->description[0]))
                rc = error_set(err, ERR_INVALID,
                               "it has no description; say what it does and when to use it");
        if (rc < 0) {
                skill_release(out);
                *out = (struct skill){ 0 };
                return -1;
        }
        if (!is_good_name(out->name))
                buf_addf(warnings,
                         "%s: the name '%s' should have small letters, digits and "
                         "single hyphens only\n",
                         path, out->name);
        else if (strcmp(out->name, default_name) != 0)
                buf_addf(warnings, "%s: the name '%s' differs from that of its folder\n", path,
                         out->name);
        return 0;
}

/* ---- heads that were read before ---- */

struct skill_cache {
        struct map heads; /* → struct skill without location */
};

struct skill_cache *skill_cache_new(void)
{
        struct skill_cache *c = mem_zalloc(sizeof(*c));

        map_init(&c->heads);
        return c;
}

static void cache_empty(struct skill_cache *c)
{
        void *value;

        for (size_t i = 0; map_each(&c->heads, &i, NULL, &value);) {
                skill_release(value);
                free(value);
        }
        map_release(&c->heads);
        map_init(&c->heads);
}

void skill_cache_free(struct skill_cache *c)
{
        if (!c)
                return;
        cache_empty(c);
        map_release(&c->heads);
        free(c);
}

static void copy_head(struct skill *to, const struct skill *from)
{
        *to = (struct skill){ mem_strdup(from->name), mem_strdup(from->description), NULL,
                              from->is_hidden, false };
}

/* ---- searching ---- */

struct ignore_file { /* those of one folder, one after the other */
        const struct ignore_file *up;
        const char *text;
        size_t skip; /* bytes of a path before the names in that folder */
};

struct skill_search {
        struct skills *found;
        struct skill_cache *cache;
        const char *root; /* inside */
        bool of_channel, is_over;
        unsigned entries, tests;
};

static void add_problem(const struct skill_search *s, const char *path, const char *why)
{
        buf_addf(&s->found->problems, "%s/%s: %s\n", s->root, path, why);
}

static void stop(struct skill_search *s, const char *why)
{
        if (!s->is_over)
                buf_addf(&s->found->problems, "%s: %s; the rest is left out\n", s->root, why);
        s->is_over = true;
}

/* The last line that matches decides. */
static int test_ignore_file(struct skill_search *s, const struct ignore_file *f, const char *path,
                            bool is_folder)
{
        const char *p = f->text;
        int result = -1;

        while (*p) {
                size_t n = strcspn(p, "\n");
                int rc = -1;

                if (n > 0 && n <= SKILLS_PATTERN_MAX && ++s->tests <= SKILLS_TESTS_MAX)
                        rc = skill_ignore_match((struct slice){ p, n }, path + f->skip, is_folder);
                if (rc >= 0)
                        result = rc;
                p += n + (p[n] == '\n');
        }
        if (s->tests > SKILLS_TESTS_MAX)
                stop(s, "too many lines in ignore files");
        return result;
}

static bool is_ignored(struct skill_search *s, const struct ignore_file *innermost,
                       const char *path, bool is_folder)
{
        int rc = -1;

        for (const struct ignore_file *f = innermost; f && rc < 0; f = f->up)
                rc = test_ignore_file(s, f, path, is_folder);
        return rc == 1;
}

static void read_ignore_files(int folder, struct buf *out)
{
        static const char *const names[] = { ".gitignore", ".ignore", ".fdignore" };
        int64_t size;

        for (size_t i = 0; i < COUNT(names); i++) {
                int fd = beneath_open_file(folder, "", names[i], IGNORE_BYTES, &size, NULL);

                if (fd < 0)
                        continue;
                file_read_fd(fd, names[i], IGNORE_BYTES, out, NULL);
                buf_addch(out, '\n');
                close(fd);
        }
}

static void read_head(struct skill_search *s, int fd, const char *path, const char *default_name,
                      struct skill *out)
{
        struct buf text, problems;
        struct error err;
        char *full = mem_printf("%s/%s", s->root, path), *room;
        ssize_t n;

        buf_init(&text, 0);
        buf_init(&problems, 0);
        room = buf_reserve(&text, FRONT_MATTER_MAX);
        n = pread(fd, room, FRONT_MATTER_MAX, 0);
        if (skill_parse(out, room, n > 0 ? (size_t)n : 0, default_name, full, &problems, &err) < 0)
                buf_addf(&problems, "%s: %s\n", full, err.text);
        buf_addstr(&s->found->problems, problems.data);
        buf_release(&text);
        buf_release(&problems);
        free(full);
}

/* Of a file with problems nothing is kept: they are to be reported each time. */
static void cached_head(struct skill_search *s, int fd, const char *path, const char *default_name,
                        struct skill *out)
{
        size_t problems = s->found->problems.len;
        struct skill *known;
        struct stat st;
        char *key;

        if (!s->cache || fstat(fd, &st) < 0) {
                read_head(s, fd, path, default_name, out);
                return;
        }
        key = mem_printf("%llx:%llx:%lld.%ld:%lld:%s", (unsigned long long)st.st_dev,
                         (unsigned long long)st.st_ino, (long long)st.st_ctim.tv_sec,
                         st.st_ctim.tv_nsec, (long long)st.st_size, default_name);
        known = map_get(&s->cache->heads, key);
        if (known) {
                copy_head(out, known);
        } else {
                read_head(s, fd, path, default_name, out);
                if (s->cache->heads.count >= CACHE_ENTRIES)
                        cache_empty(s->cache);
                if (s->found->problems.len == problems) {
                        known = mem_zalloc(sizeof(*known));
                        copy_head(known, out);
                        map_put(&s->cache->heads, key, known);
                }
        }
        free(key);
}

static void add_skill(struct skill_search *s, struct skill *one, const char *path)
{
        struct skills *all = s->found;

        one->location = mem_printf("%s/%s", s->root, path);
        one->is_of_channel = s->of_channel;
        for (size_t i = 0; i < all->count; i++) {
                struct skill *other = &all->items[i];

                if (strcmp(other->name, one->name) != 0)
                        continue;
                if (other->is_of_channel == one->is_of_channel) {
                        add_problem(s, path, "another skill has the same name; it is left out");
                        skill_release(one);
                } else {
                        skill_release(other);
                        *other = *one;
                }
                return;
        }
        if (all->count == all->cap) {
                all->cap = all->cap ? all->cap * 2 : 16;
                all->items = mem_realloc(all->items, all->cap * sizeof(*all->items));
        }
        all->items[all->count++] = *one;
}

static void try_file(struct skill_search *s, int folder, const char *name, const char *path,
                     const char *default_name)
{
        struct skill one = { 0 };
        struct error err;
        int64_t size;
        int fd = beneath_open_file(folder, s->root, name, INT64_MAX, &size, &err);

        if (fd < 0) {
                add_problem(s, path, "not a regular file with one name");
                return;
        }
        cached_head(s, fd, path, default_name, &one);
        close(fd);
        if (!one.name)
                return;
        if (s->found->count < SKILLS_MAX) {
                add_skill(s, &one, path);
        } else {
                skill_release(&one);
                stop(s, "too many skills");
        }
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a folder in byte order, so that the prompt stays the same. Takes the descriptor. */
static size_t list_names(struct skill_search *s, int fd, char ***out)
{
        DIR *d = fdopendir(fd);
        const struct dirent *e;
        char **names = NULL;
        size_t n = 0;

        if (!d)
                close(fd);
        while (d && !s->is_over && (e = readdir(d))) {
                if (e->d_name[0] == '.' || strcmp(e->d_name, "node_modules") == 0 ||
                    strlen(e->d_name) > NAME_BYTES)
                        continue;
                if (++s->entries > SKILLS_ENTRIES_MAX) {
                        stop(s, "too many files");
                        break;
                }
                names = mem_realloc(names, (n + 1) * sizeof(*names));
                names[n++] = mem_strdup(e->d_name);
        }
        if (d)
                closedir(d);
        if (n > 0)
                qsort(names, n, sizeof(*names), by_text);
        *out = names;
        return n;
}

static void search_folder(struct skill_search *s, int folder, const char *path, unsigned depth,
                          const struct ignore_file *up);

static bool ends_with(const char *name, const char *end)
{
        size_t n = strlen(name), m = strlen(end);

        return n > m && strcmp(name + n - m, end) == 0;
}

static void search_entry(struct skill_search *s, int folder, const char *name, const char *path,
                         unsigned depth, const struct ignore_file *ignored)
{
        struct stat st;
        int fd;

        if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            is_ignored(s, ignored, path, S_ISDIR(st.st_mode)))
                return;
        if (S_ISLNK(st.st_mode)) {
                add_problem(s, path, "links are not followed");
        } else if (S_ISDIR(st.st_mode) && depth == SKILLS_DEPTH_MAX) {
                add_problem(s, path, "folders in folders in folders; it is not searched");
        } else if (S_ISDIR(st.st_mode)) {
                fd = beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
                if (fd >= 0)
                        search_folder(s, fd, path, depth + 1, ignored);
        } else if (depth == 0 && ends_with(name, ".md")) {
                char *stem = mem_strndup(name, strlen(name) - 3);

                try_file(s, folder, name, path, stem);
                free(stem);
        }
}

/* Takes the descriptor. path: of the folder below the root, "" is the root. */
static void search_folder(struct skill_search *s, int folder, const char *path, unsigned depth,
                          const struct ignore_file *up)
{
        struct ignore_file mine = { .up = up, .skip = path[0] ? strlen(path) + 1 : 0 };
        const char *name = strrchr(path, '/');
        struct buf ignored;
        struct stat st;
        char **names = NULL, *file = mem_printf("%s%sSKILL.md", path, path[0] ? "/" : "");
        size_t n = 0;
        int again;

        buf_init(&ignored, 0);
        if (depth > 0 && fstatat(folder, "SKILL.md", &st, AT_SYMLINK_NOFOLLOW) == 0) {
                if (!is_ignored(s, up, file, false))
                        try_file(s, folder, "SKILL.md", file, name ? name + 1 : path);
        } else if ((again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
                read_ignore_files(folder, &ignored);
                mine.text = ignored.data;
                n = list_names(s, again, &names);
        }
        for (size_t i = 0; i < n; i++) {
                char *entry = mem_printf("%s%s%s", path, path[0] ? "/" : "", names[i]);

                if (!s->is_over)
                        search_entry(s, folder, names[i], entry, depth, &mine);
                free(entry);
                free(names[i]);
        }
        free(names);
        free(file);
        buf_release(&ignored);
        close(folder);
}

static void search_root(struct skills *found, struct skill_cache *cache, int at, const char *root,
                        bool of_channel)
{
        struct skill_search s = {
                .found = found, .cache = cache, .root = root, .of_channel = of_channel
        };
        int fd = beneath_open(at, "skills", O_RDONLY | O_DIRECTORY, 0);

        if (fd >= 0)
                search_folder(&s, fd, "", 0, NULL);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct skill *)a)->name, ((const struct skill *)b)->name);
}

void skills_read(struct skills *s, const struct workspace_view *v, struct skill_cache *cache)
{
        char *of_channel = mem_printf("%s/skills", v->folder);

        *s = (struct skills){ 0 };
        buf_init(&s->problems, 0);
        search_root(s, cache, v->root_fd, WORKSPACE_INSIDE "/skills", false);
        search_root(s, cache, v->channel_fd, of_channel, true);
        if (s->count > 0)
                qsort(s->items, s->count, sizeof(*s->items), by_name);
        free(of_channel);
}

void skills_release(struct skills *s)
{
        for (size_t i = 0; i < s->count; i++)
                skill_release(&s->items[i]);
        free(s->items);
        buf_release(&s->problems);
}

/* ---- for the prompt ---- */

static void add_element(struct buf *out, const char *name, const char *text)
{
        buf_addf(out, "<%s>", name);
        for (; *text; text++)
                switch (*text) {
                case '<':
                        buf_addstr(out, "&lt;");
                        break;
                case '>':
                        buf_addstr(out, "&gt;");
                        break;
                case '&':
                        buf_addstr(out, "&amp;");
                        break;
                case '"':
                        buf_addstr(out, "&quot;");
                        break;
                case '\'':
                        buf_addstr(out, "&apos;");
                        break;
                default:
                        buf_addch(out, *text);
                }
        buf_addf(out, "</%s>\n", name);
}

void skills_list(const struct skills *s, struct buf *out)
{
        size_t shown = 0;

        for (size_t i = 0; i < s->count; i++) {
                const struct skill *one = &s->items[i];

                if (one->is_hidden)
                        continue;
                buf_addstr(out, shown++ == 0 ? "<available_skills>\n<skill>\n" : "<skill>\n");
                add_element(out, "name", one->name);
                add_element(out, "description", one->description);
                add_element(out, "location", one->location);
                buf_addstr(out, "</skill>\n");
        }
        if (shown > 0)
                buf_addstr(out, "</available_skills>\n");
}
