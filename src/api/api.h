/*
 * api: the HTTP face of the daemon. One file per resource, one route table from which the OpenAPI
 * document comes.
 */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"
#include "net/sse.h"

struct api;

/* Everybody the API shows. All outlive it. */
struct api_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        struct agents *agents;
        struct adapters *adapters;
        struct dispatch *dispatch;
        const char *dir;
        int64_t started_ms; /* wall clock */
};

/*
 * Makes the operator key at first start (DIR/state/operator.key, 0600), listens, and writes
 * DIR/state/http.addr. Refuses (ERR_REFUSED, with a sentence that says what to set) a non-loopback
 * address without TLS or a named trusted proxy.
 */
struct api *api_open(const struct api_env *env, const struct http_conf *conf, struct error *err);
const char *api_address(const struct api *a); /* "127.0.0.1:8420" */
bool api_is_tls(const struct api *a);
/* Stops taking new requests; what is in flight is answered. */
void api_quiesce(struct api *a);
void api_close(struct api *a);

#endif
