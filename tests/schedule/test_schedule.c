/* What is due fires: in time, once, also after a crash, a jump of the clock, and beside another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fault_map.h"
#include "../lib/patience.h"
#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "road/report/trace_report.h"
#include "road/road_state.h"
#include "schedule/schedule_private.h"

#define MINUTE_MS 60000LL
#define HOUR_MS   (60 * MINUTE_MS)

struct world {
        struct rig *rig;
        struct schedule *schedule, *other;
        struct schedule_conf conf;
        bool adapter_is_gone;
        /* of add_row */
        struct schedule_row row;
        int64_t id;
        int result;
};

/* ---- the world ---- */

static bool adapter_at(void *arg, size_t i, const char **name, const char **platform)
{
        struct world *w = arg;

        *name = "j";
        *platform = "test";
        return i == 0 && !w->adapter_is_gone;
}

/* Events trigger a turn of agent "echo". */
static void decides(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->trigger = strcmp(in->type, EVENT_SCHEDULE_FIRED) == 0;
        out->agent = "echo";
}

static struct schedule *open_one(struct world *w)
{
        struct schedule_env env = { .loop = w->rig->loop,
                                    .store = w->rig->store,
                                    .bus = w->rig->bus,
                                    .road = w->rig->road,
                                    .dir = w->rig->dir,
                                    .adapter_at = adapter_at,
                                    .arg = w };
        struct error err = { 0 };
        struct schedule *s = schedule_open(&env, &w->conf, &err);

        if (!s)
                fail_msg("%s", err.text);
        return s;
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->rig = rig_new();
        w->rig->decides = decides;
        w->rig->auto_answer = true;
        w->conf = (struct schedule_conf){ .enabled = true,
                                          .timezone = (char *)"UTC",
                                          .missed = (char *)"once",
                                          .pending = 1000,
                                          .pending_per_person = 3,
                                          .fallback_seconds = 300 };
        w->schedule = open_one(w);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        schedule_close(w->other);
        schedule_close(w->schedule);
        rig_free(w->rig);
        free(w);
        return 0;
}

/* As after a crash: nothing is left but the store. */
static void restart(struct world *w)
{
        schedule_close(w->schedule);
        rig_restart(w->rig);
        w->schedule = open_one(w);
        schedule_start(w->schedule);
}

static bool is_idle(const struct schedule *s)
{
        return !s || (s->writes == 0 && !s->looking && s->running_count == 0);
}

static bool road_is_idle(const struct road *r)
{
        struct road_stats s;

        road_stats(r, &s);
        return s.events_waiting + s.turns_queued + s.turns_running + s.deliveries_open == 0;
}

/* Until what is due now has been handed over, and its turns have ended. */
static void until_idle(struct world *w)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        while (!is_idle(w->schedule) || !is_idle(w->other) || !road_is_idle(w->rig->road)) {
                if (clock_mono_ms() > deadline)
                        fail_msg("waited too long for the schedule");
                loop_step(w->rig->loop, true);
        }
}

static void start(struct world *w)
{
        schedule_start(w->schedule);
        until_idle(w);
}

/* ---- rows ---- */

static int insert(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        w->result = schedule_row_insert(tx, &w->row, &w->id, err);
        return w->result < 0 ? -1 : 0;
}

/* A one-shot for the chat j/c, due `in_ms` from now; change w->row before add. */
static void one_shot(struct world *w, int64_t in_ms)
{
        int64_t at_ms = clock_wall_ms() + in_ms;

        w->row = (struct schedule_row){ .source = "api",
                                        .name = "tea.json",
                                        .kind = SCHEDULE_ONE_SHOT,
                                        .action = SCHEDULE_TURN,
                                        .adapter = "j",
                                        .channel = "c",
                                        .text = "make tea",
                                        .at_ms = at_ms,
                                        .next_ms = at_ms,
                                        .created_ms = at_ms,
                                        .created_by = "operator" };
}

static void every_hour(struct world *w, int64_t missed_hours)
{
        one_shot(w, 0);
        w->row.kind = SCHEDULE_PERIODIC;
        w->row.at_ms = 0;
        w->row.cron = "0 * * * *";
        w->row.timezone = "UTC";
        w->row.next_ms = clock_wall_ms() / HOUR_MS * HOUR_MS - missed_hours * HOUR_MS;
}

