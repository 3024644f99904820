/*
 * Sends that may have arrived, on platforms that can be asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "../lib/rows.h"
#include "road/outbox/outbox.h"

static unsigned receipts;

static void on_put(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        assert_int_equal(receipt->error.kind, ERR_NONE);
        receipts++;
}

static void put(struct rig *g, const char *channel, const char *thread, const char *text)
{
        unsigned before = receipts;
        struct outgoing out = {
                .adapter = "look", .channel = channel, .thread = thread, .text = text
        };

        outbox_submit(g->road, &out, on_put, NULL);
        rig_until(g, &receipts, before + 1);
}

static void what_was_known_before_a_send_survives_a_kill(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].read_from, "after 0");
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        assert_string_equal(g->sent[1].read_from, "after 0");
        rig_restart(g); /* asking does not replace it either */
        rig_until(g, &g->sent_count, 3);
        assert_string_equal(g->sent[2].read_from, "after 0");
        rig_result(g, 2, SEND_RETRY, ERR_NET, 0);
        rig_until(g, &g->sent_count, 4);
        assert_false(g->sent[3].reconcile);
        assert_string_equal(g->sent[3].read_from, "after 3"); /* a new send has its own */
        rig_free(g);
}

static void what_a_search_found_out_survives_a_kill(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        delivery_set_read_from(g->road, g->sent[1].delivery, g->sent[1].fence + 1, "of another");
        delivery_set_read_from(g->road, g->sent[1].delivery, g->sent[1].fence, "further");
        rig_settle(g);
        rig_restart(g);
        rig_until(g, &g->sent_count, 3);
        assert_true(g->sent[2].reconcile);
        assert_string_equal(g->sent[2].read_from, "further");
        rig_free(g);
}

static void asking_is_no_attempt(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.delivery_attempts = 2;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        for (unsigned i = 0; i < 5; i++) {
                rig_restart(g);
                rig_until(g, &g->sent_count, 2 + i);
                assert_true(g->sent[1 + i].reconcile);
        }
        rig_result(g, 5, SEND_RETRY, ERR_NET, 0);
        rig_until(g, &g->sent_count, 7);
        assert_false(g->sent[6].reconcile);
        rig_free(g);
}

static void one_send_of_a_channel_is_under_way_across_its_threads(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", "t1", "one");
        put(g, "c", "t2", "two");
        put(g, "d", NULL, "other");
        rig_until(g, &g->sent_count, 2);
        rig_settle(g);
        assert_int_equal(g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "other");
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 3);
        assert_true(g->sent[2].reconcile);
        rig_settle(g);
        assert_int_equal(g->sent_count, 3); /* two could be mistaken for one */
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(g->sent[3].text, "two");
        rig_free(g);
}

static void threads_wait_for_a_send_of_an_earlier_run(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", "t1", "one");
        rig_until(g, &g->sent_count, 1);
        put(g, "c", "t2", "two");
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        rig_settle(g);
        assert_int_equal(g->sent_count, 2);
        rig_result(g, 1, SEND_RETRY, ERR_NET, 0);
        rig_until(g, &g->sent_count, 3);
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 4);
        rig_free(g);
}

static void an_adapter_that_stops_is_asked_again_when_it_is_back(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one|two");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        g->adapters_down = true;
        rig_result(g, 1, SEND_UNSURE, ERR_CANCELLED, -1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 2);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "sending");
        g->adapters_down = false;
        outbox_wake(g->road, "look");
        rig_until(g, &g->sent_count, 3);
        assert_true(g->sent[2].reconcile);
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(g->sent[3].text, "two");
        rig_free(g);
}

/* The platform is silent, but its adapter is not gone. */
static void a_silent_platform_is_asked_again_after_a_while(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        for (unsigned i = 1; i <= 3; i++) {
                assert_true(g->sent[i].reconcile);
                rig_result(g, i, SEND_UNSURE, ERR_CANCELLED, 5);
                rig_until(g, &g->sent_count, i + 2);
                assert_string_equal(g->sent[i + 1].read_from, "after 0");
        }
        rig_result(g, 4, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "sent");
        rig_free(g);
}

static void count_stored(void *arg, bool stored)
{
        *(unsigned *)arg += stored;
}

