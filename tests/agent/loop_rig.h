/*
 * loop_rig: a turn of the built-in agent on a real road, with a scripted model and two tools.
 *
 *     peek   only reads
 *     poke   has effects
 *
 * Both answer "did N" unless the test says otherwise. A script is a list of answers of the model,
 * taken one after the other; it goes on after a restart. Every request is checked as a service
 * would check it.
 */
#ifndef TESTS_AGENT_LOOP_RIG_H
#define TESTS_AGENT_LOOP_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "agent/builtin/agent_loop.h"
#include "agent/builtin/steps.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define SCRIPT_MAX 80

/* An answer of the model. */
struct said {
        const char *text;
        const char *calls; /* names: "peek poke"; arguments {"n": K} are counted */
        enum model_stop stop;
        enum error_kind fails;
        bool too_long;
        bool repeats; /* the script stays here */
        bool hangs;   /* until the turn is cancelled */
        bool cut;     /* the last call is incomplete */
        int64_t cost, tokens;
};

struct model_call {
        struct loop_rig *rig;
        const struct said *said;
        struct model_handlers h;
        void *arg;
        bool aborted;
};

struct loop_rig {
        struct rig *road;
        struct loop_conf conf;
        struct loop_env env;
        struct model_limits limits;
        struct spending *spending;
        const struct said *script;
        unsigned at, requests, aborted;
        struct buf last; /* the last request's messages */
        struct model_call *open;
        int64_t next_argument; /* 0: every call has other arguments, else this one */

        size_t schema_bytes; /* of the tools that the model is shown */
        unsigned started, cancelled, open_tools;
        struct map runs; /* of "poke" by call id */
        bool tools_hang, tools_fail, tools_read_outside;
        struct tool_call *last_tool;
        unsigned done; /* turns */
        bool killed;   /* this process stores nothing further */
        enum policy_decision verdict;
        bool untrusted;
        unsigned asked; /* people */
        policy_gate_fn *decided;
        void *decided_arg;
        struct policy_gate *gate;
        enum agent_effect effect;
        struct model_request request;
};

static inline struct loop_rig *rig_of(void *agent)
{
        return agent;
}

/* ---- the model ---- */

