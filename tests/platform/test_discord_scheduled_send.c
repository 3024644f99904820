/* Calendar events as scheduled events of Discord: calls, refusals, repeats, echoes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "discord_rig.h"
#include "platform/discord/dc_id.h"

#define STARTS "2126-11-20T18:00:00.250Z" /* Discord shows seconds */
#define ENDS   "2126-11-20T21:00:00.000Z"
#define GAME                                                                                     \
        "{\"calendar\":{\"op\":\"put\",\"calendar\":\"cal-3\",\"guildId\":\"1\","                \
        "\"title\":\"Catan\",\"description\":\"Bring snacks\",\"place\":\"Ann's\",\"startsAt\":" \
        "\"" STARTS "\",\"endsAt\":\"" ENDS "\"}}"
#define NEW                                                                         \
        "{\"name\":\"Catan\",\"description\":\"Bring snacks\",\"entity_metadata\":" \
        "{\"location\":\"Ann's\"},\"scheduled_start_time\":\"" STARTS               \
        "\",\"scheduled_end_time\":\"" ENDS "\",\"privacy_level\":2,\"entity_type\":3}"
/* as Discord shows it */
#define SHOWN(name)                                                                         \
        "\"guild_id\":\"1\",\"creator_id\":\"42\",\"name\":\"" name                         \
        "\",\"description\":\"Bring snacks\",\"entity_metadata\":{\"location\":\"Ann's\"}," \
        "\"scheduled_start_time\":\"2126-11-20T18:00:00+00:00\",\"scheduled_end_time\":"    \
        "\"2126-11-20T21:00:00+00:00\",\"status\":1,\"entity_type\":3,\"channel_id\":null}"
#define MADE "{\"id\":\"77\"," SHOWN("Catan")

static void send_it(struct rig *g, const char *payload)
{
        rig_send(g,
                 (struct delivery){ .kind = DELIVER_CALENDAR, .channel = "7", .payload = payload });
}

static void deliveries_become_calls(void **state)
{
        static const struct {
                const char *channel, *payload, *line, *body;
        } rows[] = {
                { "7", GAME, "POST /guilds/1/scheduled-events", NEW },
                /* the server of the channel; an end and a place are needed */
                { "7",
                  "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\",\"startsAt\":\"" STARTS "\"}}",
                  "POST /guilds/1/scheduled-events",
                  "{\"name\":\"Go\",\"entity_metadata\":{\"location\":\"To be announced\"},"
                  "\"scheduled_start_time\":\"" STARTS "\",\"scheduled_end_time\":"
                  "\"2126-11-20T19:00:00.250Z\",\"privacy_level\":2,\"entity_type\":3}" },
                { "guild:9",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}",
                  "PATCH /guilds/9/scheduled-events/77", "{\"name\":\"Azul\"}" },
                { "7",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"description\":\"\","
                  "\"place\":\"\",\"startsAt\":\"2020-01-01T00:00:00Z\"}}",
                  "PATCH /guilds/1/scheduled-events/77",
                  "{\"description\":null,\"entity_metadata\":{\"location\":\"To be announced\"}}" },
                { "7", "{\"calendar\":{\"op\":\"delete\",\"guildId\":\"3\",\"eventId\":\"77\"}}",
                  "DELETE /guilds/3/scheduled-events/77", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 200, MADE);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = DELIVER_CALENDAR,
                                               .channel = rows[i].channel,
                                               .payload = rows[i].payload });
                assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
                assert_string_equal(rig_sent(g)->platform_id, "77");
                assert_string_equal(rig_line(g, 0), rows[i].line);
                assert_string_equal(rig_body(g, 0), rows[i].body);
                rig_free(g);
        }
}

