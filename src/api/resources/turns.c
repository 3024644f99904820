/* Turns: what agents did, and stopping what they do. */
#include <stdio.h>
#include <string.h>

#include "api/core/api_private.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"

struct turns_ask {
        int64_t before, limit, conversation;
        const char *state, *agent;
};

static const char *const states[] = { "queued",    "running", "done", "failed",
                                      "cancelled", "expired", NULL };

/* clang-format off */
const struct field turns_query[] = {
        { "before", FIELD_ID, .prefix = "trn-", .at = offsetof(struct turns_ask, before),
          .help = "Turns before this one; newest first." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct turns_ask, limit), .fallback = "50",
          .help = "How many at most." },
        { "state", FIELD_CHOICE, .choices = states, .at = offsetof(struct turns_ask, state),
          .help = "Only turns in this state." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct turns_ask, agent),
          .help = "Only turns of this agent." },
        { "conversationId", FIELD_ID, .prefix = "conv-", .at = offsetof(struct turns_ask, conversation),
          .help = "Only turns of this conversation." },
        FIELD_END,
};
/* clang-format on */

/* clang-format off */
#define FILTERED                                                                              \
        " AND t.id < ?1 AND (CAST(?2 AS TEXT) IS NULL OR t.state = ?2)"                       \
        " AND (CAST(?3 AS TEXT) IS NULL OR t.agent = ?3) AND (?4 = 0 OR t.conversation = ?4)" \
        ONLY_REACHED("coalesce(c.adapter, '')", "?6") " ORDER BY t.id DESC LIMIT ?5"
/* clang-format on */

/* One text for each index that can serve. */
static struct store_stmt *choose(struct store_tx *tx, const char *state)
{
        if (state && (strcmp(state, "queued") == 0 || strcmp(state, "running") == 0))
                return store_prepare(tx,
                                     SHOW_TURN "WHERE t.state IN ('queued', 'running')" FILTERED);
        if (state && strcmp(state, "failed") == 0)
                return store_prepare(tx, SHOW_TURN "WHERE t.state = 'failed'" FILTERED);
        return store_prepare(tx, SHOW_TURN "WHERE 1 = 1" FILTERED);
}

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct turns_ask *ask = l->query;
        struct store_stmt *s = choose(tx, ask->state);

        store_bind_int(s, 1, ask->before > 0 ? ask->before : INT64_MAX);
        store_bind_text(s, 2, ask->state);
        store_bind_text(s, 3, ask->agent);
        store_bind_int(s, 4, ask->conversation);
        store_bind_int(s, 5, ask->limit + 1);
        store_bind_text(s, 6, l->caller->adapters);
        return page_rows(&l->json, s, ask->limit, "trn", show_turn, err);
}

void turns_list(struct http_exchange *x)
{
        struct turns_ask ask = { .limit = 50 };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}

static int show(struct store_tx *tx, struct read_job *l, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, SHOW_TURN "WHERE t.id = ?1");
        int rc;

        store_bind_int(s, 1, l->id);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no turn 'trn-%lld'", (long long)l->id);
        jsonw_open(&l->json, '{');
        show_turn(&l->json, "data", s);
        jsonw_close(&l->json, '}');
        store_reset(s);
        return 0;
}

void turns_show(struct http_exchange *x)
{
        int64_t id = request_id(x, "trn-", "turn");
        struct read_job *l = id < 0 ? NULL : read_job_new(x, NULL, 0);

        if (!l)
                return;
        l->id = id;
        read_job_run(l, show);
}

struct cancel_ask {
        const char *reason;
};

/* clang-format off */
const struct field cancel_fields[] = {
        { "reason", FIELD_STRING, .min = 1, .max = 200, .at = offsetof(struct cancel_ask, reason),
          .fallback = "\"stopped by the operator\"", .help = "Why, for the record." },
        FIELD_END,
};
/* clang-format on */

void turns_cancel(struct http_exchange *x)
{
        struct cancel_ask ask = { .reason = "stopped by the operator" };
        int64_t id = request_id(x, "trn-", "turn");
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        cancel_turn(x, id, ask.reason);
        body_release(&b);
}
