/*
 * reset_row: the turn of the last /new, for memory that spans conversations (the setting `session`
 * of an agent): of the person, of the chat, and of the person in the chat.
 */
#ifndef ROWS_RESET_ROW_H
#define ROWS_RESET_ROW_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* A chat is a channel, or a thread in it. */
struct reset_scope {
        const char *adapter, *channel, *thread;
        const char *sender; /* NULL: not known */
};

/* The turn of the last /new in each scope; 0: there was none. */
struct reset_turns {
        int64_t person, chat, person_in_chat;
};

int reset_row_put(struct store_tx *tx, const struct reset_scope *scope, int64_t turn,
                  struct error *err);
/* Ignores resets after `turn`: they do not concern a turn that was there before. */
int reset_row_get(struct store_tx *tx, const struct reset_scope *scope, int64_t turn,
                  struct reset_turns *out, struct error *err);

#endif
