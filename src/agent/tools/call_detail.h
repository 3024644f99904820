/*
 * call_detail: a tool call as text for people.
 *
 *     ✅ **bash** running the tests (1.2 s)
 *     ```
 *     command: make test
 *     ```
 *     ```
 *     12 tests passed
 *     ```
 */
#ifndef AGENT_TOOLS_CALL_DETAIL_H
#define AGENT_TOOLS_CALL_DETAIL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CALL_DETAIL_LABEL 120 /* the longest label, in code points */

struct call_detail {
        const char *name, *label; /* label may be NULL */
        bool is_error;
        int64_t took_ms;         /* -1: not known */
        const json_t *arguments; /* an object; without its "label"; may be NULL */
        const char *output;      /* may be NULL */
};

/* Appends it after a blank line; max: code points of arguments and output together. */
void call_detail_add(struct buf *out, const struct call_detail *d, size_t max);
/* At most `max` code points, with "…" if there are more. */
void call_detail_short(struct buf *out, const char *text, size_t max);

#endif
