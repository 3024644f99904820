/*
 * event_files: folders of events, watched live.
 *
 * workspace/events is the operator's, and may address any chat. channels/A/C/events is written by
 * agents that work in that chat, and means that chat. There may be very many of the latter, so a
 * folder of a chat is looked at when a turn of the chat ends, and only those of the last few chats
 * are watched besides; the rest is looked at when the daemon starts.
 *
 * Passes over folders run one after the other. The kernel may drop reports of changes, so
 * workspace/events is also looked at now and then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/filewatch.h"
#include "road/channel_folder.h"
#include "schedule/event_pass.h"
#include "schedule/schedule_private.h"

#define SETTLE_MS    100
#define RESCAN_MS    300000
#define LATER_MS     60000 /* after which a file that found no room is tried again */
#define WATCHED_MOST 64
#define QUEUED_MOST  10000
#define DONE_DAYS    30

/* The folder of a chat that was active lately. */
struct watched {
        struct event_files *files;
        char *path, *adapter, *channel;
        struct filewatch *watch;
        TAILQ_ENTRY(watched) next;
};

/* A folder to look at. */
struct wish {
        char *path, *adapter, *channel, *only; /* all but path may be NULL */
        struct event_files *files;
        struct timer *timer; /* not before it fires; NULL: now */
        TAILQ_ENTRY(wish) next;
};
TAILQ_HEAD(wishes, wish);

struct event_files {
        struct schedule *schedule;
        int root; /* the workspace; -1: it cannot be opened */
        struct filewatch *watch;
        struct timer *rescan;
        struct bus_listener *listener;
        TAILQ_HEAD(watched_list, watched) watched; /* the one that was active last is first */
        size_t watched_count;
        struct wishes now, later;
        size_t queued;
        struct event_pass *pass; /* under way */
        unsigned busy;           /* passes and searches under way */
        bool closing;
};

static void pump(struct event_files *f);

/* ---- wishes ---- */

static void wish_free(struct wish *w)
{
        timer_free(w->timer);
        free(w->path);
        free(w->adapter);
        free(w->channel);
        free(w->only);
        free(w);
}

static void on_later(void *arg)
{
        struct wish *w = arg;
        struct event_files *f = w->files;

        TAILQ_REMOVE(&f->later, w, next);
        timer_free(w->timer);
        w->timer = NULL;
        TAILQ_INSERT_TAIL(&f->now, w, next);
        pump(f);
}

/* after_ms 0: at once. */
static void add_wish(struct event_files *f, const char *path, const char *adapter,
                     const char *channel, const char *only, int64_t after_ms)
{
        struct wish *w;

        if (f->closing || f->root < 0)
                return;
        if (f->queued >= QUEUED_MOST) {
                log_warn("too many folders of events changed; one is looked at later",
                         LOG_S("folder", path));
                return;
        }
        w = mem_zalloc(sizeof(*w));
        w->files = f;
        w->path = mem_strdup(path);
        w->adapter = mem_strdup(adapter);
        w->channel = mem_strdup(channel);
        w->only = mem_strdup(only);
        f->queued++;
        if (after_ms > 0) {
                w->timer = timer_new(f->schedule->env.loop, on_later, w);
                timer_unref(w->timer);
                timer_start(w->timer, after_ms);
                TAILQ_INSERT_TAIL(&f->later, w, next);
                return;
        }
        TAILQ_INSERT_TAIL(&f->now, w, next);
        pump(f);
}

/* The same, unless it is wanted already. */
static void want(struct event_files *f, const char *path, const char *adapter, const char *channel,
                 const char *only, int64_t after_ms)
{
        const struct wish *w;

        TAILQ_FOREACH(w, after_ms > 0 ? &f->later : &f->now, next)
                if (strcmp(w->path, path) == 0 &&
                    (!w->only || (only && strcmp(w->only, only) == 0)))
                        return;
        add_wish(f, path, adapter, channel, only, after_ms);
}

/* ---- a pass ---- */

