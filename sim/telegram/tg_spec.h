/*
 * spec: what the Bot API's own description says about methods and parameters.
 *
 * Parameters arrive as text (query, forms) or as JSON; spec_check turns them into JSON of the
 * described types and says what is wrong with them. The tables are made from the description by
 * gen/methods.
 */
#ifndef SIM_TELEGRAM_TG_SPEC_H
#define SIM_TELEGRAM_TG_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum spec_kind { SPEC_STRING, SPEC_INTEGER, SPEC_FLOAT, SPEC_BOOLEAN, SPEC_FILE, SPEC_OBJECT };
enum spec_result {
        SPEC_RETURNS_TRUE,
        SPEC_RETURNS_STRING,
        SPEC_RETURNS_INTEGER,
        SPEC_RETURNS_LIST,
        SPEC_RETURNS_OBJECT,
};

struct spec_type {
        uint8_t kind;
        uint8_t depth;   /* of arrays around it */
        uint16_t object; /* row in the table of objects */
};

struct spec_field {
        const char *name;
        const char *only;           /* the one value it may have, or NULL */
        uint16_t types, type_count; /* any of these fits */
        bool required;
};

struct spec_object {
        const char *name;
        uint16_t fields, field_count;
        uint16_t subtypes, subtype_count; /* it is one of these, when there are any */
};

struct spec_method {
        const char *name;
        uint16_t fields, field_count;
        enum spec_result returns;
};

#define SPEC_PROBLEM_SIZE 200

/*
 * Case does not matter. NULL when there is no such method. The result's address identifies the
 * method.
 */
const struct spec_method *spec_method(const char *name);
/* The method's place in the table, for arrays beside it; spec_method_count of them. */
size_t spec_method_number(const struct spec_method *m);
size_t spec_method_count(void);
const struct spec_method *spec_method_at(size_t i);

/*
 * Replaces the members of args by values of the described types, removing null ones. Returns 0, or
 * -1 with the first problem in words ("unknown parameter \"x\""); the rest is converted even then.
 * Unknown parameters stay in place.
 */
int spec_check(const struct spec_method *m, json_t *args, char problem[SPEC_PROBLEM_SIZE]);

/* Does the method take a parameter of this name? */
bool spec_has_parameter(const struct spec_method *m, const char *name);

/*
 * "message", "edited_message", ...: the kinds of updates, and the number of one of them (-1: none).
 */
size_t spec_update_kind_count(void);
const char *spec_update_kind(size_t i);
int spec_update_kind_number(const char *name);
/* May a bot react with this emoji? */
bool spec_reaction_allowed(const char *emoji);

#endif
