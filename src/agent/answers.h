/*
 * answers: what agents say beside their call's own answer.
 *
 * A turn may be answered through its reply URL, whose token is an HMAC over the turn and the time
 * it expires: nothing is stored for it, and it outlives a restart. The first answer ends a turn
 * that runs; one that comes later is a message of its own in the same conversation, or discarded,
 * as the agent's settings say. All of it is journaled as turn.reply.
 */
#ifndef AGENT_ANSWERS_H
#define AGENT_ANSWERS_H

#include <sys/queue.h>

#include "agent/agent.h"

struct answers {
        struct agents_outlet outlet; /* store NULL: not set, there are no reply URLs */
        struct bus_listener *listener;
        unsigned char secret[32];
        char *base; /* "https://host"; NULL: not known yet */
        LIST_HEAD(, posting) open;
};

/* Reads or makes the secret of the tokens. */
int answers_open(struct answers *w, const struct agents_outlet *outlet, struct error *err);
/* Whoever still waits is told so. Before the bus closes. */
void answers_release(struct answers *w);
/* Yours to free; NULL when there can be none. */
char *answers_url(const struct answers *w, const char *turn, int64_t seconds);

#endif
