/*
 * context_entry: lines of context.jsonl, the coding agent pi's session format (version 3).
 *
 *     {"type": "session", "version": 3, "id": UUID, "timestamp": ISO, "cwd": "/workspace/..."}
 *     {"type": "message", "id": 8 hex digits, "parentId", "timestamp", "message": {...}}
 *     {"type": "compaction", ..., "summary", "firstKeptEntryId", "tokensBefore"}
 *
 * Ids of ours are numbers of steps. Sessions of versions 1 to 3 are read; what has no meaning here
 * is skipped.
 */
#ifndef AGENT_WORKSPACE_CONTEXT_ENTRY_H
#define AGENT_WORKSPACE_CONTEXT_ENTRY_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "rows/step_row.h"

#define CONTEXT_ID_SIZE 20

/* "0000002a"; "": 0. */
char *context_entry_id(int64_t step, char out[CONTEXT_ID_SIZE]);

/* key: makes the id, the same for equal ones. */
void context_write_header(struct buf *out, const char *key, const char *folder, int64_t time_ms);
/* parent 0: none. 1; 0: steps of this kind have no line. */
int context_write_step(struct buf *out, const struct step_row *step, int64_t parent);
/* The step that a line is of; 0: none. */
int64_t context_line_step(const char *line, size_t n);

/*
 * The messages that a session ends with, as a model would see them: from the last entry back to the
 * root, or to the last summary, which comes first as a message of a user. Messages have the form of
 * llm/model.h; each call of a tool is followed by its result. *skipped: lines that are no entries.
 * NULL: ERR_INVALID, it is no session.
 */
json_t *context_read(const char *text, size_t n, size_t *skipped, struct error *err);

#endif
