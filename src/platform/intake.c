#include "platform/intake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"

#define RETRY_MS     500
#define RETRY_MAX_MS 10000

/* Collects the inbox's answers. Outlives its update if the intake closes first. */
struct intake_receipt {
        struct intake_update *update; /* NULL: closed */
        unsigned pending;             /* outstanding answers */
        bool refused;
        char why[200];
};

void intake_content_init(struct intake_content *c)
{
        *c = (struct intake_content){ .metadata = json_object() };
        arena_init(&c->arena);
}

void intake_content_release(struct intake_content *c)
{
        json_decref(c->metadata);
        arena_release(&c->arena);
        *c = (struct intake_content){ 0 };
}

/* ---- leaving the window ---- */

static void update_free(struct intake_update *u)
{
        struct intake *in = u->intake;

        TAILQ_REMOVE(&in->window, u, next);
        in->count--;
        timer_free(u->wait);
        if (u->receipt)
                u->receipt->update = NULL;
        intake_content_release(&u->content);
        in->handlers->free(u);
}

/*
 * The only way to INTAKE_DONE: reports the parts and then the update, and frees them; with
 * leaves_in_order, the finished ones at the front.
 */
static void finish(struct intake_update *u, bool stored)
{
        struct intake *in = u->intake;
        struct intake_update *part = TAILQ_FIRST(&u->parts), *one;

        do {
                one = part ? part : u;
                part = part ? TAILQ_NEXT(part, next_part) : NULL;
                if (one->state == INTAKE_PREPARING && !one->lead)
                        in->preparing--;
                else if (one->state == INTAKE_READY)
                        in->ready--;
                if (one->order == INTAKE_BACKFILL)
                        in->backfilling--;
                one->state = INTAKE_DONE;
                in->handlers->done(one, stored);
                one->lead = NULL; /* it may leave the window first */
        } while (one != u);

        if (in->leaves_in_order) {
                while ((u = TAILQ_FIRST(&in->window)) && u->state == INTAKE_DONE)
                        update_free(u);
                return;
        }
        while ((part = TAILQ_FIRST(&u->parts))) {
                TAILQ_REMOVE(&u->parts, part, next_part);
                update_free(part);
        }
        update_free(u);
}

/* ---- storing ---- */

static void flush(void *arg);
static void store(struct intake_update *u);

/* Offering events again is safe: the inbox recognises those it has stored. */
static void refused(struct intake_update *u, const char *why)
{
        struct intake *in = u->intake;
        unsigned before = in->refusals++;

        if (before == 0)
                log_warn("inbox refused events; retrying", LOG_S("adapter", in->adapter->name),
                         LOG_S("why", why));
        if (u->sender_retries) {
                finish(u, false);
                return;
        }
        u->state = INTAKE_READY;
        in->ready++;
        if (!in->retry)
                in->retry = timer_new(in->adapter->loop, flush, in);
        if (!timer_active(in->retry))
                timer_start(in->retry, backoff_ms(before, RETRY_MS, RETRY_MAX_MS));
}

/* The last answer settles the update. */
static void on_receipt(void *arg, const struct inbox_receipt *receipt)
{
        struct intake_receipt *r = arg;
        struct intake_update *u = r->update;
        struct intake *in = u ? u->intake : NULL;

        if (receipt->outcome == INBOX_FAILED && receipt->error.kind != ERR_INVALID) {
                r->refused = true;
                snprintf(r->why, sizeof(r->why), "%.199s", receipt->error.text);
        } else if (receipt->outcome == INBOX_FAILED) {
                log_warn("event dropped: the inbox can never accept it",
                         LOG_S("adapter", in ? in->adapter->name : NULL),
                         LOG_S("why", receipt->error.text));
        } else if (u && receipt->outcome == INBOX_DUPLICATE && in->handlers->duplicate &&
                   in->handlers->duplicate(u)) {
                store(u);
        }
        if (--r->pending > 0)
                return;
        if (u) {
                u->receipt = NULL;
                if (r->refused) {
                        refused(u, r->why);
                } else {
                        in->refusals = 0;
                        finish(u, true);
                }
                if (in->handlers->advanced)
                        in->handlers->advanced(in);
        }
        free(r);
}

/* Hands the events over to the inbox, which copies them. */
static void store(struct intake_update *u)
{
        struct intake_content composed, *c = &u->content;
        struct intake_receipt *r = u->receipt;
        char *metadata;

        if (!r) { /* else a duplicate makes way for other events */
                r = u->receipt = mem_zalloc(sizeof(*r));
                r->update = u;
                u->intake->ready--;
                u->state = INTAKE_STORING;
        }
        if (u->compose) {
                c = &composed;
                intake_content_init(c);
                u->compose(u, c);
        }
        assert(c->event_count > 0);
        metadata = json_text(c->metadata);
        r->pending += (unsigned)c->event_count;
        for (size_t i = 0; i < c->event_count; i++) {
                struct incoming event = c->events[i];

                if (!event.metadata)
                        event.metadata = metadata;
                if (i == 0 && c->attachment_count > 0) {
                        event.attachments = c->attachments;
                        event.attachment_count = c->attachment_count;
                }
                adapter_received(u->intake->adapter, &event, on_receipt, r);
        }
        free(metadata);
        if (c == &composed)
                intake_content_release(c);
}

