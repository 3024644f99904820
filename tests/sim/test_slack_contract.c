/*
 * The answers of the simulated Slack fit the schemas that Slack published for them. The document is
 * of 2021: members it does not know are allowed, those it requires must be there.
 */
#include <regex.h>
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

static json_t *spec, *supplement;
static char misfit[300]; /* the first member that does not fit */

static int read_spec(void **state)
{
        (void)state;
        spec = json_load_file("tests/data/slack_web_openapi_v2.json", 0, NULL);
        supplement = json_load_file("tests/data/slack_supplement.json", 0, NULL);
        return spec && supplement ? 0 : -1;
}

static int drop_spec(void **state)
{
        (void)state;
        json_decref(spec);
        json_decref(supplement);
        return 0;
}

static bool fits(const json_t *schema, const json_t *value, const char *where);

static bool complain(const char *where, const char *why)
{
        snprintf(misfit, sizeof(misfit), "%s %s", where, why);
        return false;
}

/* Slack writes choices as "items" or "anyOf" without a type. */
static bool any_fits(const json_t *schemas, const json_t *value, const char *where)
{
        for (size_t i = 0; i < json_array_size(schemas); i++) {
                if (fits(json_array_get(schemas, i), value, where))
                        return true;
        }
        return false;
}

static bool matches(const char *pattern, const char *text)
{
        char translated[200];
        size_t n = 0;
        regex_t re;
        bool yes;

        for (const char *p = pattern; *p && n + 6 < sizeof(translated); p++) {
                if (p[0] == '\\' && p[1] == 'd') {
                        memcpy(translated + n, "[0-9]", 5);
                        n += 5;
                        p++;
                } else {
                        translated[n++] = *p;
                }
        }
        translated[n] = '\0';
        assert_int_equal(regcomp(&re, translated, REG_EXTENDED | REG_NOSUB), 0);
        yes = regexec(&re, text, 0, NULL, 0) == 0;
        regfree(&re);
        return yes;
}

static bool object_fits(const json_t *schema, const json_t *value, const char *where)
{
        const json_t *required = json_object_get(schema, "required"), *name;
        json_t *below;
        const char *key;
        char path[200];
        size_t i;

        if (!json_is_object(value))
                return complain(where, "is no object");
        json_array_foreach(required, i, name) {
                if (!json_object_get(value, json_string_value(name))) {
                        snprintf(path, sizeof(path), "%.90s/%.90s", where, json_string_value(name));
                        return complain(path, "is missing");
                }
        }
        json_object_foreach(json_object_get(schema, "properties"), key, below) {
                const json_t *member = json_object_get(value, key);

                snprintf(path, sizeof(path), "%.90s/%.90s", where, key);
                if (member && !fits(below, member, path))
                        return false;
        }
        return true;
}

static bool is_type(const char *type, const json_t *value)
{
        return strcmp(type, "string") == 0    ? json_is_string(value)
               : strcmp(type, "integer") == 0 ? json_is_integer(value)
               : strcmp(type, "number") == 0  ? json_is_number(value)
               : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
               : strcmp(type, "null") == 0    ? json_is_null(value)
                                              : true;
}

static bool fits(const json_t *schema, const json_t *value, const char *where)
{
        const char *ref = json_str(schema, "$ref", NULL), *type = json_str(schema, "type", NULL),
                   *pattern = json_str(schema, "pattern", NULL);
        const json_t *items = json_object_get(schema, "items"), *item;
        size_t i;

        if (ref)
                return fits(json_object_get(json_object_get(spec, "definitions"),
                                            strrchr(ref, '/') + 1),
                            value, where);
        if (json_object_get(schema, "anyOf"))
                return any_fits(json_object_get(schema, "anyOf"), value, where);
        if (json_is_array(items))
                return any_fits(items, value, where);
        if (json_object_get(schema, "properties") || (type && strcmp(type, "object") == 0))
                return object_fits(schema, value, where);
        if (type && strcmp(type, "array") == 0) {
                if (!json_is_array(value))
                        return complain(where, "is no list");
                json_array_foreach(value, i, item) {
                        if (items && !fits(items, item, where))
                                return false;
                }
                return true;
        }
        if (type && !is_type(type, value))
                return complain(where, "has another type");
        return !pattern || !json_is_string(value) || matches(pattern, json_string_value(value))
                       ? true
                       : complain(where, "does not match its pattern");
}

