/* The API as a whole: opening and closing, and the gate that every request passes. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/core/api_private.h"
#include "api/core/state_file.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "net/tls_pin.h"

/* ---- the gate ---- */

static bool check_where_from(struct api *a, struct http_exchange *x)
{
        const char *host = http_header(x, "Host");

        if (!auth_peer_ok(&a->auth, http_peer(x))) {
                http_refuse(x, 403, "FORBIDDEN",
                            "only the proxies named in http.trustedProxy may connect here");
                return false;
        }
        if (!auth_host_ok(&a->auth, host)) {
                http_refuse(
                        x, 403, "FORBIDDEN",
                        "this server is not called '%.100s'; use its address or set http.publicUrl",
                        host ? host : "");
                return false;
        }
        if (!auth_origin_ok(&a->auth, http_header(x, "Origin"), host)) {
                http_refuse(x, 403, "FORBIDDEN", "pages of other sites may not ask here");
                return false;
        }
        return true;
}

static const char *const refusals[] = {
        [AUTH_NO_KEY] =
                "a key is needed: Authorization: Bearer KEY, or x-api-key: KEY (see state/operator.key)",
        [AUTH_WRONG] = "this is not the key",
        [AUTH_EXPIRED] = "this key has expired",
        [AUTH_REVOKED] = "this key was revoked",
};

/* What a key without its right is told: what it would need. */
static void refuse_scope(struct http_exchange *x, const struct route *route)
{
        struct slice space = route_resource(route);

        http_refuse(x, 403, "FORBIDDEN", "this key has not the scope for it: %s, or %.*s:%s",
                    route_scope_name(route->scope), (int)space.n, space.p,
                    route_scope_name(route->scope));
}

static void tell_limit(struct http_exchange *x, const struct key *k)
{
        double missing = (double)k->rate_limit - k->tokens;
        char text[32];

        snprintf(text, sizeof(text), "%lld", (long long)k->rate_limit);
        http_add_header(x, "X-RateLimit-Limit", text);
        snprintf(text, sizeof(text), "%lld", (long long)k->tokens);
        http_add_header(x, "X-RateLimit-Remaining", text);
        snprintf(text, sizeof(text), "%lld",
                 (long long)(clock_wall_ms() / 1000) +
                         (long long)(missing * 60 / (double)k->rate_limit) + 1);
        http_add_header(x, "X-RateLimit-Reset", text);
}

static bool check_limit(struct api *a, struct http_exchange *x, struct key *k)
{
        int64_t wait_ms = 0;
        bool ok = key_spend(k, loop_now_ms(a->env.loop), &wait_ms);
        char text[32];

        if (k->rate_limit > 0)
                tell_limit(x, k);
        if (ok)
                return true;
        snprintf(text, sizeof(text), "%lld", (long long)((wait_ms + 999) / 1000));
        http_add_header(x, "Retry-After", text);
        http_refuse(x, 429, "RATE_LIMITED", "this key may ask %lld times a minute; wait %s s",
                    (long long)k->rate_limit, text);
        return false;
}

/*
 * What can be said before the body is read. The other kinds of reach are kept in request.c, owner.c
 * and the listings.
 */
static bool check_reach(struct http_exchange *x, const struct route *route, const struct key *k)
{
        if (!k->adapters)
                return true;
        switch (route->reach) {
        case REACH_UNDECLARED:
        case REACH_ALL:
                http_refuse(x, 403, "FORBIDDEN",
                            "only keys that reach all instances may ask for this");
                return false;
        case REACH_PATH:
                return request_reaches(x, http_param(x, "adapter"));
        default:
                return true;
        }
}

static bool check_key(struct api *a, struct http_exchange *x, const struct route *route)
{
        enum auth_verdict verdict;
        struct key *k = NULL;

        if (route->scope == SCOPE_NONE || (route->scope == SCOPE_LOCAL && auth_is_local(&a->auth)))
                return true;
        verdict = auth_check(&a->auth, http_header(x, "Authorization"), http_header(x, "x-api-key"),
                             &k);
        if (verdict != AUTH_OK) {
                http_add_header(x, "WWW-Authenticate", "Bearer");
                http_refuse(x, 401, "UNAUTHORIZED", "%s", refusals[verdict]);
                return false;
        }
        http_set_identity(x, key_ref(k), key_unref);
        if (k->id > 0)
                keyring_used(a->keys, k, clock_wall_ms());
        if (!check_limit(a, x, k))
                return false;
        if (!key_may(k, route)) {
                refuse_scope(x, route);
                return false;
        }
        return check_reach(x, route, k);
}

static bool on_gate(void *arg, struct http_exchange *x)
{
        struct api *a = arg;
        const struct route *route = http_route_of(x)->more;

        reply_name_request(a, x);
        if (a->closing && route->scope != SCOPE_NONE) {
                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
                return false;
        }
        return check_where_from(a, x) && check_key(a, x, route) &&
               (!route->admits || route->admits(x));
}

