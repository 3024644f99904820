/*
 * body: reads a JSON body or a query string by a table of fields (field.h).
 *
 * Refuses unknown names, to catch misspelt ones. An absent field (or null in a body) leaves its
 * member unchanged.
 */
#ifndef API_CORE_BODY_H
#define API_CORE_BODY_H

#include <jansson.h>
#include <stddef.h>

#include "api/core/field.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Strings in the caller's struct are borrowed until body_release. */
struct body {
        json_t *root;
        struct arena arena;  /* copies: lists, and strings of queries */
        struct error error;  /* the first mistake */
        struct buf mistakes; /* of details.fields: "path":["what is wrong"] */
        unsigned mistake_count;
};

void body_init(struct body *b);
void body_release(struct body *b);
/* 0, or -1 with error and mistakes set (none for malformed JSON). An empty text counts as {}. */
int body_read(struct body *b, const char *text, size_t n, const struct field *fields, void *out);
/* b->root is parsed already, or NULL with b->error. */
int body_read_tree(struct body *b, const struct field *fields, void *out);
/* Copies the value. Call body_query_done after the last. */
void body_query_add(struct body *b, const struct field *fields, void *out, const char *name,
                    const char *value);
/* 0, or -1 after a mistake. */
int body_query_done(struct body *b, const struct field *fields);
/* Records a mistake beyond the table; returns -1. path "": the whole body. */
int body_mistake(struct body *b, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

#endif
