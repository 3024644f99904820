/*
 * mark: the sign on a message whose answer takes long, and what becomes of it.
 *
 * In groups, where the platform has reactions: after a while 👀 is put on the last message of the
 * turn; when the turn ends it is taken away, and ✅ or ❌ stands in its place, stored with the end.
 * Quick answers leave no sign at all. All of them go through the row of their channel, so none
 * overtakes another, and where the answer stands in a thread they follow it; and the sign's
 * delivery is kept with the turn, so whoever ends it after a crash takes it away.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

#define WORKING "👀"
#define DONE    "✅"
#define FAILED  "❌"

struct marking {
        struct turn *turn;
        struct out *out;
        struct bus_batch batch;
};

static struct out *reaction(struct turn *t, enum delivery_kind kind, const char *emoji)
{
        struct buf payload;
        struct out *o;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", t->inputs[t->input_count - 1]->id);
        jsonw_str(&payload, "emoji", emoji);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_close(&payload, '}');
        o = out_new(t->road->next_delivery++, t->run.id, t->adapter, t->channel, t->thread, kind,
                    PACE_EDIT, payload.data, t->trace);
        buf_release(&payload);
        out_set_expiry(t->road, o);
        return o;
}

/* ---- while it runs ---- */

static int write_marking(struct store_tx *tx, void *arg, struct error *err)
{
        struct marking *m = arg;
        struct store_stmt *s;

        bus_batch_reset(&m->batch);
        if (out_store(tx, &m->batch, m->out, false, NULL, err) < 0)
                return -1;
        s = store_prepare(tx, "UPDATE turns SET progress_reaction = ?2 WHERE id = ?1");
        store_bind_int(s, 1, m->turn->run.id);
        store_bind_int(s, 2, m->out->d.id);
        return store_run(s, err);
}

static void on_marked(void *arg)
{
        struct marking *m = arg;
        struct turn *t = m->turn;

        outbox_enqueue(t->road, m->out);
        bus_batch_release(&m->batch);
        free(m);
        t->showing--;
        turn_end_held(t);
}

static void on_slow(void *arg)
{
        struct turn *t = arg;
        struct marking *m = mem_zalloc(sizeof(*m));

        m->turn = t;
        m->out = reaction(t, DELIVER_REACT, WORKING);
        t->mark = m->out->d.id;
        t->showing++;
        road_write(t->road, "mark", write_marking, on_marked, m);
}

/*
 * Only whoever wrote the message waits for its answer: what was merely reacted to, or read along,
 * is left alone; and so is what the platform marks.
 */
static bool is_wanted(const struct turn *t)
{
        const struct reply_policy *policy = &t->policy;
        const struct road *r = t->road;
        const struct incoming *last = t->inputs[t->input_count - 1];

        return policy->slow_ms > 0 && t->mark == 0 && last->chat == CHAT_GROUP && last->id &&
               !last->is_awaited && strcmp(last->type, EVENT_MESSAGE_RECEIVED) == 0 &&
               policy->mode != MODE_AMBIENT && policy->mode != MODE_SILENT &&
               (r->platforms.abilities(r->platforms.adapters, t->adapter) & ADAPTER_REACTIONS);
}

void mark_begin(struct turn *t)
{
        if (!is_wanted(t))
                return;
        t->slow = timer_new(t->road->loop, on_slow, t);
        timer_start(t->slow, t->policy.slow_ms);
}

/* ---- when it ends ---- */

void mark_end(struct turn *t, enum error_kind kind, struct answer *a)
{
        struct out *working = t->mark ? outbox_find(t->road, t->mark) : NULL;

        if (t->mark == 0)
                return;
        if (working && working->state == OUT_QUEUED && !working->unsure && working->d.attempt == 0)
                answer_supersede(t, a, working); /* nobody has seen it */
        else
                answer_add(a, reaction(t, DELIVER_UNREACT, WORKING));
        if (kind != ERR_CANCELLED)
                answer_add(a, reaction(t, DELIVER_REACT, kind == ERR_NONE ? DONE : FAILED));
}

bool mark_follows(const struct out *o, const struct out *answer)
{
        return answer && answer->d.turn == o->d.turn && answer->d.thread && !o->d.thread &&
               (o->d.kind == DELIVER_REACT || o->d.kind == DELIVER_UNREACT);
}

/* ---- when the answer does not arrive ---- */

char *mark_cross(const struct out *o)
{
        const char *tick =
                o->d.turn > 0 && o->d.kind == DELIVER_REACT ? strstr(o->d.payload, DONE) : NULL;

        if (!tick)
                return NULL;
        return mem_printf("%.*s%s%s", (int)(tick - o->d.payload), o->d.payload, FAILED,
                          tick + strlen(DONE));
}

int mark_cross_out(struct store_tx *tx, const struct out *o, const char *cross, bool *crossed,
                   struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT count(*) FROM deliveries WHERE turn = ?1 AND kind IN ('send', 'edit') AND class = ?2"
                " AND state IN ('failed', 'unknown', 'expired')");
        int64_t failed;

        store_bind_int(s, 1, o->d.turn);
        store_bind_int(s, 2, PACE_FINAL);
        if (store_number(s, 0, &failed, err) < 0)
                return -1;
        *crossed = failed > 0;
        if (!*crossed)
                return 0;
        s = store_prepare(tx, "UPDATE deliveries SET payload = ?2 WHERE id = ?1");
        store_bind_int(s, 1, o->d.id);
        store_bind_text(s, 2, cross);
        return store_run(s, err);
}
