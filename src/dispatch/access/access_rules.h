/*
 * access_rules: who is allowed or denied besides what the configuration says; stored, and changed
 * while running.
 *
 * A rule names a user of a platform ("7", "telegram:7", "telegram:12*") or a person, on one adapter
 * or all, in direct messages, groups or everywhere, for ever or until a time. There are no
 * priorities: a deny that matches beats everything, even when it names another identity of the same
 * person. An allow admits a user by the identity it names, and a person by any identity. A change
 * counts once it is committed (write_through.h).
 */
#ifndef DISPATCH_ACCESS_ACCESS_RULES_H
#define DISPATCH_ACCESS_ACCESS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rows/access_rule_row.h"
#include "rows/person_row.h"
#include "store/store.h"

struct access_rules;
struct persons;

#define ACCESS_RULES_MAX       10000
#define ACCESS_RULES_GLOBS_MAX 1000 /* rules with a `*` are tried one by one */

/* Who asks for access, and where. */
struct access_request {
        const char *adapter;
        bool dm;
        /* the first is the sender's, the others belong to the same person */
        const struct identity *identities;
        size_t identity_count;
        int64_t person; /* 0: not known */
        int64_t now_ms; /* wall clock, for expiry */
};

/* Reads the table; blocks. Free it after the store is closed. */
struct access_rules *access_rules_open(struct store *s, struct error *err);
void access_rules_free(struct access_rules *rs);
/* Rules about a person follow merges; call access_rules_reindex after each. */
void access_rules_set_persons(struct access_rules *rs, const struct persons *persons);
void access_rules_reindex(struct access_rules *rs);

/* The rule that decides, borrowed until the next change: a deny, else an allow, else NULL. */
const struct access_rule *access_rules_match(const struct access_rules *rs,
                                             const struct access_request *request);

/* By number. Borrowed until the next change. */
size_t access_rules_count(const struct access_rules *rs);
const struct access_rule *access_rules_at(const struct access_rules *rs, size_t index);
const struct access_rule *access_rules_find(const struct access_rules *rs, int64_t id);

/* ERR_INVALID with the field and what would be accepted: "platformUserId: ...". */
int access_rule_check(const struct access_rule *r, struct error *err);
/* id 0: a new rule; done gets its number. ERR_INVALID, ERR_LIMIT, ERR_MISSING. */
typedef void access_rule_done_fn(void *arg, int64_t id, const struct error *err);
void access_rules_put(struct access_rules *rs, const struct access_rule *r,
                      access_rule_done_fn *done, void *arg);
void access_rules_delete(struct access_rules *rs, int64_t id, access_rule_done_fn *done, void *arg);

/* Updates memory after another module has committed a rule, or its deletion. */
void access_rules_add(struct access_rules *rs, const struct access_rule *r);
void access_rules_remove(struct access_rules *rs, int64_t id);

#endif
