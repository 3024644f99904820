/*
 * api: the HTTP server. core/ handles requests, resources/ has a file per resource with its routes,
 * fields and handlers, compat/ speaks foreign protocols.
 */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"

struct api;

/* All must outlive the API. */
struct api_env {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        struct agents *agents;
        struct adapters *adapters;
        struct dispatch *dispatch;
        const char *dir;
        int64_t started_ms;                       /* wall clock */
        const struct confine_report *confinement; /* NULL: not known */
        /* where it may write besides dir, if it is confined; NULL-terminated; NULL: nowhere */
        const char *const *writable;
        struct schedule *schedule; /* NULL: there is none */
        struct remote *remote;     /* the same */
};

/*
 * Creates the operator key at the first start (DIR/state/operator.key, 0600), listens, and writes
 * DIR/state/http.addr. ERR_REFUSED for a non-loopback address without TLS or a trusted proxy.
 */
struct api *api_open(const struct api_env *env, const struct http_conf *conf, struct error *err);
const char *api_address(const struct api *a); /* "127.0.0.1:8420" */
bool api_is_tls(const struct api *a);
/* Copied. */
void api_set_cards(struct api *a, const struct cards_conf *conf);
/* Refuses new requests; finishes those under way. */
void api_quiesce(struct api *a);
void api_close(struct api *a);

#endif
