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

#define HANDSHAKE_MS   30000
#define LIST_MS        60000
#define HARD_MS        600000 /* of a call that reports progress */
#define COALESCE_MS    100    /* servers announce a changed list several times at once */
#define RELISTEN_MS    30000
#define RETRY_BASE_MS  1000
#define RETRY_CAP_MS   300000
#define PAGES_MAX      50
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
          .help = "Its working directory; else the data directory.",
          .at = offsetof(struct mcp_conf, cwd) },
        { "url", SETTING_URL, "null", .help = "The address of a server on streamable HTTP.",
          .at = offsetof(struct mcp_conf, url) },
        { "headers", SETTING_PAIRS, "{}", .help = "More headers of requests to `url`.",
          .at = offsetof(struct mcp_conf, headers) },
        { "token", SETTING_SECRET, "null", .help = "Sent to `url` as `Authorization: Bearer`.",
          .at = offsetof(struct mcp_conf, token) },
        { "tools", SETTING_STRINGS, "[]", .help = "Only these of its tools; else all.",
          .at = offsetof(struct mcp_conf, tools) },
        { "timeoutSeconds", SETTING_INT, "60", 1, 3600,
          .help = "The time for a call. Progress starts it again, up to ten minutes.",
          .at = offsetof(struct mcp_conf, timeout_seconds) },
        { "trust", SETTING_BOOL, "false",
          .help = "Believe what it says about its tools (read-only), and that its results hold no "
                  "text of strangers.",
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

/* ---- requests ---- */

static bool reads_resource(const struct mcp_request *q)
{
        return q->kind == MCP_CALL && strcmp(q->call->tool, MCP_READ_RESOURCE) == 0;
}

static const char *method_of(const struct mcp_request *q)
{
        static const char *const names[] = {
                [MCP_INITIALIZE] = "initialize",
                [MCP_DISCOVER] = "server/discover",
                [MCP_LIST] = "tools/list",
                [MCP_CALL] = "tools/call",
                [MCP_LISTEN] = "subscriptions/listen",
        };

        return reads_resource(q) ? MCP_READ_RESOURCE : names[q->kind];
}

static struct mcp_request *request_new(struct mcp_server *s, enum mcp_kind kind)
{
        struct mcp_request *q = mem_zalloc(sizeof(*q));

        q->server = s;
        q->kind = kind;
        q->id = ++s->next_id;
        TAILQ_INSERT_TAIL(&s->requests, q, next);
        return q;
}

static void request_free(struct mcp_request *q)
{
        TAILQ_REMOVE(&q->server->requests, q, next);
        timer_free(q->timer);
        json_decref(q->input);
        json_decref(q->state);
        free(q);
}

struct mcp_request *mcp_request_find(struct mcp_server *s, int64_t id)
{
        struct mcp_request *q;

        TAILQ_FOREACH(q, &s->requests, next)
                if (q->id == id && q->sent)
                        return q;
        return NULL;
}

/* Takes the message. */
static int send_json(struct mcp_server *s, json_t *message, const struct mcp_request *q,
                     struct error *err)
{
        char *text;
        struct mcp_message m = { .request = q };
        int rc;

        json_object_set_new(message, "jsonrpc", json_string("2.0"));
        text = json_text(message);
        m.text = text;
        m.n = strlen(text);
        m.method = json_str(message, "method", NULL);
        rc = s->link ? s->wire->send(s, &m, err) : error_set(err, ERR_NET, "not connected");
        free(text);
        json_decref(message);
        return rc;
}

static void notify(struct mcp_server *s, const char *method, json_t *params)
{
        struct error err;

        if (send_json(s, json_pack("{s:s, s:o}", "method", method, "params", params), NULL, &err) <
            0)
                log_debug("notification to MCP server was not sent", LOG_S("server", s->base.name),
                          LOG_S("why", err.text));
}

static json_t *client_info(void)
{
        return json_pack("{s:s, s:s}", "name", "dragoman", "version", DRAGOMAN_VERSION);
}

static json_t *call_params(const struct mcp_request *q)
{
        json_t *p;

        if (reads_resource(q))
                p = json_pack("{s:O}", "uri", json_object_get(q->call->args, "uri"));
        else
                p = json_pack("{s:s, s:O}", "name", q->call->tool, "arguments", q->call->args);
        if (q->input)
                json_object_set(p, "inputResponses", q->input);
        if (q->state)
                json_object_set(p, "requestState", q->state);
        return p;
}

static json_t *params_of(const struct mcp_request *q)
{
        const struct mcp_server *s = q->server;
        json_t *p = NULL;

        switch (q->kind) {
        case MCP_INITIALIZE:
                p = json_pack("{s:s, s:{}, s:o}", "protocolVersion", MCP_LEGACY_VERSION,
                              "capabilities", "clientInfo", client_info());
                if (s->variant && s->variant->meta)
                        json_object_set(p, "_meta", s->variant->meta);
                break;
        case MCP_LIST:
                p = json_object();
                if (s->cursor)
                        json_object_set_new(p, "cursor", json_string(s->cursor));
                break;
        case MCP_CALL:
                p = call_params(q);
                break;
        case MCP_LISTEN:
                p = json_pack("{s:{s:b}}", "notifications", "toolsListChanged", true);
                break;
        case MCP_DISCOVER:
                p = json_object();
                break;
        }
        return p;
}

static void add_meta(const struct mcp_request *q, json_t *params)
{
        bool modern = q->kind == MCP_DISCOVER || (q->server->modern && q->kind != MCP_INITIALIZE);
        json_t *meta;

        if (!modern && q->kind != MCP_CALL)
                return;
        meta = json_object();
        if (q->kind == MCP_CALL)
                json_object_set_new(meta, "progressToken", json_integer(q->id));
        if (modern) {
                json_object_set_new(meta, "io.modelcontextprotocol/protocolVersion",
                                    json_string(MCP_MODERN_VERSION));
                json_object_set_new(meta, "io.modelcontextprotocol/clientInfo", client_info());
                json_object_set_new(meta, "io.modelcontextprotocol/clientCapabilities",
                                    json_object());
        }
        json_object_set_new(params, "_meta", meta);
}

static void on_deadline(void *arg);

static void set_deadline(struct mcp_request *q, int64_t ms)
{
        struct loop *l = custom_options(q->server->base.all)->loop;

        if (!q->timer)
                q->timer = timer_new(l, on_deadline, q);
        timer_start(q->timer, ms);
}

static int request_send(struct mcp_request *q, struct error *err)
{
        json_t *params = params_of(q);
        int64_t ms = q->kind == MCP_CALL   ? q->call->timeout_ms
                     : q->kind == MCP_LIST ? LIST_MS
                                           : HANDSHAKE_MS;

        add_meta(q, params);
        q->sent = true;
        if (q->kind != MCP_LISTEN)
                set_deadline(q, ms);
        q->hard_ms = loop_now_ms(custom_options(q->server->base.all)->loop) +
                     (ms > HARD_MS ? ms : HARD_MS);
        return send_json(q->server,
                         json_pack("{s:I, s:s, s:o}", "id", (json_int_t)q->id, "method",
                                   method_of(q), "params", params),
                         q, err);
}

/* ---- the state ---- */

static void server_known(struct mcp_server *s)
{
        s->base.known = true;
        custom_changed(s->base.all);
}

static void drop_listing(struct mcp_server *s)
{
        json_decref(s->listing);
        s->listing = NULL;
        free(s->cursor);
        s->cursor = NULL;
}

static void close_wire(struct mcp_server *s, bool lost)
{
        if (s->link)
                s->wire->close(s, lost);
        drop_listing(s);
        timer_stop(s->relist);
        timer_stop(s->relisten);
}

static void call_ended(struct mcp_request *q, bool maybe, const char *why)
{
        struct custom_call *c = q->call;
        const char *name = q->server->base.name;

        request_free(q);
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
                        request_free(q);
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

/* It cannot be reached: fails what waits, and does not try again at once. */
static void server_down(struct mcp_server *s, const char *why)
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
        server_known(s);
        /* nobody can call what is not listed, so the list is asked for again by itself */
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
                server_down(s, why);
                return;
        }
        if (++s->losses > LOSSES_MAX) { /* nothing worked since: wait longer each time */
                server_down(s, why);
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

static void handshake(struct mcp_server *s, enum mcp_kind kind)
{
        struct mcp_request *q = request_new(s, kind);
        struct error err;

        if (kind == MCP_DISCOVER)
                s->tried_discover = true;
        else
                s->tried_initialize = true;
        if (request_send(q, &err) < 0)
                server_down(s, err.text);
}

static void server_start(struct mcp_server *s)
{
        struct error err;

        s->state = MCP_STARTING;
        s->modern = s->tried_initialize = s->tried_discover = false;
        s->version[0] = '\0';
        if (s->wire->open(s, &err) < 0)
                server_down(s, err.text);
        else
                handshake(s, s->cached_modern ? MCP_DISCOVER : MCP_INITIALIZE);
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
                if (request_send(q, &err) < 0) {
                        call_ended(q, false, err.text);
                        next = TAILQ_FIRST(&s->requests);
                }
        }
}

static void list_tools(struct mcp_server *s)
{
        struct error err;

        if (s->listing) {
                s->list_again = true;
                return;
        }
        s->listing = json_array();
        s->pages = 0;
        if (request_send(request_new(s, MCP_LIST), &err) < 0)
                mcp_lost(s, err.text);
}

static void on_relist(void *arg)
{
        list_tools(arg);
}

static void listen_for_changes(void *arg)
{
        struct mcp_server *s = arg;
        struct error err;

        if (s->state == MCP_READY && request_send(request_new(s, MCP_LISTEN), &err) < 0)
                log_debug("MCP server takes no subscription", LOG_S("server", s->base.name),
                          LOG_S("why", err.text));
}

static void server_ready(struct mcp_server *s, const json_t *capabilities)
{
        const json_t *offer = json_object_get(capabilities, "tools");

        s->state = MCP_READY;
        s->failures = 0;
        s->wanted = false;
        s->cached_modern = s->modern;
        s->resources = json_is_object(json_object_get(capabilities, "resources"));
        log_info("MCP server is ready", LOG_S("server", s->base.name),
                 LOG_S("version", s->version));
        if (!s->modern)
                notify(s, "notifications/initialized", json_object());
        if (s->link && s->wire->ready)
                s->wire->ready(s);
        if (!offer) {
                custom_source_problem(&s->base, "the server offers no tools");
                mcp_tools_set(s, NULL);
                server_known(s);
        } else {
                list_tools(s);
        }
        if (s->state == MCP_READY && s->modern && json_flag(offer, "listChanged", false))
                listen_for_changes(s);
        timer_start(s->pump, 0);
}

/* ---- answers ---- */

static bool is_known_version(const char *version)
{
        static const char *const known[] = { "2024-11-05", "2025-03-26", "2025-06-18",
                                             MCP_LEGACY_VERSION };

        for (size_t i = 0; i < COUNT(known); i++)
                if (strcmp(known[i], version) == 0)
                        return true;
        return false;
}

static bool has_string(const json_t *array, const char *text)
{
        size_t i;
        json_t *item;

        json_array_foreach(array, i, item)
                if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
                        return true;
        return false;
}

/* "message (code)", for people and models. */
static char *error_words(const json_t *error)
{
        const char *message = json_str(error, "message", "no reason given");
        size_t n = utf8_prefix(message, strlen(message), UTF8_BYTES, 300);

        return mem_printf("%.*s (%lld)", (int)n, message, (long long)json_int(error, "code", 0));
}

/* The first answer decides the era: a server that refuses initialize may be of the newer one. */
static void read_handshake(struct mcp_server *s, enum mcp_kind kind, const json_t *result,
                           const json_t *error)
{
        const char *version = json_str(result, "protocolVersion", "");
        char *words;

        if (kind == MCP_INITIALIZE && result && is_known_version(version)) {
                snprintf(s->version, sizeof(s->version), "%s", version);
                server_ready(s, json_object_get(result, "capabilities"));
        } else if (kind == MCP_DISCOVER && result &&
                   has_string(json_object_get(result, "supportedVersions"), MCP_MODERN_VERSION)) {
                s->modern = true;
                snprintf(s->version, sizeof(s->version), "%s", MCP_MODERN_VERSION);
                server_ready(s, json_object_get(result, "capabilities"));
        } else if (kind == MCP_INITIALIZE && !s->tried_discover) {
                handshake(s, MCP_DISCOVER);
        } else if (kind == MCP_DISCOVER && !s->tried_initialize) {
                s->cached_modern = false;
                handshake(s, MCP_INITIALIZE);
        } else if (result) {
                words = mem_printf("it speaks MCP revision '%.40s', which is not known here",
                                   *version ? version : "unknown");
                server_down(s, words);
                free(words);
        } else {
                words = error_words(error);
                server_down(s, words);
                free(words);
        }
}

static void list_failed(struct mcp_server *s, const char *why)
{
        drop_listing(s);
        custom_source_problem(&s->base, "its tools cannot be listed: %s", why);
        server_known(s);
}

static void read_list(struct mcp_server *s, const json_t *result)
{
        const char *cursor = json_str(result, "nextCursor", NULL);
        const json_t *page = json_object_get(result, "tools");
        struct error err;
        size_t i;
        json_t *tool;

        json_array_foreach(page, i, tool)
                if (json_array_size(s->listing) < MCP_TOOLS_MAX)
                        json_array_append(s->listing, tool);
        free(s->cursor);
        s->cursor = NULL;
        if (cursor && *cursor && ++s->pages < PAGES_MAX &&
            json_array_size(s->listing) < MCP_TOOLS_MAX) {
                s->cursor = mem_strdup(cursor);
                if (request_send(request_new(s, MCP_LIST), &err) < 0)
                        mcp_lost(s, err.text);
                return;
        }
        s->base.problem[0] = '\0';
        mcp_tools_set(s, s->listing);
        if (s->variant && s->variant->listed)
                s->variant->listed(s, result);
        json_decref(s->listed);
        s->listed = s->listing;
        s->listing = NULL;
        if (!s->variant || !s->variant->own)
                mcp_cache_write(s);
        server_known(s);
        if (s->list_again) {
                s->list_again = false;
                list_tools(s);
        }
}

/* A server of the newer era asks by its result; nobody is there to answer, so all is declined. */
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
        if (request_send(q, &err) < 0)
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
        bool resource = reads_resource(q);
        struct tool_result r = { 0 };
        char *words;

        if (result && read_input_required(q, result))
                return;
        if (q->server->unreachable)
                q->server->base.problem[0] = '\0';
        q->server->unreachable = false;
        request_free(q);
        c->data = NULL;
        if (result) {
                json_t *made = resource ? contents_as_content(result) : NULL;

                custom_result_read(made ? made : result, c->files, &r);
                json_decref(made);
                custom_call_done(c, &r);
                return;
        }
        words = error_words(error);
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
        request_free(q);
        if (kind == MCP_INITIALIZE || kind == MCP_DISCOVER) {
                read_handshake(s, kind, result, error);
        } else if (kind == MCP_LISTEN) {
                timer_start(s->relisten, RELISTEN_MS); /* the subscription ended */
        } else if (result) {
                read_list(s, result);
        } else {
                words = error_words(error);
                list_failed(s, words);
                free(words);
        }
}

