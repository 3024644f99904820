/*
 * llm: a language model behind one of several protocols ("wires").
 *
 *     llm_call.c        one request: sends, retries, reads
 *     llm_reader.c      an answer without network, so that it can be tested and fuzzed
 *     llm_block.c       the blocks of an answer, as they arrive and as a message
 *     llm_transcript.c  messages every service accepts, out of any list of them
 *     model.c           asks for the next message of a conversation (model.h)
 *     llm.c             one call per turn, the agents `openai`, `anthropic` and `agno`
 *
 * A wire holds what differs between services: anthropic.c, openai.c (chat completions),
 * responses.c, http/agno.c; llm_wire_find chooses one by the model's name.
 */
#ifndef AGENT_LLM_LLM_H
#define AGENT_LLM_LLM_H

#include "agent/agent.h"
#include "agent/usage.h"
#include "base/buf.h"
#include "base/secret.h"
#include "net/sse_reader.h"

#define LLM_ANSWER_MAX  ((size_t)256 << 10) /* bytes of text; the rest is cut */
#define LLM_EVENT_MAX   ((size_t)2 << 20)   /* per streamed event or whole answer */
#define LLM_STREAM_MAX  ((size_t)64 << 20)
#define LLM_MESSAGE_MAX 400 /* bytes kept of a failure */
/* thinking, arguments and signatures of one answer, in bytes; and its blocks */
#define LLM_REST_MAX   ((size_t)8 << 20)
#define LLM_BLOCKS_MAX 512

struct llm_conf {
        char *base_url; /* NULL: the wire's */
        char *model;
        struct secret *key;
        bool stream;
        char *system;
        int64_t max_tokens;
        double temperature; /* below 0: not sent */
        char *server;       /* kind of server behind chat completions; "auto" */
        char *api_version;  /* Anthropic's; NULL: the wire's */
        int64_t timeout_ms, first_byte_ms, silence_ms;
        int64_t retries;
        int64_t window;             /* tokens; 0: the model's */
        char *price_table;          /* a file; NULL: none */
        struct usage_prices prices; /* below 0: as known, or the wire's share of prices.in */
};
extern const struct setting llm_settings[];

struct llm_wire;

/* An opened agent: a->self. */
struct llm {
        struct agent *agent;
        const struct llm_conf *conf;
        const struct llm_wire *wire;
        const char *model; /* without "anthropic/" or the like */
        char *base;        /* without trailing slash and query */
        char *path;        /* of the call, appended to base */
        char *query;       /* of the configured URL, with its "?"; ends each URL; "": none */
        struct health_probes probes;
        struct model_row *table;   /* the model's row of priceTable; NULL: none */
        struct model_facts *facts; /* what the service says of it; NULL: not asked */
};

/* ---- reading answers ---- */

struct llm_failure {
        enum error_kind kind; /* ERR_NONE: none */
        bool account;         /* out of credit or quota: ERR_REFUSED */
        bool too_long;        /* exceeds the model's context */
        bool too_large;       /* too many bytes: images may be left out; too_long as well */
        const char *notice;   /* for the user; NULL: chosen by kind */
        char text[LLM_MESSAGE_MAX + 1];
};

enum llm_stop {
        LLM_GOES_ON,
        LLM_STOPPED,
        LLM_CALLS, /* it wants tools to run */
        LLM_LENGTH,
        LLM_FILTERED, /* refused by the model or a filter */
        LLM_PAUSED,   /* send the message back as it is */
        LLM_FULL,     /* the context window is full */
};

enum llm_block_type {
        LLM_TEXT,
        LLM_THINKING,
        LLM_REDACTED, /* thinking that only the service can read: in `signature` */
        LLM_TOOL_CALL,
        LLM_OTHER, /* of a type we do not know: in `raw` */
};

/* A part of an answer. */
struct llm_block {
        enum llm_block_type type;
        int64_t index;        /* at the service; -1: none */
        struct buf text;      /* or thinking, or the arguments of a call */
        struct buf signature; /* what the service needs to see again */
        char *id, *name;      /* of a call; may be NULL */
        json_t *raw;
};

struct llm_reader {
        const struct llm_wire *wire;
        void (*on_text)(void *arg, const char *text, size_t n);     /* a piece of streamed text */
        void (*on_thinking)(void *arg, const char *text, size_t n); /* may be NULL, as the next */
        void (*on_call)(void *arg, const char *name);
        void *arg;
        struct sse_reader sse;
        struct buf body; /* of an unstreamed answer */
        struct buf text; /* of all blocks so far */
        struct llm_block *blocks;
        size_t block_count, rest_n; /* rest_n: bytes that are not text */
        json_t *details;            /* OpenRouter: array of reasoning details; NULL: none */
        enum llm_stop stop;
        char stop_word[40]; /* as the service said it */
        char detail[200];   /* of a refusal */
        bool ended;         /* nothing follows */
        bool too_large;
        struct usage usage;
        char run_id[100]; /* at the service: of a run, for cancelling, or of the answer */
        struct llm_failure failure;
};

void llm_reader_init(struct llm_reader *r, const struct llm_wire *wire,
                     void (*on_text)(void *arg, const char *text, size_t n), void *arg);
void llm_reader_release(struct llm_reader *r);
/* -1: stop reading; failure or too_large says why. */
int llm_reader_stream(struct llm_reader *r, const char *bytes, size_t n);
/* The same for a whole answer. */
int llm_reader_body(struct llm_reader *r, const char *bytes, size_t n);
/* Parses the collected body. */
int llm_reader_body_end(struct llm_reader *r);

