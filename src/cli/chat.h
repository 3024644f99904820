/*
 * chat: a conversation with an agent. A terminal gets editing, streaming and a banner
 * (chat_terminal.c); otherwise each input line is answered in turn (chat.c).
 */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "cli/client.h"
#include "cli/launch.h"

struct chat {
        struct args *args;
        struct client *client;
        struct launch *launch; /* NULL when a daemon was running already */
        char *adapter, *channel;
        bool hurry; /* left during an answer */
};

/* Returns an exit code. */
int chat_terminal(struct chat *chat);

#endif
