#include "agent/builtin/agent_loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "agent/builtin/loop_guard.h"
#include "agent/builtin/user_message.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRIES_MAX       2 /* of a call that broke off */
#define RETRY_BASE_MS     1000
#define RETRY_MAX_MS      60000
#define CONTINUATIONS_MAX 2 /* after the output limit */
#define OUTPUT_MIN        1024
#define WINDOW_SPARE      1000
#define FALLBACK_OUTPUT   8192

/* ---- the end ---- */

static void free_loop(struct agent_loop *l)
{
        timer_free(l->model.timer);
        json_decref(l->model.messages);
        loop_calls_release(l);
        steps_release(&l->steps);
        spending_rows_free(l->spent);
        if (l->turn)
                l->env.parts->turn_free(l->turn);
        free(l->payer);
        free(l);
}

void agent_loop_free_if_over(struct agent_loop *l)
{
        if (l->over && l->pending == 0)
                free_loop(l);
}

/* Frees the loop and ends the turn. */
static void finish(struct agent_loop *l, const struct turn_reply *reply, enum agent_effect effect)
{
        const struct loop_env env = l->env;
        struct turn_run *run = l->run;

        run->agent_data = NULL;
        l->over = true;
        agent_loop_free_if_over(l);
        env.parts->finish(env.agent, run, reply, effect);
}

/* Ends the model's call and all tools. What the call has cost, or 0. */
static int64_t abandon(struct agent_loop *l)
{
        int64_t cost = l->model.call ? l->env.parts->abort(l->model.call) : 0;

        l->model.call = NULL;
        spending_settle(l->env.spending, l->payer, l->model.reserved, cost, clock_wall_ms());
        l->model.reserved = 0;
        timer_free(l->model.timer);
        l->model.timer = NULL;
        loop_calls_cancel(l);
        return cost;
}

struct ending {
        struct turn_reply reply;
        char *text, *error;
        enum agent_effect effect;
};

static void ending_free(struct ending *e)
{
        free(e->text);
        free(e->error);
        free(e);
}

static void on_end_stored(struct agent_loop *l, void *arg)
{
        struct ending *e = arg;

        e->reply.text = e->text;
        e->reply.error = e->error;
        finish(l, &e->reply, e->effect);
        ending_free(e);
}

static void add_end(struct loop_write *w, const char *error)
{
        struct buf members;

        buf_init(&members, 0);
        if (error)
                jsonw_str(&members, "errorMessage", error);
        loop_write_event(w, "agent_end", members.data);
        buf_release(&members);
}

/* error: why the last try failed; NULL: it did not. */
static void add_retry_end(struct loop_write *w, const char *error)
{
        struct buf members;

        buf_init(&members, 0);
        jsonw_bool(&members, "success", !error);
        jsonw_opt(&members, "finalError", error);
        loop_write_event(w, "auto_retry_end", members.data);
        buf_release(&members);
}

/* Journals the end, then ends the turn. Takes text. */
static void end(struct agent_loop *l, enum error_kind kind, char *text, const char *error,
                enum agent_effect effect)
{
        struct ending *e = mem_zalloc(sizeof(*e));
        struct loop_write *w = loop_write_new(l);

        e->reply.kind = kind;
        e->reply.cost_microusd = l->model.unbooked;
        e->reply.usage_line = kind == ERR_NONE && l->env.conf->usage_line;
        e->reply.used_tools = l->totals.started_tool;
        e->text = text;
        e->error = mem_strdup(error);
        e->effect = effect;
        if (l->model.retrying)
                add_retry_end(w, error);
        add_end(w, error);
        l->begun = false;
        if (!loop_write_submit(w, on_end_stored, e))
                ending_free(e);
}

void agent_loop_fail(struct agent_loop *l, enum error_kind kind, const char *notice,
                     const char *error)
{
        enum agent_effect effect = l->totals.started_tool ? EFFECT_STORED : EFFECT_NONE;

        if (kind == ERR_CONFLICT) { /* no longer our turn: nothing can be stored */
                abandon(l);
                finish(l, &(struct turn_reply){ .kind = kind, .error = error }, EFFECT_POSSIBLE);
                return;
        }
        end(l, kind, mem_strdup(notice), error, effect);
}

