/*
 * turn_detail: the steps of a turn, in the thread of its main message.
 *
 * The main message is the draft, which becomes the answer; it is shown with the first detail at the
 * latest. A detail is stored in the transaction of the step that it is about, so that after a
 * crash neither is there without the other. Which thread it is, is known when the main message is
 * sent: the delivery names that of the draft, as an edit does, and both wait in the same queue.
 * A turn in a thread shows none: people would have to read them as part of the conversation.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

struct turn_detail {
        struct turn *turn;
        struct delivery_job *job;
};

bool turn_shows_details(const struct turn_run *run)
{
        const struct turn *t = (const struct turn *)run;
        const struct road_platforms *p = &t->road->platforms;
        unsigned can = p->abilities(p->adapters, run->adapter);

        return (can & ADAPTER_DETAILS) && (can & ADAPTER_STREAMS) && run->mode == MODE_REPLY &&
               !run->thread;
}

/* An unnumbered delivery; NULL: the text is blank. */
static struct delivery_job *make_detail(struct turn *t, const char *markdown)
{
        struct road *r = t->road;
        struct rendered parts = { 0 };
        struct delivery_job *j;
        struct buf payload;
        struct error err;

        if (r->platforms.render(r->platforms.adapters, t->run.adapter, markdown, false, &parts,
                                &err) < 0 ||
            parts.count == 0)
                return NULL;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "text", parts.parts[0].text);
        jsonw_opt(&payload, "plain", parts.parts[0].plain);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_bool(&payload, "detail", true);
        jsonw_close(&payload, '}');
        j = delivery_new(r, &(struct delivery){ .turn = t->run.id,
                                                .conversation = t->run.conversation,
                                                .adapter = t->run.adapter,
                                                .channel = t->run.channel,
                                                .thread = t->run.thread,
                                                .kind = DELIVER_SEND,
                                                .class = PACE_EDIT,
                                                .payload = payload.data,
                                                .trace = t->trace,
                                                .unsampled = turn_is_unsampled(t) });
        j->edits = t->display.draft_delivery;
        buf_release(&payload);
        rendered_release(&parts);
        return j;
}

struct turn_detail *turn_detail_new(struct turn_run *run, const char *markdown)
{
        struct turn *t = (struct turn *)run;
        struct turn_detail *d;
        struct delivery_job *j;

        if (!turn_shows_details(run) || !draft_show_now(t))
                return NULL;
        j = make_detail(t, markdown);
        if (j && !numbers_take(&t->road->delivery_numbers, 1, &j->d.id)) {
                delivery_free(j); /* the store refuses writes */
                j = NULL;
        }
        if (!j)
                return NULL;
        d = mem_zalloc(sizeof(*d));
        d->turn = t;
        d->job = j;
        return d;
}

int turn_detail_store(struct store_tx *tx, struct bus_batch *batch, const struct turn_detail *d,
                      struct error *err)
{
        return d ? delivery_store(tx, batch, d->job, err) : 0;
}

void turn_detail_stored(struct turn_detail *d, bool stored)
{
        struct turn *t = d ? d->turn : NULL;

        if (!d)
                return;
        if (stored && t->display.detail_count < TURN_DETAILS)
                t->display.details[t->display.detail_count++] = d->job->d.id;
        if (stored)
                outbox_enqueue(t->road, d->job);
        else
                delivery_free(d->job);
        free(d);
}

/* ---- at the end ---- */

void turn_detail_end(struct turn *t, const struct turn_reply *reply, struct answer *a)
{
        struct delivery_job *j;
        struct buf text;

        if (!reply->used_tools || t->display.draft_delivery == 0 || !turn_shows_details(&t->run))
                return;
        buf_init(&text, 0);
        buf_addf(&text, "%lld tokens in", (long long)reply->tokens_in);
        if (reply->tokens_cached > 0)
                buf_addf(&text, " (%lld cached)", (long long)reply->tokens_cached);
        buf_addf(&text, ", %lld out", (long long)reply->tokens_out);
        if (reply->cost_microusd > 0)
                buf_addf(&text, ", %.4f USD", (double)reply->cost_microusd / 1e6);
        j = make_detail(t, text.data);
        buf_release(&text);
        if (j)
                turn_deliveries_add(a, j);
}

void turn_detail_delete(struct turn *t, struct answer *a)
{
        for (unsigned i = t->display.detail_count; i > 0; i--) {
                struct delivery_job *j = delivery_new(
                        t->road, &(struct delivery){ .turn = t->run.id,
                                                     .conversation = t->run.conversation,
                                                     .adapter = t->run.adapter,
                                                     .channel = t->run.channel,
                                                     .thread = t->run.thread,
                                                     .kind = DELIVER_DELETE,
                                                     .class = PACE_EDIT,
                                                     .payload = "{}",
                                                     .trace = t->trace,
                                                     .unsampled = turn_is_unsampled(t) });

                j->edits = t->display.details[i - 1];
                turn_deliveries_add(a, j);
        }
}
