/*
 * converse: what the protocols of others have in common here. A client hands over a list of lines
 * and waits for the answer.
 *
 * The lines become one message on the road of an adapter of type api, stored like any other before
 * anything else happens. A client that names its conversation is known here: we have its history,
 * and only what is new in its list is handed over. One that does not brings its history along each
 * time: the whole list is handed over, in a chat of its own.
 */
#ifndef API_COMPAT_CHAT_BRIDGE_H
#define API_COMPAT_CHAT_BRIDGE_H

#include "api/core/api_private.h"
#include "platform/platform.h"

#define CHAT_BRIDGE_LINES_MAX 500
#define CHAT_BRIDGE_CHAT_MAX  256
#define CHAT_BRIDGE_WAIT_MS   600000 /* the longest a client is kept waiting */
#define CHAT_BRIDGE_BY_RULES                                                \
        "dragoman" /* in place of an agent's name: whoever the rules choose \
                    */

enum chat_bridge_role { CHAT_BRIDGE_SYSTEM, CHAT_BRIDGE_USER, CHAT_BRIDGE_AGENT };

struct chat_bridge_line {
        enum chat_bridge_role role;
        const char *name; /* who said it; NULL: not told */
        const char *text;
};

struct chat_bridge_ask {
        const char *protocol;     /* "openai": names chats that have no name */
        const char *agent;        /* NULL: as the rules say */
        const char *conversation; /* NULL: only this once */
        const char *sender;
        int64_t caller;          /* of the key: each has idempotency keys of its own */
        const char *external_id; /* the client's idempotency key; NULL: it is new */
        const struct chat_bridge_line *lines;
        size_t line_count;
        const struct attachment *attachments;
        size_t attachment_count;
};

/* The adapter of that name, if it may be fed from here; NULL after an answer. */
struct adapter *chat_bridge_adapter(struct http_exchange *x, const char *name);
/*
 * The adapter for clients that cannot name one: by the header X-Dragoman-Instance, else "api", else
 * the first of type api that the caller reaches. NULL after an answer.
 */
struct adapter *chat_bridge_choose(struct http_exchange *x);
/*
 * One that the caller reaches and whose answers go nowhere but into the journal. NULL after an
 * answer.
 */
struct adapter *chat_bridge_choose_journaled(struct http_exchange *x);
/*
 * Is the header X-Dragoman-Chat, which names the conversation, absent or usable? false after an
 * answer.
 */
bool chat_bridge_check_chat(struct http_exchange *x);
/* Is there such an agent? CHAT_BRIDGE_BY_RULES is one, and becomes NULL. */
bool chat_bridge_agent(struct http_exchange *x, const char **name);

/*
 * Does this name a message as the idempotency keys of a protocol do? Whoever chooses ids himself
 * must keep away from them.
 */
bool chat_bridge_is_key(const char *external_id);
/* What is handed over of these lines; false when there is nothing a person said at their end. */
bool chat_bridge_text(const struct chat_bridge_line *lines, size_t count, bool whole,
                      struct buf *out);
/*
 * As adapter_received for a key that the client chose; the ack has ERR_CONFLICT when it was used
 * for something else before: that would be lost.
 */
void chat_bridge_receive(struct api *api, struct adapter *a, struct incoming *in, inbox_ack_fn *ack,
                         void *arg);
/* Stores; ack follows as with these. */
void chat_bridge_submit(struct api *api, struct adapter *a, const struct chat_bridge_ask *ask,
                        inbox_ack_fn *ack, void *arg);

#endif
