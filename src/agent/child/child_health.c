/*
 * child_health: is the program there, where it would run? Looking costs nothing; whether it works
 * is known from its last start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "base/log.h"
#include "base/mem.h"

#define LOOK_CONVERSATION (-1)
#define LOOK_MS           20000

struct child_probe {
        void *token;
        LIST_ENTRY(child_probe) next;
};

static void answer_probes(struct child_agent *o)
{
        const char *why = o->missing[0] ? o->missing : o->problem;
        struct child_probe *p;

        while ((p = LIST_FIRST(&o->probes))) {
                void *token = p->token;

                LIST_REMOVE(p, next);
                free(p);
                agent_health_report(token, why[0] == '\0', 0, why);
        }
}

static void note_missing(struct child_agent *o, const char *why)
{
        snprintf(o->missing, sizeof(o->missing), "%s", why);
        log_warn("agent cannot be started", LOG_S("agent", o->agent->name), LOG_S("why", why));
}

static void on_looked(void *arg, const struct sandbox_result *r)
{
        struct child_agent *o = arg;
        const char *program = o->conf->command.items[0];
        bool host = strcmp(o->conf->sandbox.kind, "host") == 0;
        char why[300];

        o->look = NULL;
        o->missing[0] = '\0';
        sandbox_end(o->sandboxes, LOOK_CONVERSATION);
        if (r->kind != ERR_NONE)
                note_missing(o, r->why ? r->why : "its sandbox does not work");
        if (r->kind == ERR_NONE && r->exit_code != 0) {
                snprintf(why, sizeof(why), "there is no program '%.100s' in %s", program,
                         host ? "PATH"
                              : "the sandbox: install it below /usr, or list its folder in "
                                "sandbox.readOnly");
                note_missing(o, why);
        }
        answer_probes(o);
}

static void on_late_answer(void *arg)
{
        struct child_agent *o = arg;

        if (!o->look)
                answer_probes(o);
}

void child_look(struct child_agent *o)
{
        static const struct sandbox_handlers handlers = { .on_exit = on_looked };
        const char *const argv[] = {
                "sh", "-c", "command -v -- \"$1\" >/dev/null", "sh", o->conf->command.items[0], NULL
        };
        bool host = strcmp(o->conf->sandbox.kind, "host") == 0;
        struct child_place place = { 0 };
        struct error err = { 0 };

        if (o->look)
                return;
        if (child_place_open_bare(&place, o, &err) == 0)
                o->look = sandbox_start(o->sandboxes,
                                        &(struct sandbox_key){ .conversation = LOOK_CONVERSATION,
                                                               .view = host ? NULL : place.view },
                                        &(struct sandbox_command){
                                                .argv = argv, .cwd = "/", .timeout_ms = LOOK_MS },
                                        &handlers, o, &err);
        child_place_release(&place);
        if (o->look)
                return;
        note_missing(o, err.text);
        if (!o->late)
                o->late = timer_new(o->agent->loop, on_late_answer, o);
        timer_start(o->late, 0);
}

void child_check_health(struct agent *a, void *token)
{
        struct child_agent *o = a->self;
        struct child_probe *p = mem_zalloc(sizeof(*p));

        p->token = token;
        LIST_INSERT_HEAD(&o->probes, p, next);
        child_look(o);
}

void child_health_release(struct child_agent *o)
{
        struct child_probe *p;

        sandbox_abandon(o->look);
        o->look = NULL;
        timer_free(o->late);
        while ((p = LIST_FIRST(&o->probes))) {
                LIST_REMOVE(p, next);
                free(p);
        }
}
