#include "net/http_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http_client_private.h"

/*
 * libcurl's multi handle names the sockets and the one timer it needs; libuv watches them. Handles
 * must not be added or removed inside curl's callbacks, where on_head and on_data run: so
 * http_call_start and http_call_abort only change lists, and `pump`, a deferred call, does the
 * rest. The client is reference-counted, because a socket's last callback and a deferred pump may
 * come after http_client_free.
 */

#define MAX_CONNECTIONS  256L
#define MAX_IDLE         32L /* connections kept for later */
#define CA_HASH_NAME_LEN 10  /* "5ad8a5d6.0" */

static void unref(void *arg)
{
        struct http_client *c = arg;

        if (--c->refs > 0)
                return;
        free(c->proxy);
        free(c->ca_file);
        free(c->ca_dir);
        free(c->user_agent);
        free(c);
}

void http_client_move(struct http_call *call, struct http_calls *list)
{
        if (call->in)
                TAILQ_REMOVE(call->in, call, next);
        call->in = list;
        if (list)
                TAILQ_INSERT_TAIL(list, call, next);
}

static void pump(void *arg);

void http_client_want_pump(struct http_client *c)
{
        if (c->pumping)
                return;
        c->pumping = true;
        c->refs++;
        loop_defer(c->loop, pump, c);
}

void http_client_enqueue(struct http_call *call)
{
        struct http_client *c = call->client;

        call->state = CALL_WAITING;
        call->round = c->round;
        http_client_move(call, &c->waiting);
        http_client_want_pump(c);
}

/* A handler may free the client. */
static void drive(struct http_client *c, curl_socket_t fd, int events)
{
        CURLMsg *message;
        int running, left;

        c->depth++;
        curl_multi_socket_action(c->multi, fd, events, &running);
        while (!c->freed && (message = curl_multi_info_read(c->multi, &left))) {
                CURLcode code = message->data.result;
                struct http_call *call = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
                if (call->state == CALL_RUNNING) /* else pump frees it */
                        http_call_end(call, code);
        }
        http_client_leave(c);
}

static void on_curl_timer(void *arg)
{
        drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_want_timer(CURLM *multi, long ms, void *arg)
{
        struct http_client *c = arg;

        (void)multi;
        if (c->freed)
                return 0;
        timer_stop(c->timer);
        c->tick = ms == 0;
        if (ms > 0)
                timer_start(c->timer, ms);
        else if (ms == 0)
                http_client_want_pump(c);
        return 0;
}

static void on_ready_socket(void *arg, curl_socket_t fd, int what)
{
        drive(arg, fd, what);
}

static void on_watch_made(void *arg)
{
        struct http_client *c = arg;

        c->refs++;
}

void http_client_start(struct http_client *c)
{
        if (c->multi)
                return;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        c->multi = curl_multi_init();
        if (!c->multi)
                abort(); /* out of memory */
        c->timer = timer_new(c->loop, on_curl_timer, c);
        c->watches = (struct curl_watches){ .uv = loop_uv(c->loop),
                                            .multi = c->multi,
                                            .ready = on_ready_socket,
                                            .hold = on_watch_made,
                                            .gone = unref,
                                            .arg = c };
        curl_watches_start(&c->watches);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, c->max_connections);
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE);
}

static void for_all(struct http_calls *calls, void (*fn)(struct http_call *call))
{
        struct http_call *call, *next;

        for (call = TAILQ_FIRST(calls); call; call = next) {
                next = TAILQ_NEXT(call, next);
                fn(call);
        }
}

