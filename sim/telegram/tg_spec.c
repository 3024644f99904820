#include "sim/telegram/tg_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"

#include "sim/telegram/tg_spec.inc"

/* ---- methods, updates, reactions ---- */

static int by_name(const void *key, const void *row)
{
        return strcasecmp(key, ((const struct tg_spec_method *)row)->name);
}

const struct tg_spec_method *tg_spec_method(const char *name)
{
        return bsearch(name, tg_spec_methods, COUNT(tg_spec_methods), sizeof(tg_spec_methods[0]),
                       by_name);
}

size_t tg_spec_method_number(const struct tg_spec_method *m)
{
        return (size_t)(m - tg_spec_methods);
}

size_t tg_spec_method_count(void)
{
        return COUNT(tg_spec_methods);
}

const struct tg_spec_method *tg_spec_method_at(size_t i)
{
        return &tg_spec_methods[i];
}

size_t tg_spec_update_kind_count(void)
{
        return COUNT(tg_spec_update_kinds);
}

const char *tg_spec_update_kind(size_t i)
{
        return tg_spec_update_kinds[i];
}

int tg_spec_update_kind_number(const char *name)
{
        for (size_t i = 0; i < COUNT(tg_spec_update_kinds); i++) {
                if (strcmp(tg_spec_update_kinds[i], name) == 0)
                        return (int)i;
        }
        return -1;
}

bool tg_spec_reaction_allowed(const char *emoji)
{
        char bare[40];
        size_t n = 0;

        /* clients may write the variation selector, which the list lacks */
        while (*emoji && n + 1 < sizeof(bare)) {
                if (strncmp(emoji, "\xef\xb8\x8f", 3) == 0)
                        emoji += 3;
                else
                        bare[n++] = *emoji++;
        }
        bare[n] = '\0';
        for (size_t i = 0; i < COUNT(tg_spec_reactions); i++) {
                if (strcmp(tg_spec_reactions[i], bare) == 0)
                        return true;
        }
        return false;
}

/* ---- values ---- */

/* The described types of a value, inside `depth` arrays. */
struct wanted {
        const struct tg_spec_type *types;
        size_t count;
        unsigned depth;
        const char *only;
};

/* One attempt to convert a value. */
struct fitting {
        char problem[TG_SPEC_PROBLEM_SIZE]; /* "": none */
        bool lenient;                       /* ignore unknown fields */
};

static json_t *fit(json_t *value, const struct wanted *want, struct fitting *f);

static json_t *fit_integer(json_t *value)
{
        const char *text = json_string_value(value);
        json_int_t n;
        char *end;

        if (json_is_integer(value))
                return json_incref(value);
        if (!text)
                return NULL;
        errno = 0;
        n = strtoll(text, &end, 10);
        return end != text && *end == '\0' && errno == 0 ? json_integer(n) : NULL;
}

static json_t *fit_float(json_t *value)
{
        const char *text = json_string_value(value);
        char *end;
        double x;

        if (json_is_number(value))
                return json_incref(value);
        if (!text)
                return NULL;
        x = strtod(text, &end);
        return end != text && *end == '\0' ? json_real(x) : NULL;
}

static json_t *fit_boolean(json_t *value)
{
        static const struct {
                const char *text;
                bool yes;
        } words[] = {
                { "true", true }, { "false", false }, { "1", true },
                { "0", false },   { "yes", true },    { "no", false },
        };
        const char *text = json_string_value(value);

        if (json_is_boolean(value))
                return json_incref(value);
        for (size_t i = 0; text && i < COUNT(words); i++) {
                if (strcasecmp(text, words[i].text) == 0)
                        return json_boolean(words[i].yes);
        }
        return NULL;
}

static const struct tg_spec_field *find_field(size_t first, size_t count, const char *name)
{
        for (size_t i = first; i < first + count; i++) {
                if (strcmp(tg_spec_fields[i].name, name) == 0)
                        return &tg_spec_fields[i];
        }
        return NULL;
}

static struct wanted wanted_of(const struct tg_spec_field *f)
{
        return (struct wanted){ tg_spec_types + f->types, f->type_count, 0, f->only };
}

/* False: unknown, or of a wrong type. */
static bool fit_member(json_t *out, const struct tg_spec_object *o, const char *key, json_t *member,
                       struct fitting *f)
{
        const struct tg_spec_field *field = find_field(o->fields, o->field_count, key);
        struct wanted want;
        json_t *fitted;

