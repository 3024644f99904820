/*
 * The states of a shard:
 *
 *     waiting ──► connecting ──► opened ──► resuming ─────► up
 *        ▲                         └──────► identifying ──┘ │
 *        └───────────────── closing ◄───────────────────────┘     stopped: for good
 *
 * `enter` is the only place that changes it. To leave a connection, `leave` sets the plan for
 * afterwards and closes; `lost` carries the plan out.
 */
#include "platform/discord/dc_shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_id.h"

#define RESUMES_MAX 3    /* then a new session */
#define TRIM_MS     3000 /* after a large payload */

/* ---- close codes ---- */

/*
 * https://docs.discord.com/developers/topics/opcodes-and-status-codes; other codes mean that the
 * connection was lost. `ours`: we broke the protocol.
 */
/* clang-format off */
static const struct close_rule {
        int code;
        enum dc_shard_plan plan;
        bool ours;
        const char *what;
} close_rules[] = {
        { 4000, PLAN_RESUME,   false, "an unknown error at Discord" },
        { 4001, PLAN_RESUME,   true,  "Discord did not know our opcode" },
        { 4002, PLAN_RESUME,   true,  "Discord could not decode our frame" },
        { 4003, PLAN_IDENTIFY, false, "the session is no longer known" },
        { 4004, PLAN_STOP,     false, "Discord does not know this bot token" },
        { 4005, PLAN_RESUME,   true,  "we identified twice" },
        { 4007, PLAN_IDENTIFY, false, "the session cannot be resumed from this sequence" },
        { 4008, PLAN_RESUME,   true,  "we sent too fast" },
        { 4009, PLAN_IDENTIFY, false, "the session timed out" },
        { 4010, PLAN_STOP,     false, "Discord refuses the shard" },
        { 4011, PLAN_STOP,     false, "the bot is in too many servers for so few shards" },
        { 4012, PLAN_STOP,     false, "Discord no longer supports this version of its API" },
        { 4013, PLAN_STOP,     false, "Discord does not know one of the intents" },
        { 4014, PLAN_STOP,     false, "Discord refuses one of the intents" },
};
/* clang-format on */

/* Says what the operator can do about a code that stops. */
static void explain_stop(const struct dc_gateway_options *o, const struct close_rule *rule,
                         char *out, size_t size)
{
        char names[100];

        switch (rule->code) {
        case 4013:
                snprintf(out, size,
                         "%s in the number %u: check adapters.%.60s.intents (close code 4013)",
                         rule->what, o->intents, o->name);
                break;
        case 4014:
                dc_gateway_missing_intents(o->intents, o->flags, names, sizeof(names));
                snprintf(out, size,
                         "Discord refuses the %s: switch it on in the developer portal, page "
                         "Bot, Privileged Gateway Intents (close code 4014)",
                         names);
                break;
        case 4010:
        case 4011:
                snprintf(out, size, "%s: %s adapters.%.60s.shards%s (close code %d)", rule->what,
                         o->shards ? "set" : "start again, or set", o->name,
                         o->shards ? " to \"auto\"" : "", rule->code);
                break;
        default:
                snprintf(out, size, "%s (close code %d)", rule->what, rule->code);
        }
}

/* ---- leaving a connection ---- */

static void enter(struct dc_shard *s, enum dc_shard_state state)
{
        static const char *const names[] = { "waiting",     "connecting", "opened",  "resuming",
                                             "identifying", "up",         "closing", "stopped" };

        if (s->state != state)
                log_debug("discord shard", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                          LOG_S("from", names[s->state]), LOG_S("to", names[state]));
        s->state = state;
}

static void drop_connection(struct dc_shard *s)
{
        timer_stop(s->timer);
        dc_connection_free(s->connection);
        s->connection = NULL;
        dc_gateway_end_identify(s->g, s->id, false);
}

static bool is_stable(const struct dc_shard *s)
{
        return s->up_ms >= 0 && loop_now_ms(s->g->o.loop) - s->up_ms >= s->g->o.times.stable_ms;
}

