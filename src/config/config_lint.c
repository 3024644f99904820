/* Warnings about settings that are permitted but probably mistakes. */
#include <stdlib.h>
#include <string.h>

#include "agent/llm/model_facts.h"
#include "agent/tools/tool.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/secret.h"
#include "config/config_private.h"
#include "dispatch/rules/pattern.h"
#include "net/address.h"
#include "road/incoming.h"

#define TOOLS_MAX 200

/* ---- adapters ---- */

static bool admits_anyone(const struct adapter_common *a)
{
        return a->admins.count + a->allow.count + a->channels.count > 0 ||
               (a->dm.count > 0 && strcmp(a->dm.items[0], "none") != 0);
}

static void lint_adapters(const struct config *c, struct settings_source *src)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                const struct adapter_conf *a = c->adapters[i];
                char *path;

                if (!a->common.enabled || a->ops->trusted || admits_anyone(&a->common))
                        continue;
                path = mem_printf("adapters.%s", a->name);
                settings_warn(src, path,
                              "answers no one: list people or channels in 'admins', 'dm', "
                              "'channels' or 'allow'");
                free(path);
        }
        for (size_t i = 0; i < c->adapter_count && !c->default_agent && c->rule_count == 0; i++) {
                const struct adapter_conf *a = c->adapters[i];

                if (a->common.enabled && !a->common.agent)
                        settings_warn(src, "agents",
                                      "adapter '%s' has no agent: set its 'agent', a "
                                      "'defaultAgent', or rules",
                                      a->name);
        }
}

/* ---- rules ---- */

/* Warns of entries that match none of the names. */
static void lint_names(struct settings_source *src, const char *path,
                       const struct setting_list *list, const char *const *names, const char *what)
{
        for (size_t i = 0; i < list->count; i++) {
                const char *entry = list->items[i], *near = settings_nearest(entry, names);
                size_t n = 0;

                while (names[n] && !pattern_glob(entry, names[n]))
                        n++;
                if (!names[n])
                        settings_warn(src, path, "there is no %s '%.60s'%s%s%s", what, entry,
                                      near ? " (did you mean '" : "", near ? near : "",
                                      near ? "'?)" : "");
        }
}

/* Events that never reach rules; programs may send custom ones. */
static void lint_events(struct settings_source *src, const char *path,
                        const struct setting_list *list)
{
        static const char *const inbound[] = { EVENT_MESSAGE_RECEIVED,
                                               EVENT_MESSAGE_EDITED,
                                               EVENT_MESSAGE_DELETED,
                                               EVENT_REACTION_RECEIVED,
                                               EVENT_REACTION_REMOVED,
                                               EVENT_SCHEDULE_FIRED,
                                               NULL };

        for (size_t i = 0; i < list->count; i++) {
                char *entry = list->items[i];
                const struct setting_list one = { &entry, 1, true };

                if (strncmp(entry, "custom.", 7) != 0)
                        lint_names(src, path, &one, inbound, "event");
        }
}

/* "@anna" where the platform knows people by number never matches. Channels have names as well. */
static void lint_ids(const struct config *c, struct settings_source *src, const char *path,
                     const struct rule *r, const struct setting_list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                const char *entry = list->items[i];

                if (*entry == '#' ? list == &r->channel : *entry != '@')
                        continue;
                for (size_t j = 0; j < c->adapter_count; j++) {
                        const struct adapter_conf *a = c->adapters[j];

                        if (!a->ops->is_id || !rule_concerns(r, a->name, a->ops->name))
                                continue;
                        settings_warn(src, path,
                                      "'%.60s' is a name and matches nothing on %s, which knows "
                                      "people, roles and threads by id",
                                      entry, a->ops->title);
                        break;
                }
        }
}

static void lint_conditions(const struct config *c, struct settings_source *src, size_t at,
                            const char *const *adapters)
{
        const char *platforms[32] = { NULL };
        const struct rule *r = &c->rules[at];
        const struct {
                const char *key;
                const struct setting_list *list;
        } ids[] = { { "guild", &r->guild },
                    { "channel", &r->channel },
                    { "thread", &r->thread },
                    { "sender", &r->sender },
                    { "role", &r->role } };
        char *path = mem_printf("rules[%zu].when.adapter", at);

        lint_names(src, path, &r->adapter, adapters, "adapter");
        free(path);
        for (size_t i = 0; i + 1 < COUNT(platforms) && platform_kinds[i]; i++)
                platforms[i] = platform_kinds[i]->name;
        path = mem_printf("rules[%zu].when.platform", at);
        lint_names(src, path, &r->platform, platforms, "platform");
        free(path);
        path = mem_printf("rules[%zu].when.event", at);
        lint_events(src, path, &r->event);
        free(path);
        for (size_t i = 0; i < COUNT(ids); i++) {
                path = mem_printf("rules[%zu].when.%s", at, ids[i].key);
                lint_ids(c, src, path, r, ids[i].list);
                free(path);
        }
}

