#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "schedule/calendar/calendar_ics.h"

/* With ICS_OUT=file the calendar of the last test is left there, for a parser of others. */
#define OUT "ICS_OUT"

static const struct ics_person organizer = { "discord", "1", "Ann \"the\" Host, Esq.", 0 };
static const struct ics_person members[] = {
        { "discord", "123", "Bo", ICS_YES },   { "telegram", "42", "Çem;D", ICS_MAYBE },
        { "person", "per-3", "Di", ICS_NO },   { NULL, NULL, "Grandma Eve", ICS_INVITED },
        { "slack", "U/1", NULL, ICS_WAITING },
};

static struct ics_event game_night(void)
{
        return (struct ics_event){
                .uid = "cal-3@dragoman",
                .sequence = 2,
                .title = "Game night: Catan, Azul; \\o/",
                .description = "Bring:\n- snacks\n- a long evening, because it will be a very "
                               "long one 🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲🎲",
                .place = "Ann's, 2nd floor",
                .url = "https://discord.com/channels/1/2/3",
                .starts_ms = INT64_C(1795204800000), /* 2026-11-20T20:00Z */
                .ends_ms = INT64_C(1795215600000),
                .created_ms = INT64_C(1794850000000),
                .updated_ms = INT64_C(1794860000000),
                .reminder_ms = 3600000,
                .organizer = &organizer,
                .members = members,
                .member_count = COUNT(members),
        };
}

static void write_calendar(struct buf *out, enum ics_method method, const struct ics_event *e)
{
        buf_clear(out);
        calendar_ics_begin(out, method, "Games");
        calendar_ics_event(out, method, e);
        calendar_ics_end(out);
}

static void assert_has(const struct buf *out, const char *line)
{
        char *whole = mem_printf("\r\n%s\r\n", line);

        if (!strstr(out->data, whole))
                fail_msg("no line '%s' in:\n%s", line, out->data);
        free(whole);
}

static void an_event_has_its_properties_in_utc(void **state)
{
        struct ics_event e = game_night();
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        write_calendar(&out, ICS_STORED, &e);
        assert_memory_equal(out.data, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", 30);
        assert_null(strstr(out.data, "METHOD"));
        assert_has(&out, "UID:cal-3@dragoman");
        assert_has(&out, "SEQUENCE:2");
        assert_has(&out, "DTSTART:20261120T200000Z");
        assert_has(&out, "DTEND:20261120T230000Z");
        assert_has(&out, "SUMMARY:Game night: Catan\\, Azul\\; \\\\o/");
        assert_has(&out, "LOCATION:Ann's\\, 2nd floor");
        assert_has(&out, "STATUS:CONFIRMED");
        assert_has(&out, "TRIGGER:-PT60M");
        assert_has(&out, "ORGANIZER;CN=\"Ann ^'the^' Host, Esq.\":urn:x-dragoman:discord:1");
        assert_has(
                &out,
                "ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=DECLINED;CN=\"Di\":urn:x-dragoman:pers\r\n"
                " on:per-3");
        assert_non_null(strstr(out.data, "guest:Grandma%20Eve"));
        assert_non_null(strstr(out.data, "slack:U%2F1"));
        assert_non_null(strstr(out.data, "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"));
        buf_release(&out);
}

static void lines_are_folded_between_characters(void **state)
{
        struct ics_event e = game_night();
        struct buf out;
        size_t lines = 0;

        (void)state;
        buf_init(&out, 0);
        write_calendar(&out, ICS_STORED, &e);
        for (const char *p = out.data, *end; *p; p = end + 2, lines++) {
                end = strstr(p, "\r\n");
                assert_non_null(end);
                assert_in_range((size_t)(end - p), 1, 75);
                assert_true(utf8_valid(p, (size_t)(end - p)));
                assert_null(memchr(p, '\n', (size_t)(end - p)));
        }
        assert_true(lines > 25);
        buf_release(&out);
}

static void a_publication_names_no_members(void **state)
{
        struct ics_event e = game_night();
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        write_calendar(&out, ICS_PUBLISH, &e);
        assert_has(&out, "METHOD:PUBLISH");
        assert_null(strstr(out.data, "ATTENDEE"));
        write_calendar(&out, ICS_REQUEST, &e);
        assert_has(&out, "METHOD:REQUEST");
        assert_non_null(strstr(out.data, "ATTENDEE"));
        write_calendar(&out, ICS_CANCEL, &e);
        assert_has(&out, "STATUS:CANCELLED");
        buf_release(&out);
}

static void a_cancelled_event_says_so_and_rings_no_more(void **state)
{
        struct ics_event e = game_night();
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        e.cancelled = true;
        e.ends_ms = 0;
        write_calendar(&out, ICS_STORED, &e);
        assert_has(&out, "STATUS:CANCELLED");
        assert_null(strstr(out.data, "VALARM"));
        assert_null(strstr(out.data, "DTEND"));
        buf_release(&out);
}

/* Nothing in a text can begin a line of its own. */
static void text_of_people_adds_no_lines(void **state)
{
        static const struct ics_person host = { "discord\r\nX:1", "1\nX:2", "H\r\nX:3", 0 };
        struct ics_event e = game_night();
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        e.title = "a\r\nX:4\xff\x01z";
        e.url = "https://x\r\nX:5";
        e.uid = "u\nX:6";
        e.organizer = &host;
        write_calendar(&out, ICS_STORED, &e);
        assert_null(strstr(out.data, "\nX:"));
        assert_null(strstr(out.data, "URL:"));
        assert_has(&out, "SUMMARY:a\\nX:4\xef\xbf\xbdz");
        assert_true(utf8_valid(out.data, out.len));
        buf_release(&out);
}

static void a_calendar_for_other_parsers_is_written(void **state)
{
        const char *path = getenv(OUT);
        struct ics_event e = game_night(), plain = { .uid = "cal-4@dragoman", .title = "Tea" };
        struct buf out;
        FILE *f;

        (void)state;
        if (!path)
                skip();
        plain.starts_ms = e.starts_ms;
        plain.updated_ms = e.updated_ms;
        plain.cancelled = true;
        buf_init(&out, 0);
        calendar_ics_begin(&out, ICS_STORED, "Games");
        calendar_ics_event(&out, ICS_STORED, &e);
        calendar_ics_event(&out, ICS_STORED, &plain);
        calendar_ics_end(&out);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
        fclose(f);
        buf_release(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_event_has_its_properties_in_utc),
                cmocka_unit_test(lines_are_folded_between_characters),
                cmocka_unit_test(a_publication_names_no_members),
                cmocka_unit_test(a_cancelled_event_says_so_and_rings_no_more),
                cmocka_unit_test(text_of_people_adds_no_lines),
                cmocka_unit_test(a_calendar_for_other_parsers_is_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
