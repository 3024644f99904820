/* The status of threads, prompts and titles of Assistant threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack_rig.h"

#define THREAD "1700000000.000100"
#define STATUS "assistant.threads.setStatus"
#define OK     "{\"ok\":true,\"ts\":\"1700000001.000200\"}"

static void type(struct rig *g, const char *thread)
{
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = DELIVER_TYPE,
                                       .class = PACE_TYPING,
                                       .channel = "C7",
                                       .thread = thread,
                                       .payload = "{}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

static void deliver(struct rig *g, enum delivery_kind kind)
{
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = kind,
                                       .class = PACE_FINAL,
                                       .channel = "C7",
                                       .thread = THREAD,
                                       .target = kind == DELIVER_EDIT ? THREAD : NULL,
                                       .payload = "{\"text\":\"hi\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

static void assert_status(struct rig *g, unsigned i, const char *text)
{
        char *body = mem_printf(
                "{\"status\":\"%s\",\"channel_id\":\"C7\",\"thread_ts\":\"" THREAD "\"}", text);

        rig_requests(g, i + 1);
        assert_string_equal(rig_method(g, i), STATUS);
        assert_string_equal(rig_body(g, i), body);
        free(body);
}

static void assert_calls(struct rig *g, unsigned n)
{
        for (int i = 0; i < 50; i++)
                loop_step(g->loop, false);
        assert_int_equal(fake_server_requests(g->server), g->greetings + n);
}

static void only_threads_show_typing(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        assert_true(adapters_shows_typing(g->adapters, "sl", "C7", THREAD));
        assert_false(adapters_shows_typing(g->adapters, "sl", "C7", NULL));
}

static void typing_in_a_thread_is_a_status(void **state)
{
        struct rig *g = *state;

        says(g, 200, OK);
        rig_connect(g, "");
        type(g, THREAD);
        assert_status(g, 0, "is working…");
        type(g, THREAD); /* Slack still shows it */
        type(g, NULL);   /* there is nothing outside of threads */
        assert_calls(g, 1);
}

static void a_status_is_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 200, OK);
        says(g, 200, OK);
        rig_connect(g, "");
        sl_assistant_set_times(rig_slack(g), 0, 60000);
        type(g, THREAD);
        type(g, THREAD);
        assert_status(g, 0, "is working…");
        assert_status(g, 1, "is working…");
}

static void a_message_of_ours_ends_it(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 4; i++)
                says(g, 200, OK);
        rig_connect(g, "");
        type(g, THREAD);
        rig_requests(g, 1);
        deliver(g, DELIVER_SEND); /* Slack clears the status itself */
        type(g, THREAD);          /* the message shows the progress now */
        assert_calls(g, 2);
}

static void an_edit_clears_it(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 200, OK);
        rig_connect(g, "");
        type(g, THREAD);
        rig_requests(g, 1);
        deliver(g, DELIVER_EDIT);
        assert_string_equal(rig_method(g, 1), "chat.update");
        assert_status(g, 2, "");
}

static void a_turn_that_ends_without_words_clears_it(void **state)
{
        struct rig *g = *state;

        says(g, 200, OK);
        says(g, 200, OK);
        says(g, 200, OK);
        rig_connect(g, "");
        sl_assistant_set_times(rig_slack(g), 90000, 20);
        type(g, THREAD);
        assert_status(g, 0, "is working…");
        assert_status(g, 1, "");
        /* the next turn has a status again */
        type(g, THREAD);
        assert_status(g, 2, "is working…");
}

static void without_the_method_it_is_not_tried_again(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"assistant:write\"}");
        rig_connect(g, "");
        type(g, THREAD);
        for (int i = 0; i < 100000 && adapters_abilities(g->adapters, "sl") & ADAPTER_TYPING; i++)
                loop_step(g->loop, true);
        assert_false(adapters_abilities(g->adapters, "sl") & ADAPTER_TYPING);
        type(g, "1700000009.000100");
        assert_calls(g, 1);
}

