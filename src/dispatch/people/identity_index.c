/*
 * Open addressing without removal: identities change their person but are never deleted. An entry
 * takes 30 to 45 bytes, because it stores 128 bits of a SHA-256.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"
#include "dispatch/people/persons_private.h"

#define DIGEST_SIZE 16
#define MIN_SLOTS   64

struct identity_slot {
        unsigned char digest[DIGEST_SIZE];
        int64_t person; /* 0: free */
};

void identity_index_release(struct identity_index *x)
{
        free(x->slots);
        *x = (struct identity_index){ 0 };
}

size_t identity_index_bytes(const struct identity_index *x)
{
        return x->cap * sizeof(*x->slots);
}

static void digest_of(const char *platform, const char *user, unsigned char out[DIGEST_SIZE])
{
        char *key = mem_printf("%s:%s", platform, user); /* platform names have no colon */
        unsigned char whole[SHA256_SIZE];

        crypto_sha256(key, strlen(key), whole);
        memcpy(out, whole, DIGEST_SIZE);
        free(key);
}

/* The digest's slot, or the free one for it. */
static struct identity_slot *slot_of(const struct identity_index *x,
                                     const unsigned char digest[DIGEST_SIZE])
{
        uint32_t high;
        size_t i;

        /* the digest is uniform: scaling 32 bits of it works for any cap */
        memcpy(&high, digest, sizeof(high));
        i = (size_t)(((uint64_t)high * x->cap) >> 32);
        while (x->slots[i].person && memcmp(x->slots[i].digest, digest, DIGEST_SIZE) != 0)
                i = i + 1 < x->cap ? i + 1 : 0;
        return &x->slots[i];
}

/* By half, to keep the bytes per entry low. */
static void grow(struct identity_index *x)
{
        struct identity_index larger = { .count = x->count };

        larger.cap = x->cap ? x->cap + x->cap / 2 : MIN_SLOTS;
        larger.slots = mem_array(larger.cap, sizeof(*larger.slots));
        for (size_t i = 0; i < x->cap; i++) {
                if (x->slots[i].person)
                        *slot_of(&larger, x->slots[i].digest) = x->slots[i];
        }
        free(x->slots);
        *x = larger;
}

int64_t identity_index_get(const struct identity_index *x, const char *platform, const char *user)
{
        unsigned char digest[DIGEST_SIZE];

        if (x->count == 0)
                return 0;
        digest_of(platform, user, digest);
        return slot_of(x, digest)->person;
}

void identity_index_set(struct identity_index *x, const char *platform, const char *user,
                        int64_t person)
{
        unsigned char digest[DIGEST_SIZE];
        struct identity_slot *slot;

        if (x->count >= x->cap / 5 * 4)
                grow(x);
        digest_of(platform, user, digest);
        slot = slot_of(x, digest);
        if (!slot->person)
                x->count++;
        memcpy(slot->digest, digest, DIGEST_SIZE);
        slot->person = person;
}
