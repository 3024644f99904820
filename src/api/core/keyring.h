/*
 * keyring: all keys in memory, so that asking for one costs no look into the store; changes are
 * rows first.
 */
#ifndef API_CORE_KEYRING_H
#define API_CORE_KEYRING_H

#include "api/core/key.h"
#include "net/loop.h"
#include "store/store.h"

/* with those that were revoked or have expired; they are forgotten some day */
#define KEYRING_ALL       10000
#define KEYRING_MAX       1000 /* keys that are not revoked */
#define KEYRING_RATE      1000 /* requests a minute, unless the key says otherwise */
#define KEYRING_TEXT_SIZE 48

struct keyring;

/* Reads the keys; blocks. */
struct keyring *keyring_open(struct loop *l, struct store *s, struct error *err);
/* Notes when keys were used last. NULL is fine. */
void keyring_free(struct keyring *r);

/*
 * The key with this text, whether or not it is still valid; borrowed. hash is the text's. NULL:
 * there is none.
 */
struct key *keyring_find(const struct keyring *r, const char *text,
                         const unsigned char hash[SHA256_SIZE]);
struct key *keyring_by_id(const struct keyring *r, int64_t id);
/* The valid key of that name, also one that is about to be; borrowed. */
struct key *keyring_by_name(const struct keyring *r, const char *name, int64_t now_ms);
/* The request was this key's; remembered now and then. */
void keyring_used(struct keyring *r, struct key *k, int64_t now_ms);
void keyring_each(const struct keyring *r, void (*fn)(void *arg, const struct key *k), void *arg);

/*
 * Stores a new key: takes the reference over, makes its text (into text, to be shown once and
 * wiped), and calls done when it is stored and counts. ERR_LIMIT at once (-1, and the reference is
 * gone) when there are too many.
 */
typedef void keyring_done_fn(void *arg, const struct key *k, const struct error *err);
int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err);
/*
 * From now on the key opens nothing; done when that is stored. When it cannot be stored, it counts
 * again.
 */
void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg);

#endif
