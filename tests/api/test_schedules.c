/* Schedules over the API: added, listed, run, cancelled. */
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

#define SCHEDULES "/api/v2/schedules"

static void add(struct api_rig *r, const char *body, int status, const char *part)
{
        api_rig_expect(r, "POST", SCHEDULES, body, status, part);
}

static void a_text_is_scheduled_in_every_way(void **state)
{
        struct api_rig *r = *state;

        add(r, "{\"in\":\"30m\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"room\"}", 201,
            "\"kind\":\"one-shot\"");
        add(r,
            "{\"at\":\"2099-01-01T12:00:00+01:00\",\"text\":\"far\",\"instanceId\":\"api\","
            "\"to\":\"room\"}",
            201, "\"nextAt\":\"2099-01-01T11:00:00.000Z\"");
        add(r,
            "{\"cron\":\"0 0 9 * * 1\",\"timezone\":\"Europe/Berlin\",\"text\":\"week\","
            "\"instanceId\":\"api\",\"to\":\"room\",\"action\":\"turn\"}",
            201, "\"cron\":\"0 0 9 * * 1\",\"timezone\":\"Europe/Berlin\"");
        add(r,
            "{\"every\":\"day 9:00\",\"text\":\"day\",\"instanceId\":\"api\",\"to\":\"room\","
            "\"missed\":\"skip\",\"name\":\"daily\"}",
            201, "\"missed\":\"skip\"");
        add(r, "{\"when\":\"tomorrow 9:00\",\"text\":\"t\",\"instanceId\":\"api\",\"to\":\"room\"}",
            201, "\"createdBy\":\"the operator\"");
        api_rig_expect(r, "GET", SCHEDULES "?state=active&limit=2", NULL, 200, "\"hasMore\":true");
        api_rig_expect(r, "GET", SCHEDULES "?channel=elsewhere", NULL, 200, "\"items\":[]");
        api_rig_expect(r, "GET", SCHEDULES "/next?limit=1", NULL, 200, "\"text\":\"tea\"");
        api_rig_expect(r, "GET", SCHEDULES "/sch-3", NULL, 200, "\"nextRuns\":[\"");
        api_rig_expect(r, "GET", SCHEDULES "/sch-3", NULL, 200, "\"action\":\"turn\"");
        api_rig_expect(r, "GET", SCHEDULES "/sch-99", NULL, 404, "sch-99");
}

static void what_cannot_be_scheduled_is_refused(void **state)
{
        static const struct {
                const char *body;
                int status;
                const char *part;
        } rows[] = {
                { "{\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\"}", 400, "exactly one of" },
                { "{\"in\":\"1h\",\"cron\":\"* * * * *\",\"text\":\"x\",\"instanceId\":\"api\","
                  "\"to\":\"c\"}",
                  400, "exactly one of" },
                { "{\"in\":\"1h\",\"text\":\"x\"}", 400, "a chat (instanceId and to) or a" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"to\":\"c\"}", 400, "belong together" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"nowhere\",\"to\":\"c\"}", 404,
                  "nowhere" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"personId\":\"per-9\"}", 400, "per-9" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"personId\":\"per-9\",\"action\":\"turn\"}", 400,
                  "a turn needs a chat" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\",\"agent\":"
                  "\"a\"}",
                  400, "only for action turn" },
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\",\"agent\":"
                  "\"nobody\",\"action\":\"turn\"}",
                  400, "there is no agent 'nobody'" },
                { "{\"when\":\"soon\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\"}", 400,
                  "tomorrow 9:00" },
                { "{\"at\":\"2020-01-01T00:00:00Z\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":"
                  "\"c\"}",
                  400, "past" },
                { "{\"in\":\"1h\",\"timezone\":\"Europe/Berln\",\"text\":\"x\",\"instanceId\":"
                  "\"api\",\"to\":\"c\"}",
                  400, "Europe/Berlin" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                add(r, rows[i].body, rows[i].status, rows[i].part);
        assert_int_equal(api_rig_count(r, "schedules"), 0);
}

static void a_restricted_key_names_a_chat(void **state)
{
        struct api_rig *r = *state;
        char *headers = api_rig_key_headers(
                r, "{\"name\":\"k\",\"scopes\":[\"write\"],\"adapters\":[\"api\"]}");
        static const struct {
                const char *body;
                int status;
        } rows[] = {
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\"}", 201 },
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"terminal\",\"to\":\"c\"}", 403 },
                { "{\"in\":\"1h\",\"text\":\"x\",\"personId\":\"per-1\"}", 403 },
                { "{\"in\":\"1h\",\"text\":\"x\",\"instanceId\":\"api\",\"to\":\"c\","
                  "\"personId\":\"per-1\"}",
                  403 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct api_answer a = api_rig_ask_as(r, "POST", SCHEDULES, headers, rows[i].body);

                if (a.status != rows[i].status)
                        fail_msg("%s: %s", rows[i].body, a.text);
                api_answer_release(&a);
        }
        free(headers);
}

