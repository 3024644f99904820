#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "base/mem.h"

#define KINDS_MAX 32

#define AT(field) offsetof(struct agent_common, field)

static const char *const sessions[] = { "conversation", "perUser", "perChat", "perUserPerChat",
                                        NULL };

const struct setting agent_common_settings[] = {
        { "concurrency", SETTING_INT, "0", 0, 100000, .at = AT(concurrency),
          .help = "How many turns it works on at once; others wait in order of arrival. 0: limited "
                  "only by `limits.runningTurns`." },
        { "queue", SETTING_INT, "1000", 0, 100000, .at = AT(queue),
          .help = "How many turns may wait for it; more are refused with a short notice." },
        { "failover", SETTING_STRINGS, "[]", .at = AT(failover),
          .help = "Other agents, asked in this order when this one certainly did not work on the "
                  "turn." },
        { "breakerFailures", SETTING_INT, "5", 0, 1000, .at = AT(breaker_failures),
          .help = "Open the circuit after this many failures in a row; 0: never." },
        { "breakerSeconds", SETTING_INT, "30", 1, 86400, .at = AT(breaker_seconds),
          .help = "How long an open circuit refuses turns until one may probe; each further "
                  "failure doubles it, up to eight times." },
        { "description", SETTING_STRING, "null", 1, 1000, .at = AT(description),
          .help = "What it is good at, for other agents, which read it in its card (A2A)." },
        { "session", SETTING_CHOICE, "\"conversation\"", .choices = sessions, .at = AT(session),
          .help = "What shares a session, for agents with a memory of their own: each "
                  "`conversation`; all chats of a person on an adapter (`perUser`); all people in "
                  "a chat or thread (`perChat`); or a person in a chat or thread "
                  "(`perUserPerChat`)." },
        { "sessionBare", SETTING_BOOL, "false", .at = AT(session_bare),
          .help = "Name the last three by bare ids, `7`, `-100`, `7:-100`, without platform, "
                  "adapter and thread, for agents that expect this; the same ids on two adapters "
                  "are then one session." },
        SETTING_END
};

static struct agent_conf *conf_read(struct settings_source *src, const char *path, const char *name,
                                    const struct agent_ops *ops, const json_t *object,
                                    struct error *err)
{
        struct agent_conf *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(name);
        c->ops = ops;
        c->conf = mem_zalloc(ops->conf_size ? ops->conf_size : 1);
        c->raw = json_deep_copy(object);
        if (settings_read_typed(src, path, object, agent_common_settings, &c->common, ops->settings,
                                c->conf, err) == 0 &&
            (!ops->check || ops->check(src, path, c->conf, err) == 0))
                return c;
        agent_conf_free(c);
        return NULL;
}

struct agent_conf *agent_conf_read(struct settings_source *src, const char *name,
                                   const json_t *object, struct error *err)
{
        const char *names[KINDS_MAX + 1] = { NULL };
        char *path = mem_printf("agents.%s", name);
        struct agent_conf *c = NULL;
        int kind;

        for (size_t i = 0; i < KINDS_MAX && agent_kinds[i]; i++)
                names[i] = agent_kinds[i]->type;
        kind = settings_read_type(src, path, object, names, err);
        if (kind >= 0)
                c = conf_read(src, path, name, agent_kinds[kind], object, err);
        free(path);
        return c;
}

struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json,
                                   struct error *err)
{
        const char *text = json ? json : "{}";
        struct settings_source *src;
        struct agent_conf *c = NULL;
        size_t i = 0;

        while (agent_kinds[i] && strcmp(agent_kinds[i]->type, type) != 0)
                i++;
        if (!agent_kinds[i]) {
                error_set(err, ERR_INVALID, "unknown agent type '%s'", type);
                return NULL;
        }
        src = settings_source_new(name, NULL, text, strlen(text), err);
        if (src)
                c = conf_read(src, "", name, agent_kinds[i], settings_source_root(src), err);
        settings_source_free(src);
        return c;
}

void agent_conf_free(struct agent_conf *c)
{
        if (!c)
                return;
        settings_release_typed(agent_common_settings, &c->common, c->ops->settings, c->conf);
        free(c->conf);
        json_decref(c->raw);
        free(c->name);
        free(c);
}
