/*
 * http_agent: agents that get one POST per turn and answer it whole: webhook and agent-chat.
 *
 * http_agent.c sends the request; a wire holds what differs between kinds; http_agent_reply.c reads
 * replies without network, so that it can be tested and fuzzed.
 */
#ifndef AGENT_HTTP_HTTP_AGENT_H
#define AGENT_HTTP_HTTP_AGENT_H

#include "agent/agent.h"
#include "agent/usage.h"
#include "base/buf.h"
#include "base/secret.h"
#include "net/json_offload.h"

#define HTTP_AGENT_BODY_MAX  ((size_t)1 << 20)   /* of a response; more is a failure */
#define HTTP_AGENT_TEXT_MAX  ((size_t)256 << 10) /* of its text */
#define HTTP_AGENT_PARTS_MAX 20                  /* per reply; the last takes the rest */
/* Each late call holds a connection. */
#define HTTP_AGENT_LATE_MAX 32

struct http_agent_conf {
        char *url;
        char *mode;   /* or "fire-and-forget" */
        char *format; /* of the webhook's request */
        struct secret *key, *secret;
        struct setting_list headers;
        int64_t timeout_ms, retries, retry_ms;
        char *late; /* or "discard", the default */
        int64_t reply_seconds, max_replies;
        bool repeatable, history;
        int64_t history_messages;
        char *health_url;
        char *agent_id; /* OpenClaw's */
        bool session_keys;
};

/* ---- replies ---- */

struct http_agent_reply {
        char *text;   /* "": nothing to say */
        char **parts; /* several messages; else NULL */
        unsigned part_count;
        /* false: only an acknowledgement */
        bool given;
        struct usage usage;
};

typedef int http_agent_members_fn(struct http_agent_reply *r, const json_t *object,
                                  struct error *err);

/* JSON or plain text by content type, which may be NULL or "". ERR_PROTOCOL or ERR_LIMIT. */
int http_agent_reply_read(struct http_agent_reply *r, http_agent_members_fn *members,
                          const char *content_type, const char *body, size_t n, struct error *err);
/* The same after net/json_offload.h; need not be JSON. */
int http_agent_reply_read_parsed(struct http_agent_reply *r, http_agent_members_fn *members,
                                 const char *content_type, const struct json_parsed *parsed,
                                 struct error *err);
/* parts, reply or text; metadata with tokens and cost. */
http_agent_members_fn http_agent_reply_members;
/* For readers of members. */
int http_agent_reply_set_text(struct http_agent_reply *r, const char *text, struct error *err);
/* Borrowed from r. */
struct turn_reply http_agent_reply_for_turn(const struct http_agent_reply *r);
void http_agent_reply_release(struct http_agent_reply *r);

/* ---- wires ---- */

/* An opened agent: a->self. */
struct http_agent {
        struct agent *agent;
        const struct http_agent_conf *conf;
        const struct http_agent_wire *wire;
        char *url;
        bool fire_and_forget, deliver_late;
        struct health_probes probes;
        LIST_HEAD(, http_agent_call) late; /* calls whose turn has ended */
        unsigned late_count;
};

struct http_agent_wire {
        const char *name;       /* in failure records: "webhook" */
        const char *path;       /* appended to the URL; NULL: none */
        const char *key_header; /* "Authorization: Bearer " */
        const char *header;     /* extra header line; NULL: none */
        bool replies;           /* the agent may use a reply URL */
        http_agent_members_fn *read;
        /* reply_url may be NULL. */
        void (*body)(const struct http_agent *h, const struct turn_run *run, const char *reply_url,
                     struct buf *out);
};
extern const struct http_agent_wire webhook_wire, openclaw_wire, agent_chat_wire;

void webhook_payload_write(const struct http_agent *h, const struct turn_run *run,
                           const char *reply_url, struct buf *out);

/* ---- agent_ops ---- */

int http_agent_open(struct agent *a, const struct http_agent_wire *wire);
void http_agent_close(struct agent *a);
void http_agent_start(struct agent *a, struct turn_run *run);
void http_agent_cancel(struct agent *a, struct turn_run *run);
void http_agent_check_health(struct agent *a, void *token);
int http_agent_check_conf(struct settings_source *src, const char *path, const void *settings,
                          struct error *err);
unsigned http_agent_abilities(const struct agent *a);
void http_agent_late_replies(const struct agent *a, struct late_reply_policy *out);

#endif
