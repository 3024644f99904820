#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "discord_rig.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_window.h"

#define SENT "{\"id\":\"501\",\"channel_id\":\"7\",\"author\":{\"id\":\"42\"}}"

/* ---- calls ---- */

#define NONE  "{\"parse\":[],\"users\":[],\"replied_user\":false}"
#define NONCE "\"nonce\":\"94612b62e4b592a2bd3a61f9\",\"enforce_nonce\":true"

static const struct {
        enum delivery_kind kind;
        const char *channel, *thread, *payload;
        int64_t turn;
        const char *line, *body, *platform_id;
} calls[] = {
        { DELIVER_SEND, "7", NULL, "{\"text\":\"**hi**\",\"replyTo\":\"5\"}", 9,
          "POST /channels/7/messages",
          "{\"message_reference\":{\"message_id\":\"5\",\"fail_if_not_exists\":false}," NONCE
          ",\"content\":\"**hi**\","
          "\"allowed_mentions\":{\"parse\":[],\"users\":[],\"replied_user\":true}}",
          "501" },
        /* in a DM there is no reference, unless it is asked for */
        { DELIVER_SEND, "8", NULL, "{\"text\":\"hi\",\"replyTo\":\"5\"}", 9,
          "POST /channels/8/messages",
          "{" NONCE ",\"content\":\"hi\",\"allowed_mentions\":" NONE "}", "501" },
        { DELIVER_SEND, "8", NULL, "{\"text\":\"hi\",\"replyTo\":\"5\"}", 0,
          "POST /channels/8/messages",
          "{\"message_reference\":{\"message_id\":\"5\",\"fail_if_not_exists\":false}," NONCE
          ",\"content\":\"hi\","
          "\"allowed_mentions\":{\"parse\":[],\"users\":[],\"replied_user\":true}}",
          "501" },
        /* a thread is its own channel, without the message it started at */
        { DELIVER_SEND, "7", "70", "{\"text\":\"hi\",\"replyTo\":\"71\"}", 9,
          "POST /channels/70/messages",
          "{\"message_reference\":{\"message_id\":\"71\",\"fail_if_not_exists\":false}," NONCE
          ",\"content\":\"hi\","
          "\"allowed_mentions\":{\"parse\":[],\"users\":[],\"replied_user\":true}}",
          "501" },
        { DELIVER_SEND, "7", "70", "{\"text\":\"hi\",\"replyTo\":\"70\"}", 9,
          "POST /channels/70/messages",
          "{" NONCE ",\"content\":\"hi\",\"allowed_mentions\":" NONE "}", "501" },
        /* only people with a mention are notified, once each */
        { DELIVER_SEND, "7", NULL,
          "{\"text\":\"<@11> and <@!12>, <@11>, \\\\<@13>,"
          " @everyone <@&14>\"}",
          0, "POST /channels/7/messages",
          "{" NONCE ",\"content\":\"<@11> and <@!12>, <@11>, \\\\<@13>, @everyone <@&14>\","
          "\"allowed_mentions\":{\"parse\":[],\"users\":[\"11\",\"12\"],\"replied_user\":false}}",
          "501" },
        { DELIVER_SEND, "7", NULL,
          "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\","
          "\"data\":\"say:yes\"},{\"text\":\"See\","
          "\"url\":\"https://x.org\"}]]}",
          0, "POST /channels/7/messages",
          "{" NONCE ",\"content\":\"?\",\"allowed_mentions\":" NONE
          ",\"components\":[{\"type\":1,\"components\":"
          "[{\"type\":2,\"style\":1,\"label\":\"Yes\",\"custom_id\":\"say:yes\"},{\"type\":2,"
          "\"style\":5,\"label\":\"See\",\"url\":\"https://x.org\"}]}]}",
          "501" },
        { DELIVER_SEND, "7", NULL,
          "{\"card\":{\"title\":\"Tool <@11>\",\"color\":\"#FFA500\"},\"buttons\":"
          "[[{\"text\":\"Yes\",\"data\":\"say:yes\"}]]}",
          0, "POST /channels/7/messages",
          "{" NONCE ",\"embeds\":[{\"title\":\"Tool \\\\<@\u200b11\\\\>\",\"color\":16753920}],"
          "\"content\":\"\",\"allowed_mentions\":" NONE
          ",\"components\":[{\"type\":1,\"components\":[{\"type\":2,\"style\":1,"
          "\"label\":\"Yes\",\"custom_id\":\"say:yes\"}]}]}",
          "501" },
        /* only the text above a card notifies */
        { DELIVER_EDIT, "7", "70",
          "{\"messageId\":\"5\",\"text\":\"<@11>\",\"card\":{\"body\":\"**x**\"}}", 0,
          "PATCH /channels/70/messages/5",
          "{\"embeds\":[{\"description\":\"**x**\"}],\"content\":\"<@11>\",\"allowed_mentions\":"
          "{\"parse\":[],\"users\":[\"11\"],\"replied_user\":false},\"components\":[]}",
          "501" },
        { DELIVER_EDIT, "7", NULL, "{\"messageId\":\"5\",\"text\":\"more\"}", 9,
          "PATCH /channels/7/messages/5", "{\"content\":\"more\",\"allowed_mentions\":" NONE "}",
          "501" },
        { DELIVER_EDIT, "7", "70", "{\"messageId\":\"70\",\"text\":\"more\"}", 9,
          "PATCH /channels/7/messages/70", "{\"content\":\"more\",\"allowed_mentions\":" NONE "}",
          "501" },
        { DELIVER_DELETE, "7", "70", "{\"messageId\":\"5\"}", 0, "DELETE /channels/70/messages/5",
          "", "501" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"👀\"}", 0,
          "PUT /channels/7/messages/5/reactions/%F0%9F%91%80/@me", "", "501" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"<a:party:99>\"}", 0,
          "PUT /channels/7/messages/5/reactions/party%3A99/@me", "", "501" },
        { DELIVER_UNREACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"👀\"}", 0,
          "DELETE /channels/7/messages/5/reactions/%F0%9F%91%80/@me", "", "501" },
        { DELIVER_TYPE, "7", "70", "{}", 9, "POST /channels/70/typing", "", "501" },
        { DELIVER_THREAD, "7", NULL, "{\"messageId\":\"5\",\"name\":\"A question\\nwith lines\"}",
          9, "POST /channels/7/messages/5/threads",
          "{\"name\":\"A question\",\"auto_archive_duration\":1440}", "501" },
        { DELIVER_CHANGE_THREAD, "7", "70", "{\"name\":\"done\",\"closed\":true}", 0,
          "PATCH /channels/70", "{\"name\":\"done\",\"archived\":true}", "501" },
};

