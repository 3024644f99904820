/* Persons and their identities. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "platform/platform.h"
#include "road/report/row_json.h"
#include "rows/person_row.h"
#include "schedule/reach.h"

#define LIMIT_MAX 100

struct persons_ask {
        int64_t limit, before;
        const char *search;
};

struct person_ask {
        const char *a, *b, *reason;
        int64_t source, target;
};

/* NULL and CAP_KEEP: not given. */
struct person_edit {
        const char *name, *timezone, *quiet_hours, *reach_at;
        int64_t daily_cap;
};
#define CAP_KEEP INT64_MIN

static const struct field persons_query[] = {
        { "search", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(persons_ask, search),
          .help = "Only those with this in a name or username, or with exactly this id on a "
                  "platform." },
        { "cursor", FIELD_ID, .prefix = "per-", FIELD_AT(persons_ask, before),
          .help = "meta.cursor of the previous page." },
        { "limit", FIELD_INT, .min = 1, .max = LIMIT_MAX, FIELD_AT(persons_ask, limit),
          .fallback = "20", .help = "Maximum number of items." },
        FIELD_END,
};
/* clang-format off */
#define REASON_FIELD                                                                            \
        { "reason", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(person_ask, reason),           \
          .help = "Why, for the record." }
/* clang-format on */
static const struct field link_fields[] = {
        { "identityA", FIELD_STRING, .required = true, .min = 3, .max = 300,
          FIELD_AT(person_ask, a), .help = "Such as telegram:7; its person stays." },
        { "identityB", FIELD_STRING, .required = true, .min = 3, .max = 300,
          FIELD_AT(person_ask, b), .help = "Its person becomes that of identityA." },
        REASON_FIELD,
        FIELD_END,
};
static const struct field unlink_fields[] = {
        { "identity", FIELD_STRING, .required = true, .min = 3, .max = 300, FIELD_AT(person_ask, a),
          .help = "Returns to the person it was before the merge, with the identities that came "
                  "with it; in its own person, it gets a new one." },
        REASON_FIELD,
        FIELD_END,
};
static const struct field merge_fields[] = {
        { "sourcePersonId", FIELD_ID, .prefix = "per-", .required = true,
          FIELD_AT(person_ask, source), .help = "Becomes an alias of the other." },
        { "targetPersonId", FIELD_ID, .prefix = "per-", .required = true,
          FIELD_AT(person_ask, target), .help = "Gets its identities." },
        REASON_FIELD,
        FIELD_END,
};
static const struct field edit_fields[] = {
        { "displayName", FIELD_STRING, .max = 200, FIELD_AT(person_edit, name),
          .help = "The name to use here; \"\": the platform's." },
        { "timezone", FIELD_STRING, .max = 64, FIELD_AT(person_edit, timezone),
          .help = "Their time zone, such as Europe/Berlin; \"\": schedule.timezone." },
        { "quietHours", FIELD_STRING, .max = 400, FIELD_AT(person_edit, quiet_hours),
          .help = "When they get no message that they did not ask for, such as 22:00-07:00 or "
                  "mon-fri 22:00-07:00; sat,sun 23:00-10:00; off: never quiet; \"\": "
                  "schedule.quietHours." },
        { "dailyCap", FIELD_INT, .min = -1, .max = 100000, FIELD_AT(person_edit, daily_cap),
          .help = "How many such messages they get in a day; 0: none, -1: schedule.dailyCap." },
        { "reachAt", FIELD_STRING, .max = 512, FIELD_AT(person_edit, reach_at),
          .help = "Where they get messages first: an adapter (tg) or a chat of one (tg/42); "
                  "\"\": the latest direct chat." },
        FIELD_END,
};

static struct persons *persons_of_exchange(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->persons;
}

/* ---- reading ---- */

