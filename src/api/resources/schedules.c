/* Schedules: what is to happen when, and each time it did. */
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "api/core/read_job.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "road/report/row_json.h"
#include "rows/person_row.h"
#include "schedule/cron.h"
#include "schedule/reminders.h"

#define RUNS_SHOWN 5

static const char *const states[] = { "active", "done", "cancelled", NULL };
static const char *const sources[] = { "file", "reminder", "notice", "calendar", "api", NULL };

struct schedules_ask {
        int64_t before, limit, person;
        const char *state, *source, *adapter, *channel;
};

/* clang-format off */
#define FILTER_FIELDS                                                                           \
        PAGE_LIMIT_FIELD(schedules_ask),                                                        \
        { "source", FIELD_CHOICE, .choices = sources, FIELD_AT(schedules_ask, source),          \
          .help = "Only those that come from there." },                                         \
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(schedules_ask, adapter),   \
          .help = "Only those of this adapter." },                                              \
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(schedules_ask, channel),      \
          .help = "Only those of this channel." },                                              \
        { "personId", FIELD_ID, .prefix = "per-", FIELD_AT(schedules_ask, person),              \
          .help = "Only those for this person." }
/* clang-format on */
static const struct field schedules_query[] = {
        { "cursor", FIELD_ID, .prefix = "sch-", FIELD_AT(schedules_ask, before),
          .help = "meta.cursor of the previous page." },
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(schedules_ask, state),
          .help = "Only schedules in this state." },
        FILTER_FIELDS,
        FIELD_END,
};
static const struct field next_query[] = { FILTER_FIELDS, FIELD_END };
static const struct field history_query[] = {
        { "cursor", FIELD_ID, .prefix = "tck-", FIELD_AT(schedules_ask, before),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(schedules_ask),
        FIELD_END,
};

/* ---- reading ---- */

static struct schedule_filter filter_of(const struct read_job *j)
{
        const struct schedules_ask *ask = j->query;

        return (struct schedule_filter){ .before = ask->before,
                                         .source = ask->source,
                                         .adapter = ask->adapter,
                                         .channel = ask->channel,
                                         .adapters = j->caller->adapters,
                                         .person = ask->person,
                                         .limit = ask->limit + 1 };
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct schedules_ask *ask = j->query;
        struct schedule_filter filter = filter_of(j);
        enum schedule_state state;
        struct store_stmt *s;
        struct schedule_row row;
        struct page p;
        int rc;

        if (ask->state && schedule_state_parse(ask->state, &state))
                filter.state = &state;
        s = schedule_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = schedule_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        row_json_schedule(p.json, NULL, &row);
        page_end(&p, "sch-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct schedules_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_next(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct schedule_filter filter = filter_of(j);
        struct store_stmt *s;
        struct schedule_row row;
        int rc;

        filter.limit--;
        s = schedule_row_list_next(tx, &filter);
        page_open(&j->json);
        while ((rc = schedule_row_next(s, &row, err)) == 1)
                row_json_schedule(&j->json, NULL, &row);
        page_close(&j->json, false, NULL);
        return rc;
}

static void next(struct http_exchange *x)
{
        struct schedules_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_next);
}

static void write_next_runs(struct buf *b, const struct schedule_row *row)
{
        const char *name = row->timezone ? row->timezone : "UTC";
        struct error ignored = { 0 };
        struct time_zone *zone = timezone_new(name, &ignored);
        int64_t at = row->state == SCHEDULE_ACTIVE ? row->next_ms : 0;
        bool repeats = row->kind == SCHEDULE_PERIODIC && zone;
        struct cron cron;

        repeats = repeats && row->cron && cron_parse(row->cron, &cron, &ignored) == 0;
        jsonw_open_member(b, "nextRuns", '[');
        for (int i = 0; i < RUNS_SHOWN && at > 0; i++) {
                row_json_time(b, NULL, at);
                at = repeats ? cron_next(&cron, zone, at) : 0;
        }
        jsonw_close(b, ']');
        timezone_free(zone);
}

/* The row as {"data"}, with its next times in it. */
static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct schedule_row *row;
        int rc = schedule_row_get(tx, j->id, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no schedule 'sch-%lld'",
                                 (long long)j->id);
        jsonw_open(&j->json, '{');
        row_json_schedule(&j->json, "data", row);
        buf_truncate(&j->json, j->json.len - 1); /* its end */
        write_next_runs(&j->json, row);
        jsonw_close(&j->json, '}');
        jsonw_close(&j->json, '}');
        free(row);
        return 0;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "sch-", "schedule", read_one);
}

