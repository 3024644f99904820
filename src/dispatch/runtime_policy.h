/*
 * runtime_policy: settings changed at run time.
 *
 * Memory mirrors the tables; a change counts once committed (write_through.h). Opening reads the
 * tables and blocks; free after the store is closed. Rows are borrowed until the next change.
 */
#ifndef DISPATCH_RUNTIME_POLICY_H
#define DISPATCH_RUNTIME_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dispatch/people/persons.h"
#include "road/road.h"
#include "rows/person_row.h"
#include "rows/policy_rows.h"
#include "store/store.h"

struct evaluation;
struct rule;

struct runtime_policy {
        struct handovers *handovers; /* NULL: never paused (replay) */
        struct stored_rules *rules;
        struct access_rules *access;
        struct pairings *pairings;
        struct persons *persons;
        struct account_links *links;
        void (*changed)(void *arg); /* called after rules or persons changed; may be NULL */
        void *changed_arg;
};

/* For queries, a read-only store without a bus is enough. */
struct runtime_policy *runtime_policy_open(struct store *s, struct bus *b, struct error *err);
void runtime_policy_free(struct runtime_policy *policy);
/* Call before the bus closes. NULL is fine. */
void runtime_policy_detach_bus(struct runtime_policy *policy);

/*
 * handover: a human has taken over from the agent in a thread, or in a channel with its threads,
 * until resumed or for a given time. Messages start no agent but go into the transcript, so the
 * agent knows them when it returns.
 */
struct handovers *handovers_open(struct store *s, struct error *err);
void handovers_free(struct handovers *hs);
const struct handover *handover_find(const struct handovers *hs, const struct chat_key *chat);
/* Oldest first: an array of *count, yours to free. */
const struct handover **handover_list(const struct handovers *hs, size_t *count);
/* Pauses the agent, or replaces the chat's handover. since_ms 0: now. ERR_LIMIT. */
void handover_pause(struct handovers *hs, const struct handover *h, store_done_fn *done, void *arg);
/* ERR_MISSING unless exactly this chat is handed over. */
void handover_resume(struct handovers *hs, const struct chat_key *chat, store_done_fn *done,
                     void *arg);
/* Written with the decision, and in force at once. False: too many, or none. */
bool handover_pause_with(struct handovers *hs, const struct handover *h, struct decision *out);
bool handover_resume_with(struct handovers *hs, const struct chat_key *chat, struct decision *out);

/*
 * stored_rules: rules written over the API. Positions below 0 precede the rules of the file, others
 * follow; ties are ordered by name. A rule of the file hides a stored one of the same name.
 */
struct stored_rule {
        struct rule_row row;
        const struct rule *rule; /* NULL if this version rejects it: see `why` */
        const char *why;
};

struct stored_rules *stored_rules_open(struct store *s, struct error *err);
void stored_rules_free(struct stored_rules *rs);
void stored_rules_watch(struct stored_rules *rs, void (*changed)(void *arg), void *arg);
/* By position. */
size_t stored_rules_count(const struct stored_rules *rs);
const struct stored_rule *stored_rules_at(const struct stored_rules *rs, size_t index);
const struct stored_rule *stored_rules_find(const struct stored_rules *rs, const char *name);
/* The position after the last. */
int64_t stored_rules_end(const struct stored_rules *rs);
/* ERR_INVALID with the field: "rule.when: unknown key 'chanel' ...". */
int stored_rules_check(const char *name, const json_t *object, struct error *err);
enum stored_rule_put { RULE_CREATE, RULE_REPLACE, RULE_CREATE_OR_REPLACE };
/* Sets the times. ERR_INVALID, ERR_LIMIT, ERR_CONFLICT (it exists), ERR_MISSING. */
void stored_rules_put(struct stored_rules *rs, const struct rule_row *row, enum stored_rule_put how,
                      store_done_fn *done, void *arg);
