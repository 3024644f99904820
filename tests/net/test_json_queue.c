/* JSON texts in their order, large ones parsed on the pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/json_offload.h"
#include "net/json_queue.h"

#define STEPS 100000

struct rig {
        struct loop *loop;
        struct json_queue *queue;
        char *large;
        char seen[100]; /* "n" of each object, "?" for what is none */
        unsigned parsed, began, ended;
        bool frees;
};

static void on_parsed(void *arg, json_t *root)
{
        struct rig *g = arg;
        size_t at = strlen(g->seen);

        g->parsed++;
        snprintf(g->seen + at, sizeof(g->seen) - at, "%s", json_str(root, "n", "?"));
        if (g->frees) {
                json_queue_free(g->queue);
                g->queue = NULL;
        }
}

static void on_busy(void *arg, bool busy)
{
        struct rig *g = arg;

        g->began += busy;
        g->ended += !busy;
}

static int set_up(void **state)
{
        static const struct json_queue_handlers handlers = { .parsed = on_parsed, .busy = on_busy };
        struct rig *g = mem_zalloc(sizeof(*g));
        size_t n = JSON_OFFLOAD_MIN;
        char *filling = mem_alloc(n + 1);

        memset(filling, 'x', n);
        filling[n] = '\0';
        g->large = mem_printf("{\"n\":\"L\",\"x\":\"%s\"}", filling);
        free(filling);
        g->loop = loop_new();
        g->queue = json_queue_new(g->loop, 100, &handlers, g);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        json_queue_free(g->queue);
        for (int i = 0; i < 10; i++)
                loop_step(g->loop, false);
        loop_free(g->loop);
        free(g->large);
        free(g);
        return 0;
}

static int add(struct rig *g, const char *text)
{
        return json_queue_add(g->queue, text, strlen(text));
}

static void small_texts_are_parsed_at_once(void **state)
{
        struct rig *g = *state;

        assert_int_equal(add(g, "{\"n\":\"a\"}"), 0);
        assert_int_equal(add(g, "nonsense"), 0);
        assert_int_equal(add(g, "{\"n\":\"b\"}"), 0);
        assert_string_equal(g->seen, "a?b");
        assert_false(json_queue_busy(g->queue));
}

static void texts_behind_a_large_one_wait_for_it(void **state)
{
        struct rig *g = *state;

        assert_int_equal(add(g, g->large), 0);
        assert_true(json_queue_busy(g->queue));
        assert_int_equal(add(g, "{\"n\":\"a\"}"), 0);
        assert_int_equal(add(g, "{\"n\":\"b\"}"), 0);
        assert_string_equal(g->seen, "");
        for (int i = 0; i < STEPS && g->ended == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(g->seen, "Lab");
        assert_int_equal(g->began, 1);
        assert_false(json_queue_busy(g->queue));
}

static void too_much_behind_a_large_one_is_refused(void **state)
{
        struct rig *g = *state;
        char text[101];

        memset(text, ' ', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(add(g, g->large), 0);
        assert_int_equal(add(g, "{}"), 0);
        assert_int_equal(add(g, text), -1);
}

static void it_may_be_freed_by_its_handler(void **state)
{
        struct rig *g = *state;

        assert_int_equal(add(g, g->large), 0);
        assert_int_equal(add(g, "{\"n\":\"a\"}"), 0);
        g->frees = true;
        for (int i = 0; i < STEPS && g->parsed == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(g->seen, "L");
        assert_null(g->queue);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(small_texts_are_parsed_at_once),
                T(texts_behind_a_large_one_wait_for_it),
                T(too_much_behind_a_large_one_is_refused),
                T(it_may_be_freed_by_its_handler),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
