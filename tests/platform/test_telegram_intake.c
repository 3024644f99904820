/* Updates: what is stored in which order, what is confirmed and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/http_raw_client.h"
#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

static void updates_are_confirmed_when_all_are_committed(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(TEXT("100", "7", "1") "," TEXT("101", "8", "2")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 2);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        assert_string_equal(fake_road.arrivals[1].key, "8:2");
        assert_int_equal(offset_of(g, 2), 0); /* Telegram remembers the offset */
        fake_road_ack(1, ERR_NONE);
        /* no poll while an update is uncommitted */
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
        says(g, 200, GOT(POISON)); /* alone: it is dropped */
        says(g, 200, GOT(TEXT("101", "7", "1")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_non_null(strstr(rig_body(g, 2), "\"limit\":100"));
        assert_non_null(strstr(rig_body(g, 3), "\"limit\":10,"));
        assert_non_null(strstr(rig_body(g, 4), "\"limit\":1,"));
        assert_int_equal(offset_of(g, 5), 101);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 7);
        assert_int_equal(offset_of(g, 6), 102);
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
                says(g, 200, NONE); /* polls meanwhile */
        rig_open(g, ",\"mediaMaxBytes\":0");
        await_arrivals(g, 1);
        assert_string_equal(fake_road.arrivals[0].key, "8:4"); /* another chat does not wait */
        await_arrivals(g, 3);
        assert_string_equal(fake_road.arrivals[1].key, "7:1");
        assert_int_equal(fake_road.arrivals[1].attachments, 2);
        assert_string_equal(fake_road.arrivals[1].text, "two");
        assert_string_equal(fake_road.arrivals[2].key, "7:3");
        assert_int_equal(offset_of(g, 3), 100); /* polling meanwhile confirms nothing */
}

#define TEXT_PART(update, message)                                       \
        "{\"update_id\":" update ",\"message\":{\"message_id\":" message \
        "," CHAT("7") ",\"text\":"                                       \
                      "\"words\",\"media_group_id\":\"g\"}}"

static void a_part_of_an_album_may_have_no_file(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT(TEXT_PART("100", "1") "," PHOTO("101", "7", "2", ",\"media_group_id\":\"g\"")));
        for (int i = 0; i < 20; i++)
                says(g, 200, NONE); /* polls meanwhile */
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_string_equal(fake_road.arrivals[0].text, "words");
        assert_int_equal(fake_road.arrivals[0].attachments, 1);
        assert_int_equal(fake_road.arrivals[0].parts, 1);
        fake_road_answer(0, INBOX_DUPLICATE, ERR_NONE); /* then by parts */
        assert_int_equal(fake_road.received_count, 3);
        assert_int_equal(fake_road.arrivals[1].attachments, 0);
        assert_int_equal(fake_road.arrivals[2].attachments, 1);
}

/* An earlier run stored one part and crashed before it was confirmed; now both come together. */
static void a_partly_known_album_is_stored_by_parts(void **state)
{
        struct rig *g = *state;
        const char *both = GOT(PHOTO("100", "7", "1", ",\"media_group_id\":\"g\"") "," PHOTO(
                "101", "7", "2",
                ",\"media_group_id\":\"g\",\"caption\":\"@TestBot\","
                "\"caption_entities\":[{\"type\":\"mention\",\"offset\":0,\"length\":8}]"));

        says(g, 200, both);
        for (int i = 0; i < 10; i++)
                says(g, 200, both);
        rig_open(g, ",\"mediaMaxBytes\":0");
        await_arrivals(g, 1);
        assert_string_equal(fake_road.arrivals[0].key, "7:1");
        assert_int_equal(fake_road.arrivals[0].parts, 1);
        fake_road_answer(0, INBOX_DUPLICATE, ERR_NONE);
        await_arrivals(g, 3);
        assert_string_equal(fake_road.arrivals[1].key, "7:1");
        assert_string_equal(fake_road.arrivals[2].key, "7:2");
        for (unsigned i = 1; i < 3; i++) {
                assert_int_equal(fake_road.arrivals[i].parts, 0);
                assert_int_equal(fake_road.arrivals[i].attachments, 1);
                assert_true(fake_road.arrivals[i].is_mention && fake_road.arrivals[i].more_follows);
        }
        fake_road_answer(1, INBOX_DUPLICATE, ERR_NONE);
        fake_road_ack(2, ERR_LIMIT); /* refused: offered again, part by part */
        await_arrivals(g, 5);
        fake_road_answer(3, INBOX_DUPLICATE, ERR_NONE);
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
             GOT(PHOTO("100", "7", "1",
                       ",\"media_group_id\":\"g\",\"caption\":\"@TestBot\","
                       "\"caption_entities\":[{\"type\":\"mention\",\"offset\":0,\"length\":8}]")));
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

