/* What a view does next, as deliveries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/log.h"
#include "base/mem.h"
#include "remote/session_card.h"
#include "remote/session_view.h"

#define HASH_CHARS   16
#define REASON_CHARS 300
#define RENAME_MS    600000 /* between two names: Discord permits two in ten minutes */

/* ---- what cards say of the chat ---- */

/* As people write commands there. */
static const char *spell(struct view_round *v, const char *text)
{
        char *spelled = command_spell(v->view->remote->env.road, v->row.adapter, text);
        const char *out = arena_strdup(&v->arena, spelled);

        free(spelled);
        return out;
}

/* Where people write to steer it. */
enum steered {
        STEERED_AT_ROOT,  /* in the thread of the first message */
        STEERED_HERE,     /* where its messages are: nothing else is shown there */
        STEERED_BY_REPLY, /* others are shown there, too */
};

static enum steered steered(const struct view_round *v)
{
        const struct session_view_row *row = &v->row;

        if (row->place > 0)
                return row->root > 0 && row->root < row->place ? STEERED_AT_ROOT : STEERED_HERE;
        if (row->root == 0 && v->threads != CHAT_NO_THREADS)
                return v->threads == CHAT_THREADS_AT_MESSAGE ? STEERED_AT_ROOT : STEERED_HERE;
        return v->session->adapter ? STEERED_HERE : STEERED_BY_REPLY;
}

/* Below the first message, as long as there is something to stop. */
static const char *root_buttons(struct view_round *v)
{
        if (!(v->can & ADAPTER_BUTTONS) || !(v->can & ADAPTER_EDITS))
                return NULL;
        if (v->session->state == SESSION_ENDED)
                return "[]";
        return arena_printf(&v->arena, "[[{\"text\":\"Stop\",\"data\":\"say:/abort ses-%lld\"}]]",
                            (long long)v->row.session);
}

static const char *ways_to_steer(struct view_round *v)
{
        static const char *const places[] = { [STEERED_AT_ROOT] = "Write in its thread",
                                              [STEERED_HERE] = "Write here",
                                              [STEERED_BY_REPLY] = "Reply to its messages" };
        long long id = (long long)v->row.session;
        const char *stop =
                root_buttons(v) ? "" : arena_printf(&v->arena, " `/abort ses-%lld` stops it.", id);

        return spell(v, arena_printf(&v->arena,
                                     "%s to steer it, or `/followup ses-%lld …` for when it is "
                                     "done.%s",
                                     places[steered(v)], id, stop));
}

static const char *ways_to_answer(struct view_round *v, const struct session_approval_row *a)
{
        const char *write = steered(v) == STEERED_BY_REPLY ? "reply" : "write";
        long long id = (long long)a->id;

        if (v->can & ADAPTER_BUTTONS)
                return arena_printf(&v->arena, "Or %s `yes` or `no, because …`.", write);
        return spell(v, arena_printf(&v->arena,
                                     "Answer with `/approve sap-%lld` or `/refuse sap-%lld`, or %s "
                                     "`yes` or `no, because …`.",
                                     id, id, write));
}

static struct session_card_place place_of(struct view_round *v)
{
        return (struct session_card_place){ .ways_to_steer = ways_to_steer(v),
                                            .named = steered(v) == STEERED_BY_REPLY };
}

static char *root_card(struct view_round *v)
{
        struct session_card_place place = place_of(v);

        return session_card_root(v->session, &place);
}

static char *page_card(struct view_round *v, const struct page *p)
{
        struct session_card_place place = place_of(v);

        return session_card_page(v->session, p, &place);
}

static char *approval_card(struct view_round *v, const struct view_step *step)
{
        struct session_card_place place = place_of(v);

        place.ways_to_answer = step->kind == STEP_WITHDRAW
                                       ? "The session has moved, and asks in its new place."
                                       : ways_to_answer(v, step->approval->row);
        return session_card_approval(v->session, step->approval->row, step->approval->decider,
                                     &place);
}

/* ---- planning ---- */

static struct view_step *add(struct view_round *v, enum view_step_kind kind)
{
        struct view_step *step = &v->steps[v->step_count++];

        *step = (struct view_step){ .round = v, .kind = kind };
        return step;
}

/* No message is needed for it any more. */
static void settle(struct view_round *v, struct view_approval *a)
{
        a->settled = v->settles = true;
        v->more_settled = v->more_settled || v->approval_count == VIEW_APPROVALS;
}

static bool can_change(const struct view_round *v, const struct view_approval *a)
{
        return a->adapter &&
               (road_abilities(v->view->remote->env.road, a->adapter) & ADAPTER_EDITS);
}

