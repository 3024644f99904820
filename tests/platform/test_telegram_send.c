#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

#define SENT                                                                         \
        "{\"ok\":true,\"result\":{\"message_id\":501,\"date\":1,\"chat\":{\"id\":7," \
        "\"type\":\"private\"}}}"

/* ---- calls ---- */

/* clang-format off */
static const struct {
        enum delivery_kind kind;
        const char *channel, *thread, *payload;
        int64_t turn;
        const char *method, *params, *platform_id, *target;
} calls[] = {
        { DELIVER_SEND, "7", NULL, "{\"text\":\"<b>hi</b>\",\"replyTo\":\"5\"}", 9,
          "sendMessage", "{\"chat_id\":7,\"text\":\"<b>hi</b>\",\"parse_mode\":\"HTML\"}", "501" },
        /* outside a turn the reply was asked for */
        { DELIVER_SEND, "7", NULL, "{\"text\":\"hi\",\"replyTo\":\"5\"}", 0, "sendMessage",
          "{\"chat_id\":7,\"reply_parameters\":{\"message_id\":5,"
          "\"allow_sending_without_reply\":true},\"text\":\"hi\",\"parse_mode\":\"HTML\"}",
          "501" },
        { DELIVER_SEND, "-100200", "11", "{\"text\":\"hi\",\"replyTo\":\"5\"}", 9, "sendMessage",
          "{\"chat_id\":-100200,\"message_thread_id\":11,\"reply_parameters\":{\"message_id\":5,"
          "\"allow_sending_without_reply\":true},"
          "\"text\":\"hi\",\"parse_mode\":\"HTML\"}", "501" },
        { DELIVER_SEND, "-100200", "1", "{\"text\":\"hi\"}", 9, "sendMessage",
          "{\"chat_id\":-100200,\"text\":\"hi\",\"parse_mode\":\"HTML\"}", "501" },
        /* no thread begins at a message: it is answered */
        { DELIVER_SEND, "-100200", "11", "{\"text\":\"hi\"}", 0, "sendMessage",
          "{\"chat_id\":-100200,\"reply_parameters\":{\"message_id\":11,"
          "\"allow_sending_without_reply\":true},\"text\":\"hi\",\"parse_mode\":\"HTML\"}",
          "501", "11" },
        { DELIVER_SEND, "@news", NULL, "{\"text\":\"hi\"}", 0, "sendMessage",
          "{\"chat_id\":\"@news\",\"text\":\"hi\",\"parse_mode\":\"HTML\"}", "501" },
        { DELIVER_SEND, "7", NULL, "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\","
          "\"data\":\"say:yes\"},{\"text\":\"See\",\"url\":\"https://x.org\"}]]}", 0,
          "sendMessage", "{\"chat_id\":7,\"text\":\"?\",\"parse_mode\":\"HTML\","
          "\"reply_markup\":{\"inline_keyboard\":"
          "[[{\"text\":\"Yes\",\"callback_data\":\"say:yes\"},{\"text\":\"See\","
          "\"url\":\"https://x.org\"}]]}}", "501" },
        { DELIVER_EDIT, "7", NULL, "{\"messageId\":\"5\",\"text\":\"more\"}", 9, "editMessageText",
          "{\"chat_id\":7,\"message_id\":5,\"text\":\"more\",\"parse_mode\":\"HTML\"}", "501" },
        { DELIVER_DELETE, "7", NULL, "{\"messageId\":\"5\"}", 0, "deleteMessage",
          "{\"chat_id\":7,\"message_id\":5}", "5" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"✅\"}", 0,
          "setMessageReaction",
          "{\"chat_id\":7,\"reaction\":[{\"type\":\"emoji\",\"emoji\":\"👌\"}],\"message_id\":5}",
          "5" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"❤️\"}", 0,
          "setMessageReaction",
          "{\"chat_id\":7,\"reaction\":[{\"type\":\"emoji\",\"emoji\":\"❤\"}],\"message_id\":5}",
          "5" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\",\"emoji\":\"5368324170671202286\"}", 0,
          "setMessageReaction",
          "{\"chat_id\":7,\"reaction\":[{\"type\":\"custom_emoji\","
          "\"custom_emoji_id\":\"5368324170671202286\"}],\"message_id\":5}", "5" },
        { DELIVER_REACT, "7", NULL, "{\"messageId\":\"5\"}", 0, "setMessageReaction",
          "{\"chat_id\":7,\"reaction\":[],\"message_id\":5}", "5" },
        { DELIVER_TYPE, "-100200", "11", "{}", 9, "sendChatAction",
          "{\"chat_id\":-100200,\"message_thread_id\":11,\"action\":\"typing\"}", "" },
        { DELIVER_CHANGE_THREAD, "-100200", "11", "{\"closed\":true}", 0, "closeForumTopic",
          "{\"chat_id\":-100200,\"message_thread_id\":11}", "11" },
        { DELIVER_CHANGE_THREAD, "-100200", "11", "{\"closed\":false}", 0, "reopenForumTopic",
          "{\"chat_id\":-100200,\"message_thread_id\":11}", "11" },
        { DELIVER_CHANGE_THREAD, "-100200", "11", "{\"name\":\"new\"}", 0, "editForumTopic",
          "{\"chat_id\":-100200,\"name\":\"new\",\"message_thread_id\":11}", "11" },
};
/* clang-format on */

