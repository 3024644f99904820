/*
 * a2a_endpoint: POST /a2a, where the rules choose the agent, and /a2a/AGENT.
 *
 * Mistakes are JSON-RPC errors with status 200. What the gate refuses, such as a missing key, has
 * an HTTP status and our envelope, as everywhere.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/a2a.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "rows/approval_row.h"
#include "rows/message_task_row.h"

#define BODY_MAX     ((size_t)8 << 20) /* with files */
#define LISTED_MAX   10000             /* of the newest messages of a key */
#define UNDECIDED_MS 100
#define UNDECIDED    100 /* tries */
#define CANCEL_MS    30000

/* ---- jobs ---- */

void a2a_job_init(struct a2a_job *j, struct http_exchange *x, struct a2a_rpc *rpc, json_t *root,
                  const char *agent, const char *adapter)
{
        api_job_begin(&j->job, x);
        j->to = (struct a2a_to){ rpc->version, rpc->id, a2a_method_streams(rpc->method) };
        rpc->id = NULL;
        j->root = json_incref(root);
        j->agent = mem_strdup(agent);
        j->adapter = mem_strdup(adapter);
        j->caller = key_ref(caller_of(x));
        j->history = A2A_ALL_HISTORY;
}

void a2a_job_free(struct a2a_job *j)
{
        if (j->release)
                j->release(j);
        timer_free(j->timer);
        a2a_task_release(&j->task);
        json_decref(j->root);
        key_unref(j->caller);
        free(j->to.id);
        free(j->agent);
        free(j->adapter);
        free(j);
}

void a2a_job_reply(struct a2a_job *j, int status, struct buf *json)
{
        struct http_exchange *x = api_job_end(&j->job);

        if (x)
                reply_json(x, status, json);
        else
                buf_release(json);
        a2a_job_free(j);
}

static void reply_mistake(struct a2a_job *j, int status, const struct a2a_mistake *m)
{
        struct buf b;

        buf_init(&b, 0);
        a2a_write_error(&b, j->to.id, m);
        if (j->job.x && status >= 429)
                http_add_header(j->job.x, "Retry-After", "1");
        a2a_job_reply(j, status, &b);
}

void a2a_job_mistake(struct a2a_job *j, int64_t code, const char *fmt, ...)
{
        struct a2a_mistake m = { .code = code };
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(m.text, sizeof(m.text), fmt, ap);
        va_end(ap);
        reply_mistake(j, a2a_mistake_status(j->to.streams), &m);
}

/* Of the inbox or the store. */
void a2a_job_failed(struct a2a_job *j, const struct error *err)
{
        struct a2a_mistake m;

        switch (err->kind) {
        case ERR_INVALID:
        case ERR_CONFLICT:
                a2a_mistake_set(&m, A2A_INVALID_PARAMS, "%.180s", err->text);
                reply_mistake(j, a2a_mistake_status(j->to.streams), &m);
                break;
        default:
                a2a_mistake_set(&m, A2A_INTERNAL_ERROR, "%.180s", err->text);
                reply_mistake(j, err->kind == ERR_LIMIT ? 429 : 503, &m);
                break;
        }
}

/* A message's answer names its kind in 1.0; a task that was asked for stands alone. */
static void reply_task(struct a2a_job *j, bool wrapped)
{
        struct a2a_task_form form = { j->to.version, j->history, true };
        struct buf b;

        buf_init(&b, 0);
        a2a_open(&b, &j->to);
        if (wrapped && j->to.version == A2A_1_0) {
                jsonw_open_member(&b, "result", '{');
                a2a_task_write(&b, "task", &form, &j->task);
                jsonw_close(&b, '}');
        } else {
                a2a_task_write(&b, "result", &form, &j->task);
        }
        a2a_close(&b);
        a2a_job_reply(j, 200, &b);
}

void a2a_job_reply_task(struct a2a_job *j)
{
        reply_task(j, true);
}

static int read_task(struct store_tx *tx, void *arg, struct error *err)
{
        struct a2a_job *j = arg;

        return a2a_task_read(tx, j->caller, j->agent, j->event, &j->task, err);
}

static void on_read(void *arg, const struct error *err)
{
        struct a2a_job *j = arg;

        if (j->job.api)
                j->loaded(j, err);
        else
                a2a_job_free(j);
}

void a2a_job_load(struct a2a_job *j)
{
        store_read(j->job.api->env.store, read_task, on_read, j);
}

/* ---- GetTask and SubscribeToTask ---- */

