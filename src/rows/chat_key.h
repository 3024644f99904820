/*
 * chat_key: names a chat, which is a channel or a thread in it.
 */
#ifndef ROWS_CHAT_KEY_H
#define ROWS_CHAT_KEY_H

/* Borrowed strings. */
struct chat_key {
        const char *adapter, *channel;
        const char *thread; /* NULL: the whole channel */
};

/* One text for maps and rows, yours to free. NULL counts as "". */
char *chat_key_text(const struct chat_key *key);

#endif
