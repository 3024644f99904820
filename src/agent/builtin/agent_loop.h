/*
 * agent_loop: a turn of the built-in agent: ask the model, run the tools it wants, ask again, until
 * it has answered.
 *
 *     user ──► (model) ──► assistant ──► tool_started ──► tool_done ──► (model) ──► assistant
 *
 * Each step is a row before the next is taken, and what is next follows from the rows alone
 * (steps.h): a turn that goes on after a crash takes the same path as a new one. A call that was
 * under way is answered as interrupted, and never run again unless its tool only reads.
 */
#ifndef AGENT_BUILTIN_AGENT_LOOP_H
#define AGENT_BUILTIN_AGENT_LOOP_H

#include "agent/agent.h"
#include "agent/builtin/spending.h"
#include "agent/llm/model.h"
#include "agent/policy/policy.h"
#include "agent/tools/tool.h"

struct loop_conf {
        enum model_thinking thinking;
        int64_t max_tokens; /* 0: the model's */
        int64_t rounds;     /* answers of the model in one turn */
        int64_t parallel;   /* tools at a time */
        bool guard;         /* stop turns that go round in circles */
        bool usage_line;    /* below answers */
        bool compacts;
        int64_t reserve_tokens, keep_tokens; /* of compaction */
        struct spending_limits budget;
};

/* The parts of the agent that the loop works with. `agent` and `turn` are those of its owner. */
struct loop_parts {
        struct model_call *(*ask)(void *agent, const struct model_request *q,
                                  const struct model_handlers *h, void *arg);
        int64_t (*abort)(struct model_call *c); /* what it has cost */
        void (*limits)(void *agent, struct model_limits *out);
        /* Ends the turn; see agent_finish. */
        void (*finish)(void *agent, struct turn_run *run, const struct turn_reply *reply,
                       enum agent_effect effect);

        void *(*turn_new)(void *agent, struct turn_run *run);
        /* In a store function, before turn_open; may be NULL. */
        int (*turn_read)(void *turn, struct store_tx *tx, struct error *err);
        /* Calls done later, unless turn_free is called before. err NULL: it is open. */
        void (*turn_open)(void *turn, const struct model_limits *limits,
                          void (*done)(void *arg, const struct error *err), void *arg);
        void (*turn_free)(void *turn); /* also if it is not open */
        /* The conversation begins: nothing of an earlier one is needed. May be NULL. */
        void (*begins)(void *turn);
        /* Borrowed from the turn, equal for all calls. */
        const char *(*system)(void *turn);
        json_t *(*tools)(void *turn);
        const struct tool_scope *(*scope)(void *turn);
        const struct tool *(*find_tool)(void *turn, const char *name);
        /*
         * May the call run? As policy_gate (policy/policy.h): POLICY_ALLOW; POLICY_DENY with *why,
         * yours to free; or POLICY_ASK, then done follows. untrusted: what the model saw may hold
         * untrusted text. NULL: all may run.
         */
        enum policy_decision (*gate)(void *turn, const struct tool *t, const json_t *arguments,
                                     const char *call, bool untrusted, char **why,
                                     policy_gate_fn *done, void *arg, struct policy_gate **gate);
        void (*gate_free)(struct policy_gate *gate); /* no done follows */
        /* Who pays: "person-7"; yours to free. NULL: unknown. */
        char *(*payer)(void *agent, const struct turn_run *run);
};

/* Borrowed by its loops. */
struct loop_env {
        const struct loop_parts *parts;
        void *agent;
        const char *name; /* of the agent */
        const char *dir;
        struct loop *loop;
        const struct loop_conf *conf;
        struct spending *spending;
};

struct agent_loop;
/* Ends by parts->finish. */
struct agent_loop *agent_loop_start(const struct loop_env *env, struct turn_run *run);
/*
 * Aborts the model's call and all tools. If people stopped the turn (run->stopped), calls without a
 * result are answered so, and the turn's end waits for that. Frees it.
 */
void agent_loop_cancel(struct agent_loop *l);

#endif
