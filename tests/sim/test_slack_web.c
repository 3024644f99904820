/*
 * The simulated Web API of Slack: tokens, arguments, messages, history, streams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_sl.h"
#include "base/json.h"
#include "base/mem.h"

#define IN_GENERAL "{\"channel\":\"" SL_GENERAL "\","

/* A body from a format; freed by the next call. */
static const char *body(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *body(const char *fmt, ...)
{
        static char text[60000];
        va_list ap;

        va_start(ap, fmt);
        assert_true(vsnprintf(text, sizeof(text), fmt, ap) < (int)sizeof(text));
        va_end(ap);
        return text;
}

static json_t *nth(const json_t *answer, size_t i)
{
        return json_array_get(json_object_get(answer, "messages"), i);
}

static size_t count(const json_t *answer)
{
        return json_array_size(json_object_get(answer, "messages"));
}

static const char *cursor(const json_t *answer)
{
        return json_str(json_object_get(answer, "response_metadata"), "next_cursor", "");
}

/* ---- tokens and arguments ---- */

static void each_wrong_token_has_its_error(void **state)
{
        static const char *const none[] = { NULL };
        static const char *const json_type[] = { "Content-Type: application/json", NULL };
        static const char *const wrong[] = { "Authorization: Bearer xoxb-other", NULL };
        static const char *const app_level[] = { "Authorization: Bearer xapp-test", NULL };
        struct sim_rig *r = *state;
        const char *const *headers = r->headers;

        r->headers = none;
        sim_sl_refused(r, "auth.test", NULL, "not_authed");
        sim_sl_ok(r, "auth.test?token=" SL_TOKEN, NULL);
        r->headers = json_type;
        sim_sl_refused(r, "auth.test", "{\"token\":\"" SL_TOKEN "\"}", "not_authed");
        r->headers = none;
        sim_sl_ok(r, "api.test", NULL);
        r->headers = wrong;
        sim_sl_refused(r, "auth.test", NULL, "invalid_auth");
        r->headers = app_level;
        sim_sl_refused(r, "auth.test", NULL, "not_allowed_token_type");
        sim_sl_ok(r, "apps.connections.open", NULL);
        sim_rig_control_ok(r, "apps", "{\"app_token_error\":\"invalid_auth\"}");
        sim_sl_refused(r, "apps.connections.open", NULL, "invalid_auth");
        r->headers = headers;
        sim_sl_refused(r, "apps.connections.open", NULL, "not_allowed_token_type");
        sim_rig_control_ok(r, "apps", "{\"token_error\":\"token_revoked\"}");
        sim_sl_refused(r, "auth.test", NULL, "token_revoked");
        sim_rig_control_ok(r, "apps", "{\"token_error\":null}");
        sim_sl_ok(r, "auth.test", NULL);
}

static void a_missing_scope_names_what_is_needed(void **state)
{
        struct sim_rig *r = *state;
        json_t *answer;

        sim_rig_control_ok(r, "apps",
                           "{\"scopes\":[\"chat:write\",\"channels:read\",\"im:history\"]}");
        answer = sim_sl_call(r, "users.info?user=" SL_ADA, NULL);
        assert_string_equal(json_str(answer, "error", ""), "missing_scope");
        assert_string_equal(json_str(answer, "needed", ""), "users:read");
        assert_string_equal(json_str(answer, "provided", ""),
                            "chat:write,channels:read,im:history");
        json_decref(answer);
        /* that of the conversation's kind */
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_string_equal(json_str(answer, "needed", ""), "channels:history");
        json_decref(answer);
        answer = sim_sl_call(r, "conversations.list?types=public_channel,private_channel", NULL);
        assert_string_equal(json_str(answer, "needed", ""), "groups:read");
        json_decref(answer);
}

static void arguments_are_checked_by_the_description(void **state)
{
        struct sim_rig *r = *state;
        json_t *page;

        sim_sl_refused(r, "chat.delete", "{\"channel\":\"" SL_GENERAL "\"}", "invalid_arguments");
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"colour\":1}",
                       "invalid_arguments");
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"unfurl_links\":\"y\"}",
                       "invalid_arguments");
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"a-b\":1}",
                       "invalid_arg_name");
        sim_sl_refused(r, "chat.sing", "{}", "unknown_method");
        sim_sl_refused(r, "dnd.info", "{}", "method_not_simulated");
        page = sim_rig_control(r, "calls?valid=false", NULL);
        assert_int_equal(json_array_size(json_object_get(page, "items")), 4);
        json_decref(page);
        /* as Slack does */
        sim_rig_control_ok(r, "settings", "{\"strict\":false}");
        sim_sl_ok(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"colour\":1}");
}

