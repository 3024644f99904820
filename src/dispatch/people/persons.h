/*
 * persons: who people are, across platforms.
 *
 * An identity is an account on a platform ("telegram:7"); a person has one or more. Whoever is let
 * in is noted with his first message: a person of his own. Persons are merged by a code typed on
 * each platform (/link), or by the operator. A merge loses nothing: the identities move to the
 * other person, each remembers where it was at home, and the merged person stays as an alias, so
 * that whatever names it means the other one from then on. Unlinking takes it back.
 *
 * In memory is what decisions ask: to whom an identity belongs, and which identities are the same
 * person. Rows are the truth, and changes count when they are committed.
 */
#ifndef DISPATCH_PEOPLE_PERSONS_H
#define DISPATCH_PEOPLE_PERSONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bus/bus.h"
#include "dispatch/access/access_rules.h"
#include "road/road.h"
#include "store/store.h"

struct persons;

#define PERSONS_MAX_IDENTITIES 500000           /* beyond it nobody new is noted */
#define PERSON_MAX_IDENTITIES  20               /* of one person */
#define PERSONS_SEEN_MS        (10 * 60 * 1000) /* "last seen" is that exact */

/* Reads them; blocks. bus may be NULL for whoever only looks. Free it after the store is closed. */
struct persons *persons_open(struct store *s, struct bus *b, struct error *err);
void persons_free(struct persons *p);
/* The bus is about to close. */
void persons_detach_bus(struct persons *p);
/* Called after every change of who is who. */
void persons_watch(struct persons *p, void (*changed)(void *arg), void *arg);

/* "per-3" or "3" → 3; -1 when it is no person. */
int64_t person_parse_id(const char *text);
/* The person an identity belongs to; 0: not known. */
int64_t persons_lookup(const struct persons *p, const char *platform, const char *user);
/* The other identities of that person, at most `max`: how many. Borrowed until the next change. */
size_t persons_other_identities(const struct persons *p, const char *platform, const char *user,
                                struct identity *out, size_t max);
/* Who this person is now, after merges. */
int64_t persons_current(const struct persons *p, int64_t person);
size_t persons_identity_count(const struct persons *p);

/*
 * Somebody who was let in has written: noted with the decision if there is something new about him,
 * else nothing is done.
 */
void persons_record(struct persons *p, const char *platform, const struct incoming *in,
                    int64_t now_ms, struct decision *out);

/* ---- who is who ---- */

struct person_change {
        enum { PERSON_MERGE, PERSON_LINK, PERSON_UNLINK } what;
        int64_t source, target; /* merge: the source becomes the target */
        struct identity a,
                /*
                 * link: the person of b becomes that of a; unlink: a leaves, with those who came
                 * with it
                 */
                b;
        const char *by, *reason; /* may be NULL */
};
struct person_changed {
        int64_t person; /* that is meant now: the target; after unlinking the one that left */
        int64_t other;  /* the alias; after unlinking the one that was left */
};
typedef void person_done_fn(void *arg, const struct person_changed *result,
                            const struct error *err);
/*
 * ERR_MISSING, ERR_CONFLICT (the same person already; nothing to unlink), ERR_LIMIT. Copies what it
 * needs.
 */
void persons_change(struct persons *p, const struct person_change *change, person_done_fn *done,
                    void *arg);
/*
 * With a decision: the sender and identity a become one person; whoever is not known yet is noted
 * first. What cannot be done is left undone.
 */
void persons_link_sender(struct persons *p, const char *platform, const struct incoming *in,
                         const struct identity *a, int64_t now_ms, struct decision *out);

#endif