static void plan_approvals(struct view_round *v)
{
        for (size_t i = 0; i < v->approval_count; i++) {
                struct view_approval *a = &v->approvals[i];
                char *shown = session_card_outcome(a->row);
                struct view_step *edit =
                        can_change(v, a) ? add(v, shown ? STEP_OUTCOME : STEP_WITHDRAW) : NULL;

                if (edit) {
                        edit->approval = a;
                        edit->shown = arena_strdup(&v->arena, shown);
                } else if (shown) {
                        settle(v, a);
                }
                if (!shown)
                        add(v, STEP_ASK)->approval = a;
                free(shown);
        }
}

/* Every event that was read is shown. */
static void show_all(const struct view_round *v, struct session_view_row *row)
{
        row->shown_seq = v->digest.upto;
        row->open_tokens = v->digest.tokens;
        row->open_cost_microusd = v->digest.cost_microusd;
}

static void show_up_to(const struct page *p, struct session_view_row *row)
{
        row->shown_seq = p->to;
        row->open_tokens = p->open_tokens;
        row->open_cost_microusd = p->open_cost_microusd;
}

static void plan_pages(struct view_round *v)
{
        bool steps = false;

        for (size_t i = 0; i < v->digest.count; i++) {
                const struct page *p = &v->digest.pages[i];
                bool open = v->row.page > 0 && p->from == v->row.page_from;
                struct view_step *step = NULL;

                if (!open)
                        step = add(v, STEP_PAGE);
                else if (p->to > v->row.shown_seq)
                        step = add(v, STEP_PAGE_EDIT);
                if (step)
                        step->page = p;
                steps = step != NULL;
        }
        /* events that are shown by no page */
        if (!steps && v->digest.upto > v->row.shown_seq) {
                show_all(v, &v->row);
                if (v->digest.count > 0 && !page_grows(&v->digest.pages[v->digest.count - 1]))
                        v->row.page = v->row.page_from = 0;
                v->changed = true;
        }
}

/* Names what the first message says. */
static const char *root_shown(struct view_round *v)
{
        char hex[SHA256_HEX_SIZE], *card = root_card(v);

        crypto_sha256_hex(card, strlen(card), hex);
        free(card);
        return arena_printf(&v->arena, "%.*s", HASH_CHARS, hex);
}

/* The last step, but the first to go: it is in another queue, and the last one's end is awaited. */
static void plan_root_edit(struct view_round *v)
{
        const char *shown = root_shown(v);

        if (!(v->can & ADAPTER_EDITS) ||
            (v->row.root_shown && strcmp(shown, v->row.root_shown) == 0))
                return;
        if (v->view->slow && v->step_count > 0)
                return; /* a later round shows it */
        memmove(&v->steps[1], &v->steps[0], v->step_count++ * sizeof(v->steps[0]));
        v->steps[0] = (struct view_step){ .round = v, .kind = STEP_ROOT_EDIT, .shown = shown };
}

static const char *thread_name(struct view_round *v)
{
        char *name = session_card_name(v->session);
        const char *out = arena_printf(&v->arena, "%s (ses-%lld)", name, (long long)v->row.session);

        free(name);
        return out;
}

/* Its title is often known only after its first prompt. */
static void plan_name(struct view_round *v)
{
        const char *name = thread_name(v);

        if (v->row.own_thread && v->row.named && strcmp(name, v->row.named) != 0 &&
            (v->row.renamed_ms == 0 || v->now_ms - v->row.renamed_ms >= RENAME_MS))
                add(v, STEP_RENAME)->shown = name;
}

void view_plan(struct view_round *v)
{
        bool active = v->session->state == SESSION_ACTIVE;

        v->planned = true;
        if (v->row.root == 0) {
                if (v->threads == CHAT_THREADS_BY_NAME)
                        add(v, STEP_TOPIC)->shown = thread_name(v);
                add(v, STEP_ROOT)->shown = root_shown(v);
                if (v->threads == CHAT_THREADS_AT_MESSAGE)
                        add(v, STEP_THREAD)->shown = thread_name(v);
                if (v->threads != CHAT_NO_THREADS)
                        return; /* what follows is shown in the thread, if it could be begun */
        }
        if (v->row.closed && active)
                add(v, STEP_REOPEN);
        plan_approvals(v);
        plan_pages(v);
        if (active)
                plan_name(v);
        if (!v->row.closed && !active && v->row.own_thread)
                add(v, STEP_CLOSE);
        if (v->row.root > 0)
                plan_root_edit(v);
}

/* ---- who is called ---- */

static bool wants(const struct view_round *v, const char *what)
{
        return strcmp(v->person.wants, "all") == 0 || strcmp(v->person.wants, what) == 0;
}

