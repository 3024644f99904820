/*
 * a2a_rpc: reads requests. Members that we do not know are ignored, as the protocol wishes; those
 * that we know are checked.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/compat/a2a.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"

int a2a_mistake_set(struct a2a_mistake *m, int64_t code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(m->text, sizeof(m->text), fmt, ap);
        va_end(ap);
        m->code = code;
        return -1;
}

static int invalid(struct a2a_mistake *m, const char *what)
{
        return a2a_mistake_set(m, A2A_INVALID_PARAMS, "%s", what);
}

/* ---- requests ---- */

int a2a_rpc_read(const json_t *root, const char *header, struct a2a_rpc *out, struct a2a_mistake *m)
{
        const json_t *id = json_object_get(root, "id"), *params = json_object_get(root, "params");
        const char *method = json_str(root, "method", NULL);
        bool has_id = json_is_string(id) || json_is_integer(id);
        enum a2a_version v;

        *out = (struct a2a_rpc){ .method = A2A_METHODS,
                                 .id = has_id ? json_dumps(id, JSON_ENCODE_ANY) : NULL };
        if (!out->id || (json_is_string(id) && json_string_length(id) > A2A_ID_MAX)) {
                free(out->id);
                out->id = mem_strdup("null");
        }
        if (!root)
                return a2a_mistake_set(m, A2A_PARSE_ERROR, "the request is not JSON");
        if (!json_is_object(root) || strcmp(json_str(root, "jsonrpc", ""), "2.0") != 0 || !method ||
            (id && !has_id && !json_is_null(id)))
                return a2a_mistake_set(m, A2A_INVALID_REQUEST, "the request is not JSON-RPC 2.0");
        if (header && *header && !a2a_version_parse(header, &v))
                return a2a_mistake_set(m, A2A_VERSION_NOT_SUPPORTED,
                                       "version %.20s is not supported; 1.0 and 0.3 are", header);
        if (!a2a_method_parse(method, &out->version, &out->method))
                return a2a_mistake_set(m, A2A_METHOD_NOT_FOUND, "there is no method '%.60s'",
                                       method);
        if (params && !json_is_object(params))
                return invalid(m, "params must be an object");
        out->params = params;
        return 0;
}

int a2a_history_read(const json_t *object, int64_t *out, struct a2a_mistake *m)
{
        const json_t *value = json_object_get(object, "historyLength");

        *out = A2A_ALL_HISTORY;
        if (!value || json_is_null(value))
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return invalid(m, "historyLength must be a number, 0 or more");
        *out = json_integer_value(value);
        return 0;
}

int64_t a2a_task_id_read(const struct a2a_rpc *rpc, struct a2a_mistake *m)
{
        const char *id = json_str(rpc->params, "id", NULL);
        int64_t event = id && strncmp(id, "evt-", 4) == 0 ? bus_event_seq(id) : -1;

        if (!id)
                return invalid(m, "id is required");
        if (event < 0)
                a2a_mistake_set(m, A2A_TASK_NOT_FOUND, "there is no task '%.60s'", id);
        return event;
}

/* ---- messages ---- */

/* An id that a client chose, or none: "" is none, as some clients write all members. */
static int read_id(const json_t *object, const char *key, const char **out, struct a2a_mistake *m)
{
        const json_t *value = json_object_get(object, key);
        const char *text = json_string_value(value);
        size_t n = json_string_length(value);

        *out = NULL;
        if (!value || json_is_null(value) || (text && n == 0))
                return 0;
        if (!text || n > A2A_ID_MAX)
                return a2a_mistake_set(m, A2A_INVALID_PARAMS,
                                       "%s must be a string of at most %d bytes", key, A2A_ID_MAX);
        for (const char *p = text; *p; p++)
                if ((unsigned char)*p < ' ')
                        return a2a_mistake_set(m, A2A_INVALID_PARAMS,
                                               "%s contains a control character", key);
        *out = text;
        return 0;
}

static const char *kind_of(const char *mime)
{
        static const char *const kinds[] = { "image", "audio", "video" };

        for (size_t i = 0; mime && i < COUNT(kinds); i++)
                if (strncmp(mime, kinds[i], strlen(kinds[i])) == 0)
                        return kinds[i];
        return "document";
}