static int write_identities(struct store_tx *tx, struct buf *b, int64_t person, struct error *err)
{
        struct store_stmt *s = person_row_list_details(tx, person), *chats;
        const char *adapter, *channel;
        struct identity_details d;
        int rc, more;

        jsonw_open_member(b, "identities", '[');
        while ((rc = person_row_next_details(s, &d, err)) == 1) {
                char *id = mem_printf("%s:%s", d.identity.platform, d.identity.user);

                jsonw_open(b, '{');
                jsonw_str(b, "id", id);
                jsonw_str(b, "platform", d.identity.platform);
                jsonw_str(b, "platformUserId", d.identity.user);
                jsonw_str(b, "username", d.username);
                jsonw_str(b, "name", d.name);
                jsonw_str(b, "instanceId", d.adapter);
                row_json_time(b, "firstSeenAt", d.first_seen_ms);
                row_json_time(b, "lastSeenAt", d.last_seen_ms);
                row_json_id(b, "homePersonId", "per-", d.home);
                free(id);
                jsonw_open_member(b, "chats", '[');
                chats = person_row_list_chats(tx, d.id);
                while ((more = person_row_next_chat(chats, &adapter, &channel, err)) == 1) {
                        jsonw_open(b, '{');
                        jsonw_str(b, "instanceId", adapter);
                        jsonw_str(b, "channel", channel);
                        jsonw_close(b, '}');
                }
                if (more < 0)
                        return -1;
                jsonw_close(b, ']');
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        return rc;
}

/* What is not set is null. */
static int write_reach(struct store_tx *tx, struct buf *b, int64_t person, struct error *err)
{
        struct person_reach *r;

        if (person_row_get_reach(tx, person, &r, err) != 1)
                return -1;
        jsonw_str(b, "timezone", r->timezone);
        jsonw_str(b, "quietHours", r->quiet_hours);
        if (r->daily_cap < 0)
                jsonw_raw(b, "dailyCap", "null");
        else
                jsonw_int(b, "dailyCap", r->daily_cap);
        jsonw_str(b, "reachAt", r->reach_at);
        free(r);
        return 0;
}

/* 1; 0: no such person; -1. */
static int write_person(struct store_tx *tx, struct buf *b, const char *key, int64_t person,
                        struct error *err)
{
        struct store_stmt *merged;
        struct person_row p;
        int64_t alias;
        int rc = person_row_get(tx, person, &p, err);

        if (rc != 1)
                return rc;
        jsonw_open_member(b, key, '{');
        row_json_id(b, "id", "per-", person);
        jsonw_str(b, "displayName", p.name);
        row_json_time(b, "createdAt", p.created_ms);
        row_json_time(b, "updatedAt", p.updated_ms);
        free(p.name);
        if (write_reach(tx, b, person, err) < 0)
                return -1;
        jsonw_open_member(b, "aliases", '[');
        merged = person_row_list_merged(tx, person);
        while ((rc = person_row_next_merged(merged, &alias, err)) == 1)
                row_json_id(b, NULL, "per-", alias);
        jsonw_close(b, ']');
        if (rc < 0 || write_identities(tx, b, person, err) < 0)
                return -1;
        jsonw_close(b, '}');
        return 1;
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct persons_ask *ask = j->query;
        int64_t ids[LIMIT_MAX + 1];
        size_t count;
        struct page p;

        if (person_row_find(tx, ask->search, ask->before, ids, (size_t)ask->limit + 1, &count,
                            err) < 0)
                return -1;
        page_begin(&p, &j->json, ask->limit);
        for (size_t i = 0; i < count; i++)
                if (page_add(&p, ids[i]) && write_person(tx, p.json, NULL, ids[i], err) < 0)
                        return -1;
        page_end(&p, "per-");
        return 0;
}

static void list(struct http_exchange *x)
{
        struct persons_ask ask = { .limit = 20, .before = INT64_MAX };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        int rc;

        jsonw_open(&j->json, '{');
        rc = write_person(tx, &j->json, "data", j->id, err);
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                 (long long)j->id);
        jsonw_close(&j->json, '}');
        return rc < 0 ? -1 : 0;
}

