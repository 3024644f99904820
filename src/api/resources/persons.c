/* Persons: people with their identities on the platforms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

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
          .fallback = "20", .help = "How many at most." },
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

static int write_chats(struct store_tx *tx, struct buf *b, int64_t identity, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT adapter, channel FROM identity_chats WHERE identity = ?1 ORDER BY seen_ms DESC");
        int rc;

        store_bind_int(s, 1, identity);
        jsonw_open_member(b, "chats", '[');
        while ((rc = store_step(s, err)) == 1) {
                jsonw_open(b, '{');
                jsonw_str(b, "instanceId", store_col_text(s, 0));
                jsonw_str(b, "channel", store_col_text(s, 1));
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        return rc;
}

static int write_identities(struct store_tx *tx, struct buf *b, int64_t person, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT id, platform, user_id, username, name, adapter, first_seen_ms, last_seen_ms, home"
                " FROM identities WHERE person = ?1 ORDER BY id");
        int rc;

        store_bind_int(s, 1, person);
        jsonw_open_member(b, "identities", '[');
        while ((rc = store_step(s, err)) == 1) {
                char *id = mem_printf("%s:%s", store_col_text(s, 1), store_col_text(s, 2));

                jsonw_open(b, '{');
                jsonw_str(b, "id", id);
                jsonw_str(b, "platform", store_col_text(s, 1));
                jsonw_str(b, "platformUserId", store_col_text(s, 2));
                jsonw_str(b, "username", store_col_text(s, 3));
                jsonw_str(b, "name", store_col_text(s, 4));
                jsonw_str(b, "instanceId", store_col_text(s, 5));
                show_time(b, "firstSeenAt", store_col_int(s, 6));
                show_time(b, "lastSeenAt", store_col_int(s, 7));
                show_id(b, "homePersonId", "per-", store_col_int(s, 8));
                free(id);
                if (write_chats(tx, b, store_col_int(s, 0), err) < 0)
                        return -1;
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        return rc;
}

static int write_aliases(struct store_tx *tx, struct buf *b, int64_t person, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT id FROM persons WHERE merged_into = ?1 ORDER BY id");
        int rc;

        store_bind_int(s, 1, person);
        jsonw_open_member(b, "aliases", '[');
        while ((rc = store_step(s, err)) == 1)
                show_id(b, NULL, "per-", store_col_int(s, 0));
        jsonw_close(b, ']');
        return rc;
}

/* 1, 0 when there is no such person, -1. */
static int write_person(struct store_tx *tx, struct buf *b, const char *key, int64_t person,
                        struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT COALESCE(p.name, (SELECT i.name FROM identities i "
                                  "WHERE i.person = p.id AND i.name IS NOT NULL"
                                  " ORDER BY i.last_seen_ms DESC LIMIT 1)), p.created_ms, "
                                  "p.updated_ms FROM persons p WHERE p.id = ?1");
        int rc;

        store_bind_int(s, 1, person);
        rc = store_step(s, err);
        if (rc != 1)
                return rc;
        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        show_id(b, "id", "per-", person);
        jsonw_str(b, "displayName", store_col_text(s, 0));
        show_time(b, "createdAt", store_col_int(s, 1));
        show_time(b, "updatedAt", store_col_int(s, 2));
        store_reset(s);
        if (write_aliases(tx, b, person, err) < 0 || write_identities(tx, b, person, err) < 0)
                return -1;
        jsonw_close(b, '}');
        return 1;
}

/* A LIKE pattern for the text anywhere, with its special characters escaped. */
static char *anywhere(const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addch(&b, '%');
        for (; *text; text++) {
                if (strchr("%_\\", *text))
                        buf_addch(&b, '\\');
                buf_addch(&b, *text);
        }
        buf_addch(&b, '%');
        return buf_take(&b);
}

/* Numbers of the persons of a page, and one more. */
static int find_persons(struct store_tx *tx, const struct persons_ask *ask, int64_t *ids,
                        size_t *count, struct error *err)
{
        char *like = anywhere(ask->search ? ask->search : "");
        struct store_stmt *s;
        int rc;

        s = ask->search
                    ? store_prepare(
                              tx,
                              "SELECT p.id FROM persons p WHERE p.merged_into IS NULL AND p.id < ?1"
                              " AND (lower(p.name) LIKE lower(?3) ESCAPE '\\' OR EXISTS(SELECT 1 FROM "
                              "identities i"
                              " WHERE i.person = p.id AND (lower(i.name) LIKE lower(?3) ESCAPE '\\'"
                              " OR lower(i.username) LIKE lower(?3) ESCAPE '\\' OR i.user_id = ?4)))"
                              " ORDER BY p.id DESC LIMIT ?2")
                    : store_prepare(
                              tx,
                              "SELECT p.id FROM persons p WHERE p.merged_into IS NULL AND p.id < ?1"
                              " ORDER BY p.id DESC LIMIT ?2");
        store_bind_int(s, 1, ask->before);
        store_bind_int(s, 2, ask->limit + 1);
        if (ask->search) {
                store_bind_text(s, 3, like);
                store_bind_text(s, 4, ask->search);
        }
        *count = 0;
        while ((rc = store_step(s, err)) == 1)
                ids[(*count)++] = store_col_int(s, 0);
        free(like);
        return rc;
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct persons_ask *ask = j->query;
        int64_t ids[LIMIT_MAX + 1];
        size_t count;
        struct page p;

        if (find_persons(tx, ask, ids, &count, err) < 0)
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

/* Answers with the person after the change. */
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

/* Splits "telegram:7", in the body's memory; false: answered with 400. */
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
        struct store_stmt *s =
                store_prepare(tx, "UPDATE persons SET name = ?2, updated_ms = ?3 WHERE id = ?1");

        store_bind_int(s, 1, n->person);
        store_bind_text(s, 2, n->name[0] ? n->name : NULL);
        store_bind_int(s, 3, n->now_ms);
        if (store_run(s, err) < 0)
                return -1;
        if (store_changes(tx) == 0)
                return error_set(err, ERR_MISSING, "there is no person 'per-%lld'",
                                 (long long)n->person);
        return 0;
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
          .summary = "People that were let in, with their identities on each platform; newest "
                     "first.",
          .query = persons_query, .status = 200, .answer = ROUTE_PAGE " of persons." },
        { "GET", "/api/v2/persons/:id", SCOPE_READ, show, REACH_ALL,
          .summary = "One person; of a merged one, the person it is now.", .status = 200,
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
