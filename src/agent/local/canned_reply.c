#include "agent/local/canned_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define WORDS_MAX 400 /* more are said in one piece */

enum step_kind { STEP_WAIT, STEP_PROGRESS, STEP_SAY, STEP_FAIL, STEP_HANG };

struct step {
        enum step_kind kind;
        int64_t ms;
        enum error_kind failure;
        char *text, *record;
        size_t n;
};

struct canned_reply {
        struct agent *agent;
        struct turn_run *run;
        struct timer *timer;
        struct step *steps;
        size_t count, at;
        struct buf said;
        bool quiet;
};

static void canned_reply_free(struct canned_reply *p)
{
        for (size_t i = 0; i < p->count; i++) {
                free(p->steps[i].text);
                free(p->steps[i].record);
        }
        free(p->steps);
        buf_release(&p->said);
        timer_free(p->timer);
        free(p);
}

static void finish(struct canned_reply *p, const struct step *failed)
{
        struct turn_reply reply = { 0 };
        enum agent_effect effect = p->said.len ? EFFECT_POSSIBLE : EFFECT_NONE;

        if (failed) {
                buf_addf(&p->said, "%s%s", p->said.len ? "\n\n" : "", failed->text);
                reply.kind = failed->failure;
                reply.error = failed->record;
        }
        reply.text = p->said.data;
        if (failed)
                agent_fail(p->agent, p->run, &reply, effect);
        else
                agent_finish(p->agent, p->run, &reply);
        canned_reply_free(p);
}

static void on_time(void *arg)
{
        struct canned_reply *p = arg;

        while (p->at < p->count) {
                const struct step *s = &p->steps[p->at++];

                switch (s->kind) {
                case STEP_WAIT:
                        timer_start(p->timer, s->ms);
                        return;
                case STEP_HANG:
                        return;
                case STEP_FAIL:
                        finish(p, s);
                        return;
                case STEP_PROGRESS:
                        turn_progress(p->run, s->text);
                        break;
                case STEP_SAY:
                        buf_add(&p->said, s->text, s->n);
                        if (!p->quiet)
                                turn_delta(p->run, s->text, s->n);
                        break;
                }
        }
        finish(p, NULL);
}

struct canned_reply *canned_reply_new(struct agent *a, struct turn_run *run)
{
        struct canned_reply *p = mem_zalloc(sizeof(*p));

        p->agent = a;
        p->run = run;
        p->timer = timer_new(a->loop, on_time, p);
        buf_init(&p->said, 0);
        run->agent_data = p;
        return p;
}

static struct step *add(struct canned_reply *p, enum step_kind kind)
{
        /* grows by doubling: only at powers of two */
        if ((p->count & (p->count - 1)) == 0)
                p->steps = mem_realloc(p->steps, (p->count ? p->count * 2 : 1) * sizeof(*p->steps));
        p->steps[p->count] = (struct step){ .kind = kind };
        return &p->steps[p->count++];
}

void canned_reply_wait(struct canned_reply *p, int64_t ms)
{
        if (ms > 0)
                add(p, STEP_WAIT)->ms = ms;
}

void canned_reply_progress(struct canned_reply *p, const char *label)
{
        add(p, STEP_PROGRESS)->text = mem_strdup(label);
}

void canned_reply_say(struct canned_reply *p, const char *text, size_t n)
{
        struct step *s = add(p, STEP_SAY);

        s->text = mem_strndup(text, n);
        s->n = n;
}

void canned_reply_say_words(struct canned_reply *p, const char *text, int64_t pause_ms)
{
        for (int words = 0; *text && words < WORDS_MAX; words++) {
                size_t n = strcspn(text, " \n");

                n += strspn(text + n, " \n");
                canned_reply_say(p, text, n);
                text += n;
                if (*text)
                        canned_reply_wait(p, pause_ms);
        }
        if (*text)
                canned_reply_say(p, text, strlen(text));
}

void canned_reply_fail(struct canned_reply *p, enum error_kind kind, const char *notice,
                       const char *record)
{
        struct step *s = add(p, STEP_FAIL);

        s->failure = kind;
        s->text = mem_strdup(notice);
        s->record = mem_strdup(record);
}

void canned_reply_hang(struct canned_reply *p)
{
        add(p, STEP_HANG);
}

void canned_reply_set_whole(struct canned_reply *p)
{
        p->quiet = true;
}

void canned_reply_start(struct canned_reply *p)
{
        timer_start(p->timer, 0);
}

void canned_reply_cancel(struct agent *a, struct turn_run *run)
{
        (void)a;
        canned_reply_free(run->agent_data);
        run->agent_data = NULL;
}
