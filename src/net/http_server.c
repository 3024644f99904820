/*
 * libmicrohttpd inside the loop.
 *
 * The loop watches MHD's epoll descriptor; MHD_run does whatever is ready. MHD's own timeouts are
 * off: they restart with every byte, which invites slow loris attacks. Instead each connection is
 * in a list by phase, with one sweep for all.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http_exchange.h"

/*
 * For the request's head and the head of the answer: heads of about 5 KB fit, larger ones get 431.
 * MHD touches all of it, so with ten thousand event streams each kilobyte is ten megabytes.
 */
#define POOL_BYTES 6144
/* Descriptors kept for platforms, agents and the database. Half of all if there are few. */
#define DESCRIPTORS_KEPT 512
/* Runs that MHD asks for without doing anything before it has to wait a millisecond. */
#define MAX_FRUITLESS 16

/* ---- connections ---- */

void http_server_set_phase(struct http_conn *c, enum http_phase phase)
{
        struct http_server *s = c->server;

        if (c->phase != HTTP_UNTIMED)
                TAILQ_REMOVE(&s->in[c->phase], c, next);
        c->phase = phase;
        if (phase == HTTP_UNTIMED)
                return;
        c->since_ms = loop_now_ms(s->loop);
        c->acked = 0;
        TAILQ_INSERT_TAIL(&s->in[phase], c, next);
}

static void drop_current(struct http_conn *c)
{
        struct http_exchange *x = c->current;

        c->current = NULL;
        if (x)
                http_exchange_detach(x);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
        struct http_server *s = cls;
        struct http_conn *c = *context;

        s->calls++;
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                c = mem_zalloc(sizeof(*c));
                c->server = s;
                c->mhd = mhd;
                c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
                c->phase = HTTP_UNTIMED;
                http_server_set_phase(c, HTTP_FRESH);
                LIST_INSERT_HEAD(&s->conns, c, all);
                if (s->count++ == 0 && s->sweep)
                        timer_repeat(s->sweep, s->sweep_ms);
                *context = c;
        } else if (c) {
                drop_current(c); /* MHD does not always call on_completed */
                http_server_set_phase(c, HTTP_UNTIMED);
                LIST_REMOVE(c, all);
                if (--s->count == 0 && s->sweep)
                        timer_stop(s->sweep);
                free(c);
                *context = NULL;
                s->closed = true;
        }
}

static void on_deadline(struct http_conn *c)
{
        uint64_t before = c->acked, acked;
        char byte;

        /*
         * MHD takes a short read for an empty socket, so it misses an end of the stream that came
         * together with a request, and epoll reports it only once. Look here, once per idle spell.
         */
        if (c->phase == HTTP_FRESH && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
                http_server_set_phase(c, HTTP_WAITING);
                return;
        }
        /* a slow download is not a stalled one */
        if (c->phase == HTTP_WRITING && (acked = tcp_acked(c->fd)) > before) {
                http_server_set_phase(c, HTTP_WRITING);
                c->acked = acked;
                return;
        }
        http_server_set_phase(c, HTTP_UNTIMED);
        shutdown(c->fd, SHUT_RDWR); /* MHD sees the hangup and cleans up */
}

static void on_sweep(void *arg)
{
        struct http_server *s = arg;
        struct http_conn *c;

        for (int phase = 0; phase < HTTP_PHASES; phase++) {
                while ((c = TAILQ_FIRST(&s->in[phase])) &&
                       loop_now_ms(s->loop) - c->since_ms >= s->allowed_ms[phase])
                        on_deadline(c);
        }
}

/* ---- requests ---- */

static struct http_conn *conn_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/*
 * MHD would now split the query, with one record of its pool for each parameter; if that exhausts
 * the pool it answers 431, forgets that it did, and loops. We split the query ourselves, so end the
 * text after the question mark.
 */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
        struct http_server *s = cls;
        struct http_conn *c = conn_of(mhd);
        char *query = strchr(uri, '?');

        s->calls++;
        drop_current(c);
        c->current = http_exchange_new(c, uri);
        if (query)
                query[1] = '\0';
        http_server_set_phase(c, HTTP_READING);
        return c->current;
}

