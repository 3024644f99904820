/* Sends without an answer are looked for by their metadata: never doubled, never unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"

#define QUICK ",\"reconcileAfterMs\":0"
#define FROM  "1700000000.000000"
#define TS    "1700000001.000200"
#define META(id) \
        "\"metadata\":{\"event_type\":\"dragoman_delivery\",\"event_payload\":{\"id\":\"" id "\"}}"
#define OWN(ts, id) "{\"ts\":\"" ts "\",\"user\":\"U0BOT\",\"bot_id\":\"B0BOT\"," META(id) "}"
#define PERSON(ts)  "{\"ts\":\"" ts "\",\"user\":\"U5\",\"text\":\"hi\"}"
#define PAGE(messages)                                                 \
        "{\"ok\":true,\"messages\":[" messages "],\"has_more\":false," \
        "\"response_metadata\":{\"next_cursor\":\"\"}}"
#define MORE(messages, cursor)                                        \
        "{\"ok\":true,\"messages\":[" messages "],\"has_more\":true," \
        "\"response_metadata\":{\"next_cursor\":\"" cursor "\"}}"
#define FAILED(error) "{\"ok\":false,\"error\":\"" error "\"}"

static const struct delivery in_channel = { .channel = "C7",
                                            .payload = "{\"text\":\"x\"}",
                                            .read_from = FROM };

static void a_message_that_arrived_is_found_by_its_id(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says(g, 200, PAGE(PERSON("1700000002.000100") "," OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, in_channel);
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_DONE);
        assert_string_equal(sent->platform_id, TS);
        assert_string_equal(rig_method(g, 0), "conversations.history");
        assert_string_equal(rig_body(g, 0),
                            "channel=C7&oldest=" FROM "&include_all_metadata=true&limit=200");
}

static void one_that_is_not_there_is_sent_again(void **state)
{
        struct rig *g = *state;

        says(g, 200, PAGE(OWN("1700000001.000100", "another") "," PERSON(TS)));
        rig_connect(g, QUICK);
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(rig_sent(g)->result.kind, ERR_NET);
        assert_int_equal(rig_sent(g)->result.retry_after_ms, 0);
}

/* Slack may still be working on it: only a read that begins after the wait counts. */
static void a_read_before_it_settled_proves_nothing(void **state)
{
        struct rig *g = *state;

        says(g, 200, PAGE(""));
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        ((struct slack_conf *)rig_adapter(g)->conf)->reconcile_after_ms = 50;
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_int_equal(fake_server_requests(g->server), 3);
}

static void a_thread_is_read_by_its_replies(void **state)
{
        struct rig *g = *state;

        says(g, 200, PAGE(PERSON("1600000000.000100") "," OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .channel = "C7",
                                       .thread = "1600000000.000100",
                                       .payload = "{\"text\":\"x\"}",
                                       .read_from = FROM });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
        assert_string_equal(rig_method(g, 0), "conversations.replies");
        assert_non_null(strstr(rig_body(g, 0), "&ts=1600000000.000100"));
}

static void all_pages_are_read(void **state)
{
        struct rig *g = *state;

        says(g, 200, MORE(PERSON("1700000009.000100"), "bmV4dA=="));
        says(g, 200, MORE("", "bmV4dDI="));
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_null(strstr(rig_body(g, 0), "cursor"));
        assert_non_null(strstr(rig_body(g, 1), "&cursor=bmV4dA%3D%3D"));
        assert_non_null(strstr(rig_body(g, 2), "&cursor=bmV4dDI%3D"));
}

