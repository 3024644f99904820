/*
 * The simulated Slack: files, modals, response URLs, Assistant threads, rate limits, faults.
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
#include "sim/slack/sl_interactions.h"

#define IN_GENERAL "{\"channel\":\"" SL_GENERAL "\","
#define POST       IN_GENERAL "\"text\":\"x\"}"
#define MODAL                                                                                    \
        "{\"type\":\"modal\",\"title\":{\"type\":\"plain_text\",\"text\":\"Form\"},\"blocks\":[" \
        "{\"type\":\"divider\"}]}"

static const char *body(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *body(const char *fmt, ...)
{
        static char text[4000];
        va_list ap;

        va_start(ap, fmt);
        assert_true(vsnprintf(text, sizeof(text), fmt, ap) < (int)sizeof(text));
        va_end(ap);
        return text;
}

/* The path of an address of the simulator. */
static const char *path_of(const struct sim_rig *r, const char *url)
{
        const char *base = sim_sl_world(r)->base_url;

        assert_true(strncmp(url, base, strlen(base)) == 0);
        return url + strlen(base);
}

static struct sim_answer ask(struct sim_rig *r, const char *method, const char *path,
                             const char *text)
{
        struct sim_answer a;

        sim_rig_start(r, &a, method, path, text);
        sim_rig_await(r, &a);
        return a;
}

/* ---- files ---- */

/* Asks for an upload of five bytes; out gets the file's id, url the address. */
static void begin_upload(struct sim_rig *r, char out[SL_ID_SIZE], char **url)
{
        json_t *answer =
                sim_sl_call(r, "files.getUploadURLExternal?filename=a%20b.txt&length=5", NULL);

        assert_string_equal(json_str(answer, "error", ""), "");
        snprintf(out, SL_ID_SIZE, "%s", json_str(answer, "file_id", ""));
        *url = mem_strdup(json_str(answer, "upload_url", ""));
        json_decref(answer);
}

static void a_file_is_shared_in_three_steps(void **state)
{
        struct sim_rig *r = *state;
        char id[SL_ID_SIZE], *url;
        json_t *answer, *share;
        const struct slack_channel *c = sl_channel_find(sim_sl_world(r), SL_GENERAL);

        begin_upload(r, id, &url);
        sim_sl_refused(r, "files.completeUploadExternal", body("{\"files\":[{\"id\":\"%s\"}]}", id),
                       "file_not_uploaded");
        assert_int_equal(ask(r, NULL, path_of(r, url), "1234").status, 400);
        assert_int_equal(ask(r, NULL, path_of(r, url), "12345").status, 200);
        assert_int_equal(ask(r, NULL, "/upload/v1/other", "12345").status, 404);
        free(url);
        sim_sl_refused(r, "files.info", NULL, "invalid_arguments");
        sim_sl_refused(r, body("files.info?file=%s", id), NULL, "file_not_found");
        answer = sim_sl_call(
                r, "files.completeUploadExternal",
                body("{\"files\":[{\"id\":\"%s\",\"title\":\"T\"}],\"channel_id\":\"" SL_GENERAL
                     "\",\"initial_comment\":\"look\"}",
                     id));
        share = json_array_get(json_object_get(answer, "files"), 0);
        assert_string_equal(json_str(share, "title", ""), "T");
        assert_null(json_object_get(share, "shares")); /* where it went is asked later */
        json_decref(answer);
        sim_sl_refused(r, "files.completeUploadExternal", body("{\"files\":[{\"id\":\"%s\"}]}", id),
                       "file_not_found"); /* once only */
        while (c->count == 0)             /* the message comes after the answer */
                loop_step(r->loop, true);
        answer = sim_sl_call(r, body("files.info?file=%s", id), NULL);
        share = json_object_get(json_object_get(json_object_get(answer, "file"), "shares"),
                                "public");
        share = json_array_get(json_object_get(share, SL_GENERAL), 0);
        assert_string_equal(json_str(share, "ts", ""), c->messages[0]->ts);
        json_decref(answer);
        answer = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        share = json_array_get(json_object_get(answer, "messages"), 0);
        assert_string_equal(json_str(share, "text", ""), "look");
        share = json_array_get(json_object_get(share, "files"), 0);
        assert_string_equal(json_str(share, "name", ""), "a_b.txt");
        assert_int_equal(json_int(share, "size", 0), 5);
        json_decref(answer);
        sim_sl_ok(r, "files.delete", body("{\"file\":\"%s\"}", id));
        sim_sl_refused(r, body("files.info?file=%s", id), NULL, "file_deleted");
}

