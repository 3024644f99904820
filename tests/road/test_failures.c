/* Writes that are rolled back, refused or too late, and a wall clock that jumps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <string.h>

#include "../lib/fault_map.h"
#include "../lib/gate.h"
#include "../lib/road_rig.h"

/* ---- a blocked writer ---- */

struct late_gate {
        struct gate gate;
        struct rig *rig;
};

/* At a stored event: the gate blocks the write of its decision. */
static void close_gate(void *arg, const struct bus_event *e)
{
        struct late_gate *late = arg;

        if (strcmp(e->type, "message.received") == 0 && !atomic_load(&late->gate.entered))
                gate_close(&late->gate, late->rig->store);
}

static int refuse(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        return error_set(err, ERR_CONFLICT, "a failing neighbour");
}

static void on_refused(void *arg, const struct error *err)
{
        assert_non_null(err);
        (*(unsigned *)arg)++;
}

static void a_rolled_back_decision_keeps_its_conversation(void **state)
{
        struct rig *g = rig_new();
        struct late_gate undecided = { .rig = g };
        unsigned refused = 0;

        (void)state;
        bus_listen(g->bus, BUS_ALL_STREAMS, close_gate, &undecided);
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->acks, 1);
        store_write(g->store, refuse, on_refused, &refused);
        gate_open(&undecided.gate);
        rig_until(g, &g->run_count, 1);
        assert_int_equal(refused, 1);
        assert_int_equal(rig_count(g, "turns t JOIN conversations c ON c.id = t.conversation"
                                      " AND c.channel = 'c'"),
                         1);
        rig_answer(g, 0, "hi");
        rig_until_idle(g);
        rig_free(g);
}

static void too_many_undecided_events_are_refused(void **state)
{
        struct rig *g = rig_new();
        struct late_gate undecided = { .rig = g };
        struct gate together = { 0 };

        (void)state;
        g->limits.queued_events = 1;
        road_set_limits(g->road, &g->limits);
        bus_listen(g->bus, BUS_ALL_STREAMS, close_gate, &undecided);
        gate_close(&together, g->store);
        rig_say(g, "j", "c", "echo", "is being decided", NULL);
        rig_say(g, "j", "c", "echo", "waits for that", NULL);
        gate_open(&together);
        rig_until(g, &g->acks, 2);
        rig_say(g, "j", "c", "echo", "one more", NULL);
        gate_open(&undecided.gate);
        rig_until(g, &g->refusals, 1);
        assert_int_equal(g->last_error.kind, ERR_LIMIT);
        assert_non_null(strstr(g->last_error.text, "limits.queuedEvents"));
        rig_until(g, &g->run_count, 1);
        rig_free(g);
}

/* ---- rows that another process has claimed ---- */

static void an_answer_to_a_turn_claimed_elsewhere_is_dropped(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.unconfirmed_sends = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_update(g, "turns SET fence = fence + 1", 0, 0);
        rig_answer(g, 0, "too late|by far");
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state FROM turns"), "running");
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_int_equal(g->ended, 0);
        rig_say(g, "x", "c", "echo", "and now?", NULL); /* neither lane nor queue is blocked */
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "in time");
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].text, "in time");
        rig_free(g);
}

static void a_turn_claimed_elsewhere_does_not_start(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 40;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until_count(g, "turns WHERE state = 'queued'", 1);
        rig_update(g, "turns SET fence = fence + 1", 0, 0);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 0);
        assert_string_equal(rig_text(g, "state FROM turns"), "queued");
        rig_free(g);
}

static void a_delivery_claimed_elsewhere_is_not_sent(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_queue_delivery(g);
        rig_update(g, "deliveries SET fence = fence + 1", 0, 0);
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 0);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "queued");
        rig_free(g);
}

static void a_result_of_a_delivery_claimed_elsewhere_is_dropped(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "hi");
        rig_until(g, &g->sent_count, 1);
        rig_update(g, "deliveries SET fence = fence + 1", 0, 0);
        rig_result(g, 0, SEND_RETRY, ERR_NET, -1);
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 1);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sending");
        assert_int_equal(rig_count(g, "attempts"), 0);
        rig_free(g);
}

