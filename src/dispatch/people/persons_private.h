/* persons_private: the parts of persons.c. */
#ifndef DISPATCH_PEOPLE_PERSONS_PRIVATE_H
#define DISPATCH_PEOPLE_PERSONS_PRIVATE_H

#include "dispatch/people/persons.h"

/*
 * identity_index: the person of every recorded identity. Nothing is evicted: a denied person must
 * not get in through a forgotten account.
 */
struct identity_index {
        struct identity_slot *slots;
        size_t count, cap;
};

/* A zeroed index is empty. */
void identity_index_release(struct identity_index *x);
/* 0: not recorded. */
int64_t identity_index_get(const struct identity_index *x, const char *platform, const char *user);
/* Inserts or replaces; person > 0. */
void identity_index_set(struct identity_index *x, const char *platform, const char *user,
                        int64_t person);
size_t identity_index_bytes(const struct identity_index *x);

/* seen_cache: digests of what was stored about senders, to avoid storing it again. */
struct seen_cache;

/* At most `max` senders; an entry is fresh for `fresh_ms`. */
struct seen_cache *seen_cache_new(size_t max, int64_t fresh_ms);
void seen_cache_free(struct seen_cache *s);
/* False: a fresh entry has the same digest. */
bool seen_cache_update(struct seen_cache *s, const char *platform, const char *user,
                       uint64_t digest, int64_t now_ms);
size_t seen_cache_count(const struct seen_cache *s);

/* person_change: recording, merging and splitting persons inside a transaction. */
struct person_identity {
        struct identity identity; /* its strings are owned */
        int64_t person;
};

/* The two persons of a change, as stored. */
struct person_effects {
        struct person_changed result;
        struct person_identity *identities; /* grouped by person */
        size_t identity_count;
        struct person_alias {
                int64_t person, into; /* into 0: not an alias */
        } * aliases;
        size_t alias_count;
        struct bus_batch batch;
};

/* Stores new facts about a sender; an unknown identity gets a new person. */
int person_change_record(struct store_tx *tx, const struct person_sighting *s, int64_t *person,
                         struct error *err);
/* ERR_MISSING, ERR_CONFLICT, ERR_LIMIT: nothing changed. */
int person_change_write(struct store_tx *tx, const struct person_change *c, int64_t now_ms,
                        struct person_effects *out, struct error *err);
void person_change_release(struct person_effects *e);

#endif
