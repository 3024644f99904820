/*
 * The simulated Bot API over HTTP, beyond single methods.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/fake_server.h"
#include "../lib/sim_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/telegram/tg_control.h"
#include "sim/telegram/tg_world.h"

#define TOKEN "7:sim"

static int setup(void **state)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        struct sim_rig *r = sim_rig_new(headers);
        struct bot *b;

        r->world = tg_world_new(r->loop);
        b = tg_world_make_bot(r->world, TOKEN, NULL);
        tg_chat_private(b, tg_world_make_user(r->world, 42, "Ada", "ada"), true);
        sim_rig_serve(r, &r->world->base, tg_control_routes, tg_control_route_count, NULL);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        sim_rig_free(*state, tg_world_free);
        return 0;
}

/* Calls a method, expects this status; returns the result or the error, yours. */
static json_t *call(struct sim_rig *r, const char *method, const char *args, int status)
{
        char *path = mem_printf("/bot" TOKEN "/%s", method);
        struct sim_answer a = sim_rig_ask(r, path, args);
        json_t *result;

        free(path);
        assert_int_equal(a.status, status);
        result = status == 200 ? json_incref(json_object_get(a.body, "result"))
                               : json_incref(a.body);
        json_decref(a.body);
        return result;
}

static void refused(struct sim_rig *r, const char *method, const char *args, int status,
                    const char *words)
{
        json_t *error = call(r, method, args, status);

        assert_string_equal(json_str(error, "description", ""), words);
        json_decref(error);
}

static void send_text(struct sim_rig *r, const char *text)
{
        char *request = mem_printf("{\"from\":42,\"text\":\"%s\"}", text);

        sim_rig_control_ok(r, "send", request);
        free(request);
}

/* The texts of the updates, separated by blanks. Yours. */
static char *texts(const json_t *updates, int64_t *last_id)
{
        struct buf b;
        const json_t *u;
        size_t i;

        buf_init(&b, 0);
        json_array_foreach(updates, i, u) {
                buf_addf(&b, "%s%s", i ? " " : "",
                         json_str(json_object_get(u, "message"), "text", "?"));
                if (last_id && json_int(u, "update_id", 0) > *last_id)
                        *last_id = json_int(u, "update_id", 0);
        }
        return buf_take(&b);
}

static void assert_poll(struct sim_rig *r, const char *args, const char *expected, int64_t *last_id)
{
        json_t *updates = call(r, "getUpdates", args, 200);
        char *got = texts(updates, last_id);

        assert_string_equal(got, expected);
        free(got);
        json_decref(updates);
}

/* ---- updates ---- */

static void updates_stay_until_an_offset_confirms_them(void **state)
{
        struct sim_rig *r = *state;
        int64_t last = 0;
        char args[64];

        send_text(r, "a");
        send_text(r, "b");
        assert_poll(r, "{}", "a b", &last);
        assert_poll(r, "{\"limit\":1}", "a", NULL);
        snprintf(args, sizeof(args), "{\"offset\":%lld}", (long long)last);
        assert_poll(r, args, "b", NULL);
        snprintf(args, sizeof(args), "{\"offset\":%lld}", (long long)last + 1);
        assert_poll(r, args, "", NULL);
        send_text(r, "c");
        send_text(r, "d");
        assert_poll(r, "{\"offset\":-1}", "d", NULL);
        assert_poll(r, "{}", "d", NULL);
}

static void a_long_poll_returns_on_the_first_update(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;
        char *got;

        sim_rig_start(r, &a, NULL, "/bot" TOKEN "/getUpdates?timeout=50", NULL);
        send_text(r, "now");
        sim_rig_await(r, &a);
        got = texts(json_object_get(a.body, "result"), NULL);
        assert_string_equal(got, "now");
        free(got);
        json_decref(a.body);
}

static void a_second_poller_ends_the_first(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer first;

        sim_rig_start(r, &first, NULL, "/bot" TOKEN "/getUpdates?timeout=50", NULL);
        json_decref(call(r, "getMe", NULL, 200)); /* the first one waits now */
        assert_poll(r, "{}", "", NULL);
        sim_rig_await(r, &first);
        assert_int_equal(first.status, 409);
        json_decref(first.body);
}

