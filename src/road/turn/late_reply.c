/*
 * A late reply on its way. Its steps:
 *
 *     late_reply_submit ──► the run has it ──► turn_finish ──► late_reply_turn_ended ──► report
 *                      └──► read the rows ──► decide ──► outbox_submit, a part at a time ──► record
 *                                                   └──► discarded ──► record
 *
 * The outcome is reported when it is stored, like everything that is acknowledged.
 */
#include "road/turn/late_reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/no_reply.h"
#include "rows/journal_row.h"
#include "rows/turn_row.h"

#define KEY_DIGITS 32 /* of the hash of an idempotency key */

struct late_reply {
        struct road *road; /* NULL once closed */
        struct store *store;
        int64_t turn;
        char turn_key[ROAD_KEY_SIZE];
        char *request_key;       /* of the delivery; NULL: made at delivery */
        bool overdue;            /* response of a call that outlived the turn */
        bool ends_turn;          /* waits for the stored end */
        struct turn_reply reply; /* strings ours */
        char **parts;
        unsigned part_count, submitted;
        late_reply_fn *fn; /* may be NULL */
        void *arg;
        struct late_reply_result result;
        struct turn_row *row; /* NULL: no such turn */
        char *reply_to;       /* platform id of the last message the turn answers */
        bool unsampled;       /* see struct delivery */
        bool answered;        /* the turn itself posted an answer */
        int64_t replies;      /* late ones delivered so far */
        int64_t duplicate;    /* delivery with the same request key; 0: none */
        struct bus_batch batch;
        LIST_ENTRY(late_reply) next;
};

static struct late_reply *late_reply_new(struct road *r, int64_t turn,
                                         const struct turn_reply *reply)
{
        struct late_reply *l = mem_zalloc(sizeof(*l));

        l->road = r;
        l->store = r->store;
        l->turn = turn;
        road_key("trn", turn, l->turn_key);
        l->reply = *reply;
        l->reply.text = mem_strdup(reply->text ? reply->text : "");
        l->reply.error = mem_strdup(reply->error);
        l->parts = mem_array(reply->part_count + 1, sizeof(char *));
        for (unsigned i = 0; i < reply->part_count; i++)
                l->parts[l->part_count++] = mem_strdup(reply->parts[i]);
        if (l->part_count == 0 && *l->reply.text)
                l->parts[l->part_count++] = mem_strdup(l->reply.text);
        l->reply.parts = (const char *const *)l->parts;
        l->reply.part_count = l->part_count;
        LIST_INSERT_HEAD(&r->turns.late_replies, l, next);
        return l;
}

/* Reports the result and frees l. */
static void report(struct late_reply *l)
{
        if (l->fn)
                l->fn(l->arg, &l->result);
        if (l->road)
                LIST_REMOVE(l, next);
        for (unsigned i = 0; i < l->part_count; i++)
                free(l->parts[i]);
        free(l->parts);
        free((char *)l->reply.text);
        free((char *)l->reply.error);
        free(l->request_key);
        free(l->reply_to);
        free(l->row);
        bus_batch_release(&l->batch);
        free(l);
}

/* ---- recording ---- */

const char *late_reply_outcome_name(enum late_reply_outcome outcome)
{
        static const char *const names[] = { [LATE_REPLY_ENDED] = "answered",
                                             [LATE_REPLY_DELIVERED] = "delivered",
                                             [LATE_REPLY_DISCARDED] = "discarded",
                                             [LATE_REPLY_DUPLICATE] = "duplicate" };

        return names[outcome];
}

static int write_record(struct store_tx *tx, void *arg, struct error *err)
{
        struct late_reply *l = arg;
        struct bus_event e = { .type = "turn.reply",
                               .adapter = l->row->adapter,
                               .channel = l->row->channel,
                               .thread = l->row->thread,
                               .trace = l->row->trace };
        struct buf payload;
        char delivery[ROAD_KEY_SIZE];
        int rc;

        bus_batch_reset(&l->batch);
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", l->turn_key);
        jsonw_str(&payload, "agent", turn_row_agent(l->row));
        jsonw_str(&payload, "outcome", late_reply_outcome_name(l->result.outcome));
        jsonw_bool(&payload, "late", l->overdue);
        jsonw_opt(&payload, "reason", *l->result.why ? l->result.why : NULL);
        jsonw_opt(&payload, "error", l->reply.error);
        if (l->result.delivery)
                jsonw_str(&payload, "deliveryId", road_key("dlv", l->result.delivery, delivery));
        else
                jsonw_str(&payload, "text", l->reply.text);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, &l->batch, &e, NULL, err);
        buf_release(&payload);
        if (rc < 0 || l->result.outcome != LATE_REPLY_DISCARDED)
                return rc < 0 ? -1 : 0;
        return turn_row_discard_reply(tx, l->turn, clock_wall_ms(), l->result.why, err);
}

