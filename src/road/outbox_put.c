/*
 * outbox_put: how deliveries come into the outbox other than by a turn's end: the REST API, commands, retries.
 *
 * The row is committed before anything is sent, here as everywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

int out_insert(struct store_tx *tx, const struct out *o, const char *state, const char *request_key,
               struct error *err)
{
        bool sent = strcmp(state, "sent") == 0;
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO deliveries(id, turn, adapter, channel, thread, kind, class, payload, state, "
                    "attempt,"
                    " due_ms, expires_ms, created_ms, ended_ms, platform_id, trace, request_key, ref)"
                    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?11, ?13, ?14, ?15, ?16, ?17)"
                    " ON CONFLICT(request_key) WHERE request_key IS NOT NULL DO NOTHING");
        char key[TURN_KEY_SIZE];

        store_bind_int(s, 1, o->d.id);
        if (o->d.turn > 0)
                store_bind_int(s, 2, o->d.turn);
        else
                store_bind_null(s, 2);
        store_bind_text(s, 3, o->d.adapter);
        store_bind_text(s, 4, o->d.channel);
        store_bind_text(s, 5, o->d.thread);
        store_bind_text(s, 6, o->d.kind);
        store_bind_int(s, 7, o->d.class);
        store_bind_text(s, 8, o->d.payload);
        store_bind_text(s, 9, state);
        store_bind_int(s, 10, sent ? 1 : 0);
        store_bind_int(s, 11, o->d.created_ms);
        store_bind_int(s, 12, o->expires_ms);
        if (sent)
                store_bind_int(s, 13, o->d.created_ms);
        else
                store_bind_null(s, 13);
        store_bind_text(s, 14, sent ? road_key("dlv", o->d.id, key) : NULL);
        store_bind_text(s, 15, o->d.trace);
        store_bind_text(s, 16, request_key);
        store_bind_int(s, 17, o->ref);
        return store_run(s, err);
}

struct putting {
        struct road *road;
        struct out **outs;
        size_t count;
        char *request_key;
        bool journaled;
        struct out *replaces; /* an edit that is still waiting takes the new text instead */
        int64_t replaced;     /* its number: by the time of the commit it may be gone */
        char *payload;
        struct bus_batch batch;
        outbox_ack_fn *ack;
        void *arg;
        struct outbox_receipt receipt;
};

static void putting_free(struct putting *p)
{
        free(p->outs);
        free(p->request_key);
        free(p->payload);
        bus_batch_release(&p->batch);
        free(p);
}

/* ---- writing ---- */

static int find_request(struct store_tx *tx, struct putting *p, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT id, trace FROM deliveries WHERE request_key = ?1");
        int rc;

        store_bind_text(s, 1, p->request_key);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        p->receipt.duplicate = rc == 1;
        if (rc == 1) {
                p->receipt.delivery = store_col_int(s, 0);
                snprintf(p->receipt.trace, sizeof(p->receipt.trace), "%s", store_col_text(s, 1));
                store_reset(s);
        }
        return 0;
}

