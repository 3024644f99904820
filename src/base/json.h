/*
 * json: reads JSON with jansson.
 *
 * Getters never fail: a missing or wrongly typed member gives the fallback. settings.h
 * (configuration) and body.h (API bodies) report mistakes.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define JSON_MAX_DEPTH 64

/*
 * Parses foreign text strictly: UTF-8, no duplicate keys, no NUL in strings, depth at most
 * JSON_MAX_DEPTH. NULL with an error that names line and column.
 */
json_t *json_read(const char *text, size_t n, struct error *err);
/* The same, with the line of a mistake in *line. */
json_t *json_read_line(const char *text, size_t n, int *line, struct error *err);
/*
 * Retries with duplicate keys and NULs permitted; a NUL becomes U+FFFD. Depth stays limited. An
 * error is that of json_read.
 */
json_t *json_read_lenient(const char *text, size_t n, struct error *err);

/* Borrowed members. */
const char *json_str(const json_t *object, const char *key, const char *fallback);
int64_t json_int(const json_t *object, const char *key, int64_t fallback);
bool json_flag(const json_t *object, const char *key, bool fallback);
/* Compact, keys in insertion order; yours to free. */
char *json_text(const json_t *value);

#endif
