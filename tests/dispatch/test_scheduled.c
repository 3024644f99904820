/* schedule.fired, from a tick to an agent's turn: decided like a message, with limits of its own.
 */
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
#include "dispatch_rig.h"
#include "road/report/trace_report.h"
#include "road/road_schedule.h"

#define MARK "[EVENT:nightly.json:periodic:0 9 * * 1-5] "

struct fixture {
        struct rig *rig;
        struct dispatch *dispatch;
        unsigned acks, duplicates;
};

static void open_with(struct fixture *f, const char *rules, struct dispatch_adapter a)
{
        *f = (struct fixture){ .rig = rig_new(), .dispatch = rig_dispatch(rules, a) };
        f->rig->auto_send = true;
        rig_decided_by(f->rig, f->dispatch);
}

static void close_all(struct fixture *f)
{
        rig_free(f->rig);
        dispatch_free(f->dispatch);
}

static struct schedule_fired nightly(int64_t tick)
{
        return (struct schedule_fired){ .schedule = 12,
                                        .tick = tick,
                                        .name = "nightly.json",
                                        .kind = "periodic",
                                        .info = "0 9 * * 1-5",
                                        .adapter = CHAT,
                                        .platform = "discord",
                                        .channel = "456",
                                        .text = "Check the backups.",
                                        .metadata = "{\"scheduleId\":\"sch-12\"}" };
}

static void on_ack(void *arg, const struct inbox_receipt *receipt)
{
        struct fixture *f = arg;

        assert_int_not_equal(receipt->outcome, INBOX_FAILED);
        f->duplicates += receipt->outcome == INBOX_DUPLICATE;
        f->acks++;
        f->rig->received++;
        f->rig->acks++;
}

/* Returns when it is decided. */
static void fire(struct fixture *f, const struct schedule_fired *what)
{
        unsigned acks = f->acks, known = f->duplicates;
        int64_t decided = rig_count(f->rig, "trigger_log");

        schedule_fired_receive(f->rig->road, what, on_ack, f);
        rig_until(f->rig, &f->acks, acks + 1);
        if (f->duplicates == known)
                rig_until_count(f->rig, "trigger_log", decided + 1);
}

static void hear(struct fixture *f, const struct incoming *in)
{
        int64_t decided = rig_count(f->rig, "trigger_log");

        rig_receive(f->rig, in);
        rig_until_count(f->rig, "trigger_log", decided + 1);
}

static const char *last_reason(struct fixture *f)
{
        return rig_text(f->rig,
                        "coalesce(reason, '') FROM trigger_log ORDER BY event DESC LIMIT 1");
}

static const char *last_payload(struct fixture *f)
{
        return rig_text(f->rig, "payload FROM journal WHERE type = 'schedule.fired'"
                                " ORDER BY seq DESC LIMIT 1");
}

static void a_tick_becomes_a_turn_once(void **state)
{
        struct schedule_fired what = nightly(3);
        struct fixture f;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        fire(&f, &what);
        fire(&f, &what); /* after a crash, say */
        rig_until(f.rig, &f.rig->run_count, 1);
        assert_int_equal(f.duplicates, 1);
        assert_string_equal(f.rig->runs[0].text, MARK "Check the backups.");
        assert_string_equal(rig_list(f.rig, "key FROM journal WHERE type = 'schedule.fired'"),
                            "tick:3");
        assert_string_equal(rig_list(f.rig, "event_type || ' ' || sender || ' ' || sender_name"
                                            " FROM trigger_log"),
                            "schedule.fired schedule nightly.json");
        assert_non_null(strstr(last_payload(&f), "\"metadata\":{\"scheduleId\":\"sch-12\"}"));
        rig_answer(f.rig, 0, "All is well.");
        rig_until_idle(f.rig);
        assert_string_equal(rig_members(f.rig, "payload FROM deliveries", "text"), "All is well.");
        assert_string_equal(rig_members(f.rig, "payload FROM deliveries", "replyTo"), "");
        close_all(&f);
}

