/* Where and when a person is reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows.h"
#include "../lib/rows_rig.h"
#include "../lib/scratch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "rows/person_row.h"
#include "schedule/reach.h"
#include "schedule/schedule.h"

#define MONDAY_2AM (1794794400LL * 1000) /* 2026-11-16 02:00 UTC */
#define HOUR_MS    3600000LL

struct world {
        char *dir;
        struct store *store;
        struct schedule_conf conf;
        int64_t ann, bob;
        struct buf found;
        /* of the store functions below */
        struct reach_query query;
        struct reach_plan plan;
        const char *text;
        struct person_reach settings;
        int64_t person;
        char why[200];
        int rc;
        struct error err;
};

static void run(struct world *w, store_fn *fn)
{
        struct error err = { 0 };

        if (store_write_now(w->store, fn, w, &err) != 0)
                fail_msg("%s", err.text);
}

/* ---- people ---- */

static void add_account(struct store_tx *tx, int64_t person, const char *platform, const char *user,
                        const char *name, const char *chat, int64_t seen_ms)
{
        struct person_sighting s = { .identity = { platform, user },
                                     .name = name,
                                     .adapter = platform,
                                     .dm_channel = chat,
                                     .now_ms = seen_ms };
        int64_t id;

        assert_int_equal(person_row_add_identity(tx, &s.identity, person, seen_ms, &id, NULL), 0);
        assert_int_equal(person_row_update_identity(tx, id, &s, NULL), 0);
}

/* Ann is on three platforms, on Slack without a direct chat; Bob wrote in groups only. */
static int add_people(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        (void)err;
        assert_int_equal(person_row_insert(tx, 1, &w->ann, NULL), 0);
        assert_int_equal(person_row_insert(tx, 1, &w->bob, NULL), 0);
        add_account(tx, w->ann, "telegram", "42", "Ann", "42", 2000);
        add_account(tx, w->ann, "discord", "77", "Ann Example", "dm-77", 1000);
        add_account(tx, w->ann, "slack", "U7", "ann", NULL, 3000);
        add_account(tx, w->bob, "discord", "88", "Bob", NULL, 1000);
        return 0;
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        w->store = rows_rig_open(w->dir);
        buf_init(&w->found, 0);
        w->conf.timezone = mem_strdup("UTC");
        w->conf.daily_cap = 3;
        w->settings.daily_cap = -1;
        w->query.now_ms = MONDAY_2AM;
        run(w, add_people);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        reach_plan_release(&w->plan);
        buf_release(&w->found);
        free(w->conf.timezone);
        store_close(w->store);
        scratch_free(w->dir);
        free(w);
        return 0;
}

/* ---- asking ---- */

static int make_plan(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        reach_plan_release(&w->plan);
        return reach_plan_make(tx, &w->conf, &w->query, &w->plan, err);
}

/* "telegram/42 discord/dm-77 slack/U7?"; "?": by the person's id. */
static const char *addresses(struct world *w)
{
        run(w, make_plan);
        buf_clear(&w->found);
        for (size_t i = 0; i < w->plan.count; i++) {
                const struct reach_address *a = &w->plan.items[i];

                buf_addf(&w->found, "%s%s/%s%s%s%s", i ? " " : "", a->adapter, a->channel,
                         a->thread ? "/" : "", a->thread ? a->thread : "", a->by_user ? "?" : "");
        }
        return w->found.data;
}

static int set(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        return person_row_set_reach(tx, w->ann, &w->settings, 5, err) == 1 ? 0 : -1;
}

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        (void)err;
        w->rc = reach_find_person(tx, w->text, &w->person, &w->err);
        return 0;
}

static int count(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        w->rc = reach_count(tx, &w->conf, w->ann, w->query.now_ms, w->why, err);
        return w->rc < 0 ? -1 : 0;
}

static int merge(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        return person_row_move_identities(tx, w->bob, w->ann, err) < 0 ||
                               person_row_set_alias(tx, w->bob, w->ann, 1, err) < 0
                       ? -1
                       : 0;
}

/* ---- tests ---- */

static void the_latest_direct_chat_comes_first(void **state)
{
        struct world *w = *state;

        w->query.person = w->ann;
        assert_string_equal(addresses(w), "telegram/42 discord/dm-77 slack/U7?");
        assert_int_equal(w->plan.verdict, REACH_NOW);
        w->query.person = w->bob;
        assert_string_equal(addresses(w), "discord/88?");
        w->query.person = 99;
        assert_string_equal(addresses(w), "");
        assert_int_equal(w->plan.verdict, REACH_NEVER);
        assert_string_equal(w->plan.why, "there is no person 'per-99'");
}

