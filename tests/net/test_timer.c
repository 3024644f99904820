/* Timers: order, precision, and what is allowed inside their callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "net/loop.h"

struct log {
        struct loop *loop;
        struct timer *timer;
        int seen[16];
        int count, limit;
};

struct step {
        struct log *log;
        int number;
};

static void note(void *arg)
{
        struct step *s = arg;

        s->log->seen[s->log->count++] = s->number;
}

static void ignore(void *arg)
{
        (void)arg;
}

static void timers_fire_in_the_order_of_their_time(void **state)
{
        struct log log = { .loop = loop_new() };
        struct step late = { &log, 2 }, early = { &log, 1 };
        struct timer *a = timer_new(log.loop, note, &late), *b = timer_new(log.loop, note, &early);

        (void)state;
        timer_start(a, 20);
        timer_start(b, 1);
        assert_true(timer_active(a));
        loop_run(log.loop);
        assert_false(timer_active(a));
        assert_int_equal(log.count, 2);
        assert_int_equal(log.seen[0], 1);
        timer_free(a);
        timer_free(b);
        loop_free(log.loop);
}

static void a_timer_never_fires_early_after_a_long_callback(void **state)
{
        struct log log = { .loop = loop_new() };
        struct step step = { &log, 1 };
        struct timer *t = timer_new(log.loop, note, &step);
        uint64_t started;

        (void)state;
        usleep(30000); /* the loop's idea of now is old by this much */
        started = uv_hrtime();
        timer_start(t, 20);
        loop_run(log.loop);
        assert_true(uv_hrtime() - started >= 19000000);
        timer_free(t);
        loop_free(log.loop);
}

static void count_and_free(void *arg)
{
        struct log *log = arg;

        if (++log->count < log->limit)
                return;
        timer_free(log->timer);
        log->timer = NULL;
}

static void a_repeating_timer_may_free_itself(void **state)
{
        struct log log = { .loop = loop_new(), .limit = 3 };

        (void)state;
        log.timer = timer_new(log.loop, count_and_free, &log);
        timer_repeat(log.timer, 0);
        loop_run(log.loop);
        assert_int_equal(log.count, 3);
        loop_free(log.loop);
}

static void restart_at_once(void *arg)
{
        struct log *log = arg;

        if (++log->count < 1000)
                timer_start(log->timer, 0);
}

static void a_timer_that_restarts_itself_does_not_starve_the_others(void **state)
{
        struct log log = { .loop = loop_new() };
        struct log others = { .loop = log.loop };
        struct step other = { &others, 1 };

        (void)state;
        log.timer = timer_new(log.loop, restart_at_once, &log);
        timer_start(log.timer, 0);
        loop_defer(log.loop, note, &other);
        loop_step(log.loop, true);
        loop_step(log.loop, true);
        assert_int_equal(others.count, 1);
        assert_true(log.count < 1000);
        timer_free(log.timer);
        loop_free(log.loop);
}

static void a_stopped_or_freed_timer_does_not_fire(void **state)
{
        struct log log = { .loop = loop_new() };
        struct step step = { &log, 1 };
        struct timer *a = timer_new(log.loop, note, &step), *b = timer_new(log.loop, note, &step);

        (void)state;
        timer_start(a, 1);
        timer_start(b, 1);
        timer_stop(a);
        timer_free(b);
        timer_free(NULL);
        loop_run(log.loop);
        assert_int_equal(log.count, 0);
        timer_free(a);
        loop_free(log.loop);
}

static void an_unreferenced_timer_does_not_keep_the_loop_running(void **state)
{
        struct loop *l = loop_new();
        struct timer *t = timer_new(l, ignore, NULL);

        (void)state;
        timer_repeat(t, 60000);
        timer_unref(t);
        loop_run(l);
        assert_true(timer_active(t));
        timer_free(t);
        loop_free(l);
}

static void note_fired(void *arg)
{
        *(bool *)arg = true;
}

static void a_step_ends_once_a_timer_has_fired(void **state)
{
        struct loop *l = loop_new();
        bool fired = false, later = false;
        struct timer *soon = timer_new(l, note_fired, &fired),
                     *hour = timer_new(l, note_fired, &later);

        (void)state;
        timer_start(hour, 3600000);
        timer_start(soon, 1);
        uv_sleep(5); /* it is due when the step begins */
        assert_true(loop_step(l, true));
        assert_true(fired);
        assert_false(later);
        timer_free(soon);
        timer_free(hour);
        loop_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(timers_fire_in_the_order_of_their_time),
                cmocka_unit_test(a_timer_never_fires_early_after_a_long_callback),
                cmocka_unit_test(a_repeating_timer_may_free_itself),
                cmocka_unit_test(a_timer_that_restarts_itself_does_not_starve_the_others),
                cmocka_unit_test(a_stopped_or_freed_timer_does_not_fire),
                cmocka_unit_test(an_unreferenced_timer_does_not_keep_the_loop_running),
                cmocka_unit_test(a_step_ends_once_a_timer_has_fired),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
