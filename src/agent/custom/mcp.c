#include "agent/custom/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom_result.h"
#include "agent/custom/mcp_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/backoff.h"

#define COALESCE_MS    100 /* servers announce a changed list several times at once */
#define RELISTEN_MS    30000
#define RETRY_BASE_MS  1000
#define RETRY_CAP_MS   300000
#define LOSSES_MAX     3 /* in a row, without a call that was answered */
#define ROUNDS_MAX     2 /* of questions: a server may ask the same for ever */
#define PROGRESS_BYTES 200

const struct setting mcp_settings[] = {
        { "command", SETTING_STRING, "null", 1, 4096,
          .help = "The program to start, for a server on stdio.",
          .at = offsetof(struct mcp_conf, command) },
        { "args", SETTING_STRINGS, "[]", .help = "Its arguments.",
          .at = offsetof(struct mcp_conf, args) },
        { "env", SETTING_PAIRS, "{}",
          .help = "Variables of its environment, besides `PATH`, `HOME`, `LANG` and `TZ`.",
          .at = offsetof(struct mcp_conf, env) },
        { "cwd", SETTING_STRING, "null", 1, 4096,
          .help = "Its working directory; default: the data directory.",
          .at = offsetof(struct mcp_conf, cwd) },
        { "url", SETTING_URL, "null", .help = "The address of a server on streamable HTTP.",
          .at = offsetof(struct mcp_conf, url) },
        { "headers", SETTING_PAIRS, "{}", .help = "More headers of requests to `url`.",
          .at = offsetof(struct mcp_conf, headers) },
        { "token", SETTING_SECRET, "null", .help = "Sent to `url` as `Authorization: Bearer`.",
          .at = offsetof(struct mcp_conf, token) },
        { "tools", SETTING_STRINGS, "[]", .help = "Use only these of its tools; default: all.",
          .at = offsetof(struct mcp_conf, tools) },
        { "timeoutSeconds", SETTING_INT, "60", 1, 3600,
          .help = "The timeout of a call. Progress restarts it, up to ten minutes.",
          .at = offsetof(struct mcp_conf, timeout_seconds) },
        { "trust", SETTING_BOOL, "false",
          .help = "Accept its read-only marks of tools, and treat its results as trusted text.",
          .at = offsetof(struct mcp_conf, trust) },
        SETTING_END
};

static bool is_header(const char *name)
{
        return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789!#$%&'*+-.^_`|~")] == '\0';
}

int mcp_check(const struct settings_source *src, const char *path,
              const struct setting_map *servers, struct error *err)
{
        int rc = 0;

        for (size_t i = 0; i < servers->count && rc == 0; i++) {
                const struct mcp_conf *c = servers->items[i];
                char *at = mem_printf("%s.%s", path, servers->names[i]);

                if (!c->command == !c->url)
                        rc = settings_error(src, at, err, "expected either 'command' or 'url'");
                for (size_t j = 0; j < c->headers.count && rc == 0; j++) {
                        const char *value = secret_reveal(c->headers.values[j]);

                        if (!is_header(c->headers.names[j]) || strpbrk(value, "\r\n"))
                                rc = settings_member_error(src, at, "headers", err,
                                                           "'%.60s' cannot be sent as a header",
                                                           c->headers.names[j]);
                }
                free(at);
        }
        return rc;
}

/* ---- the state ---- */

void mcp_known(struct mcp_server *s)
{
        s->base.known = true;
        custom_changed(s->base.all);
}

static void close_wire(struct mcp_server *s, bool lost)
{
        if (s->link)
                s->wire->close(s, lost);
        mcp_list_drop(s);
        timer_stop(s->relist);
        timer_stop(s->relisten);
}

static void call_ended(struct mcp_request *q, bool maybe, const char *why)
{
        struct custom_call *c = q->call;
        const char *name = q->server->base.name;

        mcp_request_free(q);
        c->data = NULL;
        if (maybe)
                custom_call_fail(c,
                                 "The MCP server '%s' did not answer: %s. The call may have "
                                 "happened, or happened in part.",
                                 name, why);
        else
                custom_call_fail(c, "The MCP server '%s' cannot be used: %s", name, why);
}