/* Without a token there is Slack's login page, which is no JSON. */
static void a_private_download_needs_the_token(void **state)
{
        static const char *const none[] = { NULL };
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_file *f = sl_file_add(w, sl_user_find(w, SL_ADA), "a.json", NULL, "{}", 2);
        json_t *shown = sl_render_file(w, f);
        const char *path = path_of(r, json_str(shown, "url_private_download", ""));
        const char *const *headers = r->headers;
        struct sim_answer a = ask(r, NULL, path, NULL);

        assert_int_equal(a.status, 200);
        assert_true(json_is_object(a.body));
        json_decref(a.body);
        r->headers = none;
        a = ask(r, NULL, path, NULL);
        assert_int_equal(a.status, 200);
        assert_null(a.body);
        r->headers = headers;
        sim_rig_control_ok(r, "apps", "{\"without_scopes\":[\"files:read\"]}");
        assert_null(ask(r, NULL, path, NULL).body);
        json_decref(shown);
}

/* An event names a file of another workspace; files.info has the rest. */
static void a_file_of_a_shared_channel_must_be_asked_for(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_channel *c = sl_channel_find(w, SL_GENERAL);
        struct slack_user *eve =
                sl_user_make(w, sl_team_make(w, "T2", "Other"), "U2EVE", "eve", NULL);
        struct slack_file *f = sl_file_add(w, eve, "a.txt", NULL, "a", 1);
        struct slack_message *m = sl_message_new(c, eve, "look");
        json_t *event, *answer;

        c->shared = true;
        m->files = json_pack("[s]", f->id);
        sim_sl_refused(r, body("files.info?file=%s", f->id), NULL, "file_not_found");
        sl_file_share(f, m);
        sl_message_post(w, m);
        event = sl_render_message(w, m, SLACK_RENDER_EVENT);
        assert_string_equal(
                json_str(json_array_get(json_object_get(event, "files"), 0), "file_access", ""),
                "check_file_info");
        answer = sim_sl_call(r, body("files.info?file=%s", f->id), NULL);
        assert_string_equal(json_str(json_object_get(answer, "file"), "name", ""), "a.txt");
        json_decref(event);
        json_decref(answer);
}

/* ---- modals and response URLs ---- */

static void a_trigger_opens_one_modal_for_a_while(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_user *ada = sl_user_find(w, SL_ADA);
        char *trigger = sl_trigger_new(w, w->apps, ada), *late = sl_trigger_new(w, w->apps, ada),
             *pushed = sl_trigger_new(w, w->apps, ada);
        json_t *answer;
        char *request = mem_printf("{\"trigger_id\":\"%s\",\"view\":" MODAL "}", trigger), *id;

        sim_rig_control_ok(r, "settings", "{\"trigger_ms\":600000}");
        sim_sl_refused(r, "views.open", "{\"trigger_id\":\"1.2.3\",\"view\":" MODAL "}",
                       "invalid_trigger_id");
        sim_sl_refused(r, "views.open",
                       body("{\"trigger_id\":\"%s\",\"view\":{\"type\":\"modal\"}}", trigger),
                       "invalid_arguments");
        answer = sim_sl_call(r, "views.open", request);
        id = mem_strdup(json_str(json_object_get(answer, "view"), "id", ""));
        assert_string_equal(sl_view_top(w, ada)->id, id);
        sim_sl_refused(r, "views.open", request, "exchanged_trigger_id");
        sim_sl_refused(r, "views.update",
                       body("{\"view_id\":\"%s\",\"hash\":\"old\",\"view\":" MODAL "}", id),
                       "hash_conflict");
        sim_sl_ok(r, "views.update", body("{\"view_id\":\"%s\",\"view\":" MODAL "}", id));
        sim_sl_refused(r, "views.update", "{\"view_id\":\"V9\",\"view\":" MODAL "}", "not_found");
        sim_sl_ok(r, "views.push", body("{\"trigger_id\":\"%s\",\"view\":" MODAL "}", pushed));
        assert_string_equal(sl_view_top(w, ada)->previous_id, id);
        sl_view_close(w, sl_view_top(w, ada), true);
        assert_null(sl_view_top(w, ada));
        sl_trigger_find(w, late)->made_ms -= 600001;
        sim_sl_refused(r, "views.open", body("{\"trigger_id\":\"%s\",\"view\":" MODAL "}", late),
                       "expired_trigger_id");
        json_decref(answer);
        free(id);
        free(request);
        free(trigger);
        free(late);
        free(pushed);
}