static void deliveries_become_calls(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(calls); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                fake_intake.dm = "8";
                says(g, 200, SENT);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = calls[i].kind,
                                               .channel = calls[i].channel,
                                               .thread = calls[i].thread,
                                               .payload = calls[i].payload,
                                               .turn = calls[i].turn });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_DONE);
                assert_string_equal(sent->platform_id, calls[i].platform_id);
                assert_string_equal(rig_line(g, 0), calls[i].line);
                assert_string_equal(rig_body(g, 0), calls[i].body);
                rig_free(g);
        }
}

static void impossible_deliveries_are_rejected_with_a_reason(void **state)
{
        static const struct {
                enum delivery_kind kind;
                const char *channel, *payload, *why;
        } rows[] = {
                { DELIVER_SEND, "general", "{\"text\":\"hi\"}",
                  "'general' is not a Discord channel: use an id, 'user:ID' for a person's DM, or "
                  "'operator'" },
                { DELIVER_SEND, "7", "{\"text\":\"\"}", "there is no text to send" },
                { DELIVER_EDIT, "7", "{\"text\":\"x\",\"messageId\":\"../5\"}",
                  "'../5' is not a Discord message id" },
                { DELIVER_REACT, "7", "{\"messageId\":\"5\"}", "a reaction needs an emoji" },
                { DELIVER_UPLOAD, "7", "{\"path\":\"../state/operator.key\"}",
                  "there is no file '../state/operator.key' in the workspace" },
                { DELIVER_UPLOAD, "7", "{\"path\":\"pipe\"}",
                  "'pipe' in the workspace is a pipe or device; only regular files are taken" },
                { DELIVER_UPLOAD, "7", "{\"path\":\"link\"}",
                  "'link' in the workspace is a link or lies behind one; only regular files are "
                  "taken" },
                { DELIVER_UPLOAD, "7", "{\"path\":\"twice\"}",
                  "'twice' in the workspace has a second name (a hard link), or none any more; "
                  "copy it and use the copy" },
                { DELIVER_SEND, "7", "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\"}]]}",
                  "button 'Yes' needs data of 1 to 100 characters or a URL of at most 512" },
                { DELIVER_SEND, "7", "{\"text\":\"?\",\"buttons\":[[],[],[],[],[],[]]}",
                  "a message has at most 5 rows of buttons" },
                { DELIVER_EDIT, "7",
                  "{\"text\":\"?\",\"messageId\":\"5\",\"buttons\":[[{},{},{},{},{},{}]]}",
                  "a row has at most 5 buttons" },
                { DELIVER_THREAD, "7", "{\"name\":\"x\"}", "'' is not a Discord message id" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                rig_put_traps(g);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = rows[i].kind,
                                               .channel = rows[i].channel,
                                               .payload = rows[i].payload });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_REJECTED);
                assert_string_equal(sent->why, rows[i].why);
                rig_free(g);
        }
}

/* Sends note.txt from the workspace. */
static void upload(struct rig *g, const char *payload)
{
        rig_put_file(g, "note.txt", "the bytes");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g,
                 (struct delivery){ .kind = DELIVER_UPLOAD, .channel = "7", .payload = payload });
}

/* The request of an upload that was accepted. */
static const char *uploaded(struct rig *g)
{
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        return fake_server_request(g->server, 2);
}

