#include "sim/telegram/tg_updates.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_spec.h"
#include "sim/telegram/tg_webhook.h"
#include "sim/telegram/tg_world.h"

#define MAX_TIMEOUT_S 50
#define MAX_LIMIT     100

struct updates {
        struct bot *bot;
        struct update_list queue;
        size_t pending;
        int64_t next_id;
        uint64_t allowed; /* one bit for each kind */
        bool is_default;
        struct call *poll; /* waiting getUpdates */
        struct timer *timer;
};

static void on_timer(void *arg);

/* All kinds but those that must be requested by name. */
static uint64_t default_kinds(void)
{
        static const char *const left_out[] = { "chat_member", "message_reaction",
                                                "message_reaction_count" };
        uint64_t all = (UINT64_C(1) << tg_spec_update_kind_count()) - 1;

        for (size_t i = 0; i < COUNT(left_out); i++)
                all &= ~(UINT64_C(1) << tg_spec_update_kind_number(left_out[i]));
        return all;
}

struct updates *tg_updates_new(struct bot *b)
{
        struct updates *u = mem_zalloc(sizeof(*u));

        u->bot = b;
        TAILQ_INIT(&u->queue);
        u->next_id = 100000000 + (int64_t)id_random_below(800000000);
        u->allowed = default_kinds();
        u->is_default = true;
        u->timer = timer_new(b->world->base.loop, on_timer, u);
        return u;
}

void tg_updates_remove(struct updates *u, struct update *one)
{
        tg_webhook_withdraw(u->bot->webhook, one);
        TAILQ_REMOVE(&u->queue, one, next);
        u->pending--;
        free(one->text);
        free(one);
}

static void keep_last(struct updates *u, int64_t n)
{
        for (struct update *one = TAILQ_FIRST(&u->queue), *next; one && (int64_t)u->pending > n;
             one = next) {
                next = TAILQ_NEXT(one, next);
                tg_updates_remove(u, one);
        }
}

void tg_updates_forget_all(struct updates *u)
{
        keep_last(u, 0);
}

void tg_updates_free(struct updates *u)
{
        tg_updates_forget_all(u);
        timer_free(u->timer);
        free(u);
}

size_t tg_updates_pending(const struct updates *u)
{
        return u->pending;
}

struct update *tg_updates_first(const struct updates *u)
{
        return TAILQ_FIRST(&u->queue);
}

void tg_updates_allow(struct updates *u, const json_t *kinds)
{
        const json_t *kind;
        size_t i;

        if (!json_is_array(kinds))
                return;
        u->is_default = json_array_size(kinds) == 0;
        u->allowed = u->is_default ? default_kinds() : 0;
        json_array_foreach(kinds, i, kind) {
                int n = tg_spec_update_kind_number(json_string_value(kind) ? json_string_value(kind)
                                                                           : "");

                if (n >= 0) /* like the real server, ignore unknown names */
                        u->allowed |= UINT64_C(1) << n;
        }
}

void tg_updates_write_allowed(const struct updates *u, struct buf *b)
{
        if (u->is_default)
                return;
        jsonw_open_member(b, "allowed_updates", '[');
        for (size_t i = 0; i < tg_spec_update_kind_count(); i++) {
                if (u->allowed & UINT64_C(1) << i)
                        jsonw_str(b, NULL, tg_spec_update_kind(i));
        }
        jsonw_close(b, ']');
}

/* ---- adding ---- */

static struct update *update_new(struct updates *u, const char *kind, int64_t chat,
                                 const char *member)
{
        struct update *one = mem_zalloc(sizeof(*one));
        struct buf b;

        one->id = u->next_id++;
        one->chat = chat;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_int(&b, "update_id", one->id);
        jsonw_raw(&b, kind, member);
        jsonw_close(&b, '}');
        one->n = b.len;
        one->text = buf_take(&b);
        return one;
}