static void each_kind_of_delivery_is_a_call(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(calls); i++) {
                struct rig *g = rig_new();
                const struct fake_sent *sent;

                says(g, 200,
                     calls[i].platform_id[0] == '5' && calls[i].platform_id[1] ? SENT : TRUE);
                rig_connect(g);
                rig_send(g, (struct delivery){ .kind = calls[i].kind,
                                               .channel = calls[i].channel,
                                               .thread = calls[i].thread,
                                               .turn = calls[i].turn,
                                               .target = calls[i].target,
                                               .payload = calls[i].payload });
                sent = rig_sent(g);
                assert_int_equal(sent->result.outcome, SEND_DONE);
                assert_string_equal(sent->platform_id, calls[i].platform_id);
                assert_string_equal(rig_method(g, 4), calls[i].method);
                assert_string_equal(rig_body(g, 4), calls[i].params);
                rig_free(g);
        }
}

#define LONG_DATA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefx"

static void invalid_deliveries_are_rejected_without_a_call(void **state)
{
        static const struct {
                enum delivery_kind kind;
                const char *payload, *why;
        } rows[] = {
                { DELIVER_SEND, "{\"text\":\"\"}", "there is no text to send" },
                { DELIVER_EDIT, "{\"messageId\":\"x\",\"text\":\"a\"}",
                  "'x' is not a Telegram message id" },
                { DELIVER_THREAD, "{\"name\":\" \\n\"}", "a topic needs a name" },
                { DELIVER_THREAD, "{\"name\":\"a\",\"messageId\":\"5\"}",
                  "a topic on Telegram has a name and begins at no message" },
                { DELIVER_CHANGE_THREAD, "{\"closed\":true}", "'' is not the id of a topic" },
                { DELIVER_REACT, "{\"messageId\":\"5\",\"emoji\":\"ab\"}",
                  "Telegram's bots cannot react with 'ab'" },
                { DELIVER_UPLOAD, "{\"path\":\"../state/operator.key\"}",
                  "there is no file '../state/operator.key' in the workspace" },
                { DELIVER_UPLOAD, "{\"path\":\"pipe\"}",
                  "'pipe' in the workspace is a pipe or device; only regular files are taken" },
                { DELIVER_UPLOAD, "{\"path\":\"link\"}",
                  "'link' in the workspace is a link or lies behind one; only regular files are "
                  "taken" },
                { DELIVER_UPLOAD, "{\"path\":\"huge\"}",
                  "'huge' in the workspace has 2000000001 bytes; at most 2000000000 are taken" },
                { DELIVER_UPLOAD, "{\"path\":\"twice\"}",
                  "'twice' in the workspace has a second name (a hard link), or none any more; "
                  "copy it and use the copy" },
                { DELIVER_SEND,
                  "{\"text\":\"a\",\"buttons\":[[{\"text\":\"b\",\"data\":\"" LONG_DATA "\"}]]}",
                  "the data of button 'b' must have 1 to 64 bytes" },
                { DELIVER_EDIT,
                  "{\"messageId\":\"5\",\"text\":\"a\",\"buttons\":[[{\"text\":\"b\","
                  "\"data\":\"b\"}]]}",
                  "an edit cannot add buttons on Telegram" },
                { DELIVER_UNREACT, "{}", "Telegram does not support deliveries of kind 'unreact'" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                rig_put_traps(g);
                rig_connect(g);
                rig_send(g, (struct delivery){ .kind = rows[i].kind,
                                               .channel = "7",
                                               .payload = rows[i].payload });
                assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
                assert_string_equal(fake_road.sent[0].why, rows[i].why);
                assert_int_equal(fake_server_requests(g->server), 4);
                rig_free(g);
        }
}

static void a_caption_is_not_cut(void **state)
{
        struct rig *g = *state;
        char *payload = mem_printf("{\"path\":\"a.txt\",\"text\":\"<b>%01025d</b>\"}", 0);

        rig_put_file(g, "a.txt", "bytes");
        rig_connect(g);
        rig_send(g,
                 (struct delivery){ .kind = DELIVER_UPLOAD, .channel = "7", .payload = payload });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_non_null(strstr(fake_road.sent[0].why, "a caption has at most 1024 characters"));
        free(payload);
}

/* Sends a picture, sea.png, to topic 4 of group -7, as a reply to message 9. */
static void upload_picture(struct rig *g)
{
        rig_put_file(g, "sea.png", "picture bytes");
        rig_connect(g);
        rig_send(g, (struct delivery){
                            .kind = DELIVER_UPLOAD,
                            .channel = "-7",
                            .thread = "4",
                            .payload = "{\"path\":\"sea.png\",\"mime\":\"image/"
                                       "png\",\"text\":\"<i>sea</i>\",\"replyTo\":\"9\"}" });
}

static void a_refused_photo_is_sent_as_a_document(void **state)
{
        struct rig *g = *state;

        says(g, 400,
             "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: "
             "PHOTO_INVALID_DIMENSIONS\"}");
        says(g, 200, SENT);
        upload_picture(g);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(fake_road.sent[0].why,
                            "sent as a document: Telegram refused it as a photo");
        assert_string_equal(rig_method(g, 4), "sendPhoto");
        assert_string_equal(rig_method(g, 5), "sendDocument");
        assert_non_null(strstr(fake_server_request(g->server, 5),
                               "name=\"document\"; filename=\"sea.png\"\r\n"));
        assert_non_null(strstr(fake_server_request(g->server, 5),
                               "name=\"caption\"\r\n\r\n<i>sea</i>\r\n"));
}

static void a_file_of_the_workspace_is_uploaded_with_its_caption(void **state)
{
        struct rig *g = *state;
        const char *request;

        says(g, 200, SENT);
        upload_picture(g);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 4), "sendPhoto");
        request = fake_server_request(g->server, 4);
        assert_non_null(strstr(request, "name=\"chat_id\"\r\n\r\n-7\r\n"));
        assert_non_null(strstr(request, "name=\"message_thread_id\"\r\n\r\n4\r\n"));
        assert_non_null(strstr(request, "name=\"reply_parameters\"\r\n\r\n{\"message_id\":9,"));
        assert_non_null(strstr(request, "name=\"caption\"\r\n\r\n<i>sea</i>\r\n"));
        assert_non_null(strstr(request, "name=\"photo\"; filename=\"sea.png\"\r\n"));
        assert_non_null(strstr(request, "picture bytes"));
}

