/*
 * child_ask: what an agent asks before it does something, answered by the policy or a person.
 */
#include <stdlib.h>

#include "agent/child/child_private.h"
#include "base/mem.h"

struct child_asking {
        struct child *child;
        struct policy_gate *gate;
        child_answer_fn *done; /* NULL: the agent no longer wants to know */
        void *arg;
        LIST_ENTRY(child_asking) next;
};

bool child_turn_asks(const struct child_turn *t)
{
        const struct child_asking *k;

        LIST_FOREACH(k, &t->asking, next)
                if (k->done)
                        return true;
        return false;
}

/* Nobody is waited for any more. */
static void go_on(struct child *c)
{
        if (child_turn_asks(c->turn))
                return;
        child_pause_limits(c, false);
        child_steer(c);
}

void child_asks_release(struct child_turn *t)
{
        struct child_asking *k;

        while ((k = LIST_FIRST(&t->asking))) {
                LIST_REMOVE(k, next);
                policy_gate_free(k->gate);
                free(k);
        }
}

/* The turn is the same: its end releases the questions. */
static void on_decided(void *arg, bool allowed, const char *why)
{
        struct child_asking *k = arg;
        struct child *c = k->child;
        child_answer_fn *done = k->done;
        void *done_arg = k->arg;

        LIST_REMOVE(k, next);
        free(k);
        if (!done)
                return;
        done(done_arg, allowed, why);
        if (c->turn)
                go_on(c);
}

void child_ask(struct child *c, const struct child_question *q, child_answer_fn *done, void *arg)
{
        const struct child_conf *conf = c->owner->conf;
        struct turn_run *run = child_run(c);
        bool admins = strcmp(conf->approvers, "admins") == 0;
        struct policy_question question;
        enum policy_decision decision;
        struct child_asking *k;
        char *why = NULL;

        if (!run) {
                done(arg, false, "the turn has ended");
                return;
        }
        question =
                (struct policy_question){ .rules = &conf->policy,
                                          .tool = q->tool,
                                          .arguments = q->arguments,
                                          .files = q->files,
                                          .adapter = run->adapter,
                                          .channel = run->channel,
                                          .cwd = c->place.folder,
                                          .sandbox = conf->sandbox.kind,
                                          .asks = true,
                                          .expires_ms = q->expires_ms,
                                          .title = q->title,
                                          .text = q->text,
                                          .approvers = admins ? APPROVERS_ADMINS : APPROVERS_ASKER,
                                          .admins = q->admins,
                                          .view = c->place.view };
        question.stored = turn_approval_rules(run, &question.stored_count);
        k = mem_zalloc(sizeof(*k));
        k->child = c;
        k->done = done;
        k->arg = arg;
        decision = policy_gate(run, &question, q->call, &why, on_decided, k, &k->gate);
        if (decision == POLICY_ASK) {
                if (!child_turn_asks(c->turn))
                        child_pause_limits(c, true);
                LIST_INSERT_HEAD(&c->turn->asking, k, next);
        } else {
                free(k);
                done(arg, decision == POLICY_ALLOW, why);
        }
        free(why);
}

void child_ask_forget(struct child *c, void *arg)
{
        struct child_asking *k;

        if (!c->turn)
                return;
        LIST_FOREACH(k, &c->turn->asking, next)
                if (k->arg == arg && k->done) {
                        k->done = NULL;
                        go_on(c);
                        return;
                }
}
