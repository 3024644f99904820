/*
 * model: asks a language model for the next message of a conversation.
 *
 * Messages are JSON in one form for every service, which is also how steps store them
 * (rows/step_row.h) and how context.jsonl shows them:
 *
 *     {"role": "user", "content": [text | image | document ...]}
 *     {"role": "assistant", "content": [text | thinking | toolCall ...], "api", "provider",
 *      "model", "usage", "stopReason", "responseId"}
 *     {"role": "toolResult", "toolCallId", "toolName", "content": [text | image ...], "isError"}
 *
 *     {"type": "text", "text", "textSignature"}
 *     {"type": "thinking", "thinking", "thinkingSignature", "redacted"}
 *     {"type": "toolCall", "id", "name", "arguments": {...}}
 *     {"type": "image" or "document", "mimeType", "data": base64, "name"}
 *
 * A call whose arguments were cut off or are not a JSON object has "incomplete": true and must not
 * be run; so has every call of an answer that a limit cut off. Any list of messages can be sent:
 * what no service would take is left out or completed (llm_transcript.h). What a service needs to
 * see again unchanged (signatures, encrypted reasoning, item ids) is in thinkingSignature and in
 * "id", as it came.
 */
#ifndef AGENT_LLM_MODEL_H
#define AGENT_LLM_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/llm/llm.h"

enum model_thinking {
        THINKING_DEFAULT, /* nothing is sent */
        THINKING_OFF,
        THINKING_LOW,
        THINKING_MEDIUM,
        THINKING_HIGH,
};

/* Borrowed until the call ends. */
struct model_request {
        const char *system; /* may be NULL; equal for all calls of a turn, so that it is cached */
        json_t *messages;   /* array; see model_check */
        json_t *tools;      /* array of {"name", "description", "parameters"}; NULL: none */
        int64_t max_tokens; /* 0: the model's */
        enum model_thinking thinking;
        const char *cache_key;      /* the conversation; NULL: none */
        const struct turn_run *run; /* for the trace; NULL: none */
        bool no_cache;              /* compaction: nothing is written to the cache */
};

enum model_stop {
        MODEL_ENDED,
        MODEL_CALLS,   /* it wants tools to run */
        MODEL_LENGTH,  /* cut off by the output limit */
        MODEL_REFUSED, /* by the model or a filter */
        MODEL_PAUSED,  /* send the message back as it is */
        MODEL_FULL,    /* the context window is full: compact */
};

struct model_answer {
        json_t *message; /* assistant message, never NULL without a failure; borrowed */
        enum model_stop stop;
        struct usage usage; /* also of a failed or cut call, as far as known */
        int64_t cost_microusd;
        bool cost_estimated;               /* the service did not say what it used */
        const struct llm_failure *failure; /* NULL: none; too_long: compact and ask again */
        int64_t retry_after_ms;            /* -1: not given */
        const char *notice, *record;       /* of a failure: for the user, for the operator */
};

struct model_handlers {
        void (*on_text)(void *arg, const char *text, size_t n); /* may be NULL, as the next */
        void (*on_thinking)(void *arg, const char *text, size_t n);
        void (*on_call)(void *arg, const char *name); /* a tool call begins */
        void (*on_retry)(void *arg, int64_t wait_ms, const char *why);
        /* Once, last. The call is freed when it returns. */
        void (*on_done)(void *arg, const struct model_answer *answer);
};

struct model_call;
/* Never calls a handler before it returns. */
struct model_call *model_ask(const struct llm *m, const struct model_request *q,
                             const struct model_handlers *h, void *arg);
/* What the call has cost so far, for booking it before it is aborted; message is NULL. */
void model_spent(const struct model_call *c, struct model_answer *out);
/* No handler is called. Not from within one. */
void model_abort(struct model_call *c);

/* 0 or -1: would a service refuse these messages for ever? Names the message and the fault. */
int model_check(const json_t *messages, struct error *err);

/*
 * What is known of the model: from the settings, the file `priceTable`, the service (after
 * model_learn), or a built-in table, in this order.
 */
struct model_limits {
        int64_t window; /* tokens */
        int64_t output; /* the longest answer to ask for; 0: unknown */
        bool images, documents, thinking;
        bool adaptive; /* Anthropic: thinks as much as it wants instead of by a budget */
        bool known;    /* by any source; else a guess */
        struct usage_prices prices;
};
void model_limits(const struct llm *m, struct model_limits *out);
/* Asks the service about the model, in the background; once, after llm_open. */
void model_learn(struct llm *m);
/* A rough number of tokens; images count 1600. */
int64_t model_estimate(const json_t *messages);
/* The same for a whole request: its messages, system prompt and tools. */
int64_t model_estimate_request(const struct model_request *q);

#endif
