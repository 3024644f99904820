/*
 * draft: typing and the growing answer while a turn runs.
 *
 * Typing is shown from shortly after the start until the answer. Where the platform can edit, the
 * growing answer is one message: later pieces and the final text, stored with the turn's end, edit
 * it. Quick answers get no draft. What the agent does meanwhile ("reading report.csv") is shown
 * below the text, or alone if it takes a while.
 *
 * The turn's row names the draft's delivery, so a turn that runs again after a crash continues the
 * same message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/road_state.h"
#include "road/turn/turn.h"

#define TYPING_AFTER_MS 400
#define TYPING_EVERY_MS 4500
#define TYPING_LIFE_MS  5000
#define FIRST_AFTER_MS  800   /* from the first text to the draft */
#define LABEL_AFTER_MS  2000  /* from the first label to the draft, if there is no text */
#define EDIT_EVERY_MS   1200  /* unless the platform has its own pace */
#define TEXT_MAX        65536 /* longer previews are not updated */
#define LABEL_MAX       120   /* bytes */
#define WORKING         "Working…"

struct draft {
        struct turn *turn;
        struct buf text;
        bool over;                 /* the next text replaces this one */
        char label[LABEL_MAX + 1]; /* what it does now; "": nothing to show */
        struct timer *typing, *show;
        bool changed;     /* since it was last shown */
        bool muted;       /* the agent may choose silence: no typing before its first text */
        bool placeholder; /* the message is needed even if there is nothing to show yet */
};

char *draft_end(struct turn *t)
{
        struct draft *d = t->display.draft;
        char *text;

        if (!d)
                return NULL;
        timer_free(d->typing);
        timer_free(d->show);
        text = d->text.len > 0 ? buf_take(&d->text) : NULL;
        buf_release(&d->text);
        free(d);
        t->display.draft = NULL;
        return text;
}

/* ---- typing ---- */

static void on_typing_submitted(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        (void)receipt; /* losing one is harmless */
}

static void on_typing(void *arg)
{
        struct draft *d = arg;
        struct turn *t = d->turn;
        struct road *r = t->road;
        const struct road_platforms *p = &r->platforms;
        struct outgoing out = {
                .adapter = t->run.adapter,
                .channel = t->run.channel,
                .thread = t->run.thread,
                .kind = DELIVER_TYPE,
                .trace = t->trace,
                .unsampled = turn_is_unsampled(t),
                .class = PACE_TYPING,
                .expires_ms = clock_wall_ms() + TYPING_LIFE_MS,
        };

        if (p->ready(p->adapters, out.adapter) &&
            (!p->shows_typing ||
             p->shows_typing(p->adapters, out.adapter, out.channel, out.thread)))
                outbox_submit(r, &out, on_typing_submitted, NULL);
        timer_start(d->typing, TYPING_EVERY_MS);
}

/* ---- showing text ---- */

struct draft_write {
        struct turn *turn;
        bool first;       /* the draft itself, not an edit of it */
        int64_t replaces; /* an edit to replace if still queued */
        bool replaced;    /* result */
        struct delivery_job *job;
        struct bus_batch batch;
};

static int write_draft(struct store_tx *tx, void *arg, struct error *err)
{
        struct draft_write *w = arg;
        int rc = 0;

        bus_batch_reset(&w->batch);
        if (w->replaces > 0)
                rc = delivery_row_replace_payload(tx, w->replaces, w->job->d.payload, err);
        w->replaced = rc == 1;
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        if (delivery_store(tx, &w->batch, w->job, err) < 0)
                return -1;
        return w->first ? turn_row_set_draft(tx, w->turn->run.id, w->job->d.id, err) : 0;
}

static void write_free(struct draft_write *w)
{
        bus_batch_release(&w->batch);
        free(w);
}

