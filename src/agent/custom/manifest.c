#include "agent/custom/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom_source.h"
#include "base/json.h"
#include "base/mem.h"

static const struct setting settings[] = {
        { "name", SETTING_STRING, "null", 1, CUSTOM_KEY_MAX,
          .at = offsetof(struct manifest, name) },
        { "description", SETTING_STRING, "null", 1, CUSTOM_DESCRIPTION_MAX,
          .at = offsetof(struct manifest, description) },
        { "command", SETTING_STRINGS, "[]", .at = offsetof(struct manifest, command) },
        { "env", SETTING_PAIRS, "{}", .at = offsetof(struct manifest, env) },
        { "timeoutSeconds", SETTING_INT, "60", 1, 3600,
          .at = offsetof(struct manifest, timeout_seconds) },
        { "readOnly", SETTING_BOOL, "false", .at = offsetof(struct manifest, read_only) },
        { "risky", SETTING_BOOL, "false", .at = offsetof(struct manifest, risky) },
        { "trusted", SETTING_BOOL, "false", .at = offsetof(struct manifest, trusted) },
        SETTING_END
};
static const struct setting *const tables[] = { settings, NULL };
static const char *const also[] = { "parameters", "$schema", NULL };

int manifest_check_schema(const json_t *schema, struct error *err)
{
        const json_t *type = json_object_get(schema, "type");
        char *text;
        size_t n;

        if (!json_is_object(schema))
                return error_set(err, ERR_INVALID, "the parameters are not a JSON Schema object");
        if (type && strcmp(json_is_string(type) ? json_string_value(type) : "", "object") != 0)
                return error_set(err, ERR_INVALID, "the parameters must have \"type\": \"object\"");
        text = json_text(schema);
        n = strlen(text);
        free(text);
        if (n > CUSTOM_SCHEMA_MAX)
                return error_set(err, ERR_INVALID, "the parameters have %zu bytes, at most %d", n,
                                 CUSTOM_SCHEMA_MAX);
        return 0;
}

static int check(struct settings_source *src, const struct manifest *m, struct error *err)
{
        struct error why;

        if (m->name && !custom_is_key(m->name))
                return settings_error(src, "name", err,
                                      "expected letters, digits, '_' and '-' only");
        if (m->command.set && m->command.count == 0)
                return settings_error(src, "command", err,
                                      "expected a program and its arguments, such as "
                                      "[\"./run.sh\"]");
        if (m->parameters && manifest_check_schema(m->parameters, &why) < 0)
                return settings_error(src, "parameters", err, "%s", why.text);
        for (size_t i = 0; i < m->env.count; i++) {
                if (m->env.names[i][0] == '\0' || strchr(m->env.names[i], '='))
                        return settings_error(src, "env", err,
                                              "'%.60s' is not the name of a variable",
                                              m->env.names[i]);
        }
        return 0;
}

int manifest_read(const char *name, const char *dir, const char *text, size_t n, struct manifest *m,
                  struct error *err)
{
        struct settings_source *src = settings_source_new(name, dir, text, n, err);
        const json_t *root;
        int rc;

        *m = (struct manifest){ 0 };
        if (!src)
                return -1;
        root = settings_source_root(src);
        rc = settings_read(src, "", root, tables, also, m, err);
        if (rc == 0) {
                m->parameters = json_incref(json_object_get(root, "parameters"));
                rc = check(src, m, err);
                if (rc < 0)
                        manifest_release(m);
        }
        settings_source_free(src);
        return rc;
}

void manifest_release(struct manifest *m)
{
        settings_release(tables, m);
        json_decref(m->parameters);
        m->parameters = NULL;
}

unsigned manifest_flags(const struct manifest *m)
{
        return (m->read_only ? TOOL_READ_ONLY : 0u) | (m->risky ? TOOL_RISKY : 0u) |
               (m->trusted ? 0u : TOOL_UNTRUSTED);
}
