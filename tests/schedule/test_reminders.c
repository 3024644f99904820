/* Reminders: how they are asked for, by commands and tools; who sees them, who may end them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "rows/person_row.h"
#include "schedule/reminders.h"
#include "schedule/schedule.h"

#define NOON   (1794830400LL * 1000) /* Monday 2026-11-16 12:00 UTC, 13:00 in Berlin */
#define MINUTE 60000LL
#define HOUR   (60 * MINUTE)

struct world {
        struct rig *g;
        struct schedule_conf conf;
        struct schedule *schedule;
        struct road_schedule contract;
        struct buf answer;
        int64_t ann, bob, event;
        /* of the last tool call */
        unsigned done;
        char *result;
        struct error err;
        /* of the store functions below */
        struct reminder_wish wish;
        struct arena arena;
        struct schedule_row row;
        int64_t id;
        struct effect *effect;
};

static int add_people(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        int64_t id;

        return person_row_insert(tx, 1, &w->ann, err) < 0 ||
                               person_row_insert(tx, 1, &w->bob, err) < 0 ||
                               person_row_add_identity(tx, &(struct identity){ "telegram", "42" },
                                                       w->ann, 1, &id, err) < 0 ||
                               person_row_add_identity(tx, &(struct identity){ "telegram", "43" },
                                                       w->bob, 1, &id, err) < 0
                       ? -1
                       : 0;
}

static void read_defaults(struct schedule_conf *conf)
{
        const struct setting *const tables[] = { schedule_settings, NULL };
        struct error err;
        struct settings_source *src = settings_source_new("defaults", NULL, "{}", 2, &err);

        if (!src ||
            settings_read(src, "schedule", settings_source_root(src), tables, NULL, conf, &err) < 0)
                fail_msg("%s", err.text);
        settings_source_free(src);
        free(conf->timezone);
        conf->timezone = mem_strdup("Europe/Berlin");
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->g = rig_new();
        read_defaults(&w->conf);
        w->conf.pending_per_person = 5;
        w->schedule = schedule_open(&(struct schedule_env){ .loop = w->g->loop,
                                                            .store = w->g->store,
                                                            .bus = w->g->bus,
                                                            .road = w->g->road,
                                                            .dir = w->g->dir },
                                    &w->conf, &w->err);
        if (!w->schedule)
                fail_msg("%s", w->err.text);
        schedule_contract(w->schedule, &w->contract);
        if (store_write_now(w->g->store, add_people, w, &w->err) < 0)
                fail_msg("%s", w->err.text);
        buf_init(&w->answer, 0);
        arena_init(&w->arena);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        static const struct setting *const tables[] = { schedule_settings, NULL };
        struct world *w = *state;

        schedule_close(w->schedule);
        settings_release(tables, &w->conf);
        buf_release(&w->answer);
        arena_release(&w->arena);
        free(w->result);
        rig_free(w->g);
        free(w);
        return 0;
}

/* ---- what is understood ---- */

static int make(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        arena_release(&w->arena);
        arena_init(&w->arena);
        return reminder_make(tx, &w->conf, &w->wish, &w->arena, &w->row, err);
}

/* "30m tea" said by Ann at noon; an error's text, or NULL. */
static const char *understand(struct world *w, const char *words)
{
        w->wish = (struct reminder_wish){ .source = "reminder",
                                          .when = words,
                                          .adapter = "x",
                                          .channel = "c",
                                          .person = w->ann,
                                          .action = SCHEDULE_MESSAGE,
                                          .max_age_seconds = -1,
                                          .now_ms = NOON };
        w->err = (struct error){ 0 };
        return store_read_now(w->g->store, make, w, &w->err) < 0 ? w->err.text : NULL;
}