/* We decode ourselves, after splitting. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
        (void)cls;
        (void)mhd;
        return strlen(text);
}

static enum MHD_Result ask(struct http_exchange *x)
{
        x->state = HTTP_ASKED;
        http_server_set_phase(x->conn, HTTP_UNTIMED);
        x->match.route->run(x);
        /*
         * Without an answer, suspend MHD only when it calls again. Otherwise it reads the socket
         * first when resumed, and a client that has closed its sending side gets no answer.
         */
        return x->answered ? http_exchange_queue(x) : MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **context)
{
        struct http_server *s = cls;
        struct http_exchange *x = *context;

        (void)mhd;
        s->calls++;
        if (!x)
                return MHD_NO;
        switch (x->state) {
        case HTTP_HEAD:
                http_head_accept(x, method, url, version);
                if (x->state == HTTP_BODY)
                        return MHD_YES;
                x->state = HTTP_ASKED;
                /* an answer now makes MHD close the connection: right only before a body */
                return x->body_to_come ? http_exchange_queue(x) : MHD_YES;
        case HTTP_BODY:
                if (*upload_n == 0)
                        return ask(x);
                if (!http_exchange_add_body(x, upload, *upload_n))
                        return MHD_NO;
                *upload_n = 0;
                return MHD_YES;
        case HTTP_ASKED:
                if (x->answered)
                        return http_exchange_queue(x);
                x->conn->parked = true;
                MHD_suspend_connection(x->conn->mhd);
                return MHD_YES;
        case HTTP_QUEUED:
                break;
        }
        return MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode why)
{
        struct http_server *s = cls;
        struct http_conn *c = conn_of(mhd);

        (void)why;
        s->calls++;
        *context = NULL;
        http_server_set_phase(c, HTTP_FRESH);
        drop_current(c);
}

/* ---- running MHD ---- */

static bool wants_again(struct http_server *s)
{
        MHD_UNSIGNED_LONG_LONG ms;

        /* at its connection limit MHD stops listening until it runs again */
        if (s->closed) {
                s->closed = false;
                return true;
        }
        return MHD_get_timeout(s->mhd, &ms) == MHD_YES && ms == 0;
}

static void run_now(void *arg)
{
        struct http_server *s = arg;

        for (int i = 0; i < 4; i++) {
                uint64_t before = s->calls;

                MHD_run(s->mhd);
                if (!wants_again(s)) {
                        s->fruitless = 0;
                        return;
                }
                s->fruitless = s->calls == before ? s->fruitless + 1 : 0;
        }
        /* let other callbacks run; and do not burn a core on whatever MHD is waiting for */
        if (s->fruitless > MAX_FRUITLESS)
                timer_start(s->again, 1);
        else
                http_server_kick(s);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
        (void)status;
        (void)events;
        run_now(poll->data);
}

static void on_kick(void *arg)
{
        struct http_kick *k = arg;

        k->due = false;
        if (k->server)
                run_now(k->server);
        else
                free(k);
}

void http_server_kick(struct http_server *s)
{
        if (s->kick->due)
                return;
        s->kick->due = true;
        loop_defer(s->loop, on_kick, s->kick);
}

/* ---- start and end ---- */

static unsigned connection_limit(const struct http_server_options *o)
{
        unsigned wanted = o->max_connections ? o->max_connections : 20000;
        struct rlimit files;
        rlim_t room;

        if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
                return wanted;
        room = files.rlim_cur / 2 > DESCRIPTORS_KEPT ? files.rlim_cur - DESCRIPTORS_KEPT
                                                     : files.rlim_cur / 2;
        return wanted < room ? wanted : (unsigned)room;
}

static struct MHD_Daemon *start_daemon(struct http_server *s, int fd,
                                       const struct http_server_options *o, const char *cert,
                                       const char *key)
{
        struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)cert },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key },
                /* without RSA key exchange: a stolen key must not open recorded connections */
                { MHD_OPTION_HTTPS_PRIORITIES, 0,
                  (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA" },
                { MHD_OPTION_END, 0, NULL },
        };
        struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (cert ? MHD_USE_TLS : 0);

        return MHD_start_daemon(
                flags, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
                on_completed, s, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, s,
                MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_LIMIT,
                connection_limit(o), MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_per_address,
                MHD_OPTION_ARRAY, cert ? tls : none, MHD_OPTION_END);
}

