/*
 * What makes an empty directory work: a terminal, the API, and somebody who answers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "config/config_private.h"

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

int config_default_adapters(struct config *c, struct error *err)
{
        if (add_adapter(c, "terminal", "cli", err) < 0)
                return -1;
        return add_adapter(c, "api", "api", err);
}

/* The first whose key is in the environment is used. */
/* clang-format off */
static const struct service {
        const char *type, *model, *key, *base, *note;
} services[] = {
        { "anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
          "claude-sonnet-4-5 by Anthropic (ANTHROPIC_API_KEY)" },
        { "openai", "gpt-5", "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5 by OpenAI (OPENAI_API_KEY)" },
};
/* clang-format on */

static const char *set_in_environment(const char *name)
{
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

static struct agent_conf *agent_of(const struct service *s, struct error *err)
{
        char *handle = mem_printf("env:%s", s->key);
        struct agent_conf *a;
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "model", s->model);
        jsonw_str(&json, "apiKey", handle);
        jsonw_opt(&json, "baseUrl", set_in_environment(s->base));
        jsonw_close(&json, '}');
        a = agent_conf_make("assistant", s->type, json.data, err);
        if (!a)
                error_prefix(err, "the environment has %s but no agent can be made of it", s->key);
        buf_release(&json);
        free(handle);
        return a;
}

int config_default_agent(struct config *c, struct error *err)
{
        const struct service *s = NULL;
        struct agent_conf *a;

        for (size_t i = 0; i < COUNT(services) && !s; i++) {
                if (set_in_environment(services[i].key))
                        s = &services[i];
        }
        a = s ? agent_of(s, err) : agent_conf_make("demo", "demo", NULL, err);
        if (!a)
                return -1;
        config_add_agent(c, a);
        c->agent_note = mem_strdup(s ? s->note : "demo agent (no key in the environment)");
        return 0;
}
