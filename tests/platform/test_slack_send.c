#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/slack/sl_intake.h"
#include "slack_rig.h"

#define SENT "{\"ok\":true,\"channel\":\"C7\",\"ts\":\"1700000001.000200\"}"
#define META                                                                                    \
        "\"metadata\":{\"event_type\":\"dragoman_delivery\",\"event_payload\":{\"id\":\"" NONCE \
        "\"}}"
#define TS "1700000000.000100"

static const struct {
        enum delivery_kind kind;
        const char *channel, *thread, *payload;
        const char *method, *body, *platform_id;
} calls[] = {
        { DELIVER_SEND, "C7", NULL, "{\"text\":\"*hi*\",\"replyTo\":\"" TS "\"}",
          "chat.postMessage", "{" META ",\"text\":\"*hi*\",\"channel\":\"C7\"}",
          "1700000001.000200" },
        { DELIVER_SEND, "C7", TS, "{\"text\":\"hi\"}", "chat.postMessage",
          "{" META ",\"thread_ts\":\"" TS "\",\"text\":\"hi\",\"channel\":\"C7\"}",
          "1700000001.000200" },
        { DELIVER_SEND, "C7", TS, "{\"text\":\"hi\",\"broadcast\":true}", "chat.postMessage",
          "{" META ",\"thread_ts\":\"" TS "\",\"reply_broadcast\":true,\"text\":\"hi\","
          "\"channel\":\"C7\"}",
          "1700000001.000200" },
        /* only a thread can be broadcast */
        { DELIVER_SEND, "C7", NULL, "{\"text\":\"hi\",\"broadcast\":true}", "chat.postMessage",
          "{" META ",\"text\":\"hi\",\"channel\":\"C7\"}", "1700000001.000200" },
        /* for one person: ephemeral in a channel, an ordinary message in their DM */
        { DELIVER_SEND, "C7", TS, "{\"text\":\"no\",\"onlyFor\":\"U5\"}", "chat.postEphemeral",
          "{\"user\":\"U5\",\"thread_ts\":\"" TS "\",\"text\":\"no\",\"channel\":\"C7\"}",
          "1700000001.000200" },
        { DELIVER_SEND, "D7", NULL, "{\"text\":\"no\",\"onlyFor\":\"U5\"}", "chat.postMessage",
          "{" META ",\"text\":\"no\",\"channel\":\"D7\"}", "1700000001.000200" },
        { DELIVER_SEND, "C7", NULL,
          "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\",\"data\":\"say:yes\"}]]}",
          "chat.postMessage",
          "{" META ",\"text\":\"?\",\"blocks\":[{\"type\":\"section\",\"text\":{\"type\":"
          "\"mrkdwn\",\"text\":\"?\"},\"expand\":true},{\"type\":\"actions\",\"elements\":[{"
          "\"type\":\"button\",\"action_id\":\"button:0:0\",\"text\":{\"type\":\"plain_text\","
          "\"text\":\"Yes\",\"emoji\":true},\"value\":\"say:yes\"}]}],\"channel\":\"C7\"}",
          "1700000001.000200" },
        { DELIVER_EDIT, "C7", NULL, "{\"messageId\":\"" TS "\",\"text\":\"more\"}", "chat.update",
          "{\"ts\":\"" TS "\",\"text\":\"more\",\"channel\":\"C7\"}", TS },
        { DELIVER_DELETE, "C7", TS, "{\"messageId\":\"" TS "\"}", "chat.delete",
          "{\"ts\":\"" TS "\",\"channel\":\"C7\"}", TS },
        { DELIVER_REACT, "C7", NULL, "{\"messageId\":\"" TS "\",\"emoji\":\"👀\"}", "reactions.add",
          "{\"name\":\"eyes\",\"timestamp\":\"" TS "\",\"channel\":\"C7\"}", TS },
        { DELIVER_UNREACT, "C7", NULL, "{\"messageId\":\"" TS "\",\"emoji\":\":shipit:\"}",
          "reactions.remove", "{\"name\":\"shipit\",\"timestamp\":\"" TS "\",\"channel\":\"C7\"}",
          TS },
};

