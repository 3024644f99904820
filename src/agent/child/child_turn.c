/*
 * child_turn: what a turn collects until it ends.
 *
 * The answer is what the agent said after its last tool call; what it said before that is shown
 * while it works, and is the answer if nothing follows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rows/agent_session_row.h"

#define LABEL_BYTES 200

/* ---- its session is read first ---- */

struct session_load {
        struct child_turn *turn; /* NULL: taken back */
        char *agent, *name;
        struct agent_session_row *row; /* result; may be NULL */
};

static int read_session(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_load *l = arg;

        free(l->row);
        l->row = NULL;
        return agent_session_row_get(tx, l->agent, l->name, &l->row, err) < 0 ? -1 : 0;
}

static bool was_given(const struct child_turn *t)
{
        const char *to = t->run->given_to;

        return to && strcmp(to, t->owner->agent->name) == 0;
}

static void on_session(struct child_turn *t, struct session_load *l, const struct error *err)
{
        char *name = l->name;

        t->load = NULL;
        if (err) {
                child_turn_fail(t, err->kind, EFFECT_NONE,
                                "The agent's session cannot be read. Please tell the operator.",
                                err->text);
        } else if (was_given(t)) {
                child_turn_fail(t, ERR_INTERNAL, EFFECT_POSSIBLE,
                                "Sorry, I was interrupted while working on this. What I did until "
                                "then remains; write again to go on.",
                                "the process ended during this turn, and the agent must not be "
                                "given it twice");
        } else {
                l->name = NULL;
                child_queue(t->owner, t, name, l->row ? l->row->session : NULL);
        }
}

static void on_loaded(void *arg, const struct error *err)
{
        struct session_load *l = arg;

        if (l->turn)
                on_session(l->turn, l, err);
        free(l->agent);
        free(l->name);
        free(l->row);
        free(l);
}

void child_start(struct agent *a, struct turn_run *run)
{
        struct child_turn *t = child_turn_new(a->self, run);
        struct session_load *l = mem_zalloc(sizeof(*l));

        run->agent_data = t;
        l->turn = t;
        l->agent = mem_strdup(a->name);
        l->name = agent_session(a, run);
        t->load = l;
        turn_drop_deadline(run);
        turn_load(run, read_session, on_loaded, l);
}

/* ---- turns ---- */

struct child_turn *child_turn_new(struct child_agent *o, struct turn_run *run)
{
        struct child_turn *t = mem_zalloc(sizeof(*t));

        t->owner = o;
        t->run = run;
        buf_init(&t->answer, (size_t)o->conf->answer_kb << 10);
        buf_init(&t->aside, 0);
        buf_init(&t->detail, 0);
        TAILQ_INIT(&t->tools);
        LIST_INIT(&t->asking);
        return t;
}

void child_turn_free(struct child_turn *t)
{
        if (!t)
                return;
        if (t->load)
                t->load->turn = NULL;
        child_asks_release(t);
        child_tools_release(t);
        buf_release(&t->answer);
        buf_release(&t->aside);
        buf_release(&t->detail);
        free(t->label);
        free(t);
}

static bool is_blank(const char *text)
{
        return text[strspn(text, " \t\r\n")] == '\0';
}

/* ---- what the agent says ---- */

static void show(struct child_turn *t, const char *text, size_t n)
{
        char *clean = utf8_clean(text, n);

        log_redact(clean);
        turn_delta(t->run, clean, strlen(clean));
        free(clean);
}

static void add_text(struct child_turn *t, const char *text, size_t n)
{
        size_t room = t->answer.max - t->answer.len;

        if (t->cut)
                return;
        if (n > room) {
                n = utf8_prefix(text, n, UTF8_BYTES, room);
                t->cut = true;
        }
        buf_add(&t->answer, text, n);
        show(t, text, n);
}

void child_text(struct child *c, const char *text, size_t n)
{
        struct child_turn *t = c->turn;

        if (!child_run(c))
                return;
        if (t->message_ended) {
                t->message_ended = false;
                if (t->answer.len > 0)
                        add_text(t, "\n\n", 2);
                t->message = t->answer.len;
        }
        add_text(t, text, n);
}

