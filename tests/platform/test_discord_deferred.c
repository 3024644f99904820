/* Slash commands and buttons: acknowledged, answered in place, or removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "discord_rig.h"

#define PLACE(method) method " /webhooks/43/interaction-secret/messages/@original"
#define COMMAND \
        "{\"id\":\"900\",\"application_id\":\"43\",\"type\":2,\"token\":\"interaction-secret\"}"

static void stored(const char *text)
{
        json_t *interaction = json_read(text, strlen(text), NULL);

        fake_intake.hooks.stored(fake_intake.hooks.ctx, interaction);
        json_decref(interaction);
}

/* Hands a delivery over; `settled` awaits its outcome. */
static void deliver(struct rig *g, enum delivery_kind kind, const char *payload)
{
        const struct delivery d = { .id = 1,
                                    .adapter = "dc",
                                    .kind = kind,
                                    .channel = "7",
                                    .payload = payload,
                                    .turn = 3,
                                    .attempt = 1,
                                    .created_ms = clock_wall_ms() };

        fake_road.count = 0;
        adapters_send(g->adapters, &d);
}

static const struct send_result *settled(struct rig *g)
{
        for (int i = 0; i < 100000 && fake_road.count == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.count, 1);
        return &fake_road.sent[0].result;
}

static void answer(struct rig *g, const char *payload)
{
        deliver(g, DELIVER_SEND, payload);
        assert_int_equal(settled(g)->outcome, SEND_DONE);
}

/* Waits until Discord has confirmed or refused the acknowledgement. */
static void acknowledged(struct rig *g)
{
        const struct discord *dc = rig_adapter(g)->self;

        for (int i = 0; i < 100000 && dc_deferred_placeholder(dc, "900") == DC_PLACEHOLDER_PENDING;
             i++)
                loop_step(g->loop, true);
        assert_int_not_equal(dc_deferred_placeholder(dc, "900"), DC_PLACEHOLDER_PENDING);
}

static void a_command_is_deferred_then_answered_in_place(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 200, "{\"id\":\"501\"}");
        says(g, 200, "{\"id\":\"502\"}");
        rig_connect(g, "");
        stored(COMMAND);
        rig_requests(g, 1);
        assert_string_equal(rig_line(g, 0), "POST /interactions/900/interaction-secret/callback");
        assert_string_equal(rig_body(g, 0), "{\"type\":5}");
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 1), PLACE("PATCH"));
        assert_string_equal(rig_body(g, 1),
                            "{\"content\":\"hi\",\"allowed_mentions\":{\"parse\":[],\"users\":[],"
                            "\"replied_user\":false}}");
        assert_string_equal(fake_road.sent[0].platform_id, "501");
        answer(g, "{\"text\":\"the rest\"}");
        assert_string_equal(rig_line(g, 2), "POST /channels/7/messages");
}

static void an_expired_command_is_answered_in_the_channel(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 404, "{\"code\":10015,\"message\":\"Unknown Webhook\"}");
        says(g, 200, "{\"id\":\"502\"}");
        rig_connect(g, "");
        stored(COMMAND);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 2), "POST /channels/7/messages");
        assert_null(strstr(rig_body(g, 2), "message_reference"));
        assert_non_null(strstr(rig_body(g, 2), "enforce_nonce"));
}

static void a_late_acknowledgement_leaves_no_placeholder(void **state)
{
        struct rig *g = *state;

        says(g, 404, "{\"code\":10062,\"message\":\"Unknown interaction\"}");
        says(g, 200, "{\"id\":\"502\"}");
        rig_connect(g, "");
        stored(COMMAND);
        acknowledged(g);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
}

static void a_pressed_button_leaves_its_message(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 200, "{\"id\":\"502\"}");
        rig_connect(g, "");
        stored("{\"id\":\"900\",\"application_id\":\"43\",\"type\":3,"
               "\"token\":\"interaction-secret\"}");
        rig_requests(g, 1);
        assert_string_equal(rig_body(g, 0), "{\"type\":6}");
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
}

static void a_command_gets_no_reactions(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        deliver(g, DELIVER_REACT, "{\"messageId\":\"900\",\"emoji\":\"✅\"}");
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_int_equal(fake_server_requests(g->server), g->greetings + 2);
}

/* In the file while the process runs, because a crash gives no warning. */
static void an_open_command_is_on_disk_until_answered(void **state)
{
        struct rig *g = *state;
        char *path = scratch_path(g->dir, "state/interactions-dc.json");
        json_t *kept = NULL;
        struct stat st;

        says(g, 204, "");
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        for (int i = 0; i < 100000 && json_array_size(kept) == 0; i++) {
                json_decref(kept);
                loop_step(g->loop, true);
                kept = json_load_file(path, 0, NULL);
        }
        assert_string_equal(json_str(json_array_get(kept, 0), "token", ""), "interaction-secret");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        for (int i = 0; i < 100000 && json_array_size(kept) > 0; i++) {
                json_decref(kept);
                loop_step(g->loop, true);
                kept = json_load_file(path, 0, NULL);
        }
        assert_int_equal(json_array_size(kept), 0);
        json_decref(kept);
        free(path);
}

