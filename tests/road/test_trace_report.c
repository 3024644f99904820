/* Trace reports of rows written by the test: each outcome has its sentence. */
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
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/loop.h"
#include "road/report/trace_report.h"
#include "rows/a2a_turn_row.h"
#include "rows/delivery_row.h"
#include "rows/journal_row.h"
#include "rows/schema.h"
#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"

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

/* ---- rows: event 1 with the key "m1", turn 7, deliveries from 9 on ---- */

static int insert_event(struct store_tx *tx, void *arg, struct error *err)
{
        const char *type = arg;
        bool ours = strcmp(type, "message.received") != 0;
        int64_t seq;

        return journal_row_insert(tx,
                                  &(struct journal_row){ .type = type,
                                                         .time_ms = 1000,
                                                         .adapter = "tg",
                                                         .channel = "c1",
                                                         .trace = TRACE,
                                                         .key = ours ? NULL : "m1",
                                                         .payload = "{\"text\":\"hello\","
                                                                    "\"sender\":{\"id\":\"42\"}}" },
                                  &seq, err);
}

/* Of a chat on Telegram, unless the row says otherwise. */
static int insert_journal(struct store_tx *tx, void *arg, struct error *err)
{
        struct journal_row row = *(struct journal_row *)arg;
        int64_t seq;

        row.type = "message.received";
        row.time_ms = 1000;
        row.adapter = row.adapter ? row.adapter : "tg";
        row.channel = row.channel ? row.channel : "c1";
        row.trace = row.trace ? row.trace : TRACE;
        return journal_row_insert(tx, &row, &seq, err);
}

static int insert_decision(struct store_tx *tx, void *arg, struct error *err)
{
        struct trigger_log_row *row = arg;

        row->event = row->event ? row->event : 1;
        row->time_ms = 1000;
        row->event_type = "message.received";
        row->adapter = "tg";
        row->channel = "c1";
        row->agent = "gpt";
        row->trace = TRACE;
        return trigger_log_row_insert(tx, row, err);
}

static int insert_turn(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_row *row = arg, queued;

        row->conversation = 1;
        row->agent = "gpt";
        row->inputs = "1,2";
        row->trace = TRACE;
        row->attempt = row->fence = 2;
        row->created_ms = 1000;
        row->ended_ms = 1900;
        row->error_kind = row->error ? "timeout" : NULL;
        queued = *row;
        queued.state = row->state == TURN_RUNNING ? TURN_RUNNING : TURN_QUEUED;
        if (turn_row_insert(tx, &queued, err) < 0)
                return -1;
        return row->state == queued.state ? 0 : turn_row_finish(tx, row, err);
}

static int insert_delivery(struct store_tx *tx, void *arg, struct error *err)
{
        struct delivery_row *row = arg, queued;
        char platform_id[32];

        snprintf(platform_id, sizeof(platform_id), "p-%lld", (long long)row->id);
        row->adapter = "tg";
        row->channel = row->channel ? row->channel : "c1";
        row->payload = "{\"text\":\"hi\"}";
        row->attempt = 1;
        row->created_ms = 1000;
        row->platform_id = row->platform_id ? row->platform_id : platform_id;
        row->trace = TRACE;
        queued = *row;
        queued.state = DELIVERY_QUEUED;
        if (delivery_row_insert(tx, &queued, err) < 0)
                return -1;
        if (row->reply_of && delivery_row_set_reply_of(tx, row->id, row->reply_of, err) < 0)
                return -1;
        return delivery_row_settle(tx, row, err); /* writes the error as well */
}

static int insert_attempt(struct store_tx *tx, void *arg, struct error *err)
{
        return delivery_row_put_attempt(tx, arg, err);
}

static void add(struct fixture *f, store_fn *fn, const void *row)
{
        struct error err;

        if (store_write_now(f->store, fn, (void *)(uintptr_t)row, &err) < 0)
                fail_msg("%s", err.text);
}

static void add_event(struct fixture *f)
{
        add(f, insert_event, "message.received");
}

static void add_delivery(struct fixture *f, int64_t id, enum delivery_state state,
                         const char *error)
{
        add(f, insert_delivery,
            &(struct delivery_row){ .id = id,
                                    .turn = 7,
                                    .state = state,
                                    .ended_ms = state == DELIVERY_QUEUED ? 0 : 2234,
                                    .error = error });
}

