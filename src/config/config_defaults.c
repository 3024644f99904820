/*
 * Defaults that make an empty directory work.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "config/config_private.h"

static const char *variable(const char *name)
{
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

static bool has_adapter(const struct config *c, const char *name)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                if (strcmp(c->adapters[i]->name, name) == 0)
                        return true;
        }
        return false;
}

static int add_adapter(struct config *c, const char *name, const char *type, struct error *err)
{
        struct adapter_conf *a;

        if (has_adapter(c, name))
                return 0;
        a = adapter_conf_make(name, type, NULL, err);
        if (!a)
                return -1;
        config_add_adapter(c, a);
        return 0;
}

/* ---- bots ---- */

/* A token in the environment makes a bot, unless the file has one of its kind. */
static const struct bot_variables {
        const char *type, *token, *admins, *channels, *base;
        const char *second_key, *second_token; /* NULL: one token is enough */
} bots[] = {
        { "discord", "DISCORD_BOT_TOKEN", "DISCORD_ADMIN_IDS", "DISCORD_CHANNEL_IDS",
          "DISCORD_API_BASE" },
        { "slack", "SLACK_BOT_TOKEN", "SLACK_ADMIN_IDS", "SLACK_CHANNEL_IDS", "SLACK_API_BASE",
          "appToken", "SLACK_APP_TOKEN" },
        { "telegram", "TELEGRAM_BOT_TOKEN", "TELEGRAM_ADMIN_IDS", "TELEGRAM_CHANNEL_IDS",
          "TELEGRAM_API_BASE" },
};

static bool has_type(const struct config *c, const char *type)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                if (strcmp(c->adapters[i]->ops->name, type) == 0)
                        return true;
        }
        return false;
}

/* Writes "1, 2,3" as a list; nothing when the variable is not set. */
static void add_ids(struct buf *json, const char *key, const char *name)
{
        const char *at = variable(name);

        if (!at)
                return;
        jsonw_open_member(json, key, '[');
        while (*at) {
                size_t n;

                at += strspn(at, ", \t");
                n = strcspn(at, ", \t");
                if (n > 0)
                        jsonw_strn(json, NULL, at, n);
                at += n;
        }
        jsonw_close(json, ']');
}

static void add_secret(struct buf *json, const char *key, const char *name)
{
        char *handle = mem_printf("env:%s", name);

        jsonw_str(json, key, handle);
        free(handle);
}

static int add_bot(struct config *c, const struct bot_variables *b, struct error *err)
{
        struct adapter_conf *a;
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        add_secret(&json, "botToken", b->token);
        if (b->second_token && variable(b->second_token)) /* else the adapter asks for it */
                add_secret(&json, b->second_key, b->second_token);
        jsonw_opt(&json, "apiBase", variable(b->base));
        add_ids(&json, "admins", b->admins);
        add_ids(&json, "channels", b->channels);
        jsonw_close(&json, '}');
        a = adapter_conf_make(b->type, b->type, json.data, err);
        if (a)
                config_add_adapter(c, a);
        else
                error_prefix(err, "cannot make an adapter from %s in the environment", b->token);
        buf_release(&json);
        return a ? 0 : -1;
}

int config_default_adapters(struct config *c, struct error *err)
{
        for (size_t i = 0; i < COUNT(bots); i++) {
                const struct bot_variables *b = &bots[i];

                if (variable(b->token) && !has_type(c, b->type) && !has_adapter(c, b->type) &&
                    add_bot(c, b, err) < 0)
                        return -1;
        }
        if (add_adapter(c, "terminal", "cli", err) < 0)
                return -1;
        return add_adapter(c, "api", "api", err);
}

/* ---- models ---- */

/* The first one whose key is in the environment is used. */
static const struct model_service {
        const char *model, *key, *base, *note;
} services[] = {
        { "anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
          "built-in agent on claude-sonnet-4-5 by Anthropic (ANTHROPIC_API_KEY)" },
        { "openai/gpt-5", "OPENAI_API_KEY", "OPENAI_BASE_URL",
          "built-in agent on gpt-5 by OpenAI (OPENAI_API_KEY)" },
};

