#include "remote/session_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TYPE_MAX     40 /* bytes of an event type */
#define TEXT_MAX     1024
#define MICROUSD     1e6
#define COST_MAX_USD 1e6 /* of one turn; more is a mistake of the program */
#define TOKENS_MAX   ((int64_t)1000000000)

static const struct {
        const char *name;
        enum session_event_kind kind;
        bool is_urgent;
} kinds[] = {
        { "session_start", SESSION_EVENT_START, false },
        { "session_update", SESSION_EVENT_START, false },
        { "turn_end", SESSION_EVENT_TURN_END, true },
        { "session_end", SESSION_EVENT_END, true },
        { "error", SESSION_EVENT_OTHER, true },
        { "approval_request", SESSION_EVENT_APPROVAL_REQUEST, true },
        { "approval_resolved", SESSION_EVENT_APPROVAL_RESOLVED, true },
};

static void set_kind(struct session_event *e, const char *type)
{
        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (strcmp(kinds[i].name, type) == 0) {
                        e->kind = kinds[i].kind;
                        e->is_urgent = kinds[i].is_urgent;
                }
        }
}

bool session_id_is_valid(const char *id)
{
        size_t n = strlen(id), step;
        uint32_t cp;

        if (n == 0 || n > SESSION_ID_MAX)
                return false;
        for (size_t i = 0; i < n; i += step) {
                step = utf8_decode(id + i, n - i, &cp);
                if (utf8_is_control(cp))
                        return false;
        }
        return true;
}

static bool type_is_valid(const char *type)
{
        size_t n = strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_");

        return n > 0 && n <= TYPE_MAX && !type[n] && *type >= 'a' && *type <= 'z';
}

/* A string, or a number as text: some programs number their ids. */
static const char *id_member(const json_t *object, const char *key, struct arena *a)
{
        const json_t *value = json_object_get(object, key);

        if (json_is_integer(value))
                return arena_printf(a, "%lld", (long long)json_integer_value(value));
        return json_string_value(value);
}

/* Without its end where it is too long for a row. */
static const char *short_text(const json_t *object, const char *key, struct arena *a)
{
        const char *text = json_str(object, key, NULL);
        size_t n = text ? utf8_prefix(text, strlen(text), UTF8_BYTES, TEXT_MAX) : 0;

        return n > 0 ? arena_printf(a, "%.*s", (int)n, text) : NULL;
}

static int64_t count_member(const json_t *usage, const char *key)
{
        int64_t n = json_int(usage, key, 0);

        return n < 0 || n > TOKENS_MAX ? 0 : n;
}

int64_t session_event_tokens(const json_t *usage)
{
        int64_t total = count_member(usage, "totalTokens");

        return total > 0 ? total : count_member(usage, "input") + count_member(usage, "output");
}

/* A number of dollars, or an object with their total. */
int64_t session_event_cost(const json_t *usage)
{
        const json_t *cost = json_object_get(usage, "cost");
        double usd;

        if (json_is_object(cost))
                cost = json_object_get(cost, "total");
        usd = json_number_value(cost);
        return usd > 0 && usd < COST_MAX_USD ? (int64_t)(usd * MICROUSD + 0.5) : 0;
}

static const char *verdict(const json_t *object, const char *key)
{
        const char *said = json_str(object, key, "");

        return strcmp(said, "allow") == 0 ? "allow" : strcmp(said, "deny") == 0 ? "deny" : NULL;
}

static void read_metadata(struct session_event *e, const json_t *m, struct arena *a)
{
        const json_t *usage = json_object_get(m, "usage");

        switch (e->kind) {
        case SESSION_EVENT_START:
                e->program = short_text(m, "program", a);
                e->host = short_text(m, "host", a);
                e->cwd = short_text(m, "cwd", a);
                e->title = short_text(m, "title", a);
                e->model = short_text(m, "model", a);
                break;
        case SESSION_EVENT_TURN_END:
                e->tokens = session_event_tokens(usage);
                e->cost_microusd = session_event_cost(usage);
                e->is_urgent = e->ends_turn = json_flag(m, "final", true);
                break;
        case SESSION_EVENT_APPROVAL_REQUEST:
        case SESSION_EVENT_APPROVAL_RESOLVED:
                e->approval = id_member(m, "approval_id", a);
                e->reason = short_text(m, "reason", a);
                e->fallback = verdict(m, "default");
                e->decision = verdict(m, "decision");
                e->by = short_text(m, "by", a);
                e->timeout_ms = json_int(m, "timeoutMs", 0);
                break;
        case SESSION_EVENT_END:
        case SESSION_EVENT_OTHER:
                break;
        }
}

