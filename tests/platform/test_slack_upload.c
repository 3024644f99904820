/* Files to Slack in three steps, and whether they arrived. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"

#define QUICK   ",\"reconcileAfterMs\":0"
#define FROM    "1700000000.000000"
#define TS      "1700000001.000200"
#define DONE    "{\"ok\":true,\"files\":[{\"id\":\"F1\"}]}"
#define NOWHERE "{\"ok\":true,\"file\":{\"id\":\"F1\",\"shares\":{}}}"
#define SHARED                                                                                \
        "{\"ok\":true,\"file\":{\"id\":\"F1\",\"shares\":{\"private\":{\"C7\":[{\"ts\":\"" TS \
        "\"}],\"C8\":[{\"ts\":\"1.000000\"}]}}}}"

/* Answers the i-th request after the greeting, once it has come. */
static void answer(struct rig *g, unsigned i, int status, const char *body)
{
        size_t at = g->count++;

        rig_requests(g, i + 1);
        g->bytes[at] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s", status,
                                  strlen(body), body);
        g->script[at] = (struct fake_answer){ .bytes = g->bytes[at] };
        fake_server_answer(g->server, &g->script[at]);
}

/* The first step: the file's id, and an address of the server. */
static void answer_address(struct rig *g, unsigned i)
{
        char *url = fake_server_url(g->server, "/upload/abc"),
             *body = mem_printf("{\"ok\":true,\"file_id\":\"F1\",\"upload_url\":\"%s\"}", url);

        answer(g, i, 200, body);
        free(url);
        free(body);
}

static void send_file(struct rig *g, const char *payload, const char *thread)
{
        rig_put_file(g, "note.txt", "the bytes");
        rig_connect(g, QUICK);
        rig_send(g, (struct delivery){ .kind = DELIVER_UPLOAD,
                                       .channel = "C7",
                                       .thread = thread,
                                       .read_from = FROM,
                                       .payload = payload });
}

static void a_file_goes_in_three_steps(void **state)
{
        struct rig *g = *state;
        const char *bytes;

        send_file(g, "{\"path\":\"note.txt\",\"text\":\"see\"}", "1600000000.000100");
        answer_address(g, 0);
        answer(g, 1, 200, "OK - 9");
        /* the id is stored before the file can be shown */
        assert_string_equal(fake_road.read_from, FROM " F1");
        answer(g, 2, 200, DONE);
        answer(g, 3, 200, NOWHERE); /* Slack takes its time */
        answer(g, 4, 200, SHARED);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
        assert_string_equal(rig_method(g, 0), "files.getUploadURLExternal");
        assert_string_equal(rig_body(g, 0), "filename=note.txt&length=9");
        assert_string_equal(rig_method(g, 1), "upload/abc");
        bytes = fake_server_request(g->server, 2);
        assert_non_null(strstr(bytes, "the bytes"));
        assert_null(strstr(bytes, "Authorization")); /* the address is secret enough */
        assert_string_equal(rig_method(g, 2), "files.completeUploadExternal");
        assert_string_equal(rig_body(g, 2),
                            "{\"files\":[{\"id\":\"F1\",\"title\":\"note.txt\"}],"
                            "\"channel_id\":\"C7\",\"thread_ts\":\"1600000000.000100\","
                            "\"initial_comment\":\"see\"}");
        assert_string_equal(rig_method(g, 3), "files.info");
}

static void a_link_swapped_in_while_sending_is_not_followed(void **state)
{
        struct rig *g = *state;

        send_file(g, "{\"path\":\"note.txt\"}", NULL);
        rig_swap_for_link(g, "note.txt");
        answer_address(g, 0);
        answer(g, 1, 200, "OK - 9");
        assert_non_null(strstr(fake_server_request(g->server, 2), "the bytes"));
        answer(g, 2, 200, DONE);
        answer(g, 3, 200, SHARED);
        rig_sent(g);
}

