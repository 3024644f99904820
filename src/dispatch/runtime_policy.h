/*
 * desk: what people change while the program runs, and what it must keep: here the evaluator finds
 * it, and here the API and the command line change it.
 *
 * Everything on the desk works in the same way: rows are the truth, memory has a copy for the
 * decisions, a change is written first and counts when it is committed.
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
        struct store *store;
        struct handovers *handover; /* NULL: nobody ever takes over (replay) */
        struct stored_rules *rules;
        struct access_rules *access;
        struct pairings *pairing;
        struct persons *persons;
        struct account_links *links;
        void (*changed)(void *arg); /* may be NULL */
        void *changed_arg;
};

/*
 * Reads what is kept; blocks. A store that was opened only for reading, and no bus (NULL), will do
 * for whoever only asks.
 */
struct runtime_policy *runtime_policy_open(struct store *s, struct bus *b, struct error *err);
/* Called after rules or persons changed. */
void runtime_policy_watch(struct runtime_policy *policy, void (*changed)(void *arg), void *arg);
/* The bus is about to close: what is committed from now on is told to nobody. NULL is fine. */
void runtime_policy_detach_bus(struct runtime_policy *policy);
/* After the store is closed: its completions may still come here. NULL is fine. */
void runtime_policy_free(struct runtime_policy *policy);

#endif