/* Reconnect at once, unless failures repeat. */
static int64_t soon(const struct dc_shard *s)
{
        unsigned failures = s->up_ms >= 0 ? s->short_lived : s->failures;

        return failures == 0 || is_stable(s) ? 0 : -1;
}

/*
 * A session ends an outage, so its own loss begins with short waits again; sessions that end soon,
 * one after the other, wait longer each time.
 */
static unsigned count_failure(struct dc_shard *s)
{
        if (s->up_ms < 0)
                return s->failures++;
        s->failures = 0;
        if (is_stable(s))
                s->short_lived = 0;
        return s->short_lived++;
}

/* The connection is gone: carries out the plan. */
static void lost(struct dc_shard *s)
{
        struct dc_gateway *g = s->g;
        unsigned failures = count_failure(s);
        int64_t wait;

        drop_connection(s);
        wait = s->wait_ms >= 0 ? s->wait_ms
                               : backoff_full_jitter_ms(failures, g->o.times.backoff_ms,
                                                        g->o.times.backoff_max_ms);
        if (s->sent_resume && s->up_ms < 0 && ++s->resumes >= RESUMES_MAX)
                s->plan = PLAN_IDENTIFY;
        if (s->plan == PLAN_IDENTIFY) {
                dc_session_drop(&s->session);
                s->resumes = 0;
        }
        g->counted.lost++;
        log_info("discord connection ended", LOG_S("adapter", g->o.name), LOG_I("shard", s->id),
                 LOG_S("why", s->why), LOG_S("next", s->session.id ? "resume" : "identify"),
                 LOG_I("inMs", wait));
        enter(s, SHARD_WAITING);
        timer_start(s->timer, wait);
        dc_gateway_shard_lost(g, s->why);
}

static void leave(struct dc_shard *s, enum dc_shard_plan plan, int64_t wait_ms, const char *why)
{
        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED || s->state == SHARD_WAITING)
                return;
        s->plan = plan;
        s->wait_ms = wait_ms;
        snprintf(s->why, sizeof(s->why), "%.199s", why);
        timer_stop(s->timer);
        enter(s, SHARD_CLOSING);
        dc_connection_close(s->connection);
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct dc_shard *s = arg;
        static const struct close_rule lost_rule = { 0, PLAN_RESUME, false, NULL };
        const struct close_rule *rule = &lost_rule;
        char why[300];

        for (size_t i = 0; i < COUNT(close_rules) && !end->sent; i++)
                if (close_rules[i].code == end->code)
                        rule = &close_rules[i];
        if (rule->ours) {
                s->g->counted.our_mistakes++;
                log_warn("Discord reports a protocol error of ours", LOG_S("adapter", s->g->o.name),
                         LOG_I("shard", s->id), LOG_S("what", rule->what),
                         LOG_I("code", end->code));
        }
        if (s->state == SHARD_CLOSING) { /* our own plan holds */
                lost(s);
                return;
        }
        if (rule->plan == PLAN_STOP) {
                explain_stop(&s->g->o, rule, why, sizeof(why));
                dc_gateway_stop(
                        s->g, rule->code == 4004 ? DC_GATEWAY_BAD_TOKEN : DC_GATEWAY_STOPPED, why);
                return;
        }
        s->plan = rule->plan;
        s->wait_ms = end->retry_after_ms;
        snprintf(s->why, sizeof(s->why), "%s", rule->code ? rule->what : end->why);
        lost(s);
}

void dc_shard_committed(struct dc_shard *s, uint64_t number)
{
        /* with an empty window, nothing is missing up to now */
        dc_session_committed(&s->session, number, s->state == SHARD_UP ? s->g->o.wall_ms() : 0);
        dc_connection_adjust(s->connection);
}

