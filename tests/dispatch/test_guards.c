/* Each guard with a whole road: a refusal is a row of the trigger log with its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/placement_stub.h"
#include "base/clock.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/dry_run.h"
#include "dispatch/limits/limits.h"
#include "dispatch_rig.h"

#define TALK "[{\"name\": \"all\", \"when\": {\"event\": \"*\", \"bots\": \"all\"}}]"

struct fixture {
        struct rig *rig;
        struct dispatch *dispatch;
};

static void open_with(struct fixture *f, const char *rules, struct dispatch_adapter a)
{
        f->rig = rig_new();
        f->dispatch = rig_dispatch(rules, a);
        f->rig->auto_answer = f->rig->auto_send = true;
        rig_decided_by(f->rig, f->dispatch);
}

static void close_all(struct fixture *f)
{
        dispatch_free(f->dispatch);
        rig_free(f->rig);
}

static void hear(struct fixture *f, const struct incoming *in)
{
        unsigned acks = f->rig->acks;

        rig_receive(f->rig, in);
        rig_until(f->rig, &f->rig->acks, acks + 1);
        rig_until_idle(f->rig);
}

/* "skipped: why", or "done". */
static const char *last_row(struct fixture *f)
{
        return rig_text(
                f->rig,
                "status || coalesce(': ' || reason, '') FROM trigger_log ORDER BY event DESC "
                "LIMIT 1");
}

/* All guards would refuse; satisfying them one by one shows their order. */
static void guards_refuse_in_the_order_of_the_table(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "");
        struct fixture f;

        (void)state;
        a.rate = (struct turn_rate){ 1, 60 };
        a.max_hops = 0;
        a.budget_microusd = 1;
        a.max_age_seconds = 1;
        open_with(&f,
                  "[{\"name\": \"talk\", \"when\": {\"text\": \"hello\", \"bots\": \"all\"}}, "
                  "{\"when\": {\"event\": \"reaction.*\", \"text\": \"x\"}}]",
                  a);
        dispatch_ended(f.dispatch, &(struct turn_run){ .adapter = CHAT },
                       &(struct turn_outcome){ .cost_microusd = 5 });
        in.hops = 1;
        in.is_own = true;
        in.time_ms = NOON - 10 * SECONDS;
        hear(&f, &in);
        assert_string_equal(last_row(&f), "skipped: it is the bot's own message");
        in.is_own = false;
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "there is nothing to answer"));
        in.raw_text = "@mybot"; /* a mention alone */
        hear(&f, &in);
        assert_string_equal(last_row(&f), "skipped: no rule matched: 2 tried");
        in.raw_text = NULL;
        in.text = "lunch?";
        hear(&f, &in);
        assert_string_equal(last_row(&f), "skipped: no rule matched: 2 tried");
        in.text = "hello";
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "expired: it is older than the 1 seconds"));
        in.time_ms = NOON;
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "skipped: it has passed through 1 bots"));
        in.hops = 0;
        hear(&f, &in);
        assert_string_equal(last_row(&f),
                            "skipped: the turns of adapter 'chat' have cost $0.00 today, its "
                            "budget is $0.00 (budget.usdPerDay)");
        assert_int_equal(f.rig->run_count, 0);
        dispatch_set_clock(f.dispatch, NOON + (int64_t)86400 * SECONDS); /* tomorrow */
        in.time_ms = NOON + (int64_t)86400 * SECONDS;
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        in.hops = 1; /* the rate comes before the hops */
        hear(&f, &in);
        assert_non_null(
                strstr(last_row(&f), "skipped: the sender caused 1 turns within 60 seconds"));
        close_all(&f);
}

static void access_is_checked_before_the_rules(void **state)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct dispatch *d = dispatch_new();
        struct incoming in = group_message("7", "/status");
        struct decision out;

        (void)state;
        a[0] = rig_adapter();
        a[0].name = mem_strdup(CHAT);
        a[0].platform = mem_strdup("discord");
        dispatch_set(d, a, 1, NULL, 0, "echo");
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, NULL, &out);
        assert_string_equal(out.reason, "adapter 'chat' allows no one");
        assert_int_equal(out.command, COMMAND_NONE); /* strangers cannot give commands */
        assert_null(out.notice);
        dispatch_free(d);
}

