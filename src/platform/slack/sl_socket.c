/*
 * Each slot keeps one connection up. Its next one is opened beside it:
 *
 *     idle ──► waiting ──► asking ──► opening ──► idle: next is up, and what was up is drained
 *      │          ▲          │           │
 *      │ warned,  └──────────┴───────────┘ with backoff
 *      └ lost ────┘
 *
 * `enter` is the only place that changes a slot's state.
 */
#include "platform/slack/sl_socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "net/sleep_watch.h"
#include "platform/slack/sl_order.h"

#define CROWDED "too_many_websockets"

enum slot_state { SLOT_IDLE, SLOT_WAITING, SLOT_ASKING, SLOT_OPENING };

struct sl_slot {
        struct sl_socket *s;
        unsigned index;
        enum slot_state state;                /* of the next connection */
        struct sl_connection *up;             /* said hello; NULL: none */
        struct sl_connection *next, *drained; /* before and after that; NULL: none */
        struct timer *timer;                  /* ends SLOT_WAITING */
        struct sl_call *call;                 /* the glue's: apps.connections.open */
        int64_t up_ms;
        unsigned failures;    /* to get a connection, in a row */
        unsigned short_lived; /* connections in a row that ended soon */
        bool crowded;         /* Slack had too many */
};

struct sl_socket {
        struct sl_socket_options o;
        struct sl_socket_handlers on;
        void *arg;
        struct sl_slot slots[SL_SOCKET_MAX];
        struct sl_order *order;
        struct timer *grace; /* a loss that is not reported yet */
        struct timer *room;  /* runs while the owner is full */
        struct sleep_watch *watch;
        int64_t begun_ms;
        enum sl_socket_state reported;
        bool gap; /* no connection was up since the last report */
        bool stopped, full, warned;
        char why[200];
        unsigned refs; /* the owner, handlers on the stack */
        bool freed;
};

static void unref(struct sl_socket *s)
{
        if (--s->refs == 0)
                free(s);
}

/* ---- the state of all ---- */

unsigned sl_socket_connections(const struct sl_socket *s)
{
        unsigned n = 0;

        for (unsigned i = 0; i < s->o.connections; i++)
                n += s->slots[i].up != NULL;
        return n;
}

static void report(struct sl_socket *s, enum sl_socket_state state, const char *why)
{
        s->reported = state;
        s->gap = s->gap && state != SL_SOCKET_UP;
        s->on.state(s->arg, state, why);
}

static void report_lost(void *arg)
{
        struct sl_socket *s = arg;

        report(s, SL_SOCKET_LOST, s->why);
}

/* A connection ended, or could not be opened. */
static void note_loss(struct sl_socket *s, const char *why)
{
        if (s->stopped || s->freed || sl_socket_connections(s) > 0)
                return;
        snprintf(s->why, sizeof(s->why), "%.199s", why);
        s->gap = true;
        if (s->reported != SL_SOCKET_UP)
                report_lost(s);
        else if (!timer_active(s->grace))
                timer_start(s->grace, s->o.times.grace_ms);
}

/* ---- a slot ---- */

static void enter(struct sl_slot *t, enum slot_state state)
{
        static const char *const names[] = { "idle", "waiting", "asking", "opening" };

        if (t->state != state)
                log_debug("slack connection", LOG_S("adapter", t->s->o.name),
                          LOG_I("slot", t->index), LOG_S("from", names[t->state]),
                          LOG_S("to", names[state]), LOG_S("up", t->up ? "yes" : "no"));
        t->state = state;
}

static void drop(struct sl_socket *s, struct sl_connection **c)
{
        if (*c)
                sl_order_forget(s->order, sl_connection_source(*c));
        sl_connection_free(*c);
        *c = NULL;
}

static void clear_slot(struct sl_slot *t)
{
        timer_stop(t->timer);
        sl_api_abort(t->call);
        t->call = NULL;
        drop(t->s, &t->up);
        drop(t->s, &t->next);
        drop(t->s, &t->drained);
        enter(t, SLOT_IDLE);
}

