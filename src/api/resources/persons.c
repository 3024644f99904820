/* Persons and their identities. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"
#include "rows/person_row.h"

#define LIMIT_MAX 100

struct persons_ask {
        int64_t limit, before;
        const char *search;
};

struct person_ask {
        const char *a, *b, *reason, *name;
        int64_t source, target;
};

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
static const struct field name_fields[] = {
        { "displayName", FIELD_STRING, .required = true, .max = 200, FIELD_AT(person_ask, name),
          .help = "The name to use here; \"\": the platform's." },
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

/* ---- renaming ---- */

struct person_name_job {
        struct api_job job;
        int64_t person, now_ms;
        char *name;
};

static int write_name(struct store_tx *tx, void *arg, struct error *err)
{
        struct person_name_job *n = arg;
        int rc = person_row_set_name(tx, n->person, n->name[0] ? n->name : NULL, n->now_ms, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                 (long long)n->person);
        return rc < 0 ? -1 : 0;
}

static void on_named(void *arg, const struct error *err)
{
        struct person_name_job *n = arg;
        struct http_exchange *x = api_job_end(&n->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                show_person(x, n->person);
        free(n->name);
        free(n);
}

static void rename_person(struct http_exchange *x)
{
        int64_t id = request_id(x, "per-", "person");
        struct person_ask ask = { 0 };
        struct person_name_job *n;
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        n = mem_zalloc(sizeof(*n));
        api_job_begin(&n->job, x);
        n->person = persons_current(persons_of_exchange(x), id);
        n->now_ms = clock_wall_ms();
        n->name = mem_strdup(ask.name);
        store_write(api_of(x)->env.store, write_name, on_named, n);
        body_release(&b);
}

const struct route persons_routes[] = {
        { "GET", "/api/v2/persons", SCOPE_READ, list, REACH_ALL,
          .summary = "People who were admitted, with their identities on each platform; newest "
                     "first.",
          .query = persons_query, .status = 200, .answer = ROUTE_PAGE " of persons." },
        { "GET", "/api/v2/persons/:id", SCOPE_READ, show, REACH_ALL,
          .summary = "One person; for a merged one, the person it belongs to now.", .status = 200,
          .answer = "{\"data\": {\"id\", \"displayName\", \"aliases\", \"identities\": [{\"id\", "
                    "\"platform\", \"platformUserId\", \"username\", \"name\", "
                    "\"lastSeenAt\", \"chats\", ...}], ...}}" },
        { "PATCH", "/api/v2/persons/:id", SCOPE_WRITE, rename_person, REACH_ALL,
          .summary = "Name a person.", .body = name_fields, .status = 200,
          .answer = "{\"data\": person}",
          .example = ROUTE_JSON({ "displayName" : "Ann from sales" }) },
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
