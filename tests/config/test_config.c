#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/scratch.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/config.h"

#define KEY "sk-test-0123456789"

static const char *const environment[] = {
        "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY",        "OPENAI_BASE_URL",
        "DISCORD_BOT_TOKEN", "DISCORD_ADMIN_IDS",  "DISCORD_CHANNEL_IDS",   "TELEGRAM_BOT_TOKEN",
        "API_BASE_URL",      "DISCORD_API_KEY",    "MESSAGE_HISTORY_LIMIT", "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",   "SLACK_ADMIN_IDS",    "SLACK_CHANNEL_IDS"
};

static int begin(void **state)
{
        for (size_t i = 0; i < COUNT(environment); i++)
                unsetenv(environment[i]);
        *state = scratch_new();
        return 0;
}

static int end(void **state)
{
        scratch_free(*state);
        return 0;
}

static void write_config(const char *dir, const char *text)
{
        scratch_put(dir, "config.json", text);
}

static struct config *load(const char *dir, const char *text)
{
        struct config *c = NULL;
        struct error err = { 0 };

        if (text)
                write_config(dir, text);
        if (config_load(dir, &c, &err) < 0)
                fail_msg("%s", err.text);
        return c;
}

static const struct adapter_conf *adapter(const struct config *c, const char *name)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                if (strcmp(c->adapters[i]->name, name) == 0)
                        return c->adapters[i];
        }
        return NULL;
}

static void an_empty_directory_works(void **state)
{
        struct config *c = load(*state, NULL);

        assert_false(c->has_file);
        assert_string_equal(c->http.listen, "127.0.0.1:8420");
        assert_string_equal(c->store_url, "sqlite");
        assert_string_equal(c->bus_url, "local");
        assert_int_equal(c->adapter_count, 2);
        assert_string_equal(adapter(c, "terminal")->ops->name, "cli");
        assert_string_equal(adapter(c, "api")->ops->name, "api");
        assert_int_equal(c->agent_count, 1);
        assert_string_equal(c->agents[0]->ops->type, "demo");
        assert_string_equal(c->default_agent, c->agents[0]->name);
        assert_string_equal(c->agent_note, "demo agent (no key in the environment)");
        assert_int_equal(c->rule_count, 0);
        for (size_t i = 0; i < STREAM_COUNT; i++)
                assert_int_equal(c->retention_ms[i], INT64_C(7) * 86400000);
        assert_true(c->limits.running_turns > 0);
        assert_string_equal(config_warnings(c), "");
        config_free(c);
}

static void a_key_in_the_environment_brings_a_real_model(void **state)
{
        struct config *c;

        setenv("OPENAI_API_KEY", KEY, 1);
        setenv("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1", 1);
        c = load(*state, NULL);
        assert_string_equal(c->agents[0]->name, "assistant");
        assert_string_equal(c->agents[0]->ops->type, "builtin");
        assert_string_equal(json_str(c->agents[0]->raw, "model", ""), "openai/gpt-5");
        assert_string_equal(json_str(c->agents[0]->raw, "apiKey", ""), "env:OPENAI_API_KEY");
        assert_string_equal(json_str(c->agents[0]->raw, "baseUrl", ""), "http://127.0.0.1:1234/v1");
        assert_null(strstr(c->agent_note, KEY));
        config_free(c);

        setenv("ANTHROPIC_API_KEY", KEY, 1);
        c = load(*state, "{ /* nothing */ }");
        assert_int_equal(c->agent_count, 1);
        assert_string_equal(c->agents[0]->ops->type, "builtin");
        assert_string_equal(json_str(c->agents[0]->raw, "model", ""),
                            "anthropic/claude-sonnet-4-5");
        config_free(c);

        c = load(*state, "{\"agents\": {\"mine\": {\"type\": \"echo\"}}}");
        assert_string_equal(c->agents[0]->name, "mine");
        assert_int_equal(c->agent_count, 1);
        config_free(c);

        setenv("ANTHROPIC_API_KEY", "", 1); /* empty counts as unset */
        setenv("OPENAI_API_KEY", "", 1);
        c = load(*state, "{\"agents\": {}}");
        assert_string_equal(c->agents[0]->ops->type, "demo");
        config_free(c);
}

static void a_token_in_the_environment_is_a_bot_unless_the_file_has_one(void **state)
{
        const struct adapter_conf *a;
        struct config *c;

        setenv("DISCORD_BOT_TOKEN", "MTIz.discord.secret", 1);
        setenv("DISCORD_ADMIN_IDS", " 10, 11,,12 ", 1);
        setenv("DISCORD_CHANNEL_IDS", "456", 1);
        setenv("TELEGRAM_BOT_TOKEN", "42:telegram-secret", 1);
        c = load(*state, NULL);
        a = adapter(c, "discord");
        assert_string_equal(a->ops->name, "discord");
        assert_string_equal(json_str(a->raw, "botToken", ""), "env:DISCORD_BOT_TOKEN");
        assert_int_equal(a->common.admins.count, 3);
        assert_string_equal(a->common.admins.items[2], "12");
        assert_string_equal(a->common.channels.items[0], "456");
        assert_string_equal(adapter(c, "telegram")->ops->name, "telegram");
        assert_int_equal(adapter(c, "telegram")->common.admins.count, 0);
        config_free(c);

        c = load(*state, "{\"adapters\": {\"mine\": {\"type\": \"discord\", \"botToken\": "
                         "\"env:DISCORD_BOT_TOKEN\"}}}");
        assert_non_null(adapter(c, "mine"));
        assert_null(adapter(c, "discord"));
        /* the file decides who is answered */
        assert_int_equal(adapter(c, "mine")->common.admins.count, 0);
        assert_non_null(adapter(c, "telegram"));
        config_free(c);
}

