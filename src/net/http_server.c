/*
 * libmicrohttpd inside the loop.
 *
 * MHD has its own epoll descriptor, which the loop watches as if it were a socket; MHD_run does
 * whatever is ready. It has no timeouts of its own here: its timeout begins anew with every byte,
 * which is what a slow loris wants. Instead each connection is in a list by phase, with one sweep
 * for all (http_exchange.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http_exchange.h"

/*
 * The request's head, MHD's list of its headers and the head of the answer must fit into this, so
 * heads of about 5 KB are possible and larger ones get 431. MHD touches all of it: with ten
 * thousand idle event streams every kilobyte more here is ten megabytes.
 */
#define POOL_BYTES 6144
/*
 * Descriptors that clients may not take: without them no platform, agent or database could be
 * reached any more. Half of them, where there are few.
 */
#define DESCRIPTORS_KEPT 512
/*
 * How often MHD may want to run again without doing anything before it has to wait a millisecond.
 */
#define MAX_FRUITLESS 16

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
        struct http_server *s = cls;

        s->calls++;
        if (what == MHD_CONNECTION_NOTIFY_STARTED)
                http_conn_opened(s, mhd, context);
        else
                http_conn_closed(s, context);
}

/*
 * The request line is complete. MHD would now take the query apart, one record of its pool for each
 * parameter; when the pool is exhausted by that it answers 431, but forgets that it did and then
 * runs in circles. We take the query apart ourselves, so MHD is shown an empty one: the byte after
 * the question mark becomes the end.
 */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
        struct http_server *s = cls;
        struct http_conn *c = http_conn_of(mhd);
        char *query = strchr(uri, '?');

        s->calls++;
        http_conn_drop_current(c);
        c->current = http_exchange_new(c, uri);
        if (query)
                query[1] = '\0';
        http_conn_enter(c, HTTP_READING);
        return c->current;
}

/* We decode by ourselves, after splitting. */
static size_t leave_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
        (void)cls;
        (void)mhd;
        return strlen(text);
}

static enum MHD_Result begin(struct http_exchange *x, const char *method, const char *url,
                             const char *version)
{
        http_head_accept(x, method, url, version);
        if (x->state == HTTP_BODY)
                return MHD_YES;
        x->state = HTTP_ASKED;
        /*
         * An answer at this point makes MHD close the connection: right while a body is on its way,
         * else not.
         */
        return x->body_to_come ? http_exchange_queue(x) : MHD_YES;
}

static enum MHD_Result collect(struct http_exchange *x, const char *bytes, size_t *n)
{
        if (buf_add(&x->body, bytes, *n) != 0) {
                http_refuse(x, 413, "too_large", "the body may have %zu bytes", x->body.max);
                return MHD_NO;
        }
        *n = 0;
        return MHD_YES;
}

static enum MHD_Result ask(struct http_exchange *x)
{
        x->state = HTTP_ASKED;
        http_conn_enter(x->conn, HTTP_UNTIMED);
        x->match.route->run(x);
        /*
         * Without an answer MHD is not suspended yet but asked to call again, which it does in its
         * next run: only by then has it noted that it waits for us and not for the socket.
         * Otherwise it reads the socket first when it is resumed, and a client that has closed its
         * sending side would never get its answer.
         */
        return x->answered ? http_exchange_queue(x) : MHD_YES;
}

static enum MHD_Result wait_for_answer(struct http_exchange *x)
{
        if (x->answered)
                return http_exchange_queue(x);
        x->conn->parked = true;
        MHD_suspend_connection(x->conn->mhd);
        return MHD_YES;
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
                return begin(x, method, url, version);
        case HTTP_BODY:
                return *upload_n > 0 ? collect(x, upload, upload_n) : ask(x);
        case HTTP_ASKED:
                return wait_for_answer(x);
        case HTTP_QUEUED:
                break;
        }
        return MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode why)
{
        struct http_server *s = cls;
        struct http_conn *c = http_conn_of(mhd);

        (void)why;
        s->calls++;
        *context = NULL;
        http_conn_enter(c, HTTP_FRESH);
        http_conn_drop_current(c);
}