/* ---- Assistant threads ---- */

static void happens(struct rig *g, const char *event)
{
        json_t *parsed = json_read(event, strlen(event), NULL);

        assert_non_null(parsed);
        sl_assistant_event(rig_slack(g), parsed);
        json_decref(parsed);
}

#define STARTED                                                                            \
        "{\"type\":\"assistant_thread_started\",\"assistant_thread\":{\"user_id\":\"U5\"," \
        "\"channel_id\":\"D5\",\"thread_ts\":\"" THREAD "\",\"context\":{\"channel_id\":\"C7\"}}}"

static void a_new_thread_offers_prompts_and_gets_a_title(void **state)
{
        struct rig *g = *state;

        says(g, 200, OK);
        says(g, 200, OK);
        rig_connect(g, ",\"suggestedPrompts\":[\"Plan: What is on today?\",\"Sum up: What: so?\"]");
        happens(g, STARTED);
        rig_requests(g, 1);
        assert_string_equal(rig_method(g, 0), "assistant.threads.setSuggestedPrompts");
        assert_string_equal(
                rig_body(g, 0),
                "{\"prompts\":[{\"title\":\"Plan\",\"message\":\"What is on today?\"},{\"title\":"
                "\"Sum up\",\"message\":\"What: so?\"}],\"channel_id\":\"D5\",\"thread_ts\":"
                "\"" THREAD "\"}");
        sl_assistant_said(rig_slack(g), "D5", NULL, "elsewhere");
        sl_assistant_said(rig_slack(g), "D5", THREAD, "\n How do I bake bread?\nI have flour.");
        sl_assistant_said(rig_slack(g), "D5", THREAD, "And cake?");
        rig_requests(g, 2);
        assert_string_equal(rig_method(g, 1), "assistant.threads.setTitle");
        assert_string_equal(rig_body(g, 1),
                            "{\"title\":\"How do I bake bread?\",\"channel_id\":\"D5\","
                            "\"thread_ts\":\"" THREAD "\"}");
        assert_calls(g, 2);
}

static void without_prompts_nothing_is_offered(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        happens(g, STARTED);
        happens(g, "{\"type\":\"assistant_thread_context_changed\",\"assistant_thread\":{}}");
        happens(g, "{\"type\":\"assistant_thread_started\"}");
        happens(g, "{\"type\":\"app_home_opened\"}");
        happens(g, "{\"type\":\"team_join\"}");
        assert_calls(g, 0);
}

static void the_agent_view_offers_them_when_it_is_opened(void **state)
{
        static const char opened[] =
                "{\"type\":\"app_home_opened\",\"user\":\"U5\",\"channel\":\"D5\",\"tab\":"
                "\"messages\"}";
        struct rig *g = *state;

        says(g, 200, OK);
        rig_connect(g, ",\"suggestedPrompts\":[\"Plan: What is on today?\"]");
        happens(g, "{\"type\":\"app_home_opened\",\"channel\":\"D5\",\"tab\":\"home\"}");
        happens(g, opened);
        happens(g, opened); /* not every time */
        rig_requests(g, 1);
        assert_string_equal(rig_body(g, 0), "{\"prompts\":[{\"title\":\"Plan\",\"message\":"
                                            "\"What is on today?\"}],\"channel_id\":\"D5\"}");
        assert_calls(g, 1);
}

static void a_status_under_way_ends_with_the_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g, "");
        type(g, THREAD);
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(only_threads_show_typing),
                TEST(typing_in_a_thread_is_a_status),
                TEST(a_status_is_repeated),
                TEST(a_message_of_ours_ends_it),
                TEST(an_edit_clears_it),
                TEST(a_turn_that_ends_without_words_clears_it),
                TEST(without_the_method_it_is_not_tried_again),
                TEST(a_new_thread_offers_prompts_and_gets_a_title),
                TEST(without_prompts_nothing_is_offered),
                TEST(the_agent_view_offers_them_when_it_is_opened),
                TEST(a_status_under_way_ends_with_the_adapter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
