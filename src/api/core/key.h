/*
 * key: the caller of a request and its rights: the operator, a key of the ring, or anonymous.
 *
 * A key's text is shown once; only its prefix and digest are kept. Rights never change, so reader
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
#define KEY_AGENTS_MAX   64

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
        char *agents;                               /* ",gpt,"; NULL: see key_asks */
        int64_t made_by;                            /* id of the key that made it; 0: operator */
        int64_t created_ms, expires_ms, revoked_ms; /* wall clock; 0: never */
        int64_t used_ms;                            /* the last request; 0: never */
        int64_t rate_limit;                         /* requests a minute; 0: no limit */

        double tokens; /* left of the rate limit */
        int64_t filled_ms;
        bool used; /* since used_ms was stored */
        unsigned refs;
};

/*
 * Returns one reference. scopes: valid words such as "read", "turns:write", "*", separated by
 * spaces or commas; adapters: comma-separated, NULL: all.
 */
struct key *key_new(const char *name, const char *scopes, const char *adapters);
/* Comma-separated; NULL: no list. */
void key_set_agents(struct key *k, const char *agents);
struct key *key_ref(struct key *k);
/* For http_set_identity; NULL is fine. */
void key_unref(void *k);

/* 0, or -1: not a scope. */
int key_scope_check(const char *word, struct error *err);
/* Appends the word: "turns:write". */
void key_scope_write(struct buf *b, const struct key_scope *s);
/* Ignores adapters. write includes read, admin both. */
bool key_may(const struct key *k, const struct route *r);
/* adapter NULL: an event of none, hidden from restricted keys. Any thread. */
bool key_reaches(const struct key *k, const char *adapter);
/* Is the agent in its list? Without one: 1 for a key of all adapters, else -1, ask dispatch. */
int key_asks(const struct key *k, const char *agent);
/* For struct bus_filter's `may`. */
bool key_may_see(const void *key, const char *adapter);
bool key_is_live(const struct key *k, int64_t now_ms);
/* Counts a request against the rate limit. false: none left for *wait_ms. */
bool key_spend(struct key *k, int64_t mono_ms, int64_t *wait_ms);

/* ---- the keyring: all keys in memory; changes count once stored ---- */

#define KEYRING_ALL       10000 /* including revoked and expired keys */
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
/* Stored periodically. */
void keyring_used(struct keyring *r, struct key *k, int64_t now_ms);
/* All keys by id. */
const struct key *const *keyring_all(const struct keyring *r, size_t *count);

/*
 * Stores a new key: takes the reference, writes the text (show it once and wipe it), and calls done
 * when the key is stored and valid. -1 with ERR_LIMIT: too many.
 */
typedef void keyring_done_fn(void *arg, const struct key *k, const struct error *err);
int keyring_add(struct keyring *r, struct key *k, char text[KEYRING_TEXT_SIZE],
                keyring_done_fn *done, void *arg, struct error *err);
/*
 * Also revokes the keys it made, and theirs. Refused at once, but valid again if storing fails;
 * done is called for k alone.
 */
void keyring_revoke(struct keyring *r, struct key *k, keyring_done_fn *done, void *arg);

#endif
