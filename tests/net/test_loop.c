/* The loop: order of calls, work on the pool, and an end without leftovers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "net/loop.h"

struct log {
        struct loop *loop;
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

static void deferred_calls_run_later_and_in_order(void **state)
{
        struct log log = { .loop = loop_new() };
        struct step steps[3] = { { &log, 1 }, { &log, 2 }, { &log, 3 } };

        (void)state;
        for (int i = 0; i < 3; i++)
                loop_defer(log.loop, note, &steps[i]);
        assert_int_equal(log.count, 0);
        loop_run(log.loop);
        assert_int_equal(log.count, 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(log.seen[i], i + 1);
        loop_free(log.loop);
}

static void defer_again(void *arg)
{
        struct log *log = arg;

        if (++log->count < log->limit)
                loop_defer(log->loop, defer_again, log);
}

static void a_call_deferred_by_a_deferred_call_runs_in_the_next_round(void **state)
{
        struct log log = { .loop = loop_new(), .limit = 3 };

        (void)state;
        loop_defer(log.loop, defer_again, &log);
        loop_step(log.loop, false);
        assert_int_equal(log.count, 1);
        loop_step(log.loop, true);
        assert_int_equal(log.count, 2);
        loop_run(log.loop);
        assert_int_equal(log.count, 3);
        loop_free(log.loop);
}

static void ignore(void *arg)
{
        (void)arg;
}

struct job {
        pthread_t worked, done;
        bool has_worked, is_done;
};

static void work(void *arg)
{
        struct job *j = arg;

        j->worked = pthread_self();
        j->has_worked = true;
}

static void work_done(void *arg)
{
        struct job *j = arg;

        assert_true(j->has_worked);
        j->done = pthread_self();
        j->is_done = true;
}

static void work_runs_on_the_pool_and_ends_on_the_loop(void **state)
{
        struct loop *l = loop_new();
        struct job j = { 0 };

        (void)state;
        loop_work(l, work, work_done, &j);
        loop_run(l);
        assert_true(j.is_done);
        assert_false(pthread_equal(j.worked, pthread_self()));
        assert_true(pthread_equal(j.done, pthread_self()));
        loop_free(l);
}

static void stop(void *arg)
{
        loop_stop(arg);
}

static void a_stop_ends_the_run_and_without_a_run_does_no_harm(void **state)
{
        struct loop *l = loop_new();
        struct timer *t = timer_new(l, ignore, NULL);

        (void)state;
        timer_repeat(t, 60000);
        loop_defer(l, stop, l);
        loop_run(l);
        timer_free(t);
        loop_stop(l);
        loop_free(l);
}

static void on_closed(uv_handle_t *h)
{
        struct log *log = h->data;

        loop_defer(log->loop, defer_again, log);
}

static void calls_deferred_while_the_loop_is_freed_still_run(void **state)
{
        struct log log = { .loop = loop_new(), .limit = 2 };
        uv_idle_t idle;

        (void)state;
        uv_idle_init(loop_uv(log.loop), &idle);
        idle.data = &log;
        uv_close((uv_handle_t *)&idle, on_closed);
        loop_free(log.loop);
        assert_int_equal(log.count, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deferred_calls_run_later_and_in_order),
                cmocka_unit_test(a_call_deferred_by_a_deferred_call_runs_in_the_next_round),
                cmocka_unit_test(work_runs_on_the_pool_and_ends_on_the_loop),
                cmocka_unit_test(a_stop_ends_the_run_and_without_a_run_does_no_harm),
                cmocka_unit_test(calls_deferred_while_the_loop_is_freed_still_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
