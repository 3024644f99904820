/* Calendar events kept in step with a platform: what is sent, what arrives, what differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "base/json.h"
#include "road/calendar_sync.h"

#define EVENING 1795197600000 /* 2026-11-20T18:00:00Z */

static const struct calendar_sync game = { .op = CALENDAR_PUT,
                                           .calendar = "cal-3",
                                           .guild = "41",
                                           .title = "Catan",
                                           .description = "Bring \"snacks\"",
                                           .place = "Ann's",
                                           .starts_ms = EVENING,
                                           .ends_ms = EVENING + 3600000 };

static struct outbox_receipt last;
static unsigned receipts;

static void on_put(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        last = *receipt;
        receipts++;
}

static void put(struct rig *g, const char *adapter, const struct calendar_sync *s)
{
        unsigned before = receipts;
        struct buf text;

        buf_init(&text, 0);
        calendar_sync_write(s, &text);
        outbox_submit(g->road,
                      &(struct outgoing){ .adapter = adapter,
                                          .channel = "c",
                                          .kind = DELIVER_CALENDAR,
                                          .calendar = text.data,
                                          .request_key = "cal-3:1" },
                      on_put, NULL);
        buf_release(&text);
        rig_until(g, &receipts, before + 1);
}

static void what_is_written_is_read(void **state)
{
        struct calendar_sync s, join = { .op = CALENDAR_JOIN,
                                         .event = "7",
                                         .by_us = true,
                                         .recurs = true,
                                         .state = "active",
                                         .user_id = "42",
                                         .user_name = "Ann" };
        struct buf text;
        json_t *o;

        (void)state;
        buf_init(&text, 0);
        calendar_sync_write(&game, &text);
        o = json_read(text.data, text.len, NULL);
        assert_int_equal(calendar_sync_read(o, &s, NULL), 0);
        assert_int_equal(s.op, CALENDAR_PUT);
        assert_string_equal(s.calendar, "cal-3");
        assert_string_equal(s.description, "Bring \"snacks\"");
        assert_int_equal(s.starts_ms, EVENING);
        assert_int_equal(calendar_sync_diff(&game, &s), 0);
        json_decref(o);
        buf_clear(&text);
        calendar_sync_write(&join, &text);
        o = json_read(text.data, text.len, NULL);
        assert_int_equal(calendar_sync_read(o, &s, NULL), 0);
        assert_string_equal(s.user_name, "Ann");
        assert_true(s.by_us && s.recurs);
        json_decref(o);
        buf_release(&text);
}

static void mistakes_are_named(void **state)
{
        static const char *const wrong[][2] = {
                { "{}", "op ''" },
                { "{\"op\":\"move\"}", "none of put, delete" },
                { "{\"op\":\"put\",\"startsAt\":\"soon\"}", "startsAt 'soon'" },
                { "{\"op\":\"put\",\"endsAt\":\"1969-01-01T00:00:00Z\"}", "endsAt" },
        };
        struct calendar_sync s;
        struct error err;

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                json_t *o = json_read(wrong[i][0], strlen(wrong[i][0]), NULL);

                assert_int_equal(calendar_sync_read(o, &s, &err), -1);
                assert_non_null(strstr(err.text, wrong[i][1]));
                json_decref(o);
        }
}

static void only_real_differences_count(void **state)
{
        struct calendar_sync theirs = game, ours = game;

        (void)state;
        theirs.starts_ms += 999; /* platforms keep seconds */
        theirs.description = "Bring…";
        assert_int_equal(calendar_sync_diff(&game, &theirs), 0);
        theirs.description = "Take…";
        assert_int_equal(calendar_sync_diff(&game, &theirs), CALENDAR_DESCRIPTION);
        theirs = game;
        theirs.title = "Azul";
        theirs.place = NULL;
        theirs.starts_ms += 60000;
        theirs.ends_ms = 0; /* says nothing */
        assert_int_equal(calendar_sync_diff(&game, &theirs),
                         CALENDAR_TITLE | CALENDAR_PLACE | CALENDAR_STARTS);
        theirs = game;
        theirs.ends_ms += 60000;
        assert_int_equal(calendar_sync_diff(&game, &theirs), CALENDAR_ENDS);
        theirs = game;
        ours.place = theirs.place = NULL;
        theirs.place = "";
        assert_int_equal(calendar_sync_diff(&ours, &theirs), 0);
}

static void a_put_says_its_event_when_sent_and_when_refused(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "plans", &game);
        assert_int_equal(last.error.kind, ERR_NONE);
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].kind, "calendar");
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until_count(g,
                        "journal WHERE type = 'delivery.sent'"
                        " AND payload LIKE '%\"calendar\":\"cal-3\"%'",
                        1);
        put(g, "plans", &game);
        assert_true(last.duplicate);
        rig_free(g);

        g = rig_new();
        put(g, "plans", &game);
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_count(g,
                        "journal WHERE type = 'delivery.failed'"
                        " AND payload LIKE '%\"errorKind\":\"refused\"%'"
                        " AND payload LIKE '%\"kind\":\"calendar\"%'"
                        " AND payload LIKE '%\"calendar\":\"cal-3\"%'",
                        1);
        rig_free(g);
}

static void a_platform_without_calendar_is_not_asked(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, "x", &game);
        assert_int_equal(last.error.kind, ERR_INVALID);
        assert_non_null(strstr(last.error.text, "adapter 'x' has no calendar"));
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

static void a_change_is_an_event_of_the_schedule(void **state)
{
        struct rig *g = rig_new();
        struct incoming in = { .type = EVENT_CALENDAR,
                               .adapter = "plans",
                               .channel = "guild:41",
                               .key = "scheduled:7:s:9",
                               .id = "7",
                               .text = "skip",
                               .metadata = "{\"op\":\"delete\",\"eventId\":\"7\"}" };

        (void)state;
        rig_receive(g, &in);
        rig_receive(g, &in); /* repeated after a resume */
        rig_until(g, &g->acks, 2);
        rig_until_idle(g);
        assert_int_equal(g->duplicates, 1);
        assert_int_equal(rig_count(g, "journal WHERE type = 'calendar.event' AND stream = 6"), 1);
        assert_int_equal(rig_count(g, "trigger_log WHERE event_type = 'calendar.event'"), 1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(mistakes_are_named),
                cmocka_unit_test(only_real_differences_count),
                cmocka_unit_test(a_put_says_its_event_when_sent_and_when_refused),
                cmocka_unit_test(a_platform_without_calendar_is_not_asked),
                cmocka_unit_test(a_change_is_an_event_of_the_schedule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
