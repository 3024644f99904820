/*
 * reply_policy: how the answer of a turn is posted.
 */
#ifndef ROAD_REPLY_POLICY_H
#define ROAD_REPLY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"

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

/*
 * How a turn is run and answered; asked when it starts and when it ends, so that a reload counts at
 * once (but for the mode: it stays). When the rule is gone by then it is what was said at the
 * decision.
 */
struct turn_terms {
        bool has_rule; /* set by the terms hook: the rule still exists */
        enum reply_mode mode;
        /* ambient: how many messages of the channel the agent reads, fresh from the platform */
        int64_t recall_messages;
        const char *prompt; /* said to the agent before the conversation; NULL: nothing */
        /*
         * ambient: answers that mean "nothing to say", besides "", [SILENT] and "no action needed"
         */
        const struct setting_list *silence;
        int64_t thread_chars;  /* a longer answer in a group begins a thread; 0: never */
        int64_t part_delay_ms; /* between the messages of one answer */
        /* the message is marked when its answer takes longer than this, groups only; 0: never */
        int64_t slow_ms;
};

#endif