static const char *payload_of(const struct session_event *e, const json_t *said,
                              const json_t *metadata, const char *event_id, struct arena *a)
{
        char *more = metadata ? json_text(metadata) : NULL;
        struct buf json;
        char *copy;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "sessionId", e->session);
        jsonw_opt(&json, "toolName", e->tool);
        jsonw_str(&json, "content", e->content);
        if (more && strlen(more) <= SESSION_METADATA_MAX)
                jsonw_raw(&json, "metadata", more);
        else if (more)
                jsonw_bool(&json, "metadataLeftOut", true);
        jsonw_opt(&json, "timestamp", short_text(said, "timestamp", a));
        jsonw_opt(&json, "eventId", event_id);
        jsonw_close(&json, '}');
        copy = arena_alloc(a, json.len + 1);
        memcpy(copy, json.data, json.len + 1);
        buf_release(&json);
        free(more);
        return copy;
}

static int read_event(const json_t *said, struct session_event *e, struct arena *a,
                      struct error *err)
{
        const json_t *metadata = json_object_get(said, "metadata");
        const json_t *content = json_object_get(said, "content");
        const char *type = json_str(said, "event_type", "");
        const char *event_id = id_member(said, "event_id", a);

        if (!json_is_object(said))
                return error_set(err, ERR_INVALID, "expected an object");
        e->session = id_member(said, "session_id", a);
        if (!e->session || !session_id_is_valid(e->session))
                return error_set(err, ERR_INVALID,
                                 "session_id: expected a text of 1 to %d bytes without control "
                                 "characters",
                                 SESSION_ID_MAX);
        if (!type_is_valid(type))
                return error_set(err, ERR_INVALID,
                                 "event_type: expected up to %d lower-case letters, digits and "
                                 "underscores, such as tool_call",
                                 TYPE_MAX);
        if (event_id && !session_id_is_valid(event_id))
                return error_set(err, ERR_INVALID,
                                 "event_id: expected a text of 1 to %d bytes without control "
                                 "characters",
                                 SESSION_ID_MAX);
        if (content && !json_is_string(content) && !json_is_null(content))
                return error_set(err, ERR_INVALID, "content: expected a string");
        if (json_string_length(content) > SESSION_CONTENT_MAX)
                return error_set(err, ERR_INVALID, "content: too long (at most %d bytes)",
                                 SESSION_CONTENT_MAX);
        set_kind(e, type);
        e->type = arena_printf(a, "session.%s", type);
        e->content = json_is_string(content) ? json_string_value(content) : "";
        e->tool = short_text(said, "tool_name", a);
        metadata = json_is_object(metadata) ? metadata : NULL;
        read_metadata(e, metadata, a);
        if ((e->kind == SESSION_EVENT_APPROVAL_REQUEST ||
             e->kind == SESSION_EVENT_APPROVAL_RESOLVED) &&
            (!e->approval || !session_id_is_valid(e->approval)))
                return error_set(err, ERR_INVALID,
                                 "metadata.approval_id: expected a text of 1 to %d bytes",
                                 SESSION_ID_MAX);
        /* its length, because ids may contain colons */
        if (event_id)
                e->key = arena_printf(a, "session:%zu:%s:%s", strlen(e->session), e->session,
                                      event_id);
        e->payload = payload_of(e, said, metadata, event_id, a);
        e->content = arena_strdup(a, e->content);
        e->session = arena_strdup(a, e->session);
        e->approval = arena_strdup(a, e->approval);
        return 0;
}

int session_events_read(const json_t *body, struct session_events *out, struct error *err)
{
        bool many = json_is_array(body);
        size_t n = many ? json_array_size(body) : 1;

        *out = (struct session_events){ 0 };
        arena_init(&out->arena);
        if (n == 0 || n > SESSION_EVENTS_MAX)
                return error_set(err, ERR_INVALID, "expected an event or a list of 1 to %d",
                                 SESSION_EVENTS_MAX);
        out->items = arena_alloc(&out->arena, n * sizeof(*out->items));
        for (; out->count < n; out->count++) {
                const json_t *said = many ? json_array_get(body, out->count) : body;
                struct session_event *e = &out->items[out->count];

                *e = (struct session_event){ 0 };
                if (read_event(said, e, &out->arena, err) == 0)
                        continue;
                if (many) {
                        char text[sizeof(err->text)];

                        snprintf(text, sizeof(text), "%s", err->text);
                        return error_set(err, ERR_INVALID, "[%zu]%s%.400s", out->count,
                                         strncmp(text, "expected", 8) == 0 ? ": " : ".", text);
                }
                return -1;
        }
        return 0;
}

void session_events_release(struct session_events *e)
{
        arena_release(&e->arena);
        e->items = NULL;
        e->count = 0;
}
