#include "road/report/row_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"

void row_json_id(struct buf *b, const char *key, const char *prefix, int64_t n)
{
        char id[40];

        snprintf(id, sizeof(id), "%s%lld", prefix, (long long)n);
        jsonw_str(b, key, id);
}

void row_json_time(struct buf *b, const char *key, int64_t wall_ms)
{
        char iso[CLOCK_ISO_SIZE];

        jsonw_str(b, key, wall_ms > 0 ? clock_iso(wall_ms, iso) : NULL);
}

static void opt_id(struct buf *b, const char *key, const char *prefix, struct store_stmt *s, int at)
{
        if (store_col_null(s, at))
                jsonw_null(b, key);
        else
                row_json_id(b, key, prefix, store_col_int(s, at));
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
                row_json_id(b, NULL, "evt-", n);
                inputs = *end == ',' ? end + 1 : end;
        }
        jsonw_close(b, ']');
}

void show_turn(struct buf *b, const char *key, struct store_stmt *s)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "trn-", store_col_int(s, 0));
        row_json_id(b, "conversationId", "conv-", store_col_int(s, 1));
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
        row_json_time(b, "dueAt", store_col_int(s, 8));
        row_json_time(b, "createdAt", store_col_int(s, 9));
        row_json_time(b, "startedAt", store_col_int(s, 10));
        row_json_time(b, "endedAt", store_col_int(s, 11));
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
        row_json_id(b, "id", "dlv-", store_col_int(s, 0));
        opt_id(b, "turnId", "trn-", s, 1);
        jsonw_str(b, "instanceId", store_col_text(s, 2));
        jsonw_str(b, "channel", store_col_text(s, 3));
        jsonw_str(b, "threadId", store_col_text(s, 4));
        jsonw_str(b, "kind", store_col_text(s, 5));
        jsonw_raw(b, "payload", store_col_text(s, 6));
        jsonw_str(b, "state", store_col_text(s, 7));
        jsonw_int(b, "attempt", store_col_int(s, 8));
        row_json_time(b, "dueAt", store_col_int(s, 9));
        row_json_time(b, "expiresAt", store_col_int(s, 10));
        row_json_time(b, "createdAt", store_col_int(s, 11));
        row_json_time(b, "endedAt", store_col_int(s, 12));
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
                row_json_time(b, "at", store_col_int(s, 1));
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
        row_json_id(b, "eventId", "evt-", store_col_int(s, 0));
        row_json_time(b, "at", store_col_int(s, 1));
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
        row_json_time(b, "firedAt", store_col_int(s, 22));
        row_json_time(b, "respondedAt", store_col_int(s, 23));
        jsonw_close(b, '}');
}

/* ---- from structs ---- */

static void optional_id(struct buf *b, const char *key, const char *prefix, int64_t n)
{
        if (n > 0)
                row_json_id(b, key, prefix, n);
        else
                jsonw_null(b, key);
}

static void optional_int(struct buf *b, const char *key, int64_t n)
{
        if (n >= 0)
                jsonw_int(b, key, n);
        else
                jsonw_null(b, key);
}

void row_json_turn(struct buf *b, const char *key, const struct turn_row *row)
{
        const char *inputs = row->inputs;
        int64_t event;

        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "trn-", row->id);
        row_json_id(b, "conversationId", "conv-", row->conversation);
        jsonw_str(b, "sessionId", row->session);
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "agent", row->agent);
        jsonw_str(b, "rule", row->rule);
        jsonw_str(b, "state", turn_state_name(row->state));
        jsonw_open_member(b, "events", '[');
        while (turn_row_next_input(&inputs, &event))
                row_json_id(b, NULL, "evt-", event);
        jsonw_close(b, ']');
        jsonw_str(b, "traceId", row->trace);
        jsonw_int(b, "attempt", row->attempt);
        row_json_time(b, "dueAt", row->due_ms);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "startedAt", row->started_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        if (row->started_ms > 0 && row->ended_ms > 0)
                jsonw_int(b, "durationMs", row->ended_ms - row->started_ms);
        else
                jsonw_null(b, "durationMs");
        show_error(b, row->error_kind, row->error);
        jsonw_int(b, "tokensIn", row->tokens_in);
        jsonw_int(b, "tokensOut", row->tokens_out);
        jsonw_int(b, "costMicroUsd", row->cost_microusd);
        jsonw_close(b, '}');
}

void row_json_delivery_begin(struct buf *b, const char *key, const struct delivery_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "dlv-", row->id);
        optional_id(b, "turnId", "trn-", row->turn);
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "kind", delivery_kind_name(row->kind));
        jsonw_raw(b, "payload", row->payload);
        jsonw_str(b, "state", delivery_state_name(row->state));
        jsonw_int(b, "attempt", row->attempt);
        row_json_time(b, "dueAt", row->due_ms);
        row_json_time(b, "expiresAt", row->expires_ms);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        jsonw_str(b, "platformId", row->platform_id);
        show_error(b, row->error_kind, row->error);
        jsonw_str(b, "traceId", row->trace);
}

void row_json_delivery_end(struct buf *b)
{
        jsonw_close(b, '}');
}

int row_json_attempts(struct store_tx *tx, struct buf *b, int64_t delivery, struct error *err)
{
        struct store_stmt *s = delivery_row_list_attempts(tx, delivery);
        struct attempt_row row;
        int rc;

        jsonw_open_member(b, "attempts", '[');
        while ((rc = delivery_row_next_attempt(s, &row, err)) == 1) {
                jsonw_open(b, '{');
                jsonw_int(b, "attempt", row.attempt);
                row_json_time(b, "at", row.time_ms);
                jsonw_str(b, "outcome", row.outcome);
                jsonw_str(b, "detail", row.detail);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        return rc;
}

void row_json_trigger_log(struct buf *b, const char *key, const struct trigger_log_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "eventId", "evt-", row->event);
        row_json_time(b, "at", row->time_ms);
        jsonw_str(b, "eventType", row->event_type);
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "senderId", row->sender);
        jsonw_str(b, "senderName", row->sender_name);
        jsonw_str(b, "agent", row->agent);
        jsonw_str(b, "rule", row->rule);
        optional_id(b, "turnId", "trn-", row->turn);
        jsonw_str(b, "traceId", row->trace);
        jsonw_str(b, "status", trigger_status_name(row->status));
        jsonw_str(b, "reason", row->reason);
        optional_int(b, "durationMs", row->duration_ms);
        optional_int(b, "tokensIn", row->tokens_in);
        optional_int(b, "tokensOut", row->tokens_out);
        optional_int(b, "costMicroUsd", row->cost_microusd);
        jsonw_str(b, "error", row->error);
        optional_id(b, "changedBy", "evt-", row->edited_by);
        optional_int(b, "attempt", row->attempt);
        jsonw_str(b, "sessionId", row->session);
        row_json_time(b, "firedAt", row->started_ms);
        row_json_time(b, "respondedAt", row->ended_ms);
        jsonw_close(b, '}');
}
