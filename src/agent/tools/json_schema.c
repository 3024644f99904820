#include "agent/tools/json_schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/utf8.h"

/* PCRE2 counts them from zero at each position of the text; TIME_MS limits all of them. */
#define MATCH_LIMIT    50000
#define DEPTH_LIMIT    5000
#define HEAP_LIMIT_KIB 4096
#define PATTERN_MAX    1000
#define TIME_MS        250 /* of a whole check: it runs on the loop */
#define UNIQUE_MAX     200 /* items that are compared with each other */
#define SHOWN_MAX      160 /* bytes of a list or value in an error */

struct checker {
        const json_t *root;
        struct buf path;
        unsigned depth, nodes;
        uint64_t until_ns; /* the check gives up then */
        struct error *err;
};

static int check(struct checker *c, const json_t *schema, const json_t *value);

/* jansson's loops want mutable objects */
static json_t *mutable(const json_t *value)
{
        return (json_t *)(uintptr_t)value;
}

__attribute__((format(printf, 2, 3))) static int fail(struct checker *c, const char *fmt, ...)
{
        char text[sizeof(c->err->text)];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        /* names and values are cut anywhere */
        for (size_t i = 0, n = strlen(text), step; i < n; i += step) {
                uint32_t cp;

                step = utf8_decode(text + i, n - i, &cp);
                if (step == 1 && cp == 0xFFFD)
                        text[i] = '?';
        }
        text[utf8_prefix(text, strlen(text), UTF8_BYTES, sizeof(text) - 120)] = '\0';
        if (c->path.len == 0)
                return error_set(c->err, ERR_INVALID, "%s", text);
        return error_set(c->err, ERR_INVALID, "'%.*s' %s",
                         (int)utf8_prefix(c->path.data, c->path.len, UTF8_BYTES, 100), c->path.data,
                         text);
}

static int too_much(struct checker *c)
{
        return error_set(c->err, ERR_LIMIT,
                         "the value or its schema is too large or too deep to be checked (at most "
                         "%d levels, %d values and %d ms)",
                         JSON_SCHEMA_DEPTH, JSON_SCHEMA_NODES, TIME_MS);
}

/* Compact JSON, cut; yours to free. */
static char *shown(const json_t *value)
{
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        size_t n;

        if (!text)
                return mem_strdup("?");
        n = utf8_prefix(text, strlen(text), UTF8_BYTES, SHOWN_MAX);
        if (text[n] != '\0')
                memcpy(text + (n > 3 ? n - 3 : 0), "...", 4);
        return text;
}

/* ---- types ---- */

static const char *type_name(const json_t *value)
{
        if (!value)
                return "missing";
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return "object";
        case JSON_ARRAY:
                return "array";
        case JSON_STRING:
                return "string";
        case JSON_INTEGER:
                return "integer";
        case JSON_REAL:
                return "number";
        case JSON_NULL:
                return "null";
        default:
                return "boolean";
        }
}

static bool has_type(const json_t *value, const char *type)
{
        if (strcmp(type, "number") == 0)
                return json_is_number(value);
        if (strcmp(type, "integer") == 0 && json_is_real(value))
                return floor(json_real_value(value)) == json_real_value(value);
        return strcmp(type, type_name(value)) == 0;
}

static int check_type(struct checker *c, const json_t *type, const json_t *value)
{
        const json_t *one;
        char *accepted, *got;
        size_t i;

        if (json_is_string(type) && has_type(value, json_string_value(type)))
                return 0;
        if (!json_is_string(type) && !json_is_array(type))
                return 0;
        json_array_foreach(mutable(type), i, one)
                if (!json_is_string(one) || has_type(value, json_string_value(one)))
                        return 0;
        accepted = json_is_string(type) ? mem_strdup(json_string_value(type)) : shown(type);
        got = shown(value);
        fail(c, "must be of type %s, but is %s %s", accepted, type_name(value), got);
        free(accepted);
        free(got);
        return -1;
}

/* 1 and 1.0 are equal in JSON Schema. */
static bool is_equal(const json_t *a, const json_t *b)
{
        if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
                return json_number_value(a) == json_number_value(b);
        return json_equal(a, b);
}

static int check_enum(struct checker *c, const json_t *schema, const json_t *value)
{
        const json_t *wanted = json_object_get(schema, "const"), *one;
        char *accepted, *got;
        size_t i;

        if (!wanted) {
                wanted = json_object_get(schema, "enum");
                if (!json_is_array(wanted))
                        return 0;
                json_array_foreach(mutable(wanted), i, one)
                        if (is_equal(one, value))
                                return 0;
        } else if (is_equal(wanted, value)) {
                return 0;
        }
        accepted = shown(wanted);
        got = shown(value);
        fail(c, "is %s, but must be %s%s", got,
             wanted == json_object_get(schema, "const") ? "" : "one of ", accepted);
        free(accepted);
        free(got);
        return -1;
}

