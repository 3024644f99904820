/*
 * The story of a message, report from rows that are written here by hand: every ending has its
 * sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/loop.h"
#include "road/report/trace_report.h"
#include "rows/schema.h"
#include "store/sql.h"

#define TRACE "0198c0ffee00aabbccddeeff00112233"

struct fixture {
        char *dir;
        struct loop *loop;
        struct store *store;
};

static int setup(void **state)
{
        struct fixture *f = mem_zalloc(sizeof(*f));
        struct store_options o = { .url = "sqlite", .migrations = schema_steps };
        struct error err;

        f->dir = scratch_new();
        f->loop = loop_new();
        o.dir = f->dir;
        f->store = store_open(f->loop, &o, &err);
        assert_non_null(f->store);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        store_close(f->store);
        loop_free(f->loop);
        scratch_free(f->dir);
        free(f);
        return 0;
}

/* ---- rows ---- */

struct row {
        int64_t a, b, c;
        const char *s, *t;
};

static int insert_event(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;

        return sql_exec(tx, err,
                        "INSERT INTO journal(seq, type, stream, time_ms, adapter, channel, trace,"
                        " key, payload)"
                        " VALUES(?1, ?2, 0, ?3, 'tg', 'c1', ?4, ?5, ?6)",
                        SQL_INT(r->a), SQL_TEXT(r->t ? r->t : "message.received"), SQL_INT(r->b),
                        SQL_TEXT(TRACE), SQL_TEXT(r->s),
                        SQL_TEXT("{\"text\":\"hello\",\"sender\":{\"id\":\"42\"}}"));
}

static int insert_decision(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;

        return sql_exec(tx, err,
                        "INSERT INTO trigger_log(event, time_ms, event_type, adapter, channel,"
                        " agent, turn, trace, status, reason)"
                        " VALUES(?1, 1000, 'message.received', 'tg', 'c1', 'gpt', ?2, ?3, ?4, ?5)",
                        SQL_INT(r->a), SQL_REF(r->b), SQL_TEXT(TRACE), SQL_TEXT(r->s),
                        SQL_TEXT(r->t));
}

static int insert_turn(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;

        return sql_exec(tx, err,
                        "INSERT INTO turns(id, conversation, agent, state, inputs, trace, attempt,"
                        " fence, due_ms, created_ms, started_ms, ended_ms, error_kind, error)"
                        " VALUES(?1, 1, 'gpt', ?2, '5,6', ?3, 2, 2, ?4, 1000, ?5, 1900, ?6, ?7)",
                        SQL_INT(r->a), SQL_TEXT(r->s), SQL_TEXT(TRACE), SQL_INT(r->b),
                        SQL_INT(r->c), SQL_TEXT(r->t ? "timeout" : NULL), SQL_TEXT(r->t));
}

static int insert_delivery(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;
        char platform_id[32];

        snprintf(platform_id, sizeof(platform_id), "p-%lld", (long long)r->a);
        return sql_exec(tx, err,
                        "INSERT INTO deliveries(id, turn, adapter, channel, kind, class, payload,"
                        " state, attempt, due_ms, created_ms, ended_ms, platform_id, error, trace)"
                        " VALUES(?1, ?2, 'tg', 'c1', 'send', 0, ?3, ?4, 1, 0, 1000, ?5, ?6, ?7,"
                        " ?8)",
                        SQL_INT(r->a), SQL_REF(r->b), SQL_TEXT("{\"text\":\"hi\"}"), SQL_TEXT(r->s),
                        SQL_INT(r->c), SQL_TEXT(platform_id), SQL_TEXT(r->t), SQL_TEXT(TRACE));
}

static int insert_attempt(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;

        return sql_exec(tx, err,
                        "INSERT INTO attempts(delivery, attempt, time_ms, outcome, detail)"
                        " VALUES(?1, ?2, 1500, ?3, ?4)",
                        SQL_INT(r->a), SQL_INT(r->b), SQL_TEXT(r->s), SQL_TEXT(r->t));
}

