/*
 * truncation: what of a long text the model is shown.
 *
 * At most TOOL_LINES_MAX lines or bytes_max bytes (0: TOOL_BYTES_MAX), whole lines, from the head
 * or the tail, and single lines are cut at LINE_MAX_BYTES. Terminal escapes and NULs go before. A
 * result is cut once, when it is made: a later cut would throw the service's cache away.
 */
#ifndef AGENT_TOOLS_TRUNCATION_H
#define AGENT_TOOLS_TRUNCATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/tools/tool.h"
#include "base/buf.h"

#define LINE_MAX_BYTES (2 << 10)

/* ---- foreign bytes as text ---- */

/* Zeroed: ready for use. Takes pieces, however they are cut. */
struct text_cleaner {
        int escape; /* inside a terminal escape */
        bool cr;    /* the last byte was a carriage return */
        char part[4];
        size_t part_n; /* the beginning of a character */
        int64_t bytes, nuls, invalid;
};
/*
 * Appends valid UTF-8 without terminal escapes, NULs and other controls than tab and newline. A
 * carriage return ends a line, alone or before a newline.
 */
void text_cleaner_add(struct text_cleaner *t, const char *bytes, size_t n, struct buf *out);
void text_cleaner_end(struct text_cleaner *t, struct buf *out);
/* Was that not text at all? */
bool text_cleaner_is_binary(const struct text_cleaner *t);

/* ---- head and tail ---- */

struct truncation {
        const char *by; /* "lines" or "bytes"; NULL: all of it is there */
        int64_t total_lines, total_bytes;
        int64_t first_line, output_lines; /* which lines are there; first_line counts from 1 */
        size_t output_bytes;
        int64_t cut_lines; /* cut at LINE_MAX_BYTES */
        bool first_line_partial;
};

/* Keeps the lines from `first` on, at most `limit`. */
struct text_head {
        int64_t first, limit; /* limit 0: none */
        size_t bytes_max;
        struct buf text;
        struct truncation result;
        int64_t line;      /* the current one, from 1 */
        size_t line_bytes; /* of it so far */
        size_t line_at;    /* where it begins in text */
        bool full;
};
void text_head_init(struct text_head *h, int64_t first, int64_t limit, size_t bytes_max);
void text_head_release(struct text_head *h);
void text_head_add(struct text_head *h, const char *text, size_t n);
void text_head_end(struct text_head *h);

/* Keeps the last lines. */
struct text_tail {
        size_t bytes_max;
        struct buf text; /* the end of it, at first more than will be shown */
        struct truncation result;
        bool dropped; /* text begins within a line, perhaps */
        size_t line_bytes, longest;
};
void text_tail_init(struct text_tail *t, size_t bytes_max);
void text_tail_release(struct text_tail *t);
void text_tail_add(struct text_tail *t, const char *text, size_t n);
/* Would the end show less than everything? */
bool text_tail_is_cut(const struct text_tail *t);
void text_tail_end(struct text_tail *t);

/* "details.truncation", as mom writes it, without the content. */
json_t *truncation_json(const struct truncation *t);

#endif
