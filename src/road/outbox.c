/*
 * outbox: deliveries on their way to the platforms.
 *
 *     QUEUED ── claim committed ──► SENDING ── adapter answers ──► SETTLING ── outcome committed ──► gone, or QUEUED again
 *
 * A channel's deliveries go one after the other; the adapter's budget (pace) decides when. The claim is stored before the adapter is
 * asked, so that after a crash a row in state sending means: it may have arrived. Whether that is repeated, looked up or reported
 * as unknown depends on what the platform can do; it is never repeated blindly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

static void pump(struct road *r, struct out_channel *c);

/* ---- objects ---- */

struct out *out_new(int64_t id, int64_t turn, const char *adapter, const char *channel, const char *thread,
                    const char *kind, enum pace_class class, const char *payload, const char *trace)
{
        struct out *o = mem_zalloc(sizeof(*o));

        o->d = (struct delivery){
                .id = id,
                .turn = turn,
                .adapter = mem_strdup(adapter),
                .channel = mem_strdup(channel),
                .thread = mem_strdup(thread),
                .kind = mem_strdup(kind),
                .class = class,
                .payload = mem_strdup(payload),
                .trace = mem_strdup(trace),
                .created_ms = clock_wall_ms(),
        };
        return o;
}

void out_free(struct out *o)
{
        if (!o)
                return;
        timer_free(o->deadline);
        free((char *)o->d.adapter);
        free((char *)o->d.channel);
        free((char *)o->d.thread);
        free((char *)o->d.kind);
        free((char *)o->d.payload);
        free((char *)o->d.trace);
        free(o->target);
        free(o);
}

static void set_limits(struct road *r, struct out_adapter *a)
{
        struct pace_limits limits = { 0 };

        r->hooks.adapter_limits(r->hooks.ctx, a->name, &limits);
        pace_set_limits(a->pace, &limits);
}

struct out_adapter *outbox_adapter(struct road *r, const char *name)
{
        struct out_adapter *a = map_get(&r->adapters, name);
        struct pace_limits none = { 0 };

        if (a)
                return a;
        a = mem_zalloc(sizeof(*a));
        a->road = r;
        a->name = mem_strdup(name);
        a->pace = pace_new(&none);
        map_init(&a->channels);
        set_limits(r, a);
        map_put(&r->adapters, name, a);
        return a;
}

static void on_channel_timer(void *arg)
{
        struct out_channel *c = arg;

        pump(c->adapter->road, c);
}

static struct out_channel *channel_get(struct road *r, struct out_adapter *a, const struct delivery *d)
{
        char *key = mem_printf("%s%s%s", d->channel, d->thread ? "/" : "", d->thread ? d->thread : "");
        struct out_channel *c = map_get(&a->channels, key);

        if (c) {
                free(key);
                return c;
        }
        c = mem_zalloc(sizeof(*c));
        c->adapter = a;
        c->key = key;
        TAILQ_INIT(&c->queue);
        c->timer = timer_new(r->loop, on_channel_timer, c);
        map_put(&a->channels, key, c);
        return c;
}

static void channel_free(struct out_channel *c)
{
        timer_free(c->timer);
        free(c->key);
        free(c);
}

/* The delivery leaves memory. */
static void leave(struct road *r, struct out *o)
{
        struct out_channel *c = o->channel;
        struct out_adapter *a = c->adapter;
        char key[TURN_KEY_SIZE];

        TAILQ_REMOVE(&c->queue, o, next);
        map_remove(&r->outs, road_key("dlv", o->d.id, key));
        r->out_count--;
        a->stats.open--;
        out_free(o);
        if (TAILQ_EMPTY(&c->queue)) {
                map_remove(&a->channels, c->key);
                channel_free(c);
        } else {
                pump(r, c);
        }
        lane_pump_ready(r);
        road_check_drained(r);
}

void outbox_enqueue(struct road *r, struct out *o)
{
        struct out_adapter *a = outbox_adapter(r, o->d.adapter);
        char key[TURN_KEY_SIZE];

        o->channel = channel_get(r, a, &o->d);
        TAILQ_INSERT_TAIL(&o->channel->queue, o, next);
        map_put(&r->outs, road_key("dlv", o->d.id, key), o);
        r->out_count++;
        a->stats.open++;
        pump(r, o->channel);
}