/* An event, its decision and a turn in this state. */
static void add_turn(struct fixture *f, enum turn_state state, int64_t started_ms,
                     const char *error)
{
        add_event(f);
        add(f, insert_decision, &(struct trigger_log_row){ .turn = 7, .status = TRIGGER_QUEUED });
        add(f, insert_turn,
            &(struct turn_row){ .id = 7,
                                .state = state,
                                .due_ms = 1000,
                                .started_ms = started_ms,
                                .error = error });
}

/* ---- reports ---- */

struct report_read {
        const char *id, *adapters;
        struct buf json;
};

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct report_read *t = arg;

        buf_clear(&t->json);
        return trace_report_write(tx, t->id, t->adapters, &t->json, err);
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

static void a_report_is_found_by_each_of_its_ids(void **state)
{
        static const char *const ids[] = { "evt-1", "trn-7", "dlv-9", TRACE, "m1", "p-9" };
        struct fixture *f = *state;

        add_turn(f, TURN_DONE, 1000, NULL);
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        add(f, insert_attempt, &(struct attempt_row){ 9, 1, 1500, "sent", NULL });
        for (size_t i = 0; i < COUNT(ids); i++) {
                json_t *report = report_of(f, ids[i]);
                json_t *delivery = json_array_get(json_object_get(report, "deliveries"), 0);

                assert_non_null(strstr(json_str(report, "summary", ""), "answered in 1.2 s"));
                assert_string_equal(json_str(report, "traceId", ""), TRACE);
                assert_string_equal(json_str(json_object_get(report, "event"), "id", ""), "evt-1");
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

static int insert_a2a_turn(struct store_tx *tx, void *arg, struct error *err)
{
        return a2a_turn_row_put(tx, arg, 2, err) == 1 ? 0 : -1;
}

static void what_an_agent_was_asked_is_shown(void **state)
{
        struct fixture *f = *state;
        struct a2a_turn_row row = { .turn = 7,
                                    .agent = "far",
                                    .name = "s",
                                    .message = "m-1",
                                    .task = "",
                                    .since = "",
                                    .used_ms = 1200 };
        json_t *report, *task;

        add_turn(f, TURN_RUNNING, 1100, NULL);
        report = report_of(f, "evt-1");
        assert_null(json_object_get(report, "remoteTask"));
        json_decref(report);

        add(f, insert_a2a_turn, &row);
        report = report_of(f, "evt-1");
        task = json_object_get(report, "remoteTask");
        assert_string_equal(json_str(task, "agent", ""), "far");
        assert_string_equal(json_str(task, "messageId", ""), "m-1");
        assert_string_equal(json_str(task, "at", ""), "1970-01-01T00:00:01.200Z");
        assert_null(json_str(task, "taskId", NULL));
        json_decref(report);

        row.task = "task-4";
        add(f, insert_a2a_turn, &row);
        report = report_of(f, "evt-1");
        task = json_object_get(report, "remoteTask");
        assert_string_equal(json_str(task, "taskId", ""), "task-4");
        json_decref(report);
}

static void a_message_of_the_bot_is_its_answer(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, TURN_DONE, 1000, NULL);
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        expect_summary(f, "p-9", "the bot's answer to evt-1 (trn-7): answered in 1.2 s");
        expect_summary(f, "dlv-9", "the bot's answer to evt-1 (trn-7): answered in 1.2 s");
        report = report_of(f, "p-9");
        assert_string_equal(json_str(json_object_get(report, "answerTo"), "eventId", ""), "evt-1");
        json_decref(report);
        report = report_of(f, "evt-1");
        assert_true(json_is_null(json_object_get(report, "answerTo")));
        json_decref(report);
}

/* As a platform reports it back, with the id that the delivery has, or of other software. */
static void an_echo_of_the_bot_is_its_answer(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_DONE, 1000, NULL);
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        add(f, insert_journal,
            &(struct journal_row){ .key = "p-9", .payload = "{\"id\":\"p-9\",\"isOwn\":true}" });
        add(f, insert_journal,
            &(struct journal_row){ .key = "p-8", .payload = "{\"id\":\"p-8\",\"isOwn\":true}" });
        expect_summary(f, "p-9", "the bot's answer to evt-1 (trn-7): answered in 1.2 s");
        expect_summary(f, "evt-2", "the bot's answer to evt-1 (trn-7): answered in 1.2 s");
        expect_summary(f, "p-8",
                       "a message of the bot itself, sent by other software or no longer on record "
                       "here");
}

