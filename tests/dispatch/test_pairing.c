/* Strangers get a code, and the operator approves or denies it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/policy_rig.h"
#include "base/clock.h"
#include "base/human_code.h"
#include "dispatch/dry_run.h"

static int setup(void **state)
{
        *state = policy_rig_new("pairing");
        return 0;
}

static int setup_closed(void **state)
{
        *state = policy_rig_new("none");
        return 0;
}

static int teardown(void **state)
{
        policy_rig_free(*state);
        return 0;
}

struct outcome {
        bool done;
        int64_t id;
        enum error_kind kind;
        char state[20];
};

static void on_done(void *arg, const struct pairing *r, const struct error *err)
{
        struct outcome *o = arg;

        *o = (struct outcome){ .done = true, .id = r->id, .kind = err ? err->kind : ERR_NONE };
        if (!err)
                snprintf(o->state, sizeof(o->state), "%s", r->state);
}

static struct outcome wait_for(struct policy_rig *g, struct outcome *o)
{
        while (!o->done)
                loop_step(g->loop, true);
        return *o;
}

static struct outcome word(struct policy_rig *g, const char *code, bool deny)
{
        struct pairing_verdict d = { .deny = deny, .code = code, .by = "Ann" };
        struct outcome o = { 0 };

        pairing_decide(g->policy->pairings, &d, on_done, &o);
        return wait_for(g, &o);
}

static struct outcome take_back(struct policy_rig *g, int64_t id)
{
        struct outcome o = { 0 };

        pairing_revoke(g->policy->pairings, id, on_done, &o);
        return wait_for(g, &o);
}

/* Writes as a stranger; returns the committed code as shown: "ABCD-2345". */
static char *knock(struct policy_rig *g, const char *sender, char code[HUMAN_CODE_TEXT_SIZE])
{
        struct decision out = policy_rig_dm(g, "tg", sender, "hello");
        const char *at;

        assert_false(out.trigger);
        assert_non_null(out.notice);
        at = strstr(out.notice, "runs me: ");
        assert_non_null(at);
        snprintf(code, HUMAN_CODE_TEXT_SIZE, "%s", at + 9);
        assert_null(strstr(out.reason, code)); /* codes are not logged */
        return code;
}

static void an_approved_code_admits_a_stranger(void **state)
{
        struct policy_rig *g = *state;
        char code[HUMAN_CODE_TEXT_SIZE], lower[HUMAN_CODE_TEXT_SIZE];
        struct outcome o;

        knock(g, "7", code);
        for (int i = 0; i < HUMAN_CODE_TEXT_SIZE; i++)
                lower[i] = (char)(code[i] >= 'A' && code[i] <= 'Z' ? code[i] + 32 : code[i]);
        o = word(g, lower, false);
        assert_int_equal(o.kind, ERR_NONE);
        assert_string_equal(o.state, "approved");
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
        assert_false(policy_rig_dm(g, "dc", "7", "hello").trigger);
        assert_false(policy_rig_group(g, "tg", "7", "hello").trigger);
        policy_rig_restart(g);
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
        assert_int_equal(word(g, code, false).kind, ERR_MISSING);
        assert_int_equal(take_back(g, o.id).kind, ERR_NONE);
        assert_int_equal(policy_rig_count(g, "access_rules"), 0);
        assert_false(policy_rig_dm(g, "tg", "7", "hello").trigger);
        assert_int_equal(take_back(g, o.id).kind, ERR_MISSING);
}

static void a_code_that_is_not_stored_is_forgotten(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = { .adapter = "tg",
                               .platform = "telegram",
                               .channel = "7",
                               .chat = CHAT_DM,
                               .sender_id = "7",
                               .text = "hello" };
        struct decision out = { 0 };
        char code[HUMAN_CODE_TEXT_SIZE];
        struct error err;

        rows_refuse_insert(g->store, "pairings");
        dispatch_decide(g->dispatch, &in, NULL, &out);
        assert_non_null(out.notice);
        assert_int_equal(store_write_now(g->store, out.extra.fn, out.extra.arg, &err), -1);
        out.extra.done(out.extra.arg, &err); /* as the road does when it closes */
        rows_accept(g->store);
        policy_rig_restart(g);
        assert_int_equal(policy_rig_count(g, "pairings"), 0);
        assert_int_equal(word(g, knock(g, "7", code), false).kind, ERR_NONE);
}

static void a_code_is_sent_once_and_survives_a_restart(void **state)
{
        struct policy_rig *g = *state;
        char code[HUMAN_CODE_TEXT_SIZE];
        struct decision out;

        knock(g, "7", code);
        out = policy_rig_dm(g, "tg", "7", code); /* typing it in the chat does nothing */
        assert_false(out.trigger);
        assert_null(out.notice);
        assert_int_equal(policy_rig_count(g, "pairings"), 1);
        policy_rig_restart(g);
        assert_null(policy_rig_dm(g, "tg", "7", "hello").notice);
        assert_int_equal(word(g, code, false).kind, ERR_NONE);
}