static void a_file_is_uploaded_with_its_caption(void **state)
{
        struct rig *g = *state;
        const char *request;

        upload(g, "{\"path\":\"note.txt\",\"mime\":\"text/plain\",\"text\":\"see\"}");
        request = uploaded(g);
        assert_non_null(
                strstr(request, "\"attachments\":[{\"id\":\"0\",\"filename\":\"note.txt\"}]"));
        assert_non_null(strstr(request, "\"content\":\"see\""));
        assert_non_null(strstr(request, "\"enforce_nonce\":true"));
        assert_non_null(strstr(request, "name=\"files[0]\"; filename=\"note.txt\""));
        assert_non_null(strstr(request, "the bytes"));
}

/* The file that was checked is the file that is sent. */
static void a_link_swapped_in_while_sending_is_not_followed(void **state)
{
        struct rig *g = *state;
        const char *request;

        upload(g, "{\"path\":\"note.txt\"}");
        rig_swap_for_link(g, "note.txt");
        request = uploaded(g);
        assert_non_null(strstr(request, "\r\n\r\nthe bytes\r\n"));
        assert_null(strstr(request, "secret\r\n"));
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
                { DELIVER_SEND, 403, "{\"code\":50013,\"message\":\"Missing Permissions\"}",
                  SEND_REJECTED, ERR_REFUSED,
                  "Missing Permissions (50013): give the bot the permission" },
                { DELIVER_SEND, 403, "{\"code\":50001,\"message\":\"Missing Access\"}",
                  SEND_REJECTED, ERR_REFUSED, "View Channel" },
                { DELIVER_SEND, 404, "{\"code\":10003,\"message\":\"Unknown Channel\"}",
                  SEND_REJECTED, ERR_MISSING, "the channel is gone" },
                { DELIVER_SEND, 400, "{\"code\":50035,\"message\":\"Invalid Form Body\"}",
                  SEND_REJECTED, ERR_REFUSED, "Invalid Form Body" },
                { DELIVER_SEND, 500, "oops", SEND_UNSURE, ERR_NET, "Discord answered 500" },
                { DELIVER_SEND, 503, "{\"code\":130000,\"message\":\"API resource overloaded\"}",
                  SEND_RETRY, ERR_NET, "overloaded" },
                { DELIVER_EDIT, 502, "", SEND_RETRY, ERR_NET, "Discord answered 502" },
                { DELIVER_EDIT, 404, "{\"code\":10008,\"message\":\"Unknown Message\"}",
                  SEND_REJECTED, ERR_MISSING, "the message has been deleted" },
                { DELIVER_DELETE, 404, "{\"code\":10008,\"message\":\"Unknown Message\"}",
                  SEND_DONE, ERR_NONE, "" },
                { DELIVER_UNREACT, 404, "{\"code\":10008,\"message\":\"Unknown Message\"}",
                  SEND_DONE, ERR_NONE, "" },
                { DELIVER_REACT, 404, "{\"code\":10008,\"message\":\"Unknown Message\"}",
                  SEND_REJECTED, ERR_MISSING, "deleted" },
                { DELIVER_REACT, 400, "{\"code\":10014,\"message\":\"Unknown Emoji\"}",
                  SEND_REJECTED, ERR_INVALID, "name:id" },
                { DELIVER_REACT, 403, "{\"code\":90001,\"message\":\"Reaction blocked\"}",
                  SEND_REJECTED, ERR_REFUSED, "blocked the bot" },
                { DELIVER_THREAD, 400,
                  "{\"code\":160004,\"message\":\"A thread has already been created\"}", SEND_DONE,
                  ERR_NONE, "" },
                { DELIVER_THREAD, 400, "{\"code\":50024,\"message\":\"Cannot execute\"}",
                  SEND_REJECTED, ERR_INVALID, "this kind of channel" },
                { DELIVER_SEND, 429, "{\"message\":\"slow\",\"retry_after\":300,\"global\":false}",
                  SEND_RETRY, ERR_LIMIT, "slow" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                says(g, rows[i].status, rows[i].body);
                rig_connect(g, "");
                rig_send(g,
                         (struct delivery){
                                 .kind = rows[i].kind,
                                 .channel = "7",
                                 .payload =
                                         "{\"text\":\"hi\",\"messageId\":\"5\",\"emoji\":\"👀\"}" });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, rows[i].outcome);
                assert_int_equal(sent->result.kind, rows[i].error);
                if (!strstr(sent->why, rows[i].why))
                        fail_msg("'%s' is not in '%s'", rows[i].why, sent->why);
                if (rows[i].outcome == SEND_DONE)
                        assert_string_equal(sent->platform_id, "5");
                if (rows[i].status == 429)
                        assert_int_equal(sent->result.retry_after_ms, 300001);
                rig_free(g);
        }
}

