/*
 * Open addressing without removal: identities change their person, they do not go.
 */
#include "dispatch/people/identity_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"

#define DIGEST_SIZE 16
#define LEAST_SLOTS 64

struct identity_slot {
        unsigned char digest[DIGEST_SIZE];
        int64_t person; /* 0: free */
};

void identity_index_init(struct identity_index *w)
{
        *w = (struct identity_index){ 0 };
}

void identity_index_release(struct identity_index *w)
{
        free(w->slots);
        identity_index_init(w);
}

size_t identity_index_bytes(const struct identity_index *w)
{
        return w->cap * sizeof(*w->slots);
}

static void digest_of(const char *platform, const char *user, unsigned char out[DIGEST_SIZE])
{
        char *key = mem_printf("%s:%s", platform, user); /* no platform's name has a colon */
        unsigned char whole[SHA256_SIZE];

        crypto_sha256(key, strlen(key), whole);
        memcpy(out, whole, DIGEST_SIZE);
        free(key);
}

/*
 * The digest is even everywhere: its beginning is as good a place as any. Without a power of two
 * the table may grow by halves.
 */
static size_t home_of(const struct identity_index *w, const unsigned char digest[DIGEST_SIZE])
{
        uint32_t high;

        memcpy(&high, digest, sizeof(high));
        return (size_t)(((uint64_t)high * w->cap) >> 32);
}

/* Where it is, or the free slot where it belongs. */
static struct identity_slot *slot_of(const struct identity_index *w,
                                     const unsigned char digest[DIGEST_SIZE])
{
        size_t i = home_of(w, digest);

        while (w->slots[i].person && memcmp(w->slots[i].digest, digest, DIGEST_SIZE) != 0)
                i = i + 1 < w->cap ? i + 1 : 0;
        return &w->slots[i];
}

static void grow(struct identity_index *w)
{
        struct identity_index larger = { .count = w->count };

        larger.cap = w->cap ? w->cap + w->cap / 2 : LEAST_SLOTS;
        larger.slots = mem_array(larger.cap, sizeof(*larger.slots));
        for (size_t i = 0; i < w->cap; i++)
                if (w->slots[i].person)
                        *slot_of(&larger, w->slots[i].digest) = w->slots[i];
        free(w->slots);
        *w = larger;
}

int64_t identity_index_get(const struct identity_index *w, const char *platform, const char *user)
{
        unsigned char digest[DIGEST_SIZE];

        if (w->count == 0)
                return 0;
        digest_of(platform, user, digest);
        return slot_of(w, digest)->person;
}

void identity_index_set(struct identity_index *w, const char *platform, const char *user,
                        int64_t person)
{
        unsigned char digest[DIGEST_SIZE];
        struct identity_slot *e;

        if (w->count >= w->cap / 5 * 4)
                grow(w);
        digest_of(platform, user, digest);
        e = slot_of(w, digest);
        if (!e->person)
                w->count++;
        memcpy(e->digest, digest, DIGEST_SIZE);
        e->person = person;
}