static int add_file(struct a2a_ask *ask, const struct a2a_part *p, struct a2a_mistake *m)
{
        bool web = p->kind == A2A_URL && (strncasecmp(p->text, "https://", 8) == 0 ||
                                          strncasecmp(p->text, "http://", 7) == 0);

        if (p->kind == A2A_URL && !web)
                return a2a_mistake_set(m, A2A_CONTENT_TYPE, "files must be at http or https URLs");
        if (ask->file_count == A2A_ASK_FILES)
                return a2a_mistake_set(m, A2A_CONTENT_TYPE, "there are more than %d files",
                                       A2A_ASK_FILES);
        ask->bytes[ask->file_count] = web ? NULL : p->text;
        ask->files[ask->file_count++] = (struct attachment){ .kind = kind_of(p->mime),
                                                             .name = p->name,
                                                             .mime = p->mime,
                                                             .url = web ? p->text : NULL };
        return 0;
}

static void add_data(struct buf *text, const json_t *data)
{
        char *json = json_dumps(data, JSON_INDENT(2) | JSON_ENCODE_ANY);

        buf_addf(text, "```json\n%s\n```", json ? json : "null");
        free(json);
}

static int add_part(struct a2a_ask *ask, size_t i, const json_t *item, struct a2a_mistake *m)
{
        struct a2a_part p;

        if (!a2a_part_read(item, &p))
                return a2a_mistake_set(m, A2A_CONTENT_TYPE,
                                       "part %zu is neither text nor a file nor data", i + 1);
        if (p.kind == A2A_RAW || p.kind == A2A_URL)
                return add_file(ask, &p, m);
        if (ask->text.len > 0)
                buf_addch(&ask->text, '\n');
        if (p.kind == A2A_TEXT)
                buf_addstr(&ask->text, p.text);
        else
                add_data(&ask->text, p.data);
        return 0;
}

static int read_parts(const json_t *message, struct a2a_ask *ask, struct a2a_mistake *m)
{
        const json_t *parts = json_object_get(message, "parts"), *item;
        size_t i;

        if (json_array_size(parts) == 0 || json_array_size(parts) > A2A_PARTS_MAX)
                return a2a_mistake_set(m, A2A_INVALID_PARAMS,
                                       "message.parts must be a list of 1 to %d parts",
                                       A2A_PARTS_MAX);
        json_array_foreach(parts, i, item)
                if (add_part(ask, i, item, m) < 0)
                        return -1;
        if (ask->file_count == 0 && ask->text.data[strspn(ask->text.data, " \t\r\n")] == '\0')
                return invalid(m, "the message is empty");
        return 0;
}

static bool is_given(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return value && !json_is_null(value);
}

static int read_configuration(const struct a2a_rpc *rpc, struct a2a_ask *ask, struct a2a_mistake *m)
{
        const json_t *conf = json_object_get(rpc->params, "configuration");

        if (is_given(conf, "taskPushNotificationConfig") ||
            is_given(conf, "pushNotificationConfig"))
                return a2a_mistake_set(m, A2A_PUSH_NOT_SUPPORTED,
                                       "push notifications are not supported");
        ask->waits = rpc->version == A2A_1_0 ? !json_flag(conf, "returnImmediately", false)
                                             : json_flag(conf, "blocking", true);
        return a2a_history_read(conf, &ask->history, m);
}

int a2a_ask_read(const struct a2a_rpc *rpc, struct a2a_ask *out, struct a2a_mistake *m)
{
        const json_t *message = json_object_get(rpc->params, "message");
        const char *role = json_str(message, "role", "");

        *out = (struct a2a_ask){ 0 };
        buf_init(&out->text, 0);
        if (!json_is_object(message))
                return invalid(m, "message is required");
        if (read_id(message, "messageId", &out->message, m) < 0 ||
            read_id(message, "contextId", &out->context, m) < 0 ||
            read_id(message, "taskId", &out->task, m) < 0)
                return -1;
        if (!out->message)
                return invalid(m, "message.messageId is required");
        if (strcmp(role, "ROLE_USER") != 0 && strcmp(role, "user") != 0)
                return invalid(m, "message.role must be that of a user");
        if (read_configuration(rpc, out, m) < 0)
                return -1;
        return read_parts(message, out, m);
}

void a2a_ask_release(struct a2a_ask *ask)
{
        buf_release(&ask->text);
}

/* ---- lists ---- */