        if (!field) {
                snprintf(f->problem, sizeof(f->problem), "unknown field \"%.60s\" in %s", key,
                         o->name);
                return f->lenient;
        }
        want = wanted_of(field);
        fitted = fit(member, &want, f);
        if (!fitted) {
                if (!f->problem[0])
                        snprintf(f->problem, sizeof(f->problem),
                                 "field \"%s\" of %s has a wrong type", key, o->name);
                return false;
        }
        json_object_set_new(out, key, fitted);
        return true;
}

static json_t *fit_members(json_t *value, const struct tg_spec_object *o, struct fitting *f)
{
        json_t *out = json_object(), *member;
        const char *key;

        json_object_foreach(value, key, member) {
                if (!json_is_null(member) && !fit_member(out, o, key, member, f))
                        goto bad;
        }
        for (size_t i = o->fields; i < (size_t)o->fields + o->field_count; i++) {
                if (tg_spec_fields[i].required && !json_object_get(out, tg_spec_fields[i].name)) {
                        snprintf(f->problem, sizeof(f->problem), "%s has no field \"%s\"", o->name,
                                 tg_spec_fields[i].name);
                        goto bad;
                }
        }
        return out;
bad:
        json_decref(out);
        return NULL;
}

static json_t *fit_object(json_t *value, const struct tg_spec_object *o, struct fitting *f)
{
        struct fitting best = { "", f->lenient };

        if (!json_is_object(value))
                return NULL;
        if (o->subtype_count == 0)
                return fit_members(value, o, f);
        for (size_t i = o->subtypes; i < (size_t)o->subtypes + o->subtype_count; i++) {
                struct fitting one = { "", f->lenient };
                json_t *fitted = fit_object(value, &tg_spec_objects[tg_spec_subtypes[i]], &one);

                if (fitted)
                        return fitted;
                /* of this kind, but something else is wrong */
                if (!strstr(one.problem, "\"type\""))
                        best = one;
        }
        *f = best;
        return NULL;
}

static json_t *fit_one(json_t *value, const struct tg_spec_type *type, const char *only,
                       struct fitting *f)
{
        switch (type->kind) {
        case TG_SPEC_INTEGER:
                return fit_integer(value);
        case TG_SPEC_FLOAT:
                return fit_float(value);
        case TG_SPEC_BOOLEAN:
                return fit_boolean(value);
        case TG_SPEC_OBJECT:
                return fit_object(value, &tg_spec_objects[type->object], f);
        default: /* a string, or a file: an id, a URL or attach://part */
                if (!json_is_string(value) || (only && strcmp(json_string_value(value), only) != 0))
                        return NULL;
                return json_incref(value);
        }
}

static json_t *fit_array(json_t *value, const struct wanted *want, struct fitting *f)
{
        struct wanted inner = { want->types, want->count, want->depth + 1, NULL };
        json_t *out = json_array(), *element;
        size_t i;

        json_array_foreach(value, i, element) {
                json_t *fitted = fit(element, &inner, f);

                if (!fitted) {
                        json_decref(out);
                        return NULL;
                }
                json_array_append_new(out, fitted);
        }
        return out;
}

/* Objects and arrays may come as text. */
static json_t *fit_text(json_t *value, const struct wanted *want, struct fitting *f)
{
        const char *text = json_string_value(value);
        bool structured = false;
        json_t *fitted = NULL, *parsed;

        for (size_t i = 0; i < want->count; i++)
                structured = structured || want->types[i].depth > want->depth ||
                             want->types[i].kind == TG_SPEC_OBJECT;
        if (!structured || !strchr("{[", text[strspn(text, " \t\r\n")]))
                return NULL;
        parsed = json_read(text, json_string_length(value), NULL);
        if (parsed)
                fitted = fit(parsed, want, f);
        json_decref(parsed);
        return fitted;
}

/* An object type that has at least one of the value's members was most likely meant. */
static bool resembles(json_t *value, const struct tg_spec_type *type)
{
        const struct tg_spec_object *o = &tg_spec_objects[type->object];
        const char *key;
        json_t *member;

        if (type->kind != TG_SPEC_OBJECT || o->subtype_count > 0)
                return type->kind == TG_SPEC_OBJECT;
        json_object_foreach(value, key, member) {
                if (find_field(o->fields, o->field_count, key))
                        return true;
        }
        return false;
}

