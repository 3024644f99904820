/*
 * retry: what an operator may change about a turn or a delivery. Each answers the exchange: 202
 * with its id and new state, or why not.
 */
#ifndef API_RESOURCES_RETRY_H
#define API_RESOURCES_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http_server.h"

/* The body {"force": ...}; -1 when it was answered with 400. */
int retry_read(struct http_exchange *x, bool *force);
void retry_delivery(struct http_exchange *x, int64_t id, bool force);
void retry_turn(struct http_exchange *x, int64_t id);
void cancel_turn(struct http_exchange *x, int64_t id, const char *why);

#endif