static void the_chat_where_it_was_asked_and_the_chosen_one_come_before(void **state)
{
        struct world *w = *state;

        w->query.person = w->ann;
        w->settings.reach_at = "discord";
        run(w, set);
        assert_string_equal(addresses(w), "discord/dm-77 telegram/42 slack/U7?");
        w->settings.reach_at = "slack/D9";
        run(w, set);
        w->query.adapter = "telegram";
        w->query.channel = "-100";
        w->query.thread = "5";
        assert_string_equal(addresses(w),
                            "telegram/-100/5 slack/D9 telegram/42 discord/dm-77 slack/U7?");
        w->query.chat_last = true; /* what a calendar says is for the person first */
        assert_string_equal(addresses(w),
                            "slack/D9 telegram/42 discord/dm-77 slack/U7? telegram/-100/5");
        w->query.chat_last = false;
        w->query.person = 0;
        assert_string_equal(addresses(w), "telegram/-100/5");
        w->settings.reach_at = "mastodon"; /* nothing is known there */
        run(w, set);
        w->query = (struct reach_query){ .person = w->ann, .now_ms = MONDAY_2AM };
        assert_string_equal(addresses(w), "telegram/42 discord/dm-77 slack/U7?");
}

static void a_merged_person_is_reached_as_the_other(void **state)
{
        struct world *w = *state;

        run(w, merge);
        w->query.person = w->bob;
        assert_string_equal(addresses(w), "telegram/42 discord/dm-77 slack/U7? discord/88?");
        assert_int_equal(w->plan.person, w->ann);
}

static void quiet_hours_are_those_of_the_persons_zone(void **state)
{
        struct world *w = *state;
        char hours[] = "01:00-03:30", *everybody[] = { hours };

        w->conf.quiet_hours = (struct setting_list){ everybody, 1, true };
        w->query.person = w->ann;
        addresses(w);
        assert_int_equal(w->plan.verdict, REACH_LATER);
        assert_int_equal(w->plan.not_before_ms, MONDAY_2AM + HOUR_MS * 3 / 2);
        assert_int_equal(w->plan.count, 3);

        w->settings.timezone = "Europe/Berlin"; /* 03:00 there */
        run(w, set);
        addresses(w);
        assert_int_equal(w->plan.not_before_ms, MONDAY_2AM + HOUR_MS / 2);
        w->settings.timezone = "America/New_York"; /* 21:00 */
        run(w, set);
        addresses(w);
        assert_int_equal(w->plan.verdict, REACH_NOW);
        w->settings.quiet_hours = "20:00-07:00";
        run(w, set);
        addresses(w);
        assert_int_equal(w->plan.not_before_ms, MONDAY_2AM + 10 * HOUR_MS);
        assert_string_equal(w->plan.why, "quiet hours of 'per-1'");

        w->query.asked = true;
        addresses(w);
        assert_int_equal(w->plan.verdict, REACH_NOW);
        w->query.asked = false;
        w->settings.timezone = NULL;
        w->settings.quiet_hours = "off";
        run(w, set);
        addresses(w);
        assert_int_equal(w->plan.verdict, REACH_NOW);
}

static void a_day_has_so_many_unasked_messages(void **state)
{
        struct world *w = *state;

        for (int i = 0; i < 4; i++) {
                run(w, count);
                assert_int_equal(w->rc, i < 3);
        }
        assert_string_equal(w->why, "'per-1' gets no more than 3 unasked messages a day "
                                    "(schedule.dailyCap)");
        w->settings.daily_cap = 4;
        run(w, set);
        run(w, count);
        assert_int_equal(w->rc, 1);
        run(w, count);
        assert_int_equal(w->rc, 0);
        w->query.now_ms += 22 * HOUR_MS; /* midnight */
        run(w, count);
        assert_int_equal(w->rc, 1);
        assert_int_equal(rows_number(w->store, "notice_count FROM persons WHERE id = 1"), 1);
        w->settings.daily_cap = 0;
        run(w, set);
        run(w, count);
        assert_int_equal(w->rc, 0);
        assert_non_null(strstr(w->why, "no more than 0 unasked messages a day (their dailyCap)"));
}

static void the_day_of_the_cap_is_the_persons(void **state)
{
        struct world *w = *state;

        w->settings.daily_cap = 1;
        w->settings.timezone = "America/New_York"; /* Sunday, 21:00 */
        run(w, set);
        run(w, count);
        assert_int_equal(w->rc, 1);
        w->query.now_ms += 2 * HOUR_MS;
        run(w, count);
        assert_int_equal(w->rc, 0);
        w->query.now_ms += HOUR_MS;
        run(w, count);
        assert_int_equal(w->rc, 1);
}