/* Ends all requests but calls; those that a repetition cannot harm wait for the next start. */
static void drop_requests(struct mcp_server *s, const char *why)
{
        struct mcp_request *q, *next;

        for (q = TAILQ_FIRST(&s->requests); q; q = next) {
                next = TAILQ_NEXT(q, next);
                if (q->kind != MCP_CALL) {
                        mcp_request_free(q);
                } else if (q->sent && (q->call->flags & TOOL_READ_ONLY) && !q->repeated) {
                        q->repeated = true;
                        q->sent = false;
                        q->id = ++s->next_id;
                        timer_stop(q->timer);
                } else if (q->sent) {
                        call_ended(q, !q->refused,
                                   q->refused ? "its session was gone before the call, and what it "
                                                "knew in it; a new one is opened, so call again"
                                              : why);
                        next = TAILQ_FIRST(&s->requests); /* the handler may have changed it */
                }
        }
}

void mcp_down(struct mcp_server *s, const char *why)
{
        struct mcp_request *q;
        char kept[sizeof(s->base.problem)];

        snprintf(kept, sizeof(kept), "%s", why); /* why may die with the wire */
        close_wire(s, true);
        s->state = MCP_DOWN;
        s->wanted = false;
        s->retry_at_ms = loop_now_ms(custom_options(s->base.all)->loop) +
                         backoff_half_jitter_ms(s->failures++, RETRY_BASE_MS, RETRY_CAP_MS);
        s->base.problem[0] = '\0';
        custom_source_problem(&s->base, "%s", kept);
        drop_requests(s, kept);
        while ((q = TAILQ_FIRST(&s->requests)))
                call_ended(q, false, kept);
        mcp_known(s);
        /* no call restarts a server without listed tools, so retry by itself */
        if (s->base.count == 0) {
                s->wanted = true;
                timer_start(s->pump,
                            s->retry_at_ms - loop_now_ms(custom_options(s->base.all)->loop) + 1);
        }
}

void mcp_lost(struct mcp_server *s, const char *why)
{
        char kept[sizeof(s->base.problem)];

        if (s->state != MCP_READY) {
                mcp_down(s, why);
                return;
        }
        if (++s->losses > LOSSES_MAX) { /* nothing worked since: wait longer each time */
                mcp_down(s, why);
                return;
        }
        snprintf(kept, sizeof(kept), "%s", why);
        close_wire(s, true);
        s->state = MCP_IDLE;
        s->wanted = s->wire == &mcp_http;
        log_info("MCP server was lost; it is started again when it is needed",
                 LOG_S("server", s->base.name), LOG_S("why", kept));
        drop_requests(s, kept);
        if (s->wanted || !TAILQ_EMPTY(&s->requests))
                timer_start(s->pump, 0);
}

static void server_start(struct mcp_server *s)
{
        struct error err;

        s->state = MCP_STARTING;
        s->modern = s->tried_initialize = s->tried_discover = false;
        s->version[0] = '\0';
        if (s->wire->open(s, &err) < 0)
                mcp_down(s, err.text);
        else
                mcp_handshake(s, s->cached_modern ? MCP_DISCOVER : MCP_INITIALIZE);
}

/* Sends what waits, or starts the server for it. */
static void on_pump(void *arg)
{
        struct mcp_server *s = arg;
        struct mcp_request *q, *next;
        bool waiting = s->wanted;
        struct error err;

        TAILQ_FOREACH(q, &s->requests, next)
                waiting = waiting || !q->sent;
        if (!waiting || s->state == MCP_STARTING)
                return;
        if (s->state == MCP_DOWN &&
            loop_now_ms(custom_options(s->base.all)->loop) < s->retry_at_ms) {
                while ((q = TAILQ_FIRST(&s->requests)))
                        call_ended(q, false, s->base.problem);
                return;
        }
        if (s->state != MCP_READY) {
                server_start(s);
                return;
        }
        for (q = TAILQ_FIRST(&s->requests); q && s->state == MCP_READY; q = next) {
                next = TAILQ_NEXT(q, next);
                if (q->sent)
                        continue;
                if (mcp_request_send(q, &err) < 0) {
                        call_ended(q, false, err.text);
                        next = TAILQ_FIRST(&s->requests);
                }
        }
}