/* ---- numbers and strings ---- */

static int check_number(struct checker *c, const json_t *schema, const json_t *value)
{
        static const struct {
                const char *key, *words;
                int sign; /* of value - bound when it is refused */
                bool equal;
        } bounds[] = {
                { "minimum", "at least", -1, false },
                { "maximum", "at most", 1, false },
                { "exclusiveMinimum", "greater than", -1, true },
                { "exclusiveMaximum", "less than", 1, true },
        };
        double v = json_number_value(value), of;

        for (size_t i = 0; i < COUNT(bounds); i++) {
                const json_t *bound = json_object_get(schema, bounds[i].key);
                double b = json_number_value(bound);

                if (!json_is_number(bound))
                        continue;
                if ((bounds[i].sign < 0 ? v < b : v > b) || (bounds[i].equal && v == b))
                        return fail(c, "is %.15g, but must be %s %.15g", v, bounds[i].words, b);
        }
        of = json_number_value(json_object_get(schema, "multipleOf"));
        if (of > 0 && fabs(v / of - round(v / of)) > 1e-9)
                return fail(c, "is %.15g, but must be a multiple of %.15g", v, of);
        return 0;
}

/* PCRE2 calls it before each item of a pattern. */
static int on_item(pcre2_callout_block *block, void *arg)
{
        const struct checker *c = arg;

        (void)block;
        return clock_mono_ns() > c->until_ns ? PCRE2_ERROR_MATCHLIMIT : 0;
}

/* 1, 0, or -1: it took too long. A pattern that PCRE2 cannot read matches everything. */
static int pattern_matches(struct checker *c, const char *pattern, const char *text, size_t n)
{
        /* as close to ECMAScript as PCRE2 comes */
        const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                                 PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C |
                                 PCRE2_MATCH_INVALID_UTF | PCRE2_AUTO_CALLOUT;
        PCRE2_SIZE offset;
        int problem, rc;
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *context;

        if (strlen(pattern) > PATTERN_MAX)
                return 1;
        code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &problem, &offset,
                             NULL);
        if (!code)
                return 1;
        data = pcre2_match_data_create(1, NULL);
        context = pcre2_match_context_create(NULL);
        pcre2_set_match_limit(context, MATCH_LIMIT);
        pcre2_set_depth_limit(context, DEPTH_LIMIT);
        pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
        pcre2_set_callout(context, on_item, c);
        rc = pcre2_match(code, (PCRE2_SPTR)text, n, 0, 0, data, context);
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
        pcre2_code_free(code);
        return rc >= 0 ? 1 : rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

/* `what` is what is counted: "characters". */
static int check_count(struct checker *c, const json_t *schema, const char *least, const char *most,
                       size_t count, const char *what)
{
        const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);

        if (json_is_number(low) && (double)count < json_number_value(low))
                return fail(c, "has %zu %s, but needs at least %.15g", count, what,
                            json_number_value(low));
        if (json_is_number(high) && (double)count > json_number_value(high))
                return fail(c, "has %zu %s, but may have at most %.15g", count, what,
                            json_number_value(high));
        return 0;
}

static int check_string(struct checker *c, const json_t *schema, const json_t *value)
{
        const char *text = json_string_value(value), *pattern = json_str(schema, "pattern", NULL);
        size_t n = json_string_length(value);
        int rc;

        if (check_count(c, schema, "minLength", "maxLength", utf8_length(text, n, UTF8_CODE_POINTS),
                        "characters") < 0)
                return -1;
        rc = pattern ? pattern_matches(c, pattern, text, n) : 1;
        if (rc < 0)
                return fail(c, "cannot be checked against the pattern %.200s: it takes too long",
                            pattern);
        return rc > 0 ? 0 : fail(c, "does not match the pattern %.200s", pattern);
}

/* ---- objects and arrays ---- */

static int check_member(struct checker *c, const json_t *schema, const char *key,
                        const json_t *value)
{
        size_t at = c->path.len;
        int rc;

        buf_addstr(&c->path, at > 0 ? "." : "");
        buf_add(&c->path, key, utf8_prefix(key, strlen(key), UTF8_BYTES, 60));
        rc = check(c, schema, value);
        buf_truncate(&c->path, at);
        return rc;
}