/* True: answered, and the job is gone. */
static bool is_missing(struct a2a_job *j, const struct error *err)
{
        if (!err && j->task.found)
                return false;
        if (err)
                a2a_job_failed(j, err);
        else
                a2a_job_mistake(j, A2A_TASK_NOT_FOUND, "there is no task 'evt-%lld'",
                                (long long)j->event);
        return true;
}

static void on_got(struct a2a_job *j, const struct error *err)
{
        if (!is_missing(j, err))
                reply_task(j, false);
}

static void on_subscribing(struct a2a_job *j, const struct error *err)
{
        if (is_missing(j, err))
                return;
        /* in 0.3 it is told once more */
        if (a2a_state_is_final(j->task.state) && j->to.version == A2A_1_0)
                a2a_job_mistake(j, A2A_UNSUPPORTED_OPERATION, "the task has ended");
        else
                a2a_subscribe_task(j);
}

/* ---- CancelTask ---- */

static void on_canceled(struct a2a_job *j, const struct error *err)
{
        if (is_missing(j, err))
                return;
        if (a2a_state_is_final(j->task.state) && j->task.state != A2A_CANCELED)
                a2a_job_mistake(j, A2A_TASK_NOT_CANCELABLE, "the task has ended before");
        else
                reply_task(j, false); /* its state says whether it has stopped yet */
}

static void on_ended(void *arg, const struct awaited_reply *reply)
{
        struct a2a_job *j = arg;

        (void)reply;
        j->loaded = on_canceled;
        if (j->job.api)
                a2a_job_load(j);
        else
                a2a_job_free(j);
}

static void on_cancel_stored(void *arg, const struct error *err)
{
        struct a2a_job *j = arg;

        (void)err; /* then it has ended, or is about to */
        if (j->job.api)
                reply_waiters_add(j->job.api->waiters, j->event, true, CANCEL_MS, on_ended, j);
        else
                a2a_job_free(j);
}

static void on_time(void *arg)
{
        struct a2a_job *j = arg;

        if (j->job.api)
                a2a_job_load(j);
        else
                a2a_job_free(j);
}

/* A message that is not decided yet has no turn to be stopped. */
static void on_canceling(struct a2a_job *j, const struct error *err)
{
        if (is_missing(j, err))
                return;
        if (a2a_state_is_final(j->task.state)) {
                a2a_job_mistake(j, A2A_TASK_NOT_CANCELABLE, "the task has ended");
        } else if (j->task.turn > 0) {
                turn_cancel(j->job.api->env.road, j->task.turn, "canceled by its client",
                            on_cancel_stored, j);
        } else if (++j->tries > UNDECIDED) {
                a2a_job_mistake(j, A2A_TASK_NOT_CANCELABLE, "the task has not begun");
        } else {
                if (!j->timer)
                        j->timer = timer_new(j->job.api->env.loop, on_time, j);
                timer_start(j->timer, UNDECIDED_MS);
        }
}

/* ---- ListTasks ---- */

struct list_job {
        struct a2a_job base; /* first */
        struct a2a_list_ask ask;
        char *first, *end; /* names of chats */
        struct buf json;
};

static void release_list(struct a2a_job *j)
{
        struct list_job *l = (struct list_job *)j;

        free(l->first);
        free(l->end);
        buf_release(&l->json);
}

static bool is_asking(struct store_tx *tx, int64_t turn)
{
        const enum approval_state open = APPROVAL_OPEN;
        struct store_stmt *s = approval_row_list(
                tx, &(struct approval_filter){ .state = &open, .turn = turn, .limit = 1 });
        struct approval_row row;
        bool yes = approval_row_next(s, &row, NULL) == 1;

        rows_end(s);
        return yes;
}

static enum a2a_state state_of(struct store_tx *tx, const struct message_task_row *row)
{
        if (!row->decided)
                return A2A_SUBMITTED;
        if (row->status != TRIGGER_QUEUED)
                return a2a_state_of(
                        &(struct awaited_reply){ .status = trigger_status_name(row->status) });
        if (row->turn == 0 || row->state != TURN_RUNNING)
                return A2A_SUBMITTED;
        return is_asking(tx, row->turn) ? A2A_INPUT_REQUIRED : A2A_WORKING;
}

static bool is_wanted(struct store_tx *tx, const struct a2a_list_ask *ask,
                      const struct message_task_row *row)
{
        return (ask->after_ms == 0 || row->time_ms > ask->after_ms) &&
               (ask->state == A2A_UNKNOWN || state_of(tx, row) == ask->state);
}