/* The answer matters more than what it replies to. */
static void a_refused_reference_is_left_out(void **state)
{
        static const struct {
                int status;
                const char *body;
        } rows[] = {
                { 403, "{\"code\":160002,\"message\":\"Cannot reply without permission to read "
                       "message history\"}" },
                { 400, "{\"code\":50035,\"message\":\"Invalid Form Body\",\"errors\":"
                       "{\"message_reference\":{\"_errors\":[{\"code\":\"REPLIES_UNKNOWN_MESSAGE\","
                       "\"message\":\"Unknown message\"}]}}}" },
                { 400, "{\"code\":10008,\"message\":\"Unknown Message\"}" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                says(g, rows[i].status, rows[i].body);
                says(g, 200, SENT);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                               .channel = "7",
                                               .payload = "{\"text\":\"hi\",\"replyTo\":\"5\"}",
                                               .turn = 9 });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_DONE);
                assert_string_equal(sent->platform_id, "501");
                assert_non_null(strstr(rig_body(g, 0), "message_reference"));
                assert_null(strstr(rig_body(g, 1), "message_reference"));
                assert_non_null(strstr(rig_body(g, 1), NONCE)); /* still the same message */
                rig_free(g);
        }
}

static void refuse_reply(struct rig *g)
{
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\",\"replyTo\":\"5\"}",
                                       .turn = 9 });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
}

/* Without a reference the refusal is final. */
static void another_refusal_is_not_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 403, "{\"code\":160002,\"message\":\"Cannot reply\"}");
        says(g, 403, "{\"code\":160002,\"message\":\"Cannot reply\"}");
        refuse_reply(g);
}

/* The reference is fine; sending without it would be refused as well. */
static void a_refusal_of_something_else_is_not_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 400,
             "{\"code\":50035,\"message\":\"Invalid Form Body\",\"errors\":{\"content\":"
             "{\"_errors\":[{\"code\":\"BASE_TYPE_MAX_LENGTH\",\"message\":\"too long\"}]}}}");
        says(g, 200, SENT);
        refuse_reply(g);
}

static void a_global_limit_freezes_the_adapter(void **state)
{
        struct rig *g = *state;

        says_with(g, 429, "X-RateLimit-Global: true\r\n",
                  "{\"message\":\"slow\",\"retry_after\":60,\"global\":true}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"hi\"}" });
        assert_true(rig_sent(g)->result.freeze_adapter);
}

static void a_revoked_token_stops_the_adapter(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says(g, 401, "{\"code\":0,\"message\":\"401: Unauthorized\"}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"hi\"}" });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_RETRY); /* until there is a new token */
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "adapters.dc.botToken or DISCORD_BOT_TOKEN"));
        for (int i = 0; i < 1000 && fake_intake.freed == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_intake.freed, 1); /* the gateway is closed */
}

/* ---- idempotency ---- */

static const char *nonce_of(struct rig *g, unsigned i)
{
        static char nonce[30];
        const char *at = strstr(rig_body(g, i), "\"nonce\":\"");

        assert_non_null(at);
        snprintf(nonce, sizeof(nonce), "%.24s", at + 9);
        return nonce;
}

static void each_delivery_has_one_nonce(void **state)
{
        struct rig *g = *state;
        struct delivery d = { .id = 1,
                              .adapter = "dc",
                              .kind = DELIVER_SEND,
                              .channel = "7",
                              .payload = "{\"text\":\"hi\"}" };
        char first[30];

        d.created_ms = clock_wall_ms();
        says(g, 200, SENT);
        says(g, 200, SENT);
        says(g, 200, SENT);
        rig_connect(g, "");
        for (unsigned i = 0; i < 3; i++) {
                d.attempt = (int)i + 1;
                d.id = i == 2 ? 2 : 1;
                adapters_send(g->adapters, &d);
                rig_requests(g, i + 1);
        }
        snprintf(first, sizeof(first), "%s", nonce_of(g, 0));
        assert_string_equal(nonce_of(g, 1), first);
        assert_string_not_equal(nonce_of(g, 2), first);
}

/* Two daemons with one token would both answer. */
static void a_duplicate_bot_is_detected(void **state)
{
        struct rig *g = *state;
        struct discord *dc;
        json_t *message;
        char id[24];

        says(g, 200, SENT);
        rig_connect(g, "");
        dc = rig_adapter(g)->self;
        dc->opened_ms -= 120000; /* as if the ring had all messages since */
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"hi\"}" });
        rig_sent(g);
        dc_id_at(clock_wall_ms(), id);
        message =
                json_pack("{s:s, s:s, s:s}", "id", id, "channel_id", "7", "nonce", nonce_of(g, 0));
        fake_intake.hooks.own(fake_intake.hooks.ctx, message);
        assert_int_equal(dc->duplicate.seen, 0);
        /* other software */
        json_object_set_new(message, "nonce", json_string("1234567890123456789"));
        fake_intake.hooks.own(fake_intake.hooks.ctx, message);
        assert_int_equal(dc->duplicate.seen, 0);
        json_object_set_new(message, "nonce", json_string("0123456789abcdef01234567"));
        fake_intake.hooks.own(fake_intake.hooks.ctx, message);
        assert_int_equal(dc->duplicate.seen, 1);
        dc->opened_ms += 120000; /* an earlier run may have sent it */
        fake_intake.hooks.own(fake_intake.hooks.ctx, message);
        assert_int_equal(dc->duplicate.seen, 1);
        json_decref(message);
}

