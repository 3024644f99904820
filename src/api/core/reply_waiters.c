/*
 * Those who posted a message and wait for the reply. The end of a turn names the events it
 * answered, so a waiter is found by its event; what it is told is read from the rows. Some events
 * never get a turn and nothing is journaled about them: for these the rows are also looked at now
 * and then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/core/api_private.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/bus.h"

#define FIRST_LOOK_MS 100
#define LATER_LOOK_MS 1000

struct reply_waiter {
        reply_waiter_fn *fn;
        void *arg;
        struct reply_waiters *all;
        char key[BUS_ID_SIZE];
        int64_t event;
        bool looking, again; /* again: something happened while we looked */
        int64_t deadline_ms, pause_ms;
        struct timer *timer;
        struct reply_waiter *same; /* others who wait for the same event */
};

struct reply_waiters {
        struct api *api;
        struct bus_listener *listener;
        struct map by_event; /* "evt-12" → struct reply_waiter, first of a chain */
        LIST_HEAD(, look_up) looks;
        unsigned count;
};

/* A question about one event; survives the waiter. */
struct look_up {
        struct reply_waiters *all; /* NULL when they are gone */
        LIST_ENTRY(look_up) next;
        int64_t event;
        bool ended;
        struct awaited_reply outcome; /* its strings are the three below */
        struct buf text;
        char *reason;
        char status[32];
};

bool reply_waiters_check(struct http_exchange *x)
{
        if (api_of(x)->waiters->count < API_MAX_WAITERS)
                return true;
        http_refuse(x, 503, "UNAVAILABLE",
                    "%d requests wait for a reply already; ask again without waiting, or later",
                    API_MAX_WAITERS);
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

/* Leaves its chain, is told, and is gone. outcome NULL: the time was up. */
static void leave(struct reply_waiter *w);
static void tell(struct reply_waiter *w, const struct awaited_reply *outcome)
{
        reply_waiter_fn *fn = w->fn;
        void *arg = w->arg;

        leave(w);
        waiter_free(w);
        fn(arg, outcome);
}

static void chain_put(struct reply_waiters *all, const char *key, struct reply_waiter *first)
{
        if (first)
                map_put(&all->by_event, key, first);
        else
                map_remove(&all->by_event, key);
}

/* Takes one out of its chain. */
static void leave(struct reply_waiter *w)
{
        struct reply_waiters *all = w->all;
        struct reply_waiter *first = map_get(&all->by_event, w->key);
        struct reply_waiter **at = &first;

        while (*at != w)
                at = &(*at)->same;
        *at = w->same;
        chain_put(all, w->key, first);
        all->count--;
}

/* ---- looking ---- */

static int read_answer(struct store_tx *tx, int64_t turn, struct buf *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT x.text FROM turns t JOIN transcript x ON x.conversation = t.conversation"
                " WHERE t.id = ?1 AND x.turn = ?1 AND x.role = 'assistant' ORDER BY x.id");
        int rc;

        store_bind_int(s, 1, turn);
        while ((rc = store_step(s, err)) == 1) {
                if (text->len > 0)
                        buf_addch(text, '\n');
                buf_addstr(text, store_col_text(s, 0));
        }
        return rc;
}

/*
 * A failed turn has no line of its own in the transcript; what the user got is in its deliveries.
 */
static int read_notices(struct store_tx *tx, int64_t turn, struct buf *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT payload FROM deliveries WHERE turn = ?1 AND kind = 'send' ORDER BY id");
        int rc;

        store_bind_int(s, 1, turn);
        while ((rc = store_step(s, err)) == 1) {
                json_t *payload = json_loads(store_col_text(s, 0), 0, NULL);

                if (text->len > 0)
                        buf_addch(text, '\n');
                buf_addstr(text, json_str(payload, "text", ""));
                json_decref(payload);
        }
        return rc;
}

/*
 * What was said about a message that no turn has: the answer to a command, a word that somebody is
 * too fast. It is among the newest.
 */
