/*
 * settings: configuration as tables.
 *
 * A setting is a row: key, type, default, allowed range, one sentence of help, and where the value
 * goes in the owner's struct. The rows stand beside the code that uses them. Reading, checking, the
 * JSON Schema, and docs/CONFIGURATION.md all come from the same rows.
 *
 *     struct echo_conf { bool progress; int64_t delay_ms; };
 *     static const struct setting echo_settings[] = {
 *             { "progress", SETTING_BOOL, "false", .help = "Show ...",
 *               .at = offsetof(struct echo_conf, progress) },
 *             { "delayMs", SETTING_INT, "0", 0, 60000, .help = "Wait ...",
 *               .at = offsetof(struct echo_conf, delay_ms) },
 *             SETTING_END };
 */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"

enum setting_type {
        SETTING_NONE,    /* ends a table */
        SETTING_BOOL,    /* bool */
        SETTING_INT,     /* int64_t; min to max, unless both are 0; max below min: no upper limit */
        SETTING_NUMBER,  /* double; min and max as above */
        SETTING_STRING,  /* char *, NULL when null or absent; min/max are lengths in bytes */
        SETTING_URL,     /* char *: an absolute http(s) URL without user info */
        SETTING_CHOICE,  /* char *: one of `choices` */
        SETTING_SECRET,  /* struct secret *, from a handle; NULL when null or absent */
        SETTING_STRINGS, /* struct setting_list: a list of strings, or one string */
        /* an embedded struct with the table `group`; "{}": its defaults, "null": zeroes */
        SETTING_GROUP,
};

struct setting_list {
        char **items;
        size_t count;
        bool set; /* the key was written: [] and absent are different things */
};

struct setting {
        const char *key;
        enum setting_type type;
        /* as JSON text: "true", "3000", "\"polling\"", "null", "[]"; NULL: required */
        const char *fallback;
        int64_t min, max;
        /* NULL-terminated; of a SETTING_INT: words that mean 0, such as "auto" */
        const char *const *choices;
        const struct setting *group;
        const char *help; /* one sentence, no Markdown but `code` */
        size_t at;        /* offsetof the value in the owner's struct */
};

#define SETTING_END                                                 \
        {                                                           \
                NULL, SETTING_NONE, NULL, 0, 0, NULL, NULL, NULL, 0 \
        }

/*
 * A configuration text with comments, kept with its line numbers.
 */
struct settings_source;

/*
 * name is for messages ("config.json"; NULL: they name the path alone, for text that never was a
 * file); dir is where relative file: handles start (may be NULL). Comments (// and block) and
 * trailing commas are allowed. NULL with an error that names the line.
 */
struct settings_source *settings_source_new(const char *name, const char *dir, const char *text,
                                            size_t n, struct error *err);
void settings_source_free(struct settings_source *src);
/* The parsed tree, borrowed. */
const json_t *settings_source_root(const struct settings_source *src);
/*
 * Line of the value (or key) at a path such as "adapters.tg.botToken" or "rules[2].when"; 0 if not
 * there.
 */
int settings_source_line(const struct settings_source *src, const char *path);
/* Warnings met while reading ("a secret is written in clear ..."), one per line; "" when none. */
const char *settings_source_warnings(const struct settings_source *src);
/* Adds to them: "config.json:12: adapters.tg.botToken: ...". */
void settings_warn(struct settings_source *src, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * Reads `object` (the value at `path`, NULL counts as {}) by one or several tables (a
 * NULL-terminated array of tables, for common keys plus own keys) into the struct at `out`, which
 * the caller has zeroed. Defaults fill what is absent. The first mistake is reported as
 *     config.json:12: adapters.tg.debounceMs: 90000 is too large (0 to 60000)
 *     config.json:12: adapters.tg: unknown key 'bottoken' (did you mean 'botToken'?)
 * ERR_INVALID; on error *out is released. Keys in `also` (NULL-terminated, may be NULL) are
 * permitted and skipped: they are read by somebody else ("type").
 */
int settings_read(struct settings_source *src, const char *path, const json_t *object,
                  const struct setting *const *tables, const char *const *also, void *out,
                  struct error *err);
/* Frees what settings_read put into the struct (strings, secrets, lists); zeroes it. */
void settings_release(const struct setting *const *tables, void *out);

/*
 * The struct back as a JSON object, appended to out: what differs from the defaults, without
 * secrets.
 */
void settings_show(const struct setting *table, const void *from, struct buf *out);

/* Reports a mistake the tables cannot express, with file and line. Returns -1. */
int settings_error(const struct settings_source *src, const char *path, struct error *err,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The candidate nearest to `word`, or NULL when none is near. candidates is NULL-terminated. */
const char *settings_nearest(const char *word, const char *const *candidates);

/*
 * Adds the JSON Schema members of a table ("key": {"type": ...}, ...) to an object under
 * construction.
 */
void settings_schema(const struct setting *table, json_t *properties, json_t *required);
/* Adds a Markdown table (key, type, default, meaning) of the settings. */
void settings_markdown(const struct setting *table, struct buf *out);

#endif