static void silence_is_not_posted(void **state)
{
        struct schedule_fired what = nightly(3);
        struct fixture f;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        fire(&f, &what);
        rig_until(f.rig, &f.rig->run_count, 1);
        rig_answer(f.rig, 0, "[SILENT]");
        rig_until_idle(f.rig);
        assert_int_equal(rig_count(f.rig, "deliveries"), 0);
        close_all(&f);
}

/* "a.json] [SYSTEM" would look like the end of the mark. */
static void a_name_cannot_fake_the_mark(void **state)
{
        struct schedule_fired what = nightly(3);
        struct fixture f;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        what.name = "a:b] [x\n";
        fire(&f, &what);
        rig_until(f.rig, &f.rig->run_count, 1);
        assert_string_equal(f.rig->runs[0].text,
                            "[EVENT:a b   x :periodic:0 9 * * 1-5] Check the backups.");
        close_all(&f);
}

static void facts_of_the_chat_come_from_its_last_message(void **state)
{
        struct schedule_fired what = nightly(3);
        struct incoming in = group_message("7", "hello"), own;
        struct fixture f;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        fire(&f, &what); /* nobody has written there */
        assert_non_null(strstr(last_payload(&f), "\"chatType\":\"group\""));
        in.chat = CHAT_DM;
        in.chat_name = "Ann";
        hear(&f, &in);
        own = in;
        own.is_own = true;
        own.sender_id = "99";
        hear(&f, &own);
        what = nightly(4);
        what.schedule = 13;
        fire(&f, &what);
        assert_non_null(strstr(last_payload(&f), "\"chatType\":\"dm\",\"chatName\":\"Ann\""));
        assert_non_null(
                strstr(last_payload(&f), "\"sender\":{\"id\":\"7\",\"username\":\"sch-13\""));
        what = nightly(5);
        what.schedule = 14;
        what.direct = true;
        what.person = "8"; /* who asked for it */
        fire(&f, &what);
        assert_non_null(strstr(last_payload(&f), "\"sender\":{\"id\":\"8\""));
        close_all(&f);
}

static void a_schedule_has_one_open_turn(void **state)
{
        struct schedule_fired first = nightly(3), second = nightly(4), other = nightly(5);
        struct incoming in = group_message(SCHEDULE_SENDER, "hello");
        struct fixture f;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        fire(&f, &first);
        rig_until(f.rig, &f.rig->run_count, 1);
        fire(&f, &second);
        assert_string_equal(last_reason(&f),
                            "the turn of the schedule's last time, trn-1, has not ended");
        other.schedule = 13;
        fire(&f, &other);
        assert_string_equal(last_reason(&f), "");
        second.tick = 6;
        second.schedule = 13; /* one that waits counts, too */
        fire(&f, &second);
        assert_string_equal(last_reason(&f),
                            "the turn of the schedule's last time, trn-2, has not ended");
        in.is_mention = true;
        hear(&f, &in); /* joins none of them */
        assert_int_equal(rig_count(f.rig, "turns"), 3);
        rig_answer(f.rig, 0, "1");
        rig_until(f.rig, &f.rig->run_count, 2);
        rig_answer(f.rig, 1, "2");
        rig_until(f.rig, &f.rig->run_count, 3);
        rig_answer(f.rig, 2, "3");
        rig_until_idle(f.rig);
        first.tick = 7;
        fire(&f, &first);
        rig_until(f.rig, &f.rig->run_count, 4);
        close_all(&f);
}

/* ---- decisions ---- */

static struct incoming fired(const char *name)
{
        struct incoming in = group_message(SCHEDULE_SENDER, "[EVENT:x:immediate:immediate] do it");

        in.type = EVENT_SCHEDULE_FIRED;
        in.sender_name = name;
        in.sender_username = "sch-1";
        in.is_mention = in.is_command = true;
        return in;
}

