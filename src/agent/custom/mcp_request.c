/*
 * Requests and notifications to an MCP server: their JSON and their deadlines.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/custom/mcp_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define HANDSHAKE_MS 30000
#define LIST_MS      60000
#define HARD_MS      600000 /* of a call that reports progress */

bool mcp_reads_resource(const struct mcp_request *q)
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

        return mcp_reads_resource(q) ? MCP_READ_RESOURCE : names[q->kind];
}

struct mcp_request *mcp_request_new(struct mcp_server *s, enum mcp_kind kind)
{
        struct mcp_request *q = mem_zalloc(sizeof(*q));

        q->server = s;
        q->kind = kind;
        q->id = ++s->next_id;
        TAILQ_INSERT_TAIL(&s->requests, q, next);
        return q;
}

void mcp_request_free(struct mcp_request *q)
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

int mcp_send(struct mcp_server *s, json_t *message, const struct mcp_request *q, struct error *err)
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

void mcp_notify(struct mcp_server *s, const char *method, json_t *params)
{
        struct error err;

        if (mcp_send(s, json_pack("{s:s, s:o}", "method", method, "params", params), NULL, &err) <
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

        if (mcp_reads_resource(q))
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

int mcp_request_send(struct mcp_request *q, struct error *err)
{
        struct loop *l = custom_options(q->server->base.all)->loop;
        json_t *params = params_of(q);
        int64_t ms = q->kind == MCP_CALL   ? q->call->timeout_ms
                     : q->kind == MCP_LIST ? LIST_MS
                                           : HANDSHAKE_MS;

        add_meta(q, params);
        q->sent = true;
        if (!q->timer)
                q->timer = timer_new(l, mcp_on_deadline, q);
        if (q->kind != MCP_LISTEN)
                timer_start(q->timer, ms);
        q->hard_ms = loop_now_ms(l) + (ms > HARD_MS ? ms : HARD_MS);
        return mcp_send(q->server,
                        json_pack("{s:I, s:s, s:o}", "id", (json_int_t)q->id, "method",
                                  method_of(q), "params", params),
                        q, err);
}

void mcp_request_abandon(struct mcp_request *q, const char *reason)
{
        struct mcp_server *s = q->server;

        if (!q->sent || s->state != MCP_READY)
                return;
        if (!s->modern || s->wire == &mcp_stdio)
                mcp_notify(
                        s, "notifications/cancelled",
                        json_pack("{s:I, s:s}", "requestId", (json_int_t)q->id, "reason", reason));
        if (s->link && s->wire->forget)
                s->wire->forget(s, q);
}