/* Discord's limits; calendar_sync_diff knows a text that ends in this way. */
static void long_texts_are_cut(void **state)
{
        struct rig *g = *state;
        char title[151] = { 0 }, description[1201] = { 0 };
        json_t *body;
        char *payload;

        memset(title, 'a', 150);
        memset(description, 'b', 1200);
        payload =
                mem_printf("{\"calendar\":{\"op\":\"put\",\"title\":\"%s\",\"description\":\"%s\","
                           "\"place\":\"%s\",\"startsAt\":\"" STARTS "\"}}",
                           title, description, title);
        says(g, 200, MADE);
        rig_connect(g, "");
        send_it(g, payload);
        free(payload);
        rig_sent(g);
        body = json_read(rig_body(g, 0), strlen(rig_body(g, 0)), NULL);
        assert_int_equal(strlen(json_str(body, "name", "")), 99 + 3);
        assert_string_equal(json_str(body, "name", "") + 99, "…");
        assert_int_equal(strlen(json_str(body, "description", "")), 999 + 3);
        assert_int_equal(strlen(json_str(json_object_get(body, "entity_metadata"), "location", "")),
                         99 + 3);
        json_decref(body);
}

static void impossible_ones_are_rejected_with_a_reason(void **state)
{
        static const struct {
                const char *channel, *payload, *why;
        } rows[] = {
                { "7", "{}", "op ''" },
                { "7", "{\"calendar\":{\"op\":\"join\"}}", "put or deleted" },
                { "7", "{\"calendar\":{\"op\":\"delete\"}}", "names the event" },
                { "7", "{\"calendar\":{\"op\":\"delete\",\"eventId\":\"cal\"}}", "event's id" },
                { "7", "{\"calendar\":{\"op\":\"put\",\"guildId\":\"x\"}}", "server's id" },
                { "7", "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\"}}", "a title and a time" },
                { "7",
                  "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\",\"startsAt\":"
                  "\"2020-01-01T00:00:00Z\"}}",
                  "begin in the future" },
                { "user:5", GAME, NULL },
                { "user:5", "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\"}}", "no server" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 200, MADE);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = DELIVER_CALENDAR,
                                               .channel = rows[i].channel,
                                               .payload = rows[i].payload });
                assert_int_equal(rig_sent(g)->result.outcome,
                                 rows[i].why ? SEND_REJECTED : SEND_DONE);
                if (rows[i].why && !strstr(rig_sent(g)->why, rows[i].why))
                        fail_msg("'%s' lacks '%s'", rig_sent(g)->why, rows[i].why);
                rig_free(g);
        }
}

static void a_direct_chat_has_no_events(void **state)
{
        struct rig *g = *state;

        fake_intake.dm = "8";
        says(g, 200, "{\"id\":\"8\",\"type\":1}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_CALENDAR,
                                       .channel = "8",
                                       .payload = "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\","
                                                  "\"startsAt\":\"" STARTS "\"}}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_non_null(strstr(rig_sent(g)->why, "direct chat"));
        assert_string_equal(rig_line(g, 0), "GET /channels/8");
}

static void refusals_say_what_to_do(void **state)
{
        static const struct {
                int status;
                const char *answer, *payload, *why;
                enum error_kind kind;
        } rows[] = {
                { 403, "{\"code\":50013,\"message\":\"Missing Permissions\"}", GAME,
                  "lacks the permission Create Events in this server", ERR_REFUSED },
                { 403, "{\"code\":50013,\"message\":\"Missing Permissions\"}",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}",
                  "Manage Events", ERR_REFUSED },
                { 404, "{\"code\":10070,\"message\":\"Unknown Guild Scheduled Event\"}",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}",
                  "deleted in Discord", ERR_MISSING },
                { 400, "{\"code\":30038,\"message\":\"Maximum\"}", GAME, "100 scheduled events",
                  ERR_LIMIT },
                { 400, "{\"code\":180000,\"message\":\"Cannot update a finished event\"}",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}", "over",
                  ERR_CONFLICT },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, rows[i].status, rows[i].answer);
                rig_connect(g, "");
                send_it(g, rows[i].payload);
                assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
                assert_int_equal(rig_sent(g)->result.kind, rows[i].kind);
                if (!strstr(rig_sent(g)->why, rows[i].why))
                        fail_msg("'%s' lacks '%s'", rig_sent(g)->why, rows[i].why);
                rig_free(g);
        }
}