static void deliveries_become_calls(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(calls); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                says(g, 200, SENT);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = calls[i].kind,
                                               .channel = calls[i].channel,
                                               .thread = calls[i].thread,
                                               .payload = calls[i].payload });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_DONE);
                assert_string_equal(rig_method(g, 0), calls[i].method);
                assert_string_equal(rig_body(g, 0), calls[i].body);
                assert_string_equal(sent->platform_id, calls[i].platform_id);
                assert_non_null(strstr(fake_server_request(g->server, 1),
                                       "Authorization: Bearer " BOT_TOKEN));
                rig_free(g);
        }
}

/* A thread begins with its first reply; Slack shows no placeholder for a command. */
static void some_deliveries_need_no_call(void **state)
{
        static const struct {
                enum delivery_kind kind;
                const char *payload, *platform_id;
        } rows[] = {
                { DELIVER_THREAD, "{\"messageId\":\"" TS "\",\"name\":\"A question\"}", TS },
                { DELIVER_CANCEL_DEFERRED, "{\"messageId\":\"x\"}", "" },
                { DELIVER_REACT, "{\"messageId\":\"13345224609.738474920\",\"emoji\":\"👀\"}", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = rows[i].kind,
                                               .channel = "C7",
                                               .turn = 9,
                                               .payload = rows[i].payload });
                assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
                assert_string_equal(rig_sent(g)->platform_id, rows[i].platform_id);
                assert_int_equal(fake_server_requests(g->server), 1);
                rig_free(g);
        }
}

static void impossible_deliveries_are_rejected_with_a_reason(void **state)
{
        static const struct {
                enum delivery_kind kind;
                const char *channel, *thread, *payload, *why;
        } rows[] = {
                { DELIVER_SEND, "general", NULL, "{\"text\":\"hi\"}",
                  "'general' is not a Slack channel that the bot knows: use an id, '#name', "
                  "'user:ID' for a person's DM, or 'operator'" },
                { DELIVER_SEND, "C7", NULL, "{\"text\":\"\"}", "there is no text to send" },
                { DELIVER_SEND, "C7", "70", "{\"text\":\"hi\"}",
                  "'70' is not the ts of a thread's first message, such as 1700000000.000100" },
                { DELIVER_EDIT, "C7", NULL, "{\"text\":\"x\",\"messageId\":\"../5\"}",
                  "'../5' is not the ts of a Slack message, such as 1700000000.000100" },
                { DELIVER_REACT, "C7", NULL, "{\"messageId\":\"" TS "\"}",
                  "a reaction needs an emoji" },
                { DELIVER_REACT, "C7", NULL, "{\"messageId\":\"" TS "\",\"emoji\":\"🜁\"}",
                  "'🜁' has no name in Slack that we know: write its name, such as 'eyes'" },
                { DELIVER_SEND, "C7", NULL, "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\"}]]}",
                  "button 'Yes' needs data of 1 to 2000 characters or a URL of at most 3000" },
                { DELIVER_UPLOAD, "C7", NULL, "{\"path\":\"../state/operator.key\"}",
                  "there is no file '../state/operator.key' in the workspace" },
                { DELIVER_UPLOAD, "C7", NULL, "{\"path\":\"link\"}",
                  "'link' in the workspace is a link or lies behind one; only regular files are "
                  "taken" },
                { DELIVER_UPLOAD, "C7", NULL, "{\"path\":\"empty\"}",
                  "'empty' is empty; Slack takes no empty files" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                rig_put_file(g, "empty", "");
                rig_put_traps(g);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = rows[i].kind,
                                               .channel = rows[i].channel,
                                               .thread = rows[i].thread,
                                               .payload = rows[i].payload });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_REJECTED);
                assert_string_equal(sent->why, rows[i].why);
                rig_free(g);
        }
}

/* ---- outcomes ---- */

