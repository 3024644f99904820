/* Persons across platforms: recorded, linked by a code, merged and unlinked. */
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
#include "base/mem.h"
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
        struct person_changed result;
        enum error_kind kind;
};

static void on_changed(void *arg, const struct person_changed *result, const struct error *err)
{
        *(struct outcome *)arg = (struct outcome){ true, *result, err ? err->kind : ERR_NONE };
}

static struct outcome change(struct policy_rig *g, struct person_change c)
{
        struct outcome o = { 0 };

        persons_change(g->policy->persons, &c, on_changed, &o);
        while (!o.done)
                loop_step(g->loop, true);
        return o;
}

static struct outcome merge(struct policy_rig *g, int64_t source, int64_t target)
{
        return change(g, (struct person_change){
                                 .what = PERSON_MERGE, .source = source, .target = target });
}

static struct outcome unlink_account(struct policy_rig *g, const char *platform, const char *user)
{
        return change(g, (struct person_change){ .what = PERSON_UNLINK, .a = { platform, user } });
}

static void on_rule(void *arg, int64_t id, const struct error *err)
{
        assert_null(err);
        *(int64_t *)arg = id;
}

static int64_t add_rule(struct policy_rig *g, struct access_rule r)
{
        int64_t id = 0;

        r.enabled = true;
        access_rules_put(g->policy->access, &r, on_rule, &id);
        while (id == 0)
                loop_step(g->loop, true);
        return id;
}

static bool let_in(struct policy_rig *g, const char *adapter, const char *sender)
{
        return policy_rig_dm(g, adapter, sender, "hello").trigger;
}

static int64_t person(struct policy_rig *g, const char *platform, const char *user)
{
        return persons_lookup(g->policy->persons, platform, user);
}

/* ---- recording ---- */

static void an_allowed_sender_is_recorded_once(void **state)
{
        struct policy_rig *g = *state;

        assert_int_equal(person(g, "telegram", "7"), 0);
        assert_true(let_in(g, "tg", "7"));
        assert_true(person(g, "telegram", "7") > 0);
        policy_rig_update(g, "identities SET last_seen_ms = 1", 0, 0);
        assert_true(let_in(g, "tg", "7"));
        assert_int_equal(policy_rig_number(g, "last_seen_ms FROM identities"),
                         1); /* nothing changed: no write */
        assert_true(let_in(g, "dc", "7"));
        assert_int_not_equal(person(g, "discord", "7"), person(g, "telegram", "7"));
        assert_int_equal(policy_rig_count(g, "identities WHERE name = '7'"), 2);
        assert_int_equal(policy_rig_count(g, "identity_chats WHERE channel = '7'"), 2);
        policy_rig_restart(g);
        assert_true(person(g, "discord", "7") > 0);
        assert_true(let_in(g, "tg", "7"));
        assert_int_equal(policy_rig_count(g, "persons"), 2);
        assert_int_equal(policy_rig_count(g, "identities WHERE last_seen_ms > 1"), 2);
}

static void only_direct_chats_are_recorded_as_a_way_to_reach_them(void **state)
{
        struct policy_rig *g = *state;

        g->admin = "7"; /* who is also allowed in groups */
        policy_rig_reload(g, NULL);
        assert_true(policy_rig_group(g, "tg", "7", "hello").trigger);
        assert_true(person(g, "telegram", "7") > 0);
        assert_int_equal(policy_rig_count(g, "identity_chats"), 0);
        assert_true(let_in(g, "tg", "7"));
        assert_int_equal(policy_rig_count(g, "identity_chats WHERE channel = '7'"), 1);
}

static void strangers_and_dry_runs_are_not_recorded(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = {
                .adapter = "tg", .channel = "7", .sender_id = "7", .chat = CHAT_DM, .text = "hi"
        };
        struct buf json;

        assert_false(let_in(g, "tg", "7"));
        g->dm = "everyone";
        policy_rig_reload(g, NULL);
        buf_init(&json, 0);
        dry_run_explain(g->dispatch, &in, DRY_RUN_ALL_RULES, &json);
        buf_release(&json);
        assert_int_equal(persons_identity_count(g->policy->persons), 0);
        assert_int_equal(policy_rig_count(g, "identities"), 0);
}

