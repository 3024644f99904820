#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/local_store.h"

#define ASK_MS     30000
#define STATE_LINE 1024 /* in state files */

struct client {
        struct loop *loop;
        struct http_client *http;
        char *dir;
        char *base; /* NULL: not found yet */
        char *authorization;
        char *pin; /* of a daemon with TLS, else NULL */
};

struct client *client_new(struct loop *l, const char *dir, struct error *err)
{
        /* no proxy: the daemon is on this machine */
        struct http_client_options options = { .proxy = "", .max_connections = 8 };
        struct client *c = mem_zalloc(sizeof(*c));

        c->loop = l;
        c->dir = mem_strdup(dir);
        c->http = http_client_new(l, &options, err);
        if (!c->http) {
                client_free(c);
                return NULL;
        }
        return c;
}

void client_free(struct client *c)
{
        if (!c)
                return;
        http_client_free(c->http);
        free(c->dir);
        free(c->base);
        free(c->authorization);
        free(c->pin);
        free(c);
}

struct loop *client_loop(const struct client *c)
{
        return c->loop;
}

const char *client_dir(const struct client *c)
{
        return c->dir;
}

const char *client_base(const struct client *c)
{
        return c->base ? c->base : "";
}

/* ---- locating the daemon ---- */

static int no_daemon(const struct client *c, struct error *err)
{
        return error_set(err, ERR_NET, "no daemon runs on %s; start one with: dragoman run %s",
                         c->dir, c->dir);
}

/*
 * Reads a line of a file in the state directory. Root may ask about the daemon of another user, who
 * must not make us read other files: refuses links, and files of another owner than the
 * directory's. 0, or -1 with errno.
 */