static void allowed_updates_are_remembered(void **state)
{
        struct sim_rig *r = *state;

        assert_poll(r, "{\"allowed_updates\":[\"callback_query\"]}", "", NULL);
        send_text(r, "unseen");
        assert_poll(r, "{}", "", NULL);
        assert_poll(r, "{\"allowed_updates\":[]}", "", NULL);
        send_text(r, "seen");
        assert_poll(r, "{}", "seen", NULL);
}

/* ---- webhooks ---- */

static void a_webhook_retries_until_2xx(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n" },
                { .bytes = "HTTP/1.1 200 ok\r\n"
                           "Content-Length: 60\r\n"
                           "\r\n"
                           "{\"method\":\"sendMessage\",\"chat_id\":42,\"text\":\"by the "
                           "answer\"}" },
        };
        struct sim_rig *r = *state;
        struct fake_server *hook = fake_server_new(r->loop, script, COUNT(script));
        char *url = fake_server_url(hook, "/hook"), *args;

        args = mem_printf("{\"url\":\"%s\",\"secret_token\":\"s3\"}", url);
        json_decref(call(r, "setWebhook", args, 200));
        refused(r, "getUpdates", "{}", 409,
                "Conflict: can't use getUpdates method while webhook is active; use "
                "deleteWebhook to delete the webhook first");
        send_text(r, "hooked");
        while (r->world->base.message_count == 0)
                assert_true(loop_step(r->loop, true));
        assert_int_equal(fake_server_requests(hook), 2);
        assert_non_null(
                strstr(fake_server_request(hook, 1), "X-Telegram-Bot-Api-Secret-Token: s3"));
        assert_non_null(strstr(fake_server_request(hook, 1), "hooked"));
        json_decref(call(r, "deleteWebhook", "{}", 200));
        assert_poll(r, "{}", "", NULL);
        fake_server_free(hook);
        free(url);
        free(args);
}

/* ---- errors ---- */

static void errors_have_telegrams_texts(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a = sim_rig_ask(r, "/bot9:wrong/getMe", NULL);
        char *long_text = mem_alloc(5000), *args;

        assert_int_equal(a.status, 401);
        json_decref(a.body);
        refused(r, "sendNothing", "{}", 404, "Not Found: method not found");
        refused(r, "sendMessage", "{\"chat_id\":43,\"text\":\"x\"}", 400,
                "Bad Request: chat not found");
        refused(r, "sendMessage", "{\"chat_id\":42,\"text\":\" \"}", 400,
                "Bad Request: message text is empty");
        refused(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\",\"message_thread_id\":1}", 400,
                "Bad Request: message thread not found");
        memset(long_text, 'x', 4097);
        long_text[4097] = '\0';
        args = mem_printf("{\"chat_id\":42,\"text\":\"%s\"}", long_text);
        refused(r, "sendMessage", args, 400, "Bad Request: message is too long");
        free(args);
        long_text[4096] = '\0';
        args = mem_printf("{\"chat_id\":42,\"text\":\"%s\"}", long_text);
        json_decref(call(r, "sendMessage", args, 200));
        free(args);
        free(long_text);
        sim_rig_control_ok(r, "block", "{\"user\":42}");
        refused(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 403,
                "Forbidden: bot was blocked by the user");
}

static void a_migrated_group_names_the_supergroup(void **state)
{
        struct sim_rig *r = *state;
        json_t *error;

        sim_rig_control_ok(r, "chats", "{\"id\":-5,\"type\":\"group\",\"title\":\"G\"}");
        sim_rig_control_ok(r, "migrate", "{\"chat\":-5,\"to\":-1005000000000}");
        error = call(r, "sendMessage", "{\"chat_id\":-5,\"text\":\"x\"}", 400);
        assert_int_equal(json_int(json_object_get(error, "parameters"), "migrate_to_chat_id", 0),
                         -1005000000000);
        json_decref(error);
        json_decref(call(r, "sendMessage", "{\"chat_id\":-1005000000000,\"text\":\"x\"}", 200));
}

static void a_flooded_chat_answers_429_with_retry_after(void **state)
{
        struct sim_rig *r = *state;
        json_t *error;

        r->world->base.limits = true;
        for (int i = 0; i < 3; i++)
                json_decref(call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 200));
        error = call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 429);
        /* one a second, rounded up */
        assert_in_range(json_int(json_object_get(error, "parameters"), "retry_after", 0), 1, 2);
        json_decref(error);
        assert_int_equal(r->world->base.message_count, 3);
}

