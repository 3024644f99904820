/*
 * builtin: a model named "service/model", using that service's wire.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/mem.h"

static int check(struct settings_source *src, const char *path, const void *settings,
                 struct error *err)
{
        const struct llm_conf *conf = settings;
        const char *model;

        if (!llm_wire_find("auto", conf->model, conf->base_url, &model))
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
        const struct llm_wire *wire = llm_wire_find("auto", conf->model, conf->base_url, &model);

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