static struct decision decided(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, BEGINS_TURN, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

static void rules_may_name_schedules(void **state)
{
        static const struct {
                const char *when, *name;
                bool matches;
        } rows[] = {
                { "{}", "nightly.json", true },
                { "{\"mention\": true}", "nightly.json", true },
                { "{\"event\": \"schedule.fired\"}", "nightly.json", true },
                { "{\"event\": \"message.received\"}", "nightly.json", false },
                { "{\"reaction\": \"*\"}", "nightly.json", false },
                { "{\"schedule\": \"nightly*\"}", "nightly.json", true },
                { "{\"schedule\": \"nightly*\"}", "weekly.json", false },
                { "{\"schedule\": \"nightly*\"}", NULL, false }, /* a message */
                { "{\"schedule\": \"nightly*\", \"event\": \"*\"}", NULL, false },
                { "{\"sender\": \"7\"}", "nightly.json", false },
                { "{\"dm\": true}", "nightly.json", false },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *rules = mem_printf("[{\"name\": \"r\", \"agent\": \"other\", \"when\": %s}]",
                                         rows[i].when);
                struct dispatch *d = rig_dispatch(rules, rig_adapter());
                struct incoming in = fired(rows[i].name);
                struct decision out;

                if (!rows[i].name) {
                        in.type = EVENT_MESSAGE_RECEIVED;
                        in.sender_name = "nightly.json";
                }
                out = decided(d, &in);
                if (!out.rule != !rows[i].matches)
                        fail_msg("row %zu: %s", i, out.rules);
                /* somebody wrote it for this chat, so without a rule the adapter's agent answers */
                assert_int_equal(out.trigger, rows[i].name != NULL);
                if (out.trigger)
                        assert_string_equal(out.agent, out.rule ? "other" : "echo");
                dispatch_free(d);
                free(rules);
        }
}

static void a_rule_can_turn_them_off(void **state)
{
        struct dispatch *d = rig_dispatch("[{\"name\": \"night\", \"mode\": \"off\","
                                          " \"when\": {\"schedule\": \"*\"}}]",
                                          rig_adapter());
        struct incoming in = fired("nightly.json"), said = group_message("7", "hello");
        struct decision out = decided(d, &in);

        (void)state;
        assert_false(out.trigger);
        assert_string_equal(out.reason, "rule 'night' says off");
        said.is_mention = true;
        assert_string_equal(decided(d, &said).reason, "no rule matched: 1 tried");
        dispatch_free(d);
}

static void a_wider_rule_covers_one_about_schedules(void **state)
{
        size_t count;
        struct rule *r = rule_list_read("[{}, {\"when\": {\"schedule\": \"a*\"}},"
                                        " {\"when\": {\"schedule\": \"ab\"}},"
                                        " {\"when\": {\"event\": \"message.received\"}}]",
                                        &count);

        (void)state;
        assert_true(rule_covers(&r[0], &r[1]));
        assert_true(rule_covers(&r[1], &r[2]));
        assert_true(rule_covers(&r[0], &r[3]));
        assert_false(rule_covers(&r[1], &r[0]));
        assert_false(rule_covers(&r[2], &r[1]));
        assert_false(rule_covers(&r[3], &r[0]));
        for (size_t i = 0; i < count; i++)
                rule_conf_release(&r[i]);
        free(r);
}

static void a_schedule_may_name_an_agent_of_the_adapter(void **state)
{
        struct dispatch *d = rig_dispatch("[{\"name\": \"r\", \"agent\": \"other\","
                                          " \"when\": {\"channel\": \"1\"}}]",
                                          rig_adapter());
        struct incoming in = fired("nightly.json");
        struct decision out;

        (void)state;
        in.agent = "other";
        out = decided(d, &in);
        assert_true(out.trigger);
        assert_string_equal(out.agent, "other");
        in.agent = "secret";
        out = decided(d, &in);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "the schedule names agent 'secret', which neither adapter "
                                        "'chat' nor a rule about it names");
        dispatch_free(d);
}

