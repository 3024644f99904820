/*
 * body: what a client sent, read by a table of fields.
 *
 * A JSON body and a query string are described by the same rows; reading, refusing and the OpenAPI
 * document come from them. Everything that is not in the table is refused, so that a misspelt name
 * is an answer and not a surprise. Reading fills the caller's struct; what is absent (or null in a
 * body) leaves its member as the caller set it.
 *
 *     struct ask { const char *text; bool loud; };
 *     static const struct field ask_fields[] = {
 *             { "text", FIELD_STRING, .required = true, .max = 100, .at = offsetof(struct ask,
 *             text), .help = "..." }, { "loud", FIELD_BOOL, .at = offsetof(struct ask, loud), .help
 *             = "..." }, FIELD_END };
 */
#ifndef API_CORE_BODY_H
#define API_CORE_BODY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum field_type {
        FIELD_NONE,   /* ends a table */
        FIELD_STRING, /* const char *; min and max are lengths in bytes (max 0: FIELD_STRING_MAX) */
        FIELD_INT,    /* int64_t; min to max, unless both are 0 */
        FIELD_BOOL,   /* bool; true or false and nothing else */
        FIELD_TIME,   /* int64_t: wall clock in milliseconds, as that number or as RFC 3339 text */
        FIELD_ID,     /* int64_t: "evt-42" with the row's prefix, or "42" */
        FIELD_CHOICE, /* const char *: one of `choices` */
        FIELD_OBJECT, /* const json_t *: an object with any members; bodies only */
        FIELD_GROUP,  /* an embedded struct with its own table; bodies only */
        FIELD_LIST,   /* struct field_list: objects of table `group`, at most max; bodies only */
        FIELD_ANY,    /* const json_t *: whatever it is; bodies only */
        /* struct field_list of const char *: at most max texts, none empty; bodies only */
        FIELD_TEXTS,
};

#define FIELD_STRING_MAX 1024
#define FIELD_LIST_MAX   100
#define FIELD_TEXT_MAX   256 /* bytes of one of a list of texts */

struct field_list {
        void *items; /* structs of the row's item_size */
        size_t count;
};

struct field {
        const char *name;
        enum field_type type;
        bool required;
        int64_t min, max;
        const char *const *choices; /* NULL-terminated */
        const char *prefix;         /* FIELD_ID */
        const struct field *group;  /* FIELD_GROUP, FIELD_LIST */
        size_t item_size;           /* FIELD_LIST */
        /* what absence means, as JSON text, for the documentation; may be NULL */
        const char *fallback;
        const char *help; /* one sentence */
        size_t at;        /* offsetof the value in the owner's struct */
};

#define FIELD_END                                                                 \
        {                                                                         \
                NULL, FIELD_NONE, false, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 0 \
        }

/* A body being read. Strings in the caller's struct are borrowed from it until body_release. */
struct body {
        json_t *root;
        struct arena arena;  /* copies: lists, and strings of queries */
        struct error error;  /* the sentence, when reading failed */
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
/*
 * The same for a text that was parsed already: b->root is what it is, or NULL and b->error why not.
 */
int body_read_tree(struct body *b, const struct field *fields, void *out);
/* One query parameter; call it for each, then body_query_done. Strings are copied. */
void body_query_add(struct body *b, const struct field *fields, void *out, const char *name,
                    const char *value);
/* 0, or -1 when something was wrong or a required parameter was not among those added. */
int body_query_done(struct body *b, const struct field *fields);
/* Notes a mistake the table cannot express; returns -1. path "" is the body as a whole. */
int body_mistake(struct body *b, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* "dlv-42" or "42" → 42; -1 when it is not such an id. */
int64_t field_id(const char *prefix, const char *text);
/*
 * Adds {"type": ...} of one field to a JSON text under construction, as JSON Schema 2020-12 wants
 * it. key NULL: as an element.
 */
void field_schema(struct buf *b, const char *key, const struct field *f);
/* Adds the schema of an object with these fields and no others. */
void field_table_schema(struct buf *b, const char *key, const struct field *fields);

#endif