/* The text of the turn's last answer; yours to free. */
static char *last_text(const struct agent_loop *l)
{
        const struct step *answer;

        steps_next(&l->steps, l->run->id, &answer);
        return answer ? steps_text(answer->body) : mem_strdup("");
}

void agent_loop_stop(struct agent_loop *l, const char *remark)
{
        char *said = last_text(l), *text;

        text = mem_printf("%s%s(%s)", said, *said ? "\n\n" : "", remark);
        log_warn("turn stopped", LOG_S("turn", l->run->key), LOG_S("agent", l->env.name),
                 LOG_S("why", remark));
        free(said);
        end(l, ERR_NONE, text, NULL, EFFECT_POSSIBLE);
}

/* People who spoke to the agent wait for words. */
static bool needs_text(const struct agent_loop *l)
{
        return l->run->mode != MODE_AMBIENT && l->run->mode != MODE_SILENT;
}

static void end_with_answer(struct agent_loop *l)
{
        char *text = last_text(l);

        if (!*text && needs_text(l)) {
                free(text);
                agent_loop_fail(l, ERR_PROTOCOL,
                                "The model gave an empty answer. Please try again.",
                                "the model's answer has no text");
                return;
        }
        end(l, ERR_NONE, text, NULL, EFFECT_POSSIBLE);
}

/* ---- asking the model ---- */

static void ask(struct agent_loop *l);

/* The model's limit, what is left of the window, and what the budget allows. */
static int64_t output_limit(const struct agent_loop *l, int64_t tokens)
{
        const struct model_limits *m = &l->limits;
        int64_t most = l->env.conf->max_tokens > 0 ? l->env.conf->max_tokens : m->output;

        if (most == 0)
                most = FALLBACK_OUTPUT;
        if (m->output > 0 && most > m->output)
                most = m->output;
        if (m->window > 0 && most > m->window - tokens - WINDOW_SPARE)
                most = m->window - tokens - WINDOW_SPARE;
        return most < OUTPUT_MIN ? OUTPUT_MIN : most;
}

bool agent_loop_reserve(struct agent_loop *l, int64_t tokens, int64_t most)
{
        const struct usage_prices *p = &l->limits.prices;
        const char *what;
        int64_t left = spending_left(l->env.spending, &l->env.conf->budget, l->payer,
                                     l->totals.usage.cost_microusd + l->model.unbooked,
                                     clock_wall_ms(), &what);
        int64_t input = (int64_t)((double)tokens * p->in), affordable;
        char remark[200];

        l->model.max_tokens = most;
        l->model.reserved = 0;
        if (left == INT64_MAX)
                return true;
        affordable = p->out > 0 ? (int64_t)((double)(left - input) / p->out) : INT64_MAX;
        if (left <= input || affordable < OUTPUT_MIN) {
                snprintf(remark, sizeof(remark), "I stopped here: the budget for %s is used up%s.",
                         strcmp(what, "turn") == 0  ? "one turn"
                         : strcmp(what, "day") == 0 ? "today"
                                                    : "you today",
                         strcmp(what, "turn") == 0 ? "" : "; it starts again at midnight UTC");
                agent_loop_stop(l, remark);
                return false;
        }
        if (affordable < l->model.max_tokens)
                l->model.max_tokens = affordable;
        l->model.reserved = input + (int64_t)((double)l->model.max_tokens * p->out);
        spending_reserve(l->env.spending, l->payer, l->model.reserved);
        return true;
}

static void release_call(struct agent_loop *l)
{
        l->model.call = NULL;
        json_decref(l->model.messages);
        l->model.messages = NULL;
}

