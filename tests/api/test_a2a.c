/* Our agents for software that speaks A2A. */
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
#include "api/compat/a2a.h"
#include "api/core/api_core.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/turn/approval.h"

/* Without a key. */
#define NOBODY "Host: 127.0.0.1\r\n"

#define CARD   "/.well-known/agent-card.json"

/* A request of version 1.0. */
#define CALL(method, params) \
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" params "}}"
#define MESSAGE(id, text)                  \
        "\"message\":{\"messageId\":\"" id \
        "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"" text "\"}]}"
#define NOW ",\"configuration\":{\"returnImmediately\":true}"

static struct api_answer ask(struct api_rig *r, const char *path, const char *body)
{
        return api_rig_ask(r, "POST", path, body);
}

/* The task of an answer; borrowed. */
static const json_t *task_of(const struct api_answer *a)
{
        const json_t *result = json_object_get(a->json, "result");
        const json_t *task = json_object_get(result, "task");

        if (a->status != 200 || !result)
                fail_msg("%s", a->text);
        return task ? task : result;
}

static const char *state_of(const json_t *task)
{
        return json_str(json_object_get(task, "status"), "state", "");
}

static const char *text_of(const json_t *parts)
{
        return json_str(json_array_get(json_object_get(parts, "parts"), 0), "text", "");
}

static const char *answer_of(const json_t *task)
{
        return text_of(json_array_get(json_object_get(task, "artifacts"), 0));
}

static const char *said_of(const json_t *task)
{
        return text_of(json_object_get(json_object_get(task, "status"), "message"));
}

static void expect_error(struct api_answer a, int64_t code)
{
        const json_t *e = json_object_get(a.json, "error");

        if (a.status != 200 || json_int(e, "code", 0) != code)
                fail_msg("not %lld: %s", (long long)code, a.text);
        assert_string_equal(json_str(a.json, "jsonrpc", ""), "2.0");
        if (a2a_error_reason(code))
                assert_string_equal(
                        json_str(json_array_get(json_object_get(e, "data"), 0), "reason", ""),
                        a2a_error_reason(code));
        api_answer_release(&a);
}

static void get_task(struct api_rig *r, const char *id, struct api_answer *a)
{
        char *body = mem_printf(CALL("GetTask", "\"id\":\"%s\""), id);

        *a = ask(r, "/a2a", body);
        free(body);
}

/* ---- messages ---- */

static void a_message_is_a_task_on_the_road(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hello")));
        const json_t *task = task_of(&a), *event;
        struct api_answer events;
        char *context;

        assert_int_equal(json_int(a.json, "id", 0), 7);
        assert_string_equal(state_of(task), "TASK_STATE_COMPLETED");
        assert_string_equal(answer_of(task), "re: hello");
        assert_string_equal(
                json_str(json_array_get(json_object_get(task, "history"), 0), "messageId", ""),
                "m1");
        context = mem_printf("a2a:0::%s", json_str(task, "contextId", ""));
        events = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        event = json_array_get(json_object_get(events.json, "items"), 0);
        assert_string_equal(json_str(event, "id", ""), json_str(task, "id", "?"));
        assert_string_equal(json_str(event, "channel", ""), context);
        free(context);
        api_answer_release(&events);
        api_answer_release(&a);
}

static void the_older_version_is_spoken_as_well(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a =
                ask(r, "/a2a",
                    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"message/send\",\"params\":{"
                    "\"message\":{\"kind\":\"message\",\"messageId\":\"m1\",\"role\":\"user\","
                    "\"parts\":[{\"kind\":\"text\",\"text\":\"hello\"},{\"kind\":\"data\","
                    "\"data\":{\"n\":1}}]}}}");
        const json_t *task = task_of(&a);

        assert_string_equal(json_str(a.json, "id", ""), "x");
        assert_string_equal(json_str(task, "kind", ""), "task");
        assert_string_equal(state_of(task), "completed");
        assert_string_equal(answer_of(task), "re: hello\n```json\n{\n  \"n\": 1\n}\n```");
        api_answer_release(&a);
}

static void the_same_message_does_nothing_twice(void **state)
{
        static const char body[] = CALL("SendMessage", MESSAGE("m1", "hello"));
        struct api_rig *r = *state;
        struct api_answer first = ask(r, "/a2a", body), again = ask(r, "/a2a", body);

        assert_true(json_equal(first.json, again.json));
        assert_int_equal(r->turns, 1);
        api_rig_restart(r);
        api_answer_release(&again);
        again = ask(r, "/a2a", body);
        assert_true(json_equal(first.json, again.json));
        assert_int_equal(r->turns, 1);
        expect_error(ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "something else"))),
                     A2A_INVALID_PARAMS);
        api_answer_release(&first);
        api_answer_release(&again);
}

