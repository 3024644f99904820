/* The loop: order, time, other threads, and an end without leftovers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"

#define POSTS 20000

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

static void a_call_deferred_by_a_deferred_call_waits_for_the_next_round(void **state)
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

static void posts_before_the_run_are_not_forgotten(void **state)
{
        struct log log = { .loop = loop_new() };
        struct step steps[2] = { { &log, 1 }, { &log, 2 } };

        (void)state;
        loop_post(log.loop, note, &steps[0]);
        loop_post(log.loop, note, &steps[1]);
        loop_run(log.loop);
        assert_int_equal(log.count, 2);
        assert_int_equal(log.seen[1], 2);
        loop_free(log.loop);
}

/* Two threads post numbers; each thread's numbers must arrive in order. */
struct poster {
        struct loop *loop;
        pthread_t thread;
        int next;
        int *done;
        struct post {
                struct poster *poster;
                int number;
        } posts[POSTS];
};

static void on_post(void *arg)
{
        struct post *post = arg;
        struct poster *p = post->poster;

        assert_int_equal(post->number, p->next);
        if (++p->next == POSTS && ++*p->done == 2)
                loop_stop(p->loop);
}

static void *post_all(void *arg)
{
        struct poster *p = arg;

        for (int i = 0; i < POSTS; i++) {
                p->posts[i] = (struct post){ p, i };
                loop_post(p->loop, on_post, &p->posts[i]);
        }
        return NULL;
}

static void ignore(void *arg)
{
        (void)arg;
}

static void posts_of_each_thread_arrive_in_their_order(void **state)
{
        struct loop *l = loop_new();
        struct timer *keep = timer_new(l, ignore, NULL);
        struct poster *posters = mem_array(2, sizeof(*posters));
        int done = 0;

        (void)state;
        timer_repeat(keep, 60000);
        for (int i = 0; i < 2; i++) {
                posters[i].loop = l;
                posters[i].done = &done;
                assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]),
                                 0);
        }
        loop_run(l);
        for (int i = 0; i < 2; i++) {
                pthread_join(posters[i].thread, NULL);
                assert_int_equal(posters[i].next, POSTS);
        }
        timer_free(keep);
        loop_free(l);
        free(posters);
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

static void work_is_done_elsewhere_and_told_on_the_loop(void **state)
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

static void a_timer_never_fires_early_even_when_the_loop_has_slept(void **state)
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
        struct log other = { .limit = 1, .loop = log.loop };

        (void)state;
        log.timer = timer_new(log.loop, restart_at_once, &log);
        timer_start(log.timer, 0);
        loop_defer(log.loop, defer_again, &other);
        loop_step(log.loop, true);
        loop_step(log.loop, true);
        assert_int_equal(other.count, 1);
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

static void stop(void *arg)
{
        loop_stop(arg);
}

static void a_stop_leaves_the_run_and_a_forgotten_one_does_not_hurt_the_end(void **state)
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

static void calls_deferred_while_the_loop_ends_still_run(void **state)
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

static void note_fired(void *arg)
{
        *(bool *)arg = true;
}

static void a_step_in_which_a_timer_fired_does_not_wait_for_more(void **state)
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
                cmocka_unit_test(deferred_calls_run_later_and_in_order),
                cmocka_unit_test(a_call_deferred_by_a_deferred_call_waits_for_the_next_round),
                cmocka_unit_test(posts_before_the_run_are_not_forgotten),
                cmocka_unit_test(posts_of_each_thread_arrive_in_their_order),
                cmocka_unit_test(work_is_done_elsewhere_and_told_on_the_loop),
                cmocka_unit_test(timers_fire_in_the_order_of_their_time),
                cmocka_unit_test(a_timer_never_fires_early_even_when_the_loop_has_slept),
                cmocka_unit_test(a_repeating_timer_may_free_itself),
                cmocka_unit_test(a_timer_that_restarts_itself_does_not_starve_the_others),
                cmocka_unit_test(a_stopped_or_freed_timer_does_not_fire),
                cmocka_unit_test(an_unreferenced_timer_does_not_keep_the_loop_running),
                cmocka_unit_test(a_stop_leaves_the_run_and_a_forgotten_one_does_not_hurt_the_end),
                cmocka_unit_test(calls_deferred_while_the_loop_ends_still_run),
                cmocka_unit_test(a_step_in_which_a_timer_fired_does_not_wait_for_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