static void on_text(void *arg, const char *text, size_t n)
{
        struct agent_loop *l = arg;
        struct buf members;

        turn_delta(l->run, text, n);
        l->model.spoke = true;
        buf_init(&members, 0);
        jsonw_open_member(&members, "assistantMessageEvent", '{');
        jsonw_str(&members, "type", "text_delta");
        jsonw_strn(&members, "delta", text, n);
        jsonw_close(&members, '}');
        loop_publish(l, "message_update", members.data);
        buf_release(&members);
}

static void go_on(struct agent_loop *l, void *arg)
{
        (void)arg;
        agent_loop_advance(l);
}

static void nothing(struct agent_loop *l, void *arg)
{
        (void)l;
        (void)arg;
}

static void journal_retry(struct agent_loop *l, unsigned attempt, int64_t wait_ms, const char *why)
{
        struct loop_write *w = loop_write_new(l);
        struct buf members;

        l->model.retrying = true;
        buf_init(&members, 0);
        jsonw_int(&members, "attempt", attempt);
        jsonw_int(&members, "maxAttempts", RETRIES_MAX);
        jsonw_int(&members, "delayMs", wait_ms);
        jsonw_str(&members, "errorMessage", why);
        loop_write_event(w, "auto_retry_start", members.data);
        buf_release(&members);
        loop_write_submit(w, nothing, NULL);
}

static void on_retry(void *arg, int64_t wait_ms, const char *why)
{
        journal_retry(arg, 1, wait_ms, why);
}

static void on_retry_time(void *arg)
{
        agent_loop_advance(arg);
}

/* Streamed text of a call that is made again is no answer. */
static void take_back(struct agent_loop *l)
{
        if (l->model.spoke)
                turn_goes_on(l->run);
        l->model.spoke = false;
}

/* May asking again help? The model's calls have no effects, so it is harmless. */
static bool retry(struct agent_loop *l, const struct llm_failure *f, int64_t retry_after_ms)
{
        int64_t wait = (int64_t)RETRY_BASE_MS << l->model.retries;

        if (f->account || l->model.retries >= RETRIES_MAX ||
            (f->kind != ERR_NET && f->kind != ERR_TIMEOUT && f->kind != ERR_PROTOCOL &&
             f->kind != ERR_LIMIT))
                return false;
        if (retry_after_ms > wait)
                wait = retry_after_ms;
        if (wait > RETRY_MAX_MS)
                return false;
        l->model.retries++;
        journal_retry(l, l->model.retries, wait, f->text);
        if (!l->model.timer)
                l->model.timer = timer_new(l->env.loop, on_retry_time, l);
        timer_start(l->model.timer, wait);
        return true;
}

static void on_failure(struct agent_loop *l, const struct model_answer *answer)
{
        const struct llm_failure *f = answer->failure;

        l->model.unbooked += answer->cost_microusd;
        take_back(l);
        if (f->too_long && !(f->too_large && !l->model.plain) && l->env.conf->compacts) {
                loop_compact(l, "overflow");
                return;
        }
        if ((f->too_large || (f->kind == ERR_INVALID && !f->too_long)) && !l->model.plain) {
                /* images or thinking that the service does not take must not block for ever */
                l->model.plain = true;
                log_warn("the model's service refused a request; asking without images and "
                         "thinking",
                         LOG_S("turn", l->run->key), LOG_S("why", f->text));
                agent_loop_advance(l);
                return;
        }
        if (retry(l, f, answer->retry_after_ms))
                return;
        agent_loop_fail(l, f->kind, answer->notice, answer->record ? answer->record : f->text);
}

/* Calls of an answer that was cut off must not run: their arguments may be whole and yet wrong. */
static void drop_calls(json_t *message)
{
        json_t *content = json_object_get(message, "content"), *block;
        size_t i = 0;

        while ((block = json_array_get(content, i))) {
                if (strcmp(json_str(block, "type", ""), "toolCall") == 0)
                        json_array_remove(content, i);
                else
                        i++;
        }
}

