/*
 * delivery_row: one outbound action, as stored in the table deliveries.
 */
#ifndef ROWS_DELIVERY_ROW_H
#define ROWS_DELIVERY_ROW_H

#include <stdbool.h>

enum delivery_kind {
        DELIVER_SEND,
        DELIVER_EDIT,
        DELIVER_DELETE,
        DELIVER_REACT,
        DELIVER_UNREACT,
        DELIVER_THREAD, /* begins a thread at a message */
        DELIVER_TYPE,   /* shows that the bot is typing */
        DELIVER_UPLOAD,
        DELIVER_CANCEL_DEFERRED, /* removes the placeholder of a command that gets no answer */
};

enum delivery_state {
        DELIVERY_QUEUED,
        DELIVERY_SENDING, /* claimed; after a crash it may have arrived */
        DELIVERY_SENT,
        DELIVERY_FAILED,
        DELIVERY_UNKNOWN, /* may have arrived, and the platform cannot be asked */
        DELIVERY_EXPIRED,
        DELIVERY_SUPERSEDED, /* a newer delivery made it pointless before it was sent */
};

/* As stored, and as shown in JSON. */
const char *delivery_kind_name(enum delivery_kind kind);
const char *delivery_state_name(enum delivery_state state);
/* False: no kind or state has this name. */
bool delivery_kind_parse(const char *name, enum delivery_kind *out);
bool delivery_state_parse(const char *name, enum delivery_state *out);

#endif