/* Its sender has not been judged yet. */
static void a_message_is_stored_without_its_file(void **state)
{
        struct rig *g = *state;

        says(g, 200, GOT(PHOTO("100", "7", "1", "")));
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_int_equal(fake_road.arrivals[0].attachments, 1);
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 3), "getUpdates");
}

#define FILE_AT(path) "{\"ok\":true,\"result\":{\"file_id\":\"F1\",\"file_path\":\"" path "\"}}"

static void a_file_is_located_and_saved_for_a_turn(void **state)
{
        struct rig *g = *state;
        char *path = scratch_path(g->dir, "workspace/channels/tg/7/attachments/1-photo.jpg");
        char text[20] = "";
        struct held_files *held;
        FILE *f;

        says(g, 200, FILE_AT("photos/file 1.jpg"));
        says(g, 200, "the picture");
        rig_connect(g);
        held = rig_hold(g, "F1", "photo.jpg");
        assert_string_equal(held->items[0].path, "channels/tg/7/attachments/1-photo.jpg");
        assert_int_equal(held->items[0].size, 11);
        assert_null(held->items[0].error);
        assert_string_equal(rig_method(g, 4), "getFile");
        assert_non_null(strstr(fake_server_request(g->server, 5),
                               "GET /file/bot" TOKEN "/photos/file%201.jpg "));
        f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof(text), f));
        fclose(f);
        assert_string_equal(text, "the picture");
        adapters_release_files(held);
        /* it is there already */
        held = rig_hold(g, "F1", "photo.jpg");
        assert_int_equal(held->items[0].size, 11);
        assert_int_equal(fake_server_requests(g->server), 6);
        adapters_release_files(held);
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

        says(g, 200, FILE_AT("photos/1.jpg"));
        says(g, 200, "the picture");
        rig_connect(g);
        adapters_release_files(rig_hold(g, "F1", "photo.jpg"));
        assert_int_equal(mode_of(g, "workspace/channels/tg/7/attachments/1-photo.jpg"), 0600);
        assert_int_equal(mode_of(g, "workspace/channels/tg/7/attachments"), 0700);
        assert_int_equal(mode_of(g, "workspace/channels/tg"), 0700);
}

/* An agent that can write in the workspace could point a link anywhere. */
static void symlinks_in_the_workspace_are_not_followed(void **state)
{
        struct rig *g = *state;
        char *workspace = scratch_path(g->dir, "workspace"),
             *secret = scratch_path(g->dir, "state/7");
        char *channels = scratch_path(g->dir, "workspace/channels");
        char *tg = scratch_path(g->dir, "workspace/channels/tg");
        struct held_files *held;

        assert_int_equal(mkdir(workspace, 0755), 0);
        assert_int_equal(mkdir(channels, 0755), 0);
        assert_int_equal(symlink("../../state", tg), 0);
        says(g, 200, FILE_AT("photos/1.jpg"));
        says(g, 200, "the picture");
        rig_connect(g);
        held = rig_hold(g, "F1", "photo.jpg");
        assert_non_null(strstr(held->items[0].error, "it could not be saved"));
        assert_int_equal(access(secret, F_OK), -1);
        adapters_release_files(held);
        free(secret);
        free(tg);
        free(channels);
        free(workspace);
}