static void answers_decide_the_outcome(void **state)
{
        static const struct {
                enum delivery_kind kind;
                int status;
                const char *body;
                enum send_outcome outcome;
                enum error_kind error;
                const char *why; /* a part of it */
        } rows[] = {
                { DELIVER_SEND, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}",
                  SEND_REJECTED, ERR_MISSING, "/invite" },
                { DELIVER_SEND, 200, "{\"ok\":false,\"error\":\"not_in_channel\"}", SEND_REJECTED,
                  ERR_REFUSED, "/invite" },
                { DELIVER_SEND, 200,
                  "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"chat:write\"}",
                  SEND_REJECTED, ERR_REFUSED, "chat:write" },
                { DELIVER_SEND, 200, "{\"ok\":false,\"error\":\"internal_error\"}", SEND_UNSURE,
                  ERR_NET, "internal_error" },
                { DELIVER_SEND, 200, "{\"ok\":false,\"error\":\"fatal_error\"}", SEND_UNSURE,
                  ERR_NET, "fatal_error" },
                { DELIVER_SEND, 503, "oops", SEND_UNSURE, ERR_PROTOCOL, "503" },
                { DELIVER_SEND, 200, "<html>", SEND_UNSURE, ERR_PROTOCOL, "a web page" },
                { DELIVER_SEND, 200, "{\"ok\":true}", SEND_UNSURE, ERR_NET, "no ts" },
                { DELIVER_EDIT, 200, "{\"ok\":false,\"error\":\"internal_error\"}", SEND_RETRY,
                  ERR_NET, "internal_error" },
                { DELIVER_EDIT, 503, "", SEND_RETRY, ERR_PROTOCOL, "503" },
                /* so that a final answer becomes a new message */
                { DELIVER_EDIT, 200, "{\"ok\":false,\"error\":\"message_not_found\"}",
                  SEND_REJECTED, ERR_MISSING, "message_not_found" },
                { DELIVER_EDIT, 200, "{\"ok\":false,\"error\":\"edit_window_closed\"}",
                  SEND_REJECTED, ERR_MISSING, "edit_window_closed" },
                /* done, however often it is repeated */
                { DELIVER_DELETE, 200, "{\"ok\":false,\"error\":\"message_not_found\"}", SEND_DONE,
                  ERR_NONE, "" },
                { DELIVER_REACT, 200, "{\"ok\":false,\"error\":\"already_reacted\"}", SEND_DONE,
                  ERR_NONE, "" },
                { DELIVER_UNREACT, 200, "{\"ok\":false,\"error\":\"no_reaction\"}", SEND_DONE,
                  ERR_NONE, "" },
                { DELIVER_REACT, 200, "{\"ok\":false,\"error\":\"message_not_found\"}",
                  SEND_REJECTED, ERR_MISSING, "" },
                { DELIVER_SEND, 200, "{\"ok\":false,\"error\":\"token_revoked\"}", SEND_RETRY,
                  ERR_REFUSED, "token_revoked" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                says(g, rows[i].status, rows[i].body);
                rig_connect(g, "");
                rig_send(g, (struct delivery){
                                    .kind = rows[i].kind,
                                    .channel = "C7",
                                    .payload = "{\"text\":\"x\",\"emoji\":\"eyes\",\"messageId\":"
                                               "\"" TS "\"}" });
                sent = rig_sent(g);
                if (sent->result.outcome != rows[i].outcome || sent->result.kind != rows[i].error ||
                    !strstr(sent->why, rows[i].why))
                        fail_msg("row %zu: outcome %d, kind %d, why %s", i, sent->result.outcome,
                                 sent->result.kind, sent->why);
                rig_free(g);
        }
}

static void a_rate_limit_is_no_attempt(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says_with(g, 429, "Retry-After: 30\r\n", "{\"ok\":false,\"error\":\"ratelimited\"}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "C7", .payload = "{\"text\":\"x\"}" });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_RETRY);
        assert_int_equal(sent->result.kind, ERR_LIMIT);
        assert_int_equal(sent->result.retry_after_ms, 30000);
        assert_false(sent->result.freeze_adapter);
}

/* Whatever Slack thinks of a table, the text arrives. */
static void refused_blocks_are_left_out(void **state)
{
        static const char table[] = "{\"text\":\"```\\na | b\\n--+--\\n1 | 2\\n```\"}";
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "C7", .payload = table });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 0), "\"type\":\"table\""));
        assert_null(strstr(rig_body(g, 1), "\"blocks\""));
        assert_non_null(strstr(rig_body(g, 1), "1 | 2"));
}

/* ---- destinations ---- */

#define OPENED "{\"ok\":true,\"channel\":{\"id\":\"D9\"}}"

