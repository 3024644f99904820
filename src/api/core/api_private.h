/*
 * api_private: what the files of this room share. One file per resource; each handler reads its
 * request by the tables of its route, asks the others, and answers now or, as a job, later.
 */
#ifndef API_CORE_API_PRIVATE_H
#define API_CORE_API_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "api/core/auth.h"
#include "api/core/body.h"
#include "api/core/key.h"
#include "api/core/routes.h"
#include "api/resources/metrics.h"
#include "base/arena.h"
#include "base/buf.h"
#include "net/http_server.h"
#include "net/json_offload.h"
#include "road/road.h"
#include "store/store.h"

#define API_MAX_WAITERS 1000
/* No platform posts more in one piece: files are fetched, not posted. */
#define CHANNELS_MAX_BODY (512 * 1024)
/* As much as a webhook may answer. */
#define TURN_REPLY_MAX_BODY (1024 * 1024)

/*
 * A request that is answered later. When the API closes first, the job is answered with 503 and
 * forgets its exchange; whoever completes it then finds nobody to tell. The first member of every
 * struct that waits.
 */
struct api_job {
        struct api *api;         /* NULL once the API is gone */
        struct http_exchange *x; /* NULL once the API is gone */
        struct api_job *prev, *next;
};
void api_job_begin(struct api_job *j, struct http_exchange *x);
/*
 * Returns the exchange to answer, or NULL when there is nobody left. The struct is the caller's to
 * free.
 */
struct http_exchange *api_job_end(struct api_job *j);

struct reply_waiters;
struct event_stream;

struct api {
        struct api_env env;
        struct auth auth;
        struct keyring *keys;
        struct key *nobody; /* the caller of a request without a key */
        struct metrics metrics;
        struct http_server *server;
        struct http_route *routes; /* for the server, in the order of api_routes */
        struct event_stream *stream;
        struct reply_waiters *waiters;
        struct completions *completions;
        struct api_job *jobs;
        /* the body of the request that is being run; NULL: it is parsed when it is read */
        const struct json_parsed *parsed;
        char *addr_file;
        uint64_t requests; /* for request ids */
        char run[9];       /* makes them unique across starts */
        bool tls;
        bool closing; /* nothing new is let in */
        bool closed;  /* nothing that was let in begins */
};

static inline struct api *api_of(const struct http_exchange *x)
{
        return http_server_arg(x);
}

/* Who asks; never NULL once the gate was passed. */
static inline struct key *caller_of(const struct http_exchange *x)
{
        return http_identity(x);
}

/* For "by whom": the key's name, or that it was the operator. */
static inline const char *caller_name(const struct http_exchange *x)
{
        return caller_of(x)->id > 0 ? caller_of(x)->name : "the operator";
}

/* ---- reading a request (request.c) ---- */

/*
 * Whether the caller's key reaches this adapter; if not, the request is answered with 403 and false
 * returned.
 */
bool request_reaches(struct http_exchange *x, const char *adapter);

/*
 * By the route's tables. On a mistake the request is answered with 400, b is released, and -1
 * returned. b NULL-safe: see below.
 */
int request_query(struct http_exchange *x, struct body *b, void *out);
int request_body(struct http_exchange *x, struct body *b, void *out);
/*
 * The header Idempotency-Key, NULL when absent; answers 400 and returns -1 when it makes no sense.
 */
int request_key(struct http_exchange *x, const char **key);
/* Does a relative path stay below where it begins? */
bool request_path_is_inside(const char *path);
/* Path parameter ":id" with this prefix; answers 404 and returns -1 when it is none. */
int64_t request_id(struct http_exchange *x, const char *prefix, const char *what);

/* ---- large bodies (body_offload.c) ---- */

/* Runs the handler of the route; a large body is parsed first, on the pool. */
void request_run(struct http_exchange *x);
/* The body as the pool has parsed it; NULL: it is small, and still the exchange's. */
const struct json_parsed *request_parsed(const struct http_exchange *x);

/* ---- answering (reply.c) ---- */