static void forms_and_json_are_told_apart(void **state)
{
        static const char *const form[] = { "Content-Type: application/x-www-form-urlencoded",
                                            "Authorization: Bearer " SL_TOKEN, NULL };
        static const char *const bare[] = { "Content-Type: application/json",
                                            "Authorization: Bearer " SL_TOKEN, NULL };
        static const char *const odd[] = { "Content-Type: text/csv",
                                           "Authorization: Bearer " SL_TOKEN, NULL };
        struct sim_rig *r = *state;
        const char *const *headers = r->headers;
        json_t *answer;

        /* this method reads forms only */
        sim_sl_refused(r, "users.info", "{\"user\":\"" SL_ADA "\"}", "invalid_arguments");
        sim_sl_refused(r, "chat.postMessage", "{", "invalid_json");
        sim_sl_refused(r, "chat.postMessage", "[]", "json_not_object");
        r->headers = form;
        sim_sl_ok(r, "users.info", "user=" SL_ADA);
        sim_sl_ok(r, "chat.postMessage",
                  "channel=" SL_GENERAL "&text=a%26b&blocks=%5B%7B%22type%22%3A%22divider%22%7D%5D"
                  "&reply_broadcast=false");
        sim_sl_refused(r, "chat.postMessage", "channel=" SL_GENERAL "&text=%zz",
                       "invalid_form_data");
        r->headers = bare;
        answer = sim_sl_call(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\"}");
        assert_string_equal(json_str(answer, "warning", ""), "missing_charset");
        json_decref(answer);
        r->headers = odd;
        sim_sl_refused(r, "chat.postMessage", "a,b", "invalid_post_type");
        r->headers = headers;
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_string_equal(json_str(nth(answer, 1), "text", ""), "a&b");
        assert_int_equal(json_array_size(json_object_get(nth(answer, 1), "blocks")), 1);
        json_decref(answer);
}

/* ---- posting ---- */

static void posts_go_where_the_app_may_write(void **state)
{
        struct sim_rig *r = *state;
        json_t *answer;

        sim_rig_control_ok(r, "channels",
                           "{\"id\":\"C0SECRET1\",\"name\":\"secret\","
                           "\"type\":\"private\",\"without_app\":true}");
        sim_rig_control_ok(r, "channels",
                           "{\"id\":\"C0PUBLIC1\",\"name\":\"other\",\"without_app\":true}");
        sim_sl_refused(r, "chat.postMessage", "{\"channel\":\"C9\",\"text\":\"x\"}",
                       "channel_not_found");
        sim_sl_refused(r, "chat.postMessage", "{\"channel\":\"C0SECRET1\",\"text\":\"x\"}",
                       "channel_not_found");
        sim_sl_ok(r, "chat.postMessage", "{\"channel\":\"#general\",\"text\":\"x\"}");
        sim_sl_ok(r, "chat.postMessage", "{\"channel\":\"C0PUBLIC1\",\"text\":\"x\"}");
        sim_rig_control_ok(r, "apps", "{\"without_scopes\":[\"chat:write.public\"]}");
        sim_sl_refused(r, "chat.postMessage", "{\"channel\":\"C0PUBLIC1\",\"text\":\"x\"}",
                       "not_in_channel");
        sim_sl_refused(r, "conversations.history?channel=C0PUBLIC1", NULL, "not_in_channel");
        sim_rig_control_ok(r, "channels", "{\"id\":\"C0PUBLIC1\",\"archived\":true}");
        sim_sl_refused(r, "chat.postMessage", "{\"channel\":\"C0PUBLIC1\",\"text\":\"x\"}",
                       "is_archived");
        /* a person's id opens the direct messages */
        answer = sim_sl_call(r, "chat.postMessage", "{\"channel\":\"" SL_ADA "\",\"text\":\"x\"}");
        assert_int_equal(json_str(answer, "channel", "")[0], 'D');
        json_decref(answer);
}

