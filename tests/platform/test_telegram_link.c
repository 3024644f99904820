/* How the adapter listens: what it asks, what it confirms and when, what it tells the operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/http_raw_client.h"
#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

#define NO_HOOK        "{\"ok\":true,\"result\":{\"url\":\"\"}}"
#define TRUE           "{\"ok\":true,\"result\":true}"
#define NONE           "{\"ok\":true,\"result\":[]}"
#define GOT(list)      "{\"ok\":true,\"result\":[" list "]}"
#define NO(code, text) "{\"ok\":false,\"error_code\":" code ",\"description\":\"" text "\"}"
#define CHAT(id)                                                             \
        "\"chat\":{\"id\":" id ",\"type\":\"private\"},\"from\":{\"id\":" id \
        ",\"first_name\":\"A\"},\"date\":9"
#define TEXT(update, chat, message)                                      \
        "{\"update_id\":" update ",\"message\":{\"message_id\":" message \
        "," CHAT(chat) ",\"text\":\"t" message "\"}}"
#define PHOTO(update, chat, message, more)                                                   \
        "{\"update_id\":" update ",\"message\":{\"message_id\":" message "," CHAT(chat) more \
                ",\"photo\":[{\"file_id\":\"F" message                                       \
                "\",\"file_unique_id\":\"u\",\"width\":1,\"height\":1}]}}"

static int begin(void **state)
{
        struct rig *g = rig_new();

        says(g, 200, ME);
        says(g, 200, NO_HOOK);
        *state = g;
        return 0;
}

static int begin_empty(void **state)
{
        *state = rig_new();
        return 0;
}

static int end(void **state)
{
        rig_free(*state);
        return 0;
}

static void await_arrivals(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && fake_road.received_count < n; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.received_count, n);
}

static json_int_t offset_of(struct rig *g, unsigned request)
{
        const char *params = rig_params(g, request);
        json_t *j = json_read(params, strlen(params), NULL);
        json_int_t offset = json_integer_value(json_object_get(j, "offset"));

        assert_string_equal(rig_method(g, request), "getUpdates");
        assert_int_equal(json_array_size(json_object_get(j, "allowed_updates")), 7);
        json_decref(j);
        return offset;
}

static void updates_are_confirmed_when_all_are_committed(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(TEXT("100", "7", "1") "," TEXT("101", "8", "2")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 2);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        assert_string_equal(fake_road.arrivals[1].key, "8:2");
        assert_int_equal(offset_of(g, 2), 0); /* Telegram remembers where we were */
        fake_road_ack(1, ERR_NONE);
        /* nothing is asked while one is not safe */
        assert_int_equal(http_client_active(g->http), 0);
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 102);
}

static void update_ids_may_restart_anywhere(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(TEXT("500", "7", "1")));
        says(g, 200, GOT(TEXT("100", "7", "2") "," TEXT("101", "7", "3")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        fake_road_ack(0, ERR_NONE);
        await_arrivals(g, 3);
        fake_road_ack(1, ERR_NONE);
        fake_road_ack(2, ERR_NONE);
        rig_requests(g, 5);
        assert_int_equal(offset_of(g, 3), 501);
        assert_int_equal(offset_of(g, 4), 102);
}

static void a_refused_update_is_retried_unconfirmed(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(TEXT("100", "7", "1")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        fake_road_ack(0, ERR_FULL);
        await_arrivals(g, 2);
        assert_int_equal(fake_server_requests(g->server), 3);
        assert_string_equal(fake_road.arrivals[1].key, "7:1");
        fake_road_ack(1, ERR_NONE);
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 101);
}

static void an_invalid_event_does_not_block_the_queue(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(TEXT("100", "7", "1")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        fake_road_ack(0, ERR_INVALID);
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 101);
}

#define POISON "{\"update_id\":100,\"message\":{\"text\":\"a\",\"text\":\"b\"}}"

static void an_unreadable_update_does_not_block_the_queue(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(POISON "," TEXT("101", "7", "1")));
        says(g, 200, GOT(POISON "," TEXT("101", "7", "1")));
        says(g, 200, GOT(POISON)); /* alone: it is left out */
        says(g, 200, GOT(TEXT("101", "7", "1")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_non_null(strstr(rig_params(g, 2), "\"limit\":100"));
        assert_non_null(strstr(rig_params(g, 3), "\"limit\":10,"));
        assert_non_null(strstr(rig_params(g, 4), "\"limit\":1,"));
        assert_int_equal(offset_of(g, 5), 101);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 7);
        assert_int_equal(offset_of(g, 6), 102);
}

static void a_foreign_answer_is_reported(void **state)
{
        struct rig *g = *state;

        says(g, 200, "<html>Log in to the hotel</html>");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_string_equal(rig_adapter(g)->why, "this is not an answer of Telegram");
}

static void empty_answers_do_not_cause_a_busy_loop(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says(g, 200, GOT("{\"message\":{}}"));
        says(g, 200, GOT("{\"message\":{}}"));
        rig_open(g, "");
        rig_requests(g, 4);
        tg = rig_adapter(g)->self;
        for (int i = 0; i < 1000 && tg->call; i++)
                loop_step(g->loop, true);
        assert_true(timer_active(tg->timer));
}

static void service_messages_are_confirmed_without_an_event(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT("{\"update_id\":100,\"message\":{\"message_id\":1," CHAT(
                     "7") ",\"pinned_message\":{}}}"));
        says(g, 200, NULL);
        rig_open(g, "");
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 101);
        assert_int_equal(fake_road.received_count, 0);
}

