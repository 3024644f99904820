/*
 * schedule_tools: remind, schedule_list, schedule_cancel and message_person, for agents.
 *
 * An agent acts for the person who wrote last, in the chat of its turn. What others have elsewhere
 * it neither sees nor changes, unless it may reach everywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"
#include "schedule/notice.h"
#include "schedule/reach.h"
#include "schedule/reminders.h"
#include "schedule/schedule_private.h"

/* A call; strings are in the arena. */
struct tool_job {
        struct schedule *schedule;
        const struct schedule_conf *conf;
        struct arena arena;
        struct chat_caller by;
        const char *identity, *request_key;
        json_t *arguments;
        int64_t now_ms;
        platform_tool_fn *done;
        void *arg;
        struct buf result; /* JSON */
};

static const char *argument(const struct tool_job *j, const char *name)
{
        const char *text = json_str(j->arguments, name, NULL);

        return text && *text ? text : NULL;
}

static void on_answered(void *arg, const struct error *err)
{
        struct tool_job *j = arg;

        j->schedule->writes--;
        if (!err)
                schedule_wake(j->schedule);
        j->done(j->arg, err ? NULL : j->result.data, err);
        json_decref(j->arguments);
        buf_release(&j->result);
        arena_release(&j->arena);
        free(j);
}

static void start(struct schedule *s, const struct chat_caller *by, const struct tool_request *q,
                  store_fn *fn, platform_tool_fn *done, void *arg)
{
        struct tool_job *j = mem_zalloc(sizeof(*j));

        j->schedule = s;
        j->conf = s->conf;
        arena_init(&j->arena);
        j->by = *by;
        j->by.adapter = arena_strdup(&j->arena, by->adapter);
        j->by.platform = arena_strdup(&j->arena, by->platform);
        j->by.channel = arena_strdup(&j->arena, by->channel);
        j->by.thread = arena_strdup(&j->arena, by->thread);
        j->by.sender_id = arena_strdup(&j->arena, by->sender_id);
        j->by.sender_name = arena_strdup(&j->arena, by->sender_name);
        j->by.agent = arena_strdup(&j->arena, by->agent);
        j->by.trace = arena_strdup(&j->arena, by->trace);
        j->identity = reminder_identity(&j->arena, by->platform, by->sender_id);
        j->request_key = arena_strdup(&j->arena, q->request_key);
        j->arguments = q->arguments ? json_deep_copy(q->arguments) : json_object();
        j->now_ms = clock_wall_ms();
        j->done = done;
        j->arg = arg;
        buf_init(&j->result, 0);
        s->writes++;
        store_write(s->env.store, fn, on_answered, j);
}

/* Whom a call is for. -1: ERR_REFUSED for others, unless the agent reaches everywhere. */
static int find_person(struct store_tx *tx, const struct tool_job *j, const char *named,
                       int64_t *person, struct error *err)
{
        int64_t asker;

        if (reminder_person(tx, j->by.platform, j->by.sender_id, &asker, err) < 0)
                return -1;
        *person = asker;
        if (!named)
                return 0;
        if (reach_find_person(tx, named, person, err) != 1)
                return -1;
        if (*person != asker && !j->by.everywhere)
                return error_set(err, ERR_REFUSED,
                                 "this reaches only the person who asks; '%.60s' is another one",
                                 named);
        return 0;
}

static void write_result(struct tool_job *j, int64_t id, const struct schedule_row *row)
{
        struct buf when;

        buf_init(&when, 0);
        reminder_describe_time(row, j->now_ms, &when);
        buf_clear(&j->result);
        jsonw_open(&j->result, '{');
        row_json_id(&j->result, "id", "sch-", id);
        jsonw_str(&j->result, "when", when.data);
        jsonw_str(&j->result, "timezone", row->timezone);
        row_json_time(&j->result, "nextAt", row->next_ms);
        jsonw_str(&j->result, "then",
                  row->action == SCHEDULE_TURN ? "you get a turn with the text"
                                               : "the text is sent");
        jsonw_close(&j->result, '}');
        buf_release(&when);
}

/* ---- remind ---- */

