#include "agent/a2a/a2a_wire.h"

#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

/* ---- versions ---- */

const char *a2a_version_name(enum a2a_version v)
{
        return v == A2A_1_0 ? "1.0" : "0.3";
}

bool a2a_version_parse(const char *text, enum a2a_version *out)
{
        for (enum a2a_version v = A2A_1_0; text && v <= A2A_0_3; v++) {
                const char *name = a2a_version_name(v);
                size_t n = strlen(name);

                if (strncmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == '.')) {
                        *out = v;
                        return true;
                }
        }
        return false;
}

/* ---- states ---- */

static const char *const states[A2A_STATES][2] = {
        [A2A_UNKNOWN] = { "TASK_STATE_UNSPECIFIED", "unknown" },
        [A2A_SUBMITTED] = { "TASK_STATE_SUBMITTED", "submitted" },
        [A2A_WORKING] = { "TASK_STATE_WORKING", "working" },
        [A2A_INPUT_REQUIRED] = { "TASK_STATE_INPUT_REQUIRED", "input-required" },
        [A2A_AUTH_REQUIRED] = { "TASK_STATE_AUTH_REQUIRED", "auth-required" },
        [A2A_COMPLETED] = { "TASK_STATE_COMPLETED", "completed" },
        [A2A_FAILED] = { "TASK_STATE_FAILED", "failed" },
        [A2A_CANCELED] = { "TASK_STATE_CANCELED", "canceled" },
        [A2A_REJECTED] = { "TASK_STATE_REJECTED", "rejected" },
};

const char *a2a_state_name(enum a2a_version v, enum a2a_state state)
{
        return states[state][v];
}

enum a2a_state a2a_state_parse(const char *name)
{
        for (enum a2a_state s = A2A_UNKNOWN; name && s < A2A_STATES; s++)
                if (strcmp(name, states[s][A2A_1_0]) == 0 || strcmp(name, states[s][A2A_0_3]) == 0)
                        return s;
        return A2A_UNKNOWN;
}

bool a2a_state_is_final(enum a2a_state state)
{
        return state == A2A_COMPLETED || state == A2A_FAILED || state == A2A_CANCELED ||
               state == A2A_REJECTED;
}

bool a2a_state_is_waiting(enum a2a_state state)
{
        return state == A2A_INPUT_REQUIRED || state == A2A_AUTH_REQUIRED;
}

/* ---- methods and errors ---- */

static const char *const methods[A2A_METHODS][2] = {
        [A2A_SEND] = { "SendMessage", "message/send" },
        [A2A_SEND_STREAM] = { "SendStreamingMessage", "message/stream" },
        [A2A_GET] = { "GetTask", "tasks/get" },
        [A2A_LIST] = { "ListTasks", "tasks/list" },
        [A2A_CANCEL] = { "CancelTask", "tasks/cancel" },
        [A2A_SUBSCRIBE] = { "SubscribeToTask", "tasks/resubscribe" },
        [A2A_PUSH_SET] = { "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set" },
        [A2A_PUSH_GET] = { "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get" },
        [A2A_PUSH_LIST] = { "ListTaskPushNotificationConfigs",
                            "tasks/pushNotificationConfig/list" },
        [A2A_PUSH_DELETE] = { "DeleteTaskPushNotificationConfig",
                              "tasks/pushNotificationConfig/delete" },
        [A2A_EXTENDED_CARD] = { "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard" },
};

const char *a2a_method_name(enum a2a_version v, enum a2a_method m)
{
        return methods[m][v];
}

bool a2a_method_parse(const char *name, enum a2a_version *v, enum a2a_method *m)
{
        for (*m = 0; *m < A2A_METHODS; (*m)++)
                for (*v = A2A_1_0; *v <= A2A_0_3; (*v)++)
                        if (strcmp(name, methods[*m][*v]) == 0)
                                return true;
        return false;
}