static void up(struct dc_shard *s, bool resumed, int64_t since_ms)
{
        const struct dc_session_record *r =
                s->session.next.id ? &s->session.next : &s->session.committed;
        const struct dc_gateway_ready ready = { .shard = s->id,
                                                .resumed = resumed,
                                                .first_ms = r->first_ms,
                                                .user_id = r->user_id,
                                                .username = r->username,
                                                .application_id = r->application_id };

        timer_stop(s->timer);
        s->up_ms = loop_now_ms(s->g->o.loop);
        s->resumes = 0;
        enter(s, SHARD_UP);
        log_info("discord session", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                 LOG_S("state", resumed ? "resumed" : "new"));
        dc_gateway_shard_up(s->g, &ready, since_ms);
}

static void on_ready(struct dc_shard *s, const json_t *d, int64_t seq)
{
        const char *url = json_str(d, "resume_gateway_url", NULL);
        int64_t since_ms;

        if (!json_str(d, "session_id", NULL) || s->state != SHARD_IDENTIFYING) {
                leave(s, PLAN_IDENTIFY, -1, "Discord sent READY unasked, or without a session");
                return;
        }
        /* never leave TLS */
        if (!url || (strncmp(s->g->url, "wss:", 4) == 0 && strncmp(url, "wss:", 4) != 0))
                url = s->g->url;
        since_ms = dc_session_begin(&s->session, url, d, seq, s->g->o.wall_ms());
        dc_connection_adjust(s->connection);
        up(s, false, since_ms);
}

static void on_dispatch(struct dc_shard *s, const json_t *payload, json_t *d)
{
        const char *type = json_str(payload, "t", "");
        struct dc_session_event e = { .seq = json_int(payload, "s", 0) };
        struct dc_dispatch out;

        if (strcmp(type, "READY") == 0) {
                on_ready(s, d, e.seq);
                return;
        }
        if (!s->session.id || (s->state != SHARD_RESUMING && s->state != SHARD_UP))
                return;
        if (strcmp(type, "RESUMED") == 0) {
                if (s->state != SHARD_RESUMING)
                        return;
                if (e.seq > s->session.seq)
                        dc_shard_committed(s, dc_session_received(&s->session, &e));
                up(s, true, s->session.committed.missing_ms);
                return;
        }
        if (e.seq <= s->session.seq) /* replayed, and still in memory */
                return;
        if (s->state == SHARD_RESUMING) /* the replay makes progress */
                timer_start(s->timer, s->g->o.times.ready_ms);
        if (strcmp(type, "MESSAGE_CREATE") == 0)
                e.message_ms = dc_id_time_ms(json_str(d, "id", NULL));
        out = (struct dc_dispatch){ .ticket = (uint64_t)s->id << DC_TICKET_SHARD |
                                              dc_session_received(&s->session, &e),
                                    .shard = s->id,
                                    .type = type,
                                    .d = d,
                                    .session = s->session.id,
                                    .seq = e.seq };
        dc_connection_adjust(s->connection);
        s->g->counted.events++;
        s->g->on.event(s->g->arg, &out);
}

/* ---- payloads ---- */

static void on_hello(struct dc_shard *s, const json_t *d)
{
        int64_t interval = json_int(d, "heartbeat_interval", 0);
        struct dc_gateway *g = s->g;

        if (s->state != SHARD_OPENED || interval <= 0) {
                leave(s, PLAN_RESUME, -1, "Discord sent HELLO unasked, or without an interval");
                return;
        }
        dc_connection_beat_every(s->connection, interval);
        timer_start(s->timer, g->o.times.ready_ms);
        if (s->fresh) {
                enter(s, SHARD_IDENTIFYING);
                g->counted.identifies++;
                dc_connection_begin(s->connection, false, s->id, s->shards);
                dc_gateway_end_identify(g, s->id, true);
        } else {
                enter(s, SHARD_RESUMING);
                g->counted.resumes++;
                s->sent_resume = true;
                if (s->session.committed.missing_ms > 0)
                        g->on.behind(g->arg);
                dc_connection_begin(s->connection, true, s->id, s->shards);
        }
        /* the window may still be full */
        dc_connection_adjust(s->connection);
}

