/*
 * Requests are read by the tables of their route; mistakes are answered here, so that handlers only
 * see good input.
 */
#include <string.h>

#include "api/core/api_private.h"

static const struct route *route_of(const struct http_exchange *x)
{
        return http_route_of(x)->more;
}

struct query_reading {
        struct body *body;
        const struct field *fields;
        void *out;
};

static void on_parameter(void *arg, const char *name, const char *value)
{
        struct query_reading *q = arg;

        body_query_add(q->body, q->fields, q->out, name, value);
}

static int answer_mistakes(struct http_exchange *x, struct body *b)
{
        reply_mistakes(x, b);
        body_release(b);
        return -1;
}

int request_query(struct http_exchange *x, struct body *b, void *out)
{
        struct query_reading q = { b, route_of(x)->query, out };

        body_init(b);
        http_query_each(x, on_parameter, &q);
        return body_query_done(b, q.fields) < 0 ? answer_mistakes(x, b) : 0;
}

bool request_reaches(struct http_exchange *x, const char *adapter)
{
        if (key_reaches(caller_of(x), adapter))
                return true;
        reply_error(x, 403, "FORBIDDEN", NULL, "this key does not reach instance '%.100s'",
                    adapter ? adapter : "");
        return false;
}

/*
 * The adapter a body names: its instanceId, or what the table says its absence means. Borrowed from
 * out; NULL: none.
 */
static const char *named_adapter(const struct field *fields, const void *out)
{
        for (const struct field *f = fields; f && f->name; f++)
                if (strcmp(f->name, "instanceId") == 0)
                        return *(const char *const *)((const char *)out + f->at);
        return NULL;
}

static int read_body(struct http_exchange *x, struct body *b, void *out)
{
        const struct json_parsed *p = request_parsed(x);
        size_t n = 0;
        const char *text;

        if (p) {
                b->root = json_incref(p->root);
                b->error = p->error;
                return body_read_tree(b, route_of(x)->body, out);
        }
        text = http_body(x, &n);
        return body_read(b, text, n, route_of(x)->body, out);
}

int request_body(struct http_exchange *x, struct body *b, void *out)
{
        const struct route *route = route_of(x);

        body_init(b);
        if (read_body(x, b, out) < 0)
                return answer_mistakes(x, b);
        if (route->reach == REACH_BODY && !request_reaches(x, named_adapter(route->body, out))) {
                body_release(b);
                return -1;
        }
        return 0;
}

/* 1 to 200 printable characters. */
static bool sane_key(const char *key)
{
        size_t n = strlen(key);

        for (size_t i = 0; i < n; i++)
                if (key[i] < ' ' || key[i] > '~')
                        return false;
        return n >= 1 && n <= 200;
}

int request_key(struct http_exchange *x, const char **key)
{
        *key = http_header(x, "Idempotency-Key");
        if (!*key || sane_key(*key))
                return 0;
        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                    "Idempotency-Key must be 1 to 200 printable characters");
        return -1;
}

bool request_path_is_inside(const char *path)
{
        for (const char *p = path; *p; p += strcspn(p, "/"), p += strspn(p, "/"))
                if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
                        return false;
        return true;
}

int64_t request_id(struct http_exchange *x, const char *prefix, const char *what)
{
        const char *id = http_param(x, "id");
        int64_t n = id ? field_id(prefix, id) : -1;

        if (n < 0)
                reply_missing(x, what, id ? id : "");
        return n;
}