static void contexts_are_chats_of_their_key_and_agent(void **state)
{
        static const char body[] =
                CALL("SendMessage",
                     "\"message\":{\"messageId\":\"%s\",\"contextId\":\"mine\",\"role\":\"user\","
                     "\"parts\":[{\"text\":\"hi\"}]}");
        struct api_rig *r = *state;
        char *key = api_rig_key_headers(r, "{\"name\":\"k\",\"scopes\":[\"a2a:write\"]}");
        const char *const paths[] = { "/a2a", "/a2a", "/a2a/echo" };

        for (size_t i = 0; i < COUNT(paths); i++) {
                char id[8], *text;

                snprintf(id, sizeof(id), "m%zu", i);
                text = mem_printf(body, id);
                for (int other = 0; other < 2; other++) {
                        struct api_answer a = other ? api_rig_ask_as(r, "POST", paths[i], key, text)
                                                    : ask(r, paths[i], text);

                        assert_string_equal(json_str(task_of(&a), "contextId", ""), "mine");
                        api_answer_release(&a);
                }
                free(text);
        }
        assert_int_equal(api_rig_count(r, "conversations"), 4);
        free(key);
}

/* Another key could read what was said there, and answer what the agent asks. */
static void other_protocols_lead_into_no_context(void **state)
{
#define COMPLETION(more) \
        "{\"model\":\"echo\"," more "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
        static const struct {
                const char *path, *header, *body;
        } rows[] = {
                { "/v1/chat/completions", "X-Dragoman-Chat: a2a:1:echo:mine\r\n", COMPLETION("") },
                { "/v1/chat/completions", "", COMPLETION("\"user\":\"a2a:1:echo:mine\",") },
                { "/api/agent/chat", "",
                  "{\"conversationId\":\"a2a:1:echo:mine\",\"messages\":[{\"type\":\"human\","
                  "\"content\":\"hi\"}]}" },
                { "/api/v2/messages/inbound", "",
                  "{\"chatId\":\"a2a:1:echo:mine\",\"text\":\"hi\"}" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_raw c;
                struct api_answer a;

                api_rig_send(r, &c, "POST", rows[i].path, rows[i].header, rows[i].body);
                a = api_rig_receive(&c);
                if (a.status != 400 || !strstr(a.text, "a2a:"))
                        fail_msg("%zu: %s", i, a.text);
                api_answer_release(&a);
        }
        assert_int_equal(r->turns, 0);
}

static void what_does_not_become_an_answer_has_its_state(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "fail")));

        assert_string_equal(state_of(task_of(&a)), "TASK_STATE_FAILED");
        assert_string_equal(said_of(task_of(&a)), "Sorry, not now.");
        api_answer_release(&a);
        /* what the road refuses */
        a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m2", "quiet")));
        assert_string_equal(state_of(task_of(&a)), "TASK_STATE_REJECTED");
        assert_string_not_equal(said_of(task_of(&a)), "");
        api_answer_release(&a);
}

static void a_client_need_not_wait(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hang on") NOW));
        char *id = mem_strdup(json_str(task_of(&a), "id", NULL));

        assert_null(strstr(state_of(task_of(&a)), "COMPLETED"));
        api_answer_release(&a);
        api_rig_until(r, &r->hanging_count, 1);
        get_task(r, id, &a);
        assert_string_equal(state_of(task_of(&a)), "TASK_STATE_WORKING");
        api_answer_release(&a);
        api_rig_release(r);
        /* the same message again waits for its end */
        a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hang on")));
        assert_string_equal(answer_of(task_of(&a)), "re: hang on");
        assert_string_equal(json_str(task_of(&a), "id", ""), id);
        api_answer_release(&a);
        free(id);
}

static void tasks_are_known_after_a_restart_and_to_their_key_alone(void **state)
{
        struct api_rig *r = *state;
        char *key = api_rig_key_headers(r, "{\"name\":\"k\",\"scopes\":[\"a2a:write\"]}");
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hello"))), b;
        char *id = mem_strdup(json_str(task_of(&a), "id", NULL)), *body;
        static const char *const methods[] = { "GetTask", "CancelTask", "SubscribeToTask" };

        api_rig_restart(r);
        get_task(r, id, &b);
        assert_true(json_equal(task_of(&a), task_of(&b)));
        api_answer_release(&b);
        for (size_t i = 0; i < COUNT(methods); i++) {
                body = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{"
                                  "\"id\":\"%s\"}}",
                                  methods[i], id);
                b = api_rig_ask_as(r, "POST", "/a2a", key, body);
                if (!strstr(b.text, "-32001"))
                        fail_msg("%s", b.text);
                api_answer_release(&b);
                /* nor is it a task of another agent */
                b = ask(r, "/a2a/echo", body);
                if (!strstr(b.text, "-32001"))
                        fail_msg("%s", b.text);
                api_answer_release(&b);
                free(body);
        }
        b = api_rig_ask_as(r, "POST", "/a2a", key, CALL("ListTasks", ""));
        assert_int_equal(json_int(json_object_get(b.json, "result"), "totalSize", -1), 0);
        api_answer_release(&b);
        api_answer_release(&a);
        free(id);
        free(key);
}

