/*
 * call: one request to a model service, from its checks to its answer.
 *
 * A wire (Messages, Chat Completions, Responses) checks the body as the real service does, fills in
 * the prompt, and later writes the answer in its form. In between the wire does not matter: the
 * scenario reads the prompt and makes the answer.
 */
#ifndef SIM_LLM_LM_CALL_H
#define SIM_LLM_LM_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "sim/call_base.h"
#include "sim/llm/lm_cache.h"
#include "sim/llm/lm_models.h"
#include "sim/llm/lm_pieces.h"
#include "sim/llm/lm_world.h"

/* What a request says, whichever wire it came by. */
struct lm_prompt {
        const struct lm_model *model;
        /*
         * In order: {"role":"user","text"}, {"role":"assistant","text","calls":[{"id","name"}]},
         * {"role":"tool","id","name","text"}.
         */
        json_t *turns;
        json_t *tools; /* array of {"name","schema"} */
        struct buf system;
        struct lm_blocks blocks;
        bool stream;
        bool thinks;          /* thinking is wanted */
        bool thinking_hidden; /* only its signature is */
        bool one_call;        /* no parallel calls */
        int64_t max_tokens;   /* of output; 0: no limit */
        bool warms;           /* only fills the cache: nothing is answered */
        char forced[68];      /* the tool it has to call; "*": any; "": none */
};

/* What the model says. */
struct lm_answer {
        /*
         * Array of {"type":"text","text"}, {"type":"thinking","text"}, {"type":"redacted"},
         * {"type":"call","id","name","arguments": JSON text}, {"type":"wait","ms"}.
         */
        json_t *content;
        char stop[32]; /* in Anthropic's words: end_turn, tool_use, max_tokens, refusal, ... */
        int64_t input, output; /* tokens; -1: counted */
        int64_t cache_read, cache_write;
        int64_t piece_ms, piece_bytes; /* -1: the world's */
        int64_t reasoning;             /* tokens of thinking, counted */
        struct lm_cached cached;
        /* instead of an answer */
        int status; /* 0: none */
        char type[48], message[300];
        double retry_after;      /* -1: none */
        bool same_index, no_end; /* faults of the stream */
};

struct lm_wire;

struct call {
        struct call_base base; /* first */
        struct world *world;
        struct http_exchange *x;
        const struct lm_wire *wire;
        const char *operation; /* for faults and the journal: "messages", "models", ... */
        char *key;             /* of the API */
        char *version;         /* of Anthropic's; NULL: not told */
        json_t *body;          /* NULL: none, or not JSON */
        struct lm_prompt prompt;
        struct lm_answer answer;
        char id[24];      /* of the answer, 22 hex digits */
        char request[40]; /* its id in a header */
        int64_t created;  /* seconds */
        struct buf out;
        struct lm_pieces pieces;
        bool streams; /* the answer is in pieces */
        int status;
        /* of a refusal */
        const char *reason;
        char code[48], param[96], problem[600];
        double retry_after; /* seconds; -1: none */
};

struct lm_wire {
        const char *name;
        bool anthropic;
        /* Reads the body. -1 after lm_call_refuse. */
        int (*check)(struct call *c);
        void (*write)(struct call *c, struct buf *b);        /* the whole answer */
        void (*stream)(struct call *c, struct lm_pieces *p); /* the same, in events */
        void (*fail)(struct call *c, struct lm_pieces *p);   /* an overload in mid-stream */
        void (*error)(const struct call *c, struct buf *b);  /* the refusal */
        void (*too_long)(struct call *c, int64_t window);    /* refuses the prompt's length */
        void (*limits)(struct call *c, int64_t limit, int64_t left); /* adds headers */
};

extern const struct lm_wire lm_messages, lm_chat, lm_responses;

/* The routes. */
void lm_call_serve_messages(struct http_exchange *x);
void lm_call_serve_count(struct http_exchange *x);
void lm_call_serve_chat(struct http_exchange *x);
void lm_call_serve_responses(struct http_exchange *x);
void lm_call_serve_models(struct http_exchange *x);
void lm_call_serve_model(struct http_exchange *x);

/*
 * Answers a request that did not come over HTTP. Returns the status and adds the answer, or the
 * pieces of its stream, to out.
 */
int lm_call_try(struct world *w, const struct lm_wire *wire, const char *body, size_t n,
                struct buf *out);

/*
 * The request breaks the rules: 400 unless c->status says otherwise. `reason` is a constant for
 * the counters. Returns -1.
 */
int lm_call_refuse(struct call *c, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The same with OpenAI's code and parameter (NULL: null). */
int lm_call_refuse_at(struct call *c, const char *code, const char *param, const char *reason,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Fails without blaming the request; NULL: the words for this status. Returns -1. */
int lm_call_fail(struct call *c, int status, const char *message);

/* ---- for wires ---- */

void lm_prompt_user(struct lm_prompt *p, const char *text);
/* calls: array, taken over. */
void lm_prompt_assistant(struct lm_prompt *p, const char *text, json_t *calls);
void lm_prompt_tool(struct lm_prompt *p, const char *id, const char *text);
void lm_prompt_add_tool(struct lm_prompt *p, const char *name, const json_t *schema);
/* The texts of content that is a string or a list of blocks; yours. */
char *lm_prompt_text(const json_t *content);
/* Has the object this text as a member? */
bool lm_prompt_is(const json_t *object, const char *key, const char *text);
/* Is there nothing but white space? */
bool lm_prompt_is_blank(const char *text);
/* Only [a-zA-Z0-9_-]? */
bool lm_prompt_is_name(const char *text);

/*
 * A signature of a text the model thought: bound to the model, the answer, and its place among
 * `count` such texts. LM_SIGNATURE_SIZE bytes.
 */
#define LM_SIGNATURE_SIZE 128
void lm_sign(char out[LM_SIGNATURE_SIZE], const char *model, const char *answer, size_t at,
             size_t count, const char *text);
struct lm_signed {
        char answer[24];
        size_t at, count;
};
/* Is it ours, of this model and for this text? */
bool lm_sign_check(const char *signature, const char *model, const char *text,
                   struct lm_signed *out);

#endif
