/* The calendar: events that people plan together, their members, and what calendars subscribe to.
 */
#include "schedule/calendar/calendar.h"

#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define ICS_TYPE "text/calendar; charset=utf-8"

static const char *const states[] = { "planned", "cancelled", NULL };
static const char *const statuses[] = { "invited", "yes", "no", "maybe", NULL };

/* ---- reading ---- */

struct events_ask {
        int64_t after, limit, from_ms, to_ms;
        const char *state, *adapter, *channel;
};

static const struct field events_query[] = {
        { "cursor", FIELD_ID, .prefix = "cal-", FIELD_AT(events_ask, after),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(events_ask),
        { "from", FIELD_TIME, FIELD_AT(events_ask, from_ms),
          .help = "Only events that end after this time; absent: now." },
        { "to", FIELD_TIME, FIELD_AT(events_ask, to_ms),
          .help = "Only events that begin before this time." },
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(events_ask, state),
          .help = "Only events in this state." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(events_ask, adapter),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(events_ask, channel),
          .help = "Only events of this channel." },
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct events_ask *ask = j->query;
        struct calendar_filter filter = { .adapter = ask->adapter,
                                          .channel = ask->channel,
                                          .adapters = j->caller->adapters,
                                          .ends_after_ms = ask->from_ms,
                                          .starts_before_ms = ask->to_ms,
                                          .after_id = ask->after,
                                          .limit = ask->limit + 1 };
        int64_t *ids = mem_array((size_t)ask->limit + 1, sizeof(*ids));
        struct calendar_event_row row, *last = NULL;
        enum calendar_state state;
        struct store_stmt *s;
        size_t count = 0;
        struct page p;
        int rc = ask->after > 0 ? calendar_row_get(tx, ask->after, &last, err) : 0;

        if (last)
                filter.after_ms = last->starts_ms;
        free(last);
        if (ask->state && calendar_state_parse(ask->state, &state))
                filter.state = &state;
        if (rc >= 0) {
                s = calendar_row_list(tx, &filter);
                while ((rc = calendar_row_next(s, &row, err)) == 1)
                        ids[count++] = row.id;
        }
        page_begin(&p, &j->json, ask->limit);
        for (size_t i = 0; rc >= 0 && i < count; i++) {
                struct calendar_view v;

                if (!page_add(&p, ids[i]))
                        continue;
                rc = calendar_view_load(tx, ids[i], &v, err);
                if (rc == 1)
                        calendar_view_json(p.json, NULL, &v);
                calendar_view_release(&v);
        }
        page_end(&p, "cal-");
        free(ids);
        return rc < 0 ? -1 : 0;
}

static void list(struct http_exchange *x)
{
        struct events_ask ask = { .limit = 50, .from_ms = clock_wall_ms() };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int load(struct store_tx *tx, int64_t id, struct calendar_view *v, struct error *err)
{
        int rc = calendar_view_load(tx, id, v, err);

        if (rc == 0)
                error_set(err, ERR_MISSING, "there is no event 'cal-%lld'", (long long)id);
        return rc == 1 ? 0 : -1;
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct calendar_view v;
        int rc = load(tx, j->id, &v, err);

        if (rc == 0) {
                jsonw_open(&j->json, '{');
                calendar_view_json(&j->json, "data", &v);
                jsonw_close(&j->json, '}');
        }
        calendar_view_release(&v);
        return rc;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "cal-", "event", read_one);
}

/* ---- iCalendar ---- */

struct ics_job {
        struct api_job job; /* first */
        int64_t event;      /* 0: the feed */
        char *token;
        int64_t now_ms;
        struct buf text;
};

