#include "sim/slack/sl_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* clang-format off */
#include "sim/slack/sl_spec.inc"
/* clang-format on */

static int compare(const void *name, const void *method)
{
        return strcmp(name, ((const struct sl_spec_method *)method)->name);
}

const struct sl_spec_method *sl_spec_method(const char *name)
{
        return bsearch(name, methods, COUNT(methods), sizeof(methods[0]), compare);
}

size_t sl_spec_count(void)
{
        return COUNT(methods);
}

const struct sl_spec_method *sl_spec_at(size_t i)
{
        return &methods[i];
}

static json_t *read_text(const struct sl_spec_arg *a, const char *text)
{
        struct error err = { 0 };
        char *end;
        long long n;

        switch (a->kind) {
        case SL_SPEC_STRING:
                return json_string(text);
        case SL_SPEC_INTEGER:
                n = strtoll(text, &end, 10);
                return *text && !*end ? json_integer(n) : NULL;
        case SL_SPEC_BOOLEAN:
                if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
                        return json_true();
                return strcmp(text, "false") == 0 || strcmp(text, "0") == 0 ? json_false() : NULL;
        case SL_SPEC_JSON:
                return json_read(text, strlen(text), &err);
        }
        return NULL;
}

/* A new value, or NULL: of another type. */
static json_t *read_value(const struct sl_spec_arg *a, json_t *value)
{
        if (json_is_string(value))
                return read_text(a, json_string_value(value));
        if ((a->kind == SL_SPEC_INTEGER && json_is_integer(value)) ||
            (a->kind == SL_SPEC_BOOLEAN && json_is_boolean(value)) ||
            (a->kind == SL_SPEC_JSON && (json_is_array(value) || json_is_object(value))))
                return json_incref(value);
        return NULL;
}

static const struct sl_spec_arg *find_arg(const struct sl_spec_method *m, const char *name)
{
        for (size_t i = 0; i < m->arg_count; i++) {
                if (strcmp(m->args[i].name, name) == 0)
                        return &m->args[i];
        }
        return NULL;
}

static bool is_name(const char *name)
{
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

        return n > 0 && n < 64 && !name[n];
}

const char *sl_spec_read(const struct sl_spec_method *m, const json_t *args, bool lenient,
                         json_t *typed, char problem[SL_SPEC_PROBLEM_SIZE])
{
        const char *name, *error = NULL;
        json_t *value;

        json_object_foreach((json_t *)args, name, value) {
                const struct sl_spec_arg *a = find_arg(m, name);
                json_t *copy = NULL;

                if (json_is_null(value))
                        continue;
                if (!is_name(name)) {
                        snprintf(problem, SL_SPEC_PROBLEM_SIZE, "argument '%.60s'", name);
                        return "invalid_arg_name";
                }
                if (a)
                        copy = read_value(a, value);
                else if (lenient || strcmp(m->name, "api.test") == 0 ||
                         strcmp(name, "team_id") == 0) /* Bolt adds it everywhere */
                        copy = json_incref(value);
                if (copy)
                        json_object_set_new(typed, name, copy);
                if (copy || lenient || error)
                        continue;
                error = "invalid_arguments";
                snprintf(problem, SL_SPEC_PROBLEM_SIZE,
                         a ? "argument '%.60s' has a wrong type" : "no argument '%.60s'", name);
        }
        for (size_t i = 0; i < m->arg_count && !error; i++) {
                if (!m->args[i].required || json_object_get(typed, m->args[i].name))
                        continue;
                snprintf(problem, SL_SPEC_PROBLEM_SIZE, "missing required field: %s",
                         m->args[i].name);
                error = "invalid_arguments";
        }
        return error;
}
