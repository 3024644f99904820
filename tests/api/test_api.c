/* The API over a real road: what clients see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "base/mem.h"

#define INBOUND "/api/v2/messages/inbound"

static int setup_one_reader(void **state)
{
        *state = api_rig_new_with(1);
        return 0;
}

/* "error.code" of a member path of two; NULL when absent. */
static const char *at(const struct api_answer *a, const char *first, const char *second)
{
        return json_str(json_object_get(a->json, first), second, NULL);
}

static void expect_error(struct api_answer a, int status, const char *code)
{
        assert_int_equal(a.status, status);
        assert_non_null(at(&a, "error", "code"));
        assert_string_equal(at(&a, "error", "code"), code);
        assert_true(strlen(at(&a, "error", "message")) > 3);
        assert_int_equal(json_object_size(a.json), 1);
        assert_non_null(strstr(a.text, "x-request-id: "));
        api_answer_release(&a);
}

/* Posts and expects 202; the event's id, yours to free. */
static char *post(struct api_rig *r, const char *body)
{
        struct api_answer a = api_rig_ask(r, "POST", INBOUND, body);
        char *id;

        assert_int_equal(a.status, 202);
        id = mem_strdup(at(&a, "data", "eventId"));
        assert_non_null(id);
        api_answer_release(&a);
        return id;
}

/* The same adapters, with "api" disabled. */
static void switch_api_off(struct api_rig *r)
{
        struct error err = { 0 };
        struct adapter_conf *confs[] = { adapter_conf_make("api", "api", "{\"enabled\":false}",
                                                           &err),
                                         adapter_conf_make("terminal", "cli", "{}", &err) };

        assert_non_null(confs[0]);
        assert_non_null(confs[1]);
        assert_int_equal(adapters_apply(r->adapters, confs, 2, &err), 0);
}

/* Posts and waits for the reply. */
static struct api_answer post_and_wait(struct api_rig *r, const char *body)
{
        return api_rig_ask(r, "POST", INBOUND "?wait=15000", body);
}

/* ---- keys and browsers ---- */

static void only_health_needs_no_key(void **state)
{
        struct api_rig *r = *state;
        char *host = mem_printf("Host: %s\r\n", api_address(r->api));
        char *wrong =
                mem_printf("Host: %s\r\nAuthorization: Bearer dgm_wrong\r\n", api_address(r->api));
        char *right =
                mem_printf("Host: %s\r\nAuthorization: Bearer %s\r\n", api_address(r->api), r->key);
        char *path = mem_printf("/api/v2/status?api_key=%s", r->key);
        struct api_answer a = api_rig_ask_as(r, "GET", "/healthz", host, NULL);

        assert_int_equal(a.status, 200);
        api_answer_release(&a);
        expect_error(api_rig_ask_as(r, "GET", "/api/v2/status", host, NULL), 401, "UNAUTHORIZED");
        expect_error(api_rig_ask_as(r, "GET", "/api/v2/status", wrong, NULL), 401, "UNAUTHORIZED");
        expect_error(api_rig_ask_as(r, "GET", path, host, NULL), 401, "UNAUTHORIZED");
        a = api_rig_ask_as(r, "GET", "/api/v2/status", right, NULL);
        assert_int_equal(a.status, 200);
        api_answer_release(&a);
        free(host);
        free(wrong);
        free(right);
        free(path);
}

static void a_foreign_host_or_origin_is_refused(void **state)
{
        struct api_rig *r = *state;
        char *host = mem_printf("Host: evil.example\r\nx-api-key: %s\r\n", r->key);
        char *origin = mem_printf("Host: %s\r\nOrigin: http://evil.example\r\nx-api-key: %s\r\n",
                                  api_address(r->api), r->key);
        char *own = mem_printf("Host: %s\r\nOrigin: http://%s\r\nx-api-key: %s\r\n",
                               api_address(r->api), api_address(r->api), r->key);
        struct api_answer a;

        expect_error(api_rig_ask_as(r, "GET", "/api/v2/status", host, NULL), 403, "FORBIDDEN");
        expect_error(api_rig_ask_as(r, "POST", INBOUND, origin, "{\"text\":\"a\"}"), 403,
                     "FORBIDDEN");
        a = api_rig_ask_as(r, "GET", "/api/v2/status", own, NULL);
        assert_int_equal(a.status, 200);
        api_answer_release(&a);
        free(host);
        free(origin);
        free(own);
}

static void the_address_file_exists_while_we_listen(void **state)
{
        struct api_rig *r = *state;
        char *path = scratch_path(r->dir, "state/http.addr"), line[100];
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        assert_non_null(fgets(line, sizeof(line), f));
        fclose(f);
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(line, api_address(r->api));
        api_close(r->api);
        r->api = NULL;
        assert_int_equal(access(path, F_OK), -1);
        free(path);
}

static void a_well_formed_request_id_is_echoed(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        struct http_raw c;

        api_rig_send(r, &c, "GET", "/healthz", "x-request-id: my.id-7\r\n", NULL);
        a = api_rig_receive(&c);
        assert_non_null(strstr(a.text, "x-request-id: my.id-7\r\n"));
        api_answer_release(&a);
        api_rig_send(r, &c, "GET", "/healthz", "x-request-id: <script>\r\n", NULL);
        a = api_rig_receive(&c);
        assert_null(strstr(a.text, "script"));
        assert_non_null(strstr(a.text, "x-request-id: req-"));
        api_answer_release(&a);
}

