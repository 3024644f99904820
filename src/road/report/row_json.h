/*
 * row_json: rows as JSON, the same wherever they are shown.
 */
#ifndef ROAD_REPORT_ROW_JSON_H
#define ROAD_REPORT_ROW_JSON_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "rows/delivery_row.h"
#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"
#include "store/store.h"

/* Each adds one object, as the member `key` or, with NULL, as an element. */
void row_json_turn(struct buf *b, const char *key, const struct turn_row *row);
void row_json_trigger_log(struct buf *b, const char *key, const struct trigger_log_row *row);
/* Without its last bracket, so that attempts may follow: close with row_json_delivery_end. */
void row_json_delivery_begin(struct buf *b, const char *key, const struct delivery_row *row);
void row_json_delivery_end(struct buf *b);
/* Inside store functions: the member "attempts" of a delivery. */
int row_json_attempts(struct store_tx *tx, struct buf *b, int64_t delivery, struct error *err);

/* "trn-12": a number as it is shown. */
void row_json_id(struct buf *b, const char *key, const char *prefix, int64_t n);
/* RFC 3339; null for 0. */
void row_json_time(struct buf *b, const char *key, int64_t wall_ms);

/* For queries that are not in src/rows yet: each text begins a query for its function below. */

/* clang-format off */
#define SHOW_TURN \
        "SELECT t.id, t.conversation, t.agent, t.rule, t.state, t.inputs, t.trace, t.attempt, t.due_ms," \
        " t.created_ms, t.started_ms, t.ended_ms, t.error_kind, t.error, t.tokens_in, t.tokens_out," \
        " t.cost_microusd, c.adapter, c.channel, c.thread, t.session" \
        " FROM turns t LEFT JOIN conversations c ON c.id = t.conversation "
#define SHOW_DELIVERY \
        "SELECT d.id, d.turn, d.adapter, d.channel, d.thread, d.kind, d.payload, d.state, d.attempt," \
        " d.due_ms, d.expires_ms, d.created_ms, d.ended_ms, d.platform_id, d.error_kind, d.error, d.trace, d.class" \
        " FROM deliveries d "
#define SHOW_DECISION \
        "SELECT l.event, l.time_ms, l.event_type, l.adapter, l.channel, l.thread, l.sender, l.sender_name," \
        " l.agent, l.rule, l.turn, l.trace, l.status, l.reason, l.duration_ms, l.tokens_in, l.tokens_out," \
        " l.cost_microusd, l.error, l.edited_by, t.attempt, t.session, t.started_ms, t.ended_ms" \
        " FROM trigger_log l LEFT JOIN turns t ON t.id = l.turn "
/* clang-format on */

void show_turn(struct buf *b, const char *key, struct store_stmt *s);
void show_decision(struct buf *b, const char *key, struct store_stmt *s);
void show_delivery_begin(struct buf *b, const char *key, struct store_stmt *s);
void show_delivery_end(struct buf *b);
int show_attempts(struct store_tx *tx, struct buf *b, int64_t delivery, struct error *err);

#endif
