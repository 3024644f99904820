/*
 * The file described for editors (JSON Schema) and for people (docs/CONFIGURATION.md), from the
 * tables that read it.
 */
#include <string.h>

#include "config/config_private.h"

/* ---- JSON Schema ---- */

static json_t *object_schema(json_t *properties, json_t *required)
{
        json_t *s = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                              "additionalProperties", 0);

        if (json_array_size(required) > 0)
                json_object_set(s, "required", required);
        json_decref(required);
        return s;
}

/* One kind of adapter or agent: an object with this "type". `common` may be NULL. */
static json_t *kind_schema(const char *type, const char *help, const struct setting *common,
                           const struct setting *own)
{
        json_t *properties =
                json_pack("{s:{s:s, s:s}}", "type", "const", type, "description", help);
        json_t *required = json_pack("[s]", "type");

        if (common)
                settings_schema(common, properties, required);
        if (own)
                settings_schema(own, properties, required);
        return object_schema(properties, required);
}

/* An object of named things, each of one of the kinds. Takes `kinds` over. */
static json_t *named_schema(json_t *kinds, const char *help)
{
        return json_pack("{s:s, s:s, s:{s:s, s:i}, s:{s:o}}", "type", "object", "description", help,
                         "propertyNames", "pattern", CONFIG_NAME_PATTERN, "maxLength", 100,
                         "additionalProperties", "oneOf", kinds);
}

static json_t *adapters_schema(void)
{
        json_t *kinds = json_array();

        for (size_t i = 0; platform_kinds[i]; i++)
                json_array_append_new(
                        kinds, kind_schema(platform_kinds[i]->name, platform_kinds[i]->help,
                                           adapter_common_settings, platform_kinds[i]->settings));
        return named_schema(kinds, "Connections to platforms, by name.");
}

static json_t *agents_schema(void)
{
        json_t *kinds = json_array();

        for (size_t i = 0; agent_kinds[i]; i++)
                json_array_append_new(kinds,
                                      kind_schema(agent_kinds[i]->type, agent_kinds[i]->help,
                                                  agent_common_settings, agent_kinds[i]->settings));
        return named_schema(kinds, "Providers of answers, by name.");
}

static json_t *rules_schema(void)
{
        json_t *properties = json_object(), *required = json_array();

        settings_schema(rule_settings, properties, required);
        return json_pack("{s:s, s:s, s:o}", "type", "array", "description",
                         "Who answers what; the first rule that matches wins.", "items",
                         object_schema(properties, required));
}

json_t *config_schema(void)
{
        json_t *properties = json_pack("{s:{s:s}}", "$schema", "type", "string"),
               *required = json_array();
        json_t *s;

        settings_schema(config_root_settings, properties, required);
        json_object_set_new(properties, "adapters", adapters_schema());
        json_object_set_new(properties, "agents", agents_schema());
        json_object_set_new(properties, "rules", rules_schema());
        s = object_schema(properties, required);
        json_object_set_new(s, "$schema",
                            json_string("https://json-schema.org/draft/2020-12/schema"));
        json_object_set_new(s, "title", json_string("Dragoman's config.json"));
        return s;
}

/* ---- Markdown ---- */

