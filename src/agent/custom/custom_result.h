/*
 * custom_result: what a tool returned, as the model gets it.
 *
 * Reads the result of an MCP tools/call, which is also what programs and modules print:
 *
 *     {"content": [{"type": "text", "text"}, {"type": "image", "data": base64, "mimeType"},
 *                  audio, resource_link, resource], "structuredContent", "isError", "details"}
 *     {"text": "...", "isError", "details"}
 *
 * Images the models know stay in the message; other bytes are saved as a file in the channel's
 * scratch folder, and the text names it.
 */
#ifndef AGENT_CUSTOM_CUSTOM_RESULT_H
#define AGENT_CUSTOM_CUSTOM_RESULT_H

#include "agent/custom/saved_files.h"
#include "agent/tools/tool.h"

/* Is it an object with one of the members above? */
bool custom_result_is(const json_t *value);
/* files: takes what is to be saved; NULL: nothing is. */
void custom_result_read(const json_t *result, struct saved_files *files, struct tool_result *out);
/* One text block; any bytes. */
void custom_result_text(const char *text, size_t n, bool is_error, struct saved_files *files,
                        struct tool_result *out);

#endif
