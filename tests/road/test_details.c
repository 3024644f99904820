/* Details of the work: in the thread of the main message, stored with the step they are about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "rows/step_row.h"

/* A step with a detail being stored. */
struct detail_step {
        int64_t turn, fence, conversation;
        struct turn_detail *detail;
        unsigned stored, lost;
};

static int write_step(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        struct detail_step *s = arg;
        struct step_row row = { .conversation = s->conversation,
                                .turn = s->turn,
                                .agent = "steps",
                                .kind = STEP_USER,
                                .body = "{}",
                                .time_ms = 1 };
        int rc = step_row_insert(tx, &row, s->fence, err);

        if (rc != 1)
                return rc;
        return turn_detail_store(tx, batch, s->detail, err) < 0 ? -1 : 1;
}

static void on_stored(void *arg, bool stored)
{
        struct detail_step *s = arg;

        turn_detail_stored(s->detail, stored);
        s->stored += stored;
        s->lost += !stored;
}

/* Stores a step of the first run; fence 0: the run's. */
static void work(struct rig *g, const char *detail, int64_t fence)
{
        struct turn_run *run = g->runs[g->run_count - 1].run;
        struct detail_step s = { .turn = run->id,
                                 .fence = fence ? fence : run->fence,
                                 .conversation = run->conversation,
                                 .detail = turn_detail_new(run, detail) };

        assert_true(turn_store_step(run, write_step, on_stored, &s));
        rig_until(g, fence ? &s.lost : &s.stored, 1);
}

static void finish(struct rig *g, const char *text, bool used_tools)
{
        struct rig_run *r = &g->runs[g->run_count - 1];
        struct turn_run *run = r->run;

        r->run = NULL;
        turn_finish(run, &(struct turn_reply){ .text = text,
                                               .tokens_in = 1200,
                                               .tokens_cached = 200,
                                               .tokens_out = 34,
                                               .cost_microusd = 5600,
                                               .used_tools = used_tools });
}

static struct rig *begin(const char *adapter)
{
        struct rig *g = rig_new();

        g->auto_send = true;
        rig_say(g, adapter, "c", "steps", "tell me", NULL);
        rig_until(g, &g->run_count, 1);
        return g;
}

static const struct rig_sent *sent_with(const struct rig *g, const char *text)
{
        for (unsigned i = 0; i < g->sent_count; i++)
                if (strcmp(g->sent[i].text, text) == 0)
                        return &g->sent[i];
        fail_msg("'%s' was not sent", text);
        return NULL;
}

static void details_are_in_the_thread_of_the_main_message(void **state)
{
        struct rig *g = begin("work");
        const char *main;

        (void)state;
        turn_progress(g->runs[0].run, "reading a file");
        work(g, "read: 10 lines", 0);
        work(g, "bash: ok", 0);
        finish(g, "It works.", true);
        rig_until_idle(g);
        main = rig_text(g, "platform_id FROM deliveries ORDER BY id");
        assert_string_equal(g->sent[0].text, "… reading a file");
        assert_string_equal(g->sent[0].thread, "");
        assert_string_equal(sent_with(g, "read: 10 lines")->thread, main);
        assert_string_equal(sent_with(g, "bash: ok")->thread, main);
        assert_string_equal(sent_with(g, "It works.")->kind, "edit");
        assert_string_equal(sent_with(g, "It works.")->target, main);
        assert_string_equal(sent_with(g, "1200 tokens in (200 cached), 34 out, 0.0056 USD")->thread,
                            main);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 5);
        rig_free(g);
}

static void the_main_message_comes_first_even_without_words(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        work(g, "read: 10 lines", 0);
        finish(g, "It works.", true);
        rig_until_idle(g);
        assert_string_equal(g->sent[0].text, "Working…");
        assert_string_equal(sent_with(g, "read: 10 lines")->thread,
                            rig_text(g, "platform_id FROM deliveries ORDER BY id"));
        rig_free(g);
}

static void a_main_message_that_waits_is_sent_for_its_details(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        g->adapters_down = true;
        work(g, "read: 10 lines", 0);
        finish(g, "It works.", true);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "work");
        rig_until_idle(g);
        assert_string_equal(sent_with(g, "read: 10 lines")->thread,
                            rig_text(g, "platform_id FROM deliveries ORDER BY id"));
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 4);
        rig_free(g);
}

static void the_answer_does_not_wait_for_details(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        g->adapters_down = true;
        work(g, "read: 10 lines", 0);
        work(g, "bash: ok", 0);
        finish(g, "It works.", true);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "work");
        rig_until_idle(g);
        assert_string_equal(g->sent[0].text, "Working…");
        assert_string_equal(g->sent[1].text, "It works.");
        assert_string_equal(g->sent[2].text, "read: 10 lines");
        assert_string_equal(g->sent[3].text, "bash: ok");
        rig_free(g);
}

static void ignore_receipt(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        (void)receipt;
}

/* Nor do its further messages, and answers to others in the channel. */
static void no_message_waits_for_details(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        g->adapters_down = true;
        work(g, "read: 10 lines", 0);
        work(g, "bash: ok", 0);
        finish(g, "It works.|It is fast.", true);
        rig_settle(g);
        outbox_submit(
                g->road,
                &(struct outgoing){
                        .adapter = "work", .channel = "c", .kind = DELIVER_SEND, .text = "Lunch!" },
                ignore_receipt, NULL);
        rig_settle(g);
        g->adapters_down = false;
        outbox_wake(g->road, "work");
        rig_until_idle(g);
        assert_string_equal(g->sent[1].text, "It works.");
        assert_string_equal(g->sent[2].text, "It is fast.");
        assert_string_equal(g->sent[3].text, "Lunch!");
        assert_string_equal(g->sent[4].text, "read: 10 lines");
        assert_string_equal(g->sent[5].text, "bash: ok");
        rig_free(g);
}

