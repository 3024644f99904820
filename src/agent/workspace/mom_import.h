/*
 * mom_import: takes over the workspace of the Slack agent mom, or of its redesign.
 *
 *     DIR/{MEMORY.md, skills/, events/, <channel>/...}                      one adapter, as given
 *     DIR/[workspace/]{MEMORY.md, skills/, events/, channels/<adapter>/<channel>/...}
 *
 * Files are copied as they are; one that is there already and differs stays. log.jsonl becomes the
 * beginning of ours, context.jsonl the memory of the conversation with an agent, unless it has one.
 * In an event the channel gets its adapter; one that has run here meanwhile is not copied again.
 * So it can be repeated. Links are not followed. No daemon may run.
 */
#ifndef AGENT_WORKSPACE_MOM_IMPORT_H
#define AGENT_WORKSPACE_MOM_IMPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct mom_report {
        int64_t channels;
        int64_t files;              /* copied */
        int64_t same;               /* there already */
        int64_t differ;             /* there already, but not the same: left alone */
        int64_t lines;              /* of logs */
        int64_t skipped;            /* lines of logs and sessions that are malformed */
        int64_t sessions, messages; /* taken over as memory of conversations */
};

struct mom_import {
        const char *from;                          /* mom's folder */
        const char *dir;                           /* our data directory */
        const char *adapter;                       /* of channels in the old layout */
        const char *agent;                         /* that remembers the conversations */
        struct store *store;                       /* may be NULL if dry_run is set */
        bool dry_run;                              /* only report what would be done */
        void (*note)(void *arg, const char *line); /* for people */
        void *arg;
};

int mom_import_run(const struct mom_import *m, struct mom_report *out, struct error *err);

/*
 * Adds messages as read by context_read to a conversation without steps. Inside a store function.
 * How many, 0: it has steps already; -1.
 */
struct conversation_key;
int64_t mom_import_messages(struct store_tx *tx, const struct conversation_key *key,
                            const json_t *messages, int64_t now_ms, struct error *err);

#endif
