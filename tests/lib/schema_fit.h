/*
 * schema_fit: does a value fit a schema of an OpenAPI document? Enough of JSON Schema for the
 * documents the tests have; properties that the schema does not name do not fit.
 */
#ifndef TESTS_SCHEMA_FIT_H
#define TESTS_SCHEMA_FIT_H

#include <jansson.h>
#include <stdbool.h>

/* spec is the document, for references. */
bool schema_fits(const json_t *spec, const json_t *schema, const json_t *value);
/* The schema of that name among the document's components. */
bool schema_named_fits(const json_t *spec, const char *name, const json_t *value);

#endif
