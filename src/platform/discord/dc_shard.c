/*
 * One session with Discord, over as many connections as it takes.
 *
 *     waiting ──► connecting ──► greeted ──► resuming ────► up
 *        ▲                          └──────► identifying ──┘ │
 *        └───────────────── closing ◄────────────────────────┘     stopped: for good
 *
 * `enter` is the one door. Whoever wants to leave a connection says what comes next (a plan) and
 * closes; `lost` then does it. What of the session was received and what is committed is
 * dc_progress.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"
#include "platform/discord/discord.h"

#define RESUMES_MAX 3

enum shard_state {
        SHARD_WAITING, /* for its turn, or after a failure */
        SHARD_CONNECTING,
        SHARD_GREETED, /* the socket is open; HELLO has not come */
        SHARD_RESUMING,
        SHARD_IDENTIFYING,
        SHARD_UP,
        SHARD_CLOSING,
        SHARD_STOPPED,
};

struct dc_shard {
        struct dc_gateway *g;
        unsigned id, shards;
        enum shard_state state;
        struct dc_link *link; /* NULL: no connection */
        struct timer *timer;  /* of the state */
        struct dc_progress progress;

        enum dc_plan plan;
        int64_t wait_ms; /* of the plan; -1: as the failures say */
        char why[200];
        bool fresh;        /* this attempt is to identify */
        bool sent_resume;  /* on this connection */
        unsigned failures; /* in a row, of connections that did not live long */
        unsigned resumes;  /* in a row, that came to nothing */
        int64_t up_ms;     /* since when it is up, loop time; -1: it is not */
};

static void enter(struct dc_shard *s, enum shard_state state)
{
        static const char *const names[] = { "waiting",     "connecting", "greeted", "resuming",
                                             "identifying", "up",         "closing", "stopped" };

        if (s->state != state)
                log_debug("discord shard", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                          LOG_S("from", names[s->state]), LOG_S("to", names[state]));
        s->state = state;
}

/* ---- leaving a connection ---- */

static void drop_session(struct dc_shard *s)
{
        dc_progress_drop(&s->progress);
        s->resumes = 0;
}

static void drop_connection(struct dc_shard *s)
{
        timer_stop(s->timer);
        dc_link_free(s->link);
        s->link = NULL;
        dc_gateway_turn_over(s->g, s, false);
}

static int64_t backoff_ms(const struct dc_shard *s)
{
        const struct dc_gateway_times *t = &s->g->o.times;
        int64_t most = t->backoff_ms << (s->failures < 16 ? s->failures : 16);

        if (most > t->backoff_max_ms)
                most = t->backoff_max_ms;
        return (int64_t)id_random_below((uint64_t)most + 1);
}

/* Has this connection lived long enough for the troubles before it to be forgotten? */
static bool is_stable(const struct dc_shard *s)
{
        return s->up_ms >= 0 && dc_gateway_now(s->g) - s->up_ms >= s->g->o.times.stable_ms;
}

/* At once, unless this has become a habit. */
static int64_t soon(const struct dc_shard *s)
{
        return s->failures == 0 || is_stable(s) ? 0 : -1;
}

/* The connection is gone; the plan is carried out. */
static void lost(struct dc_shard *s)
{
        struct dc_gateway *g = s->g;
        int64_t wait;

        if (is_stable(s))
                s->failures = 0;
        drop_connection(s);
        wait = s->wait_ms >= 0 ? s->wait_ms : backoff_ms(s);
        s->failures++;
        if (s->sent_resume && s->up_ms < 0 && ++s->resumes >= RESUMES_MAX)
                s->plan = DC_IDENTIFY;
        if (s->plan == DC_IDENTIFY)
                drop_session(s);
        g->counted.lost++;
        log_info("discord connection ended", LOG_S("adapter", g->o.name), LOG_I("shard", s->id),
                 LOG_S("why", s->why),
                 LOG_S("next", s->progress.session_id ? "resume" : "identify"),
                 LOG_I("inMs", wait));
        enter(s, SHARD_WAITING);
        timer_start(s->timer, wait);
        dc_gateway_shard_lost(g, s->why);
}

