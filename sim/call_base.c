#include "sim/call_base.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/http_route.h"

static struct call *whole(struct call_base *c)
{
        return (struct call *)c;
}

void call_base_init(struct call_base *c, struct world_base *w, const struct call_ops *ops)
{
        *c = (struct call_base){
                .ops = ops, .world = w, .valid = true, .started_ns = clock_mono_ns()
        };
        LIST_INSERT_HEAD(&w->live, c, next);
}

void call_base_release(struct call_base *c)
{
        LIST_REMOVE(c, next);
        timer_free(c->delay);
}

const struct fault *call_base_fault(struct call_base *c, const char *method)
{
        struct faults *f = &c->world->faults;
        const struct fault *fault = faults_fire(f, FAULT_CUT_BEFORE, method);

        if (fault) {
                c->cut = true;
                return fault;
        }
        if ((fault = faults_fire(f, FAULT_ERROR, method)) ||
            (fault = faults_fire(f, FAULT_FLOOD, method)))
                return fault;
        if ((fault = faults_fire(f, FAULT_SLOW, method)))
                c->slow_ms = fault->ms;
        if ((fault = faults_fire(f, FAULT_ERROR_AFTER, method)))
                c->late_status = fault->status;
        c->cut = faults_fire(f, FAULT_CUT_AFTER, method) != NULL;
        return NULL;
}

void call_base_later(struct call_base *c, int64_t ms, void (*run)(void *call))
{
        timer_free(c->delay);
        c->delay = timer_new(c->world->loop, run, c);
        timer_start(c->delay, ms);
}

static void on_delay(void *arg)
{
        struct call_base *c = arg;

        c->ops->deliver(whole(c));
}

static void record(struct call_base *c)
{
        struct world_base *w = c->world;

        w->call_count++;
        w->invalid_count += !c->valid;
        if (w->record_calls)
                c->ops->record(whole(c), w->calls);
        if (!c->valid)
                c->ops->record(whole(c), w->invalid);
}

void call_base_finish(struct call_base *c)
{
        record(c);
        if (c->late_status)
                c->ops->fail_late(whole(c), c->late_status);
        if (c->slow_ms > 0) {
                call_base_later(c, c->slow_ms, on_delay);
                return;
        }
        c->ops->deliver(whole(c));
}

static void add_text(void *args, const char *name, const char *value)
{
        json_object_set_new(args, name, json_string(value));
}

void call_base_read_query(const struct http_exchange *x, json_t *args)
{
        http_query_each(x, add_text, args);
}

int call_base_read_form(const char *body, size_t n, json_t *args)
{
        char *text = mem_strndup(body, n);
        struct http_pair *pairs;
        size_t count;
        int rc = http_route_parse_query(text, &pairs, &count);

        for (size_t i = 0; i < count; i++)
                add_text(args, pairs[i].name, pairs[i].value);
        free(pairs);
        free(text);
        return rc;
}

int64_t call_base_micros(const struct call_base *c)
{
        return (int64_t)(clock_mono_ns() - c->started_ns) / 1000;
}

void call_base_cut_all(struct world_base *w)
{
        struct call_base *c;

        while ((c = LIST_FIRST(&w->live))) {
                c->cut = true;
                c->ops->deliver(whole(c));
        }
}
