/* Keys: creating, listing, revoking. */
#include <stdlib.h>
#include <string.h>

#include "agent/agents.h"
#include "api/core/page.h"
#include "api/core/request.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "road/report/row_json.h"

#define RATE_MAX 1000000

struct key_ask {
        const char *name;
        struct field_list scopes, adapters, agents;
        int64_t expires_ms, rate_limit;
};

static const struct field key_fields[] = {
        { "name", FIELD_STRING, .required = true, .min = 1, .max = 100, FIELD_AT(key_ask, name),
          .help = "Who uses it; unique among valid keys." },
        { "scopes", FIELD_TEXTS, .required = true, .max = KEY_SCOPES_MAX, FIELD_AT(key_ask, scopes),
          .help = "What it may do: read, write, admin (each includes those before it), or one of "
                  "them for a resource, such as messages:write." },
        { "adapters", FIELD_TEXTS, .max = KEY_ADAPTERS_MAX, FIELD_AT(key_ask, adapters),
          .help = "Names of the only adapters it reaches. Absent: all." },
        { "agents", FIELD_TEXTS, .max = KEY_AGENTS_MAX, FIELD_AT(key_ask, agents),
          .help = "Names of the only agents it may ask by name. Absent: all; with adapters, those "
                  "that these adapters or their rules can choose." },
        { "expiresAt", FIELD_TIME, FIELD_AT(key_ask, expires_ms),
          .help = "When it expires. Absent: never, or with the key that makes it." },
        { "rateLimit", FIELD_INT, .min = 1, .max = RATE_MAX, FIELD_AT(key_ask, rate_limit),
          .help = "Requests a minute. Absent: 1000, or as many as the key that makes it." },
        FIELD_END,
};

/* ---- listing ---- */

/* list: ",a,b,"; NULL: all */
static void write_names(struct buf *b, const char *member, const char *list)
{
        if (!list) {
                jsonw_null(b, member);
                return;
        }
        jsonw_open_member(b, member, '[');
        for (const char *p = list + 1; *p; p += strcspn(p, ",") + 1)
                jsonw_strn(b, NULL, p, strcspn(p, ","));
        jsonw_close(b, ']');
}

/* Without the closing bracket. */
static void write_key(struct buf *b, const struct key *k)
{
        struct buf scope;

        jsonw_open(b, '{');
        row_json_id(b, "id", "key-", k->id);
        jsonw_str(b, "name", k->name);
        jsonw_str(b, "prefix", k->prefix);
        jsonw_open_member(b, "scopes", '[');
        buf_init(&scope, 0);
        for (size_t i = 0; i < k->scope_count; i++) {
                buf_clear(&scope);
                key_scope_write(&scope, &k->scopes[i]);
                jsonw_str(b, NULL, scope.data);
        }
        buf_release(&scope);
        jsonw_close(b, ']');
        write_names(b, "adapters", k->adapters);
        write_names(b, "agents", k->agents);
        jsonw_int(b, "rateLimit", k->rate_limit);
        jsonw_str(b, "state",
                  k->revoked_ms > 0                 ? "revoked"
                  : key_is_live(k, clock_wall_ms()) ? "valid"
                                                    : "expired");
        if (k->made_by > 0)
                row_json_id(b, "madeBy", "key-", k->made_by);
        else
                jsonw_null(b, "madeBy"); /* the operator */
        row_json_time(b, "createdAt", k->created_ms);
        row_json_time(b, "expiresAt", k->expires_ms);
        row_json_time(b, "lastUsedAt", k->used_ms);
        row_json_time(b, "revokedAt", k->revoked_ms);
}

