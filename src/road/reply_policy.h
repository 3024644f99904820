/*
 * reply_policy: how a turn runs and posts its answer, fixed at the decision and stored with the
 * turn.
 */
#ifndef ROAD_REPLY_POLICY_H
#define ROAD_REPLY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

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

/* Strings are borrowed. Zero is a plain reply. */
struct reply_policy {
        enum reply_mode mode;
        const char *prompt; /* goes before the conversation; NULL: none */
        /* ambient: how many messages of the channel the agent sees, fetched from the platform */
        int64_t channel_messages;
        /* ambient: answers that mean "no reply", besides "", [SILENT] and "no action needed" */
        const char *const *no_reply;
        size_t no_reply_count;
        int64_t thread_chars;  /* a longer answer in a group begins a thread; 0: never */
        int64_t part_delay_ms; /* between the messages of one answer */
        /* put a progress reaction on the message of an answer that takes longer, in groups */
        int64_t slow_ms; /* 0: never */
};

/* A copy whose strings live in the arena. */
void reply_policy_copy(struct reply_policy *to, const struct reply_policy *from, struct arena *a);
/* As JSON, yours to free; NULL for a plain reply. */
char *reply_policy_write(const struct reply_policy *p);
/* Back from JSON; NULL gives a plain reply. */
void reply_policy_read(struct reply_policy *p, const char *json, struct arena *a);

#endif
