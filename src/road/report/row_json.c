#include "road/report/row_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"

void show_id(struct buf *b, const char *key, const char *prefix, int64_t n)
{
        char id[40];

        snprintf(id, sizeof(id), "%s%lld", prefix, (long long)n);
        jsonw_str(b, key, id);
}

void show_time(struct buf *b, const char *key, int64_t wall_ms)
{
        char iso[CLOCK_ISO_SIZE];

        jsonw_str(b, key, wall_ms > 0 ? clock_iso(wall_ms, iso) : NULL);
}

static void opt_id(struct buf *b, const char *key, const char *prefix, struct store_stmt *s, int at)
{
        if (store_col_null(s, at))
                jsonw_null(b, key);
        else
                show_id(b, key, prefix, store_col_int(s, at));
}

static void opt_int(struct buf *b, const char *key, struct store_stmt *s, int at)
{
        if (store_col_null(s, at))
                jsonw_null(b, key);
        else
                jsonw_int(b, key, store_col_int(s, at));
}

/* null, or {"kind": ..., "message": ...} */
static void show_error(struct buf *b, const char *kind, const char *text)
{
        if (!kind && !text) {
                jsonw_null(b, "error");
                return;
        }
        jsonw_open_member(b, "error", '{');
        jsonw_str(b, "kind", kind);
        jsonw_str(b, "message", text);
        jsonw_close(b, '}');
}

/* "12,15" → ["evt-12","evt-15"] */
static void show_inputs(struct buf *b, const char *inputs)
{
        jsonw_open_member(b, "events", '[');
        while (inputs && *inputs) {
                char *end;
                long long n = strtoll(inputs, &end, 10);

                if (end == inputs)
                        break;
                show_id(b, NULL, "evt-", n);
                inputs = *end == ',' ? end + 1 : end;
        }
        jsonw_close(b, ']');
}

void show_turn(struct buf *b, const char *key, struct store_stmt *s)
{
        jsonw_open_member(b, key, '{');
        show_id(b, "id", "trn-", store_col_int(s, 0));
        show_id(b, "conversationId", "conv-", store_col_int(s, 1));
        jsonw_str(b, "sessionId", store_col_text(s, 20));
        jsonw_str(b, "instanceId", store_col_text(s, 17));
        jsonw_str(b, "channel", store_col_text(s, 18));
        jsonw_str(b, "threadId", store_col_text(s, 19));
        jsonw_str(b, "agent", store_col_text(s, 2));
        jsonw_str(b, "rule", store_col_text(s, 3));
        jsonw_str(b, "state", store_col_text(s, 4));
        show_inputs(b, store_col_text(s, 5));
        jsonw_str(b, "traceId", store_col_text(s, 6));
        jsonw_int(b, "attempt", store_col_int(s, 7));
        show_time(b, "dueAt", store_col_int(s, 8));
        show_time(b, "createdAt", store_col_int(s, 9));
        show_time(b, "startedAt", store_col_int(s, 10));
        show_time(b, "endedAt", store_col_int(s, 11));
        if (store_col_null(s, 10) || store_col_null(s, 11))
                jsonw_null(b, "durationMs");
        else
                jsonw_int(b, "durationMs", store_col_int(s, 11) - store_col_int(s, 10));
        show_error(b, store_col_text(s, 12), store_col_text(s, 13));
        jsonw_int(b, "tokensIn", store_col_int(s, 14));
        jsonw_int(b, "tokensOut", store_col_int(s, 15));
        jsonw_int(b, "costMicroUsd", store_col_int(s, 16));
        jsonw_close(b, '}');
}

void show_delivery_begin(struct buf *b, const char *key, struct store_stmt *s)
{
        jsonw_open_member(b, key, '{');
        show_id(b, "id", "dlv-", store_col_int(s, 0));
        opt_id(b, "turnId", "trn-", s, 1);
        jsonw_str(b, "instanceId", store_col_text(s, 2));
        jsonw_str(b, "channel", store_col_text(s, 3));
        jsonw_str(b, "threadId", store_col_text(s, 4));
        jsonw_str(b, "kind", store_col_text(s, 5));
        jsonw_raw(b, "payload", store_col_text(s, 6));
        jsonw_str(b, "state", store_col_text(s, 7));
        jsonw_int(b, "attempt", store_col_int(s, 8));
        show_time(b, "dueAt", store_col_int(s, 9));
        show_time(b, "expiresAt", store_col_int(s, 10));
        show_time(b, "createdAt", store_col_int(s, 11));
        show_time(b, "endedAt", store_col_int(s, 12));
        jsonw_str(b, "platformId", store_col_text(s, 13));
        show_error(b, store_col_text(s, 14), store_col_text(s, 15));
        jsonw_str(b, "traceId", store_col_text(s, 16));
}

void show_delivery_end(struct buf *b)
{
        jsonw_close(b, '}');
}

int show_attempts(struct store_tx *tx, struct buf *b, int64_t delivery, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT attempt, time_ms, outcome, detail FROM attempts"
                                  " WHERE delivery = ?1 ORDER BY attempt");
        int rc;

        store_bind_int(s, 1, delivery);
        jsonw_open_member(b, "attempts", '[');
        while ((rc = store_step(s, err)) == 1) {
                jsonw_open(b, '{');
                jsonw_int(b, "attempt", store_col_int(s, 0));
                show_time(b, "at", store_col_int(s, 1));
                jsonw_str(b, "outcome", store_col_text(s, 2));
                jsonw_str(b, "detail", store_col_text(s, 3));
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        return rc;
}

void show_decision(struct buf *b, const char *key, struct store_stmt *s)
{
        jsonw_open_member(b, key, '{');
        show_id(b, "eventId", "evt-", store_col_int(s, 0));
        show_time(b, "at", store_col_int(s, 1));
        jsonw_str(b, "eventType", store_col_text(s, 2));
        jsonw_str(b, "instanceId", store_col_text(s, 3));
        jsonw_str(b, "channel", store_col_text(s, 4));
        jsonw_str(b, "threadId", store_col_text(s, 5));
        jsonw_str(b, "senderId", store_col_text(s, 6));
        jsonw_str(b, "senderName", store_col_text(s, 7));
        jsonw_str(b, "agent", store_col_text(s, 8));
        jsonw_str(b, "rule", store_col_text(s, 9));
        opt_id(b, "turnId", "trn-", s, 10);
        jsonw_str(b, "traceId", store_col_text(s, 11));
        jsonw_str(b, "status", store_col_text(s, 12));
        jsonw_str(b, "reason", store_col_text(s, 13));
        opt_int(b, "durationMs", s, 14);
        opt_int(b, "tokensIn", s, 15);
        opt_int(b, "tokensOut", s, 16);
        opt_int(b, "costMicroUsd", s, 17);
        jsonw_str(b, "error", store_col_text(s, 18));
        opt_id(b, "changedBy", "evt-", s, 19);
        opt_int(b, "attempt", s, 20);
        jsonw_str(b, "sessionId", store_col_text(s, 21));
        show_time(b, "firedAt", store_col_int(s, 22));
        show_time(b, "respondedAt", store_col_int(s, 23));
        jsonw_close(b, '}');
}
