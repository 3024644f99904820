#include "net/http_client.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/curl_watch.h"
#include "net/http_setup.h"
#include "net/http_text.h"

/*
 * libcurl's multi handle tells which sockets and which one timer it wants watched; libuv watches them. Three rules
 * keep the two apart:
 *
 * - Adding and removing handles is not allowed inside curl's callbacks, where on_head and on_data run. So http_start and
 *   http_abort only note what is wanted, and `pump`, a deferred call, does it.
 * - The client is counted, so that its memory outlives the last callback of a watched socket and a waiting pump.
 * - The multi handle is made for the first call. A program that never asks anybody pays nothing.
 *
 * curl by itself sends a request again, even a POST, when a kept-alive connection ends without an answer. `on_ready`
 * is called before each sending and stops what is not repeatable.
 */

#define CONNECT_MS      10000
#define MAX_BODY        (8u << 20)
#define MAX_HEAD        (256u << 10)
#define MAX_CONNECTIONS 256L
#define MAX_IDLE        32L /* connections kept for later */
#define IDLE_SECONDS \
        60L /* many servers close after 75 s; be earlier, so that no request meets a dying connection */
#define MAX_HOPS         5
#define STATUS_IS_ERROR  400
#define CA_HASH_NAME_LEN 10 /* "5ad8a5d6.0" */

enum call_state {
        CALL_WAITING, /* pump will hand it to curl */
        CALL_RUNNING, /* curl has it */
        CALL_ENDING,  /* inside on_done */
        CALL_ABORTED, /* pump will take it away */
};

TAILQ_HEAD(http_calls, http_call);

struct http_call {
        struct http_client *client;
        struct http_handlers on;
        void *arg;
        enum call_state state;
        struct http_setup setup;
        struct timer *timer; /* the nearest deadline */
        struct error error;  /* what we found wrong ourselves; more precise than curl's code */
        char curl_error[CURL_ERROR_SIZE];

        int64_t connect_ms, first_byte_ms, silence_ms, total_ms;
        int64_t started_ms, hop_started_ms, last_byte_ms;
        size_t max_body, body_bytes, head_bytes;
        struct buf body;
        int status;
        unsigned sendings; /* of this hop */
        unsigned hops;
        bool repeatable, follow;
        bool sent;             /* a byte of the request may have left, on this hop or an earlier one */
        bool connected;        /* on this hop */
        bool head_done;        /* status and headers of the final answer are in */
        bool redirecting;      /* this answer only names the next hop */
        unsigned round;        /* of the pump that will launch it */
        struct http_calls *in; /* the client's list it stands in */
        TAILQ_ENTRY(http_call) next;
};

struct http_client {
        struct loop *loop;
        CURLM *multi;
        struct timer *timer; /* curl's one timer */
        char *proxy, *ca_file, *ca_dir, *user_agent;
        long max_connections;
        struct http_calls waiting; /* until pump comes */
        struct http_calls running; /* and ending */
        struct http_calls aborted; /* until pump comes */
        struct curl_watches watches;
        size_t active;
        unsigned round; /* how often pump ran */
        unsigned refs;  /* the owner, a pending pump, each watch */
        unsigned depth; /* > 0: curl or a handler is on the stack */
        bool pumping;   /* pump is on its way */
        bool tick;      /* curl's timer is due now */
        bool ca_sought; /* ca_dir is known, one way or the other */
        bool freed;     /* by the owner */
};

static void unref(struct http_client *c)
{
        if (--c->refs > 0)
                return;
        free(c->proxy);
        free(c->ca_file);
        free(c->ca_dir);
        free(c->user_agent);
        free(c);
}

static void move(struct http_call *call, struct http_calls *list)
{
        if (call->in)
                TAILQ_REMOVE(call->in, call, next);
        call->in = list;
        if (list)
                TAILQ_INSERT_TAIL(list, call, next);
}

/* Never inside a curl callback. */
static void call_free(struct http_call *call)
{
        move(call, NULL);
        if (call->client->multi && call->setup.easy)
                curl_multi_remove_handle(call->client->multi, call->setup.easy);
        timer_free(call->timer);
        http_setup_release(&call->setup);
        buf_release(&call->body);
        free(call);
}

static enum http_reach reach_of(const struct http_call *call)
{
        if (call->status)
                return HTTP_ANSWERED;
        return call->sent ? HTTP_UNSURE : HTTP_NOT_SENT;
}

static void finish(struct http_call *call)
{
        struct http_client *c = call->client;
        struct http_result result = {
                .status = call->status,
                .reach = reach_of(call),
                .kind = call->error.kind,
                .why = call->error.text,
                .body = call->body.data,
                .body_n = call->body.len,
                .retry_after_ms = -1,
                .elapsed_ms = loop_now_ms(c->loop) - call->started_ms,
        };

        if (call->status)
                result.retry_after_ms =
                        http_retry_after_ms(http_answer_header(call, "Retry-After"), clock_wall_ms());
        log_redact(call->error.text);
        timer_stop(call->timer);
        call->state = CALL_ENDING;
        c->active--;
        call->on.on_done(call->arg, &result);
        call_free(call);
}

