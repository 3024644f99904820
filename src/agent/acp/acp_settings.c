/*
 * acp_settings: mode and model of a session, as the configuration wants them.
 *
 * Newer agents have options (session/set_config_option) with a category, older ones modes
 * (session/set_mode) beside them. A name that the agent does not have ends the start: the operator
 * should see it, and not be answered by another model.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "base/json.h"
#include "base/mem.h"

#define NAMES_MAX 12 /* shown in an error */

static const char *const categories[] = { "mode", "model" };

static const char *wanted(const struct acp *a, unsigned i)
{
        const struct acp_conf *conf = child_conf(a->child);

        return i == 0 ? conf->mode : conf->model;
}

static const json_t *find_option(const json_t *opened, const char *category)
{
        const json_t *options = json_object_get(opened, "configOptions"), *o;
        size_t i;

        json_array_foreach(options, i, o)
                if (strcmp(json_str(o, "category", json_str(o, "id", "")), category) == 0)
                        return o;
        return NULL;
}

/* Does the list, which may have groups, hold the value? Appends the values to names. */
static bool has_value(const json_t *values, const char *key, const char *value, struct buf *names)
{
        const json_t *v;
        bool found = false;
        size_t i;

        json_array_foreach(values, i, v) {
                const json_t *group = json_object_get(v, "options");
                const char *name = json_str(v, key, NULL);

                if (json_is_array(group))
                        found = has_value(group, key, value, names) || found;
                else if (name)
                        found = strcmp(name, value) == 0 || found;
                if (name && i < NAMES_MAX)
                        buf_addf(names, "%s\"%.80s\"", names->len ? ", " : "", name);
        }
        return found;
}

static void refuse_value(struct acp *a, const char *category, const char *value, const char *names)
{
        char *why = *names ? mem_printf("it has no %s '%s', but %s", category, value, names)
                           : mem_printf("it lets nobody choose its %s", category);

        acp_refuse(a, "The agent could not be started. Please tell the operator.", why);
        free(why);
}

/* Sends the request for a setting. False: there is no such value, and the start has ended. */
static bool request(struct acp *a, const char *category, const char *value)
{
        const json_t *option = find_option(a->opened, category);
        const json_t *modes = json_object_get(a->opened, "modes");
        struct buf names;
        bool has;

        buf_init(&names, 2000);
        if (option) {
                has = has_value(json_object_get(option, "options"), "value", value, &names);
                if (has)
                        a->awaited = acp_request(
                                a, "session/set_config_option",
                                json_pack("{s:s, s:s, s:s}", "sessionId", a->session, "configId",
                                          json_str(option, "id", ""), "value", value));
        } else {
                has = strcmp(category, "mode") == 0 &&
                      has_value(json_object_get(modes, "availableModes"), "id", value, &names);
                if (has)
                        a->awaited = acp_request(
                                a, "session/set_mode",
                                json_pack("{s:s, s:s}", "sessionId", a->session, "modeId", value));
        }
        if (!has)
                refuse_value(a, category, value, names.data);
        buf_release(&names);
        return has;
}

void acp_configure(struct acp *a)
{
        while (a->setting < COUNT(categories)) {
                const char *value = wanted(a, a->setting);

                if (value) {
                        request(a, categories[a->setting], value);
                        return;
                }
                a->setting++;
        }
        acp_ready(a);
}

void acp_configured(struct acp *a, const json_t *error)
{
        char *text, *why;

        if (!error) {
                a->setting++;
                acp_configure(a);
                return;
        }
        text = acp_error_text(error);
        why = mem_printf("it does not accept the %s '%s': %s", categories[a->setting],
                         wanted(a, a->setting), text);
        acp_refuse(a, "The agent could not be started. Please tell the operator.", why);
        free(why);
        free(text);
}
