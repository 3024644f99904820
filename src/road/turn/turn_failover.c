/*
 * turn_failover: another agent takes a turn over. That is stored before it begins, and after a
 * crash the turn goes on with the agent that had it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/turn/turn.h"

struct failover_write {
        int64_t turn, fence;
        char *agent, *failed;
        turn_step_done_fn *done;
        void *arg;
};

static int write_failover(struct store_tx *tx, struct bus_batch *batch, void *arg,
                          struct error *err)
{
        const struct failover_write *w = arg;

        (void)batch;
        return turn_row_fail_over(tx,
                                  &(struct turn_row){ .id = w->turn,
                                                      .fence = w->fence,
                                                      .answered_by = w->agent,
                                                      .failed_agents = w->failed },
                                  err);
}

static void failover_write_free(struct failover_write *w)
{
        free(w->agent);
        free(w->failed);
        free(w);
}

static void on_failover_written(void *arg, bool stored)
{
        struct failover_write *w = arg;

        w->done(w->arg, stored);
        failover_write_free(w);
}

bool turn_failed_over(struct turn_run *run, const struct turn_failover *f, turn_step_done_fn *done,
                      void *arg)
{
        struct turn *t = (struct turn *)run;
        struct buf *failed = &t->failover.failed;
        struct failover_write *w;
        char iso[CLOCK_ISO_SIZE];

        if (failed->len == 0)
                jsonw_open(failed, '[');
        jsonw_open(failed, '{');
        jsonw_str(failed, "agent", f->from);
        jsonw_str(failed, "error", f->why);
        jsonw_str(failed, "failedAt", clock_iso(clock_wall_ms(), iso));
        jsonw_int(failed, "tokensIn", f->tokens_in);
        jsonw_int(failed, "tokensCached", f->tokens_cached);
        jsonw_int(failed, "tokensOut", f->tokens_out);
        jsonw_int(failed, "costMicroUsd", f->cost_microusd);
        jsonw_close(failed, '}');
        t->failover.agent = arena_strdup(&t->arena, f->to);
        t->failover.tokens_in += f->tokens_in;
        t->failover.tokens_cached += f->tokens_cached;
        t->failover.tokens_out += f->tokens_out;
        t->failover.cost_microusd += f->cost_microusd;
        w = mem_zalloc(sizeof(*w));
        w->turn = t->run.id;
        w->fence = t->run.fence;
        w->agent = mem_strdup(f->to);
        w->failed = mem_printf("%s]", failed->data);
        w->done = done;
        w->arg = arg;
        t->steps.no_deadline = false;
        turn_keep_alive(run);
        if (turn_store_step(run, write_failover, on_failover_written, w))
                return true;
        failover_write_free(w);
        return false;
}

void turn_recover_failover(struct turn *t, const struct turn_row *row)
{
        const char *text = row->failed_agents ? row->failed_agents : "[]";
        json_t *failed = json_read(text, strlen(text), NULL), *one;
        size_t i;

        t->failover.agent = arena_strdup(&t->arena, row->answered_by);
        t->run.goes_on_with = t->failover.agent;
        buf_add(&t->failover.failed, text, strlen(text) - 1); /* its end comes with the turn's */
        json_array_foreach(failed, i, one) {
                t->failover.tokens_in += json_int(one, "tokensIn", 0);
                t->failover.tokens_cached += json_int(one, "tokensCached", 0);
                t->failover.tokens_out += json_int(one, "tokensOut", 0);
                t->failover.cost_microusd += json_int(one, "costMicroUsd", 0);
        }
        json_decref(failed);
}
