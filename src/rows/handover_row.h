/*
 * handover_row: chats in which a person has taken over from the agent.
 */
#ifndef ROWS_HANDOVER_ROW_H
#define ROWS_HANDOVER_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "rows/chat_key.h"
#include "store/store.h"

struct handover {
        struct chat_key chat;    /* a channel includes its threads */
        const char *by, *reason; /* for people; may be NULL */
        int64_t since_ms;
        int64_t until_ms; /* 0: until it is resumed */
};

/* Inserts or replaces the handover of its chat. */
int handover_row_put(struct store_tx *tx, const struct handover *h, struct error *err);
/* 1: deleted, 0: there was none, -1. */
int handover_row_delete(struct store_tx *tx, const struct chat_key *chat, struct error *err);
int handover_row_delete_expired(struct store_tx *tx, int64_t now_ms, struct error *err);

/* Those that have not expired. */
struct store_stmt *handover_row_list(struct store_tx *tx, int64_t now_ms);
/* 1: *out is borrowed until the next call, 0: no more, -1. */
int handover_row_next(struct store_stmt *s, struct handover *out, struct error *err);

#endif