static void on_recorded(void *arg, const struct error *err)
{
        struct late_reply *l = arg;

        if (err)
                log_warn("cannot record a late reply", LOG_S("turn", l->turn_key),
                         LOG_S("outcome", late_reply_outcome_name(l->result.outcome)),
                         LOG_S("why", err->text));
        else if (l->road)
                bus_publish(l->road->bus, &l->batch);
        report(l);
}

static void record(struct late_reply *l, enum late_reply_outcome outcome, const char *why)
{
        l->result.outcome = outcome;
        snprintf(l->result.why, sizeof(l->result.why), "%s", why);
        store_write(l->store, write_record, on_recorded, l);
}

/* ---- delivering ---- */

static void submit_next(struct late_reply *l);

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        struct late_reply *l = arg;

        if (receipt->error.kind != ERR_NONE) {
                l->result.error = receipt->error;
                report(l);
                return;
        }
        if (l->submitted == 1)
                l->result.delivery = receipt->delivery;
        if (receipt->duplicate && l->submitted == 1) {
                l->result.outcome = LATE_REPLY_DUPLICATE;
                report(l);
        } else if (l->road && l->submitted < l->part_count) {
                submit_next(l);
        } else {
                record(l, LATE_REPLY_DELIVERED, "");
        }
}

/* The first message refers to the last input; its key counts as a reply. Other parts follow. */
static void submit_next(struct late_reply *l)
{
        unsigned part = l->submitted++;
        char *key = part ? mem_printf("part%s:%u", strchr(l->request_key, ':'), part)
                         : mem_strdup(l->request_key);

        outbox_submit(l->road,
                      &(struct outgoing){
                              .adapter = l->row->adapter,
                              .channel = l->row->channel,
                              .thread = l->row->thread,
                              .text = l->parts[part],
                              .reply_to = part ? NULL : l->reply_to,
                              .trace = l->row->trace,
                              .unsampled = l->unsampled,
                              .author = turn_row_agent(l->row),
                              .request_key = key,
                              .reply_of = l->turn,
                              .class = PACE_FINAL,
                      },
                      on_submitted, l);
        free(key);
}

/* ---- deciding, when the turn is not running ---- */

/* Replies to the same turn whose rows are not stored yet. */
static int64_t count_unstored(const struct late_reply *l)
{
        const struct late_reply *other;
        int64_t n = 0;

        LIST_FOREACH(other, &l->road->turns.late_replies, next)
                n += other != l && other->turn == l->turn && other->submitted > 0;
        return n;
}

/* Why the rule of its turn does not post it; NULL: it does. */
static const char *silent_reason(const struct late_reply *l)
{
        struct reply_policy policy;
        const char *why = NULL;
        struct arena arena;

        arena_init(&arena);
        reply_policy_read(&policy, l->row->reply_policy, &arena);
        if (policy.mode == MODE_SILENT)
                why = "the rule posts no answers";
        else if (no_reply_matches(&policy, l->reply.text))
                why = "the agent had nothing to say";
        arena_release(&arena);
        return why;
}

static void decide(struct late_reply *l)
{
        const struct turn_row *row = l->row;
        const struct road_agents *agents = &l->road->agents;
        struct late_reply_policy policy = { 0 };
        bool has_policy = agents->late_replies &&
                          agents->late_replies(agents->agents, turn_row_agent(row), &policy);
        int64_t replies = l->replies + count_unstored(l);
        bool exhausted = replies + l->answered >= policy.max_replies;

        if (row->state == TURN_QUEUED || row->state == TURN_RUNNING) {
                error_set(&l->result.error, ERR_BUSY,
                          "turn '%s' is about to run or to end; try again", l->turn_key);
                report(l);
        } else if (l->reply.kind != ERR_NONE) {
                record(l, LATE_REPLY_DISCARDED, "it failed in the end");
        } else if (!has_policy) {
                record(l, LATE_REPLY_DISCARDED, "its agent takes no further answers");
        } else if (row->state != TURN_DONE && row->state != TURN_FAILED) {
                record(l, LATE_REPLY_DISCARDED, "the turn was cancelled");
        } else if (row->state == TURN_FAILED && !policy.deliver_failed) {
                record(l, LATE_REPLY_DISCARDED,
                       "it came after the turn had failed (late: discard)");
        } else if (l->part_count == 0) {
                record(l, LATE_REPLY_DISCARDED, "it is empty");
        } else if (silent_reason(l)) {
                record(l, LATE_REPLY_DISCARDED, silent_reason(l));
        } else if (l->duplicate) {
                l->result.outcome = LATE_REPLY_DUPLICATE;
                l->result.delivery = l->duplicate;
                report(l);
        } else if (exhausted && l->overdue) {
                record(l, LATE_REPLY_DISCARDED, "the turn has been answered already");
        } else if (exhausted) {
                error_set(&l->result.error, ERR_CONFLICT,
                          "turn '%s' has had its %" PRId64 " answer%s (the agent's maxReplies)",
                          l->turn_key, policy.max_replies, policy.max_replies == 1 ? "" : "s");
                report(l);
        } else {
                if (!l->request_key)
                        l->request_key = mem_printf("reply:%s:n%" PRId64, l->turn_key, replies + 1);
                submit_next(l);
        }
}