static void times_and_texts_are_told_apart(void **state)
{
        static const struct {
                const char *words;
                int64_t after_ms;
                const char *text;
        } rows[] = {
                { "30m tea", 30 * MINUTE, "tea" },
                { "in 2 hours call mum", 2 * HOUR, "call mum" },
                { "me in 30 minutes to call mum", 30 * MINUTE, "call mum" },
                { "Me in 30 minutes that the pizza is ready", 30 * MINUTE, "the pizza is ready" },
                { "18:30: feed the cat", 5 * HOUR + 30 * MINUTE, "feed the cat" },
                { "tomorrow 9:00 standup", 20 * HOUR, "standup" },
                { "call mum in 2 hours", 2 * HOUR, "call mum" },
                { "me to buy 2 tickets tomorrow 9:00 ", 20 * HOUR, "buy 2 tickets" },
                { "18:30 Europe/London tea", 6 * HOUR + 30 * MINUTE, "tea" },
                { "tea 18:30 Europe/London", 6 * HOUR + 30 * MINUTE, "tea" },
                { "thank every one in 5 minutes", 5 * MINUTE, "thank every one" },
                { "18:30 UTC tea", 6 * HOUR + 30 * MINUTE, "tea" },
                { "18:30 and/or later tea", 5 * HOUR + 30 * MINUTE, "and/or later tea" },
        };
        struct world *w = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *why = understand(w, rows[i].words);

                if (why)
                        fail_msg("'%s': %s", rows[i].words, why);
                assert_string_equal(w->row.text, rows[i].text);
                if (w->row.next_ms - NOON != rows[i].after_ms)
                        fail_msg("'%s' is %lld minutes ahead", rows[i].words,
                                 (long long)((w->row.next_ms - NOON) / MINUTE));
                assert_int_equal(w->row.kind, SCHEDULE_ONE_SHOT);
                assert_int_equal(w->row.at_ms, w->row.next_ms);
                assert_int_equal(w->row.max_age_ms, 0);
        }
        assert_string_equal(w->row.timezone, "Europe/Berlin");
        assert_null(understand(w, "18:30 Europe/London tea"));
        assert_string_equal(w->row.timezone, "Europe/London");
        assert_null(understand(w, "every monday 20:00 take out the bins"));
        assert_int_equal(w->row.kind, SCHEDULE_PERIODIC);
        assert_int_equal(w->row.next_ms, NOON + 7 * HOUR);
        assert_string_equal(w->row.text, "take out the bins");
}

static void what_cannot_be_understood_is_explained(void **state)
{
        struct world *w = *state;
        char *large = mem_zalloc(REMINDER_TEXT_MAX + 20);

        assert_non_null(strstr(understand(w, "tea"), "30m"));
        assert_non_null(strstr(understand(w, "30m"), "no text"));
        assert_non_null(strstr(understand(w, "30m   "), "no text"));
        assert_non_null(strstr(understand(w, "2020-01-01T00:00:00Z tea"), "past"));
        assert_non_null(strstr(understand(w, "18:30 Europe/Lodon tea"), "Europe/London"));
        assert_non_null(strstr(understand(w, "18:30 PST tea"), "America/New_York"));
        /* a repeated one never becomes a single one */
        assert_non_null(strstr(understand(w, "drink every 90 minutes"), "divide an hour"));
        w->wish = (struct reminder_wish){
                .source = "reminder", .when = "cron */10 * * * * *", .text = "tick", .now_ms = NOON
        };
        assert_int_equal(store_read_now(w->g->store, make, w, &w->err), -1);
        assert_non_null(strstr(w->err.text, "due every 10 seconds; once a minute is the most"));
        memset(large, 'x', REMINDER_TEXT_MAX + 10);
        memcpy(large, "30m ", 4);
        assert_non_null(strstr(understand(w, large), "more than the 4000"));
        free(large);
}

/* ---- commands ---- */

static int read_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        buf_clear(&w->answer);
        return w->effect->report(tx, w->effect, &w->answer, err);
}

static int write_effect(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        return w->effect->write(tx, w->effect, err);
}