static int read_line_at(int state, const char *name, char out[STATE_LINE])
{
        int fd = openat(state, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat dir, st;
        ssize_t n = -1;

        if (fd < 0)
                return -1;
        if (fstat(state, &dir) < 0 || fstat(fd, &st) < 0)
                goto out;
        errno = EPERM;
        if (S_ISREG(st.st_mode) && (st.st_mode & 022) == 0 &&
            (st.st_uid == dir.st_uid || st.st_uid == 0))
                n = read(fd, out, STATE_LINE - 1);
        if (n >= 0) {
                out[n] = '\0';
                out[strcspn(out, "\r\n")] = '\0';
        }
out:
        close(fd);
        return n < 0 ? -1 : 0;
}

static int read_line(const char *dir, const char *name, char out[STATE_LINE])
{
        char *path = mem_printf("%s/state", dir);
        int state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int rc = state < 0 ? -1 : read_line_at(state, name, out), why = errno;

        if (state >= 0)
                close(state);
        free(path);
        errno = why;
        return rc;
}

/* Loopback for a wildcard address. */
static char *base_url(const char *address, bool tls)
{
        const char *scheme = tls ? "https" : "http";

        if (strncmp(address, "0.0.0.0:", 8) == 0)
                return mem_printf("%s://127.0.0.1:%s", scheme, address + 8);
        if (strncmp(address, "[::]:", 5) == 0)
                return mem_printf("%s://[::1]:%s", scheme, address + 5);
        return mem_printf("%s://%s", scheme, address);
}

static int locate(struct client *c, struct error *err)
{
        char address[STATE_LINE], key[STATE_LINE], pin[STATE_LINE];

        /* a killed daemon leaves its address behind: keep our key from another program */
        if (local_store_has_daemon(c->dir) == 0)
                return no_daemon(c, err);
        /* only now: a daemon that has taken the lock has removed the address of an earlier run */
        if (read_line(c->dir, "http.addr", address) < 0) {
                if (errno == EPERM || errno == ELOOP)
                        return error_set(err, ERR_REFUSED,
                                         "'%s/state/http.addr' is a link, belongs to another user "
                                         "than its folder, or may be written by others; remove it "
                                         "and restart the daemon",
                                         c->dir);
                if (errno == EACCES)
                        return error_set(err, ERR_REFUSED,
                                         "cannot read '%s/state': %s; it belongs to another user",
                                         c->dir, strerror(errno));
                return no_daemon(c, err);
        }
        if (read_line(c->dir, "operator.key", key) < 0)
                return error_set(err, ERR_REFUSED, "cannot read '%s/state/operator.key': %s",
                                 c->dir, strerror(errno));
        free(c->base);
        free(c->authorization);
        free(c->pin);
        c->pin = read_line(c->dir, "http.pin", pin) == 0 ? mem_strdup(pin) : NULL;
        c->base = base_url(address, c->pin != NULL);
        c->authorization = mem_printf("Authorization: Bearer %s", key);
        explicit_bzero(key, sizeof(key));
        return 0;
}

/* ---- requests ---- */

struct http_call *client_start(struct client *c, const struct client_request *q,
                               const struct http_handlers *handlers, void *arg, struct error *err)
{
        struct http_request request = { .method = q->method,
                                        .silence_ms = q->silence_ms,
                                        .body = q->body };
        const char *headers[5] = { NULL };
        char *url, *key = NULL, *last = NULL;
        struct http_call *call;
        size_t n = 0;

        if (locate(c, err) < 0)
                return NULL;
        url = mem_printf("%s%s", c->base, q->path);
        headers[n++] = c->authorization;
        if (q->body)
                headers[n++] = "Content-Type: application/json";
        if (q->idempotency_key)
                headers[n++] = key = mem_printf("Idempotency-Key: %s", q->idempotency_key);
        if (q->last_event_id)
                headers[n++] = last = mem_printf("Last-Event-ID: %s", q->last_event_id);
        request.url = url;
        request.headers = headers;
        request.pinned_key = c->pin;
        request.body_n = q->body ? strlen(q->body) : 0;
        request.total_ms = q->total_ms == 0 ? ASK_MS : q->total_ms < 0 ? 0 : q->total_ms;
        request.repeatable = !q->method;
        call = http_call_start(c->http, &request, handlers, arg);
        free(url);
        free(key);
        free(last);
        return call;
}

static enum error_kind kind_of(int status)
{
        switch (status) {
        case 400:
        case 422:
                return ERR_INVALID;
        case 401:
        case 403:
                return ERR_REFUSED;
        case 404:
                return ERR_MISSING;
        case 409:
                return ERR_CONFLICT;
        case 429:
        case 503:
                return ERR_LIMIT;
        default:
                return ERR_PROTOCOL;
        }
}

int client_result(const struct client *c, const struct http_result *r, json_t **out,
                  struct error *err)
{
        const char *message;
        json_t *json;

        *out = NULL;
        if (r->kind == ERR_REFUSED)
                return error_set(err, ERR_REFUSED,
                                 "what answers at %s is not the daemon on %s: its TLS key is not "
                                 "the one in '%s/state/http.pin'; another program may have the "
                                 "port, or restart the daemon",
                                 client_base(c), c->dir, c->dir);
        if (r->kind == ERR_NET && r->reach == HTTP_NOT_SENT) {
                if (local_store_has_daemon(c->dir) != 1)
                        return no_daemon(c, err);
                return error_set(err, ERR_NET, "the daemon on %s runs but cannot be reached: %s",
                                 c->dir, r->why ? r->why : "?");
        }
        if (r->kind != ERR_NONE)
                return error_set(err, r->kind, "the daemon on %s did not answer: %s", c->dir,
                                 r->why ? r->why : "?");
        json = r->body_n > 0 ? json_loadb(r->body, r->body_n, 0, NULL) : NULL;
        if (r->status < 400) {
                *out = json;
                return 0;
        }
        message = json_str(json_object_get(json, "error"), "message", NULL);
        if (message)
                error_set(err, kind_of(r->status), "%s", message);
        else
                error_set(err, kind_of(r->status), "the daemon answered with status %d", r->status);
        json_decref(json);
        return -1;
}

struct client_job {
        struct client *client;
        json_t **refusal;
        struct error *err;
        json_t *json;
        int rc;
        bool done;
};

static void on_done(void *arg, const struct http_result *result)
{
        struct client_job *a = arg;

        a->rc = client_result(a->client, result, &a->json, a->err);
        if (a->rc < 0 && a->refusal && result->body_n > 0) {
                json_t *json = json_loadb(result->body, result->body_n, 0, NULL);

                *a->refusal =
                        json_incref(json_object_get(json_object_get(json, "error"), "details"));
                json_decref(json);
        }
        a->done = true;
}

int client_ask(struct client *c, const struct client_request *request, json_t **out,
               struct error *err)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct client_job a = { .client = c, .refusal = request->refusal, .err = err };

        *out = NULL;
        if (!client_start(c, request, &handlers, &a, err))
                return -1;
        while (!a.done)
                loop_step(c->loop, true);
        *out = a.json;
        return a.rc;
}

int client_get(struct client *c, const char *path, json_t **out, struct error *err)
{
        struct client_request request = { .path = path };

        return client_ask(c, &request, out, err);
}

bool client_alive(struct client *c)
{
        struct client_request request = { .path = "/api/v2/status", .total_ms = 5000 };
        json_t *json = NULL;
        int rc = client_ask(c, &request, &json, NULL);

        json_decref(json);
        return rc == 0;
}

int client_command(struct args *a, int (*fn)(struct args *a, struct client *c, struct error *err))
{
        struct loop *l = loop_new();
        struct error err = { 0 };
        struct client *c = client_new(l, a->dir, &err);
        int rc = c ? fn(a, c, &err) : -1;

        if (rc < 0)
                rc = command_failed(a, &err);
        client_free(c);
        loop_free(l);
        return rc;
}
