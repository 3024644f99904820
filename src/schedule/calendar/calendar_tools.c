/*
 * calendar_tools: the calendar's tools for agents. They act for the person who wrote last, with
 * that person's rights.
 */
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "schedule/calendar/calendar_private.h"

#define EVENT_PROPERTY                                                                          \
        "\"event\":{\"type\":\"string\",\"description\":\"Its number, such as cal-3. Without: " \
        "the only one that is planned in this chat.\"}"
#define FIELD_PROPERTIES                                                                           \
        "\"title\":{\"type\":\"string\",\"maxLength\":100},"                                       \
        "\"when\":{\"type\":\"string\",\"description\":\"When it begins: friday 20:00, tomorrow "  \
        "18:30, 2026-11-20 18:00, or with an offset 2026-11-20T18:00:00+01:00.\"},"                \
        "\"until\":{\"type\":\"string\",\"description\":\"When it ends, 23:00, or how long it "    \
        "takes, 3h. Two hours if it is not said.\"},"                                              \
        "\"place\":{\"type\":\"string\",\"maxLength\":100},"                                       \
        "\"description\":{\"type\":\"string\",\"maxLength\":1000},"                                \
        "\"seats\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000,\"description\":\"How "    \
        "many can come; others wait until a seat is free. 0: no limit.\"},"                        \
        "\"remind_minutes\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":43200,"                \
        "\"description\":\"Reminder so long before it begins; 60 if it is not said, 0: none.\"},"  \
        "\"timezone\":{\"type\":\"string\",\"description\":\"Of the times, such as Europe/Berlin." \
        " The person's own if it is not said.\"}"
#define WHO_PROPERTY                                                                              \
        "\"who\":{\"type\":\"array\",\"maxItems\":50,\"items\":{\"type\":\"string\"},"            \
        "\"description\":\"People: discord:42, telegram:42, slack:U1, per-3, @name, or the name " \
        "of somebody without an account.\"}"
#define OBJECT(properties, required)                                                       \
        "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]" \
        ",\"additionalProperties\":false}"

struct tool_run {
        platform_tool_fn *done;
        void *arg;
};

static void on_done(void *arg, struct calendar_request *q, const struct error *err)
{
        struct tool_run *t = arg;
        struct buf b;

        if (err || calendar_request_is_refused(q)) {
                t->done(t->arg, NULL, err ? err : &q->refusal);
                free(t);
                return;
        }
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "message", q->text.data ? q->text.data : "");
        if (q->view.row)
                calendar_view_json(&b, "event", &q->view);
        jsonw_close(&b, '}');
        t->done(t->arg, b.data, NULL);
        buf_release(&b);
        free(t);
}

static const char *text_of(struct calendar_request *q, const json_t *arguments, const char *key)
{
        return arena_strdup(&q->arena, json_string_value(json_object_get(arguments, key)));
}

static void read_fields(struct calendar_request *q, const json_t *arguments)
{
        struct calendar_fields *f = &q->fields;
        const json_t *seats = json_object_get(arguments, "seats");
        const json_t *remind = json_object_get(arguments, "remind_minutes");

        f->title = text_of(q, arguments, "title");
        f->when = text_of(q, arguments, "when");
        f->until = text_of(q, arguments, "until");
        f->place = text_of(q, arguments, "place");
        f->description = text_of(q, arguments, "description");
        f->timezone = text_of(q, arguments, "timezone");
        if (json_is_integer(seats))
                f->capacity = json_integer_value(seats);
        if (json_is_integer(remind))
                f->reminder_ms = json_integer_value(remind) * 60000;
}

static void call(struct schedule *s, enum calendar_action action, const struct chat_caller *by,
                 const struct tool_request *request, platform_tool_fn *done, void *arg)
{
        struct calendar_request *q = calendar_request_for(s, action);
        const json_t *a = request->arguments, *who = json_object_get(a, "who"), *item;
        const char *event = json_string_value(json_object_get(a, "event"));
        const char *answer = json_string_value(json_object_get(a, "answer"));
        struct tool_run *t = mem_zalloc(sizeof(*t));
        size_t i;

        *t = (struct tool_run){ done, arg };
        calendar_request_set_by(q, by);
        if (event)
                q->event = strtoll(strncmp(event, "cal-", 4) == 0 ? event + 4 : event, NULL, 10);
        if (event && q->event <= 0)
                q->event = INT64_MAX; /* there is no such event */
        if (answer)
                calendar_answer_parse(answer, &q->answer);
        read_fields(q, a);
        if (json_is_string(who))
                calendar_request_add_person(q, json_string_value(who), json_string_length(who));
        json_array_foreach(who, i, item)
                if (json_is_string(item))
                        calendar_request_add_person(q, json_string_value(item),
                                                    json_string_length(item));
        if (request->request_key)
                q->request_key = arena_printf(&q->arena, "tool:%s", request->request_key);
        calendar_submit(s, q, on_done, t);
}

#define TOOL(name, action)                                                                \
        static void name(struct schedule *s, const struct chat_caller *by,                \
                         const struct tool_request *q, platform_tool_fn *done, void *arg) \
        {                                                                                 \
                call(s, action, by, q, done, arg);                                        \
        }
TOOL(event_create, CALENDAR_CREATE)
TOOL(event_list, CALENDAR_UPCOMING)
TOOL(event_show, CALENDAR_SHOW)
TOOL(event_change, CALENDAR_CHANGE)
TOOL(event_invite, CALENDAR_INVITE)
TOOL(event_answer, CALENDAR_ANSWER)
TOOL(event_cancel, CALENDAR_CANCEL)

const struct schedule_tool calendar_tools[] = {
        { { .name = "event_create",
            .help = "Plan an event of this chat, such as a game night: it is announced here with "
                    "buttons to answer, people are reminded, seats and waiting list are kept.",
            .parameters = OBJECT(FIELD_PROPERTIES "," WHO_PROPERTY, "\"title\",\"when\""),
            .writes = true },
          event_create },
        { { .name = "event_list",
            .help = "List the events that are planned in this chat.",
            .parameters = OBJECT("", "") },
          event_list },
        { { .name = "event_show",
            .help = "Show an event and who comes.",
            .parameters = OBJECT(EVENT_PROPERTY, "") },
          event_show },
        { { .name = "event_change",
            .help = "Change an event; only what is given changes. Members are told.",
            .parameters = OBJECT(EVENT_PROPERTY "," FIELD_PROPERTIES, ""),
            .writes = true },
          event_change },
        { { .name = "event_invite",
            .help = "Invite people to an event.",
            .parameters = OBJECT(EVENT_PROPERTY "," WHO_PROPERTY, "\"who\""),
            .writes = true },
          event_invite },
        { { .name = "event_answer",
            .help = "Answer an invitation for the person who wrote last, or for somebody without "
                    "an account.",
            .parameters = OBJECT(
                    EVENT_PROPERTY
                    ",\"answer\":{\"type\":\"string\",\"enum\":[\"yes\",\"no\",\"maybe\"]},"
                    "\"who\":{\"type\":\"string\",\"description\":\"The name of somebody without "
                    "an account; without: the person who wrote last.\"}",
                    "\"answer\""),
            .writes = true },
          event_answer },
        { { .name = "event_cancel",
            .help = "Cancel an event. Members are told.",
            .parameters = OBJECT(EVENT_PROPERTY, ""),
            .writes = true },
          event_cancel },
        { { NULL }, NULL },
};
