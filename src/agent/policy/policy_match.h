/*
 * policy_match: does a rule speak about a thing that a call does? For src/agent/policy alone.
 *
 * A rule that allows must match exactly; one that asks or denies also matches what merely looks
 * like it, so that it is not dodged by another way of writing.
 */
#ifndef AGENT_POLICY_POLICY_MATCH_H
#define AGENT_POLICY_POLICY_MATCH_H

#include "agent/policy/policy.h"
#include "agent/policy/shell_parts.h"

/* A part of a shell command, a file, or a whole call. */
struct policy_thing {
        const struct shell_part *part; /* NULL: no command */
        char *path;                    /* absolute and without ".."; NULL: none, or not known */
        bool path_unknown;             /* there is one, only known when it runs */
        bool harmless;                 /* /dev/null and the like: not judged */
        bool unclear;                  /* a command that cannot be taken apart */
        char **hosts;                  /* in its URLs */
        size_t host_count;
        char **words; /* arguments as paths, for rules that ask or deny */
        size_t word_count;
};

void policy_thing_of_part(struct policy_thing *out, const struct policy_question *q,
                          const struct shell_parts *parts, const struct shell_part *part);
/* Reads path, file, host and URLs of the arguments; of a custom tool, every text of them. */
void policy_thing_of_call(struct policy_thing *out, const struct policy_question *q);
/* The same, of this file. */
void policy_thing_of_file(struct policy_thing *out, const struct policy_question *q,
                          const char *path);
void policy_thing_release(struct policy_thing *t);

/* Tool, adapter, channel, and whether untrusted text was seen. */
bool policy_match_scope(const struct policy_rule *r, const struct policy_question *q,
                        enum policy_decision decide);
bool policy_match(const struct policy_rule *r, const struct policy_question *q,
                  const struct policy_thing *thing, enum policy_decision decide);

/* "*" stays in a folder, "**" does not. */
bool policy_match_path(const char *glob, const char *path);
/* Absolute, without "." and ".."; yours to free. */
char *policy_path(const char *cwd, const char *path);

/* Does a rule that matches do so whatever the words turn out to be? */
bool policy_match_is_sure(const struct policy_rule *r, const struct policy_thing *thing);

#endif