static void slacks_two_tokens_in_the_environment_are_a_bot(void **state)
{
        const struct adapter_conf *a;
        struct config *c = NULL;
        struct error err = { 0 };

        setenv("SLACK_BOT_TOKEN", "xoxb-1-2-bot", 1);
        setenv("SLACK_APP_TOKEN", "xapp-1-A2-app", 1);
        setenv("SLACK_ADMIN_IDS", "U07ADMIN", 1);
        setenv("SLACK_CHANNEL_IDS", "C07GENERAL,C08", 1);
        c = load(*state, NULL);
        a = adapter(c, "slack");
        assert_string_equal(json_str(a->raw, "botToken", ""), "env:SLACK_BOT_TOKEN");
        assert_string_equal(json_str(a->raw, "appToken", ""), "env:SLACK_APP_TOKEN");
        assert_string_equal(a->common.admins.items[0], "U07ADMIN");
        assert_int_equal(a->common.channels.count, 2);
        config_free(c);

        /* swapped */
        setenv("SLACK_BOT_TOKEN", "xapp-1-A2-app", 1);
        setenv("SLACK_APP_TOKEN", "xoxb-1-2-bot", 1);
        assert_int_equal(config_load(*state, &c, &err), -1);
        assert_non_null(strstr(err.text, "SLACK_BOT_TOKEN in the environment"));
        assert_non_null(strstr(err.text, "this is the app-level token (xapp-...), which belongs "
                                         "into appToken"));
        assert_null(strstr(err.text, "A2-app"));
}

static void slacks_tokens_are_checked_by_their_kind(void **state)
{
        static const struct {
                const char *settings, *says;
        } rows[] = {
                { "\"botToken\": \"env:APP\"", "botToken: this is the app-level token (xapp-...)" },
                { "\"botToken\": \"env:PERSON\"", "botToken: this is a person's token (xoxp-...)" },
                { "\"botToken\": \"env:ROTATED\"", "token rotation, which expires after twelve" },
                { "\"botToken\": \"env:KEY\"", "does not look like a bot's token, which begins "
                                               "with xoxb-" },
                { "\"botToken\": \"env:BOT\", \"appToken\": \"env:BOT\"",
                  "appToken: this is the bot's token (xoxb-...), which belongs into botToken" },
                { "\"botToken\": \"env:BOT\", \"appToken\": \"env:KEY\"",
                  "does not look like an app-level token, which begins with xapp-" },
                { "\"botToken\": \"env:BOT\", \"mode\": \"http\"",
                  "signingSecret: mode 'http' needs the app's signing secret" },
                { "\"suggestedPrompts\": [\"no title\"]", "'no title' is not 'Title: message'" },
                { "\"connections\": 11", "connections: 11 is too large (1 to 10)" },
                { "\"channels\": [\"C7\", \"general\"]", "general" },
        };

        setenv("BOT", "xoxb-1-2-bot", 1);
        setenv("APP", "xapp-1-A2-app", 1);
        setenv("PERSON", "xoxp-1-2-3", 1);
        setenv("ROTATED", "xoxe.xoxb-1-2-3", 1);
        setenv("KEY", KEY, 1);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct config *c = NULL;
                struct error err = { 0 };
                char *text = mem_printf("{\"adapters\": {\"work\": {\"type\": \"slack\", %s}}}",
                                        rows[i].settings);

                write_config(*state, text);
                free(text);
                assert_int_equal(config_load(*state, &c, &err), -1);
                if (!strstr(err.text, rows[i].says))
                        fail_msg("%s: %s", rows[i].settings, err.text);
        }
}

static void a_bad_token_in_the_environment_names_its_origin(void **state)
{
        struct config *c = NULL;
        struct error err = { 0 };

        setenv("DISCORD_BOT_TOKEN", "not a token", 1);
        assert_int_equal(config_load(*state, &c, &err), -1);
        assert_non_null(strstr(err.text,
                               "cannot make an adapter from DISCORD_BOT_TOKEN in the environment"));
        assert_null(strstr(err.text, "not a token"));
}

static void set_chat_service(void)
{
        setenv("DISCORD_BOT_TOKEN", "MTIz.discord.secret", 1);
        setenv("API_BASE_URL", "http://127.0.0.1:1234", 1);
        setenv("DISCORD_API_KEY", KEY, 1);
        setenv("DISCORD_CHANNEL_IDS", "123,456", 1);
        setenv("MESSAGE_HISTORY_LIMIT", "12", 1);
}

static void chat_service_variables_make_an_ambient_agent(void **state)
{
        struct config *c;

        set_chat_service();
        setenv("OPENAI_API_KEY", KEY, 1);
        c = load(*state, NULL);
        assert_int_equal(c->agent_count, 1);
        assert_string_equal(c->agents[0]->ops->type, "agent-chat");
        assert_string_equal(json_str(c->agents[0]->raw, "url", ""), "http://127.0.0.1:1234");
        assert_string_equal(json_str(c->agents[0]->raw, "apiKey", ""), "env:DISCORD_API_KEY");
        assert_int_equal(json_int(c->agents[0]->raw, "historyLimit", 0), 12);
        assert_null(strstr(c->agent_note, KEY));
        assert_string_equal(adapter(c, "discord")->common.channels.items[1], "456");
        assert_int_equal(c->rule_count, 2);
        assert_int_equal(c->rules[0].mode, MODE_AMBIENT);
        assert_int_equal(c->rules[0].history, 12);
        assert_int_equal(c->rules[0].channel.count, 2);
        assert_string_equal(c->rules[0].channel.items[0], "123");
        assert_int_equal(c->rules[1].mode, MODE_REPLY); /* elsewhere, when addressed */
        assert_true(c->rules[1].dm && c->rules[1].mention && c->rules[1].reply &&
                    c->rules[1].conversation);
        config_free(c);

        unsetenv("MESSAGE_HISTORY_LIMIT");
        c = load(*state, NULL);
        assert_int_equal(c->rules[0].history, 25);
        config_free(c);
}

static void the_file_overrides_chat_service_variables(void **state)
{
        struct config *c;

        set_chat_service();
        c = load(*state, "{\"rules\": [{\"name\": \"mine\"}]}");
        assert_string_equal(c->agents[0]->ops->type, "agent-chat");
        assert_int_equal(c->rule_count, 1);
        config_free(c);

        c = load(*state, "{\"agents\": {\"mine\": {\"type\": \"echo\"}}}");
        assert_string_equal(c->agents[0]->name, "mine");
        assert_int_equal(c->rule_count, 0);
        config_free(c);

        unsetenv("DISCORD_API_KEY"); /* API_BASE_URL alone may belong to another program */
        c = load(*state, "{}");
        assert_string_equal(c->agents[0]->ops->type, "demo");
        assert_int_equal(c->rule_count, 0);
        config_free(c);
}