static void on_stored(void *arg, const struct error *err)
{
        struct draft_write *w = arg;
        struct turn *t = w->turn;
        struct delivery_job *edit;

        if (err) { /* an end that waits for it is left to the next run, too */
                delivery_free(w->job);
                write_free(w);
                return;
        }
        edit = w->replaced ? outbox_find(t->road, w->replaces) : NULL;
        /* claims are stored after this write, so the text sent is the text stored */
        if (edit)
                delivery_set_payload(edit, w->job->d.payload);
        if (w->replaced)
                delivery_free(w->job);
        else
                outbox_enqueue(t->road, w->job);
        write_free(w);
        t->display.writes--;
        turn_commit(t);
}

static int64_t edit_every_ms(const struct turn *t)
{
        const struct road_platforms *p = &t->road->platforms;
        int64_t ms = p->draft_ms ? p->draft_ms(p->adapters, t->run.adapter, t->run.channel,
                                               t->run.thread)
                                 : 0;

        return ms > 0 ? ms : EDIT_EVERY_MS;
}

/* The text so far as an unnumbered delivery; NULL: nothing to show. */
static struct delivery_job *make_preview(struct draft *d)
{
        struct turn *t = d->turn;
        struct road *r = t->road;
        bool first = t->display.draft_delivery == 0;
        struct rendered parts = { 0 };
        struct delivery_job *j;
        struct buf text, payload;
        struct error err;
        int rc;

        buf_init(&text, 0);
        buf_add(&text, d->text.data, d->text.len);
        if (d->label[0])
                buf_addf(&text, "%s… %s", text.len ? "\n\n" : "", d->label);
        if (text.len == 0 && d->placeholder)
                buf_addstr(&text, WORKING);
        rc = r->platforms.render(r->platforms.adapters, t->run.adapter, text.data, false, &parts,
                                 &err);
        buf_release(&text);
        if (rc < 0 || parts.count == 0)
                return NULL;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "text", parts.parts[0].text);
        jsonw_opt(&payload, "plain", parts.parts[0].plain);
        jsonw_opt(&payload, "replyTo", turn_last_input(t)->id);
        jsonw_str(&payload, "turnId", t->key);
        jsonw_bool(&payload, "draft", true);
        if (r->platforms.abilities(r->platforms.adapters, t->run.adapter) & ADAPTER_APPENDS) {
                jsonw_opt(&payload, "recipient",
                          incoming_has_no_person(turn_last_input(t))
                                  ? NULL
                                  : turn_last_input(t)->sender_id);
                jsonw_opt(&payload, "label", d->label[0] ? d->label : NULL);
                if (parts.count == 1) /* else the rest becomes messages of its own */
                        jsonw_strn(&payload, "markdown", d->text.data, d->text.len);
        }
        jsonw_close(&payload, '}');
        j = delivery_new(r, &(struct delivery){ .turn = t->run.id,
                                                .conversation = t->run.conversation,
                                                .adapter = t->run.adapter,
                                                .channel = t->run.channel,
                                                .thread = t->run.thread,
                                                .kind = first ? DELIVER_SEND : DELIVER_EDIT,
                                                .class = PACE_EDIT,
                                                .payload = payload.data,
                                                .trace = t->trace,
                                                .unsampled = turn_is_unsampled(t) });
        delivery_expire_at(j, 0);
        j->edits = t->display.draft_delivery;
        buf_release(&payload);
        rendered_release(&parts);
        return j;
}

static void on_show(void *arg)
{
        struct draft *d = arg;
        struct turn *t = d->turn;
        struct road *r = t->road;
        struct delivery_job *j, *edit = NULL;
        struct draft_write *w;

        if (!d->changed)
                return;
        timer_start(d->show, edit_every_ms(t));
        j = make_preview(d);
        if (j && !numbers_take(&r->delivery_numbers, 1, &j->d.id)) {
                delivery_free(j); /* the store refuses writes: retry with the next piece */
                return;
        }
        d->changed = false;
        if (!j)
                return;
        w = mem_zalloc(sizeof(*w));
        w->turn = t;
        w->job = j;
        w->first = t->display.draft_delivery == 0;
        if (w->first)
                t->display.draft_delivery = j->d.id;
        else
                edit = outbox_find_edit(r, t->display.draft_delivery);
        w->replaces = edit ? edit->d.id : 0;
        t->display.writes++;
        road_write(r, "draft", write_draft, on_stored, w);
}

