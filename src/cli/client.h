/*
 * client: talks to the daemon that runs on a data directory.
 *
 * Address and key are read from DIR/state before every request, so that a daemon that was restarted
 * elsewhere is found again. The synchronous calls run the loop until the answer is there; they must
 * not be used inside callbacks.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/command.h"
#include "net/http_client.h"
#include "net/loop.h"

struct client;

struct client_request {
        const char *method;          /* NULL: GET */
        const char *path;            /* "/api/v2/status" and the query */
        const char *body;            /* JSON text; NULL: none */
        const char *idempotency_key; /* NULL: none */
        const char *last_event_id;   /* NULL: none */
        int64_t total_ms;            /* 0: 30 s; -1: no limit */
        int64_t silence_ms;          /* 0: none */
};

/*
 * The loop outlives the client. Never fails: whether somebody answers shows with the first request.
 */
struct client *client_new(struct loop *l, const char *dir, struct error *err);
void client_free(struct client *c);
struct loop *client_loop(const struct client *c);
const char *client_dir(const struct client *c);
/* "http://127.0.0.1:8420" as read last, borrowed until the next request; "" when nothing was. */
const char *client_base(const struct client *c);

/*
 * Asks and waits. 0 with the parsed answer (yours to decref; NULL for an empty one), or -1: ERR_NET
 * when no daemon runs, else the error the daemon told.
 */
int client_ask(struct client *c, const struct client_request *request, json_t **out,
               struct error *err);
/* The same with GET and a path. */
int client_get(struct client *c, const char *path, json_t **out, struct error *err);
/* Is the daemon of this directory there, and does it know our key? */
bool client_alive(struct client *c);

/* Asks without waiting. NULL with an error when there is nobody to ask. */
struct http_call *client_start(struct client *c, const struct client_request *request,
                               const struct http_handlers *handlers, void *arg, struct error *err);
/* What an answer means: as client_ask. */
int client_result(const struct client *c, const struct http_result *result, json_t **out,
                  struct error *err);

/*
 * Runs a command that needs a daemon: makes a client, calls fn, tells the error. Returns an exit
 * code.
 */
int client_command(struct args *a, int (*fn)(struct args *a, struct client *c, struct error *err));

#endif
