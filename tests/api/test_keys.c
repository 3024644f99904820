/*
 * Keys and their rights, on every route. The walks below ask all routes, also those added later: a
 * new route with a missing or wrong reach fails here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/gate.h"
#include "../lib/scratch.h"
#include "api/core/key.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/turn/approval.h"

#define INBOUND "/api/v2/messages/inbound"

static const char *at(const struct api_answer *a, const char *first, const char *second)
{
        return json_str(json_object_get(a->json, first), second, NULL);
}

static struct api_answer ask_as(struct api_rig *r, const char *key, const char *method,
                                const char *path, const char *body)
{
        char *headers = mem_printf("Host: %s\r\nx-api-key: %s\r\n", api_address(r->api), key);
        struct api_answer a = api_rig_ask_as(r, method, path, headers, body);

        free(headers);
        return a;
}

static void expect(struct api_answer a, int status, const char *code)
{
        assert_int_equal(a.status, status);
        if (code)
                assert_string_equal(at(&a, "error", "code"), code);
        api_answer_release(&a);
}

/* Creates a key and returns its text; yours to free. */
static char *make_key(struct api_rig *r, const char *body)
{
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/keys", body);
        char *text;

        if (a.status != 201)
                fail_msg("%s", a.text);
        text = mem_strdup(at(&a, "data", "key"));
        assert_memory_equal(text, at(&a, "data", "prefix"), KEY_PREFIX_SIZE - 1);
        api_answer_release(&a);
        return text;
}

/* Beside "echo". */
static void add_other_agent(struct api_rig *r)
{
        struct error err = { 0 };
        struct agent_conf *agents[] = { agent_conf_make("echo", "echo", "{}", &err),
                                        agent_conf_make("other", "echo", "{}", &err),
                                        agent_conf_make("third", "echo", "{}", &err) };

        assert_int_equal(agents_apply(r->agents, agents, COUNT(agents), &err), 0);
}

/* ---- creating, revoking, expiring ---- */

static void a_key_is_shown_once_and_stored_as_digest(void **state)
{
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"shop\",\"scopes\":[\"read\"]}");
        struct api_answer a = api_rig_ask(r, "GET", "/api/v2/keys", NULL);
        const json_t *k = json_array_get(json_object_get(a.json, "items"), 0);
        char *file = mem_printf("%s/state/main.db-wal", r->dir), *wal = mem_zalloc(1 << 20);
        FILE *f = fopen(file, "r");
        size_t n;

        assert_int_equal(strlen(text), 44);
        assert_null(strstr(a.text, text));
        assert_string_equal(json_str(k, "name", ""), "shop");
        assert_string_equal(json_str(k, "state", ""), "valid");
        assert_non_null(f);
        n = fread(wal, 1, 1 << 20, f);
        fclose(f);
        assert_non_null(memmem(wal, n, "shop", 4));
        assert_null(memmem(wal, n, text, strlen(text)));
        free(wal);
        free(file);
        free(text);
        api_answer_release(&a);
}

static void a_revoked_key_is_refused(void **state)
{
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"shop\",\"scopes\":[\"read\"]}");

        expect(ask_as(r, text, "GET", "/api/v2/events", NULL), 200, NULL);
        expect(api_rig_ask(r, "DELETE", "/api/v2/keys/key-1", NULL), 200, NULL);
        expect(ask_as(r, text, "GET", "/api/v2/events", NULL), 401, "UNAUTHORIZED");
        expect(api_rig_ask(r, "DELETE", "/api/v2/keys/key-1", NULL), 404, "NOT_FOUND");
        expect(api_rig_ask(r, "DELETE", "/api/v2/keys/key-7", NULL), 404, "NOT_FOUND");
        free(text);
}

static void two_requests_at_once_cannot_take_one_name(void **state)
{
        static const char body[] = "{\"name\":\"shop\",\"scopes\":[\"read\"]}";
        struct api_rig *r = *state;
        struct http_raw c[2];
        int sum = 0;

        for (size_t i = 0; i < COUNT(c); i++)
                api_rig_send(r, &c[i], "POST", "/api/v2/keys", "", body);
        for (size_t i = 0; i < COUNT(c); i++) {
                struct api_answer a = api_rig_receive(&c[i]);

                sum += a.status;
                api_answer_release(&a);
        }
        assert_int_equal(sum, 201 + 409);
}

static void keys_and_their_last_use_survive_a_restart(void **state)
{
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"shop\",\"scopes\":[\"events:read\"],"
                                 "\"adapters\":[\"api\"],\"agents\":[\"echo\"]}");
        struct api_answer a;
        const json_t *k;

        expect(ask_as(r, text, "GET", "/api/v2/events", NULL), 200, NULL);
        api_rig_restart(r);
        expect(ask_as(r, text, "GET", "/api/v2/turns", NULL), 403, "FORBIDDEN");
        a = api_rig_ask(r, "GET", "/api/v2/keys", NULL);
        k = json_array_get(json_object_get(a.json, "items"), 0);
        assert_true(json_is_string(json_object_get(k, "lastUsedAt")));
        assert_string_equal(json_string_value(json_array_get(json_object_get(k, "adapters"), 0)),
                            "api");
        assert_string_equal(json_string_value(json_array_get(json_object_get(k, "agents"), 0)),
                            "echo");
        assert_string_equal(json_string_value(json_array_get(json_object_get(k, "scopes"), 0)),
                            "events:read");
        api_answer_release(&a);
        free(text);
}