void a2a_page_token(struct buf *b, int64_t time_ms, int64_t event)
{
        buf_addf(b, "%" PRId64 "-%" PRId64, time_ms, event);
}

static int read_token(const char *token, struct a2a_list_ask *out, struct a2a_mistake *m)
{
        char *end;

        if (!token || !*token)
                return 0;
        out->from_ms = strtoll(token, &end, 10);
        if (end == token || *end != '-' || end[1] < '0' || end[1] > '9')
                return invalid(m, "pageToken is not one of ours");
        out->from_event = strtoll(end + 1, &end, 10);
        return *end || out->from_ms <= 0 || out->from_event <= 0
                       ? invalid(m, "pageToken is not one of ours")
                       : 0;
}

static int read_size(const json_t *params, int64_t *out, struct a2a_mistake *m)
{
        const json_t *value = json_object_get(params, "pageSize");

        *out = A2A_PAGE;
        if (!value || json_is_null(value) || json_integer_value(value) == 0)
                return value && !json_is_null(value) && !json_is_integer(value)
                               ? invalid(m, "pageSize must be a number")
                               : 0;
        *out = json_integer_value(value);
        return *out < 0 || *out > A2A_PAGE_MAX
                       ? a2a_mistake_set(m, A2A_INVALID_PARAMS, "pageSize must be 1 to %d",
                                         A2A_PAGE_MAX)
                       : 0;
}

int a2a_list_ask_read(const struct a2a_rpc *rpc, struct a2a_list_ask *out, struct a2a_mistake *m)
{
        const char *state = json_str(rpc->params, "status", "");
        const char *after = json_str(rpc->params, "statusTimestampAfter", "");

        *out = (struct a2a_list_ask){ .artifacts =
                                              json_flag(rpc->params, "includeArtifacts", false) };
        if (read_id(rpc->params, "contextId", &out->context, m) < 0 ||
            read_size(rpc->params, &out->size, m) < 0 ||
            read_token(json_str(rpc->params, "pageToken", NULL), out, m) < 0 ||
            a2a_history_read(rpc->params, &out->history, m) < 0)
                return -1;
        out->state = a2a_state_parse(state);
        if (*state && out->state == A2A_UNKNOWN &&
            strcmp(state, a2a_state_name(rpc->version, A2A_UNKNOWN)) != 0)
                return a2a_mistake_set(m, A2A_INVALID_PARAMS, "there is no state '%.40s'", state);
        if (*after && clock_parse_iso(after, &out->after_ms) < 0)
                return invalid(m, "statusTimestampAfter must be a time such as "
                                  "2026-01-31T12:00:00Z");
        return 0;
}

/* ---- answers ---- */

void a2a_open(struct buf *b, const struct a2a_to *to)
{
        jsonw_open(b, '{');
        jsonw_str(b, "jsonrpc", "2.0");
        jsonw_raw(b, "id", to->id);
}

void a2a_close(struct buf *b)
{
        jsonw_close(b, '}');
}

/* google.rpc.ErrorInfo, which 1.0 asks for; 0.3 takes any data. */
void a2a_write_error(struct buf *b, const char *id, const struct a2a_mistake *m)
{
        const char *reason = a2a_error_reason(m->code);

        a2a_open(b, &(struct a2a_to){ .id = (char *)id });
        jsonw_open_member(b, "error", '{');
        jsonw_int(b, "code", m->code);
        jsonw_str(b, "message", m->text);
        if (reason) {
                jsonw_open_member(b, "data", '[');
                jsonw_open(b, '{');
                jsonw_str(b, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
                jsonw_str(b, "reason", reason);
                jsonw_str(b, "domain", "a2a-protocol.org");
                jsonw_close(b, '}');
                jsonw_close(b, ']');
        }
        jsonw_close(b, '}');
        a2a_close(b);
}

int a2a_mistake_status(bool streams)
{
        return streams ? 400 : 200;
}

bool a2a_method_streams(enum a2a_method m)
{
        return m == A2A_SEND_STREAM || m == A2A_SUBSCRIBE;
}

void a2a_reply_mistake(struct http_exchange *x, struct a2a_rpc *rpc, const struct a2a_mistake *m)
{
        struct buf b;

        buf_init(&b, 0);
        a2a_write_error(&b, rpc->id, m);
        free(rpc->id);
        rpc->id = NULL;
        reply_json(x, a2a_mistake_status(a2a_method_streams(rpc->method)), &b);
}
