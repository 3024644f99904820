/* The JSON Schema and docs/CONFIGURATION.md, from the tables that read the file. */
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

/* An object with this "type". `common` may be NULL. */
static json_t *kind_schema(const char *type, const char *help, const struct setting *common,
                           const struct setting *own)
{
        json_t *properties =
                json_pack("{s:{s:s, s:s}}", "type", "const", type, "description", help);
        json_t *required = json_pack("[s]", "type");

        if (common)
                settings_doc_schema(common, properties, required);
        if (own)
                settings_doc_schema(own, properties, required);
        return object_schema(properties, required);
}

/* Takes over `kinds`. */
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

        settings_doc_schema(rule_settings, properties, required);
        return json_pack("{s:s, s:s, s:o}", "type", "array", "description",
                         "Which agent answers what; the first matching rule wins.", "items",
                         object_schema(properties, required));
}

json_t *config_doc_schema(void)
{
        json_t *properties = json_pack("{s:{s:s}}", "$schema", "type", "string"),
               *required = json_array();
        json_t *s;

        settings_doc_schema(config_root_settings, properties, required);
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

static const char introduction[] =
        "# Configuration\n\n"
        "<!-- Generated from the settings tables by `dragoman config doc`; edit those. -->\n\n"
        "Dragoman reads `config.json` in its data directory. The daemon never writes the\n"
        "file. Without it there is a terminal, the HTTP API and an agent: Anthropic's model\n"
        "when `ANTHROPIC_API_KEY` is in the environment, else OpenAI's when `OPENAI_API_KEY`\n"
        "is (`ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` are respected), else a demo that\n"
        "needs no account.\n\n"
        "A bot token in the environment makes an adapter unless the file has one of its kind.\n"
        "`DISCORD_BOT_TOKEN` makes `discord`; `DISCORD_ADMIN_IDS` and `DISCORD_CHANNEL_IDS`\n"
        "(comma-separated ids) are its `admins` and `channels`, `DISCORD_API_BASE` its\n"
        "`apiBase`. `TELEGRAM_BOT_TOKEN` makes `telegram` in the same way, `SLACK_BOT_TOKEN`\n"
        "together with `SLACK_APP_TOKEN` makes `slack`.\n\n"
        "`API_BASE_URL` together with `DISCORD_API_KEY` makes an `agent-chat` agent, which is\n"
        "preferred to a model. When the file has no rules, the agent runs in mode `ambient`\n"
        "in the channels of `DISCORD_CHANNEL_IDS`, with the last `MESSAGE_HISTORY_LIMIT`\n"
        "messages (default 25), and answers messages addressed to a bot elsewhere.\n\n"
        "With `OMNI_DUAL_EMIT_REACTIONS=true` each reaction is journaled a second time, as a\n"
        "message whose content has the type `reaction`, for software that does not know\n"
        "reactions yet. These copies trigger nothing.\n\n"
        "The format is JSON with comments (`//` and `/* */`) and trailing commas. `dragoman\n"
        "config check DIR` lists every mistake with its line and what would have been\n"
        "accepted, without starting (exit code 78). What cannot work is a mistake: an unknown\n"
        "key, a name where the platform wants an id, a missing file, a webhook without an\n"
        "address. What works but was probably not meant is a warning: a rule that an earlier\n"
        "one hides or that names an unknown adapter or event, two rules of one name, a\n"
        "failover to the agent itself, a budget for an agent without prices, a secret that\n"
        "travels unencrypted to another machine. The daemon refuses a file with mistakes and\n"
        "logs warnings. Files are relative to the data directory. `dragoman config schema`\n"
        "prints a JSON Schema for editors. SIGHUP reloads the file: changed parts and\n"
        "stopped adapters restart, the rest stays connected. A malformed or missing file\n"
        "changes nothing. `http`, `store` and `bus` take effect after a restart.\n\n"
        "```jsonc\n"
        "{\n"
        "  \"http\": { \"listen\": \"127.0.0.1:8420\" },\n"
        "  \"adapters\": {\n"
        "    \"terminal\": { \"type\": \"cli\" },\n"
        "    // your program posts messages and receives each answer by POST\n"
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
        "    \"gpt\": {\n"
        "      \"type\": \"openai\",\n"
        "      \"model\": \"gpt-5\",\n"
        "      \"apiKey\": \"file:openai.key\",\n"
        "    },\n"
        "  },\n"
        "  \"defaultAgent\": \"assistant\",\n"
        "  \"rules\": [\n"
        "    { \"name\": \"quiet\", \"when\": { \"channel\": \"lobby\" }, \"mode\": \"off\" },\n"
        "    { \"name\": \"everything else\" },\n"
        "  ],\n"
        "}\n"
        "```\n\n"
        "## Secrets\n\n"
        "A setting of type *secret* holds a handle, not the secret: `env:NAME` (an\n"
        "environment variable), `file:PATH` (relative to the data directory) or `cmd:PROGRAM\n"
        "ARG...` (the first line it prints, within 10 s). A secret written in clear works but\n"
        "gives a warning. Secrets never appear in logs or messages.\n\n";

static const char adapters_text[] =
        "## `adapters`\n\n"
        "An adapter is one connection to a platform: a member of `adapters` with a name of\n"
        "your choice (lower-case letters, digits, `-`, `_`, `.`) and a `type`. `terminal`\n"
        "(type `cli`) and `api` (type `api`) are added unless the file has an adapter of that\n"
        "name; `\"terminal\": { \"type\": \"cli\", \"enabled\": false }` switches it off.\n\n"
        "Access is closed by default. `cli` and `api` admit everyone, because their clients\n"
        "have shown a key. Elsewhere these keys decide, in this order:\n\n"
        "1. `block` refuses, even admins.\n"
        "2. `admins` are answered everywhere.\n"
        "3. A direct message is answered when `dm` or `allow` lists its sender. An `allow` of\n"
        "   `*` opens direct messages only when `dm` is absent.\n"
        "4. A message in a group is answered when `channels` or `allow` lists the channel or\n"
        "   the guild, or `allow` lists the sender.\n\n"
        "An absent key and an empty list admit no one, `[\"7\"]` admits 7, `*` admits\n"
        "everyone (`dm`: `everyone`). The log shows the access in force at every start. Then\n"
        "the rules decide; RULES.md has examples.\n\n"
        "`rateLimit` counts turns, not messages: a message that joins a waiting turn is free.\n"
        "A sender over the limit gets one notice per period, and the trigger log has the\n"
        "reason. Counters survive a restart, except those of API keys. `ambientRateLimit`\n"
        "counts the unrequested turns of ambient and silent rules, so that they do not use\n"
        "up `rateLimit`.\n\n"
        "Keys of every adapter:\n\n";

static const char agents_text[] =
        "## `agents`\n\n"
        "An agent gives answers: a member of `agents` with a name of your choice and a\n"
        "`type`. With several agents, `defaultAgent`, an adapter's `agent` or a rule chooses\n"
        "one. Keys of every agent:\n\n";

static const char rules_text[] =
        "## `rules`\n\n"
        "A list; the first matching rule wins. All conditions of its `when` must hold; a list\n"
        "matches any of its members; `dm`, `mention`, `reply`, `conversation` and\n"
        "`mentionPattern` are alternatives. `*` globs. An event that no rule matches is not\n"
        "answered, and `dragoman why` shows the reason.\n\n"
        "Without rules, the adapter's agent answers direct messages, mentions and replies; on\n"
        "`cli` and `api` it answers everything, even when there are rules but none names that\n"
        "adapter. Messages of bots are answered only by a rule whose `sender` names the bot\n"
        "or whose `bots` permits it. `dragoman route test` shows for an event which rule\n"
        "takes it and why the others do not; RULES.md has examples.\n\n";

static void add_kind(struct buf *out, const char *type, const char *help,
                     const struct setting *settings)
{
        buf_addf(out, "### `\"type\": \"%s\"`\n\n%s\n\n", type, help);
        if (!settings || !settings->key)
                return;
        settings_doc_markdown(settings, out);
        buf_addch(out, '\n');
}

/* Single values first, then a chapter per group. */
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
        settings_doc_markdown(plain, out);
        for (const struct setting *row = config_root_settings; row->key; row++) {
                if (row->type != SETTING_GROUP)
                        continue;
                buf_addf(out, "\n## `%s`\n\n%s\n\n", row->key, row->help);
                settings_doc_markdown(row->group, out);
        }
        buf_addch(out, '\n');
}

void config_doc_markdown(struct buf *out)
{
        buf_addstr(out, introduction);
        add_root(out);
        buf_addstr(out, adapters_text);
        settings_doc_markdown(adapter_common_settings, out);
        buf_addch(out, '\n');
        for (size_t i = 0; platform_kinds[i]; i++)
                add_kind(out, platform_kinds[i]->name, platform_kinds[i]->help,
                         platform_kinds[i]->settings);
        buf_addstr(out, agents_text);
        settings_doc_markdown(agent_common_settings, out);
        for (size_t i = 0; agent_kinds[i]; i++)
                add_kind(out, agent_kinds[i]->type, agent_kinds[i]->help, agent_kinds[i]->settings);
        buf_addstr(out, rules_text);
        settings_doc_markdown(rule_settings, out);
}
