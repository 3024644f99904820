/*
 * tool_output: the output of a command as the result of a call: its tail, and all of it in a file.
 */
#ifndef AGENT_TOOLS_TOOL_OUTPUT_H
#define AGENT_TOOLS_TOOL_OUTPUT_H

#include "agent/tools/output_file.h"
#include "agent/tools/tool.h"
#include "agent/tools/truncation.h"

/* The beginning of a tool's own struct, an allocated block; is the call's data. */
struct tool_output {
        struct tool_call *call;
        /* Ends what produces it; called once, before the block is freed. May be NULL. */
        void (*stop)(struct tool_output *o);
        struct text_cleaner cleaner;
        struct text_tail tail;
        struct buf raw;           /* as long as all of it may be shown */
        struct output_file *file; /* NULL: none yet */
        struct buf live;          /* to show next */
        struct timer *pause;      /* until then */
        /* set by tool_output_end */
        bool is_error;
        char *ending;
        json_t *details;
};

void tool_output_init(struct tool_output *o, struct tool_call *c);
/* Shows it live, too. */
void tool_output_add(struct tool_output *o, const char *bytes, size_t n);
/*
 * Ends the call and frees o, now or when the file is written. ending: follows the output, NULL:
 * nothing. Takes it and the details (an object, or NULL).
 */
void tool_output_end(struct tool_output *o, bool is_error, char *ending, json_t *details);
/* Without a result. */
void tool_output_free(struct tool_output *o);
/* The slot `cancel`: the same. */
void tool_output_cancel(struct tool_call *c);

#endif