static int64_t add(struct world *w)
{
        struct error err = { 0 };

        if (store_write_now(w->rig->store, insert, w, &err) != 0)
                fail_msg("%s", err.text);
        return w->id;
}

#define FIRED "journal WHERE type = 'schedule.fired'"

/* ---- in time, once ---- */

static void what_is_due_becomes_an_event_with_its_text(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        w->row.options = "{\"at\":\"2026-11-16T18:00:00+01:00\"}";
        add(w);
        start(w);
        assert_int_equal(rig_count(g, FIRED), 1);
        assert_string_equal(rig_text(g, "key FROM " FIRED), "tick:1");
        assert_string_equal(rig_text(g, "state FROM ticks"), "done");
        assert_int_equal(rig_number(g, "event FROM ticks"), rig_number(g, "seq FROM " FIRED));
        assert_string_equal(rig_text(g, "state FROM schedules"), "done");
        assert_int_equal(rig_number(g, "count(*) FROM schedules WHERE ended_ms > 0"), 1);
        assert_string_equal(g->runs[0].text,
                            "[EVENT:tea.json:one-shot:2026-11-16T18:00:00+01:00] make tea");
        assert_non_null(strstr(rig_text(g, "payload FROM " FIRED), "\"scheduleId\":\"sch-1\""));
        assert_int_equal(rig_count(g, "journal WHERE type = 'schedule.late'"), 0);
}

static void nothing_fires_before_its_time(void **state)
{
        struct world *w = *state;
        struct schedule_stats stats;
        int64_t due_ms;

        one_shot(w, 400);
        due_ms = w->row.next_ms;
        add(w);
        start(w);
        schedule_get_stats(w->schedule, &stats);
        assert_int_equal(stats.next_ms, due_ms);
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
        rig_until_count(w->rig, FIRED, 1);
        assert_true(rig_number(w->rig, "started_ms FROM ticks") >= due_ms);
}

/* A timer of 32 bits would fire at once. */
static void a_far_date_waits(void **state)
{
        struct world *w = *state;
        struct schedule_stats stats;

        one_shot(w, 400LL * 24 * HOUR_MS);
        add(w);
        start(w);
        schedule_get_stats(w->schedule, &stats);
        assert_int_equal(stats.next_ms, w->row.next_ms);
        assert_true(timer_active(w->schedule->timer));
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
}

static void a_row_written_later_is_seen_by_wake(void **state)
{
        struct world *w = *state;

        start(w);
        assert_false(timer_active(w->schedule->timer)); /* nothing is pending: no timer */
        one_shot(w, 0);
        add(w);
        schedule_wake(w->schedule);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 1);
}

static void more_than_fit_into_memory_fire_all(void **state)
{
        struct world *w = *state;

        for (int i = 0; i < 300; i++) {
                one_shot(w, -1000 + i);
                add(w);
        }
        schedule_start(w->schedule);
        rig_until_count(w->rig, "ticks WHERE state = 'done'", 300);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 300);
        assert_int_equal(rig_number(w->rig, "count(DISTINCT schedule) FROM ticks"), 300);
}

static void the_same_request_is_one_schedule(void **state)
{
        struct world *w = *state;
        int64_t first;

        one_shot(w, -1000);
        w->row.request_key = "file:tea.json:1234";
        first = add(w);
        assert_int_equal(w->result, 1);
        assert_int_equal(add(w), first);
        assert_int_equal(w->result, 0);
        start(w);
        add(w); /* also when it is done */
        schedule_wake(w->schedule);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 1);
}

/* ---- late and missed ---- */

static void a_late_run_says_so(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -2 * HOUR_MS);
        add(w);
        start(w);
        assert_int_equal(rig_count(g, "journal WHERE type = 'schedule.late'"), 1);
        assert_non_null(strstr(g->runs[0].text, "make tea\n\n(late: it was due "));
        assert_non_null(strstr(g->runs[0].text, "2 hours ago)"));
        assert_non_null(strstr(rig_text(g, "payload FROM " FIRED), "\"lateMs\":"));
        /* one trace tells the whole story */
        assert_int_equal(rig_number(g, "count(DISTINCT trace) FROM journal"
                                       " WHERE type LIKE 'schedule.%'"),
                         1);
}