static void stop(struct sl_socket *s, const char *why)
{
        s->stopped = true;
        timer_stop(s->grace);
        timer_stop(s->room);
        sleep_watch_stop(s->watch);
        for (unsigned i = 0; i < s->o.connections; i++)
                clear_slot(&s->slots[i]);
        report(s, SL_SOCKET_STOPPED, why);
}

/* Opens the slot's next connection after a wait, at least of retry_after_ms. */
static void open_next(struct sl_slot *t, int64_t wait_ms, int64_t retry_after_ms)
{
        int64_t wait = wait_ms > retry_after_ms ? wait_ms : retry_after_ms;

        if (t->s->stopped || t->state != SLOT_IDLE)
                return;
        enter(t, SLOT_WAITING);
        timer_start(t->timer, wait);
}

/*
 * At once; but connections that end soon, one after the other, are replaced more and more slowly: a
 * loop of opening and closing would be refused.
 */
static int64_t replacement_wait(struct sl_slot *t)
{
        const struct sl_socket_times *times = &t->s->o.times;
        unsigned failures;

        if (loop_now_ms(t->s->o.loop) - t->up_ms >= times->stable_ms)
                t->short_lived = 0;
        failures = t->short_lived++;
        return failures == 0 ? 0
                             : backoff_full_jitter_ms(failures - 1, times->backoff_ms,
                                                      times->backoff_max_ms);
}

static int64_t failure_wait(struct sl_slot *t)
{
        const struct sl_socket_times *times = &t->s->o.times;

        if (t->crowded)
                return backoff_half_jitter_ms(t->failures++, times->crowded_ms,
                                              times->crowded_ms * 10);
        return backoff_full_jitter_ms(t->failures++, times->backoff_ms, times->backoff_max_ms);
}

/* The next connection of a slot does not come. */
static void fail_next(struct sl_slot *t, const char *why, int64_t retry_after_ms)
{
        int64_t wait = failure_wait(t);

        drop(t->s, &t->next);
        enter(t, SLOT_IDLE);
        log_info("slack connection failed", LOG_S("adapter", t->s->o.name), LOG_I("slot", t->index),
                 LOG_S("why", why), LOG_I("inMs", wait > retry_after_ms ? wait : retry_after_ms));
        open_next(t, wait, retry_after_ms);
        note_loss(t->s, why);
}

/* ---- events of a connection ---- */

/* Connections over which Slack may send, also those about to end. */
static unsigned count_open(const struct sl_socket *s)
{
        unsigned n = 0;

        for (unsigned i = 0; i < s->o.connections; i++)
                n += (s->slots[i].up ? 1u : 0) + (s->slots[i].drained ? 1u : 0);
        return n;
}

/* The same, and those that may be open at Slack's end already. */
static unsigned count_all(const struct sl_socket *s)
{
        unsigned n = count_open(s);

        for (unsigned i = 0; i < s->o.connections; i++)
                n += s->slots[i].next ? 1u : 0;
        return n;
}

/* Another process with this app-level token takes a part of the events. */
static void check_others(struct sl_socket *s, int64_t connections)
{
        unsigned ours = count_all(s) + s->on.others(s->arg);

        if (connections <= ours || s->warned ||
            loop_now_ms(s->o.loop) - s->begun_ms < s->o.times.stable_ms)
                return; /* those of an earlier run may linger */
        s->warned = true;
        log_warn("Slack has connections of this app that are not ours: another process gets a part "
                 "of the events; stop it, or give it an app of its own",
                 LOG_S("adapter", s->o.name), LOG_I("connections", connections),
                 LOG_I("ours", ours));
}