/* ---- bots ---- */

static void a_bot_loop_is_stopped_until_a_person_writes(void **state)
{
        struct incoming bot = group_message("9", "ping"),
                        ann = group_message("7", "what are you two doing?"),
                        own = group_message("5", "pong"), gone = group_message(NULL, NULL);
        struct fixture f;

        (void)state;
        open_with(&f, TALK, rig_adapter());
        bot.sender_is_bot = true;
        own.is_own = true;
        gone.type = EVENT_MESSAGE_DELETED;
        for (int i = 0; i < 4; i++)
                hear(&f, &bot); /* without a hop count */
        assert_int_equal(f.rig->run_count, 3);
        assert_string_equal(
                last_row(&f),
                "skipped: 3 messages of bots in a row were answered here, adapter 'chat' allows no "
                "more until a person writes (maxHops)");
        hear(&f, &gone); /* a deletion does not end the loop */
        assert_string_equal(last_row(&f), "done");
        hear(&f, &own); /* nor does the bot's part in it */
        hear(&f, &bot);
        assert_non_null(strstr(last_row(&f), "in a row"));
        bot.channel = "457"; /* another channel has its own count */
        hear(&f, &bot);
        assert_string_equal(last_row(&f), "done");
        bot.channel = "456";
        hear(&f, &ann);
        assert_string_equal(last_row(&f), "done");
        for (int i = 0; i < 3; i++) {
                hear(&f, &bot);
                assert_string_equal(last_row(&f), "done");
        }
        hear(&f, &bot);
        assert_non_null(strstr(last_row(&f), "in a row"));
        /* a loop is never quiet */
        dispatch_set_clock(f.dispatch, NOON + 120 * SECONDS);
        for (int i = 0; i < 3; i++) {
                hear(&f, &bot);
                assert_string_equal(last_row(&f), "done");
        }
        hear(&f, &bot);
        assert_non_null(strstr(last_row(&f), "in a row"));
        close_all(&f);
}

static bool triggers(struct dispatch *d, const struct incoming *in,
                     const struct placement_query *query)
{
        struct decision out;

        dispatch_decide(d, in, query, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL); /* without storing it */
        return out.trigger;
}

static void loops_are_counted_in_a_thousand_active_chats(void **state)
{
        struct dispatch *d = rig_dispatch(TALK, rig_adapter());
        struct incoming bot = group_message("9", "ping");
        char channel[16];

        (void)state;
        bot.sender_is_bot = true;
        bot.channel = channel;
        for (int i = 0; i <= 1000; i++) {
                snprintf(channel, sizeof(channel), "%d", i);
                assert_true(triggers(d, &bot, BEGINS_TURN));
        }
        for (int i = 0; i < 5; i++)
                assert_true(triggers(d, &bot, BEGINS_TURN)); /* one too many to be counted */
        dispatch_set_clock(d, NOON + 120 * SECONDS);         /* all others are quiet */
        for (int i = 0; i < 3; i++)
                assert_true(triggers(d, &bot, BEGINS_TURN));
        assert_false(triggers(d, &bot, BEGINS_TURN));
        dispatch_free(d);
}

/* ---- reactions ---- */

static struct incoming reaction(const char *sender, const char *emoji, const char *message)
{
        struct incoming in = group_message(sender, NULL);

        in.type = EVENT_REACTION_RECEIVED;
        in.emoji = emoji;
        in.id = message;
        return in;
}