static bool is_used(const struct agent_loop *l, const json_t *message, const json_t *call)
{
        const char *id = json_str(call, "id", "");
        const json_t *other;

        for (size_t i = 0; i < l->steps.count; i++)
                for (unsigned k = 0; l->steps.items[i].kind == STEP_ASSISTANT &&
                                     (other = steps_call(l->steps.items[i].body, k));
                     k++)
                        if (strcmp(json_str(other, "id", ""), id) == 0)
                                return true;
        for (unsigned k = 0; (other = steps_call(message, k)) && other != call; k++)
                if (strcmp(json_str(other, "id", ""), id) == 0)
                        return true;
        return *id == '\0';
}

/* Some servers number the calls of each answer from 0, and services refuse ids that repeat. */
static void make_ids_unique(const struct agent_loop *l, json_t *message)
{
        const json_t *call;

        for (unsigned k = 0; (call = steps_call(message, k)); k++) {
                const char *id = json_str(call, "id", "");
                char *other;

                if (!is_used(l, message, call))
                        continue;
                other = mem_printf("%.24s_%lld_%lld_%u", *id ? id : "call", (long long)l->run->id,
                                   (long long)l->totals.rounds, k);
                json_object_set_new((json_t *)call, "id", json_string(other));
                free(other);
        }
}

/* Notes that the loop added to the turn, see user_message_note. */
static unsigned notes(const struct agent_loop *l, const char *origin)
{
        unsigned n = 0;

        for (size_t i = 0; i < l->steps.count; i++)
                n += l->steps.items[i].turn == l->run->id &&
                     strcmp(json_str(l->steps.items[i].body, "origin", ""), origin) == 0;
        return n;
}

/* Why the model is asked again although it wants no tool; NULL: it is not. */
static json_t *continuation(const struct agent_loop *l, const struct model_answer *answer,
                            const char *text)
{
        if (answer->stop == MODEL_LENGTH)
                return user_message_note("cut",
                                         "[Your answer was cut off by the output limit, and tool "
                                         "calls in it were not run. Go on where it ends; write "
                                         "large files in several parts.]");
        if (answer->stop != MODEL_PAUSED && !*text && needs_text(l) && notes(l, "empty") == 0)
                return user_message_note("empty", "[Your answer was empty, so people saw nothing. "
                                                  "Answer them in words.]");
        return NULL;
}

static void add_answer_events(const struct agent_loop *l, struct loop_write *w,
                              const json_t *message, bool calls, bool goes_on)
{
        struct buf members;

        if (l->model.retrying)
                add_retry_end(w, NULL);
        buf_init(&members, 0);
        loop_event_message(&members, "message", message);
        loop_write_event(w, "message_end", members.data);
        buf_release(&members);
        if (!calls)
                loop_write_event(w, "turn_end", NULL);
        if (goes_on)
                loop_write_event(w, "turn_start", NULL);
}

static void store_answer(struct agent_loop *l, const struct model_answer *answer)
{
        json_t *message = json_deep_copy(answer->message), *note;
        struct loop_write *w = loop_write_new(l);
        bool cut = answer->stop == MODEL_LENGTH, paused = answer->stop == MODEL_PAUSED;
        bool calls;
        char *text;

        if (cut)
                drop_calls(message);
        make_ids_unique(l, message);
        if (paused)
                json_object_set_new(message, "stopReason", json_string("pause"));
        calls = steps_call(message, 0) != NULL;
        text = steps_text(message);
        note = calls ? NULL : continuation(l, answer, text);
        add_answer_events(l, w, message, calls, note || (paused && !calls));
        if (cut && !*text && !calls) /* nothing is left of it that could be sent again */
                json_decref(message);
        else
                loop_write_row(w, &(struct loop_row){ .kind = STEP_ASSISTANT,
                                                      .body = message,
                                                      .cost_microusd = answer->cost_microusd +
                                                                       l->model.unbooked });
        free(text);
        if (note)
                loop_write_row(w, &(struct loop_row){ .kind = STEP_USER, .body = note });
        l->model.unbooked = 0;
        l->model.retries = 0;
        l->model.retrying = false;
        if (calls || note || paused)
                take_back(l);
        l->model.spoke = false;
        loop_write_submit(w, go_on, NULL);
}

