/*
 * program: a tool that is a program: arguments as JSON on stdin, the result on stdout.
 *
 * What it prints is JSON as custom_result.h describes, or plain text. Lines on stderr are shown as
 * progress. An exit code other than 0 makes it an error.
 */
#ifndef AGENT_CUSTOM_PROGRAM_H
#define AGENT_CUSTOM_PROGRAM_H

#include "agent/custom/manifest.h"

struct custom_tools;
struct custom_source;

/* Takes what the manifest holds. `name` is the folder's name, `path` the folder. */
struct custom_source *program_new(struct custom_tools *all, const char *name, const char *path,
                                  struct manifest *m);

#endif
