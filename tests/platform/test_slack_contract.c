/*
 * What the adapter knows about Slack agrees with what Slack published: its methods and their
 * scopes and tiers, the errors that sending can meet, and messages as its examples show them. That
 * every call fits the description is checked by tests/exchanges/run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_send.h"

#define METHODS "src/platform/slack/sl_method.c" /* tests run in the project's folder */

static json_t *spec, *supplement;

static int read_specs(void **state)
{
        (void)state;
        spec = json_load_file("tests/data/slack_web_openapi_v2.json", 0, NULL);
        supplement = json_load_file("tests/data/slack_supplement.json", 0, NULL);
        return spec && supplement ? 0 : -1;
}

static int drop_specs(void **state)
{
        (void)state;
        json_decref(spec);
        json_decref(supplement);
        return 0;
}

/* ---- methods ---- */

/* The published operation of a method; NULL: it is newer. */
static const json_t *operation(const char *method)
{
        char *path = mem_printf("/%s", method);
        json_t *verbs = json_object_get(json_object_get(spec, "paths"), path);

        free(path);
        return json_object_iter_value(json_object_iter(verbs));
}

/* "chat:write:bot" was split in two since. */
static bool grants(const json_t *o, const char *scope)
{
        const json_t *scopes =
                json_object_get(json_array_get(json_object_get(o, "security"), 0), "slackAuth");

        for (size_t i = 0; i < json_array_size(scopes); i++)
                if (strncmp(json_string_value(json_array_get(scopes, i)), scope, strlen(scope)) ==
                    0)
                        return true;
        return strcmp(scope, "channels:join") == 0; /* was a part of channels:write */
}

static void check_method(const struct sl_method *m)
{
        const json_t *o = operation(m->name),
                     *newer = json_object_get(json_object_get(supplement, "methods"), m->name);
        static const int tiers[] = { 0, 1, 20, 50, 100 };
        int64_t tier = json_int(newer, "tier", -1);

        if (!o && !newer)
                fail_msg("Slack has published no method '%s'", m->name);
        if (o && m->scope && !grants(o, m->scope))
                fail_msg("'%s' does not permit %s", m->scope, m->name);
        if (!o && json_str(newer, "scope", NULL))
                assert_string_equal(m->scope, json_str(newer, "scope", NULL));
        if (tier > 0)
                assert_int_equal(m->tier, tiers[tier]);
        if (strcmp(json_str(newer, "encoding", ""), "form") == 0)
                assert_true(m->form);
}

static void every_method_is_published_with_its_scope(void **state)
{
        struct buf text;
        unsigned count = 0;

        (void)state;
        buf_init(&text, 0);
        assert_int_equal(file_read(METHODS, 1 << 20, &text, NULL), 0);
        for (const char *at = strstr(text.data, "{ \""); at; at = strstr(at + 1, "{ \"")) {
                char *name = mem_strndup(at + 3, strcspn(at + 3, "\""));
                const struct sl_method *m = sl_method_find(name);

                assert_non_null(m);
                check_method(m);
                free(name);
                count++;
        }
        assert_true(count > 30);
        buf_release(&text);
}

/* ---- errors ---- */

static const json_t *errors_of(const char *method)
{
        json_t *failure =
                json_object_get(json_object_get(operation(method), "responses"), "default");
        json_t *properties = json_object_get(json_object_get(failure, "schema"), "properties");

        return json_object_get(json_object_get(properties, "error"), "enum");
}

static enum send_outcome outcome_of(enum delivery_kind kind, bool creates, const char *error)
{
        struct sl_answer a = { .status = 200,
                               .error = error,
                               .reach = HTTP_ANSWERED,
                               .why = "as Slack says",
                               .retry_after_ms = -1 };
        struct send_result result;

        sl_outcome_read(kind, creates, &a, &result);
        return result.outcome;
}

static bool is_one_of(const char *text, const char *const *list)
{
        while (*list && strcmp(*list, text) != 0)
                list++;
        return *list != NULL;
}