static void silence_has_a_reason(void **state)
{
        struct fixture *f = *state;

        add_event(f);
        add(f, insert_decision,
            &(struct trigger_log_row){ .status = TRIGGER_SKIPPED,
                                       .reason = "the bot was not mentioned" });
        expect_summary(f, "evt-1", "silent because the bot was not mentioned");
}

static void an_undecided_event_waits(void **state)
{
        struct fixture *f = *state;

        add_event(f);
        expect_summary(f, "m1", "stored, waiting to be decided");
}

static void our_own_events_need_no_decision(void **state)
{
        struct fixture *f = *state;

        add(f, insert_event, "adapter.connected");
        expect_summary(f, "evt-1", "recorded; nothing had to be decided about it");
}

static void a_queued_turn_waits_for_its_agent_or_for_more_messages(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, TURN_QUEUED, 0, NULL);
        expect_summary(f, "evt-1", "waiting for its turn with agent 'gpt'");
        add(f, insert_turn,
            &(struct turn_row){
                    .id = 8, .state = TURN_QUEUED, .due_ms = clock_wall_ms() + 100000 });
        report = report_of(f, "trn-8");
        assert_non_null(strstr(json_str(report, "summary", ""),
                               "waiting for further messages for another "));
        json_decref(report);
}

static void a_running_turn_names_its_agent(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, TURN_RUNNING, clock_wall_ms(), NULL);
        report = report_of(f, "evt-1");
        assert_non_null(strstr(json_str(report, "summary", ""), "waiting for agent 'gpt'"));
        json_decref(report);
}

static int insert_failover(struct store_tx *tx, void *arg, struct error *err)
{
        return turn_row_fail_over(tx, arg, err);
}

static void a_running_turn_names_the_agent_that_took_over(void **state)
{
        struct fixture *f = *state;
        const json_t *turn;
        json_t *report;

        add_turn(f, TURN_RUNNING, clock_wall_ms(), NULL);
        add(f, insert_failover,
            &(struct turn_row){ .id = 7,
                                .fence = 2,
                                .answered_by = "local",
                                .failed_agents = "[{\"agent\":\"gpt\",\"error\":\"down\"}]" });
        report = report_of(f, "evt-1");
        turn = json_object_get(report, "turn");
        assert_non_null(strstr(json_str(report, "summary", ""),
                               "waiting for agent 'local', after agent 'gpt' failed; the turn has "
                               "been running for "));
        assert_string_equal(json_str(turn, "agent", ""), "local");
        assert_int_equal(json_array_size(json_object_get(turn, "failedAgents")), 1);
        json_decref(report);
}

static void a_failed_turn_says_why(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_FAILED, 1000, "no answer in 30 s");
        expect_summary(f, "evt-1", "agent 'gpt' failed after 2 attempts: no answer in 30 s");
}

static void a_cancelled_turn_says_who_stopped_it(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_CANCELLED, 1000, "stopped by the operator");
        expect_summary(f, "evt-1", "no answer: the turn was cancelled: stopped by the operator");
}

static void an_agent_may_choose_silence(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_DONE, 1000, NULL);
        expect_summary(f, "evt-1", "silent because agent 'gpt' had nothing to say");
}

static void the_worst_delivery_decides(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_DONE, 1000, NULL);
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        add_delivery(f, 10, DELIVERY_QUEUED, "rate limited");
        expect_summary(f, "evt-1", "waiting for the answer to be delivered: rate limited");
        add_delivery(f, 11, DELIVERY_FAILED, "chat not found");
        expect_summary(f, "evt-1", "the answer could not be delivered: chat not found");
        add_delivery(f, 12, DELIVERY_UNKNOWN, "the connection broke");
        expect_summary(f, "evt-1",
                       "it is not known whether the answer arrived: the connection broke");
}