static void an_album_is_one_event_and_its_chat_waits(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT(PHOTO("100", "7", "1", ",\"media_group_id\":\"g\",\"caption\":\"two\"") "," PHOTO(
                     "101", "7", "2",
                     ",\"media_group_id\":\"g\"") "," TEXT("102", "7", "3") "," TEXT("103", "8",
                                                                                     "4")));
        for (int i = 0; i < 10; i++)
                says(g, 200, NONE); /* looks beside */
        rig_open(g, ",\"mediaMaxBytes\":0");
        await_arrivals(g, 1);
        assert_string_equal(fake_road.arrivals[0].key, "8:4"); /* another chat does not wait */
        await_arrivals(g, 3);
        assert_string_equal(fake_road.arrivals[1].key, "7:1");
        assert_int_equal(fake_road.arrivals[1].attachments, 2);
        assert_string_equal(fake_road.arrivals[1].text, "two");
        assert_string_equal(fake_road.arrivals[2].key, "7:3");
        assert_int_equal(offset_of(g, 3), 100); /* a look beside confirms nothing */
}

/*
 * The first life stored one part and died before that was confirmed; this one finds both together.
 */
static void a_partly_known_album_is_stored_by_parts(void **state)
{
        struct rig *g = *state;
        const char *both = GOT(PHOTO("100", "7", "1", ",\"media_group_id\":\"g\"") "," PHOTO(
                "101", "7", "2",
                ",\"media_group_id\":\"g\",\"caption\":\"@TestBot\",\"caption_entities\":[{\"type\":\"mention\",\"offset\":0,\"length\":8}]"));

        says(g, 200, both);
        for (int i = 0; i < 10; i++)
                says(g, 200, both);
        rig_open(g, ",\"mediaMaxBytes\":0");
        await_arrivals(g, 1);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        assert_int_equal(fake_road.arrivals[0].parts, 1);
        fake_road_tell(0, INBOX_DUPLICATE, ERR_NONE);
        await_arrivals(g, 3);
        assert_string_equal(fake_road.arrivals[1].key, "7:1");
        assert_string_equal(fake_road.arrivals[2].key, "7:2");
        for (unsigned i = 1; i < 3; i++) {
                assert_int_equal(fake_road.arrivals[i].parts, 0);
                assert_int_equal(fake_road.arrivals[i].attachments, 1);
                assert_true(fake_road.arrivals[i].is_mention && fake_road.arrivals[i].more_follows);
        }
        fake_road_tell(1, INBOX_DUPLICATE, ERR_NONE);
        fake_road_ack(2, ERR_LIMIT); /* what is refused comes again, part by part */
        await_arrivals(g, 5);
        fake_road_tell(3, INBOX_DUPLICATE, ERR_NONE);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        assert_int_equal(offset_of(g, fake_server_requests(g->server) - 1), 100);
        fake_road_ack(4, ERR_NONE);
        rig_requests(g, fake_server_requests(g->server) + 1);
        assert_int_equal(offset_of(g, fake_server_requests(g->server) - 1), 102);
}

