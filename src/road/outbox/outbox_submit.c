/*
 * outbox_submit: deliveries outside a turn's end: API, tools, typing, retries.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/outbox/delivery_job.h"
#include "road/road_state.h"
#include "rows/conversation_row.h"

/* a human's words go to this many conversations of the chat, most recent first */
#define CHAT_CONVERSATIONS 64

struct submission {
        struct road *road;
        struct delivery_job **jobs;
        size_t count;
        char *author, *text;         /* of a human speaking as the bot; NULL: none */
        int64_t reply_of;            /* late reply to this turn; 0: none */
        int64_t replaces;            /* an edit to replace if still queued */
        int64_t edits, in_thread_of; /* as in struct outgoing */
        int (*write)(struct store_tx *tx, void *arg, int64_t delivery, struct error *err);
        void *write_arg;
        outbox_ack_fn *ack;
        void *arg;
        struct outbox_receipt receipt;
        /* results */
        bool replaced;
        struct delivery_row *found; /* the delivery with the same request key */
        struct bus_batch batch;
        STAILQ_ENTRY(submission) next; /* while it waits for numbers */
};

static void submission_free(struct submission *s)
{
        free(s->jobs);
        free(s->author);
        free(s->text);
        free(s->found);
        bus_batch_release(&s->batch);
        free(s);
}

/* The job's target, as the row of another delivery says. */
static int check_target(const struct delivery_job *j, int64_t id, const struct delivery_row *row,
                        struct error *err)
{
        if (!row)
                return error_set(err, ERR_MISSING, "there is no delivery 'dlv-%lld'",
                                 (long long)id);
        if (strcmp(row->adapter, j->d.adapter) != 0 || strcmp(row->channel, j->d.channel) != 0)
                return error_set(err, ERR_INVALID, "delivery 'dlv-%lld' is of another chat",
                                 (long long)id);
        return 0;
}

static bool is_in_thread_of(const struct delivery_row *row)
{
        return row->edits > 0 && delivery_has_place(row->kind);
}

/* Follows an edit to the message that it changes. */
static int get_target(struct store_tx *tx, const struct delivery_job *j, int64_t id,
                      struct delivery_row **row, struct error *err)
{
        int64_t edited;

        if (delivery_row_get(tx, id, row, err) < 0 || check_target(j, id, *row, err) < 0)
                return -1;
        edited = (*row)->kind == DELIVER_EDIT ? (*row)->edits : 0;
        if (edited == 0)
                return 0;
        free(*row);
        if (delivery_row_get(tx, edited, row, err) < 0)
                return -1;
        return check_target(j, edited, *row, err);
}

/*
 * What names another delivery goes into the queue of that one, and so behind it: they have the same
 * thread, known or not.
 */
static int write_targets(struct store_tx *tx, struct submission *s, struct error *err)
{
        struct delivery_job *first = s->jobs[0];
        struct delivery_row *row = NULL;
        int64_t thread = s->in_thread_of;
        int rc = 0;

        if (s->edits > 0) {
                rc = get_target(tx, first, s->edits, &row, err);
                if (rc == 0) {
                        first->edits = row->id;
                        delivery_set_thread(first, row->thread);
                        thread = is_in_thread_of(row) ? row->edits : 0;
                }
        } else if (thread > 0) {
                rc = get_target(tx, first, thread, &row, err);
                if (rc == 0) {
                        first->edits = is_in_thread_of(row) ? row->edits : row->id;
                        delivery_set_thread(first, row->thread);
                        thread = first->edits;
                }
        }
        for (size_t i = 1; rc == 0 && row && i < s->count; i++) {
                s->jobs[i]->edits = thread; /* further parts are messages of their own */
                delivery_set_thread(s->jobs[i], row->thread);
        }
        free(row);
        return rc;
}

static int write_extra(struct store_tx *tx, const struct submission *s, int64_t delivery,
                       struct error *err)
{
        return s->write ? s->write(tx, s->write_arg, delivery, err) : 0;
}