static void show_person(struct http_exchange *x, int64_t person)
{
        struct read_job *j = read_job_new(x, NULL, 0);

        if (!j)
                return;
        j->id = person;
        read_job_run(j, read_one);
}

static void show(struct http_exchange *x)
{
        int64_t id = request_id(x, "per-", "person");

        if (id >= 0)
                show_person(x, persons_current(persons_of_exchange(x), id));
}

/* ---- changing ---- */

/* Answers with the changed person. */
static void on_changed(void *arg, const struct person_changed *result, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);

        free(j);
        if (x && err)
                reply_failed(x, err);
        else if (x)
                show_person(x, result->person);
}

/* Splits "telegram:7" in the body's memory; false: answered with 400. */
static bool read_identity(struct http_exchange *x, struct body *b, const char *field,
                          const char *text, struct identity *identity)
{
        const char *colon = strchr(text, ':');

        if (!colon || colon == text || colon[1] == '\0') {
                body_mistake(b, field, "expected a platform and an id, such as telegram:7");
                reply_mistakes(x, b);
                return false;
        }
        *identity = (struct identity){ arena_printf(&b->arena, "%.*s", (int)(colon - text), text),
                                       colon + 1 };
        return true;
}

static void submit(struct http_exchange *x, struct person_change *c, const struct person_ask *ask)
{
        struct api_job *j = mem_alloc(sizeof(*j));

        c->by = caller_name(x);
        c->reason = ask->reason;
        api_job_begin(j, x);
        persons_change(persons_of_exchange(x), c, on_changed, j);
}

static void link_identities(struct http_exchange *x)
{
        struct person_change c = { .what = PERSON_LINK };
        struct person_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (read_identity(x, &b, "identityA", ask.a, &c.a) &&
            read_identity(x, &b, "identityB", ask.b, &c.b))
                submit(x, &c, &ask);
        body_release(&b);
}

static void unlink_identity(struct http_exchange *x)
{
        struct person_change c = { .what = PERSON_UNLINK };
        struct person_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (read_identity(x, &b, "identity", ask.a, &c.a))
                submit(x, &c, &ask);
        body_release(&b);
}

static void merge(struct http_exchange *x)
{
        struct person_ask ask = { 0 };
        struct person_change c = { .what = PERSON_MERGE };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        c.source = ask.source;
        c.target = ask.target;
        submit(x, &c, &ask);
        body_release(&b);
}

/* ---- editing ---- */

/* The body keeps the strings. */
struct person_edit_job {
        struct api_job job;
        struct body body;
        struct person_edit edit;
        int64_t person, now_ms;
};

/* NULL stays, "" becomes NULL. */
static const char *edited(const char *new, const char *old)
{
        return !new ? old : new[0] ? new : NULL;
}

static int write_edit(struct store_tx *tx, void *arg, struct error *err)
{
        const struct person_edit_job *j = arg;
        const struct person_edit *e = &j->edit;
        struct person_reach *old, reach;
        int rc = person_row_get_reach(tx, j->person, &old, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                 (long long)j->person);
        if (rc < 0)
                return -1;
        reach = (struct person_reach){ .timezone = edited(e->timezone, old->timezone),
                                       .quiet_hours = edited(e->quiet_hours, old->quiet_hours),
                                       .reach_at = edited(e->reach_at, old->reach_at),
                                       .daily_cap = e->daily_cap == CAP_KEEP ? old->daily_cap
                                                                             : e->daily_cap };
        rc = person_row_set_reach(tx, j->person, &reach, j->now_ms, err);
        if (rc == 1 && e->name)
                rc = person_row_set_name(tx, j->person, edited(e->name, NULL), j->now_ms, err);
        free(old);
        return rc == 1 ? 0 : -1;
}

static void on_edited(void *arg, const struct error *err)
{
        struct person_edit_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                show_person(x, j->person);
        body_release(&j->body);
        free(j);
}