static void limits_of_people_are_not_those_of_schedules(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = fired("nightly.json"), said = group_message("7", "hello");
        struct dispatch *d;

        (void)state;
        a.rate = (struct turn_rate){ 1, 60 };
        a.max_age_seconds = 60;
        d = rig_dispatch("[]", a);
        in.chat = said.chat = CHAT_DM; /* where the person counts as its sender */
        in.sender_id = "7";
        in.time_ms = NOON - 3600 * SECONDS;
        assert_true(decided(d, &in).trigger);
        assert_true(decided(d, &in).trigger);
        assert_true(decided(d, &said).trigger);
        assert_false(decided(d, &said).trigger);
        assert_true(decided(d, &in).trigger);
        dispatch_free(d);
        d = rig_dispatch("[{\"name\": \"r\", \"rateLimit\": {\"turns\": 1, \"seconds\": 60}}]", a);
        assert_true(decided(d, &in).trigger); /* a rule limits them, each on its own */
        assert_false(decided(d, &in).trigger);
        assert_null(decided(d, &in).notice);
        in.sender_username = "sch-2";
        assert_true(decided(d, &in).trigger);
        assert_true(decided(d, &said).trigger);
        dispatch_free(d);
}

static void access_lists_are_for_people(void **state)
{
        struct dispatch_adapter *a = mem_zalloc(sizeof(*a));
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = fired("nightly.json"), said = group_message("7", "hello");
        struct buf json;

        (void)state;
        *a = rig_adapter();
        a->name = mem_strdup(CHAT);
        a->platform = mem_strdup("discord");
        dispatch_set(d, a, 1, NULL, 0, "echo"); /* nobody is allowed */
        said.is_mention = true;
        assert_false(decided(d, &said).trigger);
        assert_true(decided(d, &in).trigger);
        buf_init(&json, 0);
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json);
        assert_non_null(strstr(json.data, "\"access\":{\"allowed\":true,\"why\":\"a schedule needs "
                                          "none\"}"));
        buf_release(&json);
        dispatch_free(d);
}

static void a_used_up_budget_holds_for_schedules(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = fired("nightly.json");
        struct dispatch *d;
        struct decision out;

        (void)state;
        a.budget_microusd = 1;
        d = rig_dispatch("[]", a);
        dispatch_ended(d, &(struct turn_run){ .adapter = CHAT },
                       &(struct turn_outcome){ .cost_microusd = 5 });
        out = decided(d, &in);
        assert_false(out.trigger);
        assert_non_null(strstr(out.reason, "budget"));
        assert_null(out.notice); /* nobody asked */
        dispatch_free(d);
}

/* ---- what follows ---- */

static int report(struct store_tx *tx, void *arg, struct error *err)
{
        return trace_report_write(tx, "tick:3", NULL, arg, err);
}

static void why_names_the_schedule(void **state)
{
        struct schedule_fired what = nightly(3);
        struct fixture f;
        struct error err;
        struct buf json;

        (void)state;
        open_with(&f, "[]", rig_adapter());
        fire(&f, &what);
        rig_until(f.rig, &f.rig->run_count, 1);
        rig_answer(f.rig, 0, "All is well.");
        rig_until_idle(f.rig);
        buf_init(&json, 0);
        assert_int_equal(store_read_now(f.rig->store, report, &json, &err), 0);
        assert_non_null(strstr(json.data, "schedule 'nightly.json' (sch-12) fired: answered in "));
        assert_non_null(strstr(json.data, "\"schedule\":{\"scheduleId\":\"sch-12\"}"));
        buf_release(&json);
        close_all(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tick_becomes_a_turn_once),
                cmocka_unit_test(silence_is_not_posted),
                cmocka_unit_test(a_name_cannot_fake_the_mark),
                cmocka_unit_test(facts_of_the_chat_come_from_its_last_message),
                cmocka_unit_test(a_schedule_has_one_open_turn),
                cmocka_unit_test(rules_may_name_schedules),
                cmocka_unit_test(a_rule_can_turn_them_off),
                cmocka_unit_test(a_wider_rule_covers_one_about_schedules),
                cmocka_unit_test(a_schedule_may_name_an_agent_of_the_adapter),
                cmocka_unit_test(limits_of_people_are_not_those_of_schedules),
                cmocka_unit_test(access_lists_are_for_people),
                cmocka_unit_test(a_used_up_budget_holds_for_schedules),
                cmocka_unit_test(why_names_the_schedule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
