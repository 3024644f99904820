/*
 * mcp_private: shared by the files of the MCP client.
 *
 * mcp.c holds the state of a server and reads its messages, mcp_handshake.c, mcp_list.c and
 * mcp_request.c the parts of the protocol; a wire (mcp_stdio.c, mcp_http.c) carries the messages.
 * Wires call mcp_received, mcp_request_failed and mcp_lost, never before the call that caused it
 * has returned.
 */
#ifndef AGENT_CUSTOM_MCP_PRIVATE_H
#define AGENT_CUSTOM_MCP_PRIVATE_H

#include <sys/queue.h>

#include "agent/custom/custom_source.h"
#include "agent/custom/mcp.h"

#define MCP_LEGACY_VERSION "2025-11-25"
#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_MESSAGE_MAX    ((size_t)16 << 20)
#define MCP_TOOLS_MAX      512
/* A tool of ours for every server with resources, so that links in results can be followed. */
#define MCP_READ_RESOURCE "resources/read"

enum mcp_state {
        MCP_IDLE, /* starts on the next use */
        MCP_STARTING,
        MCP_READY,
        MCP_DOWN, /* as MCP_IDLE, but not before retry_at_ms */
};

enum mcp_kind { MCP_INITIALIZE, MCP_DISCOVER, MCP_LIST, MCP_CALL, MCP_LISTEN };

/* A request of ours that waits for its answer. */
struct mcp_request {
        struct mcp_server *server;
        int64_t id; /* ours; the server numbers its own requests */
        enum mcp_kind kind;
        struct custom_call *call; /* of MCP_CALL */
        struct timer *timer;      /* the deadline; NULL: not sent yet */
        int64_t hard_ms;          /* beyond it progress does not help */
        bool sent, repeated, refused;
        unsigned rounds;       /* that asked for input */
        json_t *input, *state; /* answers to these, see read_input_required */
        TAILQ_ENTRY(mcp_request) next;
};

/* A message for the wire. */
struct mcp_message {
        const char *text;
        size_t n;
        const struct mcp_request *request; /* NULL: a notification or an answer */
        const char *method;                /* NULL: an answer */
};

struct mcp_wire {
        int (*open)(struct mcp_server *s, struct error *err);
        int (*send)(struct mcp_server *s, const struct mcp_message *m, struct error *err);
        /* The handshake is done. May be NULL. */
        void (*ready)(struct mcp_server *s);
        /* The answer is no longer awaited. May be NULL. */
        void (*forget)(struct mcp_server *s, const struct mcp_request *q);
        /* No callback follows. `lost`: the server is gone, so no goodbye is sent. */
        void (*close)(struct mcp_server *s, bool lost);
        const char *name;
};
extern const struct mcp_wire mcp_stdio, mcp_http;

/* How servers of our own differ (module.c). */
struct mcp_variant {
        const struct custom_source_ops *ops;
        json_t *meta; /* for initialize; borrowed until the server is freed */
        bool own;     /* keys are bare names, nothing is cached */
        void (*tool)(struct mcp_server *s, const json_t *described, struct custom_tool *t);
        void (*listed)(struct mcp_server *s, const json_t *result);
};

struct mcp_server {
        struct custom_source base;
        const struct mcp_conf *conf;
        const struct mcp_wire *wire;
        const struct mcp_variant *variant; /* NULL: none */
        void *link;                        /* of the wire; NULL: closed */
        enum mcp_state state;
        bool modern, cached_modern, tried_initialize, tried_discover;
        bool wanted;      /* start without a call */
        bool unreachable; /* the problem is that a call failed */
        char version[16];
        int64_t next_id;
        TAILQ_HEAD(, mcp_request) requests;
        struct timer *pump, *relist, *relisten;
        unsigned failures, losses;
        int64_t retry_at_ms;
        json_t *listing; /* tools of the pages so far; NULL: none under way */
        char *cursor;    /* of the next page */
        unsigned pages;
        bool list_again;
        json_t *listed; /* as the server sent them */
        bool resources; /* it has some */
        unsigned junk;  /* messages that were none */
};

/* NULL ops: those of mcp.c. */
struct mcp_server *mcp_server_new(struct custom_tools *all, const char *name,
                                  const struct mcp_conf *conf, const struct mcp_variant *variant);
void mcp_server_free(struct custom_source *s);
const char *mcp_state_name(const struct custom_source *s);
void mcp_call(struct custom_call *c);
void mcp_cancel(struct custom_call *c);

/* The server cannot be reached: fails what waits, and does not try again at once. */
void mcp_down(struct mcp_server *s, const char *why);
/* The tools are known, or it is known that there are none. */
void mcp_known(struct mcp_server *s);
/* "message (code)", for people and models; yours. */
char *mcp_error_words(const json_t *error);

/* mcp_handshake.c */
void mcp_handshake(struct mcp_server *s, enum mcp_kind kind);
void mcp_read_handshake(struct mcp_server *s, enum mcp_kind kind, const json_t *result,
                        const json_t *error);

/* mcp_list.c */
/* Lists the tools; while it does so already, again afterwards. */
void mcp_list(void *server);
void mcp_read_list(struct mcp_server *s, const json_t *result);
void mcp_list_failed(struct mcp_server *s, const char *why);
void mcp_list_drop(struct mcp_server *s);
/* Subscribes to changes of the list; the newer era only. */
void mcp_listen(void *server);

/* mcp_request.c */
struct mcp_request *mcp_request_new(struct mcp_server *s, enum mcp_kind kind);
void mcp_request_free(struct mcp_request *q);
/* Sends it and starts its deadline, which calls mcp_on_deadline. */
int mcp_request_send(struct mcp_request *q, struct error *err);
void mcp_on_deadline(void *request);
/* Informs the server that the answer is no longer awaited. */
void mcp_request_abandon(struct mcp_request *q, const char *reason);
bool mcp_reads_resource(const struct mcp_request *q);
/* Takes the message. q: the request in it, or NULL. */
int mcp_send(struct mcp_server *s, json_t *message, const struct mcp_request *q, struct error *err);
void mcp_notify(struct mcp_server *s, const char *method, json_t *params);

/* For wires. */
void mcp_received(struct mcp_server *s, const char *text, size_t n);
void mcp_received_json(struct mcp_server *s, const json_t *message);
/* The request with this id, or NULL. */
struct mcp_request *mcp_request_find(struct mcp_server *s, int64_t id);
/* maybe: the server may have acted on it. */
void mcp_request_failed(struct mcp_request *q, bool maybe, const char *why);
/* The connection, or the session, is gone. */
void mcp_lost(struct mcp_server *s, const char *why);

/* mcp_tools.c */
/* Replaces the source's tools by these. Reports tools that changed since they were last seen. */
void mcp_tools_set(struct mcp_server *s, const json_t *list);
/* <server>__<tool>, cut and hashed where needed; yours. */
char *mcp_tools_key(const char *server, const char *tool);
/*
 * The arguments marked x-mcp-header: calls fn with the header's name and the value as text. -1: the
 * schema's marks are invalid. args NULL: only checks.
 */
int mcp_tools_headers(const json_t *schema, const json_t *args,
                      void (*fn)(void *arg, const char *header, const char *value), void *arg);
void mcp_cache_read(struct mcp_server *s);
void mcp_cache_write(struct mcp_server *s);

/* Programs that were asked to end; custom_free kills them. */
struct mcp_stdio_link;
LIST_HEAD(mcp_stdio_links, mcp_stdio_link);
struct mcp_stdio_links *custom_ending(struct custom_tools *all);
void mcp_stdio_kill(struct mcp_stdio_links *all);

#endif
