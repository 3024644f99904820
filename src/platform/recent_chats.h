/*
 * recent_chats: channels and threads of recent conversations, from the store, page by page.
 */
#ifndef PLATFORM_RECENT_CHATS_H
#define PLATFORM_RECENT_CHATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct adapter;
struct recent_chats;

#define RECENT_CHAT_SIZE 64

struct recent_chat {
        char channel[RECENT_CHAT_SIZE];
        char thread[RECENT_CHAT_SIZE]; /* "": none */
};

/* The array is borrowed. before: for the next page; 0: this was the last. */
typedef void recent_chats_fn(void *arg, const struct recent_chat *chats, size_t count,
                             int64_t before, const struct error *err);

/* Reads one page; done follows. before: INT64_MAX for the first. The adapter has a store. */
struct recent_chats *recent_chats_read(const struct adapter *a, int64_t before,
                                       recent_chats_fn *done, void *arg);
/* done does not follow. Invalid once it has been called. NULL is fine. */
void recent_chats_drop(struct recent_chats *p);

#endif
