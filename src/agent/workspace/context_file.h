/*
 * context_file: keeps context.jsonl of each channel, what the built-in agent and the model said to
 * one another, as a session of the coding agent pi. It is written at the end of each turn.
 *
 * The channel's own conversation is in context.jsonl. Others (of threads, of single persons, of
 * further agents) are in contexts/conv-N.jsonl. After /new the next entry has no parent.
 */
#ifndef AGENT_WORKSPACE_CONTEXT_FILE_H
#define AGENT_WORKSPACE_CONTEXT_FILE_H

#include "agent/workspace/projection.h"
#include "bus/bus.h"
#include "net/loop.h"
#include "rows/step_row.h"
#include "store/store.h"

#define CONTEXT_FILE_CONSUMER "workspace-context"

struct context_files;
struct context_files *context_files_new(struct loop *l, struct store *s, struct bus *b,
                                        const char *dir, int64_t max_bytes);
/* Before bus_close. */
void context_files_free(struct context_files *fs);

/* ---- in steps, each on its own thread; also for commands ---- */

/* The steps of a turn, or of what the agent remembers, as they are to be written. */
struct context_steps {
        char *adapter, *channel, *thread;
        int64_t conversation;
        bool is_main, is_whole;
        int64_t previous; /* the step before them that has a line; 0: none */
        bool is_reset;    /* /new was between that and them */
        struct step_row *items;
        size_t count, cap;
};
/* Inside a store function. turn 0: what the conversation remembers (is_whole). */
int context_steps_read(struct store_tx *tx, int64_t conversation, int64_t turn,
                       struct context_steps *out, struct error *err);
void context_steps_release(struct context_steps *s);
/*
 * Adds those that the file does not have. 1: done; 0: the file lacks earlier ones, or is too large:
 * call it again with the whole; -1: see projection_can_retry.
 */
int context_file_write(const char *dir, const struct context_steps *s, int64_t max_bytes,
                       struct error *err);

#endif