struct said {
        const char *user, *channel;
        enum chat_kind chat;
        bool admin;
};

/* The answer to a command, which is carried out. */
static const char *command_by(struct world *w, const struct said *by, const char *name,
                              const char *args)
{
        struct incoming in = { .adapter = "tg",
                               .platform = "telegram",
                               .channel = by->channel,
                               .chat = by->chat,
                               .sender_id = by->user,
                               .trace = "0af7651916cd43dd8448eb211c80319c",
                               .time_ms = clock_wall_ms() - 5000,
                               .event = ++w->event };
        struct chat_caller caller = { .adapter = "tg",
                                      .platform = "telegram",
                                      .channel = by->channel,
                                      .chat = by->chat,
                                      .sender_id = by->user,
                                      .is_admin = by->admin };

        w->effect = w->contract.command(w->schedule, &caller, &in, name, args);
        assert_non_null(w->effect);
        if (store_read_now(w->g->store, read_report, w, &w->err) < 0)
                fail_msg("%s", w->err.text);
        /* the writer may repeat it, and the next run decides the event again */
        for (int i = 0; i < 2; i++)
                if (store_write_now(w->g->store, write_effect, w, &w->err) < 0)
                        fail_msg("%s", w->err.text);
        w->effect->committed(w->effect);
        w->effect->free(w->effect);
        return w->answer.data;
}

static const char *command(struct world *w, const char *name, const char *args)
{
        return command_by(w, &(struct said){ "42", "42", CHAT_DM, false }, name, args);
}

static void says(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' does not say '%s'", text, part);
}

static void says_not(const char *text, const char *part)
{
        if (strstr(text, part))
                fail_msg("'%s' says '%s'", text, part);
}

static void a_reminder_is_a_row_before_it_is_confirmed(void **state)
{
        struct world *w = *state;
        int64_t before = clock_wall_ms();
        const char *answer = command(w, "remind", "30m tea");

        says(answer, "I will remind you in 30 minutes, to");
        says(answer, "(Europe/Berlin): tea");
        assert_int_equal(rig_count(w->g, "schedules"), 1);
        assert_string_equal(rig_text(w->g, "source || ' ' || action || ' ' || adapter || '/' || "
                                           "channel || ' ' || created_by FROM schedules"),
                            "reminder message tg/42 telegram:42");
        assert_int_equal(rig_number(w->g, "person FROM schedules"), w->ann);
        /* counted from when it was said, not from when it was read */
        assert_in_range(rig_number(w->g, "next_ms FROM schedules"), before + 30 * MINUTE - 6000,
                        before + 30 * MINUTE - 4000);
        assert_string_equal(rig_members(w->g, "options FROM schedules", "mention"), "");
        says(command(w, "remind", ""), "/remind 30m tea");
        says(command(w, "remind", "soon tea"), "That did not work");
        assert_int_equal(rig_count(w->g, "schedules"), 1);
        w->conf.enabled = false;
        schedule_set_conf(w->schedule, &w->conf);
        says(command(w, "remind", "40m more tea"), "switched off at the moment");
}

static void in_a_group_the_person_is_named(void **state)
{
        struct world *w = *state;

        command_by(w, &(struct said){ "43", "-7", CHAT_GROUP, false }, "remind", "30m tea");
        assert_string_equal(rig_members(w->g, "options FROM schedules", "mention"), "43");
        assert_int_equal(rig_number(w->g, "person FROM schedules"), w->bob);
}

static void reminders_are_listed_for_their_person(void **state)
{
        const struct said ann_in_group = { "42", "-7", CHAT_GROUP, false };
        const struct said bob_in_group = { "43", "-7", CHAT_GROUP, false };
        struct world *w = *state;
        const char *answer;

        says(command(w, "reminders", ""), "no reminders");
        command(w, "remind", "2h secret");
        command_by(w, &ann_in_group, "remind", "1h open");
        answer = command_by(w, &ann_in_group, "reminders", "");
        says(answer, "open");
        says_not(answer, "secret"); /* others read along */
        answer = command(w, "reminders", "");
        says(answer, "`sch-1`");
        says(answer, "secret");
        says(answer, "open");
        assert_true(strstr(answer, "open") < strstr(answer, "secret")); /* by time */
        answer = command_by(w, &bob_in_group, "reminders", "");
        says(answer, "no reminders");
}

