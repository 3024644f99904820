/*
 * chat: a conversation with an agent: in a terminal with editing and streaming (chat_terminal.c),
 * otherwise line by line (chat.c).
 */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "cli/client.h"

struct chat {
        struct args *args;
        struct client *client;
        const char *listen;    /* of a daemon to start; NULL: as configured */
        struct launch *launch; /* NULL: a daemon was running */
        char *adapter, *channel;
        bool hurry; /* left during an answer */
};

/* Returns an exit code. */
int chat_terminal(struct chat *chat);

/*
 * ---- chat_message.c: sends one message and receives its answer, exactly once ----
 *
 * The message has its own id, so it can be posted again after a broken connection or a restart, or
 * when the answer takes longer than one request.
 */

struct chat_message;

struct chat_reply {
        const char *status; /* "done", "failed", "cancelled", "skipped", "expired" */
        const char *text;   /* NULL: the agent did not reply */
        const char *reason; /* may be NULL */
        const char *turn;   /* "trn-7"; NULL: none */
        const char *event;  /* "evt-12" */
        const char *trace;
};

struct chat_text {
        const char *adapter, *channel, *text;
        size_t text_n;
};

/* Called once with a reply (borrowed) or err; then the message is freed. */
typedef void chat_reply_fn(void *arg, const struct chat_reply *reply, const struct error *err);

struct chat_message *chat_message_new(struct client *c, const struct chat_text *text,
                                      chat_reply_fn *done, void *arg);
/* As in replyTo of messages about it; borrowed. */
const char *chat_message_id(const struct chat_message *m);
/* Stops waiting, without a callback. */
void chat_message_free(struct chat_message *m);

/*
 * ---- launch.c: starts the daemon as a child, and stops it ----
 *
 * The child has its own session, so that Ctrl-C does not reach it; it stops when this program ends.
 * Not by net/process: the daemon must inherit our environment, which holds keys, and write its log
 * (DIR/state/daemon.log) to a file that outlives us.
 */

struct launch;

/* listen NULL: as configured. */
struct launch *launch_start(struct client *c, const char *listen, struct error *err);
/* Waits until it answers; -1 when it exits first. */
int launch_wait(struct launch *l, struct error *err);
bool launch_has_exited(const struct launch *l);
int launch_exit_code(const struct launch *l);
/* Its last log lines since the start. */
void launch_log(const struct launch *l, struct buf *out);
/* hurry: without waiting for running turns. NULL is fine. */
void launch_stop(struct launch *l, bool hurry);

#endif
