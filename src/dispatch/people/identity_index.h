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

struct whose_entry;

struct whose {
        struct whose_entry *slots;
        size_t count, cap;
};

void whose_init(struct whose *w);
void whose_release(struct whose *w);
/* 0: nobody is known by it. */
int64_t whose_get(const struct whose *w, const char *platform, const char *user);
/* person > 0; whose it was before is forgotten. */
void whose_set(struct whose *w, const char *platform, const char *user, int64_t person);
size_t whose_bytes(const struct whose *w);

#endif
