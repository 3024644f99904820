/*
 * reach: where and when a person gets a message that they did not just ask for.
 *
 * Addresses are tried in order: the chat where it was asked for, the address the person chose, the
 * direct chats of their accounts (latest first). A message moves on to the next one when it
 * certainly did not arrive at the one before. What names no person is for the operator.
 */
#ifndef SCHEDULE_REACH_H
#define SCHEDULE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rows/person_row.h"
#include "store/store.h"

struct schedule_conf;

struct reach_address {
        char *adapter, *channel, *thread;
        /* the channel is a person's id, for ADAPTER_DIRECT and ADAPTER_OPENS_DIRECT */
        bool by_user;
};

struct reach_query {
        int64_t person;                         /* 0: none */
        const char *adapter, *channel, *thread; /* the first address; NULL: the person's own */
        bool chat_last;                         /* that chat is the last address, not the first */
        bool asked; /* the person asked for it: quiet hours do not apply */
        int64_t now_ms;
        /* who may be the operator, "telegram:42" or "per-3"; only read without a person and a chat
         */
        char **admins;
        size_t admin_count;
};

enum reach_verdict { REACH_NOW, REACH_LATER, REACH_NEVER };
struct reach_plan {
        enum reach_verdict verdict;
        int64_t not_before_ms; /* REACH_LATER */
        int64_t person;        /* for whom it is, merges followed; 0: a chat */
        struct reach_address *items;
        size_t count;
        char why[200]; /* REACH_LATER, REACH_NEVER */
};

/* All below: inside a store function. */

/* Without a person and a chat it is for the operator: conf->operator, or the first admin seen. */
int reach_plan_make(struct store_tx *tx, const struct schedule_conf *conf,
                    const struct reach_query *q, struct reach_plan *out, struct error *err);
void reach_plan_release(struct reach_plan *p);
/* Counts an unasked message. 1; 0: today's are used up, and `why` says so; -1. */
int reach_count(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                int64_t now_ms, char why[200], struct error *err);

/*
 * "per-3", "telegram:42", or a name that only one person has. 1: *person, merges followed; 0 with
 * ERR_MISSING or ERR_CONFLICT, which name candidates; -1.
 */
int reach_find_person(struct store_tx *tx, const char *text, int64_t *person, struct error *err);
/* The zone of a person (0: of everybody): a name, yours to free; NULL: the system's. 0 or -1. */
int reach_zone_name(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                    char **out, struct error *err);
/* Are these values for a person? -1: ERR_INVALID that names the field ("quietHours: ..."). */
int reach_check(const struct person_reach *r, struct error *err);

#endif
