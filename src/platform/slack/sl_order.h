/*
 * sl_order: puts events that arrive over several connections back into Slack's order.
 *
 * Slack sends the events of one channel over all connections in turn, and each has its own delay.
 * An event waits a few milliseconds for older ones.
 */
#ifndef PLATFORM_SLACK_SL_ORDER_H
#define PLATFORM_SLACK_SL_ORDER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "platform/slack/slack.h"

struct sl_order;

typedef void sl_order_fn(void *arg, json_t *payload, int retry, sl_stored_fn *stored,
                         void *stored_arg);

/* deliver gets the events; it may free the sl_order. */
struct sl_order *sl_order_new(struct loop *l, int64_t wait_ms, sl_order_fn *deliver, void *arg);
/* Waiting events are given back as not stored. NULL is fine. */
void sl_order_free(struct sl_order *o);
/* An event_callback, borrowed. */
void sl_order_add(struct sl_order *o, json_t *payload, int retry, sl_stored_fn *stored,
                  void *stored_arg);
size_t sl_order_waiting(const struct sl_order *o);

#endif
