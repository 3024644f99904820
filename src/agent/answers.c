#include "agent/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "agent/reply_token.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

#define TURN_SIZE  32
#define KEY_DIGITS 32 /* of the hash that stands for an idempotency key */

/* ---- reply URLs ---- */

int agents_check_token(const struct agents *as, int64_t turn, const char *token, struct error *err)
{
        char key[TURN_SIZE];

        snprintf(key, sizeof(key), "trn-%" PRId64, turn);
        if (!as->answers.outlet.store)
                return error_set(err, ERR_REFUSED, "there are no reply tokens yet");
        return reply_token_check(as->answers.secret, key, token, clock_wall_ms() / 1000, err);
}

char *answers_url(const struct answers *w, const char *turn, int64_t seconds)
{
        char token[REPLY_TOKEN_SIZE];

        if (!w->base || !w->outlet.store)
                return NULL;
        reply_token_write(w->secret, turn, clock_wall_ms() / 1000 + seconds, token);
        return mem_printf("%s/api/v2/turns/%s/reply?token=%s", w->base, turn, token);
}

/* ---- an answer on its way ---- */

struct posting {
        struct answers *all; /* NULL once the registry is gone */
        struct agents *agents;
        LIST_ENTRY(posting) next;
        int64_t turn;
        char turn_key[TURN_SIZE];
        char *request;           /* names the delivery; NULL: by its number, once that is known */
        bool late;               /* not posted: the call's own answer, after its deadline */
        bool ends;               /* the turn runs: its end is awaited */
        struct turn_reply reply; /* strings ours */
        char **parts;
        unsigned part_count, put_count;
        agents_replied_fn *fn; /* NULL: nobody waits */
        void *arg;
        struct agents_replied told;
        char *why; /* of a discarded one */
        /* what the rows say about the turn */
        bool known, answered;
        int64_t used, found; /* answers delivered so far, and the one of the same name */
        char *state, *agent, *trace, *adapter, *channel, *thread, *message_id;
        struct bus_batch batch;
};

static void posting_free(struct posting *p)
{
        if (p->all)
                LIST_REMOVE(p, next);
        for (unsigned i = 0; i < p->part_count; i++)
                free(p->parts[i]);
        free(p->parts);
        free((char *)p->reply.text);
        free((char *)p->reply.error);
        free(p->request);
        free(p->why);
        free(p->state);
        free(p->agent);
        free(p->trace);
        free(p->adapter);
        free(p->channel);
        free(p->thread);
        free(p->message_id);
        bus_batch_release(&p->batch);
        free(p);
}

static void tell(struct posting *p)
{
        if (p->fn)
                p->fn(p->arg, &p->told);
        posting_free(p);
}

static void tell_failed(struct posting *p, const struct error *err)
{
        p->told.error = *err;
        tell(p);
}

static struct posting *posting_new(struct agents *as, int64_t turn, const struct turn_reply *reply)
{
        struct posting *p = mem_zalloc(sizeof(*p));

        p->agents = as;
        p->all = &as->answers;
        p->turn = turn;
        snprintf(p->turn_key, sizeof(p->turn_key), "trn-%" PRId64, turn);
        p->reply = *reply;
        p->reply.text = mem_strdup(reply->text ? reply->text : "");
        p->reply.error = mem_strdup(reply->error);
        p->parts = mem_array(reply->part_count + 1, sizeof(char *));
        for (unsigned i = 0; i < reply->part_count; i++)
                p->parts[p->part_count++] = mem_strdup(reply->parts[i]);
        if (p->part_count == 0 && *p->reply.text)
                p->parts[p->part_count++] = mem_strdup(p->reply.text);
        p->reply.parts = (const char *const *)p->parts;
        p->reply.part_count = p->part_count;
        LIST_INSERT_HEAD(&p->all->open, p, next);
        return p;
}

/* ---- the record ---- */

static const char *const outcomes[] = {
        [REPLY_ENDED] = "answered",
        [REPLY_DELIVERED] = "delivered",
        [REPLY_DISCARDED] = "discarded",
        [REPLY_DUPLICATE] = "duplicate",
};

const char *agents_replied_name(enum reply_outcome outcome)
{
        return outcomes[outcome];
}