static void a_late_part_is_addressed_like_its_album(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT(PHOTO(
                     "100", "7", "1",
                     ",\"media_group_id\":\"g\",\"caption\":\"@TestBot\",\"caption_entities\":[{\"type\":\"mention\",\"offset\":0,\"length\":8}]")));
        for (int i = 0; i < 3; i++)
                says(g, 200, NONE);
        says(g, 200, GOT(PHOTO("101", "7", "2", ",\"media_group_id\":\"g\"")));
        for (int i = 0; i < 3; i++)
                says(g, 200, NONE);
        rig_open(g, ",\"mediaMaxBytes\":0");
        await_arrivals(g, 1);
        fake_road_ack(0, ERR_NONE);
        await_arrivals(g, 2);
        assert_string_equal(fake_road.arrivals[1].key, "7:2");
        assert_true(fake_road.arrivals[1].is_mention);
}

static void an_attachment_is_saved_before_its_event(void **state)
{
        struct rig *g = *state;
        char *path = scratch_path(g->dir, "workspace/channels/tg/7/attachments/1-photo.jpg");
        char text[20] = "";
        FILE *f;

        says(g, 200, GOT(PHOTO("100", "7", "1", "")));
        says(g, 200,
             "{\"ok\":true,\"result\":{\"file_id\":\"F1\",\"file_path\":\"photos/file 1.jpg\"}}");
        says(g, 200, "the picture");
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_string_equal(rig_method(g, 3), "getFile");
        assert_non_null(strstr(fake_server_request(g->server, 4),
                               "GET /file/bot" TOKEN "/photos/file%201.jpg "));
        f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof(text), f));
        fclose(f);
        assert_string_equal(text, "the picture");
        assert_int_equal(fake_road.arrivals[0].attachments, 1);
        assert_null(strstr(fake_road.arrivals[0].metadata, "secret_token"));
        free(path);
}

static mode_t mode_of(struct rig *g, const char *name)
{
        char *path = scratch_path(g->dir, name);
        struct stat st = { 0 };

        assert_int_equal(lstat(path, &st), 0);
        free(path);
        return st.st_mode & 0777;
}

static void saved_attachments_are_private(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(PHOTO("100", "7", "1", "")));
        says(g, 200,
             "{\"ok\":true,\"result\":{\"file_id\":\"F1\",\"file_path\":\"photos/1.jpg\"}}");
        says(g, 200, "the picture");
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_int_equal(mode_of(g, "workspace/channels/tg/7/attachments/1-photo.jpg"), 0600);
        assert_int_equal(mode_of(g, "workspace/channels/tg/7/attachments"), 0700);
        assert_int_equal(mode_of(g, "workspace/channels/tg"), 0700);
}

/* An agent that may write in the workspace could lead us anywhere. */
static void symlinks_in_the_workspace_are_not_followed(void **state)
{
        struct rig *g = *state;
        char *workspace = scratch_path(g->dir, "workspace"),
             *secret = scratch_path(g->dir, "state/7");
        char *channels = scratch_path(g->dir, "workspace/channels");
        char *tg = scratch_path(g->dir, "workspace/channels/tg");

        assert_int_equal(mkdir(workspace, 0755), 0);
        assert_int_equal(mkdir(channels, 0755), 0);
        assert_int_equal(symlink("../../state", tg), 0);
        says(g, 200, GOT(PHOTO("100", "7", "1", "")));
        says(g, 200,
             "{\"ok\":true,\"result\":{\"file_id\":\"F1\",\"file_path\":\"photos/1.jpg\"}}");
        says(g, 200, "the picture");
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_non_null(strstr(fake_road.arrivals[0].metadata, "it could not be saved"));
        assert_int_equal(access(secret, F_OK), -1);
        free(secret);
        free(tg);
        free(channels);
        free(workspace);
}

static void a_missing_file_is_explained_in_the_event(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(PHOTO("100", "7", "1", "")));
        says(g, 400, NO("400", "Bad Request: file is too big"));
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_non_null(strstr(fake_road.arrivals[0].metadata,
                               "\"error\":\"Telegram says: Bad Request: file is too big\""));
}