static void on_done(void *arg, const struct model_answer *answer)
{
        struct agent_loop *l = arg;

        release_call(l);
        spending_settle(l->env.spending, l->payer, l->model.reserved, answer->cost_microusd,
                        clock_wall_ms());
        l->model.reserved = 0;
        fault_point("agent.model_answered");
        if (answer->failure) {
                on_failure(l, answer);
        } else if (answer->stop == MODEL_FULL) {
                l->model.unbooked += answer->cost_microusd;
                take_back(l);
                if (l->env.conf->compacts)
                        loop_compact(l, "overflow");
                else
                        agent_loop_stop(l, "The model's window is full, and compaction.enabled is "
                                           "off. /new begins a new conversation.");
        } else if (answer->stop == MODEL_REFUSED) {
                /* not stored: services ask to leave a refused answer out */
                l->model.unbooked += answer->cost_microusd;
                agent_loop_fail(l, ERR_INVALID, "The model declined to answer this.",
                                "the model or its service refused to answer");
        } else if (answer->stop == MODEL_LENGTH && notes(l, "cut") >= CONTINUATIONS_MAX) {
                l->model.unbooked += answer->cost_microusd;
                agent_loop_stop(l, "The answer reached the model's output limit three times, so I "
                                   "stopped.");
        } else {
                store_answer(l, answer);
        }
}

static void ask(struct agent_loop *l)
{
        static const struct model_handlers handlers = { .on_text = on_text,
                                                        .on_retry = on_retry,
                                                        .on_done = on_done };
        struct error err = { 0 };

        l->model.messages = steps_messages(&l->steps, l->model.plain);
        if (model_check(l->model.messages, &err) < 0) { /* a bug of ours: say so before they do */
                release_call(l);
                spending_settle(l->env.spending, l->payer, l->model.reserved, 0, clock_wall_ms());
                l->model.reserved = 0;
                agent_loop_fail(l, ERR_INTERNAL,
                                "This conversation cannot be sent to the model. /new begins a new "
                                "one.",
                                err.text);
                return;
        }
        snprintf(l->model.cache_key, sizeof(l->model.cache_key), "conv-%" PRId64,
                 l->run->conversation);
        l->model.request = (struct model_request){
                .system = l->env.parts->system(l->turn),
                .messages = l->model.messages,
                .tools = l->env.parts->tools(l->turn),
                .max_tokens = l->model.max_tokens,
                .thinking = l->model.plain ? THINKING_OFF : l->env.conf->thinking,
                .cache_key = l->model.cache_key,
                .run = l->run,
        };
        fault_point("agent.before_model");
        loop_publish(l, "message_start", "\"message\":{\"role\":\"assistant\",\"content\":[]}");
        l->model.call = l->env.parts->ask(l->env.agent, &l->model.request, &handlers, l);
}

static void prepare_ask(struct agent_loop *l)
{
        const struct loop_conf *conf = l->env.conf;
        const char *circles;
        char remark[200];
        int64_t tokens;

        if (loop_write_steer(l, go_on))
                return;
        circles = conf->guard ? loop_guard_verdict(&l->steps, l->run->id) : NULL;
        if (circles || l->totals.rounds >= conf->rounds) {
                snprintf(remark, sizeof(remark), "I stopped the agent: %s.",
                         circles ? circles : "it needed too many rounds (limits.rounds)");
                agent_loop_stop(l, remark);
                return;
        }
        tokens = loop_tokens(l);
        if (conf->compacts && l->limits.window > 0 &&
            tokens > l->limits.window - conf->reserve_tokens) {
                loop_compact(l, "threshold");
                return;
        }
        if (agent_loop_reserve(l, tokens, output_limit(l, tokens)))
                ask(l);
}

/* ---- steps ---- */