/* ---- answers ---- */

char *mcp_error_words(const json_t *error)
{
        const char *message = json_str(error, "message", "no reason given");
        size_t n = utf8_prefix(message, strlen(message), UTF8_BYTES, 300);

        return mem_printf("%.*s (%lld)", (int)n, message, (long long)json_int(error, "code", 0));
}

/* A server of the newer era asks in its result. No person can answer, so decline everything. */
static bool read_input_required(struct mcp_request *q, const json_t *result)
{
        json_t *asked = json_object_get(result, "inputRequests"), *one;
        const char *key;
        struct error err;

        if (strcmp(json_str(result, "resultType", ""), "input_required") != 0)
                return false;
        if (++q->rounds > ROUNDS_MAX) {
                call_ended(q, false, "it asks for input, and nobody is there to give it");
                return true;
        }
        json_decref(q->input);
        json_decref(q->state);
        q->input = json_object();
        q->state = json_incref(json_object_get(result, "requestState"));
        json_object_foreach(asked, key, one)
                json_object_set_new(q->input, key, json_pack("{s:s}", "action", "decline"));
        q->id = ++q->server->next_id;
        if (mcp_request_send(q, &err) < 0)
                call_ended(q, false, err.text);
        return true;
}

/* The contents of a resource, as a tool would return them; yours. */
static json_t *contents_as_content(const json_t *result)
{
        json_t *content = json_array(), *one;
        size_t i;

        json_array_foreach(json_object_get(result, "contents"), i, one)
                json_array_append_new(content,
                                      json_pack("{s:s, s:O}", "type", "resource", "resource", one));
        return json_pack("{s:o}", "content", content);
}

static void read_call(struct mcp_request *q, const json_t *result, const json_t *error)
{
        struct custom_call *c = q->call;
        bool resource = mcp_reads_resource(q);
        struct tool_result r = { 0 };
        char *words;

        if (result && read_input_required(q, result))
                return;
        if (q->server->unreachable)
                q->server->base.problem[0] = '\0';
        q->server->unreachable = false;
        mcp_request_free(q);
        c->data = NULL;
        if (result) {
                json_t *made = resource ? contents_as_content(result) : NULL;

                custom_result_read(made ? made : result, c->files, &r);
                json_decref(made);
                custom_call_done(c, &r);
                return;
        }
        words = mcp_error_words(error);
        custom_call_fail(c, "%s", words);
        free(words);
}

static void read_answer(struct mcp_server *s, const json_t *message)
{
        const json_t *id = json_object_get(message, "id");
        const json_t *result = json_object_get(message, "result");
        const json_t *error = json_object_get(message, "error");
        struct mcp_request *q =
                json_is_integer(id) ? mcp_request_find(s, json_integer_value(id)) : NULL;
        enum mcp_kind kind;
        char *words;

        if (!q || (!json_is_object(result) && !json_is_object(error)))
                return; /* late, or not an answer */
        kind = q->kind;
        if (kind == MCP_CALL)
                s->losses = 0;
        if (kind == MCP_CALL) {
                read_call(q, result, error);
                return;
        }
        mcp_request_free(q);
        if (kind == MCP_INITIALIZE || kind == MCP_DISCOVER) {
                mcp_read_handshake(s, kind, result, error);
        } else if (kind == MCP_LISTEN) {
                timer_start(s->relisten, RELISTEN_MS); /* the subscription ended */
        } else if (result) {
                mcp_read_list(s, result);
        } else {
                words = mcp_error_words(error);
                mcp_list_failed(s, words);
                free(words);
        }
}

