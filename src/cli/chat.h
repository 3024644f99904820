/*
 * chat: what the two ways of chatting share. A terminal gets editing, streaming and a banner;
 * anything else one answer per line.
 */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "cli/client.h"
#include "cli/launch.h"

struct chat {
        struct args *args;
        struct client *client;
        struct launch *launch; /* NULL when a daemon was there already */
        char *adapter, *channel;
        bool hurry; /* the person left in the middle of an answer */
};

/* Each returns an exit code. */
int chat_plain(struct chat *chat);
int chat_terminal(struct chat *chat);

#endif
