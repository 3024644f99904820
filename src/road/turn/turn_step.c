/*
 * turn_step: what an agent that goes on after a crash asks of the road while its turn runs.
 */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

struct step_write {
        struct turn *turn; /* its end waits for us */
        turn_step_fn *fn;
        turn_step_done_fn *done;
        void *arg;
        bool stored; /* result */
        struct bus_batch batch;
};

static int write_step(struct store_tx *tx, void *arg, struct error *err)
{
        struct step_write *w = arg;
        int rc;

        bus_batch_reset(&w->batch);
        rc = w->fn(tx, &w->batch, w->arg, err);
        w->stored = rc == 1;
        return rc < 0 ? -1 : 0;
}

static void restart_deadline(struct turn *t)
{
        if (t->phase == PHASE_RUNNING && t->timer && !t->steps.waits && !t->steps.no_deadline)
                timer_start(t->timer, t->road->limits.turn_seconds * 1000);
}

void turn_keep_alive(struct turn_run *run)
{
        restart_deadline((struct turn *)run);
}

void turn_drop_deadline(struct turn_run *run)
{
        struct turn *t = (struct turn *)run;

        t->steps.no_deadline = true;
        if (t->timer)
                timer_stop(t->timer);
}

static void on_stored(void *arg, const struct error *err)
{
        struct step_write *w = arg;
        struct turn *t = w->turn;

        t->run.interrupted = err != NULL;
        if (!err) {
                fault_point("turn.step_stored");
                bus_publish(t->road->bus, &w->batch);
                restart_deadline(t);
        }
        w->done(w->arg, !err && w->stored);
        bus_batch_release(&w->batch);
        free(w);
        t->steps.writes--;
        if (!err)
                turn_commit(t);
}

bool turn_store_step(struct turn_run *run, turn_step_fn *fn, turn_step_done_fn *done, void *arg)
{
        struct turn *t = (struct turn *)run;
        struct step_write *w;

        if (t->road->closing)
                return false;
        w = mem_zalloc(sizeof(*w));
        w->turn = t;
        w->fn = fn;
        w->done = done;
        w->arg = arg;
        t->steps.writes++;
        fault_point("turn.before_step");
        road_write(t->road, "step of a turn", write_step, on_stored, w);
        return true;
}

struct step_read {
        struct turn *turn;
        store_fn *fn;
        store_done_fn *done;
        void *arg;
};

static int read_steps(struct store_tx *tx, void *arg, struct error *err)
{
        struct step_read *v = arg;

        return v->fn(tx, v->arg, err);
}

static void on_read(void *arg, const struct error *err)
{
        struct step_read *v = arg;
        struct turn *t = v->turn;

        t->road->writes--;
        v->done(v->arg, err);
        free(v);
        t->steps.writes--;
        turn_commit(t);
}

void turn_load(struct turn_run *run, store_fn *fn, store_done_fn *done, void *arg)
{
        struct turn *t = (struct turn *)run;
        struct step_read *v = mem_zalloc(sizeof(*v));

        v->turn = t;
        v->fn = fn;
        v->done = done;
        v->arg = arg;
        t->steps.writes++;
        t->road->writes++;
        store_read(t->road->store, read_steps, on_read, v);
}

static struct bus_event event_of(const struct turn_run *run, const char *type, const char *payload)
{
        return (struct bus_event){ .type = type,
                                   .adapter = run->adapter,
                                   .channel = run->channel,
                                   .thread = run->thread,
                                   .trace = run->trace,
                                   .payload = payload };
}

int turn_append_event(struct store_tx *tx, struct bus_batch *batch, const struct turn_run *run,
                      const char *type, const char *payload, struct error *err)
{
        struct bus_event e = event_of(run, type, payload);

        return bus_append(tx, batch, &e, NULL, err) < 0 ? -1 : 0;
}

void turn_publish_live(struct turn_run *run, const char *type, const char *payload)
{
        struct bus_event e = event_of(run, type, payload);

        bus_publish_live(((struct turn *)run)->road->bus, &e);
}

void turn_wait_for_person(struct turn_run *run, bool waits)
{
        struct turn *t = (struct turn *)run;

        t->steps.waits = waits;
        if (!waits)
                restart_deadline(t);
        else if (t->timer)
                timer_stop(t->timer);
}

void turn_set_usage(struct turn_run *run, const struct turn_usage *total)
{
        ((struct turn *)run)->steps.usage = *total;
}
