/* Deliveries: retries, rate limits, unconfirmed sends, dead letters, expiry, edits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/gate.h"
#include "../lib/road_rig.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

static struct outbox_receipt last;
static unsigned receipts;

static void on_put(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        last = *receipt;
        receipts++;
}

static void put(struct rig *g, struct outgoing out)
{
        unsigned before = receipts;

        outbox_submit(g->road, &out, on_put, NULL);
        assert_int_equal(receipts, before);
        rig_until(g, &receipts, before + 1);
}

static void on_done(void *arg, const struct error *err)
{
        int *outcome = arg;

        *outcome = err ? (int)err->kind : 1000;
}

/* On Slack: one message of a thread in its channel is enough. */
static void the_first_part_of_a_text_is_broadcast(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x",
                                  .channel = "c",
                                  .thread = "t",
                                  .text = "one|two",
                                  .broadcast = true });
        rig_until(g, &g->sent_count, 1);
        assert_non_null(
                strstr(rig_text(g, "payload FROM deliveries WHERE id = 1"), "\"broadcast\":true"));
        assert_null(strstr(rig_text(g, "payload FROM deliveries WHERE id = 2"), "broadcast"));
        rig_free(g);
}

static void a_delivery_is_claimed_sent_and_settled(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "hello" });
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].text, "hello");
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sending");
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state || ' ' || platform_id FROM deliveries"), "sent p1");
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.sent'"), 1);
        rig_free(g);
}

struct gate_at {
        struct gate gate;
        struct rig *rig;
        const char *type;
};

/* Blocks the writer at an event, before the road goes on. */
static void close_gate(void *arg, const struct bus_event *e)
{
        struct gate_at *at = arg;

        if (at->type && strcmp(e->type, at->type) == 0) {
                at->type = NULL;
                gate_close(&at->gate, at->rig->store);
        }
}

static void a_delivery_due_now_is_inserted_as_claimed(void **state)
{
        struct rig *g = rig_new();
        struct gate_at done = { .rig = g, .type = "turn.done" };
        struct gate_at sent = { .rig = g, .type = "message.sent" };

        (void)state;
        bus_listen(g->bus, BUS_ALL_STREAMS, close_gate, &done);
        bus_listen(g->bus, BUS_ALL_STREAMS, close_gate, &sent);
        rig_say(g, "x", "c", "a", "hi", "k1");
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "one|two");
        rig_until(g, &g->sent_count, 1); /* without another write */
        assert_null(done.type);
        assert_string_equal(rig_list(g, "state || ' ' || attempt || ' ' || fence FROM deliveries"
                                        " ORDER BY id"),
                            "sending 1 1, queued 0 0");
        gate_open(&done.gate);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        while (sent.type)
                loop_step(g->loop, true);
        rig_run_for(g, 20);
        assert_int_equal(g->sent_count, 1); /* the second waits for its claim */
        gate_open(&sent.gate);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 2);
        rig_free(g);
}

static void an_answer_does_not_overtake_what_was_sent_before(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "first" });
        rig_until(g, &g->sent_count, 1);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "second");
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "second");
        rig_free(g);
}

static void parts_of_an_answer_are_sent_in_order(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "a|b|c" });
        assert_int_equal(last.count, 3);
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_result(g, 0, SEND_RETRY, ERR_NET, -1); /* before the others */
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "a");
        g->auto_send = true;
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(g->sent[2].text, "b");
        assert_string_equal(g->sent[3].text, "c");
        rig_free(g);
}

static void parts_of_an_answer_may_have_pauses(void **state)
{
        struct rig *g = rig_new();
        int64_t before = clock_mono_ms();

        (void)state;
        g->auto_send = true;
        g->policy.part_delay_ms = 20;
        rig_say(g, "x", "c", "echo", "tell", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "one|two|three");
        rig_until(g, &g->sent_count, 3);
        assert_true(clock_mono_ms() - before >= 40);
        assert_string_equal(g->sent[1].text, "two");
        assert_string_equal(g->sent[2].text, "three");
        rig_free(g);
}

static void a_pause_between_parts_survives_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        g->policy.part_delay_ms = 3600000;
        rig_say(g, "x", "c", "echo", "tell", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "one|two");
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        rig_restart(g);
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        assert_int_equal(
                rig_number(g, "due_ms - created_ms FROM deliveries WHERE state = 'queued'"),
                3600000);
        rig_free(g);
}