static void a_bad_history_limit_in_the_environment_names_its_origin(void **state)
{
        static const char *const wrong[] = { "many", "0", "101", "25x", "-3" };

        set_chat_service();
        for (size_t i = 0; i < COUNT(wrong); i++) {
                struct config *c = NULL;
                struct error err = { 0 };

                setenv("MESSAGE_HISTORY_LIMIT", wrong[i], 1);
                assert_int_equal(config_load(*state, &c, &err), -1);
                assert_non_null(strstr(err.text, "MESSAGE_HISTORY_LIMIT"));
                assert_non_null(strstr(err.text, "from 1 to 100"));
        }
}

static void a_bad_base_url_in_the_environment_names_its_origin(void **state)
{
        struct config *c = NULL;
        struct error err = { 0 };

        setenv("ANTHROPIC_API_KEY", KEY, 1);
        setenv("ANTHROPIC_BASE_URL", "nonsense", 1);
        assert_int_equal(config_load(*state, &c, &err), -1);
        assert_non_null(
                strstr(err.text, "cannot make an agent from ANTHROPIC_API_KEY in the environment"));
        assert_null(strstr(err.text, KEY));
        assert_null(c);
}

static void the_terminal_and_the_api_are_added_by_default(void **state)
{
        struct config *c = load(*state, "{\"adapters\": {\"shell\": {\"type\": \"cli\"}, "
                                        "\"api\": {\"type\": \"api\", \"enabled\": false}}}");

        assert_int_equal(c->adapter_count, 3);
        assert_non_null(adapter(c, "shell"));
        assert_non_null(adapter(c, "terminal"));
        assert_false(adapter(c, "api")->common.enabled);
        config_free(c);
}

static void everything_in_the_file_is_read(void **state)
{
        struct config *c = load(
                *state,
                "{ // comments and trailing commas are fine\n"
                "\"$schema\": \"x\",\n"
                "\"http\": {\"listen\": \"0.0.0.0:0\", \"trustedProxy\": \"10.0.0.1\"},\n"
                "\"retention\": {\"message\": 1.5, \"custom\": -1, \"turn\": 0},\n"
                "\"limits\": {\"mailbox\": 3},\n"
                "\"adapters\": {\"shop\": {\"type\": \"api\", \"agent\": \"two\",\n"
                "  \"callbackUrl\": \"https://shop.example/x\", \"pace\": {\"perSecond\": "
                "3}}},\n"
                "\"agents\": {\"one\": {\"type\": \"echo\"}, \"two\": {\"type\": \"demo\"}},\n"
                "\"defaultAgent\": \"one\",\n"
                "\"rules\": [{\"name\": \"r\", \"when\": {\"adapter\": \"sh*\", \"dm\": true},\n"
                "  \"agent\": \"two\"}, {\"mode\": \"off\"},],\n"
                "}\n");

        assert_string_equal(c->http.listen, "0.0.0.0:0");
        assert_int_equal(c->retention_ms[STREAM_MESSAGE], 129600000);
        assert_int_equal(c->retention_ms[STREAM_CUSTOM], -1);
        assert_int_equal(c->retention_ms[STREAM_TURN], 1);
        assert_int_equal(c->limits.mailbox, 3);
        assert_int_equal(c->adapter_count, 3); /* its own, the terminal and the API */
        assert_string_equal(adapter(c, "shop")->common.agent, "two");
        assert_string_equal(c->default_agent, "one");
        assert_string_equal(c->agent_note, "one (echo), two (demo)");
        assert_int_equal(c->rule_count, 2);
        assert_string_equal(c->rules[0].name, "r");
        assert_true(c->rules[0].dm);
        assert_string_equal(c->rules[1].name, "rule 2");
        assert_string_equal(config_warnings(c), "");
        config_free(c);
}