static void an_expired_key_is_refused(void **state)
{
        struct key *k = key_new("k", "read", NULL);

        (void)state;
        assert_true(key_is_live(k, 1000));
        k->expires_ms = 1000;
        assert_true(key_is_live(k, 999));
        assert_false(key_is_live(k, 1000));
        key_unref(k);
        expect(api_rig_ask(*state, "POST", "/api/v2/keys",
                           "{\"name\":\"k\",\"scopes\":[\"read\"],"
                           "\"expiresAt\":\"2020-01-01T00:00:00Z\"}"),
               400, "VALIDATION_ERROR");
}

static void an_invalid_key_request_is_refused(void **state)
{
        static const char *const bodies[] = {
                "{\"scopes\":[\"read\"]}",
                "{\"name\":\"k\"}",
                "{\"name\":\"k\",\"scopes\":[]}",
                "{\"name\":\"k\",\"scopes\":\"read\"}",
                "{\"name\":\"k\",\"scopes\":[\"reed\"]}",
                "{\"name\":\"k\",\"scopes\":[7]}",
                "{\"name\":\"k\",\"scopes\":[\"nothing:read\"]}",
                "{\"name\":\"k\",\"scopes\":[\"events:\"]}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[]}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[\"nowhere\"]}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[\"api,terminal\"]}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"rateLimit\":0}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"rateLimit\":true}",
                "{\"name\":\"k\",\"scopes\":[\"read\"],\"extra\":1}",
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(bodies); i++)
                expect(api_rig_ask(r, "POST", "/api/v2/keys", bodies[i]), 400, "VALIDATION_ERROR");
        free(make_key(r, "{\"name\":\"k\",\"scopes\":[\"read\"]}"));
        expect(api_rig_ask(r, "POST", "/api/v2/keys", "{\"name\":\"k\",\"scopes\":[\"read\"]}"),
               409, "CONFLICT");
}

static void a_key_cannot_exceed_its_creator(void **state)
{
        struct api_rig *r = *state;
        char *text =
                make_key(r, "{\"name\":\"clerk\",\"scopes\":[\"keys:admin\",\"events:read\"]}");

        expect(ask_as(r, text, "POST", "/api/v2/keys", "{\"name\":\"a\",\"scopes\":[\"read\"]}"),
               403, "FORBIDDEN");
        expect(ask_as(r, text, "POST", "/api/v2/keys", "{\"name\":\"b\",\"scopes\":[\"*\"]}"), 403,
               "FORBIDDEN");
        expect(ask_as(r, text, "POST", "/api/v2/keys",
                      "{\"name\":\"c\",\"scopes\":[\"events:read\"]}"),
               201, NULL);
        free(text);
}

static void a_key_neither_outlives_nor_outranks_its_maker(void **state)
{
        static const struct {
                const char *more; /* of the new key */
                int status;
        } rows[] = {
                { "", 201 },
                { ",\"expiresAt\":\"2098-12-31T00:00:00Z\",\"rateLimit\":5", 201 },
                { ",\"expiresAt\":\"2099-02-01T00:00:00Z\"", 403 },
                { ",\"rateLimit\":51", 403 },
                { ",\"agents\":[\"echo\"]", 201 },
                { ",\"agents\":[\"echo\",\"other\"]", 403 },
        };
        struct api_rig *r = *state;
        char *maker;

        add_other_agent(r);
        maker = make_key(r, "{\"name\":\"maker\",\"scopes\":[\"keys:admin\"],\"rateLimit\":50,"
                            "\"agents\":[\"echo\"],\"expiresAt\":\"2099-01-31T00:00:00Z\"}");
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = mem_printf("{\"name\":\"k%zu\",\"scopes\":[\"keys:read\"]%s}", i,
                                        rows[i].more);
                struct api_answer a = ask_as(r, maker, "POST", "/api/v2/keys", body);

                if (a.status != rows[i].status)
                        fail_msg("row %zu: %s", i, a.text);
                if (i == 0) { /* what is left out is its maker's */
                        assert_string_equal(at(&a, "data", "expiresAt"),
                                            "2099-01-31T00:00:00.000Z");
                        assert_int_equal(json_int(json_object_get(a.json, "data"), "rateLimit", 0),
                                         50);
                        assert_non_null(strstr(a.text, "\"agents\":[\"echo\"]"));
                        assert_string_equal(at(&a, "data", "madeBy"), "key-1");
                }
                api_answer_release(&a);
                free(body);
        }
        free(maker);
}

static void revoking_a_key_revokes_those_made_with_it(void **state)
{
        struct api_rig *r = *state;
        char *family[3], *stranger;

        family[0] = make_key(r, "{\"name\":\"k0\",\"scopes\":[\"admin\"]}");
        stranger = make_key(r, "{\"name\":\"s\",\"scopes\":[\"read\"]}");
        for (size_t i = 1; i < COUNT(family); i++) {
                char *body = mem_printf("{\"name\":\"k%zu\",\"scopes\":[\"admin\"]}", i);
                struct api_answer a = ask_as(r, family[i - 1], "POST", "/api/v2/keys", body);

                assert_int_equal(a.status, 201);
                family[i] = mem_strdup(at(&a, "data", "key"));
                api_answer_release(&a);
                free(body);
        }
        api_rig_restart(r); /* who made which is stored */
        expect(api_rig_ask(r, "DELETE", "/api/v2/keys/key-1", NULL), 200, NULL);
        for (int restarted = 0; restarted < 2; restarted++) {
                for (size_t i = 0; i < COUNT(family); i++)
                        expect(ask_as(r, family[i], "GET", "/api/v2/events", NULL), 401,
                               "UNAUTHORIZED");
                expect(ask_as(r, stranger, "GET", "/api/v2/events", NULL), 200, NULL);
                api_rig_restart(r);
        }
        for (size_t i = 0; i < COUNT(family); i++)
                free(family[i]);
        free(stranger);
}