static void pump(void *arg)
{
        struct http_client *c = arg;
        struct http_call *call;
        unsigned round = c->round++;
        CURLMcode code;

        c->pumping = false;
        if (!c->freed) {
                c->depth++;
                for_all(&c->aborted, http_call_free);
                /* calls started from here on wait for the next round, or they could block the loop
                 */
                while (!c->freed && (call = TAILQ_FIRST(&c->waiting)) && call->round == round) {
                        if (call->error.kind == ERR_NONE) { /* else the request was malformed */
                                call->state = CALL_RUNNING;
                                http_client_move(call, &c->running);
                                code = curl_multi_add_handle(c->multi, call->setup.easy);
                                if (code == CURLM_OK)
                                        continue;
                                error_set(&call->error, ERR_INTERNAL, "cannot start a request: %s",
                                          curl_multi_strerror(code));
                        }
                        http_call_finish(call);
                }
                if (!c->freed && c->tick) {
                        c->tick = false;
                        drive(c, CURL_SOCKET_TIMEOUT, 0);
                }
                http_client_leave(c);
        }
        /* NOLINT(clang-analyzer-unix.Malloc): this pump holds a reference of its own */
        unref(c);
}

/* --- options of every connection --- */

/*
 * The system's certificate directory if it has OpenSSL's hash links, so that a connection reads the
 * needed certificates instead of all (0.9 MB). NULL: use curl's default.
 */
static char *find_ca_dir(void)
{
        const char *path = curl_version_info(CURLVERSION_NOW)->capath;
        DIR *dir = path ? opendir(path) : NULL;
        const struct dirent *entry;
        bool found = false;

        if (!dir)
                return NULL;
        while (!found && (entry = readdir(dir)))
                found = strlen(entry->d_name) == CA_HASH_NAME_LEN &&
                        strspn(entry->d_name, "0123456789abcdef") == 8 &&
                        strcmp(entry->d_name + 8, ".0") == 0;
        closedir(dir);
        return found ? mem_strdup(path) : NULL;
}

/* Child programs do not inherit our connections. */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
        (void)arg, (void)purpose;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return CURL_SOCKOPT_OK;
}

void http_client_configure(struct http_client *c, CURL *easy)
{
        if (!c->ca_file && !c->ca_sought)
                c->ca_dir = find_ca_dir();
        c->ca_sought = true;
        curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
        if (c->proxy)
                curl_easy_setopt(easy, CURLOPT_PROXY, c->proxy);
        if (c->ca_file) {
                curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
                curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        } else if (c->ca_dir) {
                curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
                curl_easy_setopt(easy, CURLOPT_CAPATH, c->ca_dir);
        }
}

/* --- the owner's side --- */

size_t http_client_active(const struct http_client *c)
{
        return c->active;
}

struct http_client *http_client_new(struct loop *l, const struct http_client_options *options,
                                    struct error *err)
{
        static const struct http_client_options defaults = { 0 };
        const struct http_client_options *o = options ? options : &defaults;
        struct http_client *c;

        if (o->ca_file && access(o->ca_file, R_OK) != 0) {
                error_set(err, ERR_IO, "cannot read certificates '%s': %s", o->ca_file,
                          strerror(errno));
                return NULL;
        }
        c = mem_zalloc(sizeof(*c));
        c->loop = l;
        c->refs = 1;
        c->proxy = mem_strdup(o->proxy);
        c->ca_file = mem_strdup(o->ca_file);
        c->user_agent = mem_strdup(o->user_agent ? o->user_agent : "dragoman/" DRAGOMAN_VERSION);
        c->max_connections = o->max_connections > 0 ? o->max_connections : MAX_CONNECTIONS;
        TAILQ_INIT(&c->waiting);
        TAILQ_INIT(&c->running);
        TAILQ_INIT(&c->aborted);
        LIST_INIT(&c->watches.list);
        return c;
}

static void destroy(struct http_client *c)
{
        for_all(&c->waiting, http_call_free);
        for_all(&c->running, http_call_free);
        for_all(&c->aborted, http_call_free);
        if (c->multi) {
                curl_multi_cleanup(c->multi);
                c->multi = NULL;
                curl_global_cleanup();
        }
        curl_watches_stop(&c->watches);
        timer_free(c->timer);
        unref(c);
}

/* c may be gone afterwards. */
void http_client_leave(struct http_client *c)
{
        if (--c->depth == 0 && c->freed)
                destroy(c);
}

void http_client_free(struct http_client *c)
{
        if (!c)
                return;
        c->depth++;
        for_all(&c->waiting, http_call_abort);
        for_all(&c->running, http_call_abort);
        c->freed = true;
        http_client_leave(c);
}