static void what_has_no_address_is_for_the_operator(void **state)
{
        struct world *w = *state;
        char stranger[] = "telegram:999", bob[] = "discord:88", ann[] = "telegram:42";
        char *admins[] = { stranger, bob, ann }, second[] = "per-2", ninth[] = "per-9";

        assert_string_equal(addresses(w), "");
        assert_int_equal(w->plan.verdict, REACH_NEVER);
        assert_non_null(strstr(w->plan.why, "schedule.operator"));
        w->query.admins = admins;
        w->query.admin_count = 3;
        assert_string_equal(addresses(w), "discord/88?");
        w->conf.operator= ann;
        assert_string_equal(addresses(w), "telegram/42 discord/dm-77 slack/U7?");
        assert_int_equal(w->plan.person, w->ann);
        w->conf.operator= second;
        assert_string_equal(addresses(w), "discord/88?");
        w->conf.operator= ninth;
        assert_string_equal(addresses(w), "");
        assert_int_equal(w->plan.verdict, REACH_NEVER);
}

static void a_person_is_found_by_number_account_or_name(void **state)
{
        static const struct {
                const char *text;
                int64_t person; /* 0: none */
                enum error_kind kind;
                const char *why;
        } rows[] = {
                { "per-1", 1, 0, NULL },
                { "telegram:42", 1, 0, NULL },
                { "discord:88", 2, 0, NULL },
                { "bob", 2, 0, NULL },
                { "@Bob", 2, 0, NULL },
                { "Ann Example", 1, 0, NULL },
                { "per-9", 0, ERR_MISSING, "there is no person 'per-9'" },
                { "telegram:43", 0, ERR_MISSING, "there is no person 'telegram:43'" },
                { "Exampl", 0, ERR_MISSING, "did you mean 'per-1' (Ann Example, discord:77)" },
                { "", 0, ERR_MISSING, "expected 'per-3'" },
        };
        struct world *w = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                w->text = rows[i].text;
                run(w, find);
                assert_int_equal(w->rc, rows[i].person > 0);
                if (w->rc == 1)
                        assert_int_equal(w->person, rows[i].person);
                else if (w->err.kind != rows[i].kind || !strstr(w->err.text, rows[i].why))
                        fail_msg("'%s': %s", rows[i].text, w->err.text);
        }
        rows_update(w->store, "identities SET name = 'Bob' WHERE user_id = 'U7'", 0, 0);
        w->text = "bob";
        run(w, find);
        assert_int_equal(w->rc, 0);
        assert_int_equal(w->err.kind, ERR_CONFLICT);
        assert_string_equal(w->err.text, "several persons are named 'bob': 'per-2' (Bob, "
                                         "discord:88), 'per-1' (Bob, slack:U7)");
        rows_update(w->store, "persons SET name = 'the other' WHERE id = ?1", 2, 0);
        w->text = "The Other";
        run(w, find);
        assert_int_equal(w->rc, 1);
        assert_int_equal(w->person, 2);
}

static void values_for_a_person_are_checked(void **state)
{
        static const struct {
                struct person_reach reach;
                const char *why; /* NULL: fine */
        } rows[] = {
                { { NULL, NULL, NULL, -1 }, NULL },
                { { "Europe/Berlin", "22:00-7:00; sat 10:00-12:00", "tg/42", 5 }, NULL },
                { { NULL, "off", "tg", 0 }, NULL },
                { { "Europe/Berlim", NULL, NULL, -1 }, "timezone: " },
                { { NULL, "22-7", NULL, -1 }, "quietHours: cannot read '22-7'; expected" },
                { { NULL, "00:00-24:00", NULL, -1 }, "quietHours: '00:00-24:00' never end" },
                { { NULL, NULL, "/42", -1 }, "reachAt: expected an adapter" },
        };
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                int rc = reach_check(&rows[i].reach, &err);

                assert_int_equal(rc, rows[i].why ? -1 : 0);
                if (rows[i].why && strncmp(err.text, rows[i].why, strlen(rows[i].why)) != 0)
                        fail_msg("%s", err.text);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(the_latest_direct_chat_comes_first),
                TEST(the_chat_where_it_was_asked_and_the_chosen_one_come_before),
                TEST(a_merged_person_is_reached_as_the_other),
                TEST(quiet_hours_are_those_of_the_persons_zone),
                TEST(a_day_has_so_many_unasked_messages),
                TEST(the_day_of_the_cap_is_the_persons),
                TEST(what_has_no_address_is_for_the_operator),
                TEST(a_person_is_found_by_number_account_or_name),
                TEST(values_for_a_person_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