static bool is_of_page(const struct a2a_list_ask *ask, const struct message_task_row *row)
{
        return ask->from_ms == 0 || row->time_ms < ask->from_ms ||
               (row->time_ms == ask->from_ms && row->event < ask->from_event);
}

struct task_page {
        struct message_task_row rows[A2A_PAGE_MAX];
        size_t count, total;
        bool more;
};

static int read_page(struct store_tx *tx, const struct list_job *l, struct task_page *p,
                     struct error *err)
{
        struct message_task_row *all = mem_array(LISTED_MAX, sizeof(*all));
        struct store_stmt *s =
                message_task_row_list(tx, l->base.adapter, l->first, l->end, LISTED_MAX);
        size_t n = 0;
        int rc = 0;

        while (n < LISTED_MAX && (rc = message_task_row_next(s, &all[n], err)) == 1)
                n++;
        rows_end(s);
        for (size_t i = 0; i < n; i++) {
                if (!is_wanted(tx, &l->ask, &all[i]))
                        continue;
                p->total++;
                if (!is_of_page(&l->ask, &all[i]))
                        continue;
                if (p->count < (size_t)l->ask.size)
                        p->rows[p->count++] = all[i];
                else
                        p->more = true;
        }
        free(all);
        return rc < 0 ? -1 : 0;
}

static int write_page(struct store_tx *tx, struct list_job *l, const struct task_page *p,
                      struct error *err)
{
        struct a2a_task_form form = { l->base.to.version, l->ask.history, l->ask.artifacts };
        struct a2a_task task = { 0 };
        struct buf *b = &l->json, token;
        int rc = 0;

        a2a_open(b, &l->base.to);
        jsonw_open_member(b, "result", '{');
        jsonw_open_member(b, "tasks", '[');
        for (size_t i = 0; rc == 0 && i < p->count; i++) {
                rc = a2a_task_read(tx, l->base.caller, l->base.agent, p->rows[i].event, &task, err);
                if (rc == 0 && task.found)
                        a2a_task_write(b, NULL, &form, &task);
        }
        a2a_task_release(&task);
        jsonw_close(b, ']');
        buf_init(&token, 0);
        if (p->more)
                a2a_page_token(&token, p->rows[p->count - 1].time_ms, p->rows[p->count - 1].event);
        jsonw_str(b, "nextPageToken", token.data);
        buf_release(&token);
        jsonw_int(b, "pageSize", (int64_t)p->count);
        jsonw_int(b, "totalSize", (int64_t)p->total);
        jsonw_close(b, '}');
        a2a_close(b);
        return rc;
}

static int read_list(struct store_tx *tx, void *arg, struct error *err)
{
        struct list_job *l = arg;
        struct task_page page = { .count = 0 };

        buf_clear(&l->json);
        if (read_page(tx, l, &page, err) < 0)
                return -1;
        return write_page(tx, l, &page, err);
}

static void on_list_read(void *arg, const struct error *err)
{
        struct list_job *l = arg;
        struct buf json;

        if (!l->base.job.api) {
                a2a_job_free(&l->base);
        } else if (err) {
                a2a_job_failed(&l->base, err);
        } else {
                json = l->json;
                buf_init(&l->json, 0);
                a2a_job_reply(&l->base, 200, &json);
        }
}

static void list_tasks(struct http_exchange *x, struct a2a_rpc *rpc, json_t *root,
                       const char *agent, const char *adapter)
{
        struct a2a_mistake m;
        struct list_job *l;
        struct a2a_list_ask ask;
        char *chats;

        if (a2a_list_ask_read(rpc, &ask, &m) < 0) {
                a2a_reply_mistake(x, rpc, &m);
                return;
        }
        l = mem_zalloc(sizeof(*l));
        l->ask = ask; /* its strings are the request's */
        a2a_job_init(&l->base, x, rpc, root, agent, adapter);
        l->base.release = release_list;
        chats = a2a_chats(l->base.caller->id, agent);
        l->first = mem_printf("%s%s", chats, ask.context ? ask.context : "");
        /* the name alone, or all that begin so */
        l->end = mem_printf("%s%s", l->first, ask.context ? "\001" : "");
        if (!ask.context)
                l->end[strlen(l->end) - 1]++;
        free(chats);
        buf_init(&l->json, 0);
        store_read(l->base.job.api->env.store, read_list, on_list_read, l);
}

/* ---- the endpoint ---- */