/* Closes with a plan for afterwards. */
static void leave(struct dc_shard *s, enum dc_plan plan, int64_t wait_ms, const char *why)
{
        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED || s->state == SHARD_WAITING)
                return;
        s->plan = plan;
        s->wait_ms = wait_ms;
        snprintf(s->why, sizeof(s->why), "%.199s", why);
        timer_stop(s->timer);
        enter(s, SHARD_CLOSING);
        dc_link_close(s->link);
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct dc_shard *s = arg;
        const struct dc_close_rule *rule = dc_close_rule(end->sent ? 0 : end->code);
        char why[300];

        if (rule->ours) {
                s->g->counted.our_mistakes++;
                log_warn("Discord objects to what we sent", LOG_S("adapter", s->g->o.name),
                         LOG_I("shard", s->id), LOG_S("what", rule->what),
                         LOG_I("code", end->code));
        }
        if (s->state == SHARD_CLOSING) { /* our own plan holds */
                lost(s);
                return;
        }
        if (rule->plan == DC_STOP) {
                dc_close_sentence(&s->g->o, end->code, why, sizeof(why));
                dc_gateway_stop(s->g, end->code == 4004, why);
                return;
        }
        s->plan = rule->plan;
        s->wait_ms = end->retry_after_ms;
        snprintf(s->why, sizeof(s->why), "%s", rule->code ? rule->what : end->why);
        lost(s);
}

/* ---- what is not committed ---- */

static uint64_t received(struct dc_shard *s, struct dc_passed what)
{
        uint64_t number = dc_progress_received(&s->progress, &what);

        dc_link_hold(s->link, s->progress.full);
        return number;
}

/* While the session is up nothing is missing up to now, when nothing waits to be committed. */
static int64_t complete_ms(const struct dc_shard *s)
{
        return s->state == SHARD_UP ? s->g->o.wall_ms() : 0;
}

void dc_shard_committed(struct dc_shard *s, uint64_t number)
{
        dc_progress_committed(&s->progress, number, complete_ms(s));
        dc_link_hold(s->link, s->progress.full);
}

void dc_shard_caught_up(struct dc_shard *s)
{
        dc_progress_caught_up(&s->progress);
}

/* ---- dispatches ---- */

static void up(struct dc_shard *s, bool resumed, int64_t since_ms)
{
        const struct dc_session *who = dc_progress_session(&s->progress);
        const struct dc_gateway_ready ready = { .shard = s->id,
                                                .resumed = resumed,
                                                .user_id = who->user_id,
                                                .username = who->username,
                                                .application_id = who->application_id };

        timer_stop(s->timer);
        s->up_ms = dc_gateway_now(s->g);
        s->resumes = 0;
        enter(s, SHARD_UP);
        log_info("discord session", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                 LOG_S("state", resumed ? "resumed" : "new"));
        dc_gateway_shard_up(s->g, &ready, since_ms);
}

/* Not from TLS to none. */
static char *resume_url_of(const struct dc_shard *s, const json_t *d)
{
        const char *url = json_str(d, "resume_gateway_url", NULL);

        if (!url || (strncmp(s->g->url, "wss:", 4) == 0 && strncmp(url, "wss:", 4) != 0))
                url = s->g->url;
        return mem_strdup(url);
}

static void on_ready(struct dc_shard *s, const json_t *d, int64_t seq)
{
        const char *id = json_str(d, "session_id", NULL);
        int64_t since_ms;
        char *url;

        if (!id || s->state != SHARD_IDENTIFYING) {
                leave(s, DC_IDENTIFY, -1, "Discord's READY came unasked, or names no session");
                return;
        }
        url = resume_url_of(s, d);
        since_ms = dc_progress_begin(&s->progress, id, url, d, seq);
        free(url);
        dc_link_hold(s->link, s->progress.full);
        up(s, false, since_ms);
}

static void on_resumed(struct dc_shard *s, int64_t seq)
{
        if (s->state != SHARD_RESUMING)
                return;
        if (seq > s->progress.seq)
                dc_shard_committed(s, received(s, (struct dc_passed){ .seq = seq }));
        up(s, true, s->progress.committed.missing_ms);
}