static void an_open_command_survives_an_orderly_restart(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        rig_requests(g, 1);
        rig_apply(g, TOKEN, ",\"slashCommands\":false,\"roleMentions\":true");
        rig_until_state(g, ADAPTER_UP);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 3), PLACE("PATCH"));
}

/* ---- when the placeholder is there ---- */

#define NO_CONTENT "HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n"

static void an_answer_waits_for_the_acknowledgement(void **state)
{
        static const struct fake_answer taken = { .bytes = NO_CONTENT };
        struct rig *g = *state;

        says(g, 0, NULL);
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        rig_requests(g, 1);
        deliver(g, DELIVER_SEND, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, false);
        assert_int_equal(fake_server_requests(g->server), g->greetings + 1);
        fake_server_answer(g->server, &taken);
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 1), PLACE("PATCH"));
}

static void refused_acknowledgements_reply_in_the_channel(void **state)
{
        static const struct fake_answer refused = {
                .bytes = "HTTP/1.1 404 X\r\nContent-Length: 14\r\n\r\n{\"code\":10062}"
        };
        struct rig *g = *state;

        says(g, 0, NULL);
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        rig_requests(g, 1);
        deliver(g, DELIVER_SEND, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        fake_server_answer(g->server, &refused);
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
}

/* Discord has not read our response to its post when the reply is sent. */
static void an_answer_may_outrun_the_response_to_a_post(void **state)
{
        struct rig *g = *state;
        json_t *interaction = json_read(COMMAND, strlen(COMMAND), NULL);

        says(g, 404, "{\"code\":10015,\"message\":\"Unknown Webhook\"}");
        rig_connect(g, "");
        json_decref(dc_deferred_posted(rig_adapter(g)->self, interaction));
        deliver(g, DELIVER_SEND, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_int_equal(settled(g)->outcome, SEND_RETRY);
        assert_int_equal(settled(g)->kind, ERR_LIMIT); /* not counted as an attempt */
        assert_int_equal(fake_server_requests(g->server), g->greetings + 1);
        json_decref(interaction);
}

/* The earlier run may have answered it: the placeholder is used, and never removed. */
static void a_replayed_command_keeps_its_placeholder(void **state)
{
        struct rig *g = *state;

        says(g, 400, "{\"code\":40060,\"message\":\"Interaction has already been acknowledged.\"}");
        says(g, 200, "{\"id\":\"501\"}");
        rig_connect(g, "");
        stored(COMMAND);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        assert_string_equal(rig_line(g, 1), PLACE("PATCH"));
}

/* ---- no answer ---- */

static void a_command_without_an_answer_loses_its_placeholder(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 204, "");
        rig_connect(g, "");
        stored(COMMAND);
        deliver(g, DELIVER_CANCEL_DEFERRED, "{\"messageId\":\"900\"}");
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 1), PLACE("DELETE"));
        /* only once */
        deliver(g, DELIVER_CANCEL_DEFERRED, "{\"messageId\":\"900\"}");
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_int_equal(fake_server_requests(g->server), g->greetings + 2);
}

static void removing_a_placeholder_is_retried(void **state)
{
        static const struct {
                int status;
                const char *body;
                enum send_outcome outcome;
        } rows[] = { { 502, "{}", SEND_RETRY },
                     { 404, "{\"code\":10008}", SEND_DONE },
                     { 404, "{\"code\":10015}", SEND_DONE },
                     { 401, "{\"code\":50027}", SEND_DONE },
                     { 403, "{\"code\":50013}", SEND_REJECTED } };
        struct rig *g = *state;
        char text[200];

        for (size_t i = 0; i < COUNT(rows); i++) {
                says(g, 204, "");
                says(g, rows[i].status, rows[i].body);
        }
        rig_connect(g, "");
        for (size_t i = 0; i < COUNT(rows); i++) {
                snprintf(text, sizeof(text),
                         "{\"id\":\"91%zu\",\"application_id\":\"43\",\"type\":2,"
                         "\"token\":\"secret-%zu\"}",
                         i, i);
                stored(text);
                snprintf(text, sizeof(text), "{\"messageId\":\"91%zu\"}", i);
                deliver(g, DELIVER_CANCEL_DEFERRED, text);
                assert_int_equal(settled(g)->outcome, rows[i].outcome);
        }
        assert_int_equal(rig_adapter(g)->state,
                         ADAPTER_UP); /* a dead command does not mean a bad bot token */
}

/* After a crash: Discord drops the placeholder itself. */
static void an_unknown_command_has_no_placeholder_to_remove(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        deliver(g, DELIVER_CANCEL_DEFERRED, "{\"messageId\":\"900\"}");
        assert_int_equal(settled(g)->outcome, SEND_DONE);
        assert_int_equal(fake_server_requests(g->server), g->greetings);
}

