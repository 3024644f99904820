/*
 * projection: a file of lines, written from the store, in a folder that agents can write.
 *
 * The last line says how far the file is, so each line is written once, also across a crash: a line
 * that was cut off is removed when the file is opened again. A link, pipe or folder in its place is
 * renamed.
 */
#ifndef AGENT_WORKSPACE_PROJECTION_H
#define AGENT_WORKSPACE_PROJECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct projection {
        int fd;
        int64_t size;
        struct buf last; /* the last line, without its end; "": none */
};

/*
 * Makes the file if it is missing. -1: ERR_FULL or ERR_LIMIT (too many open files) pass, others do
 * not.
 */
int projection_open(struct projection *p, int folder, const char *name, struct error *err);
/* Whole lines; all or nothing. */
int projection_append(struct projection *p, const char *text, size_t n, struct error *err);
void projection_close(struct projection *p);
/* What "log.jsonl" holds becomes "log.1.jsonl", in place of an older one; it is empty then. */
int projection_rotate(int folder, const char *name, struct error *err);
/* Might it work later? */
bool projection_can_retry(const struct error *err);

#endif