/* ---- rows that cannot be read ---- */

static void a_delivery_that_cannot_be_read_prevents_the_start(void **state)
{
        struct rig *g = rig_new();
        struct road_env env = { .loop = g->loop, .store = g->store, .bus = g->bus };
        struct error err = { 0 };

        (void)state;
        g->adapters_down = g->auto_answer = true;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_say(g, "x", "d", "echo", "hello", NULL);
        rig_until_count(g, "deliveries WHERE state = 'queued'", 2);
        road_close(g->road);
        rig_update(g, "deliveries SET kind = 'poem' WHERE id = 2", 0, 0);
        g->road = road_open(&env, &g->limits, &err);
        assert_null(g->road);
        assert_int_equal(err.kind, ERR_CORRUPT);
        assert_non_null(strstr(err.text, "'dlv-2' has kind 'poem'"));
        rig_free(g);
}

/* ---- faults on request, in test builds only ---- */

#ifdef DRAGOMAN_FAULTS

#define HOUR_MS 3600000

static struct fault_control *control; /* mapped before the first store is opened */

/* Ends the fault once a write has failed. */
static void await_failure(struct rig *g)
{
        struct store_health health;

        do {
                sched_yield();
                store_health(g->store, &health);
        } while (health.ok);
        control->fsync_fails = 0;
}

static void fail_second(void *arg, const struct bus_event *e)
{
        struct rig *g = arg;

        if (strcmp(e->type, "message.received") == 0 && g->acks == 2)
                control->fsync_fails = 1;
}

static void a_turn_does_not_start_before_its_last_message_is_stored(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->debounce_ms = 40;
        g->debounce_max_ms = 1000;
        bus_listen(g->bus, BUS_ALL_STREAMS, fail_second, g);
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until(g, &g->acks, 1);
        rig_say(g, "j", "c", "echo", "two", NULL);
        rig_until(g, &g->acks, 2);
        await_failure(g);
        rig_until(g, &g->run_count, 1);
        assert_string_equal(g->runs[0].text, "one+two");
        assert_non_null(strchr(rig_text(g, "inputs FROM turns"), ','));
        rig_answer(g, 0, "both");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 1);
        rig_free(g);
}

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        assert_int_equal(receipt->error.kind, ERR_IO);
        (*(unsigned *)arg)++;
}

static void what_cannot_be_stored_is_refused(void **state)
{
        struct rig *g = rig_new();
        unsigned refused = 0;

        (void)state;
        control->fsync_fails = 1;
        rig_say(g, "x", "c", "echo", "hello", "m1");
        outbox_submit(g->road,
                      &(struct outgoing){ .adapter = "x", .channel = "c", .text = "not sent" },
                      on_submitted, &refused);
        rig_until(g, &g->refusals, 1);
        rig_until(g, &refused, 1);
        assert_int_equal(g->last_error.kind, ERR_IO);
        control->fsync_fails = 0;
        rig_say(g, "x", "c", "echo", "hello", "m1");
        rig_until(g, &g->run_count, 1);
        assert_int_equal(g->duplicates, 0);
        assert_int_equal(g->sent_count, 0);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void an_answer_and_its_result_are_stored_once_the_disk_works(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        control->fsync_fails = 1;
        rig_answer(g, 0, "hi");
        await_failure(g);
        rig_until(g, &g->sent_count, 1);
        control->fsync_fails = 1;
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        await_failure(g);
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 1);
        assert_string_equal(rig_text(g, "state FROM turns"), "done");
        assert_string_equal(rig_list(g, "state || ' ' || attempt FROM deliveries"), "sent 1");
        assert_int_equal(rig_count(g, "journal WHERE type IN ('turn.done', 'message.sent')"), 2);
        rig_free(g);
}

#define EYES "deliveries WHERE kind = 'react' AND payload LIKE '%👀%'"