static int read_history(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct schedules_ask *ask = j->query;
        struct tick_filter filter = { .schedule = j->id,
                                      .before = ask->before,
                                      .limit = ask->limit + 1 };
        struct schedule_row *schedule;
        struct store_stmt *s;
        struct tick_row row;
        struct page p;
        int rc = schedule_row_get(tx, j->id, &schedule, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no schedule 'sch-%lld'",
                                 (long long)j->id);
        if (rc < 0)
                return -1;
        free(schedule);
        s = tick_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = tick_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        row_json_tick(p.json, NULL, &row);
        page_end(&p, "tck-");
        return rc;
}

static void history(struct http_exchange *x)
{
        struct schedules_ask ask = { .limit = 50 };
        int64_t id = request_id(x, "sch-", "schedule");
        struct read_job *j = id < 0 ? NULL : read_job_new(x, &ask, sizeof(ask));

        if (!j)
                return;
        j->id = id;
        read_job_run(j, read_history);
}

/* ---- adding ---- */

struct schedule_ask {
        const char *when, *at, *in, *every, *cron, *timezone, *text, *name;
        const char *adapter, *to, *thread, *agent, *missed, *action;
        int64_t person, max_age_seconds;
};

static const char *const actions[] = { "message", "turn", NULL };
static const char *const policies[] = { "once", "all", "skip", NULL };
static const struct field schedule_fields[] = {
        { "when", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(schedule_ask, when),
          .help = "A time as people write it: 30m, tomorrow 9:00, every monday 20:00, "
                  "cron 0 9 * * 1-5. This, at, in, every or cron." },
        { "at", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(schedule_ask, at),
          .help = "Once, at a time such as 2026-11-20T18:00:00+01:00." },
        { "in", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(schedule_ask, in),
          .help = "Once, after 30m, 2 hours or 1d." },
        { "every", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(schedule_ask, every),
          .help = "Again and again: day 9:00, monday 20:00, 2 hours." },
        { "cron", FIELD_STRING, .min = 1, .max = 127, FIELD_AT(schedule_ask, cron),
          .help = "Again and again: five cron fields, or six with seconds first." },
        { "timezone", FIELD_STRING, .min = 1, .max = 60, FIELD_AT(schedule_ask, timezone),
          .help = "Of the time, such as Europe/Berlin; absent: that of the person, else "
                  "schedule.timezone." },
        { "text", FIELD_STRING, .required = true, .min = 1, .max = REMINDER_TEXT_MAX,
          FIELD_AT(schedule_ask, text), .help = "What is sent, or what the agent is told." },
        { "name", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(schedule_ask, name),
          .help = "A title; absent: the beginning of the text. Rules can name it." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(schedule_ask, adapter),
          .help = "Name of the adapter; with `to`." },
        { "to", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(schedule_ask, to),
          .help = "The platform's id of the chat or channel." },
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(schedule_ask, thread),
          .help = "A thread inside the chat." },
        { "personId", FIELD_ID, .prefix = "per-", FIELD_AT(schedule_ask, person),
          .help = "For whom; without a chat it is sent to where they are reached best." },
        { "action", FIELD_CHOICE, .choices = actions, FIELD_AT(schedule_ask, action),
          .fallback = "\"message\"",
          .help = "Send the text as a message, or give an agent a turn with it." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(schedule_ask, agent),
          .help = "With action turn: which agent; absent: the one that answers there." },
        { "missed", FIELD_CHOICE, .choices = policies, FIELD_AT(schedule_ask, missed),
          .help = "What becomes of times while the daemon was down; absent: schedule.missed." },
        { "maxAgeSeconds", FIELD_INT, .min = 0, .max = 31536000,
          FIELD_AT(schedule_ask, max_age_seconds),
          .help = "A run that is later than this is left out, 0: none; absent: "
                  "schedule.maxAgeSeconds." },
        FIELD_END,
};

