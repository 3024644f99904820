/* Growing answers: streams in threads, edits elsewhere, and one message whatever happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"

#define THREAD        "1700000000.000100"
#define TS            "1700000001.000200"
#define POSTED        "{\"ok\":true,\"channel\":\"C7\",\"ts\":\"" TS "\"}"
#define FAILED(error) "{\"ok\":false,\"error\":\"" error "\"}"

static const struct fake_sent *deliver(struct rig *g, enum delivery_kind kind, const char *thread,
                                       const char *payload)
{
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = kind,
                                       .class = PACE_EDIT,
                                       .channel = "C7",
                                       .thread = thread,
                                       .target = kind == DELIVER_EDIT ? TS : NULL,
                                       .payload = payload });
        return rig_sent(g);
}

/* The draft, a piece of it, the answer: payloads as the road makes them. */
static const struct fake_sent *draft(struct rig *g, const char *markdown)
{
        char *payload = mem_printf("{\"text\":\"%s\",\"draft\":true,\"recipient\":\"U5\","
                                   "\"markdown\":\"%s\"}",
                                   markdown, markdown);
        const struct fake_sent *sent = deliver(g, DELIVER_SEND, THREAD, payload);

        free(payload);
        return sent;
}

static const struct fake_sent *piece(struct rig *g, const char *markdown, const char *more)
{
        char *payload = mem_printf("{\"text\":\"%s\",\"draft\":true,\"recipient\":\"U5\","
                                   "\"markdown\":\"%s\"%s}",
                                   *markdown ? markdown : "…", markdown, more);
        const struct fake_sent *sent = deliver(g, DELIVER_EDIT, THREAD, payload);

        free(payload);
        return sent;
}

static const struct fake_sent *answer(struct rig *g, const char *text, const char *markdown)
{
        char *payload = mem_printf("{\"text\":\"%s\",\"markdown\":\"%s\"}", text, markdown);
        const struct fake_sent *sent = deliver(g, DELIVER_EDIT, THREAD, payload);

        free(payload);
        return sent;
}

static void assert_call(struct rig *g, unsigned i, const char *method, const char *arguments)
{
        assert_string_equal(rig_method(g, i), method);
        assert_string_equal(rig_body(g, i), arguments);
}

static void assert_calls(struct rig *g, unsigned n)
{
        assert_int_equal(fake_server_requests(g->server), g->greetings + n);
}

#define MINE "\"channel\":\"C7\",\"ts\":\"" TS "\""
#define META                                                                                    \
        "\"metadata\":{\"event_type\":\"dragoman_delivery\",\"event_payload\":{\"id\":\"" NONCE \
        "\"}}"

static void a_draft_in_a_thread_is_a_stream(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        assert_string_equal(draft(g, "one")->platform_id, TS);
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_int_equal(answer(g, "one two three", "one two three")->result.outcome, SEND_DONE);
        assert_call(g, 0, "chat.startStream",
                    "{\"channel\":\"C7\",\"thread_ts\":\"" THREAD "\",\"recipient_user_id\":\"U5\","
                    "\"recipient_team_id\":\"T1\",\"markdown_text\":\"one\"}");
        assert_call(g, 1, "chat.appendStream", "{" MINE ",\"markdown_text\":\" two\"}");
        assert_call(g, 2, "chat.stopStream", "{" MINE ",\"markdown_text\":\" three\"," META "}");
        assert_calls(g, 3);
}

static void nothing_new_needs_no_call(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(piece(g, "one", "")->result.outcome, SEND_DONE);
        /* the text has outgrown one message: the answer has the rest */
        assert_int_equal(deliver(g, DELIVER_EDIT, THREAD, "{\"text\":\"one\",\"draft\":true}")
                                 ->result.outcome,
                         SEND_DONE);
        assert_calls(g, 1);
}

static void tags_of_slack_are_written_out(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "a <");
        piece(g, "a <!channel> b", "");
        answer(g, "a", "a <!channel> b <@U5>");
        assert_non_null(strstr(rig_body(g, 0), "\"markdown_text\":\"a \""));
        assert_non_null(strstr(rig_body(g, 1), "\"markdown_text\":\"&lt;!channel> b\""));
        assert_non_null(strstr(rig_body(g, 2), "\"markdown_text\":\" &lt;@U5>\""));
}

static void text_that_is_replaced_is_edited_at_the_end(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 4; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "Let me see.");
        piece(g, "It", "");
        answer(g, "It works.", "It works.");
        assert_call(g, 1, "chat.appendStream", "{" MINE ",\"markdown_text\":\"\\n\\nIt\"}");
        assert_call(g, 2, "chat.stopStream", "{" MINE "," META "}");
        assert_string_equal(rig_method(g, 3), "chat.update");
        assert_non_null(strstr(rig_body(g, 3), "\"text\":\"It works.\""));
        assert_non_null(strstr(rig_body(g, 3), META));
}

static void a_mention_needs_an_edit(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "Ask");
        answer(g, "Ask <@U6>", "Ask @bob");
        assert_call(g, 1, "chat.stopStream", "{" MINE "," META "}");
        assert_non_null(strstr(rig_body(g, 2), "\"text\":\"Ask <@U6>\""));
}

