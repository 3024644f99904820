/*
 * form: what Discord's own description says about requests.
 *
 * The tables are made from the description by gen/forms. A request that does not fit gets the
 * errors the real server writes: a tree that follows the request, with "_errors" at its leaves.
 */
#ifndef SIM_DISCORD_DC_SPEC_H
#define SIM_DISCORD_DC_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORM_NO_MIN INT64_MIN
#define FORM_NO_MAX INT64_MAX

enum form_kind {
        FORM_ANY,
        FORM_BOOLEAN,
        FORM_INTEGER, /* count > 0: one of form_numbers */
        FORM_NUMBER,
        FORM_STRING,    /* count > 0: one of form_words */
        FORM_SNOWFLAKE, /* digits, as text or as a number */
        FORM_ARRAY,     /* of item */
        FORM_OBJECT,    /* of form_fields */
        FORM_MAP,       /* any names, values are item */
        FORM_CHOICE,    /* one of form_links */
};

struct form_node {
        uint8_t kind;
        bool nullable;
        uint16_t first, count, item;
        int64_t min, max; /* of the value, the length or the number of items */
};

struct form_field {
        const char *name;
        uint16_t node;
        bool required;
};

struct form_op {
        const char *name;   /* "create_message" */
        const char *method; /* "POST" */
        const char *path;   /* "/api/:version/channels/:channel_id/messages" */
        int body;           /* a node; -1: none */
        bool body_required;
        uint16_t query, query_count;
};

size_t form_op_count(void);
const struct form_op *form_op_at(size_t i);
/* NULL when there is none of that name. */
const struct form_op *form_op(const char *name);
/* Its place in the table. */
size_t form_op_number(const struct form_op *op);

#define FORM_PROBLEM_SIZE 200

/*
 * Both return NULL when all is well, else a tree of errors, yours, and the first problem in words.
 * Lenient: unknown members are overlooked. The query is an object of texts.
 */
json_t *form_check_body(const struct form_op *op, const json_t *body, bool lenient,
                        char problem[FORM_PROBLEM_SIZE]);
json_t *form_check_query(const struct form_op *op, const json_t *query, bool lenient,
                         char problem[FORM_PROBLEM_SIZE]);
/* A leaf: {"_errors":[{"code":...,"message":...}]}. */
json_t *form_error(const char *code, const char *message);

#endif
