/*
 * settings: configuration as tables.
 *
 * Each module declares its settings as rows. Reading, checking, the JSON Schema and
 * docs/CONFIGURATION.md follow the rows.
 *
 *     struct echo_conf { bool progress; };
 *     static const struct setting echo_settings[] = {
 *             { "progress", SETTING_BOOL, "false", .help = "Show ...",
 *               .at = offsetof(struct echo_conf, progress) },
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
        SETTING_STRING,  /* char *, may be NULL; min and max are bytes */
        SETTING_URL,     /* char *: absolute, http(s), without user info */
        SETTING_FILE,    /* char *: a file that exists; relative paths start at the source's dir */
        SETTING_CHOICE,  /* char *: one of `choices` */
        SETTING_SECRET,  /* struct secret *, from a handle; may be NULL; min is bytes */
        SETTING_STRINGS, /* struct setting_list; one string counts as a list */
        SETTING_GROUP,   /* an embedded struct with the table `group`; default "null": zeroes */
        SETTING_MAP,     /* struct setting_map: `max` bytes for each, by the table `group` */
        SETTING_PAIRS,   /* struct setting_pairs */
};

/* `min` of secrets that sign or are compared: shorter ones can be found by trying. */
#define SETTING_SECRET_SHORTEST 16

struct setting_list {
        char **items;
        size_t count;
        bool set; /* the key was given, even as [] */
};

/* Structs by name, in the order of the file; names are [A-Za-z0-9_-], at most 32 bytes. */
struct setting_map {
        char **names;
        void **items;
        size_t count;
};

/* An object of strings. A value may be a handle as of a secret; none is ever shown. */
struct setting_pairs {
        char **names;
        struct secret **values;
        size_t count;
};

struct setting {
        const char *key;
        enum setting_type type;
        /* JSON text: "true", "3000", "\"polling\"", "null", "[]"; NULL: required */
        const char *fallback;
        int64_t min, max;
        /* NULL-terminated; for a SETTING_INT, words that mean 0, such as "auto" */
        const char *const *choices;
        const struct setting *group;
        const char *help; /* one sentence, no Markdown but `code` */
        size_t at;        /* in the owner's struct */
        const char *was;  /* an earlier name of the key, for the error about it; NULL: none */
};

#define SETTING_END                                                       \
        {                                                                 \
                NULL, SETTING_NONE, NULL, 0, 0, NULL, NULL, NULL, 0, NULL \
        }

/* A parsed configuration text that remembers its lines. */
struct settings_source;

/*
 * Parses JSON with comments and trailing commas; NULL with an error that names the line. `name` is
 * for messages (NULL: not a file). Relative files and file: handles start at `dir` (may be NULL).
 */
struct settings_source *settings_source_new(const char *name, const char *dir, const char *text,
                                            size_t n, struct error *err);
void settings_source_free(struct settings_source *src);
const json_t *settings_source_root(const struct settings_source *src);
/* The line of the value at a path such as "rules[2].when"; 0: none. */
int settings_source_line(const struct settings_source *src, const char *path);
/* Collected while reading, one per line; "" when none. */
const char *settings_source_warnings(const struct settings_source *src);
/* Appends every mistake reported so far, one per line, by line number. Returns their number. */
size_t settings_source_mistakes(const struct settings_source *src, struct buf *out);
/* Adds a mistake that lies elsewhere, such as in the environment. */
void settings_source_add_mistake(const struct settings_source *src, const char *text);
/* "config.json:12: adapters.tg.botToken: ..." */
void settings_warn(struct settings_source *src, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * Reads `object` (the value at `path`; NULL counts as {}) into the zeroed struct at `out`, by a
 * NULL-terminated array of tables. Defaults fill absent keys; keys in `also` (may be NULL) are
 * skipped. Reports mistakes as ERR_INVALID (*err is the first, settings_source_mistakes has all)
 * and releases *out:
 *     config.json:12: adapters.tg.debounceMs: 90000 is too large (0 to 60000)
 *     config.json:12: adapters.tg: unknown key 'bottoken' (did you mean 'botToken'?)
 */
int settings_read(struct settings_source *src, const char *path, const json_t *object,
                  const struct setting *const *tables, const char *const *also, void *out,
                  struct error *err);
void settings_release(const struct setting *const *tables, void *out);

/*
 * Objects with a "type": `common` holds the keys of all types, `own` (may be NULL) those of this
 * one. settings_read_type returns the type's index among `names`, or -1 with an error that lists
 * them.
 */
int settings_read_type(const struct settings_source *src, const char *path, const json_t *object,
                       const char *const *names, struct error *err);
/* Both structs must be zeroed; on error both are released. */
int settings_read_typed(struct settings_source *src, const char *path, const json_t *object,
                        const struct setting *common, void *common_out, const struct setting *own,
                        void *own_out, struct error *err);
void settings_release_typed(const struct setting *common, void *common_out,
                            const struct setting *own, void *own_out);

/* Appends a JSON object of the values that differ from their defaults, without secrets. */
void settings_show(const struct setting *table, const void *from, struct buf *out);

/* Reports a mistake that the tables cannot express, also to the source. Returns -1. */
int settings_error(const struct settings_source *src, const char *path, struct error *err,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int settings_member_error(const struct settings_source *src, const char *path, const char *key,
                          struct error *err, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
/* NULL when none is near. candidates is NULL-terminated. */
const char *settings_nearest(const char *word, const char *const *candidates);

/* Adds the JSON Schema of each row to `properties`, and required keys to `required`. */
void settings_doc_schema(const struct setting *table, json_t *properties, json_t *required);
/* Appends a Markdown table: key, type, default, meaning. */
void settings_doc_markdown(const struct setting *table, struct buf *out);

#endif