/* An edit of the same message that has not left yet: the newest text is the only one worth sending. */
struct out *outbox_waiting_edit(struct road *r, const char *adapter, const char *channel, const char *thread,
                                int64_t ref, const char *message_id)
{
        struct out_adapter *a = map_get(&r->adapters, adapter);
        char *key = mem_printf("%s%s%s", channel, thread ? "/" : "", thread ? thread : "");
        struct out_channel *c = a ? map_get(&a->channels, key) : NULL;
        struct out *o, *found = NULL;
        struct buf member;

        free(key);
        if (!c)
                return NULL;
        buf_init(&member, 0);
        if (message_id)
                jsonw_str(&member, "messageId", message_id);
        TAILQ_FOREACH(o, &c->queue, next)
        {
                if (o->state != OUT_QUEUED || strcmp(o->d.kind, "edit") != 0)
                        continue;
                if (message_id ? strstr(o->d.payload, member.data) != NULL : o->ref == ref)
                        found = o;
        }
        buf_release(&member);
        return found;
}

void outbox_forget(struct road *r, struct out *o)
{
        leave(r, o);
}

/* ---- settling: what became of a delivery ---- */

struct settlement {
        struct road *road;
        struct out *out;
        const char *state;   /* "sent", "queued" (again), "failed", "unknown", "expired" */
        const char *outcome; /* for the attempts table; NULL: no row */
        char *platform_id, *why;
        enum error_kind kind;
        int64_t now_ms, due_ms;
        int64_t attempt_after; /* a rate limit does not count as an attempt */
        bool anew;             /* the message to edit is gone: send the text as a new one */
        bool lost;
        struct bus_batch batch;
};

static int settle_attempt(struct store_tx *tx, const struct settlement *m, struct error *err)
{
        struct store_stmt *s;

        if (!m->outcome)
                return 0;
        s = store_prepare(
                tx,
                "INSERT INTO attempts(delivery, attempt, time_ms, outcome, detail) VALUES(?1, ?2, ?3, ?4, ?5)"
                " ON CONFLICT(delivery, attempt) DO UPDATE SET time_ms = excluded.time_ms,"
                " outcome = excluded.outcome, detail = excluded.detail");
        store_bind_int(s, 1, m->out->d.id);
        store_bind_int(s, 2, m->out->d.attempt);
        store_bind_int(s, 3, m->now_ms);
        store_bind_text(s, 4, m->outcome);
        store_bind_text(s, 5, m->why);
        return store_run(s, err);
}

void out_sent_event(const struct out *o, const char *platform_id, int64_t time_ms, struct buf *payload)
{
        char key[TURN_KEY_SIZE];
        size_t n = strlen(o->d.payload);

        road_key("dlv", o->d.id, key);
        jsonw_open(payload, '{');
        jsonw_str(payload, "deliveryId", key);
        jsonw_str(payload, "id", platform_id ? platform_id : key);
        jsonw_str(payload, "channelId", o->d.channel);
        jsonw_opt(payload, "threadId", o->d.thread);
        jsonw_int(payload, "timestamp", time_ms);
        /* the rest is what was sent: the members of the delivery's own payload */
        if (n > 2) {
                buf_addch(payload, ',');
                buf_add(payload, o->d.payload + 1, n - 2);
        }
        jsonw_close(payload, '}');
}

static void failure_payload(const struct settlement *m, struct buf *payload)
{
        char key[TURN_KEY_SIZE];

        jsonw_open(payload, '{');
        jsonw_str(payload, "deliveryId", road_key("dlv", m->out->d.id, key));
        jsonw_str(payload, "kind", m->out->d.kind);
        jsonw_str(payload, "channelId", m->out->d.channel);
        jsonw_int(payload, "attempt", m->out->d.attempt);
        jsonw_str(payload, "state", m->state);
        jsonw_str(payload, "errorKind", error_kind_name(m->kind));
        jsonw_str(payload, "error", m->why);
        jsonw_bool(payload, "retryable", strcmp(m->state, "queued") == 0);
        jsonw_close(payload, '}');
}