static void a_periodic_one_goes_on_after_a_downtime(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        every_hour(w, 5);
        add(w);
        start(w);
        assert_int_equal(rig_count(g, "ticks"), 1);
        assert_int_equal(rig_number(g, "runs FROM ticks"), 6);
        assert_string_equal(rig_text(g, "state FROM ticks"), "done");
        assert_string_equal(rig_text(g, "state FROM schedules"), "active");
        assert_true(rig_number(g, "next_ms FROM schedules") > clock_wall_ms());
}

static void a_skipped_run_is_in_the_journal(void **state)
{
        struct world *w = *state;
        struct schedule_stats stats;

        one_shot(w, -HOUR_MS);
        w->row.max_age_ms = 10 * MINUTE_MS;
        add(w);
        start(w);
        assert_string_equal(rig_text(w->rig, "state FROM ticks"), "skipped");
        assert_int_equal(rig_count(w->rig, FIRED), 0);
        assert_non_null(
                strstr(rig_text(w->rig, "payload FROM journal WHERE type = 'schedule.skipped'"),
                       "too late"));
        schedule_get_stats(w->schedule, &stats);
        assert_int_equal(stats.skipped, 1);
}

static void a_run_is_skipped_while_the_one_before_is_under_way(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        g->auto_answer = false;
        every_hour(w, 0);
        w->row.cron = "* * * * * *";
        add(w);
        schedule_start(w->schedule);
        rig_until(g, &g->run_count, 1);
        while (rig_count(g, "ticks WHERE state = 'skipped'") == 0)
                rig_run_for(g, 10);
        assert_string_equal(rig_text(g, "note FROM ticks WHERE state = 'skipped'"),
                            "the turn before it (trn-1) has not ended");
        assert_int_equal(g->run_count, 1);
        rig_answer(g, 0, "done");
        rig_until(g, &g->run_count, 2);
        schedule_quiesce(w->schedule);
}

static void each_missed_time_is_a_turn_if_all_are_wanted(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        g->auto_answer = false;
        every_hour(w, 2);
        w->row.missed = MISSED_ALL;
        add(w);
        schedule_start(w->schedule);
        for (unsigned i = 0; i < 3; i++) {
                rig_until(g, &g->run_count, i + 1);
                rig_answer(g, i, "done");
        }
        until_idle(w);
        assert_int_equal(rig_count(g, "ticks WHERE state = 'done'"), 3);
        assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 3);
}

/* ---- crashes ---- */

static void a_claimed_tick_is_resumed_after_a_crash(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        add(w);
        /* the crash came between the claim and the inbox */
        schedule_start(w->schedule);
        schedule_quiesce(w->schedule); /* what is claimed is not begun */
        until_idle(w);
        assert_string_equal(rig_text(g, "state FROM ticks"), "running");
        assert_int_equal(rig_count(g, FIRED), 0);
        restart(w);
        until_idle(w);
        assert_string_equal(rig_text(g, "state FROM ticks"), "done");
        assert_int_equal(rig_count(g, FIRED), 1);
}

static void an_event_that_was_stored_is_not_repeated(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        add(w);
        start(w);
        /* the crash came between the inbox and the tick's end */
        rig_update(g, "ticks SET state = 'running', event = NULL, ended_ms = NULL", 0, 0);
        restart(w);
        until_idle(w);
        assert_string_equal(rig_text(g, "state FROM ticks"), "done");
        assert_int_equal(rig_number(g, "event FROM ticks"), rig_number(g, "seq FROM " FIRED));
        assert_int_equal(rig_count(g, FIRED), 1);
        assert_int_equal(g->run_count, 1);
}

static void an_outcome_is_stored_once_the_disk_works(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        add(w);
        rows_refuse_update(g->store, "ticks WHEN NEW.state = 'done'");
        schedule_start(w->schedule);
        rig_until_count(g, FIRED, 1);
        rig_run_for(g, 150);
        assert_string_equal(rig_text(g, "state FROM ticks"), "running");
        rows_accept(g->store);
        rig_until_count(g, "ticks WHERE state = 'done'", 1);
        until_idle(w);
        assert_int_equal(rig_count(g, FIRED), 1);
}