static void a_repeated_reaction_causes_no_second_turn(void **state)
{
        struct incoming in = reaction("7", "👍", "900");
        struct fixture f;

        (void)state;
        open_with(&f, TALK, rig_adapter());
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        in.type = EVENT_REACTION_REMOVED; /* a different kind */
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        in.type = EVENT_REACTION_RECEIVED;
        hear(&f, &in);
        assert_string_equal(
                last_row(&f),
                "skipped: the same reaction of the sender on this message has triggered already");
        assert_int_equal(rig_count(f.rig, "journal WHERE type LIKE 'reaction.%'"), 3);
        assert_int_equal(f.rig->run_count, 2);
        in.id = "901"; /* another message */
        hear(&f, &in);
        in.channel = "457"; /* the same number in another chat */
        in.id = "900";
        hear(&f, &in);
        assert_int_equal(f.rig->run_count, 4);
        dispatch_set_clock(f.dispatch, NOON + REACTION_LIMIT_SAME_MS); /* the next day */
        in.channel = "456";
        hear(&f, &in);
        assert_int_equal(f.rig->run_count, 5);
        close_all(&f);
}

static void reactions_on_one_message_cause_three_turns(void **state)
{
        static const char *const people[] = { "11", "12", "13", "14" };
        struct incoming in;
        struct fixture f;
        struct error err;

        (void)state;
        open_with(&f, TALK, rig_adapter());
        for (size_t i = 0; i < COUNT(people); i++) {
                in = reaction(people[i], "🔬", "900");
                hear(&f, &in);
        }
        assert_string_equal(
                last_row(&f),
                "skipped: reactions on this message have triggered 3 times, more are not allowed");
        assert_int_equal(f.rig->run_count, 3);
        /* after a restart, for any sender */
        dispatch_free(f.dispatch);
        f.dispatch = rig_dispatch(TALK, rig_adapter());
        dispatch_set_clock(f.dispatch, clock_wall_ms());
        assert_int_equal(dispatch_restore(f.dispatch, f.rig->store, &err), 0);
        rig_decided_by(f.rig, f.dispatch);
        in = reaction("15", "👍", "900");
        hear(&f, &in);
        assert_int_equal(f.rig->run_count, 3);
        in = reaction("11", "🔬", "900");
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "the same reaction"));
        in = reaction("11", "🔬", "901");
        hear(&f, &in);
        assert_int_equal(f.rig->run_count, 4);
        close_all(&f);
}

static void only_reactions_on_a_known_message_are_limited(void **state)
{
        struct dispatch *d = rig_dispatch(TALK, rig_adapter());
        struct incoming in = group_message("7", "hello");

        (void)state;
        in.id = "900";
        for (int i = 0; i < 2; i++) {
                assert_true(triggers(d, &in, BEGINS_TURN)); /* a message is no reaction */
                in.type = EVENT_MESSAGE_EDITED;
        }
        for (int i = 0; i < REACTION_LIMIT_PER_MESSAGE; i++) {
                static const char *const emoji[] = { "1", "2", "3" };
                struct incoming one = reaction("7", emoji[i], "900");

                assert_true(triggers(d, &one, BEGINS_TURN));
        }
        assert_true(triggers(d, &in, BEGINS_TURN));
        in = reaction("7", "4", "900");
        assert_false(triggers(d, &in, BEGINS_TURN));
        dispatch_set_clock(d, NOON + REACTION_LIMIT_COUNT_MS);
        assert_true(triggers(d, &in, BEGINS_TURN));
        in.id = NULL;
        for (int i = 0; i <= REACTION_LIMIT_PER_MESSAGE; i++)
                assert_true(triggers(d, &in, BEGINS_TURN));
        dispatch_free(d);
}

static void the_oldest_reacted_message_is_evicted(void **state)
{
        struct reaction_limits *r = reaction_limits_new(2);
        struct incoming a = reaction("7", "👍", "1"), b = reaction("7", "👍", "2"),
                        c = reaction("7", "👍", "3");

        (void)state;
        reaction_limit_count(r, &a, NOON);
        reaction_limit_count(r, &b, NOON);
        reaction_limit_count(r, &c, NOON);
        assert_int_equal(reaction_limit_size(r), 2);
        assert_int_equal(reaction_limit_check(r, &a, NOON), REACTION_NEW);
        assert_int_equal(reaction_limit_check(r, &c, NOON), REACTION_REPEATED);
        reaction_limits_free(r);
}

