#include "api/core/reply_waiters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "store/store.h"

#define WAITERS_MAX   1000
#define FIRST_READ_MS 100
#define LATER_READ_MS 1000

struct reply_waiter {
        reply_waiter_fn *fn;
        void *arg;
        struct reply_waiters *all;
        char key[BUS_ID_SIZE];
        int64_t event;
        bool reading, again; /* again: the turn ended during the reading */
        int64_t deadline_ms, pause_ms;
        struct timer *timer;
        struct reply_waiter *same; /* the next one for the same event */
};

struct reply_waiters {
        struct api *api;
        struct bus_listener *listener;
        struct map by_event; /* "evt-12" → struct reply_waiter, first of a chain */
        LIST_HEAD(, reply_read) reads;
        unsigned count;
};

/* Reads the end of one event; outlives the waiter. */
struct reply_read {
        struct reply_waiters *all; /* NULL once they are freed */
        LIST_ENTRY(reply_read) next;
        int64_t event;
        bool ended;
        struct awaited_reply reply; /* its strings are the three below */
        struct buf text;
        char *reason;
        char status[32];
};

bool reply_waiters_check(struct http_exchange *x)
{
        if (api_of(x)->waiters->count < WAITERS_MAX)
                return true;
        http_refuse(x, 503, "UNAVAILABLE",
                    "%d requests wait for a reply already; ask again without waiting, or later",
                    WAITERS_MAX);
        return false;
}

unsigned reply_waiters_count(const struct reply_waiters *w)
{
        return w->count;
}

static void waiter_free(struct reply_waiter *w)
{
        timer_free(w->timer);
        free(w);
}

/* Takes the waiter out of its chain, frees it and calls back. reply NULL: the time is up. */
static void finish(struct reply_waiter *w, const struct awaited_reply *reply)
{
        struct reply_waiters *all = w->all;
        struct reply_waiter *first = map_get(&all->by_event, w->key), **at = &first;
        reply_waiter_fn *fn = w->fn;
        void *arg = w->arg;

        while (*at != w)
                at = &(*at)->same;
        *at = w->same;
        if (first)
                map_put(&all->by_event, w->key, first);
        else
                map_remove(&all->by_event, w->key);
        all->count--;
        waiter_free(w);
        fn(arg, reply);
}

/* ---- reading ---- */

static void add_text(struct buf *text, const char *line)
{
        if (text->len > 0)
                buf_addch(text, '\n');
        buf_addstr(text, line);
}

static void add_payload(struct buf *text, const char *json)
{
        json_t *payload = json_loads(json, 0, NULL);

        add_text(text, json_str(payload, "text", ""));
        json_decref(payload);
}

static int read_answer(struct store_tx *tx, int64_t turn, struct buf *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT x.text FROM turns t JOIN transcript x ON x.conversation = t.conversation"
                " WHERE t.id = ?1 AND x.turn = ?1 AND x.role = 'assistant' ORDER BY x.id");
        int rc;

        store_bind_int(s, 1, turn);
        while ((rc = store_step(s, err)) == 1)
                add_text(text, store_col_text(s, 0));
        return rc;
}

/* A failed turn is not in the transcript; the notice to the user is among its deliveries. */
static int read_notices(struct store_tx *tx, int64_t turn, struct buf *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT payload FROM deliveries WHERE turn = ?1 AND kind = 'send' ORDER BY id");
        int rc;

        store_bind_int(s, 1, turn);
        while ((rc = store_step(s, err)) == 1)
                add_payload(text, store_col_text(s, 0));
        return rc;
}

/*
 * The delivery to a message without a turn: the answer to a command, a rate limit notice. It is
 * among the newest.
 */
static int read_without_turn(struct store_tx *tx, int64_t event, struct buf *text,
                             struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT payload FROM (SELECT payload, trace, turn FROM deliveries ORDER BY "
                    "id DESC LIMIT 1000)"
                    " AS d WHERE coalesce(d.turn, 0) = 0"
                    " AND d.trace = (SELECT trace FROM trigger_log WHERE event = ?1) LIMIT 1");
        int rc;

        store_bind_int(s, 1, event);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        add_payload(text, store_col_text(s, 0));
        store_reset(s);
        return 0;
}

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct reply_read *u = arg;
        struct awaited_reply *o = &u->reply;
        struct store_stmt *s =
                store_prepare(tx, "SELECT turn, status, coalesce(reason, error), tokens_in, "
                                  "tokens_out FROM trigger_log WHERE event = ?1");
        int rc;

        buf_clear(&u->text);
        free(u->reason);
        u->reason = NULL;
        *o = (struct awaited_reply){ 0 };
        u->ended = false;
        store_bind_int(s, 1, u->event);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        snprintf(u->status, sizeof(u->status), "%s", store_col_text(s, 1));
        u->reason = mem_strdup(store_col_text(s, 2));
        o->turn = store_col_int(s, 0);
        o->tokens_in = store_col_int(s, 3);
        o->tokens_out = store_col_int(s, 4);
        store_reset(s);
        if (strcmp(u->status, "queued") == 0 || strcmp(u->status, "running") == 0)
                return 0;
        if (o->turn == 0)
                rc = read_without_turn(tx, u->event, &u->text, err);
        else if ((rc = read_answer(tx, o->turn, &u->text, err)) >= 0 && u->text.len == 0)
                rc = read_notices(tx, o->turn, &u->text, err);
        if (rc < 0)
                return -1;
        o->status = u->status;
        o->reason = u->reason;
        o->text = u->text.len > 0 ? u->text.data : NULL;
        u->ended = true;
        return 0;
}