static void bytes_go_only_to_slack(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"file_id\":\"F1\",\"upload_url\":\"https://evil.example/upload\"}");
        send_file(g, "{\"path\":\"note.txt\"}", NULL);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_string_equal(rig_sent(g)->why, "Slack named no address of its own for the file");
        assert_int_equal(fake_server_requests(g->server), 2);
}

/* Until the last step nothing can have been shown. */
static void failures_before_the_last_step_are_retried(void **state)
{
        struct rig *g = *state;

        send_file(g, "{\"path\":\"note.txt\"}", NULL);
        answer_address(g, 0);
        answer(g, 1, 500, "");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
}

static void a_lost_answer_of_the_last_step_is_unsure(void **state)
{
        struct rig *g = *state;

        send_file(g, "{\"path\":\"note.txt\"}", NULL);
        answer_address(g, 0);
        answer(g, 1, 200, "OK - 9");
        answer(g, 2, 200, "{\"ok\":false,\"error\":\"internal_error\"}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
}

/* Without files:read the message's ts stays unknown, but the file is there. */
static void a_file_without_a_known_message_is_sent_all_the_same(void **state)
{
        struct rig *g = *state;

        send_file(g, "{\"path\":\"note.txt\"}", NULL);
        answer_address(g, 0);
        answer(g, 1, 200, "OK - 9");
        answer(g, 2, 200, DONE);
        answer(g, 3, 200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"files:read\"}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, "F1");
}

/* ---- did it arrive? ---- */

static void look_for_file(struct rig *g, const char *read_from)
{
        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .kind = DELIVER_UPLOAD,
                                       .channel = "C7",
                                       .payload = "{\"path\":\"note.txt\"}",
                                       .read_from = read_from });
}

static void a_shown_file_is_found_by_its_shares(void **state)
{
        struct rig *g = *state;

        says(g, 200, SHARED);
        look_for_file(g, FROM " F1");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
        assert_string_equal(rig_body(g, 0), "file=F1");
}

/* A crash before the id was stored: the last step was not taken. */
static void without_an_id_it_was_not_shown(void **state)
{
        struct rig *g = *state;

        look_for_file(g, FROM);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(fake_server_requests(g->server), 1);
}

static void without_files_read_the_history_tells(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"files:read\"}");
        says(g, 200,
             "{\"ok\":true,\"messages\":[{\"ts\":\"" TS "\",\"user\":\"U0BOT\",\"files\":[{\"id\":"
             "\"F1\"}]}]}");
        look_for_file(g, FROM " F1");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
        assert_string_equal(rig_method(g, 1), "conversations.history");
}

/* Its message stays, with a tombstone of the file: it is not sent again. */
static void a_file_that_was_deleted_meanwhile_had_arrived(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"file_deleted\"}");
        says(g, 200,
             "{\"ok\":true,\"messages\":[{\"ts\":\"" TS "\",\"user\":\"U0BOT\",\"files\":[{\"id\":"
             "\"F1\",\"mode\":\"tombstone\"}]}]}");
        look_for_file(g, FROM " F1");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
}

/* Slack shows files some time after its answer: that is waited for. */
static void a_file_that_is_shown_late_is_found(void **state)
{
        struct rig *g = *state;

        look_for_file(g, FROM " F1");
        answer(g, 0, 200, NOWHERE);
        answer(g, 1, 200, SHARED);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_begin, rig_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_file_goes_in_three_steps),
                TEST(a_link_swapped_in_while_sending_is_not_followed),
                TEST(bytes_go_only_to_slack),
                TEST(failures_before_the_last_step_are_retried),
                TEST(a_lost_answer_of_the_last_step_is_unsure),
                TEST(a_file_without_a_known_message_is_sent_all_the_same),
                TEST(a_shown_file_is_found_by_its_shares),
                TEST(without_an_id_it_was_not_shown),
                TEST(without_files_read_the_history_tells),
                TEST(a_file_that_was_deleted_meanwhile_had_arrived),
                TEST(a_file_that_is_shown_late_is_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
