/* Coding sessions that run elsewhere: listed, shown, steered. Programs use the routes of compat. */
#include "api/resources/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

static const char *const states[] = { "active", "archived", "ended", NULL };

struct session_caller session_caller_of(const struct key *k)
{
        struct session_caller by = { .owner = k->id };

        for (size_t i = 0; !k->adapters && i < k->scope_count; i++) {
                const struct key_scope *s = &k->scopes[i];

                if (s->level >= SCOPE_ADMIN &&
                    (!s->resource || strcmp(s->resource, "sessions") == 0))
                        by.all = true;
        }
        return by;
}

/* ---- as JSON ---- */

static void write_session(struct buf *b, const char *key, const struct session_row *row)
{
        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        row_json_id(b, "id", "ses-", row->id);
        jsonw_str(b, "sessionId", row->session);
        jsonw_str(b, "state", session_state_name(row->state));
        row_json_optional_id(b, "keyId", "key-", row->owner);
        jsonw_str(b, "identity", row->identity);
        jsonw_str(b, "program", row->program);
        jsonw_str(b, "host", row->host);
        jsonw_str(b, "cwd", row->cwd);
        jsonw_str(b, "title", row->title);
        jsonw_str(b, "model", row->model);
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channel", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "traceId", row->trace);
        jsonw_int(b, "turns", row->turns);
        jsonw_int(b, "tokens", row->tokens);
        jsonw_real(b, "costUsd", (double)row->cost_microusd / 1e6);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "lastEventAt", row->last_event_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        jsonw_close(b, '}');
}

static void write_command(struct buf *b, const struct session_command_row *row)
{
        jsonw_open(b, '{');
        jsonw_str(b, "id", row->command);
        row_json_id(b, "session", "ses-", row->session);
        jsonw_str(b, "action", session_action_name(row->action));
        jsonw_str(b, "content", row->content);
        jsonw_str(b, "state", session_command_state_name(row->state));
        jsonw_str(b, "by", row->given_by);
        jsonw_opt(b, "displayName", row->display_name);
        jsonw_opt(b, "instanceId", row->adapter);
        jsonw_opt(b, "channel", row->channel);
        jsonw_opt(b, "threadId", row->thread);
        jsonw_opt(b, "messageId", row->message);
        jsonw_opt(b, "approvalId", row->approval);
        jsonw_opt(b, "decision", row->decision);
        jsonw_opt(b, "reason", row->reason);
        jsonw_opt(b, "error", row->error);
        row_json_time(b, "createdAt", row->created_ms);
        row_json_time(b, "expiresAt", row->expires_ms);
        row_json_time(b, "deliveredAt", row->delivered_ms);
        row_json_time(b, "endedAt", row->ended_ms);
        jsonw_close(b, '}');
}

/* ---- reading ---- */

struct sessions_ask {
        int64_t before, limit;
        const char *state;
        const char *id; /* of the path: "ses-3", or the program's id */
};

