/*
 * agent_loop_compact: when to compact, and the call to the model that does it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "agent/builtin/compaction.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

#define FREED_MIN    20 /* percent; less is a failure */
#define FAILURES_MAX 2

static int64_t text_tokens(const char *text)
{
        return text ? (int64_t)(strlen(text) * 2 / 7) : 0;
}

static int64_t estimate(const struct steps *s)
{
        json_t *messages = steps_messages(s, false);
        int64_t tokens = model_estimate(messages);

        json_decref(messages);
        return tokens;
}

/* As the service counted the last answer, and an estimate of what was added since. */
int64_t loop_tokens(const struct agent_loop *l)
{
        const struct step *compaction = steps_compaction(&l->steps);
        json_t *messages;
        int64_t tokens;

        for (size_t i = l->steps.count; i > 0; i--) {
                const struct step *step = &l->steps.items[i - 1];
                const json_t *u = json_object_get(step->body, "usage");
                int64_t counted;

                if (compaction && step->id < compaction->id)
                        break; /* it counted what is summarised now */
                if (step->kind != STEP_ASSISTANT)
                        continue;
                counted = json_int(u, "input", 0) + json_int(u, "cacheRead", 0) +
                          json_int(u, "cacheWrite", 0) + json_int(u, "output", 0);
                if (counted == 0)
                        break;
                for (size_t k = i; k < l->steps.count; k++) {
                        const struct step *later = &l->steps.items[k];

                        if (later->kind == STEP_TOOL_DONE || later->kind == STEP_USER) {
                                json_t *one = json_pack("[O]", later->body);

                                counted += model_estimate(one);
                                json_decref(one);
                        }
                }
                return counted;
        }
        messages = steps_messages(&l->steps, false);
        tokens = model_estimate_request(
                &(struct model_request){ .system = l->env.parts->system(l->turn),
                                         .messages = messages,
                                         .tools = l->env.parts->tools(l->turn) });
        json_decref(messages);
        return tokens;
}

static void end_event(struct loop_write *w, bool done, const char *why)
{
        struct buf members;

        buf_init(&members, 0);
        jsonw_str(&members, "reason", why);
        jsonw_bool(&members, "aborted", !done);
        loop_write_event(w, "auto_compaction_end", members.data);
        buf_release(&members);
}

static void go_on(struct agent_loop *l, void *arg)
{
        (void)arg;
        agent_loop_advance(l);
}

static void on_compacted(struct agent_loop *l, void *arg)
{
        (void)arg;
        fault_point("agent.compacted");
        compaction_apply(&l->steps);
        agent_loop_advance(l);
}

static void failed(struct agent_loop *l, const char *why)
{
        struct loop_write *w;

        log_warn("compaction failed", LOG_S("turn", l->run->key), LOG_S("why", why));
        if (++l->compaction.failures >= FAILURES_MAX) {
                agent_loop_stop(l, "This conversation no longer fits into the model's window and "
                                   "could not be summarised. /new begins a new one; nothing that "
                                   "was said is lost.");
                return;
        }
        w = loop_write_new(l);
        end_event(w, false, why);
        loop_write_submit(w, go_on, NULL);
}

/* ---- the call ---- */

static json_t *usage_json(const struct usage *u)
{
        int64_t input = usage_tokens_in(u) - u->cached - u->written;

        return json_pack("{s:I, s:I, s:I, s:I}", "input", (json_int_t)(input > 0 ? input : 0),
                         "output", (json_int_t)u->out, "cacheRead", (json_int_t)u->cached,
                         "cacheWrite", (json_int_t)u->written);
}

static bool frees_enough(const struct agent_loop *l, const json_t *body)
{
        struct steps after = { 0 };
        int64_t tokens;

        for (size_t i = l->compaction.cut; i < l->steps.count; i++) {
                struct step copy = l->steps.items[i];

                if (copy.kind == STEP_COMPACTION)
                        continue;
                copy.call = mem_strdup(copy.call);
                json_incref(copy.body);
                steps_add(&after, &copy);
        }
        tokens = estimate(&after) + text_tokens(json_str(body, "summary", "")) +
                 text_tokens(json_str(body, "lastUser", ""));
        steps_release(&after);
        return tokens * 100 <= estimate(&l->steps) * (100 - FREED_MIN);
}