static void unsuitable_files_are_not_downloaded(void **state)
{
        static const struct {
                const char *path, *why;
                long long size;
        } rows[] = {
                { "photos/a.jpg", "it is larger than mediaMaxBytes",
                  99999999999 }, /* the message did not say */
                { "/var/lib/telegram/file.jpg",
                  "the Bot API server keeps its files for itself (--local)" },
                { "photos/../../secret", "Telegram gave no path to download it from" },
                { "", "Telegram gave no path to download it from" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                char *file = mem_printf(
                        "{\"ok\":true,\"result\":{\"file_path\":\"%s\",\"file_size\":%lld}}",
                        rows[i].path, rows[i].size);

                says(g, 200, ME);
                says(g, 200, NO_HOOK);
                says(g, 200, GOT(PHOTO("100", "7", "1", "")));
                says(g, 200, file);
                rig_open(g, "");
                await_arrivals(g, 1);
                assert_non_null(strstr(fake_road.arrivals[0].metadata, rows[i].why));
                assert_int_equal(fake_server_requests(g->server), 4);
                free(file);
                rig_free(g);
        }
}

static void a_pressed_button_is_confirmed_after_the_commit(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT("{\"update_id\":100,\"callback_query\":{\"id\":\"c1\",\"from\":{\"id\":7},\"data\":\"say:"
                 "yes\","
                 "\"message\":{\"message_id\":1," CHAT("7") "}}}"));
        says(g, 200, TRUE);
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_int_equal(fake_server_requests(g->server), 3);
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 3), "answerCallbackQuery");
        assert_string_equal(rig_params(g, 3), "{\"callback_query_id\":\"c1\"}");
}

static void a_migrated_group_is_remembered(void **state)
{
        struct rig *g = *state;
        const struct telegram *tg;

        says(g, 200,
             GOT("{\"update_id\":100,\"message\":{\"message_id\":1,\"chat\":{\"id\":-5,\"type\":\"group\"},\"date\":9,\"migrate_to_chat_id\":-1005}}"));
        says(g, 200, NULL);
        rig_open(g, "");
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 101);
        tg = rig_adapter(g)->self;
        assert_string_equal(tg_chat_id(tg, "-5"), "-1005");
}

static void a_webhook_is_removed_without_dropping_updates(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"https://old.example/hook\"}}");
        says(g, 200, TRUE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_method(g, 2), "deleteWebhook");
        assert_string_equal(rig_params(g, 2), "{\"drop_pending_updates\":false}");
}

static void the_bots_profile_and_abilities_are_known(void **state)
{
        struct rig *g = *state;
        struct pace_limits pace;

        says(g, 200, NULL);
        rig_open(g, ",\"streaming\":false");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_adapter(g)->bot_name, "TestBot");
        assert_string_equal(rig_adapter(g)->bot_id, "42");
        assert_true(adapters_channel_is_group(g->adapters, "tg", "-100200"));
        assert_true(adapters_channel_is_group(g->adapters, "tg", "@news"));
        assert_false(adapters_channel_is_group(g->adapters, "tg", "7"));
        assert_int_equal(adapters_abilities(g->adapters, "tg") & (ADAPTER_EDITS | ADAPTER_STREAMS),
                         ADAPTER_EDITS);
        adapters_limits(g->adapters, "tg", &pace);
        assert_true(pace.per_second == 30 && pace.per_channel_second == 1 &&
                    pace.per_channel_minute == 20);
}

static void a_bad_token_stops_with_advice(void **state)
{
        struct rig *g = *state;

        says(g, 401, NO("401", "Unauthorized"));
        rig_open(g, "");
        rig_until_state(g, ADAPTER_STOPPED);
        assert_string_equal(
                rig_adapter(g)->why,
                "Telegram does not know this bot token: put the one @BotFather shows into "
                "adapters.tg.botToken");
}

static void a_404_of_a_proxy_is_no_bad_token(void **state)
{
        struct rig *g = *state;

        says(g, 404, "<html>not found</html>");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_string_equal(rig_adapter(g)->why, "Telegram answered 404");
}

static void a_lasting_second_poller_is_reported(void **state)
{
        struct rig *g = *state;
        const char *conflict =
                NO("409", "Conflict: terminated by other getUpdates request; make sure that only "
                          "one bot instance is running");

        says(g, 409, conflict); /* the first one may be our own former self */
        says(g, 409, conflict);
        says(g, 200, NONE);
        says(g, 200, NULL);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_string_equal(
                rig_adapter(g)->why,
                "another process polls with this bot token: stop it, or give this adapter a bot of its own");
        rig_until_state(g, ADAPTER_UP);
}

