/*
 * reach: where and when a person gets a message that they did not just ask for.
 *
 * Addresses are tried in order: the chat where it was asked for, the address the person chose, the
 * direct chats of their accounts (latest first), the operator's. A message moves on to the next one
 * when it certainly did not arrive at the one before.
 */
#ifndef SCHEDULE_REACH_H
#define SCHEDULE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct schedule_conf;

struct reach_address {
        char *adapter, *channel, *thread;
};

struct reach_query {
        int64_t person;                         /* 0: none */
        const char *adapter, *channel, *thread; /* the first address; NULL: the person's own */
        bool asked; /* the person asked for it: neither quiet hours nor cap apply */
        int64_t now_ms;
};

enum reach_verdict { REACH_NOW, REACH_LATER, REACH_NEVER };
struct reach_plan {
        enum reach_verdict verdict;
        int64_t not_before_ms; /* REACH_LATER */
        struct reach_address *items;
        size_t count;
        char why[200]; /* REACH_LATER, REACH_NEVER */
};

/* Inside a store function. */
int reach_plan_make(struct store_tx *tx, const struct schedule_conf *conf,
                    const struct reach_query *q, struct reach_plan *out, struct error *err);
void reach_plan_release(struct reach_plan *p);

#endif