static bool concerns(const struct view_round *v, const struct view_step *step)
{
        const struct page *p = step->page;

        if (strcmp(v->person.wants, "off") == 0 || v->person.quiet)
                return false;
        if (step->kind == STEP_ASK || p->mention)
                return true;
        return (p->errors > 0 && wants(v, "errors")) ||
               ((p->turns > 0 || p->ended) && wants(v, "end"));
}

/* Phones announce a card by the text above it. */
static void add_headline(const struct view_round *v, const struct view_step *step, struct buf *text)
{
        char *line = NULL;

        if (v->can & ADAPTER_CARDS)
                line = step->kind == STEP_ASK ? session_card_question(step->approval->row)
                                              : session_card_headline(step->page);
        if (line)
                buf_addf(text, " %s", line);
        free(line);
}

/* In a direct chat every message calls its person, unless it is silent. */
static void address(struct view_round *v, const struct view_step *step, struct outgoing *out)
{
        const char *name = v->person.name ? v->person.name : "you";
        struct buf text;

        out->silent = !concerns(v, step);
        if (out->silent || !v->person.id || strcmp(v->person.id, v->row.channel) == 0)
                return;
        buf_init(&text, 0);
        road_mention(v->view->remote->env.road, v->row.adapter, v->person.id, name, &text);
        add_headline(v, step, &text);
        out->text = arena_strdup(&v->arena, text.data);
        buf_release(&text);
}

/* ---- the row with a step ---- */

static void show_page(const struct view_round *v, const struct page *p, int64_t delivery,
                      struct session_view_row *row)
{
        bool last = p == &v->digest.pages[v->digest.count - 1];
        bool grows = last && page_grows(p) && (v->can & ADAPTER_EDITS);

        row->page = grows ? delivery : 0;
        row->page_from = grows ? p->from : 0;
        if (last)
                show_all(v, row);
        else
                show_up_to(p, row);
}

bool view_step_is_awaited(const struct view_step *step)
{
        const struct session_view_row *row = &step->round->row;
        const struct view_approval *a = step->approval;

        if (a && step->kind != STEP_ASK) /* an edit, perhaps in another chat */
                return strcmp(a->adapter, row->adapter) == 0 &&
                       strcmp(a->channel, row->channel) == 0;
        return step->kind != STEP_RENAME;
}

void view_step_done(const struct view_step *step, int64_t delivery, struct session_view_row *row)
{
        if (view_step_is_awaited(step))
                row->last = delivery;
        row->used_ms = step->round->now_ms;
        switch (step->kind) {
        case STEP_TOPIC:
        case STEP_THREAD:
                row->place = delivery;
                row->named = step->shown;
                break;
        case STEP_RENAME:
                row->named = step->shown;
                row->renamed_ms = step->round->now_ms;
                break;
        case STEP_ROOT:
                row->root = delivery;
                row->root_shown = step->shown;
                break;
        case STEP_ROOT_EDIT:
                row->root_shown = step->shown;
                break;
        case STEP_REOPEN:
        case STEP_CLOSE:
                row->closed = step->kind == STEP_CLOSE;
                break;
        case STEP_PAGE:
                show_page(step->round, step->page, delivery, row);
                row->page_shown = row->shown_seq;
                break;
        case STEP_PAGE_EDIT:
                show_page(step->round, step->page, row->page, row);
                break;
        case STEP_WITHDRAW:
        case STEP_ASK:
        case STEP_OUTCOME:
                break;
        }
}

/* In the transaction of the delivery: perhaps more than once. */
static int write_step(struct store_tx *tx, void *arg, int64_t delivery, struct error *err)
{
        const struct view_step *step = arg;
        const struct session_approval_row *a = step->approval ? step->approval->row : NULL;
        struct session_view_row row = step->round->row;

        view_step_done(step, delivery, &row);
        if (a && session_approval_row_set_shown(tx, a->id,
                                                step->kind == STEP_ASK ? delivery : a->delivery,
                                                step->shown, err) < 0)
                return -1;
        return session_view_row_put(tx, &row, err);
}

/* ---- deliveries ---- */

static void set_place(const struct view_round *v, struct outgoing *out)
{
        if (v->row.own_thread)
                out->thread = v->row.own_thread;
        else if (v->row.place > 0)
                out->in_thread_of = v->row.place;
        else
                out->thread = v->row.thread;
}

static void set_card(struct view_round *v, struct outgoing *out, char *json)
{
        out->card = arena_strdup(&v->arena, json);
        free(json);
}