static void a_long_list_says_that_there_are_more(void **state)
{
        struct world *w = *state;

        w->conf.pending_per_person = REMINDERS_SHOWN + 1;
        schedule_set_conf(w->schedule, &w->conf);
        for (int i = 0; i < REMINDERS_SHOWN; i++)
                command(w, "remind", "1h tea");
        says_not(command(w, "reminders", ""), "and more");
        command(w, "remind", "1h tea");
        says(command(w, "reminders", ""), "and more");
        says(command(w, "reminders", "cancel all"), "50 reminders are cancelled. There are more");
        says(command(w, "reminders", "cancel all"), "1 reminder is cancelled.");
}

/* "cancel sch-2"; valid until the next call */
static const char *cancel(struct world *w, const char *text)
{
        static char words[40];
        int64_t id = strcmp(text, "one") == 0   ? rig_number(w->g, "id FROM schedules WHERE "
                                                                     "text = 'one'")
                     : strcmp(text, "two") == 0 ? rig_number(w->g, "id FROM schedules WHERE "
                                                                   "text = 'two'")
                                                : 0;

        snprintf(words, sizeof(words), "cancel sch-%lld", (long long)id);
        return words;
}

static void only_its_person_ends_a_reminder(void **state)
{
        const struct said bob = { "43", "-7", CHAT_GROUP, false };
        const struct said admin = { "43", "-7", CHAT_GROUP, true };
        struct world *w = *state;

        command(w, "remind", "1h one");
        command_by(w, &(struct said){ "42", "-7", CHAT_GROUP, false }, "remind", "2h two");
        command(w, "remind", "3h three");
        says(command_by(w, &bob, "reminders", cancel(w, "one")), "there is no 'sch-");
        says(command_by(w, &bob, "reminders", cancel(w, "two")), "there is no 'sch-");
        says(command_by(w, &admin, "reminders", cancel(w, "one")), "there is no 'sch-");
        says(command_by(w, &admin, "reminders", cancel(w, "two")), "` is cancelled: two");
        says(command(w, "reminders", cancel(w, "two")), "cancelled already");
        says(command(w, "reminders", "cancel"), "Say which one");
        says(command(w, "remind", cancel(w, "one")), "` is cancelled: one");
        says(command(w, "reminders", "cancel all"), "1 reminder is cancelled.");
        assert_int_equal(rig_count(w->g, "schedules WHERE state = 'active'"), 0);
}

static void where_nobody_has_a_name_the_chats_are_shown(void **state)
{
        const struct said terminal = { NULL, "default", CHAT_DM, false };
        struct world *w = *state;

        command_by(w, &terminal, "remind", "1h one");
        command_by(w, &(struct said){ NULL, "other", CHAT_DM, false }, "remind", "1h two");
        says(command_by(w, &terminal, "reminders", ""), "one");
        says_not(w->answer.data, "two");
        says(command_by(w, &terminal, "reminders", cancel(w, "one")), "is cancelled: one");
        /* where it could not be kept, it is not confirmed */
        says(command_by(w, &terminal, "quiet", "22:00-07:00"), "there is no account here");
}

static void a_person_has_a_limit(void **state)
{
        struct world *w = *state;

        for (int i = 0; i < 5; i++)
                command(w, "remind", "1h tea");
        says(command(w, "remind", "1h tea"), "schedule.pendingPerPerson");
        assert_int_equal(rig_count(w->g, "schedules"), 5);
        says(command_by(w, &(struct said){ "43", "43", CHAT_DM, false }, "remind", "1h tea"),
             "I will remind you");
}

