/* JSON parsed on a pool thread: who gets the tree, who frees it, and cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/json_offload.h"

struct result {
        int calls;
        bool ok;
        json_t *kept;
        bool keep;
        char text[64];
        struct error error;
};

static void on_parsed(void *arg, const struct json_parsed *p)
{
        struct result *r = arg;

        r->calls++;
        r->ok = p->root != NULL;
        r->error = p->error;
        r->kept = r->keep ? json_incref(p->root) : NULL;
        if (p->n < sizeof(r->text))
                memcpy(r->text, p->text, p->n);
}

static struct json_offload *start(struct loop *l, const char *text, struct result *r)
{
        return json_offload_start(l, mem_strdup(text), strlen(text), NULL, on_parsed, r);
}

/* A list of n numbers; yours to free. */
static char *large_list(size_t n)
{
        char *text = mem_alloc(2 * n + 2);

        text[0] = '[';
        for (size_t i = 0; i < n; i++) {
                text[2 * i + 1] = '7';
                text[2 * i + 2] = ',';
        }
        text[2 * n] = ']';
        text[2 * n + 1] = '\0';
        return text;
}

static void the_result_arrives_from_the_loop(void **state)
{
        struct loop *l = loop_new();
        struct result r = { 0 };

        (void)state;
        start(l, "{\"a\":1}", &r);
        assert_int_equal(r.calls, 0);
        loop_run(l);
        assert_int_equal(r.calls, 1);
        assert_true(r.ok);
        assert_string_equal(r.text, "{\"a\":1}");
        loop_free(l);
}

static void malformed_text_gives_the_position(void **state)
{
        struct loop *l = loop_new();
        struct result r = { 0 };

        (void)state;
        start(l, "{\"a\":\n x}", &r);
        loop_run(l);
        assert_int_equal(r.calls, 1);
        assert_false(r.ok);
        assert_int_equal(r.error.kind, ERR_INVALID);
        assert_non_null(strstr(r.error.text, "line 2"));
        loop_free(l);
}

static void a_cancelled_parse_reports_nothing(void **state)
{
        struct loop *l = loop_new();
        struct result r = { 0 };
        char *text = large_list(200000);

        (void)state;
        json_offload_cancel(json_offload_start(l, text, strlen(text), NULL, on_parsed, &r));
        json_offload_cancel(NULL);
        loop_run(l);
        assert_int_equal(r.calls, 0);
        loop_free(l);
}

static void a_parse_in_flight_ends_with_its_loop(void **state)
{
        struct loop *l = loop_new();
        struct result r = { 0 };
        char *text = large_list(200000);

        (void)state;
        json_offload_start(l, text, strlen(text), NULL, on_parsed, &r);
        loop_free(l);
        assert_int_equal(r.calls, 1);
}

static void a_kept_tree_outlives_the_call(void **state)
{
        struct loop *l = loop_new();
        struct result r = { .keep = true };
        char *text = large_list(1000);

        (void)state;
        json_offload_start(l, text, strlen(text), NULL, on_parsed, &r);
        loop_run(l);
        loop_free(l);
        assert_int_equal(json_array_size(r.kept), 1000);
        json_decref(r.kept);
}

static pthread_t parsed_on;

static json_t *parse_anything(const char *text, size_t n, struct error *err)
{
        (void)text, (void)n, (void)err;
        parsed_on = pthread_self();
        return json_true();
}

static void a_parser_of_the_caller_runs_on_the_pool(void **state)
{
        struct loop *l = loop_new();
        struct result r = { 0 };

        (void)state;
        json_offload_start(l, mem_strdup("no JSON"), 7, parse_anything, on_parsed, &r);
        loop_run(l);
        assert_true(r.ok);
        assert_false(pthread_equal(parsed_on, pthread_self()));
        loop_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_result_arrives_from_the_loop),
                cmocka_unit_test(malformed_text_gives_the_position),
                cmocka_unit_test(a_cancelled_parse_reports_nothing),
                cmocka_unit_test(a_parse_in_flight_ends_with_its_loop),
                cmocka_unit_test(a_kept_tree_outlives_the_call),
                cmocka_unit_test(a_parser_of_the_caller_runs_on_the_pool),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
