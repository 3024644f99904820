/*
 * routes: the API as tables, one per resource file, listed in routes.c; read by the server, the
 * gate, the request readers, the OpenAPI document and docs/REST.md.
 */
#ifndef API_CORE_ROUTES_H
#define API_CORE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/field.h"
#include "base/buf.h"
#include "net/http_server.h"

enum scope {
        SCOPE_NONE, /* no key needed */
        SCOPE_READ,
        SCOPE_WRITE,
        SCOPE_ADMIN,
};

/*
 * Where a request names its adapter, and so how a restricted key is checked. A test calls every
 * route with keys that must not see its answer.
 */
enum reach {
        REACH_UNDECLARED, /* a bug: closed to restricted keys */
        REACH_SHARED,     /* concerns no adapter */
        REACH_ALL,        /* closed to restricted keys */
        REACH_PATH,       /* :adapter in the path */
        REACH_BODY,       /* instanceId in the body, or its default */
        REACH_ROW,        /* a row; `row_scope` finds its adapter */
        REACH_LIST,       /* many rows; the handler filters by the caller's adapters */
        REACH_HANDLER,    /* the handler calls request_reaches per adapter */
};

struct store_tx;
/*
 * Appends the adapter of the row named by :id; of several, separated by commas, the key must reach
 * each. 1; 0: no such row; -1.
 */
typedef int row_scope_fn(struct store_tx *tx, const char *id, struct buf *adapters,
                         struct error *err);

/* A row of another adapter is answered as missing, to hide its existence. */
row_scope_fn row_scope_turn, row_scope_delivery, row_scope_event, row_scope_dead_letter,
        row_scope_approval, row_scope_schedule, row_scope_calendar;
/* Checks the row, then calls request_run. */
void row_scope_run(struct http_exchange *x);

struct route {
        const char *method;
        const char *path;
        enum scope scope;
        void (*run)(struct http_exchange *x);
        enum reach reach;
        row_scope_fn *row_scope; /* with REACH_ROW */
        /* Needs no key if this holds, which the documentation tells as `keyless_when`. May be NULL.
         */
        bool (*keyless)(const struct http_exchange *x);
        const char *keyless_when; /* "while only this machine can connect" */
        /* Called before the body is read; false: answered. May be NULL. */
        bool (*admits)(struct http_exchange *x);
        const char *summary;       /* a sentence or two */
        const struct field *query; /* NULL: any parameter is refused */
        const struct field *body;  /* NULL: no table */
        bool reads_body;           /* no `body`: the handler reads it */
        bool lenient_body;         /* with reads_body: of json_read_lenient */
        size_t max_body;           /* 0: http.maxBodyBytes */
        bool proof_in_body;        /* callers prove who they are only with the body */
        const char *resource;      /* of scopes; NULL: the path says it */
        int status;                /* of success */
        const char *answer;        /* describes the answer */
        const char *content_type;  /* NULL: application/json */
        const char *example;       /* a valid body */
        const char *example_answer;
};

#define ROUTE_END    \
        {            \
                NULL \
        }
#define ROUTE_JSON(...) #__VA_ARGS__
#define ROUTE_PAGE      "A page: {\"items\": [...], \"meta\": {\"hasMore\", \"cursor\"}}"

/* NULL gives the first; NULL after the last. */
const struct route *routes_next(const struct route *r);
#define ROUTES_FOREACH(r) \
        for (const struct route *(r) = routes_next(NULL); (r); (r) = routes_next(r))
size_t routes_count(void);

/* "/api/v2/turns/:id" → "turns", as in scopes. */
struct slice route_resource(const struct route *r);
const char *route_scope_name(enum scope s);

/* Appends the OpenAPI 3.1 document. */
void openapi_write(struct buf *out);
/* Appends docs/REST.md. */
void rest_doc_write(struct buf *out);

#endif