static void list(struct http_exchange *x)
{
        size_t count;
        const struct key *const *all = keyring_all(api_of(x)->keys, &count);
        struct buf json;

        buf_init(&json, 0);
        page_open(&json);
        for (size_t i = 0; i < count; i++) {
                write_key(&json, all[i]);
                jsonw_close(&json, '}');
        }
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

/* ---- creating ---- */

struct key_job {
        struct api_job job;
        char text[KEYRING_TEXT_SIZE];
};

static void on_created(void *arg, const struct key *k, const struct error *err)
{
        struct key_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf data;

        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                write_key(&data, k);
                jsonw_str(&data, "key", j->text);
                jsonw_close(&data, '}');
                reply_data(x, 201, &data);
        }
        explicit_bzero(j->text, sizeof(j->text));
        free(j);
}

static int check(struct http_exchange *x, struct body *b, const struct key_ask *ask)
{
        const char *const *scopes = ask->scopes.items, *const *adapters = ask->adapters.items;
        const char *const *agents = ask->agents.items;
        struct error err;

        if (ask->scopes.count == 0)
                return body_mistake(b, "scopes", "must name at least one");
        for (size_t i = 0; i < ask->scopes.count; i++)
                if (key_scope_check(scopes[i], &err) < 0)
                        return body_mistake(b, "scopes", "%s", err.text);
        for (size_t i = 0; i < ask->adapters.count; i++)
                if (!adapters_find(api_of(x)->env.adapters, adapters[i]))
                        return body_mistake(b, "adapters", "there is no adapter '%.100s'",
                                            adapters[i]);
        if (adapters && ask->adapters.count == 0)
                return body_mistake(b, "adapters", "must name at least one; leave it out for all");
        for (size_t i = 0; i < ask->agents.count; i++)
                if (!agents_has(api_of(x)->env.agents, agents[i]))
                        return body_mistake(b, "agents", "there is no agent '%.100s'", agents[i]);
        if (agents && ask->agents.count == 0)
                return body_mistake(b, "agents", "must name at least one; leave it out for all");
        if (ask->expires_ms > 0 && ask->expires_ms <= clock_wall_ms())
                return body_mistake(b, "expiresAt", "lies in the past");
        return 0;
}

/* Callers cannot grant what they do not have. NULL, or what is too much. */
static const char *exceeds(const struct key *k, const struct key *caller,
                           const struct field_list *agents)
{
        const char *const *names = agents->items;

        ROUTES_FOREACH(r)
                if (key_may(k, r) && !key_may(caller, r))
                        return "have scopes that its creator lacks";
        for (size_t i = 0; i < agents->count; i++)
                if (key_asks(caller, names[i]) != 1)
                        return "ask agents that its creator may not ask";
        if (caller->expires_ms > 0 && k->expires_ms > caller->expires_ms)
                return "expire after its creator";
        if (caller->rate_limit > 0 && k->rate_limit > caller->rate_limit)
                return "have a higher rate limit than its creator";
        return NULL;
}

/* What the request leaves out. */
static void inherit(struct key *k, const struct key *caller)
{
        k->made_by = caller->id;
        if (!k->agents && caller->agents)
                k->agents = mem_strdup(caller->agents);
        if (k->expires_ms == 0)
                k->expires_ms = caller->expires_ms;
        if (k->rate_limit == 0)
                k->rate_limit = caller->rate_limit > 0 && caller->rate_limit < KEYRING_RATE
                                        ? caller->rate_limit
                                        : KEYRING_RATE;
}

/* Joins the texts with a character between; yours to free. */
static char *join(const struct field_list *list, char between)
{
        const char *const *words = list->items;
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < list->count; i++) {
                if (i > 0)
                        buf_addch(&b, between);
                buf_addstr(&b, words[i]);
        }
        return buf_take(&b);
}

