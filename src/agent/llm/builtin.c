/*
 * builtin: a model named "service/model", using that service's wire.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/mem.h"

static const struct llm_wire *const services[] = { &anthropic_wire, &openai_wire };

/* NULL: unknown service. */
static const struct llm_wire *find_service(const char *name, const char **model)
{
        for (size_t i = 0; i < COUNT(services); i++) {
                size_t n = strlen(services[i]->name);

                if (strncmp(name, services[i]->name, n) == 0 && name[n] == '/' && name[n + 1]) {
                        *model = name + n + 1;
                        return services[i];
                }
        }
        return NULL;
}

static int check(struct settings_source *src, const char *path, const void *settings,
                 struct error *err)
{
        const struct llm_conf *conf = settings;
        const char *model;

        if (!find_service(conf->model, &model))
                return settings_member_error(
                        src, path, "model", err,
                        "'%s' names no service (\"anthropic/MODEL\" or \"openai/MODEL\")",
                        conf->model);
        return llm_check_conf(src, path, settings, err);
}

static int builtin_open(struct agent *a, struct error *err)
{
        const struct llm_conf *conf = a->conf;
        const char *model = NULL;
        const struct llm_wire *wire = find_service(conf->model, &model);

        (void)err;
        return llm_open(a, wire, model);
}

const struct agent_ops builtin_agent = {
        .type = "builtin",
        .help = "Dragoman's own agent on a model written as `anthropic/MODEL` or `openai/MODEL`.",
        .can = LLM_ABILITIES,
        .settings = llm_settings,
        .conf_size = sizeof(struct llm_conf),
        .check = check,
        .open = builtin_open,
        .close = llm_close,
        .start = llm_start,
        .cancel = llm_cancel,
        .check_health = llm_check_health,
};
