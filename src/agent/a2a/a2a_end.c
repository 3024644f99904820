/*
 * a2a_end: how a turn ends, and what people read of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define REASON_BYTES 500
#define TOO_SLOW     "The agent took too long to answer. Please try again."

/* ---- the record, for the operator ---- */

/* Omits the query, which may hold a key. */
static void write_record(const struct a2a_turn *t, const struct a2a_outcome *o, const char *why,
                         struct buf *out)
{
        const char *url = t->card ? t->card->url : t->owner->card_url;

        buf_addf(out, "a2a at %.*s: ", (int)strcspn(url, "?#"), url);
        if (o && o->status)
                buf_addf(out, "HTTP %d: ", o->status);
        if (t->task)
                buf_addf(out, "task %.100s: ", t->task);
        buf_addstr(out, why);
        if (t->tries > 1)
                buf_addf(out, " (after %u tries)", t->tries);
        log_redact(out->data);
}

/* ---- ending ---- */

static void add_usage(const struct a2a_turn *t, struct turn_reply *reply)
{
        reply->tokens_in = usage_tokens_in(&t->usage);
        reply->tokens_cached = t->usage.cached;
        reply->tokens_out = t->usage.out;
        reply->cost_microusd = t->usage.cost_microusd;
}

/* The turn is gone after it. */
static void end(struct a2a_turn *t, struct turn_reply *reply, enum agent_effect effect)
{
        struct agent *a = t->owner->agent;
        struct turn_run *run = t->run;

        add_usage(t, reply);
        if (run) {
                run->agent_data = NULL;
                a2a_turn_free(t);
                agent_finish(a, run, reply, effect);
                return;
        }
        if (t->awaits_person && a2a_state_is_final(t->state))
                a2a_store_late(t, false);
        agent_late_reply(a, t->id, reply);
        a2a_turn_free(t);
}

void a2a_fail(struct a2a_turn *t, enum error_kind kind, enum agent_effect effect,
              const char *notice, const struct a2a_outcome *o, const char *why)
{
        struct turn_reply reply = { .kind = kind != ERR_NONE ? kind : ERR_PROTOCOL,
                                    .text = notice };
        struct buf record;

        a2a_call_free(t->call);
        t->call = NULL;
        /* the task that it was for may have it, and is not known to wait for the next one */
        if (t->sent && !t->told && t->goes_on && effect == EFFECT_POSSIBLE &&
            !a2a_state_is_waiting(t->state))
                a2a_store_late(t, false);
        buf_init(&record, 0);
        write_record(t, o, why, &record);
        reply.error = record.data;
        end(t, &reply, effect);
        buf_release(&record);
}

void a2a_out_of_time(struct a2a_turn *t)
{
        const struct a2a_conf *conf = t->owner->conf;
        struct turn_run *run = t->run;
        struct turn_reply reply = {
                .kind = ERR_TIMEOUT,
                .text = "This takes longer than usual. The answer follows when it is ready.",
        };
        struct buf record;

        if (t->step == A2A_LEAVING) {
                a2a_turn_free(t);
                return;
        }
        if (!run || !t->told || !t->task || t->mode == MODE_SILENT ||
            strcmp(conf->late, "deliver") != 0 || t->owner->late_count >= A2A_LATE_MAX) {
                if (t->told && t->task && !t->awaits_person)
                        a2a_cancel_task(t->owner, t->card, t->task,
                                        &(struct turn_run){ .trace = t->trace });
                a2a_fail(t, ERR_TIMEOUT, t->sent ? EFFECT_POSSIBLE : EFFECT_NONE, TOO_SLOW, NULL,
                         "it did not come to an end in time");
                return;
        }
        buf_init(&record, 0);
        write_record(t, NULL, "its answer is late and will be delivered when it comes", &record);
        reply.error = record.data;
        run->agent_data = NULL;
        a2a_outlive(t, conf->late_seconds * 1000);
        agent_finish(t->owner->agent, run, &reply, EFFECT_POSSIBLE);
        buf_release(&record);
}

/* ---- what the task came to ---- */

static void add_paragraph(struct buf *out, const char *text)
{
        if (out->len > 0)
                buf_addstr(out, "\n\n");
        buf_addstr(out, text);
}

static void add_remark(struct buf *out, const char *remark, const char *what)
{
        buf_addf(out, "%s(%s%s)", out->len > 0 ? "\n\n" : "", remark, what);
}