static void with_task(struct http_exchange *x, struct a2a_rpc *rpc, json_t *root, const char *agent,
                      const char *adapter)
{
        struct a2a_mistake m;
        struct a2a_job *j;
        int64_t history, event = a2a_task_id_read(rpc, &m);

        if (rpc->method != A2A_GET && !reply_waiters_check(x))
                return;
        if (event < 0 || a2a_history_read(rpc->params, &history, &m) < 0) {
                a2a_reply_mistake(x, rpc, &m);
                return;
        }
        j = mem_zalloc(sizeof(*j));
        j->loaded = rpc->method == A2A_GET      ? on_got
                    : rpc->method == A2A_CANCEL ? on_canceling
                                                : on_subscribing;
        a2a_job_init(j, x, rpc, root, agent, adapter);
        j->event = event;
        j->history = history;
        a2a_job_load(j);
}

static void run(struct http_exchange *x, struct a2a_rpc *rpc, json_t *root, const char *agent,
                const char *adapter)
{
        struct a2a_mistake m;

        switch (rpc->method) {
        case A2A_SEND:
        case A2A_SEND_STREAM:
                a2a_send_message(x, rpc, root, agent, adapter);
                return;
        case A2A_GET:
        case A2A_CANCEL:
        case A2A_SUBSCRIBE:
                with_task(x, rpc, root, agent, adapter);
                return;
        case A2A_LIST:
                list_tasks(x, rpc, root, agent, adapter);
                return;
        case A2A_EXTENDED_CARD:
                a2a_mistake_set(&m,
                                rpc->version == A2A_1_0 ? A2A_UNSUPPORTED_OPERATION
                                                        : A2A_CARD_NOT_CONFIGURED,
                                "there is one card, for everybody who may read it");
                break;
        default:
                a2a_mistake_set(&m, A2A_PUSH_NOT_SUPPORTED, "push notifications are not supported");
                break;
        }
        a2a_reply_mistake(x, rpc, &m);
}

static void serve(struct http_exchange *x)
{
        const struct json_parsed *parsed = request_parsed(x);
        const char *header = http_header(x, A2A_VERSION_HEADER);
        const char *asked = http_param(x, "agent"), *agent = asked;
        struct adapter *adapter;
        struct a2a_mistake m;
        struct a2a_rpc rpc;
        size_t n = 0;
        const char *text = parsed ? NULL : http_body(x, &n);
        json_t *root;

        if (agent && !chat_bridge_agent(x, &agent)) {
                reply_missing(x, "agent", asked);
                return;
        }
        root = parsed ? json_incref(parsed->root) : NULL;
        if (!parsed)
                root = json_read_lenient(text ? text : "", n, NULL);
        if (a2a_rpc_read(root, header ? header : http_query(x, A2A_VERSION_HEADER), &rpc, &m) < 0)
                a2a_reply_mistake(x, &rpc, &m);
        else if ((adapter = chat_bridge_choose(x)) && chat_bridge_check_agent(x, adapter, agent))
                run(x, &rpc, root, agent, adapter->name);
        free(rpc.id); /* unless it was taken */
        json_decref(root);
}

/* clang-format off */
#define ENDPOINT(where, what)                                                                     \
        { "POST", where, SCOPE_WRITE, serve, REACH_HANDLER, .resource = "a2a",                    \
          .summary = (what), .reads_body = true, .lenient_body = true, .max_body = BODY_MAX,      \
          .status = 200,                                                                          \
          .answer = "JSON-RPC 2.0: {\"jsonrpc\", \"id\", \"result\" or \"error\"}, or an event "  \
                    "stream of them.",                                                            \
          .example = ROUTE_JSON({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage",             \
                                  "params": { "message": { "messageId": "m-1",                    \
                                                           "role": "ROLE_USER",                   \
                                                           "parts": [ { "text": "Hello" } ] } } }),\
          .example_answer = ROUTE_JSON({ "jsonrpc": "2.0", "id": 1, "result": { "task": {         \
                  "id": "evt-42", "contextId": "ctx-5feceb66ffc86f38d952786c",                    \
                  "status": { "state": "TASK_STATE_COMPLETED",                                    \
                              "timestamp": "2026-01-31T12:00:00.000Z" },                          \
                  "artifacts": [ { "artifactId": "answer",                                        \
                                   "parts": [ { "text": "Hello to you" } ] } ] } } }) }

const struct route a2a_routes[] = {
        ENDPOINT("/a2a",
                 "The Agent2Agent protocol (A2A), versions 1.0 and 0.3, as JSON-RPC; the rules "
                 "choose the agent. Tasks belong to the key that began them."),
        ENDPOINT("/a2a/:agent", "The same for one agent."),
        ROUTE_END,
};
/* clang-format on */
