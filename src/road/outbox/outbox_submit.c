/*
 * outbox_submit: how deliveries come into the outbox other than by a turn's end: the REST API,
 * commands, retries.
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

struct putting {
        struct road *road;
        struct out **outs;
        size_t count;
        char *request_key, *request_hash;
        int64_t reply_of;    /* the turn this is a late reply to; 0: none */
        char *author, *text; /* what a person said in the bot's name; NULL: nobody did */
        bool journaled;
        int64_t replaces; /* an edit that waits takes the new text instead, if it still waits */
        bool replaced;    /* it did */
        struct bus_batch batch;
        outbox_ack_fn *ack;
        void *arg;
        struct outbox_receipt receipt;
        /* what the store found under the request key */
        int64_t found;
        bool other; /* that was another request */
        char found_trace[ID_TRACE_SIZE];
};

static void putting_free(struct putting *p)
{
        free(p->outs);
        free(p->request_key);
        free(p->request_hash);
        free(p->author);
        free(p->text);
        bus_batch_release(&p->batch);
        free(p);
}

/* ---- writing ---- */

static bool is_other_request(const struct putting *p, const char *hash)
{
        return hash && p->request_hash && strcmp(hash, p->request_hash) != 0;
}

static int find_request(struct store_tx *tx, struct putting *p, struct error *err)
{
        struct store_stmt *s;
        int rc;

        p->found = 0;
        p->other = false;
        if (!p->request_key)
                return 0;
        s = store_prepare(tx,
                          "SELECT id, trace, request_hash FROM deliveries WHERE request_key = ?1");
        store_bind_text(s, 1, p->request_key);
        rc = store_step(s, err);
        if (rc == 1) {
                p->found = store_col_int(s, 0);
                snprintf(p->found_trace, sizeof(p->found_trace), "%s", store_col_text(s, 1));
                p->other = is_other_request(p, store_col_text(s, 2));
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static int note_request(struct store_tx *tx, const struct putting *p, struct error *err)
{
        struct store_stmt *s;

        if (!p->request_key || !p->request_hash)
                return 0;
        s = store_prepare(tx, "UPDATE deliveries SET request_hash = ?2 WHERE id = ?1");
        store_bind_int(s, 1, p->outs[0]->d.id);
        store_bind_text(s, 2, p->request_hash);
        return store_run(s, err);
}

static int write_puts(struct store_tx *tx, void *arg, struct error *err)
{
        struct putting *p = arg;
        int rc;

        bus_batch_reset(&p->batch);
        p->replaced = false;
        if (find_request(tx, p, err) < 0)
                return -1;
        if (p->found > 0)
                return 0;
        if (p->replaces > 0) {
                rc = out_replace_payload(tx, p->replaces, p->outs[0]->d.payload, err);
                p->replaced = rc == 1;
                if (rc != 0)
                        return rc < 0 ? -1 : 0;
        }
        for (size_t i = 0; i < p->count; i++) {
                if (out_store(tx, &p->batch, p->outs[i], p->journaled,
                              i == 0 ? p->request_key : NULL, err) < 0)
                        return -1;
        }
        if (note_request(tx, p, err) < 0)
                return -1;
        if (p->reply_of && delivery_row_set_reply_of(tx, p->outs[0]->d.id, p->reply_of, err) < 0)
                return -1;
        return p->author ? note_told(tx, p->outs[0], p->author, p->text, err) : 0;
}

static void tell(struct putting *p, const struct error *err)
{
        struct outbox_receipt *receipt = &p->receipt;

        if (err) {
                receipt->error = *err;
        } else if (p->found > 0 && p->other) {
                error_set(&receipt->error, ERR_CONFLICT,
                          "this idempotency key was used for another request");
        } else if (p->found > 0) {
                receipt->duplicate = true;
                receipt->delivery = p->found;
                memcpy(receipt->trace, p->found_trace, sizeof(p->found_trace));
        } else if (p->replaced) {
                receipt->delivery = p->replaces;
        }
        p->ack(p->arg, receipt);
}

static void on_put(void *arg, const struct error *err)
{
        struct putting *p = arg;
        struct road *r = p->road;
        struct out *waiting = !err && p->replaced ? outbox_find(r, p->replaces) : NULL;
        bool stored = !err && p->found == 0 && !p->replaced;

        r->writes--;
        bus_publish(r->bus, &p->batch);
        /* its claim, if there is one, is stored after this write: what is sent is what is stored */
        if (waiting)
                out_set_payload(waiting, p->outs[0]->d.payload);
        if (stored && p->journaled) {
                r->stats.sent += p->count;
                outbox_adapter(r, p->outs[0]->d.adapter)->stats.last_sent_ms =
                        p->outs[0]->d.created_ms;
        }
        tell(p, err);
        for (size_t i = 0; i < p->count; i++) {
                if (stored && !p->journaled)
                        outbox_enqueue(r, p->outs[i]);
                else
                        out_free(p->outs[i]);
        }
        putting_free(p);
}

/* ---- preparing ---- */

/*
 * Which of several parts this is: the first one is the reply and has the file, the last one has the
 * buttons.
 */
struct rank {
        bool first, last;
};

static void put_payload(const struct outgoing *out, const struct rendered_part *part,
                        struct rank at, struct buf *payload)
{
        jsonw_open(payload, '{');
        if (part && part->text[0]) {
                jsonw_str(payload, "text", part->text);
                jsonw_opt(payload, "plain", part->plain);
        }
        jsonw_opt(payload, "replyTo", at.first ? out->reply_to : NULL);
        jsonw_opt(payload, "messageId", at.first ? out->message_id : NULL);
        jsonw_opt(payload, "emoji", out->emoji);
        if (at.last && out->buttons)
                jsonw_raw(payload, "buttons", out->buttons);
        if (at.first) { /* a thread has a name, too */
                jsonw_opt(payload, "path", out->file.path);
                jsonw_opt(payload, "name", out->file.name);
                jsonw_opt(payload, "mime", out->file.mime);
                jsonw_opt(payload, "as", out->file.as);
        }
        jsonw_close(payload, '}');
}

/* What does not fit into an edited message or below a file follows as new messages. */
static enum delivery_kind kind_of(const struct outgoing *out, bool first)
{
        return first ? out->kind : DELIVER_SEND;
}

static struct out *make_out(struct road *r, const struct putting *p, const struct outgoing *out,
                            const struct rendered_part *part, struct rank at)
{
        struct buf payload;
        struct out *o;

        buf_init(&payload, 0);
        put_payload(out, part, at, &payload);
        o = out_new(r->next_delivery++, 0, out->adapter, out->channel, out->thread,
                    kind_of(out, at.first), out->class, payload.data, p->receipt.trace);
        buf_release(&payload);
        out_set_expiry(r, o);
        if (out->expires_ms > 0)
                out_expires_at(o, out->expires_ms);
        return o;
}

/* The text as the platform's parts. */
static int render(struct road *r, const struct outgoing *out, struct rendered *parts,
                  struct error *err)
{
        bool below = out->file.path && r->platforms.caption;

        if (!out->text)
                return 0;
        if ((below ? r->platforms.caption : r->platforms.render)(
                    r->platforms.adapters, out->adapter, out->text, parts, err) < 0)
                return -1;
        return parts->count > 0 ? 0 : error_set(err, ERR_INVALID, "the text shows nothing");
}

static int prepare(struct road *r, struct putting *p, const struct outgoing *out, struct error *err)
{
        struct rendered parts = { 0 };
        struct out *waiting = NULL;

        if (render(r, out, &parts, err) < 0)
                return -1;
        p->count = parts.count > 0 ? parts.count : 1;
        p->outs = mem_array(p->count, sizeof(struct out *));
        for (size_t i = 0; i < p->count; i++)
                p->outs[i] = make_out(r, p, out, parts.count ? &parts.parts[i] : NULL,
                                      (struct rank){ i == 0, i + 1 == p->count });
        rendered_release(&parts);
        if (out->kind == DELIVER_EDIT && out->message_id && p->count == 1)
                waiting = outbox_waiting_edit(r, out->adapter, out->channel, out->thread, 0,
                                              out->message_id);
        if (waiting)
                p->replaces = waiting->d.id;
        p->receipt.delivery = p->outs[0]->d.id;
        p->receipt.count = (unsigned)p->count;
        return 0;
}

static void on_unprepared(void *arg)
{
        struct putting *p = arg;

        p->ack(p->arg, &p->receipt);
        putting_free(p);
}

void outbox_submit(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg)
{
        struct putting *p = mem_zalloc(sizeof(*p));

        p->road = r;
        p->ack = ack;
        p->arg = arg;
        p->request_key = mem_strdup(out->request_key);
        p->request_hash = mem_strdup(out->request_hash);
        p->reply_of = out->reply_of;
        p->author = out->text ? mem_strdup(out->author) : NULL;
        p->text = p->author ? mem_strdup(out->text) : NULL;
        if (out->trace && strlen(out->trace) == ID_TRACE_SIZE - 1)
                memcpy(p->receipt.trace, out->trace, ID_TRACE_SIZE);
        else
                id_trace(p->receipt.trace);
        if (!outbox_has_room(r, out->adapter)) {
                error_set(&p->receipt.error, ERR_LIMIT,
                          "%zu deliveries are open (limits.openDeliveries)",
                          outbox_adapter(r, out->adapter)->stats.open);
                loop_defer(r->loop, on_unprepared, p);
                return;
        }
        p->journaled = (r->platforms.abilities(r->platforms.adapters, out->adapter) &
                        ADAPTER_JOURNALED) != 0;
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

/* NULL with ERR_CORRUPT: the row makes no sense. */
static struct out *load(struct store_stmt *s, struct error *err)
{
        enum delivery_kind kind;
        struct out *o;

        if (!delivery_kind_parse(store_col_text(s, 5), &kind)) {
                error_set(err, ERR_CORRUPT, "delivery 'dlv-%lld' has the unknown kind '%.40s'",
                          (long long)store_col_int(s, 0), store_col_text(s, 5));
                return NULL;
        }
        o = out_new(store_col_int(s, 0), store_col_int(s, 1), store_col_text(s, 2),
                    store_col_text(s, 3), store_col_text(s, 4), kind,
                    (enum pace_class)store_col_int(s, 6), store_col_text(s, 7),
                    store_col_text(s, 8));
        o->d.created_ms = store_col_int(s, 9);
        o->d.fence = store_col_int(s, 10);
        o->d.attempt = (int)store_col_int(s, 11);
        out_expires_at(o, store_col_int(s, 12));
        o->ref = store_col_int(s, 13);
        return o;
}

#define LOADED                                                                                              \
        "id, coalesce(turn, 0), adapter, channel, thread, kind, class, payload, trace, created_ms, fence, " \
        "attempt, expires_ms, edits"

static int write_revival(struct store_tx *tx, void *arg, struct error *err)
{
        struct reviving *v = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE deliveries SET state = 'queued', attempt = 0, fence = fence + 1, due_ms = ?2, "
                "lease_ms = ?2,"
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
        v->out = load(s, err);
        store_reset(s);
        return v->out ? 0 : -1;
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
        struct store_stmt *s = store_prepare(
                tx, "SELECT " LOADED ", state, due_ms, lease_ms, error_kind FROM deliveries"
                    " WHERE state IN ('queued', 'sending') ORDER BY id");
        int64_t now_ms = clock_wall_ms();
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct out *o = load(s, err);
                /* 0: never tried */
                int64_t due_ms = store_col_int(s, 15), last_ms = store_col_int(s, 16);
                int64_t left = due_ms - now_ms, whole;
                const char *kind = store_col_text(s, 17);

                if (!o) {
                        store_reset(s);
                        return -1;
                }
                whole = due_ms - (last_ms > 0 ? last_ms : o->d.created_ms);
                o->unsure = strcmp(store_col_text(s, 14), "sending") == 0;
                /*
                 * relative here; the loop's clock is added below. A clock that jumped back must not
                 * make a pause longer.
                 */
                o->due_mono = o->unsure || left < 0 ? 0 : left > whole ? whole : left;
                o->limited = !o->unsure && kind && strcmp(kind, error_kind_name(ERR_LIMIT)) == 0;
                TAILQ_INSERT_TAIL(&v->outs, o, next);
        }
        if (rc < 0)
                return -1;
        if (store_number(store_prepare(tx, "SELECT max(id) FROM deliveries"), 0, &v->next, err) < 0)
                return -1;
        v->next++;
        return 0;
}

int recover_deliveries(struct road *r, struct error *err)
{
        struct recovery v;
        struct out *o, *answer = NULL;
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
                if (o->limited && o->due_mono > 0)
                        pace_freeze(outbox_adapter(r, o->d.adapter)->pace, o->d.channel,
                                    o->due_mono, loop_now_ms(r->loop));
                o->due_mono += loop_now_ms(r->loop);
                outbox_enqueue_next(r, o, &answer);
        }
        if (v.next > r->next_delivery)
                r->next_delivery = v.next;
        return rc;
}