static void on_hello(void *arg, struct sl_connection *c, const json_t *hello)
{
        struct sl_slot *t = arg;
        struct sl_socket *s = t->s;
        const char *app = json_str(json_object_get(hello, "connection_info"), "app_id", NULL);

        drop(t->s, &t->drained);
        t->drained = t->up;
        t->up = c;
        t->next = NULL;
        t->up_ms = loop_now_ms(s->o.loop);
        t->failures = 0;
        t->crowded = false;
        enter(t, SLOT_IDLE);
        check_others(s, json_int(hello, "num_connections", 0));
        if (s->full)
                sl_connection_pause(c, SL_PAUSE_FULL, true);
        s->refs++;
        if (t->drained)
                sl_connection_drain(t->drained);
        if (app)
                s->on.app(s->arg, app);
        timer_stop(s->grace);
        if (!s->freed && (s->reported != SL_SOCKET_UP || s->gap))
                report(s, SL_SOCKET_UP, NULL);
        unref(s);
}

static void pause_all(struct sl_socket *s, bool paused)
{
        s->full = paused;
        for (unsigned i = 0; i < s->o.connections; i++) {
                if (s->slots[i].up)
                        sl_connection_pause(s->slots[i].up, SL_PAUSE_FULL, paused);
                if (s->slots[i].drained)
                        sl_connection_pause(s->slots[i].drained, SL_PAUSE_FULL, paused);
        }
}

static void check_room(void *arg)
{
        struct sl_socket *s = arg;

        if (s->full == s->on.is_full(s->arg))
                return;
        pause_all(s, !s->full);
        if (s->full)
                timer_repeat(s->room, s->o.times.room_ms);
        else
                timer_stop(s->room);
}

static void pass_on(struct sl_socket *s, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *stored_arg)
{
        s->refs++;
        s->on.take(s->arg, kind, payload, retry, stored, stored_arg);
        if (!s->freed && !s->stopped)
                check_room(s);
        unref(s);
}

static void on_ordered(void *arg, json_t *payload, int retry, sl_stored_fn *stored,
                       void *stored_arg)
{
        pass_on(arg, SL_EVENT, payload, retry, stored, stored_arg);
}

static bool on_full(void *arg)
{
        const struct sl_socket *s = arg;

        return s->full;
}

static void on_ahead(void *arg, struct sl_order_source *source, bool paused)
{
        (void)arg;
        sl_connection_pause(sl_connection_of(source), SL_PAUSE_ORDER, paused);
}

static void on_envelope(void *arg, struct sl_connection *c, enum sl_arrival kind, json_t *payload,
                        int retry, sl_stored_fn *stored, void *stored_arg)
{
        struct sl_socket *s = ((struct sl_slot *)arg)->s;

        if (kind == SL_EVENT && (count_open(s) > 1 || sl_order_waiting(s->order) > 0))
                sl_order_add(s->order, sl_connection_source(c), payload, retry, stored, stored_arg);
        else
                pass_on(s, kind, payload, retry, stored, stored_arg);
}

static void on_disconnect(void *arg, struct sl_connection *c, const char *reason)
{
        struct sl_slot *t = arg;
        struct sl_socket *s = t->s;
        char why[200];

        log_info("slack ends a connection", LOG_S("adapter", s->o.name), LOG_I("slot", t->index),
                 LOG_S("reason", reason));
        if (strcmp(reason, "link_disabled") == 0) {
                snprintf(why, sizeof(why),
                         "Socket Mode is switched off for this app: switch it on at "
                         "api.slack.com/apps, page Socket Mode, or set adapters.%.40s.mode to "
                         "\"http\"; then restart",
                         s->o.name);
                stop(s, why);
                return;
        }
        if (strcmp(reason, CROWDED) == 0) {
                t->crowded = true;
                snprintf(why, sizeof(why),
                         "Slack has too many connections of this app: stop other processes that "
                         "use it, or lower adapters.%.60s.connections",
                         s->o.name);
                if (c == t->next) {
                        fail_next(t, why, -1);
                } else if (c == t->up) {
                        drop(t->s, &t->up);
                        open_next(t, failure_wait(t), -1);
                        note_loss(s, why);
                }
        } else if (c == t->next) {
                fail_next(t, reason, -1);
        } else if (c == t->up && t->state == SLOT_IDLE) {
                open_next(t, replacement_wait(t), -1);
        }
}