static void every_mistake_is_reported_with_file_and_line(void **state)
{
        static const struct {
                const char *text, *error;
        } rows[] = {
                { "[]", "config.json:1: expected an object" },
                { "{\n\"htpp\": {}}", "config.json:2: unknown key 'htpp' (did you mean 'http'?)" },
                { "{\n\"adapter\": {}}",
                  "config.json:2: unknown key 'adapter' (did you mean 'adapters'?)" },
                { "{\n\"http\": {\n\"listen\": \"8420\"}}",
                  "config.json:3: http.listen: '8420' is not an address and port such as "
                  "'127.0.0.1:8420' or '[::1]:8420'" },
                { "{\"http\": {\"listen\": \"127.0.0.1:70000\"}}",
                  "config.json:1: http.listen: '127.0.0.1:70000' has no valid port: expected 0 to "
                  "65535" },
                { "{\"http\": {\"listen\": \"127.0.0.1:-1\"}}",
                  "config.json:1: http.listen: '127.0.0.1:-1' is not an address and port" },
                { "{\"http\": {\"listen\": \"::1:80\"}}",
                  "config.json:1: http.listen: '::1:80' is not an address and port" },
                { "{\"http\": {\"listen\": \"[]:80\"}}",
                  "config.json:1: http.listen: '[]:80' is not an address and port" },
                { "{\n\n\"http\": {\"listen\": \"0.0.0.0:80\"}}",
                  "config.json:3: http.listen: can be reached from other machines: set "
                  "'tlsCert' and 'tlsKey'" },
                { "{\"http\": {\"listen\": \"[::]:80\"}}",
                  "config.json:1: http.listen: can be reached from other machines" },
                { "{\n\"a2a\": {\"publish\": [\"dragoman\", \"echo\", \"eco\"]},"
                  "\"agents\": {\"echo\": {\"type\": \"echo\"}}}",
                  "config.json:2: a2a.publish: there is no agent 'eco' (did you mean 'echo'?)" },
                { "{\"a2a\": {\n\"organization\": \"Ours\"}}",
                  "config.json:1: a2a: 'organization' and 'organizationUrl' need each other" },
                { "{\"http\": {\n\"tlsCert\": \"config.json\"}}",
                  "config.json:2: http.tlsCert: 'tlsCert' and 'tlsKey' must be set together" },
                { "{\"adapters\": {\"c\": {\"type\": \"cli\",\n\"caFile\": \"/nowhere/ca.pem\"}}}",
                  "config.json:2: adapters.c.caFile: there is no file '/nowhere/ca.pem'" },
                { "{\"adapters\": {\"c\": {\"type\": \"cli\",\n\"caFile\": \"/\"}}}",
                  "config.json:2: adapters.c.caFile: '/' is a directory" },
                { "{\"http\": {\n\"trustedProxy\": [\"proxy\"]}}",
                  "config.json:2: http.trustedProxy: 'proxy' is not an IP address" },
                { "{\"http\": {\n\"maxBodyBytes\": 1}}",
                  "config.json:2: http.maxBodyBytes: 1 is too small (1024 to 1073741824)" },
                { "{\n\"store\": \"postgres://u:" KEY "@h/d\"}",
                  "config.json:2: store: PostgreSQL is not supported yet; accepted: \"sqlite\"" },
                { "{\n\"store\": \"oracle\"}",
                  "config.json:2: store: unknown store; accepted: \"sqlite\"" },
                { "{\n\"bus\": \"nats://h\"}",
                  "config.json:2: bus: NATS is not supported yet; accepted: \"local\"" },
                { "{\"retention\": {\n\"messages\": 1}}",
                  "config.json:2: retention: unknown key 'messages' (did you mean 'message'?)" },
                { "{\"retention\": {\n\"turn\": -2}}",
                  "config.json:2: retention.turn: -2 is too small (-1 to 36500)" },
                { "{\"sessions\": {\n\"people\": [\"ada\"]}}",
                  "config.json:2: sessions.people: 'ada': expected an account such as "
                  "'discord:42'" },
                { "{\"sessions\": {\n\"channel\": \"7\"}}",
                  "config.json:2: sessions.channel: needs sessions.adapter" },
                { "{\"sessions\": {\n\"adapter\": \"dc\"}}",
                  "config.json:2: sessions.adapter: there is no adapter 'dc'" },
                { "{\"limits\": {\n\"sendsInDoubt\": 8}}",
                  "config.json:2: limits: 'sendsInDoubt' is now called 'unconfirmedSends'" },
                { "{\"limits\": {\n\"mailbox\": \"x\"}}",
                  "config.json:2: limits.mailbox: expected a whole number" },
                { "{\n\"adapters\": []}",
                  "config.json:2: adapters: expected an object of named adapters" },
                { "{\"adapters\": {\n\"My Bot\": {\"type\": \"cli\"}}}",
                  "config.json:2: adapters.My Bot: a name has lower-case letters" },
                { "{\"adapters\": {\n\"a/b\": {\"type\": \"cli\"}}}",
                  "config.json:2: adapters.a/b: a name has lower-case letters" },
                { "{\"adapters\": {\n\"tg\": {\n\"type\": \"matrix\"}}}",
                  "config.json:3: adapters.tg.type: unknown type 'matrix' "
                  "(one of api, cli, discord, slack, telegram)" },
                { "{\"adapters\": {\"t\": {\"type\": \"cli\",\n\"agent\": \"assistent\"}},"
                  " \"agents\": {\"assistant\": {\"type\": \"echo\"}, \"b\": {\"type\": "
                  "\"echo\"}}}",
                  "config.json:2: adapters.t.agent: there is no agent 'assistent' (did you mean "
                  "'assistant'?);"
                  " there is 'assistant', 'b'" },
                { "{\n\"agents\": 7}",
                  "config.json:2: agents: expected an object of named agents" },
                { "{\"agents\": {\n\"_x\": {\"type\": \"echo\"}}}",
                  "config.json:2: agents._x: a name has lower-case letters" },
                { "{\"agents\": {\n\"e\": {\"type\": \"echo\", \"failover\": [\"f\"]}}}",
                  "config.json:2: agents.e.failover: there is no agent 'f'" },
                { "{\n\"defaultAgent\": \"nobody\"}",
                  "config.json:2: defaultAgent: there is no agent 'nobody'; there is 'demo'" },
                { "{\n\"rules\": {}}", "config.json:2: rules: expected a list of rules" },
                { "{\"rules\": [{},\n7]}", "config.json:2: rules[1]: expected an object" },
                { "{\"rules\": [{},\n{\"agent\": \"dmeo\"}]}",
                  "config.json:2: rules[1].agent: there is no agent 'dmeo' (did you mean "
                  "'demo'?); there is 'demo'" },
                { "{\"rules\": [\n{\"mode\": \"ambient\"}]}",
                  "config.json:2: rules[0].mode: 'ambient' must know which channels to follow: "
                  "name them in 'channel' ('*' is all)" },
                { "{\"rules\": [{\"when\": {\n\"dm\": 1}}]}",
                  "config.json:2: rules[0].when.dm: expected true or false" },
                { "{\n\n", "config.json:" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct config *c = NULL;
                struct error err = { 0 };

                write_config(*state, rows[i].text);
                assert_int_equal(config_load(*state, &c, &err), -1);
                assert_int_equal(err.kind, ERR_INVALID);
                if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
                        fail_msg("row %zu: got '%s', wanted '%s'", i, err.text, rows[i].error);
                assert_null(strstr(err.text, KEY));
                assert_null(c);
        }
}

static void an_unreadable_file_is_an_error(void **state)
{
        char *path = scratch_path(*state, "config.json");
        struct config *c = NULL;
        struct error err = { 0 };

        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(config_load(*state, &c, &err), -1);
        assert_int_equal(err.kind, ERR_IO);
        free(path);
}

static void listen_addresses_are_checked(void **state)
{
        static const char *const good[] = { "127.0.0.1:0", "localhost:8420", "[::1]:65535",
                                            "127.1.2.3:80" };

        for (size_t i = 0; i < COUNT(good); i++) {
                char *text = mem_printf("{\"http\": {\"listen\": \"%s\"}}", good[i]);

                config_free(load(*state, text));
                free(text);
        }
        config_free(load(*state, "{\"http\": {\"listen\": \"[::]:0\", \"tlsCert\": \"config.json\","
                                 " \"tlsKey\": \"config.json\"}}"));
}

static void files_are_relative_to_the_data_directory(void **state)
{
        char *expected = scratch_path(*state, "config.json");
        struct config *c = load(*state, "{\"http\": {\"tlsCert\": \"config.json\", \"tlsKey\": "
                                        "\"config.json\"}, \"adapters\": {\"c\": {\"type\": "
                                        "\"cli\", \"caFile\": \"config.json\"}}}");

        assert_string_equal(c->http.tls_cert, expected);
        assert_string_equal(c->http.tls_key, expected);
        assert_string_equal(adapter(c, "c")->common.ca_file, expected);
        config_free(c);
        free(expected);
}

static void all_mistakes_are_reported_in_the_order_of_lines(void **state)
{
        struct buf mistakes, warnings;
        struct config *c = NULL;
        struct error err = { 0 };

        setenv("TELEGRAM_BOT_TOKEN", "1:secret-of-the-test", 1);
        buf_init(&mistakes, 0);
        buf_init(&warnings, 0);
        write_config(*state,
                     "{ \"http\": {\n"
                     "\"tlsCert\": \"gone.pem\", \"maxBodyBytes\": 1},\n"
                     "\"rules\": [{\"agent\": \"nobody\"}, {\"mode\": \"loud\"},\n"
                     "{\"when\": {\"adapter\": \"tgg\"}}],\n"
                     "\"agents\": {\"a\": {\"type\": \"echo\", \"queu\": 1},\n"
                     "\"b\": {\"type\": \"openai\"}},\n"
                     "\"adapters\": {\"tg\": {\"type\": \"telegram\", \"bottoken\": \"x\",\n"
                     "\"agent\": \"a\"},\n"
                     "\"t\": {\"type\": \"telegram\", \"botToken\": "
                     "\"env:TELEGRAM_BOT_TOKEN\",\n"
                     "\"admins\": [\"@ada\", \"ada\"], \"dm\": \"everybody\"}}}");
        assert_int_equal(config_load_reporting(*state, &c, &mistakes, &warnings, &err), -1);
        assert_null(c);
        assert_non_null(strstr(err.text, "(and 9 more mistakes; `dragoman config check` lists"));
        /* each once: an unread agent is not also unknown, a misspelt key is not also missing */
        assert_non_null(strstr(mistakes.data, "config.json:2: http.tlsCert: there is no file '"));
        assert_non_null(strstr(mistakes.data, "config.json:2: http.maxBodyBytes: 1 is too small"));
        assert_non_null(strstr(mistakes.data,
                               "config.json:3: rules[0].agent: there is no agent 'nobody'; there "
                               "is 'a', 'b'\n"));
        assert_non_null(
                strstr(mistakes.data, "config.json:3: rules[1].mode: unknown value 'loud'"));
        assert_non_null(strstr(mistakes.data,
                               "config.json:5: agents.a: unknown key 'queu' (did you mean "
                               "'queue'?)\nconfig.json:6: agents.b: missing key 'model'\n"
                               "config.json:7: adapters.tg: unknown key 'bottoken' (did you mean "
                               "'botToken'?)\n"));
        assert_null(strstr(mistakes.data, "missing key 'botToken'"));
        assert_non_null(strstr(mistakes.data,
                               "config.json:10: adapters.t.admins: '@ada' is not an id of "
                               "Telegram: names can change"));
        assert_non_null(strstr(mistakes.data, "config.json:10: adapters.t.admins: 'ada' is not an "
                                              "id of Telegram; ids are numbers\n"));
        assert_non_null(strstr(mistakes.data, "config.json:10: adapters.t.dm: 'everybody' is not "
                                              "an id of Telegram (did you mean 'everyone'?)\n"));
        assert_non_null(strstr(warnings.data, "config.json:4: rules[2].when.adapter: there is no "
                                              "adapter 'tgg' (did you mean 'tg'?)\n"));
        buf_release(&mistakes);
        buf_release(&warnings);
}

static void suspicious_settings_give_warnings(void **state)
{
        struct config *c = load(
                *state, "{\"rules\": [\n{\"when\": {\"adapter\": [\"api\", \"discord-*\"]}}]}");

        assert_string_equal(
                config_warnings(c),
                "config.json:2: rules[0].when.adapter: there is no adapter 'discord-*'\n");
        config_free(c);

        c = load(*state, "{\n"
                         "\"adapters\": {\"terminal\": {\"type\": \"cli\", \"agent\": \"a\"}},\n"
                         "\"agents\": {\"a\": {\"type\": \"echo\"}, \"b\": {\"type\": "
                         "\"echo\"}}}");
        assert_null(c->default_agent);
        assert_string_equal(config_warnings(c),
                            "config.json:3: agents: adapter 'api' has no agent: set its 'agent', a "
                            "'defaultAgent', or rules\n");
        config_free(c);

        c = load(*state,
                 "{\"adapters\": {\"api\": {\"type\": \"api\", \"callbackUrl\": \"http://x/\",\n"
                 "\"callbackSecret\": \"" KEY "\"}}}");
        assert_non_null(
                strstr(config_warnings(c),
                       "config.json:2: adapters.api.callbackSecret: a secret is written in clear"));
        assert_null(strstr(config_warnings(c), KEY));
        config_free(c);
}

#define DC "\"type\": \"discord\", \"botToken\": \"env:DISCORD_BOT_TOKEN\", \"dm\": \"everyone\""
#define TG "\"type\": \"telegram\", \"botToken\": \"env:TELEGRAM_BOT_TOKEN\""

static void probable_mistakes_give_warnings_with_suggestions(void **state)
{
        static const struct {
                const char *text, *warning;
        } rows[] = {
                { "{\"rules\": [{\"when\": {\"event\": \"mesage.received\"}}]}",
                  "rules[0].when.event: there is no event 'mesage.received' (did you mean "
                  "'message.received'?)" },
                { "{\"rules\": [{\"when\": {\"platform\": \"telegarm\"}}]}",
                  "rules[0].when.platform: there is no platform 'telegarm' (did you mean "
                  "'telegram'?)" },
                { "{\"adapters\": {\"dc\": {" DC "}}, \"rules\": [{\"when\": {\"sender\": "
                  "[\"1\", \"@anna\"]}}]}",
                  "rules[0].when.sender: '@anna' is a name and matches nothing on Discord" },
                { "{\"rules\": [{\"name\": \"a\", \"when\": {\"dm\": true}}, {\"name\": "
                  "\"a\"}]}",
                  "rules[1]: has the name 'a' of rules[0]" },
                { "{\"rules\": [{\"name\": \"all\"}, {\"when\": {\"channel\": \"7\"}}]}",
                  "rules[1]: is never reached: rules[0] ('all') takes everything it matches" },
                { "{\"agents\": {\"a\": {\"type\": \"echo\", \"failover\": \"a\"}}}",
                  "agents.a.failover: names the agent itself" },
                { "{\"agents\": {\"b\": {\"type\": \"builtin\", \"model\": \"x\", \"baseUrl\": "
                  "\"http://localhost:1/\", \"tools\": [\"read\", \"discord_read\", \"bsh\"]}}}",
                  "agents.b.tools: there is no tool 'bsh' (did you mean 'bash'?)" },
                { "{\"agents\": {\"b\": {\"type\": \"builtin\", \"model\": \"x\", \"baseUrl\": "
                  "\"http://localhost:1/\", \"policy\": {\"no\": {\"tool\": \"bsh\", \"decide\": "
                  "\"deny\"}}}}}",
                  "agents.b.policy.no.tool: there is no tool 'bsh' (did you mean 'bash'?)" },
                { "{\"agents\": {\"m\": {\"type\": \"openai\", \"model\": \"x\", \"baseUrl\": "
                  "\"http://localhost:1/\"}},"
                  " \"adapters\": {\"api\": {\"type\": \"api\", \"budget\": {\"usdPerDay\": 1}}}}",
                  "adapters.api.budget: cannot hold: agent 'm' has neither 'pricePerMTokIn'" },
                { "{\"agents\": {\"m\": {\"type\": \"openai\", \"model\": \"x\", \"baseUrl\": "
                  "\"http://localhost:1/\"}}, \"rules\": "
                  "[{\"budget\": {\"usdPerDay\": 1}}]}",
                  "rules[0].budget: cannot hold: agent 'm' has neither 'pricePerMTokIn'" },
                { "{\"agents\": {\"m\": {\"type\": \"openai\", \"model\": \"x\", \"apiKey\": "
                  "\"env:DISCORD_BOT_TOKEN\", \"baseUrl\": \"http://models.example/v1\"}}}",
                  "agents.m.baseUrl: 'apiKey' and all messages travel unencrypted to another "
                  "machine; use https://" },
                { "{\"adapters\": {\"dc\": {" DC ", \"gatewayUrl\": \"ws://10.0.0.9:1/\"}}}",
                  "adapters.dc.gatewayUrl: 'botToken' and all messages travel unencrypted to "
                  "another machine; use wss://" },
        };

        setenv("DISCORD_BOT_TOKEN", "MTIz.discord.secret", 1);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct config *c = load(*state, rows[i].text);

                if (!strstr(config_warnings(c), rows[i].warning))
                        fail_msg("row %zu: got '%s', wanted '%s'", i, config_warnings(c),
                                 rows[i].warning);
                config_free(c);
        }
}

