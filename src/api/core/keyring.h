/*
 * keyring: all keys in memory, so that checking one does not read the store. Changes are stored
 * before they count.
 */
#ifndef API_CORE_KEYRING_H
#define API_CORE_KEYRING_H

#include "api/core/key.h"
#include "net/loop.h"
#include "store/store.h"

#define KEYRING_ALL       10000 /* with revoked and expired ones, which are kept for a while */
#define KEYRING_MAX       1000  /* valid keys */
#define KEYRING_RATE      1000  /* requests a minute, unless the key says otherwise */
#define KEYRING_TEXT_SIZE 48

struct keyring;

/* Reads the keys; blocks. */
struct keyring *keyring_open(struct loop *l, struct store *s, struct error *err);
/* Stores when the keys were last used. NULL is fine. */
void keyring_free(struct keyring *r);

/* The key with this text and digest, valid or not; borrowed. NULL: there is none. */
struct key *keyring_find(const struct keyring *r, const char *text,
                         const unsigned char hash[SHA256_SIZE]);
struct key *keyring_by_id(const struct keyring *r, int64_t id);
/* The valid key of that name, or one that is being stored; borrowed. */
struct key *keyring_by_name(const struct keyring *r, const char *name, int64_t now_ms);
/* A request came with this key; stored from time to time. */
void keyring_used(struct keyring *r, struct key *k, int64_t now_ms);
/* All keys by id. */
const struct key *const *keyring_all(const struct keyring *r, size_t *count);

/*
 * Stores a new key: takes the reference over, writes its text (to be shown once and wiped), and
 * calls done when it is stored and counts. -1 with ERR_LIMIT, and the reference released, when
 * there are too many.
 */
typedef void keyring_done_fn(void *arg, const struct key *k, const struct error *err);
int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err);
/* The key is refused at once; done when that is stored. If storing fails it counts again. */
void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg);

#endif