static void long_and_empty_texts_are_refused(void **state)
{
        struct sim_rig *r = *state;
        char ts[SL_TS_SIZE], text[41002];
        json_t *answer;

        memset(text, 'a', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"\"}", "no_text");
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"markdown_text\":\"y\"}",
                       "markdown_text_conflict");
        sim_sl_refused(r, "chat.postMessage",
                       body(IN_GENERAL "\"markdown_text\":\"%.12001s\"}", text), "msg_too_long");
        sim_sl_post(r, "short", ts);
        sim_sl_ok(r, "chat.update",
                  body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"%.4000s\"}", ts, text));
        sim_sl_refused(r, "chat.update",
                       body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"%.4001s\"}", ts, text),
                       "msg_too_long");
        /* Slack cuts it and says nothing; the simulator counts it as a mistake */
        answer = sim_sl_call(r, "chat.postMessage", body(IN_GENERAL "\"text\":\"%s\"}", text));
        assert_int_equal(strlen(json_str(json_object_get(answer, "message"), "text", "")), 40000);
        json_decref(answer);
        answer = sim_rig_control(r, "calls?valid=false", NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
        json_decref(answer);
}

/* Slack guesses what a bare < means; the simulator takes it for a mistake. */
static void text_must_be_escaped(void **state)
{
        static const struct {
                const char *text;
                int mistakes;
        } rows[] = {
                { "a &lt; b &amp;&amp; c &gt; d <@U0ADA> <#C1|x> <!here> <https://x.y|z>", 0 },
                { "> quoted", 0 },
                { "a < b", 1 },
                { "<b>bold</b>", 1 },
                { "fish & chips", 1 },
                { "<https://x.y", 1 },
        };
        struct sim_rig *r = *state;
        int mistakes = 0;

        for (size_t i = 0; i < COUNT(rows); i++) {
                sim_sl_ok(r, "chat.postMessage", body(IN_GENERAL "\"text\":\"%s\"}", rows[i].text));
                mistakes += rows[i].mistakes;
                assert_int_equal(sim_sl_world(r)->base.invalid_count, mistakes);
        }
}

static void blocks_have_slacks_limits(void **state)
{
        static const struct {
                const char *blocks, *error;
        } rows[] = {
                { "[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"x\"}}]", "" },
                { "[{\"type\":\"section\"}]", "invalid_blocks" },
                { "[{\"type\":\"poem\"}]", "invalid_blocks" },
                { "{\"type\":\"divider\"}", "invalid_blocks_format" },
                { "[{\"type\":\"header\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"x\"}}]",
                  "invalid_blocks" },
                { "[{\"type\":\"actions\",\"elements\":[{\"type\":\"button\",\"text\":{"
                  "\"type\":\"plain_text\",\"text\":\"Yes\"},\"action_id\":\"y\",\"value\":\"1\"}]"
                  "}]",
                  "" },
                { "[{\"type\":\"actions\",\"elements\":[]}]", "invalid_blocks" },
                { "[{\"type\":\"actions\",\"elements\":[{\"type\":\"button\",\"text\":{"
                  "\"type\":\"mrkdwn\",\"text\":\"Yes\"},\"action_id\":\"y\"}]}]",
                  "invalid_blocks" },
                { "[{\"type\":\"divider\",\"block_id\":\"a\"},"
                  "{\"type\":\"divider\",\"block_id\":\"a\"}]",
                  "invalid_blocks" },
                { "[{\"type\":\"table\",\"rows\":[[{\"type\":\"raw_text\",\"text\":\"a\"}]]}]",
                  "" },
                { "[{\"type\":\"table\",\"rows\":[]}]", "invalid_blocks" },
                { "[{\"type\":\"markdown\",\"text\":\"**x**\"}]", "" },
                { "[{\"type\":\"context\",\"elements\":[]}]", "invalid_blocks" },
        };
        struct sim_rig *r = *state;
        char many[51 * 24] = "[", text[3002];

        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *b = body(IN_GENERAL "\"text\":\"x\",\"blocks\":%s}", rows[i].blocks);

                if (*rows[i].error)
                        sim_sl_refused(r, "chat.postMessage", b, rows[i].error);
                else
                        sim_sl_ok(r, "chat.postMessage", b);
        }
        for (int i = 0; i < 51; i++)
                snprintf(many + strlen(many), sizeof(many) - strlen(many),
                         "%s{\"type\":\"divider\"}", i ? "," : "");
        sim_sl_refused(r, "chat.postMessage", body(IN_GENERAL "\"blocks\":%s]}", many),
                       "invalid_blocks");
        memset(text, 'a', sizeof(text));
        text[3001] = '\0';
        sim_sl_refused(r, "chat.postMessage",
                       body(IN_GENERAL "\"blocks\":[{\"type\":\"section\",\"text\":{"
                                       "\"type\":\"mrkdwn\",\"text\":\"%s\"}}]}",
                            text),
                       "invalid_blocks");
}