static void a_message_without_a_turn_has_a_report(void **state)
{
        struct fixture *f = *state;

        add(f, insert_delivery,
            &(struct delivery_row){ .id = 9, .state = DELIVERY_SENT, .ended_ms = 1250 });
        expect_summary(f, "dlv-9", "sent in 250 ms");
        expect_summary(f, TRACE, "sent in 250 ms");
}

static void add_late_answer(struct fixture *f, int64_t id, int64_t ended_ms)
{
        add(f, insert_delivery,
            &(struct delivery_row){
                    .id = id, .reply_of = 7, .state = DELIVERY_SENT, .ended_ms = ended_ms });
}

static void a_late_answer_is_an_answer(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, TURN_DONE, 1000, NULL);
        add_late_answer(f, 20, 13000);
        expect_summary(f, "evt-1", "answered late, in 12.0 s");
        expect_summary(f, "p-20",
                       "the bot's late answer to evt-1 (trn-7): answered late, in 12.0 s");
        report = report_of(f, "evt-1");
        assert_int_equal(json_array_size(json_object_get(report, "deliveries")), 1);
        json_decref(report);
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        expect_summary(f, "evt-1", "answered in 1.2 s; also answered late, in 12.0 s");
}

static void a_late_answer_to_a_failed_turn_is_not_missing(void **state)
{
        struct fixture *f = *state;

        add_turn(f, TURN_FAILED, 1000, "no answer in 30 s");
        add_late_answer(f, 20, 41000);
        expect_summary(f, "evt-1",
                       "agent 'gpt' failed after 2 attempts: no answer in 30 s; answered late, in "
                       "40.0 s");
}

static int discard_reply(struct store_tx *tx, void *arg, struct error *err)
{
        return turn_row_discard_reply(tx, 7, 5000, arg, err);
}

static void a_discarded_late_answer_says_why(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_turn(f, TURN_FAILED, 1000, "no answer in 30 s");
        add(f, discard_reply, "it is empty");
        expect_summary(f, "evt-1",
                       "agent 'gpt' failed after 2 attempts: no answer in 30 s; a late answer was "
                       "discarded because it is empty");
        add(f, discard_reply, "it came after the turn had failed (late: discard)");
        expect_summary(f, "evt-1",
                       "agent 'gpt' failed after 2 attempts: no answer in 30 s; 2 late answers "
                       "were discarded, the last because it came after the turn had failed (late: "
                       "discard)");
        report = report_of(f, "evt-1");
        assert_int_equal(json_int(json_object_get(report, "turn"), "discardedReplies", 0), 2);
        json_decref(report);
}

static void a_failover_names_both_agents(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_event(f);
        add(f, insert_decision, &(struct trigger_log_row){ .turn = 7, .status = TRIGGER_DONE });
        add(f, insert_turn,
            &(struct turn_row){ .id = 7,
                                .state = TURN_DONE,
                                .due_ms = 1000,
                                .started_ms = 1000,
                                .answered_by = "local",
                                .failed_agents = "[{\"agent\":\"gpt\",\"error\":\"down\"}]" });
        add_delivery(f, 9, DELIVERY_SENT, NULL);
        expect_summary(f, "evt-1", "answered in 1.2 s by agent 'local', after agent 'gpt' failed");
        report = report_of(f, "evt-1");
        assert_string_equal(json_str(json_object_get(report, "decision"), "agent", ""), "local");
        assert_string_equal(json_str(json_object_get(report, "decision"), "chosenAgent", ""),
                            "gpt");
        json_decref(report);
}

static void rules_that_were_tried_are_listed(void **state)
{
        struct fixture *f = *state;
        json_t *report, *rule;

        add_event(f);
        add(f, insert_decision,
            &(struct trigger_log_row){ .status = TRIGGER_SKIPPED,
                                       .reason = "no rule matched: 1 tried",
                                       .rules = "[{\"name\":\"night\",\"matched\":false,"
                                                "\"why\":\"it was noon\"}]" });
        report = report_of(f, "evt-1");
        rule = json_array_get(json_object_get(report, "rules"), 0);
        assert_string_equal(json_str(rule, "why", ""), "it was noon");
        json_decref(report);
}