static struct api_answer ask_with_file(struct api_rig *r, const char *base64)
{
        char *body = mem_printf(
                CALL("SendMessage",
                     "\"message\":{\"messageId\":\"m1\",\"role\":\"user\",\"parts\":[{\"text\":"
                     "\"read\"},{\"raw\":\"%s\",\"filename\":\"../a.txt\",\"mediaType\":"
                     "\"text/plain\"},{\"url\":\"https://x.example/b.png\",\"mediaType\":"
                     "\"image/png\"}]}"),
                base64);
        struct api_answer a = ask(r, "/a2a", body);

        free(body);
        return a;
}

static void files_that_are_sent_along_are_saved_for_the_turn(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask_with_file(r, "aGVsbG8=");
        const json_t *task = task_of(&a), *files;
        struct api_answer events, again;
        const char *source;
        struct buf content;
        char *path;

        assert_string_equal(answer_of(task), "re: read");
        events = api_rig_ask(r, "GET", "/api/v2/events?type=message.received", NULL);
        files = json_object_get(
                json_object_get(json_array_get(json_object_get(events.json, "items"), 0),
                                "payload"),
                "attachments");
        assert_int_equal(json_array_size(files), 2);
        assert_string_equal(json_str(json_array_get(files, 0), "kind", ""), "document");
        assert_int_equal(json_int(json_array_get(files, 0), "size", 0), 5);
        assert_string_equal(json_str(json_array_get(files, 1), "kind", ""), "image");
        assert_null(strstr(events.text, "aGVsbG8="));
        /* as others that are removed after a while: digits, and its name */
        source = json_str(json_array_get(files, 0), "source", "");
        assert_memory_equal(source, "saved:", 6);
        assert_int_equal(strspn(source + 6, "0123456789"), strlen(source + 6));
        path = mem_printf("%s/workspace/channels/api/a2a%%3A0%%3A%%3A%s/attachments/%s-_._a.txt",
                          r->dir, json_str(task, "contextId", ""), source + 6);
        again = ask_with_file(r, "aGVsbG8=");
        assert_true(json_equal(a.json, again.json));
        api_answer_release(&again);
        /* another file makes it another message, and leaves the first file alone */
        expect_error(ask_with_file(r, "d29ybGQ="), A2A_INVALID_PARAMS);
        assert_int_equal(r->turns, 1);
        buf_init(&content, 0);
        if (file_read(path, 100, &content, NULL) < 0)
                fail_msg("no %s", path);
        assert_string_equal(content.data, "hello");
        buf_release(&content);
        free(path);
        api_answer_release(&events);
        api_answer_release(&a);
        expect_error(ask(r, "/a2a",
                         CALL("SendMessage",
                              "\"message\":{\"messageId\":\"m2\",\"role\":\"user\",\"parts\":[{"
                              "\"raw\":\"no base64!\"}]}")),
                     A2A_INVALID_PARAMS);
}

/* A reload in the middle: the file is being saved. */
static void an_adapter_that_is_removed_gets_no_message(void **state)
{
        static const char body[] = CALL(
                "SendMessage", "\"message\":{\"messageId\":\"m1\",\"role\":\"user\",\"parts\":["
                               "{\"raw\":\"aGVsbG8=\",\"filename\":\"a.txt\"}]}");
        struct api_rig *r = *state;
        struct adapter_conf *left;
        struct api_answer a;
        struct http_raw c;
        struct error err;

        left = adapter_conf_make("terminal", "cli", "{}", &err);
        api_rig_send(r, &c, "POST", "/a2a", "", body);
        while (!r->api->jobs)
                loop_step(r->loop, true);
        assert_int_equal(adapters_apply(r->adapters, &left, 1, &err), 0);
        a = api_rig_receive(&c);
        assert_int_equal(a.status, 503);
        assert_non_null(strstr(a.text, "instance 'api'"));
        api_answer_release(&a);
        assert_int_equal(r->turns, 0);
}

/* ---- streams ---- */

/* The results of all events as a list; yours to free. */
static json_t *events_of(const char *text)
{
        json_t *list = json_array();

        while ((text = strstr(text, "data: "))) {
                size_t n = strcspn(text += 6, "\n");
                json_t *event = json_loadb(text, n, 0, NULL);

                assert_non_null(event);
                assert_int_equal(json_int(event, "id", 0), 7);
                json_array_append(list, json_object_get(event, "result"));
                json_decref(event);
        }
        return list;
}

static json_t *stream(struct api_rig *r, const char *body)
{
        struct http_raw c;
        json_t *events;

        api_rig_send(r, &c, "POST", "/a2a", "", body);
        assert_true(http_raw_wait_answers(&c, 1));
        assert_int_equal(http_raw_status(&c, 0), 200);
        assert_non_null(strstr(c.in.data, "text/event-stream"));
        events = events_of(c.in.data);
        http_raw_close(&c);
        return events;
}

