/*
 * tools_private: for the files of this folder.
 */
#ifndef AGENT_TOOLS_TOOLS_PRIVATE_H
#define AGENT_TOOLS_TOOLS_PRIVATE_H

#include "agent/tools/tool.h"

extern const struct tool attach_tool, bash_tool, edit_tool, job_tool, read_tool,
        search_history_tool, write_tool;

/* The platform's tools that are of use in this turn; yours to free. */
struct tool *platform_tools(const struct tool_scope *scope, size_t *count);

/* A text block; invalid bytes become U+FFFD. */
json_t *tool_text_block(const char *text, size_t n);
/* Names the call for the outbox, in every attempt of the turn alike; yours to free. */
char *tool_request_key(const struct tool_call *c);

#endif
