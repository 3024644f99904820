/*
 * inbox: commits an event, then acknowledges it.
 */
#ifndef ROAD_INBOX_H
#define ROAD_INBOX_H

#include <stdint.h>

#include "base/error.h"
#include "road/incoming.h"

struct road;

enum inbox_outcome { INBOX_STORED, INBOX_DUPLICATE, INBOX_FAILED };

struct inbox_receipt {
        enum inbox_outcome outcome;
        int64_t event; /* the stored event, also for a duplicate */
        const char *trace;
        struct error error; /* INBOX_FAILED: ERR_LIMIT, ERR_FULL, ERR_IO or ERR_INVALID */
};
typedef void inbox_ack_fn(void *arg, const struct inbox_receipt *receipt);

/* Copies. Calls ack after the commit, never before returning. */
void inbox_receive(struct road *r, const struct incoming *in, inbox_ack_fn *ack, void *arg);

#endif
