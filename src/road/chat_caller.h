/*
 * chat_caller: who asks the schedule or the sessions for something, and in which chat.
 */
#ifndef ROAD_CHAT_CALLER_H
#define ROAD_CHAT_CALLER_H

#include <stdbool.h>

#include "road/incoming.h"

/* Strings are borrowed; NULL: unknown. */
struct chat_caller {
        const char *adapter, *platform, *channel, *thread;
        enum chat_kind chat;
        const char *guild;
        const char *sender_id, *sender_name;
        const char *reply_to; /* id of the message that is answered; NULL: none */
        const char *agent;    /* a tool call of this agent; NULL: the person themselves */
        const char *trace;
        bool is_admin;
        bool everywhere; /* the agent may reach beyond this chat */
};

#endif