static int write_remind(struct store_tx *tx, void *arg, struct error *err)
{
        struct tool_job *j = arg;
        const char *named = argument(j, "person");
        bool chat = strcmp(json_str(j->arguments, "to", "person"), "chat") == 0;
        bool wake = json_flag(j->arguments, "wake", false);
        struct reminder_wish wish = {
                .source = "reminder",
                .request_key = j->request_key,
                .name = wake ? "reminder" : NULL,
                .when = json_str(j->arguments, "when", ""),
                .text = json_str(j->arguments, "text", ""),
                .timezone = argument(j, "timezone"),
                .adapter = j->by.adapter,
                .channel = j->by.channel,
                .thread = j->by.thread,
                .action = wake ? SCHEDULE_TURN : SCHEDULE_MESSAGE,
                .agent = wake ? j->by.agent : NULL,
                .max_age_seconds = -1,
                .created_by = j->identity ? j->identity
                                          : arena_printf(&j->arena, "agent %s",
                                                         j->by.agent ? j->by.agent : "?"),
                .trace = j->by.trace,
                .now_ms = j->now_ms,
        };
        struct schedule_row row, *known = NULL;
        int64_t id;
        int rc = schedule_row_find(tx, j->request_key, &known, err);

        if (rc == 1) { /* the call is repeated after a crash */
                write_result(j, known->id, known);
                free(known);
                return 0;
        }
        if (rc < 0 || find_person(tx, j, named, &wish.person, err) < 0)
                return -1;
        if (named && !wake) /* wherever they are */
                wish.adapter = wish.channel = wish.thread = NULL;
        else if (chat)
                wish.person = 0;
        else if (j->by.chat != CHAT_DM && !wake)
                wish.mention = j->by.sender_id;
        wish.asked_by_self = !named && !chat;
        if (wake) /* it reaches a model, which must know whose words they are */
                wish.text = arena_printf(&j->arena, "Asked for by %s: %s",
                                         j->by.sender_name ? j->by.sender_name : wish.created_by,
                                         wish.text);
        if (reminder_make(tx, j->conf, &wish, &j->arena, &row, err) < 0 ||
            schedule_row_insert(tx, &row, &id, err) < 0)
                return -1;
        write_result(j, id, &row);
        return 0;
}

static void remind(struct schedule *s, const struct chat_caller *by, const struct tool_request *q,
                   platform_tool_fn *done, void *arg)
{
        start(s, by, q, write_remind, done, arg);
}

/* ---- schedule_list, schedule_cancel ---- */

static int viewer_of(struct store_tx *tx, const struct tool_job *j, struct reminder_viewer *out,
                     struct error *err)
{
        *out = (struct reminder_viewer){ .identity = j->identity,
                                         .adapter = j->by.adapter,
                                         .channel = j->by.channel,
                                         .direct = j->by.chat == CHAT_DM && j->identity,
                                         .shared = true,
                                         .everywhere = j->by.everywhere };
        return reminder_person(tx, j->by.platform, j->by.sender_id, &out->person, err);
}

static int read_list(struct store_tx *tx, void *arg, struct error *err)
{
        struct tool_job *j = arg;
        struct schedule_row *rows[REMINDERS_SHOWN];
        struct reminder_viewer v;
        bool more;
        int count;

        if (viewer_of(tx, j, &v, err) < 0)
                return -1;
        v.everywhere = v.everywhere && json_flag(j->arguments, "all", false);
        count = reminders_list(tx, &v, rows, &more, err);
        if (count < 0)
                return -1;
        buf_clear(&j->result);
        jsonw_open(&j->result, '[');
        for (int i = 0; i < count; i++) {
                row_json_schedule(&j->result, NULL, rows[i]);
                free(rows[i]);
        }
        if (more)
                jsonw_str(&j->result, NULL, "There are more.");
        jsonw_close(&j->result, ']');
        return 0;
}

static void list(struct schedule *s, const struct chat_caller *by, const struct tool_request *q,
                 platform_tool_fn *done, void *arg)
{
        start(s, by, q, read_list, done, arg);
}

static int write_cancel(struct store_tx *tx, void *arg, struct error *err)
{
        struct tool_job *j = arg;
        const char *text = json_str(j->arguments, "id", "");
        int64_t id = reminder_number(text);
        struct reminder_viewer v;
        struct schedule_row *row;

        if (id == 0)
                return error_set(err, ERR_INVALID,
                                 "id is '%.40s', but must be a number such as sch-12; "
                                 "schedule_list shows them",
                                 text);
        if (viewer_of(tx, j, &v, err) < 0 || reminder_check_cancel(tx, &v, id, &row, err) < 0)
                return -1;
        buf_clear(&j->result);
        jsonw_open(&j->result, '{');
        row_json_id(&j->result, "cancelled", "sch-", id);
        jsonw_str(&j->result, "text", row->text);
        jsonw_close(&j->result, '}');
        free(row);
        return schedule_row_cancel(tx, id, j->identity, j->now_ms, err) < 0 ? -1 : 0;
}