static void software_and_unnamed_senders_are_not_recorded(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = { .adapter = "tg", .channel = "7", .chat = CHAT_DM, .text = "hi" };
        struct decision out;

        dispatch_decide(g->dispatch, &in, NULL, &out);
        assert_true(out.trigger);
        assert_null(out.extra.fn);
        g->dm = NULL; /* a client with a key */
        policy_rig_reload(g, NULL);
        assert_true(let_in(g, "tg", "7"));
        assert_int_equal(policy_rig_count(g, "identities"), 0);
}

/* ---- access across platforms ---- */

static void an_access_rule_for_a_person_covers_all_identities(void **state)
{
        struct policy_rig *g = *state;
        int64_t me, other;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        me = person(g, "telegram", "7");
        other = person(g, "discord", "9");
        g->dm = "none";
        policy_rig_reload(g, NULL);
        add_rule(g, (struct access_rule){ .person = me });
        assert_true(let_in(g, "tg", "7"));
        assert_false(let_in(g, "dc", "9"));
        assert_int_equal(merge(g, other, me).kind, ERR_NONE);
        assert_true(let_in(g, "dc", "9"));
        policy_rig_restart(g);
        assert_true(let_in(g, "dc", "9"));
        assert_int_equal(unlink_account(g, "discord", "9").kind, ERR_NONE);
        assert_false(let_in(g, "dc", "9"));
        assert_true(let_in(g, "tg", "7"));
}

static void an_allowed_account_does_not_admit_the_persons_others(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        merge(g, person(g, "discord", "9"), person(g, "telegram", "7"));
        g->dm = "none";
        policy_rig_reload(g, NULL);
        add_rule(g, (struct access_rule){ .user = "telegram:7" });
        assert_true(let_in(g, "tg", "7"));
        assert_false(let_in(g, "dc", "9"));
}

static void the_configuration_may_name_a_person(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        merge(g, person(g, "discord", "9"), person(g, "telegram", "7"));
        assert_int_equal(person(g, "discord", "9"), 1);
        g->dm = "person:per-1";
        policy_rig_reload(g, NULL);
        assert_true(let_in(g, "tg", "7"));
        assert_true(let_in(g, "dc", "9"));
        assert_false(let_in(g, "dc", "10"));
        g->dm = "person:per-2"; /* the alias means the same person */
        policy_rig_reload(g, NULL);
        assert_true(let_in(g, "tg", "7"));
}

static void an_admin_may_be_a_person(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        let_in(g, "dc", "10");
        merge(g, person(g, "discord", "9"), person(g, "telegram", "7"));
        g->admin = "person:per-1";
        policy_rig_reload(g, NULL);
        assert_non_null(strstr(policy_rig_dm(g, "dc", "10", "/pause").notice, "Only admins"));
        assert_null(strstr(policy_rig_dm(g, "dc", "10", "/help").notice, "/pause"));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", "/help").notice, "/pause"));
        assert_non_null(
                strstr(policy_rig_dm(g, "dc", "9", "/pause").notice, "The agent is silent here"));
        assert_non_null(
                strstr(policy_rig_dm(g, "tg", "7", "/pause").notice, "The agent is silent here"));
}

static void a_deny_of_one_identity_denies_the_person(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        merge(g, person(g, "discord", "9"), person(g, "telegram", "7"));
        add_rule(g, (struct access_rule){ .user = "telegram:7", .deny = true });
        assert_false(let_in(g, "tg", "7"));
        assert_false(let_in(g, "dc", "9"));
        add_rule(g, (struct access_rule){ .user = "discord:9" });
        assert_false(let_in(g, "dc", "9"));
        unlink_account(g, "discord", "9");
        assert_true(let_in(g, "dc", "9"));
        assert_false(let_in(g, "tg", "7"));
}

/* Everyone may write to tg but this entry of "block". */
static void block(struct policy_rig *g, const char *who)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        char *all = (char *)"everyone", *entry = (char *)who;
        struct setting_list dm = { &all, 1, true }, blocked = { &entry, 1, true };

        a[0] = (struct dispatch_adapter){ .name = mem_strdup("tg"),
                                          .platform = mem_strdup("telegram"),
                                          .access = access_new(&(struct access_lists){
                                                  .dm = &dm, .block = &blocked }) };
        dispatch_set(g->dispatch, a, 1, NULL, 0, "echo");
}