/* clang-format off */
static const char introduction[] =
        "# Configuration\n\n"
        "<!-- Generated from the settings tables by `dragoman config doc`; edit those. -->\n\n"
        "Dragoman reads `config.json` in its data directory. The file is yours: the daemon never\n"
        "writes it. Without it there is a terminal, the HTTP API, and an agent: Anthropic's model\n"
        "when `ANTHROPIC_API_KEY` is in the environment, else OpenAI's when `OPENAI_API_KEY` is\n"
        "(`ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` are respected), else a demo that needs no\n"
        "account. A bot's token in the environment is an adapter, as long as the file has none of its\n"
        "kind: `DISCORD_BOT_TOKEN` makes `discord` (with `DISCORD_ADMIN_IDS` and `DISCORD_CHANNEL_IDS`,\n"
        "ids with commas between, as its `admins` and `channels`, and `DISCORD_API_BASE`), and\n"
        "`TELEGRAM_BOT_TOKEN` makes `telegram` in the same way.\n\n"
        "`API_BASE_URL` together with `DISCORD_API_KEY` is an `agent-chat` agent, preferred to a model. When\n"
        "the file has no rules, it reads along in the channels of `DISCORD_CHANNEL_IDS` (mode `ambient`, with the\n"
        "last `MESSAGE_HISTORY_LIMIT` messages, 25 unless set) and answers whoever speaks to a bot elsewhere.\n\n"
        "With `OMNI_DUAL_EMIT_REACTIONS=true` reactions are journaled a second time, as messages whose\n"
        "content has the type `reaction`, for software that does not know reactions yet; the copies trigger\n"
        "nothing.\n\n"
        "It is JSON with comments (`//` and `/* */`) and trailing commas. A mistake is reported\n"
        "with its line and what would have been accepted: `dragoman run DIR --check` looks\n"
        "without starting (exit code 78). `dragoman config schema` prints a JSON Schema for\n"
        "editors. SIGHUP reloads: what changed is restarted, the rest stays connected, and a file\n"
        "with a mistake, or one that has gone, changes nothing. `http`, `store` and `bus` take effect after a restart.\n\n"
        "```jsonc\n"
        "{\n"
        "  \"http\": { \"listen\": \"127.0.0.1:8420\" },\n"
        "  \"adapters\": {\n"
        "    \"terminal\": { \"type\": \"cli\" },\n"
        "    // a program of yours: it posts messages, and gets each answer posted to it\n"
        "    \"shop\": {\n"
        "      \"type\": \"api\",\n"
        "      \"callbackUrl\": \"https://shop.example/answers\",\n"
        "      \"callbackSecret\": \"env:SHOP_SECRET\",\n"
        "      \"agent\": \"gpt\",\n"
        "    },\n"
        "  },\n"
        "  \"agents\": {\n"
        "    \"assistant\": {\n"
        "      \"type\": \"anthropic\",\n"
        "      \"model\": \"claude-sonnet-4-5\",\n"
        "      \"apiKey\": \"env:ANTHROPIC_API_KEY\",\n"
        "    },\n"
        "    \"gpt\": { \"type\": \"openai\", \"model\": \"gpt-5\", \"apiKey\": \"file:openai.key\" },\n"
        "  },\n"
        "  \"defaultAgent\": \"assistant\",\n"
        "  \"rules\": [\n"
        "    { \"name\": \"quiet room\", \"when\": { \"channel\": \"lobby\" }, \"mode\": \"off\" },\n"
        "    { \"name\": \"everything else\" },\n"
        "  ],\n"
        "}\n"
        "```\n\n"
        "## Secrets\n\n"
        "A setting of type *secret* holds a handle, not the secret: `env:NAME` (an environment\n"
        "variable), `file:PATH` (relative to the data directory) or `cmd:PROGRAM ARG...` (the\n"
        "first line it prints, within 10 s). A secret written in clear works and is warned about.\n"
        "Secrets never appear in logs or messages.\n\n";

