/*
 * chat_bridge: the common part of foreign chat protocols. A client sends a list of lines and waits
 * for the answer.
 *
 * The lines become one message of an adapter of type api, stored like any other. If the client
 * names its conversation, we have its history and use only the new lines. Otherwise the client
 * sends its history each time: the whole list is used, in a new chat.
 */
#ifndef API_COMPAT_CHAT_BRIDGE_H
#define API_COMPAT_CHAT_BRIDGE_H

#include "api/core/request.h"
#include "platform/platform.h"
#include "road/road.h"

#define CHAT_BRIDGE_LINES_MAX   500
#define CHAT_BRIDGE_CHAT_MAX    256
#define CHAT_BRIDGE_CALLER_SIZE 32
#define CHAT_BRIDGE_WAIT_MS     600000            /* longest wait of a client */
#define CHAT_BRIDGE_BY_RULES    CARD_OF_THE_RULES /* instead of an agent's name */

enum chat_bridge_role { CHAT_BRIDGE_SYSTEM, CHAT_BRIDGE_USER, CHAT_BRIDGE_AGENT };

struct chat_bridge_line {
        enum chat_bridge_role role;
        const char *name; /* of the speaker; may be NULL */
        const char *text;
};

struct chat_bridge_ask {
        const char *protocol;     /* "openai": part of the names of unnamed chats */
        const char *agent;        /* NULL: by the rules */
        const char *conversation; /* NULL: none */
        const char *sender;
        int64_t caller;          /* id of the API key: idempotency keys are per caller */
        const char *external_id; /* the client's idempotency key; NULL: none */
        const char *traceparent; /* of the request; may be NULL */
        const struct chat_bridge_line *lines;
        size_t line_count;
        const struct attachment *attachments;
        size_t attachment_count;
};

/* NULL: answered; no such adapter, or it takes no messages here. */
struct adapter *chat_bridge_adapter(struct http_exchange *x, const char *name);
/*
 * For clients that cannot name an adapter: by the header X-Dragoman-Instance, else "api", else the
 * first of type api that the caller reaches. NULL: answered.
 */
struct adapter *chat_bridge_choose(struct http_exchange *x);
/* One within the caller's reach whose answers are only journaled. NULL: answered. */
struct adapter *chat_bridge_choose_journaled(struct http_exchange *x);
/*
 * The conversation: by the header X-Dragoman-Chat, else what the request calls it; NULL: it has no
 * name. false: answered.
 */
bool chat_bridge_chat(struct http_exchange *x, const char *named, const char **chat);
/* Does the chat belong to one key? Then clients cannot choose it. */
bool chat_bridge_is_owned(const char *chat);
/* Does the agent exist? CHAT_BRIDGE_BY_RULES does, and becomes NULL. */
bool chat_bridge_agent(struct http_exchange *x, const char **name);

/* May the caller name the agent (NULL: by the rules) to the adapter (NULL: to any of its own)? */
bool chat_bridge_may_ask(struct http_exchange *x, const struct adapter *a, const char *agent);
/* The same; false: answered with 403. */
bool chat_bridge_check_agent(struct http_exchange *x, const struct adapter *a, const char *agent);

/* What struct incoming has as `caller`: the name of the key. */
const char *chat_bridge_caller(int64_t key, char out[CHAT_BRIDGE_CALLER_SIZE]);
/* Does the id look like a protocol's idempotency key? Clients must not choose such ids. */
bool chat_bridge_is_key(const char *external_id);
/* Builds the message; false if the last line is not a user's. */
bool chat_bridge_text(const struct chat_bridge_line *lines, size_t count, bool whole,
                      struct buf *out);
/*
 * As adapter_received, for a key chosen by the client; the ack has ERR_CONFLICT if the key was used
 * for another message, which would be lost.
 */
void chat_bridge_receive(struct api *api, struct adapter *a, struct incoming *in, inbox_ack_fn *ack,
                         void *arg);
/* Stores the message; ack as adapter_received. */
void chat_bridge_submit(struct api *api, struct adapter *a, const struct chat_bridge_ask *ask,
                        inbox_ack_fn *ack, void *arg);

#endif