static int read_ics(struct store_tx *tx, void *arg, struct error *err)
{
        struct ics_job *j = arg;
        struct calendar_view v;
        int rc;

        buf_clear(&j->text);
        if (j->event == 0) {
                rc = calendar_feed_check(tx, j->token, err);
                if (rc == 0)
                        return error_set(err, ERR_MISSING, "there is no such feed");
                return rc < 0 ? -1 : calendar_feed_write(tx, j->now_ms, &j->text, err);
        }
        rc = load(tx, j->event, &v, err);
        if (rc == 0) {
                calendar_ics_begin(&j->text, ICS_PUBLISH, NULL);
                calendar_view_ics(&j->text, ICS_PUBLISH, &v);
                calendar_ics_end(&j->text);
        }
        calendar_view_release(&v);
        return rc;
}

static void on_ics(void *arg, const struct error *err)
{
        struct ics_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x) {
                size_t n = j->text.len;

                http_answer_take(x, 200, ICS_TYPE, buf_take(&j->text), n);
        }
        buf_release(&j->text);
        free(j->token);
        free(j);
}

static void answer_ics(struct http_exchange *x, int64_t event, const char *token)
{
        struct ics_job *j = mem_zalloc(sizeof(*j));

        j->event = event;
        j->token = mem_strdup(token);
        j->now_ms = clock_wall_ms();
        buf_init(&j->text, 0);
        api_job_begin(&j->job, x);
        store_read(api_of(x)->env.store, read_ics, on_ics, j);
}

static void show_ics(struct http_exchange *x)
{
        int64_t id = request_id(x, "cal-", "event");

        if (id >= 0)
                answer_ics(x, id, NULL);
}

struct feed_ask {
        const char *token;
};

static const struct field feed_query[] = {
        { "token", FIELD_STRING, .required = true, .min = 1, .max = 100, FIELD_AT(feed_ask, token),
          .help = "The token of the feed's URL." },
        FIELD_END,
};

static void feed(struct http_exchange *x)
{
        struct feed_ask ask = { 0 };
        struct body b;

        if (request_query(x, &b, &ask) < 0)
                return;
        answer_ics(x, 0, ask.token);
        body_release(&b);
}

struct renewal {
        struct write_job job; /* first */
        char token[CALENDAR_TOKEN_SIZE];
};

static int write_renewal(struct store_tx *tx, void *arg, struct error *err)
{
        return calendar_feed_renew(tx, ((struct renewal *)arg)->token, err);
}

static void on_renewed(void *arg, const struct error *err)
{
        struct renewal *v = arg;
        char *path = mem_printf("/api/v2/calendar/feed.ics?token=%s", v->token);

        jsonw_open(&v->job.data, '{');
        jsonw_str(&v->job.data, "token", v->token);
        jsonw_str(&v->job.data, "path", path);
        jsonw_close(&v->job.data, '}');
        free(path);
        write_job_done(v, err);
}

static void renew(struct http_exchange *x)
{
        struct renewal *v = mem_zalloc(sizeof(*v));

        write_job_init(&v->job, x, 201);
        store_write(api_of(x)->env.store, write_renewal, on_renewed, v);
}

static int write_disabled(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return calendar_feed_disable(tx, err);
}

static void on_disabled(void *arg, const struct error *err)
{
        struct write_job *j = arg;

        jsonw_open(&j->data, '{');
        jsonw_str(&j->data, "state", "off");
        jsonw_close(&j->data, '}');
        write_job_done(j, err);
}

static void disable(struct http_exchange *x)
{
        store_write(api_of(x)->env.store, write_disabled, on_disabled, write_job_new(x, 200));
}

/* ---- changing ---- */

struct event_ask {
        const char *title, *description, *place, *when, *until, *timezone;
        int64_t starts_ms, ends_ms, capacity, reminder_minutes;
        const char *adapter, *channel, *thread, *guild;
        struct field_list invite;
};

