/*
 * hook: agents that are asked by one POST and answer it whole. The webhook and agent-chat are such
 * agents.
 *
 * Three parts, so that the last can be tested and fuzzed without a network:
 *  - http_agent_call.c has the life of a request: deadline, the one retry, failures told to the
 * user, late answers, cancel, health;
 *  - a wire says what a kind writes and reads: webhook.c and agent_chat.c have them;
 *  - http_agent_reply.c understands an answer, whether it came as the response or was posted to the
 *    reply URL; hook_read.c has large ones read apart.
 */
#ifndef AGENT_HTTP_HTTP_AGENT_H
#define AGENT_HTTP_HTTP_AGENT_H

#include "agent/agent.h"
#include "agent/health_probe.h"
#include "base/buf.h"
#include "base/secret.h"
#include "net/json_offload.h"

#define HTTP_AGENT_BODY_MAX  ((size_t)1 << 20)   /* of an answer; more is a failure */
#define HTTP_AGENT_TEXT_MAX  ((size_t)256 << 10) /* of its text */
#define HTTP_AGENT_PARTS_MAX 20 /* messages of one answer; what is more joins the last */
/* Calls of one agent that may go on after their turn has ended: each holds a connection. */
#define HTTP_AGENT_LATE_MAX 32

struct http_agent_conf {
        char *url;
        char *mode;   /* "round-trip" or "fire-and-forget"; NULL: the first */
        char *format; /* of the webhook's request */
        struct secret *key, *secret;
        struct setting_list headers;
        int64_t timeout_ms, retries, retry_ms;
        char *late; /* "deliver" or "discard"; NULL: the latter */
        int64_t reply_seconds, max_replies;
        bool repeatable, history;
        int64_t history_messages;
        char *health_url;
        char *agent_id; /* OpenClaw's */
        bool session_keys;
};

/* ---- answers ---- */

struct http_agent_reply {
        char *text;   /* all of it; "" when the agent has nothing to say */
        char **parts; /* when it wants several messages; else NULL */
        unsigned part_count;
        /* it names an answer, be it an empty one; false: the body only confirms the receipt */
        bool given;
        int64_t tokens_in, tokens_out, cost_microusd;
};

/* Reads the members of an answer that is a JSON object. */
typedef int http_agent_members_fn(struct http_agent_reply *a, const json_t *object,
                                  struct error *err);

/*
 * Understands a whole answer. content_type may be NULL or "". ERR_PROTOCOL or ERR_LIMIT with a
 * sentence for the operator.
 */
int http_agent_reply_read(struct http_agent_reply *a, http_agent_members_fn *members,
                          const char *content_type, const char *body, size_t n, struct error *err);
/* The same for a body that net/json_offload.h has parsed, whether or not it is JSON. */
int http_agent_reply_read_parsed(struct http_agent_reply *a, http_agent_members_fn *members,
                                 const char *content_type, const struct json_parsed *parsed,
                                 struct error *err);
/*
 * The same on a pool thread, for answers from HTTP_AGENT_BODY_LARGE bytes on; the body is copied.
 * done, from the loop: answer is NULL when it could not be understood, and borrowed for the call.
 */
#define HTTP_AGENT_BODY_LARGE ((size_t)256 << 10)
struct http_agent_read;
typedef void http_agent_read_fn(void *arg, const struct http_agent_reply *answer,
                                const struct error *err);
struct http_agent_read *http_agent_read_start(struct loop *l, http_agent_members_fn *members,
                                              const char *content_type, const char *body, size_t n,
                                              http_agent_read_fn *done, void *arg);
/* done is not called any more. NULL is fine. */
void http_agent_read_forget(struct http_agent_read *r);
/* {"parts": [...]} before {"reply"} before {"text"}; {"metadata"} with tokens and cost. */
http_agent_members_fn http_agent_reply_members;
/* What readers of members call. */
int http_agent_reply_set_text(struct http_agent_reply *a, const char *text, struct error *err);
/* Borrowed from a. */
struct turn_reply http_agent_reply_for_turn(const struct http_agent_reply *a);
void http_agent_reply_release(struct http_agent_reply *a);

/* ---- wires ---- */

struct http_agent;
struct http_agent_wire {
        const char *name;       /* for the record: "webhook" */
        const char *path;       /* behind the URL; NULL: none */
        const char *key_header; /* "Authorization: Bearer " */
        const char *mark;       /* a header by which the receiver knows such requests; NULL: none */
        bool replies;           /* the agent may answer through a reply URL */
        http_agent_members_fn *read;
        /* reply_url may be NULL. */
        void (*body)(const struct http_agent *k, const struct turn_run *run, const char *reply_url,
                     struct buf *out);
};
extern const struct http_agent_wire webhook_wire, openclaw_wire, agent_chat_wire;

/* The request of the webhook, in webhook_payload.c. */
void webhook_payload_write(const struct http_agent *k, const struct turn_run *run,
                           const char *reply_url, struct buf *out);

/* ---- the hooks of such an agent ---- */

/* An opened agent: a->self. */
struct http_agent {
        struct agent *agent;
        const struct http_agent_conf *conf;
        const struct http_agent_wire *wire;
        char *url;
        struct health_probes probes;
        LIST_HEAD(, http_agent_call) late; /* calls whose turn has ended already */
        unsigned late_count;
};

int http_agent_open(struct agent *a, const struct http_agent_wire *wire);
void http_agent_close(struct agent *a);
void http_agent_start(struct agent *a, struct turn_run *run);
void http_agent_cancel(struct agent *a, struct turn_run *run);
void http_agent_check_health(struct agent *a, void *token);
int http_agent_check_conf(struct settings_source *src, const char *path, const void *settings,
                          struct error *err);
unsigned http_agent_abilities(const struct agent *a);
void http_agent_reply_terms(const struct agent *a, struct reply_terms *out);

#endif