/* "submitted working +one +two =all completed": what a list of events of 1.0 says. */
static char *told(const json_t *events)
{
        const json_t *event;
        struct buf b;
        size_t i;

        buf_init(&b, 0);
        json_array_foreach(events, i, event) {
                const json_t *task = json_object_get(event, "task");
                const json_t *status = json_object_get(event, "statusUpdate");
                const json_t *update = json_object_get(event, "artifactUpdate");

                buf_addstr(&b, b.len ? " " : "");
                if (task)
                        buf_addf(&b, "task:%s", state_of(task) + 11);
                else if (status)
                        buf_addf(&b, "%s", state_of(status) + 11);
                else
                        buf_addf(&b, "%c%s", json_flag(update, "append", false) ? '+' : '=',
                                 text_of(json_object_get(update, "artifact")));
        }
        return buf_take(&b);
}

static void pieces_of_an_answer_are_streamed(void **state)
{
        static const struct {
                const char *body, *told;
        } rows[] = {
                { CALL("SendStreamingMessage", MESSAGE("m1", "stream of words")),
                  "task:SUBMITTED WORKING =\nre:  +stream + of words COMPLETED" },
                { CALL("SendStreamingMessage", MESSAGE("m2", "whole")),
                  "task:SUBMITTED WORKING =re: whole COMPLETED" },
                { CALL("SendStreamingMessage", MESSAGE("m3", "fail")), "task:SUBMITTED FAILED" },
                { CALL("SendStreamingMessage", MESSAGE("m4", "quiet")), "task:SUBMITTED REJECTED" },
                /* the same again is what it came to */
                { CALL("SendStreamingMessage", MESSAGE("m2", "whole")), "task:COMPLETED" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *events = stream(r, rows[i].body);
                char *text = told(events);

                assert_string_equal(text, rows[i].told);
                free(text);
                json_decref(events);
        }
}

static void a_task_may_be_followed_by_several(void **state)
{
        struct api_rig *r = *state;
        struct http_raw first, second, third;
        char *body, *id;
        json_t *events;

        api_rig_send(r, &first, "POST", "/a2a", "",
                     CALL("SendStreamingMessage", MESSAGE("m1", "hang on")));
        assert_true(http_raw_wait_for(&first, "\"task\":{\"id\":\""));
        id = strstr(first.in.data, "\"task\":{\"id\":\"") + 14;
        body = mem_printf(CALL("SubscribeToTask", "\"id\":\"%.*s\""), (int)strcspn(id, "\""), id);
        api_rig_until(r, &r->hanging_count, 1);
        api_rig_send(r, &second, "POST", "/a2a", "", body);
        api_rig_send(r, &third, "POST", "/a2a", "", body);
        assert_true(http_raw_wait_for(&second, "TASK_STATE_WORKING"));
        assert_true(http_raw_wait_for(&third, "TASK_STATE_WORKING"));
        http_raw_close(&third); /* which stops nothing */
        api_rig_release(r);
        assert_true(http_raw_wait_answers(&first, 1));
        assert_true(http_raw_wait_answers(&second, 1));
        events = events_of(second.in.data);
        body = (free(body), told(events));
        assert_string_equal(body, "task:WORKING =re: hang on COMPLETED");
        free(body);
        json_decref(events);
        http_raw_close(&first);
        http_raw_close(&second);
}

/* ---- tasks ---- */

static void a_task_is_canceled_once(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hang on") NOW));
        char *body =
                mem_printf(CALL("CancelTask", "\"id\":\"%s\""), json_str(task_of(&a), "id", ""));

        api_answer_release(&a);
        a = ask(r, "/a2a", body);
        assert_string_equal(state_of(task_of(&a)), "TASK_STATE_CANCELED");
        api_answer_release(&a);
        expect_error(ask(r, "/a2a", body), A2A_TASK_NOT_CANCELABLE);
        free(body);
}

static bool one_waits(void *arg)
{
        return reply_waiters_count(((struct api_rig *)arg)->api->waiters) == 1;
}

/* While the first stops it, the second has nothing to stop: it has not ended before, though. */
static void a_task_may_be_canceled_by_two_at_once(void **state)
{
        static struct gate gate;
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hang on") NOW));
        char *body =
                mem_printf(CALL("CancelTask", "\"id\":\"%s\""), json_str(task_of(&a), "id", ""));
        struct http_raw clients[2];

        api_answer_release(&a);
        api_rig_until(r, &r->hanging_count, 1);
        gate_close(&gate, r->store);
        for (size_t i = 0; i < COUNT(clients); i++)
                api_rig_send(r, &clients[i], "POST", "/a2a", "", body);
        assert_true(http_raw_until(r->loop, one_waits, r));
        gate_open(&gate);
        for (size_t i = 0; i < COUNT(clients); i++) {
                a = api_rig_receive(&clients[i]);
                assert_string_equal(state_of(task_of(&a)), "TASK_STATE_CANCELED");
                api_answer_release(&a);
        }
        free(body);
}

static void tasks_are_listed_by_state_and_page(void **state)
{
        static const char *const texts[] = { "one", "two", "fail", "three" };
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *result;
        char *body;

        for (size_t i = 0; i < COUNT(texts); i++) {
                body = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"SendMessage\","
                                  "\"params\":{\"message\":{\"messageId\":\"m%zu\",\"contextId\":"
                                  "\"c%zu\",\"role\":\"user\",\"parts\":[{\"text\":\"%s\"}]}}}",
                                  i, i / 2, texts[i]);
                a = ask(r, "/a2a", body);
                task_of(&a);
                api_answer_release(&a);
                free(body);
        }
        a = ask(r, "/a2a", CALL("ListTasks", "\"pageSize\":3,\"includeArtifacts\":true"));
        result = json_object_get(a.json, "result");
        assert_int_equal(json_int(result, "totalSize", 0), 4);
        assert_int_equal(json_int(result, "pageSize", 0), 3);
        assert_string_equal(answer_of(json_array_get(json_object_get(result, "tasks"), 0)),
                            "re: three");
        body = mem_printf(CALL("ListTasks", "\"pageSize\":3,\"pageToken\":\"%s\""),
                          json_str(result, "nextPageToken", ""));
        api_answer_release(&a);
        a = ask(r, "/a2a", body);
        result = json_object_get(a.json, "result");
        assert_int_equal(json_array_size(json_object_get(result, "tasks")), 1);
        assert_string_equal(json_str(result, "nextPageToken", "?"), "");
        assert_null(
                json_object_get(json_array_get(json_object_get(result, "tasks"), 0), "artifacts"));
        api_answer_release(&a);
        free(body);
        a = ask(r, "/a2a", CALL("ListTasks", "\"contextId\":\"c0\""));
        assert_int_equal(json_int(json_object_get(a.json, "result"), "totalSize", 0), 2);
        api_answer_release(&a);
        a = ask(r, "/a2a", CALL("ListTasks", "\"status\":\"TASK_STATE_FAILED\""));
        assert_int_equal(json_int(json_object_get(a.json, "result"), "totalSize", 0), 1);
        api_answer_release(&a);
        a = ask(r, "/a2a", CALL("ListTasks", "\"statusTimestampAfter\":\"2100-01-01T00:00:00Z\""));
        assert_int_equal(json_int(json_object_get(a.json, "result"), "totalSize", -1), 0);
        api_answer_release(&a);
}