/*
 * Compares a rule with those before it. A rule without a name has a mistake and was not read.
 */
static void lint_order(const struct config *c, struct settings_source *src, size_t at)
{
        const struct rule *r = &c->rules[at];
        char *path = mem_printf("rules[%zu]", at);

        for (size_t i = 0; i < at; i++) {
                if (!c->rules[i].name || !rule_covers(&c->rules[i], r))
                        continue;
                settings_warn(src, path,
                              "is never reached: rules[%zu] ('%.60s') takes everything it matches; "
                              "put it before that rule",
                              i, c->rules[i].name);
                break;
        }
        for (size_t i = 0; i < at; i++) {
                if (!c->rules[i].name || strcmp(c->rules[i].name, r->name) != 0)
                        continue;
                settings_warn(src, path,
                              "has the name '%.60s' of rules[%zu]: they share a budget, and logs "
                              "cannot tell them apart",
                              r->name, i);
                break;
        }
        free(path);
}

static void lint_rules(const struct config *c, struct settings_source *src)
{
        const char **adapters = config_check_adapters(c, src);

        for (size_t i = 0; i < c->rule_count; i++) {
                if (!c->rules[i].name)
                        continue; /* reported as a mistake */
                lint_conditions(c, src, i, adapters);
                lint_order(c, src, i);
        }
        free(adapters);
}

/* ---- agents ---- */

static void lint_failover(struct settings_source *src, const struct agent_conf *a)
{
        const struct setting_list *others = &a->common.failover;
        char *path = mem_printf("agents.%s.failover", a->name);

        for (size_t i = 0; i < others->count; i++) {
                bool again = false;

                if (strcmp(others->items[i], a->name) == 0)
                        settings_warn(src, path,
                                      "names the agent itself, which is not asked again; name "
                                      "another one");
                for (size_t j = 0; j < i && !again; j++)
                        again = strcmp(others->items[i], others->items[j]) == 0;
                if (again)
                        settings_warn(src, path, "names '%s' twice", others->items[i]);
        }
        free(path);
}

/* A rule about a misspelt tool would never match. Other tools may have any name. */
static void lint_policy(struct settings_source *src, const struct agent_conf *a,
                        const char *const *names)
{
        json_t *rule;
        const char *name;

        json_object_foreach(json_object_get(a->raw, "policy"), name, rule) {
                const char *tool = json_str(rule, "tool", "*"), *near;
                bool known = strchr(tool, '*') != NULL;
                char *path;

                for (size_t i = 0; names[i] && !known; i++)
                        known = strcmp(names[i], tool) == 0;
                near = known ? NULL : settings_nearest(tool, names);
                if (!near)
                        continue;
                path = mem_printf("agents.%s.policy.%s.tool", a->name, name);
                settings_warn(src, path, "there is no tool '%.60s' (did you mean '%s'?)", tool,
                              near);
                free(path);
        }
}

/* Names in an agent's `tools` that neither its own nor a platform's tools have. */
static void lint_tools(struct settings_source *src, const struct agent_conf *a)
{
        const struct setting *row = a->ops->settings;
        const char *names[TOOLS_MAX + 1] = { NULL };
        size_t n = 0;
        char *path;

        while (row && row->key && strcmp(row->key, "tools") != 0)
                row++;
        if (!row || !row->key)
                return;
        for (size_t i = 0; tools[i] && n < TOOLS_MAX; i++)
                names[n++] = tools[i]->name;
        for (size_t i = 0; platform_kinds[i]; i++) {
                const struct platform_tool *t = platform_kinds[i]->tools;

                for (; t && t->tool.name && n < TOOLS_MAX; t++)
                        names[n++] = t->tool.name;
        }
        path = mem_printf("agents.%s.tools", a->name);
        lint_names(src, path,
                   (const struct setting_list *)(const void *)((const char *)a->conf + row->at),
                   names, "tool");
        free(path);
        lint_policy(src, a, names);
}