static enum error_kind kind_of(CURLcode code)
{
        switch (code) {
        case CURLE_OK:
                return ERR_NONE;
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
                return ERR_INVALID;
        case CURLE_OPERATION_TIMEDOUT:
                return ERR_TIMEOUT;
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_BAD_CONTENT_ENCODING:
                return ERR_PROTOCOL;
        case CURLE_READ_ERROR:
        case CURLE_SSL_CACERT_BADFILE:
                return ERR_IO;
        case CURLE_OUT_OF_MEMORY:
        case CURLE_FAILED_INIT:
        case CURLE_BAD_FUNCTION_ARGUMENT:
                return ERR_INTERNAL;
        default:
                return ERR_NET;
        }
}

static void note_failure(struct http_call *call, CURLcode code)
{
        const char *why = call->curl_error[0] ? call->curl_error : curl_easy_strerror(code);

        if (call->error.kind != ERR_NONE || code == CURLE_OK)
                return;
        if (call->sent)
                error_set(&call->error, kind_of(code), "connection to '%s' failed: %s", call->setup.host,
                          why);
        else
                error_set(&call->error, kind_of(code), "cannot reach '%s': %s", call->setup.host, why);
}

static void destroy(struct http_client *c);

static void enter(struct http_client *c)
{
        c->depth++;
}

/* c may be gone afterwards. */
static void leave(struct http_client *c)
{
        if (--c->depth == 0 && c->freed)
                destroy(c);
}

static void pump(void *arg);

static void want_pump(struct http_client *c)
{
        if (c->pumping)
                return;
        c->pumping = true;
        c->refs++;
        loop_defer(c->loop, pump, c);
}

static void enqueue(struct http_call *call)
{
        struct http_client *c = call->client;

        call->state = CALL_WAITING;
        call->round = c->round;
        move(call, &c->waiting);
        want_pump(c);
}

/* The same handle goes on to the next place. */
static void next_hop(struct http_call *call)
{
        const char *location = http_answer_header(call, "Location");

        curl_multi_remove_handle(call->client->multi, call->setup.easy);
        if (http_setup_redirect(&call->setup, location, &call->error)) {
                finish(call);
                return;
        }
        call->status = 0;
        call->hops++;
        call->sendings = 0;
        call->connected = call->head_done = call->redirecting = false;
        call->body_bytes = call->head_bytes = 0;
        call->hop_started_ms = loop_now_ms(call->client->loop);
        enqueue(call);
}

static void reap(struct http_client *c)
{
        CURLMsg *message;
        int left;

        while (!c->freed && (message = curl_multi_info_read(c->multi, &left))) {
                CURLcode code = message->data.result;
                struct http_call *call = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
                if (call->state != CALL_RUNNING)
                        continue; /* aborted: pump takes it away */
                note_failure(call, code);
                if (call->redirecting && call->error.kind == ERR_NONE)
                        next_hop(call);
                else
                        finish(call);
        }
}

static void drive(struct http_client *c, curl_socket_t fd, int events)
{
        int running;

        curl_multi_socket_action(c->multi, fd, events, &running);
        reap(c);
}

static void on_curl_timer(void *arg)
{
        struct http_client *c = arg;

        enter(c);
        drive(c, CURL_SOCKET_TIMEOUT, 0);
        leave(c);
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
                want_pump(c);
        return 0;
}

static void on_ready_socket(void *arg, curl_socket_t fd, int what)
{
        struct http_client *c = arg;

        enter(c);
        drive(c, fd, what);
        leave(c);
}

static void on_watch_made(void *arg)
{
        struct http_client *c = arg;

        c->refs++;
}

static void on_watch_gone(void *arg)
{
        unref(arg);
}

/*
 * The directory of the system's certificates, when it has the links by which OpenSSL finds one certificate by its
 * name: then only the needed ones are read, instead of all (0.9 MB) for each connection. NULL: as curl does by default.
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

static void start_multi(struct http_client *c)
{
        if (c->multi)
                return;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        c->multi = curl_multi_init();
        if (!c->multi)
                abort(); /* only memory can be missing, and nothing of ours goes on without it */
        c->timer = timer_new(c->loop, on_curl_timer, c);
        c->watches = (struct curl_watches){ .uv = loop_uv(c->loop),
                                            .multi = c->multi,
                                            .ready = on_ready_socket,
                                            .hold = on_watch_made,
                                            .gone = on_watch_gone,
                                            .arg = c };
        curl_watches_start(&c->watches);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, c->max_connections);
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, MAX_IDLE);
}