static void pass_end(struct event_files *f)
{
        struct event_pass *p = f->pass;
        bool later = false;

        f->pass = NULL;
        f->busy--;
        for (size_t i = 0; p->plans && i < p->listing.count; i++)
                later = later || p->plans[i].verdict == EVENT_LATER;
        if (p->listing.settling)
                want(f, p->path, p->home_adapter, p->home_channel, NULL, EVENT_FOLDER_SETTLE);
        if (later || p->listing.more)
                want(f, p->path, p->home_adapter, p->home_channel, NULL, LATER_MS);
        event_pass_free(p);
        pump(f);
}

static void move_pass(void *arg)
{
        event_pass_move(((struct event_files *)arg)->pass,
                        clock_wall_ms() - DONE_DAYS * INT64_C(86400000));
}

static void on_moved(void *arg)
{
        pass_end(arg);
}

static void on_written(void *arg, const struct error *err)
{
        struct event_files *f = ((struct event_pass *)arg)->owner;
        struct event_pass *p = f->pass;
        size_t waiting = 0, last = 0;
        bool moves = false;

        if (err) {
                pass_end(f); /* the schedule closes; the next run looks again */
                return;
        }
        bus_publish(f->schedule->env.bus, &p->batch);
        for (size_t i = 0; i < p->listing.count; i++) {
                moves = moves || p->plans[i].verdict == EVENT_DONE ||
                        p->plans[i].verdict == EVENT_BROKEN;
                if (p->plans[i].verdict == EVENT_LATER) {
                        waiting++;
                        last = i;
                }
        }
        if (waiting > 0)
                log_warn("event files wait", LOG_S("folder", p->path),
                         LOG_I("files", (int64_t)waiting),
                         LOG_S("file", p->listing.items[last].name),
                         LOG_S("why", p->plans[last].note.data));
        if (p->listing.more)
                log_warn("too many event files; the rest waits", LOG_S("folder", p->path),
                         LOG_I("most", EVENT_FOLDER_MOST));
        if (p->added)
                schedule_wake(f->schedule);
        if (moves)
                loop_work(f->schedule->env.loop, move_pass, on_moved, f);
        else
                pass_end(f);
}

static void read_pass(void *arg)
{
        event_pass_read(((struct event_files *)arg)->pass);
}

static void on_read(void *arg)
{
        struct event_files *f = arg;
        struct schedule *s = f->schedule;
        struct event_pass *p = f->pass;
        const char *name, *platform;

        if (p->err.kind != ERR_NONE || f->closing) {
                if (p->err.kind != ERR_NONE)
                        log_warn("cannot read event files", LOG_S("why", p->err.text));
                pass_end(f);
                return;
        }
        for (size_t i = 0; s->env.adapter_at(s->env.arg, i, &name, &platform); i++)
                event_pass_add_adapter(p, name, platform);
        p->conf = s->conf;
        event_pass_address(p);
        for (size_t i = 0; s->env.has_agent && i < p->listing.count; i++) {
                const char *agent = p->listing.items[i].file.agent;

                if (agent && !s->env.has_agent(s->env.arg, agent))
                        error_set(&p->plans[i].problem, ERR_INVALID,
                                  "agent: there is no agent '%.60s'", agent);
        }
        schedule_write(s, "event files", event_pass_write, on_written, p);
}

static void pump(struct event_files *f)
{
        struct wish *w = TAILQ_FIRST(&f->now);

        if (f->pass || !w || f->closing || f->schedule->quiet)
                return;
        TAILQ_REMOVE(&f->now, w, next);
        f->queued--;
        f->pass = event_pass_new(f->root, w->path, w->adapter, w->channel, w->only);
        f->pass->owner = f;
        f->busy++;
        wish_free(w);
        loop_work(f->schedule->env.loop, read_pass, on_read, f);
}

/* ---- folders of chats ---- */

static void watched_free(struct watched *w)
{
        TAILQ_REMOVE(&w->files->watched, w, next);
        w->files->watched_count--;
        filewatch_free(w->watch);
        free(w->path);
        free(w->adapter);
        free(w->channel);
        free(w);
}

static void on_chat_change(void *arg, const char *name)
{
        struct watched *w = arg;

        if (!name || event_file_is_name(name))
                want(w->files, w->path, w->adapter, w->channel, name, 0);
}