/* A send of several steps goes on once it is stored how far it got. */
static void the_steps_of_a_send_are_stored_before_it_goes_on(void **state)
{
        struct rig *g = rig_new();
        unsigned stored = 0;

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        assert_false(delivery_store_read_from(g->road, g->sent[0].delivery, g->sent[0].fence + 1,
                                              "of another", count_stored, &stored));
        assert_true(delivery_store_read_from(g->road, g->sent[0].delivery, g->sent[0].fence,
                                             "step 2", count_stored, &stored));
        assert_int_equal(stored, 0);
        rig_until(g, &stored, 1);
        assert_string_equal(rig_text(g, "read_from FROM deliveries WHERE id = 1"), "step 2");
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].read_from, "step 2");
        rig_free(g);
}

static void what_is_found_is_recorded_and_counted(void **state)
{
        struct rig *g = rig_new();
        struct road_stats s;

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "outcome FROM attempts WHERE delivery = 1"), "found");
        road_stats(g->road, &s);
        assert_int_equal(s.found, 1);
        assert_int_equal(s.unknown, 0);
        rig_free(g);
}

static void count_up(void *arg)
{
        ++*(unsigned *)arg;
}

static void a_stop_does_not_wait_until_a_send_is_found(void **state)
{
        struct rig *g = rig_new();
        unsigned drained = 0;

        (void)state;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        road_drain(g->road, INT32_MAX, count_up, &drained);
        rig_until(g, &drained, 1);
        rig_restart(g);
        rig_until(g, &g->sent_count, 3);
        assert_true(g->sent[2].reconcile);
        rig_free(g);
}

static void sends_that_are_looked_for_leave_room_for_others(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.unconfirmed_sends = 1;
        road_set_limits(g->road, &g->limits);
        put(g, "c", NULL, "one");
        put(g, "d", NULL, "two");
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 3);
        rig_free(g);
}

/* Else every crash would leave more of them. */
static void sends_that_are_looked_for_take_places(void **state)
{
        struct rig *g = rig_new();
        char channel[] = "c0";

        (void)state;
        g->limits.unconfirmed_sends = 6;
        road_set_limits(g->road, &g->limits);
        put(g, channel, NULL, "looked for");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        for (int i = 1; i <= 6; i++) {
                channel[1]++;
                put(g, channel, NULL, "sent");
        }
        rig_settle(g);
        assert_int_equal(g->sent_count, 2 + 5);
        rig_free(g);
}

/* A draft that may have arrived is given up; its answer is a message of its own. */
static void an_answer_whose_draft_is_lost_can_be_looked_for(void **state)
{
        struct rig *g = rig_new();
        unsigned before = receipts;

        (void)state;
        rig_say(g, "sketch", "c", "echo", "tell me", NULL);
        rig_until(g, &g->run_count, 1);
        turn_delta(g->runs[0].run, "one", 3);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_UNSURE, ERR_NET, -1);
        rig_answer(g, 0, "one two");
        rig_until(g, &g->sent_count, 3);
        assert_string_equal(g->sent[2].kind, "send");
        assert_string_equal(g->sent[2].read_from, "after 2");
        outbox_submit(g->road,
                      &(struct outgoing){
                              .adapter = "sketch", .channel = "c", .thread = "t", .text = "other" },
                      on_put, NULL);
        rig_until(g, &receipts, before + 1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 3); /* it could be mistaken for the answer */
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 4);
        rig_free(g);
}

/* After a kill in between, admins are asked again; the other way round they never were. */
static void admins_are_asked_before_the_outcome_is_stored(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->asks_admins = true;
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_UNSURE, ERR_NET, -1);
        rig_until_count(g, "deliveries WHERE state = 'unknown'", 1);
        assert_int_equal(rig_count(g, "deliveries WHERE channel = 'admin'"), 1);
        rig_free(g);
}

/* ---- what is stored ---- */

static struct {
        unsigned calls, own, received;
        bool ambiguous, whole;
} seen;

static void on_records(void *arg, const struct message_records *records)
{
        (void)arg;
        assert_non_null(records);
        seen.calls++;
        seen.ambiguous = records->ambiguous;
        seen.whole = records->whole;
        seen.own = seen.received = 0;
        for (size_t i = 0; i < records->count; i++) {
                if (records->items[i].own)
                        seen.own++;
                else
                        seen.received++;
        }
}

static void read_records_of(struct rig *g, int64_t delivery, int64_t seq)
{
        const struct delivery d = {
                .id = delivery, .adapter = "look", .channel = "c", .read_seq = seq
        };
        unsigned before = seen.calls;

        message_records_read(g->road, &d, on_records, NULL);
        rig_until(g, &seen.calls, before + 1);
}

static void read_records(struct rig *g)
{
        read_records_of(g, 99, 0);
}

