/*
 * access_rules: who is let in or kept out besides what the configuration says; kept in the database
 * and changed while running.
 *
 * A rule is about a user of a platform ("7", "telegram:7", "telegram:12*") or about a person, on
 * one adapter or on all, in direct messages, in groups or everywhere, for ever or until a time.
 * There are no priorities: a deny that matches wins over everything, also when it names another
 * identity of the same person. An allow lets in whom it names: a user as he is written, a person by
 * any of his identities. A change counts when it is committed; expiry counts at its time.
 */
#ifndef DISPATCH_ACCESS_ACCESS_RULES_H
#define DISPATCH_ACCESS_ACCESS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct access_rules;

#define ACCESS_RULES_MAX       10000
#define ACCESS_RULES_GLOBS_MAX 1000 /* those with a `*` are asked one by one */

struct access_rule {
        int64_t id; /* shown as "acr-N" */
        bool deny;
        const char *adapter; /* NULL: all */
        /* may begin with a platform and a colon; `*` globs; NULL: it is about a person */
        const char *user;
        int64_t person;    /* 0: it is about a user */
        const char *place; /* "dm", "group"; NULL: everywhere */
        bool enabled;
        const char *reason; /* for the operator; may be NULL */
        /* deny: what the sender is told in a direct message, once in a while; NULL: nothing */
        const char *message;
        const char *by;     /* who made it; may be NULL */
        int64_t expires_ms; /* wall clock; 0: never */
        int64_t created_ms, updated_ms;
};

/* An account on a platform. */
struct identity {
        const char *platform, *user;
};

/*
 * Who wants in, where. The first identity is the one that writes; the others are known to be the
 * same person.
 */
struct access_who {
        const char *adapter;
        bool dm;
        const struct identity *identities;
        size_t identity_count;
        int64_t person; /* 0: not known */
        int64_t now_ms; /* wall clock: what has expired by then does not count */
};

/* Reads them; blocks. Free it after the store is closed. */
struct access_rules *access_rules_open(struct store *s, struct error *err);
void access_rules_free(struct access_rules *rs);

/* The rule that decides, borrowed until the next change: a deny, else an allow, else NULL. */
const struct access_rule *access_rules_match(const struct access_rules *rs,
                                             const struct access_who *who);

/* By number. Borrowed until the next change. */
size_t access_rules_count(const struct access_rules *rs);
const struct access_rule *access_rules_at(const struct access_rules *rs, size_t index);
const struct access_rule *access_rules_find(const struct access_rules *rs, int64_t id);

/*
 * Is it a whole rule? ERR_INVALID with the member and what would be accepted: "platformUserId:
 * ...".
 */
int access_rule_check(const struct access_rule *r, struct error *err);
/*
 * id 0: a new one; done gets the number. ERR_INVALID, ERR_LIMIT, ERR_MISSING. Copies what it needs.
 */
typedef void access_rule_done_fn(void *arg, int64_t id, const struct error *err);
void access_rules_put(struct access_rules *rs, const struct access_rule *r,
                      access_rule_done_fn *done, void *arg);
void access_rules_delete(struct access_rules *rs, int64_t id, access_rule_done_fn *done, void *arg);

/*
 * For whoever writes more than a rule in one transaction: inside a store function, and in memory
 * when that is committed.
 */
int access_rule_insert(struct store_tx *tx, const struct access_rule *r, int64_t *id,
                       struct error *err);
/* fine when it is gone */
int access_rule_remove(struct store_tx *tx, int64_t id, struct error *err);
void access_rules_learn(struct access_rules *rs, const struct access_rule *r);
void access_rules_unlearn(struct access_rules *rs, int64_t id);

/*
 * Who a person is now, after merges: asked for every rule about a person, again by
 * access_rules_resolve. NULL: everybody stays who he is.
 */
void access_rules_set_persons(struct access_rules *rs,
                              int64_t (*current)(void *arg, int64_t person), void *arg);
void access_rules_resolve(struct access_rules *rs);

#endif
