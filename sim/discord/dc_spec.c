#include "sim/discord/dc_spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#include "sim/discord/dc_spec.inc"

#define MAX_DEPTH 40

struct spec_check {
        bool lenient;
        char *problem; /* the first, in words */
        char path[120];
        unsigned depth;
};

static json_t *check(struct spec_check *f, size_t node, const json_t *value);

/* ---- operations ---- */

size_t dc_spec_op_count(void)
{
        return COUNT(dc_spec_ops);
}

const struct dc_spec_op *dc_spec_op_at(size_t i)
{
        return &dc_spec_ops[i];
}

const struct dc_spec_op *dc_spec_op(const char *name)
{
        for (size_t i = 0; i < COUNT(dc_spec_ops); i++) {
                if (strcmp(dc_spec_ops[i].name, name) == 0)
                        return &dc_spec_ops[i];
        }
        return NULL;
}

size_t dc_spec_op_number(const struct dc_spec_op *op)
{
        return (size_t)(op - dc_spec_ops);
}

/* ---- errors ---- */

json_t *dc_spec_error(const char *code, const char *message)
{
        return json_pack("{s:[{s:s,s:s}]}", "_errors", "code", code, "message", message);
}

static json_t *wrong(struct spec_check *f, const char *code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static json_t *wrong(struct spec_check *f, const char *code, const char *fmt, ...)
{
        char message[160];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        if (!f->problem[0])
                snprintf(f->problem, DC_SPEC_PROBLEM_SIZE, "%.80s: %.100s",
                         f->path[0] ? f->path : "body", message);
        return dc_spec_error(code, message);
}

/* ---- values ---- */

static json_t *check_integer(struct spec_check *f, const struct dc_spec_node *n,
                             const json_t *value)
{
        long long number = json_integer_value(value);

        if (!json_is_integer(value))
                return wrong(f, "NUMBER_TYPE_COERCE", "Value is not int.");
        for (size_t i = n->first; i < (size_t)n->first + n->count; i++) {
                if (dc_spec_numbers[i] == number)
                        return NULL;
        }
        if (n->count > 0)
                return wrong(f, "BASE_TYPE_CHOICES", "Value %lld is not one of those allowed.",
                             number);
        if (number < n->min)
                return wrong(f, "NUMBER_TYPE_MIN",
                             "int value should be greater than or equal to %lld.",
                             (long long)n->min);
        if (number > n->max)
                return wrong(f, "NUMBER_TYPE_MAX",
                             "int value should be less than or equal to %lld.", (long long)n->max);
        return NULL;
}

static json_t *check_length(struct spec_check *f, const struct dc_spec_node *n, int64_t length)
{
        if (length > n->max)
                return wrong(f, "BASE_TYPE_MAX_LENGTH", "Must be %lld or fewer in length.",
                             (long long)n->max);
        if (length < n->min)
                return wrong(f, "BASE_TYPE_MIN_LENGTH", "Must be %lld or more in length.",
                             (long long)n->min);
        return NULL;
}

static json_t *check_string(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        const char *text = json_string_value(value);

        if (!text)
                return wrong(f, "STRING_TYPE_CONVERT", "Could not interpret the value as string.");
        for (size_t i = n->first; i < (size_t)n->first + n->count; i++) {
                if (strcmp(dc_spec_words[i], text) == 0)
                        return NULL;
        }
        if (n->count > 0)
                return wrong(f, "BASE_TYPE_CHOICES", "Value \"%.40s\" is not one of those allowed.",
                             text);
        return check_length(
                f, n, (int64_t)utf8_length(text, json_string_length(value), UTF8_CODE_POINTS));
}

/* ---- containers ---- */

/* Checks a value one level down; name is a member or an index. */
static json_t *check_inside(struct spec_check *f, const char *name, size_t node,
                            const json_t *value)
{
        size_t n = strlen(f->path);
        json_t *errors;

        snprintf(f->path + n, sizeof(f->path) - n, "%s%.40s", n ? "." : "", name);
        errors = check(f, node, value);
        f->path[n] = '\0';
        return errors;
}

/* Adds errors (taken over, may be NULL) under a name. */
static void collect(json_t **all, const char *name, json_t *errors)
{
        if (!errors)
                return;
        if (!*all)
                *all = json_object();
        json_object_set_new(*all, name, errors);
}

static json_t *check_array(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        json_t *all = NULL;
        const json_t *item;
        char name[24];
        size_t i;

        if (!json_is_array(value))
                return wrong(f, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType");
        if ((all = check_length(f, n, (int64_t)json_array_size(value))))
                return all;
        json_array_foreach(value, i, item) {
                snprintf(name, sizeof(name), "%zu", i);
                collect(&all, name, check_inside(f, name, n->item, item));
        }
        return all;
}

static const struct dc_spec_field *find_field(size_t first, size_t count, const char *name)
{
        for (size_t i = first; i < first + count; i++) {
                if (strcmp(dc_spec_fields[i].name, name) == 0)
                        return &dc_spec_fields[i];
        }
        return NULL;
}

static json_t *unknown(struct spec_check *f, const char *name)
{
        if (f->lenient)
                return NULL;
        return wrong(f, "UNKNOWN_FIELD", "\"%.60s\" is not in the description.", name);
}

static json_t *check_object(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        const struct dc_spec_field *field;
        json_t *all = NULL, *member;
        const char *name;

        if (!json_is_object(value))
                return wrong(f, "MODEL_TYPE_CONVERT",
                             "Only dictionaries may be used in a ModelType");
        json_object_foreach((json_t *)value, name, member) {
                field = find_field(n->first, n->count, name);
                collect(&all, name,
                        field ? check_inside(f, name, field->node, member) : unknown(f, name));
        }
        for (size_t i = n->first; i < (size_t)n->first + n->count; i++) {
                field = &dc_spec_fields[i];
                if (field->required && !json_object_get(value, field->name))
                        collect(&all, field->name,
                                wrong(f, "BASE_TYPE_REQUIRED", "This field is required (%s)",
                                      field->name));
        }
        return all;
}

static json_t *check_map(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        json_t *all = NULL, *member;
        const char *name;

        if (!json_is_object(value))
                return wrong(f, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType");
        json_object_foreach((json_t *)value, name, member)
                collect(&all, name, check_inside(f, name, n->item, member));
        return all;
}

/* How far the value is from this choice; the nearest was most likely meant. */
static unsigned distance(const json_t *errors, unsigned depth)
{
        unsigned sum = 0;
        const char *name;
        json_t *below;

        if (json_object_get(errors, "_errors"))
                return depth == 0 ? 1000 : 1; /* not even of that kind */
        json_object_foreach((json_t *)errors, name, below)
                sum += distance(below, depth + 1) + (strcmp(name, "type") == 0 ? 100 : 0);
        return sum;
}

static json_t *check_choice(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        char best_problem[DC_SPEC_PROBLEM_SIZE] = "", *kept = f->problem;
        json_t *best = NULL;

        for (size_t i = n->first; i < (size_t)n->first + n->count; i++) {
                char problem[DC_SPEC_PROBLEM_SIZE] = "";
                json_t *errors;

                f->problem = problem;
                errors = check(f, dc_spec_links[i], value);
                f->problem = kept;
                if (!errors) {
                        json_decref(best);
                        return NULL;
                }
                if (!best || distance(errors, 0) < distance(best, 0)) {
                        json_decref(best);
                        best = errors;
                        memcpy(best_problem, problem, sizeof(problem));
                } else {
                        json_decref(errors);
                }
        }
        if (!kept[0])
                memcpy(kept, best_problem, sizeof(best_problem));
        return best;
}

static json_t *check_kind(struct spec_check *f, const struct dc_spec_node *n, const json_t *value)
{
        const char *text = json_string_value(value);

        switch ((enum dc_spec_kind)n->kind) {
        case DC_SPEC_BOOLEAN:
                return json_is_boolean(value)
                               ? NULL
                               : wrong(f, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.");
        case DC_SPEC_INTEGER:
                return check_integer(f, n, value);
        case DC_SPEC_NUMBER:
                return json_is_number(value)
                               ? NULL
                               : wrong(f, "NUMBER_TYPE_COERCE", "Value is not float.");
        case DC_SPEC_STRING:
                return check_string(f, n, value);
        case DC_SPEC_SNOWFLAKE:
                if ((json_is_integer(value) && json_integer_value(value) >= 0) ||
                    (text && *text && strlen(text) <= 20 &&
                     strspn(text, "0123456789") == strlen(text)))
                        return NULL;
                return wrong(f, "NUMBER_TYPE_COERCE", "Value \"%.40s\" is not snowflake.",
                             text ? text : "");
        case DC_SPEC_ARRAY:
                return check_array(f, n, value);
        case DC_SPEC_OBJECT:
                return check_object(f, n, value);
        case DC_SPEC_MAP:
                return check_map(f, n, value);
        case DC_SPEC_CHOICE:
                return check_choice(f, n, value);
        case DC_SPEC_ANY:
                break;
        }
        return NULL;
}

static json_t *check(struct spec_check *f, size_t node, const json_t *value)
{
        const struct dc_spec_node *n = &dc_spec_nodes[node];
        json_t *errors;

        if (json_is_null(value)) {
                /* a choice may have a member that takes null */
                if (n->nullable)
                        return NULL;
                if (n->kind != DC_SPEC_CHOICE)
                        return wrong(f, "BASE_TYPE_REQUIRED", "This field is required");
        }
        if (f->depth >= MAX_DEPTH)
                return wrong(f, "BASE_TYPE_BAD_TYPE", "This is nested too deeply.");
        f->depth++;
        errors = check_kind(f, n, value);
        f->depth--;
        return errors;
}

/* ---- requests ---- */

json_t *dc_spec_check_body(const struct dc_spec_op *op, const json_t *body, bool lenient,
                           char problem[DC_SPEC_PROBLEM_SIZE])
{
        struct spec_check f = { .lenient = lenient, .problem = problem };

        problem[0] = '\0';
        if (!body) {
                if (op->body_required && op->body >= 0)
                        return wrong(&f, "BASE_TYPE_REQUIRED", "This field is required");
                return NULL;
        }
        if (op->body < 0)
                return json_object_size(body) > 0 && !lenient
                               ? wrong(&f, "UNKNOWN_FIELD", "the operation takes no body")
                               : NULL;
        return check(&f, (size_t)op->body, body);
}

/* Turns a text of the query into the type of the node, if it looks like one. */
static json_t *convert(const json_t *value, const struct dc_spec_node *n)
{
        static const struct {
                const char *text;
                bool yes;
        } words[] = { { "true", true }, { "false", false }, { "1", true }, { "0", false } };
        const char *text = json_string_value(value);
        char *end;
        long long number;

        for (size_t i = 0; n->kind == DC_SPEC_BOOLEAN && i < COUNT(words); i++) {
                if (strcasecmp(text, words[i].text) == 0)
                        return json_boolean(words[i].yes);
        }
        errno = 0;
        number = strtoll(text, &end, 10);
        if (n->kind == DC_SPEC_INTEGER && *text && !*end && errno == 0)
                return json_integer(number);
        return json_string(text);
}

json_t *dc_spec_check_query(const struct dc_spec_op *op, const json_t *query, bool lenient,
                            char problem[DC_SPEC_PROBLEM_SIZE])
{
        struct spec_check f = { .lenient = lenient, .problem = problem };
        json_t *all = NULL, *value;
        const char *name;

        problem[0] = '\0';
        json_object_foreach((json_t *)query, name, value) {
                const struct dc_spec_field *field = find_field(op->query, op->query_count, name);
                json_t *typed;

                /* a list is one text with commas, or one value */
                if (field && dc_spec_nodes[field->node].kind == DC_SPEC_ARRAY)
                        continue;
                typed = field ? convert(value, &dc_spec_nodes[field->node]) : NULL;
                collect(&all, name,
                        field ? check_inside(&f, name, field->node, typed) : unknown(&f, name));
                json_decref(typed);
        }
        return all;
}
