/*
 * ask: one message in, its answer out, exactly once.
 *
 * The message has an id of its own, so it may be posted again without harm: after a broken
 * connection, a restart of the daemon, or when the answer takes longer than one request may last.
 * What is told at the end is read from the daemon's rows.
 */
#ifndef CLI_CHAT_MESSAGE_H
#define CLI_CHAT_MESSAGE_H

#include "cli/client.h"

struct chat_message;

struct chat_reply {
        const char *status; /* "done", "failed", "cancelled", "skipped", "expired" */
        const char *text;   /* NULL: nothing was said */
        const char *reason; /* why there is no answer; NULL: not told */
        const char *turn;   /* "trn-7"; NULL: there was none */
        const char *event;  /* "evt-12" */
        const char *trace;
};

struct chat_text {
        const char *adapter, *channel, *text;
        size_t text_n;
};

/* Once: reply (borrowed) or err; the ask is gone afterwards. */
typedef void chat_reply_fn(void *arg, const struct chat_reply *reply, const struct error *err);

struct chat_message *chat_message_new(struct client *c, const struct chat_text *m,
                                      chat_reply_fn *done, void *arg);
/* Stops waiting; no callback follows. NULL is fine. */
void chat_message_free(struct chat_message *a);

#endif
