/*
 * routes: the one table of what the API offers. The server, the key check, the request readers and
 * the OpenAPI document all read it.
 */
#ifndef API_CORE_ROUTES_H
#define API_CORE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/core/body.h"
#include "net/http_server.h"

enum scope {
        SCOPE_NONE,  /* everybody */
        SCOPE_LOCAL, /* everybody while only this machine can connect, else as SCOPE_READ */
        SCOPE_READ,
        SCOPE_WRITE,
        SCOPE_ADMIN,
};

/*
 * Whose adapter a request is about: how a key that is restricted to adapters is held to them. Every
 * route says so; tests ask each route as a key that must not see what it would show.
 */
enum reach {
        REACH_UNDECLARED, /* a mistake: only keys for all adapters get in, and a test fails */
        REACH_SHARED,     /* nothing of an adapter is shown or changed */
        REACH_ALL,        /* about everything: only for keys that reach all adapters */
        REACH_PATH,       /* the adapter is the path's :adapter */
        REACH_BODY,       /* the adapter is the body's instanceId, or what its absence means */
        REACH_ROW,        /* a row of the store, whose adapter `owner` finds */
        /* many rows: the handler shows only those of the caller's adapters (look->caller) */
        REACH_LIST,
        REACH_HANDLER, /* the handler asks request_reaches for each adapter it is about */
};

struct store_tx;
/*
 * Inside a store function: the adapter of the row that the path's :id names, appended to adapter.
 * 1; 0 when there is no such row; -1. Several adapters are parted by commas, and the key must reach
 * each.
 */
typedef int row_scope_fn(struct store_tx *tx, const char *id, struct buf *adapter,
                         struct error *err);

struct route {
        const char *method;
        const char *path;
        enum scope scope;
        void (*run)(struct http_exchange *x);
        enum reach reach;
        row_scope_fn *owner; /* with REACH_ROW */
        /* Before the body is read: answers and returns false to refuse. NULL: the key is enough. */
        bool (*admits)(struct http_exchange *x);
        const char *summary;        /* one sentence */
        const struct field *query;  /* NULL: none; any parameter is refused */
        const struct field *body;   /* NULL: none */
        bool reads_body;            /* without a table: the handler reads the body by itself */
        size_t max_body;            /* 0: http.maxBodyBytes */
        int status;                 /* of success */
        const char *answer;         /* what the answer contains */
        const char *content_type;   /* NULL: application/json */
        const char *example;        /* a body that is accepted; required with `body` */
        const char *example_answer; /* may be NULL */
};

extern const struct route api_routes[];
extern const size_t api_route_count;

/* The tables of requests, beside the handlers that read them. */
/* clang-format off */
extern const struct field inbound_fields[], inbound_query[]; /* messages.c */
extern const struct field send_fields[];
extern const struct field send_media_fields[];
extern const struct field send_reaction_fields[];
extern const struct field edit_fields[];
extern const struct field delete_fields[];
extern const struct field events_query[]; /* events.c */
extern const struct field stream_query[]; /* stream.c */
extern const struct field deliveries_query[], retry_fields[]; /* deliveries.c */
extern const struct field dead_letters_query[]; /* dead_letters.c */
extern const struct field turns_query[], cancel_fields[]; /* turns.c */
extern const struct field turn_reply_query[]; /* turn_replies.c */
extern const struct field trigger_logs_query[]; /* trigger_logs.c */
extern const struct field route_test_fields[]; /* route_test.c */
extern const struct field rule_fields[], rule_put_fields[], rule_patch_fields[]; /* rules.c */
extern const struct field access_fields[], access_patch_fields[], access_test_fields[]; /* access.c */
extern const struct field pairing_query[], approve_fields[], deny_fields[]; /* pairing.c */
extern const struct field persons_query[], person_fields[], link_fields[], unlink_fields[],
        merge_fields[]; /* persons.c */
extern const struct field pause_fields[], resume_fields[]; /* handover.c */
extern const struct field backup_fields[]; /* backup.c */
extern const struct field key_fields[]; /* keys.c */
extern const struct field tool_fields[]; /* tools.c */
extern const struct field chats_query[], messages_query[]; /* chats.c */
extern const struct field completion_fields[]; /* completions.c */
extern const struct field agent_chat_fields[]; /* agent_chat.c */
extern const struct field agent_test_fields[]; /* agent_test.c */
/* clang-format on */

/* The OpenAPI 3.1 document, appended to out. */
void openapi_write(struct buf *out);
/* The reference for people, as Markdown, appended to out. */
void rest_doc_write(struct buf *out);

#endif
