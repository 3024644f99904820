/*
 * tools_private: for the files of this folder.
 */
#ifndef AGENT_TOOLS_TOOLS_PRIVATE_H
#define AGENT_TOOLS_TOOLS_PRIVATE_H

#include "agent/tools/tool.h"
#include "road/outbox/delivery.h"

extern const struct tool attach_tool, bash_tool, edit_tool, job_tool, read_tool,
        search_history_tool, write_tool;

/* The platform's tools that are of use in this turn; yours to free. */
struct tool *platform_tools(const struct tool_scope *scope, size_t *count);

/* The same for those of the schedule. */
struct tool *schedule_tools(const struct tool_scope *scope, size_t *count);

/* A call that the platform or the schedule answers by platform_call_answered. */
struct platform_call;
struct platform_call *platform_call_new(struct tool_call *c);
platform_tool_fn platform_call_answered;
void platform_call_cancel(struct tool_call *c);

/* A text block; invalid bytes become U+FFFD. */
json_t *tool_text_block(const char *text, size_t n);
/* Names the call for the outbox, in every attempt of the turn alike; yours to free. */
char *tool_request_key(const struct tool_call *c);

#endif