/* The store is slow: the maker is revoked before its key is stored. */
static void a_key_that_is_being_made_goes_with_its_maker(void **state)
{
        static const char body[] = "{\"name\":\"made\",\"scopes\":[\"admin\"]}";
        static struct gate gate;
        struct api_rig *r = *state;
        char *maker = make_key(r, "{\"name\":\"maker\",\"scopes\":[\"admin\"]}");
        char *ask = mem_printf("POST /api/v2/keys HTTP/1.1\r\nHost: %s\r\nx-api-key: %s\r\n"
                               "Content-Length: %zu\r\n\r\n%s",
                               api_address(r->api), maker, strlen(body), body);
        struct http_raw making, revoking;
        struct api_answer a;

        gate_close(&gate, r->store);
        http_raw_open(&making, r->loop, api_address(r->api));
        assert_true(http_raw_say(&making, ask));
        expect(api_rig_ask(r, "GET", "/healthz", NULL), 200, NULL); /* it is under way */
        api_rig_send(r, &revoking, "DELETE", "/api/v2/keys/key-1", "", NULL);
        expect(api_rig_ask(r, "GET", "/healthz", NULL), 200, NULL);
        gate_open(&gate);
        a = api_rig_receive(&making);
        assert_int_equal(a.status, 201);
        expect(ask_as(r, at(&a, "data", "key"), "GET", "/api/v2/events", NULL), 401,
               "UNAUTHORIZED");
        api_answer_release(&a);
        expect(api_rig_receive(&revoking), 200, NULL);
        free(ask);
        free(maker);
}

/* ---- agents of a key ---- */

#define QUESTION "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"

static int ask_agent(struct api_rig *r, const char *key, const char *agent)
{
        char *body = mem_printf("{\"model\":\"%s\"," QUESTION, agent);
        struct api_answer a = ask_as(r, key, "POST", "/v1/chat/completions", body);
        int status = a.status;

        api_answer_release(&a);
        free(body);
        body = mem_printf("{\"agent\":\"%s\",\"messages\":[{\"type\":\"human\","
                          "\"content\":\"hello\"}]}",
                          agent);
        a = ask_as(r, key, "POST", "/api/agent/chat", body);
        assert_int_equal(a.status, status); /* every way to name one is checked alike */
        api_answer_release(&a);
        free(body);
        if (strcmp(agent, "dragoman") != 0) {
                body = mem_printf("/api/v2/agents/%s/test", agent);
                a = ask_as(r, key, "POST", body, "{}");
                assert_int_equal(a.status, status == 409 ? 200 : status);
                api_answer_release(&a);
                free(body);
        }
        return status;
}

static void a_key_asks_only_its_agents(void **state)
{
        static const struct {
                const char *key, *agent;
                int status;
        } rows[] = {
                /* with a list, those of the list */
                { "\"agents\":[\"other\"]", "other", 200 },
                { "\"agents\":[\"other\"]", "echo", 403 },
                { "\"agents\":[\"other\"]", "dragoman", 200 },
                { "\"agents\":[\"other\"],\"adapters\":[\"api\"]", "other", 200 },
                /* without, those that its adapters or their rules can choose */
                { "\"adapters\":[\"api\"]", "echo", 200 },
                { "\"adapters\":[\"api\"]", "third", 200 },
                { "\"adapters\":[\"api\"]", "other", 403 },
                { "\"adapters\":[\"api\"]", "dragoman", 200 },
                /* a key of all adapters asks all */
                { "\"rateLimit\":1000", "other", 200 },
                { "\"rateLimit\":1000", "none", 404 },
        };
        struct api_rig *r = *state;

        add_other_agent(r);
        api_rig_dispatch(r, NULL,
                         "[{\"when\":{\"adapter\":\"api\",\"text\":\"third\"},"
                         "\"agent\":\"third\"},"
                         "{\"when\":{\"adapter\":\"api\",\"text\":\"hello\"}}]");
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = mem_printf("{\"name\":\"k%zu\",\"scopes\":[\"read\",\"write\"],%s}", i,
                                        rows[i].key);
                char *key = make_key(r, body), *path = mem_printf("/v1/models/%s", rows[i].agent);
                struct api_answer a;
                int status = ask_agent(r, key, rows[i].agent);

                if (status != rows[i].status)
                        fail_msg("row %zu: %d", i, status);
                a = ask_as(r, key, "GET", path, NULL);
                assert_int_equal(a.status, status == 200 ? 200 : 404);
                api_answer_release(&a);
                a = ask_as(r, key, "GET", "/v1/models", NULL);
                free(path);
                path = mem_printf("\"id\":\"%s\"", rows[i].agent);
                assert_int_equal(strstr(a.text, path) != NULL, status == 200);
                api_answer_release(&a);
                free(path);
                free(body);
                free(key);
        }
}