static void an_end_waits_for_the_progress_reaction_to_be_stored(void **state)
{
        struct incoming asked = {
                .adapter = "react", .chat = CHAT_GROUP, .id = "m1", .text = "a question"
        };
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->policy.slow_ms = 1;
        control->fsync_fails = 0;
        rig_receive(g, &asked);
        rig_until(g, &g->run_count, 1);
        control->fsync_fails = 1;
        rig_run_for(g, 20);
        control->fsync_fails = 0;
        rig_answer(g, 0, "hi"); /* could be stored before the reaction, which is tried again */
        rig_until_count(g, "turns WHERE state = 'done'", 1);
        assert_int_equal(rig_count(g, EYES), 1);
        rig_until_idle(g);
        rig_free(g);
}

static void a_clock_set_back_does_not_delay_resumed_turns(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        control->clock_offset_ms = 5 * HOUR_MS;
        rig_say(g, "j", "c", "echo", "running", NULL);
        rig_until(g, &g->run_count, 1);
        g->debounce_ms = 200;
        g->debounce_max_ms = 500;
        rig_say(g, "j", "d", "echo", "waiting", NULL);
        rig_until(g, &g->acks, 2);
        rig_settle(g);
        control->clock_offset_ms = 0;
        rig_restart(g);
        rig_until(g, &g->run_count, 3); /* fails long before five hours */
        for (unsigned i = 1; i < 3; i++)
                rig_answer(g, i, "done");
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 2);
        rig_free(g);
}

static void a_clock_set_back_does_not_delay_deliveries(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        control->clock_offset_ms = 5 * HOUR_MS;
        g->adapters_down = true;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until_count(g, "deliveries WHERE state = 'queued'", 1);
        control->clock_offset_ms = 0;
        g->adapters_down = false;
        rig_restart(g);
        rig_until(g, &g->sent_count, 1); /* fails long before five hours */
        rig_until_idle(g);
        rig_free(g);
}

static void a_clock_set_back_does_not_delay_a_retry(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "hi");
        rig_until(g, &g->sent_count, 1);
        control->clock_offset_ms = 5 * HOUR_MS;
        rig_result(g, 0, SEND_RETRY, ERR_NET, 500);
        rig_until_count(g, "deliveries WHERE state = 'queued'", 1);
        control->clock_offset_ms = 0;
        rig_restart(g);
        rig_until(g, &g->sent_count, 2); /* fails long before five hours */
        rig_free(g);
}

static void a_clock_set_ahead_does_not_expire_an_answer(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        control->clock_offset_ms = 0;
        g->adapters_down = true;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until_count(g, "deliveries WHERE state = 'queued'", 1);
        control->clock_offset_ms = 3 * 24 * HOUR_MS;
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        rig_until(g, &g->sent_count, 1);
        rig_until_idle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        control->clock_offset_ms = 0;
        rig_free(g);
}

#endif

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rolled_back_decision_keeps_its_conversation),
                cmocka_unit_test(too_many_undecided_events_are_refused),
                cmocka_unit_test(an_answer_to_a_turn_claimed_elsewhere_is_dropped),
                cmocka_unit_test(a_turn_claimed_elsewhere_does_not_start),
                cmocka_unit_test(a_delivery_claimed_elsewhere_is_not_sent),
                cmocka_unit_test(a_result_of_a_delivery_claimed_elsewhere_is_dropped),
                cmocka_unit_test(a_delivery_that_cannot_be_read_prevents_the_start),
#ifdef DRAGOMAN_FAULTS
                cmocka_unit_test(a_turn_does_not_start_before_its_last_message_is_stored),
                cmocka_unit_test(what_cannot_be_stored_is_refused),
                cmocka_unit_test(an_answer_and_its_result_are_stored_once_the_disk_works),
                cmocka_unit_test(an_end_waits_for_the_progress_reaction_to_be_stored),
                cmocka_unit_test(a_clock_set_back_does_not_delay_resumed_turns),
                cmocka_unit_test(a_clock_set_back_does_not_delay_deliveries),
                cmocka_unit_test(a_clock_set_back_does_not_delay_a_retry),
                cmocka_unit_test(a_clock_set_ahead_does_not_expire_an_answer),
#endif
        };

#ifdef DRAGOMAN_FAULTS
        control = fault_map();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