static int write_record(struct store_tx *tx, void *arg, struct error *err)
{
        struct posting *p = arg;
        struct bus_event e = { .type = "turn.reply",
                               .adapter = p->adapter,
                               .channel = p->channel,
                               .thread = p->thread,
                               .trace = p->trace };
        struct buf payload;
        char delivery[32];
        int rc;

        bus_batch_reset(&p->batch);
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "turnId", p->turn_key);
        jsonw_str(&payload, "agent", p->agent);
        jsonw_str(&payload, "outcome", outcomes[p->told.outcome]);
        jsonw_bool(&payload, "late", p->late);
        jsonw_opt(&payload, "reason", p->why);
        jsonw_opt(&payload, "error", p->reply.error);
        if (p->told.delivery) {
                snprintf(delivery, sizeof(delivery), "dlv-%" PRId64, p->told.delivery);
                jsonw_str(&payload, "deliveryId", delivery);
        } else {
                jsonw_str(&payload, "text", p->reply.text);
        }
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, &p->batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

static void on_recorded(void *arg, const struct error *err)
{
        struct posting *p = arg;

        if (p->all && !err)
                bus_publish(p->all->outlet.bus, &p->batch);
        if (err)
                log_warn("cannot record what became of an answer", LOG_S("turn", p->turn_key),
                         LOG_S("outcome", outcomes[p->told.outcome]), LOG_S("why", err->text));
        tell(p);
}

static void record(struct posting *p, enum reply_outcome outcome, const char *why)
{
        p->told.outcome = outcome;
        p->why = mem_strdup(why);
        snprintf(p->told.why, sizeof(p->told.why), "%s", why ? why : "");
        if (p->all)
                store_write(p->all->outlet.store, write_record, on_recorded, p);
        else
                tell(p);
}

/* ---- a message of its own ---- */

static void put_next(struct posting *p);

static void on_put(void *arg, const struct outbox_receipt *receipt)
{
        struct posting *p = arg;

        if (receipt->error.kind != ERR_NONE) {
                tell_failed(p, &receipt->error);
                return;
        }
        if (p->put_count == 1)
                p->told.delivery = receipt->delivery;
        if (receipt->duplicate && p->put_count == 1) {
                p->told.outcome = REPLY_DUPLICATE;
                tell(p);
        } else if (p->all && p->put_count < p->part_count) {
                put_next(p);
        } else {
                record(p, REPLY_DELIVERED, NULL);
        }
}

/*
 * "reply:TURN:..." is the first message of an answer and counts, "part:TURN:...:N" are the others.
 */
static void put_next(struct posting *p)
{
        const struct agents_outlet *outlet = &p->all->outlet;
        unsigned part = p->put_count++;
        char *key = part ? mem_printf("part%s:%u", strchr(p->request, ':'), part)
                         : mem_strdup(p->request);

        outlet->put(outlet->road,
                    &(struct outgoing){
                            .adapter = p->adapter,
                            .channel = p->channel,
                            .thread = p->thread,
                            .text = p->parts[part],
                            .reply_to = part ? NULL : p->message_id,
                            .trace = p->trace,
                            .author = p->agent,
                            .request_key = key,
                            .class = PACE_FINAL,
                    },
                    on_put, p);
        free(key);
}

/* The same answer posted twice has the same name. */
static void name_request(struct posting *p, const char *key)
{
        char hex[SHA256_HEX_SIZE];

        if (p->late)
                p->request = mem_printf("reply:%s:late", p->turn_key);
        else if (key)
                p->request = mem_printf("reply:%s:k%.*s", p->turn_key, KEY_DIGITS,
                                        crypto_sha256_hex(key, strlen(key), hex));
}

/* ---- deciding, for a turn that does not run ---- */

static int64_t under_way(const struct posting *p)
{
        const struct posting *other;
        int64_t n = 0;

        LIST_FOREACH(other, &p->all->open, next)
                n += other != p && other->turn == p->turn && other->put_count > 0;
        return n;
}

static bool terms_of(const struct posting *p, struct reply_terms *terms)
{
        const struct agent_slot *in = map_get(&p->agents->live, p->agent);

        *terms = (struct reply_terms){ 0 };
        if (!in || !in->agent.ops->reply_terms)
                return false;
        in->agent.ops->reply_terms(&in->agent, terms);
        return true;
}

/* What is left of the allowance; the answer a finished turn already gave counts. */
static bool may_speak(const struct posting *p, const struct reply_terms *terms)
{
        return p->used + p->answered + under_way(p) < terms->max_replies;
}