/* A request nobody answers would block the server's tool for ever. */
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
        if (send_json(s, answer, NULL, &err) < 0)
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

/* Tells the server that the answer is no longer awaited. */
static void abandon(struct mcp_request *q, const char *reason)
{
        struct mcp_server *s = q->server;

        if (!q->sent || s->state != MCP_READY)
                return;
        if (!s->modern || s->wire == &mcp_stdio)
                notify(s, "notifications/cancelled",
                       json_pack("{s:I, s:s}", "requestId", (json_int_t)q->id, "reason", reason));
        if (s->link && s->wire->forget)
                s->wire->forget(s, q);
}

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
        request_free(q);
        if (kind == MCP_LISTEN)
                timer_start(s->relisten, RELISTEN_MS);
        else if (kind == MCP_LIST)
                list_failed(s, why);
        else
                server_down(s, why);
}

static void on_deadline(void *arg)
{
        struct mcp_request *q = arg;
        struct mcp_server *s = q->server;
        enum mcp_kind kind = q->kind;
        struct custom_call *c = q->call;

        if (kind == MCP_INITIALIZE || kind == MCP_DISCOVER) {
                server_down(s, "it did not answer within 30 seconds");
                return;
        }
        abandon(q, "timeout");
        request_free(q);
        if (kind == MCP_LIST) {
                list_failed(s, "no answer within 60 seconds");
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
        struct mcp_request *q = request_new(s, MCP_CALL);

        q->call = c;
        c->data = q;
        timer_start(s->pump, 0);
}

void mcp_cancel(struct custom_call *c)
{
        struct mcp_request *q = c->data;

        if (!q)
                return;
        abandon(q, "stopped by the user");
        request_free(q);
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
                request_free(q);
        timer_free(s->pump);
        timer_free(s->relist);
        timer_free(s->relisten);
        drop_listing(s);
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
        s->relist = timer_new(l, on_relist, s);
        s->relisten = timer_new(l, listen_for_changes, s);
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
