/*
 * approval_private: open approvals in memory, shared by the approval_*.c files.
 *
 * Open approvals are loaded at start: presses and replies are recognised without reading the store,
 * and each expires by its own timer, whether its turn runs again or not.
 *
 * `deciding` is the lock: whoever sets it writes the one decision. The write compares the row's
 * state all the same, so another process cannot decide it twice.
 */
#ifndef ROAD_TURN_APPROVAL_PRIVATE_H
#define ROAD_TURN_APPROVAL_PRIVATE_H

#include "road/road_state.h"
#include "road/turn/approval.h"
#include "road/turn/turn.h"

#define APPROVAL_MESSAGES_MAX 12 /* that ask for one approval */

/* A message that asks. */
struct approval_message {
        int64_t delivery;
        const char *channel, *thread; /* of the row, or ours */
        char *admin;                  /* its direct chat; NULL: the turn's chat */
        char *id;                     /* the platform's; NULL: not sent yet */
};

struct approval {
        struct road *road;
        struct approval_row *row;
        char key[ROAD_KEY_SIZE];
        struct turn *turn; /* waits for it; NULL: it does not run yet */
        approval_fn *done;
        void *arg;
        struct timer *expiry;
        bool deciding; /* a decision is being stored */
        struct approval_message messages[APPROVAL_MESSAGES_MAX];
        unsigned message_count;
        struct approval *sibling; /* of the same turn */
};

/* One decision on its way to the store. */
struct approval_change {
        struct approval *approval;      /* deciding is set */
        struct approval_row *row;       /* as it will be */
        struct answer jobs;             /* edits that show it */
        struct approval_rule_row *rule; /* to write; NULL: none */
        struct approval_row *found;     /* result: another process decided */
        struct bus_batch batch;
};

/* ---- approval.c ---- */

/* Both: NULL if none is open. */
struct approval *approval_find(const struct road *r, int64_t id);
struct approval *approval_first_of(const struct road *r, int64_t turn);
struct approval *approval_new(struct road *r, const struct approval_row *row);
void approval_set_message(struct approval *a, unsigned index, const char *channel, const char *id);
void approval_free(struct approval *a);
/* The turn has no deadline while it waits for a person. */
void approval_update_wait(struct turn *t);
void approval_tell(approval_fn *done, void *arg, const struct approval_row *row);
/* In a store function: the event of the row's state. */
int approval_append_event(struct store_tx *tx, struct bus_batch *batch,
                          const struct approval_row *row, int64_t time_ms, struct error *err);

/* Locks it; the decision is made. */
struct approval_change *approval_change_new(struct approval *a, enum approval_state state,
                                            const char *by, const char *note, bool always);
/* In a store function; may run more than once. */
int approval_change_write(struct store_tx *tx, struct approval_change *c, struct error *err);
/* After the commit: frees the approval, and its turn goes on. */
void approval_change_committed(struct approval_change *c);
void approval_change_free(struct approval_change *c);

/* ---- approval_message.c: deliveries without numbers ---- */

/* The question, to the turn's chat and to those who decide. */
void approval_make_question(struct turn *t, const struct approval_row *row, const char *rule_label,
                            struct answer *out);
/* Edits that show the outcome where it was asked. */
void approval_make_outcome(struct approval *a, const struct approval_row *outcome,
                           struct answer *out);
void approval_discard_jobs(struct answer *jobs);
void approval_enqueue_jobs(struct road *r, struct answer *jobs); /* after the commit */

/* ---- approval_rules.c ---- */

void approval_rule_add(struct road *r, const struct approval_rule_row *rule);

#endif