static void on_answered(void *arg, const struct http_route *route, int status, int64_t micros)
{
        struct api *a = arg;

        metrics_answered(&a->metrics, route ? (size_t)(route - a->routes) : a->metrics.count,
                         status, micros);
}

/* ---- opening ---- */

static struct http_route *make_routes(void)
{
        struct http_route *routes = mem_array(api_route_count, sizeof(*routes));

        for (size_t i = 0; i < api_route_count; i++)
                routes[i] =
                        (struct http_route){ .method = api_routes[i].method,
                                             .path = api_routes[i].path,
                                             .run = api_routes[i].reach == REACH_ROW ? row_scope_run
                                                                                     : request_run,
                                             .max_body = api_routes[i].max_body,
                                             .more = &api_routes[i] };
        return routes;
}

static int listen_on(struct api *a, const struct http_conf *conf, struct error *err)
{
        static const struct http_server_hooks hooks = { on_gate, reply_refused, on_answered };
        struct http_server_options options = {
                .listen = conf->listen,
                .tls_cert_file = conf->tls_cert,
                .tls_key_file = conf->tls_key,
                .max_body = (size_t)conf->max_body_bytes,
                .max_connections = (unsigned)conf->max_connections,
                .max_per_address = auth_max_per_address(&a->auth),
                .idle_seconds = (unsigned)conf->idle_seconds,
                .request_seconds = (unsigned)conf->request_seconds,
        };

        a->routes = make_routes();
        a->server =
                http_server_new(a->env.loop, &options, a->routes, api_route_count, &hooks, a, err);
        return a->server ? 0 : -1;
}

/* The key of our certificate, for commands on this machine: they trust this daemon, not a name. */
static int announce_key(const char *state_dir, const struct http_conf *conf, struct error *err)
{
        char *path = mem_printf("%s/http.pin", state_dir), pin[TLS_PIN_SIZE];
        int rc = 0;

        if (!conf->tls_cert)
                unlink(path);
        else if (tls_pin_of_file(conf->tls_cert, pin, err) < 0)
                rc = -1;
        else
                rc = state_file_write(path, pin, err);
        free(path);
        return rc;
}

static int announce(struct api *a, const char *state_dir, const struct http_conf *conf,
                    struct error *err)
{
        if (announce_key(state_dir, conf, err) < 0)
                return -1;
        a->addr_file = mem_printf("%s/http.addr", state_dir);
        if (state_file_write(a->addr_file, http_server_address(a->server), err) == 0)
                return 0;
        free(a->addr_file);
        a->addr_file = NULL;
        return -1;
}

static int open_all(struct api *a, const struct http_conf *conf, const char *state_dir,
                    struct error *err)
{
        if (auth_init(&a->auth, conf, err) < 0 || state_dir_make(state_dir, err) < 0 ||
            operator_key_load(&a->auth, state_dir, err) < 0)
                return -1;
        a->nobody = key_new("nobody", "", NULL);
        a->keys = keyring_open(a->env.loop, a->env.store, err);
        if (!a->keys)
                return -1;
        a->auth.ring = a->keys;
        a->tls = a->auth.tls;
        a->stream = event_stream_new(a, (unsigned)conf->max_stream_clients);
        a->waiters = reply_waiters_new(a);
        a->completions = completions_new(a);
        if (listen_on(a, conf, err) < 0)
                return -1;
        return announce(a, state_dir, conf, err);
}

struct api *api_open(const struct api_env *env, const struct http_conf *conf, struct error *err)
{
        struct api *a = mem_zalloc(sizeof(*a));
        char *state_dir = mem_printf("%s/state", env->dir);

        a->env = *env;
        id_random_text(a->run, sizeof(a->run) - 1);
        metrics_init(&a->metrics, api_route_count);
        if (open_all(a, conf, state_dir, err) < 0) {
                api_close(a);
                a = NULL;
        }
        free(state_dir);
        return a;
}

const char *api_address(const struct api *a)
{
        return http_server_address(a->server);
}

bool api_is_tls(const struct api *a)
{
        return a->tls;
}

/* ---- closing ---- */

void api_quiesce(struct api *a)
{
        a->closing = true;
        http_server_quiesce(a->server);
}

/*
 * Whoever still waits is told so now; the jobs themselves end when their work does, and then find
 * nobody. Nothing begins any more.
 */
static void dismiss(struct api *a)
{
        a->closing = a->closed = true;
        while (a->jobs) {
                struct api_job *j = a->jobs;
                struct http_exchange *x = api_job_end(j);

                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
        }
        if (a->server)
                http_server_flush(a->server);
}

void api_close(struct api *a)
{
        if (!a)
                return;
        if (a->addr_file)
                unlink(a->addr_file);
        dismiss(a);
        reply_waiters_free(a->waiters);
        event_stream_free(a->stream);
        http_server_free(a->server);
        completions_free(a->completions);
        metrics_release(&a->metrics);
        keyring_free(a->keys);
        auth_release(&a->auth);
        key_unref(a->nobody);
        free(a->routes);
        free(a->addr_file);
        free(a);
}