static void a_rate_limited_key_learns_when_to_retry(void **state)
{
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"k\",\"scopes\":[\"read\"],\"rateLimit\":2}");
        struct api_answer a = ask_as(r, text, "GET", "/api/v2/events", NULL);

        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.text, "X-RateLimit-Limit: 2\r\n"));
        assert_non_null(strstr(a.text, "X-RateLimit-Remaining: 1\r\n"));
        api_answer_release(&a);
        expect(ask_as(r, text, "GET", "/api/v2/events", NULL), 200, NULL);
        a = ask_as(r, text, "GET", "/api/v2/events", NULL);
        assert_int_equal(a.status, 429);
        assert_non_null(strstr(a.text, "Retry-After: "));
        assert_non_null(strstr(a.text, "X-RateLimit-Remaining: 0\r\n"));
        assert_string_equal(at(&a, "error", "code"), "RATE_LIMITED");
        api_answer_release(&a);
        /* other keys are unaffected */
        expect(api_rig_ask(r, "GET", "/api/v2/events", NULL), 200, NULL);
        free(text);
}

static void the_rate_limit_refills_with_time(void **state)
{
        struct key *k = key_new("k", "read", NULL);
        int64_t wait_ms = 0;

        (void)state;
        k->rate_limit = 60;
        for (int i = 0; i < 60; i++)
                assert_true(key_spend(k, 5000, &wait_ms));
        assert_false(key_spend(k, 5000, &wait_ms));
        assert_in_range(wait_ms, 900, 1001);
        assert_false(key_spend(k, 5900, &wait_ms));
        assert_true(key_spend(k, 6001, &wait_ms));
        assert_false(key_spend(k, 6001, &wait_ms));
        for (int i = 0; i < 60; i++)
                assert_true(key_spend(k, 900000, &wait_ms));
        assert_false(key_spend(k, 900000, &wait_ms));
        key_unref(k);
}

static void a_key_reaches_adapters_by_their_whole_name(void **state)
{
        struct key *k = key_new("k", "read", "api,tg-2");

        (void)state;
        assert_true(key_reaches(k, "api"));
        assert_true(key_reaches(k, "tg-2"));
        assert_false(key_reaches(k, "tg"));
        assert_false(key_reaches(k, "ap"));
        assert_false(key_reaches(k, "api,tg-2"));
        assert_false(key_reaches(k, ""));
        assert_false(key_reaches(k, NULL));
        key_unref(k);
}

/* ---- every route ---- */

static void every_route_declares_its_reach(void **state)
{
        (void)state;
        ROUTES_FOREACH(r) {
                bool instance = false;

                if (r->reach == REACH_UNDECLARED)
                        fail_msg("%s %s does not say whose adapter it is about (.reach)", r->method,
                                 r->path);
                for (const struct field *f = r->body; f && f->name; f++)
                        instance = instance ||
                                   (strcmp(f->name, "instanceId") == 0 && f->type == FIELD_STRING);
                assert_true(r->reach != REACH_BODY || instance);
                assert_true(r->reach != REACH_ROW || (r->row_scope && strstr(r->path, "/:id")));
                assert_true(r->reach != REACH_PATH || strstr(r->path, "/:adapter"));
        }
}

/* Replaces ":x" by a value of this rig. */
static char *filled(const char *path, const char *id, const char *adapter)
{
        struct buf b;

        buf_init(&b, 0);
        while (*path) {
                size_t n = strcspn(path, ":");

                buf_add(&b, path, n);
                path += n;
                if (*path != ':')
                        break;
                n = strcspn(path, "/");
                buf_addstr(&b, strncmp(path, ":adapter", n) == 0 ? adapter : id);
                path += n;
        }
        return buf_take(&b);
}

static bool is_stream(const struct route *r)
{
        return r->content_type && strcmp(r->content_type, "text/event-stream") == 0;
}

/* With its own example as the body. */
static struct api_answer ask_route(struct api_rig *r, const char *key, const struct route *route,
                                   const char *id, const char *adapter, const char *body)
{
        char *path = filled(route->path, id, adapter);
        char *headers = mem_printf("Host: %s\r\nx-api-key: %s\r\n"
                                   "X-Dragoman-Instance: %s\r\n",
                                   api_address(r->api), key, adapter);
        struct api_answer a =
                api_rig_ask_as(r, route->method, path, headers, body ? body : route->example);

        free(headers);
        free(path);
        return a;
}

static void a_scope_opens_its_routes_and_no_others(void **state)
{
        static const struct {
                const char *name, *body;
                enum scope level;
        } rows[] = {
                { "reader", "{\"name\":\"reader\",\"scopes\":[\"read\"],\"rateLimit\":100000}",
                  SCOPE_READ },
                { "writer", "{\"name\":\"writer\",\"scopes\":[\"write\"],\"rateLimit\":100000}",
                  SCOPE_WRITE },
        };
        struct api_rig *r = *state;

        for (size_t k = 0; k < COUNT(rows); k++) {
                char *text = make_key(r, rows[k].body);

                ROUTES_FOREACH(route) {
                        struct api_answer a;

                        if (route->scope == SCOPE_NONE || route->keyless ||
                            (is_stream(route) && route->scope <= rows[k].level))
                                continue;
                        a = ask_route(r, text, route, "x", "api", NULL);
                        if ((a.status == 403) != (route->scope > rows[k].level) || a.status == 401)
                                fail_msg("%s asks %s %s: %s", rows[k].name, route->method,
                                         route->path, a.text);
                        api_answer_release(&a);
                }
                free(text);
        }
}