static void settings_that_are_meant_give_no_warnings(void **state)
{
        static const char *const rows[] = {
                "{\"rules\": [{\"when\": {\"event\": [\"custom.x\", \"reaction.*\"]}}]}",
                "{\"rules\": [{\"when\": {\"adapter\": \"api\", \"sender\": \"@anna\"}}]}",
                "{\"adapters\": {\"dc\": {" DC "}}, \"rules\": [{\"when\": {\"channel\": "
                "\"#general\"}}]}",
                /* a bot may be answered where people are not */
                "{\"rules\": [{}, {\"when\": {\"sender\": \"7\"}}]}",
                "{\"rules\": [{}, {\"when\": {\"bots\": \"all\"}}]}",
                "{\"rules\": [{}, {\"when\": {\"reaction\": \"*\"}}]}",
                "{\"rules\": [{\"when\": {\"hours\": \"09:00-17:00\"}}, {}]}",
                "{\"rules\": [{\"when\": {\"dm\": true}}, {\"when\": {\"mention\": true}}]}",
                "{\"rules\": [{\"when\": {\"channel\": [\"1\", \"2\"]}}, {\"when\": "
                "{\"channel\": [\"2\", \"3\"]}}]}",
                /* only the first agent's list counts, so two may stand in for each other */
                "{\"agents\": {\"a\": {\"type\": \"echo\", \"failover\": \"b\"}, \"b\": "
                "{\"type\": \"echo\", \"failover\": \"a\"}}, \"defaultAgent\": \"a\"}",
                "{\"agents\": {\"m\": {\"type\": \"openai\", \"model\": \"x\", \"apiKey\": "
                "\"env:DISCORD_BOT_TOKEN\", \"baseUrl\": \"http://[::1]:1/v1\", "
                "\"pricePerMTokOut\": 2}}, \"rules\": [{\"budget\": {\"usdPerDay\": 1}}]}",
                /* prices of known models are known, and a policy may name any program's tool */
                "{\"agents\": {\"m\": {\"type\": \"builtin\", \"model\": "
                "\"anthropic/claude-sonnet-4-5\", \"apiKey\": \"env:DISCORD_BOT_TOKEN\", "
                "\"policy\": {\"no\": {\"tool\": \"git__push\", \"decide\": \"deny\"}}}}, "
                "\"rules\": [{\"budget\": {\"usdPerDay\": 1}}]}",
        };

        setenv("DISCORD_BOT_TOKEN", "MTIz.discord.secret", 1);
        setenv("DISCORD_ADMIN_IDS", "7", 1);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct config *c = load(*state, rows[i]);

                if (*config_warnings(c))
                        fail_msg("row %zu: %s", i, config_warnings(c));
                config_free(c);
        }
}