/* clang-format off */
#define EVENT_FIELDS(needs)                                                                        \
        { "title", FIELD_STRING, .required = needs, .min = 1, .max = 400,                          \
          FIELD_AT(event_ask, title), .help = "Up to 100 characters." },                           \
        { "when", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(event_ask, when),                   \
          .help = "When it begins, as people write it: friday 20:00. This or startsAt." },         \
        { "startsAt", FIELD_TIME, FIELD_AT(event_ask, starts_ms),                                  \
          .help = "When it begins." },                                                             \
        { "until", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(event_ask, until),                 \
          .help = "When it ends, 23:00, or how long it takes, 3h." },                              \
        { "endsAt", FIELD_TIME, FIELD_AT(event_ask, ends_ms),                                      \
          .help = "When it ends; absent: two hours after it begins, or as long as before." },      \
        { "timezone", FIELD_STRING, .min = 1, .max = 60, FIELD_AT(event_ask, timezone),            \
          .help = "In which it is shown; absent: schedule.timezone." },                            \
        { "place", FIELD_STRING, .max = 400, FIELD_AT(event_ask, place),                           \
          .help = "Up to 100 characters; empty: none." },                                          \
        { "description", FIELD_STRING, .max = 4000, FIELD_AT(event_ask, description),              \
          .help = "Up to 1000 characters; empty: none." },                                         \
        { "capacity", FIELD_INT, .min = 0, .max = 1000, FIELD_AT(event_ask, capacity),             \
          .help = "Seats; who comes later waits. 0: no limit." },                                  \
        { "reminderMinutes", FIELD_INT, .min = 0, .max = 43200,                                    \
          FIELD_AT(event_ask, reminder_minutes),                                                   \
          .help = "A reminder so long before it begins, 60 if it is not said. 0: none." }
/* clang-format on */
static const struct field create_fields[] = {
        EVENT_FIELDS(true),
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(event_ask, adapter),
          .help = "The adapter where it is announced; absent: nowhere." },
        { "channelId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(event_ask, channel),
          .help = "The chat where it is announced." },
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(event_ask, thread),
          .help = "A thread of it." },
        { "guildId", FIELD_STRING, .min = 1, .max = 64, FIELD_AT(event_ask, guild),
          .help = "Discord's server where it is a scheduled event, too; absent: "
                  "that of the chat." },
        { "invite", FIELD_TEXTS, .max = 50, FIELD_AT(event_ask, invite),
          .help = "People: per-3, discord:42, or a name." },
        FIELD_END,
};
static const struct field change_fields[] = { EVENT_FIELDS(false), FIELD_END };

static void on_done(void *arg, struct calendar_request *q, const struct error *err)
{
        struct write_job *j = arg;

        if (!err && calendar_request_is_refused(q))
                err = &q->refusal;
        if (!err)
                calendar_view_json(&j->data, NULL, &q->view);
        write_job_done(j, err);
}

/* By a program: it may do everything that its key reaches. */
static struct calendar_request *request_by(struct http_exchange *x, enum calendar_action action)
{
        struct calendar_request *q = calendar_request_for(api_of(x)->env.schedule, action);
        char trace[ID_TRACE_SIZE];

        q->by.trusted = true;
        q->by.name = arena_strdup(&q->arena, caller_name(x));
        if (id_trace_of_parent(http_header(x, "traceparent"), trace))
                q->by.trace = arena_strdup(&q->arena, trace);
        return q;
}

static void set_fields(struct calendar_request *q, const struct event_ask *ask)
{
        struct arena *a = &q->arena;

        q->fields = (struct calendar_fields){
                .title = arena_strdup(a, ask->title),
                .description = arena_strdup(a, ask->description),
                .place = arena_strdup(a, ask->place),
                .when = arena_strdup(a, ask->when),
                .until = arena_strdup(a, ask->until),
                .timezone = arena_strdup(a, ask->timezone),
                .starts_ms = ask->starts_ms,
                .ends_ms = ask->ends_ms,
                .capacity = ask->capacity,
                .reminder_ms = ask->reminder_minutes < 0 ? -1 : ask->reminder_minutes * 60000,
        };
}

