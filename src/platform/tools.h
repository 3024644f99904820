/* tools: platform functions that agents and the API call directly, not through the outbox. */
#ifndef PLATFORM_TOOLS_H
#define PLATFORM_TOOLS_H

#include <jansson.h>

#include "platform/platform.h"

const struct platform_tool *tool_find(const struct platform_ops *ops, const char *name);
/* Calls done once, later. Refuses arguments that the tool does not know. q is borrowed. */
void tool_call(struct adapters *as, const char *adapter, const char *tool,
               const struct tool_request *q, platform_tool_fn *done, void *arg);

/* For tools: reports a mistake, later. */
void tool_refuse(struct adapter *a, platform_tool_fn *done, void *arg, const struct error *err);
/* A text argument, or a number as text in `space`. NULL with an error: required and absent. */
const char *tool_text(const json_t *arguments, const char *name, bool required, char space[24],
                      struct error *err);

#endif
