/*
 * llm: one call to a language model per turn.
 *
 * llm.c sends the request, llm_reader.c reads an answer without network (so that it can be tested
 * and fuzzed), llm_prompt.c writes the conversation. A wire holds what differs between services:
 * openai.c, anthropic.c, http/agno.c; builtin.c chooses one by the model's name.
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

struct llm_conf {
        char *base_url; /* NULL: the wire's */
        char *model;
        struct secret *key;
        bool stream;
        char *system;
        int64_t max_tokens;
        double temperature; /* below 0: not sent */
        int64_t timeout_ms, first_byte_ms, silence_ms;
        int64_t retries;
        struct usage_prices prices; /* a cache price below 0: the wire's share of prices.in */
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
};

/* ---- reading answers ---- */

struct llm_failure {
        enum error_kind kind; /* ERR_NONE: none */
        bool account;         /* out of credit or quota: ERR_REFUSED */
        bool too_long;        /* exceeds the model's context */
        const char *notice;   /* for the user; NULL: chosen by kind */
        char text[LLM_MESSAGE_MAX + 1];
};

enum llm_stop { LLM_GOES_ON, LLM_STOPPED, LLM_LENGTH, LLM_FILTERED };

struct llm_reader {
        const struct llm_wire *wire;
        void (*on_text)(void *arg, const char *text, size_t n); /* a piece of streamed text */
        void *arg;
        struct sse_reader sse;
        struct buf body; /* of an unstreamed answer */
        struct buf text; /* the answer so far */
        enum llm_stop stop;
        bool ended; /* nothing follows */
        bool too_large;
        struct usage usage;
        char run_id[100]; /* at the service, for cancelling */
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

/* For wires. */
void llm_reader_text(struct llm_reader *r, const char *text); /* NULL is fine */
/* Keeps the first failure; clips its text and removes secrets. */
void llm_reader_fail(struct llm_reader *r, enum error_kind kind, const char *text);
/* Fails the reader if it is not a JSON object. Yours to decref. */
json_t *llm_reader_json(struct llm_reader *r, const char *data, size_t n);
/* {"error": {"type", "code", "message"}} or plain text. */
void llm_reader_read_failure(struct llm_failure *f, enum error_kind kind, const char *body,
                             size_t n);

/* ---- wires ---- */

struct llm_wire {
        const char *name;
        const char *subject;      /* in notices; NULL: "model" */
        bool acts;                /* requests may have effects: no failover */
        const char *base;         /* default of baseUrl */
        const char *path;         /* of the call, appended to baseUrl */
        const char *health;       /* harmless request, appended to baseUrl */
        const char *key_header;   /* "Authorization: Bearer " */
        const char *header;       /* extra line; NULL: none */
        const char *content_type; /* of the request; NULL: application/json */
        const char *events;       /* Agno: prefix of run events */
        /* default prices of the cache, as shares of the input's */
        struct {
                double cached, written, written_1h;
        } cache_shares;
        void (*body)(const struct llm *m, const struct turn_run *run, struct buf *out);
        void (*event)(struct llm_reader *r, const char *event, const char *data, size_t n);
        void (*answer)(struct llm_reader *r, const json_t *answer);
        /* NULL: closing the connection suffices. */
        void (*cancel)(const struct llm *m, const struct llm_reader *r, const struct turn_run *run);
};
extern const struct llm_wire openai_wire;
extern const struct llm_wire anthropic_wire;
extern const struct llm_wire agno_agent_wire, agno_team_wire, agno_workflow_wire;

/* Adds messages to an open array; merges neighbours of one role. */
void llm_prompt_write(struct buf *out, const struct turn_run *run);

/* ---- agent_ops ---- */

int llm_check_conf(struct settings_source *src, const char *path, const void *settings,
                   struct error *err);
/* Borrows `model` from the conf. Returns 0. */
int llm_open(struct agent *a, const struct llm_wire *wire, const char *model);
void llm_close(struct agent *a);
void llm_start(struct agent *a, struct turn_run *run);
void llm_cancel(struct agent *a, struct turn_run *run);
void llm_check_health(struct agent *a, void *token);

#define LLM_ABILITIES \
        (AGENT_REPEATABLE | AGENT_BATCHES | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS)

#endif