static void a_scope_of_one_resource_opens_only_that(void **state)
{
        struct api_rig *r = *state;
        char *text =
                make_key(r, "{\"name\":\"k\",\"scopes\":[\"turns:read\"],\"rateLimit\":100000}");

        ROUTES_FOREACH(route) {
                bool may = route->scope == SCOPE_READ &&
                           strncmp(route->path, "/api/v2/turns", 13) == 0;
                struct api_answer a;

                if (route->scope == SCOPE_NONE || route->keyless)
                        continue;
                a = ask_route(r, text, route, "x", "api", NULL);
                if ((a.status == 403) == may)
                        fail_msg("%s %s: %s", route->method, route->path, a.text);
                api_answer_release(&a);
        }
        free(text);
}

static void without_a_key_only_public_routes_are_open(void **state)
{
        struct api_rig *r = *state;

        ROUTES_FOREACH(route) {

                if (route->scope != SCOPE_NONE && !route->keyless)
                        expect(ask_route(r, "dgk_12345678wrong", route, "x", "api", NULL), 401,
                               "UNAUTHORIZED");
        }
}

/* ---- restricted to adapters ---- */

/* Rows of the terminal, which a key for the other adapter must never see or change. */
#define HIDDEN_CHAT                                                                             \
        "{\"instanceId\":\"terminal\",\"chatId\":\"hidden-room\",\"text\":\"%s hidden-words\"," \
        "\"externalId\":\"%s\",\"sender\":{\"id\":\"hidden-person\"}}"

static void hide(struct api_rig *r, const char *word, const char *key)
{
        char *body = mem_printf(HIDDEN_CHAT, word, key);
        struct api_answer a = api_rig_ask(r, "POST", INBOUND "?wait=15000", body);

        if (a.status != 202)
                fail_msg("%s", a.text);
        api_answer_release(&a);
        free(body);
}

static void on_decided(void *arg, const struct approval_decision *d)
{
        (void)arg;
        (void)d;
}

/* A turn of the terminal that waits for an approval. */
static void hide_approval(struct api_rig *r)
{
        char *body = mem_printf(HIDDEN_CHAT, "hang", "their-question");

        expect(api_rig_ask(r, "POST", INBOUND, body), 202, NULL);
        free(body);
        api_rig_until(r, &r->hanging_count, 1);
        turn_ask_approval(r->hanging[0],
                          &(struct approval_request){ .call = "c",
                                                      .tool = "bash",
                                                      .title = "do hidden things",
                                                      .detail = "hidden-detail",
                                                      .subject = "{}",
                                                      .reason = "hidden-reason",
                                                      .approvers = APPROVERS_ADMINS,
                                                      .expires_ms = 3600000 },
                          on_decided, NULL);
        for (int i = 0; i < 10000 && api_rig_count(r, "approvals") == 0; i++)
                loop_step(r->loop, true);
}

/* With any status, the answer must contain nothing of the terminal. */
static void expect_nothing_hidden(const struct route *route, const char *id,
                                  const struct api_answer *a)
{
        if (strstr(a->text, "hidden"))
                fail_msg("%s %s with %s shows what it must not: %s", route->method, route->path, id,
                         a->text);
        if (strstr(route->path, "/:id") && route->reach != REACH_ALL && a->status != 404 &&
            a->status != 400 && a->status != 403)
                fail_msg("%s %s with %s: %s", route->method, route->path, id, a->text);
}

/* The example, with the terminal as its adapter. */
static char *about_the_terminal(const char *example)
{
        json_t *body = example ? json_loads(example, 0, NULL) : NULL;
        json_t *event = json_object_get(body, "event");
        char *text;

        if (!body)
                return NULL;
        json_object_set_new(json_is_object(event) ? event : body, "instanceId",
                            json_string("terminal"));
        text = json_dumps(body, 0);
        json_decref(body);
        return text;
}

static void a_restricted_key_reaches_nothing_of_another_adapter(void **state)
{
        /*
         * the answered message, its turn and delivery, the dead turn, its own key, and what is no
         * number
         */
        static const char *const ids[] = { "evt-1",     "evt-2", "evt-3",  "trn-1", "trn-2",
                                           "dlv-1",     "dlv-2", "conv-1", "1",     "2",
                                           "their-key", "apr-3", "sch-1",  "cal-1" };
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"k\",\"scopes\":[\"admin\"],\"adapters\":[\"api\"],"
                                 "\"rateLimit\":100000}");
        unsigned turns;

        hide(r, "say", "their-key");
        hide(r, "fail", "their-other");
        hide_approval(r);
        expect(api_rig_ask(r, "POST", "/api/v2/chats/terminal/hidden-room/pause", "{}"), 200, NULL);
        expect(api_rig_ask(r, "POST", "/api/v2/schedules",
                           "{\"in\":\"1h\",\"text\":\"hidden\",\"instanceId\":\"terminal\","
                           "\"to\":\"hidden-room\"}"),
               201, NULL);
        expect(api_rig_ask(r, "POST", "/api/v2/calendar/events",
                           "{\"when\":\"in 2 hours\",\"title\":\"hidden\","
                           "\"instanceId\":\"terminal\",\"channelId\":\"hidden-room\"}"),
               201, NULL);
        turns = r->turns;
        ROUTES_FOREACH(route) {
                bool many = strstr(route->path, "/:") != NULL;
                char *body = about_the_terminal(route->example);

                if (route->scope == SCOPE_NONE || route->keyless || is_stream(route)) {
                        free(body);
                        continue;
                }
                for (size_t k = 0; k < (many ? COUNT(ids) : 1); k++) {
                        struct api_answer a = ask_route(r, text, route, ids[k], "terminal",
                                                        route->reach == REACH_ROW ? NULL : body);

                        expect_nothing_hidden(route, ids[k], &a);
                        if ((route->reach == REACH_ALL || route->reach == REACH_BODY ||
                             route->reach == REACH_PATH) &&
                            a.status != 403)
                                fail_msg("%s %s: %s", route->method, route->path, a.text);
                        api_answer_release(&a);
                }
                free(body);
        }
        assert_int_equal(r->turns, turns);
        free(text);
}

