/* Past events decided again by another configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dispatch/replay.h"
#include "dispatch_rig.h"

#define OLD "[{\"name\": \"talk\", \"when\": {\"mention\": true, \"conversation\": true}}]"

struct fixture {
        struct rig *rig;
        struct dispatch *dispatch;
        struct dispatch *other; /* decides again */
        int64_t since_ms, after;
        struct replay_sum sum;
        char reported[4000]; /* "evt: before -> now" for each that differs */
};

static void open_with(struct fixture *f, struct dispatch_adapter a)
{
        *f = (struct fixture){ .rig = rig_new(), .dispatch = rig_dispatch(OLD, a) };
        dispatch_set_clock(f->dispatch, 0);
        f->rig->auto_answer = f->rig->auto_send = true;
        rig_decided_by(f->rig, f->dispatch);
}

static void close_all(struct fixture *f)
{
        dispatch_free(f->dispatch);
        rig_free(f->rig);
}

static int64_t hear(struct fixture *f, const char *sender, const char *text, bool mention)
{
        struct incoming in = group_message(sender, text);
        unsigned acks = f->rig->acks;

        in.is_mention = mention;
        rig_receive(f->rig, &in);
        rig_until(f->rig, &f->rig->acks, acks + 1);
        rig_until_idle(f->rig);
        return f->rig->last_event;
}

static const char *shown(const struct replay_decision *d)
{
        return d->answers ? d->rule : "-";
}

static void on_row(void *arg, const struct replay_row *row)
{
        struct fixture *f = arg;
        size_t n = strlen(f->reported);

        if (row->differs)
                snprintf(f->reported + n, sizeof(f->reported) - n, "%s: %s -> %s\n", row->in->text,
                         shown(&row->before), shown(&row->now));
}

static int run(struct store_tx *tx, void *arg, struct error *err)
{
        struct fixture *f = arg;

        return replay_run(f->other, tx, f->since_ms, f->after, on_row, f, &f->sum, err);
}

static void replay(struct fixture *f, const char *rules, struct dispatch_adapter a)
{
        struct error err = { 0 };
        struct runtime_policy *policy = runtime_policy_open(f->rig->store, NULL, &err),
                              then = *policy;

        then.handovers = NULL;
        f->other = rig_dispatch(rules, a);
        dispatch_set_policy(f->other, &then);
        f->reported[0] = '\0';
        if (store_read_now(f->rig->store, run, f, &err) < 0)
                fail_msg("%s", err.text);
        dispatch_set_policy(f->other, NULL);
        dispatch_free(f->other);
        runtime_policy_free(policy);
}

static void the_same_configuration_decides_the_same(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct fixture f;

        (void)state;
        a.rate = (struct turn_rate){ 3, 3600 };
        open_with(&f, a);
        hear(&f, "7", "nothing", false);
        hear(&f, "7", "hello", true);
        hear(&f, "7", "more", false); /* a conversation */
        hear(&f, "7", "/status", false);
        hear(&f, "7", "third", false);
        hear(&f, "7", "too fast", false);
        replay(&f, OLD, a);
        assert_string_equal(f.reported, "");
        assert_int_equal(f.sum.events, 6);
        assert_int_equal(f.sum.answered_before, 3);
        assert_int_equal(f.sum.answered_now, 3);
        close_all(&f);
}

static void differences_are_reported_and_counted(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct fixture f;

        (void)state;
        open_with(&f, a);
        hear(&f, "7", "lunch?", false);
        hear(&f, "7", "hello", true);
        hear(&f, "7", "more", false);
        replay(&f,
               "[{\"name\": \"food\", \"when\": {\"text\": \"lunch\"}}, {\"name\": \"talk\", "
               "\"when\": {\"mention\": true}}]",
               a);
        assert_string_equal(f.reported, "lunch?: - -> food\nmore: talk -> -\n");
        assert_int_equal(f.sum.begins, 1);
        assert_int_equal(f.sum.ends, 1);
        assert_int_equal(f.sum.moves, 0);
        replay(&f,
               "[{\"name\": \"renamed\", \"when\": {\"mention\": true, \"conversation\": true}}]",
               a);
        assert_string_equal(f.reported, "hello: talk -> renamed\nmore: talk -> renamed\n");
        assert_int_equal(f.sum.moves, 2);
        close_all(&f);
}