/* Would a turn count as free because the agent's prices are not set? */
static bool lacks_prices(const struct agent_conf *a)
{
        static const char *const keys[] = { "pricePerMTokIn", "pricePerMTokOut" };
        const char *model = json_str(a->raw, "model", ""), *slash = strchr(model, '/');

        if (model_table_find(slash ? slash + 1 : model) || json_object_get(a->raw, "priceTable"))
                return false;
        for (size_t i = 0; i < COUNT(keys); i++) {
                const struct setting *row = a->ops->settings;

                while (row && row->key && strcmp(row->key, keys[i]) != 0)
                        row++;
                if (!row || !row->key ||
                    *(const double *)(const void *)((const char *)a->conf + row->at) > 0)
                        return false;
        }
        return true;
}

/* agent NULL: any may answer. */
static void lint_budget(const struct config *c, struct settings_source *src, const char *path,
                        double usd_per_day, const char *agent)
{
        for (size_t i = 0; usd_per_day > 0 && i < c->agent_count; i++) {
                const struct agent_conf *a = c->agents[i];

                if ((agent && strcmp(a->name, agent) != 0) || !lacks_prices(a))
                        continue;
                settings_warn(src, path,
                              "cannot hold: agent '%s' has neither 'pricePerMTokIn' nor "
                              "'pricePerMTokOut', so its turns count as free unless the service "
                              "reports their cost",
                              a->name);
        }
}

static void lint_budgets(const struct config *c, struct settings_source *src)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                char *path = mem_printf("adapters.%s.budget", c->adapters[i]->name);

                /* rules may choose any agent */
                lint_budget(c, src, path, c->adapters[i]->common.budget.usd_per_day,
                            c->rule_count > 0              ? NULL
                            : c->adapters[i]->common.agent ? c->adapters[i]->common.agent
                                                           : c->default_agent);
                free(path);
        }
        for (size_t i = 0; i < c->rule_count; i++) {
                char *path = mem_printf("rules[%zu].budget", i);

                lint_budget(c, src, path, c->rules[i].budget.usd_per_day, c->rules[i].agent);
                free(path);
        }
}

/* ---- secrets on the wire ---- */

/*
 * Warns of an address without TLS on another machine, if there is a secret to send to it.
 * variable: of the environment, used where no setting has the secret; may be NULL.
 */
static void lint_secrets(struct settings_source *src, const char *section, const char *name,
                         const struct setting *table, const void *conf, const char *variable)
{
        const char *secret = NULL;

        for (const struct setting *s = table; s && s->key && !secret; s++) {
                if (s->type == SETTING_SECRET &&
                    *(struct secret *const *)(const void *)((const char *)conf + s->at))
                        secret = s->key;
        }
        if (!secret && variable && getenv(variable))
                secret = variable;
        for (const struct setting *s = table; secret && s && s->key; s++) {
                const char *url;
                char *path;

                if (s->type != SETTING_URL && s->type != SETTING_STRING)
                        continue;
                url = *(const char *const *)(const void *)((const char *)conf + s->at);
                if (!url || !address_is_exposed(url))
                        continue;
                path = mem_printf("%s.%s.%s", section, name, s->key);
                settings_warn(src, path,
                              "'%s' and all messages travel unencrypted to another machine; use "
                              "%s://",
                              secret, strncmp(url, "ws", 2) == 0 ? "wss" : "https");
                free(path);
        }
}

void config_lint(const struct config *c, struct settings_source *src)
{
        lint_adapters(c, src);
        lint_rules(c, src);
        for (size_t i = 0; i < c->agent_count; i++)
                lint_failover(src, c->agents[i]);
        for (size_t i = 0; i < c->agent_count; i++)
                lint_tools(src, c->agents[i]);
        lint_budgets(c, src);
        for (size_t i = 0; i < c->adapter_count; i++)
                lint_secrets(src, "adapters", c->adapters[i]->name, c->adapters[i]->ops->settings,
                             c->adapters[i]->conf, c->adapters[i]->ops->token_variable);
        for (size_t i = 0; i < c->agent_count; i++)
                lint_secrets(src, "agents", c->agents[i]->name, c->agents[i]->ops->settings,
                             c->agents[i]->conf, NULL);
}
