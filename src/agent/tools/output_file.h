/*
 * output_file: the whole output of a call, in the channel's scratch folder, where the agent can
 * read it. Written on a pool thread while the command runs.
 *
 * At most OUTPUT_FILE_BYTES are kept, and at most OUTPUT_FILES files: the oldest go.
 */
#ifndef AGENT_TOOLS_OUTPUT_FILE_H
#define AGENT_TOOLS_OUTPUT_FILE_H

#include <stddef.h>

#include "agent/workspace/workspace.h"
#include "net/loop.h"

#define OUTPUT_FILE_BYTES (10 << 20)
#define OUTPUT_FILES      20
#define OUTPUT_FILE_NAME  "output-" /* hexadecimal digits and dashes follow */

struct output_file;
struct output_file *output_file_new(struct loop *l, const struct workspace_view *v);
void output_file_add(struct output_file *f, const char *bytes, size_t n);
/* path: inside the sandbox; NULL: it could not be kept, see why. */
typedef void output_file_fn(void *arg, const char *path, const char *why);
/* Calls done once, later, when everything is written; frees f. */
void output_file_finish(struct output_file *f, output_file_fn *done, void *arg);
/* The same without a call. NULL is fine. */
void output_file_drop(struct output_file *f);

#endif