/* A repetition looks first when Discord may have forgotten the nonce. */
static void an_old_send_that_arrived_is_not_repeated(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says(g, 200,
             "[{\"id\":\"900\",\"content\":\"hi\",\"author\":{\"id\":\"77\"}},{\"id\":\"899\","
             "\"content\":\" "
             "hi\",\"author\":{\"id\":\"42\"}}]");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\"}",
                                       .attempt = 2 });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_DONE);
        assert_string_equal(sent->platform_id, "899");
        assert_string_equal(rig_line(g, 0),
                            "GET /channels/7/messages?after=1174109820026880000&limit=100");
}

#define CARD_PAYLOAD "{\"card\":{\"title\":\"Tool\",\"body\":\"ls\",\"time\":1700000000000}}"

static void an_old_card_is_recognised(void **state)
{
        static const char *const embeds[] = {
                "[{\"type\":\"rich\",\"title\":\"Tool\",\"description\":\"ls\","
                "\"timestamp\":\"2023-11-14T22:13:20.000000+00:00\"}]",
                "[{\"type\":\"rich\",\"title\":\"Tool\",\"description\":\"ls -l\","
                "\"timestamp\":\"2023-11-14T22:13:20.000000+00:00\"}]",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(embeds); i++) {
                struct rig *g = rig_new();
                char *page = mem_printf("[{\"id\":\"899\",\"content\":\"\",\"author\":{\"id\":"
                                        "\"42\"},\"embeds\":%s}]",
                                        embeds[i]);

                says(g, 200, page);
                says(g, 200, SENT);
                rig_connect(g, "");
                rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                               .channel = "7",
                                               .payload = CARD_PAYLOAD,
                                               .attempt = 2 });
                assert_string_equal(rig_sent(g)->platform_id, i == 0 ? "899" : "501");
                rig_free(g);
                free(page);
        }
}

static void an_archived_thread_is_opened_for_an_edit(void **state)
{
        struct rig *g = *state;

        says(g, 400, "{\"message\":\"Thread is archived\",\"code\":50083}");
        says(g, 200, "{\"id\":\"70\"}");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_EDIT,
                                       .channel = "7",
                                       .thread = "70",
                                       .payload = "{\"text\":\"more\",\"messageId\":\"71\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 1), "PATCH /channels/70");
        assert_string_equal(rig_body(g, 1), "{\"archived\":false}");
        assert_string_equal(rig_line(g, 2), "PATCH /channels/70/messages/71");
}

static void a_thread_that_stays_archived_is_reported(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 400, "{\"message\":\"Thread is archived\",\"code\":50083}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_EDIT,
                                       .channel = "7",
                                       .thread = "70",
                                       .payload = "{\"text\":\"more\",\"messageId\":\"71\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_non_null(strstr(fake_road.sent[0].why, "the thread is archived"));
}

/* In a DM, and where no thread was begun, it answers the message that would begin it. */
static void what_belongs_to_a_thread_that_is_not_there_answers(void **state)
{
        static const char gone[] = "{\"message\":\"Unknown Channel\",\"code\":10003}";
        struct rig *g = *state;

        fake_intake.dm = "8";
        says(g, 404, gone);
        says(g, 200, SENT);
        says(g, 200, SENT);
        says(g, 404, gone);
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .thread = "70",
                                       .target = "70",
                                       .payload = "{\"text\":\"hi\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 0), "POST /channels/70/messages");
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
        assert_non_null(strstr(rig_body(g, 1), "\"message_reference\":{\"message_id\":\"70\""));
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "8",
                                       .thread = "80",
                                       .target = "80",
                                       .payload = "{\"text\":\"hi\"}" });
        rig_sent(g);
        assert_string_equal(rig_line(g, 2), "POST /channels/8/messages");
        assert_non_null(strstr(rig_body(g, 2), "\"message_reference\":{\"message_id\":\"80\""));
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = DELIVER_EDIT,
                                       .channel = "7",
                                       .thread = "70",
                                       .target = "71",
                                       .payload = "{\"text\":\"hi\"}" });
        rig_sent(g);
        assert_string_equal(rig_line(g, 3), "PATCH /channels/70/messages/71");
        assert_string_equal(rig_line(g, 4), "PATCH /channels/7/messages/71");
}

/* A name may change twice in ten minutes: the chat's other messages do not wait for it. */
static void the_limit_of_names_freezes_nothing(void **state)
{
        struct rig *g = *state;

        says(g, 429, "{\"message\":\"slow\",\"retry_after\":500.0,\"global\":false}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_CHANGE_THREAD,
                                       .channel = "7",
                                       .thread = "70",
                                       .payload = "{\"name\":\"more\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(rig_sent(g)->result.kind, ERR_NET);
        assert_false(rig_sent(g)->result.freeze_adapter);
        assert_true(rig_sent(g)->result.retry_after_ms >= 500000);
}

/* Without the permission to embed links a message of nothing else would be empty. */
static void a_refused_card_is_sent_as_text(void **state)
{
        struct rig *g = *state;

        says(g, 403, "{\"message\":\"Missing Permissions\",\"code\":50013}");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = CARD_PAYLOAD });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_body(g, 1),
                            "{" NONCE ",\"content\":\"**Tool**\\nls\\n\\n"
                            "*2023-11-14 22:13 UTC*\",\"allowed_mentions\":" NONE "}");
}