static int write_submission(struct store_tx *tx, void *arg, struct error *err)
{
        struct submission *s = arg;
        const struct delivery_job *first = s->jobs[0];
        int rc;

        bus_batch_reset(&s->batch);
        free(s->found);
        s->found = NULL;
        s->replaced = false;
        if (first->request_key) {
                rc = delivery_row_get_request(tx, first->request_key, &s->found, err);
                if (rc != 0)
                        return rc < 0 ? -1 : 0;
        }
        if (s->replaces > 0) {
                rc = delivery_row_replace_payload(tx, s->replaces, first->d.payload, err);
                s->replaced = rc == 1;
                if (rc != 0)
                        return rc < 0 ? -1 : write_extra(tx, s, s->replaces, err);
        }
        if (write_targets(tx, s, err) < 0)
                return -1;
        for (size_t i = 0; i < s->count; i++) {
                if (delivery_store(tx, &s->batch, s->jobs[i], err) < 0 ||
                    (s->reply_of &&
                     delivery_row_set_reply_of(tx, s->jobs[i]->d.id, s->reply_of, err) < 0))
                        return -1;
        }
        if (write_extra(tx, s, first->d.id, err) < 0)
                return -1;
        if (!s->author)
                return 0;
        return transcript_row_insert_in_chat(
                tx, &(struct chat_key){ first->d.adapter, first->d.channel, first->d.thread },
                &(struct transcript_row){ .role = "assistant",
                                          .name = s->author,
                                          .text = s->text,
                                          .time_ms = first->d.created_ms },
                CHAT_CONVERSATIONS, err);
}

static void on_written(void *arg, const struct error *err)
{
        struct submission *s = arg;
        struct road *r = s->road;
        struct delivery_job *first = s->jobs[0];
        struct delivery_job *edit = !err && s->replaced ? outbox_find(r, s->replaces) : NULL;
        struct outbox_receipt *receipt = &s->receipt;
        bool stored = !err && !s->found && !s->replaced, journaled = first->journaled;

        r->writes--;
        bus_publish(r->bus, &s->batch);
        /* claims are stored after this write, so the text sent is the text stored */
        if (edit)
                delivery_set_payload(edit, first->d.payload);
        if (stored && journaled)
                outbox_count_journaled(r, first->d.adapter, s->count, first->d.created_ms);
        if (err) {
                receipt->error = *err;
        } else if (s->found && s->found->request_hash && first->request_hash &&
                   strcmp(s->found->request_hash, first->request_hash) != 0) {
                error_set(&receipt->error, ERR_CONFLICT,
                          "this idempotency key was used for another request");
        } else if (s->found) {
                receipt->duplicate = true;
                receipt->delivery = s->found->id;
                snprintf(receipt->trace, sizeof(receipt->trace), "%s", s->found->trace);
        } else if (s->replaced) {
                receipt->delivery = s->replaces;
        }
        s->ack(s->arg, receipt);
        for (size_t i = 0; i < s->count; i++) {
                if (stored && !journaled)
                        outbox_enqueue(r, s->jobs[i]);
                else
                        delivery_free(s->jobs[i]);
        }
        submission_free(s);
}

/* ---- preparing ---- */

/* The first part is the reply and carries the file, the last carries the buttons. */
static struct delivery_job *make_job(struct submission *s, const struct outgoing *out,
                                     const struct rendered_part *part, const char *card, size_t at)
{
        bool first = at == 0, last = at + 1 == s->count;
        struct delivery_job *j;
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        if (part && part->text[0]) {
                jsonw_str(&payload, "text", part->text);
                jsonw_opt(&payload, "plain", part->plain);
        }
        jsonw_opt(&payload, "replyTo", first ? out->reply_to : NULL);
        jsonw_opt(&payload, "messageId", first ? out->message_id : NULL);
        jsonw_opt(&payload, "emoji", out->emoji);
        if (first && out->broadcast)
                jsonw_bool(&payload, "broadcast", true);
        if (out->silent)
                jsonw_bool(&payload, "silent", true);
        if (last && card)
                jsonw_raw(&payload, "card", card);
        if (last && out->buttons)
                jsonw_raw(&payload, "buttons", out->buttons);
        if (last && out->had_buttons)
                jsonw_bool(&payload, "hadButtons", true);
        if (first && out->calendar)
                jsonw_raw(&payload, "calendar", out->calendar);
        if (first) {
                jsonw_opt(&payload, "path", out->file.path);
                jsonw_opt(&payload, "name", out->thread_name ? out->thread_name : out->file.name);
                jsonw_opt(&payload, "mime", out->file.mime);
                jsonw_opt(&payload, "as", out->file.as);
        }
        if (out->kind == DELIVER_CHANGE_THREAD && out->thread_state != THREAD_AS_IT_IS)
                jsonw_bool(&payload, "closed", out->thread_state == THREAD_CLOSED);
        jsonw_close(&payload, '}');
        j = delivery_new(s->road, &(struct delivery){ .id = s->receipt.delivery + (int64_t)at,
                                                      .adapter = out->adapter,
                                                      .channel = out->channel,
                                                      .thread = out->thread,
                                                      /* the remaining parts are new messages */
                                                      .kind = first ? out->kind : DELIVER_SEND,
                                                      .class = out->class,
                                                      .payload = payload.data,
                                                      .trace = s->receipt.trace,
                                                      .unsampled = out->unsampled });
        buf_release(&payload);
        if (out->expires_ms > 0)
                delivery_expire_at(j, out->expires_ms);
        return j;
}

