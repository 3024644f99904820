#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/json.h"
#include "base/mem.h"

#define AT(field) offsetof(struct agent_common, field)

static const char *const sessions[] = { "conversation", "perUser", "perChat", "perUserPerChat",
                                        NULL };

/* clang-format off */
const struct setting agent_common_settings[] = {
        { "concurrency", SETTING_INT, "0", 0, 100000, .at = AT(concurrency),
          .help = "How many turns it works on at once; others wait, first come, first served. 0: no limit but `limits.runningTurns`." },
        { "queue", SETTING_INT, "1000", 0, 100000, .at = AT(queue),
          .help = "How many turns may wait for it; more are refused with a short notice." },
        { "failover", SETTING_STRINGS, "[]", .at = AT(failover),
          .help = "Other agents, asked in this order when this one certainly has not worked on the turn." },
        { "breakerFailures", SETTING_INT, "5", 0, 1000, .at = AT(breaker_failures),
          .help = "After so many failures in a row it is left alone for a while; 0: never." },
        { "breakerSeconds", SETTING_INT, "30", 1, 86400, .at = AT(breaker_seconds),
          .help = "How long, until one turn tries again; each further failure doubles it, up to eight times." },
        { "session", SETTING_CHOICE, "\"conversation\"", .choices = sessions, .at = AT(session),
          .help = "What it remembers together, when it remembers by itself: each `conversation`; everything of a person on an adapter (`perUser`); "
                  "a chat or thread with everybody in it (`perChat`); or a person in a chat or thread (`perUserPerChat`)." },
        { "sessionBare", SETTING_BOOL, "false", .at = AT(session_bare),
          .help = "Names these last three by the bare ids, `7`, `-100`, `7:-100`, without platform, adapter and thread, as some agents were used to; "
                  "the same ids on two adapters are one session then." },
        SETTING_END
};
/* clang-format on */

static const struct setting *const common_tables[] = { agent_common_settings, NULL };
static const struct setting no_settings[] = { SETTING_END };

static const struct setting *own_settings(const struct agent_ops *ops)
{
        return ops->settings ? ops->settings : no_settings;
}

/* "type" and the keys of a table, NULL-terminated; free the array, not the words. */
static const char **type_and_keys(const struct setting *table)
{
        size_t n = 0;
        const char **keys;

        while (table[n].key)
                n++;
        keys = mem_array(n + 2, sizeof(*keys));
        keys[0] = "type";
        for (size_t i = 0; i < n; i++)
                keys[i + 1] = table[i].key;
        return keys;
}

static const struct agent_ops *kind_of(const char *type)
{
        for (size_t i = 0; agent_kinds[i]; i++) {
                if (strcmp(agent_kinds[i]->type, type) == 0)
                        return agent_kinds[i];
        }
        return NULL;
}

static int unknown_kind(const struct settings_source *src, const char *path, const char *type,
                        struct error *err)
{
        const char *names[32] = { NULL };
        struct buf known;
        const char *near;
        int rc;

        buf_init(&known, 0);
        for (size_t i = 0; agent_kinds[i] && i + 1 < COUNT(names); i++) {
                names[i] = agent_kinds[i]->type;
                buf_addf(&known, "%s%s", i ? ", " : "", names[i]);
        }
        near = settings_nearest(type, names);
        if (near)
                rc = settings_error(src, path, err, "unknown type '%s' (did you mean '%s'?)", type,
                                    near);
        else
                rc = settings_error(src, path, err, "unknown type '%s' (one of %s)", type,
                                    known.data);
        buf_release(&known);
        return rc;
}

static const struct agent_ops *read_kind(struct settings_source *src, const char *path,
                                         const json_t *object, struct error *err)
{
        const char *type = json_str(object, "type", NULL);
        const struct agent_ops *ops;
        char *at;

        if (!type) {
                settings_error(src, path, err, "needs a \"type\"");
                return NULL;
        }
        ops = kind_of(type);
        if (!ops) {
                at = *path ? mem_printf("%s.type", path) : mem_strdup("type");
                unknown_kind(src, at, type, err);
                free(at);
        }
        return ops;
}

/* One of the two tables; the keys of the other are somebody else's. */
static int read_table(struct settings_source *src, const char *path, const json_t *object,
                      const struct setting *table, const struct setting *other, void *out,
                      struct error *err)
{
        const struct setting *const tables[] = { table, NULL };
        const char **also = type_and_keys(other);
        int rc = settings_read(src, path, object, tables, also, out, err);

        free(also);
        return rc;
}

/* Reads the settings of a kind from the object at path. */
static struct agent_conf *read_at(struct settings_source *src, const char *path, const char *name,
                                  const struct agent_ops *ops, const json_t *object,
                                  struct error *err)
{
        struct agent_conf *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(name);
        c->ops = ops;
        c->conf = mem_zalloc(ops->conf_size ? ops->conf_size : 1);
        c->raw = json_deep_copy(object);
        if (read_table(src, path, object, own_settings(ops), agent_common_settings, c->conf, err) ==
                    0 &&
            read_table(src, path, object, agent_common_settings, own_settings(ops), &c->common,
                       err) == 0 &&
            (!ops->check || ops->check(src, path, c->conf, err) == 0))
                return c;
        agent_conf_free(c);
        return NULL;
}

struct agent_conf *agent_conf_read(struct settings_source *src, const char *name,
                                   const json_t *object, struct error *err)
{
        char *path = mem_printf("agents.%s", name);
        const struct agent_ops *ops;
        struct agent_conf *c = NULL;

        if (!json_is_object(object)) {
                settings_error(src, path, err, "must be an object like { \"type\": \"echo\" }");
        } else {
                ops = read_kind(src, path, object, err);
                if (ops)
                        c = read_at(src, path, name, ops, object, err);
        }
        free(path);
        return c;
}

struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json,
                                   struct error *err)
{
        const struct agent_ops *ops = kind_of(type);
        const char *text = json ? json : "{}";
        struct settings_source *src;
        struct agent_conf *c = NULL;

        if (!ops) {
                error_set(err, ERR_INVALID, "unknown agent type '%s'", type);
                return NULL;
        }
        src = settings_source_new(name, NULL, text, strlen(text), err);
        if (src)
                c = read_at(src, "", name, ops, settings_source_root(src), err);
        settings_source_free(src);
        return c;
}

void agent_conf_free(struct agent_conf *c)
{
        if (!c)
                return;
        settings_release((const struct setting *const[]){ own_settings(c->ops), NULL }, c->conf);
        settings_release(common_tables, &c->common);
        free(c->conf);
        json_decref(c->raw);
        free(c->name);
        free(c);
}