static void quiet_hours_and_zone_are_the_persons(void **state)
{
        struct world *w = *state;

        says(command(w, "quiet", ""), "You have no quiet hours.");
        says(command(w, "quiet", "22:00-07:00 America/New_York"), "Your quiet hours are "
                                                                  "22:00-07:00.");
        says(w->answer.data, "Your time zone is America/New_York.");
        assert_string_equal(rig_text(w->g, "quiet_hours FROM persons WHERE timezone IS NOT NULL"),
                            "22:00-07:00");
        says(command(w, "quiet", "late at night"), "That did not work");
        says(command(w, "quiet", "zone Europe/Berln"), "Europe/Berlin");
        says(command(w, "quiet", "zone Asia/Tokyo"), "Your time zone is Asia/Tokyo.");
        says(command(w, "quiet", "off"), "You have no quiet hours:");
        says(command(w, "remind", "30m tea"), "(Asia/Tokyo): tea");
        says(command(w, "quiet", "default"), "You have no quiet hours.");
        assert_int_equal(rig_count(w->g, "persons WHERE quiet_hours IS NOT NULL"), 0);
}

/* ---- tools ---- */

static void on_result(void *arg, const char *result, const struct error *err)
{
        struct world *w = arg;

        w->done++;
        free(w->result);
        w->result = mem_strdup(result);
        w->err = err ? *err : (struct error){ 0 };
}

/* The result, or the error's text. Takes the arguments. */
static const char *call(struct world *w, const struct chat_caller *by, const char *tool,
                        json_t *arguments, const char *key)
{
        unsigned before = w->done;

        assert_non_null(arguments);
        w->contract.call_tool(w->schedule, by, tool,
                              &(struct tool_request){ .arguments = arguments, .request_key = key },
                              on_result, w);
        json_decref(arguments);
        assert_int_equal(w->done, before); /* later */
        rig_until(w->g, &w->done, before + 1);
        return w->result ? w->result : w->err.text;
}

static const struct chat_caller ann_here = { .adapter = "tg",
                                             .platform = "telegram",
                                             .channel = "-7",
                                             .thread = "9",
                                             .chat = CHAT_GROUP,
                                             .sender_id = "42",
                                             .agent = "helper" };

static void a_tool_reminds_once_per_call(void **state)
{
        struct world *w = *state;

        for (int i = 0; i < 2; i++) {
                const char *result =
                        call(w, &ann_here, "remind",
                             json_pack("{s:s, s:s}", "when", "30m", "text", "tea"), "turn-1:a");

                says(result, "\"id\":\"sch-1\"");
                says(result, "\"timezone\":\"Europe/Berlin\"");
                says(result, "the text is sent");
        }
        assert_int_equal(rig_count(w->g, "schedules"), 1);
        assert_string_equal(rig_members(w->g, "options FROM schedules", "mention"), "42");
        assert_string_equal(rig_text(w->g, "thread FROM schedules"), "9");
        says(call(w, &ann_here, "remind",
                  json_pack("{s:s, s:s, s:b}", "when", "1h", "text", "look", "wake", 1), "b"),
             "you get a turn");
        assert_string_equal(
                rig_members(w->g, "options FROM schedules WHERE action = 'turn'", "agent"),
                "helper");
        /* what a model reads later says whose words they are */
        assert_string_equal(rig_text(w->g, "text FROM schedules WHERE action = 'turn'"),
                            "Asked for by telegram:42: look");
        says(call(w, &ann_here, "remind",
                  json_pack("{s:s, s:s, s:s}", "when", "1h", "text", "all", "to", "chat"), "c"),
             "sch-3");
        assert_int_equal(rig_count(w->g, "schedules WHERE id = 3 AND person IS NULL"), 1);
        says(call(w, &ann_here, "remind",
                  json_pack("{s:s, s:s}", "when", "whenever", "text", "tea"), "d"),
             "30m");
        says(call(w, &ann_here, "remind", json_pack("{s:s, s:s}", "when", "30m tea", "text", "tea"),
                  "e"),
             "must stand alone");
        assert_int_equal(rig_count(w->g, "schedules"), 3);
}