static const char adapters_text[] =
        "## `adapters`\n\n"
        "An adapter is one connection to a platform: a member of `adapters` with a name of your\n"
        "choice (small letters, digits, `-`, `_`, `.`) and a `type`. `terminal` (type `cli`) and\n"
        "`api` (type `api`) are there by themselves unless the file says something about an\n"
        "adapter of that name; `\"terminal\": { \"type\": \"cli\", \"enabled\": false }` switches it off.\n"
        "\n"
        "Nobody is answered who is not let in. On `cli` and `api` everybody is, for whoever can\n"
        "write there has shown a key; elsewhere these keys decide, in this order:\n\n"
        "1. `block` refuses, admins too.\n"
        "2. `admins` are answered everywhere.\n"
        "3. A direct message is answered when `dm` or `allow` has its sender. An `allow` of `*`\n"
        "   opens direct messages only where `dm` is not written.\n"
        "4. In a group it is answered when `channels` or `allow` has the channel or the guild, or\n"
        "   `allow` the sender.\n\n"
        "A key that is not written and an empty list let nobody in; `[\"7\"]` lets 7 in; `*` lets\n"
        "everybody in (`dm`: `everyone`). The log says at every start what is in force. Then the\n"
        "rules are asked: RULES.md has examples.\n\n"
        "`rateLimit` counts turns, not messages: what joins an answer that is still waiting is\n"
        "free. Who is too fast is told once in the time, and the reason stands in the trigger log.\n"
        "The counters survive a restart.\n\n"
        "Keys every adapter has:\n\n";

static const char agents_text[] =
        "## `agents`\n\n"
        "An agent gives answers: a member of `agents` with a name of your choice and a `type`.\n"
        "With several agents, `defaultAgent`, an adapter's `agent` or a rule says who answers.\n"
        "Keys every agent has:\n\n";

static const char rules_text[] =
        "## `rules`\n\n"
        "A list; the first rule that matches wins. All conditions of its `when` must hold\n"
        "together; a list means any of its members; `dm`, `mention`, `reply` and `mentionPattern`\n"
        "are alternatives. `*` globs. What no rule matches is not answered, and `dragoman why`\n"
        "tells the reason.\n\n"
        "Without rules, the adapter's agent answers direct messages, mentions and replies; on\n"
        "`cli` and `api` it answers everything, also when there are rules but none is about that\n"
        "adapter. Messages of bots are answered only by a rule whose `sender` names the bot or whose\n"
        "`bots` says so. `dragoman route test` tells for an event which rule takes it and why the\n"
        "others do not; RULES.md has examples.\n\n";
/* clang-format on */

static void add_kind(struct buf *out, const char *type, const char *help,
                     const struct setting *settings)
{
        buf_addf(out, "### `\"type\": \"%s\"`\n\n%s\n\n", type, help);
        if (!settings || !settings->key)
                return;
        settings_markdown(settings, out);
        buf_addch(out, '\n');
}

/* The root's members: single values first, then a chapter for each group. */
static void add_root(struct buf *out)
{
        struct setting plain[16] = { SETTING_END };
        size_t n = 0;

        for (const struct setting *row = config_root_settings; row->key; row++) {
                if (row->type != SETTING_GROUP && n + 1 < sizeof(plain) / sizeof(plain[0]))
                        plain[n++] = *row;
        }
        plain[n] = (struct setting)SETTING_END;
        buf_addstr(out, "## Single values\n\n");
        settings_markdown(plain, out);
        for (const struct setting *row = config_root_settings; row->key; row++) {
                if (row->type != SETTING_GROUP)
                        continue;
                buf_addf(out, "\n## `%s`\n\n%s\n\n", row->key, row->help);
                settings_markdown(row->group, out);
        }
        buf_addch(out, '\n');
}

void config_markdown(struct buf *out)
{
        buf_addstr(out, introduction);
        add_root(out);
        buf_addstr(out, adapters_text);
        settings_markdown(adapter_common_settings, out);
        buf_addch(out, '\n');
        for (size_t i = 0; platform_kinds[i]; i++)
                add_kind(out, platform_kinds[i]->name, platform_kinds[i]->help,
                         platform_kinds[i]->settings);
        buf_addstr(out, agents_text);
        settings_markdown(agent_common_settings, out);
        for (size_t i = 0; agent_kinds[i]; i++)
                add_kind(out, agent_kinds[i]->type, agent_kinds[i]->help, agent_kinds[i]->settings);
        buf_addstr(out, rules_text);
        settings_markdown(rule_settings, out);
}