/* Calls a method, whose answer must fit; yours. */
static json_t *fitting(struct sim_rig *r, const char *method, const char *body)
{
        char *path = mem_printf("/%.*s", (int)strcspn(method, "?"), method);
        json_t *answer = sim_sl_call(r, method, body);
        const json_t *operations = json_object_get(json_object_get(spec, "paths"), path);
        const json_t *operation = json_object_get(operations, "post");
        const json_t *schema;

        if (!operation)
                operation = json_object_get(operations, "get");
        schema =
                json_object_get(json_object_get(json_object_get(operation, "responses"),
                                                json_flag(answer, "ok", false) ? "200" : "default"),
                                "schema");
        assert_non_null(schema);
        misfit[0] = '\0';
        if (!fits(schema, answer, path))
                fail_msg("%s: %s", method, misfit);
        free(path);
        return answer;
}

static void check(struct sim_rig *r, const char *method, const char *body)
{
        json_t *answer = fitting(r, method, body);

        assert_string_equal(json_str(answer, "error", ""), "");
        json_decref(answer);
}

static void answers_about_people_and_places_fit(void **state)
{
        struct sim_rig *r = *state;

        check(r, "auth.test", NULL);
        check(r, "users.info?user=" SL_ADA, NULL);
        check(r, "users.info?user=" SL_BOT, NULL);
        check(r, "users.list", NULL);
        check(r, "users.conversations", NULL);
        check(r, "bots.info", NULL);
        check(r, "team.info", NULL);
        check(r, "conversations.info?channel=" SL_GENERAL, NULL);
        check(r, "conversations.list", NULL);
        check(r, "conversations.members?channel=" SL_GENERAL, NULL);
        check(r, "conversations.open", "{\"users\":\"" SL_ADA "\"}");
        check(r, "conversations.open", "{\"users\":\"" SL_ADA "\",\"return_im\":true}");
        check(r, "conversations.list?types=im,mpim,private_channel", NULL);
        check(r, "conversations.join", "{\"channel\":\"" SL_GENERAL "\"}");
}

static void answers_about_messages_fit(void **state)
{
        struct sim_rig *r = *state;
        char ts[SL_TS_SIZE], *body;

        check(r, "chat.postMessage", "{\"channel\":\"" SL_GENERAL "\",\"text\":\"hi\"}");
        check(r, "chat.postEphemeral",
              "{\"channel\":\"" SL_GENERAL "\",\"user\":\"" SL_ADA "\",\"text\":\"hi\"}");
        sim_sl_post(r, "root", ts);
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"text\":\"hi\",\"thread_ts\":\"%s\"}",
                          ts);
        check(r, "chat.postMessage", body);
        free(body);
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"timestamp\":\"%s\",\"name\":\"eyes\"}",
                          ts);
        check(r, "reactions.add", body);
        free(body);
        body = mem_printf("reactions.get?channel=" SL_GENERAL "&timestamp=%s", ts);
        check(r, body, NULL);
        free(body);
        body = mem_printf("chat.getPermalink?channel=" SL_GENERAL "&message_ts=%s", ts);
        check(r, body, NULL);
        free(body);
        check(r, "conversations.history?channel=" SL_GENERAL "&include_all_metadata=true", NULL);
        body = mem_printf("conversations.replies?channel=" SL_GENERAL "&ts=%s", ts);
        check(r, body, NULL);
        free(body);
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"ts\":\"%s\",\"text\":\"new\"}", ts);
        check(r, "chat.update", body);
        free(body);
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"ts\":\"%s\"}", ts);
        check(r, "chat.delete", body);
        free(body);
}

/* Of methods that are newer than the description: the members our supplement lists. */
static void check_new(struct sim_rig *r, const char *method, const char *body)
{
        char *name = mem_strndup(method, strcspn(method, "?"));
        const json_t *about = json_object_get(json_object_get(supplement, "methods"), name);
        json_t *answer = sim_sl_call(r, method, body), *type;
        const char *key;

        assert_non_null(about);
        assert_string_equal(json_str(answer, "error", ""), "");
        json_object_foreach(json_object_get(about, "returns"), key, type) {
                const json_t *member = json_object_get(answer, key);

                assert_true(strcmp(json_string_value(type), "array") == 0 ? json_is_array(member)
                                                                          : json_is_string(member));
        }
        json_decref(answer);
        free(name);
}