/* Answer every request: a server's tool may wait for it for ever. */
static void answer_request(struct mcp_server *s, const char *method, const json_t *id)
{
        json_t *answer = json_pack("{s:O}", "id", id);
        struct error err;

        if (strcmp(method, "ping") == 0)
                json_object_set_new(answer, "result", json_object());
        else
                json_object_set_new(answer, "error",
                                    json_pack("{s:i, s:s}", "code", -32601, "message",
                                              "this client does not offer it"));
        if (mcp_send(s, answer, NULL, &err) < 0)
                log_debug("answer to MCP server was not sent", LOG_S("server", s->base.name),
                          LOG_S("why", err.text));
}

static void show_progress(struct mcp_request *q, const json_t *params)
{
        const char *message = json_str(params, "message", NULL);
        double done = json_number_value(json_object_get(params, "progress"));
        double total = json_number_value(json_object_get(params, "total"));
        char text[PROGRESS_BYTES + 1];

        if (message)
                snprintf(text, sizeof(text), "%.*s",
                         (int)utf8_prefix(message, strlen(message), UTF8_BYTES, PROGRESS_BYTES),
                         message);
        else if (total > 0)
                snprintf(text, sizeof(text), "%g of %g", done, total);
        else
                snprintf(text, sizeof(text), "%g", done);
        if (q->call->on.on_progress)
                q->call->on.on_progress(q->call->arg, text);
}

static void read_notification(struct mcp_server *s, const char *method, const json_t *params)
{
        const json_t *token = json_object_get(params, "progressToken");
        struct mcp_request *q;
        int64_t left;

        if (strcmp(method, "notifications/tools/list_changed") == 0 && s->state == MCP_READY) {
                if (!timer_active(s->relist))
                        timer_start(s->relist, COALESCE_MS);
        } else if (strcmp(method, "notifications/progress") == 0 && json_is_integer(token)) {
                q = mcp_request_find(s, json_integer_value(token));
                if (!q || q->kind != MCP_CALL)
                        return;
                left = q->hard_ms - loop_now_ms(custom_options(s->base.all)->loop);
                timer_start(q->timer, left < q->call->timeout_ms ? (left > 0 ? left : 0)
                                                                 : q->call->timeout_ms);
                show_progress(q, params);
        }
}

void mcp_received_json(struct mcp_server *s, const json_t *message)
{
        const char *method = json_str(message, "method", NULL);
        const json_t *id = json_object_get(message, "id");

        if (!json_is_object(message))
                return;
        if (method && id && !json_is_null(id))
                answer_request(s, method, id);
        else if (method)
                read_notification(s, method, json_object_get(message, "params"));
        else
                read_answer(s, message);
}

void mcp_received(struct mcp_server *s, const char *text, size_t n)
{
        json_t *message = json_read_lenient(text, n, NULL);
        const void *link = s->link;

        if (!message && s->junk++ == 0)
                log_warn("MCP server sends what is not JSON; it is skipped",
                         LOG_S("server", s->base.name));
        /* 2025-03-26 has batches */
        for (size_t i = 0; json_is_array(message) && i < json_array_size(message); i++) {
                if (s->link != link)
                        break;
                mcp_received_json(s, json_array_get(message, i));
        }
        if (json_is_object(message))
                mcp_received_json(s, message);
        json_decref(message);
}

/* ---- failures ---- */