static void on_payload(void *arg, json_t *payload)
{
        struct dc_shard *s = arg;
        json_t *d = json_object_get(payload, "d");
        int64_t most = s->g->o.times.invalid_ms, wait;

        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED)
                return;
        switch (json_int(payload, "op", -1)) {
        case DC_OP_DISPATCH:
                on_dispatch(s, payload, d);
                break;
        case DC_OP_HEARTBEAT:
                dc_connection_beat(s->connection);
                break;
        case DC_OP_RECONNECT:
                leave(s, PLAN_RESUME, soon(s), "Discord asked for a new connection");
                break;
        case DC_OP_INVALID:
                wait = most / 5 + (int64_t)id_random_below((uint64_t)(most - most / 5) + 1);
                if (json_is_true(d) && s->session.id)
                        leave(s, PLAN_RESUME, wait, "Discord has invalidated the connection");
                else
                        leave(s, PLAN_IDENTIFY, wait, "Discord has invalidated the session");
                break;
        case DC_OP_HELLO:
                on_hello(s, d);
                break;
        case DC_OP_ACK:
                dc_connection_acked(s->connection);
                dc_session_alive(&s->session, s->state == SHARD_UP ? s->g->o.wall_ms() : 0);
                break;
        default:
                break;
        }
}

/* ---- connecting ---- */

static void on_connection(void *arg, enum dc_connection_event event, const char *why)
{
        struct dc_shard *s = arg;

        switch (event) {
        case DC_CONNECTION_OPENED:
                enter(s, SHARD_OPENED);
                timer_start(s->timer, s->g->o.times.hello_ms);
                break;
        case DC_CONNECTION_SILENT:
                s->g->counted.zombies++;
                leave(s, PLAN_RESUME, soon(s), "Discord did not acknowledge a heartbeat");
                break;
        case DC_CONNECTION_UNREADABLE:
                /* a failed resume: the payload must not come back for ever */
                s->sent_resume = s->sent_resume || s->state == SHARD_UP;
                s->up_ms = -1;
                leave(s, PLAN_RESUME, -1, why);
                break;
        case DC_CONNECTION_WAS_LARGE:
                timer_start(s->g->trimming, TRIM_MS);
                break;
        }
}

void dc_shard_connect(struct dc_shard *s, const char *url)
{
        static const struct dc_connection_handlers handlers = { .event = on_connection,
                                                                .payload = on_payload,
                                                                .closed = on_closed };

        enter(s, SHARD_CONNECTING);
        s->sent_resume = false;
        s->up_ms = -1;
        s->connection = dc_connection_open(&s->g->o, url, &s->session, &handlers, s);
}

void dc_shard_start(struct dc_shard *s)
{
        if (s->state != SHARD_WAITING)
                return;
        s->fresh = s->session.id == NULL;
        if (s->fresh)
                dc_gateway_want_identify(s->g, s->id);
        else if (s->g->o.url)
                dc_shard_connect(s, s->g->o.url);
        else /* now and then the general URL: the session's may be gone */
                dc_shard_connect(s, s->failures % 4 == 3 ? s->g->url : s->session.resume_url);
}

/* The wait is over, or HELLO, READY or RESUMED is overdue. */
static void on_timer(void *arg)
{
        struct dc_shard *s = arg;

        if (s->state == SHARD_WAITING)
                dc_shard_start(s);
        else if (s->session.full) /* we are not reading */
                timer_start(s->timer, s->g->o.times.ready_ms);
        else
                leave(s, PLAN_RESUME, -1,
                      s->state == SHARD_OPENED ? "Discord did not send HELLO"
                                               : "Discord did not start the session");
}

void dc_shard_renew(struct dc_shard *s, const char *why)
{
        leave(s, PLAN_RESUME, soon(s), why);
}

struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards)
{
        struct dc_shard *s = mem_zalloc(sizeof(*s));

        s->g = g;
        s->id = id;
        s->shards = shards;
        s->up_ms = -1;
        s->timer = timer_new(g->o.loop, on_timer, s);
        dc_session_open(&s->session, &g->o, id, shards);
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
        dc_session_release(&s->session);
        free(s);
}
