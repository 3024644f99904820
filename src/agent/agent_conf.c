#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/json.h"
#include "base/mem.h"

static const char *const read_here[] = { "type", NULL };

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
                rc = settings_error(src, path, err, "unknown type '%s' (did you mean '%s'?)", type, near);
        else
                rc = settings_error(src, path, err, "unknown type '%s' (one of %s)", type, known.data);
        buf_release(&known);
        return rc;
}

static const struct agent_ops *read_kind(struct settings_source *src, const char *path, const json_t *object,
                                         struct error *err)
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

/* Reads the settings of a kind from the object at path. */
static struct agent_conf *read_at(struct settings_source *src, const char *path, const char *name,
                                  const struct agent_ops *ops, const json_t *object, struct error *err)
{
        const struct setting *const tables[] = { ops->settings, NULL };
        void *conf = mem_zalloc(ops->conf_size ? ops->conf_size : 1);
        struct agent_conf *c;

        if (settings_read(src, path, object, tables, read_here, conf, err) < 0) {
                free(conf);
                return NULL;
        }
        c = mem_zalloc(sizeof(*c));
        c->name = mem_strdup(name);
        c->ops = ops;
        c->conf = conf;
        c->raw = json_deep_copy(object);
        if (ops->check && ops->check(src, path, conf, err) < 0) {
                agent_conf_free(c);
                return NULL;
        }
        return c;
}

struct agent_conf *agent_conf_read(struct settings_source *src, const char *name, const json_t *object,
                                   struct error *err)
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

struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json, struct error *err)
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
        settings_release((const struct setting *const[]){ c->ops->settings, NULL }, c->conf);
        free(c->conf);
        json_decref(c->raw);
        free(c->name);
        free(c);
}
