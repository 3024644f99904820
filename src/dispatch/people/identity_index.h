/*
 * whose: to which person an identity ("telegram:7") belongs, for everybody who was ever noted.
 *
 * A decision must know it at once and for certain, or a person who was kept out would come in by an
 * account that was forgotten; so nobody is left out here. It takes 30 to 45 bytes each: the
 * identity is kept as 128 bits of its SHA-256, which no two share.
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

void identity_index_init(struct identity_index *w);
void identity_index_release(struct identity_index *w);
/* 0: nobody is known by it. */
int64_t identity_index_get(const struct identity_index *w, const char *platform, const char *user);
/* person > 0; whose it was before is forgotten. */
void identity_index_set(struct identity_index *w, const char *platform, const char *user,
                        int64_t person);
size_t identity_index_bytes(const struct identity_index *w);

#endif