static void metadata_is_shown_on_request_only(void **state)
{
        static const char meta[] = "\"metadata\":{\"event_type\":\"d\",\"event_payload\":{"
                                   "\"id\":\"7\"}}";
        struct sim_rig *r = *state;
        json_t *answer =
                sim_sl_call(r, "chat.postMessage", body(IN_GENERAL "\"text\":\"x\",%s}", meta));
        char *ts = mem_strdup(json_str(answer, "ts", ""));

        json_decref(answer);
        sim_sl_refused(r, "chat.postMessage",
                       IN_GENERAL "\"text\":\"x\",\"metadata\":{\"event_type\":\"d\"}}",
                       "invalid_metadata_schema");
        sim_sl_refused(r, "chat.postMessage", IN_GENERAL "\"text\":\"x\",\"metadata\":[]}",
                       "invalid_metadata_format");
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_null(json_object_get(nth(answer, 0), "metadata"));
        json_decref(answer);
        /* an edit without metadata keeps it */
        sim_sl_ok(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"y\"}", ts));
        answer = sim_sl_call(
                r, "conversations.history?channel=" SL_GENERAL "&include_all_metadata=true", NULL);
        assert_string_equal(json_str(json_object_get(json_object_get(nth(answer, 0), "metadata"),
                                                     "event_payload"),
                                     "id", ""),
                            "7");
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "y");
        json_decref(answer);
        sim_sl_ok(r, "chat.update",
                  body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"y\",\"metadata\":{}}", ts));
        answer = sim_sl_call(
                r, "conversations.history?channel=" SL_GENERAL "&include_all_metadata=true", NULL);
        assert_null(json_object_get(nth(answer, 0), "metadata"));
        json_decref(answer);
        free(ts);
}

static void only_own_messages_can_be_changed(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_channel *c = sl_channel_find(w, SL_GENERAL);
        struct slack_message *m = sl_message_new(c, sl_user_find(w, SL_ADA), "mine");
        char ts[SL_TS_SIZE];
        json_t *answer;

        sl_message_post(w, m);
        sim_sl_refused(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"y\"}", m->ts),
                       "cant_update_message");
        sim_sl_refused(r, "chat.delete", body(IN_GENERAL "\"ts\":\"%s\"}", m->ts),
                       "cant_delete_message");
        sim_sl_refused(r, "chat.update", IN_GENERAL "\"ts\":\"1.000001\",\"text\":\"y\"}",
                       "message_not_found");
        answer = sim_sl_call(r, "chat.postMessage",
                             IN_GENERAL "\"text\":\"x\",\"blocks\":[{\"type\":\"divider\"}]}");
        snprintf(ts, sizeof(ts), "%s", json_str(answer, "ts", ""));
        json_decref(answer);
        /* text alone removes the blocks, and marks the message */
        answer =
                sim_sl_call(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"y\"}", ts));
        assert_null(json_object_get(json_object_get(answer, "message"), "blocks"));
        assert_non_null(json_object_get(json_object_get(answer, "message"), "edited"));
        json_decref(answer);
        sim_sl_ok(r, "chat.delete", body(IN_GENERAL "\"ts\":\"%s\"}", ts));
        sim_sl_refused(r, "chat.delete", body(IN_GENERAL "\"ts\":\"%s\"}", ts),
                       "message_not_found");
        assert_int_equal(sim_sl_count(r, "edit"), 1);
        assert_int_equal(sim_sl_count(r, "delete"), 1);
}

static void ephemeral_messages_reach_one_person_and_stay_nowhere(void **state)
{
        struct sim_rig *r = *state;
        json_t *answer;

        sim_rig_control_ok(r, "users", "{\"id\":\"U0BOB\",\"name\":\"bob\"}");
        sim_sl_ok(r, "chat.postEphemeral", IN_GENERAL "\"user\":\"" SL_ADA "\",\"text\":\"psst\"}");
        sim_sl_refused(r, "chat.postEphemeral", IN_GENERAL "\"user\":\"U0BOB\",\"text\":\"x\"}",
                       "user_not_in_channel");
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_int_equal(count(answer), 0);
        json_decref(answer);
        assert_int_equal(sim_sl_count(r, "ephemeral"), 1);
}

/* ---- reading ---- */

