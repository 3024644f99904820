/*
 * manifest: DIR/tools/NAME/tool.json, which describes a tool.
 *
 *     { "name": "weather", "description": "The weather of a town.",
 *       "parameters": { "type": "object", "properties": { "town": { "type": "string" } } },
 *       "command": ["./weather.sh"], "timeoutSeconds": 20, "readOnly": true,
 *       "env": { "WEATHER_KEY": "env:WEATHER_KEY" } }
 *
 * Beside an index.ts or index.js, which have name, description and parameters of their own, all of
 * it is optional.
 */
#ifndef AGENT_CUSTOM_MANIFEST_H
#define AGENT_CUSTOM_MANIFEST_H

#include <jansson.h>

#include "base/error.h"
#include "base/settings.h"

#define MANIFEST_MAX (128 << 10)

struct manifest {
        char *name, *description; /* NULL: not given */
        struct setting_list command;
        struct setting_pairs env;
        int64_t timeout_seconds;
        bool read_only, risky, trusted;
        json_t *parameters; /* an object; NULL: not given */
};

/* `name` is for errors; handles of secrets start at dir. Blocks for secrets from commands. */
int manifest_read(const char *name, const char *dir, const char *text, size_t n, struct manifest *m,
                  struct error *err);
void manifest_release(struct manifest *m);
/* TOOL_* */
unsigned manifest_flags(const struct manifest *m);
/* Is it a schema we can show and check: an object, of bounded size? */
int manifest_check_schema(const json_t *schema, struct error *err);

#endif
