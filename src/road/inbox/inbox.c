/*
 * Only the commit acknowledges an event. The unique dedup key in the same insert detects
 * duplicates; each part of a message has its own key and row.
 */
#include "road/inbox/inbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/inbox/decide.h"
#include "road/road_state.h"
#include "rows/journal_row.h"

struct arrival {
        struct road *road;
        struct incoming *in;
        struct buf payload;
        char trace[ID_TRACE_SIZE];
        int64_t now_ms;
        bool dual_emit;
        inbox_ack_fn *ack;
        void *arg;
        /* results */
        struct inbox_receipt receipt;
        char first_trace[ID_TRACE_SIZE]; /* of the original, for a duplicate */
        struct bus_batch batch;
};

static void arrival_free(struct arrival *a)
{
        incoming_free(a->in);
        buf_release(&a->payload);
        bus_batch_release(&a->batch);
        free(a);
}

/* ---- in the store function ---- */

/*
 * Repeats a reaction as a message of the old shape. Without a dedup key it is never decided, not
 * even after a restart.
 */
static int append_copy(struct store_tx *tx, struct arrival *a, const struct bus_event *original,
                       struct error *err)
{
        struct bus_event e = *original;
        const struct incoming *in = a->in;
        char id[BUS_ID_SIZE];
        struct buf payload;
        int64_t seq;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_opt(&payload, "id", in->id);
        jsonw_str(&payload, "channelId", in->channel);
        jsonw_opt(&payload, "threadId", in->thread);
        jsonw_str(&payload, "from", in->sender_id);
        jsonw_open_member(&payload, "content", '{');
        jsonw_str(&payload, "type", "reaction");
        jsonw_str(&payload, "emoji", in->emoji ? in->emoji : "");
        jsonw_str(&payload, "messageId", in->id);
        jsonw_bool(&payload, "removed", strcmp(in->type, EVENT_REACTION_REMOVED) == 0);
        jsonw_close(&payload, '}');
        jsonw_str(&payload, "copyOf", bus_event_id(a->receipt.event, id));
        jsonw_close(&payload, '}');
        e.type = EVENT_MESSAGE_RECEIVED;
        e.key = NULL;
        e.payload = payload.data;
        rc = bus_append(tx, &a->batch, &e, &seq, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* Before the event itself, which must come last. */
static int append_parts(struct store_tx *tx, struct arrival *a, const struct bus_event *whole,
                        struct error *err)
{
        struct bus_event e = *whole;
        int rc = 1;

        e.type = EVENT_MESSAGE_PART;
        for (size_t i = 0; rc == 1 && i < a->in->part_count; i++) {
                const struct incoming_part *part = &a->in->parts[i];
                struct buf payload;

                buf_init(&payload, 0);
                jsonw_open(&payload, '{');
                jsonw_opt(&payload, "id", part->id);
                jsonw_str(&payload, "channelId", a->in->channel);
                jsonw_opt(&payload, "threadId", a->in->thread);
                jsonw_opt(&payload, "partOf", a->in->id);
                jsonw_close(&payload, '}');
                e.key = part->key;
                e.payload = payload.data;
                rc = bus_append(tx, &a->batch, &e, NULL, err);
                buf_release(&payload);
        }
        if (rc == 0)
                return error_set(err, ERR_INVALID, "a message has two parts with the same key");
        return rc < 0 ? -1 : 0;
}

/* 1: one of its keys is known; 0: none; -1: error. */
static int find_known(struct store_tx *tx, struct arrival *a, struct error *err)
{
        const struct incoming *in = a->in;
        int rc;

        if (in->part_count == 0)
                return 0; /* the insert checks */
        rc = journal_row_find(tx, in->adapter, in->key, &a->receipt.event, err);
        for (size_t i = 0; rc == 0 && i < in->part_count; i++)
                rc = journal_row_find(tx, in->adapter, in->parts[i].key, &a->receipt.event, err);
        return rc;
}

static int write_arrival(struct store_tx *tx, void *arg, struct error *err)
{
        struct arrival *a = arg;
        struct bus_event e = {
                .type = a->in->type,
                .time_ms = a->now_ms,
                .adapter = a->in->adapter,
                .channel = a->in->channel,
                .thread = a->in->thread,
                .trace = a->trace,
                .key = a->in->key,
                .payload = a->payload.data,
        };
        struct journal_row *first;
        int rc = find_known(tx, a, err);

        bus_batch_reset(&a->batch);
        if (rc == 0) {
                if (append_parts(tx, a, &e, err) < 0)
                        return -1;
                rc = bus_append(tx, &a->batch, &e, &a->receipt.event, err);
                a->receipt.outcome = rc == 1 ? INBOX_STORED : INBOX_DUPLICATE;
        } else {
                a->receipt.outcome = INBOX_DUPLICATE;
        }
        if (rc < 0)
                return -1;
        if (a->receipt.outcome == INBOX_STORED)
                return a->dual_emit ? append_copy(tx, a, &e, err) : 0;
        if (journal_row_get(tx, a->receipt.event, &first, err) < 0)
                return -1;
        snprintf(a->first_trace, sizeof(a->first_trace), "%s",
                 first && first->trace ? first->trace : "");
        free(first);
        return 0;
}

/* ---- on the loop ---- */

static void on_written(void *arg, const struct error *err)
{
        struct arrival *a = arg;
        struct road *r = a->road;

        r->writes--;
        fault_point("inbox.committed");
        a->receipt.trace = a->receipt.outcome == INBOX_DUPLICATE ? a->first_trace : a->trace;
        if (err) {
                a->receipt.outcome = INBOX_FAILED;
                a->receipt.error = *err;
                r->stats.refused++;
        }
        a->ack(a->arg, &a->receipt);
        fault_point("inbox.acked");
        if (a->receipt.outcome == INBOX_DUPLICATE) {
                r->stats.duplicates++;
        } else if (a->receipt.outcome == INBOX_STORED) {
                r->stats.received++;
                outbox_adapter(r, a->in->adapter)->stats.last_inbound_ms = a->now_ms;
                a->in->event = a->receipt.event;
                bus_publish(r->bus, &a->batch);
                decide_later(r, a->in);
                a->in = NULL;
                decide_pending(r);
        }
        arrival_free(a);
}

static void on_refused(void *arg)
{
        struct arrival *a = arg;

        a->receipt.outcome = INBOX_FAILED;
        a->receipt.trace = a->trace;
        a->ack(a->arg, &a->receipt);
        arrival_free(a);
}

/* Cheap checks before any work. 0: accepted. */
static int check(const struct road *r, const struct incoming *in, struct error *err)
{
        if (!in->adapter || !in->channel || !in->key || in->key[0] == '\0' ||
            in->channel[0] == '\0')
                return error_set(err, ERR_INVALID, "an event needs adapter, channel and key");
        if (in->text && strlen(in->text) > (size_t)r->limits.text_bytes)
                return error_set(err, ERR_INVALID,
                                 "text is longer than %lld bytes (limits.textBytes)",
                                 (long long)r->limits.text_bytes);
        if ((int64_t)r->inbox.pending_count >= r->limits.queued_events)
                return error_set(err, ERR_LIMIT,
                                 "%zu events wait for a decision (limits.queuedEvents)",
                                 r->inbox.pending_count);
        if ((int64_t)r->turns.open >= r->limits.open_turns)
                return error_set(err, ERR_LIMIT, "%zu turns are open (limits.openTurns)",
                                 r->turns.open);
        return 0;
}

void inbox_receive(struct road *r, const struct incoming *in, inbox_ack_fn *ack, void *arg)
{
        struct arrival *a = mem_zalloc(sizeof(*a));
        struct incoming filled = *in;

        a->road = r;
        a->ack = ack;
        a->arg = arg;
        buf_init(&a->payload, 0);
        buf_reserve(&a->payload, 512); /* fits most payloads: one allocation instead of six */
        if (check(r, in, &a->receipt.error) < 0) {
                r->stats.refused++;
                loop_defer(r->loop, on_refused, a);
                return;
        }
        a->now_ms = clock_wall_ms();
        if (id_is_trace(in->trace)) {
                memcpy(a->trace, in->trace, ID_TRACE_SIZE);
                filled.traceparent = NULL;
        } else if (!id_trace_of_parent(in->traceparent, a->trace)) {
                id_trace(a->trace);
                filled.traceparent = NULL;
        }
        filled.trace = a->trace;
        if (filled.time_ms == 0)
                filled.time_ms = a->now_ms;
        a->in = incoming_dup(&filled);
        incoming_payload(a->in, &a->payload);
        a->dual_emit = r->inbox.dual_emit && strncmp(a->in->type, "reaction.", 9) == 0;
        r->writes++;
        fault_point("inbox.before_write");
        store_write(r->store, write_arrival, on_written, a);
}