static void create(struct http_exchange *x)
{
        struct schedule *s = api_of(x)->env.schedule;
        struct event_ask ask = { .capacity = -1, .reminder_minutes = -1 };
        struct calendar_request *q;
        const char *key, *platform = NULL;
        char *own;
        struct body b;

        if (request_key(x, &key) < 0 || request_body(x, &b, &ask) < 0)
                return;
        if (!ask.adapter != !ask.channel) {
                body_mistake(&b, ask.channel ? "instanceId" : "channelId",
                             "instanceId and channelId belong together");
                reply_mistakes(x, &b);
        } else if (!ask.adapter && caller_of(x)->adapters) {
                reply_error(x, 403, "FORBIDDEN", NULL,
                            "a key that is restricted to adapters must name a chat");
        } else if (ask.adapter && !request_reaches(x, ask.adapter)) {
                ; /* answered */
        } else if (ask.adapter && !(platform = calendar_platform_of(s, ask.adapter))) {
                reply_missing(x, "instance", ask.adapter);
        } else {
                q = request_by(x, CALENDAR_CREATE);
                set_fields(q, &ask);
                q->by.adapter = arena_strdup(&q->arena, ask.adapter);
                q->by.platform = arena_strdup(&q->arena, platform);
                q->by.channel = arena_strdup(&q->arena, ask.channel);
                q->by.thread = arena_strdup(&q->arena, ask.thread);
                q->by.guild = arena_strdup(&q->arena, ask.guild);
                for (size_t i = 0; i < ask.invite.count; i++) {
                        const char *who = ((const char *const *)ask.invite.items)[i];

                        calendar_request_add_person(q, who, strlen(who));
                }
                own = key ? request_own_key(x, key) : NULL;
                if (own)
                        q->request_key = arena_printf(&q->arena, "api:%s", own);
                free(own);
                calendar_submit(s, q, on_done, write_job_new(x, 201));
        }
        body_release(&b);
}

static void change(struct http_exchange *x)
{
        struct event_ask ask = { .capacity = -1, .reminder_minutes = -1 };
        int64_t id = request_id(x, "cal-", "event");
        struct calendar_request *q;
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        q = request_by(x, CALENDAR_CHANGE);
        q->event = id;
        set_fields(q, &ask);
        calendar_submit(api_of(x)->env.schedule, q, on_done, write_job_new(x, 200));
        body_release(&b);
}

static void cancel(struct http_exchange *x)
{
        int64_t id = request_id(x, "cal-", "event");
        struct calendar_request *q;

        if (id < 0)
                return;
        q = request_by(x, CALENDAR_CANCEL);
        q->event = id;
        calendar_submit(api_of(x)->env.schedule, q, on_done, write_job_new(x, 200));
}

/* ---- members ---- */

struct member_ask {
        const char *who, *status;
};

static const struct field member_fields[] = {
        { "who", FIELD_STRING, .required = true, .min = 1, .max = 200, FIELD_AT(member_ask, who),
          .help = "per-3, discord:42, telegram:42, slack:U1, or a name." },
        { "status", FIELD_CHOICE, .choices = statuses, FIELD_AT(member_ask, status),
          .fallback = "\"invited\"",
          .help = "invited: they get an invitation. yes: they wait if all seats are taken." },
        FIELD_END,
};

static void put_member(struct http_exchange *x)
{
        struct member_ask ask = { .status = "invited" };
        int64_t id = request_id(x, "cal-", "event");
        struct calendar_request *q;
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        q = request_by(x, strcmp(ask.status, "invited") == 0 ? CALENDAR_INVITE : CALENDAR_ANSWER);
        q->event = id;
        calendar_answer_parse(ask.status, &q->answer);
        calendar_request_add_person(q, ask.who, strlen(ask.who));
        calendar_submit(api_of(x)->env.schedule, q, on_done, write_job_new(x, 200));
        body_release(&b);
}

static void remove_member(struct http_exchange *x)
{
        const char *who = http_param(x, "member");
        int64_t id = request_id(x, "cal-", "event");
        struct calendar_request *q;

        if (id < 0)
                return;
        q = request_by(x, CALENDAR_REMOVE);
        q->event = id;
        calendar_request_add_person(q, who, strlen(who));
        calendar_submit(api_of(x)->env.schedule, q, on_done, write_job_new(x, 200));
}

#define EVENT_ANSWER "{\"data\": event}"