/* *card: as it is stored, yours; NULL: none. */
static int render(struct road *r, const struct outgoing *out, struct rendered *parts, char **card,
                  struct error *err)
{
        const struct road_platforms *p = &r->platforms;
        bool native = p->abilities(p->adapters, out->adapter) & ADAPTER_CARDS;
        json_t *json = NULL;
        struct card shown;
        int rc = 0;

        if (out->card) {
                if (out->kind != DELIVER_SEND && out->kind != DELIVER_EDIT)
                        return error_set(err, ERR_INVALID, "only messages and edits have cards");
                if (card_parse(out->card, &json, &shown, err) < 0)
                        return -1;
                *card = card_json(&shown);
        }
        if (json && !native)
                rc = p->render_card(p->adapters, out->adapter, out->text, &shown, parts, err);
        else if (out->text)
                rc = p->render(p->adapters, out->adapter, out->text, out->file.path != NULL, parts,
                               err);
        json_decref(json);
        if (rc == 0 && out->text && !out->card && parts->count == 0)
                return error_set(err, ERR_INVALID, "the text is blank");
        return rc;
}

/* A queued edit of the same message, whose place this one takes; NULL: none. */
static struct delivery_job *find_older_edit(struct road *r, const struct outgoing *out,
                                            const struct delivery *d)
{
        struct delivery_job *edit;

        if (out->kind != DELIVER_EDIT)
                return NULL;
        if (out->edits > 0)
                edit = outbox_find_edit(r, out->edits);
        else
                edit = out->message_id ? outbox_find_edit_of(r, d, out->message_id) : NULL;
        return edit && edit->d.turn == 0 && strcmp(edit->d.adapter, d->adapter) == 0 &&
                               strcmp(edit->d.channel, d->channel) == 0
                       ? edit
                       : NULL;
}

static int prepare(struct submission *s, const struct outgoing *out, struct error *err)
{
        struct road *r = s->road;
        struct rendered parts = { 0 };
        struct delivery_job *edit;
        char *card = NULL;

        if (!outbox_has_room(r, out->adapter))
                return error_set(err, ERR_LIMIT, "%zu deliveries are open (limits.openDeliveries)",
                                 outbox_adapter(r, out->adapter)->stats.open);
        if (out->kind == DELIVER_CALENDAR &&
            !(r->platforms.abilities(r->platforms.adapters, out->adapter) & ADAPTER_CALENDAR))
                return error_set(err, ERR_INVALID, "adapter '%s' has no calendar", out->adapter);
        if (render(r, out, &parts, &card, err) < 0) {
                rendered_release(&parts);
                free(card);
                return -1;
        }
        s->count = parts.count > 0 ? parts.count : 1;
        s->jobs = mem_array(s->count, sizeof(*s->jobs));
        for (size_t i = 0; i < s->count; i++)
                s->jobs[i] = make_job(s, out, parts.count ? &parts.parts[i] : NULL, card, i);
        rendered_release(&parts);
        free(card);
        s->jobs[0]->request_key = mem_strdup(out->request_key);
        s->jobs[0]->request_hash = out->request_key ? mem_strdup(out->request_hash) : NULL;
        edit = s->count == 1 ? find_older_edit(r, out, &s->jobs[0]->d) : NULL;
        s->replaces = edit ? edit->d.id : 0;
        s->receipt.count = (unsigned)s->count;
        return 0;
}