static void decide(struct posting *p)
{
        struct reply_terms terms;
        struct error err;
        bool has_terms = terms_of(p, &terms);

        if (strcmp(p->state, "queued") == 0 || strcmp(p->state, "running") == 0) {
                error_set(&err, ERR_BUSY, "turn '%s' is about to run or to end; try again",
                          p->turn_key);
                tell_failed(p, &err);
        } else if (p->reply.kind != ERR_NONE) {
                record(p, REPLY_DISCARDED, "it failed in the end");
        } else if (!has_terms) {
                record(p, REPLY_DISCARDED, "its agent takes no further answers");
        } else if (strcmp(p->state, "done") != 0 && strcmp(p->state, "failed") != 0) {
                record(p, REPLY_DISCARDED, "the turn was cancelled");
        } else if (strcmp(p->state, "failed") == 0 && !terms.deliver_late) {
                record(p, REPLY_DISCARDED, "it came after the turn had failed (late: discard)");
        } else if (p->part_count == 0) {
                record(p, REPLY_DISCARDED, "it says nothing");
        } else if (p->found) {
                p->told.outcome = REPLY_DUPLICATE;
                p->told.delivery = p->found;
                tell(p);
        } else if (p->late && !may_speak(p, &terms)) {
                record(p, REPLY_DISCARDED, "the turn has been answered already");
        } else if (!may_speak(p, &terms)) {
                error_set(&err, ERR_CONFLICT,
                          "turn '%s' has had its %" PRId64 " answer%s (the agent's maxReplies)",
                          p->turn_key, terms.max_replies, terms.max_replies == 1 ? "" : "s");
                tell_failed(p, &err);
        } else {
                if (!p->request)
                        p->request = mem_printf("reply:%s:n%" PRId64, p->turn_key,
                                                p->used + under_way(p) + 1);
                put_next(p);
        }
}

/* ---- what the rows say ---- */

/* Store functions may run again. */
static void keep(char **at, const char *text)
{
        free(*at);
        *at = mem_strdup(text);
}

static int read_message(struct store_tx *tx, struct posting *p, const char *inputs,
                        struct error *err)
{
        const char *last = strrchr(inputs, ',');
        struct store_stmt *s = store_prepare(tx, "SELECT payload FROM journal WHERE seq = ?1");
        json_t *payload;
        int rc;

        store_bind_int(s, 1, strtoll(last ? last + 1 : inputs, NULL, 10));
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        payload = json_read(store_col_text(s, 0), store_col_size(s, 0), NULL);
        keep(&p->message_id, json_str(payload, "id", NULL));
        json_decref(payload);
        store_reset(s);
        return 0;
}

static int read_turn(struct store_tx *tx, struct posting *p, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT t.state, t.agent, t.trace, c.adapter, c.channel, c.thread, t.inputs FROM turns t"
                " JOIN conversations c ON c.id = t.conversation WHERE t.id = ?1");
        char *inputs;
        int rc;

        store_bind_int(s, 1, p->turn);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        p->known = true;
        keep(&p->state, store_col_text(s, 0));
        keep(&p->agent, store_col_text(s, 1));
        keep(&p->trace, store_col_text(s, 2));
        keep(&p->adapter, store_col_text(s, 3));
        keep(&p->channel, store_col_text(s, 4));
        keep(&p->thread, store_col_text(s, 5));
        inputs = mem_strdup(store_col_text(s, 6));
        store_reset(s);
        rc = read_message(tx, p, inputs, err);
        free(inputs);
        return rc;
}

