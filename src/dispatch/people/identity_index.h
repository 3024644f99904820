/*
 * identity_index: which person an identity ("telegram:7") belongs to, for every recorded identity.
 *
 * Nothing is ever evicted: a denied person must not get in by an account that was forgotten. An
 * entry takes 30 to 45 bytes, because the identity is stored as 128 bits of its SHA-256.
 */
#ifndef DISPATCH_PEOPLE_IDENTITY_INDEX_H
#define DISPATCH_PEOPLE_IDENTITY_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct identity_slot;

struct identity_index {
        struct identity_slot *slots;
        size_t count, cap;
};

void identity_index_init(struct identity_index *x);
void identity_index_release(struct identity_index *x);
/* 0: not recorded. */
int64_t identity_index_get(const struct identity_index *x, const char *platform, const char *user);
/* Inserts or replaces; person > 0. */
void identity_index_set(struct identity_index *x, const char *platform, const char *user,
                        int64_t person);
size_t identity_index_bytes(const struct identity_index *x);

#endif