/* However much was written since, and in whatever order a page comes. */
static void an_old_send_is_found_in_a_busy_channel(void **state)
{
        struct rig *g = *state;

        for (unsigned page = 0; page < 7; page++) {
                struct buf b;

                buf_init(&b, 0);
                for (unsigned i = 0; i < 100; i++)
                        buf_addf(&b, "%s{\"id\":\"%u\",\"author\":{\"id\":\"77\"}}", i ? "," : "[",
                                 1000 + page * 100 + i);
                buf_addch(&b, ']');
                says(g, 200, b.data);
                buf_release(&b);
        }
        says(g, 200, "[{\"id\":\"1700\",\"content\":\"hi\",\"author\":{\"id\":\"42\"}}]");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\"}",
                                       .attempt = 2 });
        assert_string_equal(rig_sent(g)->platform_id, "1700");
        assert_string_equal(rig_line(g, 1), "GET /channels/7/messages?after=1099&limit=100");
}

/* ---- the window of earlier attempts ---- */

#define FIRST_MS  1750000000000 /* long after rig_send's creation */
#define LAST_MS   (FIRST_MS + 60000)
#define WINDOW    "1750000000000:1750000060000:1760000000000"
#define ARRIVE_MS 150000

/* A full page of others' messages, a step apart. */
static void says_chatter(struct rig *g, int64_t from_ms, int64_t step_ms)
{
        struct buf b;
        char id[DC_ID_SIZE];

        buf_init(&b, 0);
        for (unsigned i = 0; i < 100; i++) {
                dc_id_at(from_ms + i * step_ms, id);
                buf_addf(&b, "%s{\"id\":\"%s\",\"author\":{\"id\":\"77\"}}", i ? "," : "[", id);
        }
        buf_addch(&b, ']');
        says(g, 200, b.data);
        buf_release(&b);
}

static void retry(struct rig *g, const char *window)
{
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\"}",
                                       .read_from = window,
                                       .attempt = 2 });
}

static void assert_page(struct rig *g, unsigned i, int64_t after_ms)
{
        char id[DC_ID_SIZE], line[100];

        dc_id_at(after_ms, id);
        snprintf(line, sizeof(line), "GET /channels/7/messages?after=%s&limit=100", id);
        assert_string_equal(rig_line(g, i), line);
}

static void a_search_begins_with_the_first_attempt(void **state)
{
        struct rig *g = *state;

        says_chatter(g, FIRST_MS, 1);
        says(g, 200, "[{\"id\":\"1700\",\"content\":\"hi\",\"author\":{\"id\":\"42\"}}]");
        retry(g, WINDOW);
        assert_string_equal(rig_sent(g)->platform_id, "1700");
        assert_page(g, 0, FIRST_MS - 5000);
        assert_page(g, 1, FIRST_MS + 99);
}

/* What was written later need not be read. */
static void a_search_ends_after_the_last_attempt(void **state)
{
        struct rig *g = *state;

        says_chatter(g, LAST_MS + ARRIVE_MS - 98, 1);
        says(g, 200, SENT);
        retry(g, WINDOW);
        assert_string_equal(rig_sent(g)->platform_id, "501");
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
}

static void a_search_reads_the_whole_window(void **state)
{
        struct rig *g = *state;

        says_chatter(g, LAST_MS + ARRIVE_MS - 99, 1);
        says_chatter(g, LAST_MS + ARRIVE_MS + 1, 1);
        says(g, 200, SENT);
        retry(g, WINDOW);
        assert_string_equal(rig_sent(g)->platform_id, "501");
        assert_string_equal(rig_line(g, 2), "POST /channels/7/messages");
}

/* It counts as an attempt, and the next one goes on. */
static void an_endless_search_is_unsure(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        for (unsigned page = 0; page < 50; page++)
                says_chatter(g, FIRST_MS + page * 100, 1);
        retry(g, WINDOW);
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_UNSURE);
        assert_int_equal(sent->result.kind, ERR_TIMEOUT);
        assert_string_equal(fake_road.read_from, "1750000004999:1750000060000:0");
}

static void a_send_that_never_left_is_not_looked_for(void **state)
{
        struct rig *g = *state;

        says(g, 200, SENT);
        retry(g, "0:0:1760000000000");
        assert_string_equal(rig_sent(g)->platform_id, "501");
        assert_string_equal(rig_line(g, 0), "POST /channels/7/messages");
}

static void an_attempt_that_did_not_arrive_leaves_the_window(void **state)
{
        struct rig *g = *state;

        says(g, 429, "{\"message\":\"slow\",\"retry_after\":100,\"global\":false}");
        retry(g, "0:0:1760000000000");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_string_equal(fake_road.read_from, "0:0:0");
}

