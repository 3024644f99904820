/* Chats and their messages, by activity and by name, page by page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "net/http_text.h"

/* Posts a message and waits for the reply. */
static void say(struct api_rig *r, const char *adapter, const char *chat, const char *text)
{
        char *body = mem_printf("{\"instanceId\":\"%s\",\"chatId\":\"%s\",\"text\":\"%s\"}",
                                adapter, chat, text);
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/messages/inbound?wait=15000", body);

        assert_int_equal(a.status, 202);
        api_answer_release(&a);
        free(body);
}

/* All pages of one item each, as "a b c" with `name` of each item; yours to free. */
typedef void name_fn(struct buf *b, const json_t *item);

static char *walk(struct api_rig *r, const char *path, const char *cursor_name, name_fn *name)
{
        char *at = mem_printf("%slimit=1", path);
        struct buf b;
        bool more = true;

        buf_init(&b, 0);
        for (int i = 0; more && i < 50; i++) {
                struct api_answer a = api_rig_ask(r, "GET", at, NULL);
                const json_t *meta = json_object_get(a.json, "meta"),
                             *items = json_object_get(a.json, "items");
                char *escaped;

                if (a.status != 200)
                        fail_msg("%s: %s", at, a.text);
                if (json_array_size(items) > 0) {
                        if (b.len > 0)
                                buf_addch(&b, ' ');
                        name(&b, json_array_get(items, 0));
                }
                more = json_flag(meta, "hasMore", false);
                free(at);
                escaped = http_text_escape(json_str(meta, "cursor", ""));
                at = mem_printf("%slimit=1&%s=%s", path, cursor_name, escaped);
                free(escaped);
                api_answer_release(&a);
        }
        free(at);
        assert_false(more);
        return buf_take(&b);
}

static void chat_name(struct buf *b, const json_t *item)
{
        buf_addf(b, "%s/%s", json_str(item, "instanceId", "?"), json_str(item, "channel", "?"));
}

static void expect_walk(struct api_rig *r, const char *path, const char *cursor, name_fn *name,
                        const char *expected)
{
        char *found = walk(r, path, cursor, name);

        assert_string_equal(found, expected);
        free(found);
}

static void each_chat_is_listed_once_latest_first(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "a/b", "one");
        say(r, "terminal", "x", "two");
        say(r, "api", "c", "three");
        say(r, "api", "a/b", "four");
        expect_walk(r, "/api/v2/chats?", "cursor", chat_name, "api/a/b api/c terminal/x");
        expect_walk(r, "/api/v2/chats?instanceId=api&", "cursor", chat_name, "api/a/b api/c");
        expect_walk(r, "/api/v2/chats?instanceId=nowhere&", "cursor", chat_name, "");
        expect_walk(r, "/api/v2/chats?sort=name&", "cursor", chat_name, "api/a/b api/c terminal/x");
        expect_walk(r, "/api/v2/chats?sort=name&instanceId=terminal&", "cursor", chat_name,
                    "terminal/x");
}

static void a_chat_shows_its_last_message(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;
        const json_t *chat, *last;

        say(r, "api", "c", "hello");
        a = api_rig_ask(r, "GET", "/api/v2/chats", NULL);
        chat = json_array_get(json_object_get(a.json, "items"), 0);
        last = json_object_get(chat, "lastMessage");
        assert_string_equal(json_str(last, "direction", ""), "out");
        assert_string_equal(json_str(last, "text", ""), "re: hello");
        assert_non_null(json_str(chat, "lastActivityAt", NULL));
        api_answer_release(&a);
}

/* A journal with few messages among many other events. */
static int add_turn_events(struct store_tx *tx, void *arg, struct error *err)
{
        const struct bus_event e = {
                .type = "turn.progress", .adapter = "api", .channel = "c", .payload = "{}"
        };

        (void)arg;
        for (int i = 0; i < 6000; i++)
                if (bus_append(tx, NULL, &e, NULL, err) < 0)
                        return -1;
        return 0;
}

static void a_page_reads_a_bounded_part_of_the_journal(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a;

        say(r, "api", "c", "hello");
        assert_int_equal(store_write_now(r->store, add_turn_events, NULL, NULL), 0);
        a = api_rig_ask(r, "GET", "/api/v2/chats", NULL);
        assert_int_equal(json_array_size(json_object_get(a.json, "items")), 0);
        assert_true(json_flag(json_object_get(a.json, "meta"), "hasMore", false));
        api_answer_release(&a);
        expect_walk(r, "/api/v2/chats?", "cursor", chat_name, "api/c");
}

