/*
 * builtin: the agent whose model is written as "service/model".
 *
 * One call a turn, on the wire of the service; everything else is llm_call.c.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/kinds.h"
#include "agent/llm/llm.h"
#include "base/mem.h"

static const struct llm_wire *const services[] = { &anthropic_wire, &openai_wire };

/* NULL when no service has that name; *model is what follows it. */
static const struct llm_wire *service_of(const char *name, const char **model)
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
        char *at;
        int rc;

        if (!service_of(conf->model, &model)) {
                at = *path ? mem_printf("%s.model", path) : mem_strdup("model");
                rc = settings_error(
                        src, at, err,
                        "'%s' names no service (\"anthropic/MODEL\" or \"openai/MODEL\")",
                        conf->model);
                free(at);
                return rc;
        }
        return llm_check_conf(src, path, settings, err);
}

static int builtin_open(struct agent *a, struct error *err)
{
        const struct llm_conf *conf = a->conf;
        const char *model = NULL;
        const struct llm_wire *wire = service_of(conf->model, &model);

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