/* Hands a call to curl, or ends it when it was wrong from the beginning. */
static void launch(struct http_call *call)
{
        CURLMcode code;

        if (call->error.kind != ERR_NONE) {
                finish(call);
                return;
        }
        call->state = CALL_RUNNING;
        move(call, &call->client->running);
        code = curl_multi_add_handle(call->client->multi, call->setup.easy);
        if (code == CURLM_OK)
                return;
        error_set(&call->error, ERR_INTERNAL, "cannot start a request: %s", curl_multi_strerror(code));
        finish(call);
}

static void free_all(struct http_calls *calls)
{
        struct http_call *call, *next;

        for (call = TAILQ_FIRST(calls); call; call = next) {
                next = TAILQ_NEXT(call, next);
                call_free(call);
        }
}

static void pump(void *arg)
{
        struct http_client *c = arg;
        struct http_call *call;
        unsigned round = c->round++;

        c->pumping = false;
        if (!c->freed) {
                enter(c);
                free_all(&c->aborted);
                /* what is started from here on waits for the next round, so that a failing call that is started again
                 * and again cannot hold up the loop */
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that the freed call left the list */
                while (!c->freed && (call = TAILQ_FIRST(&c->waiting)) && call->round == round)
                        launch(call);
                if (!c->freed && c->tick) {
                        c->tick = false;
                        drive(c, CURL_SOCKET_TIMEOUT, 0);
                }
                leave(c);
        }
        unref(c); /* NOLINT(clang-analyzer-unix.Malloc): counted, and this pump has a reference of its own */
}

/* --- deadlines --- */

struct deadline {
        int64_t at; /* INT64_MAX: none */
        int64_t ms;
        const char *what;
};

static void earlier(struct deadline *d, int64_t from, int64_t ms, const char *what)
{
        if (ms <= 0 || ms >= d->at - from)
                return;
        d->at = from + ms;
        d->ms = ms;
        d->what = what;
}

static struct deadline next_deadline(const struct http_call *call)
{
        struct deadline d = { INT64_MAX, 0, NULL };

        if (!call->connected)
                earlier(&d, call->hop_started_ms, call->connect_ms, "no connection");
        if (!call->status)
                earlier(&d, call->hop_started_ms, call->first_byte_ms, "no answer");
        else
                earlier(&d, call->last_byte_ms, call->silence_ms, "silence in the answer");
        earlier(&d, call->started_ms, call->total_ms, "no complete answer");
        return d;
}

/* Bytes only move their deadlines; the timer finds out when it fires, which saves a restart for each piece. */
static void set_timer(struct http_call *call)
{
        struct deadline d = next_deadline(call);

        if (d.at == INT64_MAX)
                timer_stop(call->timer);
        else
                timer_start(call->timer, d.at - loop_now_ms(call->client->loop));
}

static void on_deadline(void *arg)
{
        struct http_call *call = arg;
        struct http_client *c = call->client;
        struct deadline d = next_deadline(call);

        if (d.at > loop_now_ms(c->loop)) {
                set_timer(call);
                return;
        }
        error_set(&call->error, ERR_TIMEOUT, "%s from '%s' within %" PRId64 " ms", d.what,
                  call->setup.host ? call->setup.host : "", d.ms);
        enter(c);
        finish(call);
        leave(c);
}

/* --- what curl tells about one call; it may not be removed in here --- */

static int on_ready(void *arg, char *ip, char *local_ip, int port, int local_port)
{
        struct http_call *call = arg;

        (void)ip, (void)local_ip, (void)port, (void)local_port;
        if (call->state != CALL_RUNNING)
                return CURL_PREREQFUNC_ABORT;
        if (call->sendings > (call->repeatable ? 1 : 0)) {
                error_set(&call->error, ERR_NET, "connection to '%s' was closed before the answer",
                          call->setup.host);
                return CURL_PREREQFUNC_ABORT;
        }
        call->sendings++;
        call->sent = call->connected = true;
        return CURL_PREREQFUNC_OK;
}