/* ---- questions ---- */

struct verdict {
        bool done;
        enum approval_state state;
};

static void on_decided(void *arg, const struct approval_decision *d)
{
        struct verdict *v = arg;

        v->done = true;
        v->state = d->state;
}

static void ask_approval(struct api_rig *r, struct verdict *v)
{
        api_rig_until(r, &r->hanging_count, 1);
        turn_ask_approval(r->hanging[0],
                          &(struct approval_request){ .call = "c",
                                                      .tool = "bash",
                                                      .title = "Run a command?",
                                                      .detail = "rm -r build",
                                                      .subject = "{}",
                                                      .reason = "a rule",
                                                      .approvers = APPROVERS_ASKER,
                                                      .expires_ms = 3600000 },
                          on_decided, v);
}

static bool two_wait(void *arg)
{
        return reply_waiters_count(((struct api_rig *)arg)->api->waiters) == 2;
}

/* An agent that asks a person waits for input; "yes" to the task lets it go on. */
static void a_task_that_asks_waits_for_input(void **state)
{
        struct verdict v = { 0 };
        struct api_rig *r = *state;
        struct http_raw waits, streams, again;
        const json_t *task;
        struct api_answer a;
        char *id, *body, *text;
        json_t *events;

        api_rig_dispatch(r, NULL, "[{\"name\":\"all\",\"agent\":\"echo\"}]");
        api_rig_send(r, &waits, "POST", "/a2a", "", CALL("SendMessage", MESSAGE("m1", "hang on")));
        api_rig_until(r, &r->hanging_count, 1);
        api_rig_send(r, &streams, "POST", "/a2a", "",
                     CALL("SendStreamingMessage", MESSAGE("m1", "hang on")));
        assert_true(http_raw_wait_for(&streams, "TASK_STATE_WORKING"));
        ask_approval(r, &v);
        a = api_rig_receive(&waits);
        task = task_of(&a);
        assert_string_equal(state_of(task), "TASK_STATE_INPUT_REQUIRED");
        assert_non_null(strstr(said_of(task), "rm -r build"));
        id = mem_strdup(json_str(task, "id", NULL));
        api_answer_release(&a);
        assert_true(http_raw_wait_answers(&streams, 1));
        events = events_of(streams.in.data);
        text = told(events);
        assert_string_equal(text, "task:WORKING INPUT_REQUIRED");
        free(text);
        json_decref(events);
        http_raw_close(&streams);
        assert_int_equal(reply_waiters_count(r->api->waiters), 0);
        /* of another context it is not the task */
        body = mem_printf(CALL("SendMessage",
                               "\"message\":{\"messageId\":\"m2\",\"taskId\":\"%s\",\"contextId\":"
                               "\"other\",\"role\":\"user\",\"parts\":[{\"text\":\"yes\"}]}"),
                          id);
        expect_error(ask(r, "/a2a", body), A2A_INVALID_PARAMS);
        free(body);
        body = mem_printf(CALL("SendMessage",
                               "\"message\":{\"messageId\":\"m3\",\"taskId\":\"%s\",\"role\":"
                               "\"user\",\"parts\":[{\"text\":\"yes\"}]}"),
                          id);
        api_rig_send(r, &waits, "POST", "/a2a", "", body);
        for (int i = 0; i < 1000000 && !v.done; i++)
                loop_step(r->loop, true);
        assert_int_equal(v.state, APPROVAL_APPROVED);
        /* the same again, while it works and after its end */
        api_rig_send(r, &again, "POST", "/a2a", "", body);
        assert_true(http_raw_until(r->loop, two_wait, r));
        api_rig_release(r);
        for (int i = 0; i < 3; i++) {
                a = i == 0   ? api_rig_receive(&waits)
                    : i == 1 ? api_rig_receive(&again)
                             : ask(r, "/a2a", body);
                task = task_of(&a);
                assert_string_equal(json_str(task, "id", ""), id);
                assert_string_equal(state_of(task), "TASK_STATE_COMPLETED");
                assert_string_equal(answer_of(task), "re: hang on");
                api_answer_release(&a);
        }
        free(body);
        body = mem_printf(CALL("SendMessage",
                               "\"message\":{\"messageId\":\"m3\",\"taskId\":\"%s\",\"role\":"
                               "\"user\",\"parts\":[{\"text\":\"no\"}]}"),
                          id);
        expect_error(ask(r, "/a2a", body), A2A_INVALID_PARAMS);
        free(body);
        /* now it takes no more */
        body = mem_printf(CALL("SendMessage",
                               "\"message\":{\"messageId\":\"m4\",\"taskId\":\"%s\",\"role\":"
                               "\"user\",\"parts\":[{\"text\":\"yes\"}]}"),
                          id);
        expect_error(ask(r, "/a2a", body), A2A_UNSUPPORTED_OPERATION);
        free(body);
        free(id);
}

