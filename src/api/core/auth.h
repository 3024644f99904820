/*
 * door: who may ask. The operator key and the other keys, where we listen, and which hosts, origins
 * and peers are ours.
 */
#ifndef API_CORE_AUTH_H
#define API_CORE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/keyring.h"
#include "base/crypto.h"
#include "base/error.h"
#include "config/config.h"

struct auth {
        unsigned char key_hash[SHA256_SIZE];
        struct key *operator; /* whoever has the operator key: may everything */
        struct keyring *ring; /* borrowed; NULL: there are no other keys */
        char *public_host;    /* of http.publicUrl, as a Host header has it; NULL: none */
        /* addresses or networks; naming one means that others may reach us through it */
        char **proxies;
        size_t proxy_count;
        char *own_host; /* of http.listen: who connects from there is this machine */
        bool loopback;  /* only this machine can connect */
        bool tls;
};

/*
 * Checks the listen address: ERR_REFUSED when it is open to others without TLS or a named proxy.
 * Copies what it needs.
 */
int auth_init(struct auth *a, const struct http_conf *conf, struct error *err);
/* Also after a failed or no init, when zeroed. */
void auth_release(struct auth *a);
/* Reads the operator key of a state directory, or makes it (0600). */
int operator_key_load(struct auth *a, const char *state_dir, struct error *err);

enum auth_verdict { AUTH_NO_KEY, AUTH_OK, AUTH_WRONG, AUTH_EXPIRED, AUTH_REVOKED };
/*
 * Whose key the headers of a request have (either may be NULL); compared by digest, in constant
 * time. *caller, borrowed, is set with AUTH_OK.
 */
enum auth_verdict auth_check(const struct auth *a, const char *authorization, const char *x_api_key,
                             struct key **caller);
/*
 * May this peer talk to us at all? Without TLS on an open address only the named proxies and this
 * machine may.
 */
bool auth_peer_ok(const struct auth *a, const char *peer);
/*
 * Is the Host header one of ours? A page that made its own name point to this machine is told apart
 * here.
 */
bool auth_host_ok(const struct auth *a, const char *host);
/* Is the Origin header (NULL: none) that of our own pages? */
bool auth_origin_ok(const struct auth *a, const char *origin, const char *host);
/* How many connections one address may have; 0: no limit. */
unsigned auth_max_per_address(const struct auth *a);
/* Nobody but this machine can ask. */
bool auth_is_local(const struct auth *a);

/* "127.0.0.1:8420", "[::1]:0", "localhost:1" → true; exposed for tests. */
bool auth_is_loopback(const char *listen);

#endif