static void restoring_reactions_and_costs_uses_an_index(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        assert_int_equal(
                rig_count(g, "sqlite_master WHERE name IN ('trigger_log_reactions', 'turns_cost')"),
                2);
        rig_free(g);
}

/* ---- money ---- */

static void spend(struct fixture *f, const char *rule, int64_t microusd)
{
        struct turn_run run = { .adapter = CHAT, .rule = rule };

        dispatch_ended(f->dispatch, &run, &(struct turn_outcome){ .cost_microusd = microusd });
}

static void a_used_up_budget_is_notified_once_until_midnight(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "draw a cat");
        struct fixture f;

        (void)state;
        a.budget_microusd = 2000000;
        open_with(&f,
                  "[{\"name\": \"dear\", \"when\": {\"text\": \"^draw\"}, \"budget\": "
                  "{\"usdPerDay\": 0.5}}, {\"name\": \"rest\"}]",
                  a);
        spend(&f, "dear", 499999);
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        spend(&f, "dear", 1);
        hear(&f, &in);
        assert_string_equal(
                last_row(&f),
                "skipped: the turns of rule 'dear' have cost $0.50 today, its budget is $0.50 "
                "(budget.usdPerDay)");
        hear(&f, &in);
        assert_int_equal(rig_count(f.rig, "deliveries WHERE turn IS NULL OR turn = 0"), 1);
        assert_non_null(strstr(rig_text(f.rig, "payload FROM deliveries ORDER BY id DESC LIMIT 1"),
                               "My budget for today is used up"));
        in.text = "hello"; /* the other rule works until the adapter's budget is used up */
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        spend(&f, NULL, 1500000);
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "the turns of adapter 'chat' have cost $2.00 today"));
        dispatch_set_clock(f.dispatch, NOON + (int64_t)43200 * SECONDS); /* midnight */
        hear(&f, &in);
        assert_string_equal(last_row(&f), "done");
        close_all(&f);
}

static void todays_costs_count_after_a_restart(void **state)
{
        static const char rules[] = "[{\"name\": \"dear\", \"budget\": {\"usdPerDay\": 0.5}}]";
        struct incoming in = group_message("7", "draw a cat");
        struct fixture f;
        struct error err;

        (void)state;
        open_with(&f, rules, rig_adapter());
        hear(&f, &in);
        rig_update(f.rig, "turns SET cost_microusd = ?1", 700000, 0);
        dispatch_free(f.dispatch);
        f.dispatch = rig_dispatch(rules, rig_adapter());
        dispatch_set_clock(f.dispatch, clock_wall_ms());
        assert_int_equal(dispatch_restore(f.dispatch, f.rig->store, &err), 0);
        rig_decided_by(f.rig, f.dispatch);
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "the turns of rule 'dear' have cost $0.70 today"));
        assert_int_equal(f.rig->run_count, 1);
        close_all(&f);
}

/* Ends a turn of this agent elsewhere, so that its costs are known. */
static void cost(struct fixture *f, const char *agent, int64_t microusd)
{
        struct turn_run run = { .adapter = "elsewhere", .agent = agent };

        dispatch_ended(f->dispatch, &run, &(struct turn_outcome){ .cost_microusd = microusd });
}

/* In a channel of its own, so that the turn need not wait; returns once it is decided. */
static void ask(struct fixture *f, const char *channel)
{
        struct incoming in = group_message("7", "draw a cat");
        int64_t rows = rig_count(f->rig, "trigger_log");

        in.channel = channel;
        rig_receive(f->rig, &in);
        rig_until_count(f->rig, "trigger_log", rows + 1);
}