static void watch_chat(struct event_files *f, const char *path, const char *adapter,
                       const char *channel)
{
        char *whole = mem_printf("%s/workspace/%s", f->schedule->dir, path);
        struct watched *w;
        struct error err;

        TAILQ_FOREACH(w, &f->watched, next)
                if (strcmp(w->path, path) == 0)
                        break;
        if (w) {
                TAILQ_REMOVE(&f->watched, w, next);
                TAILQ_INSERT_HEAD(&f->watched, w, next);
                free(whole);
                return;
        }
        w = mem_zalloc(sizeof(*w));
        w->files = f;
        w->path = mem_strdup(path);
        w->adapter = mem_strdup(adapter);
        w->channel = mem_strdup(channel);
        TAILQ_INSERT_HEAD(&f->watched, w, next);
        f->watched_count++;
        w->watch = filewatch_new(f->schedule->env.loop, whole, NULL, SETTLE_MS, on_chat_change, w,
                                 &err);
        free(whole);
        if (!w->watch)
                watched_free(w); /* it is looked at when the next turn ends */
        else if (f->watched_count > WATCHED_MOST)
                watched_free(TAILQ_LAST(&f->watched, watched_list));
}

/* Looks at the folder of a chat, if there is one. */
static void look_at_chat(struct event_files *f, const char *adapter, const char *channel)
{
        char *folder = channel_folder(adapter, channel), *path = mem_printf("%s/events", folder);

        if (f->root >= 0 && faccessat(f->root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
                watch_chat(f, path, adapter, channel);
                want(f, path, adapter, channel, NULL, 0);
        }
        free(folder);
        free(path);
}

static void on_turn(void *arg, const struct bus_event *e)
{
        /* the stream also has the steps of agents */
        if (strncmp(e->type, "turn.", 5) == 0 && strcmp(e->type, EVENT_TURN_STARTED) != 0 &&
            e->adapter && e->channel)
                look_at_chat(arg, e->adapter, e->channel);
}

/* ---- at the start ---- */

/* Chats that have event files, or rows of such files. */
struct search {
        struct event_files *files;
        struct map folders; /* "channels/tg/42/events" -> struct found */
        struct error err;
};

struct found {
        char *adapter, *channel;
};

static void add_found(struct search *s, const char *adapter, const char *channel)
{
        char *folder = channel_folder(adapter, channel), *path = mem_printf("%s/events", folder);
        struct found *chat;

        if (!map_get(&s->folders, path)) {
                chat = mem_zalloc(sizeof(*chat));
                chat->adapter = mem_strdup(adapter);
                chat->channel = mem_strdup(channel);
                map_put(&s->folders, path, chat);
        }
        free(folder);
        free(path);
}

/* The name of which this is the folder, see channel_folder.h; yours to free. */
static char *decode(const char *name)
{
        char *out = mem_strdup(name), *to = out;

        for (const char *p = name; *p; p++) {
                char hex[3] = { p[0] == '%' ? p[1] : '\0', p[0] == '%' && p[1] ? p[2] : '\0',
                                '\0' };
                unsigned char byte;

                if (hex[1] && crypto_unhex(hex, &byte, 1)) {
                        *to++ = (char)byte;
                        p += 2;
                } else {
                        *to++ = *p;
                }
        }
        *to = '\0';
        return out;
}

static void on_folder(void *arg, const char *adapter_folder, const char *channel_folder_name)
{
        char *adapter = decode(adapter_folder), *channel = decode(channel_folder_name);
        char *folder = channel_folder(adapter, channel),
             *expected = mem_printf("channels/%s/%s", adapter_folder, channel_folder_name);

        /* of a very long id only a digest is left; its next turn finds it */
        if (strcmp(folder, expected) == 0)
                add_found(arg, adapter, channel);
        free(adapter);
        free(channel);
        free(folder);
        free(expected);
}

static void search_disk(void *arg)
{
        struct search *s = arg;

        event_folder_find(s->files->root, on_folder, s);
}

static int search_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *rows = schedule_row_list_files(tx, NULL, NULL, NULL);
        struct schedule_row row;
        int rc;

        while ((rc = schedule_row_next(rows, &row, err)) == 1) {
                char *folder = event_pass_folder_of(row.request_key);

                if (folder && strncmp(folder, "channels/", 9) == 0)
                        add_found(arg, row.adapter, row.channel);
                free(folder);
        }
        return rc;
}