static void a_foreign_webhook_while_polling_is_reported(void **state)
{
        struct rig *g = *state;

        says(g, 409,
             NO("409", "Conflict: can't use getUpdates method while webhook is active; use "
                       "deleteWebhook to delete the webhook first"));
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why, "a webhook was set"));
}

static void it_reconnects_after_a_failure(void **state)
{
        struct rig *g = *state;

        says(g, 502, "<html>bad gateway</html>");
        says(g, 200, GOT(TEXT("100", "7", "1")));
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        assert_string_equal(rig_adapter(g)->why, "Telegram answered 502");
        await_arrivals(g, 1);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        assert_int_equal(rig_adapter(g)->failures, 0); /* the next pause is short again */
}

static void on_over(void *arg)
{
        *(bool *)arg = true;
}

static void polling_waits_for_a_rate_limit(void **state)
{
        struct rig *g = *state;
        bool over = false;
        struct timer *longer_than_a_first_pause = timer_new(g->loop, on_over, &over);

        says(g, 429,
             "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests: retry after "
             "60\",\"parameters\":{\"retry_after\":60}}");
        says(g, 200, NONE);
        rig_open(g, "");
        rig_until_state(g, ADAPTER_LOST);
        timer_start(longer_than_a_first_pause, 1100);
        while (!over)
                loop_step(g->loop, true);
        assert_int_equal(fake_server_requests(g->server), 3);
        timer_free(longer_than_a_first_pause);
}

static void commands_are_published_only_when_they_change(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c;
        char *json;

        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, NO_HOOK);
        says(g, 200, NULL);
        says(g, 200, ME);
        says(g, 200, NO_HOOK);
        says(g, 200, NULL);
        rig_open(g, ",\"commands\":[\"help - what I can do\"]");
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 1), "setMyCommands");
        assert_string_equal(
                rig_params(g, 1),
                "{\"commands\":[{\"command\":\"help\",\"description\":\"what I can do\"}]}");
        rig_until_state(g, ADAPTER_UP);
        json = mem_printf(
                "{\"botToken\":\"" TOKEN
                "\",\"apiBase\":\"http://127.0.0.1:%d\",\"pollSeconds\":20,\"commands\":[\"/help "
                "- what I can do\"]}",
                fake_server_port(g->server));
        c = adapter_conf_make("tg", "telegram", json, &err);
        free(json);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
        rig_requests(g, 7);
        assert_string_equal(rig_method(g, 4), "getMe");
        assert_string_equal(rig_method(g, 5), "getWebhookInfo");
        assert_string_equal(rig_method(g, 6), "getUpdates");
}

static void one_token_serves_one_adapter(void **state)
{
        struct rig *g = *state;
        struct adapter_conf *two[2];
        struct error err = { 0 };

        says(g, 200, NULL);
        g->server = fake_server_new(g->loop, g->script, g->count);
        for (int i = 0; i < 2; i++) {
                char *json = mem_printf("{\"botToken\":\"" TOKEN
                                        "\",\"apiBase\":\"http://127.0.0.1:%d\"}",
                                        fake_server_port(g->server));

                two[i] = adapter_conf_make(i == 0 ? "tg" : "again", "telegram", json, &err);
                free(json);
                assert_non_null(two[i]);
        }
        assert_int_equal(adapters_apply(g->adapters, two, 2, &err), 0);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_CONNECTING);
        assert_int_equal(adapters_find(g->adapters, "again")->state, ADAPTER_STOPPED);
        assert_non_null(
                strstr(adapters_find(g->adapters, "again")->why, "already uses this botToken"));
}

static void a_webhook_is_set_from_the_public_url(void **state)
{
        struct rig *g = *state;

        adapters_set_public_url(g->adapters, "https://bot.example/");
        says(g, 200, ME);
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\",\"webhookSecret\":\"S3cret_of-mine\"");
        rig_until_state(g, ADAPTER_UP);
        assert_string_equal(rig_method(g, 1), "setWebhook");
        assert_string_equal(
                rig_params(g, 1),
                "{\"url\":\"https://bot.example/api/v2/channels/telegram/tg/webhook\",\"secret_token\":\"S3cret_of-mine\",\"allowed_updates\":[\"message\",\"edited_message\",\"channel_post\",\"edited_channel_post\",\"message_reaction\",\"callback_query\",\"my_chat_member\"],\"drop_pending_updates\":false}");
}

