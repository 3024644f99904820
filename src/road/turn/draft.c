/*
 * draft: what people see while a turn runs.
 *
 * Typing is shown from a moment after the start until the answer. Where the platform can edit, a
 * growing answer is one message: the first piece is sent as a draft, later pieces edit it, and the
 * turn's final text is an edit of the same message, written in the turn's last transaction. Quick
 * answers never get that far: they are simply sent.
 *
 * The draft's delivery number is stored with the turn, so a turn that is run again after a crash
 * goes on in the same message.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

#define TYPING_AFTER_MS 400
#define TYPING_EVERY_MS 4500
#define TYPING_LIFE_MS  5000
#define FIRST_AFTER_MS  800 /* from the first piece to the draft */
#define EDIT_EVERY_MS   1200
#define TEXT_MAX        65536 /* what is longer is not a preview any more */

struct draft {
        struct turn *turn;
        struct buf text;
        struct timer *typing, *show;
        bool changed; /* since it was last shown */
        bool hushed;  /* it may still be silence: nothing is shown before it is not */
};

void draft_free(struct draft *d)
{
        if (!d)
                return;
        timer_free(d->typing);
        timer_free(d->show);
        buf_release(&d->text);
        free(d);
}

/* ---- typing ---- */

static void on_typing_put(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        (void)receipt; /* nobody misses a typing sign that could not be stored */
}

static void on_typing(void *arg)
{
        struct draft *d = arg;
        struct turn *t = d->turn;
        struct outgoing out = {
                .adapter = t->adapter,
                .channel = t->channel,
                .thread = t->thread,
                .kind = DELIVER_TYPE,
                .trace = t->trace,
                .class = PACE_TYPING,
                .expires_ms = clock_wall_ms() + TYPING_LIFE_MS,
        };

        if (t->road->platforms.ready(t->road->platforms.adapters, t->adapter))
                outbox_submit(t->road, &out, on_typing_put, NULL);
        timer_start(d->typing, TYPING_EVERY_MS);
}

/* ---- showing the text ---- */

struct showing {
        struct road *road;
        struct turn *turn;
        bool first;       /* the draft itself, not an edit of it */
        int64_t replaces; /* a waiting edit takes the new text instead, if it still waits */
        bool replaced;    /* it did */
        struct out *out;
        struct bus_batch batch;
};

static int write_showing(struct store_tx *tx, void *arg, struct error *err)
{
        struct showing *w = arg;
        struct store_stmt *s;
        int rc;

        bus_batch_reset(&w->batch);
        rc = w->replaces ? out_replace_payload(tx, w->replaces, w->out->d.payload, err) : 0;
        w->replaced = rc == 1;
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        if (out_store(tx, &w->batch, w->out, false, NULL, err) < 0)
                return -1;
        if (!w->first)
                return 0;
        s = store_prepare(tx, "UPDATE turns SET draft = ?2 WHERE id = ?1");
        store_bind_int(s, 1, w->turn->run.id);
        store_bind_int(s, 2, w->out->d.id);
        return store_run(s, err);
}

static void on_shown(void *arg)
{
        struct showing *w = arg;
        struct turn *t = w->turn;
        struct out *waiting = w->replaced ? outbox_find(w->road, w->replaces) : NULL;

        /* its claim, if there is one, is stored after this write: what is sent is what is stored */
        if (waiting)
                out_set_payload(waiting, w->out->d.payload);
        if (w->replaced)
                out_free(w->out);
        else
                outbox_enqueue(w->road, w->out);
        bus_batch_release(&w->batch);
        free(w);
        t->showing--;
        turn_end_held(t);
}

/*
 * The text so far as the platform would show it; NULL when there is nothing to show. Yours to free.
 */
static char *preview(struct draft *d)
{
        struct road *r = d->turn->road;
        const struct incoming *last = d->turn->inputs[d->turn->input_count - 1];
        struct rendered parts = { 0 };
        struct buf payload;
        struct error err;

        if (r->platforms.render(r->platforms.adapters, d->turn->adapter, d->text.data, &parts,
                                &err) < 0 ||
            parts.count == 0)
                return NULL;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "text", parts.parts[0].text);
        jsonw_opt(&payload, "plain", parts.parts[0].plain);
        jsonw_opt(&payload, "replyTo", last->id);
        jsonw_str(&payload, "turnId", d->turn->key);
        jsonw_bool(&payload, "draft", true);
        jsonw_close(&payload, '}');
        rendered_release(&parts);
        return buf_take(&payload);
}