static void a_topic_has_the_longest_name_that_telegram_takes(void **state)
{
        struct rig *g = *state;
        char payload[600] = "{\"name\":\" ", wanted[600] = "{\"chat_id\":-100200,\"name\":\"";

        for (int i = 0; i < 100; i++) { /* two units each */
                strncat(payload, "😀", sizeof(payload) - strlen(payload) - 1);
                if (i < 64)
                        strncat(wanted, "😀", sizeof(wanted) - strlen(wanted) - 1);
        }
        strncat(payload, "\"}", sizeof(payload) - strlen(payload) - 1);
        strncat(wanted, "\"}", sizeof(wanted) - strlen(wanted) - 1);
        says(g, 200, "{\"ok\":true,\"result\":{\"message_thread_id\":77,\"name\":\"x\"}}");
        rig_connect(g);
        rig_send(g, (struct delivery){
                            .kind = DELIVER_THREAD, .channel = "-100200", .payload = payload });
        assert_string_equal(rig_sent(g)->platform_id, "77");
        assert_string_equal(rig_body(g, 4), wanted);
        assert_true(tg_ids_known(rig_adapter(g)->self, "-100200", 77));
}

static void a_topic_that_is_as_wanted_is_done(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 2; i++)
                says(g, 400, NO("400", "Bad Request: TOPIC_NOT_MODIFIED"));
        rig_connect(g);
        rig_send(g, (struct delivery){ .kind = DELIVER_CHANGE_THREAD,
                                       .channel = "-100200",
                                       .thread = "11",
                                       .payload = "{\"name\":\"new\",\"closed\":true}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 4), "editForumTopic");
        assert_string_equal(rig_method(g, 5), "closeForumTopic");
}

static void a_topic_that_is_gone_is_missing(void **state)
{
        struct rig *g = *state;

        says(g, 400, NO("400", "Bad Request: message thread not found"));
        rig_connect(g);
        rig_send(g, (struct delivery){ .kind = DELIVER_CHANGE_THREAD,
                                       .channel = "-100200",
                                       .thread = "11",
                                       .payload = "{\"name\":\"new\",\"closed\":true}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_int_equal(rig_sent(g)->result.kind, ERR_MISSING);
}

/* The workspace needs the first descriptor, the file the second. */
static void an_upload_waits_for_a_free_descriptor(void **state)
{
        (void)state;
        for (rlim_t spare = 0; spare < 2; spare++) {
                struct rig *g = rig_new();
                struct rlimit old, few;
                int next;

                rig_put_file(g, "a.txt", "bytes");
                rig_connect(g);
                next = dup(0);
                close(next);
                getrlimit(RLIMIT_NOFILE, &old);
                few = old;
                few.rlim_cur = (rlim_t)next + spare;
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
                rig_send(g, (struct delivery){ .kind = DELIVER_UPLOAD,
                                               .channel = "7",
                                               .payload = "{\"path\":\"a.txt\"}" });
                setrlimit(RLIMIT_NOFILE, &old);
                assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
                assert_int_equal(fake_road.sent[0].result.kind, ERR_IO);
                assert_int_equal(fake_server_requests(g->server), 4);
                rig_free(g);
        }
}

/* The file that was checked is the file that is sent. */
static void a_link_swapped_in_while_sending_is_not_followed(void **state)
{
        struct rig *g = *state;
        const char *request;

        says(g, 400, NO("400", "Bad Request: PHOTO_INVALID_DIMENSIONS"));
        says(g, 200, SENT);
        upload_picture(g);
        rig_swap_for_link(g, "sea.png");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        for (unsigned i = 4; i < 6; i++) { /* as a photo, then as a document */
                request = fake_server_request(g->server, i);
                assert_non_null(strstr(request, "\r\n\r\npicture bytes\r\n"));
                assert_null(strstr(request, "secret\r\n"));
        }
}

/* ---- answers ---- */

static void each_answer_has_its_outcome(void **state)
{
        /* clang-format off */
        static const struct {
                enum delivery_kind kind;
                int status;
                const char *body;
                enum send_outcome outcome;
                enum error_kind error;
                int64_t retry_after_ms;
        } rows[] = {
                { DELIVER_SEND, 200, SENT, SEND_DONE, ERR_NONE, -1 },
                /* not from Telegram */
                { DELIVER_SEND, 200, "<html>Log in</html>", SEND_UNSURE, ERR_NET, -1 },
                { DELIVER_EDIT, 200, "", SEND_RETRY, ERR_NET, -1 },
                /* from a proxy */
                { DELIVER_SEND, 403, "<html>Forbidden</html>", SEND_RETRY, ERR_NET, -1 },
                { DELIVER_SEND, 302, "", SEND_RETRY, ERR_NET, -1 },
                /* it will not get smaller */
                { DELIVER_UPLOAD, 413, "<html>too large</html>", SEND_REJECTED, ERR_NET, -1 },
                { DELIVER_SEND, 401, "", SEND_RETRY, ERR_NET, 60000 },
                { DELIVER_SEND, 429, "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many "
                  "Requests: retry after 7\",\"parameters\":{\"retry_after\":7}}",
                  SEND_RETRY, ERR_LIMIT, 7000 },
                { DELIVER_SEND, 403, NO("403", "Forbidden: bot was blocked by the user"),
                  SEND_REJECTED, ERR_REFUSED, -1 },
                { DELIVER_SEND, 400, NO("400", "Bad Request: chat not found"), SEND_REJECTED,
                  ERR_REFUSED, -1 },
                { DELIVER_SEND, 401, NO("401", "Unauthorized"), SEND_RETRY, ERR_REFUSED, 60000 },
                { DELIVER_SEND, 500, NO("500", "Internal Server Error"), SEND_UNSURE, ERR_NET, -1 },
                { DELIVER_UPLOAD, 502, "<html>Bad Gateway</html>", SEND_UNSURE, ERR_NET, -1 },
                { DELIVER_EDIT, 500, NO("500", "Internal Server Error"), SEND_RETRY, ERR_NET, -1 },
                { DELIVER_DELETE, 502, "", SEND_RETRY, ERR_NET, -1 },
                { DELIVER_REACT, 504, "", SEND_RETRY, ERR_NET, -1 },
                { DELIVER_TYPE, 500, "", SEND_RETRY, ERR_NET, -1 },
                { DELIVER_EDIT, 400, NO("400", "Bad Request: message is not modified: specified "
                  "new message content ..."), SEND_DONE, ERR_NONE, -1 },
                { DELIVER_SEND, 400, NO("400", "Bad Request: message is not modified"),
                  SEND_REJECTED, ERR_REFUSED, -1 },
                { DELIVER_DELETE, 400, NO("400", "Bad Request: message to delete not found"),
                  SEND_DONE, ERR_NONE, -1 },
                /* the road sends a new message */
                { DELIVER_EDIT, 400, NO("400", "Bad Request: message to edit not found"),
                  SEND_REJECTED, ERR_MISSING, -1 },
                { DELIVER_EDIT, 400, NO("400", "Bad Request: message can't be edited"),
                  SEND_REJECTED, ERR_MISSING, -1 },
                { DELIVER_EDIT, 400, NO("400", "Bad Request: MESSAGE_ID_INVALID"), SEND_REJECTED,
                  ERR_MISSING, -1 },
                { DELIVER_REACT, 400, NO("400", "Bad Request: MESSAGE_ID_INVALID"), SEND_REJECTED,
                  ERR_REFUSED, -1 },
        };
        /* clang-format on */

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_result r = { .status = rows[i].status,
                                         .reach = HTTP_ANSWERED,
                                         .body = rows[i].body,
                                         .body_n = strlen(rows[i].body),
                                         .retry_after_ms = -1 };
                struct tg_answer answer;
                struct send_result result;
                char said[300], why[300];
                json_t *body;

                tg_call_read(&r, &body, &answer, said, sizeof(said));
                tg_send_outcome(rows[i].kind, &answer, &result, why, sizeof(why));
                assert_int_equal(result.outcome, rows[i].outcome);
                assert_int_equal(result.kind, rows[i].error);
                assert_int_equal(result.retry_after_ms, rows[i].retry_after_ms);
                json_decref(body);
        }
}

static void a_status_line_alone_is_an_answer(void **state)
{
        struct http_result r = { .status = 200,
                                 .reach = HTTP_ANSWERED,
                                 .kind = ERR_NET,
                                 .why = "it broke",
                                 .body = "{\"ok\":tr",
                                 .body_n = 8,
                                 .retry_after_ms = -1 };
        struct tg_answer answer;
        struct send_result result;
        char said[300], why[300];
        json_t *body;

        (void)state;
        tg_call_read(&r, &body, &answer, said, sizeof(said));
        assert_null(body);
        tg_send_outcome(DELIVER_SEND, &answer, &result, why, sizeof(why));
        assert_int_equal(result.outcome, SEND_DONE);
}

static void error_texts_never_contain_the_token(void **state)
{
        struct rig *g = *state;
        struct http_result r = { .reach = HTTP_NOT_SENT,
                                 .kind = ERR_NET,
                                 .why = "cannot reach http://x/bot" TOKEN "/sendMessage",
                                 .retry_after_ms = -1 };
        struct tg_answer answer;
        char said[300];
        json_t *body;

        rig_connect(g); /* registers the token as a secret */
        tg_call_read(&r, &body, &answer, said, sizeof(said));
        assert_non_null(
                strstr(answer.why, "Telegram could not be reached: cannot reach http://x/bot"));
        assert_null(strstr(answer.why, TOKEN));
}

static void a_call_without_answer_says_how_far_it_got(void **state)
{
        static const struct {
                enum delivery_kind kind;
                enum http_reach reach;
                enum send_outcome outcome;
        } rows[] = {
                { DELIVER_SEND, HTTP_NOT_SENT, SEND_RETRY },
                { DELIVER_SEND, HTTP_UNSURE, SEND_UNSURE },
                { DELIVER_EDIT, HTTP_UNSURE, SEND_RETRY },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_result r = { .reach = rows[i].reach,
                                         .kind = ERR_NET,
                                         .why = "it broke",
                                         .retry_after_ms = -1 };
                struct tg_answer answer;
                struct send_result result;
                char said[300], why[300];
                json_t *body;

                tg_call_read(&r, &body, &answer, said, sizeof(said));
                tg_send_outcome(rows[i].kind, &answer, &result, why, sizeof(why));
                assert_int_equal(result.outcome, rows[i].outcome);
                assert_int_equal(result.kind, ERR_NET);
        }
}

static void refused_markup_is_resent_as_plain_text(void **state)
{
        struct rig *g = *state;

        says(g, 400,
             NO("400",
                "Bad Request: can't parse entities: Unsupported start tag \\\"x\\\" at byte offset "
                "0"));
        says(g, 200, SENT);
        rig_connect(g);
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"<x>1 &lt; 2</x>\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(fake_road.sent[0].why,
                            "sent as plain text: Telegram refused the markup");
        assert_string_equal(rig_body(g, 5), "{\"chat_id\":7,\"text\":\"1 < 2\"}");
}

static void refused_caption_markup_is_resent_as_plain_text(void **state)
{
        struct rig *g = *state;

        says(g, 400, NO("400", "Bad Request: can't parse entities: Unsupported start tag"));
        says(g, 200, SENT);
        upload_picture(g);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_method(g, 5), "sendPhoto");
        assert_non_null(
                strstr(fake_server_request(g->server, 5), "name=\"caption\"\r\n\r\nsea\r\n"));
        assert_null(strstr(fake_server_request(g->server, 5), "parse_mode"));
}

