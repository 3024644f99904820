/*
 * tools_private: for the files of this folder.
 */
#ifndef AGENT_TOOLS_TOOLS_PRIVATE_H
#define AGENT_TOOLS_TOOLS_PRIVATE_H

#include "agent/tools/tool.h"

extern const struct tool bash_tool, edit_tool, job_tool, read_tool, write_tool;

/* A text block; invalid bytes become U+FFFD. */
json_t *tool_text_block(const char *text, size_t n);

#endif