void child_message(struct child *c, const char *text, size_t n)
{
        struct child_turn *t = c->turn;
        size_t from, said;

        if (!child_run(c))
                return;
        from = t->message_ended ? t->answer.len : t->message;
        said = t->answer.len - from;
        if (said > n || (said < n && !t->cut) ||
            (said > 0 && memcmp(t->answer.data + from, text, said) != 0)) {
                if (said > 0) {
                        buf_truncate(&t->answer, from);
                        t->cut = false;
                        turn_goes_on(t->run);
                        show(t, t->answer.data, t->answer.len);
                }
                if (n > 0)
                        child_text(c, text, n);
        }
        t->message_ended = true;
}

void child_text_break(struct child *c)
{
        if (child_run(c) && !is_blank(c->turn->answer.data))
                child_text(c, "\n\n", 2);
}

void child_turn_aside(struct child_turn *t)
{
        if (is_blank(t->answer.data))
                return;
        buf_clear(&t->aside);
        buf_add(&t->aside, t->answer.data, t->answer.len);
        buf_clear(&t->answer);
        t->message = 0;
        turn_goes_on(t->run);
}

void child_turn_progress(struct child_turn *t, const char *label)
{
        char *text = utf8_clean(label, utf8_prefix(label, strlen(label), UTF8_BYTES, LABEL_BYTES));

        for (char *p = text; *p; p++)
                if ((unsigned char)*p < ' ')
                        *p = ' ';
        log_redact(text);
        if (is_blank(text) || (t->label && strcmp(t->label, text) == 0)) {
                free(text);
                return;
        }
        free(t->label);
        t->label = text;
        turn_progress(t->run, text);
}

void child_progress(struct child *c, const char *label)
{
        if (child_run(c))
                child_turn_progress(c->turn, label);
}

void child_set_usage(struct child *c, const struct child_usage *u)
{
        if (child_run(c))
                c->turn->usage = *u;
}

/* ---- the end ---- */

/* Frees the turn. */
static void end(struct child_turn *t, struct turn_reply *reply, enum agent_effect effect)
{
        struct agent *a = t->owner->agent;
        struct turn_run *run = t->run;

        reply->tokens_in = t->usage.tokens_in;
        reply->tokens_cached = t->usage.tokens_cached;
        reply->tokens_out = t->usage.tokens_out;
        reply->cost_microusd = t->usage.cost_microusd;
        reply->used_tools = t->tool_count > 0;
        run->agent_data = NULL;
        child_turn_free(t);
        agent_finish(a, run, reply, effect);
}

void child_turn_fail(struct child_turn *t, enum error_kind kind, enum agent_effect effect,
                     const char *notice, const char *error)
{
        struct turn_reply reply = { .kind = kind, .text = notice };
        char *record = mem_strdup(error);

        if (record)
                log_redact(record);
        reply.error = record;
        if (t->child)
                child_tools_end(t, "interrupted");
        end(t, &reply, effect);
        free(record);
}

static void add_remark(struct buf *text, const char *remark)
{
        if (!remark)
                return;
        if (text->len > 0)
                buf_addf(text, "\n\n(%s)", remark);
        else
                buf_addstr(text, remark);
}

void child_turn_finish(struct child_turn *t, const struct child_end *how)
{
        bool says = !is_blank(t->answer.data), quiet = t->run->mode == MODE_AMBIENT;
        bool untouched = how->untouched && t->tool_count == 0 && LIST_EMPTY(&t->asking);
        const struct buf *said = says ? &t->answer : &t->aside;
        struct turn_reply reply = { .kind = how->kind };
        char cut[100], *clean, *record = mem_strdup(how->error);
        struct buf text;

        child_tools_end(t, NULL);
        clean = utf8_clean(said->data, said->len);
        buf_init(&text, 0);
        if (!is_blank(clean) && !(quiet && !says))
                buf_addstr(&text, clean);
        snprintf(cut, sizeof(cut), "The answer is longer than %zu KB; the rest is cut off.",
                 t->answer.max >> 10);
        add_remark(&text, t->cut ? cut : NULL);
        add_remark(&text, how->remark);
        if (text.len == 0 && !quiet)
                buf_addstr(&text, how->kind == ERR_NONE
                                          ? "The agent has finished without saying anything."
                                          : "The agent failed. Please tell the operator.");
        log_redact(text.data);
        if (record)
                log_redact(record);
        reply.text = text.data;
        reply.error = how->kind != ERR_NONE ? record : NULL;
        end(t, &reply, untouched ? EFFECT_NONE : EFFECT_POSSIBLE);
        free(clean);
        free(record);
        buf_release(&text);
}