static void add(struct fixture *f, store_fn *fn, struct row r)
{
        struct error err;

        if (store_write_now(f->store, fn, &r, &err) < 0)
                fail_msg("%s", err.text);
}

/* ---- reports ---- */

struct report_read {
        const char *id;
        struct buf json;
};

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct report_read *t = arg;

        buf_clear(&t->json);
        return trace_report_write(tx, t->id, &t->json, err);
}

/* Yours to decref. */
static json_t *report_of(struct fixture *f, const char *id)
{
        struct report_read t = { .id = id };
        struct error err;
        json_t *report;

        buf_init(&t.json, 0);
        if (store_read_now(f->store, read_report, &t, &err) < 0)
                fail_msg("%s", err.text);
        report = json_read(t.json.data, t.json.len, &err);
        assert_non_null(report);
        buf_release(&t.json);
        return report;
}

static void expect_summary(struct fixture *f, const char *id, const char *sentence)
{
        json_t *report = report_of(f, id);

        assert_string_equal(json_str(report, "summary", ""), sentence);
        json_decref(report);
}

/* An event, its decision and a turn in this state. */
static void add_turn(struct fixture *f, const char *state, int64_t due_ms, int64_t started_ms,
                     const char *error)
{
        add(f, insert_event, (struct row){ 5, 1000, .s = "m5" });
        add(f, insert_decision, (struct row){ 5, 7, .s = "queued" });
        add(f, insert_turn, (struct row){ 7, due_ms, started_ms, state, error });
}

static void a_report_is_found_by_each_of_its_ids(void **state)
{
        static const char *const ids[] = { "evt-5", "trn-7", "dlv-9", TRACE, "m5", "p-9" };
        struct fixture *f = *state;

        add_turn(f, "done", 1000, 1000, NULL);
        add(f, insert_delivery, (struct row){ 9, 7, 2234, "sent", NULL });
        add(f, insert_attempt, (struct row){ 9, 1, .s = "done" });
        for (size_t i = 0; i < COUNT(ids); i++) {
                json_t *report = report_of(f, ids[i]);
                json_t *delivery = json_array_get(json_object_get(report, "deliveries"), 0);

                assert_string_equal(json_str(report, "summary", ""), "answered in 1.2 s");
                assert_string_equal(json_str(report, "traceId", ""), TRACE);
                assert_string_equal(json_str(json_object_get(report, "event"), "id", ""), "evt-5");
                assert_string_equal(json_str(json_object_get(report, "event"), "text", ""),
                                    "hello");
                assert_string_equal(json_str(json_object_get(report, "decision"), "agent", ""),
                                    "gpt");
                assert_string_equal(json_str(json_object_get(report, "turn"), "id", ""), "trn-7");
                assert_string_equal(json_str(delivery, "platformId", ""), "p-9");
                assert_int_equal(json_array_size(json_object_get(delivery, "attempts")), 1);
                json_decref(report);
        }
}

static void silence_has_a_reason(void **state)
{
        struct fixture *f = *state;

        add(f, insert_event, (struct row){ 5, 1000, .s = "m5" });
        add(f, insert_decision, (struct row){ 5, .s = "skipped", .t = "nobody mentioned the bot" });
        expect_summary(f, "evt-5", "silent because nobody mentioned the bot");
}

static void an_undecided_event_waits(void **state)
{
        struct fixture *f = *state;

        add(f, insert_event, (struct row){ 5, 1000, .s = "m5" });
        expect_summary(f, "m5", "stored, waiting to be decided");
}

static void our_own_events_need_no_decision(void **state)
{
        struct fixture *f = *state;

        add(f, insert_event, (struct row){ 5, 1000, .t = "adapter.connected" });
        expect_summary(f, "evt-5", "recorded; nothing had to be decided about it");
}

