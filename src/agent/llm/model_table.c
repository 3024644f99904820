/*
 * Models and what they cost, US dollars per million tokens. Services change prices without notice:
 * the setting priceTable names a file that has precedence.
 */
#include <string.h>

#include "agent/llm/model_facts.h"
#include "base/json.h"
#include "base/mem.h"

#define PRICE_MAX  100000
#define TOKENS_MAX 1000000000

#define CLAUDE(window_, output_, thinks, adapts, in_, out_)                                       \
        {                                                                                         \
                window_, output_, 1, 1, thinks, adapts,                                           \
                {                                                                                 \
                        .in = (in_), .out = (out_), .cached = -1, .written = -1, .written_1h = -1 \
                }                                                                                 \
        }
#define OTHER(window_, output_, sees, thinks, in_, out_, cached_)                          \
        {                                                                                  \
                window_, output_, sees, sees, thinks, 0,                                   \
                {                                                                          \
                        .in = (in_), .out = (out_), .cached = (cached_), .written = (in_), \
                        .written_1h = (in_)                                                \
                }                                                                          \
        }

/* clang-format off */
static const struct {
        const char *name;
        struct model_row row;
} table[] = {
        /* later members of a family: at least these */
        { "claude-haiku",       CLAUDE(200000,  64000, 1, 1, 1, 5) },
        { "claude-sonnet",      CLAUDE(200000,  64000, 1, 1, 3, 15) },
        { "claude-opus",        CLAUDE(200000,  64000, 1, 1, 5, 25) },
        { "claude-3-haiku",     CLAUDE(200000,   4096, 0, 0, 0.25, 1.25) },
        { "claude-3-opus",      CLAUDE(200000,   4096, 0, 0, 15, 75) },
        { "claude-3-5-haiku",   CLAUDE(200000,   8192, 0, 0, 0.8, 4) },
        { "claude-3-5-sonnet",  CLAUDE(200000,   8192, 0, 0, 3, 15) },
        { "claude-3-7-sonnet",  CLAUDE(200000,  64000, 1, 0, 3, 15) },
        { "claude-haiku-4",     CLAUDE(200000,  64000, 1, 0, 1, 5) },
        { "claude-sonnet-4",    CLAUDE(200000,  64000, 1, 0, 3, 15) },
        { "claude-sonnet-4-6",  CLAUDE(1000000, 64000, 1, 1, 3, 15) },
        { "claude-opus-4",      CLAUDE(200000,  32000, 1, 0, 15, 75) },
        { "claude-opus-4-5",    CLAUDE(200000,  64000, 1, 0, 5, 25) },
        { "claude-opus-4-6",    CLAUDE(1000000, 128000, 1, 1, 5, 25) },
        { "claude-opus-4-7",    CLAUDE(1000000, 128000, 1, 1, 5, 25) },
        { "gpt-4",              OTHER(8192,      8192, 0, 0, 30, 60, 30) },
        { "gpt-4-turbo",        OTHER(128000,    4096, 1, 0, 10, 30, 10) },
        { "gpt-4.1",            OTHER(1047576,  32768, 1, 0, 2, 8, 0.5) },
        { "gpt-4.1-mini",       OTHER(1047576,  32768, 1, 0, 0.4, 1.6, 0.1) },
        { "gpt-4.1-nano",       OTHER(1047576,  32768, 1, 0, 0.1, 0.4, 0.025) },
        { "gpt-4o",             OTHER(128000,   16384, 1, 0, 2.5, 10, 1.25) },
        { "gpt-4o-mini",        OTHER(128000,   16384, 1, 0, 0.15, 0.6, 0.075) },
        { "gpt-5",              OTHER(400000,  128000, 1, 1, 1.25, 10, 0.125) },
        { "gpt-5-mini",         OTHER(400000,  128000, 1, 1, 0.25, 2, 0.025) },
        { "gpt-5-nano",         OTHER(400000,  128000, 1, 1, 0.05, 0.4, 0.005) },
        { "gpt-5-pro",          OTHER(400000,  272000, 1, 1, 15, 120, 15) },
        { "gpt-5.1",            OTHER(400000,  128000, 1, 1, 1.25, 10, 0.125) },
        { "gpt-5.1-codex-mini", OTHER(400000,  128000, 1, 1, 0.25, 2, 0.025) },
        { "gpt-5.2",            OTHER(400000,  128000, 1, 1, 1.75, 14, 0.175) },
        { "gpt-5.2-pro",        OTHER(400000,  128000, 1, 1, 21, 168, 21) },
        { "gpt-5.3",            OTHER(400000,  128000, 1, 1, 1.75, 14, 0.175) },
        { "gpt-5.4",            OTHER(272000,  128000, 1, 1, 2.5, 15, 0.25) },
        { "gpt-5.4-mini",       OTHER(400000,  128000, 1, 1, 0.75, 4.5, 0.075) },
        { "gpt-5.4-nano",       OTHER(400000,  128000, 1, 1, 0.2, 1.25, 0.02) },
        { "gpt-5.4-pro",        OTHER(1050000, 128000, 1, 1, 30, 180, 30) },
        { "gpt-5.5",            OTHER(272000,  128000, 1, 1, 5, 30, 0.5) },
        { "gpt-5.5-pro",        OTHER(1050000, 128000, 1, 1, 30, 180, 30) },
        { "o1",                 OTHER(200000,  100000, 1, 1, 15, 60, 7.5) },
        { "o3",                 OTHER(200000,  100000, 1, 1, 2, 8, 0.5) },
        { "o3-mini",            OTHER(200000,  100000, 0, 1, 1.1, 4.4, 0.55) },
        { "o3-pro",             OTHER(200000,  100000, 1, 1, 20, 80, 20) },
        { "o4-mini",            OTHER(200000,  100000, 1, 1, 1.1, 4.4, 0.275) },
        { "deepseek-v4-flash",  OTHER(1000000, 384000, 0, 1, 0.14, 0.28, 0.0028) },
        { "deepseek-v4-pro",    OTHER(1000000, 384000, 0, 1, 0.435, 0.87, 0.003625) },
};
/* clang-format on */