struct add_job {
        struct write_job job; /* first */
        struct body body;     /* owns the strings of the wish */
        struct arena arena;
        struct schedule *schedule;
        const struct schedule_conf *conf;
        struct reminder_wish wish;
        char hash[SHA256_HEX_SIZE];
};

static int write_added(struct store_tx *tx, void *arg, struct error *err)
{
        struct add_job *j = arg;
        struct schedule_row row, *stored = NULL;
        int64_t id = 0, into;
        int rc = 0;

        if (j->wish.person > 0) {
                rc = person_row_get_alias(tx, j->wish.person, &into, err);
                if (rc == 0)
                        return error_set(err, ERR_INVALID,
                                         "personId: there is no person "
                                         "'per-%lld'",
                                         (long long)j->wish.person);
                if (rc == 1 && into > 0)
                        j->wish.person = into;
                if (rc < 0)
                        return -1;
        }
        rc = schedule_find_request(tx, j->wish.request_key, j->hash, &stored, err);
        if (rc == 0 && (reminder_make(tx, j->conf, &j->wish, &j->arena, &row, err) < 0 ||
                        schedule_row_insert(tx, &row, &id, err) < 0))
                return -1;
        if (rc < 0 || (rc == 0 && schedule_row_get(tx, id, &stored, err) < 0))
                return -1;
        buf_clear(&j->job.data);
        row_json_schedule(&j->job.data, NULL, stored);
        free(stored);
        return 0;
}

static void on_added(void *arg, const struct error *err)
{
        struct add_job *j = arg;

        if (!err)
                schedule_wake(j->schedule);
        body_release(&j->body);
        arena_release(&j->arena);
        write_job_done(j, err);
}

/* The one that is given, as when.h reads it; NULL: none or several. */
static const char *when_of(const struct schedule_ask *ask, struct arena *a)
{
        const struct {
                const char *prefix, *text;
        } ways[] = { { "", ask->when },
                     { "", ask->at },
                     { "in ", ask->in },
                     { "every ", ask->every },
                     { "cron ", ask->cron } };
        const char *found = NULL;

        for (size_t i = 0; i < COUNT(ways); i++) {
                if (ways[i].text && found)
                        return NULL;
                if (ways[i].text)
                        found = arena_printf(a, "%s%s", ways[i].prefix, ways[i].text);
        }
        return found;
}

/* false: answered. */
static bool check(struct http_exchange *x, struct body *b, const struct schedule_ask *ask,
                  const char *when)
{
        bool turn = ask->action && strcmp(ask->action, "turn") == 0;

        if (!when)
                body_mistake(b, "when", "give exactly one of when, at, in, every and cron");
        else if (!ask->adapter != !ask->to)
                body_mistake(b, ask->to ? "instanceId" : "to", "instanceId and to belong together");
        else if (!ask->adapter && ask->person == 0)
                body_mistake(b, "to", "give a chat (instanceId and to) or a personId");
        else if (turn && !ask->adapter)
                body_mistake(b, "action", "a turn needs a chat: instanceId and to");
        else if (ask->agent && !turn)
                body_mistake(b, "agent", "only for action turn");
        else if (ask->agent && !agents_has(api_of(x)->env.agents, ask->agent))
                body_mistake(b, "agent", "there is no agent '%.60s'", ask->agent);
        else if (ask->thread && !ask->to)
                body_mistake(b, "threadId", "only with to");
        if (b->mistake_count > 0) {
                reply_mistakes(x, b);
                return false;
        }
        /* a person may be reached by any adapter */
        if (ask->person > 0 && caller_of(x)->adapters) {
                reply_error(x, 403, "FORBIDDEN", NULL,
                            "this key is restricted to adapters: it may name a chat, no person");
                return false;
        }
        if (!ask->adapter)
                return true;
        if (!request_reaches(x, ask->adapter))
                return false;
        if (adapters_find(api_of(x)->env.adapters, ask->adapter))
                return true;
        reply_missing(x, "instance", ask->adapter);
        return false;
}