static bool is_redirect(int status)
{
        return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void on_head_complete(struct http_call *call)
{
        call->head_done = true;
        if (call->follow && is_redirect(call->status) && http_answer_header(call, "Location")) {
                call->redirecting = true;
                if (call->hops >= MAX_HOPS)
                        error_set(&call->error, ERR_PROTOCOL, "'%s' redirects too often", call->setup.host);
                return;
        }
        if (call->on.on_head)
                call->on.on_head(call->arg, call, call->status);
}

static void note_status(struct http_call *call, int status)
{
        if (status < 200)
                return; /* "100 Continue" and its kin are no answer */
        call->status = status;
        call->last_byte_ms = loop_now_ms(call->client->loop);
        set_timer(call);
}

/* Told line by line; the last one is empty. Lines after the body are trailers, of no use to anybody. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;

        (void)size; /* always 1 */
        if (call->state != CALL_RUNNING)
                return 0;
        call->last_byte_ms = loop_now_ms(call->client->loop);
        call->head_bytes += n;
        if (call->head_bytes > MAX_HEAD) {
                error_set(&call->error, ERR_LIMIT, "the headers of '%s' are larger than %u bytes",
                          call->setup.host, MAX_HEAD);
                return 0;
        }
        if (call->head_done)
                return n;
        if (!call->status)
                note_status(call, http_status_of_line(line, n));
        else if (line[0] == '\r' || line[0] == '\n')
                on_head_complete(call);
        return call->state == CALL_RUNNING && call->error.kind == ERR_NONE ? n : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;

        (void)size; /* always 1 */
        if (call->state != CALL_RUNNING)
                return 0;
        call->last_byte_ms = loop_now_ms(call->client->loop);
        call->body_bytes += n;
        if (call->body_bytes > call->max_body) {
                error_set(&call->error, ERR_LIMIT, "the answer of '%s' is larger than %zu bytes",
                          call->setup.host, call->max_body);
                return 0;
        }
        if (call->redirecting)
                return n;
        if (call->on.on_data && call->status < STATUS_IS_ERROR)
                call->on.on_data(call->arg, bytes, n);
        else
                buf_add(&call->body, bytes, n);
        return call->state == CALL_RUNNING ? n : 0;
}

/* Child programs do not inherit our connections. */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
        (void)arg, (void)purpose;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return CURL_SOCKOPT_OK;
}

/* --- the caller's side --- */

void http_client_dress(struct http_client *c, CURL *easy)
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

static void set_options(struct http_call *call)
{
        struct http_client *c = call->client;
        CURL *easy = call->setup.easy;

        curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_error);
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_ready);
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, c->user_agent);
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
        /* ours decides; curl only shares the time out between a host's addresses */
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_ms);
        http_client_dress(c, easy);
}

static bool is_get(const struct http_request *r)
{
        return r->method ? strcmp(r->method, "GET") == 0 : !r->body && r->part_count == 0;
}

struct http_call *http_start(struct http_client *c, const struct http_request *request,
                             const struct http_handlers *handlers, void *arg)
{
        struct http_call *call = mem_zalloc(sizeof(*call));

        start_multi(c);
        call->client = c;
        call->on = *handlers;
        call->arg = arg;
        call->connect_ms = request->connect_ms > 0 ? request->connect_ms : CONNECT_MS;
        call->first_byte_ms = request->first_byte_ms;
        call->silence_ms = request->silence_ms;
        call->total_ms = request->total_ms;
        call->max_body = request->max_body ? request->max_body : MAX_BODY;
        call->repeatable = request->repeatable;
        call->follow = request->follow && is_get(request);
        buf_init(&call->body, 0);
        call->timer = timer_new(c->loop, on_deadline, call);
        uv_update_time(loop_uv(c->loop));
        call->started_ms = call->hop_started_ms = loop_now_ms(c->loop);
        /* a mistake in the request is told by pump */
        if (http_setup_init(&call->setup, request, &call->error) == 0) {
                set_options(call);
                set_timer(call);
        }
        c->active++;
        enqueue(call);
        return call;
}

void http_abort(struct http_call *call)
{
        struct http_client *c;

        if (!call || call->state == CALL_ENDING || call->state == CALL_ABORTED)
                return;
        c = call->client;
        timer_stop(call->timer);
        call->state = CALL_ABORTED;
        c->active--;
        move(call, &c->aborted);
        want_pump(c);
}

const char *http_answer_header(const struct http_call *call, const char *name)
{
        struct curl_header *header;

        if (!call->setup.easy || curl_easy_header(call->setup.easy, name, 0, CURLH_HEADER, -1, &header))
                return NULL;
        return header->value;
}

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
                error_set(err, ERR_IO, "cannot read certificates '%s': %s", o->ca_file, strerror(errno));
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
        free_all(&c->waiting);
        free_all(&c->running);
        free_all(&c->aborted);
        if (c->multi) {
                curl_multi_cleanup(c->multi);
                c->multi = NULL;
                curl_global_cleanup();
        }
        curl_watches_stop(&c->watches);
        timer_free(c->timer);
        unref(c);
}

static void abort_all(struct http_calls *calls)
{
        struct http_call *call, *next;

        for (call = TAILQ_FIRST(calls); call; call = next) {
                next = TAILQ_NEXT(call, next);
                http_abort(call);
        }
}

void http_client_free(struct http_client *c)
{
        if (!c)
                return;
        abort_all(&c->waiting);
        abort_all(&c->running);
        c->freed = true;
        if (c->depth == 0)
                destroy(c);
}