static void history_is_read_in_pages_newest_first(void **state)
{
        struct sim_rig *r = *state;
        char ts[5][SL_TS_SIZE], text[8], *path;
        json_t *answer;

        for (int i = 0; i < 5; i++) {
                snprintf(text, sizeof(text), "m%d", i);
                sim_sl_post(r, text, ts[i]);
                assert_true(i == 0 || strcmp(ts[i - 1], ts[i]) < 0);
        }
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL "&limit=2", NULL);
        assert_int_equal(count(answer), 2);
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "m4");
        assert_true(json_flag(answer, "has_more", false));
        path = mem_printf("conversations.history?channel=" SL_GENERAL "&limit=2&cursor=%s",
                          cursor(answer));
        json_decref(answer);
        answer = sim_sl_call(r, path, NULL);
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "m2");
        assert_string_equal(json_str(nth(answer, 1), "text", ""), "m1");
        json_decref(answer);
        free(path);
        path = mem_printf("conversations.history?channel=" SL_GENERAL "&oldest=%s&latest=%s", ts[1],
                          ts[3]);
        answer = sim_sl_call(r, path, NULL);
        assert_int_equal(count(answer), 1);
        json_decref(answer);
        free(path);
        path = mem_printf("conversations.history?channel=" SL_GENERAL
                          "&oldest=%s&latest=%s&inclusive=true",
                          ts[1], ts[3]);
        answer = sim_sl_call(r, path, NULL);
        assert_int_equal(count(answer), 3);
        assert_false(json_flag(answer, "has_more", true));
        json_decref(answer);
        free(path);
        /* after `oldest` alone, the first page is the one next to it */
        path = mem_printf("conversations.history?channel=" SL_GENERAL "&limit=2&oldest=%s", ts[0]);
        answer = sim_sl_call(r, path, NULL);
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "m2");
        assert_string_equal(json_str(nth(answer, 1), "text", ""), "m1");
        free(path);
        path = mem_printf("conversations.history?channel=" SL_GENERAL
                          "&limit=2&oldest=%s&cursor=%s",
                          ts[0], cursor(answer));
        json_decref(answer);
        answer = sim_sl_call(r, path, NULL);
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "m4");
        assert_false(json_flag(answer, "has_more", true));
        json_decref(answer);
        free(path);
        sim_sl_refused(r, "conversations.history?channel=" SL_GENERAL "&cursor=x", NULL,
                       "invalid_cursor");
        sim_sl_refused(r, "conversations.history?channel=" SL_GENERAL "&oldest=x", NULL,
                       "invalid_ts_oldest");
        sim_sl_refused(r, "conversations.history?channel=" SL_GENERAL "&limit=0", NULL,
                       "invalid_limit");
}

static void replies_are_read_oldest_first_after_their_root(void **state)
{
        struct sim_rig *r = *state;
        char root[SL_TS_SIZE], reply[SL_TS_SIZE] = "", *path;
        json_t *answer;

        sim_sl_post(r, "root", root);
        for (int i = 0; i < 3; i++) {
                answer = sim_sl_call(r, "chat.postMessage",
                                     body(IN_GENERAL "\"text\":\"r%d\",\"thread_ts\":\"%s\","
                                                     "\"reply_broadcast\":%s}",
                                          i, root, i == 1 ? "true" : "false"));
                snprintf(reply, sizeof(reply), "%s", json_str(answer, "ts", ""));
                json_decref(answer);
        }
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_int_equal(count(answer), 2); /* the root and the broadcast */
        assert_string_equal(json_str(nth(answer, 0), "subtype", ""), "thread_broadcast");
        assert_int_equal(json_int(nth(answer, 1), "reply_count", 0), 3);
        assert_string_equal(json_str(nth(answer, 1), "latest_reply", ""), reply);
        assert_string_equal(json_str(nth(answer, 1), "thread_ts", ""), root);
        json_decref(answer);
        path = mem_printf("conversations.replies?channel=" SL_GENERAL "&ts=%s&limit=2", root);
        answer = sim_sl_call(r, path, NULL);
        free(path);
        assert_int_equal(count(answer), 3);
        assert_string_equal(json_str(nth(answer, 0), "text", ""), "root");
        assert_string_equal(json_str(nth(answer, 1), "text", ""), "r0");
        assert_true(json_flag(answer, "has_more", false));
        path = mem_printf("conversations.replies?channel=" SL_GENERAL "&ts=%s&limit=2&cursor=%s",
                          root, cursor(answer));
        json_decref(answer);
        answer = sim_sl_call(r, path, NULL);
        free(path);
        assert_int_equal(count(answer), 2);
        assert_string_equal(json_str(nth(answer, 1), "text", ""), "r2");
        json_decref(answer);
        sim_sl_refused(r, "conversations.replies?channel=" SL_GENERAL "&ts=1.000001", NULL,
                       "thread_not_found");
        /* a reply's ts as thread_ts is a mistake */
        sim_sl_ok(r, "chat.postMessage",
                  body(IN_GENERAL "\"text\":\"r3\",\"thread_ts\":\"%s\"}", reply));
        answer = sim_rig_control(r, "calls?valid=false", NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "items")), 1);
        json_decref(answer);
        /* a deleted root leaves a tombstone */
        sim_sl_ok(r, "chat.delete", body(IN_GENERAL "\"ts\":\"%s\"}", root));
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_string_equal(json_str(nth(answer, 1), "subtype", ""), "tombstone");
        json_decref(answer);
        /* one without replies leaves nothing: a reply to it appears in the channel */
        sim_sl_post(r, "alone", root);
        sim_sl_ok(r, "chat.delete", body(IN_GENERAL "\"ts\":\"%s\"}", root));
        answer = sim_sl_call(r, "chat.postMessage",
                             body(IN_GENERAL "\"text\":\"late\",\"thread_ts\":\"%s\"}", root));
        assert_null(json_object_get(json_object_get(answer, "message"), "thread_ts"));
        json_decref(answer);
}

