/* Rules stored over the API, in addition to those of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/policy_rig.h"

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

static enum error_kind put(struct policy_rig *g, const char *name, int64_t position, bool enabled,
                           const char *json, enum stored_rule_put how)
{
        struct rule_row r = {
                .name = name, .position = position, .enabled = enabled, .json = json
        };
        struct policy_outcome o = { 0 };

        stored_rules_put(g->policy->rules, &r, how, policy_rig_done, &o);
        return policy_rig_wait(g, &o);
}

static enum error_kind forget(struct policy_rig *g, const char *name)
{
        struct policy_outcome o = { 0 };

        stored_rules_delete(g->policy->rules, name, policy_rig_done, &o);
        return policy_rig_wait(g, &o);
}

/* Which rule decides about "hello"; NULL: none. */
static const char *decider(struct policy_rig *g)
{
        return policy_rig_dm(g, "tg", "7", "hello").rule;
}

static void a_stored_rule_applies_at_once_and_after_restarts(void **state)
{
        struct policy_rig *g = *state;

        assert_null(decider(g));
        assert_int_equal(put(g, "mute", 0, true, "{\"when\":{\"sender\":\"7\"},\"mode\":\"off\"}",
                             RULE_CREATE),
                         ERR_NONE);
        assert_string_equal(decider(g), "mute");
        assert_false(policy_rig_dm(g, "tg", "7", "hello").trigger);
        policy_rig_reload(g, "[{\"name\":\"all\",\"when\":{\"sender\":\"8\"}}]");
        assert_string_equal(decider(g), "mute");
        policy_rig_restart(g);
        assert_string_equal(decider(g), "mute");
        assert_int_equal(forget(g, "mute"), ERR_NONE);
        assert_null(decider(g));
        assert_int_equal(forget(g, "mute"), ERR_MISSING);
        policy_rig_restart(g);
        assert_null(decider(g));
}

static void positions_below_0_precede_the_file(void **state)
{
        struct policy_rig *g = *state;

        policy_rig_reload(g, "[{\"name\":\"file\"}]");
        put(g, "late", 5, true, "{}", RULE_CREATE);
        assert_string_equal(decider(g), "file");
        put(g, "early", -1, true, "{}", RULE_CREATE);
        assert_string_equal(decider(g), "early");
        put(g, "earlier", -2, true, "{}", RULE_CREATE);
        assert_string_equal(decider(g), "earlier");
        put(g, "earlier", -2, false, "{}", RULE_REPLACE);
        assert_string_equal(decider(g), "early");
        put(g, "early", 6, true, "{}", RULE_REPLACE);
        assert_string_equal(decider(g), "file");
        policy_rig_reload(g, NULL);
        assert_string_equal(decider(g), "late");
        put(g, "late", 7, true, "{}", RULE_CREATE_OR_REPLACE);
        assert_string_equal(decider(g), "early");
        assert_int_equal(stored_rules_end(g->policy->rules), 8);
}

static void the_file_hides_a_stored_rule_of_its_name(void **state)
{
        struct policy_rig *g = *state;

        put(g, "x", -1, true, "{\"mode\":\"off\"}", RULE_CREATE);
        assert_false(policy_rig_dm(g, "tg", "7", "hello").trigger);
        policy_rig_reload(g, "[{\"name\":\"x\",\"mode\":\"reply\"}]");
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
        policy_rig_reload(g, NULL);
        assert_false(policy_rig_dm(g, "tg", "7", "hello").trigger);
}

static void names_of_other_gateways_are_accepted(void **state)
{
        struct policy_rig *g = *state;

        assert_int_equal(put(g, "moved", 0, true,
                             "{\"when\":{\"triggerEvents\":[\"message.received\"],"
                             "\"triggerReactions\":null,\"triggerMentionPatterns\":[\"^hello\"]},"
                             "\"mode\":\"off\"}",
                             RULE_CREATE),
                         ERR_NONE);
        assert_string_equal(decider(g), "moved");
        assert_null(policy_rig_dm(g, "tg", "7", "goodbye").rule);
        assert_int_equal(
                put(g, "both", 0, true,
                    "{\"when\":{\"event\":\"*\",\"triggerEvents\":[\"message.received\"]}}",
                    RULE_CREATE),
                ERR_INVALID);
}

static void creating_twice_and_replacing_nothing_are_refused(void **state)
{
        struct policy_rig *g = *state;

        assert_int_equal(put(g, "x", 0, true, "{}", RULE_REPLACE), ERR_MISSING);
        assert_int_equal(put(g, "x", 0, true, "{}", RULE_CREATE), ERR_NONE);
        assert_int_equal(put(g, "x", 0, true, "{\"mode\":\"off\"}", RULE_CREATE), ERR_CONFLICT);
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
}

static void mistakes_name_the_field(void **state)
{
        static const struct {
                const char *json, *says;
        } mistakes[] = {
                { "{\"when\":{\"chanel\":\"7\"}}", "rule.when: unknown key 'chanel'" },
                { "{\"debounceMs\":-7}", "rule.debounceMs: " },
                { "{\"mode\":\"loud\"}", "rule.mode: " },
                { "{\"when\":{\"text\":[\"(\"]}}", "rule.when.text[0]: '('" },
                { "{\"name\":\"y\"}",
                  "rule.name: 'y' differs from the name it is stored under, 'x'" },
        };
        struct policy_rig *g = *state;
        char name[202] = "";

        for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
                json_t *object = json_loads(mistakes[i].json, 0, NULL);
                struct error err;

                assert_int_equal(stored_rules_check("x", object, &err), -1);
                assert_int_equal(err.kind, ERR_INVALID);
                if (strncmp(err.text, mistakes[i].says, strlen(mistakes[i].says)) != 0)
                        fail_msg("wanted '%s', got '%s'", mistakes[i].says, err.text);
                assert_int_equal(put(g, "x", 0, true, mistakes[i].json, RULE_CREATE), ERR_INVALID);
                json_decref(object);
        }
        memset(name, 'n', sizeof(name) - 1);
        assert_int_equal(put(g, name, 0, true, "{}", RULE_CREATE), ERR_INVALID);
        assert_int_equal(stored_rules_count(g->policy->rules), 0);
        assert_int_equal(policy_rig_count(g, "rules"), 0);
}

static void a_rule_this_version_rejects_does_not_apply(void **state)
{
        struct policy_rig *g = *state;

        put(g, "x", 0, true, "{\"mode\":\"off\"}", RULE_CREATE);
        policy_rig_update(g, "rules SET rule = '{\"mood\":1}'", 0, 0);
        policy_rig_restart(g);
        assert_true(policy_rig_dm(g, "tg", "7", "hello").trigger);
        assert_non_null(strstr(stored_rules_at(g->policy->rules, 0)->why, "unknown key 'mood'"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_stored_rule_applies_at_once_and_after_restarts,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(positions_below_0_precede_the_file, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_file_hides_a_stored_rule_of_its_name, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(names_of_other_gateways_are_accepted, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(creating_twice_and_replacing_nothing_are_refused,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(mistakes_name_the_field, setup, teardown),
                cmocka_unit_test_setup_teardown(a_rule_this_version_rejects_does_not_apply, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
