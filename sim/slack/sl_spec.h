/*
 * spec: the methods of Slack's Web API and their arguments, by Slack's own description of 2021 and
 * a supplement (sl_spec.inc, written by gen/spec).
 */
#ifndef SIM_SLACK_SL_SPEC_H
#define SIM_SLACK_SL_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_SPEC_PROBLEM_SIZE 200

enum sl_spec_kind { SL_SPEC_STRING, SL_SPEC_INTEGER, SL_SPEC_BOOLEAN, SL_SPEC_JSON };

struct sl_spec_arg {
        const char *name;
        enum sl_spec_kind kind;
        bool required;
        int64_t max; /* characters or items; 0: not given */
};

struct sl_spec_method {
        const char *name;
        const struct sl_spec_arg *args;
        size_t arg_count;
        bool json; /* also takes JSON */
};

/* NULL: Slack has no such method. */
const struct sl_spec_method *sl_spec_method(const char *name);
size_t sl_spec_count(void);
const struct sl_spec_method *sl_spec_at(size_t i);
/*
 * Copies the arguments to `typed`, converted from the text of a form. Returns Slack's error and
 * describes the first problem, or NULL: a missing argument, an unknown one, a wrong type. Lenient
 * ignores the last two.
 */
const char *sl_spec_read(const struct sl_spec_method *m, const json_t *args, bool lenient,
                         json_t *typed, char problem[SL_SPEC_PROBLEM_SIZE]);

#endif
