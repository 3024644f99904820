/*
 * progress_reaction: 👀 on a message whose answer takes long, then ✅ or ❌.
 *
 * In groups, on platforms with reactions: a slow turn puts 👀 on its last message. Its end replaces
 * that by ✅ or ❌ in the same transaction; quick answers leave none. All go through the channel's
 * queue, so none overtakes another; if the answer is in a thread they follow it. The turn's row
 * names the delivery, so an end after a crash also removes 👀.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

#define WORKING          "👀"
#define DONE             "✅"
#define FAILED           "❌"

#define NUMBERS_RETRY_MS 1000 /* when delivery numbers run out */

struct reaction_write {
        struct turn *turn;
        struct delivery_job *job;
        struct bus_batch batch;
};

static struct delivery_job *make_reaction(struct turn *t, enum delivery_kind kind,
                                          const char *emoji)
{
        struct delivery_job *j;
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", turn_last_input(t)->id);
        jsonw_str(&payload, "emoji", emoji);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_close(&payload, '}');
        j = delivery_new(t->road, &(struct delivery){ .turn = t->run.id,
                                                      .conversation = t->run.conversation,
                                                      .adapter = t->run.adapter,
                                                      .channel = t->run.channel,
                                                      .thread = t->run.thread,
                                                      .kind = kind,
                                                      .class = PACE_EDIT,
                                                      .payload = payload.data,
                                                      .trace = t->trace,
                                                      .unsampled = turn_is_unsampled(t) });
        buf_release(&payload);
        return j;
}

/* ---- while the turn runs ---- */

static int write_reaction(struct store_tx *tx, void *arg, struct error *err)
{
        struct reaction_write *w = arg;

        bus_batch_reset(&w->batch);
        if (delivery_store(tx, &w->batch, w->job, err) < 0)
                return -1;
        return turn_row_set_progress_reaction(tx, w->turn->run.id, w->job->d.id, err);
}

static void write_free(struct reaction_write *w)
{
        bus_batch_release(&w->batch);
        free(w);
}

static void on_stored(void *arg, const struct error *err)
{
        struct reaction_write *w = arg;
        struct turn *t = w->turn;

        if (err) { /* an end that waits for it is left to the next run, too */
                delivery_free(w->job);
                write_free(w);
                return;
        }
        outbox_enqueue(t->road, w->job);
        write_free(w);
        t->display.writes--;
        turn_commit(t);
}

static void on_slow(void *arg)
{
        struct turn *t = arg;
        struct reaction_write *w;
        int64_t id;

        if (!numbers_take(&t->road->delivery_numbers, 1, &id)) {
                timer_start(t->display.slow, NUMBERS_RETRY_MS);
                return;
        }
        w = mem_zalloc(sizeof(*w));
        w->turn = t;
        w->job = make_reaction(t, DELIVER_REACT, WORKING);
        w->job->d.id = t->display.reaction = id;
        t->display.writes++;
        road_write(t->road, "progress reaction", write_reaction, on_stored, w);
}

/* Skips reactions, ambient and silent turns, and commands whose platform shows progress itself. */
void progress_reaction_begin(struct turn *t)
{
        const struct road *r = t->road;
        const struct incoming *last = turn_last_input(t);

        if (t->policy.slow_ms <= 0 || t->display.reaction != 0 || last->chat != CHAT_GROUP ||
            !last->id || last->is_awaited || strcmp(last->type, EVENT_MESSAGE_RECEIVED) != 0 ||
            !reply_mode_answers(t->policy.mode) ||
            !(r->platforms.abilities(r->platforms.adapters, t->run.adapter) & ADAPTER_REACTIONS))
                return;
        t->display.slow = timer_new(r->loop, on_slow, t);
        timer_start(t->display.slow, t->policy.slow_ms);
}

/* ---- at the end ---- */

void progress_reaction_end(struct turn *t, enum error_kind kind, struct answer *a)
{
        struct delivery_job *working;

        if (t->display.reaction == 0)
                return;
        working = outbox_find(t->road, t->display.reaction);
        if (working && delivery_is_unseen(working))
                turn_deliveries_supersede(t, a, working);
        else
                turn_deliveries_add(a, make_reaction(t, DELIVER_UNREACT, WORKING));
        if (kind != ERR_CANCELLED)
                turn_deliveries_add(
                        a, make_reaction(t, DELIVER_REACT, kind == ERR_NONE ? DONE : FAILED));
}

bool progress_reaction_follows(const struct delivery_job *j, const struct delivery_job *answer)
{
        return answer->d.turn == j->d.turn && answer->d.thread && !j->d.thread &&
               (j->d.kind == DELIVER_REACT || j->d.kind == DELIVER_UNREACT);
}

char *progress_reaction_failed_payload(const struct delivery_job *j)
{
        const char *done =
                j->d.turn > 0 && j->d.kind == DELIVER_REACT ? strstr(j->d.payload, DONE) : NULL;

        if (!done)
                return NULL;
        return mem_printf("%.*s%s%s", (int)(done - j->d.payload), j->d.payload, FAILED,
                          done + strlen(DONE));
}