static void invalid_calls_are_listed(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        refused(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\",\"odd\":1}", 400,
                "Bad Request: unknown parameter \"odd\"");
        sim_rig_control_ok(r, "settings", "{\"strict\":false}");
        json_decref(call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\",\"odd\":1}", 200));
        json_decref(call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 200));
        a = sim_rig_ask(r, "/sim/calls?valid=false", NULL);
        assert_int_equal(json_array_size(json_object_get(a.body, "items")), 2);
        json_decref(a.body);
}

/* ---- faults ---- */

static void only_cut_after_has_an_effect(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"cut_before\",\"method\":\"sendMessage\"}");
        a = sim_rig_ask(r, "/bot" TOKEN "/sendMessage", "{\"chat_id\":42,\"text\":\"x\"}");
        assert_int_equal(a.status, 0);
        assert_int_equal(r->world->base.message_count, 0);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"cut_after\",\"method\":\"sendMessage\"}");
        a = sim_rig_ask(r, "/bot" TOKEN "/sendMessage", "{\"chat_id\":42,\"text\":\"x\"}");
        assert_int_equal(a.status, 0);
        assert_int_equal(r->world->base.message_count, 1);
        json_decref(call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 200));
}

static void floods_and_errors_fire_on_request(void **state)
{
        struct sim_rig *r = *state;
        json_t *error;

        sim_rig_control_ok(r, "faults",
                           "{\"kind\":\"flood\",\"method\":\"sendMessage\",\"retry_after\":7}");
        error = call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 429);
        assert_int_equal(json_int(json_object_get(error, "parameters"), "retry_after", 0), 7);
        json_decref(error);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"status\":503}");
        json_decref(call(r, "getMe", "{}", 503));
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error_after\",\"status\":500}");
        json_decref(call(r, "sendMessage", "{\"chat_id\":42,\"text\":\"x\"}", 500));
        assert_int_equal(r->world->base.message_count, 1);
}

static void a_duplicate_follows_its_confirmation(void **state)
{
        struct sim_rig *r = *state;
        int64_t last = 0;
        char args[64];

        sim_rig_control_ok(r, "faults", "{\"kind\":\"duplicate\"}");
        send_text(r, "twice");
        assert_poll(r, "{}", "twice", &last);
        snprintf(args, sizeof(args), "{\"offset\":%lld}", (long long)last + 1);
        assert_poll(r, args, "twice", NULL);
        assert_poll(r, args, "", NULL);
}

static void updates_may_be_shuffled_but_not_within_a_chat(void **state)
{
        struct sim_rig *r = *state;
        json_t *updates;
        char *got;

        for (char text[] = "a"; *text < 'i'; ++*text)
                send_text(r, text);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"reorder\",\"within_chat\":true,\"seed\":1}");
        updates = call(r, "getUpdates", "{}", 200);
        got = texts(updates, NULL);
        assert_int_equal(strlen(got), strlen("a b c d e f g h"));
        assert_string_not_equal(got, "a b c d e f g h");
        free(got);
        json_decref(updates);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"reorder\"}");
        assert_poll(r, "{}", "a b c d e f g h", NULL);
        assert_int_equal(r->world->base.faults.fired[FAULT_REORDER], 2);
}

/* ---- memory ---- */

static void a_chat_keeps_its_last_messages(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        for (int i = 0; i < 250; i++)
                send_text(r, "x");
        a = sim_rig_ask(r, "/sim/history?chat=42", NULL);
        assert_int_equal(json_array_size(json_object_get(a.body, "messages")), 200);
        json_decref(a.body);
        refused(r, "deleteMessage", "{\"chat_id\":42,\"message_id\":1}", 400,
                "Bad Request: message to delete not found");
        json_decref(call(r, "deleteMessage", "{\"chat_id\":42,\"message_id\":250}", 200));
}

/* ---- message ids ---- */