static void turns_without_a_person_have_a_limit(void **state)
{
        struct chat_caller nobody = ann_here;
        struct world *w = *state;
        char key[20];

        nobody.sender_id = NULL;
        for (int i = 0; i < 6; i++) {
                snprintf(key, sizeof(key), "call %d", i);
                says(call(w, &nobody, "remind",
                          json_pack("{s:s, s:s, s:b}", "when", "1h", "text", "again", "wake", 1),
                          key),
                     i < 5 ? "you get a turn" : "pending in this chat already");
        }
        assert_string_equal(rig_text(w->g, "created_by FROM schedules"), "agent helper");
}

static void a_tool_reaches_others_only_if_it_may(void **state)
{
        struct world *w = *state;
        struct chat_caller free_agent = ann_here;

        free_agent.everywhere = true;
        says(call(w, &ann_here, "remind",
                  json_pack("{s:s, s:s, s:s}", "when", "1h", "text", "x", "person", "telegram:43"),
                  "a"),
             "reaches only the person who asks");
        says(call(w, &ann_here, "remind",
                  json_pack("{s:s, s:s, s:s}", "when", "1h", "text", "x", "person", "telegram:42"),
                  "b"),
             "sch-1");
        says(call(w, &free_agent, "remind",
                  json_pack("{s:s, s:s, s:s}", "when", "1h", "text", "x", "person", "telegram:43"),
                  "c"),
             "sch-2");
        assert_int_equal(rig_number(w->g, "person FROM schedules WHERE adapter IS NULL AND id = 2"),
                         w->bob);
}

/* Ann's and Bob's accounts have no direct chat; their ids name one. */
static void a_tool_sends_to_a_person_once_per_call(void **state)
{
        struct world *w = *state;
        struct chat_caller free_agent = ann_here;

        free_agent.everywhere = true;
        rig_update(w->g, "identities SET adapter = 'tg'", 0, 0);
        for (int i = 0; i < 2; i++)
                says(call(w, &ann_here, "message_person", json_pack("{s:s}", "text", "done"), "a"),
                     "{\"id\":\"sch-1\",\"status\":\"queued\"}");
        assert_int_equal(rig_count(w->g, "schedules WHERE source = 'notice'"), 1);
        assert_string_equal(rig_text(w->g, "created_by FROM schedules"), "agent helper");
        says(call(w, &ann_here, "message_person",
                  json_pack("{s:s, s:s}", "text", "done", "person", "telegram:43"), "b"),
             "reaches only the person who asks");
        says(call(w, &free_agent, "message_person",
                  json_pack("{s:s, s:s}", "text", "done", "person", "telegram:43"), "c"),
             "sch-2");
        assert_int_equal(rig_number(w->g, "person FROM schedules WHERE id = 2"), w->bob);
        /* what the person asked for is not counted */
        assert_int_equal(rig_count(w->g, "persons WHERE notice_count = 1"), 1);
}

static void a_tool_lists_and_cancels_what_the_chat_has(void **state)
{
        const struct said ann_alone = { "42", "42", CHAT_DM, false };
        const struct said bob_in_group = { "43", "-7", CHAT_GROUP, false };
        struct world *w = *state;
        const char *list;

        command_by(w, &ann_alone, "remind", "1h one");
        command_by(w, &bob_in_group, "remind", "2h two");
        list = call(w, &ann_here, "schedule_list", json_object(), "a");
        says(list, "\"text\":\"two\"");
        says_not(list, "\"one\"");
        says(call(w, &ann_here, "schedule_cancel", json_pack("{s:s}", "id", cancel(w, "one") + 7),
                  "b"),
             "there is no 'sch-");
        says(call(w, &ann_here, "schedule_cancel", json_pack("{s:s}", "id", "first"), "c"),
             "must be a number such as sch-12");
        says(call(w, &ann_here, "schedule_cancel", json_pack("{s:s}", "id", cancel(w, "two") + 7),
                  "d"),
             "\"cancelled\":\"sch-");
        assert_string_equal(rig_list(w->g, "state FROM schedules ORDER BY id"),
                            "active, cancelled");
}