/* "The agent failed: ...", or a whole sentence without a reason. */
static void add_reason(const struct a2a_turn *t, struct buf *out, const char *what)
{
        char *reason = t->said ? utf8_clean(t->said, utf8_prefix(t->said, strlen(t->said),
                                                                 UTF8_BYTES, REASON_BYTES))
                               : NULL;
        char *sentence = reason ? mem_printf("%s: %s", what, reason) : mem_printf("%s.", what);

        if (out->len > 0)
                add_remark(out, "The answer breaks off here. ", sentence);
        else
                buf_addstr(out, sentence);
        free(sentence);
        free(reason);
}

/* A task goes on by itself once it has its authorization. Is it waited for? */
static bool is_waited_for(const struct a2a_turn *t)
{
        const struct a2a_agent *o = t->owner;

        return t->state == A2A_AUTH_REQUIRED && strcmp(o->conf->late, "deliver") == 0 &&
               (t->held || o->late_count < A2A_LATE_MAX);
}

static void write_waiting(const struct a2a_turn *t, struct buf *out)
{
        if (t->said)
                add_paragraph(out, t->said);
        if (t->state == A2A_AUTH_REQUIRED)
                add_remark(out, "The agent waits for an authorization. Do what it asks for",
                           is_waited_for(t) ? "; its answer follows, or write here to go on."
                                            : ", then write here to go on.");
        else if (out->len == 0)
                buf_addstr(out, "The agent asks for more, without saying what.");
}

static enum error_kind write_answer(const struct a2a_turn *t, struct buf *out)
{
        enum error_kind kind = ERR_NONE;

        a2a_answer_write(&t->answer, out);
        switch (t->state) {
        case A2A_FAILED:
                add_reason(t, out, "The agent failed");
                kind = ERR_NET;
                break;
        case A2A_REJECTED:
                add_reason(t, out, "The agent declined this");
                kind = ERR_INVALID;
                break;
        case A2A_CANCELED:
                add_reason(t, out, "The agent's task was canceled there");
                kind = ERR_CONFLICT;
                break;
        case A2A_INPUT_REQUIRED:
        case A2A_AUTH_REQUIRED:
                write_waiting(t, out);
                break;
        default:
                if (out->len == 0 && t->said)
                        buf_addstr(out, t->said);
                break;
        }
        if (t->answer.cut)
                add_remark(out, "The answer is longer than can be shown; the rest is left out.",
                           "");
        if (t->unshown.len > 0)
                add_remark(out,
                           "The agent also sent, which cannot be shown here: ", t->unshown.data);
        if (out->len == 0 && t->answer.file_count == 0 && t->mode != MODE_AMBIENT)
                buf_addstr(out, "The agent has finished without saying anything.");
        return kind;
}

/* The turn ends, or has ended, with what a person has to do. */
static void await_person(struct a2a_turn *t, struct turn_reply *reply)
{
        struct a2a_agent *o = t->owner;
        struct turn_run *run = t->run;

        t->awaits_person = true;
        free(t->said);
        t->said = NULL;
        add_usage(t, reply);
        a2a_outlive(t, o->conf->late_seconds * 1000);
        a2a_follow(t, NULL);
        if (run) {
                run->agent_data = NULL;
                agent_finish(o->agent, run, reply, EFFECT_POSSIBLE);
        } else {
                reply->request_key = "authorization"; /* the answer is another reply */
                agent_late_reply(o->agent, t->id, reply);
        }
}

static void finish(struct a2a_turn *t)
{
        struct turn_reply reply = { 0 };
        struct buf text, record;

        buf_init(&text, 0);
        buf_init(&record, 0);
        reply.kind = write_answer(t, &text);
        reply.text = text.data;
        if (reply.kind != ERR_NONE) {
                write_record(t, NULL, t->said ? t->said : a2a_state_name(A2A_0_3, t->state),
                             &record);
                reply.error = record.data;
        }
        if (is_waited_for(t))
                await_person(t, &reply);
        else
                end(t, &reply, t->state == A2A_REJECTED ? EFFECT_NONE : EFFECT_POSSIBLE);
        buf_release(&text);
        buf_release(&record);
}

void a2a_files_sent(struct a2a_turn *t)
{
        finish(t);
}

static void send_files(struct a2a_turn *t)
{
        t->step = A2A_STORING;
        if (!a2a_send_files(t))
                finish(t);
}

void a2a_task_stored(struct a2a_turn *t)
{
        if (!t->run->interrupted) /* else cancel follows */
                send_files(t);
}

void a2a_conclude(struct a2a_turn *t)
{
        bool waits = a2a_state_is_waiting(t->state);

        a2a_call_free(t->call);
        t->call = NULL;
        timer_stop(t->timer);
        timer_stop(t->deadline);
        t->step = A2A_STORING;
        if (waits && t->run) {
                a2a_store_open(t);
                return;
        }
        if (waits)
                a2a_store_late(t, true);
        send_files(t);
}