static void on_summary(void *arg, const struct model_answer *answer)
{
        struct agent_loop *l = arg;
        int64_t now_ms = clock_wall_ms();
        char *summary = answer->message ? steps_text(answer->message) : mem_strdup("");
        struct loop_write *w;
        json_t *body = NULL;
        int64_t cost = answer->cost_microusd;

        l->model.call = NULL;
        json_decref(l->model.messages);
        l->model.messages = NULL;
        spending_settle(l->env.spending, l->payer, l->model.reserved, cost, now_ms);
        l->model.reserved = 0;
        log_redact(summary);
        if (!answer->failure && *summary && answer->stop == MODEL_ENDED)
                body = compaction_body(&l->steps, l->compaction.cut, l->run->id, summary,
                                       l->compaction.tokens);
        free(summary);
        if (!body || !frees_enough(l, body)) {
                json_decref(body);
                l->model.unbooked += cost;
                failed(l, answer->failure ? answer->failure->text
                                          : "the summary is empty, incomplete or frees too little");
                return;
        }
        json_object_set_new(body, "usage", usage_json(&answer->usage));
        w = loop_write_new(l);
        loop_write_row(w, &(struct loop_row){ .kind = STEP_COMPACTION,
                                              .body = body,
                                              .cost_microusd = cost + l->model.unbooked,
                                              .first_kept = l->steps.items[l->compaction.cut].id });
        l->model.unbooked = 0;
        end_event(w, true, l->compaction.reason);
        loop_write_submit(w, on_compacted, NULL);
}

static void ask_summary(struct agent_loop *l, void *arg)
{
        static const struct model_handlers handlers = { .on_done = on_summary };

        (void)arg;
        l->model.request = (struct model_request){ .system = compaction_system,
                                                   .messages = l->model.messages,
                                                   .max_tokens = l->model.max_tokens,
                                                   .run = l->run,
                                                   .no_cache = true };
        l->model.call = l->env.parts->ask(l->env.agent, &l->model.request, &handlers, l);
}

/* False: the budget does not allow the call, and the turn ends. */
static bool prepare_summary(struct agent_loop *l)
{
        const struct loop_conf *conf = l->env.conf;
        int64_t output = conf->reserve_tokens * 4 / 5;
        int64_t room = l->limits.window - conf->reserve_tokens * 2;

        if (l->limits.output > 0 && output > l->limits.output)
                output = l->limits.output;
        json_decref(l->model.messages);
        l->model.messages =
                compaction_request(&l->steps, l->compaction.cut, room > 4096 ? room : 4096);
        return agent_loop_reserve(l, model_estimate(l->model.messages), output);
}

void loop_compact(struct agent_loop *l, const char *reason)
{
        int64_t keep = l->env.conf->keep_tokens;
        struct loop_write *w;
        struct buf members;

        l->compaction.reason = reason;
        l->compaction.cut = 0;
        /* a service that says the window is full must be believed, whatever we estimate */
        for (; l->compaction.cut == 0 && keep >= 500; keep /= 2)
                l->compaction.cut = compaction_cut(&l->steps, keep);
        if (l->compaction.cut == 0) {
                l->compaction.failures = FAILURES_MAX;
                failed(l, "there is nothing to summarise");
                return;
        }
        if (!prepare_summary(l))
                return;
        l->compaction.tokens = loop_tokens(l);
        turn_progress(l->run, "summarising the conversation");
        w = loop_write_new(l);
        buf_init(&members, 0);
        jsonw_str(&members, "reason", reason);
        jsonw_int(&members, "tokensBefore", l->compaction.tokens);
        loop_write_event(w, "auto_compaction_start", members.data);
        buf_release(&members);
        loop_write_submit(w, ask_summary, NULL);
}