/* The next look at the webhook, without waiting for it. */
static void watch(struct rig *g, unsigned requests)
{
        struct telegram *tg = rig_adapter(g)->self;

        timer_start(tg->watch, 0);
        rig_requests(g, requests);
        for (int i = 0; i < 1000 && tg->call; i++)
                loop_step(g->loop, true);
}

static void a_redirected_webhook_is_reported_until_restored(void **state)
{
        struct rig *g = *state;

        adapters_set_public_url(g->adapters, "https://bot.example");
        says(g, 200, ME);
        says(g, 200, TRUE);
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"https://other.example/hook\"}}");
        says(g, 200,
             "{\"ok\":true,\"result\":{\"url\":\"https://bot.example/api/v2/channels/telegram/tg/webhook\"}}");
        says(g, 200, NO_HOOK);
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\"");
        rig_until_state(g, ADAPTER_UP);
        watch(g, 3);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_LOST);
        assert_non_null(strstr(rig_adapter(g)->why, "at another address"));
        watch(g, 4);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        watch(g, 6); /* it is gone: it is set again */
        assert_string_equal(rig_method(g, 5), "setWebhook");
}

static void a_webhook_needs_a_public_url(void **state)
{
        struct rig *g = *state;

        rig_open(g, ",\"mode\":\"webhook\"");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "http.publicUrl"));
}

/* ---- posts ---- */

#define POSTS 101 /* one more than the window takes */

static void on_post(struct http_exchange *x)
{
        struct adapter *a = rig_adapter(http_server_arg(x));

        a->ops->webhook(a, x);
}

static struct http_server *listen_for_posts(struct rig *g)
{
        static const struct http_route routes[] = {
                { .method = "POST", .path = "/hook", .run = on_post }
        };
        struct error err = { 0 };
        struct http_server *s;

        adapters_set_public_url(g->adapters, "https://bot.example/");
        says(g, 200, ME);
        says(g, 200, TRUE);
        rig_open(g, ",\"mode\":\"webhook\"");
        rig_until_state(g, ADAPTER_UP);
        s = http_server_new(g->loop, &(struct http_server_options){ .listen = "127.0.0.1:0" },
                            routes, 1, &(struct http_server_hooks){ 0 }, g, &err);
        assert_non_null(s);
        return s;
}

static void post(struct rig *g, struct http_server *s, struct http_raw *c, const char *body)
{
        char *text = mem_printf("POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
                                strlen(body), body);

        http_raw_open(c, g->loop, http_server_address(s));
        assert_true(http_raw_say(c, text));
        free(text);
}

static void post_update(struct rig *g, struct http_server *s, struct http_raw *c, int update)
{
        char *body = mem_printf(
                "{\"update_id\":%d,\"message\":{\"message_id\":%d," CHAT("7") ",\"text\":\"t\"}}",
                update, update);

        post(g, s, c, body);
        free(body);
}

static void expect_answer(struct http_raw *c, int status)
{
        assert_true(http_raw_wait_answers(c, 1));
        assert_int_equal(http_raw_status(c, 0), status);
        http_raw_close(c);
}

static void posts_beyond_the_window_get_503(void **state)
{
        static struct http_raw posts[POSTS];
        struct rig *g = *state;
        struct http_server *s = listen_for_posts(g);

        for (int i = 0; i < POSTS - 1; i++)
                post_update(g, s, &posts[i], i + 1);
        await_arrivals(g, POSTS - 1);
        post_update(g, s, &posts[POSTS - 1], POSTS);
        expect_answer(&posts[POSTS - 1], 503);
        for (unsigned i = 0; i < POSTS - 1; i++)
                fake_road_ack(i, ERR_NONE);
        for (int i = 0; i < POSTS - 1; i++)
                expect_answer(&posts[i], 200);
        http_server_free(s);
}