/* Is an earlier update of the same chat still waiting? */
static bool must_wait(const struct intake_update *u)
{
        const struct intake_update *p;

        if (u->order == INTAKE_URGENT || !u->chat)
                return false;
        for (p = TAILQ_FIRST(&u->intake->window); p != u; p = TAILQ_NEXT(p, next))
                if (!p->lead && (p->state == INTAKE_PREPARING || p->state == INTAKE_READY) &&
                    p->chat && strcmp(p->chat, u->chat) == 0)
                        return true;
        return false;
}

/* Hands over every ready update that need not wait. */
static void flush(void *arg)
{
        struct intake *in = arg;
        size_t unseen = in->ready;
        struct intake_update *u;

        if (in->retry && timer_active(in->retry))
                return;
        for (u = TAILQ_FIRST(&in->window); u && unseen > 0; u = TAILQ_NEXT(u, next)) {
                if (u->state != INTAKE_READY)
                        continue;
                unseen--;
                if (in->preparing == 0 || !must_wait(u))
                        store(u);
        }
}

/* ---- preparing ---- */

/* Makes an update and its parts ready once nothing is missing. */
static void check_ready(struct intake_update *any)
{
        struct intake_update *u = any->lead ? any->lead : any;
        const struct map *held = &u->intake->held;
        const struct intake_update *part;

        if (u->state != INTAKE_PREPARING || !u->prepared || (u->wait && timer_active(u->wait)))
                return;
        if (u->order == INTAKE_IN_ORDER &&
            ((u->chat && map_get(held, u->chat)) || map_get(held, INTAKE_EVERYWHERE)))
                return;
        TAILQ_FOREACH(part, &u->parts, next_part)
                if (!part->prepared)
                        return;
        u->state = INTAKE_READY;
        u->intake->preparing--;
        u->intake->ready++;
}

static void on_wait_over(void *arg)
{
        struct intake_update *u = arg;

        check_ready(u);
        flush(u->intake);
}

void intake_wait(struct intake_update *lead, int64_t ms)
{
        if (!lead->wait)
                lead->wait = timer_new(lead->intake->adapter->loop, on_wait_over, lead);
        timer_start(lead->wait, ms);
}

void intake_join(struct intake_update *lead, struct intake_update *part)
{
        part->lead = lead;
        part->intake->preparing--;
        TAILQ_INSERT_TAIL(&lead->parts, part, next_part);
}

void intake_prepared(struct intake_update *u)
{
        struct intake *in = u->intake;

        u->prepared = true;
        check_ready(u);
        /* common case: nothing else waits, so the window need not be searched */
        if (u->state == INTAKE_READY && in->ready == 1 && in->preparing == 0 &&
            !(in->retry && timer_active(in->retry)))
                store(u);
        else
                flush(in);
}

void intake_skip(struct intake_update *u)
{
        struct intake *in = u->intake;

        finish(u, true);
        flush(in);
}

void intake_add(struct intake *in, struct intake_update *u)
{
        struct intake_update *before = NULL;

        u->intake = in;
        TAILQ_INIT(&u->parts);
        if (u->order == INTAKE_BACKFILL) {
                in->backfilling++;
                TAILQ_FOREACH(before, &in->window, next)
                        if (before->order != INTAKE_BACKFILL && before->state == INTAKE_PREPARING &&
                            before->chat && u->chat && strcmp(before->chat, u->chat) == 0)
                                break;
        }
        if (before)
                TAILQ_INSERT_BEFORE(before, u, next);
        else
                TAILQ_INSERT_TAIL(&in->window, u, next);
        in->count++;
        in->preparing++;
}

/* ---- holding ---- */

void intake_hold(struct intake *in, const char *chat)
{
        uintptr_t n = (uintptr_t)map_get(&in->held, chat);

        map_put(&in->held, chat, (void *)(n + 1));
}

void intake_release(struct intake *in, const char *chat)
{
        uintptr_t n = (uintptr_t)map_get(&in->held, chat);
        struct intake_update *u;

        if (n > 1) {
                map_put(&in->held, chat, (void *)(n - 1));
                return;
        }
        if (n == 0)
                return;
        map_remove(&in->held, chat);
        TAILQ_FOREACH(u, &in->window, next)
                check_ready(u);
        flush(in);
}

/* ---- opening and closing ---- */

void intake_open(struct intake *in, struct adapter *a, const struct intake_handlers *handlers)
{
        *in = (struct intake){ .adapter = a, .handlers = handlers };
        TAILQ_INIT(&in->window);
        map_init(&in->held);
}

void intake_close(struct intake *in)
{
        struct intake_update *u;

        /* the first is never a part, nor finished */
        while ((u = TAILQ_FIRST(&in->window)))
                finish(u, false);
        map_release(&in->held);
        timer_free(in->retry);
}
