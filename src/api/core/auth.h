/*
 * auth: checks key, peer, Host and Origin of a request.
 */
#ifndef API_CORE_AUTH_H
#define API_CORE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/key.h"
#include "base/crypto.h"
#include "base/error.h"
#include "config/config.h"

struct auth {
        unsigned char key_hash[SHA256_SIZE]; /* of the operator key */
        struct key *operator;
        struct keyring *ring; /* borrowed; NULL: none */
        char *public_host;    /* of http.publicUrl; NULL: none */
        char **proxies;       /* addresses or networks */
        size_t proxy_count;
        char *own_host; /* of http.listen */
        bool loopback;  /* only this machine can connect */
        bool tls;
};

/* ERR_REFUSED: reachable by others without TLS or a named proxy. */
int auth_init(struct auth *a, const struct http_conf *conf, struct error *err);
/* Also after a failed auth_init. */
void auth_release(struct auth *a);
/* Reads the operator key, or creates it (0600). */
int auth_load_operator_key(struct auth *a, const char *state_dir, struct error *err);

enum auth_verdict { AUTH_NO_KEY, AUTH_OK, AUTH_WRONG, AUTH_EXPIRED, AUTH_REVOKED };
/*
 * Finds the key of these headers (may be NULL) by digest, in constant time. With AUTH_OK sets
 * *caller, borrowed.
 */
enum auth_verdict auth_check(const struct auth *a, const char *authorization, const char *x_api_key,
                             struct key **caller);
/* Without TLS, only named proxies and this machine may connect to an open address. */
bool auth_peer_ok(const struct auth *a, const char *peer);
/* Refuses foreign Host headers, against DNS rebinding. */
bool auth_host_ok(const struct auth *a, const char *host);
/* Does the Origin header (may be NULL) name our own pages? */
bool auth_origin_ok(const struct auth *a, const char *origin, const char *host);
/* Connections per address; 0: no limit. */
unsigned auth_max_per_address(const struct auth *a);
/*
 * Can only this machine connect? With a public URL a proxy may forward the requests of others. They
 * look local: from 127.0.0.1, to 127.0.0.1, often without a header of the proxy.
 */
bool auth_is_local(const struct auth *a);
/* "127.0.0.1:8420", "[::1]:0", "localhost:1" → true. */
bool auth_is_loopback(const char *listen);

#endif
