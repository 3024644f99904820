/*
 * policy_rig: a desk and a dispatch over a real store in a private folder; changes are awaited,
 * restarts are real.
 *
 * Adapters "tg" (platform telegram) and "dc" (discord) let in whom `dm` says; agent "echo" answers.
 */
#ifndef TESTS_POLICY_RIG_H
#define TESTS_POLICY_RIG_H

#include <stdbool.h>

#include "dispatch/dispatch.h"

struct policy_rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct runtime_policy *policy;
        struct dispatch *dispatch;
        /* of both adapters: an entry of "dm", or NULL: everybody is let in everywhere */
        const char *dm;
        const char *admin; /* of both adapters; NULL: there is none, and no commands */
};

/* dm as above; for setup functions of cmocka: *state becomes the rig. */
struct policy_rig *policy_rig_new(const char *dm);
void policy_rig_free(struct policy_rig *g);
void policy_rig_restart(struct policy_rig *g);
/*
 * A reload of the configuration: the adapters anew, and these rules of the file as JSON text
 * ("[{...}]"); NULL: none.
 */
void policy_rig_reload(struct policy_rig *g, const char *rules);

/* A change that is awaited: pass policy_rig_done and the outcome, then wait. */
struct policy_outcome {
        bool done;
        struct error error;
};
void policy_rig_done(void *outcome, const struct error *err);
enum error_kind policy_rig_wait(struct policy_rig *g, struct policy_outcome *o);
/* Commits what a decision wants written, as the road would. */
void policy_rig_commit(struct policy_rig *g, struct decision *out);

/*
 * What is decided about a direct message of this sender in his own chat; what is to be written with
 * it is committed.
 */
struct decision policy_rig_dm(struct policy_rig *g, const char *adapter, const char *sender,
                              const char *text);
/* The same in the group "g". */
struct decision policy_rig_group(struct policy_rig *g, const char *adapter, const char *sender,
                                 const char *text);
/* Runs a statement, as another hand would. The text is a constant. */
void policy_rig_run(struct policy_rig *g, const char *sql);
/* One number from the store. */
int64_t policy_rig_count(struct policy_rig *g, const char *sql);

#endif
