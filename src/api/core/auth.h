/*
 * auth: who may ask. The operator key and the other keys, the address we listen on, and which
 * hosts, origins and peers are ours.
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
        unsigned char key_hash[SHA256_SIZE]; /* of the operator key */
        struct key *operator;                /* its owner, who may do everything */
        struct keyring *ring;                /* borrowed; NULL: there are no other keys */
        char *public_host; /* of http.publicUrl, as in a Host header; NULL: none */
        char **proxies;    /* addresses or networks; with one of them others can reach us */
        size_t proxy_count;
        char *own_host; /* of http.listen: a peer from there is this machine */
        bool loopback;  /* only this machine can connect */
        bool tls;
};

/*
 * Checks the listen address: ERR_REFUSED when it is open to others without TLS or a named proxy.
 * Copies what it needs.
 */
int auth_init(struct auth *a, const struct http_conf *conf, struct error *err);
/* Also after a failed auth_init, or none when zeroed. */
void auth_release(struct auth *a);
/* Reads the operator key of a state directory, or creates it (0600). */
int operator_key_load(struct auth *a, const char *state_dir, struct error *err);

enum auth_verdict { AUTH_NO_KEY, AUTH_OK, AUTH_WRONG, AUTH_EXPIRED, AUTH_REVOKED };
/*
 * Finds the key of these headers (either may be NULL); compares digests, in constant time. *caller,
 * borrowed, is set with AUTH_OK.
 */
enum auth_verdict auth_check(const struct auth *a, const char *authorization, const char *x_api_key,
                             struct key **caller);
/* Without TLS on an open address only the named proxies and this machine may connect. */
bool auth_peer_ok(const struct auth *a, const char *peer);
/* Refuses a foreign Host header, as of a page whose name was made to point to this machine. */
bool auth_host_ok(const struct auth *a, const char *host);
/* Does the Origin header (NULL: none) name our own pages? */
bool auth_origin_ok(const struct auth *a, const char *origin, const char *host);
/* Connections one address may have; 0: no limit. */
unsigned auth_max_per_address(const struct auth *a);
/* Only this machine can ask, and no proxy for others. */
bool auth_is_local(const struct auth *a);
/* "127.0.0.1:8420", "[::1]:0", "localhost:1" → true. */
bool auth_is_loopback(const char *listen);

#endif