static void reactions_are_added_once(void **state)
{
        struct sim_rig *r = *state;
        char ts[SL_TS_SIZE], *path;
        json_t *answer, *first;

        sim_sl_post(r, "x", ts);
        path = mem_printf(IN_GENERAL "\"timestamp\":\"%s\",\"name\":\"eyes\"}", ts);
        sim_sl_ok(r, "reactions.add", path);
        sim_sl_refused(r, "reactions.add", path, "already_reacted");
        sim_sl_refused(r, "reactions.add",
                       body(IN_GENERAL "\"timestamp\":\"%s\",\"name\":\":eyes:\"}", ts),
                       "invalid_name");
        sim_sl_refused(r, "reactions.add", IN_GENERAL "\"timestamp\":\"1.2\",\"name\":\"eyes\"}",
                       "message_not_found");
        sim_sl_ok(r, "reactions.add",
                  body(IN_GENERAL "\"timestamp\":\"%s\",\"name\":\"+1::skin-tone-3\"}", ts));
        answer =
                sim_sl_call(r, body("reactions.get?channel=" SL_GENERAL "&timestamp=%s", ts), NULL);
        first = json_array_get(json_object_get(json_object_get(answer, "message"), "reactions"), 0);
        assert_string_equal(json_str(first, "name", ""), "eyes");
        assert_int_equal(json_int(first, "count", 0), 1);
        json_decref(answer);
        sim_sl_ok(r, "reactions.remove", path);
        sim_sl_refused(r, "reactions.remove", path, "no_reaction");
        free(path);
        sim_sl_ok(r, "pins.add", body(IN_GENERAL "\"timestamp\":\"%s\"}", ts));
        sim_sl_refused(r, "pins.add", body(IN_GENERAL "\"timestamp\":\"%s\"}", ts),
                       "already_pinned");
        sim_sl_ok(r, "pins.remove", body(IN_GENERAL "\"timestamp\":\"%s\"}", ts));
}

static void conversations_are_listed_in_pages(void **state)
{
        struct sim_rig *r = *state;
        json_t *answer;
        char *path;

        for (int i = 0; i < 5; i++)
                sim_rig_control_ok(r, "channels", body("{\"name\":\"c%d\"}", i));
        answer = sim_sl_call(r, "conversations.list?limit=4", NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "channels")), 4);
        path = mem_printf("conversations.list?limit=4&cursor=%s", cursor(answer));
        json_decref(answer);
        answer = sim_sl_call(r, path, NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "channels")), 2);
        assert_string_equal(cursor(answer), "");
        json_decref(answer);
        free(path);
        sim_sl_refused(r, "conversations.list?types=secret", NULL, "invalid_types");
        /* a short page is not the last one */
        sim_rig_control_ok(r, "settings", "{\"page_max\":1}");
        answer = sim_sl_call(r, "users.conversations?limit=4&user=" SL_ADA, NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "channels")), 1);
        assert_string_not_equal(cursor(answer), "");
        json_decref(answer);
        sim_rig_control_ok(r, "settings", "{\"page_max\":0}");
        sim_sl_refused(r, "users.conversations?user=U9", NULL, "user_not_found");
        /* people of another workspace are not of this one */
        sim_rig_control_ok(r, "teams", "{\"id\":\"T2\",\"name\":\"Other\"}");
        sim_rig_control_ok(r, "users", "{\"id\":\"U2EVE\",\"name\":\"eve\",\"team\":\"T2\"}");
        answer = sim_sl_call(r, "users.list", NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "members")), 2);
        json_decref(answer);
        answer = sim_sl_call(r, "users.info?user=U2EVE", NULL);
        assert_string_equal(json_str(json_object_get(answer, "user"), "team_id", ""), "T2");
        json_decref(answer);
}