static void messages_that_shared_a_turn_share_it_again(void **state)
{
        struct incoming one = group_message("7", "one"), two = group_message("7", "two");
        struct dispatch_adapter a = rig_adapter();
        struct fixture f;

        (void)state;
        a.debounce_ms = 200; /* the messages may be stored one by one */
        a.debounce_max_ms = 5000;
        open_with(&f, a);
        one.is_mention = two.is_mention = true;
        rig_receive(f.rig, &one);
        rig_receive(f.rig, &two);
        rig_until(f.rig, &f.rig->run_count, 1);
        rig_until_idle(f.rig);
        assert_int_equal(rig_count(f.rig, "turns"), 1);
        a.rate = (struct turn_rate){ 1, 3600 };
        replay(&f, OLD, a);
        assert_string_equal(f.reported, "");
        assert_int_equal(f.sum.answered_now, 2);
        close_all(&f);
}

/* Moves the first message and its turn 100 seconds back. */
static void set_back(struct rig *g)
{
        rig_update(g, "trigger_log SET time_ms = time_ms - ?1", 100000, 0);
        rig_update(g, "turns SET ended_ms = ended_ms - ?1", 100000, 0);
}

static void sessions_last_as_long_as_they_did(void **state)
{
        struct dispatch_adapter other = rig_adapter();
        struct fixture f;

        (void)state;
        open_with(&f, rig_adapter());
        hear(&f, "7", "hello", true);
        set_back(f.rig);
        hear(&f, "7", "more", false);
        other.conversation_seconds = 120;
        replay(&f, OLD, other);
        assert_string_equal(f.reported, "");
        other.conversation_seconds = 90;
        replay(&f, OLD, other);
        assert_string_equal(f.reported, "more: talk -> -\n");
        close_all(&f);
}

static void events_before_the_first_count_but_are_not_reported(void **state)
{
        struct fixture f;
        int64_t first;

        (void)state;
        open_with(&f, rig_adapter());
        first = hear(&f, "7", "hello", true);
        hear(&f, "7", "more", false);
        f.after = first;
        replay(&f, OLD, rig_adapter());
        assert_int_equal(f.sum.events, 1);
        assert_string_equal(f.reported, ""); /* "more" continues the session of "hello" */
        f.after = 0;
        f.since_ms = clock_wall_ms() + 1000;
        replay(&f, OLD, rig_adapter());
        assert_int_equal(f.sum.events, 0);
        close_all(&f);
}

#define ROWS                                                                    \
        "(SELECT count(*) FROM turns) + (SELECT count(*) FROM deliveries)"      \
        " + (SELECT count(*) FROM journal) + (SELECT count(*) FROM identities)" \
        " + (SELECT sum(active_ms) FROM chat_sessions)"

static void a_replay_writes_nothing(void **state)
{
        struct fixture f;
        int64_t rows;

        (void)state;
        open_with(&f, rig_adapter());
        hear(&f, "7", "hello", true);
        rows = rig_number(f.rig, ROWS);
        replay(&f, "[{\"name\": \"other\"}]", rig_adapter());
        assert_int_equal(rig_number(f.rig, ROWS), rows);
        assert_int_equal(f.rig->run_count, 1);
        close_all(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_same_configuration_decides_the_same),
                cmocka_unit_test(differences_are_reported_and_counted),
                cmocka_unit_test(messages_that_shared_a_turn_share_it_again),
                cmocka_unit_test(sessions_last_as_long_as_they_did),
                cmocka_unit_test(events_before_the_first_count_but_are_not_reported),
                cmocka_unit_test(a_replay_writes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
