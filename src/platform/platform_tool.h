/* platform_tool: functions that agents and the API call directly, not through the outbox. */
#ifndef PLATFORM_PLATFORM_TOOL_H
#define PLATFORM_PLATFORM_TOOL_H

#include <jansson.h>

#include "platform/platform.h"

const struct platform_tool *platform_tool_find(const struct platform_ops *ops, const char *name);
/* Calls done once, later. Refuses arguments that the tool does not know. q is borrowed. */
void platform_tool_call(struct adapters *as, const char *adapter, const char *tool,
                        const struct tool_request *q, platform_tool_fn *done, void *arg);

/* For tools: reports a mistake, later. */
void platform_tool_refuse(struct adapter *a, platform_tool_fn *done, void *arg,
                          const struct error *err);
/* A text argument, or a number as text in `space`. NULL with an error: required and absent. */
const char *platform_tool_text(const json_t *arguments, const char *name, bool required,
                               char space[24], struct error *err);

#endif