const struct route calendar_routes[] = {
        { "GET", "/api/v2/calendar/events", SCOPE_READ, list, REACH_LIST,
          .summary = "Events that people plan together, those that have not ended, by their start.",
          .query = events_query, .status = 200, .answer = ROUTE_PAGE " of events." },
        { "POST", "/api/v2/calendar/events", SCOPE_WRITE, create, REACH_HANDLER,
          .summary = "Plan an event. With a chat it is announced there, with buttons to answer. "
                     "With the header Idempotency-Key a repeated request plans one event.",
          .body = create_fields, .status = 201, .answer = EVENT_ANSWER,
          .example = ROUTE_JSON({
                  "title" : "Catan",
                  "when" : "friday 20:00",
                  "place" : "Ann's",
                  "capacity" : 4,
                  "instanceId" : "discord",
                  "channelId" : "42"
          }) },
        { "GET", "/api/v2/calendar/events/:id", SCOPE_READ, show, REACH_ROW, row_scope_calendar,
          .summary = "One event with its members.", .status = 200,
          .answer = "{\"data\": {\"id\": \"cal-3\", \"title\", \"description\", \"place\", "
                    "\"startsAt\", \"endsAt\", \"timezone\", \"capacity\", \"reminderMinutes\", "
                    "\"state\", \"instanceId\", \"channelId\", \"threadId\", \"messageId\", "
                    "\"platformEventId\", \"organizer\", \"members\": [{\"id\", \"userId\", "
                    "\"externalSource\", \"externalId\", \"displayName\", \"status\", "
                    "\"since\"}], ...}}" },
        { "PATCH", "/api/v2/calendar/events/:id", SCOPE_WRITE, change, REACH_ROW,
          row_scope_calendar, .summary = "Change it; members are told a new time or place.",
          .body = change_fields, .status = 200, .answer = EVENT_ANSWER,
          .example = ROUTE_JSON({ "when" : "saturday 20:00" }) },
        { "DELETE", "/api/v2/calendar/events/:id", SCOPE_WRITE, cancel, REACH_ROW,
          row_scope_calendar, .summary = "Cancel it; members are told.", .status = 200,
          .answer = EVENT_ANSWER },
        { "GET", "/api/v2/calendar/events/:id/ics", SCOPE_READ, show_ics, REACH_ROW,
          row_scope_calendar, .summary = "The event as an iCalendar file.", .status = 200,
          .answer = "An iCalendar file.", .content_type = "text/calendar" },
        { "POST", "/api/v2/calendar/events/:id/members", SCOPE_WRITE, put_member, REACH_ROW,
          row_scope_calendar, .summary = "Invite somebody, or set their answer.",
          .body = member_fields, .status = 200, .answer = EVENT_ANSWER,
          .example = ROUTE_JSON({ "who" : "discord:42", "status" : "yes" }) },
        { "DELETE", "/api/v2/calendar/events/:id/members/:member", SCOPE_WRITE, remove_member,
          REACH_ROW, row_scope_calendar,
          .summary = "Remove a member, named as above or by number (mem-7). Who waits gets the "
                     "seat.",
          .status = 200, .answer = EVENT_ANSWER },
        { "POST", "/api/v2/calendar/feed", SCOPE_ADMIN, renew, REACH_ALL,
          .summary = "Make a new URL for the feed of all events; the one before stops working. The "
                     "token is shown once.",
          .status = 201, .answer = "{\"data\": {\"token\", \"path\"}}" },
        { "DELETE", "/api/v2/calendar/feed", SCOPE_ADMIN, disable, REACH_ALL,
          .summary = "End the feed.", .status = 200, .answer = "{\"data\": {\"state\": \"off\"}}" },
        { "GET", "/api/v2/calendar/feed.ics", SCOPE_NONE, feed, REACH_SHARED,
          .summary = "All events since a month ago, for calendars that subscribe to a URL; "
                     "read-only, with the feed's own token instead of a key.",
          .query = feed_query, .status = 200, .answer = "An iCalendar file.",
          .content_type = "text/calendar" },
        ROUTE_END,
};