static void a_delivery_that_keeps_failing_is_a_dead_letter(void **state)
{
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        g->limits.delivery_attempts = 3;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "hello" });
        for (unsigned i = 0; i < 3; i++) {
                rig_until(g, &g->sent_count, i + 1);
                rig_result(g, i, SEND_RETRY, ERR_NET, -1);
        }
        rig_settle(g);
        assert_int_equal(g->sent_count, 3);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "failed");
        assert_int_equal(rig_count(g, "attempts"), 3);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.failed'"), 1);

        outbox_retry(g->road, 1, false, on_done, &outcome);
        rig_until(g, &g->sent_count, 4);
        assert_int_equal(outcome, 1000);
        rig_result(g, 3, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        outbox_retry(g->road, 1, true, on_done, &outcome);
        rig_settle(g);
        assert_int_equal(outcome, ERR_CONFLICT);
        rig_free(g);
}

static void a_rejected_delivery_does_not_block_its_channel(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "bad|good" });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "good");
        rig_free(g);
}

/* "a" of the first conversation waits for its next attempt, "b" after it. */
static struct rig *rig_with_failing_answer(int64_t retry_ms)
{
        struct rig *g = rig_new();

        rig_say(g, "x", "c", "echo", "first", NULL);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "a|b");
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_RETRY, ERR_NET, retry_ms);
        return g;
}

static void other_conversations_pass_a_failing_delivery(void **state)
{
        struct rig *g = rig_with_failing_answer(3600000);
        char *trace;

        (void)state;
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        trace = mem_strdup(rig_text(g, "trace FROM deliveries WHERE id = 1"));
        g->auto_send = true;
        rig_say(g, "x", "c", "other", "second", NULL);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "c|d");
        rig_until(g, &g->sent_count, 3);
        assert_string_equal(g->sent[1].text, "c");
        assert_string_equal(g->sent[2].text, "d");
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "news" });
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(g->sent[3].text, "news");
        /* a late reply to the first has no turn: it waits all the same */
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "late", .trace = trace });
        rig_say(g, "x", "c", "echo", "again", NULL); /* of the first: it waits */
        rig_until(g, &g->run_count, 3);
        rig_answer(g, 2, "e");
        rig_settle(g);
        assert_int_equal(g->sent_count, 4);

        rig_restart(g); /* the order is not forgotten */
        rig_settle(g);
        assert_int_equal(g->sent_count, 4);
        rig_say(g, "x", "c", "other", "third", NULL);
        rig_until(g, &g->run_count, 4);
        rig_answer(g, 3, "f");
        rig_until(g, &g->sent_count, 5);
        assert_string_equal(g->sent[4].text, "f");
        rig_say(g, "x", "c", "echo", "and again", NULL);
        rig_until(g, &g->run_count, 5);
        rig_answer(g, 4, "g");
        rig_settle(g);
        assert_int_equal(g->sent_count, 5);
        free(trace);
        rig_free(g);
}

static void a_conversation_keeps_its_order_around_a_failure(void **state)
{
        struct rig *g = rig_with_failing_answer(30);

        (void)state;
        rig_say(g, "x", "c", "other", "second", NULL);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "c");
        rig_until(g, &g->sent_count, 2); /* "a" may be due by now, or not */
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        g->auto_send = true;
        rig_until(g, &g->sent_count, 4);
        rig_until_idle(g);
        for (unsigned i = 1, at = 0; i < 4; i++) {
                if (strcmp(g->sent[i].text, "c") != 0)
                        assert_string_equal(g->sent[i].text, at++ == 0 ? "a" : "b");
        }
        rig_free(g);
}

static void a_rate_limit_pauses_the_channel_without_an_attempt(void **state)
{
        struct rig *g = rig_new();
        int64_t began;

        (void)state;
        g->limits.delivery_attempts = 1;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "hello" });
        for (unsigned i = 0; i < 3; i++) {
                rig_until(g, &g->sent_count, i + 1);
                began = clock_mono_ms();
                rig_result(g, i, SEND_RETRY, ERR_LIMIT, 60);
        }
        rig_until(g, &g->sent_count, 4);
        assert_true(clock_mono_ms() - began >= 55);
        rig_result(g, 3, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state || ' ' || attempt FROM deliveries"), "sent 1");
        rig_free(g);
}