/*
 * The same walk finds the hidden texts as the operator, so the walk above really looked for them.
 */
static void the_operator_sees_everything(void **state)
{
        static const char *const paths[] = { "/api/v2/events",
                                             "/api/v2/events/evt-1",
                                             "/api/v2/turns",
                                             "/api/v2/turns/trn-1",
                                             "/api/v2/deliveries",
                                             "/api/v2/deliveries/dlv-1",
                                             "/api/v2/trigger-logs",
                                             "/api/v2/dead-letters",
                                             "/api/v2/approvals",
                                             "/api/v2/approvals/apr-3",
                                             "/api/v2/why/evt-1",
                                             "/api/v2/why/their-key",
                                             "/api/v2/chats",
                                             "/api/v2/chats?sort=name",
                                             "/api/v2/chats/terminal/hidden-room/messages" };
        struct api_rig *r = *state;

        hide(r, "say", "their-key");
        hide(r, "fail", "their-other");
        hide_approval(r);
        for (size_t i = 0; i < COUNT(paths); i++) {
                struct api_answer a = api_rig_ask(r, "GET", paths[i], NULL);

                if (a.status != 200 || !strstr(a.text, "hidden"))
                        fail_msg("%s: %s", paths[i], a.text);
                api_answer_release(&a);
        }
}

static void a_restricted_key_sees_its_own_adapter(void **state)
{
        static const char *const paths[] = { "/api/v2/events",       "/api/v2/events/evt-1",
                                             "/api/v2/turns",        "/api/v2/turns/trn-1",
                                             "/api/v2/deliveries",   "/api/v2/deliveries/dlv-1",
                                             "/api/v2/trigger-logs", "/api/v2/why/evt-1",
                                             "/api/v2/instances" };
        struct api_rig *r = *state;
        char *text =
                make_key(r, "{\"name\":\"k\",\"scopes\":[\"write\"],\"adapters\":[\"terminal\"]}");

        hide(r, "say", "their-key");
        for (size_t i = 0; i < COUNT(paths); i++) {
                struct api_answer a = ask_as(r, text, "GET", paths[i], NULL);

                if (a.status != 200 ||
                    !(strstr(a.text, "hidden") || strstr(a.text, "\"terminal\"")) ||
                    strstr(a.text, "\"api\""))
                        fail_msg("%s: %s", paths[i], a.text);
                api_answer_release(&a);
        }
        expect(ask_as(r, text, "POST", "/api/v2/messages/send",
                      "{\"instanceId\":\"terminal\",\"to\":\"a\",\"text\":\"b\"}"),
               202, NULL);
        expect(ask_as(r, text, "POST", INBOUND, "{\"instanceId\":\"terminal\",\"text\":\"b\"}"),
               202, NULL);
        /* without instanceId it would be the adapter "api" */
        expect(ask_as(r, text, "POST", INBOUND, "{\"text\":\"b\"}"), 403, "FORBIDDEN");
        free(text);
}

static void configure(struct api_rig *r, struct adapter_conf **confs, size_t count)
{
        struct error err = { 0 };

        for (size_t i = 0; i < count; i++)
                assert_non_null(confs[i]);
        if (adapters_apply(r->adapters, confs, count, &err) < 0)
                fail_msg("%s", err.text);
}

/* Files of all chats are in one workspace. */
static void a_restricted_key_sends_no_files_of_another_adapter(void **state)
{
        static const char bot[] = "{\"botToken\":\"1:x\",\"apiBase\":\"http://127.0.0.1:1\"}";
        static const struct {
                const char *path;
                int restricted, operator;
        } rows[] = {
                { "channels/tg/7/attachments/a.png", 202, 202 },
                { "channels/tg/a..b", 202, 202 },
                { "channels/hidden/7/attachments/a.png", 403, 202 },
                { "channels/tg2/7/a.png", 403, 202 },
                { "channels/tg", 403, 202 },
                { "./channels/tg/7/a.png", 403, 202 },
                { "MEMORY.md", 403, 202 },
                { "channels/tg/../hidden/a.png", 400, 400 },
                { "/etc/passwd", 400, 400 },
                { "..", 400, 400 },
        };
        struct api_rig *r = *state;
        struct error err = { 0 };
        struct adapter_conf *confs[] = { adapter_conf_make("api", "api", "{}", &err),
                                         adapter_conf_make("tg", "telegram", bot, &err) };
        char *text;

        configure(r, confs, COUNT(confs));
        text = make_key(r, "{\"name\":\"k\",\"scopes\":[\"write\"],\"adapters\":[\"tg\"]}");
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = mem_printf("{\"instanceId\":\"tg\",\"to\":\"7\",\"path\":\"%s\"}",
                                        rows[i].path);

                expect(ask_as(r, text, "POST", "/api/v2/messages/send/media", body),
                       rows[i].restricted,
                       rows[i].restricted == 202   ? NULL
                       : rows[i].restricted == 403 ? "FORBIDDEN"
                                                   : "VALIDATION_ERROR");
                expect(ask_as(r, r->key, "POST", "/api/v2/messages/send/media", body),
                       rows[i].operator, rows[i].operator== 202 ? NULL : "VALIDATION_ERROR");
                free(body);
        }
        free(text);
}

