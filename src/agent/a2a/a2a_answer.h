/*
 * a2a_answer: collects what an agent gives out: artifacts, in pieces and in any order. Without
 * network.
 *
 * The text of an artifact is that of its parts, without anything between them: many agents stream
 * by appending parts. Links and data are shown as Markdown; files are kept for the chat.
 */
#ifndef AGENT_A2A_A2A_ANSWER_H
#define AGENT_A2A_A2A_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define A2A_TEXT_MAX       ((size_t)256 << 10)
#define A2A_ARTIFACTS_MAX  100
#define A2A_FILES_MAX      20
#define A2A_FILE_BYTES_MAX ((size_t)16 << 20) /* of all files, in base64 */

struct a2a_file {
        char *name, *mime; /* mime may be NULL */
        char *base64;
        size_t n;
};

struct a2a_artifact {
        char *id;
        struct buf text;
        struct a2a_file *files;
        size_t file_count;
        bool old; /* it was there before, and is not part of this answer */
};

struct a2a_answer {
        struct a2a_artifact *artifacts; /* in the order in which they began */
        size_t count;
        size_t text_bytes, file_bytes, file_count;
        bool cut; /* something was left out because it is too much */
};

void a2a_answer_init(struct a2a_answer *a);
void a2a_answer_release(struct a2a_answer *a);
/* An artifact, or a message; append: to what it had, else it replaces that. */
void a2a_answer_add(struct a2a_answer *a, const json_t *artifact, bool append);
/* All of them, as the agent has them now. */
void a2a_answer_replace(struct a2a_answer *a, const json_t *artifacts);
/* What is there now has been shown before, unless it changes. */
void a2a_answer_set_old(struct a2a_answer *a);
/* Appends the text of all artifacts. */
void a2a_answer_write(const struct a2a_answer *a, struct buf *out);
/* Calls fn for each file. */
void a2a_answer_each_file(const struct a2a_answer *a,
                          void (*fn)(void *arg, const struct a2a_file *f), void *arg);

/* The text of a message alone; yours to free, NULL: blank. */
char *a2a_message_text(const json_t *message);

#endif