/* Deleted messages lose their metadata, and others may claim ours. */
static void only_an_own_message_with_the_id_counts(void **state)
{
        static const char *const strangers[] = {
                "{\"ts\":\"" TS "\",\"user\":\"USLACKBOT\",\"subtype\":\"tombstone\","
                "\"hidden\":true,\"text\":\"This message was deleted.\"}",
                "{\"ts\":\"" TS "\",\"user\":\"U5\",\"bot_id\":\"B5\"," META(NONCE) "}",
                "{\"ts\":\"" TS "\",\"user\":\"U0BOT\",\"text\":\"x\"}",
                "{\"ts\":\"" TS "\",\"user\":\"U0BOT\",\"metadata\":{\"event_type\":\"other\","
                "\"event_payload\":{\"id\":\"" NONCE "\"}}}",
                "{\"user\":\"U0BOT\"," META(NONCE) "}",
                "17",
                "null",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(strangers); i++) {
                struct rig *g = rig_new();
                char *page = mem_printf("{\"ok\":true,\"messages\":[%s]}", strangers[i]);

                says(g, 200, page);
                free(page);
                rig_connect(g, QUICK);
                rig_look(g, in_channel);
                assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
                rig_free(g);
        }
}

static void slack_is_asked_until_it_answers(void **state)
{
        struct rig *g = *state;

        says(g, 503, "");
        says(g, 200, FAILED("internal_error"));
        says_with(g, 429, "Retry-After: 0\r\n", FAILED("ratelimited"));
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

/* When the road's patience ends first, it asks again later; that is not "unknown". */
static void a_silent_slack_is_asked_again_later(void **state)
{
        struct rig *g = *state;
        struct delivery d = in_channel;

        says(g, 503, "");
        rig_connect(g, QUICK);
        d.reconcile_until_ms = loop_now_ms(g->loop) + 1;
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_int_equal(rig_sent(g)->result.kind, ERR_CANCELLED);
        assert_true(rig_sent(g)->result.retry_after_ms >= 5000);
}

/* Slack shows a reply to a deleted message in the channel. */
static void without_its_thread_it_is_looked_for_in_the_channel(void **state)
{
        static const struct {
                const char *page;
                enum send_outcome outcome;
        } rows[] = { { PAGE(OWN(TS, NONCE)), SEND_DONE }, { PAGE(PERSON(TS)), SEND_RETRY } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 200, FAILED("thread_not_found"));
                says(g, 200, rows[i].page);
                rig_connect(g, QUICK);
                rig_look(g, (struct delivery){ .channel = "C7",
                                               .thread = "1600000000.000100",
                                               .payload = "{\"text\":\"x\"}",
                                               .read_from = FROM });
                assert_int_equal(rig_sent(g)->result.outcome, rows[i].outcome);
                assert_string_equal(rig_method(g, 1), "conversations.history");
                assert_null(strstr(rig_body(g, 1), "&ts="));
                rig_free(g);
        }
}

static void what_slack_refuses_is_explained(void **state)
{
        static const struct {
                const char *error;
                enum send_outcome outcome;
                const char *why;
        } rows[] = {
                { "not_in_channel", SEND_UNSURE, "cannot be looked for" },
                { "missing_scope", SEND_UNSURE, "channels:history" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                char *answer = mem_printf("{\"ok\":false,\"error\":\"%s\",\"needed\":"
                                          "\"channels:history\"}",
                                          rows[i].error);

                says(g, 200, answer);
                free(answer);
                rig_connect(g, QUICK);
                rig_look(g, in_channel);
                assert_int_equal(rig_sent(g)->result.outcome, rows[i].outcome);
                assert_non_null(strstr(rig_sent(g)->why, rows[i].why));
                rig_free(g);
        }
}

static void a_dm_is_opened_to_be_read(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":true,\"channel\":{\"id\":\"D9\"}}");
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .channel = "user:U5",
                                       .payload = "{\"text\":\"x\"}",
                                       .read_from = FROM });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "conversations.open");
        assert_non_null(strstr(rig_body(g, 1), "channel=D9"));
}

/* After a restart no name is known; the message may be there all the same. */
static void a_channel_with_a_name_is_found_to_be_read(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":true,\"channels\":[{\"id\":\"C9\",\"name\":\"general\"}]}");
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .channel = "#general",
                                       .payload = "{\"text\":\"x\"}",
                                       .read_from = FROM });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 1), "channel=C9"));
}

static void a_name_that_no_channel_has_any_more_leaves_it_unsure(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":true,\"channels\":[]}");
        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .channel = "#general",
                                       .payload = "{\"text\":\"x\"}",
                                       .read_from = FROM });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_int_equal(rig_sent(g)->result.kind, ERR_MISSING);
        assert_non_null(strstr(rig_sent(g)->why, "'#general' is not a Slack channel"));
}

