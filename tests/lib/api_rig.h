/*
 * api_rig: the API over a real store, bus, road and adapter registry, asked over real connections;
 * the rig plays the agents.
 *
 * Adapters: "api" and "terminal". The agent answers "re: TEXT" soon. A text that begins with "hang"
 * gets no answer until api_rig_release, "fail" fails with a notice, "quiet" is skipped by the
 * decision, "stream" is answered in pieces.
 */
#ifndef TESTS_API_RIG_H
#define TESTS_API_RIG_H

#include <jansson.h>

#include "../lib/http_raw_client.h"
#include "agent/agents.h"
#include "api/api.h"
#include "dispatch/dispatch.h"
#include "net/http_client.h"
#include "platform/platform.h"
#include "road/road.h"
#include "rows.h"

#define API_RIG_HANGING 64

struct api_rig {
        char *dir;
        char key[64];
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct http_client *http;
        struct agents *agents;
        struct adapters *adapters;
        struct runtime_policy *policy;
        struct dispatch *dispatch; /* empty until api_rig_dispatch */
        bool dispatches;           /* the dispatch decides, not the rig */
        struct road *road;
        struct schedule *schedule; /* not started */
        struct remote *remote;     /* the same */
        struct api *api;
        const char *public_url; /* http.publicUrl after api_rig_restart */
        const char *agent;      /* this one of the registry answers, not the rig */
        struct turn_run *hanging[API_RIG_HANGING];
        unsigned hanging_count;
        unsigned turns; /* started */
};

struct api_rig *api_rig_new(void);
/* With a limit for readers of the event stream; 0: the default. */
struct api_rig *api_rig_new_with(int64_t max_stream_clients);
void api_rig_free(struct api_rig *r);
/* Closes the API and opens it again over the same store. */
void api_rig_restart(struct api_rig *r);
/* Lets a hanging agent answer. */
void api_rig_release(struct api_rig *r);
/*
 * Lets the real dispatch decide, also after a "reload". dm: who may write in direct messages, as in
 * the configuration ("none", "everyone", "pairing"); NULL: the adapters trust all senders. rules: a
 * list as in the configuration; NULL: none.
 */
void api_rig_dispatch(struct api_rig *r, const char *dm, const char *rules);

/* A whole answer. */
struct api_answer {
        int status;
        json_t *json; /* NULL when the body is no JSON */
        char *text;   /* head and body */
};
void api_answer_release(struct api_answer *a);

/*
 * Opens a connection and sends a request with the key; `more` are further header lines, "" for
 * none. Does not wait.
 */
void api_rig_send(struct api_rig *r, struct http_raw *c, const char *method, const char *path,
                  const char *more, const char *body);
/* Waits for the answer to it and closes. */
struct api_answer api_rig_receive(struct http_raw *c);
/* Both. */
struct api_answer api_rig_ask(struct api_rig *r, const char *method, const char *path,
                              const char *body);
/* Without the key, with these header lines instead. */
struct api_answer api_rig_ask_as(struct api_rig *r, const char *method, const char *path,
                                 const char *headers, const char *body);
/* Creates a key from such a body; the header lines of a request with it, yours to free. */
char *api_rig_key_headers(struct api_rig *r, const char *body);
/* Asks and fails the test unless the answer has this status and this part (NULL: any). */
void api_rig_expect(struct api_rig *r, const char *method, const char *path, const char *body,
                    int status, const char *part);
/* Runs the loop until *counter is at least n; fails the test after some seconds. */
void api_rig_until(struct api_rig *r, const unsigned *counter, unsigned n);

/* Rows; see rows.h. */
#define api_rig_count(r, from)       rows_count((r)->store, from)
#define api_rig_number(r, select)    rows_number((r)->store, select)
#define api_rig_update(r, set, a, b) rows_update((r)->store, set, a, b)

/* cmocka fixtures: *state is the rig. */
int api_rig_setup(void **state);
int api_rig_teardown(void **state);
#define API_RIG_CASE(test) cmocka_unit_test_setup_teardown(test, api_rig_setup, api_rig_teardown)

#endif
