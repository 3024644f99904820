/* Access rules that are changed while running. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/policy_rig.h"
#include "base/clock.h"
#include "dispatch/dry_run.h"

static int setup(void **state)
{
        *state = policy_rig_new("none");
        return 0;
}

static int setup_open(void **state)
{
        *state = policy_rig_new("everyone");
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
};

static void on_done(void *arg, int64_t id, const struct error *err)
{
        *(struct outcome *)arg = (struct outcome){ true, id, err ? err->kind : ERR_NONE };
}

static struct outcome put(struct policy_rig *g, struct access_rule r)
{
        struct outcome o = { 0 };

        access_rules_put(g->policy->access, &r, on_done, &o);
        while (!o.done)
                loop_step(g->loop, true);
        return o;
}

static enum error_kind forget(struct policy_rig *g, int64_t id)
{
        struct outcome o = { 0 };

        access_rules_delete(g->policy->access, id, on_done, &o);
        while (!o.done)
                loop_step(g->loop, true);
        return o.kind;
}

static bool let_in(struct policy_rig *g, const char *adapter, const char *sender)
{
        return policy_rig_dm(g, adapter, sender, "hello").trigger;
}

static void a_change_counts_at_once_and_after_a_restart(void **state)
{
        struct policy_rig *g = *state;
        int64_t id;

        assert_false(let_in(g, "tg", "7"));
        id = put(g, (struct access_rule){ .user = "7", .enabled = true }).id;
        assert_true(let_in(g, "tg", "7"));
        assert_false(let_in(g, "tg", "8"));
        policy_rig_restart(g);
        assert_true(let_in(g, "tg", "7"));
        put(g, (struct access_rule){ .id = id, .user = "8", .enabled = true });
        assert_false(let_in(g, "tg", "7"));
        assert_true(let_in(g, "tg", "8"));
        put(g, (struct access_rule){ .id = id, .user = "8", .enabled = false });
        assert_false(let_in(g, "tg", "8"));
        assert_int_equal(forget(g, id), ERR_NONE);
        assert_int_equal(forget(g, id), ERR_MISSING);
        assert_int_equal(put(g, (struct access_rule){ .id = id, .user = "8" }).kind, ERR_MISSING);
}

static void a_rule_applies_to_its_adapter_platform_and_place(void **state)
{
        struct policy_rig *g = *state;

        put(g,
            (struct access_rule){ .user = "7", .adapter = "tg", .place = "dm", .enabled = true });
        assert_true(let_in(g, "tg", "7"));
        assert_false(let_in(g, "dc", "7"));
        assert_false(policy_rig_group(g, "tg", "7", "hello").trigger);
        put(g, (struct access_rule){ .user = "discord:1*", .enabled = true });
        assert_true(let_in(g, "dc", "123"));
        assert_true(policy_rig_group(g, "dc", "123", "hello").trigger);
        assert_false(let_in(g, "dc", "21"));
        assert_false(let_in(g, "tg", "123"));
        put(g, (struct access_rule){ .user = "tele:31", .enabled = true }); /* no such platform */
        assert_false(let_in(g, "tg", "31"));
        put(g, (struct access_rule){ .user = "9", .place = "group", .enabled = true });
        assert_false(let_in(g, "tg", "9"));
        assert_true(policy_rig_group(g, "tg", "9", "hello").trigger);
}

static void a_deny_wins_over_every_allow(void **state)
{
        struct policy_rig *g = *state;
        struct decision out;
        int64_t id;

        assert_true(let_in(g, "tg", "7"));
        put(g, (struct access_rule){ .user = "7", .enabled = true });
        id = put(g,
                 (struct access_rule){
                         .user = "telegram:*", .deny = true, .reason = "spam", .enabled = true })
                     .id;
        out = policy_rig_dm(g, "tg", "7", "hello");
        assert_false(out.trigger);
        assert_string_equal(out.reason, "access rule 'acr-2' denies 'telegram:*': spam");
        assert_null(out.notice);
        assert_true(let_in(g, "dc", "7"));
        forget(g, id);
        assert_true(let_in(g, "tg", "7"));
}

static void an_expired_rule_does_not_apply(void **state)
{
        struct policy_rig *g = *state;
        int64_t now = clock_wall_ms();

        put(g, (struct access_rule){ .user = "7", .expires_ms = now - 1, .enabled = true });
        put(g, (struct access_rule){ .user = "8", .expires_ms = now + 3600000, .enabled = true });
        assert_false(let_in(g, "tg", "7"));
        assert_true(let_in(g, "tg", "8"));
}

static void a_refusal_after_an_allow_gives_only_its_own_reason(void **state)
{
        struct policy_rig *g = *state;

        put(g, (struct access_rule){ .user = "7", .enabled = true });
        policy_rig_reload(g, "[{\"name\": \"quiet\", \"mode\": \"off\"}]");
        assert_string_equal(policy_rig_dm(g, "tg", "7", "hello").reason, "rule 'quiet' says off");
}

static void a_denied_sender_gets_one_notice_and_none_in_a_group(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = { .adapter = "tg",
                               .channel = "7",
                               .sender_id = "7",
                               .sender_is_bot = true,
                               .chat = CHAT_DM,
                               .text = "hello" };
        struct decision out;
        struct buf json;

        put(g, (struct access_rule){ .user = "7",
                                     .deny = true,
                                     .message = "Please write to the office.",
                                     .enabled = true });
        assert_null(policy_rig_group(g, "tg", "7", "hello").notice);
        dispatch_decide(g->dispatch, &in, NULL, &out);
        assert_null(out.notice);
        in.sender_is_bot = false;
        buf_init(&json, 0);
        dry_run_explain(g->dispatch, &in, DRY_RUN_ALL_RULES, &json);
        buf_release(&json);
        assert_string_equal(policy_rig_dm(g, "tg", "7", "hello").notice,
                            "Please write to the office.");
        assert_null(policy_rig_dm(g, "tg", "7", "hello").notice);
}

static void an_incomplete_rule_is_refused(void **state)
{
        struct policy_rig *g = *state;

        assert_int_equal(put(g, (struct access_rule){ .enabled = true }).kind, ERR_INVALID);
        assert_int_equal(put(g, (struct access_rule){ .user = "7", .person = 3 }).kind,
                         ERR_INVALID);
        assert_int_equal(put(g, (struct access_rule){ .user = "telegram:" }).kind, ERR_INVALID);
        assert_int_equal(put(g, (struct access_rule){ .user = "7", .place = "moon" }).kind,
                         ERR_INVALID);
        assert_int_equal(put(g, (struct access_rule){ .user = "7", .message = "hi" }).kind,
                         ERR_INVALID);
        assert_int_equal(access_rules_count(g->policy->access), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_change_counts_at_once_and_after_a_restart, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_rule_applies_to_its_adapter_platform_and_place,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_deny_wins_over_every_allow, setup_open, teardown),
                cmocka_unit_test_setup_teardown(an_expired_rule_does_not_apply, setup, teardown),
                cmocka_unit_test_setup_teardown(a_refusal_after_an_allow_gives_only_its_own_reason,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_denied_sender_gets_one_notice_and_none_in_a_group,
                                                setup_open, teardown),
                cmocka_unit_test_setup_teardown(an_incomplete_rule_is_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