static int settle_event(struct store_tx *tx, struct settlement *m, struct error *err)
{
        const struct delivery *d = &m->out->d;
        bool sent = strcmp(m->state, "sent") == 0, again = strcmp(m->state, "queued") == 0;
        bool message = strcmp(d->kind, "send") == 0;
        struct bus_event e = { .time_ms = m->now_ms,
                               .adapter = d->adapter,
                               .channel = d->channel,
                               .thread = d->thread,
                               .trace = d->trace };
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        if (sent)
                out_sent_event(m->out, m->platform_id, m->now_ms, &payload);
        else
                failure_payload(m, &payload);
        e.type = again     ? "delivery.retrying"
                 : message ? (sent ? EVENT_MESSAGE_SENT : EVENT_MESSAGE_FAILED)
                           : (sent ? "delivery.sent" : "delivery.failed");
        e.payload = payload.data;
        rc = bus_append(tx, &m->batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int write_settlement(struct store_tx *tx, void *arg, struct error *err)
{
        struct settlement *m = arg;
        bool open = strcmp(m->state, "queued") == 0;
        struct store_stmt *s = store_prepare(
                tx, "UPDATE deliveries SET state = ?3, attempt = ?4, due_ms = "
                    "?5, ended_ms = ?6, platform_id = ?7,"
                    " error_kind = ?8, error = ?9, kind = CASE ?10 WHEN 1 THEN 'send' ELSE kind END,"
                    " ref = CASE ?10 WHEN 1 THEN 0 ELSE ref END WHERE id = ?1 AND fence = ?2"
                    " AND state IN ('queued', 'sending')");

        bus_batch_reset(&m->batch);
        store_bind_int(s, 1, m->out->d.id);
        store_bind_int(s, 2, m->out->d.fence);
        store_bind_text(s, 3, m->state);
        store_bind_int(s, 4, m->attempt_after);
        store_bind_int(s, 5, m->due_ms);
        if (open)
                store_bind_null(s, 6);
        else
                store_bind_int(s, 6, m->now_ms);
        store_bind_text(s, 7, m->platform_id);
        store_bind_text(s, 8, m->kind ? error_kind_name(m->kind) : NULL);
        store_bind_text(s, 9, m->why);
        store_bind_int(s, 10, m->anew ? 1 : 0);
        if (store_run(s, err) < 0)
                return -1;
        m->lost = store_changes(tx) == 0;
        if (m->lost)
                return 0;
        if (settle_attempt(tx, m, err) < 0)
                return -1;
        return settle_event(tx, m, err);
}

static void count_settlement(struct road *r, const struct settlement *m)
{
        struct adapter_stats *stats = &m->out->channel->adapter->stats;

        if (strcmp(m->state, "sent") == 0) {
                r->stats.sent++;
                stats->last_sent_ms = m->now_ms;
                return;
        }
        stats->last_failure_ms = m->now_ms;
        snprintf(stats->last_failure, sizeof(stats->last_failure), "%s", m->why ? m->why : "");
        if (strcmp(m->state, "queued") == 0)
                r->stats.retried++;
        else if (strcmp(m->state, "unknown") == 0)
                r->stats.unknown++;
        else
                r->stats.failed++;
}

static void send_anew(struct out *o)
{
        free((char *)o->d.kind);
        o->d.kind = mem_strdup("send");
        o->ref = 0;
}

static void on_settled(void *arg)
{
        struct settlement *m = arg;
        struct road *r = m->road;
        struct out *o = m->out;
        bool again = strcmp(m->state, "queued") == 0 && !m->lost;

        fault_point("outbox.settled");
        if (!m->lost)
                count_settlement(r, m);
        bus_publish(r->bus, &m->batch);
        o->d.attempt = (int)m->attempt_after;
        o->reconciling = false;
        if (again) {
                if (m->anew)
                        send_anew(o);
                o->state = OUT_QUEUED;
                o->unsure = false;
                pump(r, o->channel);
        } else {
                leave(r, o);
        }
        free(m->platform_id);
        free(m->why);
        bus_batch_release(&m->batch);
        free(m);
}

static struct settlement *settlement_new(struct road *r, struct out *o, const char *state,
                                         const char *outcome, const struct send_result *result)
{
        struct settlement *m = mem_zalloc(sizeof(*m));

        m->road = r;
        m->out = o;
        m->state = state;
        m->outcome = outcome;
        m->platform_id = mem_strdup(result->platform_id);
        m->why = mem_strdup(result->why);
        m->kind = result->kind;
        m->now_ms = m->due_ms = clock_wall_ms();
        m->attempt_after = o->d.attempt;
        return m;
}

static void settle(struct settlement *m)
{
        struct out *o = m->out;

        if (o->state == OUT_SENDING)
                m->road->sending_count--;
        timer_free(o->deadline);
        o->deadline = NULL;
        o->state = OUT_SETTLING;
        fault_point("outbox.before_settle");
        road_write(m->road, "delivery outcome", write_settlement, on_settled, m);
}

/* It is over: one way or the other the channel goes on. */
static void settle_as(struct road *r, struct out *o, const char *state, const struct send_result *result)
{
        if (strcmp(state, "sent") != 0)
                log_warn("delivery given up", LOG_I("delivery", o->d.id), LOG_S("adapter", o->d.adapter),
                         LOG_S("channel", o->d.channel), LOG_S("state", state), LOG_S("trace", o->d.trace),
                         LOG_S("why", result->why));
        settle(settlement_new(r, o, state, strcmp(state, "sent") == 0 ? NULL : state, result));
}

/* Doubling with jitter, so that many failures at once do not come back at once. */
static int64_t backoff_ms(const struct road *r, int attempt)
{
        int64_t d = r->limits.retry_base_ms;

        for (int i = 1; i < attempt && d < r->limits.retry_cap_ms; i++)
                d *= 2;
        if (d > r->limits.retry_cap_ms)
                d = r->limits.retry_cap_ms;
        return d / 2 + (int64_t)id_random_below((uint64_t)(d / 2) + 1);
}

static void settle_retry(struct road *r, struct out *o, const struct send_result *result)
{
        bool limited = result->kind == ERR_LIMIT;
        struct settlement *m;
        int64_t wait;

        if (!limited && o->d.attempt >= r->limits.delivery_attempts) {
                settle_as(r, o, "failed", result);
                return;
        }
        wait = result->retry_after_ms >= 0 ? result->retry_after_ms : backoff_ms(r, o->d.attempt);
        m = settlement_new(r, o, "queued", limited ? "limited" : "retry", result);
        m->due_ms += wait;
        if (limited) {
                m->attempt_after--;
                pace_freeze(o->channel->adapter->pace, result->freeze_adapter ? NULL : o->d.channel, wait,
                            loop_now_ms(r->loop));
        }
        o->due_mono = loop_now_ms(r->loop) + wait;
        log_info("delivery will be tried again", LOG_I("delivery", o->d.id), LOG_S("adapter", o->d.adapter),
                 LOG_I("attempt", o->d.attempt), LOG_I("inMs", wait), LOG_S("why", result->why));
        settle(m);
}

/* Editing, deleting, reacting twice has the effect of doing it once; sending twice has not. */
static bool is_repeatable(const struct out *o)
{
        return strcmp(o->d.kind, "send") != 0 && strcmp(o->d.kind, "upload") != 0;
}

/* It may have arrived. Repeat where that does no harm, look where one can look, else say so. */
static void settle_unsure(struct road *r, struct out *o, const struct send_result *result)
{
        unsigned can = r->hooks.adapter_abilities(r->hooks.ctx, o->d.adapter);

        if ((can & ADAPTER_IDEMPOTENT) || is_repeatable(o)) {
                settle_retry(r, o, result);
        } else if ((can & ADAPTER_READBACK) && !o->reconciling && o->state == OUT_SENDING) {
                o->reconciling = true;
                timer_start(o->deadline, r->limits.delivery_seconds * 1000);
                r->hooks.reconcile(r->hooks.ctx, &o->d);
        } else {
                settle_as(r, o, "unknown", result);
        }
}

/* The draft was deleted under our hands: the answer must still arrive. */
static bool settle_anew(struct road *r, struct out *o, const struct send_result *result)
{
        struct settlement *m;

        if (result->kind != ERR_MISSING || o->ref == 0 || o->d.class != PACE_FINAL)
                return false;
        m = settlement_new(r, o, "queued", "retry", result);
        m->anew = true;
        settle(m);
        return true;
}

static void conclude(struct road *r, struct out *o, const struct send_result *result)
{
        switch (result->outcome) {
        case SEND_DONE:
                settle_as(r, o, "sent", result);
                break;
        case SEND_RETRY:
                settle_retry(r, o, result);
                break;
        case SEND_REJECTED:
                if (!settle_anew(r, o, result))
                        settle_as(r, o, "failed", result);
                break;
        case SEND_UNSURE:
                settle_unsure(r, o, result);
                break;
        }
}

void outbox_sent(struct road *r, int64_t delivery, int64_t fence, const struct send_result *result)
{
        char key[TURN_KEY_SIZE];
        struct out *o = map_get(&r->outs, road_key("dlv", delivery, key));

        if (!o || o->d.fence != fence || o->state != OUT_SENDING)
                return;
        fault_point("outbox.answered");
        conclude(r, o, result);
}

/* ---- claiming and sending ---- */

static void on_deadline(void *arg)
{
        struct out *o = arg;
        struct send_result result = { .outcome = SEND_UNSURE,
                                      .kind = ERR_TIMEOUT,
                                      .why = "the adapter gave no answer in time (limits.deliverySeconds)",
                                      .retry_after_ms = -1 };

        conclude(o->channel->adapter->road, o, &result);
}

struct claim {
        struct road *road;
        struct out *out;
        int64_t old_fence, lease_ms;
        bool lost;
        char *target; /* where the draft is that this edits; NULL: nowhere, send it as a new message */
};

/* An edit of a draft goes to the message the draft became. */
static int find_draft(struct store_tx *tx, struct claim *c, struct error *err)
{
        struct store_stmt *s;
        int rc;

        free(c->target);
        c->target = NULL;
        if (c->out->ref == 0)
                return 0;
        s = store_prepare(tx, "SELECT platform_id FROM deliveries WHERE id = ?1 AND state = 'sent'");
        store_bind_int(s, 1, c->out->ref);
        rc = store_step(s, err);
        if (rc == 1) {
                c->target = mem_strdup(store_col_text(s, 0));
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static int write_claim(struct store_tx *tx, void *arg, struct error *err)
{
        struct claim *c = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE deliveries SET state = 'sending', attempt = ?2, fence = ?3, owner = ?4, lease_ms = ?5"
                " WHERE id = ?1 AND fence = ?6 AND state IN ('queued', 'sending')");

        store_bind_int(s, 1, c->out->d.id);
        store_bind_int(s, 2, c->out->d.attempt);
        store_bind_int(s, 3, c->out->d.fence);
        store_bind_text(s, 4, c->road->owner);
        store_bind_int(s, 5, c->lease_ms);
        store_bind_int(s, 6, c->old_fence);
        if (store_run(s, err) < 0)
                return -1;
        c->lost = store_changes(tx) == 0;
        return find_draft(tx, c, err);
}

/* Without its draft, a final text is a new message and an intermediate one is nothing. Returns false when it is not worth sending. */
static bool aim(struct out *o, char *target)
{
        free(o->target);
        o->target = target;
        o->d.target = target;
        if (o->ref == 0 || target)
                return true;
        if (o->d.class != PACE_FINAL)
                return false;
        send_anew(o);
        return true;
}

static void settle_expired(struct road *r, struct out *o, const char *why)
{
        struct send_result result = { .kind = ERR_TIMEOUT, .why = why };

        settle_as(r, o, "expired", &result);
}

static void on_claimed(void *arg)
{
        struct claim *c = arg;
        struct road *r = c->road;
        struct out *o = c->out;
        bool lost = c->lost, worth = aim(o, c->target);

        free(c);
        fault_point("outbox.claimed");
        if (lost) {
                leave(r, o);
                return;
        }
        o->state = OUT_SENDING;
        r->sending_count++;
        if (!worth) {
                settle_expired(r, o, "the message it changes was never sent");
                return;
        }
        o->deadline = timer_new(r->loop, on_deadline, o);
        timer_start(o->deadline, r->limits.delivery_seconds * 1000);
        if (o->unsure && (r->hooks.adapter_abilities(r->hooks.ctx, o->d.adapter) & ADAPTER_READBACK)) {
                o->reconciling = true;
                r->hooks.reconcile(r->hooks.ctx, &o->d);
        } else {
                r->hooks.send(r->hooks.ctx, &o->d);
        }
}

static void claim(struct road *r, struct out *o)
{
        struct claim *c = mem_zalloc(sizeof(*c));

        c->road = r;
        c->out = o;
        c->old_fence = o->d.fence;
        c->lease_ms = clock_wall_ms() + r->limits.delivery_seconds * 1000;
        o->d.fence++;
        o->d.attempt++;
        o->state = OUT_CLAIMING;
        fault_point("outbox.before_claim");
        road_write(r, "delivery claim", write_claim, on_claimed, c);
}

/* Typing and other chatter is only worth something now. */
static bool is_fleeting(const struct out *o)
{
        return o->d.class == PACE_TYPING;
}

/* A row of an earlier life that may have arrived, on a platform that can neither repeat nor look. */
static bool give_up_unsure(struct road *r, struct out *o)
{
        unsigned can = r->hooks.adapter_abilities(r->hooks.ctx, o->d.adapter);
        struct send_result result = {
                .kind = ERR_INTERNAL,
                .why = "the process ended while this was being sent; it may have arrived, and the platform "
                       "offers no way to find out",
        };

        if (!o->unsure || is_repeatable(o) || (can & (ADAPTER_IDEMPOTENT | ADAPTER_READBACK)))
                return false;
        settle_as(r, o, "unknown", &result);
        return true;
}

static void pump(struct road *r, struct out_channel *c)
{
        struct out *o = TAILQ_FIRST(&c->queue);
        int64_t now = loop_now_ms(r->loop), wait;
        bool group;

        if (!o || o->state != OUT_QUEUED || r->draining ||
            !r->hooks.adapter_ready(r->hooks.ctx, c->adapter->name))
                return;
        if (o->expires_ms > 0 && clock_wall_ms() > o->expires_ms) {
                settle_expired(r, o, "it waited longer than it was worth (limits.deliveryExpirySeconds)");
                return;
        }
        if (give_up_unsure(r, o))
                return;
        wait = o->due_mono - now;
        if (wait <= 0) {
                group = r->hooks.channel_is_group(r->hooks.ctx, c->adapter->name, o->d.channel);
                wait = pace_take(c->adapter->pace, o->d.channel, group, o->d.class, now);
        }
        if (wait <= 0)
                claim(r, o);
        else if (is_fleeting(o))
                settle_expired(r, o, "no room in the budget for it now");
        else
                timer_start(c->timer, wait);
}

static void pump_adapter(struct road *r, struct out_adapter *a)
{
        void *channel;
        struct out_channel **all = mem_array(a->channels.count + 1, sizeof(*all));
        size_t n = 0;

        /* pumping changes the map: look at a copy */
        for (size_t i = 0; map_each(&a->channels, &i, NULL, &channel);)
                all[n++] = channel;
        for (size_t i = 0; i < n; i++)
                pump(r, all[i]);
        free(all);
}

void outbox_wake(struct road *r, const char *adapter)
{
        struct out_adapter *a = map_get(&r->adapters, adapter);

        if (!a)
                return;
        set_limits(r, a);
        pump_adapter(r, a);
}

void outbox_pump_all(struct road *r)
{
        void *a;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &a);)
                pump_adapter(r, a);
}

void outbox_release(struct road *r)
{
        void *adapter, *channel;

        for (size_t i = 0; map_each(&r->adapters, &i, NULL, &adapter);) {
                struct out_adapter *a = adapter;

                for (size_t j = 0; map_each(&a->channels, &j, NULL, &channel);) {
                        struct out_channel *c = channel;
                        struct out *o;

                        while ((o = TAILQ_FIRST(&c->queue))) {
                                TAILQ_REMOVE(&c->queue, o, next);
                                out_free(o);
                        }
                        channel_free(c);
                }
                map_release(&a->channels);
                pace_free(a->pace);
                free(a->name);
                free(a);
        }
        map_release(&r->adapters);
        map_release(&r->outs);
}

void rendered_release(struct rendered *r)
{
        for (size_t i = 0; i < r->count; i++) {
                free(r->parts[i].text);
                free(r->parts[i].plain);
        }
        free(r->parts);
        *r = (struct rendered){ 0 };
}
