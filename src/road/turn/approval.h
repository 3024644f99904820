/*
 * approval: a person decides whether a running turn may do something.
 *
 * An approval is a row, stored with the message that asks for it. The turn waits without a
 * deadline; the approval has one, after which it counts as refused. Exactly one decision counts,
 * by a button, a reply, the command line or the API, also after a restart.
 */
#ifndef ROAD_APPROVAL_H
#define ROAD_APPROVAL_H

#include "road/turn/turn_run.h"

enum approvers {
        APPROVERS_ASKER,  /* who began the turn, and admins */
        APPROVERS_ADMINS, /* admins of the adapter, and the operator */
};

struct approval_request {
        const char *call;    /* names it within the turn: asked once, however often we start */
        const char *tool;    /* "bash" */
        const char *title;   /* "run a command" */
        const char *detail;  /* Markdown: exactly what would be done */
        const char *subject; /* JSON: what the approval is bound to, such as command and cwd */
        const char *reason;  /* why it asks: "the rule ..." */
        enum approvers approvers;
        int64_t expires_ms; /* from now */
};

enum approval_state { APPROVAL_OPEN, APPROVAL_APPROVED, APPROVAL_REFUSED, APPROVAL_EXPIRED };

struct approval_decision {
        int64_t id;
        enum approval_state state;
        const char *by;   /* "discord:42", "operator"; NULL: nobody */
        const char *note; /* what they wrote; may be NULL */
};

/*
 * Stores the question and posts it, or finds it with its decision if an earlier attempt of the turn
 * asked. Calls done once, later, unless the turn is cancelled.
 */
typedef void approval_fn(void *arg, const struct approval_decision *d);
void turn_ask_approval(struct turn_run *run, const struct approval_request *q, approval_fn *done,
                       void *arg);

#endif