static void a_refused_post_gets_503_and_leaves(void **state)
{
        struct rig *g = *state;
        struct http_server *s = listen_for_posts(g);
        const struct telegram *tg = rig_adapter(g)->self;
        struct http_raw c;

        post_update(g, s, &c, 1);
        await_arrivals(g, 1);
        fake_road_ack(0, ERR_FULL);
        expect_answer(&c, 503);
        assert_int_equal(tg->intake.count, 0);
        post_update(g, s, &c, 1);
        await_arrivals(g, 2);
        fake_road_ack(1, ERR_NONE);
        expect_answer(&c, 200);
        assert_int_equal(tg->intake.count, 0);
        http_server_free(s);
}

static void an_unreadable_post_is_accepted_and_dropped(void **state)
{
        struct rig *g = *state;
        struct http_server *s = listen_for_posts(g);
        struct http_raw c;

        post(g, s, &c, POISON);
        expect_answer(&c, 200);
        post(g, s, &c, "{\"hello\":1");
        expect_answer(&c, 400); /* that was no update at all */
        assert_int_equal(fake_road.received_count, 0);
        http_server_free(s);
}

static void settings_errors_are_explained(void **state)
{
        static const struct {
                const char *json, *why;
        } rows[] = {
                { "{}", "tg:1: missing key 'botToken'" },
                { "{\"botToken\":\"my token\"}",
                  "tg:1: botToken: this does not look like a token of @BotFather (such as 123456:ABC-DEF)" },
                { "{\"botToken\":\"1:a\",\"webhookSecret\":\"a b\"}",
                  "tg:1: webhookSecret: a webhook secret has 1 to 256 characters of A-Z, a-z, 0-9, _ and -" },
                { "{\"botToken\":\"1:a\",\"commands\":[\"help\"]}",
                  "tg:1: commands: a command is written as `name - what it does`" },
                { "{\"botToken\":\"1:a\",\"commands\":[\"Help - x\"]}",
                  "tg:1: commands: the name of a command has 1 to 32 characters of a-z, 0-9 and _" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(adapter_conf_make("tg", "telegram", rows[i].json, &err));
                assert_string_equal(err.text, rows[i].why);
        }
}

int main(void)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, begin, end)
#define EMPTY(name) cmocka_unit_test_setup_teardown(name, begin_empty, end)
        const struct CMUnitTest tests[] = {
                TEST(updates_are_confirmed_when_all_are_committed),
                TEST(update_ids_may_restart_anywhere),
                TEST(a_refused_update_is_retried_unconfirmed),
                TEST(an_invalid_event_does_not_block_the_queue),
                TEST(an_unreadable_update_does_not_block_the_queue),
                TEST(a_foreign_answer_is_reported),
                TEST(empty_answers_do_not_cause_a_busy_loop),
                TEST(service_messages_are_confirmed_without_an_event),
                TEST(an_album_is_one_event_and_its_chat_waits),
                TEST(a_partly_known_album_is_stored_by_parts),
                TEST(a_late_part_is_addressed_like_its_album),
                TEST(an_attachment_is_saved_before_its_event),
                TEST(saved_attachments_are_private),
                TEST(symlinks_in_the_workspace_are_not_followed),
                TEST(a_missing_file_is_explained_in_the_event),
                cmocka_unit_test(unsuitable_files_are_not_downloaded),
                TEST(a_pressed_button_is_confirmed_after_the_commit),
                TEST(a_migrated_group_is_remembered),
                EMPTY(a_webhook_is_removed_without_dropping_updates),
                TEST(the_bots_profile_and_abilities_are_known),
                EMPTY(a_bad_token_stops_with_advice),
                EMPTY(a_404_of_a_proxy_is_no_bad_token),
                TEST(a_lasting_second_poller_is_reported),
                TEST(a_foreign_webhook_while_polling_is_reported),
                TEST(it_reconnects_after_a_failure),
                TEST(polling_waits_for_a_rate_limit),
                EMPTY(commands_are_published_only_when_they_change),
                EMPTY(one_token_serves_one_adapter),
                EMPTY(a_webhook_is_set_from_the_public_url),
                EMPTY(a_redirected_webhook_is_reported_until_restored),
                EMPTY(a_webhook_needs_a_public_url),
                EMPTY(posts_beyond_the_window_get_503),
                EMPTY(a_refused_post_gets_503_and_leaves),
                EMPTY(an_unreadable_post_is_accepted_and_dropped),
                cmocka_unit_test(settings_errors_are_explained),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