static void an_expired_code_is_replaced(void **state)
{
        struct policy_rig *g = *state;
        char old[HUMAN_CODE_TEXT_SIZE], new[HUMAN_CODE_TEXT_SIZE];

        knock(g, "7", old);
        policy_rig_update(g, "pairings SET expires_ms = 1", 0, 0);
        policy_rig_restart(g);
        assert_int_equal(word(g, old, false).kind, ERR_MISSING);
        knock(g, "7", new);
        assert_string_not_equal(old, new);
        assert_int_equal(policy_rig_count(g, "pairings"), 1);
        dispatch_set_clock(g->dispatch, clock_wall_ms() + 3600000); /* without a restart */
        knock(g, "7", old);
        assert_string_not_equal(old, new);
}

static void a_code_can_be_decided_once_it_is_stored(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = {
                .adapter = "tg", .channel = "7", .sender_id = "7", .chat = CHAT_DM, .text = "hi"
        };
        char code[HUMAN_CODE_TEXT_SIZE];
        struct decision out;

        dispatch_decide(g->dispatch, &in, NULL, &out);
        snprintf(code, sizeof(code), "%s", strstr(out.notice, "runs me: ") + 9);
        assert_int_equal(word(g, code, false).kind, ERR_MISSING);
        policy_rig_commit(g, &out);
        assert_int_equal(word(g, code, false).kind, ERR_NONE);
        dispatch_set_clock(g->dispatch, clock_wall_ms() - 3600000);
        assert_int_equal(word(g, knock(g, "8", code), false).kind, ERR_MISSING); /* expired */
}

static void of_two_verdicts_at_once_the_first_counts(void **state)
{
        struct policy_rig *g = *state;
        struct outcome first = { 0 }, second = { 0 };
        char code[HUMAN_CODE_TEXT_SIZE];
        struct pairing_verdict approve = { .code = code }, deny = { .deny = true, .code = code };

        knock(g, "7", code);
        pairing_decide(g->policy->pairings, &approve, on_done, &first);
        pairing_decide(g->policy->pairings, &deny, on_done, &second);
        assert_int_equal(wait_for(g, &first).kind, ERR_NONE);
        assert_int_equal(wait_for(g, &second).kind, ERR_MISSING);
        assert_int_equal(policy_rig_count(g, "access_rules"), 1);
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
}

static void strangers_cannot_make_the_bot_talk_much(void **state)
{
        struct policy_rig *g = *state;
        char code[HUMAN_CODE_TEXT_SIZE], sender[16];
        struct incoming bot = { .adapter = "tg",
                                .channel = "b",
                                .sender_id = "b",
                                .sender_is_bot = true,
                                .chat = CHAT_DM,
                                .text = "hi" },
                        edit = { .adapter = "tg",
                                 .type = EVENT_MESSAGE_EDITED,
                                 .channel = "7",
                                 .sender_id = "7",
                                 .chat = CHAT_DM,
                                 .text = "hi!" };
        struct decision out;

        assert_null(policy_rig_group(g, "tg", "7", "hello").notice);
        dispatch_decide(g->dispatch, &bot, NULL, &out);
        assert_null(out.notice);
        dispatch_decide(g->dispatch, &edit, NULL, &out);
        assert_null(out.notice);
        for (int i = 0; i < PAIRING_WAITING_MAX; i++) {
                snprintf(sender, sizeof(sender), "s%d", i);
                knock(g, sender, code);
        }
        out = policy_rig_dm(g, "tg", "one too many", "hello");
        assert_null(out.notice);
        assert_non_null(strstr(out.reason, "20 wait on this adapter already"));
        out = policy_rig_dm(g, "dc", "7", "hello"); /* the limit is per adapter */
        assert_non_null(out.notice);
        assert_int_equal(policy_rig_count(g, "pairings"), PAIRING_WAITING_MAX + 1);
}

static void a_denied_stranger_gets_no_further_code(void **state)
{
        struct policy_rig *g = *state;
        char code[HUMAN_CODE_TEXT_SIZE];
        struct decision out;
        struct outcome o;

        knock(g, "7", code);
        o = word(g, code, true);
        assert_string_equal(o.state, "denied");
        out = policy_rig_dm(g, "tg", "7", "hello");
        assert_null(out.notice);
        assert_non_null(strstr(out.reason, "denies 'telegram:7'"));
        take_back(g, o.id);
        knock(g, "7", code);
}

static void no_code_is_sent_without_pairing_or_in_a_dry_run(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = {
                .adapter = "tg", .channel = "7", .sender_id = "7", .chat = CHAT_DM, .text = "hi"
        };
        char code[HUMAN_CODE_TEXT_SIZE];
        struct buf json;

        assert_null(policy_rig_dm(g, "tg", "7", "hello").notice);
        g->dm = "pairing";
        policy_rig_reload(g, NULL);
        buf_init(&json, 0);
        dry_run_explain(g->dispatch, &in, DRY_RUN_ALL_RULES, &json);
        buf_release(&json);
        knock(g, "7", code);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_approved_code_admits_a_stranger, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_code_that_is_not_stored_is_forgotten, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_code_is_sent_once_and_survives_a_restart, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_expired_code_is_replaced, setup, teardown),
                cmocka_unit_test_setup_teardown(a_code_can_be_decided_once_it_is_stored, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(of_two_verdicts_at_once_the_first_counts, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(strangers_cannot_make_the_bot_talk_much, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_denied_stranger_gets_no_further_code, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(no_code_is_sent_without_pairing_or_in_a_dry_run,
                                                setup_closed, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