static int read_inputs(struct store_tx *tx, struct late_reply *l, struct error *err)
{
        const char *inputs = l->row->inputs;
        struct journal_row *event;
        bool first = true;
        int64_t number;
        json_t *payload;

        while (turn_row_next_input(&inputs, &number)) {
                if (!first && *inputs)
                        continue; /* neither the first nor the last */
                if (journal_row_get(tx, number, &event, err) < 0)
                        return -1;
                payload = event ? json_read(event->payload, strlen(event->payload), NULL) : NULL;
                free(l->reply_to);
                l->reply_to = mem_strdup(json_str(payload, "id", NULL));
                if (first) /* the turn has its trace */
                        l->unsampled = !id_parent_samples(json_str(payload, "traceparent", NULL),
                                                          l->row->trace);
                json_decref(payload);
                free(event);
                first = false;
        }
        return 0;
}

static int read_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct late_reply *l = arg;
        struct delivery_row *found = NULL;
        int rc;

        free(l->row);
        rc = turn_row_get(tx, l->turn, &l->row, err);
        if (rc != 1)
                return rc;
        if (read_inputs(tx, l, err) < 0 ||
            delivery_row_count_replies(tx, l->turn, &l->replies, &l->answered, err) < 0 ||
            (l->request_key && delivery_row_get_request(tx, l->request_key, &found, err) < 0))
                return -1;
        l->answered = l->answered && l->row->state == TURN_DONE;
        l->duplicate = found ? found->id : 0;
        free(found);
        return 0;
}

static void on_read(void *arg, const struct error *err)
{
        struct late_reply *l = arg;

        if (!err && l->road && l->row && l->row->adapter) {
                decide(l);
                return;
        }
        if (err)
                l->result.error = *err;
        else if (!l->road)
                error_set(&l->result.error, ERR_CANCELLED, "shutting down");
        else
                error_set(&l->result.error, ERR_MISSING, "there is no turn '%s'", l->turn_key);
        report(l);
}

/* ---- entry points ---- */

void late_reply_submit(struct road *r, int64_t turn, const char *key,
                       const struct turn_reply *reply, late_reply_fn *fn, void *arg)
{
        struct late_reply *l = late_reply_new(r, turn, reply);
        struct turn *t = turn_find(r, turn);
        char hex[SHA256_HEX_SIZE];

        l->fn = fn;
        l->arg = arg;
        if (key)
                l->request_key = mem_printf("reply:%s:k%.*s", l->turn_key, KEY_DIGITS,
                                            crypto_sha256_hex(key, strlen(key), hex));
        l->reply.request_key = l->request_key;
        /* set first: the turn's end may be stored any time after the call */
        l->ends_turn = true;
        if (t && t->phase == PHASE_RUNNING && r->agents.answer &&
            r->agents.answer(r->agents.agents, &t->run, &l->reply))
                return;
        l->ends_turn = false;
        store_read(r->store, read_rows, on_read, l);
}

void late_reply_overdue(struct road *r, int64_t turn, const struct turn_reply *reply)
{
        struct late_reply *l = late_reply_new(r, turn, reply);

        l->overdue = true;
        l->request_key = mem_printf("reply:%s:%s", l->turn_key,
                                    reply->request_key ? reply->request_key : "late");
        store_read(r->store, read_rows, on_read, l);
}

void late_reply_turn_ended(struct road *r, int64_t turn, bool answered)
{
        struct late_reply *l, *following;

        for (l = LIST_FIRST(&r->turns.late_replies); l; l = following) {
                following = LIST_NEXT(l, next);
                if (!l->ends_turn || l->turn != turn)
                        continue;
                l->result.outcome = answered ? LATE_REPLY_ENDED : LATE_REPLY_DISCARDED;
                report(l);
        }
}

void late_reply_release(struct road *r)
{
        struct late_reply *l;

        while ((l = LIST_FIRST(&r->turns.late_replies))) {
                LIST_REMOVE(l, next);
                l->road = NULL;
                if (!l->ends_turn)
                        continue;
                error_set(&l->result.error, ERR_CANCELLED, "shutting down");
                report(l);
        }
}