static void conversations_are_opened_and_joined(void **state)
{
        struct sim_rig *r = *state;
        json_t *answer, *again;

        sim_rig_control_ok(r, "users", "{\"id\":\"U0BOB\",\"name\":\"bob\"}");
        answer = sim_sl_call(r, "conversations.open", "{\"users\":\"" SL_ADA "\"}");
        again = sim_sl_call(r, "conversations.open", "{\"users\":\"" SL_ADA "\"}");
        assert_true(json_flag(again, "already_open", false));
        assert_true(
                json_equal(json_object_get(answer, "channel"), json_object_get(again, "channel")));
        json_decref(answer);
        json_decref(again);
        answer = sim_sl_call(r, "conversations.open",
                             "{\"users\":\"" SL_ADA ",U0BOB\",\"return_im\":true}");
        assert_true(json_flag(json_object_get(answer, "channel"), "is_mpim", false));
        json_decref(answer);
        sim_sl_refused(r, "conversations.open", "{}", "users_list_not_supplied");
        sim_sl_refused(r, "conversations.open", "{\"users\":\"U9\"}", "user_not_found");
        sim_rig_control_ok(r, "channels",
                           "{\"id\":\"C0PUBLIC1\",\"name\":\"other\",\"without_app\":true}");
        sim_sl_ok(r, "conversations.join", "{\"channel\":\"C0PUBLIC1\"}");
        answer = sim_sl_call(r, "conversations.join", "{\"channel\":\"C0PUBLIC1\"}");
        assert_string_equal(json_str(answer, "warning", ""), "already_in_channel");
        json_decref(answer);
        assert_int_equal(sim_sl_count(r, "join"), 1);
        answer = sim_sl_call(r, "conversations.members?channel=C0PUBLIC1", NULL);
        assert_int_equal(json_array_size(json_object_get(answer, "members")), 2);
        json_decref(answer);
        sim_sl_ok(r, "conversations.mark", IN_GENERAL "\"ts\":\"1700000000.000100\"}");
}

static void the_oldest_messages_are_dropped(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_channel *c = sl_channel_find(w, SL_GENERAL);
        struct slack_message *last = NULL;

        w->base.keep_messages = 16;
        for (int i = 0; i < 100; i++) {
                last = sl_message_new(c, sl_user_find(w, SL_ADA), "x");
                sl_message_post(w, last);
                assert_true(c->count <= 16);
        }
        assert_ptr_equal(sl_message_find(c, last->ts), last);
        assert_true(c->messages[0]->us < last->us);
}

/* ---- growing messages ---- */

static void start_stream(struct sim_rig *r, const char *root, char out[SL_TS_SIZE])
{
        json_t *answer = sim_sl_call(r, "chat.startStream",
                                     body(IN_GENERAL "\"thread_ts\":\"%s\",\"markdown_text\":\"a\","
                                                     "\"recipient_user_id\":\"" SL_ADA
                                                     "\",\"recipient_team_id\":\"T0SIMULATOR\"}",
                                          root));

        assert_string_equal(json_str(answer, "error", ""), "");
        snprintf(out, SL_TS_SIZE, "%s", json_str(answer, "ts", ""));
        json_decref(answer);
}