void stored_rules_delete(struct stored_rules *rs, const char *name, store_done_fn *done, void *arg);
/* The rules in force, in order: *count, yours to free; contents borrowed. rs may be NULL. */
struct rule *stored_rules_merge(const struct stored_rules *rs, const struct rule *file,
                                size_t file_count, size_t *count);

/*
 * access_rules: who is allowed or denied, besides the configuration. A rule names a user ("7",
 * "telegram:7", "telegram:12*") or a person. A matching deny beats everything, even by another
 * identity of the person. An allow admits a user by the identity it names, and a person by any
 * identity.
 */
#define ACCESS_RULES_MAX 10000

struct access_request {
        const char *adapter;
        bool dm;
        /* the sender's first, then others of the same person */
        const struct identity *identities;
        size_t identity_count;
        int64_t person; /* 0: unknown */
        int64_t now_ms; /* for expiry */
};

/* Rules about a person follow merges; call access_rules_reindex after each. */
struct access_rules *access_rules_open(struct store *s, const struct persons *persons,
                                       struct error *err);
void access_rules_free(struct access_rules *rs);
void access_rules_reindex(struct access_rules *rs);
/* The deciding rule: a deny, else an allow, else NULL. */
const struct access_rule *access_rules_match(const struct access_rules *rs,
                                             const struct access_request *request);
size_t access_rules_count(const struct access_rules *rs);
const struct access_rule *access_rules_at(const struct access_rules *rs, size_t index);
const struct access_rule *access_rules_find(const struct access_rules *rs, int64_t id);
/* ERR_INVALID with the field: "platformUserId: ...". */
int access_rule_check(const struct access_rule *r, struct error *err);
/* id 0: a new rule; done gets its number. ERR_INVALID, ERR_LIMIT, ERR_MISSING. */
typedef void access_rule_done_fn(void *arg, int64_t id, const struct error *err);
void access_rules_put(struct access_rules *rs, const struct access_rule *r,
                      access_rule_done_fn *done, void *arg);
void access_rules_delete(struct access_rules *rs, int64_t id, access_rule_done_fn *done, void *arg);
/* Called after another module committed a rule, or its deletion. */
void access_rules_add(struct access_rules *rs, const struct access_rule *r);
void access_rules_remove(struct access_rules *rs, int64_t id);

/*
 * pairing: with "dm": "pairing", a stranger who writes a direct message gets a code, once. They
 * show it to the operator, who approves or denies it, which makes an access rule. The code does
 * nothing in the chat, so strangers cannot approve themselves; few may wait per adapter, so they
 * cannot make the bot talk much.
 */
#define PAIRING_WAITING_MAX 20 /* per adapter */

struct pairings *pairings_open(struct store *s, struct access_rules *rules, struct error *err);
void pairings_free(struct pairings *ps);
/* Stores a code with the decision and adds it to the notice, unless they have one. */
void pairing_offer(struct evaluation *e);

struct pairing_verdict {
        bool deny;
        const char *code;   /* as typed: case, spaces and dashes are ignored */
        const char *by;     /* who decides; may be NULL */
        int64_t expires_ms; /* of the rule; 0: never */
};
/* On success *result (borrowed for the call) has state and rule. ERR_MISSING, ERR_LIMIT. */
typedef void pairing_done_fn(void *arg, const struct pairing *result, const struct error *err);
void pairing_decide(struct pairings *ps, const struct pairing_verdict *verdict,
                    pairing_done_fn *done, void *arg);
/* Deletes a waiting or decided pairing with its access rule. ERR_MISSING. */
void pairing_revoke(struct pairings *ps, int64_t id, pairing_done_fn *done, void *arg);

/*
 * account_link: "/link" in one direct chat gives a code; "/link CODE" in another, within ten
 * minutes, merges the two persons. Only allowed senders get a code. A stranger may redeem one, and
 * is then admitted where a rule names their person. A restart drops the codes.
 */
#define LINK_TRIES 5 /* codes one account may try within ten minutes */

struct account_links *account_links_new(void);
void account_links_free(struct account_links *l);

#endif