static int read_told(struct store_tx *tx, int64_t event, struct buf *text, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT payload FROM (SELECT payload, trace, turn FROM deliveries ORDER BY "
                    "id DESC LIMIT 1000)"
                    " AS d WHERE coalesce(d.turn, 0) = 0"
                    " AND d.trace = (SELECT trace FROM trigger_log WHERE event = ?1) LIMIT 1");
        json_t *payload;
        int rc;

        store_bind_int(s, 1, event);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        payload = json_loads(store_col_text(s, 0), 0, NULL);
        buf_addstr(text, json_str(payload, "text", ""));
        json_decref(payload);
        store_reset(s);
        return 0;
}

static int read_words(struct store_tx *tx, struct look_up *u, struct error *err)
{
        int rc;

        if (u->outcome.turn == 0)
                return read_told(tx, u->event, &u->text, err);
        rc = read_answer(tx, u->outcome.turn, &u->text, err);
        if (rc >= 0 && u->text.len == 0)
                rc = read_notices(tx, u->outcome.turn, &u->text, err);
        return rc < 0 ? -1 : 0;
}

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct look_up *u = arg;
        struct awaited_reply *o = &u->outcome;
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
        if (read_words(tx, u, err) < 0)
                return -1;
        o->status = u->status;
        o->reason = u->reason;
        o->text = u->text.len > 0 ? u->text.data : NULL;
        u->ended = true;
        return 0;
}

static void look(struct reply_waiter *w);

static void pause_or_end(struct reply_waiter *w)
{
        int64_t left = w->deadline_ms - loop_now_ms(w->all->api->env.loop);

        if (w->again) {
                look(w);
                return;
        }
        if (left <= 0) {
                tell(w, NULL);
                return;
        }
        timer_start(w->timer, left < w->pause_ms ? left : w->pause_ms);
        w->pause_ms = LATER_LOOK_MS;
}

/* Everybody who waits for this event and has not been told yet. */
static void on_looked(void *arg, const struct error *err)
{
        struct look_up *u = arg;
        char key[BUS_ID_SIZE];
        struct reply_waiter *w, *next;

        if (u->all)
                LIST_REMOVE(u, next);
        w = u->all ? map_get(&u->all->by_event, bus_event_id(u->event, key)) : NULL;
        for (; w; w = next) {
                next = w->same;
                w->looking = false;
                if (!err && u->ended) {
                        tell(w, &u->outcome);
                } else {
                        pause_or_end(w);
                }
        }
        buf_release(&u->text);
        free(u->reason);
        free(u);
}

static void look(struct reply_waiter *w)
{
        struct look_up *u = mem_zalloc(sizeof(*u));

        w->looking = true;
        w->again = false;
        u->all = w->all;
        u->event = w->event;
        LIST_INSERT_HEAD(&w->all->looks, u, next);
        buf_init(&u->text, 0);
        store_read(w->all->api->env.store, on_reader, on_looked, u);
}

static void on_timer(void *arg)
{
        struct reply_waiter *w = arg;

        if (!w->looking)
                look(w);
}

/* ---- what happens ---- */

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
                        if (!w->looking)
                                look(w);
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
        w->pause_ms = FIRST_LOOK_MS;
        w->timer = timer_new(all->api->env.loop, on_timer, w);
        bus_event_id(event, w->key);
        w->same = map_put(&all->by_event, w->key, w);
        all->count++;
        if (now)
                look(w);
        else
                pause_or_end(w);
}

struct reply_waiters *reply_waiters_new(struct api *a)
{
        struct reply_waiters *all = mem_zalloc(sizeof(*all));

        all->api = a;
        map_init(&all->by_event);
        LIST_INIT(&all->looks);
        all->listener = bus_listen(a->env.bus, 1u << STREAM_TURN, on_turn, all);
        return all;
}

void reply_waiters_free(struct reply_waiters *all)
{
        struct look_up *u;
        void *first;

        if (!all)
                return;
        bus_unlisten(all->api->env.bus, all->listener);
        LIST_FOREACH(u, &all->looks, next)
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
