/*
 * curl resends a request on its own, even a POST, when a kept-alive connection ends without an
 * answer. It calls `on_ready` before each sending, which stops what is not repeatable.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_client_private.h"
#include "net/http_text.h"

#define CONNECT_MS 10000
#define MAX_BODY   (8u << 20)
#define MAX_HEAD   (256u << 10)
/* many servers close after 75 s; be earlier, so that no request meets a closing connection */
#define IDLE_SECONDS    60L
#define MAX_HOPS        5
#define STATUS_IS_ERROR 400

/* --- the end --- */

void http_call_free(struct http_call *call)
{
        http_client_move(call, NULL);
        if (call->client->multi && call->setup.easy)
                curl_multi_remove_handle(call->client->multi, call->setup.easy);
        timer_free(call->timer);
        http_setup_release(&call->setup);
        buf_release(&call->body);
        free(call);
}

void http_call_finish(struct http_call *call)
{
        struct http_client *c = call->client;
        struct http_result result = {
                .status = call->status,
                .reach = call->status ? HTTP_ANSWERED
                         : call->sent ? HTTP_UNSURE
                                      : HTTP_NOT_SENT,
                .kind = call->error.kind,
                .why = call->error.text,
                .body = call->body.data,
                .body_n = call->body.len,
                .retry_after_ms = -1,
                .elapsed_ms = loop_now_ms(c->loop) - call->started_ms,
        };

        if (call->status)
                result.retry_after_ms = http_text_retry_after_ms(
                        http_call_header(call, "Retry-After"), clock_wall_ms());
        log_redact(call->error.text);
        timer_stop(call->timer);
        call->state = CALL_ENDING;
        c->active--;
        call->on.on_done(call->arg, &result);
        http_call_free(call);
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
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
                return ERR_REFUSED; /* by us: it is not the peer we know */
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

void http_call_end(struct http_call *call, CURLcode code)
{
        const char *why = call->curl_error[0] ? call->curl_error : curl_easy_strerror(code);
        const char *location;

        if (call->error.kind == ERR_NONE && code != CURLE_OK && call->met_private && !call->sent)
                http_public_refused(call, &call->error);
        else if (call->error.kind == ERR_NONE && code != CURLE_OK)
                error_set(&call->error, kind_of(code),
                          call->sent ? "connection to '%s' failed: %s" : "cannot reach '%s': %s",
                          call->setup.host, why);
        if (!call->redirecting || call->error.kind != ERR_NONE) {
                http_call_finish(call);
                return;
        }
        location = http_call_header(call, "Location");
        /* the same handle serves the next hop */
        curl_multi_remove_handle(call->client->multi, call->setup.easy);
        if (http_setup_redirect(&call->setup, location, &call->error)) {
                http_call_finish(call);
                return;
        }
        call->status = 0;
        call->hops++;
        call->sendings = 0;
        call->connected = call->head_done = call->redirecting = false;
        call->body_bytes = call->head_bytes = 0;
        call->hop_started_ms = loop_now_ms(call->client->loop);
        http_client_enqueue(call);
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

/* Arriving bytes move deadlines but not the timer, which looks again when it fires. */
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
        c->depth++;
        http_call_finish(call);
        http_client_leave(c);
}

/* --- curl's callbacks for one call; it must not be freed in here --- */

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

static void end_head(struct http_call *call)
{
        int status = call->status;
        bool redirect =
                status == 301 || status == 302 || status == 303 || status == 307 || status == 308;

        call->head_done = true;
        if (call->follow && redirect && http_call_header(call, "Location")) {
                call->redirecting = true;
                if (call->hops >= MAX_HOPS)
                        error_set(&call->error, ERR_PROTOCOL, "'%s' redirects too often",
                                  call->setup.host);
                return;
        }
        if (call->on.on_head)
                call->on.on_head(call->arg, call, call->status);
}

/* Called for each line; the last one is empty. Lines after the body are trailers: ignored. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;
        int status;

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
        if (!call->status) {
                status = http_text_status(line, n);
                if (status < 200)
                        return n; /* "100 Continue" and the like are no answer */
                call->status = status;
                set_timer(call);
        } else if (line[0] == '\r' || line[0] == '\n') {
                end_head(call);
        }
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

/* --- the caller's side --- */

struct http_call *http_call_start(struct http_client *c, const struct http_request *request,
                                  const struct http_handlers *handlers, void *arg)
{
        struct http_call *call = mem_zalloc(sizeof(*call));
        bool is_get = request->method ? strcmp(request->method, "GET") == 0
                                      : !request->body && request->part_count == 0;
        CURL *easy;

        http_client_start(c);
        call->client = c;
        call->on = *handlers;
        call->arg = arg;
        call->connect_ms = request->connect_ms > 0 ? request->connect_ms : CONNECT_MS;
        call->first_byte_ms = request->first_byte_ms;
        call->silence_ms = request->silence_ms;
        call->total_ms = request->total_ms;
        call->max_body = request->max_body ? request->max_body : MAX_BODY;
        call->repeatable = request->repeatable;
        call->follow = request->follow && is_get && !request->public_only;
        buf_init(&call->body, 0);
        call->timer = timer_new(c->loop, on_deadline, call);
        uv_update_time(loop_uv(c->loop));
        call->started_ms = call->hop_started_ms = loop_now_ms(c->loop);
        /* pump reports a malformed request */
        if (http_setup_init(&call->setup, request, &call->error) == 0) {
                easy = call->setup.easy;
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
                /* our timer decides; curl only divides the time among a host's addresses */
                curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_ms);
                http_client_configure(c, easy);
                if (request->public_only)
                        http_public_limit(call, request->url, &call->error);
                set_timer(call);
        }
        c->active++;
        http_client_enqueue(call);
        return call;
}

void http_call_abort(struct http_call *call)
{
        struct http_client *c;

        if (!call || call->state == CALL_ENDING || call->state == CALL_ABORTED)
                return;
        c = call->client;
        timer_stop(call->timer);
        call->state = CALL_ABORTED;
        c->active--;
        http_client_move(call, &c->aborted);
        http_client_want_pump(c);
}

const char *http_call_header(const struct http_call *call, const char *name)
{
        struct curl_header *header;

        if (!call->setup.easy ||
            curl_easy_header(call->setup.easy, name, 0, CURLH_HEADER, -1, &header))
                return NULL;
        return header->value;
}