static void closing_leaves_what_cannot_be_stored_to_the_next_run(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        add(w);
        rows_refuse_update(g->store, "ticks WHEN NEW.state = 'done'");
        schedule_start(w->schedule);
        rig_until_count(g, FIRED, 1);
        schedule_close(w->schedule);
        rows_accept(g->store);
        rig_restart(g);
        w->schedule = open_one(w);
        start(w);
        assert_string_equal(rig_text(g, "state FROM ticks"), "done");
        assert_int_equal(rig_count(g, FIRED), 1);
}

/* ---- two schedulers ---- */

static void two_schedulers_on_one_store_fire_each_tick_once(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        for (int i = 0; i < 150; i++) {
                if (i % 3 == 0)
                        every_hour(w, 2);
                else
                        one_shot(w, -1000 + i);
                add(w);
        }
        w->other = open_one(w);
        schedule_start(w->schedule);
        schedule_start(w->other);
        for (int i = 0; i < 20; i++) {
                schedule_wake(w->schedule);
                schedule_wake(w->other);
                loop_step(g->loop, false);
        }
        rig_until_count(g, "ticks WHERE state = 'done'", 150);
        until_idle(w);
        assert_int_equal(rig_count(g, "ticks"), 150);
        assert_int_equal(rig_count(g, FIRED), 150);
        assert_int_equal(g->run_count, 150);
}

/* ---- switching it off ---- */

static void nothing_new_fires_once_it_is_quiet(void **state)
{
        struct world *w = *state;

        start(w);
        schedule_quiesce(w->schedule);
        one_shot(w, -1000);
        add(w);
        schedule_wake(w->schedule);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
        restart(w);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 1);
}

static void nothing_fires_while_it_is_disabled(void **state)
{
        struct world *w = *state;

        w->conf.enabled = false;
        schedule_set_conf(w->schedule, &w->conf);
        one_shot(w, -1000);
        add(w);
        start(w);
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
        w->conf.enabled = true;
        schedule_set_conf(w->schedule, &w->conf);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 1);
}

static void a_chat_of_an_unknown_adapter_is_a_failure(void **state)
{
        struct world *w = *state;

        w->adapter_is_gone = true;
        one_shot(w, -1000);
        add(w);
        start(w);
        assert_string_equal(rig_text(w->rig, "state FROM ticks"), "failed");
        assert_string_equal(rig_text(w->rig, "note FROM ticks"), "there is no adapter 'j'");
        assert_int_equal(rig_count(w->rig, "journal WHERE type = 'schedule.failed'"), 1);
}

static void a_tick_whose_schedule_is_gone_ends(void **state)
{
        struct world *w = *state;

        one_shot(w, -1000);
        add(w);
        schedule_start(w->schedule);
        schedule_quiesce(w->schedule);
        until_idle(w);
        rig_update(w->rig, "ticks SET schedule = ?1", 999, 0);
        restart(w);
        until_idle(w);
        assert_string_equal(rig_text(w->rig, "state FROM ticks"), "failed");
        assert_string_equal(rig_text(w->rig, "note FROM ticks"), "its schedule is gone");
        assert_false(timer_active(w->schedule->timer));
}

/* Written by a newer version, or damaged. */
static void a_schedule_that_is_not_understood_holds_up_no_other(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;
        struct schedule_stats stats;

        for (int i = 0; i < 3; i++) {
                one_shot(w, -1000);
                add(w);
        }
        every_hour(w, 0);
        w->row.timezone = "Mars/Olympus";
        add(w);
        rig_update(g, "schedules SET kind = 'solar' WHERE id = ?1", 1, 0);
        rig_update(g, "schedules SET action = 'song' WHERE id = ?1", 2, 0);
        rig_update(g, "schedules SET missed = 'later' WHERE id = ?1", 3, 0);
        one_shot(w, 0);
        add(w);
        start(w);
        assert_string_equal(rig_list(g, "state FROM schedules ORDER BY id"),
                            "cancelled, cancelled, cancelled, cancelled, done");
        assert_string_equal(rig_list(g, "state FROM ticks ORDER BY schedule"),
                            "failed, failed, failed, failed, done");
        assert_string_equal(rig_text(g, "note FROM ticks WHERE schedule = 1"),
                            "this version does not know its kind 'solar'");
        assert_string_equal(rig_text(g, "note FROM ticks WHERE schedule = 4"),
                            "its cron or time zone is not valid");
        assert_int_equal(rig_count(g, "journal WHERE type = 'schedule.failed'"), 4);
        assert_int_equal(rig_count(g, FIRED), 1);
        schedule_get_stats(w->schedule, &stats);
        assert_int_equal(stats.failed, 4);
        assert_false(timer_active(w->schedule->timer));
}