static inline json_t *make_message(struct loop_rig *r, const struct said *said)
{
        json_t *content = json_array();
        char *calls = mem_strdup(said->calls ? said->calls : ""), *rest = NULL;
        int i = 0;

        if (said->text)
                json_array_append_new(content,
                                      json_pack("{s:s, s:s}", "type", "text", "text", said->text));
        for (char *name = strtok_r(calls, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
                char id[40];
                json_int_t n = r->next_argument ? r->next_argument : (json_int_t)r->at * 10 + i;
                json_t *block;

                snprintf(id, sizeof(id), "call_%u_%d", r->at, i++);
                block = json_pack("{s:s, s:s, s:s, s:{s:I, s:s}}", "type", "toolCall", "id", id,
                                  "name", name, "arguments", "n", n, "label", "trying");
                if (said->cut && !strchr(name + 1, ' '))
                        json_object_set_new(block, "incomplete", json_true());
                json_array_append_new(content, block);
        }
        free(calls);
        return json_pack("{s:s, s:o, s:{s:I, s:I}, s:s}", "role", "assistant", "content", content,
                         "usage", "input", (json_int_t)said->tokens, "output", (json_int_t)1,
                         "stopReason", "stop");
}

static inline void on_answer(void *arg)
{
        struct model_call *c = arg;
        struct loop_rig *r = c->rig;
        struct llm_failure failure = { .kind = c->said->fails, .text = "the test" };
        struct model_answer answer = { .stop = c->said->stop,
                                       .cost_microusd = c->said->cost,
                                       .retry_after_ms = -1 };

        if (c->aborted) {
                free(c);
                return;
        }
        r->open = NULL;
        failure.too_long = c->said->too_long;
        if (c->said->fails != ERR_NONE || failure.too_long)
                answer.failure = &failure;
        else
                answer.message = make_message(r, c->said);
        answer.usage.in = c->said->tokens;
        if (c->said->calls && answer.stop == MODEL_ENDED)
                answer.stop = MODEL_CALLS;
        if (c->said->text && c->h.on_text)
                c->h.on_text(c->arg, c->said->text, strlen(c->said->text));
        c->h.on_done(c->arg, &answer);
        json_decref(answer.message);
        free(c);
}

static inline struct model_call *fake_ask(void *agent, const struct model_request *q,
                                          const struct model_handlers *h, void *arg)
{
        struct loop_rig *r = rig_of(agent);
        struct model_call *c = mem_zalloc(sizeof(*c));
        struct error err = { 0 };
        char *text = json_text(q->messages);

        if (model_check(q->messages, &err) < 0)
                fail_msg("%s in %s", err.text, text);
        buf_clear(&r->last);
        buf_addstr(&r->last, text);
        free(text);
        r->request = *q;
        r->requests++;
        c->rig = r;
        c->said = &r->script[r->at];
        c->h = *h;
        c->arg = arg;
        r->open = c;
        if (c->said->hangs)
                return c;
        r->at += !c->said->repeats;
        loop_defer(r->road->loop, on_answer, c);
        return c;
}

static inline int64_t fake_abort(struct model_call *c)
{
        int64_t cost = c->said->cost;

        c->rig->aborted++;
        c->rig->open = NULL;
        c->aborted = true;
        if (c->said->hangs)
                free(c);
        return cost;
}

static inline void fake_limits(void *agent, struct model_limits *out)
{
        *out = rig_of(agent)->limits;
}

/* ---- the tools ---- */

static inline void count_run(struct loop_rig *r, const char *id)
{
        map_put(&r->runs, id, (void *)((intptr_t)map_get(&r->runs, id) + 1));
}

static inline void finish_tool(struct tool_call *c, bool is_error, const char *text)
{
        struct loop_rig *r = (struct loop_rig *)c->scope->agent;
        struct tool_result result = { .is_error = is_error,
                                      .untrusted = r->tools_read_outside,
                                      .content = json_pack("[{s:s, s:s}]", "type", "text", "text",
                                                           text) };

        c->on_done(c, &result);
}

static inline void fake_start(struct tool_call *c)
{
        struct loop_rig *r = (struct loop_rig *)c->scope->agent;
        char text[64], row[60];

        /* it may have effects from now on, so a crash must not forget that it started */
        snprintf(row, sizeof(row), "<%s>", c->id);
        assert_non_null(strstr(rig_list(r->road, "'<' || call || '>' FROM steps WHERE kind = "
                                                 "'tool_started' ORDER BY id DESC LIMIT 64"),
                               row));
        r->started++;
        r->open_tools++;
        if (strcmp(c->tool->name, "poke") == 0)
                count_run(r, c->id);
        r->last_tool = c;
        if (r->tools_hang)
                return;
        r->open_tools--;
        snprintf(text, sizeof(text), "did %lld",
                 (long long)json_integer_value(json_object_get(c->arguments, "n")));
        finish_tool(c, r->tools_fail, r->tools_fail ? "it does not work" : text);
}

static inline void fake_cancel(struct tool_call *c)
{
        struct loop_rig *r = (struct loop_rig *)c->scope->agent;

        r->cancelled++;
        r->open_tools--;
}

#define TOOL_SCHEMA                                                                 \
        "{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, " \
        "\"required\": [\"n\"]}"
static const struct tool peek = { .name = "peek",
                                  .description = "reads",
                                  .parameters = TOOL_SCHEMA,
                                  .flags = TOOL_READ_ONLY,
                                  .start = fake_start,
                                  .cancel = fake_cancel };
static const struct tool poke = { .name = "poke",
                                  .description = "changes",
                                  .parameters = TOOL_SCHEMA,
                                  .start = fake_start,
                                  .cancel = fake_cancel };

/* ---- the turn ---- */

struct fake_scope {
        struct loop_rig *rig;
        struct tool_scope scope;
        json_t *tools;
};

static inline void *fake_turn_new(void *agent, struct turn_run *run)
{
        struct fake_scope *t = mem_zalloc(sizeof(*t));

        t->rig = agent;
        t->scope.agent = agent;
        t->scope.run = run;
        t->tools = json_array();
        if (t->rig->schema_bytes) {
                struct buf text;

                buf_init(&text, 0);
                for (size_t i = 0; i < t->rig->schema_bytes; i++)
                        buf_addch(&text, 'x');
                json_array_append_new(t->tools, json_pack("{s:s, s:s}", "name", "peek",
                                                          "description", text.data));
                buf_release(&text);
        }
        return t;
}

static inline void fake_turn_open(void *turn, const struct model_limits *limits,
                                  void (*done)(void *arg, const struct error *err), void *arg)
{
        (void)turn;
        (void)limits;
        done(arg, NULL);
}

static inline void fake_turn_free(void *turn)
{
        struct fake_scope *t = turn;

        json_decref(t->tools);
        free(t);
}

static inline const char *fake_system(void *turn)
{
        (void)turn;
        return "be helpful";
}

static inline json_t *fake_tools(void *turn)
{
        return ((struct fake_scope *)turn)->tools;
}

static inline const struct tool_scope *fake_scope(void *turn)
{
        return &((struct fake_scope *)turn)->scope;
}

static inline const struct tool *fake_find(void *turn, const char *name)
{
        (void)turn;
        if (strcmp(name, "peek") == 0)
                return &peek;
        return strcmp(name, "poke") == 0 ? &poke : NULL;
}

struct policy_gate {
        struct loop_rig *rig;
};

static inline enum policy_decision fake_gate(void *turn, const struct tool *t,
                                             const json_t *arguments, const char *call,
                                             bool untrusted, char **why, policy_gate_fn *done,
                                             void *arg, struct policy_gate **gate)
{
        struct loop_rig *r = ((struct fake_scope *)turn)->rig;

        (void)t;
        (void)arguments;
        (void)call;
        r->untrusted = untrusted;
        if (r->verdict == POLICY_DENY)
                *why = mem_strdup("not allowed by the test");
        if (r->verdict != POLICY_ASK)
                return r->verdict;
        *gate = mem_zalloc(sizeof(**gate));
        r->gate = *gate;
        r->asked++;
        r->decided = done;
        r->decided_arg = arg;
        return POLICY_ASK;
}

static inline void fake_gate_free(struct policy_gate *gate)
{
        free(gate);
}

static inline void decide(struct loop_rig *r, bool allowed, const char *why)
{
        free(r->gate);
        r->decided(r->decided_arg, allowed, why);
}

static inline char *fake_payer(void *agent, const struct turn_run *run)
{
        (void)agent;
        return mem_strdup(run->inputs[0]->sender_id);
}

static inline void fake_finish(void *agent, struct turn_run *run, const struct turn_reply *reply,
                               enum agent_effect effect)
{
        struct loop_rig *r = rig_of(agent);

        r->done++;
        r->effect = effect;
        turn_finish(run, reply);
}

static const struct loop_parts fake_parts = { .ask = fake_ask,
                                              .abort = fake_abort,
                                              .limits = fake_limits,
                                              .finish = fake_finish,
                                              .turn_new = fake_turn_new,
                                              .turn_open = fake_turn_open,
                                              .turn_free = fake_turn_free,
                                              .system = fake_system,
                                              .tools = fake_tools,
                                              .scope = fake_scope,
                                              .find_tool = fake_find,
                                              .gate = fake_gate,
                                              .gate_free = fake_gate_free,
                                              .payer = fake_payer };

static inline void start_loop(struct rig *g, struct turn_run *run)
{
        struct loop_rig *r = g->test;

        run->agent_data = agent_loop_start(&r->env, run);
}

static inline void cancel_loop(struct rig *g, struct turn_run *run)
{
        (void)g;
        if (run->agent_data)
                agent_loop_cancel(run->agent_data);
}

static inline struct loop_rig *loop_rig_new(const struct said *script)
{
        struct loop_rig *r = mem_zalloc(sizeof(*r));

        r->road = rig_new();
        r->road->auto_send = true;
        r->road->test = r;
        r->road->starts = start_loop;
        r->road->cancels = cancel_loop;
        r->script = script;
        r->conf = (struct loop_conf){ .rounds = 50,
                                      .parallel = 8,
                                      .guard = true,
                                      .compacts = true,
                                      .reserve_tokens = 16384,
                                      .keep_tokens = 20000 };
        r->limits = (struct model_limits){ .window = 200000, .output = 8192, .images = true };
        r->spending = spending_new();
        map_init(&r->runs);
        buf_init(&r->last, 0);
        r->env = (struct loop_env){ .parts = &fake_parts,
                                    .agent = r,
                                    .name = "steps",
                                    .dir = r->road->dir,
                                    .loop = r->road->loop,
                                    .conf = &r->conf,
                                    .spending = r->spending };
        return r;
}

static inline void loop_rig_free(struct loop_rig *r)
{
        rig_free(r->road);
        spending_free(r->spending);
        map_release(&r->runs);
        buf_release(&r->last);
        free(r);
}

/* As after a crash. */
static inline void loop_rig_restart(struct loop_rig *r)
{
        rig_restart(r->road);
        spending_free(r->spending);
        r->env.spending = r->spending = spending_new();
        r->open_tools = 0;
}

static inline void loop_rig_say(struct loop_rig *r, const char *text)
{
        rig_say(r->road, "x", "c", "steps", text, NULL);
}

#endif
