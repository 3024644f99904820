/*
 * decide: stored events that wait for a decision, and effects of decisions other than turns. For
 * src/road alone.
 */
#ifndef ROAD_INBOX_DECIDE_H
#define ROAD_INBOX_DECIDE_H

#include <sys/queue.h>

#include "base/buf.h"
#include "road/road.h"
#include "road/turn/turn.h"

struct pending_event {
        struct incoming *in;
        STAILQ_ENTRY(pending_event) next;
};

struct inbox {
        STAILQ_HEAD(, pending_event) pending;
        size_t pending_count;
        bool deciding;         /* decisions are being stored */
        struct decided *asked; /* a /why that waits for that */
        bool dual_emit;        /* see ROAD_DUAL_EMIT */
};

/* ---- decide.c ---- */

void decide_later(struct road *r, struct incoming *in); /* takes ownership of in */
void decide_pending(struct road *r);                    /* no-op while decisions are being stored */
void decide_release(struct road *r, const struct error *why);

/* ---- command.c ---- */

const char *command_name(enum road_command what);
/* "/", or what else precedes "stop" on the adapter. */
const char *command_prefix(const struct road *r, const char *adapter);
/* Appends the answer, except for COMMAND_WHY: the trace report follows. */
struct effect *command_new(struct road *r, enum road_command what, const struct lane_name *n,
                           const struct incoming *in, struct buf *answer);

/* ---- turn/approval.c ---- */

struct approval_answer {
        const struct incoming *in;
        bool approves;
        bool admin, trusted; /* as in struct decision */
};
/* Appends the answer, unless it must be read. */
struct effect *approval_command_new(struct road *r, const struct approval_answer *q,
                                    struct buf *answer);

/* ---- message_edit.c ---- */

void message_edit_index(struct turn *t, const struct incoming *in);
void message_edit_unindex(struct turn *t, const struct incoming *in);
/* in: an edit or deletion. NULL: no turn has the message. *reason is yours to free. */
struct effect *message_edit_new(struct road *r, const struct incoming *in, struct turn **turn,
                                char **reason);

#endif