static void after_a_crash_the_thread_is_found_again(void **state)
{
        struct rig *g = begin("work");
        const char *main;

        (void)state;
        turn_progress(g->runs[0].run, "reading a file");
        work(g, "read: 10 lines", 0);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 2);
        g->adapters_down = true;
        work(g, "bash: ok", 0);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        g->adapters_down = false;
        outbox_wake(g->road, "work");
        finish(g, "It works.", true);
        rig_until_idle(g);
        main = rig_text(g, "platform_id FROM deliveries ORDER BY id");
        assert_string_equal(sent_with(g, "bash: ok")->thread, main);
        assert_string_equal(sent_with(g, "It works.")->target, main);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 4);
        rig_free(g);
}

/* Each attempt asks anew for the message of its thread. */
static void a_detail_that_is_sent_again_is_in_the_same_thread(void **state)
{
        struct rig *g = begin("work");
        const char *main;

        (void)state;
        turn_progress(g->runs[0].run, "reading a file");
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        g->auto_send = false;
        work(g, "read: 10 lines", 0);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_RETRY, ERR_NET, 0);
        rig_until(g, &g->sent_count, 3);
        main = rig_text(g, "platform_id FROM deliveries ORDER BY id");
        assert_string_equal(g->sent[2].text, "read: 10 lines");
        assert_string_equal(g->sent[2].thread, main);
        rig_free(g);
}

static void a_step_that_is_not_stored_has_no_detail(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        work(g, "read: 10 lines", 99);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%10 lines%'"), 0);
        rig_free(g);
}

static void an_answer_without_tools_has_no_details(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        turn_delta(g->runs[0].run, "It", 2);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        finish(g, "It works.", false);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries"), 2);
        rig_free(g);
}

static void other_platforms_show_no_details(void **state)
{
        struct rig *g = begin("grow");

        (void)state;
        assert_false(turn_shows_details(g->runs[0].run));
        assert_null(turn_detail_new(g->runs[0].run, "read: 10 lines"));
        finish(g, "It works.", true);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'send'"), 1);
        rig_free(g);
}

static void silence_removes_the_details_first(void **state)
{
        struct rig *g = begin("work");
        unsigned n;

        (void)state;
        work(g, "read: 10 lines", 0);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 2);
        finish(g, "[SILENT]", true);
        rig_until_idle(g);
        n = g->sent_count;
        assert_string_equal(g->sent[n - 2].kind, "delete");
        assert_string_equal(
                g->sent[n - 2].target,
                rig_text(g, "platform_id FROM deliveries ORDER BY id LIMIT 1 OFFSET 1"));
        assert_string_equal(g->sent[n - 1].kind, "delete");
        assert_string_equal(g->sent[n - 1].target,
                            rig_text(g, "platform_id FROM deliveries ORDER BY id"));
        rig_free(g);
}

/* They would be posts below the answer, which people read in the same thread. */
static void in_a_thread_there_are_none(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        rig_receive(g, &(struct incoming){ .adapter = "work",
                                           .channel = "c",
                                           .thread = "t",
                                           .guild = "steps",
                                           .text = "tell me" });
        rig_until(g, &g->run_count, 1);
        assert_false(turn_shows_details(g->runs[0].run));
        assert_null(turn_detail_new(g->runs[0].run, "read: 10 lines"));
        finish(g, "It works.", true);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 1);
        rig_free(g);
}

static void drafts_that_are_appended_to_say_their_markdown(void **state)
{
        struct rig *g = begin("work");

        (void)state;
        turn_delta(g->runs[0].run, "**It**", 6);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "\"markdown\":\"**It**\""));
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "\"recipient\":\""));
        finish(g, "**It** works.", false);
        rig_until_idle(g);
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries ORDER BY id DESC"),
                               "\"markdown\":\"**It** works.\""));
        rig_free(g);
}

/* A stream of Slack is for a person; the schedule is none. */
static void a_draft_of_a_schedule_is_for_nobody(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        rig_receive(g, &(struct incoming){ .type = EVENT_SCHEDULE_FIRED,
                                           .adapter = "work",
                                           .guild = "steps",
                                           .sender_id = SCHEDULE_SENDER,
                                           .text = "tell me" });
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "**It**", 6);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        assert_null(strstr(rig_text(g, "payload FROM deliveries"), "\"recipient\":\""));
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(details_are_in_the_thread_of_the_main_message),
                cmocka_unit_test(the_main_message_comes_first_even_without_words),
                cmocka_unit_test(a_main_message_that_waits_is_sent_for_its_details),
                cmocka_unit_test(after_a_crash_the_thread_is_found_again),
                cmocka_unit_test(a_detail_that_is_sent_again_is_in_the_same_thread),
                cmocka_unit_test(a_step_that_is_not_stored_has_no_detail),
                cmocka_unit_test(an_answer_without_tools_has_no_details),
                cmocka_unit_test(other_platforms_show_no_details),
                cmocka_unit_test(silence_removes_the_details_first),
                cmocka_unit_test(in_a_thread_there_are_none),
                cmocka_unit_test(the_answer_does_not_wait_for_details),
                cmocka_unit_test(no_message_waits_for_details),
                cmocka_unit_test(drafts_that_are_appended_to_say_their_markdown),
                cmocka_unit_test(a_draft_of_a_schedule_is_for_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
