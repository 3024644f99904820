#include <stdio.h>

#include "api/core/request.h"
#include "base/clock.h"

static bool check_origin(struct api *a, struct http_exchange *x)
{
        const char *host = http_header(x, "Host");

        if (!auth_peer_ok(&a->auth, http_peer(x))) {
                http_refuse(x, 403, "FORBIDDEN",
                            "only the proxies named in http.trustedProxy may connect here");
                return false;
        }
        if (!auth_host_ok(&a->auth, host)) {
                http_refuse(x, 403, "FORBIDDEN",
                            "the Host header '%.100s' is not ours; use the server's address or "
                            "set http.publicUrl",
                            host ? host : "");
                return false;
        }
        if (!auth_origin_ok(&a->auth, http_header(x, "Origin"), host)) {
                http_refuse(x, 403, "FORBIDDEN", "requests from pages of other sites are refused");
                return false;
        }
        return true;
}

static void add_number(struct http_exchange *x, const char *header, int64_t n)
{
        char text[32];

        snprintf(text, sizeof(text), "%lld", (long long)n);
        http_add_header(x, header, text);
}

static bool check_rate(struct api *a, struct http_exchange *x, struct key *k)
{
        int64_t wait_ms = 0, wait_s;
        bool ok = key_spend(k, loop_now_ms(a->env.loop), &wait_ms);

        if (k->rate_limit > 0) {
                double missing = (double)k->rate_limit - k->tokens;

                add_number(x, "X-RateLimit-Limit", k->rate_limit);
                add_number(x, "X-RateLimit-Remaining", (int64_t)k->tokens);
                add_number(x, "X-RateLimit-Reset",
                           clock_wall_ms() / 1000 +
                                   (int64_t)(missing * 60 / (double)k->rate_limit) + 1);
        }
        if (ok)
                return true;
        wait_s = (wait_ms + 999) / 1000;
        add_number(x, "Retry-After", wait_s);
        http_refuse(x, 429, "RATE_LIMITED",
                    "this key is limited to %lld requests a minute; retry in %lld s",
                    (long long)k->rate_limit, (long long)wait_s);
        return false;
}

/* The path's adapter; others are checked when the body or row is read. */
static bool check_reach(struct http_exchange *x, const struct route *route, const struct key *k)
{
        if (!k->adapters)
                return true;
        switch (route->reach) {
        case REACH_UNDECLARED:
        case REACH_ALL:
                http_refuse(x, 403, "FORBIDDEN",
                            "only keys that reach all instances may use this route");
                return false;
        case REACH_PATH:
                return request_reaches(x, http_param(x, "adapter"));
        default:
                return true;
        }
}

static const char *const refusals[] = {
        [AUTH_NO_KEY] =
                "send a key: Authorization: Bearer KEY or x-api-key: KEY; see state/operator.key",
        [AUTH_WRONG] = "this is not the key",
        [AUTH_EXPIRED] = "this key has expired",
        [AUTH_REVOKED] = "this key was revoked",
};

static bool check_key(struct api *a, struct http_exchange *x, const struct route *route)
{
        struct slice resource = route_resource(route);
        enum auth_verdict verdict;
        struct key *k = NULL;

        if (route->scope == SCOPE_NONE || (route->keyless && route->keyless(x)))
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
        if (!check_rate(a, x, k))
                return false;
        if (!key_may(k, route)) {
                http_refuse(x, 403, "FORBIDDEN", "this key lacks the scope: %s, or %.*s:%s",
                            route_scope_name(route->scope), (int)resource.n, resource.p,
                            route_scope_name(route->scope));
                return false;
        }
        return check_reach(x, route, k);
}

bool gate_admits(void *api, struct http_exchange *x)
{
        const struct route *route = request_route(x);
        struct api *a = api;

        reply_identify(a, x);
        if (a->closing && route->scope != SCOPE_NONE) {
                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
                return false;
        }
        return check_origin(a, x) && check_key(a, x, route) && (!route->admits || route->admits(x));
}
