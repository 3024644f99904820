/*
 * routes: what the API offers. Each resource file has a table of its routes, and routes.c lists the
 * tables; the server, the gate, the request readers, the OpenAPI document and docs/REST.md all read
 * them.
 */
#ifndef API_CORE_ROUTES_H
#define API_CORE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/field.h"
#include "base/buf.h"
#include "net/http_server.h"

enum scope {
        SCOPE_NONE,  /* no key needed */
        SCOPE_LOCAL, /* no key needed while only this machine can connect, else as SCOPE_READ */
        SCOPE_READ,
        SCOPE_WRITE,
        SCOPE_ADMIN,
};

/*
 * How a request names its adapter, and so how a key that is restricted to adapters is held to them.
 * A test asks every route with keys that must not see what it would show.
 */
enum reach {
        REACH_UNDECLARED, /* a mistake: closed to restricted keys, and a test fails */
        REACH_SHARED,     /* shows and changes nothing of an adapter */
        REACH_ALL,        /* about everything: closed to restricted keys */
        REACH_PATH,       /* :adapter of the path */
        REACH_BODY,       /* instanceId of the body, or its default */
        REACH_ROW,        /* a row of the store, whose adapter `row_scope` finds */
        REACH_LIST,       /* many rows: the handler shows only those of the caller's adapters */
        REACH_HANDLER,    /* the handler calls request_reaches for each adapter */
};

struct store_tx;
/*
 * Inside a store function: appends the adapter of the row that :id of the path names; several are
 * separated by commas, and the key must reach each. 1; 0: no such row; -1.
 */
typedef int row_scope_fn(struct store_tx *tx, const char *id, struct buf *adapters,
                         struct error *err);

struct route {
        const char *method;
        const char *path;
        enum scope scope;
        void (*run)(struct http_exchange *x);
        enum reach reach;
        row_scope_fn *row_scope; /* with REACH_ROW */
        /* Before the body is read: answers and returns false to refuse. NULL: the key suffices. */
        bool (*admits)(struct http_exchange *x);
        const char *summary;       /* a sentence or two */
        const struct field *query; /* NULL: any parameter is refused */
        const struct field *body;  /* NULL: no table describes it */
        bool reads_body;           /* without `body`: the handler reads it by itself */
        size_t max_body;           /* 0: http.maxBodyBytes */
        int status;                /* of success */
        const char *answer;        /* describes the answer */
        const char *content_type;  /* NULL: application/json */
        const char *example;       /* an accepted body; required with `body` */
        const char *example_answer;
};

#define ROUTE_END    \
        {            \
                NULL \
        }
/* A JSON text, for examples. */
#define ROUTE_JSON(...) #__VA_ARGS__
/* The answer of a route that lists. */
#define ROUTE_PAGE "A page: {\"items\": [...], \"meta\": {\"hasMore\", \"cursor\"}}"

/* All routes: NULL gives the first, and the last gives NULL. */
const struct route *routes_next(const struct route *r);
#define ROUTES_FOREACH(r) \
        for (const struct route *(r) = routes_next(NULL); (r); (r) = routes_next(r))
size_t routes_count(void);

/* "/api/v2/turns/:id" → "turns", as scopes name it. Not NUL-terminated. */
struct slice route_resource(const struct route *r);
/* "read", "write", "admin", or "none". */
const char *route_scope_name(enum scope s);

/* Appends the OpenAPI 3.1 document. */
void openapi_write(struct buf *out);
/* Appends the reference for people, as Markdown. */
void rest_doc_write(struct buf *out);

#endif