static void no_answer_may_be_cached_or_sniffed(void **state)
{
        static const struct {
                const char *method, *path;
                int status;
        } rows[] = { { "GET", "/healthz", 200 },         { "GET", "/readyz", 200 },
                     { "GET", "/metrics", 200 },         { "GET", "/api/v2/status", 200 },
                     { "GET", "/api/v2/messages", 404 }, { "PUT", "/healthz", 405 },
                     { "GET", "/api/v2/turns/x", 404 },  { "GET", "/api/openapi.json", 200 } };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a = api_rig_ask(*state, rows[i].method, rows[i].path, NULL);

                if (a.status != rows[i].status || !strstr(a.text, "Cache-Control: no-store\r\n") ||
                    !strstr(a.text, "X-Content-Type-Options: nosniff\r\n"))
                        fail_msg("%s %s: %s", rows[i].method, rows[i].path, a.text);
                api_answer_release(&a);
        }
}

static void unknown_routes_and_methods_have_the_error_envelope(void **state)
{
        struct api_rig *r = *state;

        expect_error(api_rig_ask(r, "GET", "/api/v2/nothing", NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "DELETE", "/api/v2/events", NULL), 405, "HTTP_ERROR");
        expect_error(api_rig_ask(r, "GET", "/api/v2/events/evt-999", NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "GET", "/api/v2/events/nonsense", NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "GET", "/api/v2/turns/trn-999", NULL), 404, "NOT_FOUND");
        api_rig_expect(r, "GET", "/api/v2/turns/trn-02", NULL, 404, "there is no turn 'trn-02'");
        expect_error(api_rig_ask(r, "GET", "/api/v2/deliveries/dlv-999", NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "GET", "/api/v2/why/evt-999", NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "POST", "/api/v2/agents/nobody/health", NULL), 404,
                     "NOT_FOUND");
        expect_error(api_rig_ask(r, "POST", "/api/v2/turns/trn-999/cancel", NULL), 404,
                     "NOT_FOUND");
}

/* ---- inbound ---- */

static void a_message_is_stored_once_and_answered(void **state)
{
        struct api_rig *r = *state;
        char *first = post(r, "{\"text\":\"hello\",\"externalId\":\"m1\"}");
        struct api_answer a =
                api_rig_ask(r, "POST", INBOUND, "{\"text\":\"hello\",\"externalId\":\"m1\"}");

        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "duplicate");
        assert_string_equal(at(&a, "data", "eventId"), first);
        assert_int_equal(strlen(at(&a, "data", "traceId")), 32);
        api_answer_release(&a);
        a = post_and_wait(r, "{\"text\":\"hello\",\"externalId\":\"m1\"}");
        assert_string_equal(at(&a, "data", "status"), "duplicate");
        assert_string_equal(
                json_str(json_object_get(json_object_get(a.json, "data"), "reply"), "text", ""),
                "re: hello");
        api_answer_release(&a);
        assert_int_equal(r->turns, 1);
        free(first);
}

/* Taken for a repetition it would be lost, and its sender would get the reply to another. */
static void another_message_with_a_used_id_is_a_conflict(void **state)
{
        struct api_rig *r = *state;

        free(post(r, "{\"text\":\"hello\",\"externalId\":\"m1\"}"));
        expect_error(post_and_wait(r, "{\"text\":\"hullo\",\"externalId\":\"m1\"}"), 409,
                     "CONFLICT");
        expect_error(api_rig_ask(r, "POST", INBOUND,
                                 "{\"text\":\"hello\",\"chatId\":\"other\",\"externalId\":\"m1\"}"),
                     409, "CONFLICT");
        expect_error(
                api_rig_ask(r, "POST", INBOUND,
                            "{\"text\":\"hello\",\"externalId\":\"m1\",\"attachments\":[{\"kind\":"
                            "\"image\",\"url\":\"https://x.example/b.png\"}]}"),
                409, "CONFLICT");
        api_rig_restart(r);
        expect_error(api_rig_ask(r, "POST", INBOUND, "{\"text\":\"hullo\",\"externalId\":\"m1\"}"),
                     409, "CONFLICT");
        free(post(r, "{\"text\":\"hello\",\"instanceId\":\"terminal\",\"externalId\":\"m1\"}"));
}

/* As the bus leaves an event after its retention: only the key remains. */
static void repeating_a_pruned_message_is_not_a_conflict(void **state)
{
        struct api_rig *r = *state;
        char *first = post(r, "{\"text\":\"hello\",\"externalId\":\"m1\"}");
        struct api_answer a;

        api_rig_update(r, "journal SET payload = '{}' WHERE key IS NOT NULL", 0, 0);
        a = api_rig_ask(r, "POST", INBOUND, "{\"text\":\"hello\",\"externalId\":\"m1\"}");
        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "duplicate");
        assert_string_equal(at(&a, "data", "eventId"), first);
        api_answer_release(&a);
        free(first);
}

