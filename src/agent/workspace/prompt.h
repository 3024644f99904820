/*
 * prompt: the system prompt of the built-in agent, in parts.
 *
 * It is built for each turn from files and settings and has no clock in it (the time is in each
 * message), so it is the same text as long as nothing of it changed, and services cache it. What
 * changes most often comes last.
 */
#ifndef AGENT_WORKSPACE_PROMPT_H
#define AGENT_WORKSPACE_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sandbox/sandbox.h"
#include "agent/workspace/skills.h"
#include "agent/workspace/workspace.h"
#include "road/incoming.h"

#define PROMPT_MEMORY_MAX 16384 /* bytes of a MEMORY.md; the rest is left out with a notice */
#define PROMPT_PEOPLE_MAX 40

enum prompt_part {
        PROMPT_WHO,
        PROMPT_INSTRUCTIONS, /* of the operator, and of the rule */
        PROMPT_CHAT,         /* how messages look, and answers should */
        PROMPT_SANDBOX,
        PROMPT_WORKSPACE,
        PROMPT_EVENTS, /* how it wakes itself later */
        PROMPT_TOOLS,
        PROMPT_CUSTOM_TOOLS,
        PROMPT_TRUST,
        PROMPT_CHANNEL, /* where it is, and people */
        PROMPT_SKILLS,
        PROMPT_MEMORY,
        PROMPT_PARTS
};
const char *prompt_part_name(enum prompt_part part); /* "custom tools" */

struct prompt_person {
        const char *username, *name; /* one may be NULL */
        bool is_bot;
};

/* Borrowed. NULL, 0: there is none, or it is not known. */
struct prompt_source {
        const char *agent;
        const char *system;                 /* the agent's setting */
        const char *rule_prompt;            /* of the rule that chose the agent */
        const char *const *tools;           /* names, NULL-terminated */
        const char *custom_tools;           /* a text that lists them */
        const struct sandbox_conf *sandbox; /* NULL: no commands can be run */
        const char *platform, *adapter, *channel, *channel_name, *thread;
        const char *timezone; /* of people, "Europe/Berlin" */
        enum chat_kind chat;
        const struct prompt_person *people;
        size_t people_count;
        const struct workspace_view *view; /* memory and skills; NULL: no workspace */
        struct skill_cache *skill_cache;
};

struct prompt {
        char *text;
        size_t n;
        size_t bytes[PROMPT_PARTS]; /* they follow one another */
        struct buf problems;        /* with skills or memory, a line each, for the operator */
};

void prompt_build(struct prompt *out, const struct prompt_source *from);
void prompt_release(struct prompt *p);
/* A rough number, as for messages (model_estimate). */
int64_t prompt_tokens(size_t bytes);

/*
 * Who wrote in this channel lately, by username: senders of the last messages the journal has.
 * Inside a store function. How many, at most max, or -1; free them with prompt_people_release.
 */
int prompt_people_read(struct store_tx *tx, const char *adapter, const char *channel,
                       struct prompt_person *out, size_t max, struct error *err);
void prompt_people_release(struct prompt_person *people, size_t count);

#endif