/* Is what was read a complete answer? */
bool llm_reader_is_complete(const struct llm_reader *r);
/*
 * The blocks as the content of an assistant message (model.h), yours to decref: blank ones left
 * out, calls marked that must not run. tools (may be NULL): of the request, whose names the service
 * may have seen in another form.
 */
json_t *llm_reader_content(const struct llm_reader *r, const json_t *tools);

/* For wires. NULL text is fine. */
void llm_reader_text(struct llm_reader *r, const char *text); /* to the last block, or a new one */
/* A new block; NULL: there are too many. */
struct llm_block *llm_block_open(struct llm_reader *r, enum llm_block_type type, int64_t index);
/* The newest one with this index; NULL: none. */
struct llm_block *llm_block_find(struct llm_reader *r, int64_t index);
void llm_block_add(struct llm_reader *r, struct llm_block *b, const char *text);
void llm_block_sign(struct llm_reader *r, struct llm_block *b,
                    const char *signature); /* replaces */
/* Either may be NULL or empty: keeps what is known. */
void llm_block_call(struct llm_reader *r, struct llm_block *b, const char *id, const char *name);
bool llm_reader_has_call(const struct llm_reader *r);
void llm_blocks_release(struct llm_reader *r);
/* Keeps the first failure; clips its text and removes secrets. */
void llm_reader_fail(struct llm_reader *r, enum error_kind kind, const char *text);
/* Fails the reader if it is not a JSON object. Yours to decref. */
json_t *llm_reader_json(struct llm_reader *r, const char *data, size_t n);
/* Fails the reader with an error that came instead of an answer, or in the middle of one. */
void llm_reader_error(struct llm_reader *r, const json_t *answer);
/* {"error": {"type", "code", "message"}} or plain text. */
void llm_reader_read_failure(struct llm_failure *f, enum error_kind kind, const char *body,
                             size_t n);
/* Do these words say that the request exceeds the model's context? */
bool llm_failure_is_overflow(const char *text);

/* ---- wires ---- */

struct llm_request;

struct llm_wire {
        const char *name;
        const char *service;      /* before the "/" of a model's name; NULL: none */
        const char *api;          /* in messages; NULL: has none */
        const char *subject;      /* in notices; NULL: "model" */
        bool acts;                /* requests may have effects: no failover */
        bool says_end;            /* only its last event proves that an answer is complete */
        const char *base;         /* default of baseUrl */
        const char *path;         /* of the call, appended to baseUrl */
        const char *health;       /* harmless request, appended to baseUrl */
        const char *key_header;   /* "Authorization: Bearer " */
        const char *version;      /* header of the API's version; NULL: none */
        const char *version_used; /* its default */
        const char *content_type; /* of the request; NULL: application/json */
        const char *events;       /* Agno: prefix of run events */
        /* default prices of the cache, as shares of the input's */
        struct {
                double cached, written, written_1h;
        } cache_shares;
        /* The request of a turn; NULL: `write` with the turn's messages. */
        void (*body)(const struct llm *m, const struct turn_run *run, struct buf *out);
        void (*write)(const struct llm *m, const struct llm_request *q, struct buf *out);
        void (*event)(struct llm_reader *r, const char *event, const char *data, size_t n);
        void (*answer)(struct llm_reader *r, const json_t *answer);
        /* NULL: closing the connection suffices. */
        void (*cancel)(const struct llm *m, const struct llm_reader *r, const struct turn_run *run);
};
extern const struct llm_wire openai_wire;
extern const struct llm_wire anthropic_wire;
extern const struct llm_wire responses_wire;
extern const struct llm_wire agno_agent_wire, agno_team_wire, agno_workflow_wire;

/*
 * The wire for a model, and its name there (part of `name`). wire: "anthropic", "openai",
 * "responses", or "auto" (as NULL), which takes the service from "anthropic/MODEL" or
 * "openai/MODEL" (Responses at OpenAI itself, else chat completions), and chat completions for any
 * other name if there is a base_url. NULL: unknown.
 */
const struct llm_wire *llm_wire_find(const char *wire, const char *name, const char *base_url,
                                     const char **model);

/* The turn's messages in the form of model.h, yours to decref; merges neighbours of one role. */
json_t *llm_prompt_messages(const struct turn_run *run);
/* The request of a turn, as the one-call agents send it. */
void llm_write_body(const struct llm *m, const struct turn_run *run, struct buf *out);

/* ---- agent_ops ---- */

int llm_check_conf(struct settings_source *src, const char *path, const void *settings,
                   struct error *err);
/* Borrows `model` from a->conf, which begins with struct llm_conf. */
struct llm *llm_new(struct agent *a, const struct llm_wire *wire, const char *model);
void llm_free(struct llm *m);
/* A health check of the service, see agent_health_report. */
void llm_probe(struct llm *m, void *token);
/* Borrows `model` from the conf. Returns 0. */
int llm_open(struct agent *a, const struct llm_wire *wire, const char *model);
void llm_close(struct agent *a);
void llm_start(struct agent *a, struct turn_run *run);
void llm_cancel(struct agent *a, struct turn_run *run);
void llm_check_health(struct agent *a, void *token);

#define LLM_ABILITIES \
        (AGENT_REPEATABLE | AGENT_BATCHES | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS)

#endif
