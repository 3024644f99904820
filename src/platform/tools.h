/*
 * tools: the functions of a platform that agents and the API may call, besides the outbox.
 */
#ifndef PLATFORM_TOOLS_H
#define PLATFORM_TOOLS_H

#include <jansson.h>

#include "platform/platform.h"

/* NULL: the platform has no tool of this name. */
const struct platform_tool *tool_find(const struct platform_ops *ops, const char *name);
/*
 * Calls a tool of an adapter; calls done once, never before this has returned. The arguments (an
 * object, or NULL) are borrowed for the call.
 */
void tool_call(struct adapters *as, const char *adapter, const char *tool, const json_t *arguments,
               platform_tool_fn *done, void *arg);

/* For tools: reports a mistake, later. */
void tool_refuse(struct adapter *a, platform_tool_fn *done, void *arg, const struct error *err);
/*
 * A text argument, or a number written as text into `space`. NULL with an error that names it when
 * it is required and absent.
 */
const char *tool_text(const json_t *arguments, const char *name, bool required, char space[24],
                      struct error *err);

#endif