/* Only what certainly did not arrive may be tried for ever. */
static void an_unsure_send_counts_whatever_its_reason(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.delivery_attempts = 2;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "hello" });
        for (unsigned i = 0; i < 2; i++) {
                rig_until(g, &g->sent_count, i + 1);
                rig_result(g, i, SEND_UNSURE, ERR_LIMIT, 0);
        }
        rig_settle(g);
        assert_string_equal(rig_text(g, "state || ' ' || attempt FROM deliveries"), "unknown 2");
        rig_free(g);
}

/* Where repeating is harmless, too, the adapter knows what it said before. */
static void each_attempt_is_told_what_the_last_one_knew(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "hello" });
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].read_from, "after 0");
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].read_from, "after 0, after 1");
        rig_free(g);
}

static void an_unconfirmed_send_is_repeated_only_if_idempotent(void **state)
{
        struct rig *g = rig_new();
        int outcome = 0;

        (void)state;
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "safe" });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        assert_int_equal(g->sent[1].delivery, g->sent[0].delivery);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);

        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "not safe" });
        rig_until(g, &g->sent_count, 3);
        rig_result(g, 2, SEND_UNSURE, ERR_NET, -1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 3);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE adapter = 'x'"), "unknown");
        /* only with force: it may have arrived */
        outbox_retry(g->road, 2, false, on_done, &outcome);
        rig_settle(g);
        assert_int_equal(outcome, ERR_CONFLICT);
        outbox_retry(g->road, 2, true, on_done, &outcome);
        rig_until(g, &g->sent_count, 4);
        assert_int_equal(outcome, 1000);
        rig_free(g);
}

static void admins_are_shown_whole_characters_of_an_unsure_message(void **state)
{
        struct rig *g = rig_new();
        struct buf text, quote;

        (void)state;
        buf_init(&text, 0);
        buf_init(&quote, 0);
        for (int i = 0; i < 150; i++)
                buf_addstr(&text, i == 0 ? "<b>x</b>" : "é");
        buf_addstr(&quote, "> x");
        for (int i = 0; i < 99; i++) /* 200 bytes would end within the next one */
                buf_addstr(&quote, "é");
        buf_addstr(&quote, "\n\nI do not know");
        g->asks_admins = true;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = text.data });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].channel, "admin");
        assert_memory_equal(g->sent[1].text, quote.data, quote.len);
        buf_release(&text);
        buf_release(&quote);
        rig_free(g);
}

static void an_unconfirmed_send_is_read_back_if_possible(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "look", .channel = "c", .text = "arrived|lost" });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1); /* found */
        rig_until(g, &g->sent_count, 3);
        rig_result(g, 2, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 4);
        assert_true(g->sent[3].reconcile);
        rig_result(g, 3, SEND_RETRY, ERR_NET, 0); /* not found */
        rig_until(g, &g->sent_count, 5);
        assert_false(g->sent[4].reconcile);
        assert_string_equal(g->sent[4].text, "lost");
        rig_free(g);
}

static void sends_interrupted_by_a_restart_are_unconfirmed(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "perhaps|next" });
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "again" });
        put(g, (struct outgoing){ .adapter = "look", .channel = "c", .text = "look" });
        rig_until(g, &g->sent_count, 3);
        rig_restart(g);
        rig_until(g, &g->sent_count, 6);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "unknown");
        for (unsigned i = 3; i < 6; i++) {
                if (strcmp(g->sent[i].adapter, "x") == 0)
                        assert_string_equal(g->sent[i].text, "next");
                if (strcmp(g->sent[i].adapter, "look") == 0)
                        assert_true(g->sent[i].reconcile);
        }
        rig_free(g);
}

static void a_result_of_an_earlier_claim_is_ignored(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "hello" });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1); /* of the first claim */
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sending");
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        rig_free(g);
}

static void a_stuck_send_does_not_block_its_channel_for_ever(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.delivery_seconds = 1;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "stuck|next" });
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "next");
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "unknown");
        rig_free(g);
}

static void an_expired_delivery_is_not_sent(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        put(g, (struct outgoing){ .adapter = "x",
                                  .channel = "c",
                                  .text = "old",
                                  .expires_ms = clock_wall_ms() - 1 });
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "new" });
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].text, "new");
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "expired");
        rig_free(g);
}