static const struct field sessions_query[] = {
        { "cursor", FIELD_ID, .prefix = "ses-", FIELD_AT(sessions_ask, before),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(sessions_ask),
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(sessions_ask, state),
          .help = "Only sessions in this state." },
        FIELD_END,
};
static const struct field commands_query[] = {
        { "cursor", FIELD_ID, .prefix = "cmd-", FIELD_AT(sessions_ask, before),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(sessions_ask),
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct sessions_ask *ask = j->query;
        struct session_caller by = session_caller_of(j->caller);
        struct session_filter filter = { .before = ask->before,
                                         .owner = by.all ? -1 : by.owner,
                                         .limit = ask->limit + 1 };
        enum session_state state;
        struct store_stmt *s;
        struct session_row row;
        struct page p;
        int rc;

        if (ask->state && session_state_parse(ask->state, &state))
                filter.state = &state;
        s = session_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = session_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        write_session(p.json, NULL, &row);
        page_end(&p, "ses-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct sessions_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct sessions_ask *ask = j->query;
        struct session_caller by = session_caller_of(j->caller);
        struct session_row *row;

        if (session_resolve(tx, &by, ask->id, &row, err) < 0)
                return -1;
        jsonw_open(&j->json, '{');
        write_session(&j->json, "data", row);
        jsonw_close(&j->json, '}');
        free(row);
        return 0;
}

static int read_commands(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct sessions_ask *ask = j->query;
        struct session_caller by = session_caller_of(j->caller);
        struct session_command_row row;
        struct session_row *of;
        struct store_stmt *s;
        struct page p;
        int rc;

        if (session_resolve(tx, &by, ask->id, &of, err) < 0)
                return -1;
        s = session_command_row_list(tx, of->id, ask->before, ask->limit + 1);
        free(of);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = session_command_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        write_command(p.json, &row);
        page_end(&p, "cmd-");
        return rc;
}

static void read_path(struct http_exchange *x, read_job_fn *fn)
{
        struct sessions_ask ask = { .limit = 50 };
        struct read_job *j = read_job_new(x, &ask, sizeof(ask));

        if (!j)
                return;
        ((struct sessions_ask *)j->query)->id = arena_strdup(&j->body.arena, http_param(x, "id"));
        read_job_run(j, fn);
}

static void show(struct http_exchange *x)
{
        read_path(x, read_one);
}

static void commands(struct http_exchange *x)
{
        read_path(x, read_commands);
}

/* ---- steering ---- */

struct steer_ask {
        const char *action, *content;
        const char *approval, *decision, *reason;
};

static const char *const actions[] = { "steer", "followUp", "abort", "decision", NULL };
static const char *const decisions[] = { "allow", "deny", NULL };
static const struct field steer_fields[] = {
        { "action", FIELD_CHOICE, .choices = actions, FIELD_AT(steer_ask, action),
          .fallback = "\"steer\"",
          .help = "steer: read before the agent's next step; followUp: when it would stop; abort: "
                  "it stops; decision: the answer to an approval." },
        { "content", FIELD_STRING, .max = SESSION_COMMAND_MAX, FIELD_AT(steer_ask, content),
          .help = "What the agent is told; for steer and followUp." },
        { "approvalId", FIELD_STRING, .min = 1, .max = SESSION_ID_MAX,
          FIELD_AT(steer_ask, approval), .help = "With decision: what the program asked." },
        { "decision", FIELD_CHOICE, .choices = decisions, FIELD_AT(steer_ask, decision),
          .help = "With decision: whether it may." },
        { "reason", FIELD_STRING, .max = 1024, FIELD_AT(steer_ask, reason),
          .help = "With decision: why, for the agent." },
        FIELD_END,
};

struct steer_job {
        struct write_job job; /* first */
        struct body body;     /* owns the content */
        struct remote *remote;
        struct bus *bus;
        struct session_caller by;
        struct session_command_row row;
        char command[SESSION_COMMAND_ID_SIZE];
        char *id, *given_by, *request_key;
        int64_t most;
        struct bus_batch batch;
};

static bool same_text(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_same(const struct session_command_row *a, const struct session_command_row *b)
{
        return a->session == b->session && a->action == b->action &&
               same_text(a->content, b->content) && same_text(a->approval, b->approval) &&
               same_text(a->decision, b->decision) && same_text(a->reason, b->reason);
}

static int write_steer(struct store_tx *tx, void *arg, struct error *err)
{
        struct steer_job *j = arg;
        struct session_command_row *stored = NULL;
        struct session_row *session;
        int64_t id;
        int rc;

        bus_batch_reset(&j->batch);
        if (session_resolve(tx, &j->by, j->id, &session, err) < 0)
                return -1;
        j->row.session = session->id;
        rc = session_command_queue(tx, &j->batch, session, &j->row, j->most, &id, err);
        free(session);
        if (rc < 0 || session_command_row_get(tx, id, &stored, err) < 0)
                return -1;
        if (rc == 0 && !is_same(stored, &j->row))
                rc = error_set(err, ERR_CONFLICT,
                               "this idempotency key was used for another request");
        buf_clear(&j->job.data);
        write_command(&j->job.data, stored);
        free(stored);
        return rc < 0 ? -1 : 0;
}

static void on_steered(void *arg, const struct error *err)
{
        struct steer_job *j = arg;

        if (!err && j->job.job.api) {
                bus_publish(j->bus, &j->batch);
                remote_wake(j->remote);
        }
        bus_batch_release(&j->batch);
        body_release(&j->body);
        free(j->id);
        free(j->given_by);
        free(j->request_key);
        write_job_done(j, err);
}

/* false: answered, and b is released. */
static bool check_steer(struct http_exchange *x, struct body *b, const struct steer_ask *ask,
                        enum session_action action)
{
        bool decides = action == SESSION_DECISION;

        if (action < SESSION_ABORT && (!ask->content || !*ask->content))
                body_mistake(b, "content", "needed for %s", ask->action);
        if (decides != (ask->approval && ask->decision) ||
            (!decides && (ask->approval || ask->decision)))
                body_mistake(b, "approvalId",
                             "approvalId and decision belong to the action "
                             "decision, which needs both");
        if (b->mistake_count == 0)
                return true;
        reply_mistakes(x, b);
        body_release(b);
        return false;
}

static void steer(struct http_exchange *x)
{
        struct steer_ask ask = { .action = "steer" };
        struct api *a = api_of(x);
        const struct remote_conf *conf = remote_get_conf(a->env.remote);
        int64_t now_ms = clock_wall_ms();
        enum session_action action;
        const char *key;
        struct steer_job *j;
        struct body b;
        char *own;

        if (request_key(x, &key) < 0 || request_body(x, &b, &ask) < 0)
                return;
        session_action_parse(ask.action, &action);
        if (!check_steer(x, &b, &ask, action))
                return;
        j = mem_zalloc(sizeof(*j));
        write_job_init(&j->job, x, 201);
        own = key ? request_own_key(x, key) : NULL;
        j->body = b;
        j->remote = a->env.remote;
        j->bus = a->env.bus;
        j->by = session_caller_of(caller_of(x));
        j->id = mem_strdup(http_param(x, "id"));
        j->given_by = caller_of(x)->id > 0 ? mem_printf("key %s", caller_name(x))
                                           : mem_strdup(caller_name(x));
        j->request_key = own ? mem_printf("api:%s", own) : NULL;
        j->most = conf->queued;
        j->row = (struct session_command_row){
                .command = session_command_id(j->command),
                .request_key = j->request_key,
                .action = action,
                .approval = ask.approval,
                .decision = ask.decision,
                .reason = ask.reason,
                .content = ask.content ? ask.content : "",
                .given_by = j->given_by,
                .created_ms = now_ms,
                .expires_ms = now_ms + conf->command_seconds * 1000,
        };
        free(own);
        store_write(a->env.store, write_steer, on_steered, j);
}

const struct route sessions_routes[] = {
        { "GET", "/api/v2/sessions", SCOPE_READ, list, REACH_SHARED,
          .summary = "Coding agents that run elsewhere and report here, newest first. A key sees "
                     "those that it reported; sessions:admin sees all.",
          .query = sessions_query, .status = 200, .answer = ROUTE_PAGE " of sessions." },
        { "GET", "/api/v2/sessions/:id", SCOPE_READ, show, REACH_SHARED,
          .summary = "One session, by its number (ses-3), the program's id or the beginning of it.",
          .status = 200,
          .answer = "{\"data\": {\"id\", \"sessionId\", \"state\": \"active\", \"archived\" or "
                    "\"ended\", \"program\", \"host\", \"cwd\", \"title\", \"model\", "
                    "\"instanceId\", \"channel\", \"threadId\", \"turns\", \"tokens\", "
                    "\"costUsd\", \"createdAt\", \"lastEventAt\", \"endedAt\", ...}}" },
        { "GET", "/api/v2/sessions/:id/commands", SCOPE_READ, commands, REACH_SHARED,
          .summary = "What people told a session, who, and what became of it; newest first.",
          .query = commands_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"session\", \"action\", \"content\", \"state\": "
                               "\"queued\", \"delivered\", \"seen\", \"failed\", \"expired\" or "
                               "\"superseded\", \"by\", \"error\", \"createdAt\", \"expiresAt\", "
                               "\"deliveredAt\", \"endedAt\", ...}." },
        { "POST", "/api/v2/sessions/:id/commands", SCOPE_WRITE, steer, REACH_SHARED,
          .summary = "Tell the agent of a session something. It waits until the program fetches "
                     "it, at most sessions.commandSeconds. With the header Idempotency-Key a "
                     "repeated request tells nothing twice. 409: the session has ended.",
          .body = steer_fields, .status = 201, .answer = "{\"data\": command}",
          .example = ROUTE_JSON({ "action" : "steer", "content" : "Use the other branch." }) },
        ROUTE_END,
};