/* {"data": <json>}; takes the text of `data` over. */
void reply_data(struct http_exchange *x, int status, struct buf *data);
/* A whole body that is JSON already; takes it over. */
void reply_json(struct http_exchange *x, int status, struct buf *json);
/* The error envelope. details: members of an object as JSON text, or NULL. */
void reply_error(struct http_exchange *x, int status, const char *code, const char *details,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The envelope alone; clients of the OpenAI routes find in it what they look for. */
void reply_write_error(struct buf *json, const char *path, int status, const char *code,
                       const char *details, const char *message);
/* The answer for an error of ours: its kind chooses status and code. */
void reply_failed(struct http_exchange *x, const struct error *err);
/* 404 with details {resourceType, resourceId}. */
void reply_missing(struct http_exchange *x, const char *type, const char *id);
/* 400 with details.fields. */
void reply_mistakes(struct http_exchange *x, const struct body *b);
/* The same for a sentence that begins with its field: "rule.when: unknown key ...". */
void reply_field_error(struct http_exchange *x, struct body *b, const struct error *err);
/* The server's refuse hook. */
void reply_refused(void *api, struct http_exchange *x, int status, const char *code,
                   const char *message);
/* Names the request in the answer; once per exchange. */
void reply_name_request(struct api *a, struct http_exchange *x);

/* ---- changes (amend.c) ---- */

/*
 * A change that is written first: answered with `status` and {"data": data} when it is committed,
 * or with the error.
 */
struct write_job {
        struct api_job job;
        int status;
        struct buf data; /* JSON text; filled before it is done */
};
struct write_job *write_job_new(struct http_exchange *x, int status);
/* For a struct whose first member it is; malloc'd as a whole. */
void write_job_init(struct write_job *c, struct http_exchange *x, int status);
/* A store_done_fn. Frees it. */
void write_job_done(void *amend, const struct error *err);

/* ---- questions to the store (look.c) ---- */

/*
 * A store function that writes the whole answer's body. query is what the handler put into
 * look->query.
 */
struct read_job;
typedef int read_job_fn(struct store_tx *tx, struct read_job *l, struct error *err);
struct read_job {
        struct api_job job;
        struct body body; /* keeps the query's strings */
        struct buf json;  /* the answer */
        read_job_fn *fn;
        struct key *caller; /* a reference: listings show only what it reaches */
        void *query;        /* points behind the struct */
        int64_t id;
};
/*
 * Reads the query by the route's table into a copy of `defaults` (size bytes; NULL: no query); NULL
 * when it was answered with 400.
 */
struct read_job *read_job_new(struct http_exchange *x, const void *defaults, size_t size);
/* Asks; the answer follows by itself, with 200. Takes l over. */
void read_job_run(struct read_job *l, read_job_fn *fn);

/*
 * For the WHERE of a listing: the row's adapter is one the caller reaches. Bind
 * look->caller->adapters to the parameter, which the text names like "?7".
 */
#define ONLY_REACHED(column, parameter)                                                      \
        " AND (CAST(" parameter " AS TEXT) IS NULL OR replace(" parameter ", ',' || " column \
        " || ',', '') <> " parameter ")"

/* {"items": [ ... ], "meta": {...}}: begin, then elements, then end. */
void page_begin(struct buf *b);
/* cursor NULL: none. */
void page_end(struct buf *b, bool more, const char *cursor);
/*
 * The whole page: up to `limit` rows of a statement that was asked for one more; column 0 is the
 * row's number, shown as prefix-N in the cursor.
 */
typedef void page_row_fn(struct buf *b, const char *key, struct store_stmt *s);
int page_rows(struct buf *b, struct store_stmt *s, int64_t limit, const char *prefix,
              page_row_fn *row, struct error *err);

/* ---- whose a row is (owner.c) ---- */

/*
 * The run function of routes with REACH_ROW: as if there were no such row, unless the caller
 * reaches its adapter.
 */
void row_scope_run(struct http_exchange *x);
int row_scope_turn(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err);
int row_scope_delivery(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err);
int row_scope_event(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err);
int row_scope_dead_letter(struct store_tx *tx, const char *id, struct buf *adapter,
                          struct error *err);
int row_scope_trace(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err);

/* ---- live events (stream.c) ---- */

struct event_stream *event_stream_new(struct api *a, unsigned max_clients);
void event_stream_free(struct event_stream *s);
unsigned event_stream_clients(const struct event_stream *s);

/* ---- those who wait for the end of a turn (waiters.c) ---- */

struct reply_waiters *reply_waiters_new(struct api *a);
void reply_waiters_free(struct reply_waiters *w);
/* May one more request wait? Answers 503 and returns false when not. */
bool reply_waiters_check(struct http_exchange *x);
unsigned reply_waiters_count(const struct reply_waiters *w);
/* What became of an event. Strings are borrowed for the call. */
struct awaited_reply {
        /* of the trigger log: "done", "failed", "cancelled", "skipped", "expired" */
        const char *status;
        const char *text;   /* what was said; NULL: nothing */
        const char *reason; /* why nothing was, or not what was wanted; may be NULL */
        int64_t turn;       /* 0: there was none */
        int64_t tokens_in, tokens_out;
};
/* Once; outcome NULL: the time was up, or the API closes. */
typedef void reply_waiter_fn(void *arg, const struct awaited_reply *outcome);
/* Waits for the end of what this event began, at most ms. now: it may have ended already. */
void reply_waiters_add(struct reply_waiters *w, int64_t event, bool now, int64_t ms,
                       reply_waiter_fn *fn, void *arg);

/* ---- answers for other protocols (completions.c) ---- */

struct completions;
struct completions *completions_new(struct api *a);
void completions_free(struct completions *c);

/* ---- handlers, by the file that has them ---- */

void health_alive(struct http_exchange *x); /* health.c */
void health_ready(struct http_exchange *x);
void health_status(struct http_exchange *x);
void metrics_show(struct http_exchange *x);     /* metrics_text.c */
void openapi_show(struct http_exchange *x);     /* openapi.c */
void messages_inbound(struct http_exchange *x); /* messages.c */
void messages_send(struct http_exchange *x);    /* send.c */
void messages_send_media(struct http_exchange *x);
void messages_send_reaction(struct http_exchange *x);
void messages_edit(struct http_exchange *x);
void messages_delete(struct http_exchange *x);
void completions_create(struct http_exchange *x); /* completions.c */
void agent_test(struct http_exchange *x);         /* agent_test.c */
void models_list(struct http_exchange *x);        /* models.c */
void models_show(struct http_exchange *x);
void agent_chat(struct http_exchange *x);  /* agent_chat.c */
void events_list(struct http_exchange *x); /* events.c */
void events_show(struct http_exchange *x);
void events_stream(struct http_exchange *x);   /* stream.c */
void deliveries_list(struct http_exchange *x); /* deliveries.c */
void deliveries_show(struct http_exchange *x);
void deliveries_retry(struct http_exchange *x);
void dead_letters_list(struct http_exchange *x); /* dead_letters.c */
void dead_letters_retry(struct http_exchange *x);
void turns_list(struct http_exchange *x); /* turns.c */
void turns_show(struct http_exchange *x);
void turns_cancel(struct http_exchange *x);
bool turns_reply_admit(struct http_exchange *x); /* turn_replies.c */
void turns_reply(struct http_exchange *x);
void trigger_logs_list(struct http_exchange *x); /* trigger_logs.c */
void tools_list(struct http_exchange *x);        /* tools.c */
void tools_call(struct http_exchange *x);
bool channels_admit(struct http_exchange *x); /* channels.c */
void channels_webhook(struct http_exchange *x);
void route_test(struct http_exchange *x);     /* route_test.c */
void instances_list(struct http_exchange *x); /* instances.c */
void instances_show(struct http_exchange *x);
void chats_list(struct http_exchange *x); /* chats.c */
void chats_messages(struct http_exchange *x);
void agents_list(struct http_exchange *x); /* agents.c */
void agents_health(struct http_exchange *x);
void persons_list(struct http_exchange *x); /* persons.c */
void persons_show(struct http_exchange *x);
void persons_rename(struct http_exchange *x);
void persons_link(struct http_exchange *x);
void persons_unlink(struct http_exchange *x);
void persons_merge(struct http_exchange *x);
void access_list(struct http_exchange *x); /* access.c */
void access_show(struct http_exchange *x);
void access_create(struct http_exchange *x);
void access_change(struct http_exchange *x);
void access_delete(struct http_exchange *x);
void access_test(struct http_exchange *x);
void pairing_list(struct http_exchange *x); /* pairing.c */
void pairing_approve(struct http_exchange *x);
void pairing_deny(struct http_exchange *x);
void pairing_withdraw(struct http_exchange *x);
void rules_list(struct http_exchange *x); /* rules.c */
void rules_show(struct http_exchange *x);
void rules_create(struct http_exchange *x);
void rules_replace(struct http_exchange *x);
void rules_change(struct http_exchange *x);
void rules_delete(struct http_exchange *x);
void handover_show(struct http_exchange *x); /* handover.c */
void chats_pause(struct http_exchange *x);
void chats_resume(struct http_exchange *x);
void why_show(struct http_exchange *x);  /* why.c */
void keys_list(struct http_exchange *x); /* keys.c */
void keys_create(struct http_exchange *x);
void keys_revoke(struct http_exchange *x);
void backup_make(struct http_exchange *x); /* backup.c */

#endif
