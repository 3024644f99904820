/*
 * sl_order: puts events that arrive over several connections back into Slack's order.
 *
 * Slack sends the events of one channel over all connections, and we read one connection after the
 * other. So an event waits until every connection was read once more, and a connection that is far
 * ahead of the others pauses until they have caught up.
 */
#ifndef PLATFORM_SLACK_SL_ORDER_H
#define PLATFORM_SLACK_SL_ORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/loop.h"
#include "platform/slack/slack.h"

struct sl_order;

/* A connection. Zeroed before the first event. */
struct sl_order_source {
        int64_t newest_us; /* of its events */
        size_t waiting;
        bool paused, known;
        LIST_ENTRY(sl_order_source) next;
};

struct sl_order_handlers {
        /* The next event; may free the sl_order. */
        void (*deliver)(void *arg, json_t *payload, int retry, sl_stored_fn *stored,
                        void *stored_arg);
        /* Nothing is delivered while it is. */
        bool (*is_full)(void *arg);
        /* Read nothing from this connection, or go on. */
        void (*pause)(void *arg, struct sl_order_source *source, bool paused);
};

struct sl_order *sl_order_new(struct loop *l, int64_t wait_ms,
                              const struct sl_order_handlers *handlers, void *arg);
/* Waiting events are given back as not stored. NULL is fine. */
void sl_order_free(struct sl_order *o);
/* An event_callback, borrowed. */
void sl_order_add(struct sl_order *o, struct sl_order_source *source, json_t *payload, int retry,
                  sl_stored_fn *stored, void *stored_arg);
/* The connection ends; its events stay. */
void sl_order_forget(struct sl_order *o, struct sl_order_source *source);
size_t sl_order_waiting(const struct sl_order *o);

#endif
