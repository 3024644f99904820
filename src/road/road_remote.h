/*
 * road_remote: what dispatch asks of the sessions that run elsewhere, the road's contract with
 * them.
 */
#ifndef ROAD_ROAD_REMOTE_H
#define ROAD_ROAD_REMOTE_H

#include "road/chat_caller.h"
#include "road/inbox/decision.h"

struct remote;

/* What a message without a command means in a chat. */
enum remote_part {
        REMOTE_NONE,     /* no session is shown there */
        REMOTE_STEERS,   /* it steers the session */
        REMOTE_LISTENER, /* a session is shown there, and its writer may not steer it */
};

/*
 * Callers have a sender_id only if the platform vouches for it: on adapters that trust their
 * clients, the operator's terminal alone.
 */
struct road_remote {
        struct remote *remote;
        enum remote_part (*part)(struct remote *r, const struct chat_caller *by);
        /*
         * A chat command, as of road_schedule; "" is a message that steers the session of its
         * chat. NULL: there is no such command.
         */
        struct effect *(*command)(struct remote *r, const struct chat_caller *by,
                                  const struct incoming *in, const char *name, const char *args);
};

#endif
