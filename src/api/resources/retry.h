/*
 * retry: an operator's changes to a turn or delivery. Each answers the exchange: 202 with id and
 * new state, or the reason for refusal.
 */
#ifndef API_RESOURCES_RETRY_H
#define API_RESOURCES_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "api/core/field.h"
#include "net/http_server.h"

/* Body {"force": ...}. retry_read: -1 after an answer. */
extern const struct field retry_fields[];
int retry_read(struct http_exchange *x, bool *force);

void retry_delivery(struct http_exchange *x, int64_t id, bool force);
void retry_turn(struct http_exchange *x, int64_t id);
void retry_cancel_turn(struct http_exchange *x, int64_t id, const char *why);

#endif
