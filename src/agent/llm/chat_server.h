/*
 * chat_server: how servers of chat completions differ.
 */
#ifndef AGENT_LLM_CHAT_SERVER_H
#define AGENT_LLM_CHAT_SERVER_H

#include "agent/llm/llm_transcript.h"

/* How thinking is switched. */
enum chat_thinking {
        CHAT_THINKING_NONE,
        CHAT_THINKING_EFFORT,   /* reasoning_effort */
        CHAT_THINKING_TYPE,     /* thinking {type: enabled or disabled} */
        CHAT_THINKING_BOTH,     /* both of these */
        CHAT_THINKING_ENABLE,   /* enable_thinking, thinking_budget */
        CHAT_THINKING_TEMPLATE, /* chat_template_kwargs {enable_thinking} */
        CHAT_THINKING_NESTED,   /* reasoning {effort} */
};

struct chat_server {
        const char *name; /* of the setting `server` */
        const char *host; /* part of baseUrl's; NULL: none */
        enum chat_thinking thinking;
        bool max_completion; /* max_completion_tokens instead of max_tokens */
        bool developer;      /* role of system prompts for models that think */
        bool store;          /* knows store */
        bool cache_key;      /* prompt_cache_key instead of user */
        bool wants_thinking; /* every answer comes back with reasoning_content */
        bool routes;        /* to several services: x-session-id; marks the cache for Anthropic's */
        const char *budget; /* member that limits thinking, which else eats the answer's tokens */
};

/* NULL-terminated, for the setting. */
extern const char *const chat_server_names[];
const struct chat_server *chat_server_of(const struct llm *m);
void chat_server_write_thinking(const struct llm *m, const struct llm_request *q, struct buf *out);
/* The member that limits an answer. */
const char *chat_server_max_tokens(const struct llm *m);
/* OpenAI's word; its models differ in how little they can think. */
const char *chat_server_effort(const char *model, enum model_thinking thinking);
/* OpenRouter's reasoning_details, which come in pieces; they go back as the last thinking block. */
void chat_details_read(struct llm_reader *r, const json_t *details);

#endif
