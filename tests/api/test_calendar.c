/* Events over the API: planned, changed, answered, as a file and as a feed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"

#define EVENTS "/api/v2/calendar/events"
#define CATAN                                                         \
        "{\"title\":\"Catan\",\"startsAt\":\"2030-01-01T18:00:00Z\"," \
        "\"timezone\":\"UTC\",\"capacity\":1,\"place\":\"Ann's\"}"

static void an_event_is_planned_changed_and_cancelled(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENTS, CATAN, 201, "\"id\":\"cal-1\"");
        api_rig_expect(r, "GET", EVENTS "/cal-1", NULL, 200,
                       "\"endsAt\":\"2030-01-01T20:00:00.000Z\"");
        api_rig_expect(r, "PATCH", EVENTS "/cal-1", "{\"place\":\"\",\"reminderMinutes\":30}", 200,
                       "\"place\":null");
        api_rig_expect(r, "PATCH", EVENTS "/cal-1", "{\"startsAt\":\"2020-01-01T00:00:00Z\"}", 400,
                       "past");
        api_rig_expect(r, "POST", EVENTS,
                       "{\"title\":\"Go\",\"startsAt\":\"2029-01-01T18:00:00Z\",\"until\":\"90m\","
                       "\"instanceId\":\"api\",\"channelId\":\"room\",\"invite\":[\"Bob\"]}",
                       201, "\"displayName\":\"Bob\",\"status\":\"invited\"");
        api_rig_expect(r, "GET", EVENTS "?limit=1", NULL, 200, "\"cursor\":\"cal-2\"");
        api_rig_expect(r, "GET", EVENTS "?limit=1&cursor=cal-2", NULL, 200, "\"id\":\"cal-1\"");
        api_rig_expect(r, "GET", EVENTS "?to=2020-01-01T00:00:00Z", NULL, 200, "\"items\":[]");
        api_rig_expect(r, "GET", EVENTS "?channel=room", NULL, 200, "\"id\":\"cal-2\"");
        api_rig_expect(r, "DELETE", EVENTS "/cal-1", NULL, 200, "\"state\":\"cancelled\"");
        api_rig_expect(r, "DELETE", EVENTS "/cal-1", NULL, 409, "was cancelled");
        api_rig_expect(r, "GET", EVENTS "/cal-9", NULL, 404, "cal-9");
        api_rig_expect(r, "POST", EVENTS, "{\"title\":\"Go\"}", 400, "needs a time");
        api_rig_expect(r, "POST", EVENTS,
                       "{\"title\":\"Go\",\"when\":\"friday\",\"channelId\":\"c\"}", 400,
                       "belong together");
        api_rig_expect(r, "POST", EVENTS,
                       "{\"title\":\"Go\",\"when\":\"friday\",\"instanceId\":\"no\","
                       "\"channelId\":\"c\"}",
                       404, "instance");
}

static void members_answer_and_wait(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", EVENTS, CATAN, 201, "\"members\":[]");
        api_rig_expect(r, "POST", EVENTS "/cal-1/members",
                       "{\"who\":\"discord:42\",\"status\":\"yes\"}", 200,
                       "\"userId\":null,\"externalSource\":\"discord\",\"externalId\":\"42\"");
        api_rig_expect(r, "POST", EVENTS "/cal-1/members", "{\"who\":\"Bob\",\"status\":\"yes\"}",
                       200, "\"status\":\"waiting\"");
        api_rig_expect(r, "DELETE", EVENTS "/cal-1/members/mem-1", NULL, 200,
                       "\"displayName\":\"Bob\",\"status\":\"yes\"");
        api_rig_expect(r, "DELETE", EVENTS "/cal-1/members/mem-1", NULL, 404, "mem-1");
        api_rig_expect(r, "POST", EVENTS "/cal-1/members", "{\"who\":\"per-9\"}", 404, "per-9");
        assert_int_equal(api_rig_count(r, "calendar_members"), 1);
}

/* The token of a new feed, yours to free. */
static char *new_feed(struct api_rig *r)
{
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/calendar/feed", "{}");
        char *token;

        assert_int_equal(a.status, 201);
        token = mem_strdup(
                json_string_value(json_object_get(json_object_get(a.json, "data"), "token")));
        api_answer_release(&a);
        return token;
}

static void expect_feed(struct api_rig *r, const char *token, int status, const char *part)
{
        char *path = mem_printf("/api/v2/calendar/feed.ics?token=%s", token);

        api_rig_expect(r, "GET", path, NULL, status, part);
        free(path);
}

static void calendars_get_files_and_a_feed(void **state)
{
        struct api_rig *r = *state;
        char *first, *second;

        api_rig_expect(r, "POST", EVENTS, CATAN, 201, NULL);
        api_rig_expect(r, "GET", EVENTS "/cal-1/ics", NULL, 200, "SUMMARY:Catan\r\n");
        api_rig_expect(r, "GET", EVENTS "/cal-2/ics", NULL, 404, "cal-2");
        expect_feed(r, "x", 404, "no such feed");
        first = new_feed(r);
        expect_feed(r, first, 200, "SUMMARY:Catan\r\n");
        second = new_feed(r);
        expect_feed(r, first, 404, "no such feed");
        expect_feed(r, second, 200, "BEGIN:VCALENDAR\r\n");
        api_rig_expect(r, "DELETE", "/api/v2/calendar/feed", NULL, 200, "\"off\"");
        expect_feed(r, second, 404, "no such feed");
        api_rig_expect(r, "GET", "/api/v2/calendar/feed.ics", NULL, 400, "token");
        free(first);
        free(second);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(an_event_is_planned_changed_and_cancelled),
                API_RIG_CASE(members_answer_and_wait),
                API_RIG_CASE(calendars_get_files_and_a_feed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