static void a_tick_whose_schedule_is_not_understood_ends(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;

        one_shot(w, -1000);
        add(w);
        schedule_start(w->schedule);
        schedule_quiesce(w->schedule);
        until_idle(w);
        rig_update(g, "schedules SET state = 'asleep'", 0, 0);
        one_shot(w, -1000);
        add(w);
        restart(w);
        until_idle(w);
        assert_string_equal(rig_list(g, "state FROM ticks ORDER BY id"), "failed, done");
        assert_string_equal(rig_text(g, "note FROM ticks WHERE id = 1"),
                            "this version does not know its state 'asleep'");
        assert_int_equal(rig_count(g, "journal WHERE type = 'schedule.failed'"), 1);
        assert_string_equal(rig_text(g, "state FROM schedules WHERE id = 1"), "asleep");
}

static int cancel(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        w->result = schedule_row_cancel(tx, w->id, "cancelled by a test", clock_wall_ms(), err);
        return w->result < 0 ? -1 : 0;
}

static void a_cancelled_schedule_does_not_fire(void **state)
{
        struct world *w = *state;

        one_shot(w, -1000);
        add(w);
        store_write_now(w->rig->store, cancel, w, NULL);
        assert_int_equal(w->result, 1);
        start(w);
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
        assert_string_equal(rig_text(w->rig, "state FROM schedules"), "cancelled");
        store_write_now(w->rig->store, cancel, w, NULL);
        assert_int_equal(w->result, 0);
}

/* ---- records ---- */

struct report {
        struct buf json;
};

static int write_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct report *r = arg;

        buf_clear(&r->json);
        return trace_report_write(tx, "dlv-1", NULL, &r->json, err);
}

static void a_message_knows_its_schedule(void **state)
{
        struct world *w = *state;
        struct report r;
        struct error err = { 0 };

        one_shot(w, -1000);
        w->row.source = "reminder";
        w->row.name = "tea";
        w->row.action = SCHEDULE_MESSAGE;
        add(w);
        schedule_start(w->schedule);
        rig_until_count(w->rig, "ticks WHERE state = 'done'", 1);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE state = 'sent'"), 1);
        buf_init(&r.json, 0);
        if (store_read_now(w->rig->store, write_report, &r, &err) != 0)
                fail_msg("%s", err.text);
        assert_non_null(strstr(r.json.data, "\"summary\":\"reminder 'tea' (sch-1) was due at "));
        assert_non_null(strstr(r.json.data, "\"tick\":{\"id\":\"tck-1\""));
        buf_release(&r.json);
}

static void old_ticks_and_schedules_are_pruned(void **state)
{
        struct world *w = *state;
        struct rig *g = w->rig;
        int64_t long_ago_ms = clock_wall_ms() - 30 * 24 * HOUR_MS;

        for (int i = 0; i < 3; i++) {
                one_shot(w, -1000);
                add(w);
        }
        every_hour(w, 0);
        add(w);
        start(w);
        rig_update(g, "ticks SET ended_ms = ?1 WHERE schedule <> ?2", long_ago_ms, 3);
        rig_update(g, "schedules SET ended_ms = ?1 WHERE ended_ms IS NOT NULL", long_ago_ms, 0);
        prune_run(g->road);
        while (g->road->writes > 0)
                loop_step(g->loop, true);
        /* a tick keeps its schedule, and a periodic schedule loses only its ticks */
        assert_string_equal(rig_list(g, "schedule FROM ticks"), "3");
        assert_string_equal(rig_list(g, "id FROM schedules ORDER BY id"), "3, 4");
}

/* ---- limits ---- */

static int check_limits(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        return schedule_check_limits(tx, schedule_get_conf(w->schedule), w->row.person, err);
}

