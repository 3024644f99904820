/*
 * persons: people across platforms.
 *
 * An identity is an account on a platform ("telegram:7"); a person has one or more. An allowed
 * sender's first message records them as a new person. A merge loses nothing: identities move to
 * the other person and remember their home, and the merged person stays as an alias. Unlinking
 * undoes it.
 */
#ifndef DISPATCH_PEOPLE_PERSONS_H
#define DISPATCH_PEOPLE_PERSONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bus/bus.h"
#include "road/road.h"
#include "rows/person_row.h"
#include "store/store.h"

struct persons;

#define PERSON_MAX_IDENTITIES 20

/* Blocks. bus may be NULL if nothing will change. Free after the store is closed. */
struct persons *persons_open(struct store *s, struct bus *b, struct error *err);
void persons_free(struct persons *p);
void persons_detach_bus(struct persons *p);
/* Called after every merge and unlink. */
void persons_watch(struct persons *p, void (*changed)(void *arg), void *arg);

/* "per-3" or "3" → 3; -1: not a person id. */
int64_t person_parse_id(const char *text);
/* 0: unknown. */
int64_t persons_lookup(const struct persons *p, const char *platform, const char *user);
/* Copies up to `max` other identities of the person; borrowed until the next change. */
size_t persons_other_identities(const struct persons *p, const char *platform, const char *user,
                                struct identity *out, size_t max);
/* Follows merges. */
int64_t persons_current(const struct persons *p, int64_t person);
size_t persons_identity_count(const struct persons *p);

/* Records new facts about a sender with the decision. */
void persons_record(struct persons *p, const char *platform, const struct incoming *in,
                    int64_t now_ms, struct decision *out);
/* Also merges their person into that of `identity`, if possible. */
void persons_link_sender(struct persons *p, const char *platform, const struct incoming *in,
                         const struct identity *identity, int64_t now_ms, struct decision *out);

struct person_change {
        enum { PERSON_MERGE, PERSON_LINK, PERSON_UNLINK } what;
        int64_t source, target; /* merge: the source becomes an alias of the target */
        /* link: b's person merges into a's; unlink: a returns to its home */
        struct identity a, b;
        const char *by, *reason; /* may be NULL */
};
struct person_changed {
        int64_t person; /* the target; after unlinking, the one that left */
        int64_t other;  /* the alias; after unlinking, the one that was left */
};
typedef void person_done_fn(void *arg, const struct person_changed *result,
                            const struct error *err);
/* ERR_MISSING, ERR_CONFLICT (already the same person; nothing to unlink), ERR_LIMIT. */
void persons_change(struct persons *p, const struct person_change *change, person_done_fn *done,
                    void *arg);

#endif
