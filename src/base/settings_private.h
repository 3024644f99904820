/*
 * settings_private: shared by the files that implement settings.h.
 */
#ifndef BASE_SETTINGS_PRIVATE_H
#define BASE_SETTINGS_PRIVATE_H

#include "base/settings.h"

/* What one reading found wrong. A const source refers to it, so that reading can continue. */
struct settings_report {
        struct settings_mistake {
                int line;
                char *text;
        } * items;
        size_t count;
        size_t left_off; /* beyond the limit */
};

struct settings_source {
        char *name;
        char *dir;  /* may be NULL */
        char *text; /* comments and trailing commas replaced by spaces */
        size_t n;
        json_t *root;
        struct buf warnings;
        struct settings_report *report;
};

/* "adapters" and "tg" as "adapters.tg"; an empty or NULL path is the root. Yours to free. */
char *settings_path(const char *path, const char *key);
/* Reads one value into the struct at `out`; `given`: it is not the default. */
int settings_value_read(struct settings_source *src, const char *path, const struct setting *row,
                        const json_t *value, bool given, void *out, struct error *err);
void settings_value_release(const struct setting *row, void *out);
/* Appends the value as a member, unless it equals the default; never a secret. */
void settings_value_show(const struct setting *row, const void *value, const json_t *fallback,
                         struct buf *out);
bool settings_value_nullable(const struct setting *row);
/* The default as a new reference; NULL for a required key. */
json_t *settings_value_default(const struct setting *row);
/* Does the row have limits? *max is INT64_MAX when there is no upper one. */
bool settings_value_range(const struct setting *row, int64_t *min, int64_t *max);

#endif
