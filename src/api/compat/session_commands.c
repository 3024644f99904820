/*
 * What people tell a coding agent, as its program gets it: by polling, acknowledged one by one, and
 * the chat that shows the session. session_stream.c has the stream.
 */
#include <stdlib.h>
#include <string.h>

#include "api/compat/session_stream.h"
#include "api/core/read_job.h"
#include "api/resources/sessions.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define POLL_MAX 100 /* commands; the others follow when these are acknowledged */

/* ---- polling ---- */

struct poll_ask {
        const char *session;
};
static const struct field poll_query[] = {
        { "session_id", FIELD_STRING, .required = true, .min = 1, .max = SESSION_ID_MAX,
          FIELD_AT(poll_ask, session), .help = "The program's id of the session." },
        FIELD_END,
};

int session_commands_read(struct store_tx *tx, const struct session_caller *by, const char *session,
                          session_command_fn *each, void *arg, struct error *err)
{
        struct session_row *found;
        struct session_command_row row;
        struct store_stmt *s;
        int64_t now_ms = clock_wall_ms();
        int rc = session_find(tx, by, session, &found, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no session '%.130s'", session);
        if (rc < 0)
                return -1;
        s = session_command_row_list_queued(tx, found->id, POLL_MAX);
        while ((rc = session_command_row_next(s, &row, err)) == 1)
                if (row.expires_ms > now_ms)
                        each(arg, &row);
        free(found);
        return rc;
}

static void add_command(void *json, const struct session_command_row *row)
{
        session_command_json(json, row);
}

static int read_poll(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct poll_ask *ask = j->query;
        struct session_caller by = session_caller_of(j->caller);

        jsonw_open(&j->json, '[');
        if (session_commands_read(tx, &by, ask->session, add_command, &j->json, err) < 0)
                return -1;
        jsonw_close(&j->json, ']');
        return 0;
}

static void poll(struct http_exchange *x)
{
        struct poll_ask ask = { 0 };

        read_job_list(x, &ask, sizeof(ask), read_poll);
}

static void stream(struct http_exchange *x)
{
        struct poll_ask ask = { 0 };
        struct body b;

        if (request_query(x, &b, &ask) < 0)
                return;
        session_stream_serve(x, ask.session);
        body_release(&b);
}

/* ---- acknowledging ---- */

static const char *const ack_states[] = { "delivered", "seen", "failed", "superseded", NULL };
struct ack_ask {
        const char *status, *error, *receipt;
};
static const struct field ack_fields[] = {
        { "status", FIELD_CHOICE, .required = true, .choices = ack_states,
          FIELD_AT(ack_ask, status), .help = "What became of it." },
        { "error", FIELD_STRING, .max = 1024, FIELD_AT(ack_ask, error),
          .help = "With failed: why." },
        { "receipt", FIELD_STRING, .min = 1, .max = 64, FIELD_AT(ack_ask, receipt),
          .help = "A random name of yours for this acknowledgement: when its answer was lost, the "
                  "same again is no duplicate." },
        FIELD_END,
};

struct ack_job {
        struct api_job job; /* first */
        struct body body;
        struct session_ack ack;
        char *command;
        struct bus_batch batch;
};

static int write_ack(struct store_tx *tx, void *arg, struct error *err)
{
        struct ack_job *j = arg;

        bus_batch_reset(&j->batch);
        return session_command_ack(tx, &j->batch, &j->ack, err);
}

static void on_acked(void *arg, const struct error *err)
{
        struct ack_job *j = arg;
        struct bus *bus = j->job.api ? j->job.api->env.bus : NULL;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf json;

        if (!err && bus)
                bus_publish(bus, &j->batch);
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&json, 0);
                jsonw_open(&json, '{');
                jsonw_str(&json, "status", "ok");
                jsonw_str(&json, "command_id", j->command);
                jsonw_str(&json, "state", session_command_state_name(j->ack.now));
                jsonw_bool(&json, "duplicate", j->ack.duplicate);
                jsonw_close(&json, '}');
                reply_json(x, 200, &json);
        }
        bus_batch_release(&j->batch);
        body_release(&j->body);
        free(j->command);
        free(j);
}

static void acknowledge(struct http_exchange *x)
{
        struct ack_ask ask = { 0 };
        struct ack_job *j;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        j = mem_zalloc(sizeof(*j));
        j->body = b; /* the error lives there */
        j->command = mem_strdup(http_param(x, "id"));
        j->ack = (struct session_ack){ .by = session_caller_of(caller_of(x)),
                                       .command = j->command,
                                       .error = ask.error,
                                       .receipt = ask.receipt,
                                       .now_ms = clock_wall_ms() };
        session_command_state_parse(ask.status, &j->ack.state);
        api_job_begin(&j->job, x);
        store_write(api_of(x)->env.store, write_ack, on_acked, j);
}

/* clang-format off */
#define POLL_ROUTE(where, what)                                                                   \
        { "GET", where, SCOPE_WRITE, poll, REACH_SHARED, .resource = "sessions",                  \
          .summary = (what), .query = poll_query, .status = 200,                                  \
          .answer = "[{\"command_id\", \"action\": \"steer\", \"followUp\", \"abort\" or "        \
                    "\"decision\", \"content\", \"created_at\", \"by\", \"approval_id\", "        \
                    "\"decision\", \"reason\"}], the oldest first." }

const struct route session_commands_routes[] = {
        POLL_ROUTE("/api/commands/poll",
                   "The commands that wait for a session. Asking again shows them again, until "
                   "they are acknowledged: acknowledge as delivered first, and carry a command "
                   "out only if the answer is no duplicate."),
        POLL_ROUTE("/api/commands", "The same, under an older name."),
        { "GET", "/api/commands/stream", SCOPE_WRITE, stream, REACH_SHARED,
          .resource = "sessions",
          .summary = "The same as server-sent events of type command: first what waits, then what "
                     "follows. After a new connection, what was not acknowledged comes again.",
          .query = poll_query, .status = 200, .content_type = "text/event-stream",
          .answer = "Events: `event: command`, `id: COMMAND_ID`, and the object as data." },
        { "POST", "/api/commands/:id/ack", SCOPE_WRITE, acknowledge, REACH_SHARED,
          .resource = "sessions",
          .summary = "What became of a command. A state that it has, or has passed, is answered "
                     "with duplicate: true. 409: it has expired.",
          .body = ack_fields, .status = 200,
          .answer = "{\"status\": \"ok\", \"command_id\", \"state\", \"duplicate\"}",
          .example = ROUTE_JSON({ "status": "delivered" }) },
        ROUTE_END,
};
/* clang-format on */