/* false: answered with 400. */
static bool check_edit(struct http_exchange *x, struct person_edit_job *j)
{
        const struct person_edit *e = &j->edit;
        struct person_reach reach = { .timezone = edited(e->timezone, NULL),
                                      .quiet_hours = edited(e->quiet_hours, NULL),
                                      .reach_at = edited(e->reach_at, NULL) };
        char adapter[128] = "";
        struct error err;

        if (reach_check(&reach, &err) < 0) {
                reply_field_error(x, &j->body, &err);
                return false;
        }
        if (reach.reach_at)
                snprintf(adapter, sizeof(adapter), "%.*s", (int)strcspn(reach.reach_at, "/"),
                         reach.reach_at);
        if (adapter[0] && !adapters_find(api_of(x)->env.adapters, adapter)) {
                body_mistake(&j->body, "reachAt", "there is no adapter '%s'", adapter);
                reply_mistakes(x, &j->body);
                return false;
        }
        return true;
}

static void edit_person(struct http_exchange *x)
{
        int64_t id = request_id(x, "per-", "person");
        struct person_edit_job *j;

        if (id < 0)
                return;
        j = mem_zalloc(sizeof(*j));
        j->edit.daily_cap = CAP_KEEP;
        if (request_body(x, &j->body, &j->edit) < 0) {
                free(j);
                return;
        }
        if (!check_edit(x, j)) {
                body_release(&j->body);
                free(j);
                return;
        }
        api_job_begin(&j->job, x);
        j->person = persons_current(persons_of_exchange(x), id);
        j->now_ms = clock_wall_ms();
        store_write(api_of(x)->env.store, write_edit, on_edited, j);
}

const struct route persons_routes[] = {
        { "GET", "/api/v2/persons", SCOPE_READ, list, REACH_ALL,
          .summary = "People who were admitted, with their identities on each platform; newest "
                     "first.",
          .query = persons_query, .status = 200, .answer = ROUTE_PAGE " of persons." },
        { "GET", "/api/v2/persons/:id", SCOPE_READ, show, REACH_ALL,
          .summary = "One person; for a merged one, the person it belongs to now.", .status = 200,
          .answer = "{\"data\": {\"id\", \"displayName\", \"timezone\", "
                    "\"quietHours\", \"dailyCap\", \"reachAt\", \"aliases\", "
                    "\"identities\": [{\"id\", "
                    "\"platform\", \"platformUserId\", \"username\", \"name\", "
                    "\"lastSeenAt\", \"chats\", ...}], ...}}" },
        { "PATCH", "/api/v2/persons/:id", SCOPE_WRITE, edit_person, REACH_ALL,
          .summary = "Name a person, or say when and where they are reached.", .body = edit_fields,
          .status = 200, .answer = "{\"data\": person}", .example = ROUTE_JSON({
                                                                 "displayName" : "Ann from sales",
                                                                 "timezone" : "Europe/Berlin",
                                                                 "quietHours" : "22:00-07:00"
                                                         }) },
        { "POST", "/api/v2/persons/link", SCOPE_ADMIN, link_identities, REACH_ALL,
          .summary = "Make two identities one person.", .body = link_fields, .status = 200,
          .answer = "{\"data\": person}",
          .example = ROUTE_JSON({ "identityA" : "telegram:7", "identityB" : "discord:9" }) },
        { "POST", "/api/v2/persons/unlink", SCOPE_ADMIN, unlink_identity, REACH_ALL,
          .summary = "Separate an identity from its person: undoes a merge.", .body = unlink_fields,
          .status = 200, .answer = "{\"data\": the person it is now}",
          .example = ROUTE_JSON({ "identity" : "discord:9" }) },
        { "POST", "/api/v2/persons/merge", SCOPE_ADMIN, merge, REACH_ALL,
          .summary = "Make two persons one. Rules that name either mean both from now on; nothing "
                     "is lost.",
          .body = merge_fields, .status = 200, .answer = "{\"data\": person}",
          .example = ROUTE_JSON({ "sourcePersonId" : "per-2", "targetPersonId" : "per-1" }) },
        ROUTE_END,
};
