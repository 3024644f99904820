#include "api/api.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/core/api_core.h"
#include "api/core/event_stream.h"
#include "api/core/reply_stream.h"
#include "api/core/reply_waiters.h"
#include "api/core/request.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"
#include "net/tls_pin.h"

/* ---- deferred answers ---- */

void api_job_begin(struct api_job *j, struct http_exchange *x)
{
        struct api *a = api_of(x);

        *j = (struct api_job){ .api = a, .x = x, .next = a->jobs };
        if (a->jobs)
                a->jobs->prev = j;
        a->jobs = j;
}

struct http_exchange *api_job_end(struct api_job *j)
{
        struct http_exchange *x = j->x;

        if (!j->api)
                return NULL;
        if (j->prev)
                j->prev->next = j->next;
        else
                j->api->jobs = j->next;
        if (j->next)
                j->next->prev = j->prev;
        *j = (struct api_job){ 0 };
        return x;
}

/* ---- opening ---- */

static int listen_on(struct api *a, const struct http_conf *conf, struct error *err)
{
        static const struct http_server_hooks hooks = { gate_admits, reply_refused,
                                                        metrics_answered };
        struct http_server_options options = {
                .listen = conf->listen,
                .tls_cert_file = conf->tls_cert,
                .tls_key_file = conf->tls_key,
                .max_body = (size_t)conf->max_body_bytes,
                .max_bodies = (size_t)conf->max_bodies_bytes,
                .max_connections = (unsigned)conf->max_connections,
                .max_per_address = auth_max_per_address(&a->auth),
                .idle_seconds = (unsigned)conf->idle_seconds,
                .request_seconds = (unsigned)conf->request_seconds,
        };
        size_t n = 0;

        ROUTES_FOREACH(r)
                a->routes[n++] = (struct http_route){
                        .method = r->method,
                        .path = r->path,
                        .run = r->reach == REACH_ROW ? row_scope_run : request_run,
                        .max_body = r->max_body,
                        .unproven = r->proof_in_body,
                        .more = r,
                };
        a->server = http_server_new(a->env.loop, &options, a->routes, n, &hooks, a, err);
        return a->server ? 0 : -1;
}

/*
 * Writes state/http.addr, and with TLS state/http.pin: the digest of our public key, by which
 * commands on this machine trust this daemon, whatever name its certificate has.
 */
static int announce(struct api *a, const char *state_dir, const struct http_conf *conf,
                    struct error *err)
{
        char *pin_file = mem_printf("%s/http.pin", state_dir), pin[TLS_PIN_SIZE];
        int rc = 0;

        if (!conf->tls_cert)
                unlink(pin_file);
        else if (tls_pin_of_file(conf->tls_cert, pin, err) < 0)
                rc = -1;
        else
                rc = file_write_line(pin_file, pin, err);
        free(pin_file);
        if (rc < 0)
                return -1;
        a->addr_file = mem_printf("%s/http.addr", state_dir);
        rc = file_write_line(a->addr_file, http_server_address(a->server), err);
        if (rc < 0) {
                free(a->addr_file);
                a->addr_file = NULL;
        }
        return rc;
}

static int open_all(struct api *a, const struct http_conf *conf, const char *state_dir,
                    struct error *err)
{
        if (auth_init(&a->auth, conf, err) < 0 || file_make_dirs(state_dir, err) < 0 ||
            auth_load_operator_key(&a->auth, state_dir, err) < 0)
                return -1;
        a->anonymous = key_new("anonymous", "", NULL);
        a->keys = keyring_open(a->env.loop, a->env.store, err);
        if (!a->keys)
                return -1;
        a->auth.ring = a->keys;
        a->stream = event_stream_new(a, (unsigned)conf->max_stream_clients);
        a->waiters = reply_waiters_new(a);
        a->reply_streams = reply_streams_new(a);
        a->a2a = a2a_server_new(a);
        a->cards = a2a_cards_new(&(struct cards_conf){ .name = (char *)"Dragoman" });
        a->public_url = mem_strdup(conf->public_url);
        a->session_streams = session_streams_new(a, (unsigned)conf->max_stream_clients);
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
        a->routes = mem_array(routes_count(), sizeof(*a->routes));
        a->metrics = mem_array(routes_count() + 1, sizeof(*a->metrics));
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
        return a->auth.tls;
}

/* ---- closing ---- */

void api_quiesce(struct api *a)
{
        a->closing = true;
        http_server_quiesce(a->server);
}

void api_close(struct api *a)
{
        if (!a)
                return;
        if (a->addr_file)
                unlink(a->addr_file);
        a->closing = a->closed = true;
        /* jobs end with their work and then find no exchange */
        while (a->jobs)
                http_refuse(api_job_end(a->jobs), 503, "UNAVAILABLE", "shutting down");
        if (a->server)
                http_server_flush(a->server);
        reply_waiters_free(a->waiters);
        event_stream_free(a->stream);
        session_streams_free(a->session_streams);
        http_server_free(a->server);
        reply_streams_free(a->reply_streams);
        a2a_server_free(a->a2a);
        a2a_cards_free(a->cards);
        free(a->public_url);
        keyring_free(a->keys);
        auth_release(&a->auth);
        key_unref(a->anonymous);
        free(a->metrics);
        free(a->routes);
        free(a->addr_file);
        free(a);
}