static void deliveries_wait_for_their_adapter(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "hello" });
        rig_settle(g);
        assert_int_equal(g->sent_count, 0);
        rig_restart(g);
        rig_settle(g);
        assert_int_equal(g->sent_count, 0);
        g->adapters_down = false;
        outbox_wake(g->road, "x");
        rig_until(g, &g->sent_count, 1);
        rig_free(g);
}

static void queued_edits_of_a_message_collapse_into_the_last(void **state)
{
        struct rig *g = rig_new();
        int64_t first;

        (void)state;
        g->adapters_down = true;
        put(g, (struct outgoing){ .adapter = "nonce",
                                  .channel = "c",
                                  .kind = DELIVER_EDIT,
                                  .message_id = "m1",
                                  .text = "a",
                                  .class = PACE_EDIT });
        first = last.delivery;
        put(g, (struct outgoing){ .adapter = "nonce",
                                  .channel = "c",
                                  .kind = DELIVER_EDIT,
                                  .message_id = "m1",
                                  .text = "ab",
                                  .class = PACE_EDIT });
        assert_int_equal(last.delivery, first);
        put(g, (struct outgoing){ .adapter = "nonce",
                                  .channel = "c",
                                  .kind = DELIVER_EDIT,
                                  .message_id = "m2",
                                  .text = "other",
                                  .class = PACE_EDIT });
        assert_int_not_equal(last.delivery, first);
        g->adapters_down = false;
        g->auto_send = true;
        outbox_wake(g->road, "nonce");
        rig_until(g, &g->sent_count, 2);
        rig_settle(g);
        assert_int_equal(g->sent_count, 2);
        assert_string_equal(g->sent[0].text, "ab");
        assert_string_equal(g->sent[1].text, "other");
        rig_free(g);
}

static void the_same_request_key_is_the_same_delivery(void **state)
{
        struct rig *g = rig_new();
        int64_t first;

        (void)state;
        put(g,
            (struct outgoing){ .adapter = "x", .channel = "c", .text = "a|b", .request_key = "k" });
        first = last.delivery;
        put(g,
            (struct outgoing){ .adapter = "x", .channel = "c", .text = "a|b", .request_key = "k" });
        assert_true(last.duplicate);
        assert_int_equal(last.delivery, first);
        assert_int_equal(rig_count(g, "deliveries"), 2);
        rig_free(g);
}

static void a_journaled_delivery_is_sent_by_its_commit(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "j", .channel = "c", .text = "hello" });
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.sent'"), 1);
        assert_int_equal(g->sent_count, 0);
        rig_free(g);
}

static void the_pace_of_a_channel_is_kept(void **state)
{
        struct rig *g = rig_new();
        int64_t began = clock_mono_ms();

        (void)state;
        g->pace = (struct pace_limits){ .per_channel_second = 20, .burst = 1 };
        g->auto_send = true;
        outbox_wake(g->road, "x");
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "1|2|3|4|5|6" });
        rig_until(g, &g->sent_count, 6);
        assert_true(clock_mono_ms() - began >= 5 * 50 - 20);
        rig_free(g);
}

static void an_edit_yields_to_messages_but_not_for_ever(void **state)
{
        struct rig *g = rig_new();
        unsigned at = 0;
        struct buf text;

        (void)state;
        buf_init(&text, 0);
        for (int i = 0; i < 400; i++)
                buf_addf(&text, "%s%d", i > 0 ? "|" : "", i);
        g->pace = (struct pace_limits){ .per_channel_second = 20, .burst = 1 };
        g->auto_send = true;
        outbox_wake(g->road, "x");
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = text.data });
        put(g, (struct outgoing){ .adapter = "x",
                                  .channel = "c",
                                  .thread = "t",
                                  .kind = DELIVER_EDIT,
                                  .message_id = "m1",
                                  .text = "edit",
                                  .class = PACE_EDIT });
        do {
                rig_until(g, &g->sent_count, ++at);
        } while (strcmp(g->sent[at - 1].kind, "edit") != 0 && at < 400);
        if (at < 20 || at == 400)
                fail_msg("the edit was sent as number %u", at);
        buf_release(&text);
        rig_free(g);
}