static void a_person_has_so_many_and_no_more(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        for (int i = 0; i < 3; i++) {
                one_shot(w, HOUR_MS);
                w->row.person = 4;
                assert_int_equal(store_write_now(w->rig->store, check_limits, w, &err), 0);
                add(w);
        }
        assert_int_equal(store_write_now(w->rig->store, check_limits, w, &err), -1);
        assert_int_equal(err.kind, ERR_LIMIT);
        assert_non_null(strstr(err.text, "schedule.pendingPerPerson"));
        w->row.person = 5;
        assert_int_equal(store_write_now(w->rig->store, check_limits, w, &err), 0);
        w->conf.pending = 3;
        schedule_set_conf(w->schedule, &w->conf);
        assert_int_equal(store_write_now(w->rig->store, check_limits, w, &err), -1);
        assert_non_null(strstr(err.text, "schedule.pending)"));
        store_write_now(w->rig->store, cancel, w, NULL);
        assert_int_equal(store_write_now(w->rig->store, check_limits, w, &err), 0);
}

/* ---- a clock that jumps ---- */

#ifdef DRAGOMAN_FAULTS

static struct fault_control *control;

static void a_clock_set_ahead_fires_what_is_due_then(void **state)
{
        struct world *w = *state;

        every_hour(w, -1);
        add(w);
        start(w);
        assert_int_equal(rig_count(w->rig, "ticks"), 0);
        control->clock_offset_ms = 3 * HOUR_MS; /* nobody wakes it */
        rig_until_count(w->rig, FIRED, 1);
        until_idle(w);
        control->clock_offset_ms = 0;
        assert_int_equal(rig_number(w->rig, "runs FROM ticks"), 3);
}

static void a_clock_set_back_fires_nothing_twice(void **state)
{
        struct world *w = *state;

        control->clock_offset_ms = 2 * HOUR_MS;
        every_hour(w, 0);
        add(w);
        one_shot(w, -1000);
        add(w);
        start(w);
        assert_int_equal(rig_count(w->rig, FIRED), 2);
        control->clock_offset_ms = 0;
        for (int i = 0; i < 3; i++) {
                schedule_wake(w->schedule);
                until_idle(w);
        }
        restart(w);
        until_idle(w);
        assert_int_equal(rig_count(w->rig, FIRED), 2);
        /* time passes again */
        control->clock_offset_ms = 3 * HOUR_MS;
        rig_until_count(w->rig, FIRED, 3);
        control->clock_offset_ms = 0;
        assert_int_equal(rig_number(w->rig, "count(DISTINCT due_ms) FROM ticks"), 3);
}

static void until_next(struct world *w, int64_t next_ms)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        while (rig_number(w->rig, "next_ms FROM schedules") != next_ms) {
                if (clock_mono_ms() > deadline)
                        fail_msg("the next time did not change");
                rig_run_for(w->rig, 10);
        }
        until_idle(w);
}

/* A board that boots in 2030, until it is told the time. */
static void a_clock_far_ahead_holds_nothing_up(void **state)
{
        struct world *w = *state;
        int64_t far_ms = 4 * 365 * 24 * HOUR_MS, now_ms = clock_wall_ms(),
                next_ms = now_ms / HOUR_MS * HOUR_MS + HOUR_MS;

        for (int restarted = 0; restarted < 2; restarted++) {
                control->clock_offset_ms = far_ms;
                if (!restarted) {
                        every_hour(w, 0);
                        add(w);
                        start(w);
                }
                until_next(w, far_ms + next_ms);
                assert_int_equal(rig_count(w->rig, "ticks"), restarted ? 2 : 1);
                if (restarted)
                        schedule_quiesce(w->schedule);
                control->clock_offset_ms = 0;
                if (restarted)
                        restart(w);
                until_next(w, next_ms);
                assert_int_equal(rig_count(w->rig, FIRED), restarted ? 2 : 1);
                /* its time comes; when it was early before, that is not repeated */
                control->clock_offset_ms = HOUR_MS;
                until_next(w, next_ms + HOUR_MS);
                assert_int_equal(rig_count(w->rig, FIRED), 2);
        }
        control->clock_offset_ms = 0;
        assert_int_equal(rig_number(w->rig, "max(runs) FROM ticks"), 1);
        assert_int_equal(rig_count(w->rig, "schedules WHERE ahead_ms > next_ms"), 1);
}