/* Does `name` name the model, or a version of it: "gpt-5-2025-08-07" of "gpt-5"? */
static bool begins(const char *model, const char *name)
{
        size_t n = strlen(name);

        return strncmp(model, name, n) == 0 && (model[n] == '\0' || strchr("-@:.", model[n]));
}

const struct model_row *model_table_find(const char *model)
{
        const char *slash = strrchr(model, '/');
        size_t longest = 0, found = COUNT(table);

        if (slash)
                model = slash + 1;
        for (size_t i = 0; i < COUNT(table); i++) {
                if (begins(model, table[i].name) && strlen(table[i].name) > longest) {
                        longest = strlen(table[i].name);
                        found = i;
                }
        }
        return found < COUNT(table) ? &table[found].row : NULL;
}

/* ---- a table in a file ---- */

static int read_price(const json_t *row, const char *key, double *out, struct error *err)
{
        const json_t *value = json_object_get(row, key);

        if (!value)
                return 0;
        if (!json_is_number(value) || json_number_value(value) < 0 ||
            json_number_value(value) > PRICE_MAX)
                return error_set(err, ERR_INVALID,
                                 "'%s' must be US dollars per million tokens, 0 to %d", key,
                                 PRICE_MAX);
        *out = json_number_value(value);
        return 0;
}

static int read_tokens(const json_t *row, const char *key, int64_t *out, struct error *err)
{
        const json_t *value = json_object_get(row, key);

        if (!value)
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < 1 ||
            json_integer_value(value) > TOKENS_MAX)
                return error_set(err, ERR_INVALID, "'%s' must be a number of tokens, 1 to %d", key,
                                 TOKENS_MAX);
        *out = json_integer_value(value);
        return 0;
}

