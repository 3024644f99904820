/*
 * key: who asks, and what they may. Every request has a caller: the operator, one of the keys of
 * the ring, or nobody.
 *
 * A key's text is shown once, when it is made; kept are its beginning, by which people and the ring
 * recognise it, and its digest. What a key may never changes after it was made, so a reader's
 * thread may look at it as long as somebody holds a reference.
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
        char *space; /* the resource, "messages"; NULL: all */
        enum scope level;
};

struct key {
        int64_t id; /* shown as "key-N"; 0: the operator, or nobody */
        char *name;
        char prefix[KEY_PREFIX_SIZE];
        unsigned char hash[SHA256_SIZE];
        struct key_scope scopes[KEY_SCOPES_MAX];
        size_t scope_count;
        /* ",api,tg,": the only ones it reaches; NULL: all */
        char *adapters;
        int64_t created_ms, expires_ms, revoked_ms; /* wall clock; 0: never */
        int64_t used_ms;                            /* wall clock of the last request; 0: never */
        int64_t rate_limit;                         /* requests a minute; 0: no limit */

        double tokens; /* what is left of the limit */
        int64_t filled_ms;
        bool used; /* since it was last noted */
        unsigned refs;
};

/*
 * With one reference. Words are "read", "turns:write", "*" and so on, checked already; adapters
 * joined by commas, NULL: all.
 */
struct key *key_new(const char *name, const char *scopes, const char *adapters);
struct key *key_ref(struct key *k);
/* NULL is fine; for http_set_identity. */
void key_unref(void *k);

/* One word of a scope list: 0, or -1 with a sentence when it means nothing. */
int key_scope_check(const char *word, struct error *err);
/*
 * May it use this route at all, adapters aside? Who may write may read, and who administers may
 * both.
 */
bool key_may(const struct key *k, const struct route *r);
/* Is this adapter (NULL: none in particular) among those it reaches? For any thread. */
bool key_reaches(const struct key *k, const char *adapter);
/* The same with the arguments of struct bus_filter's `may`. */
bool key_may_see(const void *key, const char *adapter);
/* Valid now? What for is another question. */
bool key_is_live(const struct key *k, int64_t now_ms);
/* Takes one request off the limit. false when none is left: *wait_ms until the next. */
bool key_spend(struct key *k, int64_t mono_ms, int64_t *wait_ms);

/* "read", "write", "admin", or "none". */
const char *route_scope_name(enum scope s);
/* The resource of a route, as scopes name it: "/api/v2/turns/:id" → "turns". Not NUL-terminated. */
struct slice route_resource(const struct route *r);

#endif