static void block_wins_over_access_rules_and_covers_the_person(void **state)
{
        struct policy_rig *g = *state;
        struct decision out;

        let_in(g, "tg", "7");
        let_in(g, "tg", "8");
        let_in(g, "dc", "9");
        merge(g, person(g, "discord", "9"), person(g, "telegram", "7"));
        merge(g, person(g, "telegram", "8"), person(g, "telegram", "7"));
        add_rule(g, (struct access_rule){ .user = "telegram:7" });
        add_rule(g, (struct access_rule){ .person = person(g, "telegram", "7") });
        block(g, "7");
        out = policy_rig_dm(g, "tg", "7", "hello");
        assert_false(out.trigger);
        assert_string_equal(out.reason, "'block' names '7'");
        assert_false(let_in(g, "tg", "8"));
        block(g, "9"); /* of Telegram, not their Discord account */
        assert_true(let_in(g, "tg", "7"));
        block(g, "person:per-1");
        assert_false(let_in(g, "tg", "7"));
        assert_false(let_in(g, "tg", "8"));
}

/* ---- merging ---- */

static void a_merge_keeps_rules_and_unlinking_undoes_it(void **state)
{
        struct policy_rig *g = *state;
        int64_t me, other, rule;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        let_in(g, "dc", "10");
        me = person(g, "telegram", "7");
        other = person(g, "discord", "9");
        rule = add_rule(g, (struct access_rule){ .person = other, .deny = true });
        assert_int_equal(merge(g, other, me).kind, ERR_NONE);
        /* the rule still applies to them */
        assert_non_null(access_rules_find(g->policy->access, rule));
        assert_false(let_in(g, "dc", "9"));
        assert_false(let_in(g, "tg", "7"));
        assert_int_equal(persons_current(g->policy->persons, other), me);
        assert_int_equal(merge(g, other, me).kind, ERR_CONFLICT);
        assert_int_equal(policy_rig_count(g, "identities WHERE person = 1"), 2);
        assert_int_equal(policy_rig_count(g, "journal WHERE type = 'identity.merged'"), 1);
        /* aliases follow a further merge */
        assert_int_equal(merge(g, me, person(g, "discord", "10")).kind, ERR_NONE);
        assert_int_equal(persons_current(g->policy->persons, other), 3);
        assert_false(let_in(g, "dc", "10"));
        policy_rig_restart(g);
        assert_false(let_in(g, "dc", "10"));
        /* each identity returns to its home */
        assert_int_equal(unlink_account(g, "discord", "9").result.person, other);
        assert_int_equal(persons_current(g->policy->persons, other), other);
        assert_false(let_in(g, "dc", "9"));
        assert_true(let_in(g, "tg", "7"));
        assert_true(let_in(g, "dc", "10"));
        assert_int_equal(person(g, "telegram", "7"), 3);
        assert_int_equal(unlink_account(g, "telegram", "7").result.person, me);
        assert_int_equal(unlink_account(g, "telegram", "7").kind, ERR_CONFLICT);
        assert_int_equal(policy_rig_count(g, "persons WHERE merged_into IS NOT NULL"), 0);
        assert_int_equal(policy_rig_count(g, "journal WHERE type = 'identity.unlinked'"), 2);
}

static void unlinking_leaves_earlier_merges_in_place(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "1");
        let_in(g, "tg", "2");
        let_in(g, "tg", "3");
        merge(g, 1, 2);
        merge(g, 2, 3);
        assert_int_equal(unlink_account(g, "telegram", "2").kind, ERR_NONE);
        assert_int_equal(person(g, "telegram", "1"), 3);
        /* a rule about 1 still means identity 1 */
        assert_int_equal(persons_current(g->policy->persons, 1), 3);
        assert_int_equal(person(g, "telegram", "2"), 2);
        policy_rig_restart(g);
        assert_int_equal(persons_current(g->policy->persons, 1), 3);
}

static void unlinking_the_first_identity_makes_a_new_person(void **state)
{
        struct policy_rig *g = *state;
        struct outcome o;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        merge(g, 2, 1);
        o = unlink_account(g, "telegram", "7");
        assert_int_equal(o.kind, ERR_NONE);
        assert_int_equal(o.result.person, 3);
        assert_int_equal(person(g, "telegram", "7"), 3);
        assert_int_equal(person(g, "discord", "9"), 1);
}