static void a_person_is_written_to_in_their_dm(void **state)
{
        struct rig *g = *state;

        says(g, 200, OPENED);
        says(g, 200, SENT);
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "user:U5", .payload = "{\"text\":\"x\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "conversations.open");
        assert_string_equal(rig_body(g, 0), "{\"users\":\"U5\"}");
        assert_non_null(strstr(rig_body(g, 1), "\"channel\":\"D9\""));
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .channel = "U5", .payload = "{\"text\":\"y\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 2), "chat.postMessage"); /* it is known by now */
}

#define LISTED(name)                                                     \
        "{\"ok\":true,\"channels\":[{\"id\":\"C8\",\"name\":\"other\"}," \
        "{\"id\":\"C9\",\"name\":\"" name "\"}]}"

/* Nothing was heard from it since the start. */
static void a_channel_is_found_by_its_name(void **state)
{
        struct rig *g = *state;

        says(g, 200, LISTED("general"));
        says(g, 200, SENT);
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "#general", .payload = "{\"text\":\"x\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "users.conversations");
        assert_non_null(strstr(rig_body(g, 1), "\"channel\":\"C9\""));
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .channel = "#general", .payload = "{\"text\":\"y\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 2), "chat.postMessage");
}

static void a_name_that_no_channel_has_is_rejected(void **state)
{
        struct rig *g = *state;

        says(g, 200, LISTED("generals"));
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "#general", .payload = "{\"text\":\"x\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_string_equal(rig_sent(g)->why,
                            "'#general' is not a Slack channel that the bot knows: use an id, "
                            "'#name', 'user:ID' for a person's DM, or 'operator'");
}