static int write_sent(struct store_tx *tx, struct putting *p, const struct out *o, struct error *err)
{
        struct bus_event e = {
                .type = strcmp(o->d.kind, "send") == 0 ? EVENT_MESSAGE_SENT : "delivery.sent",
                .time_ms = o->d.created_ms,
                .adapter = o->d.adapter,
                .channel = o->d.channel,
                .thread = o->d.thread,
                .trace = o->d.trace,
        };
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        out_sent_event(o, NULL, o->d.created_ms, &payload);
        e.payload = payload.data;
        rc = bus_append(tx, &p->batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static int write_replacement(struct store_tx *tx, const struct putting *p, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "UPDATE deliveries SET payload = ?2 WHERE id = ?1 AND state = 'queued'");

        store_bind_int(s, 1, p->replaced);
        store_bind_text(s, 2, p->payload);
        return store_run(s, err);
}

static int write_puts(struct store_tx *tx, void *arg, struct error *err)
{
        struct putting *p = arg;

        bus_batch_reset(&p->batch);
        if (p->replaced > 0)
                return write_replacement(tx, p, err);
        if (p->request_key) {
                if (find_request(tx, p, err) < 0)
                        return -1;
                if (p->receipt.duplicate)
                        return 0;
        }
        for (size_t i = 0; i < p->count; i++) {
                const char *key = i == 0 ? p->request_key : NULL;

                if (out_insert(tx, p->outs[i], p->journaled ? "sent" : "queued", key, err) < 0)
                        return -1;
                if (p->journaled && write_sent(tx, p, p->outs[i], err) < 0)
                        return -1;
        }
        return 0;
}

static void on_put(void *arg, const struct error *err)
{
        struct putting *p = arg;
        struct road *r = p->road;

        r->writes--;
        if (err)
                p->receipt.error = *err;
        bus_publish(r->bus, &p->batch);
        p->ack(p->arg, &p->receipt);
        for (size_t i = 0; i < p->count; i++) {
                if (err || p->receipt.duplicate || p->journaled)
                        out_free(p->outs[i]);
                else
                        outbox_enqueue(r, p->outs[i]);
        }
        if (!err && p->journaled && !p->receipt.duplicate) {
                r->stats.sent += p->count;
        }
        putting_free(p);
}

/* ---- preparing ---- */

static void put_payload(const struct outgoing *out, const struct rendered_part *part, struct buf *payload)
{
        jsonw_open(payload, '{');
        if (part) {
                jsonw_str(payload, "text", part->text);
                jsonw_opt(payload, "plain", part->plain);
        }
        jsonw_opt(payload, "replyTo", out->reply_to);
        jsonw_opt(payload, "messageId", out->message_id);
        jsonw_opt(payload, "emoji", out->emoji);
        jsonw_close(payload, '}');
}

static bool replace_edit(struct road *r, struct putting *p, const struct outgoing *out, const char *payload)
{
        struct out *o;

        if (!out->message_id)
                return false;
        o = outbox_waiting_edit(r, out->adapter, out->channel, out->thread, 0, out->message_id);
        if (!o)
                return false;
        /* the claim of this delivery is stored after this write, so what is sent is what is stored */
        free((char *)o->d.payload);
        o->d.payload = mem_strdup(payload);
        p->replaced = o->d.id;
        p->payload = mem_strdup(payload);
        p->receipt.delivery = o->d.id;
        p->receipt.count = 1;
        snprintf(p->receipt.trace, sizeof(p->receipt.trace), "%s", o->d.trace);
        return true;
}

static int prepare(struct road *r, struct putting *p, const struct outgoing *out, struct error *err)
{
        const char *kind = out->kind ? out->kind : "send";
        struct rendered parts = { 0 };
        int64_t now_ms = clock_wall_ms();

        if (out->text && r->hooks.render(r->hooks.ctx, out->adapter, out->text, &parts, err) < 0)
                return -1;
        p->count = parts.count > 0 ? parts.count : 1;
        p->outs = mem_array(p->count, sizeof(struct out *));
        for (size_t i = 0; i < p->count; i++) {
                struct buf payload;

                buf_init(&payload, 0);
                put_payload(out, parts.count ? &parts.parts[i] : NULL, &payload);
                if (strcmp(kind, "edit") == 0 && p->count == 1 && replace_edit(r, p, out, payload.data)) {
                        p->count = 0;
                } else {
                        p->outs[i] = out_new(r->next_delivery++, 0, out->adapter, out->channel, out->thread,
                                             kind, out->class, payload.data, p->receipt.trace);
                        p->outs[i]->expires_ms = out->expires_ms;
                        if (out->expires_ms == 0 && r->limits.delivery_expiry_seconds > 0)
                                p->outs[i]->expires_ms = now_ms + r->limits.delivery_expiry_seconds * 1000;
                }
                buf_release(&payload);
        }
        rendered_release(&parts);
        if (p->count > 0) {
                p->receipt.delivery = p->outs[0]->d.id;
                p->receipt.count = (unsigned)p->count;
        }
        return 0;
}

static void on_unprepared(void *arg)
{
        struct putting *p = arg;

        p->ack(p->arg, &p->receipt);
        putting_free(p);
}

void outbox_put(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg)
{
        struct putting *p = mem_zalloc(sizeof(*p));

        p->road = r;
        p->ack = ack;
        p->arg = arg;
        p->request_key = mem_strdup(out->request_key);
        if (out->trace && strlen(out->trace) == ID_TRACE_SIZE - 1)
                memcpy(p->receipt.trace, out->trace, ID_TRACE_SIZE);
        else
                id_trace(p->receipt.trace);
        if ((int64_t)r->out_count >= r->limits.open_deliveries) {
                error_set(&p->receipt.error, ERR_LIMIT, "%zu deliveries are open (limits.openDeliveries)",
                          r->out_count);
                loop_defer(r->loop, on_unprepared, p);
                return;
        }
        p->journaled = (r->hooks.adapter_abilities(r->hooks.ctx, out->adapter) & ADAPTER_JOURNALED) != 0;
        if (prepare(r, p, out, &p->receipt.error) < 0) {
                loop_defer(r->loop, on_unprepared, p);
                return;
        }
        r->writes++;
        store_write(r->store, write_puts, on_put, p);
}

/* ---- putting a dead delivery back ---- */

struct reviving {
        struct road *road;
        int64_t id;
        bool force;
        struct out *out; /* result */
        store_done_fn *done;
        void *arg;
};

static struct out *load(struct store_stmt *s)
{
        struct out *o =
                out_new(store_col_int(s, 0), store_col_int(s, 1), store_col_text(s, 2), store_col_text(s, 3),
                        store_col_text(s, 4), store_col_text(s, 5), (enum pace_class)store_col_int(s, 6),
                        store_col_text(s, 7), store_col_text(s, 8));

        o->d.created_ms = store_col_int(s, 9);
        o->d.fence = store_col_int(s, 10);
        o->d.attempt = (int)store_col_int(s, 11);
        o->expires_ms = store_col_int(s, 12);
        o->ref = store_col_int(s, 13);
        return o;
}

#define LOADED                                                                                              \
        "id, coalesce(turn, 0), adapter, channel, thread, kind, class, payload, trace, created_ms, fence, " \
        "attempt, expires_ms, ref"

static int write_revival(struct store_tx *tx, void *arg, struct error *err)
{
        struct reviving *v = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE deliveries SET state = 'queued', attempt = 0, fence = fence + 1, due_ms = ?2,"
                " expires_ms = 0, ended_ms = NULL WHERE id = ?1"
                " AND (state IN ('failed', 'expired') OR (state = 'unknown' AND ?3 = 1)) RETURNING " LOADED);
        int rc;

        out_free(v->out);
        v->out = NULL;
        store_bind_int(s, 1, v->id);
        store_bind_int(s, 2, clock_wall_ms());
        store_bind_int(s, 3, v->force ? 1 : 0);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(
                        err, ERR_CONFLICT,
                        "delivery 'dlv-%lld' is not dead (an unknown one may have arrived: it needs force)",
                        (long long)v->id);
        v->out = load(s);
        store_reset(s);
        return 0;
}