static void never(void *arg, const struct awaited_reply *reply)
{
        (void)arg;
        (void)reply;
}

/* As of other requests that wait. */
static void too_many_followers_are_refused(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = ask(r, "/a2a", CALL("SendMessage", MESSAGE("m1", "hang on") NOW));
        static const char *const methods[] = { "SubscribeToTask", "CancelTask" };

        for (int i = 0; i < 1000; i++)
                reply_waiters_add(r->api->waiters, 999, false, 600000, never, NULL);
        for (size_t i = 0; i < COUNT(methods); i++) {
                char *body =
                        mem_printf("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{"
                                   "\"id\":\"%s\"}}",
                                   methods[i], json_str(task_of(&a), "id", ""));

                api_rig_expect(r, "POST", "/a2a", body, 503, "requests wait for a reply already");
                free(body);
        }
        api_answer_release(&a);
        api_rig_until(r, &r->hanging_count, 1);
        api_rig_release(r);
}

/* ---- mistakes ---- */

static void mistakes_have_the_codes_of_the_specification(void **state)
{
        static const struct {
                const char *body;
                int64_t code;
        } rows[] = {
                { "no json", A2A_PARSE_ERROR },
                { "[]", A2A_INVALID_REQUEST },
                { "{}", A2A_INVALID_REQUEST },
                { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"GetTask\"}", A2A_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"GetTask\"}", A2A_INVALID_REQUEST },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", A2A_INVALID_REQUEST },
                { CALL("tasks/delete", ""), A2A_METHOD_NOT_FOUND },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":[]}",
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", ""), A2A_INVALID_PARAMS },
                { CALL("SendMessage",
                       "\"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"x\"}]}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\","
                                      "\"parts\":[{\"text\":\"x\"}]}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"role\":\"user\"}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage",
                       "\"message\":{\"messageId\":\"m\",\"role\":\"user\",\"parts\":[]}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", MESSAGE("m", " ")), A2A_INVALID_PARAMS },
                { CALL("SendMessage", MESSAGE("a\\nb", "x")), A2A_INVALID_PARAMS },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"contextId\":7,\"role\":"
                                      "\"user\",\"parts\":[{\"text\":\"x\"}]}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"role\":\"user\","
                                      "\"parts\":[{\"smell\":\"x\"}]}"),
                  A2A_CONTENT_TYPE },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"role\":\"user\","
                                      "\"parts\":[{\"url\":\"file:///etc/passwd\"}]}"),
                  A2A_CONTENT_TYPE },
                { CALL("SendMessage",
                       MESSAGE("m", "x") ",\"configuration\":{\"historyLength\":-1}"),
                  A2A_INVALID_PARAMS },
                { CALL("SendMessage", MESSAGE("m", "x") ",\"configuration\":{"
                                                        "\"taskPushNotificationConfig\":{\"url\":"
                                                        "\"http://x\"}}"),
                  A2A_PUSH_NOT_SUPPORTED },
                { CALL("SendMessage", "\"message\":{\"messageId\":\"m\",\"taskId\":\"evt-1\","
                                      "\"role\":\"user\",\"parts\":[{\"text\":\"x\"}]}"),
                  A2A_TASK_NOT_FOUND },
                { CALL("GetTask", ""), A2A_INVALID_PARAMS },
                { CALL("GetTask", "\"id\":\"x\""), A2A_TASK_NOT_FOUND },
                { CALL("GetTask", "\"id\":\"evt-1\""), A2A_TASK_NOT_FOUND },
                { CALL("GetTask", "\"id\":\"1\""), A2A_TASK_NOT_FOUND },
                { CALL("GetTask", "\"id\":\"evt-99999999999999999999\""), A2A_TASK_NOT_FOUND },
                { CALL("CancelTask", "\"id\":\"evt-77\""), A2A_TASK_NOT_FOUND },
                { CALL("ListTasks", "\"pageSize\":101"), A2A_INVALID_PARAMS },
                { CALL("ListTasks", "\"pageToken\":\"7\""), A2A_INVALID_PARAMS },
                { CALL("ListTasks", "\"status\":\"sleeping\""), A2A_INVALID_PARAMS },
                { CALL("ListTasks", "\"statusTimestampAfter\":\"soon\""), A2A_INVALID_PARAMS },
                { CALL("CreateTaskPushNotificationConfig", ""), A2A_PUSH_NOT_SUPPORTED },
                { CALL("tasks/pushNotificationConfig/list", ""), A2A_PUSH_NOT_SUPPORTED },
                { CALL("GetExtendedAgentCard", ""), A2A_UNSUPPORTED_OPERATION },
                { CALL("agent/getAuthenticatedExtendedCard", ""), A2A_CARD_NOT_CONFIGURED },
        };
        struct api_rig *r = *state;

        /* an event that is no task */
        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", "{\"text\":\"hi\"}", 202,
                       NULL);
        for (size_t i = 0; i < COUNT(rows); i++)
                expect_error(ask(r, "/a2a", rows[i].body), rows[i].code);
        assert_int_equal(r->turns, 1);
}

