/*
 * approval: a person decides whether a running turn may do something.
 *
 * An approval is a row, stored with the message that asks for it. The turn waits without a
 * deadline; the approval has one, after which it counts as refused. Exactly one decision counts,
 * by a button, a reply, the command line or the API, also after a restart. A turn that runs again
 * asks again and finds what was decided meanwhile.
 */
#ifndef ROAD_APPROVAL_H
#define ROAD_APPROVAL_H

#include "road/turn/turn_run.h"
#include "rows/approval_row.h"
#include "store/store.h"

struct road;

#define APPROVAL_DETAIL_MAX 6000 /* bytes */

struct approval_request {
        const char *call;    /* names it within the turn: asked once, however often we start */
        const char *tool;    /* "bash" */
        const char *title;   /* "run a command" */
        const char *detail;  /* Markdown: exactly what would be done */
        const char *subject; /* JSON: what the approval is bound to, such as command and cwd */
        const char *reason;  /* why it asks: "the rule ..." */
        /* "delete": once refused, the turn's further questions about it are, too; may be NULL */
        const char *effect;
        const char *rule;       /* JSON: the rule that "always" writes; NULL: not offered */
        const char *rule_label; /* the same for people: "git push *" */
        enum approvers approvers;
        int64_t expires_ms; /* from now */
};

struct approval_decision {
        int64_t id;
        enum approval_state state; /* never APPROVAL_OPEN */
        const char *subject;       /* what was asked: an earlier attempt may have meant another */
        const char *by;            /* "Ann (telegram:42)", "operator"; NULL: nobody */
        const char *note;          /* what they wrote, or why nobody was asked; may be NULL */
};

/*
 * Stores the question and posts it, or finds it with its decision if an earlier attempt of the turn
 * asked. Calls done once, later, unless the turn is cancelled.
 */
typedef void approval_fn(void *arg, const struct approval_decision *d);
void turn_ask_approval(struct turn_run *run, const struct approval_request *q, approval_fn *done,
                       void *arg);

/* ---- for the API ---- */

struct approval_verdict {
        int64_t id;
        bool approve;
        bool always;          /* also write the rule */
        const char *by;       /* who decides */
        const char *note;     /* may be NULL */
        const char *adapters; /* that the caller may see, see ROWS_IF_ADAPTERS */
};
/*
 * *row (borrowed) is the approval as stored, also with ERR_CONFLICT: it was decided before.
 * ERR_MISSING: no such approval; ERR_BUSY: somebody decides it right now; ERR_INVALID: no rule is
 * offered. Then row is NULL.
 */
typedef void approval_decided_fn(void *arg, const struct approval_row *row,
                                 const struct error *err);
void approval_decide(struct road *r, const struct approval_verdict *v, approval_decided_fn *done,
                     void *arg);
/* Appends "approved by Ann (telegram:42)", "expired", "cancelled: its turn ended". */
void approval_describe(const struct approval_row *row, struct buf *out);

/* ---- rules that "always" left behind ---- */

/* Those for the turn's agent and channel, JSON: *count, borrowed until the loop runs on. */
const char *const *turn_approval_rules(const struct turn_run *run, size_t *count);
size_t approval_rules_count(const struct road *r);
const struct approval_rule_row *approval_rules_at(const struct road *r, size_t index);
/* ERR_MISSING. */
void approval_rule_delete(struct road *r, int64_t id, store_done_fn *done, void *arg);

/* Is the whole text "yes", "no" or the like? */
bool approval_is_answer(const char *text, bool *approves);

#endif