/* Only Slack's own trouble leaves it open whether a message was posted; nothing is success. */
static void every_published_error_of_posting_has_an_outcome(void **state)
{
        static const char *const unsure[] = { "fatal_error", "internal_error", "request_timeout",
                                              "service_unavailable", NULL };
        static const char *const passing[] = { "rate_limited",     "ratelimited", "invalid_auth",
                                               "account_inactive", "not_authed",  "token_revoked",
                                               "token_expired",    NULL };
        const json_t *list = errors_of("chat.postMessage");

        (void)state;
        assert_true(json_array_size(list) > 15);
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *error = json_string_value(json_array_get(list, i));
                enum send_outcome expected = is_one_of(error, unsure)    ? SEND_UNSURE
                                             : is_one_of(error, passing) ? SEND_RETRY
                                                                         : SEND_REJECTED;

                if (outcome_of(DELIVER_SEND, true, error) != expected)
                        fail_msg("'%s' has outcome %d instead of %d", error,
                                 (int)outcome_of(DELIVER_SEND, true, error), (int)expected);
        }
}

/* What is repeated without harm is never unsure, and done when it is as wanted. */
static void every_published_error_of_changes_has_an_outcome(void **state)
{
        static const struct {
                const char *method;
                enum delivery_kind kind;
                const char *done; /* the error that means success; NULL: none */
        } rows[] = {
                { "chat.update", DELIVER_EDIT, NULL },
                { "chat.delete", DELIVER_DELETE, "message_not_found" },
                { "reactions.add", DELIVER_REACT, "already_reacted" },
                { "reactions.remove", DELIVER_UNREACT, "no_reaction" },
        };

        (void)state;
        for (size_t r = 0; r < COUNT(rows); r++) {
                const json_t *list = errors_of(rows[r].method);

                assert_true(json_array_size(list) > 5);
                for (size_t i = 0; i < json_array_size(list); i++) {
                        const char *error = json_string_value(json_array_get(list, i));
                        enum send_outcome outcome = outcome_of(rows[r].kind, false, error);

                        assert_int_not_equal(outcome, SEND_UNSURE);
                        if (rows[r].done && strcmp(error, rows[r].done) == 0)
                                assert_int_equal(outcome, SEND_DONE);
                }
                if (rows[r].done)
                        assert_int_equal(outcome_of(rows[r].kind, false, rows[r].done), SEND_DONE);
        }
}

/* ---- messages ---- */

static unsigned read_message(json_t *message)
{
        static const struct sl_event_context context = { .user = "U0BOT", .team = "T1" };
        struct intake_content content;
        json_t *payload = json_pack("{s:s, s:O}", "type", "event_callback", "event", message);
        const struct incoming *in;

        json_object_set_new(message, "channel", json_string("C1"));
        sl_event_read(&content, &context, SL_EVENT, payload, 0);
        in = content.events;
        if (content.event_count == 0)
                assert_non_null(content.ignored);
        else
                assert_string_equal(in->id, json_str(message, "ts", ""));
        if (content.event_count > 0) {
                assert_string_equal(in->channel, "C1");
                assert_true(in->time_ms > 0);
                if (*json_str(message, "user", ""))
                        assert_string_equal(in->sender_id, json_str(message, "user", ""));
        }
        intake_content_release(&content);
        json_decref(payload);
        return 1;
}

static unsigned read_examples(json_t *value)
{
        bool message = json_is_object(value) && json_str(value, "ts", NULL) &&
                       strcmp(json_str(value, "type", ""), "message") == 0;
        unsigned count = message ? read_message(value) : 0;
        const char *key;
        json_t *member;
        size_t i;

        json_object_foreach(value, key, member) {
                count += read_examples(member);
        }
        json_array_foreach(value, i, member) {
                count += read_examples(member);
        }
        return count;
}

static void published_messages_are_read(void **state)
{
        (void)state;
        assert_true(read_examples(json_object_get(spec, "paths")) > 8);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_method_is_published_with_its_scope),
                cmocka_unit_test(every_published_error_of_posting_has_an_outcome),
                cmocka_unit_test(every_published_error_of_changes_has_an_outcome),
                cmocka_unit_test(published_messages_are_read),
        };

        return cmocka_run_group_tests(tests, read_specs, drop_specs);
}