static void show(struct draft *d, const char *payload)
{
        struct turn *t = d->turn;
        struct road *r = t->road;
        struct showing *w = mem_zalloc(sizeof(*w));
        struct out *waiting = NULL;

        w->road = r;
        w->turn = t;
        w->first = t->draft_delivery == 0;
        if (!w->first)
                waiting = outbox_waiting_edit(r, t->adapter, t->channel, t->thread,
                                              t->draft_delivery, NULL);
        if (waiting)
                w->replaces = waiting->d.id;
        w->out = out_new(r->next_delivery++, t->run.id, t->adapter, t->channel, t->thread,
                         w->first ? DELIVER_SEND : DELIVER_EDIT, PACE_EDIT, payload, t->trace);
        w->out->ref = t->draft_delivery;
        if (w->first)
                t->draft_delivery = w->out->d.id;
        t->showing++;
        road_write(r, "draft", write_showing, on_shown, w);
}

static void on_show(void *arg)
{
        struct draft *d = arg;
        char *payload;

        if (!d->changed)
                return;
        d->changed = false;
        payload = preview(d);
        if (payload)
                show(d, payload);
        free(payload);
        timer_start(d->show, EDIT_EVERY_MS);
}

/* ---- the turn's side ---- */

void draft_begin(struct turn *t)
{
        struct road *r = t->road;
        unsigned can = r->platforms.abilities(r->platforms.adapters, t->adapter);
        bool ambient = t->policy.mode == MODE_AMBIENT;
        struct draft *d;

        if (t->policy.mode != MODE_REPLY)
                /* it is not known yet where the answer will stand, or whether */
                can &= ~(unsigned)ADAPTER_STREAMS;
        if (!(can & (ADAPTER_TYPING | ADAPTER_STREAMS)) || t->policy.mode == MODE_SILENT)
                return;
        d = mem_zalloc(sizeof(*d));
        d->turn = t;
        buf_init(&d->text, TEXT_MAX);
        if (can & ADAPTER_TYPING) {
                d->typing = timer_new(r->loop, on_typing, d);
                d->hushed = ambient;
                if (!ambient)
                        timer_start(d->typing, TYPING_AFTER_MS);
        }
        if (can & ADAPTER_STREAMS)
                d->show = timer_new(r->loop, on_show, d);
        t->draft = d;
}

/* The agent has begun to speak, and it is not one of the phrases that mean silence. */
static void speak_up(struct draft *d, const char *text, size_t n)
{
        if (buf_add(&d->text, text, n) == 0 && silence_may_follow(&d->turn->policy, d->text.data))
                return;
        d->hushed = false;
        timer_start(d->typing, 0);
}

void draft_add(struct turn *t, const char *text, size_t n)
{
        struct draft *d = t->draft;

        if (d && d->hushed) {
                speak_up(d, text, n);
                return;
        }
        if (!d || !d->show || d->text.overflow || buf_add(&d->text, text, n) < 0)
                return; /* too long for a preview: what is shown stays until the end */
        d->changed = true;
        if (!timer_active(d->show))
                timer_start(d->show, t->draft_delivery ? EDIT_EVERY_MS : FIRST_AFTER_MS);
}

void draft_end(struct turn *t)
{
        draft_free(t->draft);
        t->draft = NULL;
}

void draft_supersede(struct turn *t, struct answer *a)
{
        struct road *r = t->road;
        struct out *o;

        if (t->draft_delivery == 0)
                return;
        o = outbox_waiting_edit(r, t->adapter, t->channel, t->thread, t->draft_delivery, NULL);
        if (o)
                answer_supersede(t, a, o);
        o = outbox_find(r, t->draft_delivery);
        if (o && o->state == OUT_QUEUED && !o->unsure && o->d.attempt == 0) {
                answer_supersede(t, a, o);
                t->draft_delivery = 0;
        }
}
