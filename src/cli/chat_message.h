/*
 * chat_message: sends one message and receives its answer, exactly once.
 *
 * The message has its own id, so it can safely be posted again: after a broken connection, a
 * restart of the daemon, or when the answer takes longer than one request.
 */
#ifndef CLI_CHAT_MESSAGE_H
#define CLI_CHAT_MESSAGE_H

#include "cli/client.h"

struct chat_message;

struct chat_reply {
        const char *status; /* "done", "failed", "cancelled", "skipped", "expired" */
        const char *text;   /* NULL: the agent did not reply */
        const char *reason; /* why there is no answer; may be NULL */
        const char *turn;   /* "trn-7"; NULL: none */
        const char *event;  /* "evt-12" */
        const char *trace;
};

struct chat_text {
        const char *adapter, *channel, *text;
        size_t text_n;
};

/* Called once with a reply (borrowed) or err; the message is freed afterwards. */
typedef void chat_reply_fn(void *arg, const struct chat_reply *reply, const struct error *err);

struct chat_message *chat_message_new(struct client *c, const struct chat_text *text,
                                      chat_reply_fn *done, void *arg);
/* Stops waiting, without a callback. NULL is fine. */
void chat_message_free(struct chat_message *m);

#endif