static void a_stream_grows_until_it_is_stopped(void **state)
{
        struct sim_rig *r = *state;
        char root[SL_TS_SIZE], ts[SL_TS_SIZE];
        const struct slack_message *m;
        json_t *answer;

        sim_sl_post(r, "root", root);
        start_stream(r, root, ts);
        sim_sl_ok(r, "chat.appendStream",
                  body(IN_GENERAL "\"ts\":\"%s\",\"markdown_text\":\"b\"}", ts));
        sim_sl_ok(r, "chat.appendStream",
                  body(IN_GENERAL "\"ts\":\"%s\",\"chunks\":[{\"type\":\"markdown_text\","
                                  "\"text\":\"c\"},{\"type\":\"task_update\",\"id\":\"1\","
                                  "\"title\":\"t\",\"status\":\"in_progress\"}]}",
                       ts));
        sim_sl_refused(r, "chat.appendStream",
                       body(IN_GENERAL "\"ts\":\"%s\",\"chunks\":[{\"type\":\"task_update\","
                                       "\"id\":\"1\",\"status\":\"lost\"}]}",
                            ts),
                       "invalid_chunks");
        sim_sl_refused(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"x\"}", ts),
                       "streaming_state_conflict");
        answer = sim_sl_call(r, "chat.stopStream",
                             body(IN_GENERAL "\"ts\":\"%s\",\"markdown_text\":\"d\",\"metadata\":{"
                                             "\"event_type\":\"e\",\"event_payload\":{}}}",
                                  ts));
        assert_string_equal(json_str(json_object_get(answer, "message"), "text", ""), "abcd");
        json_decref(answer);
        sim_sl_refused(r, "chat.appendStream",
                       body(IN_GENERAL "\"ts\":\"%s\",\"markdown_text\":\"b\"}", ts),
                       "message_not_in_streaming_state");
        sim_sl_ok(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"whole\"}", ts));
        m = sl_message_find(sl_channel_find(sim_sl_world(r), SL_GENERAL), ts);
        assert_string_equal(m->text, "whole");
        assert_int_equal(json_array_size(m->chunks), 1);
        assert_int_equal(sim_sl_count(r, "stream"), 1);
        assert_int_equal(sim_sl_count(r, "append"), 2);
}

static void a_stream_needs_a_thread_and_a_recipient(void **state)
{
        struct sim_rig *r = *state;
        char root[SL_TS_SIZE];

        sim_sl_post(r, "root", root);
        sim_sl_refused(r, "chat.startStream", IN_GENERAL "\"markdown_text\":\"a\"}",
                       "invalid_thread_ts");
        sim_sl_refused(r, "chat.startStream", body(IN_GENERAL "\"thread_ts\":\"%s\"}", root),
                       "missing_recipient_user_id");
        sim_sl_refused(
                r, "chat.startStream",
                body(IN_GENERAL "\"thread_ts\":\"%s\",\"recipient_user_id\":\"" SL_ADA "\"}", root),
                "missing_recipient_team_id");
        sim_rig_control_ok(r, "settings", "{\"streams\":false}");
        sim_sl_refused(r, "chat.startStream", body(IN_GENERAL "\"thread_ts\":\"%s\"}", root),
                       "unknown_method");
}

static void streams_end_with_time_or_by_a_person(void **state)
{
        struct sim_rig *r = *state;
        char root[SL_TS_SIZE], ts[SL_TS_SIZE];
        struct slack_message *m;

        sim_sl_post(r, "root", root);
        start_stream(r, root, ts);
        m = sl_message_find(sl_channel_find(sim_sl_world(r), SL_GENERAL), ts);
        sim_sl_refused(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"b\"}", ts),
                       "streaming_state_conflict");
        m->stream_at_ms -= 31000;
        sim_sl_ok(r, "chat.update", body(IN_GENERAL "\"ts\":\"%s\",\"text\":\"b\"}", ts));
        sim_sl_refused(r, "chat.appendStream",
                       body(IN_GENERAL "\"ts\":\"%s\",\"markdown_text\":\"b\"}", ts),
                       "message_not_in_streaming_state");
        start_stream(r, root, ts);
        sim_rig_control_ok(r, "stop_stream", body("{\"message_id\":\"%s\"}", ts));
        sim_sl_refused(r, "chat.appendStream",
                       body(IN_GENERAL "\"ts\":\"%s\",\"markdown_text\":\"b\"}", ts),
                       "stopped_by_user");
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, sim_sl_setup, sim_sl_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(each_wrong_token_has_its_error),
                ROW(a_missing_scope_names_what_is_needed),
                ROW(arguments_are_checked_by_the_description),
                ROW(forms_and_json_are_told_apart),
                ROW(posts_go_where_the_app_may_write),
                ROW(long_and_empty_texts_are_refused),
                ROW(text_must_be_escaped),
                ROW(blocks_have_slacks_limits),
                ROW(metadata_is_shown_on_request_only),
                ROW(only_own_messages_can_be_changed),
                ROW(ephemeral_messages_reach_one_person_and_stay_nowhere),
                ROW(history_is_read_in_pages_newest_first),
                ROW(replies_are_read_oldest_first_after_their_root),
                ROW(reactions_are_added_once),
                ROW(conversations_are_listed_in_pages),
                ROW(conversations_are_opened_and_joined),
                ROW(the_oldest_messages_are_dropped),
                ROW(a_stream_grows_until_it_is_stopped),
                ROW(a_stream_needs_a_thread_and_a_recipient),
                ROW(streams_end_with_time_or_by_a_person),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