/* The id of a message that the bot sends to this chat. */
static int64_t sent_id(struct sim_rig *r, const char *chat)
{
        char *args = mem_printf("{\"chat_id\":%s,\"text\":\"x\"}", chat);
        json_t *message = call(r, "sendMessage", args, 200);
        int64_t id = json_int(message, "message_id", 0);

        json_decref(message);
        free(args);
        return id;
}

static void private_chats_and_groups_share_a_sequence(void **state)
{
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "chats", "{\"id\":-7,\"type\":\"group\",\"title\":\"G\"}");
        sim_rig_control_ok(r, "chats", "{\"id\":-1007,\"type\":\"group\",\"title\":\"H\"}");
        sim_rig_control_ok(r, "chats",
                           "{\"id\":-1001234567890,\"type\":\"supergroup\",\"title\":\"S\"}");
        send_text(r, "first");
        assert_int_equal(sent_id(r, "42"), 2);
        assert_int_equal(sent_id(r, "-7"), 3);
        /* the bot does not see what is not addressed to it, but it has an id */
        sim_rig_control_ok(r, "send", "{\"chat\":-7,\"from\":42,\"text\":\"among us\"}");
        assert_int_equal(sent_id(r, "-1007"), 5);
        assert_int_equal(sent_id(r, "42"), 6);
        assert_int_equal(sent_id(r, "-1001234567890"), 2);
        assert_int_equal(sent_id(r, "-1001234567890"), 3);
        assert_int_equal(sent_id(r, "42"), 7);
}

/* An edit that changes nothing tells whose message it is. */
static void an_empty_edit_tells_whose_message_it_is(void **state)
{
        static const char same[] =
                "Bad Request: message is not modified: specified new message content and reply "
                "markup are exactly the same as a current content and reply markup of the message";
        struct sim_rig *r = *state;

        send_text(r, "question");
        assert_int_equal(sent_id(r, "42"), 2);
        sim_rig_control_ok(r, "send", "{\"from\":43,\"text\":\"elsewhere\"}");
        assert_int_equal(sent_id(r, "43"), 4);
        refused(r, "editMessageReplyMarkup", "{\"chat_id\":42,\"message_id\":2}", 400, same);
        refused(r, "editMessageReplyMarkup", "{\"chat_id\":42,\"message_id\":1}", 400,
                "Bad Request: message can't be edited");
        refused(r, "editMessageReplyMarkup", "{\"chat_id\":42,\"message_id\":4}", 400,
                "Bad Request: message to edit not found");
        refused(r, "editMessageReplyMarkup", "{\"chat_id\":42,\"message_id\":9}", 400,
                "Bad Request: message to edit not found");
        json_decref(call(r, "deleteMessage", "{\"chat_id\":42,\"message_id\":2}", 200));
        refused(r, "editMessageReplyMarkup", "{\"chat_id\":42,\"message_id\":2}", 400,
                "Bad Request: message to edit not found");
        assert_int_equal(sent_id(r, "42"), 5);
}

static void a_late_call_takes_effect_after_its_connection(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"late\",\"method\":\"sendMessage\",\"ms\":30}");
        sim_rig_start(r, &a, NULL, "/bot" TOKEN "/sendMessage",
                      "{\"chat_id\":42,\"text\":\"late\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 0);
        json_decref(a.body);
        assert_int_equal(r->world->base.message_count, 0);
        while (r->world->base.message_count == 0)
                loop_step(r->loop, true);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(updates_stay_until_an_offset_confirms_them),
                TEST(a_long_poll_returns_on_the_first_update),
                TEST(a_second_poller_ends_the_first),
                TEST(allowed_updates_are_remembered),
                TEST(a_webhook_retries_until_2xx),
                TEST(errors_have_telegrams_texts),
                TEST(a_migrated_group_names_the_supergroup),
                TEST(a_flooded_chat_answers_429_with_retry_after),
                TEST(invalid_calls_are_listed),
                TEST(only_cut_after_has_an_effect),
                TEST(floods_and_errors_fire_on_request),
                TEST(a_duplicate_follows_its_confirmation),
                TEST(updates_may_be_shuffled_but_not_within_a_chat),
                TEST(a_chat_keeps_its_last_messages),
                TEST(private_chats_and_groups_share_a_sequence),
                TEST(an_empty_edit_tells_whose_message_it_is),
                TEST(a_late_call_takes_effect_after_its_connection),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