static const char *approval_buttons(struct view_round *v, const struct session_approval_row *a)
{
        long long id = (long long)a->id;

        if (!(v->can & ADAPTER_BUTTONS))
                return NULL;
        return arena_printf(&v->arena,
                            "[[{\"text\":\"Approve\",\"data\":\"say:/approve sap-%lld\"},"
                            "{\"text\":\"Refuse\",\"data\":\"say:/refuse sap-%lld\"}%s",
                            id, id,
                            v->can & ADAPTER_FORMS
                                    ? arena_printf(&v->arena,
                                                   ",{\"text\":\"Refuse, because…\",\"data\":"
                                                   "\"ask:/refuse sap-%lld\"}]]",
                                                   id)
                                    : "]]");
}

static void make_question(struct view_round *v, const struct view_step *step, struct outgoing *out)
{
        const struct session_approval_row *a = step->approval->row;

        out->class = PACE_APPROVAL;
        out->buttons = approval_buttons(v, a);
        out->expires_ms = a->expires_ms;
        set_card(v, out, approval_card(v, step));
        address(v, step, out);
}

static void make_edit(struct view_round *v, int64_t delivery, char *card, struct outgoing *out)
{
        out->kind = DELIVER_EDIT;
        out->class = PACE_EDIT;
        out->edits = delivery;
        out->thread = NULL;
        out->in_thread_of = 0;
        set_card(v, out, card);
}

/* It may be in a chat where the session was shown before. */
static void make_approval_edit(struct view_round *v, const struct view_step *step,
                               struct outgoing *out)
{
        make_edit(v, step->approval->row->delivery, approval_card(v, step), out);
        out->adapter = step->approval->adapter;
        out->channel = step->approval->channel;
        out->buttons = "[]";
}

void view_outgoing(struct view_round *v, struct view_step *step, struct outgoing *out)
{
        *out = (struct outgoing){ .adapter = v->row.adapter,
                                  .channel = v->row.channel,
                                  .kind = DELIVER_SEND,
                                  .class = PACE_FINAL,
                                  .trace = v->session->trace,
                                  .write = write_step,
                                  .write_arg = step };
        set_place(v, out);
        switch (step->kind) {
        case STEP_TOPIC:
        case STEP_THREAD:
                out->kind = DELIVER_THREAD;
                out->thread = NULL;
                out->edits = step->kind == STEP_THREAD ? v->row.root : 0;
                out->thread_name = step->shown;
                break;
        case STEP_RENAME:
                out->kind = DELIVER_CHANGE_THREAD;
                out->thread_name = step->shown;
                break;
        case STEP_ROOT:
                set_card(v, out, root_card(v));
                out->buttons = root_buttons(v);
                out->silent = true;
                break;
        case STEP_REOPEN:
        case STEP_CLOSE:
                out->kind = DELIVER_CHANGE_THREAD;
                out->thread_state = step->kind == STEP_CLOSE ? THREAD_CLOSED : THREAD_OPEN;
                break;
        case STEP_ASK:
                make_question(v, step, out);
                break;
        case STEP_WITHDRAW:
        case STEP_OUTCOME:
                make_approval_edit(v, step, out);
                break;
        case STEP_PAGE:
                set_card(v, out, page_card(v, step->page));
                address(v, step, out);
                break;
        case STEP_PAGE_EDIT:
                make_edit(v, v->row.page, page_card(v, step->page), out);
                break;
        case STEP_ROOT_EDIT:
                make_edit(v, v->row.root, root_card(v), out);
                out->buttons = root_buttons(v);
                out->had_buttons = out->buttons != NULL;
                break;
        }
}

/* ---- what becomes of them ---- */

/* It will be refused again, so the next step is taken instead. */
void view_step_refused(struct view_step *step, const struct error *err)
{
        struct view_round *v = step->round;

        log_warn("a session cannot be shown as it should", LOG_I("session", v->row.session),
                 LOG_S("adapter", v->row.adapter), LOG_S("why", err->text));
        v->changed = true;
        switch (step->kind) {
        case STEP_ROOT:
                v->row.error = arena_printf(&v->arena, "%.*s", REASON_CHARS, err->text);
                break;
        case STEP_PAGE:
                show_up_to(step->page, &v->row);
                break;
        case STEP_PAGE_EDIT: /* its message is forgotten: what it lacks begins another one */
                v->row.page = v->row.page_from = 0;
                break;
        case STEP_ROOT_EDIT:
                v->row.root_shown = step->shown;
                break;
        case STEP_REOPEN:
        case STEP_CLOSE:
                v->row.closed = step->kind == STEP_CLOSE;
                break;
        case STEP_RENAME:
                v->row.named = step->shown;
                break;
        case STEP_ASK:
        case STEP_OUTCOME:
                settle(v, step->approval);
                break;
        case STEP_TOPIC:
        case STEP_THREAD:
        case STEP_WITHDRAW:
                break;
        }
}