static void unfinished_turns_count_as_their_agent_cost_lately(void **state)
{
        struct fixture f;

        (void)state;
        open_with(&f, "[{\"name\": \"dear\", \"budget\": {\"usdPerDay\": 1}}]", rig_adapter());
        f.rig->auto_answer = false;
        cost(&f, "echo", 400000);
        spend(&f, "dear", 300000);
        ask(&f, "a");
        ask(&f, "b");
        rig_until(f.rig, &f.rig->run_count, 2);
        ask(&f, "c");
        assert_string_equal(
                last_row(&f),
                "skipped: the turns of rule 'dear' have cost $0.30 today, $0.80 more is expected "
                "of 2 unfinished, its budget is $1.00 (budget.usdPerDay)");
        assert_non_null(strstr(rig_text(f.rig, "payload FROM deliveries ORDER BY id DESC LIMIT 1"),
                               "Please try again in a few minutes"));
        rig_answer(f.rig, 0, "for nothing"); /* releases its expected cost */
        rig_until(f.rig, &f.rig->ended, 1);
        ask(&f, "c");
        rig_until(f.rig, &f.rig->run_count, 3);
        assert_int_equal(f.rig->run_count, 3);
        close_all(&f);
}

static void unfinished_turns_count_after_a_restart(void **state)
{
        static const char rules[] = "[{\"name\": \"dear\", \"budget\": {\"usdPerDay\": 1}}]";
        struct fixture f;
        struct error err;

        (void)state;
        open_with(&f, rules, rig_adapter());
        ask(&f, "a");
        rig_until_idle(f.rig);
        rig_update(f.rig, "turns SET cost_microusd = ?1", 700000, 0);
        f.rig->auto_answer = false;
        ask(&f, "b");
        rig_until(f.rig, &f.rig->run_count, 2);
        dispatch_free(f.dispatch);
        f.dispatch = rig_dispatch(rules, rig_adapter());
        dispatch_set_clock(f.dispatch, clock_wall_ms());
        assert_int_equal(dispatch_restore(f.dispatch, f.rig->store, &err), 0);
        rig_decided_by(f.rig, f.dispatch);
        ask(&f, "c");
        assert_non_null(strstr(last_row(&f),
                               "have cost $0.70 today, $0.70 more is expected of 1 unfinished"));
        assert_int_equal(f.rig->run_count, 2);
        close_all(&f);
}

static bool admitted(struct dispatch *d, const char *trace, bool joins)
{
        struct incoming in = group_message("7", "draw a cat");

        in.trace = trace;
        return triggers(d, &in, joins ? JOINS_TURN : BEGINS_TURN);
}

/* Clients may repeat a trace id, and turns may end without having begun here. */
static void expected_costs_count_once_per_turn(void **state)
{
        struct dispatch *d = rig_dispatch("[{\"name\": \"dear\"}]", rig_adapter());
        struct turn_run run = { .adapter = CHAT, .rule = "dear", .agent = "echo", .trace = "t" };
        struct turn_outcome nothing = { 0 };
        struct dispatch_adapter limited = rig_adapter();

        (void)state;
        dispatch_ended(d, &run, &(struct turn_outcome){ .cost_microusd = 100000 });
        limited.budget_microusd = 400000;
        rig_set(d, "[{\"name\": \"dear\"}]", limited);
        for (int i = 0; i < 3; i++)
                assert_true(admitted(d, "t", false));
        assert_false(admitted(d, "t", false)); /* 0.1 and three times 0.1 */
        assert_true(admitted(d, "t", true));   /* the turn it joins is counted already */
        dispatch_ended(d, &run, &nothing);
        assert_true(admitted(d, "t", false));
        assert_false(admitted(d, "u", false));
        for (int i = 0; i < 5; i++)
                dispatch_ended(d, &run, &nothing);
        for (int i = 0; i < 3; i++)
                assert_true(admitted(d, "u", false));
        assert_false(admitted(d, "u", false));
        /* midnight resets what was spent, not what is expected */
        dispatch_set_clock(d, NOON + (int64_t)43200 * SECONDS);
        assert_true(admitted(d, "u", false));
        assert_false(admitted(d, "u", false));
        /* their ends were never reported */
        dispatch_set_clock(d, NOON + (int64_t)3 * 86400 * SECONDS);
        run.trace = "other";
        dispatch_ended(d, &run, &nothing);
        for (int i = 0; i < 4; i++)
                assert_true(admitted(d, "u", false));
        assert_false(admitted(d, "u", false));
        dispatch_free(d);
}