bool tg_updates_push(struct bot *b, const char *kind, int64_t chat, const char *member)
{
        struct updates *u = b->updates;
        struct faults *faults = &b->world->base.faults;
        int number = tg_spec_update_kind_number(kind);
        struct update *one;

        if (number < 0 || !(u->allowed & UINT64_C(1) << number))
                return false;
        b->world->update_count++;
        one = update_new(u, kind, chat, member);
        if (faults_fire(faults, FAULT_DROP, kind)) {
                free(one->text);
                free(one);
                return true;
        }
        one->again = faults_fire(faults, FAULT_DUPLICATE, kind) != NULL;
        TAILQ_INSERT_TAIL(&u->queue, one, next);
        u->pending++;
        if (tg_webhook_is_set(b->webhook))
                tg_webhook_offer(b->webhook, one);
        else if (u->poll)
                timer_start(u->timer, 0); /* answer in the next loop iteration, with all of this */
        return true;
}

/* ---- getUpdates ---- */

/* Removes updates below the offset. */
static void confirm(struct updates *u, int64_t offset)
{
        struct update *one, *next;

        for (one = TAILQ_FIRST(&u->queue); one; one = next) {
                next = TAILQ_NEXT(one, next);
                if (one->ghost)
                        continue;
                if (one->id >= offset)
                        break;
                if (one->again) {
                        one->again = false;
                        one->ghost = true;
                } else {
                        tg_updates_remove(u, one);
                }
        }
}

/* Restores the order within each chat. */
static void order_within_chats(struct update **batch, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                for (size_t j = i + 1; j < n; j++) {
                        struct update *swap = batch[i];

                        if (swap->chat != batch[j]->chat || swap->id <= batch[j]->id)
                                continue;
                        batch[i] = batch[j];
                        batch[j] = swap;
                }
        }
}

static void reorder(struct faults *f, struct update **batch, size_t n)
{
        const struct fault *fault = n > 1 ? faults_fire(f, FAULT_REORDER, "getUpdates") : NULL;

        if (!fault)
                return;
        for (size_t i = n; i > 1; i--) {
                size_t j = faults_random(f, i);
                struct update *swap = batch[i - 1];

                batch[i - 1] = batch[j];
                batch[j] = swap;
        }
        if (!fault->within_chat)
                order_within_chats(batch, n);
}

static void answer(struct updates *u, struct call *c)
{
        struct update *batch[MAX_LIMIT], *one;
        int64_t limit = json_int(c->args, "limit", MAX_LIMIT);
        size_t n = 0, most = limit < 1 || limit > MAX_LIMIT ? MAX_LIMIT : (size_t)limit;

        for (one = TAILQ_FIRST(&u->queue); one && n < most; one = TAILQ_NEXT(one, next))
                batch[n++] = one;
        reorder(&u->bot->world->base.faults, batch, n);
        jsonw_open(&c->out, '[');
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        buf_addch(&c->out, ',');
                buf_add(&c->out, batch[i]->text, batch[i]->n);
                if (batch[i]->ghost)
                        tg_updates_remove(u, batch[i]);
        }
        jsonw_close(&c->out, ']');
        tg_call_finish(c);
}

/* Updates arrived, or the poll timed out. */
static void on_timer(void *arg)
{
        struct updates *u = arg;
        struct call *c = u->poll;

        u->poll = NULL;
        if (c)
                answer(u, c);
}

void tg_updates_interrupt(struct updates *u, const char *why)
{
        struct call *c = u->poll;

        if (!c)
                return;
        u->poll = NULL;
        timer_stop(u->timer);
        tg_call_fail(c, 409, "Conflict: %s", why);
        tg_call_finish(c);
}

int tg_updates_get(struct call *c)
{
        struct updates *u = c->bot->updates;
        int64_t offset = json_int(c->args, "offset", 0), timeout = json_int(c->args, "timeout", 0);

        if (tg_webhook_is_set(c->bot->webhook))
                return tg_call_fail(
                        c, 409,
                        "Conflict: can't use getUpdates method while webhook is active; use "
                        "deleteWebhook to delete the webhook first");
        tg_updates_interrupt(
                u, "terminated by other getUpdates request; make sure that only one bot instance "
                   "is running");
        tg_updates_allow(u, json_object_get(c->args, "allowed_updates"));
        if (offset > 0)
                confirm(u, offset);
        else if (offset < 0)
                keep_last(u, -offset);
        if (timeout <= 0 || !TAILQ_EMPTY(&u->queue)) {
                answer(u, c);
                return TG_CALL_LATER;
        }
        u->poll = c;
        timer_start(u->timer, (timeout < MAX_TIMEOUT_S ? timeout : MAX_TIMEOUT_S) * 1000);
        return TG_CALL_LATER;
}
