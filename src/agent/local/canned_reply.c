#include "agent/local/canned_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define WORDS_MAX 400 /* the rest is one piece */

enum canned_step_kind { STEP_WAIT, STEP_PROGRESS, STEP_SAY, STEP_FAIL, STEP_HANG, STEP_ASK };

struct canned_step {
        enum canned_step_kind kind;
        int64_t ms;
        enum error_kind failure;
        char *text, *record;
        size_t n;
        enum approvers approvers;
};

struct canned_reply {
        struct agent *agent;
        struct turn_run *run;
        struct timer *timer;
        struct canned_step *steps;
        size_t count, at;
        struct buf text;
        bool whole; /* no deltas */
};

static void canned_reply_free(struct canned_reply *c)
{
        for (size_t i = 0; i < c->count; i++) {
                free(c->steps[i].text);
                free(c->steps[i].record);
        }
        free(c->steps);
        buf_release(&c->text);
        timer_free(c->timer);
        free(c);
}

static void finish(struct canned_reply *c, const struct canned_step *failed)
{
        struct turn_reply reply = { 0 };
        enum agent_effect effect = c->text.len ? EFFECT_POSSIBLE : EFFECT_NONE;

        if (failed) {
                buf_addf(&c->text, "%s%s", c->text.len ? "\n\n" : "", failed->text);
                reply.kind = failed->failure;
                reply.error = failed->record;
        }
        reply.text = c->text.data;
        agent_finish(c->agent, c->run, &reply, effect);
        canned_reply_free(c);
}

static void on_time(void *arg);

static void on_decided(void *arg, const struct approval_decision *d)
{
        struct canned_reply *c = arg;

        if (d->state == APPROVAL_APPROVED) {
                on_time(c);
                return;
        }
        buf_addf(&c->text, "%sIt was not allowed%s%s.", c->text.len ? "\n" : "",
                 d->note ? ": " : "", d->note ? d->note : "");
        finish(c, NULL);
}

/* A reply that is played again asks under the same name. */
static void ask(struct canned_reply *c, const struct canned_step *s)
{
        char *call = mem_printf("step-%zu", c->at), *detail = mem_printf("`%s`", s->text);
        struct buf subject, rule;

        buf_init(&subject, 0);
        jsonw_open(&subject, '{');
        jsonw_str(&subject, "command", s->text);
        jsonw_close(&subject, '}');
        buf_init(&rule, 0);
        jsonw_open(&rule, '{');
        jsonw_str(&rule, "tool", "script");
        jsonw_str(&rule, "command", s->text);
        jsonw_close(&rule, '}');
        turn_ask_approval(c->run,
                          &(struct approval_request){ .call = call,
                                                      .tool = "script",
                                                      .title = "do something",
                                                      .detail = detail,
                                                      .subject = subject.data,
                                                      .reason = "the script says so",
                                                      .rule = rule.data,
                                                      .rule_label = s->text,
                                                      .approvers = s->approvers,
                                                      .expires_ms = s->ms },
                          on_decided, c);
        buf_release(&subject);
        buf_release(&rule);
        free(detail);
        free(call);
}

static void on_time(void *arg)
{
        struct canned_reply *c = arg;

        while (c->at < c->count) {
                const struct canned_step *s = &c->steps[c->at++];

                switch (s->kind) {
                case STEP_WAIT:
                        timer_start(c->timer, s->ms);
                        return;
                case STEP_HANG:
                        return;
                case STEP_FAIL:
                        finish(c, s);
                        return;
                case STEP_ASK:
                        ask(c, s);
                        return;
                case STEP_PROGRESS:
                        turn_progress(c->run, s->text);
                        break;
                case STEP_SAY:
                        buf_add(&c->text, s->text, s->n);
                        if (!c->whole)
                                turn_delta(c->run, s->text, s->n);
                        break;
                }
        }
        finish(c, NULL);
}

struct canned_reply *canned_reply_new(struct agent *a, struct turn_run *run)
{
        struct canned_reply *c = mem_zalloc(sizeof(*c));

        c->agent = a;
        c->run = run;
        c->timer = timer_new(a->loop, on_time, c);
        buf_init(&c->text, 0);
        run->agent_data = c;
        return c;
}

static struct canned_step *add(struct canned_reply *c, enum canned_step_kind kind)
{
        /* grows by doubling, at powers of two */
        if ((c->count & (c->count - 1)) == 0)
                c->steps = mem_realloc(c->steps, (c->count ? c->count * 2 : 1) * sizeof(*c->steps));
        c->steps[c->count] = (struct canned_step){ .kind = kind };
        return &c->steps[c->count++];
}

void canned_reply_wait(struct canned_reply *c, int64_t ms)
{
        if (ms > 0)
                add(c, STEP_WAIT)->ms = ms;
}

void canned_reply_progress(struct canned_reply *c, const char *label)
{
        add(c, STEP_PROGRESS)->text = mem_strdup(label);
}

void canned_reply_say(struct canned_reply *c, const char *text, size_t n)
{
        struct canned_step *s = add(c, STEP_SAY);

        s->text = mem_strndup(text, n);
        s->n = n;
}

void canned_reply_say_words(struct canned_reply *c, const char *text, int64_t pause_ms)
{
        for (int words = 0; *text && words < WORDS_MAX; words++) {
                size_t n = strcspn(text, " \n");

                n += strspn(text + n, " \n");
                canned_reply_say(c, text, n);
                text += n;
                if (*text)
                        canned_reply_wait(c, pause_ms);
        }
        if (*text)
                canned_reply_say(c, text, strlen(text));
}

void canned_reply_fail(struct canned_reply *c, enum error_kind kind, const char *notice,
                       const char *record)
{
        struct canned_step *s = add(c, STEP_FAIL);

        s->failure = kind;
        s->text = mem_strdup(notice);
        s->record = mem_strdup(record);
}

void canned_reply_ask(struct canned_reply *c, enum approvers approvers, int64_t ms,
                      const char *text)
{
        struct canned_step *s = add(c, STEP_ASK);

        s->approvers = approvers;
        s->ms = ms;
        s->text = mem_strdup(text);
}

void canned_reply_hang(struct canned_reply *c)
{
        add(c, STEP_HANG);
}

void canned_reply_set_whole(struct canned_reply *c)
{
        c->whole = true;
}

void canned_reply_start(struct canned_reply *c)
{
        timer_start(c->timer, 0);
}

void canned_reply_cancel(struct agent *a, struct turn_run *run)
{
        (void)a;
        canned_reply_free(run->agent_data);
        run->agent_data = NULL;
}