/* It is not in the history, and showing it again does no harm. */
static void a_notice_for_one_person_is_repeated(void **state)
{
        struct rig *g = *state;

        rig_connect(g, QUICK);
        rig_look(g, (struct delivery){ .channel = "C7",
                                       .payload = "{\"text\":\"x\",\"onlyFor\":\"U5\"}",
                                       .read_from = FROM });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
}

/* The road's deadline passed: a send that never left cannot have arrived. */
static void a_send_under_way_is_stopped_before_it_is_looked_for(void **state)
{
        struct rig *g = *state;

        says(g, 200, NULL);
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        rig_send(g, (struct delivery){ .channel = "C7", .payload = "{\"text\":\"x\"}" });
        rig_requests(g, 1);
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

static void a_send_that_waits_for_its_dm_has_not_arrived(void **state)
{
        struct rig *g = *state;
        struct delivery d = { .channel = "user:U5", .payload = "{\"text\":\"x\"}" };

        says(g, 200, NULL);
        rig_connect(g, QUICK);
        rig_send(g, d);
        rig_requests(g, 1);
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_string_equal(rig_sent(g)->why, "it was not sent yet");
}

/* A person was faster: what they deleted does not come again. */
static void a_message_that_was_deleted_meanwhile_is_not_sent_again(void **state)
{
        static const char *const deletions[] = {
                "\"subtype\":\"message_deleted\"",
                /* it had replies */
                "\"subtype\":\"message_changed\",\"message\":{\"ts\":\"" TS "\","
                "\"user\":\"USLACKBOT\",\"subtype\":\"tombstone\",\"hidden\":true}",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(deletions); i++) {
                struct rig *g = rig_new();
                char *text = mem_printf("{\"type\":\"message\",\"channel\":\"C7\","
                                        "\"ts\":\"1700000002.000100\",%s,\"previous_message\":%s}",
                                        deletions[i], OWN(TS, NONCE));
                json_t *event = json_read(text, strlen(text), NULL);

                says(g, 200, PAGE(PERSON("1700000003.000100")));
                rig_connect(g, QUICK);
                sl_readback_event(rig_slack(g), event);
                json_decref(event);
                free(text);
                rig_look(g, in_channel);
                assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
                assert_string_equal(rig_sent(g)->platform_id, TS);
                rig_free(g);
        }
}

static void a_question_without_an_answer_ends_before_the_roads_patience(void **state)
{
        struct rig *g = *state;
        struct delivery d = in_channel;

        says(g, 200, NULL);
        rig_connect(g, QUICK);
        d.reconcile_until_ms = loop_now_ms(g->loop) + 50;
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_int_equal(rig_sent(g)->result.kind, ERR_CANCELLED);
}

/* Else the pages of a long history were never all read. */
static void a_search_goes_on_where_the_roads_patience_ended(void **state)
{
        struct rig *g = *state;
        struct delivery d = in_channel;

        says(g, 200, MORE(PERSON("1700000009.000100"), "bmV4dA=="));
        says(g, 200, NULL);
        says(g, 200, PAGE(OWN(TS, NONCE)));
        rig_connect(g, QUICK);
        d.reconcile_until_ms = loop_now_ms(g->loop) + 700;
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.kind, ERR_CANCELLED);
        assert_non_null(strstr(rig_body(g, 1), "&cursor=bmV4dA%3D%3D"));
        fake_road.count = 0;
        rig_look(g, in_channel);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 2), "&cursor=bmV4dA%3D%3D"));
}

/* A draft is looked for in turns of a few seconds. */
static void a_message_may_settle_longer_than_the_roads_patience(void **state)
{
        struct rig *g = *state;
        struct delivery d = in_channel;

        for (unsigned i = 0; i < 10; i++)
                says(g, 200, PAGE(""));
        rig_connect(g, QUICK);
        ((struct slack_conf *)rig_adapter(g)->conf)->reconcile_after_ms = 600;
        for (unsigned i = 0; i < 8; i++) {
                fake_road.count = 0;
                d.reconcile_until_ms = loop_now_ms(g->loop) + 300;
                rig_look(g, d);
                if (rig_sent(g)->result.outcome == SEND_RETRY)
                        return;
                assert_int_equal(rig_sent(g)->result.kind, ERR_CANCELLED);
                usleep(200000);
                loop_step(g->loop, false);
        }
        fail_msg("it is looked for without end");
}

