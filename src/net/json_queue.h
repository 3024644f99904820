/*
 * json_queue: parses JSON texts in their order, large ones on a pool thread.
 *
 * While a large text is parsed the queue is busy: its owner stops reading, and what was read
 * already waits here.
 */
#ifndef NET_JSON_QUEUE_H
#define NET_JSON_QUEUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

struct json_queue;

/* Each may free the queue. */
struct json_queue_handlers {
        /* Borrowed; NULL: malformed. By json_read_lenient. */
        void (*parsed)(void *arg, json_t *root);
        /* A large text began, or ended and nothing waits: stop reading, or go on. */
        void (*busy)(void *arg, bool busy);
};

/* max_waiting: bytes that may wait for a large text. The handlers must outlive the queue. */
struct json_queue *json_queue_new(struct loop *l, size_t max_waiting,
                                  const struct json_queue_handlers *handlers, void *arg);
/* No handler follows. NULL is fine. */
void json_queue_free(struct json_queue *q);
/* Copies the text if it must wait. -1: too much waits, and the text is dropped. */
int json_queue_add(struct json_queue *q, const char *text, size_t n);
bool json_queue_busy(const struct json_queue *q);

#endif