/* However much was stored since: the ids that matter are those of messages after the send. */
static void a_search_reads_what_followed_its_send(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "look", "c", "echo", "before", NULL);
        rig_until(g, &g->run_count, 1);
        put(g, "c", NULL, "one");
        rig_until(g, &g->sent_count, 1);
        rig_say(g, "look", "d", "echo", "after", NULL);
        rig_until(g, &g->run_count, 2);
        rows_add_events(g->store, 9000);
        read_records(g);
        assert_int_equal(seen.received, 0);
        read_records_of(g, g->sent[0].delivery, g->sent[0].read_seq);
        assert_int_equal(seen.received, 1);
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        assert_int_equal(g->sent[1].read_seq, g->sent[0].read_seq);
        rig_free(g);
}

static void a_search_reads_the_sends_around_its_own(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one|two");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 2);
        rows_add_deliveries(g->store, 2000);
        read_records_of(g, 0, 0);
        assert_int_equal(seen.own, 0);
        read_records_of(g, g->sent[1].delivery, g->sent[1].read_seq);
        assert_int_equal(seen.own, 1);
        assert_false(seen.whole); /* there may be others in between */
        rig_free(g);
}

static void a_message_whose_id_nobody_knows_makes_others_ambiguous(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one|two|three");
        put(g, "d", NULL, "elsewhere");
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 3);
        read_records(g);
        assert_true(seen.ambiguous); /* two is under way */
        rig_result(g, 2, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 4);
        rig_result(g, 3, SEND_UNSURE, ERR_NET, -1); /* two is unknown */
        rig_until(g, &g->sent_count, 5);
        rig_result(g, 4, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        read_records(g);
        assert_false(seen.ambiguous); /* it lies before three */
        assert_int_equal(seen.own, 3);
        rig_free(g);
}

/* The send with this index, and the search for it, have no answer. */
static void make_unknown(struct rig *g, unsigned sent)
{
        rig_until(g, &g->sent_count, sent + 1);
        rig_result(g, sent, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, sent + 2);
        rig_result(g, sent + 1, SEND_UNSURE, ERR_NET, -1);
        rig_until_count(g, "deliveries WHERE state = 'unknown'", 1);
        rig_settle(g);
}

static void on_retried(void *arg, const struct error *err)
{
        (void)arg;
        assert_null(err);
}

static void a_message_that_may_be_there_stays_so_whatever_becomes_of_it(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "c", NULL, "one");
        make_unknown(g, 0);
        read_records(g);
        assert_true(seen.ambiguous);
        assert_true(seen.whole);
        rig_update(g, "deliveries SET state = 'failed'", 0, 0); /* an admin leaves it */
        read_records(g);
        assert_true(seen.ambiguous);
        put(g, "c", NULL, "two");
        rig_until(g, &g->sent_count, 3);
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        read_records(g);
        assert_false(seen.ambiguous);
        outbox_retry(g->road, 1, true, on_retried, NULL);
        make_unknown(g, 3); /* it has the lower number, but was sent after two */
        read_records(g);
        assert_true(seen.ambiguous);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_known_before_a_send_survives_a_kill),
                cmocka_unit_test(what_a_search_found_out_survives_a_kill),
                cmocka_unit_test(asking_is_no_attempt),
                cmocka_unit_test(one_send_of_a_channel_is_under_way_across_its_threads),
                cmocka_unit_test(threads_wait_for_a_send_of_an_earlier_run),
                cmocka_unit_test(an_adapter_that_stops_is_asked_again_when_it_is_back),
                cmocka_unit_test(a_silent_platform_is_asked_again_after_a_while),
                cmocka_unit_test(the_steps_of_a_send_are_stored_before_it_goes_on),
                cmocka_unit_test(what_is_found_is_recorded_and_counted),
                cmocka_unit_test(a_stop_does_not_wait_until_a_send_is_found),
                cmocka_unit_test(sends_that_are_looked_for_leave_room_for_others),
                cmocka_unit_test(sends_that_are_looked_for_take_places),
                cmocka_unit_test(an_answer_whose_draft_is_lost_can_be_looked_for),
                cmocka_unit_test(admins_are_asked_before_the_outcome_is_stored),
                cmocka_unit_test(a_search_reads_what_followed_its_send),
                cmocka_unit_test(a_search_reads_the_sends_around_its_own),
                cmocka_unit_test(a_message_whose_id_nobody_knows_makes_others_ambiguous),
                cmocka_unit_test(a_message_that_may_be_there_stays_so_whatever_becomes_of_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
