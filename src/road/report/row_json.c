#include "road/report/row_json.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
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

/* The member "error": null, or {"kind": ..., "message": ...}. */
static void error_member(struct buf *b, const char *kind, const char *text)
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

void row_json_optional_id(struct buf *b, const char *key, const char *prefix, int64_t n)
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

/* Before the run: debounce, then a free place. */
static void optional_wait(struct buf *b, int64_t created_ms, int64_t started_ms)
{
        if (started_ms > 0)
                jsonw_int(b, "waitMs", started_ms > created_ms ? started_ms - created_ms : 0);
        else
                jsonw_null(b, "waitMs");
}

void row_json_approval(struct buf *b, const char *key, const struct approval_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "apr-", row->id);
        jsonw_str(b, "state", approval_state_name(row->state));
        row_json_id(b, "turnId", "trn-", row->turn);
        jsonw_str(b, "traceId", row->trace);
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "agent", row->agent);
        jsonw_str(b, "tool", row->tool);
        jsonw_str(b, "title", row->title);
        jsonw_str(b, "detail", row->detail);
        jsonw_raw(b, "subject", row->subject);
        jsonw_str(b, "reason", row->reason);
        jsonw_raw(b, "rule", row->rule ? row->rule : "null");
        jsonw_str(b, "approvers", approvers_name(row->approvers));
        jsonw_str(b, "asker", row->asker);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "expiresAt", row->expires_ms);
        row_json_time(b, "decidedAt", row->decided_ms);
        jsonw_str(b, "by", row->by);
        jsonw_str(b, "note", row->note);
        jsonw_bool(b, "always", row->always);
        jsonw_close(b, '}');
}

void row_json_step(struct buf *b, const char *key, const struct step_row *row)
{
        json_t *body = json_read(row->body, strlen(row->body), NULL);
        const json_t *usage = json_object_get(body, "usage");

        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "stp-", row->id);
        jsonw_str(b, "kind", step_kind_name(row->kind));
        jsonw_str(b, "agent", row->agent);
        row_json_time(b, "createdAt", row->time_ms);
        jsonw_opt(b, "tool", json_str(body, "toolName", NULL));
        if (row->kind == STEP_TOOL_DONE)
                jsonw_bool(b, "isError", json_flag(body, "isError", false));
        if (usage) {
                jsonw_opt(b, "model", json_str(body, "model", NULL));
                jsonw_int(b, "tokensIn",
                          json_int(usage, "input", 0) + json_int(usage, "cacheRead", 0) +
                                  json_int(usage, "cacheWrite", 0));
                jsonw_int(b, "tokensCached", json_int(usage, "cacheRead", 0));
                jsonw_int(b, "tokensOut", json_int(usage, "output", 0));
                jsonw_int(b, "costMicroUsd", row->cost_microusd);
        }
        jsonw_close(b, '}');
        json_decref(body);
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
        jsonw_str(b, "agent", turn_row_agent(row));
        jsonw_raw(b, "failedAgents", row->failed_agents ? row->failed_agents : "[]");
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
        optional_wait(b, row->created_ms, row->started_ms);
        error_member(b, row->error_kind, row->error);
        jsonw_int(b, "tokensIn", row->tokens_in);
        jsonw_int(b, "tokensCached", row->tokens_cached);
        jsonw_int(b, "tokensOut", row->tokens_out);
        jsonw_int(b, "costMicroUsd", row->cost_microusd);
        jsonw_int(b, "discardedReplies", row->discarded_replies);
        row_json_time(b, "discardedAt", row->discarded_ms);
        jsonw_str(b, "discardReason", row->discard_reason);
        jsonw_close(b, '}');
}

/* Without its closing bracket. */
static void open_delivery(struct buf *b, const char *key, const struct delivery_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "dlv-", row->id);
        row_json_optional_id(b, "turnId", "trn-", row->turn);
        row_json_optional_id(b, "replyOf", "trn-", row->reply_of);
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
        error_member(b, row->error_kind, row->error);
        jsonw_str(b, "traceId", row->trace);
}

void row_json_delivery(struct buf *b, const char *key, const struct delivery_row *row)
{
        open_delivery(b, key, row);
        jsonw_close(b, '}');
}