static void a_home_tab_is_published(void **state)
{
        struct sim_rig *r = *state;

        sim_sl_ok(r, "views.publish",
                  "{\"user_id\":\"" SL_ADA "\",\"view\":{\"type\":\"home\",\"blocks\":[]}}");
        sim_sl_ok(r, "views.publish",
                  "{\"user_id\":\"" SL_ADA "\",\"view\":{\"type\":\"home\",\"blocks\":[]}}");
        sim_sl_refused(r, "views.publish",
                       "{\"user_id\":\"U9\",\"view\":{\"type\":\"home\","
                       "\"blocks\":[]}}",
                       "user_not_found");
        assert_null(sim_sl_world(r)->views->next); /* one for each person */
}

static void answers_to_a_form_close_change_or_stack_it(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_user *ada = sl_user_find(w, SL_ADA);
        json_t *view = json_loads(MODAL, 0, NULL);
        struct slack_view *v = sl_view_open(w, w->apps, ada, view, NULL);
        json_t *push = json_pack("{s:s,s:o}", "response_action", "push", "view", view);
        json_t *clear = json_pack("{s:s}", "response_action", "clear");
        json_t *errors =
                json_pack("{s:s,s:{s:s}}", "response_action", "errors", "errors", "b", "too short");
        json_t *odd = json_pack("{s:s}", "response_action", "sing");
        struct error err = { 0 };

        assert_int_equal(sl_view_respond(w, v, errors, &err), 0);
        assert_int_equal(sl_view_respond(w, v, odd, &err), -1);
        assert_int_equal(sl_view_respond(w, v, push, &err), 0);
        assert_ptr_not_equal(sl_view_top(w, ada), v);
        assert_int_equal(sl_view_respond(w, sl_view_top(w, ada), NULL, &err), 0);
        assert_ptr_equal(sl_view_top(w, ada), v);
        assert_int_equal(sl_view_respond(w, v, clear, &err), 0);
        assert_null(sl_view_top(w, ada));
        json_decref(push);
        json_decref(clear);
        json_decref(errors);
        json_decref(odd);
}

static void a_response_url_takes_five_messages(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_channel *c = sl_channel_find(w, SL_GENERAL);
        char ts[SL_TS_SIZE], *url;
        struct sim_answer a;

        sim_sl_post(r, "press", ts);
        url = sl_hook_new(w, w->apps, c, sl_user_find(w, SL_ADA), sl_message_find(c, ts));
        assert_int_equal(ask(r, NULL, path_of(r, url), "{\"text\":\"one\"}").status, 200);
        assert_int_equal(sim_sl_count(r, "ephemeral"), 1);
        assert_int_equal(
                ask(r, NULL, path_of(r, url), "{\"text\":\"two\",\"response_type\":\"in_channel\"}")
                        .status,
                200);
        assert_int_equal(c->count, 2);
        assert_int_equal(
                ask(r, NULL, path_of(r, url), "{\"text\":\"three\",\"replace_original\":true}")
                        .status,
                200);
        assert_string_equal(sl_message_find(c, ts)->text, "three");
        a = ask(r, NULL, path_of(r, url), "{}");
        assert_int_equal(a.status, 400);
        assert_string_equal(json_str(a.body, "error", ""), "no_text");
        json_decref(a.body);
        assert_int_equal(ask(r, NULL, path_of(r, url), "{\"delete_original\":true}").status, 200);
        assert_null(sl_message_find(c, ts));
        a = ask(r, NULL, path_of(r, url), "{\"text\":\"six\"}");
        assert_int_equal(a.status, 404);
        assert_string_equal(json_str(a.body, "error", ""), "used_url");
        json_decref(a.body);
        a = ask(r, NULL, "/actions/T/1/secret", "{\"text\":\"x\"}");
        assert_int_equal(a.status, 404);
        json_decref(a.body);
        free(url);
}