static void the_same_key_adds_once(void **state)
{
        static const char *const bodies[] = {
                "{\"in\":\"1h\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"c\"}",
                "{\"text\":\"tea\",\"in\":\"1h\",\"instanceId\":\"api\",\"to\":\"c\"}",
                "{\"in\":\"1h\",\"text\":\"cake\",\"instanceId\":\"api\",\"to\":\"c\"}",
                "{\"in\":\"2h\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"c\"}",
                "{\"in\":\"1h\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"d\"}",
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(bodies); i++) {
                struct http_raw c;
                struct api_answer a;

                api_rig_send(r, &c, "POST", SCHEDULES, "Idempotency-Key: k1\r\n", bodies[i]);
                a = api_rig_receive(&c);
                assert_int_equal(a.status, i < 2 ? 201 : 409);
                if (i < 2)
                        assert_string_equal(json_str(json_object_get(a.json, "data"), "id", ""),
                                            "sch-1");
                api_answer_release(&a);
        }
        assert_int_equal(api_rig_count(r, "schedules"), 1);
}

static void a_schedule_is_run_and_cancelled(void **state)
{
        struct api_rig *r = *state;

        add(r, "{\"in\":\"1h\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"c\"}", 201,
            "sch-1");
        api_rig_expect(r, "GET", SCHEDULES "/sch-1/history", NULL, 200, "\"items\":[]");
        api_rig_expect(r, "GET", SCHEDULES "/sch-99/history", NULL, 404, "no schedule 'sch-99'");
        api_rig_expect(r, "POST", SCHEDULES "/sch-1/run", NULL, 202, "\"id\":\"tck-1\"");
        api_rig_expect(r, "GET", SCHEDULES "/sch-1/history", NULL, 200, "\"note\":\"run by hand\"");
        api_rig_expect(r, "DELETE", SCHEDULES "/sch-1", NULL, 200, "\"state\":\"cancelled\"");
        api_rig_expect(r, "DELETE", SCHEDULES "/sch-1", NULL, 409, "cancelled already");
        api_rig_expect(r, "POST", SCHEDULES "/sch-1/run", NULL, 409, "is cancelled");
        api_rig_expect(r, "POST", SCHEDULES "/sch-9/run", NULL, 404, "sch-9");
        api_rig_expect(r, "GET", SCHEDULES "/sch-1/history", NULL, 200, "\"state\":\"skipped\"");
        api_rig_expect(r, "GET", SCHEDULES "/next", NULL, 200, "\"items\":[]");
}

static void why_shows_what_a_tick_led_to(void **state)
{
        struct api_rig *r = *state;

        add(r, "{\"in\":\"1h\",\"text\":\"tea\",\"instanceId\":\"api\",\"to\":\"c\"}", 201,
            "sch-1");
        api_rig_expect(r, "POST", SCHEDULES "/sch-1/run", NULL, 202, "\"id\":\"tck-1\"");
        api_rig_expect(r, "GET", "/api/v2/why/sch-1", NULL, 404, "dragoman schedule history sch-1");
        api_rig_expect(r, "GET", "/api/v2/why/tck-1", NULL, 404, "no message of 'tck-1' is known");
        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000",
                       "{\"instanceId\":\"terminal\",\"chatId\":\"b\",\"externalId\":\"78\","
                       "\"text\":\"hello\"}",
                       202, "stored");
        api_rig_update(r, "ticks SET event = 1 WHERE id = 1", 0, 0);
        api_rig_expect(r, "GET", "/api/v2/why/tck-1", NULL, 200, "\"messageId\":\"78\"");
}

static void status_and_metrics_show_the_schedule(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "GET", "/api/v2/status", NULL, 200,
                       "\"schedule\":{\"enabled\":true,\"nextAt\":null,\"running\":0,\"fired\":0,");
        api_rig_expect(r, "GET", "/metrics", NULL, 200,
                       "dragoman_ticks_total{outcome=\"fired\"} 0\n");
        api_rig_expect(r, "GET", "/metrics", NULL, 200, "dragoman_schedule_next_seconds 0\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(a_text_is_scheduled_in_every_way),
                API_RIG_CASE(what_cannot_be_scheduled_is_refused),
                API_RIG_CASE(a_restricted_key_names_a_chat),
                API_RIG_CASE(the_same_key_adds_once),
                API_RIG_CASE(a_schedule_is_run_and_cancelled),
                API_RIG_CASE(why_shows_what_a_tick_led_to),
                API_RIG_CASE(status_and_metrics_show_the_schedule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