static void submit(struct http_exchange *x, struct body *b, const struct schedule_ask *ask,
                   const char *when, const char *key)
{
        struct add_job *j = mem_zalloc(sizeof(*j));
        char trace[ID_TRACE_SIZE], *own = key ? request_own_key(x, key) : NULL;

        write_job_init(&j->job, x, 201);
        request_hash("schedule", b->root, j->hash);
        arena_init(&j->arena);
        j->schedule = api_of(x)->env.schedule;
        j->conf = schedule_get_conf(j->schedule);
        j->wish = (struct reminder_wish){
                .source = "api",
                .request_key = own ? arena_printf(&j->arena, "api:%s", own) : NULL,
                .request_hash = own ? j->hash : NULL,
                .name = ask->name,
                .when = arena_strdup(&j->arena, when),
                .text = ask->text,
                .timezone = ask->timezone,
                .adapter = ask->adapter,
                .channel = ask->to,
                .thread = ask->thread,
                .person = ask->person,
                .action = ask->action && strcmp(ask->action, "turn") == 0 ? SCHEDULE_TURN
                                                                          : SCHEDULE_MESSAGE,
                .agent = ask->agent,
                .missed = ask->missed,
                .max_age_seconds = ask->max_age_seconds,
                .created_by = arena_strdup(&j->arena, caller_name(x)),
                .trace = id_trace_of_parent(http_header(x, "traceparent"), trace)
                                 ? arena_strdup(&j->arena, trace)
                                 : NULL,
                .now_ms = clock_wall_ms(),
        };
        j->body = *b; /* the strings of ask live there */
        body_init(b);
        store_write(api_of(x)->env.store, write_added, on_added, j);
        free(own);
}

static void add(struct http_exchange *x)
{
        struct schedule_ask ask = { .max_age_seconds = -1 };
        const char *key, *when;
        struct arena a;
        struct body b;

        if (request_key(x, &key) < 0 || request_body(x, &b, &ask) < 0)
                return;
        arena_init(&a);
        when = when_of(&ask, &a);
        if (check(x, &b, &ask, when))
                submit(x, &b, &ask, when, key);
        arena_release(&a);
        body_release(&b);
}

/* ---- cancelling and running ---- */

struct change_job {
        struct write_job job; /* first */
        struct schedule *schedule;
        int64_t id, now_ms;
        char *by;
};

static int write_cancelled(struct store_tx *tx, void *arg, struct error *err)
{
        struct change_job *j = arg;
        struct schedule_row *row;
        char *note;
        int rc;

        if (reminder_check_cancel(tx, NULL, j->id, &row, err) < 0)
                return -1;
        free(row);
        note = mem_printf("cancelled by %s", j->by);
        rc = schedule_row_cancel(tx, j->id, note, j->now_ms, err);
        free(note);
        if (rc < 0 || schedule_row_get(tx, j->id, &row, err) < 0)
                return -1;
        buf_clear(&j->job.data);
        row_json_schedule(&j->job.data, NULL, row);
        free(row);
        return 0;
}