static const json_t *reply_of(const struct api_answer *a)
{
        return json_object_get(json_object_get(a->json, "data"), "reply");
}

static void a_waiting_request_gets_the_reply(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = post_and_wait(r, "{\"text\":\"how are you\"}");

        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "stored");
        assert_string_equal(json_str(reply_of(&a), "status", ""), "done");
        assert_string_equal(json_str(reply_of(&a), "text", ""), "re: how are you");
        assert_memory_equal(json_str(reply_of(&a), "turnId", ""), "trn-", 4);
        api_answer_release(&a);
}

static void a_waiting_request_gets_silence_and_failure(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = post_and_wait(r, "{\"text\":\"quiet please\"}");

        assert_string_equal(json_str(reply_of(&a), "status", ""), "skipped");
        assert_string_equal(json_str(reply_of(&a), "reason", ""), "the test wants silence");
        assert_true(json_is_null(json_object_get(reply_of(&a), "text")));
        api_answer_release(&a);
        a = post_and_wait(r, "{\"text\":\"fail\"}");
        assert_string_equal(json_str(reply_of(&a), "status", ""), "failed");
        assert_string_equal(json_str(reply_of(&a), "text", ""), "Sorry, not now.");
        assert_string_equal(json_str(reply_of(&a), "reason", ""), "the line is dead");
        api_answer_release(&a);
}

static void waiting_ends_at_its_deadline(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "POST", INBOUND "?wait=50", "{\"text\":\"hang\"}");

        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "stored");
        assert_true(json_is_null(reply_of(&a)));
        api_answer_release(&a);
}

static void two_requests_may_wait_for_one_message(void **state)
{
        struct api_rig *r = *state;
        struct http_raw first, second;
        struct api_answer a, b;

        api_rig_send(r, &first, "POST", INBOUND "?wait=15000", "",
                     "{\"text\":\"hang on\",\"externalId\":\"m1\"}");
        api_rig_until(r, &r->hanging_count, 1);
        api_rig_send(r, &second, "POST", INBOUND "?wait=15000", "",
                     "{\"text\":\"hang on\",\"externalId\":\"m1\"}");
        http_raw_pause(&second, 50);
        api_rig_release(r);
        a = api_rig_receive(&first);
        b = api_rig_receive(&second);
        assert_string_equal(json_str(reply_of(&a), "text", ""), "re: hang on");
        assert_string_equal(json_str(reply_of(&b), "text", ""), "re: hang on");
        api_answer_release(&a);
        api_answer_release(&b);
}

static void waiting_requests_are_answered_on_close(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        api_rig_send(r, &c, "POST", INBOUND "?wait=100000", "", "{\"text\":\"hang\"}");
        api_rig_until(r, &r->hanging_count, 1);
        api_close(r->api);
        r->api = NULL;
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 1);
        assert_int_equal(http_raw_status(&c, 0), 503);
        http_raw_close(&c);
}

