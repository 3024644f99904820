/* Calls that wait for rate limits: order, deadlines, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "platform/call_queue.h"

struct call {
        struct queued_call queued; /* first */
        char letter;
};

static struct {
        struct loop *loop;
        struct call_queue q;
        struct call_lane lanes[2];
        int64_t closed_ms[2];          /* a lane's wait; 0: open */
        char started[50], refused[50]; /* letters */
        int64_t refusal_ms;
        enum error_kind kind;
        unsigned ticks;
} rig;

static void note(char *letters, char letter)
{
        letters[strlen(letters)] = letter;
}

static int64_t on_wait(struct call_queue *q, const struct queued_call *c, int64_t now_ms)
{
        (void)now_ms;
        if (c->priority > 0 && q->flying_count >= CALL_FLYING_MAX)
                return -1;
        return rig.closed_ms[c->lane == &rig.lanes[1]];
}

static void on_start(struct queued_call *c)
{
        note(rig.started, ((struct call *)c)->letter);
}

static void on_refused(struct queued_call *c)
{
        note(rig.refused, ((struct call *)c)->letter);
        rig.refusal_ms = c->refusal_ms;
        rig.kind = c->refusal.kind;
        free(c);
}

static void on_tick(struct call_queue *q, int64_t now_ms)
{
        (void)q;
        (void)now_ms;
        rig.ticks++;
}

static const struct call_queue_ops ops = {
        .wait = on_wait, .start = on_start, .refused = on_refused, .tick = on_tick, .late = "late"
};

static int set_up(void **state)
{
        (void)state;
        memset(&rig, 0, sizeof(rig));
        rig.loop = loop_new();
        call_lane_init(&rig.lanes[0]);
        call_lane_init(&rig.lanes[1]);
        call_queue_open(&rig.q, rig.loop, &ops, NULL);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        call_queue_close(&rig.q);
        loop_free(rig.loop);
        return 0;
}

static struct call *call_new(char letter, unsigned priority, int64_t wait_ms)
{
        struct call *c = mem_zalloc(sizeof(*c));

        c->letter = letter;
        c->queued.priority = priority;
        c->queued.deadline_ms = loop_now_ms(rig.loop) + wait_ms;
        return c;
}

static struct call *add(char letter, unsigned lane, unsigned priority, int64_t wait_ms)
{
        struct call *c = call_new(letter, priority, wait_ms);

        call_queue_add(&rig.q, &rig.lanes[lane], &c->queued);
        return c;
}

/* Its answer has come. */
static void land(struct call *c)
{
        call_queue_leave(&rig.q, &c->queued);
        free(c);
        call_queue_pump(&rig.q);
}

static void until_refused(const char *letters)
{
        for (int i = 0; i < 100000 && strcmp(rig.refused, letters) != 0; i++)
                loop_step(rig.loop, true);
        assert_string_equal(rig.refused, letters);
}

static void important_calls_go_first_when_the_lane_opens(void **state)
{
        struct call *c[4];

        (void)state;
        rig.closed_ms[0] = 20000;
        c[0] = add('i', 0, 2, 60000);
        c[1] = add('a', 0, 1, 60000);
        c[2] = add('b', 0, 1, 60000);
        c[3] = add('u', 0, 0, 60000);
        assert_string_equal(rig.started, "");
        assert_int_equal(rig.q.waiting, 4);
        rig.closed_ms[0] = 0;
        call_queue_pump(&rig.q);
        assert_string_equal(rig.started, "uabi");
        assert_int_equal(rig.q.waiting, 0);
        assert_int_equal(rig.lanes[0].flying, 4);
        for (unsigned i = 0; i < 4; i++)
                land(c[i]);
        assert_int_equal(rig.lanes[0].flying, 0);
}

static void lanes_do_not_wait_for_one_another(void **state)
{
        struct call *closed, *open;

        (void)state;
        rig.closed_ms[0] = 20000;
        closed = add('a', 0, 1, 60000);
        open = add('b', 1, 1, 60000);
        assert_string_equal(rig.started, "b");
        land(open);
        land(closed); /* aborted while it waits */
        assert_int_equal(rig.q.waiting, 0);
}