/* By Discord's clock, not ours. */
static void attempts_widen_the_window(void **state)
{
        struct rig *g = *state;
        struct delivery d = { .kind = DELIVER_SEND, .adapter = "dc", .channel = "7", .attempt = 1 };
        struct dc_window one, two, three;
        char text[100], next[100];

        says_with(g, 200, "Date: Sun, 15 Jun 2025 15:06:40 GMT\r\n", SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"hi\"}" });
        rig_sent(g);
        adapters_read_from(g->adapters, &d, text, sizeof(text));
        assert_true(dc_window_parse(text, &one));
        assert_int_equal(one.first_ms, 0);
        assert_in_range(one.claimed_ms, FIRST_MS, FIRST_MS + 600000);
        d.attempt = 2;
        d.read_from = text;
        adapters_read_from(g->adapters, &d, next, sizeof(next));
        assert_true(dc_window_parse(next, &two));
        assert_int_equal(two.first_ms, one.claimed_ms);
        assert_int_equal(two.last_ms, one.claimed_ms);
        d.read_from = next;
        adapters_read_from(g->adapters, &d, text, sizeof(text));
        assert_true(dc_window_parse(text, &three));
        assert_int_equal(three.first_ms, one.claimed_ms);
        assert_int_equal(three.last_ms, two.claimed_ms);
        d.read_from = NULL; /* of an earlier version */
        d.created_ms = FIRST_MS - 1000;
        adapters_read_from(g->adapters, &d, text, sizeof(text));
        assert_true(dc_window_parse(text, &one));
        assert_int_equal(one.first_ms, FIRST_MS - 1000);
        assert_int_equal(one.last_ms, one.claimed_ms);
}

static void an_old_send_that_did_not_arrive_is_repeated(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "[{\"id\":\"900\",\"content\":\"hi\",\"nonce\":\"another\","
             "\"author\":{\"id\":\"42\"}},{\"id\":\"901\",\"content\":\"ho\","
             "\"author\":{\"id\":\"42\"}}]");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\"}",
                                       .attempt = 2 });
        assert_string_equal(rig_sent(g)->platform_id, "501");
        assert_string_equal(rig_line(g, 1), "POST /channels/7/messages");
}

/* Files without text look alike. */
static void an_old_file_is_recognised_by_its_size(void **state)
{
        struct rig *g = *state;
        const struct delivery d = { .kind = DELIVER_UPLOAD,
                                    .channel = "7",
                                    .payload = "{\"path\":\"two.txt\",\"mime\":\"text/plain\"}",
                                    .attempt = 2 };

        rig_put_file(g, "two.txt", "12345");
        says(g, 200,
             "[{\"id\":\"900\",\"content\":\"\",\"author\":{\"id\":\"42\"},"
             "\"attachments\":[{\"filename\":\"one.txt\",\"size\":4}]}]");
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, d);
        assert_string_equal(rig_sent(g)->platform_id, "501");
        assert_non_null(strstr(rig_line(g, 1), "POST /channels/7/messages"));
}

static void an_old_send_that_cannot_be_checked_is_unsure(void **state)
{
        struct rig *g = *state;

        says(g, 403, "{\"code\":50001,\"message\":\"Missing Access\"}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"hi\"}",
                                       .attempt = 2 });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_int_equal(fake_server_requests(g->server), 3);
}

/* ---- people ---- */

static void a_dm_is_opened_once_and_remembered(void **state)
{
        struct rig *g = *state;

        says(g, 200, "{\"id\":\"88\",\"type\":1}");
        says(g, 200, SENT);
        says(g, 200, SENT);
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "user:5",
                                       .payload = "{\"text\":\"hi\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 0), "POST /users/@me/channels");
        assert_string_equal(rig_body(g, 0), "{\"recipient_id\":\"5\"}");
        assert_string_equal(rig_line(g, 1), "POST /channels/88/messages");
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "user:5",
                                       .payload = "{\"text\":\"hi\"}" });
        rig_sent(g);
        assert_string_equal(rig_line(g, 2), "POST /channels/88/messages");
}

static void a_person_without_dms_is_reported(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says(g, 400,
             "{\"code\":50278,\"message\":\"Cannot send messages to this user due to having no "
             "mutual guilds\"}");
        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "user:5",
                                       .payload = "{\"text\":\"hi\"}" });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_REJECTED);
        assert_non_null(strstr(sent->why, "shares no server"));
}

static void the_operator_is_the_first_admin(void **state)
{
        struct rig *g = *state;

        says(g, 200, SENT);
        rig_connect(g, ",\"admins\":[\"10\",\"11\"]");
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "99", "990"); /* a stranger */
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "10", "100");
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "11", "110");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "operator",
                                       .payload = "{\"text\":\"news\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 0), "POST /channels/100/messages");
}

static void the_operators_dm_survives_a_restart(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME); /* of the second run */
        says(g, 200, APPLICATION);
        says(g, 200, SENT);
        rig_connect(g, ",\"admins\":[\"10\"]");
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "10", "100");
        rig_apply(g, "an.other.token", ",\"slashCommands\":false,\"admins\":[\"10\"]");
        rig_until_state(g, ADAPTER_UP);
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "operator",
                                       .payload = "{\"text\":\"news\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_line(g, 2), "POST /channels/100/messages");
}