int row_json_delivery_attempts(struct store_tx *tx, struct buf *b, const char *key,
                               const struct delivery_row *row, struct error *err)
{
        struct store_stmt *s = delivery_row_list_attempts(tx, row->id);
        struct attempt_row attempt;
        int rc;

        open_delivery(b, key, row);
        jsonw_open_member(b, "attempts", '[');
        while ((rc = delivery_row_next_attempt(s, &attempt, err)) == 1) {
                jsonw_open(b, '{');
                jsonw_int(b, "attempt", attempt.attempt);
                row_json_time(b, "at", attempt.time_ms);
                jsonw_str(b, "outcome", attempt.outcome);
                jsonw_str(b, "detail", attempt.detail);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        jsonw_close(b, '}');
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
        jsonw_str(b, "chosenAgent", row->chosen_agent);
        jsonw_str(b, "rule", row->rule);
        row_json_optional_id(b, "turnId", "trn-", row->turn);
        jsonw_str(b, "traceId", row->trace);
        jsonw_str(b, "status", trigger_status_name(row->status));
        jsonw_str(b, "reason", row->reason);
        optional_int(b, "durationMs", row->duration_ms);
        optional_wait(b, row->time_ms, row->started_ms);
        optional_int(b, "tokensIn", row->tokens_in);
        optional_int(b, "tokensCached", row->tokens_cached);
        optional_int(b, "tokensOut", row->tokens_out);
        optional_int(b, "costMicroUsd", row->cost_microusd);
        jsonw_str(b, "error", row->error);
        row_json_optional_id(b, "changedBy", "evt-", row->edited_by);
        optional_int(b, "attempt", row->attempt);
        jsonw_str(b, "sessionId", row->session);
        row_json_time(b, "firedAt", row->started_ms);
        row_json_time(b, "respondedAt", row->ended_ms);
        jsonw_close(b, '}');
}

static void open_dead_letter(struct buf *b, const char *prefix, int64_t id, const char *kind)
{
        jsonw_open(b, '{');
        row_json_id(b, "id", prefix, id);
        jsonw_str(b, "kind", kind);
}

void row_json_dead_delivery(struct buf *b, const struct delivery_row *row)
{
        open_dead_letter(b, "dlv-", row->id, "delivery");
        row_json_delivery(b, "delivery", row);
        jsonw_close(b, '}');
}

void row_json_dead_turn(struct buf *b, const struct turn_row *row)
{
        open_dead_letter(b, "trn-", row->id, "turn");
        row_json_turn(b, "turn", row);
        jsonw_close(b, '}');
}

void row_json_schedule(struct buf *b, const char *key, const struct schedule_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "sch-", row->id);
        jsonw_str(b, "state", schedule_state_name(row->state));
        jsonw_str(b, "source", row->source);
        jsonw_str(b, "name", row->name);
        jsonw_str(b, "kind", schedule_kind_name(row->kind));
        jsonw_str(b, "action", schedule_action_name(row->action));
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        row_json_optional_id(b, "personId", "per-", row->person);
        jsonw_str(b, "text", row->text);
        jsonw_raw(b, "options", row->options ? row->options : "null");
        row_json_time(b, "at", row->at_ms);
        jsonw_str(b, "cron", row->cron);
        jsonw_str(b, "timezone", row->timezone);
        jsonw_str(b, "missed", schedule_missed_name(row->missed));
        jsonw_int(b, "maxAgeSeconds", row->max_age_ms / 1000);
        row_json_time(b, "nextAt", row->next_ms);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        jsonw_str(b, "createdBy", row->created_by);
        jsonw_str(b, "traceId", row->trace);
        jsonw_close(b, '}');
}

void row_json_tick(struct buf *b, const char *key, const struct tick_row *row)
{
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "tck-", row->id);
        row_json_id(b, "scheduleId", "sch-", row->schedule);
        jsonw_str(b, "state", tick_state_name(row->state));
        row_json_time(b, "dueAt", row->due_ms);
        jsonw_int(b, "runs", row->runs);
        row_json_time(b, "notBefore", row->not_before_ms > row->due_ms ? row->not_before_ms : 0);
        row_json_time(b, "startedAt", row->started_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        row_json_optional_id(b, "eventId", "evt-", row->event);
        row_json_optional_id(b, "deliveryId", "dlv-", row->delivery);
        jsonw_str(b, "note", row->note);
        jsonw_close(b, '}');
}