/* The dry run shows the rules of the adapter and hides those of others. */
static void a_dry_run_hides_rules_of_other_adapters(void **state)
{
        static const char asked[] = "{\"event\":{\"instanceId\":\"api\",\"channel\":\"c\","
                                    "\"payload\":{\"text\":\"hi\"}}}";
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[\"api\"]}");
        struct dispatch_adapter *known = mem_array(2, sizeof(*known));
        struct api_answer a;

        known[0] = (struct dispatch_adapter){ .name = mem_strdup("api"),
                                              .platform = mem_strdup("api"),
                                              .trusted = true };
        known[1] = (struct dispatch_adapter){ .name = mem_strdup("terminal"),
                                              .platform = mem_strdup("cli"),
                                              .trusted = true };
        dispatch_set(r->dispatch, known, 2, NULL, 0, "echo");
        expect(api_rig_ask(r, "POST", "/api/v2/rules",
                           "{\"rule\":{\"name\":\"hidden\",\"when\":{\"adapter\":\"terminal\"},"
                           "\"agent\":\"echo\"}}"),
               201, NULL);
        expect(api_rig_ask(r, "POST", "/api/v2/rules",
                           "{\"rule\":{\"name\":\"ours\",\"when\":{\"adapter\":\"api\"},"
                           "\"agent\":\"echo\"}}"),
               201, NULL);
        a = ask_as(r, r->key, "POST", "/api/v2/route-test", asked);
        assert_non_null(strstr(a.text, "hidden"));
        api_answer_release(&a);
        a = ask_as(r, text, "POST", "/api/v2/route-test", asked);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.text, "ours"));
        assert_null(strstr(a.text, "hidden"));
        assert_null(strstr(a.text, "terminal"));
        api_answer_release(&a);
        hide(r, "say", "their-key");
        expect(ask_as(r, text, "POST", "/api/v2/route-test", "{\"eventId\":\"evt-1\"}"), 404,
               "NOT_FOUND");
        expect(ask_as(r, r->key, "POST", "/api/v2/route-test", "{\"eventId\":\"evt-1\"}"), 200,
               NULL);
        free(text);
}

static struct api_answer send_once(struct api_rig *r, const char *key, const char *once,
                                   const char *path, const char *body)
{
        char *headers = mem_printf("Host: %s\r\nx-api-key: %s\r\nIdempotency-Key: %s\r\n",
                                   api_address(r->api), key, once);
        struct api_answer a = api_rig_ask_as(r, "POST", path, headers, body);

        free(headers);
        return a;
}

static void each_key_has_its_own_idempotency_keys(void **state)
{
        static const char hello[] =
                "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
        struct api_rig *r = *state;
        char *a = make_key(r, "{\"name\":\"a\",\"scopes\":[\"write\"]}"),
             *b = make_key(r, "{\"name\":\"b\",\"scopes\":[\"write\"]}");
        const char *const keys[] = { a, b, r->key };

        for (size_t i = 0; i < COUNT(keys); i++) {
                char *body =
                        mem_printf("{\"instanceId\":\"api\",\"to\":\"c\",\"text\":\"%zu\"}", i);

                expect(send_once(r, keys[i], "one", "/api/v2/messages/send", body), 202, NULL);
                expect(send_once(r, keys[i], "one", "/v1/chat/completions", hello), 200, NULL);
                free(body);
        }
        assert_int_equal(r->turns, COUNT(keys));
        free(a);
        free(b);
}

static void expect_new_delivery(struct api_answer a)
{
        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "queued");
        api_answer_release(&a);
}

/* No idempotency key collides with one of another API key or of the daemon itself. */
static void a_client_cannot_forge_anothers_idempotency_key(void **state)
{
        static const char hello[] =
                "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
        static const char body[] = "{\"instanceId\":\"api\",\"to\":\"c\",\"text\":\"t\"}";
        static const char *const names[] = { "one", "key-1:one", "key-0:one", "reply:trn-1:late",
                                             "key-1:key-1:one" };
        struct api_rig *r = *state;
        char *a = make_key(r, "{\"name\":\"a\",\"scopes\":[\"write\"]}");

        for (size_t i = 0; i < COUNT(names); i++) {
                expect_new_delivery(send_once(r, a, names[i], "/api/v2/messages/send", body));
                expect_new_delivery(send_once(r, r->key, names[i], "/api/v2/messages/send", body));
        }
        expect(send_once(r, a, "one", "/v1/chat/completions", hello), 200, NULL);
        expect(ask_as(r, r->key, "POST", INBOUND,
                      "{\"text\":\"a\",\"externalId\":\"openai:1:one\"}"),
               400, "VALIDATION_ERROR");
        expect(ask_as(r, r->key, "POST", INBOUND,
                      "{\"text\":\"a\",\"externalId\":\"agent-chat:1:one\"}"),
               400, "VALIDATION_ERROR");
        free(a);
}

