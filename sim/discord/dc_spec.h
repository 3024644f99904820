/*
 * spec: checks requests against Discord's own description.
 *
 * gen/spec makes the tables from the description. Errors are those of the real server: a tree that
 * follows the request, with "_errors" at its leaves.
 */
#ifndef SIM_DISCORD_DC_SPEC_H
#define SIM_DISCORD_DC_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DC_SPEC_NO_MIN INT64_MIN
#define DC_SPEC_NO_MAX INT64_MAX

enum dc_spec_kind {
        DC_SPEC_ANY,
        DC_SPEC_BOOLEAN,
        DC_SPEC_INTEGER, /* count > 0: one of dc_spec_numbers */
        DC_SPEC_NUMBER,
        DC_SPEC_STRING,    /* count > 0: one of dc_spec_words */
        DC_SPEC_SNOWFLAKE, /* digits, as text or as a number */
        DC_SPEC_ARRAY,     /* of item */
        DC_SPEC_OBJECT,    /* of dc_spec_fields */
        DC_SPEC_MAP,       /* any names, values are item */
        DC_SPEC_CHOICE,    /* one of dc_spec_links */
};

struct dc_spec_node {
        uint8_t kind;
        bool nullable;
        uint16_t first, count, item;
        int64_t min, max; /* of the value, the length or the number of items */
};

struct dc_spec_field {
        const char *name;
        uint16_t node;
        bool required;
};

struct dc_spec_op {
        const char *name;   /* "create_message" */
        const char *method; /* "POST" */
        const char *path;   /* "/api/:version/channels/:channel_id/messages" */
        int body;           /* a node; -1: none */
        bool body_required;
        uint16_t query, query_count;
};

size_t dc_spec_op_count(void);
const struct dc_spec_op *dc_spec_op_at(size_t i);
/* NULL when there is none of that name. */
const struct dc_spec_op *dc_spec_op(const char *name);
/* Its index in the table. */
size_t dc_spec_op_number(const struct dc_spec_op *op);

#define DC_SPEC_PROBLEM_SIZE 200

/*
 * Both return NULL, or a tree of errors, yours, and the first problem in words. Lenient: ignores
 * unknown members. The query is an object of texts.
 */
json_t *dc_spec_check_body(const struct dc_spec_op *op, const json_t *body, bool lenient,
                           char problem[DC_SPEC_PROBLEM_SIZE]);
json_t *dc_spec_check_query(const struct dc_spec_op *op, const json_t *query, bool lenient,
                            char problem[DC_SPEC_PROBLEM_SIZE]);
/* A leaf: {"_errors":[{"code":...,"message":...}]}. */
json_t *dc_spec_error(const char *code, const char *message);

#endif
