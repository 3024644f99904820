/*
 * child_ops: agents of started programs as the registry sees them, and children as dialects do.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "agent/custom/child_env.h"
#include "base/mem.h"

/* ---- what a dialect may ask ---- */

void *child_state(struct child *c)
{
        return c->dialect;
}

const void *child_conf(const struct child *c)
{
        return c->owner->conf;
}

struct agent *child_agent(const struct child *c)
{
        return c->owner->agent;
}

const char *child_session(const struct child *c)
{
        return c->session;
}

const char *child_folder(const struct child *c)
{
        return c->place.folder;
}

const char *child_home(const struct child *c)
{
        return c->place.home;
}

struct turn_run *child_run(const struct child *c)
{
        return c->state == CHILD_WORKING && c->turn ? c->turn->run : NULL;
}

struct sandboxes *child_sandboxes(const struct child *c)
{
        return c->owner->sandboxes;
}

struct sandbox_key child_sandbox_key(const struct child *c)
{
        bool host = strcmp(c->owner->conf->sandbox.kind, "host") == 0;

        return (struct sandbox_key){ .conversation = c->number,
                                     .view = host ? NULL : c->place.view };
}

/* ---- agent_ops ---- */

/* Sandboxes are named by child. */
static void on_request(void *arg, const struct sandbox_request *q)
{
        struct child_agent *o = arg;
        struct sandbox_request request = *q;
        const struct child *c;

        request.conversation = 0;
        LIST_FOREACH(c, &o->children, all)
                if (c->number == q->conversation)
                        request.conversation = c->conversation;
        agent_journal_request(o->agent, &request);
}

int child_open(struct agent *a, const struct child_dialect *d, struct error *err)
{
        const struct child_conf *conf = a->conf;
        struct child_agent *o = mem_zalloc(sizeof(*o));

        (void)err;
        o->agent = a;
        o->conf = conf;
        o->dialect = d;
        o->env = child_place_env(conf);
        o->sandbox = (struct sandbox_conf){ .kind = conf->sandbox.kind,
                                            .hosts = conf->sandbox.hosts,
                                            .debuggers = conf->sandbox.debuggers,
                                            .memory_mb = conf->sandbox.memory_mb,
                                            .total_mb = conf->sandbox.total_mb,
                                            .processes = conf->sandbox.processes,
                                            .file_mb = conf->sandbox.file_mb,
                                            .disk_mb = conf->sandbox.disk_mb,
                                            .timeout_seconds = conf->turn_minutes * 60,
                                            .output_kb = 4096,
                                            .idle_seconds = 60,
                                            .env = (const char *const *)o->env,
                                            .as_daemon = true };
        o->sandboxes = sandboxes_new(a->loop, &o->sandbox, a->dir);
        sandboxes_on_request(o->sandboxes, on_request, o);
        map_init(&o->by_name);
        LIST_INIT(&o->children);
        LIST_INIT(&o->probes);
        o->sweep = timer_new(a->loop, child_sweep, o);
        a->self = o;
        child_look(o);
        return 0;
}

void child_close(struct agent *a)
{
        struct child_agent *o = a->self;
        struct child *c;

        while ((c = LIST_FIRST(&o->children))) {
                if (c->process && o->dialect->ended)
                        o->dialect->ended(c);
                child_free(c);
        }
        child_health_release(o);
        child_measure_forget(o);
        sandboxes_free(o->sandboxes);
        timer_free(o->sweep);
        timer_free(o->measure);
        map_release(&o->by_name);
        child_env_free(o->env);
        free(o);
}

void child_sandbox_state(const struct agent *a, struct agent_sandbox *out)
{
        const struct child_agent *o = a->self;

        out->kind = o->conf->sandbox.kind;
        out->problem = o->missing[0] ? o->missing : NULL;
}