static void a_refused_answer_removes_the_placeholder(void **state)
{
        struct rig *g = *state;

        says(g, 204, "");
        says(g, 400, "{\"code\":50035,\"message\":\"Invalid Form Body\"}");
        says(g, 204, "");
        says(g, 200, "{\"id\":\"502\"}");
        rig_connect(g, "");
        stored(COMMAND);
        answer(g, "{\"text\":\"hi\",\"replyTo\":\"900\"}");
        rig_requests(g, 4);
        assert_string_equal(rig_line(g, 2), PLACE("DELETE"));
        assert_string_equal(rig_line(g, 3), "POST /channels/7/messages");
}

/* The process died between Discord's response and the commit: the reply is there already. */
static void post(struct discord *dc, unsigned number)
{
        char id[24], token[24];
        json_t *interaction;

        snprintf(id, sizeof(id), "%u", number);
        snprintf(token, sizeof(token), "token-%u", number);
        interaction = json_pack("{s:s, s:s, s:i, s:s}", "id", id, "application_id", "43", "type", 2,
                                "token", token);
        json_decref(dc_deferred_posted(dc, interaction));
        json_decref(interaction);
}

static void the_oldest_of_too_many_commands_loses_its_placeholder(void **state)
{
        struct rig *g = *state;
        struct discord *dc;

        says(g, 204, "");
        rig_connect(g, "");
        dc = rig_adapter(g)->self;
        for (unsigned i = 1; i <= 1000; i++)
                post(dc, i);
        assert_true(dc_deferred_knows(dc, "1"));
        post(dc, 1001);
        assert_false(dc_deferred_knows(dc, "1"));
        assert_true(dc_deferred_knows(dc, "2"));
        rig_requests(g, 1);
        assert_string_equal(rig_line(g, 0), "DELETE /webhooks/43/token-1/messages/@original");
}

/* An earlier run may have replied, so the placeholder may be the reply. */
static void a_command_of_an_earlier_run_expires_without_a_call(void **state)
{
        struct rig *g = *state;
        char *path = scratch_path(g->dir, "state/interactions-dc.json");
        json_t *kept =
                json_pack("[{s:s, s:s, s:s, s:I}]", "id", "900", "application", "43", "token",
                          "interaction-secret", "until", (json_int_t)clock_wall_ms() + 500);
        const struct discord *dc;

        assert_int_equal(json_dump_file(kept, path, 0), 0);
        rig_connect(g, "");
        dc = rig_adapter(g)->self;
        assert_true(dc_deferred_knows(dc, "900"));
        for (int i = 0; i < 100000 && dc_deferred_knows(dc, "900"); i++)
                loop_step(g->loop, true);
        assert_false(dc_deferred_knows(dc, "900"));
        assert_int_equal(http_client_active(g->http), 0);
        json_decref(kept);
        free(path);
}

static void a_command_answered_before_a_restart_is_not_repeated(void **state)
{
        struct rig *g = *state;
        struct delivery d = { .id = 1,
                              .adapter = "dc",
                              .kind = DELIVER_SEND,
                              .channel = "7",
                              .payload = "{\"text\":\"hi\",\"replyTo\":\"900\"}",
                              .turn = 3,
                              .attempt = 2 };

        says(g, 200,
             "[{\"id\":\"902\",\"content\":\"hi\",\"author\":{\"id\":\"42\"}},{\"id\":\"901\","
             "\"content\":\"hi\",\"author\":{\"id\":\"42\"},"
             "\"interaction_metadata\":{\"id\":\"900\"}}]");
        says(g, 403, "{\"code\":50001,\"message\":\"Missing Access\"}");
        says(g, 200, "{\"id\":\"903\"}");
        rig_connect(g, "");
        d.created_ms = clock_wall_ms() - 10000;
        adapters_send(g->adapters, &d);
        for (int i = 0; i < 100000 && fake_road.count == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_DONE);
        assert_string_equal(fake_road.sent[0].platform_id, "901");
        /* without history the nonce has to do */
        fake_road.count = 0;
        adapters_send(g->adapters, &d);
        for (int i = 0; i < 100000 && fake_road.count == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(fake_road.sent[0].platform_id, "903");
        assert_string_equal(rig_line(g, 2), "POST /channels/7/messages");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_command_is_deferred_then_answered_in_place),
                TEST(an_expired_command_is_answered_in_the_channel),
                TEST(a_late_acknowledgement_leaves_no_placeholder),
                TEST(a_pressed_button_leaves_its_message),
                TEST(a_command_gets_no_reactions),
                TEST(an_open_command_is_on_disk_until_answered),
                TEST(an_open_command_survives_an_orderly_restart),
                TEST(an_answer_waits_for_the_acknowledgement),
                TEST(refused_acknowledgements_reply_in_the_channel),
                TEST(an_answer_may_outrun_the_response_to_a_post),
                TEST(a_replayed_command_keeps_its_placeholder),
                TEST(a_command_without_an_answer_loses_its_placeholder),
                TEST(removing_a_placeholder_is_retried),
                TEST(an_unknown_command_has_no_placeholder_to_remove),
                TEST(a_refused_answer_removes_the_placeholder),
                TEST(the_oldest_of_too_many_commands_loses_its_placeholder),
                TEST(a_command_of_an_earlier_run_expires_without_a_call),
                TEST(a_command_answered_before_a_restart_is_not_repeated),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