static void on_revived(void *arg, const struct error *err)
{
        struct reviving *v = arg;

        v->road->writes--;
        if (err)
                out_free(v->out);
        else
                outbox_enqueue(v->road, v->out);
        v->done(v->arg, err);
        free(v);
}

void outbox_retry(struct road *r, int64_t delivery, bool force, store_done_fn *done, void *arg)
{
        struct reviving *v = mem_zalloc(sizeof(*v));

        v->road = r;
        v->id = delivery;
        v->force = force;
        v->done = done;
        v->arg = arg;
        r->writes++;
        store_write(r->store, write_revival, on_revived, v);
}

/* ---- after a restart ---- */

struct recovery {
        struct out_list outs;
        int64_t next;
};

static int read_open(struct store_tx *tx, void *arg, struct error *err)
{
        struct recovery *v = arg;
        struct store_stmt *s = store_prepare(tx, "SELECT " LOADED ", state, due_ms FROM deliveries"
                                                 " WHERE state IN ('queued', 'sending') ORDER BY id");
        int64_t now_ms = clock_wall_ms();
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct out *o = load(s);
                int64_t wait = store_col_int(s, 15) - now_ms;

                o->unsure = strcmp(store_col_text(s, 14), "sending") == 0;
                o->due_mono = wait > 0 ? wait : 0; /* relative here; the loop's clock is added below */
                TAILQ_INSERT_TAIL(&v->outs, o, next);
        }
        if (rc < 0)
                return -1;
        s = store_prepare(tx, "SELECT coalesce(max(id), 0) FROM deliveries");
        if ((rc = store_step(s, err)) != 1)
                return -1;
        v->next = store_col_int(s, 0) + 1;
        store_reset(s);
        return 0;
}

int recover_deliveries(struct road *r, struct error *err)
{
        struct recovery v;
        struct out *o;
        int rc;

        TAILQ_INIT(&v.outs);
        v.next = 1;
        rc = store_read_now(r->store, read_open, &v, err);
        while ((o = TAILQ_FIRST(&v.outs))) {
                TAILQ_REMOVE(&v.outs, o, next);
                if (rc < 0) {
                        out_free(o);
                        continue;
                }
                /* a clock that jumped back must not make a retry wait for hours */
                if (o->due_mono > r->limits.retry_cap_ms)
                        o->due_mono = r->limits.retry_cap_ms;
                o->due_mono += loop_now_ms(r->loop);
                outbox_enqueue(r, o);
        }
        if (v.next > r->next_delivery)
                r->next_delivery = v.next;
        return rc;
}
