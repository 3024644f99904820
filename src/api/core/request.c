#include "api/core/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* ---- running the handler ---- */

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);

        free(j);
        if (!x)
                return;
        if (http_is_gone(x)) {
                http_refuse(x, 499, "HTTP_ERROR", "the client has gone");
                return;
        }
        api_of(x)->parsed = parsed;
        request_route(x)->run(x);
        api_of(x)->parsed = NULL;
}

void request_run(struct http_exchange *x)
{
        const struct route *route = request_route(x);
        struct api_job *j;
        struct body b;
        char *text;
        size_t n = 0;

        if (api_of(x)->closed) {
                http_refuse(x, 503, "UNAVAILABLE", "shutting down");
                return;
        }
        /* webhooks and clients of foreign protocols may add parameters of their own */
        if (!route->query && route->scope >= SCOPE_READ &&
            strncmp(route->path, "/api/v2/", 8) == 0) {
                if (request_query(x, &b, NULL) < 0)
                        return;
                body_release(&b);
        }
        http_body(x, &n);
        if ((!route->body && !route->reads_body) || n < JSON_OFFLOAD_MIN) {
                route->run(x);
                return;
        }
        text = http_take_body(x, &n);
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        json_offload_start(api_of(x)->env.loop, text, n,
                           route->lenient_body ? json_read_lenient : NULL, on_parsed, j);
}

const struct json_parsed *request_parsed(const struct http_exchange *x)
{
        return api_of(x)->parsed;
}

/* ---- reading parameters ---- */

static int answer_mistakes(struct http_exchange *x, struct body *b)
{
        reply_mistakes(x, b);
        body_release(b);
        return -1;
}

struct query_reader {
        struct body *body;
        const struct field *fields;
        void *out;
};

static void on_parameter(void *arg, const char *name, const char *value)
{
        struct query_reader *q = arg;

        body_query_add(q->body, q->fields, q->out, name, value);
}

int request_query(struct http_exchange *x, struct body *b, void *out)
{
        struct query_reader q = { b, request_route(x)->query, out };

        body_init(b);
        http_query_each(x, on_parameter, &q);
        return body_query_done(b, q.fields) < 0 ? answer_mistakes(x, b) : 0;
}

int request_body(struct http_exchange *x, struct body *b, void *out)
{
        const struct route *route = request_route(x);
        const struct json_parsed *parsed = request_parsed(x);
        const struct field *f;
        const char *text;
        size_t n = 0;
        int rc;

        body_init(b);
        if (parsed) {
                b->root = json_incref(parsed->root);
                b->error = parsed->error;
                rc = body_read_tree(b, route->body, out);
        } else {
                text = http_body(x, &n);
                rc = body_read(b, text, n, route->body, out);
        }
        if (rc < 0)
                return answer_mistakes(x, b);
        if (route->reach != REACH_BODY)
                return 0;
        f = field_find(route->body, "instanceId");
        if (request_reaches(x, f ? *(const char *const *)((const char *)out + f->at) : NULL))
                return 0;
        body_release(b);
        return -1;
}

int64_t request_id(struct http_exchange *x, const char *prefix, const char *what)
{
        const char *id = http_param(x, "id");
        int64_t n = id ? field_id(prefix, id) : -1;

        if (n < 0)
                reply_missing(x, what, id ? id : "");
        return n;
}

char *request_own_key(const struct http_exchange *x, const char *key)
{
        return mem_printf("key-%lld:%s", (long long)caller_of(x)->id, key);
}

void request_hash(const char *what, const json_t *body, char hash[SHA256_HEX_SIZE])
{
        char *text = json_dumps(body, JSON_SORT_KEYS | JSON_COMPACT);
        char *whole = mem_printf("%s %s", what, text ? text : "");

        crypto_sha256_hex(whole, strlen(whole), hash);
        free(text);
        free(whole);
}

int request_key(struct http_exchange *x, const char **key)
{
        size_t n;

        *key = http_header(x, "Idempotency-Key");
        if (!*key)
                return 0;
        n = strlen(*key);
        for (const char *p = *key; *p; p++)
                if (*p < ' ' || *p > '~')
                        n = 0;
        if (n >= 1 && n <= 200)
                return 0;
        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                    "Idempotency-Key must be 1 to 200 printable characters");
        return -1;
}

bool request_reaches(struct http_exchange *x, const char *adapter)
{
        if (key_reaches(caller_of(x), adapter))
                return true;
        reply_error(x, 403, "FORBIDDEN", NULL, "this key does not reach instance '%.100s'",
                    adapter ? adapter : "");
        return false;
}

/* Headers often reveal a tunnel or proxy that the configuration does not mention. */
bool request_is_local(const struct http_exchange *x)
{
        static const char *const forwarded[] = { "Forwarded",         "Via",
                                                 "X-Forwarded-For",   "X-Forwarded-Host",
                                                 "X-Forwarded-Proto", "X-Real-IP",
                                                 "CF-Connecting-IP",  "True-Client-IP" };

        for (size_t i = 0; i < COUNT(forwarded); i++)
                if (http_header(x, forwarded[i]))
                        return false;
        return auth_is_local(&api_of(x)->auth);
}

bool request_path_is_inside(const char *path)
{
        for (const char *p = path; *p; p += strcspn(p, "/"), p += strspn(p, "/"))
                if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
                        return false;
        return true;
}