const char *a2a_error_reason(int64_t code)
{
        static const struct {
                enum a2a_error code;
                const char *reason;
        } reasons[] = {
                { A2A_TASK_NOT_FOUND, "TASK_NOT_FOUND" },
                { A2A_TASK_NOT_CANCELABLE, "TASK_NOT_CANCELABLE" },
                { A2A_PUSH_NOT_SUPPORTED, "PUSH_NOTIFICATION_NOT_SUPPORTED" },
                { A2A_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION" },
                { A2A_CONTENT_TYPE, "CONTENT_TYPE_NOT_SUPPORTED" },
                { A2A_CARD_NOT_CONFIGURED, "EXTENDED_AGENT_CARD_NOT_CONFIGURED" },
                { A2A_VERSION_NOT_SUPPORTED, "VERSION_NOT_SUPPORTED" },
        };

        for (size_t i = 0; i < COUNT(reasons); i++)
                if (reasons[i].code == code)
                        return reasons[i].reason;
        return NULL;
}

/* ---- parts ---- */

/* 1.0 tells the kind by the member; 0.3 by `kind`, and has files in an object. */
bool a2a_part_read(const json_t *object, struct a2a_part *out)
{
        static const struct {
                const char *member;
                enum a2a_part_kind kind;
        } kinds[] = { { "text", A2A_TEXT },
                      { "raw", A2A_RAW },
                      { "bytes", A2A_RAW },
                      { "url", A2A_URL },
                      { "uri", A2A_URL } };
        const json_t *file = json_object_get(object, "file"), *from = file ? file : object;

        *out = (struct a2a_part){
                .name = json_str(from, file ? "name" : "filename", NULL),
                .mime = json_str(from, file ? "mimeType" : "mediaType", NULL),
        };
        for (size_t i = 0; i < COUNT(kinds); i++) {
                out->text = json_str(from, kinds[i].member, NULL);
                out->kind = kinds[i].kind;
                if (out->text)
                        return true;
        }
        out->data = json_object_get(object, "data");
        out->kind = A2A_DATA;
        return out->data != NULL;
}

static void write_file(struct buf *b, const struct a2a_part *p)
{
        jsonw_str(b, "kind", "file");
        jsonw_open_member(b, "file", '{');
        jsonw_str(b, p->kind == A2A_RAW ? "bytes" : "uri", p->text);
        jsonw_opt(b, "name", p->name);
        jsonw_opt(b, "mimeType", p->mime);
        jsonw_close(b, '}');
}

static void write_data(struct buf *b, const json_t *data)
{
        char *text = json_text(data);

        jsonw_raw(b, "data", text);
        free(text);
}

void a2a_part_write(struct buf *b, enum a2a_version v, const struct a2a_part *p)
{
        static const char *const members[] = {
                [A2A_TEXT] = "text", [A2A_RAW] = "raw", [A2A_URL] = "url"
        };

        jsonw_open(b, '{');
        if (v == A2A_0_3 && (p->kind == A2A_RAW || p->kind == A2A_URL)) {
                write_file(b, p);
                jsonw_close(b, '}');
                return;
        }
        if (v == A2A_0_3)
                jsonw_str(b, "kind", p->kind == A2A_TEXT ? "text" : "data");
        if (p->kind == A2A_DATA)
                write_data(b, p->data);
        else
                jsonw_str(b, members[p->kind], p->text);
        if (v == A2A_1_0) {
                jsonw_opt(b, "filename", p->name);
                jsonw_opt(b, "mediaType", p->mime);
        }
        jsonw_close(b, '}');
}

/* ---- messages ---- */

void a2a_message_open(struct buf *b, const char *key, enum a2a_version v,
                      const struct a2a_message *m)
{
        static const char *const roles[][2] = { { "ROLE_USER", "user" },
                                                { "ROLE_AGENT", "agent" } };

        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        if (v == A2A_0_3)
                jsonw_str(b, "kind", "message");
        jsonw_str(b, "messageId", m->id);
        jsonw_opt(b, "contextId", m->context);
        jsonw_opt(b, "taskId", m->task);
        if (m->refers_to) {
                jsonw_open_member(b, "referenceTaskIds", '[');
                jsonw_str(b, NULL, m->refers_to);
                jsonw_close(b, ']');
        }
        jsonw_str(b, "role", roles[m->by_agent][v]);
        jsonw_open_member(b, "parts", '[');
}

void a2a_message_close(struct buf *b)
{
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

/* ---- results ---- */

static const json_t *list(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return json_is_array(value) ? value : NULL;
}

/* Which of them it is, and where: 1.0 wraps it in a member, 0.3 has `kind`. */
static const json_t *find_kind(const json_t *result, enum a2a_kind *kind)
{
        static const struct {
                enum a2a_kind kind;
                const char *member, *name;
        } kinds[] = { { A2A_TASK, "task", "task" },
                      { A2A_MESSAGE, "message", "message" },
                      { A2A_STATUS, "statusUpdate", "status-update" },
                      { A2A_ARTIFACT, "artifactUpdate", "artifact-update" } };
        const char *name = json_str(result, "kind", NULL);

        for (size_t i = 0; i < COUNT(kinds); i++) {
                const json_t *inside = json_object_get(result, kinds[i].member);

                *kind = kinds[i].kind;
                if (name && strcmp(name, kinds[i].name) == 0)
                        return result;
                if (!name && json_is_object(inside))
                        return inside;
        }
        /* a task that was asked for stands alone in 1.0, too */
        *kind = json_str(result, "id", NULL) && json_object_get(result, "status") ? A2A_TASK
                                                                                  : A2A_NOTHING;
        return result;
}

void a2a_result_read(const json_t *result, struct a2a_result *out)
{
        const json_t *status;

        *out = (struct a2a_result){ 0 };
        result = find_kind(result, &out->kind);
        if (out->kind == A2A_NOTHING)
                return;
        status = json_object_get(result, "status");
        out->task = json_str(result, out->kind == A2A_TASK ? "id" : "taskId", NULL);
        out->context = json_str(result, "contextId", NULL);
        out->state = a2a_state_parse(json_str(status, "state", NULL));
        out->time = json_str(status, "timestamp", NULL);
        out->message = out->kind == A2A_MESSAGE ? result : json_object_get(status, "message");
        out->artifacts = list(result, "artifacts");
        out->history = list(result, "history");
        out->artifact = json_object_get(result, "artifact");
        out->append = json_flag(result, "append", false);
        out->metadata = json_object_get(result, "metadata");
}