static void begin(struct agent_loop *l)
{
        const struct turn_run *run = l->run;
        json_t *message = user_message(run->inputs, run->input_count, run->inputs[0]->sender_id,
                                       l->limits.images);
        int64_t last_ms = l->steps.count > 0 ? l->steps.items[l->steps.count - 1].time_ms : 0;
        struct loop_write *w = loop_write_new(l);
        struct buf members;

        if (l->steps.count == 0 && l->env.parts->begins)
                l->env.parts->begins(l->turn);
        user_message_add_history(message, run, last_ms);
        loop_write_event(w, "agent_start", NULL);
        loop_write_event(w, "turn_start", NULL);
        buf_init(&members, 0);
        loop_event_message(&members, "message", message);
        loop_write_event(w, "message_end", members.data);
        buf_release(&members);
        loop_write_row(w, &(struct loop_row){ .kind = STEP_USER, .body = message });
        loop_write_submit(w, go_on, NULL);
}

void agent_loop_advance(struct agent_loop *l)
{
        const struct step *answer;

        l->begun = true;
        switch (steps_next(&l->steps, l->run->id, &answer)) {
        case NEXT_BEGIN:
                begin(l);
                break;
        case NEXT_CALLS:
                loop_calls_begin(l, answer);
                break;
        case NEXT_ASK:
                prepare_ask(l);
                break;
        case NEXT_END:
                end_with_answer(l);
                break;
        }
}

/* ---- beginning ---- */

static int read_steps(struct store_tx *tx, void *arg, struct error *err)
{
        struct agent_loop *l = arg;
        const struct turn_run *run = l->run;
        struct steps_query q = { .conversation = run->conversation,
                                 .turn = run->id,
                                 .from = run->reset_turn,
                                 .session = run->session,
                                 .dir = l->env.dir };

        if (steps_read(tx, &q, &l->steps, &l->totals, err) < 0 ||
            (l->reads_spending &&
             spending_read(tx, l->env.name, clock_wall_ms(), &l->spent, err) < 0))
                return -1;
        return l->env.parts->turn_read ? l->env.parts->turn_read(l->turn, tx, err) : 0;
}

static void on_open(void *arg, const struct error *err)
{
        struct agent_loop *l = arg;

        if (err)
                agent_loop_fail(l, err->kind,
                                "The agent's workspace cannot be used. Please tell the operator.",
                                err->text);
        else
                agent_loop_advance(l);
}

static void on_read(void *arg, const struct error *err)
{
        struct agent_loop *l = arg;

        l->pending--;
        if (l->over) {
                agent_loop_free_if_over(l);
                return;
        }
        if (err) {
                finish(l,
                       &(struct turn_reply){ .kind = err->kind,
                                             .text = "I cannot read this conversation right now. "
                                                     "Please try again later.",
                                             .error = err->text },
                       EFFECT_NONE);
                return;
        }
        spending_load(l->env.spending, l->spent, clock_wall_ms());
        l->spent = NULL;
        turn_set_usage(l->run, &l->totals.usage);
        l->env.parts->limits(l->env.agent, &l->limits);
        l->env.parts->turn_open(l->turn, &l->limits, on_open, l);
}

struct agent_loop *agent_loop_start(const struct loop_env *env, struct turn_run *run)
{
        struct agent_loop *l = mem_zalloc(sizeof(*l));

        l->env = *env;
        l->run = run;
        l->turn = env->parts->turn_new(env->agent, run);
        l->payer = env->parts->payer ? env->parts->payer(env->agent, run) : NULL;
        l->pending = 1;
        l->reads_spending = !spending_is_loaded(env->spending);
        turn_load(run, read_steps, on_read, l);
        return l;
}

void agent_loop_cancel(struct agent_loop *l)
{
        int64_t cost = abandon(l);
        struct loop_write *w;

        if (l->run->stopped && l->begun) {
                w = loop_write_new(l);
                add_end(w, l->run->stopped);
                loop_write_submit(w, NULL, NULL);
        }
        if (l->run->stopped) {
                l->totals.usage.cost_microusd += cost + l->model.unbooked;
                turn_set_usage(l->run, &l->totals.usage);
        }
        l->over = true;
        agent_loop_free_if_over(l);
}
