/* Turn and delivery numbers, which are reserved from the store in blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/gate.h"
#include "../lib/road_rig.h"
#include "../lib/rows.h"
#include "base/buf.h"

#define BLOCK 1000 /* as in numbers.c */
#define PARTS (BLOCK + BLOCK / 4)

static unsigned accepted, refused;

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        if (receipt->error.kind == ERR_NONE)
                accepted++;
        else
                refused++;
}

static void submit(struct rig *g, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                outbox_submit(g->road,
                              &(struct outgoing){ .adapter = "j", .channel = "c", .text = "a" },
                              on_submitted, NULL);
}

/* Has a turn run and its answer sent; gives their numbers. */
static void exchange(struct rig *g, const char *key, int64_t *turn, int64_t *delivery)
{
        unsigned run = g->run_count, sent = g->sent_count;

        g->auto_send = true;
        rig_say(g, "x", "c", "echo", "hello", key);
        rig_until(g, &g->run_count, run + 1);
        *turn = g->runs[run].run->id;
        rig_answer(g, run, "hi");
        rig_until(g, &g->sent_count, sent + 1);
        *delivery = g->sent[sent].delivery;
        rig_until_idle(g);
}

static void numbers_continue_after_a_restart(void **state)
{
        struct rig *g = rig_new();
        int64_t turn, delivery;

        (void)state;
        exchange(g, "m1", &turn, &delivery);
        assert_int_equal(turn, 1);
        assert_int_equal(delivery, 1);
        rig_restart(g);
        exchange(g, "m2", &turn, &delivery);
        assert_int_equal(turn, 2);
        assert_int_equal(delivery, 2);
        rig_free(g);
}

static void a_restart_returns_both_blocks_that_were_reserved(void **state)
{
        struct rig *g = rig_new();
        int64_t turn, delivery;

        (void)state;
        accepted = 0;
        submit(g, BLOCK / 2 + 1); /* the second block is reserved */
        rig_until(g, &accepted, BLOCK / 2 + 1);
        rig_restart(g);
        exchange(g, "m3", &turn, &delivery);
        assert_int_equal(delivery, BLOCK / 2 + 2);
        rig_free(g);
}

static void numbers_that_others_reserved_are_not_used(void **state)
{
        struct rig *g = rig_new();
        int64_t turn, delivery;

        (void)state;
        accepted = 0;
        exchange(g, "m1", &turn, &delivery);
        rows_update(g->store, "numbers SET next = next + 5", 0, 0);
        submit(g, BLOCK / 2); /* the second block does not follow the first */
        rig_until(g, &accepted, BLOCK / 2);
        exchange(g, "m2", &turn, &delivery);
        assert_int_equal(turn, 2);
        assert_int_equal(delivery, BLOCK + 6);
        rig_restart(g);
        exchange(g, "m3", &turn, &delivery);
        assert_int_equal(turn, BLOCK + 6); /* the rest of its block was not returned */
        assert_int_equal(delivery, BLOCK + 7);
        rig_free(g);
}

static void a_kill_leaves_a_gap_and_repeats_no_number(void **state)
{
        char dir[] = "/tmp/dragoman-rig-XXXXXX";
        int64_t turn, delivery;
        struct rig *g;
        pid_t child;
        int status;

        (void)state;
        assert_non_null(mkdtemp(dir));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                g = rig_new_in(dir);
                exchange(g, "m4", &turn, &delivery);
                raise(SIGKILL);
                _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        g = rig_new_in(dir);
        exchange(g, "m5", &turn, &delivery);
        assert_int_equal(turn, BLOCK + 1);
        assert_int_equal(delivery, BLOCK + 1);
        rig_free(g);
}

/* With PARTS messages. */
static void answer_at_length(struct rig *g, unsigned run)
{
        struct buf text;

        buf_init(&text, 0);
        for (unsigned i = 0; i < PARTS; i++)
                buf_addstr(&text, i ? "|a" : "a");
        rig_answer(g, run, text.data);
        buf_release(&text);
}

static void an_answer_larger_than_a_block_waits_for_its_numbers(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        rig_say(g, "x", "c", "echo", "tell me everything", NULL);
        rig_until(g, &g->run_count, 1);
        answer_at_length(g, 0);
        rig_until(g, &g->sent_count, PARTS);
        for (unsigned i = 1; i < PARTS; i++)
                assert_int_equal(g->sent[i].delivery, g->sent[0].delivery + i);
        rig_until_idle(g);
        rig_free(g);
}

static void answers_larger_than_a_block_at_once_all_get_their_numbers(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        rig_say(g, "x", "c", "echo", "tell me everything", NULL);
        rig_say(g, "x", "d", "echo", "and me", NULL);
        rig_until(g, &g->run_count, 2);
        answer_at_length(g, 0);
        answer_at_length(g, 1);
        rig_until(g, &g->sent_count, 2 * PARTS);
        rig_until_idle(g);
        rig_free(g);
}