/* ---- by hand ---- */

static int run_row(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        int64_t tick;

        return reminder_run(tx, w->id, NOON, &tick, err);
}

static int check_cancel(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        struct schedule_row *row = NULL;
        int rc = reminder_check_cancel(tx, NULL, w->id, &row, err);

        free(row);
        return rc;
}

static void a_schedule_runs_by_hand(void **state)
{
        struct world *w = *state;

        command(w, "remind", "1h tea");
        w->id = 1;
        assert_int_equal(store_write_now(w->g->store, run_row, w, &w->err), 0);
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "pending");
        assert_int_equal(store_write_now(w->g->store, run_row, w, &w->err), -1);
        assert_int_equal(w->err.kind, ERR_CONFLICT);
        command(w, "reminders", "cancel sch-1");
        assert_int_equal(store_write_now(w->g->store, run_row, w, &w->err), -1);
        says(w->err.text, "is cancelled");
        w->id = 99;
        assert_int_equal(store_write_now(w->g->store, run_row, w, &w->err), -1);
        assert_int_equal(w->err.kind, ERR_MISSING);
}

/* Its time has come, and its tick waits for the end of quiet hours. */
static void what_waits_can_be_cancelled(void **state)
{
        struct world *w = *state;

        command(w, "remind", "1h tea");
        w->id = 1;
        assert_int_equal(store_write_now(w->g->store, run_row, w, &w->err), 0);
        rig_update(w->g, "schedules SET state = 'done', next_ms = NULL", 0, 0);
        says(command(w, "reminders", "cancel sch-1"), "`sch-1` is cancelled: tea");
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "skipped");
        says(command(w, "reminders", "cancel sch-1"), "'sch-1' is done already");
}

static void those_of_files_and_events_end_with_these(void **state)
{
        struct world *w = *state;

        command(w, "remind", "1h tea");
        w->id = 1;
        rig_update(w->g, "schedules SET source = 'file', name = 'tea.json'", 0, 0);
        assert_int_equal(store_read_now(w->g->store, check_cancel, w, &w->err), -1);
        says(w->err.text, "events/tea.json");
        rig_update(w->g, "schedules SET source = 'calendar'", 0, 0);
        assert_int_equal(store_read_now(w->g->store, check_cancel, w, &w->err), -1);
        says(w->err.text, "/event");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(times_and_texts_are_told_apart),
                TEST(what_cannot_be_understood_is_explained),
                TEST(a_reminder_is_a_row_before_it_is_confirmed),
                TEST(in_a_group_the_person_is_named),
                TEST(reminders_are_listed_for_their_person),
                TEST(a_long_list_says_that_there_are_more),
                TEST(only_its_person_ends_a_reminder),
                TEST(where_nobody_has_a_name_the_chats_are_shown),
                TEST(a_person_has_a_limit),
                TEST(quiet_hours_and_zone_are_the_persons),
                TEST(a_tool_reminds_once_per_call),
                TEST(turns_without_a_person_have_a_limit),
                TEST(a_tool_reaches_others_only_if_it_may),
                TEST(a_tool_sends_to_a_person_once_per_call),
                TEST(a_tool_lists_and_cancels_what_the_chat_has),
                TEST(a_schedule_runs_by_hand),
                TEST(what_waits_can_be_cancelled),
                TEST(those_of_files_and_events_end_with_these),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