static void an_impossible_merge_is_refused(void **state)
{
        struct policy_rig *g = *state;
        char sender[16];

        assert_int_equal(merge(g, 1, 2).kind, ERR_MISSING);
        let_in(g, "tg", "7");
        assert_int_equal(merge(g, 1, 1).kind, ERR_CONFLICT);
        assert_int_equal(unlink_account(g, "telegram", "8").kind, ERR_MISSING);
        assert_int_equal(change(g, (struct person_change){ .what = PERSON_LINK,
                                                           .a = { "telegram", "7" },
                                                           .b = { "discord", "9" } })
                                 .kind,
                         ERR_MISSING);
        for (int i = 0; i < PERSON_MAX_IDENTITIES; i++) {
                snprintf(sender, sizeof(sender), "s%d", i);
                let_in(g, "dc", sender);
                assert_int_equal(change(g, (struct person_change){ .what = PERSON_LINK,
                                                                   .a = { "telegram", "7" },
                                                                   .b = { "discord", sender } })
                                         .kind,
                                 i + 1 < PERSON_MAX_IDENTITIES ? ERR_NONE : ERR_LIMIT);
        }
        policy_rig_restart(g);
        assert_int_equal(person(g, "discord", "s0"), 1);
}

/* ---- linking by a code ---- */

/* The code in the answer to "/link". */
static const char *ask_code(struct policy_rig *g, const char *adapter, const char *sender)
{
        static char text[40];
        struct decision out = policy_rig_dm(g, adapter, sender, "/link");

        assert_false(out.trigger);
        assert_non_null(out.notice);
        assert_int_equal(strncmp(out.notice, "Your code is ", 13), 0);
        snprintf(text, sizeof(text), "/link %.9s", out.notice + 13);
        return text;
}

static void a_code_links_two_accounts(void **state)
{
        struct policy_rig *g = *state;
        struct decision out;
        char line[40];

        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        out = policy_rig_dm(g, "dc", "9", line);
        assert_false(out.trigger);
        assert_non_null(strstr(out.notice, "Done: "));
        assert_true(person(g, "telegram", "7") > 0);
        assert_int_equal(person(g, "discord", "9"), person(g, "telegram", "7"));
        /* used up */
        assert_non_null(
                strstr(policy_rig_dm(g, "dc", "10", line).notice, "This code is not valid"));
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", line).notice, "I already know"));
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        /* their own code */
        assert_non_null(strstr(policy_rig_dm(g, "tg", "7", line).notice, "This code is not valid"));
        assert_true(policy_rig_dm(g, "tg", "7", "/linked list?").trigger);
        assert_true(policy_rig_group(g, "tg", "8", "/link").trigger ==
                    policy_rig_group(g, "tg", "8", "hello").trigger);
}

static void only_a_person_in_a_direct_chat_links(void **state)
{
        struct policy_rig *g = *state;
        struct incoming in = {
                .adapter = "tg", .channel = "7", .sender_id = "7", .chat = CHAT_DM, .text = "/link"
        };
        struct incoming others[] = { in, in, in, in };
        struct decision out;

        others[0].chat = CHAT_GROUP;
        others[1].sender_is_bot = true;
        others[2].type = EVENT_MESSAGE_EDITED;
        others[3].sender_id = NULL;
        g->admin = "7"; /* who is also allowed in groups */
        policy_rig_reload(g, NULL);
        for (size_t i = 0; i < COUNT(others); i++) {
                dispatch_decide(g->dispatch, &others[i], NULL, &out);
                if (out.extra.fn)
                        policy_rig_commit(g, &out);
                if (out.notice)
                        fail_msg("%zu: %s", i, out.notice);
        }
        assert_non_null(policy_rig_dm(g, "tg", "7", "/link").notice);
        g->dm = NULL; /* a client with a key writes to the agent */
        policy_rig_reload(g, NULL);
        assert_true(policy_rig_dm(g, "tg", "7", "/link").trigger);
        dispatch_set_policy(g->dispatch, NULL);
        g->dm = "everyone";
        policy_rig_reload(g, NULL);
        assert_true(policy_rig_dm(g, "tg", "7", "/link").trigger);
        dispatch_set_policy(g->dispatch, g->policy);
}

static void help_mentions_links_in_direct_chats(void **state)
{
        struct policy_rig *g = *state;

        g->admin = "7"; /* who may also write in groups */
        policy_rig_reload(g, NULL);
        assert_non_null(strstr(policy_rig_dm(g, "tg", "7", "/help").notice, "/link"));
        assert_null(strstr(policy_rig_group(g, "tg", "7", "/help").notice, "/link"));
}

