/*
 * key: the caller of a request and its rights: the operator, a key of the ring, or anonymous.
 *
 * A key's text is shown once; we keep its beginning and its digest. Rights never change, so reader
 * threads may check them while they hold a reference.
 */
#ifndef API_CORE_KEY_H
#define API_CORE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/core/routes.h"
#include "base/buf.h"
#include "base/crypto.h"
#include "base/error.h"
#include "net/loop.h"
#include "store/store.h"

#define KEY_PREFIX       "dgk_"
#define KEY_PREFIX_SIZE  13 /* "dgk_", 8 characters and the NUL */
#define KEY_SCOPES_MAX   32
#define KEY_ADAPTERS_MAX 64

struct key_scope {
        char *resource; /* "messages"; NULL: all */
        enum scope level;
};

struct key {
        int64_t id; /* "key-N"; 0: operator or anonymous */
        char *name;
        char prefix[KEY_PREFIX_SIZE];
        unsigned char hash[SHA256_SIZE];
        struct key_scope scopes[KEY_SCOPES_MAX];
        size_t scope_count;
        char *adapters;                             /* ",api,tg,"; NULL: all */
        int64_t created_ms, expires_ms, revoked_ms; /* wall clock; 0: never */
        int64_t used_ms;                            /* the last request; 0: never */
        int64_t rate_limit;                         /* requests a minute; 0: no limit */

        double tokens; /* left of the rate limit */
        int64_t filled_ms;
        bool used; /* since used_ms was stored */
        unsigned refs;
};

/*
 * With one reference. scopes: checked words such as "read", "turns:write", "*", separated by spaces
 * or commas; adapters: separated by commas, NULL: all.
 */
struct key *key_new(const char *name, const char *scopes, const char *adapters);
struct key *key_ref(struct key *k);
/* For http_set_identity; NULL is fine. */
void key_unref(void *k);

/* 0, or -1 when the word is not a scope. */
int key_scope_check(const char *word, struct error *err);
/* Appends the word: "turns:write". */
void key_scope_write(struct buf *b, const struct key_scope *s);
/* Adapters aside. write includes read, admin includes both. */
bool key_may(const struct key *k, const struct route *r);
/* NULL: an event of no adapter, which restricted keys do not see. Any thread. */
bool key_reaches(const struct key *k, const char *adapter);
/* For struct bus_filter's `may`. */
bool key_may_see(const void *key, const char *adapter);
bool key_is_live(const struct key *k, int64_t now_ms);
/* Takes one request off the rate limit. false: none is left for *wait_ms. */
bool key_spend(struct key *k, int64_t mono_ms, int64_t *wait_ms);

/* ---- all keys, in memory; changes are stored before they count ---- */

#define KEYRING_ALL       10000 /* including revoked and expired ones */
#define KEYRING_MAX       1000  /* valid keys */
#define KEYRING_RATE      1000  /* requests a minute by default */
#define KEYRING_TEXT_SIZE 48

struct keyring;

/* Reads the keys; blocks. */
struct keyring *keyring_open(struct loop *l, struct store *s, struct error *err);
/* Stores last uses. */
void keyring_free(struct keyring *r);

/* Valid or not; borrowed, or NULL. */
struct key *keyring_find(const struct keyring *r, const char *text,
                         const unsigned char hash[SHA256_SIZE]);
struct key *keyring_by_id(const struct keyring *r, int64_t id);
/* Valid, or being stored; borrowed. */
struct key *keyring_by_name(const struct keyring *r, const char *name, int64_t now_ms);
/* Stored from time to time. */
void keyring_used(struct keyring *r, struct key *k, int64_t now_ms);
/* All keys by id. */
const struct key *const *keyring_all(const struct keyring *r, size_t *count);

/*
 * Stores a new key: takes the reference over, writes the text (show it once and wipe it), and calls
 * done when it is stored and counts. -1 with ERR_LIMIT when there are too many.
 */
typedef void keyring_done_fn(void *arg, const struct key *k, const struct error *err);
int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err);
/* The key is refused at once, but counts again if storing fails. */
void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg);

#endif