static void on_closed(void *arg, struct sl_connection *c, const char *why, int64_t retry_after_ms)
{
        struct sl_slot *t = arg;

        if (c == t->drained) {
                drop(t->s, &t->drained);
        } else if (c == t->next) {
                fail_next(t, why, retry_after_ms);
        } else {
                log_info("slack connection lost", LOG_S("adapter", t->s->o.name),
                         LOG_I("slot", t->index), LOG_S("why", why));
                drop(t->s, &t->up);
                if (t->state == SLOT_IDLE)
                        open_next(t, replacement_wait(t), retry_after_ms);
                note_loss(t->s, why);
        }
}

/* ---- connecting ---- */

static void on_timer(void *arg)
{
        struct sl_slot *t = arg;

        enter(t, SLOT_ASKING);
        t->s->on.ask(t->s->arg, t->index);
}

void sl_socket_url(struct sl_socket *s, unsigned slot, const char *url, const char *why,
                   int64_t retry_after_ms)
{
        static const struct sl_connection_handlers handlers = { .hello = on_hello,
                                                                .envelope = on_envelope,
                                                                .disconnect = on_disconnect,
                                                                .closed = on_closed };
        struct sl_slot *t = &s->slots[slot];

        if (t->state != SLOT_ASKING)
                return;
        /* never leave TLS */
        if (url && strncmp(url, "wss:", 4) != 0 && !(s->o.plain && strncmp(url, "ws:", 3) == 0)) {
                url = NULL;
                why = "Slack names no wss: address for the connection";
        }
        if (!url) {
                fail_next(t, why ? why : "Slack names no address", retry_after_ms);
                return;
        }
        enter(t, SLOT_OPENING);
        t->next = sl_connection_open(&(struct sl_connection_options){ .loop = s->o.loop,
                                                                      .http = s->o.http,
                                                                      .name = s->o.name,
                                                                      .url = url,
                                                                      .times = s->o.times },
                                     &handlers, t);
}

/* All connections are dead, whatever TCP says. Loses no time to find out. */
static void on_slept(void *arg)
{
        struct sl_socket *s = arg;

        for (unsigned i = 0; i < s->o.connections; i++) {
                clear_slot(&s->slots[i]);
                open_next(&s->slots[i], 0, -1);
        }
        timer_stop(s->grace);
        snprintf(s->why, sizeof(s->why), "the machine was asleep");
        report_lost(s);
}

struct sl_socket *sl_socket_new(const struct sl_socket_options *o,
                                const struct sl_socket_handlers *handlers, void *arg)
{
        struct sl_socket *s = mem_zalloc(sizeof(*s));
        struct sl_socket_times *t = &s->o.times;
        const struct {
                int64_t *at, otherwise;
        } defaults[] = {
                { &t->hello_ms, 20000 },       { &t->ping_ms, 5000 },     { &t->pong_ms, 10000 },
                { &t->quiet_ms, 30000 },       { &t->drain_ms, 10000 },   { &t->backoff_ms, 1000 },
                { &t->backoff_max_ms, 60000 }, { &t->stable_ms, 60000 },  { &t->grace_ms, 5000 },
                { &t->crowded_ms, 30000 },     { &t->suspend_ms, 60000 }, { &t->room_ms, 20 },
                { &t->order_ms, 20 },
        };

        s->o = *o;
        for (size_t i = 0; i < COUNT(defaults); i++)
                if (*defaults[i].at <= 0)
                        *defaults[i].at = defaults[i].otherwise;
        s->on = *handlers;
        s->arg = arg;
        s->refs = 1;
        s->begun_ms = loop_now_ms(o->loop);
        s->order =
                sl_order_new(o->loop, t->order_ms,
                             &(struct sl_order_handlers){
                                     .deliver = on_ordered, .is_full = on_full, .pause = on_ahead },
                             s);
        s->grace = timer_new(o->loop, report_lost, s);
        s->room = timer_new(o->loop, check_room, s);
        s->watch = sleep_watch_new(o->loop, t->suspend_ms, o->wall_ms, on_slept, s);
        for (unsigned i = 0; i < o->connections; i++) {
                s->slots[i].s = s;
                s->slots[i].index = i;
                s->slots[i].timer = timer_new(o->loop, on_timer, &s->slots[i]);
                open_next(&s->slots[i], 0, -1);
        }
        return s;
}

