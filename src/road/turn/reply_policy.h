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
        MODE_REPLY,   /* refers to the last message */
        MODE_THREAD,  /* starts a thread there, in groups with threads */
        MODE_AMBIENT, /* the agent may stay silent; failures are not posted */
        MODE_SILENT,  /* nothing is posted */
};

const char *reply_mode_name(enum reply_mode mode);
bool reply_mode_parse(const char *name, enum reply_mode *out);
bool reply_mode_answers(enum reply_mode mode);

/* Strings are borrowed. Zero is a plain reply. */
struct reply_policy {
        enum reply_mode mode;
        const char *prompt;          /* precedes the conversation; NULL: none */
        int64_t channel_messages;    /* ambient: length of the channel history */
        const char *const *no_reply; /* phrases that mean "no reply", see no_reply.h */
        size_t no_reply_count;
        int64_t no_reply_chars; /* longer answers are none of them; 0: the default */
        int64_t thread_chars;   /* longer answers in groups start a thread; 0: never */
        int64_t part_delay_ms;  /* between messages of one answer */
        int64_t slow_ms;        /* in groups, until the progress reaction; 0: never */
};

/* Copies strings into the arena. */
void reply_policy_copy(struct reply_policy *to, const struct reply_policy *from, struct arena *a);
/* JSON, yours to free; NULL for a plain reply. */
char *reply_policy_write(const struct reply_policy *p);
/* NULL gives a plain reply. */
void reply_policy_read(struct reply_policy *p, const char *json, struct arena *a);

#endif