static void cancel(struct schedule *s, const struct chat_caller *by, const struct tool_request *q,
                   platform_tool_fn *done, void *arg)
{
        start(s, by, q, write_cancel, done, arg);
}

/* ---- message_person ---- */

static int write_notice(struct store_tx *tx, void *arg, struct error *err)
{
        struct tool_job *j = arg;
        struct notice_wish wish = { .text = json_str(j->arguments, "text", ""),
                                    .request_key = j->request_key,
                                    .created_by = arena_printf(&j->arena, "agent %s",
                                                               j->by.agent ? j->by.agent : "?"),
                                    .trace = j->by.trace,
                                    .now_ms = j->now_ms };
        const char *named = argument(j, "person");
        struct notice_receipt notice;
        int64_t person;

        if (find_person(tx, j, named, &person, err) < 0)
                return -1;
        if (person == 0)
                return error_set(err, ERR_MISSING, "nothing is known of the person who asks");
        wish.to = arena_printf(&j->arena, "per-%lld", (long long)person);
        wish.asked = !named;
        if (notice_add(tx, j->conf, &wish, &notice, err) < 0)
                return -1;
        buf_clear(&j->result);
        jsonw_open(&j->result, '{');
        row_json_id(&j->result, "id", "sch-", notice.schedule);
        jsonw_str(&j->result, "status", notice.not_before_ms ? "deferred" : "queued");
        if (notice.not_before_ms)
                row_json_time(&j->result, "notBefore", notice.not_before_ms);
        jsonw_close(&j->result, '}');
        return 0;
}

static void message_person(struct schedule *s, const struct chat_caller *by,
                           const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        start(s, by, q, write_notice, done, arg);
}

/* ---- the table ---- */

const struct schedule_tool reminder_tools[] = {
        { { .name = "remind",
            .help = "Send a text later, once or again and again: to the person who asks, in this "
                    "chat. With wake you get a turn with the text instead, for example to look "
                    "at a build in 30 minutes. The answer says which time was understood.",
            .parameters =
                    "{\"properties\":{"
                    "\"when\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"30m, in 2 "
                    "hours, tomorrow 9:00, friday 20:00, 2026-11-20T18:00:00+01:00, every monday "
                    "20:00, cron 0 9 * * 1-5\"},"
                    "\"text\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,"
                    "\"description\":\"What the person is told, or you with wake\"},"
                    "\"wake\":{\"type\":\"boolean\",\"description\":\"Give me a turn instead of "
                    "sending the text\"},"
                    "\"to\":{\"enum\":[\"person\",\"chat\"],\"description\":\"chat: for everybody "
                    "here, nobody is mentioned\"},"
                    "\"person\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"Somebody "
                    "else (per-3, telegram:42 or a name), wherever they are reached; only if you "
                    "may\"},"
                    "\"timezone\":{\"type\":\"string\",\"maxLength\":60,\"description\":\"Of when, "
                    "such as Europe/Berlin; default: the person's\"}},"
                    "\"required\":[\"when\",\"text\"]}" },
          remind },
        { { .name = "schedule_list",
            .help = "List reminders and other schedules of this chat, and in a direct chat those "
                    "of the person elsewhere, by the time they are due.",
            .parameters = "{\"properties\":{\"all\":{\"type\":\"boolean\",\"description\":\"Those "
                          "of all chats; only if you may\"}}}" },
          list },
        { { .name = "schedule_cancel",
            .help = "Cancel a reminder or schedule that schedule_list shows.",
            .parameters = "{\"properties\":{\"id\":{\"type\":\"string\",\"maxLength\":40,"
                          "\"description\":\"such as sch-12\"}},\"required\":[\"id\"]}",
            .writes = true },
          cancel },
        { { .name = "message_person",
            .help = "Send a message to a person wherever they are reached best, on any platform: "
                    "to the one who asks, or to somebody else if you may. Quiet hours of somebody "
                    "else put it off, and their daily cap may refuse it.",
            .parameters = "{\"properties\":{"
                          "\"person\":{\"type\":\"string\",\"maxLength\":200,\"description\":"
                          "\"per-3, telegram:42 or a name; default: the one who asks\"},"
                          "\"text\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,"
                          "\"description\":\"Markdown\"}},"
                          "\"required\":[\"text\"]}",
            .writes = true },
          message_person },
        { { NULL }, NULL },
};
