/*
 * desk_rig: a desk and a dispatch over a real store in a private folder; changes are awaited,
 * restarts are real.
 *
 * Adapters "tg" (platform telegram) and "dc" (discord) let in whom `dm` says; agent "echo" answers.
 */
#ifndef TESTS_DESK_RIG_H
#define TESTS_DESK_RIG_H

#include <stdbool.h>

#include "dispatch/dispatch.h"

struct desk_rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct desk *desk;
        struct dispatch *dispatch;
        /* of both adapters: an entry of "dm", or NULL: everybody is let in everywhere */
        const char *dm;
        const char *admin; /* of both adapters; NULL: there is none, and no commands */
};

/* dm as above; for setup functions of cmocka: *state becomes the rig. */
struct desk_rig *desk_rig_new(const char *dm);
void desk_rig_free(struct desk_rig *g);
void desk_rig_restart(struct desk_rig *g);
/*
 * A reload of the configuration: the adapters anew, and these rules of the file as JSON text
 * ("[{...}]"); NULL: none.
 */
void desk_rig_reload(struct desk_rig *g, const char *rules);

/* A change that is awaited: pass desk_rig_done and the outcome, then wait. */
struct desk_outcome {
        bool done;
        struct error error;
};
void desk_rig_done(void *outcome, const struct error *err);
enum error_kind desk_rig_wait(struct desk_rig *g, struct desk_outcome *o);
/* Commits what a decision wants written, as the road would. */
void desk_rig_commit(struct desk_rig *g, struct decision *out);

/*
 * What is decided about a direct message of this sender in his own chat; what is to be written with
 * it is committed.
 */
struct decision desk_rig_dm(struct desk_rig *g, const char *adapter, const char *sender,
                            const char *text);
/* The same in the group "g". */
struct decision desk_rig_group(struct desk_rig *g, const char *adapter, const char *sender,
                               const char *text);
/* Runs a statement, as another hand would. The text is a constant. */
void desk_rig_run(struct desk_rig *g, const char *sql);
/* One number from the store. */
int64_t desk_rig_count(struct desk_rig *g, const char *sql);

#endif
