/*
 * policy_rig: a runtime policy and a dispatch over a real store in a private folder. Changes are
 * awaited, and restarts reopen the store.
 *
 * Adapters "tg" (platform telegram) and "dc" (discord) allow whom `dm` names; agent "echo" answers.
 */
#ifndef TESTS_POLICY_RIG_H
#define TESTS_POLICY_RIG_H

#include <stdbool.h>

#include "dispatch/dispatch.h"
#include "rows.h"

struct policy_rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct runtime_policy *policy;
        struct dispatch *dispatch;
        /* of both adapters: an entry of "dm"; NULL: trusted */
        const char *dm;
        const char *admin; /* of both adapters; NULL: none, and no commands */
};

/* dm as above. */
struct policy_rig *policy_rig_new(const char *dm);
void policy_rig_free(struct policy_rig *g);
void policy_rig_restart(struct policy_rig *g);
/* Reloads the configuration, with these rules of the file ("[{...}]"); NULL: none. */
void policy_rig_reload(struct policy_rig *g, const char *rules);

/* To await a change, pass policy_rig_done and the outcome, then wait. */
struct policy_outcome {
        bool done;
        struct error error;
};
void policy_rig_done(void *outcome, const struct error *err);
enum error_kind policy_rig_wait(struct policy_rig *g, struct policy_outcome *o);
/* Commits the extra write of a decision, as the road would. */
void policy_rig_commit(struct policy_rig *g, struct decision *out);

/* Decides about a direct message of this sender, and commits the extra write. */
struct decision policy_rig_dm(struct policy_rig *g, const char *adapter, const char *sender,
                              const char *text);
/* The same in the group "g". */
struct decision policy_rig_group(struct policy_rig *g, const char *adapter, const char *sender,
                                 const char *text);
/* Rows; see rows.h. */
#define policy_rig_count(g, from)       rows_count((g)->store, from)
#define policy_rig_number(g, select)    rows_number((g)->store, select)
#define policy_rig_update(g, set, a, b) rows_update((g)->store, set, a, b)

#endif