static void the_operator_is_the_first_admin(void **state)
{
        struct rig *g = *state;

        says(g, 200, OPENED);
        says(g, 200, SENT);
        rig_connect(g, ",\"admins\":[\"U6\",\"U7\"]");
        rig_send(g, (struct delivery){ .channel = "operator", .payload = "{\"text\":\"x\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_body(g, 0), "{\"users\":\"U6\"}");
}

static void without_an_operator_it_waits(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "operator", .payload = "{\"text\":\"x\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(rig_sent(g)->result.kind, ERR_LIMIT);
        assert_string_equal(rig_sent(g)->why,
                            "there is no operator yet: name one in adapters.sl.admins");
}

static void a_dm_that_cannot_be_opened_is_no_doubt(void **state)
{
        static const struct {
                int status;
                const char *body;
                enum send_outcome outcome;
        } rows[] = {
                { 200, "{\"ok\":false,\"error\":\"user_not_found\"}", SEND_REJECTED },
                { 500, "", SEND_RETRY },
                { 200, "{\"ok\":true,\"channel\":{\"id\":\"\"}}", SEND_RETRY },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, rows[i].status, rows[i].body);
                rig_connect(g, "");
                rig_send(g,
                         (struct delivery){ .channel = "user:U5", .payload = "{\"text\":\"x\"}" });
                assert_int_equal(rig_sent(g)->result.outcome, rows[i].outcome);
                rig_free(g);
        }
}

/* ---- commands ---- */

/* Remembers the response_url of a command, an address of the server. */
static void remember_command(struct rig *g)
{
        char *url = fake_server_url(g->server, "/response");

        sl_interaction_remember(rig_slack(g)->intake, "command:1.1", url);
        free(url);
}

/* The bot need not be in the channel of a command. */
static void the_result_of_a_command_goes_to_its_response_url(void **state)
{
        struct rig *g = *state;

        says(g, 200, "ok");
        rig_connect(g, "");
        remember_command(g);
        rig_send(g, (struct delivery){ .channel = "C7",
                                       .payload = "{\"text\":\"done\",\"replyTo\":\"command:1.1\","
                                                  "\"onlyFor\":\"U5\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "response");
        assert_string_equal(rig_body(g, 0), "{\"response_type\":\"ephemeral\","
                                            "\"replace_original\":false,\"text\":\"done\"}");
        assert_null(strstr(fake_server_request(g->server, 1), "Authorization"));
}

static void a_response_url_that_is_over_is_not_needed(void **state)
{
        struct rig *g = *state;

        says(g, 404, "{\"ok\":false,\"error\":\"used_url\"}");
        says(g, 200, SENT);
        rig_connect(g, "");
        remember_command(g);
        rig_send(g, (struct delivery){ .channel = "C7",
                                       .payload = "{\"text\":\"done\",\"replyTo\":\"command:1.1\","
                                                  "\"onlyFor\":\"U5\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 1), "chat.postEphemeral");
}

static void a_question_from_where_the_bot_is_not_is_answered_there(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
        says(g, 200, "ok");
        rig_connect(g, "");
        remember_command(g);
        rig_send(g,
                 (struct delivery){ .channel = "D8",
                                    .turn = 9,
                                    .payload = "{\"text\":\"42\",\"replyTo\":\"command:1.1\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 0), "chat.postMessage");
        assert_string_equal(rig_body(g, 1), "{\"response_type\":\"in_channel\","
                                            "\"replace_original\":false,\"text\":\"42\"}");
}

/* Only the first part of a long answer refers to the command. */
static void all_parts_of_an_answer_reach_where_the_bot_is_not(void **state)
{
        struct rig *g = *state;

        for (unsigned i = 0; i < 2; i++) {
                says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
                says(g, 200, "ok");
        }
        says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
        rig_connect(g, "");
        remember_command(g);
        rig_send(g, (struct delivery){ .channel = "D8",
                                       .turn = 9,
                                       .payload = "{\"text\":\"1\",\"replyTo\":\"command:1.1\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .channel = "D8", .turn = 9, .payload = "{\"text\":\"2\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 3), "\"in_channel\""));
        fake_road.count = 0;
        rig_send(g,
                 (struct delivery){ .channel = "D8", .turn = 10, .payload = "{\"text\":\"3\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
}

/* A response cannot be edited: beside the answer it would stay. */
static void a_draft_is_not_shown_where_the_bot_is_not(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
        rig_connect(g, "");
        remember_command(g);
        rig_send(g, (struct delivery){ .channel = "D8",
                                       .turn = 9,
                                       .payload = "{\"text\":\"4\",\"replyTo\":\"command:1.1\","
                                                  "\"draft\":true}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_int_equal(fake_server_requests(g->server), 2);
}

/* Slack says that it is over as text, too. */
static void an_answer_that_its_response_url_refuses_has_not_arrived(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"ok\":false,\"error\":\"channel_not_found\"}");
        says(g, 404, "expired_url");
        rig_connect(g, "");
        remember_command(g);
        rig_send(g,
                 (struct delivery){ .channel = "D8",
                                    .turn = 9,
                                    .payload = "{\"text\":\"42\",\"replyTo\":\"command:1.1\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_non_null(strstr(rig_sent(g)->why, "invite the bot"));
}

/* ---- the end of an adapter ---- */

static void a_send_under_way_when_the_adapter_stops_is_unsure(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL); /* silent */
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .channel = "C7", .payload = "{\"text\":\"x\"}" });
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_UNSURE);
        assert_int_equal(fake_road.sent[0].result.kind, ERR_CANCELLED);
}

static void a_repeatable_call_under_way_then_is_retried(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_DELETE,
                                       .channel = "C7",
                                       .payload = "{\"messageId\":\"" TS "\"}" });
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_RETRY);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_begin, rig_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deliveries_become_calls),
                cmocka_unit_test(some_deliveries_need_no_call),
                cmocka_unit_test(impossible_deliveries_are_rejected_with_a_reason),
                cmocka_unit_test(answers_decide_the_outcome),
                TEST(a_rate_limit_is_no_attempt),
                TEST(refused_blocks_are_left_out),
                TEST(a_person_is_written_to_in_their_dm),
                TEST(a_channel_is_found_by_its_name),
                TEST(a_name_that_no_channel_has_is_rejected),
                TEST(the_operator_is_the_first_admin),
                TEST(without_an_operator_it_waits),
                cmocka_unit_test(a_dm_that_cannot_be_opened_is_no_doubt),
                TEST(the_result_of_a_command_goes_to_its_response_url),
                TEST(a_response_url_that_is_over_is_not_needed),
                TEST(all_parts_of_an_answer_reach_where_the_bot_is_not),
                TEST(a_draft_is_not_shown_where_the_bot_is_not),
                TEST(an_answer_that_its_response_url_refuses_has_not_arrived),
                TEST(a_question_from_where_the_bot_is_not_is_answered_there),
                TEST(a_send_under_way_when_the_adapter_stops_is_unsure),
                TEST(a_repeatable_call_under_way_then_is_retried),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