static void bad_bodies_are_answered_with_their_mistakes(void **state)
{
        static const struct {
                const char *body, *field;
        } rows[] = {
                { "{}", "text" },
                { "{\"text\":\"\"}", "text" },
                { "{\"text\":\"a\",\"isDm\":\"yes\"}", "isDm" },
                { "{\"text\":\"a\",\"txt\":1}", "txt" },
                { "{\"text\":\"a\",\"traceId\":\"XYZ4567890123456789012345678901X\"}", "traceId" },
                { "{\"text\":\"a\",\"sender\":{\"nick\":\"b\"}}", "sender.nick" },
                { "{\"attachments\":[{\"kind\":\"image\"}]}", "attachments[0].url" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a = api_rig_ask(r, "POST", INBOUND, rows[i].body);
                json_t *fields = json_object_get(
                        json_object_get(json_object_get(a.json, "error"), "details"), "fields");

                assert_int_equal(a.status, 400);
                assert_non_null(json_object_get(fields, rows[i].field));
                api_answer_release(&a);
        }
        expect_error(api_rig_ask(r, "POST", INBOUND, "{\"text\": oops"), 400, "VALIDATION_ERROR");
        expect_error(api_rig_ask(r, "POST", INBOUND "?wait=forever", "{\"text\":\"a\"}"), 400,
                     "VALIDATION_ERROR");
        expect_error(api_rig_ask(r, "POST", INBOUND, "{\"text\":\"a\",\"instanceId\":\"nowhere\"}"),
                     404, "NOT_FOUND");
        assert_int_equal(r->turns, 0);
}

static void every_field_of_the_body_reaches_the_journal(void **state)
{
        struct api_rig *r = *state;
        char *id = post(r, "{\"text\":\"quiet\",\"externalId\":\"x1\",\"chatId\":\"c9\","
                           "\"threadId\":\"t3\",\"replyToId\":\"p1\",\"isDm\":false,"
                           "\"isMention\":true,\"timestamp\":1000,"
                           "\"traceId\":\"0198c0ffee00aabbccddeeff00112233\","
                           "\"metadata\":{\"ticket\":17},\"sender\":{\"id\":\"ann\","
                           "\"username\":\"ann7\",\"displayName\":\"Ann\"},"
                           "\"attachments\":[{\"kind\":\"image\","
                           "\"url\":\"https://example.org/a.png\"}]}");
        char *path = mem_printf("/api/v2/events/%s", id);
        struct api_answer a = api_rig_ask(r, "GET", path, NULL);
        json_t *payload = json_object_get(json_object_get(a.json, "data"), "payload");

        assert_int_equal(a.status, 200);
        assert_string_equal(at(&a, "data", "type"), "message.received");
        assert_string_equal(at(&a, "data", "instanceId"), "api");
        assert_string_equal(at(&a, "data", "channel"), "c9");
        assert_string_equal(at(&a, "data", "threadId"), "t3");
        assert_string_equal(at(&a, "data", "traceId"), "0198c0ffee00aabbccddeeff00112233");
        assert_string_equal(json_str(payload, "text", ""), "quiet");
        assert_string_equal(json_str(json_object_get(payload, "sender"), "id", ""), "ann");
        assert_int_equal(json_array_size(json_object_get(payload, "attachments")), 1);
        api_answer_release(&a);
        free(path);
        free(id);
}

/* ---- sending ---- */

static void sending_twice_with_one_key_is_one_delivery(void **state)
{
        static const char body[] = "{\"instanceId\":\"api\",\"to\":\"c1\",\"text\":\"hello\"}";
        struct api_rig *r = *state;
        struct api_answer a, b;
        struct http_raw c;
        char *path;

        api_rig_send(r, &c, "POST", "/api/v2/messages/send", "Idempotency-Key: k1\r\n", body);
        a = api_rig_receive(&c);
        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "queued");
        api_rig_send(r, &c, "POST", "/api/v2/messages/send", "Idempotency-Key: k1\r\n", body);
        b = api_rig_receive(&c);
        assert_string_equal(at(&b, "data", "deliveryId"), at(&a, "data", "deliveryId"));
        assert_string_equal(at(&b, "data", "status"), "duplicate");
        path = mem_printf("/api/v2/deliveries/%s", at(&a, "data", "deliveryId"));
        api_answer_release(&b);
        b = api_rig_ask(r, "GET", path, NULL);
        assert_int_equal(b.status, 200);
        assert_string_equal(at(&b, "data", "traceId"), at(&a, "data", "traceId"));
        api_answer_release(&a);
        api_answer_release(&b);
        free(path);
        expect_error(api_rig_ask(r, "POST", "/api/v2/messages/send",
                                 "{\"instanceId\":\"no\",\"to\":\"c\",\"text\":\"a\"}"),
                     404, "NOT_FOUND");
}

/* ---- pages ---- */

/* Reads all pages of a list and returns the number of items; fails when one is shown twice. */
static size_t walk(struct api_rig *r, const char *base, const char *cursor_name,
                   const char *id_name)
{
        json_t *seen = json_object();
        char *path = mem_strdup(base);
        size_t total;

        for (int pages = 0; path && pages < 100; pages++) {
                struct api_answer a = api_rig_ask(r, "GET", path, NULL);
                json_t *meta = json_object_get(a.json, "meta"), *item;
                size_t i;

                assert_int_equal(a.status, 200);
                json_array_foreach(json_object_get(a.json, "items"), i, item) {
                        assert_null(json_object_get(seen, json_str(item, id_name, "")));
                        json_object_set_new(seen, json_str(item, id_name, ""), json_true());
                }
                free(path);
                path = NULL;
                if (json_flag(meta, "hasMore", false))
                        path = mem_printf("%s&%s=%s", base, cursor_name,
                                          json_str(meta, "cursor", ""));
                api_answer_release(&a);
        }
        assert_null(path);
        total = json_object_size(seen);
        json_decref(seen);
        return total;
}

static void pages_show_every_row_once(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;

        for (int i = 0; i < 7; i++) {
                char *body = mem_printf("{\"text\":\"hello %d\",\"chatId\":\"c%d\"}", i, i % 2);

                a = post_and_wait(r, body);
                api_answer_release(&a);
                free(body);
        }
        assert_int_equal(walk(r, "/api/v2/events?limit=3&type=message.received", "before", "id"),
                         7);
        assert_int_equal(walk(r, "/api/v2/events?limit=2&type=turn.done&stream=TURN&since=1000",
                              "before", "id"),
                         7);
        assert_int_equal(
                walk(r, "/api/v2/events?limit=2&channel=c0&type=message.*", "before", "id"), 8);
        assert_int_equal(walk(r, "/api/v2/turns?limit=2", "before", "id"), 7);
        assert_int_equal(walk(r, "/api/v2/turns?limit=2&state=done&agent=echo", "before", "id"), 7);
        assert_int_equal(walk(r, "/api/v2/turns?limit=2&state=queued", "before", "id"), 0);
        assert_int_equal(walk(r, "/api/v2/deliveries?limit=3", "before", "id"), 7);
        assert_int_equal(
                walk(r, "/api/v2/deliveries?limit=3&state=sent&channel=c1", "before", "id"), 3);
        assert_int_equal(
                walk(r, "/api/v2/trigger-logs?limit=4&instanceId=api", "before", "eventId"), 7);
        assert_int_equal(walk(r, "/api/v2/instances?", "before", "id"), 2);
        assert_int_equal(walk(r, "/api/v2/agents?", "before", "name"), 1);
        a = api_rig_ask(r, "GET", "/api/v2/events?after=0&limit=2", NULL);
        assert_int_equal(json_array_size(json_object_get(a.json, "items")), 2);
        assert_string_equal(json_str(json_array_get(json_object_get(a.json, "items"), 0), "id", ""),
                            "evt-1");
        assert_string_equal(at(&a, "meta", "cursor"), "evt-2");
        api_answer_release(&a);
}

