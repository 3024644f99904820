/*
 * client: requests to the daemon of a data directory.
 *
 * Reads address and key from DIR/state before every request, to find a restarted daemon.
 * Synchronous calls run the loop; do not use them inside callbacks.
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
        const char *path;            /* "/api/v2/status", with the query */
        const char *body;            /* JSON text; NULL: none */
        const char *idempotency_key; /* NULL: none */
        const char *last_event_id;   /* NULL: none */
        int64_t total_ms;            /* 0: 30 s; -1: no limit */
        int64_t silence_ms;          /* 0: none */
        json_t **refusal;            /* client_ask: the error's details, yours; NULL: unwanted */
};

/* Does not connect yet. The loop must outlive the client. */
struct client *client_new(struct loop *l, const char *dir, struct error *err);
void client_free(struct client *c);
struct loop *client_loop(const struct client *c);
const char *client_dir(const struct client *c);
/* As last read, borrowed until the next request; "" before the first. */
const char *client_base(const struct client *c);

/*
 * Sends a request and waits. 0 with the answer (yours to decref; NULL when empty), or -1: ERR_NET
 * when no daemon runs, else its error.
 */
int client_ask(struct client *c, const struct client_request *request, json_t **out,
               struct error *err);
int client_get(struct client *c, const char *path, json_t **out, struct error *err);
/* Does a daemon answer and accept our key? */
bool client_alive(struct client *c);

/* Does not wait. NULL when no daemon is found. */
struct http_call *client_start(struct client *c, const struct client_request *request,
                               const struct http_handlers *handlers, void *arg, struct error *err);
/* The answer of such a request, as client_ask returns it. */
int client_result(const struct client *c, const struct http_result *result, json_t **out,
                  struct error *err);

/* Runs fn with a new client and reports its error. Returns an exit code. */
int client_command(struct args *a, int (*fn)(struct args *a, struct client *c, struct error *err));

#endif
