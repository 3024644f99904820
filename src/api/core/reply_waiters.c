#include "api/core/reply_waiters.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "rows/conversation_row.h"
#include "rows/delivery_row.h"
#include "rows/trigger_log_row.h"
#include "store/store.h"

#define WAITERS_MAX   1000
#define FIRST_READ_MS 100
#define LATER_READ_MS 1000
#define NEWEST        1000 /* deliveries searched for a notice */
#define CLOCK_STEP_MS 1000 /* the wall clock may be set back meanwhile */

struct reply_waiter {
        reply_waiter_fn *fn;
        void *arg;
        struct reply_waiters *all;
        char key[BUS_ID_SIZE];
        int64_t event;
        bool reading, again; /* again: the turn ended during the read */
        int64_t deadline_ms, pause_ms;
        struct timer *timer;
        struct reply_waiter *same; /* next waiter for the same event */
};

struct reply_waiters {
        struct api *api;
        struct bus_listener *listener;
        struct map by_event; /* "evt-12" → struct reply_waiter, first of a chain */
        LIST_HEAD(, reply_read) reads;
        unsigned count;
};

/* One read of an event's outcome; outlives the waiter. */
struct reply_read {
        struct reply_waiters *all; /* NULL once freed */
        LIST_ENTRY(reply_read) next;
        int64_t event;
        struct reply_outcome outcome;
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

/* Removes and frees the waiter, then calls back. reply NULL: timeout. */
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

/* ---- reading the reply ---- */

static void add_text(struct buf *text, const char *line)
{
        if (text->len > 0)
                buf_addch(text, '\n');
        buf_addstr(text, line);
}

/* Questions of the turn, which wait for a decision, are not its reply. */
static void add_delivery(struct buf *text, const struct delivery_row *d)
{
        json_t *payload = json_loads(d->payload, 0, NULL);

        if (!json_str(payload, "approvalId", NULL))
                add_text(text, json_str(payload, "text", ""));
        json_decref(payload);
}

/* The answer; for a failed turn, which has no transcript line, the user's notice. */
static int read_turn(struct store_tx *tx, int64_t turn, struct buf *text, struct error *err)
{
        struct store_stmt *s = transcript_row_list_answer(tx, turn);
        struct transcript_row line;
        struct delivery_row d;
        int rc;

        while ((rc = transcript_row_next(s, &line, err)) == 1)
                add_text(text, line.text);
        if (rc < 0 || text->len > 0)
                return rc;
        s = delivery_row_list_turn(tx, turn);
        while ((rc = delivery_row_next(s, &d, err)) == 1)
                if (d.kind == DELIVER_SEND)
                        add_delivery(text, &d);
        return rc;
}

/* The reply to a message without a turn: from a command or a rate limit. */
static int read_notice(struct store_tx *tx, const struct trigger_log_row *row, struct buf *text,
                       struct error *err)
{
        struct store_stmt *s =
                delivery_row_list_notices(tx, row->trace, row->adapter, row->channel, NEWEST);
        struct delivery_row d;
        int rc;

        while ((rc = delivery_row_next(s, &d, err)) == 1) {
                /* clients may repeat a trace id: the notice came with the decision */
                if (d.created_ms + CLOCK_STEP_MS < row->time_ms || d.kind != DELIVER_SEND)
                        continue;
                buf_clear(text);
                add_delivery(text, &d);
        }
        return rc;
}

void reply_outcome_init(struct reply_outcome *o)
{
        *o = (struct reply_outcome){ 0 };
        buf_init(&o->text, 0);
}

void reply_outcome_release(struct reply_outcome *o)
{
        buf_release(&o->text);
        free(o->reason);
}

int reply_outcome_read(struct store_tx *tx, int64_t event, struct reply_outcome *o,
                       struct error *err)
{
        struct trigger_log_row *row;
        int rc;

        buf_clear(&o->text);
        free(o->reason);
        o->reason = NULL;
        o->reply = (struct awaited_reply){ 0 };
        o->ended = false;
        rc = trigger_log_row_get(tx, event, &row, err);
        if (rc != 1 || row->status == TRIGGER_QUEUED) {
                free(row);
                return rc < 0 ? -1 : 0;
        }
        rc = row->turn > 0 ? read_turn(tx, row->turn, &o->text, err)
                           : read_notice(tx, row, &o->text, err);
        o->reason = mem_strdup(row->reason ? row->reason : row->error);
        o->reply = (struct awaited_reply){
                .status = trigger_status_name(row->status),
                .text = o->text.len > 0 ? o->text.data : NULL,
                .reason = o->reason,
                .turn = row->turn,
                .tokens_in = row->tokens_in > 0 ? row->tokens_in : 0,
                .tokens_cached = row->tokens_cached > 0 ? row->tokens_cached : 0,
                .tokens_out = row->tokens_out > 0 ? row->tokens_out : 0,
        };
        o->ended = true;
        free(row);
        return rc < 0 ? -1 : 0;
}

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct reply_read *u = arg;

        return reply_outcome_read(tx, u->event, &u->outcome, err);
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
                if (!err && u->outcome.ended)
                        finish(w, &u->outcome.reply);
                else
                        pause_or_end(w);
        }
        reply_outcome_release(&u->outcome);
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
        reply_outcome_init(&u->outcome);
        store_read(w->all->api->env.store, on_reader, on_read, u);
}

static void on_timer(void *arg)
{
        struct reply_waiter *w = arg;

        if (!w->reading)
                read_reply(w);
}

/* ---- ended turns ---- */

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