static void an_empty_page_keeps_its_cursor(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "GET", "/api/v2/events?after=evt-500", NULL);

        assert_int_equal(a.status, 200);
        assert_int_equal(json_array_size(json_object_get(a.json, "items")), 0);
        assert_true(json_is_false(json_object_get(json_object_get(a.json, "meta"), "hasMore")));
        assert_string_equal(at(&a, "meta", "cursor"), "evt-500");
        api_answer_release(&a);
}

static void unknown_parameters_are_refused(void **state)
{
        static const char *const paths[] = {
                "/api/v2/events?limit=0",         "/api/v2/events?limit=101",
                "/api/v2/events?limt=5",          "/api/v2/events?stream=NO",
                "/api/v2/events?since=yesterday", "/api/v2/turns?state=tired",
                "/api/v2/turns?limit=1&limit=2",  "/api/v2/dead-letters?cursor=x",
                "/api/v2/events/stream?types=,",  "/api/v2/events/stream?after=x",
                "/api/v2/deliveries/dlv-1?x=1",   "/api/v2/status?x=1",
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(paths); i++)
                expect_error(api_rig_ask(r, "GET", paths[i], NULL), 400, "VALIDATION_ERROR");
        expect_error(api_rig_ask(r, "DELETE", "/api/v2/rules/night?dryRun=1", NULL), 400,
                     "VALIDATION_ERROR");
        expect_error(api_rig_ask(r, "POST", "/api/v2/messages/send?x=1", "{}"), 400,
                     "VALIDATION_ERROR");
        /* except where software of others asks */
        api_rig_expect(r, "GET", "/v1/models?api-version=1", NULL, 200, NULL);
        api_rig_expect(r, "GET", "/healthz?x=1", NULL, 200, NULL);
}

/* ---- dead letters ---- */

static void a_failed_turn_is_a_dead_letter_until_retried(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = post_and_wait(r, "{\"text\":\"fail\",\"externalId\":\"f1\"}");
        char *id = mem_strdup(json_str(reply_of(&a), "turnId", ""));
        char *path = mem_printf("/api/v2/dead-letters/%s/retry", id);

        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/api/v2/dead-letters", NULL);
        assert_int_equal(json_array_size(json_object_get(a.json, "items")), 1);
        assert_string_equal(json_str(json_array_get(json_object_get(a.json, "items"), 0), "id", ""),
                            id);
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", path, NULL);
        assert_int_equal(a.status, 202);
        assert_string_equal(at(&a, "data", "status"), "queued");
        api_answer_release(&a);
        api_rig_until(r, &r->turns, 2);
        free(path);
        free(id);
}

static void a_running_turn_can_be_cancelled(void **state)
{
        struct api_rig *r = *state;
        char *path, *event = post(r, "{\"text\":\"hang\",\"externalId\":\"h1\"}");
        struct api_answer a;

        api_rig_until(r, &r->hanging_count, 1);
        a = api_rig_ask(r, "GET", "/api/v2/turns?state=running", NULL);
        path = mem_printf("/api/v2/turns/%s/cancel",
                          json_str(json_array_get(json_object_get(a.json, "items"), 0), "id", ""));
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", path, "{\"reason\":\"enough\"}");
        assert_int_equal(a.status, 202);
        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/api/v2/why/h1", NULL);
        assert_non_null(strstr(at(&a, "data", "summary"), "enough"));
        api_answer_release(&a);
        free(path);
        free(event);
}

static void missing_rows_are_404_and_ended_ones_a_conflict(void **state)
{
        static const char *const missing[] = { "/api/v2/dead-letters/trn-777/retry",
                                               "/api/v2/dead-letters/dlv-777/retry",
                                               "/api/v2/deliveries/dlv-777/retry",
                                               "/api/v2/turns/trn-777/cancel" };
        struct api_rig *r = *state;
        struct api_answer a = post_and_wait(r, "{\"text\":\"hello\"}");
        char *cancel = mem_printf("/api/v2/turns/%s/cancel", json_str(reply_of(&a), "turnId", ""));

        api_answer_release(&a);
        for (size_t i = 0; i < COUNT(missing); i++)
                expect_error(api_rig_ask(r, "POST", missing[i], NULL), 404, "NOT_FOUND");
        expect_error(api_rig_ask(r, "POST", cancel, NULL), 409, "CONFLICT");
        expect_error(api_rig_ask(r, "POST", "/api/v2/deliveries/dlv-1/retry", NULL), 409,
                     "CONFLICT");
        free(cancel);
}

static void why_shows_the_trace_report(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = post_and_wait(r, "{\"text\":\"hello\",\"externalId\":\"m1\"}");

        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/api/v2/why/m1", NULL);
        assert_int_equal(a.status, 200);
        assert_memory_equal(at(&a, "data", "summary"), "answered in ", 12);
        api_answer_release(&a);
}