static void ids_and_webhooks_that_cannot_work_are_errors(void **state)
{
        static const struct {
                const char *members, *error;
        } rows[] = {
                { DC ", \"channels\": [\"#general\"]",
                  "adapters.x.channels: '#general' is not an id of Discord: names can change" },
                { DC ", \"block\": [\"@ada\"]",
                  "adapters.x.block: '@ada' is not an id of Discord" },
                { DC ", \"allow\": [\"role:admin\"]", "adapters.x.allow: 'admin' is not an id" },
                { DC ", \"admins\": [\"<@123>\"]", "adapters.x.admins: '<@123>' is not an id" },
                { DC ", \"channels\": [\"#123\"]", "(did you mean '123'?)" },
                { TG ", \"dm\": \"nobody\"", "'nobody' is not an id of Telegram" },
                { TG ", \"mode\": \"webhook\"", "adapters.x.mode: 'webhook' needs http.publicUrl" },
        };

        setenv("DISCORD_BOT_TOKEN", "MTIz.discord.secret", 1);
        setenv("TELEGRAM_BOT_TOKEN", "1:secret-of-the-test", 1);
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{\"adapters\": {\"x\": {%s}}}", rows[i].members);
                struct config *c = NULL;
                struct error err = { 0 };

                write_config(*state, text);
                assert_int_equal(config_load(*state, &c, &err), -1);
                if (!strstr(err.text, rows[i].error))
                        fail_msg("row %zu: got '%s', wanted '%s'", i, err.text, rows[i].error);
                free(text);
        }
        config_free(load(*state, "{\"http\": {\"publicUrl\": \"https://x.example\"}, "
                                 "\"adapters\": {\"x\": {" TG ", \"mode\": \"webhook\", \"dm\": "
                                 "[\"7\"], \"channels\": [\"-1007\"]}}}"));
}