static void a_code_ends_after_ten_minutes_or_with_the_next(void **state)
{
        struct policy_rig *g = *state;
        int64_t now_ms = clock_wall_ms();
        char first[40], second[40];

        dispatch_set_clock(g->dispatch, now_ms);
        snprintf(first, sizeof(first), "%s", ask_code(g, "tg", "7"));
        snprintf(second, sizeof(second), "%s", ask_code(g, "tg", "7"));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", first).notice, "is not valid"));
        dispatch_set_clock(g->dispatch, now_ms + 600000);
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", second).notice, "is not valid"));
        snprintf(first, sizeof(first), "%s", ask_code(g, "tg", "7"));
        dispatch_set_clock(g->dispatch, now_ms + 1199999);
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", first).notice, "Done: "));
}

static void a_thousand_link_codes_may_wait(void **state)
{
        struct policy_rig *g = *state;
        int64_t now_ms = clock_wall_ms();
        struct incoming in = { .adapter = "tg", .chat = CHAT_DM, .text = "/link" };
        struct decision out;
        char sender[16];

        in.channel = in.sender_id = sender;
        for (int i = 0; i <= 1001; i++) {
                snprintf(sender, sizeof(sender), "%d", i);
                dispatch_set_clock(g->dispatch, now_ms + (i <= 1000 ? 0 : 600000));
                dispatch_decide(g->dispatch, &in, NULL, &out);
                out.extra.done(out.extra.arg, NULL); /* without storing it */
                assert_string_equal(out.reason,
                                    i == 1000 ? "too many codes are waiting (/link)"
                                              : "a code for another account was sent (/link)");
        }
}

static void a_stranger_is_allowed_as_the_linked_person(void **state)
{
        struct policy_rig *g = *state;
        char line[40];

        add_rule(g, (struct access_rule){ .user = "telegram:7" });
        assert_null(policy_rig_dm(g, "dc", "9", "/link").notice); /* a stranger gets no code */
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        add_rule(g, (struct access_rule){ .person = person(g, "telegram", "7") });
        assert_false(let_in(g, "dc", "9"));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", line).notice, "Done: "));
        assert_true(let_in(g, "dc", "9"));
        add_rule(g, (struct access_rule){ .user = "discord:9", .deny = true });
        assert_false(let_in(g, "tg", "7"));
        assert_false(let_in(g, "dc", "9"));
}

static void a_stranger_with_a_code_is_not_asked_to_pair(void **state)
{
        struct policy_rig *g = *state;
        char line[40];

        g->dm = "pairing";
        policy_rig_reload(g, NULL);
        add_rule(g, (struct access_rule){ .user = "telegram:7" });
        assert_null(policy_rig_dm(g, "dc", "9", "/link ABCD-2345").notice);
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        assert_string_equal(policy_rig_dm(g, "dc", "9", line).notice,
                            "Done: this account and the one on telegram are linked now.");
        assert_int_equal(policy_rig_count(g, "pairings"), 0);
}

static void codes_cannot_be_guessed(void **state)
{
        struct policy_rig *g = *state;
        struct decision out = { 0 };

        add_rule(g, (struct access_rule){ .user = "discord:9" });
        for (int i = 0; i < LINK_TRIES; i++) {
                out = policy_rig_dm(g, "dc", "9", "/link ABCD-2345");
                assert_non_null(strstr(out.notice, "This code is not valid"));
        }
        out = policy_rig_dm(g, "dc", "9", "/link ABCD-2345");
        assert_null(out.notice);
        assert_string_equal(out.reason, "the sender has typed too many codes (/link)");
        out = policy_rig_dm(g, "dc", "stranger", "/link ABCD-2345");
        assert_null(out.notice);
        assert_string_equal(out.reason, "no such code is waiting (/link)");
        add_rule(g, (struct access_rule){ .user = "discord:8", .deny = true });
        out = policy_rig_dm(g, "dc", "8", "/link ABCD-2345");
        assert_null(out.notice);
        assert_non_null(strstr(out.reason, "denies 'discord:8'"));
}

static void a_link_beyond_the_limit_is_refused(void **state)
{
        struct policy_rig *g = *state;
        char line[40], sender[16];

        let_in(g, "tg", "7");
        for (int i = 1; i < PERSON_MAX_IDENTITIES; i++) {
                snprintf(sender, sizeof(sender), "%d", 100 + i);
                let_in(g, "dc", sender);
                assert_int_equal(
                        merge(g, person(g, "discord", sender), person(g, "telegram", "7")).kind,
                        ERR_NONE);
        }
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7"));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", line).notice, "at most 20"));
        assert_true(person(g, "discord", "9") != person(g, "telegram", "7"));
}