static void on_refused(void *arg)
{
        struct submission *s = arg;

        s->ack(s->arg, &s->receipt);
        for (size_t i = 0; s->jobs && i < s->count; i++)
                delivery_free(s->jobs[i]);
        submission_free(s);
}

/* Needs enough delivery numbers. */
static void store(struct submission *s)
{
        struct road *r = s->road;

        numbers_take(&r->delivery_numbers, s->count, &s->receipt.delivery);
        for (size_t i = 0; i < s->count; i++)
                s->jobs[i]->d.id = s->receipt.delivery + (int64_t)i;
        r->writes++;
        store_write(r->store, write_submission, on_written, s);
}

void outbox_submit(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg)
{
        struct submission *s = mem_zalloc(sizeof(*s));

        s->road = r;
        s->ack = ack;
        s->arg = arg;
        s->reply_of = out->reply_of;
        s->edits = out->edits;
        s->in_thread_of = out->in_thread_of;
        s->write = out->write;
        s->write_arg = out->write_arg;
        s->author = out->text ? mem_strdup(out->author) : NULL;
        s->text = s->author ? mem_strdup(out->text) : NULL;
        if (id_is_trace(out->trace))
                memcpy(s->receipt.trace, out->trace, ID_TRACE_SIZE);
        else
                id_trace(s->receipt.trace);
        if (prepare(s, out, &s->receipt.error) < 0) {
                loop_defer(r->loop, on_refused, s);
        } else if (r->outbox.submission_count == 0 &&
                   numbers_request(&r->delivery_numbers, s->count)) {
                store(s);
        } else if (r->delivery_numbers.failing ||
                   (int64_t)r->outbox.submission_count >= r->limits.open_deliveries) {
                error_set(&s->receipt.error, ERR_BUSY, "the store accepts no writes right now");
                loop_defer(r->loop, on_refused, s);
        } else {
                STAILQ_INSERT_TAIL(&r->outbox.submissions, s, next);
                r->outbox.submission_count++;
        }
}

static struct submission *take_waiting(struct outbox *o)
{
        struct submission *s = STAILQ_FIRST(&o->submissions);

        STAILQ_REMOVE_HEAD(&o->submissions, next);
        o->submission_count--;
        return s;
}

void outbox_submit_resume(struct road *r)
{
        const struct submission *s;

        while ((s = STAILQ_FIRST(&r->outbox.submissions)) &&
               numbers_request(&r->delivery_numbers, s->count))
                store(take_waiting(&r->outbox));
}

void outbox_submit_refuse(struct road *r, const struct error *err)
{
        for (size_t n = r->outbox.submission_count; n > 0; n--) {
                struct submission *s = take_waiting(&r->outbox);

                s->receipt.error = *err;
                on_refused(s);
        }
}

/* ---- retrying a dead delivery ---- */

struct delivery_retry {
        struct road *road;
        int64_t id;
        bool force;
        struct delivery_row *row; /* result */
        store_done_fn *done;
        void *arg;
};

static int write_retry(struct store_tx *tx, void *arg, struct error *err)
{
        struct delivery_retry *v = arg;
        int rc;

        free(v->row);
        rc = delivery_row_revive(tx, v->id, v->force, clock_wall_ms(), &v->row, err);
        if (rc == 0)
                return error_set(err, ERR_CONFLICT,
                                 "delivery 'dlv-%lld' is not dead (an unknown one may have "
                                 "arrived: it needs force)",
                                 (long long)v->id);
        return rc < 0 ? -1 : 0;
}

static void on_retried(void *arg, const struct error *err)
{
        struct delivery_retry *v = arg;

        v->road->writes--;
        if (!err)
                outbox_enqueue(v->road, delivery_load(v->row));
        v->done(v->arg, err);
        free(v->row);
        free(v);
}

void outbox_retry(struct road *r, int64_t delivery, bool force, store_done_fn *done, void *arg)
{
        struct delivery_retry *v = mem_zalloc(sizeof(*v));

        v->road = r;
        v->id = delivery;
        v->force = force;
        v->done = done;
        v->arg = arg;
        r->writes++;
        store_write(r->store, write_retry, on_retried, v);
}
