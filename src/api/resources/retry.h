/*
 * retry: changes an operator may make to a turn or a delivery. Each answers the exchange: 202 with
 * its id and new state, or the reason why not.
 */
#ifndef API_RESOURCES_RETRY_H
#define API_RESOURCES_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "api/core/field.h"
#include "net/http_server.h"

/* The body {"force": ...}. retry_read: -1 after an answer. */
extern const struct field retry_fields[];
int retry_read(struct http_exchange *x, bool *force);

void retry_delivery(struct http_exchange *x, int64_t id, bool force);
void retry_turn(struct http_exchange *x, int64_t id);
void retry_cancel_turn(struct http_exchange *x, int64_t id, const char *why);

#endif