static void a_refusal_shows_its_notice(void **state)
{
        struct fixture *f = *state;

        add_event(f);
        add(f, insert_decision,
            &(struct trigger_log_row){ .status = TRIGGER_SKIPPED, .reason = "it cost too much" });
        expect_summary(f, "evt-1", "silent because it cost too much");
        add(f, insert_delivery,
            &(struct delivery_row){ .id = 30, .state = DELIVERY_SENT, .ended_ms = 1250 });
        expect_summary(f, "evt-1", "refused with a notice because it cost too much");
        expect_summary(f, "p-30",
                       "the bot's notice about evt-1: refused with a notice because it cost too "
                       "much");
}

/* ---- the platform's own ids ---- */

/* Message 77 exists in two chats; 78 is an answer of the bot in one of them. */
static void add_chats(struct fixture *f)
{
        add(f, insert_journal,
            &(struct journal_row){ .channel = "-100123",
                                   .key = "-100123:77",
                                   .payload = "{\"id\":\"77\",\"text\":\"a\"}" });
        add(f, insert_journal,
            &(struct journal_row){
                    .channel = "42", .key = "42:77", .payload = "{\"id\":\"77\",\"text\":\"b\"}" });
        add(f, insert_journal,
            &(struct journal_row){
                    .channel = "42", .key = "42:5:reaction:1:x", .payload = "{\"id\":\"5\"}" });
        add(f, insert_delivery,
            &(struct delivery_row){ .id = 9,
                                    .channel = "42",
                                    .platform_id = "78",
                                    .state = DELIVERY_SENT,
                                    .ended_ms = 1250 });
        /* a reaction has the id of the message it is on */
        add(f, insert_delivery,
            &(struct delivery_row){ .id = 10,
                                    .channel = "42",
                                    .kind = DELIVER_REACT,
                                    .platform_id = "77",
                                    .state = DELIVERY_SENT,
                                    .ended_ms = 1250 });
}

static void expect_event(struct fixture *f, const char *id, const char *event)
{
        json_t *report = report_of(f, id);

        assert_string_equal(json_str(json_object_get(report, "event"), "id", ""), event);
        json_decref(report);
}

static void a_message_is_found_by_chat_and_id(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_chats(f);
        /* another adapter may be in the same chat */
        add(f, insert_journal,
            &(struct journal_row){ .adapter = "api",
                                   .channel = "42",
                                   .key = "42:77",
                                   .payload = "{\"id\":\"77\"}" });
        expect_event(f, "tg/-100123/77", "evt-1");
        expect_event(f, "tg/42/77", "evt-2");
        expect_event(f, "api/42/77", "evt-4");
        expect_event(f, "-100123:77", "evt-1");
        report = report_of(f, "tg/42/78");
        assert_string_equal(json_str(report, "summary", ""), "sent in 250 ms");
        json_decref(report);
}

