/*
 * key: the caller of a request, and what it may do. A caller is the operator, a key of the ring, or
 * anonymous.
 *
 * The text of a key is shown once, when it is created. We keep its beginning, by which people and
 * the ring recognise it, and its digest. The rights of a key never change, so a reader's thread may
 * check them while it holds a reference.
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

#define KEY_PREFIX       "dgk_"
#define KEY_PREFIX_SIZE  13 /* "dgk_", 8 characters and the NUL */
#define KEY_SCOPES_MAX   32
#define KEY_ADAPTERS_MAX 64

struct key_scope {
        char *resource; /* "messages"; NULL: all */
        enum scope level;
};

struct key {
        int64_t id; /* shown as "key-N"; 0: the operator, or anonymous */
        char *name;
        char prefix[KEY_PREFIX_SIZE];
        unsigned char hash[SHA256_SIZE];
        struct key_scope scopes[KEY_SCOPES_MAX];
        size_t scope_count;
        char *adapters; /* ",api,tg,": the only ones it reaches; NULL: all */
        int64_t created_ms, expires_ms, revoked_ms; /* wall clock; 0: never */
        int64_t used_ms;                            /* the last request; 0: never */
        int64_t rate_limit;                         /* requests a minute; 0: no limit */

        double tokens; /* left of the rate limit */
        int64_t filled_ms;
        bool used; /* since used_ms was stored */
        unsigned refs;
};

/*
 * With one reference. scopes: "read", "turns:write", "*", separated by spaces or commas and checked
 * already; adapters: separated by commas, NULL: all.
 */
struct key *key_new(const char *name, const char *scopes, const char *adapters);
struct key *key_ref(struct key *k);
/* NULL is fine; for http_set_identity. */
void key_unref(void *k);

/* Is this word a scope? 0, or -1 with a sentence. */
int key_scope_check(const char *word, struct error *err);
/* Appends the word: "turns:write". */
void key_scope_write(struct buf *b, const struct key_scope *s);
/* May it use this route, adapters aside? write includes read, admin includes both. */
bool key_may(const struct key *k, const struct route *r);
/* May it see this adapter? NULL: an event of none, which restricted keys do not see. Any thread. */
bool key_reaches(const struct key *k, const char *adapter);
/* The same with the arguments of struct bus_filter's `may`. */
bool key_may_see(const void *key, const char *adapter);
/* Neither revoked nor expired. */
bool key_is_live(const struct key *k, int64_t now_ms);
/* Takes one request off the rate limit. false: none is left, and *wait_ms until the next. */
bool key_spend(struct key *k, int64_t mono_ms, int64_t *wait_ms);

#endif