static void a_missing_file_is_explained(void **state)
{
        struct rig *g = *state;
        struct held_files *held;

        says(g, 400, NO("400", "Bad Request: file is too big"));
        rig_connect(g);
        held = rig_hold(g, "F1", "photo.jpg");
        assert_null(held->items[0].path);
        assert_string_equal(held->items[0].error, "Telegram says: Bad Request: file is too big");
        adapters_release_files(held);
}

static void unsuitable_files_are_not_downloaded(void **state)
{
        static const struct {
                const char *path, *why;
                long long size;
        } rows[] = {
                { "photos/a.jpg", "it is larger than mediaMaxBytes",
                  99999999999 }, /* its size was not in the message */
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
                struct held_files *held;

                says(g, 200, file);
                rig_connect(g);
                held = rig_hold(g, "F1", "photo.jpg");
                assert_string_equal(held->items[0].error, rows[i].why);
                assert_int_equal(fake_server_requests(g->server), 5);
                adapters_release_files(held);
                free(file);
                rig_free(g);
        }
}

static void a_pressed_button_is_confirmed_after_the_commit(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             GOT("{\"update_id\":100,\"callback_query\":{\"id\":\"c1\",\"from\":{\"id\":7},"
                 "\"data\":\"say:yes\","
                 "\"message\":{\"message_id\":1," CHAT("7") "}}}"));
        says(g, 200, TRUE);
        says(g, 200, NULL);
        rig_open(g, "");
        await_arrivals(g, 1);
        assert_int_equal(fake_server_requests(g->server), 3);
        fake_road_ack(0, ERR_NONE);
        rig_requests(g, 4);
        assert_string_equal(rig_method(g, 3), "answerCallbackQuery");
        assert_string_equal(rig_body(g, 3), "{\"callback_query_id\":\"c1\"}");
}

static void a_migrated_group_is_remembered(void **state)
{
        struct rig *g = *state;
        const struct telegram *tg;

        says(g, 200,
             GOT("{\"update_id\":100,\"message\":{\"message_id\":1,\"chat\":{\"id\":-5,"
                 "\"type\":\"group\"},\"date\":9,\"migrate_to_chat_id\":-1005}}"));
        says(g, 200, NULL);
        rig_open(g, "");
        rig_requests(g, 4);
        assert_int_equal(offset_of(g, 3), 101);
        tg = rig_adapter(g)->self;
        assert_string_equal(tg_chat_id(tg, "-5"), "-1005");
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
        expect_answer(&c, 400); /* no update at all */
        assert_int_equal(fake_road.received_count, 0);
        http_server_free(s);
}

int main(void)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, rig_begin_greeted, rig_end)
#define EMPTY(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(updates_are_confirmed_when_all_are_committed),
                TEST(update_ids_may_restart_anywhere),
                TEST(a_refused_update_is_retried_unconfirmed),
                TEST(an_invalid_event_does_not_block_the_queue),
                TEST(an_unreadable_update_does_not_block_the_queue),
                TEST(service_messages_are_confirmed_without_an_event),
                TEST(an_album_is_one_event_and_its_chat_waits),
                TEST(a_part_of_an_album_may_have_no_file),
                TEST(a_partly_known_album_is_stored_by_parts),
                TEST(a_late_part_is_addressed_like_its_album),
                TEST(a_message_is_stored_without_its_file),
                EMPTY(a_file_is_located_and_saved_for_a_turn),
                EMPTY(saved_attachments_are_private),
                EMPTY(symlinks_in_the_workspace_are_not_followed),
                EMPTY(a_missing_file_is_explained),
                cmocka_unit_test(unsuitable_files_are_not_downloaded),
                TEST(a_pressed_button_is_confirmed_after_the_commit),
                TEST(a_migrated_group_is_remembered),
                EMPTY(posts_beyond_the_window_get_503),
                EMPTY(a_refused_post_gets_503_and_leaves),
                EMPTY(an_unreadable_post_is_accepted_and_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