static void other_versions_are_refused(void **state)
{
        struct api_rig *r = *state;
        char *key = api_rig_key_headers(r, "{\"name\":\"k\",\"scopes\":[\"a2a:write\"]}");
        static const char *const versions[] = { "2.0", "1.0", "1.0.1", "0.3", "" };

        for (size_t i = 0; i < COUNT(versions); i++) {
                char *headers = mem_printf("%sA2A-Version: %s\r\n", key, versions[i]);
                struct api_answer a =
                        api_rig_ask_as(r, "POST", "/a2a", headers, CALL("ListTasks", ""));

                if ((strstr(a.text, "-32009") != NULL) != (i == 0))
                        fail_msg("%s: %s", versions[i], a.text);
                api_answer_release(&a);
                free(headers);
        }
        free(key);
}

static void a_key_asks_only_its_agents(void **state)
{
        struct api_rig *r = *state;
        char *writer = api_rig_key_headers(r, "{\"name\":\"w\",\"scopes\":[\"a2a:write\"],"
                                              "\"adapters\":[\"api\"]}");
        char *reader = api_rig_key_headers(r, "{\"name\":\"r\",\"scopes\":[\"a2a:read\"]}");
        static const struct {
                int key;
                const char *method, *path;
                int status;
        } rows[] = {
                { 0, "POST", "/a2a/echo", 403 },       { 0, "GET", "/a2a/echo" CARD, 404 },
                { 0, "GET", "/a2a/nobody" CARD, 404 }, { 1, "POST", "/a2a", 403 },
                { 1, "GET", "/a2a/echo" CARD, 200 },   { 2, "POST", "/a2a", 401 },
                { 2, "GET", "/a2a/echo" CARD, 401 },   { 2, "GET", "/a2a/nobody" CARD, 401 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *headers = rows[i].key == 0   ? writer
                                      : rows[i].key == 1 ? reader
                                                         : NOBODY;
                struct api_answer a = api_rig_ask_as(
                        r, rows[i].method, rows[i].path, headers,
                        strcmp(rows[i].method, "POST") == 0 ? CALL("SendMessage", MESSAGE("m", "x"))
                                                            : NULL);

                if (a.status != rows[i].status)
                        fail_msg("%zu: %s", i, a.text);
                api_answer_release(&a);
        }
        assert_int_equal(r->turns, 0);
        free(writer);
        free(reader);
}

/* ---- cards ---- */

static struct api_answer card(struct api_rig *r, const char *path, const char *headers)
{
        return api_rig_ask_as(r, "GET", path, headers, NULL);
}

static void cards_are_closed_unless_they_are_published(void **state)
{
        char dragoman[] = CARD_OF_THE_RULES, name[] = "Front desk", *publish[] = { dragoman };
        struct cards_conf conf = { .publish = { publish, 1, true }, .name = name };
        struct api_rig *r = *state;
        struct api_answer a = card(r, CARD, NOBODY);

        assert_int_equal(a.status, 401);
        api_answer_release(&a);
        api_set_cards(r->api, &conf); /* as after a reload */
        a = card(r, CARD, NOBODY);
        assert_int_equal(a.status, 200);
        assert_string_equal(json_str(a.json, "name", ""), "Front desk");
        api_answer_release(&a);
        a = card(r, "/a2a/echo" CARD, NOBODY);
        assert_int_equal(a.status, 401);
        api_answer_release(&a);
        a = api_rig_ask_as(r, "POST", "/a2a", NOBODY, CALL("SendMessage", MESSAGE("m", "x")));
        assert_int_equal(a.status, 401);
        api_answer_release(&a);
}

/* Both kinds of clients read it with our own reader, which knows both. */
static void a_card_names_the_endpoint_for_both_versions(void **state)
{
        struct api_rig *r = *state;
        char *key = api_rig_key_headers(r, "{\"name\":\"k\",\"scopes\":[\"a2a:read\"]}");
        char *modern = mem_printf("%sA2A-Version: 1.0\r\n", key);
        struct api_answer a = card(r, "/a2a/echo" CARD, key);
        const json_t *first;
        char *url;

        assert_string_equal(json_str(a.json, "protocolVersion", ""), "0.3.0");
        assert_string_equal(json_str(a.json, "preferredTransport", ""), "JSONRPC");
        url = mem_printf("http://%s/a2a/echo", api_address(r->api));
        assert_string_equal(json_str(a.json, "url", ""), url);
        first = json_array_get(json_object_get(a.json, "supportedInterfaces"), 0);
        assert_string_equal(json_str(first, "url", ""), url);
        assert_string_equal(json_str(first, "protocolVersion", ""), "1.0");
        assert_int_equal(json_array_size(json_object_get(a.json, "skills")), 1);
        assert_non_null(strstr(a.text, "Vary: A2A-Version"));
        api_answer_release(&a);
        a = card(r, "/a2a/echo" CARD, modern);
        assert_null(json_object_get(a.json, "protocolVersion"));
        assert_non_null(json_object_get(a.json, "securityRequirements"));
        api_answer_release(&a);
        free(url);
        r->public_url = "https://bot.example.org/";
        api_rig_restart(r);
        a = card(r, CARD, key);
        assert_string_equal(json_str(a.json, "url", ""), "https://bot.example.org/a2a");
        api_answer_release(&a);
        free(modern);
        free(key);
}

/* It gets nothing more, and what the agent says does not pile up. */
static void a_client_that_does_not_read_its_stream_is_dropped(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;
        char label[1000];

        api_rig_send(r, &c, "POST", "/a2a", "A2A-Version: 1.0\r\n",
                     CALL("SendStreamingMessage", MESSAGE("m1", "hang on")));
        assert_true(http_raw_wait_for(&c, "SUBMITTED"));
        api_rig_until(r, &r->hanging_count, 1);
        for (int i = 0; i < 20000; i++) {
                snprintf(label, sizeof(label), "%d %0900d", i, 0);
                turn_progress(r->hanging[0], label);
                if (i % 100 == 0)
                        loop_step(r->loop, false);
        }
        assert_true(http_raw_wait_closed(&c));
        assert_true(c.in.len < (size_t)15 << 20);
        http_raw_close(&c);
        api_rig_release(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(a_client_that_does_not_read_its_stream_is_dropped),
                API_RIG_CASE(a_message_is_a_task_on_the_road),
                API_RIG_CASE(the_older_version_is_spoken_as_well),
                API_RIG_CASE(the_same_message_does_nothing_twice),
                API_RIG_CASE(contexts_are_chats_of_their_key_and_agent),
                API_RIG_CASE(other_protocols_lead_into_no_context),
                API_RIG_CASE(what_does_not_become_an_answer_has_its_state),
                API_RIG_CASE(a_client_need_not_wait),
                API_RIG_CASE(tasks_are_known_after_a_restart_and_to_their_key_alone),
                API_RIG_CASE(files_that_are_sent_along_are_saved_for_the_turn),
                API_RIG_CASE(an_adapter_that_is_removed_gets_no_message),
                API_RIG_CASE(pieces_of_an_answer_are_streamed),
                API_RIG_CASE(a_task_may_be_followed_by_several),
                API_RIG_CASE(a_task_is_canceled_once),
                API_RIG_CASE(a_task_may_be_canceled_by_two_at_once),
                API_RIG_CASE(tasks_are_listed_by_state_and_page),
                API_RIG_CASE(a_task_that_asks_waits_for_input),
                API_RIG_CASE(too_many_followers_are_refused),
                API_RIG_CASE(mistakes_have_the_codes_of_the_specification),
                API_RIG_CASE(other_versions_are_refused),
                API_RIG_CASE(a_key_asks_only_its_agents),
                API_RIG_CASE(cards_are_closed_unless_they_are_published),
                API_RIG_CASE(a_card_names_the_endpoint_for_both_versions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