static void add(struct http_exchange *x, const struct key_ask *ask)
{
        char *scopes = join(&ask->scopes, ' ');
        char *adapters = ask->adapters.count > 0 ? join(&ask->adapters, ',') : NULL;
        char *agents = ask->agents.count > 0 ? join(&ask->agents, ',') : NULL;
        struct key *k = key_new(ask->name, scopes, adapters);
        const char *why;
        struct key_job *j;
        struct error err;

        key_set_agents(k, agents);
        free(scopes);
        free(adapters);
        free(agents);
        k->created_ms = clock_wall_ms();
        k->expires_ms = ask->expires_ms;
        k->rate_limit = ask->rate_limit;
        inherit(k, caller_of(x));
        why = exceeds(k, caller_of(x), &ask->agents);
        if (why) {
                key_unref(k);
                reply_error(x, 403, "FORBIDDEN", NULL, "a key cannot %s", why);
                return;
        }
        j = mem_zalloc(sizeof(*j));
        api_job_begin(&j->job, x);
        if (keyring_add(api_of(x)->keys, k, j->text, on_created, j, &err) == 0)
                return;
        reply_failed(api_job_end(&j->job), &err);
        free(j);
}

static void create(struct http_exchange *x)
{
        struct key_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (check(x, &b, &ask) < 0)
                reply_mistakes(x, &b);
        else if (keyring_by_name(api_of(x)->keys, ask.name, clock_wall_ms()))
                reply_error(
                        x, 409, "CONFLICT", "\"conflictReason\":\"name_taken\"",
                        "there is a key '%.100s' already; revoke it first or choose another name",
                        ask.name);
        else
                add(x, &ask);
        body_release(&b);
}

/* ---- revoking ---- */

static void on_revoked(void *arg, const struct key *k, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                write_key(&data, k);
                jsonw_close(&data, '}');
                reply_data(x, 200, &data);
        }
}

static void revoke_key(struct http_exchange *x)
{
        int64_t id = request_id(x, "key-", "key");
        struct key *k = id > 0 ? keyring_by_id(api_of(x)->keys, id) : NULL;
        struct api_job *j;

        if (id < 0)
                return;
        if (!k || k->revoked_ms > 0) {
                reply_missing(x, "valid key", http_param(x, "id"));
                return;
        }
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        keyring_revoke(api_of(x)->keys, k, on_revoked, j);
}

const struct route keys_routes[] = {
        { "GET", "/api/v2/keys", SCOPE_ADMIN, list, REACH_ALL,
          .summary = "The keys besides the operator's, oldest first, without their texts.",
          .status = 200, .answer = ROUTE_PAGE " of keys; a single page." },
        { "POST", "/api/v2/keys", SCOPE_ADMIN, create, REACH_ALL,
          .summary = "Create a key. Its text is in this answer and never shown again.",
          .body = key_fields, .status = 201, .answer = "{\"data\": key and \"key\", its text}",
          .example = ROUTE_JSON({
                  "name" : "shop",
                  "scopes" : [ "messages:write", "events:read" ],
                  "adapters" : ["api"],
                  "agents" : ["echo"],
                  "expiresAt" : "2030-01-31T00:00:00Z",
                  "rateLimit" : 600
          }),
          .example_answer = ROUTE_JSON({
                  "data" : {
                          "id" : "key-1",
                          "name" : "shop",
                          "prefix" : "dgk_a1B2c3D4",
                          "scopes" : [ "messages:write", "events:read" ],
                          "adapters" : ["api"],
                          "agents" : ["echo"],
                          "rateLimit" : 600,
                          "state" : "valid",
                          "madeBy" : null,
                          "createdAt" : "2026-11-15T10:00:00.000Z",
                          "expiresAt" : "2030-01-31T00:00:00.000Z",
                          "lastUsedAt" : null,
                          "revokedAt" : null,
                          "key" : "dgk_a1B2c3D4..."
                  }
          }) },
        { "DELETE", "/api/v2/keys/:id", SCOPE_ADMIN, revoke_key, REACH_ALL,
          .summary = "Revoke a key (key-N) and those made with it: they are refused from now on.",
          .status = 200, .answer = "{\"data\": key}" },
        ROUTE_END,
};
