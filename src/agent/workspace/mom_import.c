#include "agent/workspace/mom_import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workspace/context_entry.h"
#include "agent/workspace/log_file.h"
#include "agent/workspace/log_record.h"
#include "agent/workspace/workspace.h"
#include "base/beneath.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/channel_folder.h"
#include "road/turn/turn.h"
#include "rows/conversation_row.h"

#define DEPTH_MAX    32
#define FILE_MOST    ((int64_t)1 << 30)
#define LOG_MOST     ((size_t)512 << 20)
#define SESSION_MOST ((size_t)128 << 20)
#define EVENT_MOST   65536
#define PART         ".import-part"

struct import_run {
        const struct mom_import *m;
        struct mom_report *report;
        int root; /* of our workspace; -1: there is none yet (dry run) */
        struct error *err;
};

static void note(const struct import_run *im, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static void note(const struct import_run *im, const char *fmt, ...)
{
        struct buf line;
        va_list ap;

        if (!im->m->note)
                return;
        buf_init(&line, 0);
        va_start(ap, fmt);
        buf_vaddf(&line, fmt, ap);
        va_end(ap);
        im->m->note(im->m->arg, line.data);
        buf_release(&line);
}

static int fail(const struct import_run *im, const char *what, const char *path)
{
        return error_set(im->err, errno == ENOSPC || errno == EDQUOT ? ERR_FULL : ERR_IO,
                         "cannot %s '%s': %s", what, path, strerror(errno));
}

/* ---- files ---- */

/* Where a file goes, and whether it is the agent's. */
struct import_target {
        int fd; /* -1: not there yet (dry run) */
        bool is_agents;
};

static bool same_bytes(int a, int b)
{
        char one[65536], two[65536];
        ssize_t n, k;

        do {
                n = read(a, one, sizeof(one));
                k = read(b, two, sizeof(two));
        } while (n > 0 && n == k && memcmp(one, two, (size_t)n) == 0);
        return n == 0 && k == 0;
}

/* Under another name first, so that an interrupted import leaves no half files. */
static int write_copy(const struct import_run *im, int from, const struct import_target *to,
                      const char *name, mode_t mode, const char *path)
{
        char *part = mem_printf("%s" PART, name);
        int fd, rc = -1;

        unlinkat(to->fd, part, 0);
        fd = beneath_open(to->fd, part, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd >= 0) {
                mode = (to->is_agents ? 0600 : 0644) |
                       (mode & 0100 ? (to->is_agents ? 0100 : 0111) : 0);
                if (file_copy(from, fd) == 0 && fchmod(fd, mode) == 0 &&
                    (!to->is_agents || channel_folder_give(fd) == 0))
                        rc = renameat(to->fd, part, to->fd, name);
                close(fd);
                if (rc < 0)
                        unlinkat(to->fd, part, 0);
        }
        free(part);
        return rc < 0 ? fail(im, "write", path) : 0;
}

static int copy_file(const struct import_run *im, int folder, const struct import_target *to,
                     const char *name, const char *path)
{
        struct error why;
        int64_t size;
        struct stat st;
        int from = beneath_open_file(folder, im->m->from, name, FILE_MOST, &size, &why), old,
            rc = 0;

        if (from < 0) {
                note(im, "left out: %s: %s", path, why.text);
                return 0;
        }
        old = to->fd < 0 ? -1 : beneath_open(to->fd, name, O_RDONLY | O_NONBLOCK, 0);
        if (old >= 0 || (to->fd >= 0 && errno == ELOOP)) {
                if (old >= 0 && same_bytes(from, old)) {
                        im->report->same++;
                } else {
                        im->report->differ++;
                        note(im, "kept: %s is there already and differs", path);
                }
        } else if (fstat(from, &st) == 0) {
                im->report->files++;
                if (!im->m->dry_run)
                        rc = write_copy(im, from, to, name, st.st_mode, path);
        }
        if (old >= 0)
                close(old);
        close(from);
        return rc;
}

static struct import_target open_target(const struct import_run *im, const struct import_target *in,
                                        const char *name)
{
        struct import_target t = { -1, in->is_agents };

        if (in->fd < 0)
                return t;
        if (!im->m->dry_run && mkdirat(in->fd, name, in->is_agents ? 0700 : 0755) == 0 &&
            in->is_agents) {
                int fd = beneath_open(in->fd, name, O_PATH | O_DIRECTORY, 0);

                if (fd >= 0) {
                        channel_folder_give(fd);
                        close(fd);
                }
        }
        t.fd = beneath_open(in->fd, name, O_RDONLY | O_DIRECTORY, 0);
        return t;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *e)
{
        return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/* Calls fn for each name in the folder, in order, until it fails. */
static int each_name(const struct import_run *im, int folder, const char *path,
                     int (*fn)(void *arg, const char *name), void *arg)
{
        struct dirent **names = NULL;
        int n = scandirat(folder, ".", &names, is_entry, by_name), rc = 0;

        if (n < 0)
                return fail(im, "read", path);
        for (int i = 0; i < n; i++) {
                if (rc == 0)
                        rc = fn(arg, names[i]->d_name);
                free(names[i]);
        }
        free(names);
        return rc;
}

struct tree {
        const struct import_run *im;
        int from;
        const struct import_target *to;
        const char *path;
        const char *const *skip; /* names; may be NULL */
        unsigned depth;
};

static int copy_entry(void *arg, const char *name);

static int copy_folder(const struct tree *t, const char *name, const char *path)
{
        struct import_target to = open_target(t->im, t->to, name);
        struct tree below = { t->im, -1, &to, path, NULL, t->depth + 1 };
        int rc = 0;

        if (to.fd < 0 && !t->im->m->dry_run)
                return fail(t->im, "make the folder", path);
        if (t->depth >= DEPTH_MAX)
                note(t->im, "left out: %s: too many folders in one another", path);
        else
                below.from = beneath_open(t->from, name, O_RDONLY | O_DIRECTORY, 0);
        if (below.from >= 0) {
                rc = each_name(t->im, below.from, path, copy_entry, &below);
                close(below.from);
        }
        if (to.fd >= 0)
                close(to.fd);
        return rc;
}

static int copy_entry(void *arg, const char *name)
{
        const struct tree *t = arg;
        char *path = mem_printf("%s/%s", t->path, name);
        struct stat st;
        int rc = 0;

        for (const char *const *s = t->skip; s && *s; s++)
                if (strcmp(*s, name) == 0)
                        goto out;
        if (fstatat(t->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                goto out;
        if (S_ISDIR(st.st_mode))
                rc = copy_folder(t, name, path);
        else if (S_ISREG(st.st_mode))
                rc = copy_file(t->im, t->from, t->to, name, path);
        else
                note(t->im, "left out: %s: a link or special file", path);
out:
        free(path);
        return rc;
}

/* ---- logs ---- */

/* The file as one text; "" when there is none. -1: it cannot be read. */
static int read_text(const struct import_run *im, int folder, const char *name, size_t max,
                     struct buf *out)
{
        int64_t size;
        struct error why;
        int fd = beneath_open_file(folder, im->m->from, name, (int64_t)max, &size, &why), rc;

        if (fd < 0) {
                if (why.kind != ERR_MISSING)
                        note(im, "left out: %s", why.text);
                return 0;
        }
        rc = file_read_fd(fd, name, max, out, im->err);
        close(fd);
        return rc;
}

/* Lines of mom in our form; each is also a key of *known. */
static void convert_log(const struct import_run *im, const struct buf *text, const char *channel,
                        struct buf *out, struct map *known)
{
        const char *p = text->data, *end = p + text->len;

        while (p < end) {
                const char *nl = memchr(p, '\n', (size_t)(end - p));
                size_t n = (size_t)((nl ? nl : end) - p), before = out->len;
                struct log_record r;
                json_t *json;

                if (n > 0 && log_record_read(&r, p, n, channel, &json, NULL) == 0) {
                        r.channel = channel;
                        log_record_write(&r, out);
                        json_decref(json);
                        out->data[out->len - 1] = '\0';
                        map_put(known, out->data + before, known);
                        out->data[out->len - 1] = '\n';
                        im->report->lines++;
                } else if (n > 0) {
                        im->report->skipped++;
                }
                p += n + 1;
        }
}

/* What our log has that is not of mom comes after it. */
static void add_own_lines(const struct buf *ours, const struct map *known, struct buf *out)
{
        char *copy = mem_strdup(ours->data), *rest = copy, *line;

        while ((line = strsep(&rest, "\n")))
                if (*line && !map_get(known, line))
                        buf_addf(out, "%s\n", line);
        free(copy);
}

static int import_log(const struct import_run *im, int from, const struct import_target *to,
                      const char *channel, const char *path)
{
        struct buf theirs, ours, all;
        struct map known;
        int rc, fd;

        buf_init(&theirs, 0);
        buf_init(&ours, 0);
        buf_init(&all, 0);
        map_init(&known);
        rc = read_text(im, from, LOG_FILE_NAME, LOG_MOST, &theirs);
        if (rc == 0 && theirs.len > 0)
                convert_log(im, &theirs, channel, &all, &known);
        if (rc == 0 && to->fd >= 0)
                rc = read_text(im, to->fd, LOG_FILE_NAME, LOG_MOST, &ours);
        if (rc == 0)
                add_own_lines(&ours, &known, &all);
        if (rc == 0 && all.len > 0 && !im->m->dry_run && strcmp(ours.data, all.data) != 0) {
                unlinkat(to->fd, LOG_FILE_NAME PART, 0);
                fd = beneath_open(to->fd, LOG_FILE_NAME PART, O_WRONLY | O_CREAT | O_EXCL, 0644);
                rc = -1;
                if (fd >= 0) {
                        if (write(fd, all.data, all.len) == (ssize_t)all.len)
                                rc = renameat(to->fd, LOG_FILE_NAME PART, to->fd, LOG_FILE_NAME);
                        close(fd);
                }
                if (rc < 0)
                        fail(im, "write the log of", path);
        }
        map_release(&known);
        buf_release(&theirs);
        buf_release(&ours);
        buf_release(&all);
        return rc;
}

/* ---- sessions ---- */

struct session_write {
        struct conversation_key key;
        const json_t *messages;
        int64_t added;
};

static int write_session(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_write *w = arg;

        w->added = mom_import_messages(tx, &w->key, w->messages, clock_wall_ms(), err);
        return w->added < 0 ? -1 : 0;
}

static int store_session(const struct import_run *im, const char *adapter, const char *channel,
                         const json_t *messages, const char *path)
{
        struct lane_name lane = { .adapter = adapter, .channel = channel, .agent = im->m->agent };
        char *key = lane_key(&lane);
        struct session_write w = {
                .key = { .lane = key, .chat = { adapter, channel, NULL }, .agent = im->m->agent },
                .messages = messages
        };
        int rc = 0;

        if (im->m->dry_run)
                w.added = (int64_t)json_array_size(messages);
        else
                rc = store_write_now(im->m->store, write_session, &w, im->err);
        if (rc == 0 && w.added > 0) {
                im->report->sessions++;
                im->report->messages += w.added;
        } else if (rc == 0) {
                note(im, "kept: agent '%s' remembers a conversation in %s already", im->m->agent,
                     path);
        }
        free(key);
        return rc;
}

static int import_session(const struct import_run *im, int from, const char *adapter,
                          const char *channel, const char *path)
{
        struct error why;
        struct buf text;
        size_t skipped = 0;
        json_t *messages;
        int rc;

        buf_init(&text, 0);
        rc = read_text(im, from, "context.jsonl", SESSION_MOST, &text);
        if (rc == 0 && text.len > 0) {
                messages = context_read(text.data, text.len, &skipped, &why);
                im->report->skipped += (int64_t)skipped;
                if (!messages)
                        note(im, "left out: %s/context.jsonl: %s", path, why.text);
                else if (json_array_size(messages) > 0)
                        rc = store_session(im, adapter, channel, messages, path);
                json_decref(messages);
        }
        buf_release(&text);
        return rc;
}

/* ---- channels ---- */

struct import_place {
        struct import_run *im;
        int from;            /* the folder that has the channels */
        const char *adapter; /* NULL: the folder has adapters */
        const char *path;
        bool is_old; /* channels are among other files */
};

static int open_channel(const struct import_run *im, const char *adapter, const char *channel)
{
        char *folder = channel_folder(adapter, channel);
        int fd = -1;

        if (im->m->dry_run)
                fd = im->root < 0 ? -1 : beneath_open(im->root, folder, O_RDONLY | O_DIRECTORY, 0);
        else
                fd = workspace_open_channel(im->root, folder, im->err);
        free(folder);
        return fd;
}

static int import_channel(const struct import_place *p, const char *channel, int from,
                          const char *path)
{
        static const char *const skip[] = { LOG_FILE_NAME, "context.jsonl", "last_prompt.jsonl",
                                            NULL };
        struct import_run *im = p->im;
        struct import_target to = { open_channel(im, p->adapter, channel), true };
        struct tree tree = { im, from, &to, path, skip, 0 };
        int rc;

        if (to.fd < 0 && !im->m->dry_run)
                return -1;
        im->report->channels++;
        note(im, "channel %s/%s", p->adapter, channel);
        rc = each_name(im, from, path, copy_entry, &tree);
        if (rc == 0)
                rc = import_log(im, from, &to, channel, path);
        if (rc == 0)
                rc = import_session(im, from, p->adapter, channel, path);
        if (to.fd >= 0)
                close(to.fd);
        return rc;
}

static int on_folder(void *arg, const char *name);

static int on_folder(void *arg, const char *name)
{
        const struct import_place *p = arg;
        char *path = mem_printf("%s/%s", p->path, name);
        int fd = name[0] == '.' ? -1 : beneath_open(p->from, name, O_RDONLY | O_DIRECTORY, 0),
            rc = 0;

        if (fd >= 0 && !p->adapter) {
                struct import_place below = { p->im, fd, name, path, false };

                rc = each_name(p->im, fd, path, on_folder, &below);
        } else if (fd >= 0 && (!p->is_old || faccessat(fd, LOG_FILE_NAME, F_OK, 0) == 0 ||
                               faccessat(fd, "context.jsonl", F_OK, 0) == 0)) {
                char *channel = utf8_clean(name, strlen(name));

                rc = import_channel(p, channel, fd, path);
                free(channel);
        }
        if (fd >= 0)
                close(fd);
        free(path);
        return rc;
}

/* ---- events ---- */

/*
 * The text of an event file, its channel qualified with the adapter: mom has one adapter, we may
 * have several. Yours to free; NULL: it stays as it is.
 */
static char *qualify_event(const struct import_run *im, const char *text, size_t n)
{
        json_t *event = json_read(text, n, NULL);
        const char *channel = json_str(event, "channelId", NULL);
        char *id, *out = NULL;

        if (channel && im->m->adapter && !strchr(channel, '/')) {
                id = mem_printf("%s/%s", im->m->adapter, channel);
                json_object_set_new(event, "channelId", json_string(id));
                free(id);
                id = json_dumps(event, JSON_INDENT(2));
                out = mem_printf("%s\n", id);
                free(id);
        }
        json_decref(event);
        return out;
}

/* Is the event in our folder already, or was it there and is done or broken? */
static int open_event(const struct import_target *to, const char *name)
{
        static const char *const folders[] = { "", "done/", "broken/" };
        int fd = -1;

        for (size_t i = 0; i < COUNT(folders) && fd < 0 && to->fd >= 0; i++) {
                char *path = mem_printf("%s%s", folders[i], name);

                fd = beneath_open(to->fd, path, O_RDONLY | O_NONBLOCK, 0);
                free(path);
        }
        return fd;
}

/* With the time of mom's file, by which one that has run is known again. */
static int write_event(const struct tree *t, const char *name, const char *text,
                       const struct stat *st, const char *path)
{
        int from = memfd_create("event", MFD_CLOEXEC), old = open_event(t->to, name), rc = 0;

        if (from < 0 || file_write(from, text, strlen(text)) < 0 || lseek(from, 0, SEEK_SET) < 0) {
                rc = fail(t->im, "copy", path);
        } else if (old >= 0 && same_bytes(from, old)) {
                t->im->report->same++;
        } else if (old >= 0) {
                t->im->report->differ++;
                note(t->im, "kept: %s is there already and differs", path);
        } else {
                t->im->report->files++;
                if (!t->im->m->dry_run)
                        rc = write_copy(t->im, from, t->to, name, st->st_mode, path);
                if (!t->im->m->dry_run && rc == 0)
                        utimensat(t->to->fd, name, (struct timespec[]){ st->st_mtim, st->st_mtim },
                                  AT_SYMLINK_NOFOLLOW);
        }
        if (old >= 0)
                close(old);
        if (from >= 0)
                close(from);
        return rc;
}

static int import_event(void *arg, const char *name)
{
        const struct tree *t = arg;
        char *path = mem_printf("%s/%s", t->path, name), *qualified;
        struct error why;
        struct stat st;
        int64_t size;
        int from = beneath_open_file(t->from, t->path, name, EVENT_MOST, &size, &why), rc = 0;
        struct buf text;

        buf_init(&text, 0);
        if (from < 0 || fstat(from, &st) < 0 ||
            file_read_fd(from, path, EVENT_MOST, &text, &why) < 0) {
                rc = copy_entry(arg, name); /* a folder, or it says why not */
        } else {
                qualified = qualify_event(t->im, text.data, text.len);
                rc = write_event(t, name, qualified ? qualified : text.data, &st, path);
                free(qualified);
        }
        if (from >= 0)
                close(from);
        buf_release(&text);
        free(path);
        return rc;
}

static int import_events(struct import_run *im, int from, const char *path)
{
        struct import_target root = { im->root, false }, to;
        struct tree tree = { im,   beneath_open(from, "events", O_RDONLY | O_DIRECTORY, 0),
                             &to,  NULL,
                             NULL, 1 };
        char *folder = mem_printf("%s/events", path);
        int rc = 0;

        if (tree.from >= 0) {
                to = open_target(im, &root, "events");
                tree.path = folder;
                rc = to.fd < 0 && !im->m->dry_run
                             ? fail(im, "make the folder", folder)
                             : each_name(im, tree.from, folder, import_event, &tree);
                if (to.fd >= 0)
                        close(to.fd);
                close(tree.from);
        }
        free(folder);
        return rc;
}

/* ---- all ---- */

static int import_shared(struct import_run *im, int from, const char *path)
{
        static const char *const names[] = { "MEMORY.md", "skills" };
        struct import_target to = { im->root, false };
        struct tree tree = { im, from, &to, path, NULL, 0 };
        int rc = 0;

        for (size_t i = 0; i < COUNT(names) && rc == 0; i++)
                rc = copy_entry(&tree, names[i]);
        return rc < 0 ? rc : import_events(im, from, path);
}

int mom_import_run(const struct mom_import *m, struct mom_report *out, struct error *err)
{
        struct import_run im = { .m = m, .report = out, .root = -1, .err = err };
        int top = open(m->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from = -1, channels = -1, rc;
        struct import_place place = { .im = &im, .path = m->from };

        *out = (struct mom_report){ 0 };
        if (top < 0)
                return error_set(err, ERR_MISSING, "cannot open '%s': %s", m->from,
                                 strerror(errno));
        from = beneath_open(top, "workspace", O_RDONLY | O_DIRECTORY, 0);
        if (from < 0)
                from = fcntl(top, F_DUPFD_CLOEXEC, 3);
        close(top);
        channels = beneath_open(from, "channels", O_RDONLY | O_DIRECTORY, 0);
        if (!m->dry_run) {
                im.root = channel_folder_open_root(m->dir);
        } else {
                struct workspace_view *v = workspace_view_peek(m->dir, "x", "x");

                im.root = v->root_fd < 0 ? -1 : fcntl(v->root_fd, F_DUPFD_CLOEXEC, 3);
                workspace_view_free(v);
        }
        if (im.root < 0 && !m->dry_run)
                rc = error_set(err, ERR_IO, "cannot open '%s/workspace': %s", m->dir,
                               strerror(errno));
        else
                rc = import_shared(&im, from, m->from);
        if (rc == 0) {
                place.from = channels >= 0 ? channels : from;
                place.is_old = channels < 0;
                place.adapter = channels < 0 ? m->adapter : NULL;
                rc = each_name(&im, place.from, m->from, on_folder, &place);
        }
        if (rc == 0 && out->channels == 0)
                rc = error_set(err, ERR_INVALID,
                               "'%s' has no channels: expected folders with log.jsonl or "
                               "context.jsonl, or workspace/channels/ADAPTER/CHANNEL",
                               m->from);
        if (channels >= 0)
                close(channels);
        if (im.root >= 0)
                close(im.root);
        close(from);
        return rc;
}
