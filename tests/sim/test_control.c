/*
 * What all simulators share, on a world without a platform: the journals, faults and settings of
 * the control API, and the life of a call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_rig.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/control.h"
#include "sim/world_settings.h"

struct world {
        struct world_base base;
};

/* ---- the platform ---- */

struct call {
        struct call_base base;
        struct http_exchange *x;
        int status;
};

static void record(const struct call *c, struct journal *j)
{
        jsonw_int(journal_open(j, "call", 0), "status", c->status);
        journal_close(j);
}

static void fail_late(struct call *c, int status)
{
        c->status = status;
}

static void deliver(struct call *c)
{
        if (c->base.cut)
                http_cut(c->x);
        else
                http_answer(c->x, c->status, NULL, "", 0);
        call_base_release(&c->base);
        free(c);
}

/* A call of "method"; ?valid=false breaks the rules. */
static void serve(struct http_exchange *x)
{
        static const struct call_ops ops = { record, fail_late, deliver };
        struct world *w = http_server_arg(x);
        struct call *c = mem_zalloc(sizeof(*c));
        const struct fault *f;

        call_base_init(&c->base, &w->base, &ops);
        c->x = x;
        c->base.valid = !http_query(x, "valid");
        f = call_base_fault(&c->base, "method");
        c->status = f && f->kind == FAULT_ERROR ? f->status : 200;
        call_base_finish(&c->base);
}

/* {"kind":"a","of":7}: an entry of this kind and subject. */
static int write_entry(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *kind = strcmp(json_str(request, "kind", ""), "a") == 0 ? "a" : "b";

        (void)out;
        (void)err;
        journal_open(w->base.sent, kind, json_int(request, "of", 0));
        journal_close(w->base.sent);
        return 0;
}

static const char help[] = "how to control it\n";
static const struct http_route routes[] = {
        CONTROL_SHARED(help),
        CONTROL_POST("/sim/write", write_entry),
        { "GET", "/api", serve, 0, NULL },
};
static const struct world_setting no_settings[] = { { 0 } };

static void world_free(struct world *w)
{
        call_base_cut_all(&w->base);
        world_base_release(&w->base);
        free(w);
}

static int setup(void **state)
{
        struct sim_rig *r = sim_rig_new(NULL);

        r->world = mem_zalloc(sizeof(*r->world));
        world_base_init(&r->world->base, r->loop, 100, no_settings);
        sim_rig_serve(r, &r->world->base, routes, COUNT(routes), NULL);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        sim_rig_free(*state, world_free);
        return 0;
}

static void write_kind(struct sim_rig *r, const char *request)
{
        sim_rig_control_ok(r, "write", request);
}

/* The numbers of the entries of a page are these; frees the page. */
static void assert_page(json_t *page, const char *expected, bool missed)
{
        struct buf b;
        const json_t *item;
        size_t i;

        buf_init(&b, 0);
        json_array_foreach(json_object_get(page, "items"), i, item)
                buf_addf(&b, "%s%lld", i ? " " : "", (long long)json_int(item, "seq", 0));
        assert_string_equal(b.data, expected);
        assert_int_equal(json_flag(page, "missed", !missed), missed);
        buf_release(&b);
        json_decref(page);
}

/* The status of a call; 0: it was cut. */
static int call(struct sim_rig *r)
{
        return sim_rig_ask(r, "/api", NULL).status;
}

/* ---- journals ---- */

static void entries_are_found_by_number_kind_and_subject(void **state)
{
        struct sim_rig *r = *state;

        write_kind(r, "{\"kind\":\"a\",\"of\":7}");
        write_kind(r, "{\"kind\":\"b\",\"of\":7}");
        write_kind(r, "{\"kind\":\"a\",\"of\":8}");
        assert_page(sim_rig_control(r, "messages", NULL), "1 2 3", false);
        assert_page(sim_rig_control(r, "messages?after=1&limit=1", NULL), "2", false);
        assert_page(sim_rig_control(r, "messages?kind=a", NULL), "1 3", false);
        assert_page(sim_rig_control(r, "messages?chat=7", NULL), "1 2", false);
        assert_page(sim_rig_control(r, "messages?channel=8", NULL), "3", false);
}