/* ---- the event stream ---- */

/* How often `needle` occurs in the received text. */
static int times(const struct http_raw *c, const char *needle)
{
        int n = 0;

        for (const char *p = c->in.data; (p = strstr(p, needle)); p += strlen(needle))
                n++;
        return n;
}

static void the_stream_joins_journal_and_live_without_a_gap(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        free(post(r, "{\"text\":\"quiet one\"}"));
        free(post(r, "{\"text\":\"quiet two\"}"));
        api_rig_send(r, &c, "GET", "/api/v2/events/stream?after=0&types=message.*", "", NULL);
        free(post(r, "{\"text\":\"quiet three\"}"));
        assert_true(http_raw_wait_for(&c, "quiet three"));
        free(post(r, "{\"text\":\"quiet four\"}"));
        assert_true(http_raw_wait_for(&c, "quiet four"));
        assert_int_equal(times(&c, "quiet one"), 1);
        assert_int_equal(times(&c, "quiet two"), 1);
        assert_int_equal(times(&c, "quiet three"), 1);
        assert_int_equal(times(&c, "quiet four"), 1);
        http_raw_close(&c);
}

static void a_reader_that_reconnects_gets_missed_events(void **state)
{
        struct api_rig *r = *state;
        char *header, *first = post(r, "{\"text\":\"quiet one\"}");
        struct http_raw c;

        free(post(r, "{\"text\":\"quiet two\"}"));
        header = mem_printf("Last-Event-ID: %s\r\n", first + 4);
        api_rig_send(r, &c, "GET", "/api/v2/events/stream?after=0", header, NULL);
        assert_true(http_raw_wait_for(&c, "quiet two"));
        assert_int_equal(times(&c, "quiet one"), 0);
        http_raw_close(&c);
        free(header);
        free(first);
}

static void an_event_id_of_another_database_means_now(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        free(post(r, "{\"text\":\"quiet one\"}"));
        api_rig_send(r, &c, "GET", "/api/v2/events/stream?after=evt-100000", "", NULL);
        assert_true(http_raw_wait_for(&c, "text/event-stream"));
        free(post(r, "{\"text\":\"quiet two\"}"));
        assert_true(http_raw_wait_for(&c, "quiet two"));
        assert_int_equal(times(&c, "quiet one"), 0);
        http_raw_close(&c);
}

static void filters_apply_to_journal_and_live_events(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        free(post(r, "{\"text\":\"quiet a1\",\"chatId\":\"a\"}"));
        free(post(r, "{\"text\":\"quiet b1\",\"chatId\":\"b\"}"));
        api_rig_send(r, &c, "GET",
                     "/api/v2/events/stream?after=0&channel=b&instanceId=api&types=message.recei"
                     "ved,turn.*",
                     "", NULL);
        assert_true(http_raw_wait_for(&c, "quiet b1"));
        free(post(r, "{\"text\":\"quiet a2\",\"chatId\":\"a\"}"));
        free(post(r, "{\"text\":\"quiet b2\",\"chatId\":\"b\"}"));
        assert_true(http_raw_wait_for(&c, "quiet b2"));
        assert_int_equal(times(&c, "quiet a"), 0);
        http_raw_close(&c);
}

static void streamed_text_is_not_journaled(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        api_rig_send(r, &c, "GET", "/api/v2/events/stream", "", NULL);
        assert_true(http_raw_wait_for(&c, "text/event-stream"));
        bus_publish_live(r->bus, &(struct bus_event){ .type = "turn.delta",
                                                      .adapter = "api",
                                                      .channel = "c1",
                                                      .payload = "{\"text\":\"hel\"}" });
        assert_true(http_raw_wait_for(&c, "event: turn.delta"));
        assert_true(http_raw_wait_for(&c, "\"payload\":{\"text\":\"hel\"}"));
        assert_int_equal(times(&c, "\nid: "), 0);
        http_raw_close(&c);
}

static void a_long_journal_comes_in_slices(void **state)
{
        struct api_rig *r = *state;
        char *text = mem_zalloc(200001), *body, *last = NULL;
        struct http_raw c;
        int slices = 0;

        memset(text, 'x', 200000);
        for (int i = 0; i < 8; i++) {
                body = mem_printf("{\"text\":\"quiet-%d-%s\"}", i, text);
                free(post(r, body));
                free(body);
        }
        for (; slices < 10; slices++) {
                char *header = last ? mem_printf("Last-Event-ID: %s\r\n", last) : mem_strdup("");
                const char *id, *p;
                bool more;

                api_rig_send(r, &c, "GET", "/api/v2/events/stream?after=0&types=message.received",
                             header, NULL);
                assert_true(http_raw_wait_for(&c, last ? "quiet-7-" : "quiet-4-"));
                free(header);
                more = strstr(c.in.data, "Content-Length") != NULL;
                if (more)
                        assert_true(http_raw_wait_answers(&c, 1));
                for (id = p = c.in.data; (p = strstr(p, "\nid: ")); p++)
                        id = p + 5;
                free(last);
                last = mem_strndup(id, strspn(id, "0123456789"));
                http_raw_close(&c);
                if (!more)
                        break;
        }
        assert_int_equal(slices, 1);
        free(last);
        free(text);
}