/* The last time has its tick, and is not due again. */
static void a_small_step_back_repeats_nothing(void **state)
{
        struct world *w = *state;
        int64_t now_ms = clock_wall_ms(), due_ms = now_ms / HOUR_MS * HOUR_MS + HOUR_MS;

        for (int restarted = 0; restarted < 2; restarted++) {
                control->clock_offset_ms = due_ms - now_ms + 5000;
                if (!restarted) {
                        every_hour(w, 0);
                        add(w);
                        start(w);
                }
                until_next(w, due_ms + HOUR_MS);
                control->clock_offset_ms -= MINUTE_MS;
                if (restarted)
                        restart(w);
                until_next(w, due_ms);
        }
        control->clock_offset_ms += MINUTE_MS;
        until_next(w, due_ms + HOUR_MS);
        control->clock_offset_ms = 0;
        assert_int_equal(rig_count(w->rig, FIRED), 1);
        assert_int_equal(rig_count(w->rig, "ticks"), 1);
        assert_int_equal(rig_count(w->rig, "schedules WHERE ahead_ms IS NULL"), 1);
}

/* The clock of a board that boots in 1970: nothing was missed since then. */
static void a_clock_that_was_far_behind_misses_nothing(void **state)
{
        struct world *w = *state;
        int64_t next_ms;

        every_hour(w, 0);
        w->row.missed = MISSED_ALL;
        add(w);
        start(w);
        next_ms = rig_number(w->rig, "next_ms FROM schedules");
        assert_int_equal(rig_count(w->rig, "ticks"), 1);
        rig_update(w->rig, "ticks SET due_ms = 1", 0, 0); /* as if it was pruned */
        control->clock_offset_ms = -clock_wall_ms() + 24 * HOUR_MS + MINUTE_MS;
        restart(w);
        until_next(w, 25 * HOUR_MS);
        control->clock_offset_ms = 0;
        until_next(w, next_ms);
        assert_int_equal(rig_count(w->rig, "ticks"), 1);
        assert_int_equal(rig_count(w->rig, "schedules WHERE ahead_ms IS NULL"), 1);
}

#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_due_becomes_an_event_with_its_text),
                TEST(nothing_fires_before_its_time),
                TEST(a_far_date_waits),
                TEST(a_row_written_later_is_seen_by_wake),
                TEST(more_than_fit_into_memory_fire_all),
                TEST(the_same_request_is_one_schedule),
                TEST(a_late_run_says_so),
                TEST(a_periodic_one_goes_on_after_a_downtime),
                TEST(a_skipped_run_is_in_the_journal),
                TEST(a_run_is_skipped_while_the_one_before_is_under_way),
                TEST(each_missed_time_is_a_turn_if_all_are_wanted),
                TEST(a_claimed_tick_is_resumed_after_a_crash),
                TEST(an_event_that_was_stored_is_not_repeated),
                TEST(an_outcome_is_stored_once_the_disk_works),
                TEST(closing_leaves_what_cannot_be_stored_to_the_next_run),
                TEST(two_schedulers_on_one_store_fire_each_tick_once),
                TEST(nothing_new_fires_once_it_is_quiet),
                TEST(nothing_fires_while_it_is_disabled),
                TEST(a_chat_of_an_unknown_adapter_is_a_failure),
                TEST(a_tick_whose_schedule_is_gone_ends),
                TEST(a_schedule_that_is_not_understood_holds_up_no_other),
                TEST(a_tick_whose_schedule_is_not_understood_ends),
                TEST(a_cancelled_schedule_does_not_fire),
                TEST(a_message_knows_its_schedule),
                TEST(old_ticks_and_schedules_are_pruned),
                TEST(a_person_has_so_many_and_no_more),
#ifdef DRAGOMAN_FAULTS
                TEST(a_clock_set_ahead_fires_what_is_due_then),
                TEST(a_clock_set_back_fires_nothing_twice),
                TEST(a_clock_far_ahead_holds_nothing_up),
                TEST(a_small_step_back_repeats_nothing),
                TEST(a_clock_that_was_far_behind_misses_nothing),
#endif
        };

#ifdef DRAGOMAN_FAULTS
        control = fault_map();
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
