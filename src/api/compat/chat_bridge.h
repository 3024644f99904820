/*
 * chat_bridge: the common part of foreign chat protocols. A client sends a list of lines and waits
 * for the answer.
 *
 * The lines become one message of an adapter of type api, stored like any other before anything
 * else happens. For a client that names its conversation we have the history, and only the new
 * lines are used. Another client brings its history along each time: the whole list is used, in a
 * chat of its own.
 */
#ifndef API_COMPAT_CHAT_BRIDGE_H
#define API_COMPAT_CHAT_BRIDGE_H

#include "api/core/request.h"
#include "platform/platform.h"
#include "road/road.h"

#define CHAT_BRIDGE_LINES_MAX 500
#define CHAT_BRIDGE_CHAT_MAX  256
#define CHAT_BRIDGE_WAIT_MS   600000     /* how long a client waits at most */
#define CHAT_BRIDGE_BY_RULES  "dragoman" /* in place of an agent's name: the rules choose */

enum chat_bridge_role { CHAT_BRIDGE_SYSTEM, CHAT_BRIDGE_USER, CHAT_BRIDGE_AGENT };

struct chat_bridge_line {
        enum chat_bridge_role role;
        const char *name; /* of the speaker; may be NULL */
        const char *text;
};

struct chat_bridge_ask {
        const char *protocol;     /* "openai": part of the names of nameless chats */
        const char *agent;        /* NULL: by the rules */
        const char *conversation; /* NULL: none */
        const char *sender;
        int64_t caller;          /* id of the key: each has idempotency keys of its own */
        const char *external_id; /* the client's idempotency key; NULL: none */
        const struct chat_bridge_line *lines;
        size_t line_count;
        const struct attachment *attachments;
        size_t attachment_count;
};

/* The adapter of that name, if it takes messages here; NULL: answered. */
struct adapter *chat_bridge_adapter(struct http_exchange *x, const char *name);
/*
 * The adapter for clients that cannot name one: by the header X-Dragoman-Instance, else "api", else
 * the first of type api that the caller reaches. NULL: answered.
 */
struct adapter *chat_bridge_choose(struct http_exchange *x);
/* One that the caller reaches and whose answers are only journaled. NULL: answered. */
struct adapter *chat_bridge_choose_journaled(struct http_exchange *x);
/* Is the header X-Dragoman-Chat, which names the conversation, absent or valid? false: answered. */
bool chat_bridge_check_chat(struct http_exchange *x);
/* Is there such an agent? CHAT_BRIDGE_BY_RULES is one, and becomes NULL. */
bool chat_bridge_agent(struct http_exchange *x, const char **name);

/* Does this id look like an idempotency key of a protocol? Clients must not choose such ids. */
bool chat_bridge_is_key(const char *external_id);
/* The message made of these lines; false when the last one is not a user's. */
bool chat_bridge_text(const struct chat_bridge_line *lines, size_t count, bool whole,
                      struct buf *out);
/*
 * As adapter_received, for a key that the client chose; the ack has ERR_CONFLICT when the key was
 * used for another message before, which would be lost.
 */
void chat_bridge_receive(struct api *api, struct adapter *a, struct incoming *in, inbox_ack_fn *ack,
                         void *arg);
/* Stores the message; ack as adapter_received. */
void chat_bridge_submit(struct api *api, struct adapter *a, const struct chat_bridge_ask *ask,
                        inbox_ack_fn *ack, void *arg);

#endif