static void an_ambient_rule_sends_no_notices(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "hello");
        struct fixture f;

        (void)state;
        a.ambient_rate = (struct turn_rate){ 1, 60 };
        open_with(&f,
                  "[{\"name\": \"room\", \"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]",
                  a);
        f.rig->history[0] =
                (struct rig_line){ .id = "1", .sender = "7", .name = "Ann", .text = "hello" };
        f.rig->history_count = 1;
        hear(&f, &in);
        hear(&f, &in);
        assert_non_null(strstr(last_row(&f), "the sender caused 1 turns"));
        assert_int_equal(rig_count(f.rig, "deliveries WHERE payload LIKE '%Too many%'"), 0);
        close_all(&f);
}

static bool begins_turn(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, BEGINS_TURN, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out.trigger;
}

static void listening_does_not_use_up_the_limit_of_requests(void **state)
{
        static const char *const rules[] = {
                "[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]",
                "[{\"when\": {\"mention\": true}}, {\"mode\": \"silent\", \"when\": {\"channel\": "
                "\"456\"}}]",
        };
        struct dispatch_adapter a = rig_adapter();
        struct incoming chatter = group_message("7", "nice weather"), asked = chatter;

        (void)state;
        a.rate = (struct turn_rate){ 2, 60 };
        a.ambient_rate = (struct turn_rate){ 3, 60 };
        asked.is_mention = true;
        for (size_t i = 0; i < COUNT(rules); i++) {
                struct dispatch *d = rig_dispatch(rules[i], a);

                for (int n = 0; n < 3; n++)
                        assert_true(begins_turn(d, &chatter));
                assert_false(begins_turn(d, &chatter));
                assert_non_null(strstr(d->reason.data, "(ambientRateLimit)"));
                for (int n = 0; n < 2; n++)
                        assert_true(begins_turn(d, &asked));
                assert_false(begins_turn(d, &asked));
                assert_non_null(strstr(d->reason.data, "(rateLimit)"));
                dispatch_set_clock(d, NOON + 60 * SECONDS);
                assert_true(begins_turn(d, &chatter)); /* nor do requests end the listening */
                dispatch_free(d);
        }
}

static void a_rule_has_one_rate_for_both_and_counts_them_apart(void **state)
{
        struct dispatch *d =
                rig_dispatch("[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}, "
                             "\"rateLimit\": {\"turns\": 1, \"seconds\": 60}}]",
                             rig_adapter());
        struct incoming chatter = group_message("7", "nice weather"), reply = chatter;

        (void)state;
        reply.is_reply = true;
        assert_true(begins_turn(d, &chatter));
        assert_false(begins_turn(d, &chatter));
        assert_true(begins_turn(d, &reply));
        assert_false(begins_turn(d, &reply));
        dispatch_free(d);
}

/* ---- placement and dry runs ---- */

static enum placement refuse(void *arg, struct decision *d)
{
        d->reason = arg;
        return PLACEMENT_REFUSED;
}

static void a_message_without_room_or_turn_costs_nothing(void **state)
{
        char full[] = "the conversation is full";
        struct placement_query query = { .ask = refuse, .arg = full };
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "draw a cat");
        struct dispatch *d;
        struct decision out;

        (void)state;
        a.rate = (struct turn_rate){ 1, 60 };
        d = rig_dispatch(TALK, a);
        in.is_awaited = true;
        dispatch_decide(d, &in, &query, &out);
        assert_false(out.trigger);
        assert_ptr_equal(out.reason, full);
        assert_null(out.notice);
        assert_true(admitted(d, "t", true));
        assert_true(admitted(d, "t", false));
        assert_false(admitted(d, "t", false));
        assert_true(admitted(d, "t", true));
        dispatch_free(d);
}

/* Yours to free. */
static char *explain(struct dispatch *d, const struct incoming *in)
{
        struct buf json;

        buf_init(&json, 0);
        dry_run_explain(d, in, DRY_RUN_ALL_RULES, &json);
        return buf_take(&json);
}