static void read_reply(struct reply_waiter *w);

static void pause_or_end(struct reply_waiter *w)
{
        int64_t left = w->deadline_ms - loop_now_ms(w->all->api->env.loop);

        if (w->again) {
                read_reply(w);
        } else if (left <= 0) {
                finish(w, NULL);
        } else {
                timer_start(w->timer, left < w->pause_ms ? left : w->pause_ms);
                w->pause_ms = LATER_READ_MS;
        }
}

/* Serves every waiter of this event that is still there. */
static void on_read(void *arg, const struct error *err)
{
        struct reply_read *u = arg;
        char key[BUS_ID_SIZE];
        struct reply_waiter *w, *next;

        if (u->all)
                LIST_REMOVE(u, next);
        w = u->all ? map_get(&u->all->by_event, bus_event_id(u->event, key)) : NULL;
        for (; w; w = next) {
                next = w->same;
                w->reading = false;
                if (!err && u->ended)
                        finish(w, &u->reply);
                else
                        pause_or_end(w);
        }
        buf_release(&u->text);
        free(u->reason);
        free(u);
}

static void read_reply(struct reply_waiter *w)
{
        struct reply_read *u = mem_zalloc(sizeof(*u));

        w->reading = true;
        w->again = false;
        u->all = w->all;
        u->event = w->event;
        LIST_INSERT_HEAD(&w->all->reads, u, next);
        buf_init(&u->text, 0);
        store_read(w->all->api->env.store, on_reader, on_read, u);
}

static void on_timer(void *arg)
{
        struct reply_waiter *w = arg;

        if (!w->reading)
                read_reply(w);
}

/* ---- turns that end ---- */

static void on_turn(void *arg, const struct bus_event *e)
{
        struct reply_waiters *all = arg;
        json_t *payload, *id;
        size_t i;

        if (all->count == 0 || strcmp(e->type, "turn.started") == 0)
                return;
        payload = json_loads(e->payload, 0, NULL);
        json_array_foreach(json_object_get(payload, "events"), i, id) {
                const char *key = json_string_value(id);
                struct reply_waiter *w = key ? map_get(&all->by_event, key) : NULL;

                for (; w; w = w->same) {
                        w->again = true;
                        if (!w->reading)
                                read_reply(w);
                }
        }
        json_decref(payload);
}

void reply_waiters_add(struct reply_waiters *all, int64_t event, bool now, int64_t ms,
                       reply_waiter_fn *fn, void *arg)
{
        struct reply_waiter *w = mem_zalloc(sizeof(*w));

        w->fn = fn;
        w->arg = arg;
        w->all = all;
        w->event = event;
        w->deadline_ms = loop_now_ms(all->api->env.loop) + ms;
        w->pause_ms = FIRST_READ_MS;
        w->timer = timer_new(all->api->env.loop, on_timer, w);
        bus_event_id(event, w->key);
        w->same = map_put(&all->by_event, w->key, w);
        all->count++;
        if (now)
                read_reply(w);
        else
                pause_or_end(w);
}

struct reply_waiters *reply_waiters_new(struct api *a)
{
        struct reply_waiters *all = mem_zalloc(sizeof(*all));

        all->api = a;
        map_init(&all->by_event);
        LIST_INIT(&all->reads);
        all->listener = bus_listen(a->env.bus, 1u << STREAM_TURN, on_turn, all);
        return all;
}

void reply_waiters_free(struct reply_waiters *all)
{
        struct reply_read *u;
        void *first;

        if (!all)
                return;
        bus_unlisten(all->api->env.bus, all->listener);
        LIST_FOREACH(u, &all->reads, next)
                u->all = NULL;
        for (size_t i = 0; map_each(&all->by_event, &i, NULL, &first);) {
                struct reply_waiter *w, *next;

                for (w = first; w; w = next) {
                        next = w->same;
                        w->fn(w->arg, NULL);
                        waiter_free(w);
                }
        }
        map_release(&all->by_event);
        free(all);
}
