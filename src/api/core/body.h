/*
 * body: reads a JSON body or a query string by a table of fields (field.h) into the caller's
 * struct.
 *
 * Names that are not in the table are refused, so that a misspelt one is an answer and not a
 * surprise. A field that is absent (or null in a body) leaves its member as the caller set it.
 */
#ifndef API_CORE_BODY_H
#define API_CORE_BODY_H

#include <jansson.h>
#include <stddef.h>

#include "api/core/field.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Strings in the caller's struct are borrowed from it until body_release. */
struct body {
        json_t *root;
        struct arena arena;  /* copies: lists, and strings of queries */
        struct error error;  /* the first mistake as a sentence */
        struct buf mistakes; /* members of details.fields: "path":["what is wrong"] */
        unsigned mistake_count;
};

void body_init(struct body *b);
void body_release(struct body *b);
/*
 * An empty text counts as {}. 0, or -1 with error and mistakes set (malformed JSON has no mistakes,
 * only a position).
 */
int body_read(struct body *b, const char *text, size_t n, const struct field *fields, void *out);
/* The same for a parsed text: b->root is the tree, or NULL with b->error. */
int body_read_tree(struct body *b, const struct field *fields, void *out);
/* Adds one query parameter, whose value is copied. After the last one call body_query_done. */
void body_query_add(struct body *b, const struct field *fields, void *out, const char *name,
                    const char *value);
/* 0, or -1 when something was wrong or a required parameter is missing. */
int body_query_done(struct body *b, const struct field *fields);
/* Records a mistake the table cannot express; returns -1. path "": the body as a whole. */
int body_mistake(struct body *b, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

#endif