static void what_the_agent_does_is_a_task(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 4; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        deliver(g, DELIVER_SEND, THREAD,
                "{\"text\":\"… reading\",\"draft\":true,\"recipient\":\"U5\",\"label\":\"reading\","
                "\"markdown\":\"\"}");
        piece(g, "", ",\"label\":\"running tests\"");
        piece(g, "Done", "");
        answer(g, "Done.", "Done.");
        assert_non_null(strstr(rig_body(g, 0),
                               "\"chunks\":[{\"type\":\"task_update\",\"id\":\"work\",\"title\":"
                               "\"reading\",\"status\":\"in_progress\"}]"));
        assert_non_null(strstr(rig_body(g, 1), "\"title\":\"running tests\""));
        assert_non_null(strstr(rig_body(g, 2),
                               "\"chunks\":[{\"type\":\"markdown_text\",\"text\":\"Done\"},{"
                               "\"type\":\"task_update\",\"id\":\"work\",\"title\":"
                               "\"running tests\",\"status\":\"complete\"}]"));
        assert_non_null(strstr(rig_body(g, 3), "\"markdown_text\":\".\""));
}

static void elsewhere_a_draft_is_edited(void **state)
{
        static const char payload[] = "{\"text\":\"one\",\"draft\":true,\"recipient\":\"U5\","
                                      "\"markdown\":\"one\"}";
        struct rig *g = *state;

        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        deliver(g, DELIVER_SEND, NULL, payload);
        deliver(g, DELIVER_EDIT, NULL, payload);
        assert_string_equal(rig_method(g, 0), "chat.postMessage");
        assert_string_equal(rig_method(g, 1), "chat.update");
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C7", NULL), 3000);
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C7", THREAD), 1200);
}

static void streaming_can_be_switched_to_edits(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        rig_connect(g, ",\"streaming\":\"edits\"");
        draft(g, "one");
        assert_string_equal(rig_method(g, 0), "chat.postMessage");
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C7", THREAD), 3000);
}

static void a_refusal_is_remembered(void **state)
{
        struct rig *g = *state;

        says(g, 200, FAILED("unknown_method"));
        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        assert_string_equal(draft(g, "one")->platform_id, TS);
        assert_string_equal(draft(g, "two")->platform_id, TS);
        assert_string_equal(rig_method(g, 0), "chat.startStream");
        assert_string_equal(rig_method(g, 1), "chat.postMessage");
        assert_non_null(strstr(rig_body(g, 1), "\"text\":\"one\""));
        assert_string_equal(rig_method(g, 2), "chat.postMessage");
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C8", THREAD), 3000);
}

static void a_refusal_of_one_channel_holds_there(void **state)
{
        struct rig *g = *state;

        says(g, 200, FAILED("channel_type_not_supported"));
        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C7", THREAD), 3000);
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C8", THREAD), 1200);
}

static void a_start_that_is_limited_is_a_message(void **state)
{
        struct rig *g = *state;

        says_with(g, 429, "Retry-After: 30\r\n", FAILED("ratelimited"));
        says(g, 200, POSTED);
        rig_connect(g, "");
        assert_string_equal(draft(g, "one")->platform_id, TS);
        assert_string_equal(rig_method(g, 1), "chat.postMessage");
        assert_int_equal(adapters_draft_ms(g->adapters, "sl", "C7", THREAD), 1200);
}

/* ---- without an answer ---- */

static void a_start_without_an_answer_is_not_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 500, "");
        rig_connect(g, "");
        assert_int_equal(draft(g, "one")->result.outcome, SEND_UNSURE);
        assert_calls(g, 1);
}

static void such_a_start_is_found_as_the_message_without_metadata(void **state)
{
        static const char page[] =
                "{\"ok\":true,\"messages\":["
                "{\"ts\":\"" THREAD "\",\"user\":\"U0BOT\",\"text\":\"the root\"},"
                "{\"ts\":\"1700000001.000100\",\"user\":\"U0BOT\",\"metadata\":{\"event_type\":"
                "\"dragoman_delivery\",\"event_payload\":{\"id\":\"another\"}}},"
                "{\"ts\":\"1700000001.000150\",\"user\":\"U0BOT\",\"files\":[{\"id\":\"F1\"}]},"
                "{\"ts\":\"1700000001.000160\",\"user\":\"U5\",\"text\":\"hi\"},"
                "{\"ts\":\"" TS "\",\"user\":\"U0BOT\",\"text\":\"one\"}]}";
        struct delivery d = { .kind = DELIVER_SEND,
                              .channel = "C7",
                              .thread = THREAD,
                              .read_from = "1699999940.000000",
                              .payload = "{\"text\":\"one\",\"draft\":true}" };
        struct rig *g = *state;

        says(g, 200, page);
        says(g, 200, page);
        rig_connect(g, ",\"reconcileAfterMs\":0");
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, TS);
        /* an answer that is no draft has metadata */
        fake_road.count = 0;
        d.payload = "{\"text\":\"one\"}";
        rig_look(g, d);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
}

