#include "api/compat/session_stream.h"

#include <stdlib.h>
#include <string.h>

#include "api/core/reply.h"
#include "api/resources/sessions.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "net/sse.h"
#include "rows/journal_row.h"
#include "store/store.h"

#define RING_BYTES ((size_t)256 * 1024)

struct session_streams {
        struct api *api;
        struct sse_hub *hub; /* NULL until the first client comes */
        struct bus_listener *listener;
        unsigned max_clients;
        unsigned attaching; /* clients whose commands are being read */
};

/* Of one client. */
struct stream_client {
        char *session;
        struct key *caller; /* a reference; may expire meanwhile */
};

static void client_free(void *client)
{
        struct stream_client *c = client;

        if (!c)
                return;
        key_unref(c->caller);
        free(c->session);
        free(c);
}

static bool client_wants(const void *client, const char *type, const char *topic)
{
        const struct stream_client *c = client;

        (void)type;
        return topic && strcmp(c->session, topic) == 0;
}

static bool client_over(const void *client)
{
        return !key_is_live(((const struct stream_client *)client)->caller, clock_wall_ms());
}

/* ---- live ---- */

/* The journal's payload has what the row had. */
static void on_event(void *arg, const struct bus_event *e)
{
        struct session_streams *s = arg;
        struct session_command_row row = { .created_ms = e->time_ms };
        struct buf json;
        json_t *said;

        if (!s->hub || strcmp(e->type, "session.command.queued") != 0)
                return;
        said = json_loads(e->payload, 0, NULL);
        row.command = json_str(said, "commandId", "");
        row.content = json_str(said, "content", "");
        row.given_by = json_str(said, "by", "");
        row.display_name = json_str(said, "displayName", NULL);
        row.approval = json_str(said, "approvalId", NULL);
        row.decision = json_str(said, "decision", NULL);
        row.reason = json_str(said, "reason", NULL);
        session_action_parse(json_str(said, "action", ""), &row.action);
        buf_init(&json, 0);
        session_command_json(&json, &row);
        sse_publish_named(s->hub, e->seq, row.command, "command", json_str(said, "sessionId", ""),
                          json.data, json.len);
        buf_release(&json);
        json_decref(said);
}

/* ---- attaching ---- */

struct attach_job {
        struct api_job job; /* first */
        struct stream_client *client;
        struct session_caller by;
        int64_t after;   /* the journal when the commands were read */
        struct buf text; /* the commands */
};

static void add_command(void *text, const struct session_command_row *row)
{
        struct buf json;

        buf_init(&json, 0);
        session_command_json(&json, row);
        sse_format_named(text, row->command, "command", json.data, json.len);
        buf_release(&json);
}

static int read_queued(struct store_tx *tx, void *arg, struct error *err)
{
        struct attach_job *j = arg;
        int64_t first;

        buf_clear(&j->text);
        if (journal_row_bounds(tx, &first, &j->after, err) < 0)
                return -1;
        return session_commands_read(tx, &j->by, j->client->session, add_command, &j->text, err);
}

static void on_read(void *arg, const struct error *err)
{
        struct attach_job *j = arg;
        struct api *a = j->job.api;
        struct http_exchange *x = api_job_end(&j->job);
        size_t n = j->text.len;

        if (x)
                a->session_streams->attaching--;
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                sse_attach(a->session_streams->hub, x, j->after, n > 0 ? buf_take(&j->text) : NULL,
                           n, j->client, client_free);
                j->client = NULL;
        }
        client_free(j->client);
        buf_release(&j->text);
        free(j);
}

void session_stream_serve(struct http_exchange *x, const char *session)
{
        struct api *a = api_of(x);
        struct session_streams *s = a->session_streams;
        struct attach_job *j;

        if (!s->hub) {
                struct sse_options options = { .ring_bytes = RING_BYTES,
                                               .max_clients = s->max_clients,
                                               .over = client_over };

                s->hub = sse_hub_new(a->env.loop, &options, client_wants);
        }
        if (s->attaching >= sse_room(s->hub)) {
                http_add_header(x, "Retry-After", "10");
                http_refuse(x, 503, "UNAVAILABLE", "there are already %u streams of commands",
                            sse_clients(s->hub) + s->attaching);
                return;
        }
        s->attaching++;
        j = mem_zalloc(sizeof(*j));
        buf_init(&j->text, 0);
        j->by = session_caller_of(caller_of(x));
        j->client = mem_zalloc(sizeof(*j->client));
        j->client->session = mem_strdup(session);
        j->client->caller = key_ref(caller_of(x));
        api_job_begin(&j->job, x);
        store_read(a->env.store, read_queued, on_read, j);
}

/* ---- opening and closing ---- */

struct session_streams *session_streams_new(struct api *a, unsigned max_clients)
{
        struct session_streams *s = mem_zalloc(sizeof(*s));

        s->api = a;
        s->max_clients = max_clients;
        s->listener = bus_listen(a->env.bus, 1u << STREAM_SESSION, on_event, s);
        return s;
}

void session_streams_free(struct session_streams *s)
{
        if (!s)
                return;
        bus_unlisten(s->api->env.bus, s->listener);
        sse_hub_free(s->hub);
        free(s);
}