/* ---- where reading begins: Slack's clock, not ours ---- */

static const char *read_from(struct rig *g, const char *payload, const char *earlier)
{
        static char text[100];
        const struct delivery d = {
                .adapter = g->name, .channel = "C7", .payload = payload, .read_from = earlier
        };

        adapters_read_from(g->adapters, &d, text, sizeof(text));
        return text;
}

static void reading_begins_before_the_question(void **state)
{
        struct rig *g = *state;

        rig_connect(g, QUICK);
        assert_string_equal(
                read_from(g, "{\"text\":\"x\",\"replyTo\":\"1500000100.000007\"}", NULL),
                "1500000040.000007");
}

/* Our own clock may be anywhere. */
static void reading_begins_at_a_time_of_slacks_clock(void **state)
{
        struct rig *g = *state;
        int64_t seconds;

        says_with(g, 200, "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\n",
                  "{\"ok\":true,\"ts\":\"1890000000.000100\"}");
        rig_connect(g, QUICK);
        rig_send(g, (struct delivery){ .channel = "C7", .payload = "{\"text\":\"x\"}" });
        rig_sent(g);
        seconds = strtoll(read_from(g, "{\"text\":\"y\"}", NULL), NULL, 10);
        assert_in_range(seconds, 1890000000 - 60, 1890000000 + 3600);
}

/* A second attempt may still be mistaken for the first, if that arrives after all. */
static void a_later_attempt_reads_from_the_first_on(void **state)
{
        struct rig *g = *state;

        rig_connect(g, QUICK);
        assert_string_equal(
                read_from(g, "{\"replyTo\":\"1500000600.000007\"}", "1500000100.000000 F123"),
                "1500000100.000000");
        assert_string_equal(
                read_from(g, "{\"replyTo\":\"1500009000.000007\"}", "1500000100.000000"),
                "1500008940.000007");
}

static void a_search_under_way_when_the_adapter_stops_goes_on_later(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g, QUICK);
        rig_look(g, in_channel);
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_UNSURE);
        assert_int_equal(fake_road.sent[0].result.kind, ERR_CANCELLED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_begin, rig_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_message_that_arrived_is_found_by_its_id),
                TEST(one_that_is_not_there_is_sent_again),
                TEST(a_read_before_it_settled_proves_nothing),
                TEST(a_thread_is_read_by_its_replies),
                TEST(all_pages_are_read),
                cmocka_unit_test(only_an_own_message_with_the_id_counts),
                TEST(slack_is_asked_until_it_answers),
                TEST(a_silent_slack_is_asked_again_later),
                cmocka_unit_test(without_its_thread_it_is_looked_for_in_the_channel),
                cmocka_unit_test(what_slack_refuses_is_explained),
                TEST(a_dm_is_opened_to_be_read),
                TEST(a_channel_with_a_name_is_found_to_be_read),
                TEST(a_name_that_no_channel_has_any_more_leaves_it_unsure),
                TEST(a_notice_for_one_person_is_repeated),
                TEST(a_send_under_way_is_stopped_before_it_is_looked_for),
                TEST(a_send_that_waits_for_its_dm_has_not_arrived),
                TEST(a_message_that_was_deleted_meanwhile_is_not_sent_again),
                TEST(a_question_without_an_answer_ends_before_the_roads_patience),
                TEST(a_search_goes_on_where_the_roads_patience_ended),
                TEST(a_message_may_settle_longer_than_the_roads_patience),
                TEST(reading_begins_before_the_question),
                TEST(reading_begins_at_a_time_of_slacks_clock),
                TEST(a_later_attempt_reads_from_the_first_on),
                TEST(a_search_under_way_when_the_adapter_stops_goes_on_later),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
