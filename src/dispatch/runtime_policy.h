/*
 * runtime_policy: what people change while the program runs. The evaluator reads it here, the API
 * and the command line change it here.
 *
 * All parts work alike: rows are the truth, memory mirrors them, and a change counts once it is
 * committed (write_through.h).
 */
#ifndef DISPATCH_RUNTIME_POLICY_H
#define DISPATCH_RUNTIME_POLICY_H

#include "base/error.h"
#include "dispatch/access/access_rules.h"
#include "dispatch/access/pairing.h"
#include "dispatch/handover.h"
#include "dispatch/people/account_link.h"
#include "dispatch/people/persons.h"
#include "dispatch/rules/stored_rules.h"
#include "store/store.h"

struct runtime_policy {
        struct handovers *handovers; /* NULL: never paused (replay) */
        struct stored_rules *rules;
        struct access_rules *access;
        struct pairings *pairings;
        struct persons *persons;
        struct account_links *links;
        void (*changed)(void *arg); /* may be NULL */
        void *changed_arg;
};

/* Reads the tables; blocks. For queries alone a read-only store without a bus will do. */
struct runtime_policy *runtime_policy_open(struct store *s, struct bus *b, struct error *err);
/* Called after rules or persons changed. */
void runtime_policy_watch(struct runtime_policy *policy, void (*changed)(void *arg), void *arg);
/* The bus is about to close; later commits are not published. NULL is fine. */
void runtime_policy_detach_bus(struct runtime_policy *policy);
/* After the store is closed, whose completions need it. NULL is fine. */
void runtime_policy_free(struct runtime_policy *policy);

#endif