static int start(struct http_server *s, const struct http_server_options *o, struct error *err)
{
        char *cert = NULL, *key = NULL;
        int fd = -1, rc = -1;

        if (!o->tls_cert_file != !o->tls_key_file)
                return error_set(err, ERR_INVALID, "TLS needs a certificate file and a key file");
        if (o->tls_cert_file && (!(cert = http_listen_read_pem(o->tls_cert_file, err)) ||
                                 !(key = http_listen_read_pem(o->tls_key_file, err))))
                goto out;
        fd = http_listen(o->listen, err);
        if (fd < 0)
                goto out;
        s->address = http_listen_address(fd);
        s->tls = cert != NULL;
        s->mhd = start_daemon(s, fd, o, cert, key);
        if (!s->mhd) {
                error_set(err, ERR_INVALID, "cannot serve at '%s'%s", o->listen,
                          cert ? ": the certificate and its key are not usable" : "");
                goto out;
        }
        fd = -1; /* MHD closes it */
        rc = 0;
out:
        if (fd >= 0)
                close(fd);
        free(cert);
        if (key)
                explicit_bzero(key, strlen(key));
        free(key);
        return rc;
}

struct http_server *http_server_new(struct loop *l, const struct http_server_options *options,
                                    const struct http_route *routes, size_t route_count,
                                    const struct http_server_hooks *hooks, void *arg,
                                    struct error *err)
{
        struct http_server *s = mem_zalloc(sizeof(*s));
        int64_t idle_ms = 1000 * (int64_t)(options->idle_seconds ? options->idle_seconds : 75);
        int64_t request_ms =
                1000 * (int64_t)(options->request_seconds ? options->request_seconds : 30);
        int64_t least_ms = idle_ms < request_ms ? idle_ms : request_ms;

        s->loop = l;
        s->routes = routes;
        s->route_count = route_count;
        if (hooks)
                s->hooks = *hooks;
        s->arg = arg;
        s->max_body = options->max_body ? options->max_body : 1024 * 1024;
        s->max_bodies = options->max_bodies ? options->max_bodies : 64 * 1024 * 1024;
        if (s->max_bodies < s->max_body)
                s->max_bodies = s->max_body;
        for (int i = 0; i < HTTP_PHASES; i++)
                TAILQ_INIT(&s->in[i]);
        s->allowed_ms[HTTP_FRESH] = idle_ms / 2 < 1000 ? idle_ms / 2 : 1000;
        s->allowed_ms[HTTP_WAITING] = idle_ms - s->allowed_ms[HTTP_FRESH];
        s->allowed_ms[HTTP_READING] = s->allowed_ms[HTTP_WRITING] = request_ms;
        s->sweep_ms = least_ms / 4 < 1000 ? least_ms / 4 : 1000;
        if (start(s, options, err) != 0) {
                free(s->address);
                free(s);
                return NULL;
        }
        s->again = timer_new(l, run_now, s);
        s->sweep = timer_new(l, on_sweep, s);
        s->kick = mem_zalloc(sizeof(*s->kick));
        s->kick->server = s;
        s->poll = mem_zalloc(sizeof(*s->poll));
        s->poll->data = s;
        uv_poll_init(loop_uv(l), s->poll,
                     MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
        uv_poll_start(s->poll, UV_READABLE, on_readable);
        /* MHD adds its listening socket to the epoll set in its first run */
        http_server_kick(s);
        return s;
}

const char *http_server_address(const struct http_server *s)
{
        return s->address;
}

unsigned http_server_connections(const struct http_server *s)
{
        return s->count;
}

void http_server_quiesce(struct http_server *s)
{
        int fd = MHD_quiesce_daemon(s->mhd);

        if (fd >= 0)
                close(fd);
}

/* MHD needs three runs for a resumed connection: to take it back, to ask, to write. */
void http_server_flush(struct http_server *s)
{
        for (int i = 0; i < 8; i++) {
                MHD_run(s->mhd);
                if (!wants_again(s))
                        return;
        }
}

static void on_poll_closed(uv_handle_t *h)
{
        free(h);
}

void http_server_free(struct http_server *s)
{
        struct http_conn *c;
        struct http_exchange *x;

        if (!s)
                return;
        uv_poll_stop(s->poll);
        uv_close((uv_handle_t *)s->poll, on_poll_closed);
        timer_free(s->again);
        timer_free(s->sweep);
        s->sweep = NULL;
        if (s->kick->due)
                s->kick->server = NULL; /* on_kick frees it */
        else
                free(s->kick);
        /* MHD aborts the program if it is stopped while a connection is suspended */
        LIST_FOREACH(c, &s->conns, all) {
                if (c->parked)
                        MHD_resume_connection(c->mhd);
                c->parked = false;
        }
        MHD_stop_daemon(s->mhd);
        while ((x = LIST_FIRST(&s->orphans))) {
                LIST_REMOVE(x, orphan);
                x->server = NULL;
        }
        free(s->address);
        free(s);
}