/* Each holds a slice of the journal, so they count before they are attached. */
static void readers_that_catch_up_count_against_the_limit(void **state)
{
        static struct http_raw readers[20];
        struct api_rig *r = *state;
        char *text = mem_zalloc(200001);
        unsigned refused = 0;

        memset(text, 'x', 200000);
        for (int i = 0; i < 8; i++) {
                char *body = mem_printf("{\"text\":\"quiet-%d-%s\"}", i, text);

                free(post(r, body));
                free(body);
        }
        for (size_t i = 0; i < COUNT(readers); i++)
                api_rig_send(r, &readers[i], "GET", "/api/v2/events/stream?after=0", "", NULL);
        for (size_t i = 0; i < COUNT(readers); i++) {
                assert_true(http_raw_wait_answers(&readers[i], 1));
                refused += http_raw_status(&readers[i], 0) == 503;
                http_raw_close(&readers[i]);
        }
        assert_in_range(refused, 1, COUNT(readers) - 1);
        free(text);
}

/* ---- health, backup, closing ---- */

static void readiness_follows_adapters_and_store(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "GET", "/readyz", NULL);

        assert_int_equal(a.status, 200);
        assert_true(json_is_true(json_object_get(json_object_get(a.json, "data"), "ready")));
        api_answer_release(&a);
        adapters_find(r->adapters, "api")->state = ADAPTER_CONNECTING;
        a = api_rig_ask(r, "GET", "/readyz", NULL);
        assert_int_equal(a.status, 503);
        api_answer_release(&a);
        adapter_lost(adapters_find(r->adapters, "api"), "the line is dead");
        a = api_rig_ask(r, "GET", "/readyz", NULL);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.text, "the line is dead"));
        api_answer_release(&a);
        adapter_ready(adapters_find(r->adapters, "api"));
}

static void metrics_count_events(void **state)
{
        struct api_rig *r = *state;
        char *host = mem_printf("Host: %s\r\n", api_address(r->api));
        struct api_answer a = post_and_wait(r, "{\"text\":\"hello\"}");

        api_answer_release(&a);
        a = api_rig_ask_as(r, "GET", "/metrics", host, NULL);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.text, "dragoman_events_received_total 1\n"));
        assert_non_null(strstr(a.text, "route=\"/api/v2/messages/inbound\",status=\"202\"} 1\n"));
        assert_non_null(
                strstr(a.text, "dragoman_adapter_up{adapter=\"api\",platform=\"api\"} 1\n"));
        assert_non_null(strstr(a.text, "process_resident_memory_bytes "));
        api_answer_release(&a);
        free(host);
}

/* Requests that a proxy forwards come from this machine too. */
static void metrics_and_reasons_are_for_this_machine_or_a_key(void **state)
{
        static const struct {
                const char *public_url, *headers;
                bool shown;
        } rows[] = { { NULL, "", true },
                     { NULL, "X-Forwarded-For: 203.0.113.5\r\n", false },
                     { NULL, "Forwarded: for=203.0.113.5\r\n", false },
                     { NULL, "Via: 1.1 proxy\r\n", false },
                     { "http://localhost:8420", "", true },
                     { "https://bot.example.org", "", false } };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer metrics, ready;
                char *headers;

                r->public_url = rows[i].public_url;
                api_rig_restart(r);
                headers = mem_printf("Host: %s\r\n%s", api_address(r->api), rows[i].headers);
                metrics = api_rig_ask_as(r, "GET", "/metrics", headers, NULL);
                ready = api_rig_ask_as(r, "GET", "/readyz", headers, NULL);
                if (metrics.status != (rows[i].shown ? 200 : 401) || ready.status != 200 ||
                    (strstr(ready.text, "sqlite") != NULL) != rows[i].shown)
                        fail_msg("row %zu: %d, %s", i, metrics.status, ready.text);
                api_answer_release(&metrics);
                api_answer_release(&ready);
                free(headers);
                api_rig_expect(r, "GET", "/metrics", NULL, 200, "dragoman_");
                api_rig_expect(r, "GET", "/readyz", NULL, 200, "sqlite");
        }
}

static void backups_within_a_second_do_not_collide(void **state)
{
        for (int i = 0; i < 4; i++) {
                struct api_answer a = api_rig_ask(*state, "POST", "/api/v2/backup", NULL);

                assert_int_equal(a.status, 201);
                api_answer_release(&a);
        }
}

static void a_backup_into_a_missing_folder_is_refused(void **state)
{
        struct api_answer a =
                api_rig_ask(*state, "POST", "/api/v2/backup", "{\"path\":\"nowhere/copy.db\"}");

        assert_non_null(
                strstr(at(&a, "error", "message"), "nowhere/copy.db': its folder does not exist"));
        assert_null(strstr(a.text, ".part"));
        expect_error(a, 400, "VALIDATION_ERROR");
}