static void hand_over(struct dc_shard *s, const char *type, json_t *d, int64_t seq)
{
        bool message = strcmp(type, "MESSAGE_CREATE") == 0;
        struct dc_passed what = { .seq = seq,
                                  .message_ms =
                                          message ? dc_id_time_ms(json_str(d, "id", NULL)) : 0 };
        uint64_t number = received(s, what);
        const struct dc_dispatch e = { .ticket = (uint64_t)s->id << DC_TICKET_SHARD | number,
                                       .shard = s->id,
                                       .type = type,
                                       .d = d,
                                       .session = s->progress.session_id,
                                       .seq = seq };

        s->g->counted.events++;
        s->g->on.event(s->g->arg, &e);
}

static void on_dispatch(struct dc_shard *s, const json_t *payload, json_t *d)
{
        const char *type = json_str(payload, "t", "");
        int64_t seq = json_int(payload, "s", 0);

        if (strcmp(type, "READY") == 0) {
                on_ready(s, d, seq);
                return;
        }
        if (!s->progress.session_id || (s->state != SHARD_RESUMING && s->state != SHARD_UP))
                return;
        if (strcmp(type, "RESUMED") == 0) {
                on_resumed(s, seq);
                return;
        }
        if (seq <= s->progress.seq) /* told again: it is in our hands already */
                return;
        if (s->state == SHARD_RESUMING) /* replaying: it is alive */
                timer_start(s->timer, s->g->o.times.ready_ms);
        hand_over(s, type, d, seq);
}

/* ---- the connection's beginning, and its heartbeat ---- */

static int64_t on_heartbeat(void *arg)
{
        return dc_progress_heartbeat(&((struct dc_shard *)arg)->progress);
}

static void on_silent(void *arg)
{
        struct dc_shard *s = arg;

        s->g->counted.zombies++;
        leave(s, DC_RESUME, soon(s), "Discord did not answer a heartbeat");
}

static void on_ack(struct dc_shard *s)
{
        dc_link_acked(s->link);
        dc_progress_alive(&s->progress, complete_ms(s));
}

static void identify(struct dc_shard *s)
{
        struct buf b;

        enter(s, SHARD_IDENTIFYING);
        s->g->counted.identifies++;
        buf_init(&b, 0);
        dc_say_identify(&b, &s->g->o, s->id, s->shards);
        dc_link_send(s->link, &b);
        dc_gateway_turn_over(s->g, s, true);
}

static void resume(struct dc_shard *s)
{
        struct buf b;

        enter(s, SHARD_RESUMING);
        s->g->counted.resumes++;
        s->sent_resume = true;
        if (s->progress.committed.missing_ms > 0)
                s->g->on.behind(s->g->arg, s->id);
        buf_init(&b, 0);
        dc_say_resume(&b, &s->g->o, s->progress.session_id, s->progress.seq);
        dc_link_send(s->link, &b);
}

static void on_hello(struct dc_shard *s, const json_t *d)
{
        int64_t interval = json_int(d, "heartbeat_interval", 0);

        if (s->state != SHARD_GREETED || interval <= 0) {
                leave(s, DC_RESUME, -1, "Discord's HELLO makes no sense");
                return;
        }
        dc_link_beat_every(s->link, interval);
        timer_start(s->timer, s->g->o.times.ready_ms);
        if (s->fresh)
                identify(s);
        else
                resume(s);
        /* when what came over the last connection still waits */
        dc_link_hold(s->link, s->progress.full);
}

/* ---- frames ---- */

static void on_invalid(struct dc_shard *s, bool resumable)
{
        int64_t most = s->g->o.times.invalid_ms,
                wait = most / 5 + (int64_t)id_random_below((uint64_t)(most - most / 5) + 1);

        if (resumable && s->progress.session_id)
                leave(s, DC_RESUME, wait, "Discord has invalidated the connection");
        else
                leave(s, DC_IDENTIFY, wait, "Discord has invalidated the session");
}