/* ---- Assistant threads ---- */

static void a_status_lasts_until_the_next_message(void **state)
{
        struct sim_rig *r = *state;
        char ts[SL_TS_SIZE];
        const struct slack_channel *c = sl_channel_find(sim_sl_world(r), SL_GENERAL);

        sim_sl_post(r, "root", ts);
        sim_sl_refused(r, "assistant.threads.setStatus",
                       "{\"channel_id\":\"" SL_GENERAL
                       "\",\"thread_ts\":\"1.000001\",\"status\":\"is thinking\"}",
                       "invalid_thread_ts");
        sim_sl_ok(r, "assistant.threads.setStatus",
                  body("{\"channel_id\":\"" SL_GENERAL
                       "\",\"thread_ts\":\"%s\",\"status\":\"is thinking\"}",
                       ts));
        sim_sl_ok(r, "assistant.threads.setTitle",
                  body("{\"channel_id\":\"" SL_GENERAL "\",\"thread_ts\":\"%s\",\"title\":\"T\"}",
                       ts));
        sim_sl_ok(r, "assistant.threads.setSuggestedPrompts",
                  body("{\"channel_id\":\"" SL_GENERAL "\",\"thread_ts\":\"%s\",\"prompts\":[{"
                       "\"title\":\"a\",\"message\":\"b\"}]}",
                       ts));
        sim_sl_refused(r, "assistant.threads.setSuggestedPrompts",
                       body("{\"channel_id\":\"" SL_GENERAL
                            "\",\"thread_ts\":\"%s\",\"prompts\":[{\"title\":\"a\"}]}",
                            ts),
                       "invalid_arguments");
        assert_string_equal(json_str(map_get(&c->assistant, ts), "status", ""), "is thinking");
        sim_sl_ok(r, "chat.postMessage",
                  body(IN_GENERAL "\"text\":\"answer\",\"thread_ts\":\"%s\"}", ts));
        assert_null(json_object_get(map_get(&c->assistant, ts), "status"));
        assert_string_equal(json_str(map_get(&c->assistant, ts), "title", ""), "T");
        assert_int_equal(sim_sl_count(r, "status"), 1);
        sim_rig_control_ok(r, "settings", "{\"assistants\":false}");
        sim_sl_refused(r, "assistant.threads.setStatus", "{}", "unknown_method");
}

/* ---- limits and faults ---- */

static void each_method_has_a_limit_of_its_own(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "settings", "{\"limits\":true,\"tier_percent\":2}");
        sim_sl_ok(r, "conversations.info?channel=" SL_GENERAL, NULL); /* tier 3: one a minute */
        a = ask(r, NULL, "/api/conversations.info?channel=" SL_GENERAL, NULL);
        assert_int_equal(a.status, 429);
        assert_string_equal(json_str(a.body, "error", ""), "ratelimited");
        assert_in_range(strtol(a.retry_after, NULL, 10), 1, 60);
        json_decref(a.body);
        sim_sl_ok(r, "users.info?user=" SL_ADA, NULL);
        assert_int_equal(sim_sl_world(r)->limited_count, 1);
}

