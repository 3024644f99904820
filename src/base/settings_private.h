/*
 * settings_source: the inside of struct settings_source, for the files that implement settings.h.
 */
#ifndef BASE_SETTINGS_PRIVATE_H
#define BASE_SETTINGS_PRIVATE_H

#include "base/settings.h"

struct settings_source {
        char *name;
        char *dir;  /* may be NULL */
        char *text; /* comments and trailing commas blanked out, lines where they were */
        size_t n;
        json_t *root;
        struct buf warnings;
};

/* "adapters" and "tg" make "adapters.tg"; an empty or NULL path is the root. Yours to free. */
char *settings_path(const char *path, const char *key);
/* As settings_error, with the line of another path than the one shown. */
int settings_error_at(const struct settings_source *src, const char *line_of, const char *path,
                      struct error *err, const char *text);
/*
 * Reads one value by its row into the owner's struct at `out`. Given says whether the key was
 * written.
 */
int settings_value_read(struct settings_source *src, const char *path, const struct setting *row,
                        const json_t *value, bool given, void *out, struct error *err);
void settings_value_release(const struct setting *row, void *out);
/* May the value be null? */
bool settings_nullable(const struct setting *row);
/* The default of a row as a new reference; NULL for a required key. */
json_t *settings_fallback(const struct setting *row);
/* Is there a limit? For strings and numbers; no upper limit leaves *max at INT64_MAX. */
bool settings_range(const struct setting *row, int64_t *min, int64_t *max);

#endif