/* ---- called by the turn ---- */

void draft_begin(struct turn *t)
{
        struct road *r = t->road;
        unsigned can = r->platforms.abilities(r->platforms.adapters, t->run.adapter);
        struct draft *d;

        if (t->policy.mode == MODE_SILENT)
                return;
        if (t->policy.mode != MODE_REPLY) /* destination not known yet, or silence possible */
                can &= ~(unsigned)ADAPTER_STREAMS;
        if (!(can & (ADAPTER_TYPING | ADAPTER_STREAMS)))
                return;
        d = mem_zalloc(sizeof(*d));
        d->turn = t;
        buf_init(&d->text, TEXT_MAX);
        if (can & ADAPTER_TYPING) {
                d->typing = timer_new(r->loop, on_typing, d);
                d->muted = t->policy.mode == MODE_AMBIENT;
                if (!d->muted)
                        timer_start(d->typing, TYPING_AFTER_MS);
        }
        if (can & ADAPTER_STREAMS)
                d->show = timer_new(r->loop, on_show, d);
        t->display.draft = d;
}

/* Shows the draft soon. first_ms: if there is none yet. */
static void show_soon(struct draft *d, int64_t first_ms)
{
        d->changed = true;
        if (!timer_active(d->show))
                timer_start(d->show,
                            d->turn->display.draft_delivery ? edit_every_ms(d->turn) : first_ms);
}

void draft_add(struct turn *t, const char *text, size_t n)
{
        struct draft *d = t->display.draft;

        if (!d)
                return;
        if (d->muted) {
                d->muted = false;
                timer_start(d->typing, 0);
        }
        if (d->over)
                buf_clear(&d->text);
        d->over = false;
        if (!d->show || d->text.overflow || buf_add(&d->text, text, n) < 0)
                return; /* too long to preview: keep the last one */
        if (d->label[0] && !t->display.draft_delivery)
                timer_stop(d->show); /* text is shown sooner */
        d->label[0] = '\0';
        show_soon(d, FIRST_AFTER_MS);
}

void draft_turn_over(struct turn *t)
{
        if (t->display.draft)
                t->display.draft->over = true;
}

void draft_progress(struct turn *t, const char *label)
{
        struct draft *d = t->display.draft;

        if (!d || !d->show)
                return;
        snprintf(d->label, sizeof(d->label), "%.*s",
                 (int)utf8_prefix(label, strcspn(label, "\r\n"), UTF8_BYTES, LABEL_MAX), label);
        show_soon(d, LABEL_AFTER_MS);
}

void draft_message_sent(struct road *r, const struct delivery_job *j, const char *platform_id)
{
        struct turn *t = turn_find(r, j->d.turn);

        if (t && platform_id && t->display.draft_delivery == j->d.id) {
                free(t->display.message);
                t->display.message = mem_strdup(platform_id);
        }
}

bool draft_show_now(struct turn *t)
{
        struct draft *d = t->display.draft;

        if (t->display.draft_delivery == 0 && d && d->show) {
                d->placeholder = d->changed = true;
                on_show(d);
        }
        return t->display.draft_delivery != 0;
}

/* Drops queued pieces of the draft, which the end replaces. */
void draft_supersede(struct turn *t, struct answer *a)
{
        struct road *r = t->road;
        struct delivery_job *j;

        if (t->display.draft_delivery == 0)
                return;
        j = outbox_find_edit(r, t->display.draft_delivery);
        if (j)
                turn_deliveries_supersede(t, a, j);
        j = outbox_find(r, t->display.draft_delivery);
        if (j && delivery_is_unseen(j) && !outbox_has_details(j)) {
                turn_deliveries_supersede(t, a, j);
                t->display.draft_delivery = 0;
        }
}