static void a_reload_reports_what_changed(void **state)
{
        struct config *old = load(
                *state, "{\"adapters\": {\"a\": {\"type\": \"api\"}, \"t\": {\"type\": \"cli\"}}}");
        struct config *new = load(
                *state, "{ // a comment is no change\n"
                        "\"adapters\": {\"t\": {\"type\": \"cli\"}, \"a\": {\"type\": \"api\", "
                        "\"timeoutMs\": 5000}}}");

        assert_true(json_equal(adapter(old, "t")->raw, adapter(new, "t")->raw));
        assert_false(json_equal(adapter(old, "a")->raw, adapter(new, "a")->raw));
        config_free(old);
        config_free(new);
}

static void the_store_url_needs_no_valid_file(void **state)
{
        static const char *const rows[][2] = {
                { NULL, "sqlite" },
                { "{ \"store\": ", "sqlite" },
                { "{ \"agnts\": {} }", "sqlite" },
                { "{ \"adapters\": { \"tg\": { \"type\": \"telegram\" } },"
                  " \"store\": \"postgres://db\" }",
                  "postgres://db" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *url;

                if (rows[i][0])
                        write_config(*state, rows[i][0]);
                url = config_store_url(*state);
                assert_string_equal(url, rows[i][1]);
                free(url);
        }
}

/* ---- schema and manual ---- */

/* Validates the part of JSON Schema that ours uses; returns where it fails. */
static bool holds(const json_t *schema, const json_t *value);

static bool type_is(const char *type, const json_t *v)
{
        return (strcmp(type, "object") == 0 && json_is_object(v)) ||
               (strcmp(type, "array") == 0 && json_is_array(v)) ||
               (strcmp(type, "string") == 0 && json_is_string(v)) ||
               (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
               (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
               (strcmp(type, "number") == 0 && json_is_number(v)) ||
               (strcmp(type, "null") == 0 && json_is_null(v));
}

static bool type_holds(const json_t *type, const json_t *v)
{
        if (!type)
                return true;
        if (json_is_string(type))
                return type_is(json_string_value(type), v);
        for (size_t i = 0; i < json_array_size(type); i++) {
                if (type_is(json_string_value(json_array_get(type, i)), v))
                        return true;
        }
        return false;
}

static bool members_hold(const json_t *schema, json_t *value)
{
        const json_t *properties = json_object_get(schema, "properties");
        const json_t *more = json_object_get(schema, "additionalProperties");
        const json_t *required = json_object_get(schema, "required");
        const char *key;
        json_t *member;

        for (size_t i = 0; i < json_array_size(required); i++) {
                if (!json_object_get(value, json_string_value(json_array_get(required, i))))
                        return false;
        }
        json_object_foreach(value, key, member) {
                const json_t *s = json_object_get(properties, key);

                if (!s && json_is_false(more))
                        return false;
                if (!s)
                        s = more;
                if (json_is_object(s) && !holds(s, member))
                        return false;
        }
        return true;
}

static bool one_holds(const json_t *kinds, const json_t *value)
{
        size_t n = 0;

        for (size_t i = 0; i < json_array_size(kinds); i++)
                n += holds(json_array_get(kinds, i), value);
        return n == 1;
}

static bool enum_holds(const json_t *values, const json_t *value)
{
        for (size_t i = 0; i < json_array_size(values); i++) {
                if (json_equal(json_array_get(values, i), (json_t *)(uintptr_t)value))
                        return true;
        }
        return false;
}

static bool range_holds(const json_t *schema, const json_t *value)
{
        const json_t *min = json_object_get(schema, "minimum"),
                     *max = json_object_get(schema, "maximum");
        double x = json_number_value(value);

        return (!min || x >= json_number_value(min)) && (!max || x <= json_number_value(max));
}

static bool holds(const json_t *schema, const json_t *value)
{
        const json_t *kinds = json_object_get(schema, "oneOf"),
                     *values = json_object_get(schema, "enum");
        const json_t *constant = json_object_get(schema, "const"),
                     *items = json_object_get(schema, "items");

        if (!type_holds(json_object_get(schema, "type"), value))
                return false;
        if (constant && !json_equal(constant, value))
                return false;
        if ((values && !enum_holds(values, value)) || (kinds && !one_holds(kinds, value)))
                return false;
        if (json_is_number(value) && !range_holds(schema, value))
                return false;
        for (size_t i = 0; items && i < json_array_size(value); i++) {
                if (!holds(items, json_array_get(value, i)))
                        return false;
        }
        return !json_is_object(value) || members_hold(schema, (json_t *)(uintptr_t)value);
}

static void the_schema_accepts_what_the_reader_accepts(void **state)
{
        static const struct {
                bool good;
                const char *text;
        } rows[] = {
                { true, "{}" },
                { true, "{\"http\": {\"listen\": \"127.0.0.1:8420\", \"publicUrl\": null}, "
                        "\"store\": \"sqlite\", \"bus\": \"local\"}" },
                { true, "{\"adapters\": {\"terminal\": {\"type\": \"cli\"}, "
                        "\"x\": {\"type\": \"api\", \"timeoutMs\": 500,"
                        " \"callbackUrl\": \"http://h/\", \"pace\": {\"perSecond\": 0.5}}}}" },
                { true,
                  "{\"agents\": {\"gpt\": {\"type\": \"openai\", "
                  "\"baseUrl\": \"https://api.openai.com/v1\", "
                  "\"model\": \"gpt-5\","
                  " \"apiKey\": \"" KEY "\", \"stream\": true}, \"echo\": {\"type\": \"echo\"}}, "
                  "\"defaultAgent\": \"echo\"}" },
                { true, "{\"rules\": [{\"name\": \"people ask\", \"when\": {\"adapter\": \"a*\", "
                        "\"dm\": true, \"mention\": true,"
                        " \"channel\": [\"456\"]}, \"mode\": \"reply\"}]}" },
                { true, "{\"retention\": {\"message\": 0.5}, \"limits\": {\"mailbox\": 7}}" },
                { false, "{\"htpp\": {}}" },
                { false, "{\"http\": {\"listen\": 8420}}" },
                { false, "{\"adapters\": {\"x\": {\"type\": \"nothing\"}}}" },
                { false, "{\"adapters\": {\"x\": {}}}" },
                { false, "{\"adapters\": {\"x\": {\"type\": \"cli\", \"timeoutMs\": 500}}}" },
                { false, "{\"adapters\": {\"x\": {\"type\": \"api\", \"timeoutMs\": 5}}}" },
                { false, "{\"agents\": {\"x\": {\"type\": \"openai\"}}}" },
                { false, "{\"rules\": [{\"mode\": \"loud\"}]}" },
                { false, "{\"rules\": {}}" },
        };
        json_t *schema = config_doc_schema();

        assert_string_equal(json_str(schema, "$schema", ""),
                            "https://json-schema.org/draft/2020-12/schema");
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *value = json_read(rows[i].text, strlen(rows[i].text), NULL);
                struct config *c = NULL;
                struct error err = { 0 };

                write_config(*state, rows[i].text);
                if ((config_load(*state, &c, &err) == 0) != rows[i].good)
                        fail_msg("row %zu: %s", i, err.text);
                if (holds(schema, value) != rows[i].good)
                        fail_msg("row %zu: the schema disagrees", i);
                config_free(c);
                json_decref(value);
        }
        json_decref(schema);
}

static void the_manual_describes_every_section_and_kind(void **state)
{
        static const char *const words[] = { "# Configuration",
                                             "## `http`",
                                             "| `listen` |",
                                             "## `retention`",
                                             "## `limits`",
                                             "## `adapters`",
                                             "| `pace.perSecond` |",
                                             "### `\"type\": \"api\"`",
                                             "| `callbackUrl` |",
                                             "### `\"type\": \"cli\"`",
                                             "## `agents`",
                                             "### `\"type\": \"openai\"`",
                                             "### `\"type\": \"demo\"`",
                                             "## `rules`",
                                             "| `when.channel` |",
                                             "env:NAME" };
        struct buf text;

        (void)state;
        buf_init(&text, 0);
        config_doc_markdown(&text);
        for (size_t i = 0; i < COUNT(words); i++) {
                if (!strstr(text.data, words[i]))
                        fail_msg("the manual has no %s", words[i]);
        }
        buf_release(&text);
}

static void the_example_in_the_manual_loads(void **state)
{
        struct buf text;
        char *from, *to, *key = scratch_path(*state, "openai.key");
        struct config *c;
        FILE *f = fopen(key, "w");

        assert_non_null(f);
        assert_true(fputs(KEY "\n", f) >= 0);
        assert_int_equal(fclose(f), 0);
        setenv("ANTHROPIC_API_KEY", KEY, 1);
        setenv("SHOP_SECRET", KEY, 1);
        buf_init(&text, 0);
        config_doc_markdown(&text);
        from = strstr(text.data, "```jsonc\n");
        assert_non_null(from);
        from += strlen("```jsonc\n");
        to = strstr(from, "```");
        assert_non_null(to);
        *to = '\0';
        c = load(*state, from);
        assert_int_equal(c->agent_count, 2);
        assert_string_equal(config_warnings(c), "");
        config_free(c);
        buf_release(&text);
        free(key);
        unsetenv("SHOP_SECRET");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_empty_directory_works, begin, end),
                cmocka_unit_test_setup_teardown(a_key_in_the_environment_brings_a_real_model, begin,
                                                end),
                cmocka_unit_test_setup_teardown(
                        a_token_in_the_environment_is_a_bot_unless_the_file_has_one, begin, end),
                cmocka_unit_test_setup_teardown(slacks_two_tokens_in_the_environment_are_a_bot,
                                                begin, end),
                cmocka_unit_test_setup_teardown(slacks_tokens_are_checked_by_their_kind, begin,
                                                end),
                cmocka_unit_test_setup_teardown(a_bad_token_in_the_environment_names_its_origin,
                                                begin, end),
                cmocka_unit_test_setup_teardown(chat_service_variables_make_an_ambient_agent, begin,
                                                end),
                cmocka_unit_test_setup_teardown(the_file_overrides_chat_service_variables, begin,
                                                end),
                cmocka_unit_test_setup_teardown(
                        a_bad_history_limit_in_the_environment_names_its_origin, begin, end),
                cmocka_unit_test_setup_teardown(a_bad_base_url_in_the_environment_names_its_origin,
                                                begin, end),
                cmocka_unit_test_setup_teardown(the_terminal_and_the_api_are_added_by_default,
                                                begin, end),
                cmocka_unit_test_setup_teardown(everything_in_the_file_is_read, begin, end),
                cmocka_unit_test_setup_teardown(every_mistake_is_reported_with_file_and_line, begin,
                                                end),
                cmocka_unit_test_setup_teardown(an_unreadable_file_is_an_error, begin, end),
                cmocka_unit_test_setup_teardown(listen_addresses_are_checked, begin, end),
                cmocka_unit_test_setup_teardown(suspicious_settings_give_warnings, begin, end),
                cmocka_unit_test_setup_teardown(files_are_relative_to_the_data_directory, begin,
                                                end),
                cmocka_unit_test_setup_teardown(all_mistakes_are_reported_in_the_order_of_lines,
                                                begin, end),
                cmocka_unit_test_setup_teardown(probable_mistakes_give_warnings_with_suggestions,
                                                begin, end),
                cmocka_unit_test_setup_teardown(settings_that_are_meant_give_no_warnings, begin,
                                                end),
                cmocka_unit_test_setup_teardown(ids_and_webhooks_that_cannot_work_are_errors, begin,
                                                end),
                cmocka_unit_test_setup_teardown(a_reload_reports_what_changed, begin, end),
                cmocka_unit_test_setup_teardown(the_store_url_needs_no_valid_file, begin, end),
                cmocka_unit_test_setup_teardown(the_schema_accepts_what_the_reader_accepts, begin,
                                                end),
                cmocka_unit_test(the_manual_describes_every_section_and_kind),
                cmocka_unit_test_setup_teardown(the_example_in_the_manual_loads, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