static void a_deleted_event_is_deleted(void **state)
{
        struct rig *g = *state;

        says(g, 404, "{\"code\":10070,\"message\":\"Unknown Guild Scheduled Event\"}");
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"delete\",\"eventId\":\"77\"}}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
}

static void an_event_in_a_channel_keeps_its_place(void **state)
{
        struct rig *g = *state;

        says(g, 400,
             "{\"code\":50035,\"message\":\"Invalid Form Body\",\"errors\":{\"entity_metadata\":"
             "{\"_errors\":[]}}}");
        says(g, 200, MADE);
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\","
                   "\"place\":\"here\"}}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_body(g, 1), "{\"name\":\"Azul\"}");
}

static void nothing_to_change_is_no_call(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\"}}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, "77");
        assert_int_equal(fake_server_requests(g->server), 2);
}

/* ---- an attempt that may have arrived ---- */

static void an_unanswered_creation_is_unsure(void **state)
{
        struct rig *g = *state;

        says(g, 502, "bad gateway");
        rig_connect(g, "");
        send_it(g, GAME);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
}

static void a_change_may_be_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 502, "bad gateway");
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
}

/* Sends it again after an attempt a minute ago; the listed event was made `age_ms` ago. */
static void send_again(struct rig *g, int64_t age_ms, const char *creator, const char *name)
{
        int64_t now = clock_wall_ms();
        char id[DC_ID_SIZE], window[80], *list, *shown;

        dc_id_at(now - age_ms, id);
        shown = mem_printf(
                "[{\"id\":\"%s\",\"guild_id\":\"1\",\"creator_id\":\"%s\",\"name\":\"%s\","
                "\"description\":\"Bring snacks\",\"entity_metadata\":{\"location\":"
                "\"Ann's\"},\"scheduled_start_time\":\"2126-11-20T18:00:00+00:00\","
                "\"scheduled_end_time\":\"2126-11-20T21:00:00+00:00\",\"status\":1}]",
                id, creator, name);
        list = mem_strdup(shown);
        says(g, 200, list);
        says(g, 200, MADE);
        free(list);
        free(shown);
        snprintf(window, sizeof(window), "%lld:%lld:%lld", (long long)now - 60000,
                 (long long)now - 60000, (long long)now);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_CALENDAR,
                                       .channel = "7",
                                       .payload = GAME,
                                       .attempt = 2,
                                       .read_from = window });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 0), "GET /guilds/1/scheduled-events");
}

static void an_earlier_creation_is_found_again(void **state)
{
        struct rig *g = *state;

        send_again(g, 59000, "42", "Catan");
        assert_string_not_equal(rig_sent(g)->platform_id, "77");
        assert_int_equal(fake_server_requests(g->server), 3);
}

static void other_events_are_not_it(void **state)
{
        static const struct {
                int64_t age_ms;
                const char *creator, *name;
        } rows[] = {
                { 59000, "43", "Catan" },   /* of a person */
                { 59000, "42", "Azul" },    /* of another name */
                { 3600000, "42", "Catan" }, /* older than the attempt */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                send_again(g, rows[i].age_ms, rows[i].creator, rows[i].name);
                assert_string_equal(rig_sent(g)->platform_id, "77");
                assert_string_equal(rig_line(g, 1), "POST /guilds/1/scheduled-events");
                rig_free(g);
        }
}

static void a_retry_that_cannot_look_stays_unsure(void **state)
{
        struct rig *g = *state;

        says(g, 503, "later");
        rig_connect(g, "");
        rig_send(g,
                 (struct delivery){
                         .kind = DELIVER_CALENDAR, .channel = "7", .payload = GAME, .attempt = 2 });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
}

/* ---- echoes ---- */

static bool wrote(const char *type, const char *text)
{
        json_t *event = json_read(text, strlen(text), NULL);
        bool ours = fake_intake.hooks.wrote(fake_intake.hooks.ctx, type, event);

        json_decref(event);
        return ours;
}