static struct agent_conf *model_agent(const struct model_service *s, struct error *err)
{
        char *handle = mem_printf("env:%s", s->key);
        struct agent_conf *a;
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "model", s->model);
        jsonw_str(&json, "apiKey", handle);
        jsonw_opt(&json, "baseUrl", variable(s->base));
        jsonw_close(&json, '}');
        a = agent_conf_make("assistant", "builtin", json.data, err);
        if (!a)
                error_prefix(err, "cannot make an agent from %s in the environment", s->key);
        buf_release(&json);
        free(handle);
        return a;
}

/* ---- agent-chat service ---- */

/* The number of messages to show; 0: not set. */
static int history_limit(int64_t *out, struct error *err)
{
        const char *text = variable("MESSAGE_HISTORY_LIMIT");
        char *rest = NULL;

        *out = text ? strtol(text, &rest, 10) : 0;
        if (text && (*rest || *out < 1 || *out > 100))
                return error_set(err, ERR_INVALID,
                                 "MESSAGE_HISTORY_LIMIT in the environment is '%.20s': expected a "
                                 "whole number from 1 to 100",
                                 text);
        return 0;
}

static struct agent_conf *chat_agent(int64_t limit, struct error *err)
{
        struct agent_conf *a;
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "url", variable("API_BASE_URL"));
        jsonw_str(&json, "apiKey", "env:DISCORD_API_KEY");
        if (limit > 0)
                jsonw_int(&json, "historyLimit", limit);
        jsonw_close(&json, '}');
        a = agent_conf_make("assistant", "agent-chat", json.data, err);
        if (!a)
                error_prefix(err, "cannot make an agent from API_BASE_URL in the environment");
        buf_release(&json);
        return a;
}

/*
 * Ambient mode in DISCORD_CHANNEL_IDS. Rules replace the default, so a second one answers messages
 * addressed to a bot elsewhere.
 */
static int add_ambient_rules(struct config *c, int64_t limit, struct error *err)
{
        struct settings_source *src;
        struct buf json;
        int rc;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_open_member(&json, "rules", '[');
        jsonw_open(&json, '{');
        jsonw_str(&json, "name", "ambient");
        jsonw_str(&json, "mode", "ambient");
        if (limit > 0)
                jsonw_int(&json, "history", limit);
        jsonw_open_member(&json, "when", '{');
        jsonw_str(&json, "platform", "discord");
        add_ids(&json, "channel", "DISCORD_CHANNEL_IDS");
        jsonw_close(&json, '}');
        jsonw_close(&json, '}');
        jsonw_raw(&json, NULL,
                  "{\"name\": \"addressed\", \"when\": {\"platform\": [\"discord\", \"slack\", "
                  "\"telegram\"], \"dm\": true, \"mention\": true, \"reply\": true, "
                  "\"conversation\": true}}");
        jsonw_close(&json, ']');
        jsonw_close(&json, '}');
        src = settings_source_new("environment", NULL, json.data, json.len, err);
        rc = src ? config_read_rules(c, src, err) : -1;
        settings_source_free(src);
        buf_release(&json);
        return rc;
}

static int add_chat_service(struct config *c, struct error *err)
{
        struct agent_conf *a;
        int64_t limit;

        if (history_limit(&limit, err) < 0)
                return -1;
        a = chat_agent(limit, err);
        if (!a)
                return -1;
        config_add_agent(c, a);
        c->agent_note = mem_strdup("agent-chat at API_BASE_URL (DISCORD_API_KEY)");
        if (c->rule_count > 0 || !has_type(c, "discord") || !variable("DISCORD_CHANNEL_IDS"))
                return 0;
        return add_ambient_rules(c, limit, err);
}

int config_default_agent(struct config *c, struct error *err)
{
        const struct model_service *s = NULL;
        struct agent_conf *a;

        /* other programs use API_BASE_URL as well */
        if (variable("API_BASE_URL") && variable("DISCORD_API_KEY"))
                return add_chat_service(c, err);
        for (size_t i = 0; i < COUNT(services) && !s; i++) {
                if (variable(services[i].key))
                        s = &services[i];
        }
        a = s ? model_agent(s, err) : agent_conf_make("demo", "demo", NULL, err);
        if (!a)
                return -1;
        config_add_agent(c, a);
        c->agent_note = mem_strdup(s ? s->note : "demo agent (no key in the environment)");
        return 0;
}