static void a_keys_stream_shows_its_adapters_and_ends_with_it(void **state)
{
        struct api_rig *r = *state;
        char *text = make_key(r, "{\"name\":\"k\",\"scopes\":[\"read\"],\"adapters\":[\"api\"]}");
        char *request = mem_printf(
                "GET /api/v2/events/stream?after=evt-0 HTTP/1.1\r\nHost: %s\r\nx-api-key: "
                "%s\r\n\r\n",
                api_address(r->api), text);
        struct http_raw c;

        hide(r, "before", "hidden-1");
        http_raw_open(&c, r->loop, api_address(r->api));
        assert_true(http_raw_say(&c, request));
        assert_true(http_raw_wait_for(&c, "text/event-stream"));
        hide(r, "after", "hidden-2");
        expect(api_rig_ask(r, "POST", INBOUND "?wait=15000", "{\"text\":\"open words\"}"), 202,
               NULL);
        assert_true(http_raw_wait_for(&c, "re: open words"));
        assert_null(strstr(c.in.data, "hidden"));
        expect(api_rig_ask(r, "DELETE", "/api/v2/keys/key-1", NULL), 200, NULL);
        expect(api_rig_ask(r, "POST", INBOUND "?wait=15000", "{\"text\":\"later words\"}"), 202,
               NULL);
        assert_true(http_raw_wait_closed(&c));
        assert_null(strstr(c.in.data, "later words"));
        http_raw_close(&c);
        free(request);
        free(text);
}

static void a_key_makes_backups_in_one_folder(void **state)
{
        static const char *const refused[] = { "/tmp/x.db", "../x.db", "../../x.db",
                                               "state/backups/../x.db" };
        struct api_rig *r = *state;
        char *key = make_key(r, "{\"name\":\"copies\",\"scopes\":[\"backup:admin\"]}");
        char *outside = scratch_path(r->dir, "operators.db"), *body;
        struct api_answer a;

        for (size_t i = 0; i < COUNT(refused); i++) {
                body = mem_printf("{\"path\":\"%s\"}", refused[i]);
                a = ask_as(r, key, "POST", "/api/v2/backup", body);
                assert_int_equal(a.status, 400);
                assert_non_null(strstr(a.text, "beneath state/backups"));
                api_answer_release(&a);
                free(body);
        }
        a = ask_as(r, key, "POST", "/api/v2/backup", "{\"path\":\"mine.db\"}");
        assert_int_equal(a.status, 201);
        assert_non_null(strstr(a.text, "/state/backups/mine.db"));
        api_answer_release(&a);
        a = ask_as(r, key, "POST", "/api/v2/backup", "{\"path\":\"state/backups/two.db\"}");
        assert_int_equal(a.status, 201);
        assert_non_null(strstr(a.text, "/state/backups/two.db"));
        api_answer_release(&a);
        body = mem_printf("{\"path\":\"%s\"}", outside);
        a = api_rig_ask(r, "POST", "/api/v2/backup", body);
        assert_int_equal(a.status, 201);
        api_answer_release(&a);
        free(body);
        free(outside);
        free(key);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(a_key_is_shown_once_and_stored_as_digest),
                API_RIG_CASE(a_revoked_key_is_refused),
                API_RIG_CASE(two_requests_at_once_cannot_take_one_name),
                API_RIG_CASE(keys_and_their_last_use_survive_a_restart),
                API_RIG_CASE(an_expired_key_is_refused),
                API_RIG_CASE(an_invalid_key_request_is_refused),
                API_RIG_CASE(a_key_cannot_exceed_its_creator),
                API_RIG_CASE(a_key_neither_outlives_nor_outranks_its_maker),
                API_RIG_CASE(revoking_a_key_revokes_those_made_with_it),
                API_RIG_CASE(a_key_that_is_being_made_goes_with_its_maker),
                API_RIG_CASE(a_key_asks_only_its_agents),
                API_RIG_CASE(a_rate_limited_key_learns_when_to_retry),
                cmocka_unit_test(the_rate_limit_refills_with_time),
                cmocka_unit_test(a_key_reaches_adapters_by_their_whole_name),
                cmocka_unit_test(every_route_declares_its_reach),
                API_RIG_CASE(a_scope_opens_its_routes_and_no_others),
                API_RIG_CASE(a_scope_of_one_resource_opens_only_that),
                API_RIG_CASE(without_a_key_only_public_routes_are_open),
                API_RIG_CASE(a_restricted_key_reaches_nothing_of_another_adapter),
                API_RIG_CASE(the_operator_sees_everything),
                API_RIG_CASE(a_restricted_key_sees_its_own_adapter),
                API_RIG_CASE(a_restricted_key_sends_no_files_of_another_adapter),
                API_RIG_CASE(a_key_makes_backups_in_one_folder),
                API_RIG_CASE(a_dry_run_hides_rules_of_other_adapters),
                API_RIG_CASE(each_key_has_its_own_idempotency_keys),
                API_RIG_CASE(a_client_cannot_forge_anothers_idempotency_key),
                API_RIG_CASE(a_keys_stream_shows_its_adapters_and_ends_with_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