static int read_flag(const json_t *row, const char *key, int *out, struct error *err)
{
        const json_t *value = json_object_get(row, key);

        if (!value)
                return 0;
        if (!json_is_boolean(value))
                return error_set(err, ERR_INVALID, "'%s' must be true or false", key);
        *out = json_is_true(value);
        return 0;
}

static int read_rates(const json_t *row, struct usage_rates *r, struct error *err)
{
        *r = (struct usage_rates){ -1, -1, -1, -1, -1 };
        if (read_price(row, "in", &r->in, err) < 0 || read_price(row, "out", &r->out, err) < 0 ||
            read_price(row, "cacheRead", &r->cached, err) < 0 ||
            read_price(row, "cacheWrite5m", &r->written, err) < 0 ||
            read_price(row, "cacheWrite1h", &r->written_1h, err) < 0)
                return -1;
        if ((r->in < 0) != (r->out < 0))
                return error_set(err, ERR_INVALID, "'in' and 'out' belong together");
        return 0;
}

static int check_keys(const json_t *row, struct error *err)
{
        static const char *const known[] = { "in",           "out",    "cacheRead", "cacheWrite5m",
                                             "cacheWrite1h", "window", "maxOut",    "images",
                                             "documents",    "tiers",  "thinking",  "above" };
        const char *key;
        json_t *value;

        if (!json_is_object(row))
                return error_set(err, ERR_INVALID, "not an object");
        json_object_foreach((json_t *)row, key, value) {
                size_t i = 0;

                while (i < COUNT(known) && strcmp(key, known[i]) != 0)
                        i++;
                if (i == COUNT(known))
                        return error_set(err, ERR_INVALID,
                                         "unknown key '%s' (in, out, cacheRead, cacheWrite5m, "
                                         "cacheWrite1h, window, maxOut, images, documents, "
                                         "thinking, tiers)",
                                         key);
        }
        return 0;
}

static int read_row(const json_t *json, struct model_row *row, struct error *err)
{
        const json_t *tiers = json_object_get(json, "tiers"), *tier = json_array_get(tiers, 0);
        struct usage_rates r;

        *row = (struct model_row){ -1, -1, -1, -1, -1, -1, { .in = -1 } };
        if (check_keys(json, err) < 0 || read_tokens(json, "window", &row->window, err) < 0 ||
            read_tokens(json, "maxOut", &row->output, err) < 0 ||
            read_flag(json, "images", &row->images, err) < 0 ||
            read_flag(json, "documents", &row->documents, err) < 0 ||
            read_flag(json, "thinking", &row->thinking, err) < 0 || read_rates(json, &r, err) < 0)
                return -1;
        row->prices = (struct usage_prices){ r.in, r.out, r.cached, r.written, r.written_1h, 0, r };
        if (tiers && (!json_is_array(tiers) || json_array_size(tiers) > 1))
                return error_set(err, ERR_INVALID, "'tiers' must be a list of one");
        if (!tier)
                return 0;
        if (check_keys(tier, err) < 0 || read_rates(tier, &row->prices.then, err) < 0 ||
            read_tokens(tier, "above", &row->prices.above, err) < 0)
                return error_prefix(err, "tiers");
        if (row->prices.above == 0 || row->prices.then.in < 0)
                return error_set(err, ERR_INVALID, "'tiers' needs 'above', 'in' and 'out'");
        return 0;
}

int model_table_read(const char *text, size_t n, const char *model, struct model_row *out,
                     struct error *err)
{
        json_t *root = json_read(text, n, err), *value;
        size_t longest = 0;
        struct model_row row;
        const char *name;
        int rc = 0;

        if (!root)
                return -1;
        if (!json_is_object(root))
                rc = error_set(err, ERR_INVALID, "not an object with models as keys");
        json_object_foreach(root, name, value) {
                if (rc < 0)
                        break;
                if (read_row(value, &row, err) < 0) {
                        rc = error_prefix(err, "model '%s'", name);
                } else if (model && begins(model, name) && strlen(name) > longest) {
                        longest = strlen(name);
                        *out = row;
                        rc = 1;
                }
        }
        json_decref(root);
        return rc;
}