static void too_many_open_deliveries_are_refused_with_a_reason(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->adapters_down = true;
        g->limits.open_deliveries = 2;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "1|2" });
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "3" });
        assert_int_equal(last.error.kind, ERR_LIMIT);
        assert_non_null(strstr(last.error.text, "limits.openDeliveries"));
        rig_free(g);
}

static void unconfirmed_sends_are_limited(void **state)
{
        struct rig *g = rig_new();
        char channel[8];

        (void)state;
        g->limits.unconfirmed_sends = 2;
        road_set_limits(g->road, &g->limits);
        for (int i = 0; i < 4; i++) {
                snprintf(channel, sizeof(channel), "c%d", i);
                put(g, (struct outgoing){
                               .adapter = "x", .channel = channel, .text = i == 0 ? "a|b" : "a" });
        }
        rig_until(g, &g->sent_count, 2);
        rig_settle(g);
        assert_int_equal(g->sent_count, 2);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'queued'"), 3);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 3);
        /* other channels go before the second delivery of c0 */
        assert_string_equal(g->sent[2].channel, "c2");
        rig_result(g, 1, SEND_RETRY, ERR_NET, -1); /* a failure makes room as well */
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(g->sent[3].channel, "c3");
        g->auto_send = true;
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        rig_result(g, 3, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 6);
        rig_settle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'sent'"), 5);
        rig_free(g);
}

static void unconfirmed_answers_are_limited(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.unconfirmed_sends = 1;
        road_set_limits(g->road, &g->limits);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_say(g, "x", "d", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 0, "a");
        rig_answer(g, 1, "b");
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 2);
        rig_free(g);
}

static void a_send_that_waits_for_others_is_sent_after_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.unconfirmed_sends = 1;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "x", .channel = "c", .text = "a" });
        put(g, (struct outgoing){ .adapter = "x", .channel = "d", .text = "b" });
        rig_until(g, &g->sent_count, 1);
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "b");
        rig_settle(g);
        assert_string_equal(rig_list(g, "state FROM deliveries ORDER BY id"), "unknown, sending");
        rig_free(g);
}

static void sends_that_can_be_confirmed_are_not_limited(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->limits.unconfirmed_sends = 1;
        road_set_limits(g->road, &g->limits);
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "c", .text = "a" });
        put(g, (struct outgoing){ .adapter = "nonce", .channel = "d", .text = "b" });
        rig_until(g, &g->sent_count, 2);
        rig_free(g);
}

static void reading_back_continues_after_each_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "look", .channel = "c", .text = "once" });
        rig_until(g, &g->sent_count, 1);
        rig_restart(g);
        loop_step(g->loop, false); /* the new claim is being stored */
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        rig_free(g);
}

static void upload(struct rig *g, const char *path, const char *text)
{
        put(g, (struct outgoing){ .adapter = "x",
                                  .channel = "c",
                                  .kind = DELIVER_UPLOAD,
                                  .text = text,
                                  .reply_to = "7",
                                  .file = { .path = path, .name = path } });
}

static void what_did_not_arrive_before_a_restart_is_sent_again(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .adapter = "look", .channel = "c", .text = "a" });
        rig_until(g, &g->sent_count, 1);
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        rig_result(g, 1, SEND_RETRY, ERR_NET, -1);
        rig_until(g, &g->sent_count, 3);
        assert_false(g->sent[2].reconcile);
        rig_result(g, 2, SEND_UNSURE, ERR_NET, -1); /* read back like the first attempt */
        rig_until(g, &g->sent_count, 4);
        assert_true(g->sent[3].reconcile);
        rig_result(g, 3, SEND_DONE, ERR_NONE, -1);
        rig_settle(g);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        rig_free(g);
}

static void a_thread_is_started_with_its_name(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){ .kind = DELIVER_THREAD,
                                  .adapter = "x",
                                  .channel = "c",
                                  .message_id = "7",
                                  .file = { .name = "A talk" } });
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "thread");
        assert_string_equal(g->sent[0].name, "A talk");
        rig_free(g);
}

static void the_rest_of_a_caption_follows_after_a_crash(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        upload(g, "a.png", "caption|more|rest");
        assert_int_equal(last.count, 3);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "upload");
        assert_string_equal(g->sent[0].text, "caption");
        assert_string_equal(g->sent[0].reply_to, "7");
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_RETRY, ERR_NET, 60000); /* queued at the restart */
        rig_until_count(g, "deliveries WHERE state = 'queued' AND attempt = 1", 1);
        rig_restart(g);
        rig_until_count(g, "deliveries WHERE state = 'sent'", 1);
        assert_string_equal(rig_list(g, "kind || ' ' || state FROM deliveries ORDER BY id"),
                            "upload sent, send queued, send queued");
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%path%'"), 1);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%replyTo%'"), 1);
        rig_free(g);
}