static void an_id_of_several_messages_lists_them(void **state)
{
        struct fixture *f = *state;
        struct report_read t = { .id = "tg/43/77" };
        json_t *report, *items;
        struct error err;

        add_chats(f);
        report = report_of(f, "77");
        items = json_object_get(report, "candidates");
        assert_int_equal(json_array_size(items), 2);
        assert_string_equal(json_str(json_array_get(items, 0), "id", ""), "evt-2");
        assert_string_equal(json_str(json_array_get(items, 1), "id", ""), "evt-1");
        assert_string_equal(json_str(json_array_get(items, 1), "channel", ""), "-100123");
        assert_string_equal(json_str(json_array_get(items, 1), "text", ""), "a");
        json_decref(report);
        /* never that of another chat */
        buf_init(&t.json, 0);
        assert_int_equal(store_read_now(f->store, read_report, &t, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
        buf_release(&t.json);
}

static void a_repeated_trace_lists_its_messages(void **state)
{
        struct fixture *f = *state;
        json_t *report;

        add_event(f);
        add_chats(f);
        for (int64_t event = 1; event <= 2; event++)
                add(f, insert_decision,
                    &(struct trigger_log_row){
                            .event = event, .status = TRIGGER_SKIPPED, .reason = "x" });
        report = report_of(f, TRACE);
        assert_int_equal(json_array_size(json_object_get(report, "candidates")), 2);
        json_decref(report);
}

static void messages_of_other_adapters_are_hidden(void **state)
{
        static const char *const ids[] = { "77", "tg/42/77", "evt-1", "dlv-9", "78", TRACE };
        struct fixture *f = *state;

        add_chats(f);
        add(f, insert_journal,
            &(struct journal_row){ .adapter = "api", .key = "77", .payload = "{\"id\":\"77\"}" });
        for (size_t i = 0; i < COUNT(ids); i++) {
                struct report_read t = { .id = ids[i], .adapters = ",api,tg2,my-tg," };
                struct error err;
                int rc;

                buf_init(&t.json, 0);
                rc = store_read_now(f->store, read_report, &t, &err);
                if (i == 0)
                        assert_non_null(strstr(t.json.data, "\"event\":{\"id\":\"evt-4\""));
                else
                        assert_int_equal(rc, -1);
                assert_null(strstr(t.json.data, "\"tg\""));
                buf_release(&t.json);
        }
}

static int read_recent(struct store_tx *tx, void *arg, struct error *err)
{
        struct buf *json = arg;
        int64_t last;
        bool more;

        buf_clear(json);
        jsonw_open(json, '[');
        if (trace_report_recent(tx, &(struct trace_filter){ .limit = 2 }, json, &last, &more, err) <
            0)
                return -1;
        assert_true(more);
        assert_int_equal(last, 2);
        jsonw_close(json, ']');
        return 0;
}

static void the_last_messages_have_their_outcome(void **state)
{
        struct fixture *f = *state;
        struct error err;
        struct buf json;
        json_t *items;

        for (int i = 0; i < 3; i++) {
                char key[16];

                snprintf(key, sizeof(key), "k%d", i);
                add(f, insert_journal, &(struct journal_row){ .key = key, .payload = "{}" });
        }
        add(f, insert_journal,
            &(struct journal_row){ .key = "own", .payload = "{\"id\":\"1\",\"isOwn\":true}" });
        for (int64_t event = 1; event <= 4; event++)
                add(f, insert_decision,
                    &(struct trigger_log_row){
                            .event = event, .status = TRIGGER_SKIPPED, .reason = "nobody asked" });
        buf_init(&json, 0);
        assert_int_equal(store_read_now(f->store, read_recent, &json, &err), 0);
        items = json_loads(json.data, 0, NULL);
        assert_int_equal(json_array_size(items), 2);
        assert_string_equal(json_str(json_array_get(items, 0), "id", ""), "evt-3");
        assert_string_equal(json_str(json_array_get(items, 0), "summary", ""),
                            "silent because nobody asked");
        json_decref(items);
        buf_release(&json);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_report_is_found_by_each_of_its_ids),
                TEST(silence_has_a_reason),
                TEST(an_undecided_event_waits),
                TEST(our_own_events_need_no_decision),
                TEST(a_queued_turn_waits_for_its_agent_or_for_more_messages),
                TEST(a_running_turn_names_its_agent),
                TEST(a_failed_turn_says_why),
                TEST(a_cancelled_turn_says_who_stopped_it),
                TEST(an_agent_may_choose_silence),
                TEST(the_worst_delivery_decides),
                TEST(a_message_without_a_turn_has_a_report),
                TEST(what_an_agent_was_asked_is_shown),
                TEST(a_message_of_the_bot_is_its_answer),
                TEST(an_echo_of_the_bot_is_its_answer),
                TEST(a_late_answer_is_an_answer),
                TEST(a_late_answer_to_a_failed_turn_is_not_missing),
                TEST(a_discarded_late_answer_says_why),
                TEST(a_failover_names_both_agents),
                TEST(a_running_turn_names_the_agent_that_took_over),
                TEST(rules_that_were_tried_are_listed),
                TEST(a_refusal_shows_its_notice),
                TEST(a_message_is_found_by_chat_and_id),
                TEST(an_id_of_several_messages_lists_them),
                TEST(a_repeated_trace_lists_its_messages),
                TEST(messages_of_other_adapters_are_hidden),
                TEST(the_last_messages_have_their_outcome),
                TEST(an_unknown_id_is_missing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