static int write_run(struct store_tx *tx, void *arg, struct error *err)
{
        struct change_job *j = arg;
        int64_t tick;

        if (reminder_run(tx, j->id, j->now_ms, &tick, err) < 0)
                return -1;
        buf_clear(&j->job.data);
        jsonw_open(&j->job.data, '{');
        row_json_id(&j->job.data, "id", "tck-", tick);
        row_json_id(&j->job.data, "scheduleId", "sch-", j->id);
        jsonw_str(&j->job.data, "state", "pending");
        jsonw_close(&j->job.data, '}');
        return 0;
}

static void on_changed(void *arg, const struct error *err)
{
        struct change_job *j = arg;

        if (!err)
                schedule_wake(j->schedule);
        free(j->by);
        write_job_done(j, err);
}

static void change(struct http_exchange *x, store_fn *fn, int status)
{
        int64_t id = request_id(x, "sch-", "schedule");
        struct change_job *j;

        if (id < 0)
                return;
        j = mem_zalloc(sizeof(*j));
        write_job_init(&j->job, x, status);
        j->schedule = api_of(x)->env.schedule;
        j->id = id;
        j->now_ms = clock_wall_ms();
        j->by = mem_strdup(caller_name(x));
        store_write(api_of(x)->env.store, fn, on_changed, j);
}

static void cancel(struct http_exchange *x)
{
        change(x, write_cancelled, 200);
}

static void run(struct http_exchange *x)
{
        change(x, write_run, 202);
}

const struct route schedules_routes[] = {
        { "GET", "/api/v2/schedules", SCOPE_READ, list, REACH_LIST,
          .summary = "What is to happen when: event files, reminders, notices and what programs "
                     "asked for; newest first.",
          .query = schedules_query, .status = 200, .answer = ROUTE_PAGE " of schedules." },
        { "POST", "/api/v2/schedules", SCOPE_WRITE, add, REACH_HANDLER,
          .summary = "Send a text to a chat or person later, once or again and again, or give an "
                     "agent a turn with it. With the header Idempotency-Key a repeated request "
                     "adds nothing twice.",
          .body = schedule_fields, .status = 201, .answer = "{\"data\": schedule}",
          .example = ROUTE_JSON({
                  "in" : "30m",
                  "text" : "The tea is ready.",
                  "instanceId" : "tg",
                  "to" : "42"
          }) },
        { "GET", "/api/v2/schedules/next", SCOPE_READ, next, REACH_LIST,
          .summary = "The active schedules by the time they are due next, earliest first.",
          .query = next_query, .status = 200, .answer = ROUTE_PAGE " of schedules." },
        { "GET", "/api/v2/schedules/:id", SCOPE_READ, show, REACH_ROW, row_scope_schedule,
          .summary = "One schedule, with its next times.", .status = 200,
          .answer = "{\"data\": {\"id\", \"state\", \"source\", \"name\", \"kind\", \"action\", "
                    "\"instanceId\", \"channel\", \"threadId\", \"personId\", \"text\", \"at\", "
                    "\"cron\", \"timezone\", \"missed\", \"nextAt\", \"nextRuns\", ...}}" },
        { "DELETE", "/api/v2/schedules/:id", SCOPE_WRITE, cancel, REACH_ROW, row_scope_schedule,
          .summary = "Cancel a schedule. Those of files end with their file, those of calendar "
                     "events with the event: 409.",
          .status = 200, .answer = "{\"data\": schedule}" },
        { "POST", "/api/v2/schedules/:id/run", SCOPE_WRITE, run, REACH_ROW, row_scope_schedule,
          .summary = "Run it now, besides its times.", .status = 202,
          .answer = "{\"data\": {\"id\": \"tck-3\", \"scheduleId\", \"state\": \"pending\"}}" },
        { "GET", "/api/v2/schedules/:id/history", SCOPE_READ, history, REACH_ROW,
          row_scope_schedule, .summary = "Each time it was due and what happened, newest first.",
          .query = history_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"scheduleId\", \"state\", \"dueAt\", \"runs\", "
                               "\"notBefore\", \"startedAt\", \"endedAt\", \"eventId\", "
                               "\"deliveryId\", \"note\"}." },
        ROUTE_END,
};