static void what_would_be_late_is_refused_at_once(void **state)
{
        struct call *patient;

        (void)state;
        rig.closed_ms[0] = 20000;
        patient = add('p', 0, 1, 60000);
        add('l', 0, 1, 10000);
        assert_string_equal(rig.refused, ""); /* from the loop */
        until_refused("l");
        assert_int_equal(rig.kind, ERR_LIMIT);
        assert_int_equal(rig.refusal_ms, 20000); /* when it could have gone */
        land(patient);
        assert_true(rig.ticks > 0);
}

static void a_deadline_ends_the_wait_for_an_answer(void **state)
{
        (void)state;
        rig.closed_ms[0] = -1; /* until an answer comes, which never does */
        add('a', 0, 1, 50);
        until_refused("a");
        assert_int_equal(rig.refusal_ms, CALL_LIMITED_MS);
}

static void when_all_connections_are_busy_only_urgent_calls_go(void **state)
{
        struct call *flying[CALL_FLYING_MAX], *next, *urgent;

        (void)state;
        for (unsigned i = 0; i < CALL_FLYING_MAX; i++)
                flying[i] = add('.', i % 2, 1, 60000);
        next = add('n', 0, 1, 60000);
        urgent = add('u', 1, 0, 60000);
        assert_int_equal(strlen(rig.started), CALL_FLYING_MAX + 1);
        assert_int_equal(rig.started[CALL_FLYING_MAX], 'u');
        land(flying[0]);
        land(flying[1]);
        assert_int_equal(rig.started[CALL_FLYING_MAX + 1], 'n');
        for (unsigned i = 2; i < CALL_FLYING_MAX; i++)
                land(flying[i]);
        land(next);
        land(urgent);
}

static void a_call_refused_for_its_rate_goes_before_the_others(void **state)
{
        struct call *a, *b;

        (void)state;
        a = add('a', 0, 1, 60000);
        rig.closed_ms[0] = 20000;
        b = add('b', 0, 1, 60000);
        call_queue_again(&rig.q, &rig.lanes[0], &a->queued);
        rig.closed_ms[0] = 0;
        call_queue_pump(&rig.q);
        assert_string_equal(rig.started, "aab");
        land(a);
        land(b);
}

static bool is_b(const struct queued_call *c)
{
        return ((const struct call *)c)->letter == 'b';
}

static void some_waiting_calls_can_be_refused(void **state)
{
        struct call *a;

        (void)state;
        rig.closed_ms[0] = rig.closed_ms[1] = 20000;
        a = add('a', 0, 1, 60000);
        add('b', 0, 1, 60000);
        add('b', 1, 2, 60000);
        call_queue_refuse_waiting(&rig.q, is_b, ERR_REFUSED, "the token is gone");
        until_refused("bb");
        assert_int_equal(rig.kind, ERR_REFUSED);
        assert_int_equal(rig.q.waiting, 1);
        land(a);
}

static void what_waits_moves_to_another_lane(void **state)
{
        struct call *a, *b;

        (void)state;
        rig.closed_ms[0] = 20000;
        a = add('a', 0, 2, 60000);
        b = add('b', 0, 1, 60000);
        call_queue_move(&rig.q, &rig.lanes[0], &rig.lanes[1]);
        assert_int_equal(rig.lanes[0].waiting, 0);
        call_queue_pump(&rig.q);
        assert_string_equal(rig.started, "ba");
        land(a);
        land(b);
}

static void a_refused_call_can_be_aborted(void **state)
{
        struct call *a = call_new('a', 1, 1000), *b = call_new('b', 1, 1000);

        (void)state;
        call_queue_refuse(&rig.q, &a->queued, ERR_INVALID, -1, "malformed");
        call_queue_refuse(&rig.q, &b->queued, ERR_INVALID, -1, "malformed");
        land(a);
        until_refused("b");
        assert_int_equal(rig.refusal_ms, -1);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                ROW(important_calls_go_first_when_the_lane_opens),
                ROW(lanes_do_not_wait_for_one_another),
                ROW(what_would_be_late_is_refused_at_once),
                ROW(a_deadline_ends_the_wait_for_an_answer),
                ROW(when_all_connections_are_busy_only_urgent_calls_go),
                ROW(a_call_refused_for_its_rate_goes_before_the_others),
                ROW(some_waiting_calls_can_be_refused),
                ROW(what_waits_moves_to_another_lane),
                ROW(a_refused_call_can_be_aborted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