static void on_rows(void *arg, const struct error *err)
{
        struct search *s = arg;
        struct event_files *f = s->files;
        const char *path;
        void *value;

        if (err)
                log_error("cannot look for events of chats", LOG_S("why", err->text));
        for (size_t i = 0; map_each(&s->folders, &i, &path, &value);) {
                struct found *chat = value;

                add_wish(f, path, chat->adapter, chat->channel, NULL, 0);
                free(chat->adapter);
                free(chat->channel);
                free(chat);
        }
        map_release(&s->folders);
        free(s);
        f->busy--;
}

static void on_disk(void *arg)
{
        struct search *s = arg;

        store_read(s->files->schedule->env.store, search_rows, on_rows, s);
}

static void search_chats(struct event_files *f)
{
        struct search *s = mem_zalloc(sizeof(*s));

        s->files = f;
        map_init(&s->folders);
        f->busy++;
        loop_work(f->schedule->env.loop, search_disk, on_disk, s);
}

/* ---- the operator's folder ---- */

static void on_change(void *arg, const char *name)
{
        if (!name || event_file_is_name(name))
                want(arg, "events", NULL, NULL, name, 0);
}

/* The folder may have been replaced: watches it again. */
static void on_rescan(void *arg)
{
        struct event_files *f = arg;
        char *path = mem_printf("%s/workspace/events", f->schedule->dir);
        struct error err;

        if (mkdirat(f->root, "events", 0755) < 0 && errno != EEXIST)
                log_error("cannot make the folder of events", LOG_S("path", path),
                          LOG_S("why", strerror(errno)));
        filewatch_free(f->watch);
        f->watch = filewatch_new(f->schedule->env.loop, path, NULL, SETTLE_MS, on_change, f, &err);
        if (!f->watch)
                log_warn("cannot watch event files; they are looked at every 5 minutes",
                         LOG_S("why", err.text));
        want(f, "events", NULL, NULL, NULL, 0);
        timer_start(f->rescan, RESCAN_MS);
        free(path);
}

/* ---- life ---- */

struct event_files *event_files_open(struct schedule *s)
{
        struct event_files *f = mem_zalloc(sizeof(*f));

        f->schedule = s;
        f->root = -1;
        TAILQ_INIT(&f->watched);
        TAILQ_INIT(&f->now);
        TAILQ_INIT(&f->later);
        return f;
}

void event_files_start(struct schedule *s)
{
        struct event_files *f = s->files;

        f->root = channel_folder_open_root(s->dir);
        if (f->root < 0) {
                log_error("cannot open the workspace; event files have no effect",
                          LOG_S("why", strerror(errno)));
                return;
        }
        f->rescan = timer_new(s->env.loop, on_rescan, f);
        timer_unref(f->rescan);
        on_rescan(f);
        search_chats(f);
        f->listener = bus_listen(s->env.bus, 1u << STREAM_TURN, on_turn, f);
}

void event_files_ticked(struct schedule *s, const struct schedule_row *row)
{
        bool concerns =
                s->files && strcmp(row->source, "file") == 0 && row->kind == SCHEDULE_ONE_SHOT;
        char *folder = concerns ? event_pass_folder_of(row->request_key) : NULL;
        bool of_chat = folder && strncmp(folder, "channels/", 9) == 0;

        if (folder)
                want(s->files, folder, of_chat ? row->adapter : NULL, of_chat ? row->channel : NULL,
                     row->name, 0);
        free(folder);
}

static void drop(struct wishes *list)
{
        struct wish *w;

        while ((w = TAILQ_FIRST(list))) {
                TAILQ_REMOVE(list, w, next);
                wish_free(w);
        }
}

void event_files_close(struct schedule *s)
{
        struct event_files *f = s->files;

        f->closing = true;
        if (f->listener)
                bus_unlisten(s->env.bus, f->listener);
        timer_free(f->rescan);
        filewatch_free(f->watch);
        while (!TAILQ_EMPTY(&f->watched))
                watched_free(TAILQ_FIRST(&f->watched));
        while (f->busy > 0)
                loop_step(s->env.loop, true);
        drop(&f->now);
        drop(&f->later);
        if (f->root >= 0)
                close(f->root);
        free(f);
        s->files = NULL;
}
