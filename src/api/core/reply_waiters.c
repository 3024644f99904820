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
#define EVERYBODY     INT64_MAX

struct reply_waiter {
        struct awaited_event *event;
        reply_waiter_fn *fn;
        void *arg;
        int64_t deadline_ms;
        LIST_ENTRY(reply_waiter) next;
};

/* A message. Its waiters share timer and reads, so that many cost no more than one. */
struct awaited_event {
        struct reply_waiters *all;
        char key[BUS_ID_SIZE];
        int64_t event;
        struct reply_read *reading; /* NULL: then the timer runs */
        bool again;                 /* the turn ended, or somebody joined, during the read */
        int64_t pause_ms;
        struct timer *timer;
        LIST_HEAD(, reply_waiter) waiters; /* empty: freed at the next occasion */
};

struct reply_waiters {
        struct api *api;
        struct bus_listener *listener;
        struct map by_event; /* "evt-12" → struct awaited_event */
        unsigned count;
};

/* One read of an event's outcome. */
struct reply_read {
        struct awaited_event *of; /* NULL: freed */
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

/* ---- waiters and what they wait for ---- */

static void on_timer(void *arg);

static struct awaited_event *event_get(struct reply_waiters *all, int64_t event)
{
        char key[BUS_ID_SIZE];
        struct awaited_event *e = map_get(&all->by_event, bus_event_id(event, key));

        if (e)
                return e;
        e = mem_zalloc(sizeof(*e));
        e->all = all;
        memcpy(e->key, key, sizeof(key));
        e->event = event;
        e->pause_ms = FIRST_READ_MS;
        e->timer = timer_new(all->api->env.loop, on_timer, e);
        LIST_INIT(&e->waiters);
        map_put(&all->by_event, e->key, e);
        return e;
}

static void event_free(struct awaited_event *e)
{
        if (e->reading)
                e->reading->of = NULL;
        timer_free(e->timer);
        free(e);
}

void reply_waiters_remove(struct reply_waiter *w)
{
        LIST_REMOVE(w, next);
        w->event->all->count--;
        free(w);
}

/* reply NULL: time is up. The call may remove other waiters. */
static void finish(struct reply_waiter *w, const struct awaited_reply *reply)
{
        reply_waiter_fn *fn = w->fn;
        void *arg = w->arg;

        reply_waiters_remove(w);
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

static void on_read(void *arg, const struct error *err);

static void read_reply(struct awaited_event *e)
{
        struct reply_read *u = mem_zalloc(sizeof(*u));

        timer_stop(e->timer);
        e->again = false;
        e->reading = u;
        u->of = e;
        u->event = e->event;
        reply_outcome_init(&u->outcome);
        store_read(e->all->api->env.store, on_reader, on_read, u);
}

static void pause_reading(struct awaited_event *e)
{
        int64_t now = loop_now_ms(e->all->api->env.loop), ms = e->pause_ms;
        const struct reply_waiter *w;

        LIST_FOREACH(w, &e->waiters, next)
                if (w->deadline_ms - now < ms)
                        ms = w->deadline_ms - now;
        timer_start(e->timer, ms);
        e->pause_ms = LATER_READ_MS;
}

/* One whose time is over by then; EVERYBODY: any. */
static struct reply_waiter *find_waiter(const struct awaited_event *e, int64_t then)
{
        struct reply_waiter *w;

        LIST_FOREACH(w, &e->waiters, next)
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                if (w->deadline_ms <= then)
                        return w;
        return NULL;
}

/* Reads it now, later, or never again. */
static void go_on(struct awaited_event *e)
{
        int64_t now = loop_now_ms(e->all->api->env.loop);
        struct reply_waiter *w;

        while (!e->again && (w = find_waiter(e, now)))
                finish(w, NULL);
        if (LIST_EMPTY(&e->waiters)) {
                map_remove(&e->all->by_event, e->key);
                event_free(e);
        } else if (e->again) {
                read_reply(e);
        } else if (!e->reading) { /* else by somebody who joined in a call */
                pause_reading(e);
        }
}

static void on_read(void *arg, const struct error *err)
{
        struct reply_read *u = arg;
        struct awaited_event *e = u->of;
        struct reply_waiter *w;

        if (e) {
                e->reading = NULL;
                while (!err && u->outcome.ended && (w = find_waiter(e, EVERYBODY)))
                        finish(w, &u->outcome.reply);
                go_on(e);
        }
        reply_outcome_release(&u->outcome);
        free(u);
}

static void read_now(struct awaited_event *e)
{
        e->again = true;
        if (!e->reading)
                read_reply(e);
}

static void on_timer(void *arg)
{
        struct awaited_event *e = arg;

        if (LIST_EMPTY(&e->waiters))
                go_on(e);
        else
                read_now(e);
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
                struct awaited_event *awaited = key ? map_get(&all->by_event, key) : NULL;

                if (awaited)
                        read_now(awaited);
        }
        json_decref(payload);
}

struct reply_waiter *reply_waiters_add(struct reply_waiters *all, int64_t event, bool now,
                                       int64_t ms, reply_waiter_fn *fn, void *arg)
{
        struct awaited_event *e = event_get(all, event);
        struct reply_waiter *w = mem_zalloc(sizeof(*w));

        w->event = e;
        w->fn = fn;
        w->arg = arg;
        w->deadline_ms = loop_now_ms(all->api->env.loop) + ms;
        LIST_INSERT_HEAD(&e->waiters, w, next);
        all->count++;
        if (now)
                read_now(e);
        else if (!e->reading && !timer_active(e->timer))
                pause_reading(e);
        return w;
}

struct reply_waiters *reply_waiters_new(struct api *a)
{
        struct reply_waiters *all = mem_zalloc(sizeof(*all));

        all->api = a;
        map_init(&all->by_event);
        all->listener = bus_listen(a->env.bus, 1u << STREAM_TURN, on_turn, all);
        return all;
}

void reply_waiters_free(struct reply_waiters *all)
{
        void *value;

        if (!all)
                return;
        bus_unlisten(all->api->env.bus, all->listener);
        for (size_t i = 0; map_each(&all->by_event, &i, NULL, &value);) {
                struct awaited_event *e = value;
                struct reply_waiter *w;

                while ((w = find_waiter(e, EVERYBODY)))
                        finish(w, NULL);
                event_free(e);
        }
        map_release(&all->by_event);
        free(all);
}
