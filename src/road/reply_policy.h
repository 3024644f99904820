/*
 * reply_policy: how the answer of a turn is posted.
 */
#ifndef ROAD_REPLY_POLICY_H
#define ROAD_REPLY_POLICY_H

#include <stdbool.h>

enum reply_mode {
        MODE_REPLY,  /* the answer refers to the last message */
        MODE_THREAD, /* the answer begins a thread at the last message, in groups with threads */
        /*
         * The agent reads along: it sees the latest messages of the channel, everything that
         * arrives while it works is one further turn, and it may stay silent. The answer refers to
         * no message, and failures are not posted.
         */
        MODE_AMBIENT,
        MODE_SILENT, /* the agent runs, and nothing is posted */
};

/* As written in rules, payloads and turns.reply_policy. */
const char *reply_mode_name(enum reply_mode mode);
/* False: no mode has this name. */
bool reply_mode_parse(const char *name, enum reply_mode *out);
/* Does the sender get an answer in the chat? */
bool reply_mode_answers(enum reply_mode mode);

#endif