void mcp_request_failed(struct mcp_request *q, bool maybe, const char *why)
{
        struct mcp_server *s = q->server;
        enum mcp_kind kind = q->kind;

        if (kind == MCP_CALL && !q->repeated && (!maybe || (q->call->flags & TOOL_READ_ONLY)) &&
            s->state == MCP_READY) {
                q->repeated = true;
                q->sent = false;
                q->id = ++s->next_id;
                timer_start(s->pump, RETRY_BASE_MS / 4);
                return;
        }
        if (kind == MCP_CALL) {
                if (s->unreachable)
                        s->base.problem[0] = '\0';
                s->unreachable = true;
                custom_source_problem(&s->base, "%s", why);
                call_ended(q, maybe, why);
                return;
        }
        mcp_request_free(q);
        if (kind == MCP_LISTEN)
                timer_start(s->relisten, RELISTEN_MS);
        else if (kind == MCP_LIST)
                mcp_list_failed(s, why);
        else
                mcp_down(s, why);
}

void mcp_on_deadline(void *arg)
{
        struct mcp_request *q = arg;
        struct mcp_server *s = q->server;
        enum mcp_kind kind = q->kind;
        struct custom_call *c = q->call;

        if (kind == MCP_INITIALIZE || kind == MCP_DISCOVER) {
                mcp_down(s, "it did not answer within 30 seconds");
                return;
        }
        mcp_request_abandon(q, "timeout");
        mcp_request_free(q);
        if (kind == MCP_LIST) {
                mcp_list_failed(s, "no answer within 60 seconds");
                return;
        }
        c->data = NULL;
        custom_call_fail(c,
                         "The MCP server '%s' did not answer within %lld seconds. The call may "
                         "have happened, or happened in part.",
                         s->base.name, (long long)(c->timeout_ms / 1000));
}

/* ---- as a source ---- */

void mcp_call(struct custom_call *c)
{
        struct mcp_server *s = (struct mcp_server *)c->source;
        struct mcp_request *q = mcp_request_new(s, MCP_CALL);

        q->call = c;
        c->data = q;
        timer_start(s->pump, 0);
}

void mcp_cancel(struct custom_call *c)
{
        struct mcp_request *q = c->data;

        if (!q)
                return;
        mcp_request_abandon(q, "stopped by the user");
        mcp_request_free(q);
}

const char *mcp_state_name(const struct custom_source *s)
{
        static const char *const names[] = {
                [MCP_IDLE] = "idle",
                [MCP_STARTING] = "starting",
                [MCP_READY] = "ready",
                [MCP_DOWN] = "down",
        };

        return names[((const struct mcp_server *)s)->state];
}

void mcp_server_free(struct custom_source *source)
{
        struct mcp_server *s = (struct mcp_server *)source;
        struct mcp_request *q;

        if (s->link)
                s->wire->close(s, false);
        while ((q = TAILQ_FIRST(&s->requests)))
                mcp_request_free(q);
        timer_free(s->pump);
        timer_free(s->relist);
        timer_free(s->relisten);
        mcp_list_drop(s);
        json_decref(s->listed);
        custom_source_release(source);
        free(s);
}

static const struct custom_source_ops ops = {
        .kind = "mcp",
        .call = mcp_call,
        .cancel = mcp_cancel,
        .state = mcp_state_name,
        .free = mcp_server_free,
};

struct mcp_server *mcp_server_new(struct custom_tools *all, const char *name,
                                  const struct mcp_conf *conf, const struct mcp_variant *variant)
{
        struct loop *l = custom_options(all)->loop;
        struct mcp_server *s = (struct mcp_server *)custom_source_new(
                all, sizeof(*s), variant ? variant->ops : &ops, name);

        s->conf = conf;
        s->variant = variant;
        s->wire = conf->url ? &mcp_http : &mcp_stdio;
        TAILQ_INIT(&s->requests);
        s->pump = timer_new(l, on_pump, s);
        s->relist = timer_new(l, mcp_list, s);
        s->relisten = timer_new(l, mcp_listen, s);
        if (!variant || !variant->own)
                mcp_cache_read(s);
        if (!s->base.known) {
                s->wanted = true;
                timer_start(s->pump, 0);
        }
        return s;
}

void mcp_add(struct custom_tools *all, const char *name, const struct mcp_conf *conf)
{
        custom_source_add(&mcp_server_new(all, name, conf, NULL)->base);
}