static void a_second_refusal_is_final(void **state)
{
        struct rig *g = *state;

        says(g, 400, NO("400", "Bad Request: can't parse entities"));
        says(g, 400, NO("400", "Bad Request: can't parse entities"));
        rig_connect(g);
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"<x>\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_REJECTED);
        assert_int_equal(fake_server_requests(g->server), 6);
}

static void a_group_that_moved_is_followed_and_remembered(void **state)
{
        struct rig *g = *state;
        json_t *saved;

        says(g, 400,
             "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: group chat was "
             "upgraded to a supergroup chat\",\"parameters\":{\"migrate_to_chat_id\":-100500}}");
        says(g, 200, SENT);
        says(g, 200, SENT);
        rig_connect(g);
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "-5",
                                       .payload = "{\"text\":\"a\",\"replyTo\":\"3\"}" });
        /* a new claim: what was known of the old chat's ids is of no use */
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(rig_sent(g)->result.retry_after_ms, 0);
        assert_non_null(strstr(rig_body(g, 4), "\"reply_parameters\""));
        fake_road.count = 0;
        rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                       .channel = "-5",
                                       .payload = "{\"text\":\"a\",\"replyTo\":\"3\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 5), "\"chat_id\":-100500"));
        assert_null(
                strstr(rig_body(g, 5), "\"reply_parameters\"")); /* message 3 is in the old chat */
        fake_road.count = 0;
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "-5", .payload = "{\"text\":\"b\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_non_null(strstr(rig_body(g, 6), "\"chat_id\":-100500"));
        saved = adapter_file_read(rig_adapter(g)); /* as the next start does */
        assert_string_equal(json_str(json_object_get(saved, "moved"), "-5", ""), "-100500");
        json_decref(saved);
}