static int check_required(struct checker *c, const json_t *schema, const json_t *value)
{
        const json_t *names = json_object_get(schema, "required"), *name;
        struct buf missing;
        size_t i, n = 0;

        buf_init(&missing, SHOWN_MAX * 2);
        json_array_foreach(mutable(names), i, name) {
                const char *key = json_string_value(name);

                if (key && !json_object_get(value, key))
                        buf_addf(&missing, "%s'%.60s'", n++ > 0 ? ", " : "", key);
        }
        if (n > 0)
                fail(c, "%s missing: %s", c->path.len > 0 ? "has members" : "required members are",
                     missing.data);
        buf_release(&missing);
        return n > 0 ? -1 : 0;
}

static int refuse_member(struct checker *c, const json_t *known, const char *key)
{
        const char **names = mem_array(json_object_size(known) + 1, sizeof(*names)), *name, *near;
        struct buf list;
        json_t *unused;
        size_t n = 0;

        buf_init(&list, SHOWN_MAX * 2);
        json_object_foreach(mutable(known), name, unused) {
                buf_addf(&list, "%s'%.60s'", n > 0 ? ", " : "", name);
                names[n++] = name;
        }
        names[n] = NULL;
        near = settings_nearest(key, names);
        fail(c, "%s '%.60s'%s%s%s; %s %s",
             c->path.len > 0 ? "has an unknown member" : "unknown member", key,
             near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
             n > 0 ? "it may have" : "it may have no members", list.data);
        buf_release(&list);
        free(names);
        return -1;
}

static int check_object(struct checker *c, const json_t *schema, const json_t *value)
{
        const json_t *known = json_object_get(schema, "properties");
        const json_t *patterns = json_object_get(schema, "patternProperties");
        const json_t *others = json_object_get(schema, "additionalProperties");
        const char *key, *pattern;
        json_t *member, *of;

        if (check_required(c, schema, value) < 0 ||
            check_count(c, schema, "minProperties", "maxProperties", json_object_size(value),
                        "members") < 0)
                return -1;
        json_object_foreach(mutable(value), key, member) {
                bool covered = json_object_get(known, key) != NULL;

                if (covered && check_member(c, json_object_get(known, key), key, member) < 0)
                        return -1;
                json_object_foreach(mutable(patterns), pattern, of) {
                        if (++c->nodes > JSON_SCHEMA_NODES)
                                return too_much(c);
                        if (pattern_matches(c, pattern, key, strlen(key)) != 1)
                                continue;
                        covered = true;
                        if (check_member(c, of, key, member) < 0)
                                return -1;
                }
                if (covered || !others)
                        continue;
                if (json_is_false(others))
                        return refuse_member(c, known, key);
                if (check_member(c, others, key, member) < 0)
                        return -1;
        }
        return 0;
}

static int check_item(struct checker *c, const json_t *schema, size_t i, const json_t *value)
{
        size_t at = c->path.len;
        int rc;

        buf_addf(&c->path, "[%zu]", i);
        rc = check(c, schema, value);
        buf_truncate(&c->path, at);
        return rc;
}

static int check_unique(struct checker *c, const json_t *value)
{
        size_t n = json_array_size(value);

        for (size_t i = 0; n <= UNIQUE_MAX && i < n; i++)
                for (size_t j = 0; j < i; j++)
                        if (is_equal(json_array_get(value, i), json_array_get(value, j)))
                                return fail(c,
                                            "has equal items at %zu and %zu; each may occur once",
                                            j, i);
        return 0;
}

static int check_array(struct checker *c, const json_t *schema, const json_t *value)
{
        const json_t *items = json_object_get(schema, "items");
        const json_t *first = json_object_get(schema, "prefixItems");
        json_t *item;
        size_t i;

        if (json_is_array(items)) { /* draft 7 */
                first = items;
                items = json_object_get(schema, "additionalItems");
        }
        if (check_count(c, schema, "minItems", "maxItems", json_array_size(value), "items") < 0)
                return -1;
        json_array_foreach(mutable(value), i, item) {
                const json_t *of = i < json_array_size(first) ? json_array_get(first, i) : items;

                if (of && check_item(c, of, i, item) < 0)
                        return -1;
        }
        return json_is_true(json_object_get(schema, "uniqueItems")) ? check_unique(c, value) : 0;
}

/* ---- combinations ---- */

/* As check, with an error of its own. */
static int try(struct checker *c, const json_t *schema, const json_t *value, struct error *why)
{
        struct error *outer = c->err;
        int rc;

        c->err = why;
        rc = check(c, schema, value);
        c->err = outer;
        return rc;
}