static void a_reader_waits_for_a_matching_entry(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_start(r, &a, NULL, "/sim/messages?kind=b&wait=60000", NULL);
        write_kind(r, "{\"kind\":\"a\"}");
        write_kind(r, "{\"kind\":\"a\"}");
        assert_false(a.done);
        write_kind(r, "{\"kind\":\"b\"}");
        sim_rig_await(r, &a);
        assert_page(a.body, "3", false);
        assert_page(sim_rig_control(r, "messages?after=3&wait=1", NULL), "", false);
}

static void old_entries_are_dropped_by_count_and_by_size(void **state)
{
        struct sim_rig *r = *state;
        struct world_base *w = &r->world->base;

        journal_free(w->sent);
        w->sent = journal_new(r->loop, 3, 1000);
        for (int i = 0; i < 4; i++)
                write_kind(r, "{\"kind\":\"a\"}");
        assert_page(sim_rig_control(r, "messages", NULL), "2 3 4", true);
        assert_page(sim_rig_control(r, "messages?after=1", NULL), "2 3 4", false);
        journal_free(w->sent);
        w->sent = journal_new(r->loop, 100, 2 * strlen("{\"seq\":1,\"kind\":\"a\"}"));
        for (int i = 0; i < 4; i++)
                write_kind(r, "{\"kind\":\"a\"}");
        assert_page(sim_rig_control(r, "messages", NULL), "3 4", true);
}

/* ---- faults ---- */

static void a_fault_has_a_method_and_a_count(void **state)
{
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"method\":\"other\"}");
        assert_int_equal(call(r), 200);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"method\":\"METHOD\",\"next\":2}");
        assert_int_equal(call(r), 502);
        assert_int_equal(call(r), 502);
        assert_int_equal(call(r), 200);
}

/* One bit for each of 64 calls: did it fail? */
static uint64_t failures(struct sim_rig *r)
{
        uint64_t failed = 0;

        for (int i = 0; i < 64; i++)
                failed = failed << 1 | (call(r) != 200);
        return failed;
}

static void a_seed_repeats_random_faults(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;
        uint64_t first;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"probability\":0.5,\"seed\":3}");
        first = failures(r);
        assert_in_range(__builtin_popcountll(first), 12, 52);
        assert_true(failures(r) != first);
        sim_rig_control_ok(r, "faults", "{\"seed\":3}");
        assert_true(failures(r) == first);
        sim_rig_start(r, &a, "DELETE", "/sim/faults", NULL);
        sim_rig_await(r, &a);
        assert_int_equal(json_array_size(json_object_get(a.body, "faults")), 0);
        assert_true(json_int(json_object_get(a.body, "fired"), "error", 0) > 0);
        json_decref(a.body);
        assert_true(failures(r) == 0);
}

/* ---- calls ---- */

static void valid_calls_are_recorded_on_request(void **state)
{
        struct sim_rig *r = *state;

        call(r);
        sim_rig_ask(r, "/api?valid=false", NULL);
        assert_page(sim_rig_control(r, "calls", NULL), "1 2", false);
        assert_page(sim_rig_control(r, "calls?valid=false", NULL), "1", false);
        sim_rig_control_ok(r, "settings", "{\"record_calls\":false}");
        call(r);
        sim_rig_ask(r, "/api?valid=false", NULL);
        assert_page(sim_rig_control(r, "calls", NULL), "1 2", false);
        assert_page(sim_rig_control(r, "calls?valid=false", NULL), "1 2", false);
        assert_int_equal(r->world->base.call_count, 4);
        assert_int_equal(r->world->base.invalid_count, 2);
}

static void an_error_or_a_cut_may_follow_the_effect(void **state)
{
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"cut_before\"}");
        assert_int_equal(call(r), 0);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"cut_after\"}");
        assert_int_equal(call(r), 0);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error_after\",\"status\":500}");
        assert_int_equal(call(r), 500);
        assert_int_equal(call(r), 200);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(entries_are_found_by_number_kind_and_subject),
                TEST(a_reader_waits_for_a_matching_entry),
                TEST(old_entries_are_dropped_by_count_and_by_size),
                TEST(a_fault_has_a_method_and_a_count),
                TEST(a_seed_repeats_random_faults),
                TEST(valid_calls_are_recorded_on_request),
                TEST(an_error_or_a_cut_may_follow_the_effect),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