static void repeated_rate_limits_freeze_the_whole_bot(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 429,
                     "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many "
                     "Requests\",\"parameters\":{\"retry_after\":2}}");
        rig_connect(g);
        for (int i = 0; i < 3; i++) {
                fake_road.count = 0;
                rig_send(g, (struct delivery){ .kind = DELIVER_SEND,
                                               .channel = "7",
                                               .payload = "{\"text\":\"a\"}" });
                assert_int_equal(rig_sent(g)->result.retry_after_ms, 2000);
                assert_int_equal(fake_road.sent[0].result.freeze_adapter, i == 2);
        }
}

static void a_refused_token_stops_the_adapter(void **state)
{
        struct rig *g = *state;

        says(g, 401, NO("401", "Unauthorized"));
        rig_connect(g);
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"a\"}" });
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "botToken"));
        assert_int_equal(http_client_active(g->http), 0);
}

static void sends_in_flight_end_with_the_adapter(void **state)
{
        struct rig *g = *state;

        says(g, 200, NULL);
        rig_connect(g);
        rig_send(g, (struct delivery){
                            .kind = DELIVER_SEND, .channel = "7", .payload = "{\"text\":\"a\"}" });
        rig_requests(g, 5);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, NULL), 0);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_UNSURE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_kind_of_delivery_is_a_call),
                cmocka_unit_test(invalid_deliveries_are_rejected_without_a_call),
                cmocka_unit_test_setup_teardown(
                        a_file_of_the_workspace_is_uploaded_with_its_caption, rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_topic_has_the_longest_name_that_telegram_takes,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_topic_that_is_as_wanted_is_done, rig_begin,
                                                rig_end),
                cmocka_unit_test_setup_teardown(a_topic_that_is_gone_is_missing, rig_begin,
                                                rig_end),
                cmocka_unit_test(an_upload_waits_for_a_free_descriptor),
                cmocka_unit_test_setup_teardown(a_link_swapped_in_while_sending_is_not_followed,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_caption_is_not_cut, rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_refused_photo_is_sent_as_a_document, rig_begin,
                                                rig_end),
                cmocka_unit_test(each_answer_has_its_outcome),
                cmocka_unit_test(a_status_line_alone_is_an_answer),
                cmocka_unit_test_setup_teardown(error_texts_never_contain_the_token, rig_begin,
                                                rig_end),
                cmocka_unit_test(a_call_without_answer_says_how_far_it_got),
                cmocka_unit_test_setup_teardown(refused_markup_is_resent_as_plain_text, rig_begin,
                                                rig_end),
                cmocka_unit_test_setup_teardown(refused_caption_markup_is_resent_as_plain_text,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_second_refusal_is_final, rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_group_that_moved_is_followed_and_remembered,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(repeated_rate_limits_freeze_the_whole_bot,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(a_refused_token_stops_the_adapter, rig_begin,
                                                rig_end),
                cmocka_unit_test_setup_teardown(sends_in_flight_end_with_the_adapter, rig_begin,
                                                rig_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