static void on_payload(void *arg, json_t *payload)
{
        struct dc_shard *s = arg;
        json_t *d = json_object_get(payload, "d");

        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED)
                return;
        switch (json_int(payload, "op", -1)) {
        case DC_OP_DISPATCH:
                on_dispatch(s, payload, d);
                break;
        case DC_OP_HEARTBEAT:
                dc_link_beat_now(s->link);
                break;
        case DC_OP_RECONNECT:
                leave(s, DC_RESUME, soon(s), "Discord asked for a new connection");
                break;
        case DC_OP_INVALID:
                on_invalid(s, json_is_true(d));
                break;
        case DC_OP_HELLO:
                on_hello(s, d);
                break;
        case DC_OP_ACK:
                on_ack(s);
                break;
        default:
                break; /* news for others */
        }
}

static void on_unreadable(void *arg, const char *why)
{
        struct dc_shard *s = arg;

        /* the same again may not be endless */
        s->sent_resume = s->sent_resume || s->state == SHARD_UP;
        s->up_ms = -1;
        leave(s, DC_RESUME, -1, why);
}

static void on_open(void *arg)
{
        struct dc_shard *s = arg;

        enter(s, SHARD_GREETED);
        timer_start(s->timer, s->g->o.times.hello_ms);
}

/* ---- connecting ---- */

static void open_connection(struct dc_shard *s, const char *base)
{
        static const struct dc_link_handlers handlers = { .opened = on_open,
                                                          .payload = on_payload,
                                                          .heartbeat = on_heartbeat,
                                                          .silent = on_silent,
                                                          .unreadable = on_unreadable,
                                                          .closed = on_closed };

        enter(s, SHARD_CONNECTING);
        s->sent_resume = false;
        s->up_ms = -1;
        s->link = dc_link_open(s->g, base, &handlers, s);
}

void dc_shard_start(struct dc_shard *s)
{
        if (s->state != SHARD_WAITING)
                return;
        s->fresh = s->progress.session_id == NULL;
        if (s->fresh)
                dc_gateway_want_turn(s->g, s);
        else /* where the session is; should nobody be there any more, the main door now and then */
                open_connection(s, s->failures % 4 == 3 ? s->g->url : s->progress.resume_url);
}

void dc_shard_identify(struct dc_shard *s)
{
        open_connection(s, s->g->url);
}

/* Nothing came where something was due: HELLO, READY; or the wait is over. */
static void on_timer(void *arg)
{
        struct dc_shard *s = arg;

        if (s->state == SHARD_WAITING)
                dc_shard_start(s);
        else if (s->progress.full) /* we are not even listening */
                timer_start(s->timer, s->g->o.times.ready_ms);
        else
                leave(s, DC_RESUME, -1,
                      s->state == SHARD_GREETED ? "Discord did not say hello"
                                                : "Discord did not answer our greeting");
}

/* ---- life ---- */

struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards)
{
        struct dc_shard *s = mem_zalloc(sizeof(*s));

        s->g = g;
        s->id = id;
        s->shards = shards;
        s->up_ms = -1;
        s->timer = timer_new(g->o.loop, on_timer, s);
        dc_progress_open(&s->progress, &g->o, id, shards);
        return s;
}

void dc_shard_stop(struct dc_shard *s)
{
        drop_connection(s);
        enter(s, SHARD_STOPPED);
}

void dc_shard_free(struct dc_shard *s)
{
        if (!s)
                return;
        dc_shard_stop(s);
        timer_free(s->timer);
        dc_progress_release(&s->progress);
        free(s);
}

void dc_shard_renew(struct dc_shard *s, const char *why)
{
        leave(s, DC_RESUME, soon(s), why);
}

bool dc_shard_is_up(const struct dc_shard *s)
{
        return s->state == SHARD_UP;
}

unsigned dc_shard_id(const struct dc_shard *s)
{
        return s->id;
}

void dc_shard_stats(const struct dc_shard *s, struct dc_gateway_stats *out)
{
        out->uncommitted += s->progress.pending.open;
        if (s->state == SHARD_UP)
                out->ready++;
        if (dc_link_ping_ms(s->link) > out->ping_ms)
                out->ping_ms = dc_link_ping_ms(s->link);
}