static int check_any(struct checker *c, const json_t *list, bool one, const json_t *value)
{
        struct error why = { 0 };
        struct buf reasons;
        size_t matches = 0, i;
        json_t *schema;

        buf_init(&reasons, SHOWN_MAX * 2);
        json_array_foreach(mutable(list), i, schema) {
                if (try(c, schema, value, &why) == 0)
                        matches++;
                else if (why.kind == ERR_LIMIT)
                        break;
                else
                        buf_addf(&reasons, "%s%zu: %.120s", i > 0 ? "; " : "", i + 1, why.text);
                if (matches > (one ? 1U : 0U))
                        break;
        }
        if (why.kind == ERR_LIMIT && matches == 0)
                *c->err = why;
        else if (matches == 0)
                fail(c, "matches none of the %zu accepted forms (%s)", json_array_size(list),
                     reasons.data);
        else if (one && matches > 1)
                fail(c, "matches several of the %zu accepted forms, but only one may match",
                     json_array_size(list));
        buf_release(&reasons);
        return matches == 0 || (one && matches > 1) ? -1 : 0;
}

static int check_not(struct checker *c, const json_t *schema, const json_t *value)
{
        struct error why = { 0 };
        int rc = try(c, schema, value, &why);

        if (rc < 0 && why.kind != ERR_LIMIT)
                return 0;
        if (rc < 0)
                *c->err = why;
        else
                fail(c, "matches what the schema excludes");
        return -1;
}

static int check_combinations(struct checker *c, const json_t *schema, const json_t *value)
{
        const json_t *all = json_object_get(schema, "allOf");
        const json_t *any = json_object_get(schema, "anyOf");
        const json_t *one = json_object_get(schema, "oneOf");
        const json_t *not = json_object_get(schema, "not");
        json_t *part;
        size_t i;

        json_array_foreach(mutable(all), i, part)
                if (check(c, part, value) < 0)
                        return -1;
        if (json_array_size(any) > 0 && check_any(c, any, false, value) < 0)
                return -1;
        if (json_array_size(one) > 0 && check_any(c, one, true, value) < 0)
                return -1;
        return not ? check_not(c, not, value) : 0;
}

/* ---- references ---- */

/* One component of a JSON pointer in a URI fragment: "~1" is "/", "%24" is "$". */
static void unescape(char *part)
{
        char *out = part;

        for (const char *p = part; *p; p++) {
                if (p[0] == '~' && (p[1] == '0' || p[1] == '1'))
                        *out++ = *++p == '0' ? '~' : '/';
                else if (p[0] == '%' && p[1] && p[2]) {
                        char hex[3] = { p[1], p[2], '\0' };

                        *out++ = (char)strtol(hex, NULL, 16);
                        p += 2;
                } else
                        *out++ = *p;
        }
        *out = '\0';
}

/* NULL: it leads elsewhere or nowhere. */
static const json_t *resolve(const json_t *root, const char *ref)
{
        const json_t *at = root;
        char *copy, *rest, *part;

        if (ref[0] != '#' || (ref[1] != '\0' && ref[1] != '/'))
                return NULL;
        if (ref[1] == '\0')
                return root;
        copy = mem_strdup(ref + 2);
        rest = copy;
        while (at && (part = strsep(&rest, "/"))) {
                unescape(part);
                if (json_is_array(at))
                        at = json_array_get(at, (size_t)strtoull(part, NULL, 10));
                else
                        at = json_object_get(at, part);
        }
        free(copy);
        return at;
}

static int check_keywords(struct checker *c, const json_t *schema, const json_t *value)
{
        const char *ref = json_str(schema, "$ref", NULL);
        const json_t *target = ref ? resolve(c->root, ref) : NULL;

        if (target && check(c, target, value) < 0)
                return -1;
        if (check_type(c, json_object_get(schema, "type"), value) < 0 ||
            check_enum(c, schema, value) < 0)
                return -1;
        if (json_is_number(value) && check_number(c, schema, value) < 0)
                return -1;
        if (json_is_string(value) && check_string(c, schema, value) < 0)
                return -1;
        if (json_is_object(value) && check_object(c, schema, value) < 0)
                return -1;
        if (json_is_array(value) && check_array(c, schema, value) < 0)
                return -1;
        return check_combinations(c, schema, value);
}

static int check(struct checker *c, const json_t *schema, const json_t *value)
{
        int rc;

        if (++c->nodes > JSON_SCHEMA_NODES || c->depth >= JSON_SCHEMA_DEPTH ||
            clock_mono_ns() > c->until_ns)
                return too_much(c);
        if (json_is_false(schema))
                return fail(c, "is not accepted here");
        if (!json_is_object(schema))
                return 0;
        c->depth++;
        rc = check_keywords(c, schema, value);
        c->depth--;
        return rc;
}

int json_schema_check(const json_t *schema, const json_t *value, struct error *err)
{
        struct error unused = { 0 };
        struct checker c = { .root = schema,
                             .until_ns = clock_mono_ns() + TIME_MS * 1000000ULL,
                             .err = err ? err : &unused };
        int rc;

        buf_init(&c.path, 0);
        rc = check(&c, schema, value);
        buf_release(&c.path);
        return rc;
}
