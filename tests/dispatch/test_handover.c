/* A person takes over from the agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/policy_rig.h"
#include "base/clock.h"

static int setup(void **state)
{
        *state = policy_rig_new(NULL);
        return 0;
}

static int teardown(void **state)
{
        policy_rig_free(*state);
        return 0;
}

static enum error_kind pause_at(struct policy_rig *g, const char *channel, const char *thread,
                                int64_t until_ms)
{
        struct handover p = { .chat = { "tg", channel, thread },
                              .by = "Ann",
                              .reason = "a refund",
                              .until_ms = until_ms };
        struct policy_outcome o = { 0 };

        handover_pause(g->policy->handovers, &p, policy_rig_done, &o);
        return policy_rig_wait(g, &o);
}

static enum error_kind resume_at(struct policy_rig *g, const char *channel, const char *thread)
{
        struct chat_key chat = { "tg", channel, thread };
        struct policy_outcome o = { 0 };

        handover_resume(g->policy->handovers, &chat, policy_rig_done, &o);
        return policy_rig_wait(g, &o);
}

static struct decision decide(struct policy_rig *g, const char *channel, const char *thread)
{
        struct incoming in = {
                .adapter = "tg", .channel = channel, .thread = thread, .text = "hello"
        };
        struct decision out = { 0 };

        dispatch_decide(g->dispatch, &in, NULL, &out);
        return out;
}

/* ---- tests ---- */

static void a_paused_chat_is_remembered_but_not_answered(void **state)
{
        struct policy_rig *g = *state;
        struct decision out;

        assert_int_equal(pause_at(g, "7", NULL, 0), ERR_NONE);
        out = decide(g, "7", NULL);
        assert_false(out.trigger);
        assert_true(out.remember);
        assert_string_equal(out.agent, "echo");
        assert_non_null(strstr(out.reason, "the agent is paused here since 20"));
        assert_non_null(strstr(out.reason, " by Ann: a refund"));
        assert_true(decide(g, "8", NULL).trigger);
        assert_int_equal(resume_at(g, "7", NULL), ERR_NONE);
        assert_true(decide(g, "7", NULL).trigger);
        assert_int_equal(resume_at(g, "7", NULL), ERR_MISSING);
}

static void a_channel_is_paused_with_its_threads(void **state)
{
        struct policy_rig *g = *state;

        assert_int_equal(pause_at(g, "7", "9", 0), ERR_NONE);
        assert_false(decide(g, "7", "9").trigger);
        assert_true(decide(g, "7", "10").trigger);
        assert_true(decide(g, "7", NULL).trigger);
        assert_int_equal(pause_at(g, "7", NULL, 0), ERR_NONE);
        assert_false(decide(g, "7", "10").trigger);
        assert_int_equal(resume_at(g, "7", NULL), ERR_NONE);
        assert_false(decide(g, "7", "9").trigger);
}

static void an_expired_pause_cannot_be_resumed(void **state)
{
        struct policy_rig *g = *state;
        struct handover p = { .chat = { "tg", "7", NULL }, .since_ms = 1, .until_ms = 2 };
        struct policy_outcome o = { 0 };

        handover_pause(g->policy->handovers, &p, policy_rig_done, &o);
        assert_int_equal(policy_rig_wait(g, &o), ERR_NONE);
        assert_true(decide(g, "7", NULL).trigger);
        assert_int_equal(resume_at(g, "7", NULL), ERR_MISSING);
}

static void a_pause_survives_a_restart(void **state)
{
        struct policy_rig *g = *state;
        size_t count;

        assert_int_equal(pause_at(g, "7", NULL, 0), ERR_NONE);
        assert_int_equal(pause_at(g, "8", NULL, clock_wall_ms() - 1), ERR_NONE);
        assert_int_equal(policy_rig_count(g, "handovers"), 1);
        policy_rig_restart(g);
        assert_false(decide(g, "7", NULL).trigger);
        free(handover_list(g->policy->handovers, &count));
        assert_int_equal(count, 1);
}

static void a_pause_ends_at_its_time(void **state)
{
        struct policy_rig *g = *state;
        size_t count;

        assert_int_equal(pause_at(g, "7", NULL, clock_wall_ms() - 1), ERR_NONE);
        assert_true(decide(g, "7", NULL).trigger);
        free(handover_list(g->policy->handovers, &count));
        assert_int_equal(count, 0);
        assert_int_equal(pause_at(g, "7", NULL, clock_wall_ms() + 3600000), ERR_NONE);
        assert_false(decide(g, "7", NULL).trigger);
}

static void a_pause_by_command_counts_from_its_decision(void **state)
{
        struct policy_rig *g = *state;
        struct handover p = { .chat = { "tg", "7", NULL }, .by = "Ann" };
        struct decision out = { 0 };

        assert_true(handover_pause_with(g->policy->handovers, &p, &out));
        /* the next message is decided before the commit */
        assert_false(decide(g, "7", NULL).trigger);
        policy_rig_commit(g, &out);
        policy_rig_restart(g);
        assert_false(decide(g, "7", NULL).trigger);
        out = (struct decision){ 0 };
        assert_true(handover_resume_with(g->policy->handovers, &p.chat, &out));
        assert_true(decide(g, "7", NULL).trigger);
        policy_rig_commit(g, &out);
        assert_false(handover_resume_with(g->policy->handovers, &p.chat, &out));
}

static bool pause_with(struct policy_rig *g, const char *channel, int64_t until_ms)
{
        struct handover p = { .chat = { "tg", channel, NULL }, .until_ms = until_ms };
        struct decision out = { 0 };
        bool paused = handover_pause_with(g->policy->handovers, &p, &out);

        if (paused)
                out.extra.done(out.extra.arg, NULL); /* without storing it */
        return paused;
}

static void expired_pauses_make_room(void **state)
{
        struct policy_rig *g = *state;
        char channel[16];

        assert_true(pause_with(g, "7", clock_wall_ms() - 1));
        for (int i = 1; i < 10000; i++) {
                snprintf(channel, sizeof(channel), "c%d", i);
                assert_true(pause_with(g, channel, 0));
        }
        assert_true(pause_with(g, "8", 0));
        assert_false(pause_with(g, "9", 0));
        assert_true(pause_with(g, "8", 0)); /* replaces it */
        assert_int_equal(pause_at(g, "9", NULL, 0), ERR_LIMIT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_paused_chat_is_remembered_but_not_answered, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_channel_is_paused_with_its_threads, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_expired_pause_cannot_be_resumed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_pause_survives_a_restart, setup, teardown),
                cmocka_unit_test_setup_teardown(a_pause_ends_at_its_time, setup, teardown),
                cmocka_unit_test_setup_teardown(a_pause_by_command_counts_from_its_decision, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(expired_pauses_make_room, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