static void posts_are_limited_for_each_channel(void **state)
{
        struct sim_rig *r = *state;
        struct slack_channel *c = sl_channel_find(sim_sl_world(r), SL_GENERAL);
        struct sim_answer a;
        json_t *page;

        sim_rig_control_ok(r, "channels", "{\"id\":\"C0PUBLIC1\",\"name\":\"other\"}");
        sim_rig_control_ok(r, "settings",
                           "{\"limits\":true,\"post_burst\":2,\"posts_per_second\":0.001}");
        sim_sl_ok(r, "chat.postMessage", POST);
        sim_sl_ok(r, "chat.postMessage", POST);
        a = ask(r, NULL, "/api/chat.postMessage", POST);
        assert_int_equal(a.status, 429);
        assert_in_range(strtol(a.retry_after, NULL, 10), 1, 1000);
        json_decref(a.body);
        sim_sl_ok(r, "chat.postMessage", "{\"channel\":\"C0PUBLIC1\",\"text\":\"x\"}");
        /* apps other than a workspace's own read little, and rarely */
        sim_rig_control_ok(r, "settings", "{\"limits\":true,\"history_per_minute\":1}");
        while (c->count < 16)
                sl_message_post(sim_sl_world(r), sl_message_new(c, NULL, "x"));
        page = sim_sl_call(r, "conversations.history?channel=" SL_GENERAL, NULL);
        assert_int_equal(json_array_size(json_object_get(page, "messages")), 15);
        assert_true(json_flag(page, "has_more", false));
        json_decref(page);
        a = ask(r, NULL, "/api/conversations.history?channel=" SL_GENERAL, NULL);
        assert_int_equal(a.status, 429);
        json_decref(a.body);
}

static void fault(struct sim_rig *r, const char *kind, const char *more)
{
        sim_rig_control_ok(r, "faults",
                           body("{\"kind\":\"%s\",\"method\":\"chat.postMessage\"%s}", kind, more));
}

static void faults_lose_delay_or_garble_answers(void **state)
{
        struct sim_rig *r = *state;
        const struct slack_channel *c = sl_channel_find(sim_sl_world(r), SL_GENERAL);
        struct sim_answer a;

        fault(r, "cut_before", "");
        assert_int_equal(ask(r, NULL, "/api/chat.postMessage", POST).status, 0);
        assert_int_equal(c->count, 0);
        fault(r, "cut_after", "");
        assert_int_equal(ask(r, NULL, "/api/chat.postMessage", POST).status, 0);
        assert_int_equal(c->count, 1);
        fault(r, "error", ",\"status\":500");
        a = ask(r, NULL, "/api/chat.postMessage", POST);
        assert_int_equal(a.status, 500);
        assert_null(a.body); /* a page */
        assert_int_equal(c->count, 1);
        fault(r, "error_after", ",\"status\":503");
        assert_int_equal(ask(r, NULL, "/api/chat.postMessage", POST).status, 503);
        assert_int_equal(c->count, 2);
        fault(r, "error_after", ",\"status\":200");
        sim_sl_refused(r, "chat.postMessage", POST, "internal_error");
        assert_int_equal(c->count, 3);
        fault(r, "refuse", ",\"description\":\"fatal_error\"");
        sim_sl_refused(r, "chat.postMessage", POST, "fatal_error");
        assert_int_equal(c->count, 3);
        fault(r, "bad_json", "");
        assert_null(ask(r, NULL, "/api/chat.postMessage", POST).body);
        fault(r, "truncate", "");
        assert_null(ask(r, NULL, "/api/chat.postMessage", POST).body);
        assert_int_equal(c->count, 5);
        fault(r, "flood", ",\"retry_after\":7");
        a = ask(r, NULL, "/api/chat.postMessage", POST);
        assert_int_equal(a.status, 429);
        assert_string_equal(a.retry_after, "7");
        json_decref(a.body);
        fault(r, "slow", ",\"ms\":20");
        sim_sl_ok(r, "chat.postMessage", POST);
        fault(r, "slow", ",\"ms\":1");
        fault(r, "late", ",\"ms\":20"); /* together: no answer is left to be slow */
        assert_int_equal(ask(r, NULL, "/api/chat.postMessage", POST).status, 0);
        assert_int_equal(c->count, 6);
        while (c->count == 6)
                loop_step(r->loop, true);
        sim_sl_ok(r, "chat.postMessage", POST);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, sim_sl_setup, sim_sl_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROW(a_file_is_shared_in_three_steps),
                ROW(a_private_download_needs_the_token),
                ROW(a_file_of_a_shared_channel_must_be_asked_for),
                ROW(a_trigger_opens_one_modal_for_a_while),
                ROW(a_home_tab_is_published),
                ROW(answers_to_a_form_close_change_or_stack_it),
                ROW(a_response_url_takes_five_messages),
                ROW(a_status_lasts_until_the_next_message),
                ROW(each_method_has_a_limit_of_its_own),
                ROW(posts_are_limited_for_each_channel),
                ROW(faults_lose_delay_or_garble_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
