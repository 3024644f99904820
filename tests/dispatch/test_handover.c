/* A person takes over from the agent: where, for how long, and over restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

struct world {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct desk *desk;
        struct dispatch *dispatch;
};

static void open_world(struct world *w)
{
        struct store_options options = { .url = "sqlite", .dir = w->dir, .migrations = store_schema };
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct error err;

        w->loop = loop_new();
        w->store = store_open(w->loop, &options, &err);
        assert_non_null(w->store);
        w->desk = desk_open(w->store, &err);
        assert_non_null(w->desk);
        w->dispatch = dispatch_new();
        a[0] = (struct dispatch_adapter){ .name = mem_strdup("tg"),
                                          .platform = mem_strdup("telegram"),
                                          .trusted = true };
        dispatch_set(w->dispatch, a, 1, NULL, 0, "echo");
        dispatch_set_desk(w->dispatch, w->desk);
}

static void close_world(struct world *w)
{
        store_close(w->store);
        dispatch_free(w->dispatch);
        desk_free(w->desk);
        loop_free(w->loop);
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        open_world(w);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        close_world(w);
        scratch_free(w->dir);
        free(w);
        return 0;
}

/* ---- changes, awaited ---- */

struct outcome {
        bool done;
        enum error_kind kind;
};

static void on_done(void *arg, const struct error *err)
{
        struct outcome *o = arg;

        o->done = true;
        o->kind = err ? err->kind : ERR_NONE;
}

static enum error_kind wait_for(struct world *w, const struct outcome *o)
{
        while (!o->done)
                loop_step(w->loop, true);
        return o->kind;
}

static enum error_kind pause_at(struct world *w, const char *channel, const char *thread, int64_t until_ms)
{
        struct handover_pause p = {
                .place = { "tg", channel, thread }, .by = "Ann", .reason = "a refund", .until_ms = until_ms
        };
        struct outcome o = { 0 };

        handover_pause(w->desk->handover, &p, on_done, &o);
        return wait_for(w, &o);
}

static enum error_kind resume_at(struct world *w, const char *channel, const char *thread)
{
        struct handover_place place = { "tg", channel, thread };
        struct outcome o = { 0 };

        handover_resume(w->desk->handover, &place, on_done, &o);
        return wait_for(w, &o);
}

static struct decision decide(struct world *w, const char *channel, const char *thread)
{
        struct incoming in = { .adapter = "tg", .channel = channel, .thread = thread, .text = "hello" };
        struct decision out;

        dispatch_decide(w->dispatch, &in, &out);
        return out;
}

/* ---- tests ---- */

static void a_paused_chat_is_stored_and_remembered_but_not_answered(void **state)
{
        struct world *w = *state;
        struct decision out;

        assert_int_equal(pause_at(w, "7", NULL, 0), ERR_NONE);
        out = decide(w, "7", NULL);
        assert_false(out.trigger);
        assert_true(out.remember);
        assert_string_equal(out.agent, "echo");
        assert_non_null(strstr(out.reason, "the agent is paused here since 20"));
        assert_non_null(strstr(out.reason, " by Ann: a refund"));
        assert_true(decide(w, "8", NULL).trigger);
        assert_int_equal(resume_at(w, "7", NULL), ERR_NONE);
        assert_true(decide(w, "7", NULL).trigger);
        assert_int_equal(resume_at(w, "7", NULL), ERR_MISSING);
}

static void a_channel_is_paused_with_its_threads_and_a_thread_alone(void **state)
{
        struct world *w = *state;

        assert_int_equal(pause_at(w, "7", "9", 0), ERR_NONE);
        assert_false(decide(w, "7", "9").trigger);
        assert_true(decide(w, "7", "10").trigger);
        assert_true(decide(w, "7", NULL).trigger);
        assert_int_equal(pause_at(w, "7", NULL, 0), ERR_NONE);
        assert_false(decide(w, "7", "10").trigger);
        assert_int_equal(resume_at(w, "7", NULL), ERR_NONE);
        assert_false(decide(w, "7", "9").trigger);
}

static void a_pause_outlives_the_process(void **state)
{
        struct world *w = *state;
        size_t count;

        assert_int_equal(pause_at(w, "7", NULL, 0), ERR_NONE);
        assert_int_equal(pause_at(w, "8", NULL, clock_wall_ms() - 1), ERR_NONE);
        close_world(w);
        open_world(w);
        assert_false(decide(w, "7", NULL).trigger);
        free(handover_list(w->desk->handover, &count));
        assert_int_equal(count, 1);
}

static void a_pause_ends_by_itself_at_its_time(void **state)
{
        struct world *w = *state;
        size_t count;

        assert_int_equal(pause_at(w, "7", NULL, clock_wall_ms() - 1), ERR_NONE);
        assert_true(decide(w, "7", NULL).trigger);
        free(handover_list(w->desk->handover, &count));
        assert_int_equal(count, 0);
        assert_int_equal(pause_at(w, "7", NULL, clock_wall_ms() + 3600000), ERR_NONE);
        assert_false(decide(w, "7", NULL).trigger);
}

/* The road would run the write with the decision; here it is run alone. */
static void commit_also(struct world *w, struct decision *out)
{
        struct error err;

        assert_non_null(out->also.fn);
        assert_int_equal(store_write_now(w->store, out->also.fn, out->also.arg, &err), 0);
        out->also.done(out->also.arg);
}

static void a_command_counts_from_its_decision_on_and_is_written_with_it(void **state)
{
        struct world *w = *state;
        struct handover_pause p = { .place = { "tg", "7", NULL }, .by = "Ann" };
        struct decision out = { 0 };

        assert_true(handover_pause_with(w->desk->handover, &p, &out));
        assert_false(decide(w, "7", NULL).trigger); /* what follows in the same breath is not answered */
        commit_also(w, &out);
        close_world(w);
        open_world(w);
        assert_false(decide(w, "7", NULL).trigger);
        out = (struct decision){ 0 };
        assert_true(handover_resume_with(w->desk->handover, &p.place, &out));
        assert_true(decide(w, "7", NULL).trigger);
        commit_also(w, &out);
        assert_false(handover_resume_with(w->desk->handover, &p.place, &out));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_paused_chat_is_stored_and_remembered_but_not_answered,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_channel_is_paused_with_its_threads_and_a_thread_alone,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_pause_outlives_the_process, setup, teardown),
                cmocka_unit_test_setup_teardown(a_pause_ends_by_itself_at_its_time, setup, teardown),
                cmocka_unit_test_setup_teardown(a_command_counts_from_its_decision_on_and_is_written_with_it,
                                                setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
