/*
 * row_json: rows as JSON, for the API and the commands.
 */
#ifndef ROAD_REPORT_ROW_JSON_H
#define ROAD_REPORT_ROW_JSON_H

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "rows/approval_row.h"
#include "rows/delivery_row.h"
#include "rows/schedule_row.h"
#include "rows/step_row.h"
#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"
#include "store/store.h"

/* Each adds an object, as member `key`, or as an element with NULL. */
void row_json_turn(struct buf *b, const char *key, const struct turn_row *row);
void row_json_trigger_log(struct buf *b, const char *key, const struct trigger_log_row *row);
void row_json_delivery(struct buf *b, const char *key, const struct delivery_row *row);
void row_json_approval(struct buf *b, const char *key, const struct approval_row *row);
void row_json_schedule(struct buf *b, const char *key, const struct schedule_row *row);
void row_json_tick(struct buf *b, const char *key, const struct tick_row *row);
/* Without what was said. */
void row_json_step(struct buf *b, const char *key, const struct step_row *row);
/* Also reads its attempts: in store functions only. */
int row_json_delivery_attempts(struct store_tx *tx, struct buf *b, const char *key,
                               const struct delivery_row *row, struct error *err);

/* Dead letters, as elements: {"id", "kind", "delivery" or "turn"}. */
void row_json_dead_delivery(struct buf *b, const struct delivery_row *row);
void row_json_dead_turn(struct buf *b, const struct turn_row *row);

/* "trn-12". */
void row_json_id(struct buf *b, const char *key, const char *prefix, int64_t n);
/* The same; null for 0. */
void row_json_optional_id(struct buf *b, const char *key, const char *prefix, int64_t n);
/* RFC 3339; null for 0. */
void row_json_time(struct buf *b, const char *key, int64_t wall_ms);

#endif