static void on_sweep(void *arg)
{
        http_conn_sweep(arg);
}

static bool wants_again(struct http_server *s)
{
        MHD_UNSIGNED_LONG_LONG ms;

        /*
         * at its limit MHD stops listening, and looks whether it may listen again only when it next
         * runs
         */
        if (s->closed) {
                s->closed = false;
                return true;
        }
        return MHD_get_timeout(s->mhd, &ms) == MHD_YES && ms == 0;
}

static void run_now(struct http_server *s)
{
        for (int i = 0; i < 4; i++) {
                uint64_t before = s->calls;

                MHD_run(s->mhd);
                if (!wants_again(s)) {
                        s->fruitless = 0;
                        return;
                }
                s->fruitless = s->calls == before ? s->fruitless + 1 : 0;
        }
        /* let the others have a turn; and whatever MHD waits for there, it shall not burn a core */
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

static void on_again(void *arg)
{
        run_now(arg);
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

static void forget(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static unsigned or_default(unsigned value, unsigned fallback)
{
        return value ? value : fallback;
}

static unsigned connection_limit(const struct http_server_options *o)
{
        unsigned wanted = or_default(o->max_connections, 20000);
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
                { MHD_OPTION_HTTPS_PRIORITIES, 0,
                  (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
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
        forget(key);
        return rc;
}

static int64_t least(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

static void set_deadlines(struct http_server *s, const struct http_server_options *o)
{
        int64_t idle = 1000 * (int64_t)or_default(o->idle_seconds, 75);
        int64_t request = 1000 * (int64_t)or_default(o->request_seconds, 30);

        s->allowed_ms[HTTP_FRESH] = least(1000, idle / 2);
        s->allowed_ms[HTTP_WAITING] = idle - s->allowed_ms[HTTP_FRESH];
        s->allowed_ms[HTTP_READING] = request;
        s->allowed_ms[HTTP_WRITING] = request;
        s->sweep_ms = least(1000, least(idle, request) / 4);
}

static void watch(struct http_server *s)
{
        int fd = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

        s->again = timer_new(s->loop, on_again, s);
        s->sweep = timer_new(s->loop, on_sweep, s);
        s->kick = mem_zalloc(sizeof(*s->kick));
        s->kick->server = s;
        s->poll = mem_zalloc(sizeof(*s->poll));
        s->poll->data = s;
        uv_poll_init(loop_uv(s->loop), s->poll, fd);
        uv_poll_start(s->poll, UV_READABLE, on_readable);
        /* MHD puts its listening socket into the epoll set only when it first runs */
        http_server_kick(s);
}

struct http_server *http_server_new(struct loop *l, const struct http_server_options *options,
                                    const struct http_route *routes, size_t route_count,
                                    const struct http_server_hooks *hooks, void *arg,
                                    struct error *err)
{
        struct http_server *s = mem_zalloc(sizeof(*s));

        s->loop = l;
        s->routes = routes;
        s->route_count = route_count;
        if (hooks)
                s->hooks = *hooks;
        s->arg = arg;
        s->max_body = options->max_body ? options->max_body : 1024 * 1024;
        for (int i = 0; i < HTTP_PHASES; i++)
                TAILQ_INIT(&s->in[i]);
        set_deadlines(s, options);
        if (start(s, options, err) != 0) {
                free(s->address);
                free(s);
                return NULL;
        }
        watch(s);
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

/*
 * MHD needs a few runs from a resumed connection to its answer: one to take it back, one to ask,
 * one to write.
 */
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

static void unwatch(struct http_server *s)
{
        uv_poll_stop(s->poll);
        uv_close((uv_handle_t *)s->poll, on_poll_closed);
        timer_free(s->again);
        timer_free(s->sweep);
        s->sweep = NULL;
        if (s->kick->due)
                s->kick->server = NULL; /* on_kick frees it */
        else
                free(s->kick);
}

void http_server_free(struct http_server *s)
{
        struct http_conn *c;
        struct http_exchange *x;

        if (!s)
                return;
        unwatch(s);
        /* MHD gives up the whole program when it is stopped while a connection is suspended */
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