static void a_wrong_cursor_is_reported(void **state)
{
        static const char *const paths[] = { "/api/v2/chats?cursor=x",
                                             "/api/v2/chats?sort=name&cursor=x",
                                             "/api/v2/chats?sort=size",
                                             "/api/v2/chats/api/c/messages?before=x",
                                             "/api/v2/chats?unread=1" };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(paths); i++) {
                struct api_answer a = api_rig_ask(r, "GET", paths[i], NULL);

                assert_int_equal(a.status, 400);
                api_answer_release(&a);
        }
}

static void message_name(struct buf *b, const json_t *item)
{
        const json_t *payload = json_object_get(json_object_get(item, "event"), "payload");

        buf_addf(b, "%s:%s", json_str(item, "direction", "?"), json_str(payload, "text", "?"));
}

static void a_chat_shows_messages_in_both_directions(void **state)
{
        struct api_rig *r = *state;

        say(r, "api", "c", "one");
        say(r, "api", "d", "other");
        say(r, "api", "c", "two");
        expect_walk(r, "/api/v2/chats/api/c/messages?", "before", message_name,
                    "out:re: two in:two out:re: one in:one");
        expect_walk(r, "/api/v2/chats/terminal/c/messages?", "before", message_name, "");
        {
                struct api_answer a = api_rig_ask(
                        r, "GET", "/api/v2/chats/api/c/messages?after=evt-0&limit=2", NULL);
                struct buf b;
                const json_t *item;
                size_t i;

                buf_init(&b, 0);
                json_array_foreach(json_object_get(a.json, "items"), i, item)
                        message_name(&b, item);
                assert_string_equal(b.data, "in:oneout:re: one");
                buf_release(&b);
                api_answer_release(&a);
        }
}

static void the_same_key_for_another_request_is_a_conflict(void **state)
{
        static const struct {
                const char *path, *body;
                int status;
        } rows[] = {
                { "/api/v2/messages/send",
                  "{\"instanceId\":\"api\",\"to\":\"c\",\"text\":\"hello\"}", 202 },
                { "/api/v2/messages/send",
                  " {\"to\":\"c\", \"text\":\"hello\", \"instanceId\":\"api\"}", 202 },
                { "/api/v2/messages/send",
                  "{\"instanceId\":\"api\",\"to\":\"c\",\"text\":\"hullo\"}", 409 },
                { "/api/v2/messages/send",
                  "{\"instanceId\":\"terminal\",\"to\":\"c\",\"text\":\"hello\"}", 409 },
                { "/api/v2/messages/send",
                  "{\"instanceId\":\"api\",\"to\":\"c\",\"text\":\"hello\"}", 202 },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a;
                struct http_raw c;

                api_rig_send(r, &c, "POST", rows[i].path, "Idempotency-Key: k\r\n", rows[i].body);
                a = api_rig_receive(&c);
                assert_int_equal(a.status, rows[i].status);
                if (a.status == 409)
                        assert_null(strstr(a.text, "dlv-"));
                else
                        assert_string_equal(
                                json_str(json_object_get(a.json, "data"), "deliveryId", ""),
                                "dlv-1");
                api_answer_release(&a);
        }
}

static void one_instance_is_shown_by_name(void **state)
{
        struct api_rig *r = *state;
        struct api_answer a = api_rig_ask(r, "GET", "/api/v2/instances/terminal", NULL);

        assert_int_equal(a.status, 200);
        assert_string_equal(json_str(json_object_get(a.json, "data"), "channel", ""), "cli");
        api_answer_release(&a);
        a = api_rig_ask(r, "GET", "/api/v2/instances/nowhere", NULL);
        assert_int_equal(a.status, 404);
        api_answer_release(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(each_chat_is_listed_once_latest_first),
                API_RIG_CASE(a_chat_shows_its_last_message),
                API_RIG_CASE(a_page_reads_a_bounded_part_of_the_journal),
                API_RIG_CASE(a_wrong_cursor_is_reported),
                API_RIG_CASE(a_chat_shows_messages_in_both_directions),
                API_RIG_CASE(the_same_key_for_another_request_is_a_conflict),
                API_RIG_CASE(one_instance_is_shown_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