static void a_queued_turn_waits_for_its_agent_or_for_more_messages(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, "queued", 1000, 0, NULL);
        expect_summary(f, "evt-5", "waiting for its turn with agent 'gpt'");
        add(f, insert_turn, (struct row){ 8, clock_wall_ms() + 100000, 0, "queued", NULL });
        report = report_of(f, "trn-8");
        assert_non_null(strstr(json_str(report, "summary", ""),
                               "waiting for further messages for another "));
        json_decref(report);
}

static void a_running_turn_names_its_agent(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, "running", 1000, clock_wall_ms(), NULL);
        report = report_of(f, "evt-5");
        assert_non_null(strstr(json_str(report, "summary", ""), "waiting for agent 'gpt'"));
        json_decref(report);
}

static void a_failed_turn_says_why(void **state)
{
        struct fixture *f = *state;

        add_turn(f, "failed", 1000, 1000, "no answer in 30 s");
        expect_summary(f, "evt-5", "agent 'gpt' failed after 2 attempts: no answer in 30 s");
}

static void a_cancelled_turn_says_who_stopped_it(void **state)
{
        struct fixture *f = *state;

        add_turn(f, "cancelled", 1000, 1000, "stopped by the operator");
        expect_summary(f, "evt-5", "no answer: the turn was cancelled: stopped by the operator");
}

static void an_agent_may_choose_silence(void **state)
{
        struct fixture *f = *state;

        add_turn(f, "done", 1000, 1000, NULL);
        expect_summary(f, "evt-5", "silent because agent 'gpt' had nothing to say");
}

static void the_worst_delivery_decides(void **state)
{
        struct fixture *f = *state;

        add_turn(f, "done", 1000, 1000, NULL);
        add(f, insert_delivery, (struct row){ 9, 7, 2000, "sent", NULL });
        add(f, insert_delivery, (struct row){ 10, 7, 0, "queued", "rate limited" });
        expect_summary(f, "evt-5", "waiting for the answer to be delivered: rate limited");
        add(f, insert_delivery, (struct row){ 11, 7, 2000, "failed", "chat not found" });
        expect_summary(f, "evt-5", "the answer could not be delivered: chat not found");
        add(f, insert_delivery, (struct row){ 12, 7, 2000, "unknown", "the connection broke" });
        expect_summary(f, "evt-5",
                       "it is not known whether the answer arrived: the connection broke");
}

static void a_message_without_a_turn_has_a_report(void **state)
{
        struct fixture *f = *state;

        add(f, insert_delivery, (struct row){ 9, 0, 1250, "sent", NULL });
        expect_summary(f, "dlv-9", "sent in 250 ms");
        expect_summary(f, TRACE, "sent in 250 ms");
}

static void an_unknown_id_is_missing(void **state)
{
        static const char *const ids[] = { "evt-99", "trn-99",
                                           "dlv-99", "ffffffffffffffffffffffffffffffff",
                                           "m99",    "",
                                           "evt-",   "evt-99999999999999999999" };
        struct fixture *f = *state;

        for (size_t i = 0; i < COUNT(ids); i++) {
                struct report_read t = { .id = ids[i] };
                struct error err;

                buf_init(&t.json, 0);
                assert_int_equal(store_read_now(f->store, read_report, &t, &err), -1);
                assert_int_equal(err.kind, ERR_MISSING);
                assert_int_equal(t.json.len, 0);
                buf_release(&t.json);
        }
}

#define TOLD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TOLD(a_report_is_found_by_each_of_its_ids),
                TOLD(silence_has_a_reason),
                TOLD(an_undecided_event_waits),
                TOLD(our_own_events_need_no_decision),
                TOLD(a_queued_turn_waits_for_its_agent_or_for_more_messages),
                TOLD(a_running_turn_names_its_agent),
                TOLD(a_failed_turn_says_why),
                TOLD(a_cancelled_turn_says_who_stopped_it),
                TOLD(an_agent_may_choose_silence),
                TOLD(the_worst_delivery_decides),
                TOLD(a_message_without_a_turn_has_a_report),
                TOLD(an_unknown_id_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