static void without_an_operator_deliveries_wait(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        rig_connect(g, "");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "operator",
                                       .payload = "{\"text\":\"news\"}" });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_RETRY);
        assert_int_equal(sent->result.kind, ERR_LIMIT); /* not counted as an attempt */
        assert_string_equal(sent->why, "there is no operator yet: name one in adapters.dc.admins");
}

static void an_unreachable_operator_is_retried(void **state)
{
        struct rig *g = *state;
        const struct fake_sent *sent;

        says(g, 400, "{\"code\":50278,\"message\":\"no mutual guilds\"}");
        rig_connect(g, ",\"admins\":\"10\"");
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "operator",
                                       .payload = "{\"text\":\"news\"}" });
        sent = rig_sent(g);
        assert_int_equal(sent->result.outcome, SEND_RETRY);
        assert_int_equal(sent->result.kind, ERR_LIMIT);
}

static void known_names_become_mentions(void **state)
{
        struct rig *g = *state;
        struct rendered r;

        fake_intake.named = "ada";
        fake_intake.named_id = "11";
        rig_connect(g, "");
        assert_int_equal(adapters_render(g->adapters, "dc", "ask @Ada or @bob, not @everyone",
                                         false, &r, NULL),
                         0);
        assert_int_equal(r.count, 1);
        assert_non_null(strstr(r.parts[0].text, "ask <@11> or @bob"));
        assert_null(strstr(r.parts[0].text, "@everyone"));
        rendered_release(&r);
}

static void long_answers_are_cut_with_their_fences(void **state)
{
        struct rig *g = *state;
        struct rendered r;
        struct buf text;

        buf_init(&text, 0);
        buf_addstr(&text, "Here:\n\n```c\n");
        while (text.len < 5000)
                buf_addstr(&text, "int line_of_code(void); /* ü */\n");
        buf_addstr(&text, "```\n");
        rig_connect(g, "");
        assert_int_equal(adapters_render(g->adapters, "dc", text.data, false, &r, NULL), 0);
        assert_true(r.count >= 3);
        for (size_t i = 0; i < r.count; i++) {
                unsigned fences = 0;

                assert_true(utf8_length(r.parts[i].text, strlen(r.parts[i].text),
                                        UTF8_CODE_POINTS) <= 2000);
                for (const char *p = r.parts[i].text; (p = strstr(p, "```")); p += 3)
                        fences++;
                assert_int_equal(fences, 2);
        }
        rendered_release(&r);
        buf_release(&text);
}

/* ---- closing ---- */

static void sends_in_flight_end_with_the_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g, "");
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"hi\"}" });
        rig_requests(g, 1);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_UNSURE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deliveries_become_calls),
                cmocka_unit_test(impossible_deliveries_are_rejected_with_a_reason),
                TEST(a_file_is_uploaded_with_its_caption),
                TEST(a_link_swapped_in_while_sending_is_not_followed),
                cmocka_unit_test(answers_decide_the_outcome),
                cmocka_unit_test(a_refused_reference_is_left_out),
                TEST(another_refusal_is_not_repeated),
                TEST(a_refusal_of_something_else_is_not_repeated),
                TEST(a_global_limit_freezes_the_adapter),
                TEST(a_revoked_token_stops_the_adapter),
                TEST(each_delivery_has_one_nonce),
                TEST(a_duplicate_bot_is_detected),
                TEST(an_old_send_that_arrived_is_not_repeated),
                cmocka_unit_test(an_old_card_is_recognised),
                TEST(a_refused_card_is_sent_as_text),
                TEST(an_archived_thread_is_opened_for_an_edit),
                TEST(a_thread_that_stays_archived_is_reported),
                TEST(what_belongs_to_a_thread_that_is_not_there_answers),
                TEST(the_limit_of_names_freezes_nothing),
                TEST(an_old_send_is_found_in_a_busy_channel),
                TEST(a_search_begins_with_the_first_attempt),
                TEST(a_search_ends_after_the_last_attempt),
                TEST(a_search_reads_the_whole_window),
                TEST(an_endless_search_is_unsure),
                TEST(a_send_that_never_left_is_not_looked_for),
                TEST(an_attempt_that_did_not_arrive_leaves_the_window),
                TEST(attempts_widen_the_window),
                TEST(an_old_send_that_did_not_arrive_is_repeated),
                TEST(an_old_file_is_recognised_by_its_size),
                TEST(an_old_send_that_cannot_be_checked_is_unsure),
                TEST(a_dm_is_opened_once_and_remembered),
                TEST(a_person_without_dms_is_reported),
                TEST(the_operator_is_the_first_admin),
                TEST(the_operators_dm_survives_a_restart),
                TEST(without_an_operator_deliveries_wait),
                TEST(an_unreachable_operator_is_retried),
                TEST(known_names_become_mentions),
                TEST(long_answers_are_cut_with_their_fences),
                TEST(sends_in_flight_end_with_the_adapter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
