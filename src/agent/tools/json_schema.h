/*
 * json_schema: checks a JSON value against a JSON Schema, as far as tools need it.
 *
 * Knows type, enum, const, the bounds of numbers, lengths and counts, pattern, required,
 * properties, patternProperties, additionalProperties, items, prefixItems, uniqueItems, allOf,
 * anyOf, oneOf, not, and $ref within the schema. Other keywords are ignored, and so are references
 * to elsewhere: nothing is ever fetched. Work is bounded, because schemas may come from strangers.
 */
#ifndef AGENT_TOOLS_JSON_SCHEMA_H
#define AGENT_TOOLS_JSON_SCHEMA_H

#include <jansson.h>

#include "base/error.h"

#define JSON_SCHEMA_DEPTH 64
#define JSON_SCHEMA_NODES 10000

/*
 * 0, or -1: ERR_INVALID with the place ("edits[1].path"), what is wrong there and what is accepted;
 * ERR_LIMIT when the check would take too long.
 */
int json_schema_check(const json_t *schema, const json_t *value, struct error *err);

#endif