static void sends_and_messages_wait_for_numbers(void **state)
{
        struct rig *g = rig_new();
        struct gate gate = { 0 };
        int64_t turn, delivery;

        (void)state;
        accepted = refused = 0;
        gate_close(&gate, g->store);
        submit(g, 4 * BLOCK);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        gate_open(&gate);
        rig_until(g, &accepted, 4 * BLOCK);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, NULL);
        rig_until_idle(g);
        exchange(g, "m6", &turn, &delivery);
        assert_int_equal(delivery, 4 * BLOCK + 1);
        assert_int_equal(refused, 0);
        rig_free(g);
}

static void sends_that_wait_are_limited(void **state)
{
        struct rig *g = rig_new();
        struct gate gate = { 0 };

        (void)state;
        g->limits.open_deliveries = 20;
        road_set_limits(g->road, &g->limits);
        accepted = refused = 0;
        gate_close(&gate, g->store);
        submit(g, BLOCK + 20 + 3);
        rig_until(g, &refused, 3);
        gate_open(&gate);
        rig_until(g, &accepted, BLOCK + 20);
        assert_int_equal(refused, 3);
        rig_free(g);
}

static void a_close_stores_an_answer_that_waits(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_say(g, "x", "c", "echo", "tell me everything", NULL);
        rig_until(g, &g->run_count, 1);
        answer_at_length(g, 0);
        rig_restart(g);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 1);
        assert_int_equal(rig_count(g, "deliveries"), PARTS);
        rig_free(g);
}

static void a_close_stores_sends_that_wait(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        accepted = refused = 0;
        submit(g, BLOCK + 10);
        rig_restart(g);
        assert_int_equal(accepted, BLOCK + 10);
        assert_int_equal(rig_count(g, "deliveries"), BLOCK + 10);
        rig_free(g);
}

static void sends_are_refused_if_no_numbers_can_be_reserved(void **state)
{
        struct rig *g = rig_new();
        int64_t turn, delivery;

        (void)state;
        accepted = refused = 0;
        rows_update(g->store, "numbers SET name = 'away' WHERE name = 'delivery'", 0, 0);
        submit(g, BLOCK + 10);
        rig_until(g, &refused, 10);
        rig_until(g, &accepted, BLOCK);
        submit(g, 1); /* does not wait for the next attempt */
        rig_until(g, &refused, 11);
        rows_update(g->store, "numbers SET name = 'delivery' WHERE name = 'away'", 0, 0);
        exchange(g, "m7", &turn, &delivery);
        assert_int_equal(delivery, BLOCK + 1);
        submit(g, 1);
        rig_until(g, &accepted, BLOCK + 1);
        rig_free(g);
}

static void a_start_without_numbers_waits_for_them(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        accepted = refused = 0;
        rows_update(g->store, "numbers SET name = 'away' WHERE name = 'delivery'", 0, 0);
        rig_restart(g);
        submit(g, 1);
        rig_until(g, &refused, 1);
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->acks, 1);
        rig_run_for(g, 20);
        assert_int_equal(g->run_count, 0); /* a refusal would need a number */
        rows_update(g->store, "numbers SET name = 'delivery' WHERE name = 'away'", 0, 0);
        rig_until(g, &g->run_count, 1);
        rig_answer(g, 0, "hi");
        rig_until(g, &g->sent_count, 1);
        assert_int_equal(g->sent[0].delivery, BLOCK + 1);
        rig_free(g);
}

static void a_close_without_numbers_leaves_the_turn_to_the_next_run(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        accepted = refused = 0;
        rig_say(g, "x", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rows_update(g->store, "numbers SET name = 'away' WHERE name = 'delivery'", 0, 0);
        submit(g, BLOCK);
        rig_until(g, &accepted, BLOCK);
        rig_answer(g, 0, "not stored");
        rig_restart(g);
        assert_string_equal(rig_text(g, "state FROM turns"), "running");
        rows_update(g->store, "numbers SET name = 'delivery' WHERE name = 'away'", 0, 0);
        rig_until(g, &g->run_count, 2);
        rig_answer(g, 1, "hi");
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].text, "hi");
        assert_int_equal(g->sent[0].delivery, BLOCK + 1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers_continue_after_a_restart),
                cmocka_unit_test(a_restart_returns_both_blocks_that_were_reserved),
                cmocka_unit_test(numbers_that_others_reserved_are_not_used),
                cmocka_unit_test(a_kill_leaves_a_gap_and_repeats_no_number),
                cmocka_unit_test(an_answer_larger_than_a_block_waits_for_its_numbers),
                cmocka_unit_test(answers_larger_than_a_block_at_once_all_get_their_numbers),
                cmocka_unit_test(sends_and_messages_wait_for_numbers),
                cmocka_unit_test(sends_that_wait_are_limited),
                cmocka_unit_test(a_close_stores_an_answer_that_waits),
                cmocka_unit_test(a_close_stores_sends_that_wait),
                cmocka_unit_test(sends_are_refused_if_no_numbers_can_be_reserved),
                cmocka_unit_test(a_start_without_numbers_waits_for_them),
                cmocka_unit_test(a_close_without_numbers_leaves_the_turn_to_the_next_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