static void a_piece_without_an_answer_ends_the_stream(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        says(g, 500, "");
        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_RETRY);
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 2), "chat.stopStream");
        assert_string_equal(rig_method(g, 3), "chat.update");
        assert_non_null(strstr(rig_body(g, 3), "\"text\":\"one two\""));
}

static void an_end_without_an_answer_is_an_edit(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        says(g, 500, "");
        says(g, 200, FAILED("message_not_in_streaming_state"));
        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(answer(g, "one two", "one two")->result.outcome, SEND_RETRY);
        assert_int_equal(answer(g, "one two", "one two")->result.outcome, SEND_DONE);
        assert_call(g, 2, "chat.stopStream", "{" MINE "," META "}");
        assert_string_equal(rig_method(g, 3), "chat.update");
}

/* ---- streams that end ---- */

static void a_stream_that_slack_ended_is_edited(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        says(g, 200, FAILED("message_not_in_streaming_state"));
        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 2), "chat.update");
        /* at most one edit in three seconds: a later one has this text */
        assert_int_equal(piece(g, "one two three", "")->result.outcome, SEND_DONE);
        assert_calls(g, 3);
        answer(g, "one two three four", "one two three four");
        assert_string_equal(rig_method(g, 3), "chat.update");
        assert_non_null(strstr(rig_body(g, 3), "four"));
}

static void the_stop_button_is_the_word_stop(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        says(g, 200, FAILED("stopped_by_user"));
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].key, "stop:C7:" TS);
        assert_string_equal(fake_road.arrivals[0].text, "stop");
        assert_true(fake_road.arrivals[0].is_mention);
        assert_calls(g, 2);
}

static void a_stream_is_stopped_before_slack_ends_it(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        ((struct slack_conf *)rig_adapter(g)->conf)->stream_seconds = 0;
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 1), "chat.stopStream");
        assert_string_equal(rig_method(g, 2), "chat.update");
        assert_non_null(strstr(rig_body(g, 2), "\"text\":\"one two\""));
}

static void a_stream_of_an_earlier_run_is_stopped_first(void **state)
{
        struct rig *g = *state;

        says(g, 200, FAILED("streaming_state_conflict"));
        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        assert_int_equal(answer(g, "one two", "one two")->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "chat.update");
        assert_call(g, 1, "chat.stopStream", "{" MINE "," META "}");
        assert_string_equal(rig_method(g, 2), "chat.update");
}

static void pieces_of_an_earlier_runs_draft_are_paced(void **state)
{
        struct rig *g = *state;

        says(g, 200, FAILED("streaming_state_conflict"));
        says(g, 200, POSTED);
        says(g, 200, POSTED);
        rig_connect(g, "");
        assert_int_equal(piece(g, "one", "")->result.outcome, SEND_DONE);
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_calls(g, 3);
}

static void a_conflict_that_stays_is_reported(void **state)
{
        struct rig *g = *state;

        says(g, 200, FAILED("streaming_state_conflict"));
        says(g, 200, FAILED("internal"));
        says(g, 200, FAILED("streaming_state_conflict"));
        rig_connect(g, "");
        assert_int_equal(answer(g, "one two", "one two")->result.outcome, SEND_REJECTED);
        assert_calls(g, 3);
}

static void pieces_that_are_limited_are_skipped(void **state)
{
        struct rig *g = *state;

        says(g, 200, POSTED);
        says_with(g, 429, "Retry-After: 3\r\n", FAILED("ratelimited"));
        says(g, 200, POSTED);
        rig_connect(g, "");
        draft(g, "one");
        assert_int_equal(piece(g, "one two", "")->result.outcome, SEND_DONE);
        assert_int_equal(answer(g, "one two three", "one two three")->result.outcome, SEND_DONE);
        assert_call(g, 2, "chat.stopStream",
                    "{" MINE ",\"markdown_text\":\" two three\"," META "}");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_draft_in_a_thread_is_a_stream),
                TEST(nothing_new_needs_no_call),
                TEST(tags_of_slack_are_written_out),
                TEST(text_that_is_replaced_is_edited_at_the_end),
                TEST(a_mention_needs_an_edit),
                TEST(what_the_agent_does_is_a_task),
                TEST(elsewhere_a_draft_is_edited),
                TEST(streaming_can_be_switched_to_edits),
                TEST(a_refusal_is_remembered),
                TEST(a_refusal_of_one_channel_holds_there),
                TEST(a_start_that_is_limited_is_a_message),
                TEST(a_start_without_an_answer_is_not_repeated),
                TEST(such_a_start_is_found_as_the_message_without_metadata),
                TEST(a_piece_without_an_answer_ends_the_stream),
                TEST(an_end_without_an_answer_is_an_edit),
                TEST(a_stream_that_slack_ended_is_edited),
                TEST(the_stop_button_is_the_word_stop),
                TEST(a_stream_is_stopped_before_slack_ends_it),
                TEST(a_stream_of_an_earlier_run_is_stopped_first),
                TEST(pieces_of_an_earlier_runs_draft_are_paced),
                TEST(a_conflict_that_stays_is_reported),
                TEST(pieces_that_are_limited_are_skipped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