void sl_socket_free(struct sl_socket *s)
{
        if (!s || s->freed)
                return;
        s->freed = s->stopped = true;
        for (unsigned i = 0; i < s->o.connections; i++) {
                clear_slot(&s->slots[i]);
                timer_free(s->slots[i].timer);
        }
        sl_order_free(s->order);
        timer_free(s->grace);
        timer_free(s->room);
        sleep_watch_free(s->watch);
        unref(s);
}

/* ---- the adapter ---- */

static void on_url(void *arg, const struct sl_answer *a)
{
        struct sl_slot *t = arg;

        t->call = NULL;
        if (a->error && (strcmp(a->error, "missing_scope") == 0 ||
                         strcmp(a->error, "not_allowed_token_type") == 0)) {
                slack_stop(t->s->arg, a->why);
                return;
        }
        sl_socket_url(t->s, t->index, a->ok ? json_str(a->result, "url", NULL) : NULL, a->why,
                      a->retry_after_ms);
}

static void ask(void *slack, unsigned slot)
{
        struct slack *sl = slack;
        struct sl_slot *t = &sl->socket->slots[slot];

        t->call = sl_api_call(
                sl->api,
                &(struct sl_request){ .method = "apps.connections.open", .priority = SL_URGENT },
                on_url, t);
}

static void take(void *slack, enum sl_arrival kind, json_t *payload, int retry,
                 sl_stored_fn *stored, void *stored_arg)
{
        sl_intake_take(slack, kind, payload, retry, stored, stored_arg);
}

static bool is_full(void *slack)
{
        return sl_intake_is_full(slack);
}

static void set_app(void *slack, const char *id)
{
        struct slack *sl = slack;

        if (!sl->self.app)
                sl->self.app = mem_strdup(id);
}

struct sibling_count {
        const struct slack *sl;
        unsigned connections;
};

static void count_sibling(void *arg, struct adapter *a)
{
        struct sibling_count *count = arg;
        const struct slack *other = a->ops == &slack_platform ? a->self : NULL;

        if (other && other != count->sl && other->socket && slack_same_app(other, count->sl))
                count->connections += count_all(other->socket);
}

static unsigned count_siblings(void *slack)
{
        struct sibling_count count = { .sl = slack };

        if (count.sl->adapter->all)
                adapters_each(count.sl->adapter->all, count_sibling, &count);
        return count.connections;
}

static void set_state(void *slack, enum sl_socket_state state, const char *why)
{
        if (state == SL_SOCKET_UP)
                slack_up(slack);
        else if (state == SL_SOCKET_LOST)
                slack_lost(slack, why);
        else
                slack_stop(slack, why);
}

void sl_socket_open(struct slack *sl)
{
        static const struct sl_socket_handlers handlers = { .ask = ask,
                                                            .take = take,
                                                            .is_full = is_full,
                                                            .app = set_app,
                                                            .others = count_siblings,
                                                            .state = set_state };

        sl->socket = sl_socket_new(
                &(struct sl_socket_options){ .loop = sl->adapter->loop,
                                             .http = sl->adapter->http,
                                             .name = sl->adapter->name,
                                             .connections = (unsigned)sl->conf->connections,
                                             .plain =
                                                     strncmp(sl->conf->api_base, "http:", 5) == 0 },
                &handlers, sl);
}

void sl_socket_close(struct slack *sl)
{
        sl_socket_free(sl->socket);
        sl->socket = NULL;
}