static void a_dry_run_reports_limits_and_uses_up_nothing(void **state)
{
        struct turn_run run = { .adapter = CHAT };
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "draw a cat");
        struct dispatch *d;
        struct decision out;
        char *json;

        (void)state;
        a.rate = (struct turn_rate){ 1, 60 };
        a.budget_microusd = 1000000;
        d = rig_dispatch(TALK, a);
        for (int i = 0; i < 2; i++) {
                json = explain(d, &in);
                assert_non_null(strstr(json, "\"trigger\":true"));
                assert_non_null(strstr(json, "\"waitMs\":0"));
                free(json);
        }
        assert_true(admitted(d, "t", false));
        json = explain(d, &in); /* the rate is reported beside the decision */
        assert_non_null(strstr(json, "\"trigger\":true"));
        assert_non_null(strstr(json, "\"waitMs\":60000"));
        free(json);
        dispatch_ended(d, &run, &(struct turn_outcome){ .cost_microusd = 1000000 });
        in.sender_id = "8";
        json = explain(d, &in);
        assert_non_null(strstr(json, "\"guard\":\"budget\""));
        free(json);
        in.sender_is_bot = true;
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        assert_false(out.trigger);
        assert_null(out.notice);
        in.sender_is_bot = false;
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        assert_non_null(strstr(out.notice, "My budget for today is used up"));
        dispatch_free(d);
}

static void a_client_of_one_adapter_sees_no_rules_about_others(void **state)
{
        struct dispatch *d =
                rig_dispatch("[{\"name\": \"own\", \"when\": {\"platform\": \"discord\"}}, "
                             "{\"name\": \"other\", \"when\": {\"adapter\": \"elsewhere\"}}]",
                             rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct buf json;

        (void)state;
        in.platform = NULL; /* as in a made-up event */
        buf_init(&json, 0);
        dry_run_explain(d, &in, DRY_RUN_OWN_RULES, &json);
        assert_non_null(strstr(json.data, "\"rule\":\"own\""));
        assert_non_null(strstr(json.data, "\"name\":\"own\""));
        assert_null(strstr(json.data, "elsewhere"));
        assert_null(strstr(json.data, "\"name\":\"other\""));
        buf_clear(&json);
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json);
        assert_non_null(strstr(json.data, "\"name\":\"other\""));
        buf_release(&json);
        dispatch_free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(guards_refuse_in_the_order_of_the_table),
                cmocka_unit_test(access_is_checked_before_the_rules),
                cmocka_unit_test(a_bot_loop_is_stopped_until_a_person_writes),
                cmocka_unit_test(loops_are_counted_in_a_thousand_active_chats),
                cmocka_unit_test(a_repeated_reaction_causes_no_second_turn),
                cmocka_unit_test(reactions_on_one_message_cause_three_turns),
                cmocka_unit_test(only_reactions_on_a_known_message_are_limited),
                cmocka_unit_test(the_oldest_reacted_message_is_evicted),
                cmocka_unit_test(restoring_reactions_and_costs_uses_an_index),
                cmocka_unit_test(a_used_up_budget_is_notified_once_until_midnight),
                cmocka_unit_test(todays_costs_count_after_a_restart),
                cmocka_unit_test(unfinished_turns_count_as_their_agent_cost_lately),
                cmocka_unit_test(unfinished_turns_count_after_a_restart),
                cmocka_unit_test(expected_costs_count_once_per_turn),
                cmocka_unit_test(an_ambient_rule_sends_no_notices),
                cmocka_unit_test(listening_does_not_use_up_the_limit_of_requests),
                cmocka_unit_test(a_rule_has_one_rate_for_both_and_counts_them_apart),
                cmocka_unit_test(a_message_without_room_or_turn_costs_nothing),
                cmocka_unit_test(a_dry_run_reports_limits_and_uses_up_nothing),
                cmocka_unit_test(a_client_of_one_adapter_sees_no_rules_about_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