#define UPDATE "GUILD_SCHEDULED_EVENT_UPDATE"
#define DELETE "GUILD_SCHEDULED_EVENT_DELETE"

static void our_own_change_is_recognised_once(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"id\":\"77\"," SHOWN("Azul"));
        rig_connect(g, "");
        assert_false(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul")));
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}");
        rig_sent(g);
        assert_false(wrote(UPDATE, "{\"id\":\"78\"," SHOWN("Azul"))); /* another event */
        assert_false(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Go")));   /* a person's */
        assert_false(wrote(DELETE, "{\"id\":\"77\"," SHOWN("Azul")));
        assert_true(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul")));
        assert_false(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul"))); /* changed back by a person */
}

static void an_echo_before_the_answer_is_recognised(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"id\":\"77\"," SHOWN("Azul"));
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}");
        assert_true(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul")));
        rig_sent(g);
        assert_false(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul")));
}

/* A person changes the place a moment after we changed the title. */
static void a_persons_change_after_ours_is_theirs(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"id\":\"77\"," SHOWN("Azul"));
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}");
        rig_sent(g);
        assert_false(wrote(UPDATE,
                           "{\"id\":\"77\",\"name\":\"Azul\",\"description\":\"Bring snacks\","
                           "\"entity_metadata\":{\"location\":\"Bob's\"},\"status\":1,"
                           "\"scheduled_start_time\":\"2126-11-20T18:00:00+00:00\","
                           "\"scheduled_end_time\":\"2126-11-20T21:00:00+00:00\"}"));
}

static void our_own_deletion_is_recognised(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"delete\",\"eventId\":\"77\"}}");
        rig_sent(g);
        assert_true(wrote(DELETE, "{\"id\":\"77\"," SHOWN("Catan")));
        assert_false(wrote(DELETE, "{\"id\":\"77\"," SHOWN("Catan")));
}

static void a_refused_change_is_not_remembered(void **state)
{
        struct rig *g = *state;

        says(g, 403, "{\"code\":50013,\"message\":\"Missing Permissions\"}");
        rig_connect(g, "");
        send_it(g, "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Azul\"}}");
        rig_sent(g);
        assert_false(wrote(UPDATE, "{\"id\":\"77\"," SHOWN("Azul")));
}

static void servers_with_events_are_remembered(void **state)
{
        struct rig *g = *state;
        const struct dc_intake_hooks *h = &fake_intake.hooks;

        says(g, 200, MADE);
        rig_connect(g, "");
        assert_false(h->was_scheduled(h->ctx, "1"));
        send_it(g, GAME);
        rig_sent(g);
        assert_true(h->was_scheduled(h->ctx, "1"));
        h->scheduled(h->ctx, "1", false);
        assert_false(h->was_scheduled(h->ctx, "1"));
}

static void closing_leaves_a_creation_unsure(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        send_it(g, GAME);
        rig_requests(g, 1); /* nobody answers */
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, NULL), 0);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deliveries_become_calls),
                UNIT(long_texts_are_cut),
                cmocka_unit_test(impossible_ones_are_rejected_with_a_reason),
                UNIT(a_direct_chat_has_no_events),
                cmocka_unit_test(refusals_say_what_to_do),
                UNIT(a_deleted_event_is_deleted),
                UNIT(an_event_in_a_channel_keeps_its_place),
                UNIT(nothing_to_change_is_no_call),
                UNIT(an_unanswered_creation_is_unsure),
                UNIT(a_change_may_be_repeated),
                UNIT(an_earlier_creation_is_found_again),
                cmocka_unit_test(other_events_are_not_it),
                UNIT(a_retry_that_cannot_look_stays_unsure),
                UNIT(our_own_change_is_recognised_once),
                UNIT(an_echo_before_the_answer_is_recognised),
                UNIT(a_persons_change_after_ours_is_theirs),
                UNIT(our_own_deletion_is_recognised),
                UNIT(a_refused_change_is_not_remembered),
                UNIT(servers_with_events_are_remembered),
                UNIT(closing_leaves_a_creation_unsure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