static void an_unconfirmed_file_is_not_repeated_but_its_text_follows(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        upload(g, "a.png", "one|two");
        upload(g, "b.png", "|three"); /* no caption fits */
        rig_until(g, &g->sent_count, 1);
        rig_restart(g);
        g->auto_send = true;
        rig_until(g, &g->sent_count, 4);
        assert_string_equal(rig_text(g, "state FROM deliveries WHERE id = 1"), "unknown");
        assert_string_equal(g->sent[1].text, "two");
        assert_string_equal(g->sent[2].kind, "upload");
        assert_string_equal(g->sent[2].text, "");
        assert_string_equal(g->sent[3].kind, "send");
        assert_string_equal(g->sent[3].text, "three");
        assert_string_equal(rig_text(g, "payload FROM deliveries WHERE id = 3"),
                            "{\"replyTo\":\"7\",\"path\":\"b.png\",\"name\":\"b.png\"}");
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_part_of_a_text_is_broadcast),
                cmocka_unit_test(a_delivery_is_claimed_sent_and_settled),
                cmocka_unit_test(a_delivery_due_now_is_inserted_as_claimed),
                cmocka_unit_test(an_answer_does_not_overtake_what_was_sent_before),
                cmocka_unit_test(parts_of_an_answer_are_sent_in_order),
                cmocka_unit_test(parts_of_an_answer_may_have_pauses),
                cmocka_unit_test(a_pause_between_parts_survives_a_restart),
                cmocka_unit_test(a_delivery_that_keeps_failing_is_a_dead_letter),
                cmocka_unit_test(a_rejected_delivery_does_not_block_its_channel),
                cmocka_unit_test(other_conversations_pass_a_failing_delivery),
                cmocka_unit_test(a_conversation_keeps_its_order_around_a_failure),
                cmocka_unit_test(a_rate_limit_pauses_the_channel_without_an_attempt),
                cmocka_unit_test(an_unsure_send_counts_whatever_its_reason),
                cmocka_unit_test(each_attempt_is_told_what_the_last_one_knew),
                cmocka_unit_test(an_unconfirmed_send_is_repeated_only_if_idempotent),
                cmocka_unit_test(admins_are_shown_whole_characters_of_an_unsure_message),
                cmocka_unit_test(an_unconfirmed_send_is_read_back_if_possible),
                cmocka_unit_test(sends_interrupted_by_a_restart_are_unconfirmed),
                cmocka_unit_test(a_result_of_an_earlier_claim_is_ignored),
                cmocka_unit_test(a_stuck_send_does_not_block_its_channel_for_ever),
                cmocka_unit_test(an_expired_delivery_is_not_sent),
                cmocka_unit_test(deliveries_wait_for_their_adapter),
                cmocka_unit_test(queued_edits_of_a_message_collapse_into_the_last),
                cmocka_unit_test(the_same_request_key_is_the_same_delivery),
                cmocka_unit_test(a_journaled_delivery_is_sent_by_its_commit),
                cmocka_unit_test(the_pace_of_a_channel_is_kept),
                cmocka_unit_test(an_edit_yields_to_messages_but_not_for_ever),
                cmocka_unit_test(too_many_open_deliveries_are_refused_with_a_reason),
                cmocka_unit_test(unconfirmed_sends_are_limited),
                cmocka_unit_test(unconfirmed_answers_are_limited),
                cmocka_unit_test(a_send_that_waits_for_others_is_sent_after_a_restart),
                cmocka_unit_test(sends_that_can_be_confirmed_are_not_limited),
                cmocka_unit_test(reading_back_continues_after_each_restart),
                cmocka_unit_test(what_did_not_arrive_before_a_restart_is_sent_again),
                cmocka_unit_test(a_thread_is_started_with_its_name),
                cmocka_unit_test(the_rest_of_a_caption_follows_after_a_crash),
                cmocka_unit_test(an_unconfirmed_file_is_not_repeated_but_its_text_follows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
