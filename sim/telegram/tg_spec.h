/*
 * spec: checks parameters against the Bot API's own description.
 *
 * Parameters arrive as text (query, forms) or as JSON; tg_spec_check converts them to the described
 * types. gen/spec makes the tables from the description.
 */
#ifndef SIM_TELEGRAM_TG_SPEC_H
#define SIM_TELEGRAM_TG_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tg_spec_kind {
        TG_SPEC_STRING,
        TG_SPEC_INTEGER,
        TG_SPEC_FLOAT,
        TG_SPEC_BOOLEAN,
        TG_SPEC_FILE,
        TG_SPEC_OBJECT
};
enum tg_spec_result {
        TG_SPEC_RETURNS_TRUE,
        TG_SPEC_RETURNS_STRING,
        TG_SPEC_RETURNS_INTEGER,
        TG_SPEC_RETURNS_LIST,
        TG_SPEC_RETURNS_OBJECT,
};

struct tg_spec_type {
        uint8_t kind;
        uint8_t depth;   /* of arrays around it */
        uint16_t object; /* row in the table of objects */
};

struct tg_spec_field {
        const char *name;
        const char *only;           /* the one value it may have, or NULL */
        uint16_t types, type_count; /* any of these fits */
        bool required;
};

struct tg_spec_object {
        const char *name;
        uint16_t fields, field_count;
        uint16_t subtypes, subtype_count; /* it is one of these, when there are any */
};

struct tg_spec_method {
        const char *name;
        uint16_t fields, field_count;
        enum tg_spec_result returns;
};

#define TG_SPEC_PROBLEM_SIZE 200

/* Ignores case. NULL: no such method. */
const struct tg_spec_method *tg_spec_method(const char *name);
/* The method's index in the table. */
size_t tg_spec_method_number(const struct tg_spec_method *m);
size_t tg_spec_method_count(void);
const struct tg_spec_method *tg_spec_method_at(size_t i);

/*
 * Converts the members of args to the described types and removes null ones; unknown ones stay.
 * Returns 0, or -1 with the first problem; the rest is converted even then.
 */
int tg_spec_check(const struct tg_spec_method *m, json_t *args, char problem[TG_SPEC_PROBLEM_SIZE]);

bool tg_spec_has_parameter(const struct tg_spec_method *m, const char *name);

/* Kinds of updates: "message", ...; the number of one is -1 if unknown. */
size_t tg_spec_update_kind_count(void);
const char *tg_spec_update_kind(size_t i);
int tg_spec_update_kind_number(const char *name);
bool tg_spec_reaction_allowed(const char *emoji);

#endif
