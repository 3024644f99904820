/*
 * saved_files: what a result leaves in the channel's scratch folder, where the agent can read it:
 * long texts, sounds, files. Written on a pool thread; of those of earlier calls the newest stay.
 */
#ifndef AGENT_CUSTOM_SAVED_FILES_H
#define AGENT_CUSTOM_SAVED_FILES_H

#include <jansson.h>

#include "agent/workspace/workspace.h"
#include "net/loop.h"

#define SAVED_FILES_KEPT 40

struct saved_files;
struct saved_files *saved_files_new(const struct workspace_view *v);
void saved_files_free(struct saved_files *f); /* NULL is fine */
/* Takes the bytes. Returns the file's path inside, borrowed. */
const char *saved_files_add(struct saved_files *f, const char *type, char *bytes, size_t n);
/* The text block that names the last one; if it cannot be written, its text says so instead. */
void saved_files_named_by(struct saved_files *f, json_t *block);
size_t saved_files_count(const struct saved_files *f);
/* Calls done(arg) later and frees f after it. */
void saved_files_write(struct saved_files *f, struct loop *l, loop_fn *done, void *arg);

#endif
