/*
 * The manifest in docs/platforms/slack.md covers what the adapter uses: the scopes of the methods
 * it calls, and the events it reads. Names are found in the sources as quoted texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_api.h"

/* tests run in the project's folder */
#define MANUAL  "docs/platforms/slack.md"
#define SOURCES "src/platform/slack/*.c"
#define READERS "src/platform/slack/sl_{event,intake,assistant}.c"
#define EVENTS  "tests/data/slack_events_api_async_v1.json"

typedef void name_fn(const char *name, void *arg);

static struct buf read_file(const char *path)
{
        struct buf b;

        buf_init(&b, 0);
        assert_int_equal(file_read(path, 1 << 20, &b, NULL), 0);
        return b;
}

static json_t *read_manifest(void)
{
        struct buf manual = read_file(MANUAL);
        const char *at = strstr(manual.data, "```json\n"), *end = at ? strstr(at, "\n```") : NULL;
        json_error_t problem;
        json_t *manifest;

        assert_non_null(end);
        at += strlen("```json\n");
        manifest = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, &problem);
        assert_non_null(manifest);
        buf_release(&manual);
        return manifest;
}

static json_t *at_path(json_t *value, const char *const *path)
{
        while (*path) {
                value = json_object_get(value, *path++);
                assert_non_null(value);
        }
        return value;
}

#define AT(manifest, ...) at_path(manifest, (const char *const[]){ __VA_ARGS__, NULL })

static bool has(const json_t *list, const char *text)
{
        for (size_t i = 0; i < json_array_size(list); i++)
                if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
                        return true;
        return false;
}

static void each_name(const char *text, name_fn *take, void *arg)
{
        while ((text = strchr(text, '"'))) {
                size_t n = strspn(text + 1, "abcdefghijklmnopqrstuvwxyzLUERSTP._");

                if (n > 0 && n < 60 && text[1 + n] == '"') {
                        char *name = mem_strndup(text + 1, n);

                        take(name, arg);
                        free(name);
                }
                text++;
        }
}

/* Calls take with every quoted name in the sources, except in the table of methods. */
static void each_quoted(const char *sources, name_fn *take, void *arg)
{
        glob_t found;

        assert_int_equal(glob(sources, GLOB_BRACE, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++) {
                struct buf text;

                if (strstr(found.gl_pathv[i], "sl_method.c"))
                        continue;
                text = read_file(found.gl_pathv[i]);
                each_name(text.data, take, arg);
                buf_release(&text);
        }
        globfree(&found);
}

struct search {
        const json_t *granted, *known;
        unsigned count;
};

static void check_method(const char *name, void *arg)
{
        const struct sl_method *method = sl_method_find(name);
        struct search *s = arg;

        if (!method)
                return;
        s->count++;
        if (!method->app_level && method->scope && !has(s->granted, method->scope))
                fail_msg("%s needs the scope '%s', which the manifest of %s lacks", name,
                         method->scope, MANUAL);
}

static void the_scopes_of_all_methods_are_granted(void **state)
{
        json_t *manifest = read_manifest();
        struct search s = { .granted = AT(manifest, "oauth_config", "scopes", "bot") };

        (void)state;
        each_quoted(SOURCES, check_method, &s);
        assert_true(s.count > 0);
        json_decref(manifest);
}

/* A channel's kind decides which scope reads it. */
static void every_kind_of_channel_is_covered(void **state)
{
        static const char *const kinds[][4] = {
                { "channels", "channels:history", "channels:read", "message.channels" },
                { "groups", "groups:history", "groups:read", "message.groups" },
                { "im", "im:history", "im:read", "message.im" },
                { "mpim", "mpim:history", "mpim:read", "message.mpim" },
        };
        json_t *manifest = read_manifest(), *scopes = AT(manifest, "oauth_config", "scopes", "bot"),
               *events = AT(manifest, "settings", "event_subscriptions", "bot_events");

        (void)state;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                assert_true(has(scopes, kinds[i][1]));
                assert_true(has(scopes, kinds[i][2]));
                assert_true(has(events, kinds[i][3]));
        }
        assert_true(has(scopes, "app_mentions:read"));
        assert_true(has(scopes, "commands"));
        json_decref(manifest);
}

/* Slack's list of events separates words by dots; it is older than the Assistant. */
static bool is_event(const json_t *spec, const char *name)
{
        char *topic = mem_strdup(name);
        bool known;

        for (char *p = topic; *p; p++)
                if (*p == '_')
                        *p = '.';
        known = json_object_get(spec, topic) || strcmp(name, "app_context_changed") == 0 ||
                strcmp(name, "app_home_opened") == 0;
        free(topic);
        return known;
}

static void check_event(const char *name, void *arg)
{
        struct search *s = arg;

        /* not subscribed to: messages have their four kinds, the others need no subscription */
        if (!is_event(s->known, name) || strchr(name, '.') || strcmp(name, "message") == 0 ||
            strcmp(name, "app_rate_limited") == 0 || strcmp(name, "url_verification") == 0)
                return;
        s->count++;
        if (!has(s->granted, name))
                fail_msg("the event '%s' is read, but the manifest of %s does not subscribe to it",
                         name, MANUAL);
}

static void all_events_that_are_read_are_subscribed_to(void **state)
{
        json_t *manifest = read_manifest(), *spec = json_load_file(EVENTS, 0, NULL);
        struct search s = {
                .granted = AT(manifest, "settings", "event_subscriptions", "bot_events"),
                .known = json_object_get(spec, "topics"),
        };

        (void)state;
        assert_non_null(spec);
        each_quoted(READERS, check_event, &s);
        assert_true(s.count > 0);
        json_decref(spec);
        json_decref(manifest);
}

static void the_modes_of_the_app_are_switched_on(void **state)
{
        json_t *manifest = read_manifest(), *home = AT(manifest, "features", "app_home"),
               *settings = AT(manifest, "settings"),
               *command = json_array_get(AT(manifest, "features", "slash_commands"), 0);

        (void)state;
        assert_true(json_flag(settings, "socket_mode_enabled", false));
        assert_true(json_flag(AT(settings, "interactivity"), "is_enabled", false));
        assert_false(json_flag(settings, "token_rotation_enabled", true));
        assert_true(json_flag(home, "messages_tab_enabled", false));
        assert_false(json_flag(home, "messages_tab_read_only_enabled", true));
        assert_string_equal(json_str(command, "command", ""), "/dragoman");
        assert_true(json_flag(command, "should_escape", false));
        assert_non_null(AT(manifest, "features", "agent_view", "agent_description"));
        json_decref(manifest);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_scopes_of_all_methods_are_granted),
                cmocka_unit_test(every_kind_of_channel_is_covered),
                cmocka_unit_test(all_events_that_are_read_are_subscribed_to),
                cmocka_unit_test(the_modes_of_the_app_are_switched_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