static void an_admin_cannot_be_tricked_into_a_link(void **state)
{
        struct policy_rig *g = *state;
        char line[40];

        let_in(g, "tg", "7");
        g->admin = "person:per-1";
        policy_rig_reload(g, NULL);
        snprintf(line, sizeof(line), "%s", ask_code(g, "dc", "9"));
        assert_non_null(strstr(policy_rig_dm(g, "tg", "7", line).notice, "an admin's"));
        assert_true(person(g, "discord", "9") != person(g, "telegram", "7"));
        assert_null(strstr(policy_rig_dm(g, "dc", "9", "/help").notice, "/pause"));
        snprintf(line, sizeof(line), "%s", ask_code(g, "tg", "7")); /* an admin may begin a link */
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", line).notice, "Done: "));
        assert_non_null(strstr(policy_rig_dm(g, "dc", "9", "/help").notice, "/pause"));
}

static void link_codes_are_rate_limited(void **state)
{
        struct policy_rig *g = *state;

        add_rule(g, (struct access_rule){ .user = "discord:9" });
        for (int i = 0; i < 20; i++)
                ask_code(g, "dc", "9");
        assert_null(policy_rig_dm(g, "dc", "9", "/link").notice);
}

static void a_rule_for_a_person_follows_a_merge(void **state)
{
        struct policy_rig *g = *state;

        let_in(g, "tg", "7");
        let_in(g, "dc", "9");
        policy_rig_reload(
                g,
                "[{\"name\":\"his\",\"when\":{\"sender\":\"person:per-2\"}},{\"name\":\"all\"}]");
        assert_string_equal(policy_rig_dm(g, "tg", "7", "hi").rule, "all");
        assert_string_equal(policy_rig_dm(g, "dc", "9", "hi").rule, "his");
        merge(g, 2, 1);
        assert_string_equal(policy_rig_dm(g, "tg", "7", "hi").rule, "his");
        assert_string_equal(policy_rig_dm(g, "dc", "9", "hi").rule, "his");
        unlink_account(g, "discord", "9");
        assert_string_equal(policy_rig_dm(g, "tg", "7", "hi").rule, "all");
        assert_string_equal(policy_rig_dm(g, "dc", "9", "hi").rule, "his");
}

#define TEST(name, begin) cmocka_unit_test_setup_teardown(name, begin, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(an_allowed_sender_is_recorded_once, setup_open),
                TEST(only_direct_chats_are_recorded_as_a_way_to_reach_them, setup_open),
                TEST(strangers_and_dry_runs_are_not_recorded, setup),
                TEST(software_and_unnamed_senders_are_not_recorded, setup_open),
                TEST(an_access_rule_for_a_person_covers_all_identities, setup_open),
                TEST(an_allowed_account_does_not_admit_the_persons_others, setup_open),
                TEST(the_configuration_may_name_a_person, setup_open),
                TEST(an_admin_may_be_a_person, setup_open),
                TEST(a_deny_of_one_identity_denies_the_person, setup_open),
                TEST(block_wins_over_access_rules_and_covers_the_person, setup_open),
                TEST(a_merge_keeps_rules_and_unlinking_undoes_it, setup_open),
                TEST(a_rule_for_a_person_follows_a_merge, setup_open),
                TEST(unlinking_leaves_earlier_merges_in_place, setup_open),
                TEST(unlinking_the_first_identity_makes_a_new_person, setup_open),
                TEST(an_impossible_merge_is_refused, setup_open),
                TEST(a_code_links_two_accounts, setup_open),
                TEST(only_a_person_in_a_direct_chat_links, setup_open),
                TEST(help_mentions_links_in_direct_chats, setup_open),
                TEST(a_code_ends_after_ten_minutes_or_with_the_next, setup_open),
                TEST(a_thousand_link_codes_may_wait, setup_open),
                TEST(a_stranger_is_allowed_as_the_linked_person, setup),
                TEST(a_stranger_with_a_code_is_not_asked_to_pair, setup),
                TEST(codes_cannot_be_guessed, setup),
                TEST(a_link_beyond_the_limit_is_refused, setup_open),
                TEST(an_admin_cannot_be_tricked_into_a_link, setup_open),
                TEST(link_codes_are_rate_limited, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