static void a_backup_goes_into_the_data_directory(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/backup", NULL);
        struct stat st;

        assert_int_equal(a.status, 201);
        assert_non_null(strstr(at(&a, "data", "path"), "/state/backups/main-"));
        assert_int_equal(stat(at(&a, "data", "path"), &st), 0);
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", "/api/v2/backup", "{\"path\":\"state/copy.db\"}");
        assert_int_equal(a.status, 201);
        api_answer_release(&a);
        expect_error(api_rig_ask(r, "POST", "/api/v2/backup", "{\"path\":\"state/copy.db\"}"), 409,
                     "CONFLICT");
        expect_error(api_rig_ask(r, "POST", "/api/v2/backup", "{\"path\":\"a/../../x.db\"}"), 400,
                     "VALIDATION_ERROR");
}

static void a_backup_never_replaces_the_configuration(void **state)
{
        struct api_rig *r = *state;
        char *config = mem_printf("%s/config.json", r->dir);

        expect_error(api_rig_ask(r, "POST", "/api/v2/backup", "{\"path\":\"config.json\"}"), 400,
                     "VALIDATION_ERROR");
        expect_error(
                api_rig_ask(r, "POST", "/api/v2/backup", "{\"path\":\"state/..//config.json\"}"),
                400, "VALIDATION_ERROR");
        assert_int_not_equal(access(config, F_OK), 0);
        free(config);
}

static void a_disabled_adapter_refuses_messages_and_is_healthy(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;

        switch_api_off(r);
        expect_error(api_rig_ask(r, "POST", INBOUND, "{\"text\":\"hello\"}"), 409, "CONFLICT");
        a = api_rig_ask(r, "GET", "/api/v2/status", NULL);
        assert_string_equal(at(&a, "data", "status"), "healthy");
        api_answer_release(&a);
        a = api_rig_ask(r, "POST", INBOUND, "{\"instanceId\":\"terminal\",\"text\":\"hello\"}");
        assert_int_equal(a.status, 202);
        api_answer_release(&a);
}

static void an_agents_health_can_be_checked(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/agents/echo/health", NULL);

        assert_int_equal(a.status, 200);
        assert_true(json_is_true(json_object_get(json_object_get(a.json, "data"), "healthy")));
        api_answer_release(&a);
}

static void after_quiesce_new_requests_are_refused(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        http_raw_open(&c, r->loop, api_address(r->api));
        assert_true(http_raw_say(&c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_true(http_raw_wait_answers(&c, 1));
        api_quiesce(r->api);
        http_raw_pause(&c, 20);
        assert_true(http_raw_refused(api_address(r->api)));
        http_raw_close(&c);
}

static void an_open_address_is_refused_before_files_are_made(void **state)
{
        struct api_rig *r = *state;
        struct api_env env = { r->loop,     r->store,    r->bus, r->road, r->agents,
                               r->adapters, r->dispatch, r->dir, 1 };
        struct http_conf conf = { .listen = (char *)"0.0.0.0:0" };
        struct error err;

        assert_null(api_open(&env, &conf, &err));
        assert_int_equal(err.kind, ERR_REFUSED);
}

#define API(name) API_RIG_CASE(name)

int main(void)
{
        const struct CMUnitTest tests[] = {
                API(only_health_needs_no_key),
                API(a_foreign_host_or_origin_is_refused),
                API(the_address_file_exists_while_we_listen),
                API(a_well_formed_request_id_is_echoed),
                API(no_answer_may_be_cached_or_sniffed),
                API(unknown_routes_and_methods_have_the_error_envelope),
                API(a_message_is_stored_once_and_answered),
                API(another_message_with_a_used_id_is_a_conflict),
                API(repeating_a_pruned_message_is_not_a_conflict),
                API(a_waiting_request_gets_the_reply),
                API(a_waiting_request_gets_silence_and_failure),
                API(waiting_ends_at_its_deadline),
                API(two_requests_may_wait_for_one_message),
                API(waiting_requests_are_answered_on_close),
                API(bad_bodies_are_answered_with_their_mistakes),
                API(every_field_of_the_body_reaches_the_journal),
                API(sending_twice_with_one_key_is_one_delivery),
                API(pages_show_every_row_once),
                API(an_empty_page_keeps_its_cursor),
                API(unknown_parameters_are_refused),
                API(a_failed_turn_is_a_dead_letter_until_retried),
                API(a_running_turn_can_be_cancelled),
                API(missing_rows_are_404_and_ended_ones_a_conflict),
                API(why_shows_the_trace_report),
                API(the_stream_joins_journal_and_live_without_a_gap),
                API(a_reader_that_reconnects_gets_missed_events),
                API(an_event_id_of_another_database_means_now),
                API(filters_apply_to_journal_and_live_events),
                API(streamed_text_is_not_journaled),
                API(a_long_journal_comes_in_slices),
                cmocka_unit_test_setup_teardown(readers_that_catch_up_count_against_the_limit,
                                                setup_one_reader, api_rig_teardown),
                API(readiness_follows_adapters_and_store),
                API(metrics_count_events),
                API(metrics_and_reasons_are_for_this_machine_or_a_key),
                API(a_backup_goes_into_the_data_directory),
                API(backups_within_a_second_do_not_collide),
                API(a_backup_into_a_missing_folder_is_refused),
                API(a_backup_never_replaces_the_configuration),
                API(a_disabled_adapter_refuses_messages_and_is_healthy),
                API(an_agents_health_can_be_checked),
                API(after_quiesce_new_requests_are_refused),
                API(an_open_address_is_refused_before_files_are_made),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