static void answers_of_newer_methods_fit(void **state)
{
        static const char *const app_level[] = { "Authorization: Bearer xapp-test", NULL };
        struct sim_rig *r = *state;
        const char *const *headers = r->headers;
        struct slack_world *w = sim_sl_world(r);
        struct slack_file *f;
        char ts[SL_TS_SIZE], *body;

        sim_sl_post(r, "root", ts);
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"thread_ts\":\"%s\","
                          "\"recipient_user_id\":\"" SL_ADA "\",\"recipient_team_id\":\"T1\"}",
                          ts);
        check_new(r, "chat.startStream", body);
        free(body);
        memcpy(ts, sl_channel_find(w, SL_GENERAL)->messages[1]->ts, sizeof(ts));
        body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"ts\":\"%s\",\"markdown_text\":\"x\"}",
                          ts);
        check_new(r, "chat.appendStream", body);
        check_new(r, "chat.stopStream", body);
        free(body);
        check_new(r, "files.getUploadURLExternal?filename=a.txt&length=1", NULL);
        f = sl_file_add(w, w->apps->user, "b.txt", NULL, "b", 1);
        f->complete = false; /* as after its upload */
        body = mem_printf("{\"files\":[{\"id\":\"%s\"}]}", f->id);
        check_new(r, "files.completeUploadExternal", body);
        free(body);
        r->headers = app_level;
        check_new(r, "apps.connections.open", NULL);
        r->headers = headers;
}

static void answers_about_files_fit(void **state)
{
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct slack_file *f = sl_file_add(w, w->apps->user, "b.txt", NULL, "b", 1);
        struct slack_message *m = sl_message_new(
                sl_channel_im(w->apps, sl_user_find(w, SL_ADA), true), w->apps->user, "look");
        char *path = mem_printf("files.info?file=%s", f->id);
        json_t *answer;

        m->files = json_pack("[s]", f->id);
        sl_file_share(f, m);
        sl_message_post(w, m);
        answer = fitting(r, path, NULL);
        assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "file"), "ims")),
                         1);
        json_decref(answer);
        free(path);
        path = mem_printf("conversations.history?channel=%s", m->channel->id);
        check(r, path, NULL);
        free(path);
}

static void refusals_fit(void **state)
{
        static const struct {
                const char *method, *body;
        } rows[] = {
                { "users.info?user=U9", NULL },
                { "conversations.info?channel=C9", NULL },
                { "conversations.history?channel=C9", NULL },
                { "chat.postMessage", "{\"channel\":\"C9\",\"text\":\"hi\"}" },
                { "chat.postMessage", "{\"channel\":\"" SL_GENERAL "\"}" },
                { "chat.update", "{\"channel\":\"" SL_GENERAL "\",\"ts\":\"1.2\",\"text\":\"x\"}" },
                { "reactions.add",
                  "{\"channel\":\"" SL_GENERAL "\",\"timestamp\":\"1.2\",\"name\":\"eyes\"}" },
                { "files.info?file=F9", NULL },
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *answer = fitting(r, rows[i].method, rows[i].body);

                assert_false(json_flag(answer, "ok", true));
                json_decref(answer);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(answers_about_people_and_places_fit, sim_sl_setup,
                                                sim_sl_teardown),
                cmocka_unit_test_setup_teardown(answers_about_messages_fit, sim_sl_setup,
                                                sim_sl_teardown),
                cmocka_unit_test_setup_teardown(answers_of_newer_methods_fit, sim_sl_setup,
                                                sim_sl_teardown),
                cmocka_unit_test_setup_teardown(answers_about_files_fit, sim_sl_setup,
                                                sim_sl_teardown),
                cmocka_unit_test_setup_teardown(refusals_fit, sim_sl_setup, sim_sl_teardown),
        };

        return cmocka_run_group_tests(tests, read_spec, drop_spec);
}
