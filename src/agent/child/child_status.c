/*
 * child_status: what the processes of an agent use, and what operators are shown of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/process_usage.h"

#define MEASURE_MS 2000

/* ---- measuring ---- */

struct child_measure {
        struct child_agent *owner; /* NULL: closed */
        struct process_usage *list;
        int64_t *numbers; /* of the children */
        size_t count;
};

static void measure(void *arg)
{
        struct child_measure *m = arg;

        process_usage_read(m->list, m->count);
}

static void take(struct child_agent *o, int64_t number, const struct process_usage *u)
{
        int64_t most = o->conf->sandbox.total_mb;
        struct child *c;
        char why[100];

        LIST_FOREACH(c, &o->children, all)
                if (c->number == number && c->process && child_process_pid(c->process) == u->pid)
                        break;
        if (!c)
                return;
        c->memory_bytes = u->memory_bytes;
        c->cpu_ms = u->cpu_ms;
        if (u->memory_bytes >> 20 <= most)
                return;
        snprintf(why, sizeof(why), "it used more than %lld MiB of memory (sandbox.totalMb)",
                 (long long)most);
        child_kill(c, ERR_LIMIT, why);
}

static void on_measured(void *arg)
{
        struct child_measure *m = arg;
        struct child_agent *o = m->owner;

        if (o) {
                o->measuring = NULL;
                for (size_t i = 0; i < m->count; i++)
                        take(o, m->numbers[i], &m->list[i]);
                child_measure_begin(o);
        }
        free(m->list);
        free(m->numbers);
        free(m);
}

static void on_timer(void *arg)
{
        struct child_agent *o = arg;
        struct child_measure *m;
        struct child *c;

        if (o->running == 0 || o->measuring)
                return;
        m = mem_zalloc(sizeof(*m));
        m->owner = o;
        m->list = mem_array(o->running, sizeof(*m->list));
        m->numbers = mem_array(o->running, sizeof(*m->numbers));
        LIST_FOREACH(c, &o->children, all) {
                if (!c->process || m->count >= o->running)
                        continue;
                m->list[m->count].pid = child_process_pid(c->process);
                m->numbers[m->count++] = c->number;
        }
        o->measuring = m;
        loop_work(o->agent->loop, measure, on_measured, m);
}

void child_measure_begin(struct child_agent *o)
{
        if (!o->measure) {
                o->measure = timer_new(o->agent->loop, on_timer, o);
                timer_unref(o->measure);
        }
        if (o->running > 0 && !o->measuring && !timer_active(o->measure))
                timer_start(o->measure, MEASURE_MS);
}

void child_measure_forget(struct child_agent *o)
{
        if (o->measuring)
                o->measuring->owner = NULL;
        timer_free(o->measure);
        o->measure = NULL;
}

/* ---- showing ---- */

static void write_child(struct buf *out, const struct child *c)
{
        char id[32], iso[CLOCK_ISO_SIZE];
        unsigned waiting = 0;
        const struct child_turn *t;

        TAILQ_FOREACH(t, &c->turns, next)
                waiting++;
        jsonw_open(out, '{');
        snprintf(id, sizeof(id), "conv-%lld", (long long)c->conversation);
        jsonw_str(out, "state", child_state_name(c->state));
        jsonw_str(out, "conversationId", c->conversation ? id : NULL);
        jsonw_str(out, "session", *c->session ? c->session : NULL);
        jsonw_str(out, "turnId", child_run(c) ? c->turn->run->key : NULL);
        jsonw_int(out, "waiting", waiting);
        jsonw_int(out, "pid", c->process ? child_process_pid(c->process) : 0);
        jsonw_int(out, "memoryBytes", c->memory_bytes);
        jsonw_int(out, "cpuMs", c->cpu_ms);
        jsonw_int(out, "turns", c->turns_done);
        if (c->started_ms)
                jsonw_str(out, "startedAt", clock_iso(c->started_ms, iso));
        jsonw_close(out, '}');
}

void child_status(const struct agent *a, struct buf *out)
{
        const struct child_agent *o = a->self;
        int64_t memory = 0, cpu = 0, idle = 0;
        const struct child *c;

        LIST_FOREACH(c, &o->children, all) {
                memory += c->memory_bytes;
                cpu += c->cpu_ms;
                idle += c->state == CHILD_IDLE;
        }
        jsonw_open_member(out, "processes", '{');
        jsonw_int(out, "running", o->running);
        jsonw_int(out, "idle", idle);
        jsonw_int(out, "most", o->conf->processes);
        jsonw_int(out, "memoryBytes", memory);
        jsonw_int(out, "cpuMs", cpu);
        jsonw_str(out, "problem", o->problem[0] ? o->problem : NULL);
        jsonw_open_member(out, "list", '[');
        LIST_FOREACH(c, &o->children, all)
                write_child(out, c);
        jsonw_close(out, ']');
        jsonw_close(out, '}');
}
