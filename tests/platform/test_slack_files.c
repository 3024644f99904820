/* Files that people send: from Slack's hosts only, with the token, never across a redirect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/attachment_files.h"
#include "platform/slack/sl_event.h"
#include "slack_rig.h"

/* Holds a file at this path of the server. */
static struct held_files *hold(struct rig *g, const char *path)
{
        char *url = fake_server_url(g->server, path);
        struct held_files *held = rig_hold(g, url, "a.txt");

        free(url);
        return held;
}

static void a_file_is_fetched_with_the_token(void **state)
{
        struct rig *g = *state;
        struct held_files *held;

        says_with(g, 200, "Content-Type: text/plain\r\n", "the bytes");
        rig_connect(g, "");
        held = hold(g, "/files-pri/T1-F1/download/a.txt");
        assert_null(held->items[0].error);
        assert_non_null(held->items[0].path);
        assert_true(strncmp(fake_server_request(g->server, 1),
                            "GET /files-pri/T1-F1/download/a.txt HTTP/1.1", 40) == 0);
        assert_non_null(strstr(fake_server_request(g->server, 1),
                               "Authorization: Bearer " BOT_TOKEN "\r\n"));
        adapters_release_files(held);
}

static void the_token_goes_to_no_other_host(void **state)
{
        static const char *const elsewhere[] = {
                "https://files.slack.com.evil.example/a",
                "https://evil.example/files.slack.com",
                "http://files.slack.com/a", /* not encrypted */
                "https://files.slack.com@evil.example/a",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(elsewhere); i++) {
                struct rig *g = rig_new();
                struct held_files *held;

                rig_connect(g, "");
                held = rig_hold(g, elsewhere[i], "a.txt");
                assert_non_null(strstr(held->items[0].error, "not on one of Slack's hosts"));
                adapters_release_files(held);
                rig_free(g);
        }
}

/* Without files:read Slack answers 200 with a page, or sends to one. */
static void a_page_to_log_in_is_no_file(void **state)
{
        static const struct {
                int status;
                const char *headers;
        } rows[] = {
                { 200, "Content-Type: text/html; charset=utf-8\r\n" },
                { 302, "Location: https://evil.example/?redir=a\r\n" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                struct held_files *held;

                says_with(g, rows[i].status, rows[i].headers, "<!DOCTYPE html><html>Sign in");
                rig_connect(g, "");
                held = hold(g, "/files-pri/T1-F1/a.txt");
                assert_non_null(strstr(held->items[0].error, "files:read"));
                assert_int_equal(fake_server_requests(g->server), 2); /* it was not followed */
                adapters_release_files(held);
                rig_free(g);
        }
}

static void a_web_page_that_somebody_sent_is_a_file(void **state)
{
        struct rig *g = *state;
        struct held_files *held;

        says_with(g, 200,
                  "Content-Type: text/html\r\nContent-Disposition: attachment; "
                  "filename=\"a.html\"\r\n",
                  "<html>mine");
        rig_connect(g, "");
        held = hold(g, "/files-pri/T1-F1/a.html");
        assert_null(held->items[0].error);
        adapters_release_files(held);
}

/* Slack Connect shows an id only. */
static void a_file_of_another_workspace_is_asked_for(void **state)
{
        struct rig *g = *state;
        struct held_files *held;

        says(g, 200,
             "{\"ok\":true,\"file\":{\"id\":\"F1\",\"url_private_download\":"
             "\"https://evil.example/a\"}}");
        rig_connect(g, "");
        held = rig_hold(g, SL_FILE_SOURCE "F1", "a.txt");
        assert_string_equal(rig_method(g, 0), "files.info");
        assert_string_equal(rig_body(g, 0), "file=F1");
        assert_non_null(strstr(held->items[0].error, "not on one of Slack's hosts"));
        adapters_release_files(held);
}

static void a_missing_scope_is_named(void **state)
{
        struct rig *g = *state;
        struct held_files *held;

        says(g, 200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"files:read\"}");
        rig_connect(g, "");
        held = rig_hold(g, SL_FILE_SOURCE "F1", "a.txt");
        assert_non_null(strstr(held->items[0].error, "files:read"));
        adapters_release_files(held);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_begin, rig_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_file_is_fetched_with_the_token),
                cmocka_unit_test(the_token_goes_to_no_other_host),
                cmocka_unit_test(a_page_to_log_in_is_no_file),
                TEST(a_web_page_that_somebody_sent_is_a_file),
                TEST(a_file_of_another_workspace_is_asked_for),
                TEST(a_missing_scope_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