static int read_number(struct store_stmt *s, int64_t *out, struct error *err)
{
        int rc = store_step(s, err);

        if (rc == 1) {
                *out = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static int read_replies(struct store_tx *tx, struct posting *p, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT count(*) FROM deliveries WHERE request_key >= ?1 AND request_key < ?2"
                    " AND turn IS NULL"); /* its own answer is counted below */
        char from[TURN_SIZE + 16], to[TURN_SIZE + 16];
        int64_t answered = 0;

        /* ';' follows ':' */
        snprintf(from, sizeof(from), "reply:%s:", p->turn_key);
        snprintf(to, sizeof(to), "reply:%s;", p->turn_key);
        store_bind_text(s, 1, from);
        store_bind_text(s, 2, to);
        if (read_number(s, &p->used, err) < 0)
                return -1;
        s = store_prepare(tx, "SELECT id FROM deliveries WHERE request_key = ?1");
        store_bind_text(s, 1, p->request ? p->request : "");
        if (read_number(s, &p->found, err) < 0)
                return -1;
        s = store_prepare(
                tx,
                "SELECT 1 FROM deliveries WHERE turn = ?1 AND kind IN ('send', 'edit') LIMIT 1");
        store_bind_int(s, 1, p->turn);
        if (read_number(s, &answered, err) < 0)
                return -1;
        p->answered = answered && p->state && strcmp(p->state, "done") == 0;
        return 0;
}

static int look(struct store_tx *tx, void *arg, struct error *err)
{
        struct posting *p = arg;

        return read_turn(tx, p, err) < 0 ? -1 : read_replies(tx, p, err);
}

static void on_looked(void *arg, const struct error *err)
{
        struct posting *p = arg;
        struct error missing;

        if (err) {
                tell_failed(p, err);
        } else if (!p->all) {
                error_set(&missing, ERR_CANCELLED, "shutting down");
                tell_failed(p, &missing);
        } else if (!p->known) {
                error_set(&missing, ERR_MISSING, "there is no turn '%s' any more", p->turn_key);
                tell_failed(p, &missing);
        } else {
                decide(p);
        }
}

/* ---- a turn that runs ---- */

/* Told only when the end is stored, like everything that is acknowledged. */
static void on_turn_event(void *arg, const struct bus_event *e)
{
        struct answers *w = arg;
        struct posting *p, *following;
        json_t *payload;
        const char *turn;

        if (LIST_EMPTY(&w->open) ||
            (strcmp(e->type, "turn.done") != 0 && strcmp(e->type, "turn.failed") != 0 &&
             strcmp(e->type, "turn.cancelled") != 0))
                return;
        payload = json_read(e->payload, strlen(e->payload), NULL);
        turn = json_str(payload, "turnId", "");
        for (p = LIST_FIRST(&w->open); p; p = following) {
                following = LIST_NEXT(p, next);
                if (!p->ends || strcmp(p->turn_key, turn) != 0)
                        continue;
                p->told.outcome = strcmp(e->type, "turn.done") == 0 ? REPLY_ENDED : REPLY_DISCARDED;
                tell(p);
        }
        json_decref(payload);
}

/* The agent's call is given up: it said what it had to say. */
static void end_turn(struct posting *p, struct agent_run *r)
{
        struct agent *a = &r->on->agent;
        struct turn_run *run = r->run;

        p->ends = true;
        p->reply.request_key = p->request;
        agent_runs_stop(r);
        agent_finish(a, run, &p->reply);
}

int agents_reply(struct agents *as, int64_t turn, const char *token, const char *key,
                 const struct turn_reply *reply, agents_replied_fn *fn, void *arg,
                 struct error *err)
{
        struct posting *p;
        struct agent_run *r;

        if (agents_check_token(as, turn, token, err) < 0)
                return -1;
        p = posting_new(as, turn, reply);
        p->fn = fn;
        p->arg = arg;
        name_request(p, key);
        r = agent_runs_find(as, turn);
        if (r)
                end_turn(p, r);
        else
                store_read(as->answers.outlet.store, look, on_looked, p);
        return 0;
}

void agent_late(struct agent *a, int64_t turn, const struct turn_reply *reply)
{
        struct agents *as = ((struct agent_slot *)a)->all;
        struct posting *p;

        if (!as->answers.outlet.store)
                return;
        p = posting_new(as, turn, reply);
        p->late = true;
        name_request(p, NULL);
        store_read(as->answers.outlet.store, look, on_looked, p);
}

/* ---- opening and closing ---- */

static int load_secret(struct store_tx *tx, void *arg, struct error *err)
{
        char *hex = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO meta(key, value) VALUES('reply.secret', ?1) ON CONFLICT(key) DO NOTHING");

        store_bind_text(s, 1, hex);
        if (store_run(s, err) < 0)
                return -1;
        s = store_prepare(tx, "SELECT value FROM meta WHERE key = 'reply.secret'");
        if (store_step(s, err) != 1)
                return -1;
        snprintf(hex, SHA256_HEX_SIZE, "%s", store_col_text(s, 0));
        store_reset(s);
        return 0;
}

int answers_open(struct answers *w, const struct agents_outlet *outlet, struct error *err)
{
        char hex[SHA256_HEX_SIZE];
        unsigned char random[SHA256_SIZE];

        id_random_bytes(random, sizeof(random));
        crypto_hex(random, sizeof(random), hex);
        if (store_write_now(outlet->store, load_secret, hex, err) < 0)
                return error_prefix(err, "cannot keep the secret of reply tokens");
        crypto_sha256(hex, strlen(hex), w->secret);
        explicit_bzero(hex, sizeof(hex));
        w->outlet = *outlet;
        w->listener = bus_listen(outlet->bus, 1u << STREAM_TURN, on_turn_event, w);
        return 0;
}

void answers_release(struct answers *w)
{
        struct posting *p;
        struct error err;

        error_set(&err, ERR_CANCELLED, "shutting down");
        while ((p = LIST_FIRST(&w->open))) {
                LIST_REMOVE(p, next);
                p->all = NULL;
                if (p->ends)
                        tell_failed(p, &err);
        }
        if (w->listener)
                bus_unlisten(w->outlet.bus, w->listener);
        free(w->base);
        *w = (struct answers){ 0 };
}
