/*
 * field: tables that describe a JSON body or a query string, for body.h and the documentation.
 *
 *     struct ask { const char *text; bool loud; };
 *     static const struct field ask_fields[] = {
 *             { "text", FIELD_STRING, .required = true, .max = 100, FIELD_AT(ask, text),
 *               .help = "..." },
 *             { "loud", FIELD_BOOL, FIELD_AT(ask, loud), .help = "..." },
 *             FIELD_END,
 *     };
 */
#ifndef API_CORE_FIELD_H
#define API_CORE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum field_type {
        FIELD_NONE,   /* ends a table */
        FIELD_STRING, /* const char *; min and max are bytes (max 0: FIELD_STRING_MAX) */
        FIELD_INT,    /* int64_t; min to max, unless both are 0 */
        FIELD_BOOL,
        FIELD_TIME,   /* int64_t: wall clock in ms, given as number or RFC 3339 text */
        FIELD_ID,     /* int64_t: "evt-42" with the row's prefix, or "42" */
        FIELD_CHOICE, /* const char *: one of `choices` */
        FIELD_OBJECT, /* const json_t *: an object; bodies only */
        FIELD_GROUP,  /* an embedded struct with its own table; bodies only */
        FIELD_LIST,   /* struct field_list: objects of table `group`, at most max; bodies only */
        FIELD_ANY,    /* const json_t *: any value; bodies only */
        FIELD_TEXTS,  /* struct field_list of const char *: at most max, none empty; bodies only */
};

#define FIELD_STRING_MAX 1024
#define FIELD_LIST_MAX   100
#define FIELD_TEXT_MAX   256 /* of an element of FIELD_TEXTS */

struct field_list {
        const void *items; /* structs, or texts */
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
        const char *fallback;       /* JSON text, for the documentation; may be NULL */
        const char *help;           /* one sentence */
        size_t at;                  /* in the owner's struct */
};

#define FIELD_END    \
        {            \
                NULL \
        }

/* FIELD_AT(ask, text): the member `text` of struct ask. */
#define FIELD_AT(type, member) .at = offsetof(struct type, member)

/* A NULL table is empty. */
const struct field *field_find(const struct field *table, const char *name);
/* "dlv-42" or "42" → 42; -1: other text. */
int64_t field_id(const char *prefix, const char *text);
/* A decimal number; 0 or -1. */
int field_int(const char *text, int64_t *out);

/* Appends the member `key`: a field's JSON Schema 2020-12. */
void field_schema(struct buf *b, const char *key, const struct field *f);
/* For an object with exactly these fields. */
void field_table_schema(struct buf *b, const char *key, const struct field *table);

#endif