/* A new reference, or NULL, possibly with a problem. */
static json_t *fit(json_t *value, const struct wanted *want, struct fitting *f)
{
        bool array = false;

        for (size_t i = 0; i < want->count; i++) {
                struct fitting one = { "", f->lenient };
                json_t *fitted = NULL;

                if (want->types[i].depth > want->depth)
                        array = true;
                else if ((fitted = fit_one(value, &want->types[i], want->only, &one)))
                        return fitted;
                else if (want->count == 1 || resembles(value, &want->types[i]))
                        *f = one;
        }
        if (array && json_is_array(value))
                return fit_array(value, want, f);
        return want->depth == 0 && json_is_string(value) ? fit_text(value, want, f) : NULL;
}

/* ---- parameters ---- */

static void describe(const struct tg_spec_field *f, char *out, size_t room)
{
        size_t n = 0;
        static const char *const names[] = { "String", "Integer", "Float", "Boolean", "InputFile" };

        out[0] = '\0';
        for (size_t i = f->types; i < (size_t)f->types + f->type_count && n < room; i++) {
                const struct tg_spec_type *t = &tg_spec_types[i];

                n += (size_t)snprintf(out + n, room - n, "%s%s%s", n ? " or " : "",
                                      t->depth ? "Array of " : "",
                                      t->kind == TG_SPEC_OBJECT ? tg_spec_objects[t->object].name
                                                                : names[t->kind]);
        }
}

/* Keeps the first problem. */
static void set_problem(char *problem, const char *text)
{
        if (!problem[0])
                snprintf(problem, TG_SPEC_PROBLEM_SIZE, "%.*s", TG_SPEC_PROBLEM_SIZE - 1, text);
}

static void check_one(const struct tg_spec_method *m, json_t *args, const char *name, json_t *value,
                      char *problem)
{
        const struct tg_spec_field *field = find_field(m->fields, m->field_count, name);
        struct fitting strict = { "", false }, lenient = { "", true };
        char text[2 * TG_SPEC_PROBLEM_SIZE], kinds[80];
        struct wanted want;
        json_t *fitted;

        if (!field) {
                snprintf(text, sizeof(text), "unknown parameter \"%.100s\"", name);
                set_problem(problem, text);
                return;
        }
        want = wanted_of(field);
        fitted = fit(value, &want, &strict);
        if (!fitted) {
                describe(field, kinds, sizeof(kinds));
                snprintf(text, sizeof(text), "can't parse parameter \"%.40s\": %s%s", name,
                         strict.problem[0] ? strict.problem : "expected ",
                         strict.problem[0] ? "" : kinds);
                set_problem(problem, text);
                fitted = fit(value, &want, &lenient);
        }
        if (fitted)
                json_object_set_new(args, name, fitted);
}

static void check_required(const struct tg_spec_method *m, const json_t *args, char *problem)
{
        for (size_t i = m->fields; i < (size_t)m->fields + m->field_count; i++) {
                const struct tg_spec_field *f = &tg_spec_fields[i];
                char text[TG_SPEC_PROBLEM_SIZE];

                if (!f->required || json_object_get(args, f->name))
                        continue;
                /* the real server's texts where they are known */
                if (strcmp(f->name, "chat_id") == 0)
                        snprintf(text, sizeof(text), "chat_id is empty");
                else if (strcmp(f->name, "text") == 0)
                        snprintf(text, sizeof(text), "message text is empty");
                else
                        snprintf(text, sizeof(text), "parameter \"%s\" is required", f->name);
                set_problem(problem, text);
        }
}

bool tg_spec_has_parameter(const struct tg_spec_method *m, const char *name)
{
        return find_field(m->fields, m->field_count, name) != NULL;
}

int tg_spec_check(const struct tg_spec_method *m, json_t *args, char problem[TG_SPEC_PROBLEM_SIZE])
{
        const char *name;
        json_t *value;
        void *next;

        problem[0] = '\0';
        json_object_foreach_safe(args, next, name, value) {
                if (json_is_null(value))
                        json_object_del(args, name);
                else
                        check_one(m, args, name, value, problem);
        }
        check_required(m, args, problem);
        return problem[0] ? -1 : 0;
}
