#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/settings.h"

struct rate {
        int64_t turns;
        double seconds;
};

struct conf {
        bool typing;
        int64_t debounce_ms;
        int64_t workers, shards;
        double ratio;
        char *name;
        char *base;
        char *mode;
        struct secret *token;
        struct setting_list admins;
        struct rate rate;
        struct rate pace;
};

static const char *const modes[] = { "polling", "webhook", NULL };

static const char *const auto_word[] = { "auto", NULL };

static const struct setting rate_settings[] = {
        { "turns", SETTING_INT, "5", 0, 100, .help = "How many.",
          .at = offsetof(struct rate, turns) },
        { "seconds", SETTING_NUMBER, "60", 1, 3600, .help = "In how long.",
          .at = offsetof(struct rate, seconds) },
        SETTING_END
};

static const struct setting common[] = {
        { "typing", SETTING_BOOL, "true", .help = "Show `typing`.",
          .at = offsetof(struct conf, typing) },
        { "debounceMs", SETTING_INT, "3000", 0, 60000, .help = "Wait | gather.",
          .at = offsetof(struct conf, debounce_ms) },
        { "workers", SETTING_INT, "1", 1, 0, .at = offsetof(struct conf, workers) },
        { "shards", SETTING_INT, "\"auto\"", 1, 9, .choices = auto_word,
          .at = offsetof(struct conf, shards) },
        { "ratio", SETTING_NUMBER, "0.5", .at = offsetof(struct conf, ratio) },
        { "rateLimit", SETTING_GROUP, "{}", .group = rate_settings,
          .at = offsetof(struct conf, rate) },
        { "pace", SETTING_GROUP, "null", .group = rate_settings,
          .at = offsetof(struct conf, pace) },
        SETTING_END
};

static const struct setting own[] = {
        { "botToken", SETTING_SECRET, .help = "The token.", .at = offsetof(struct conf, token) },
        { "name", SETTING_STRING, "null", 2, 8, .at = offsetof(struct conf, name) },
        { "apiBase", SETTING_URL, "\"https://api.telegram.org\"",
          .at = offsetof(struct conf, base) },
        { "mode", SETTING_CHOICE, "\"polling\"", .choices = modes,
          .at = offsetof(struct conf, mode) },
        { "admins", SETTING_STRINGS, "[]", .at = offsetof(struct conf, admins) },
        SETTING_END
};

static const struct setting *const tables[] = { common, own, NULL };
static const char *const also[] = { "type", NULL };

static struct settings_source *source(const char *text)
{
        struct error err = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", "/", text, strlen(text), &err);

        if (!src)
                fail_msg("%s", err.text);
        return src;
}

static int read_adapter(struct settings_source *src, struct conf *c, struct error *err)
{
        const json_t *adapters = json_object_get(settings_source_root(src), "adapters");

        return settings_read(src, "adapters.tg", json_object_get(adapters, "tg"), tables, also, c,
                             err);
}

/* Reads one member of adapters.tg, on line 5. */
static struct settings_source *with_member(const char *member)
{
        char *text = mem_printf(
                "// ours\n{ \"adapters\": {\n  \"tg\": { \"type\": \"telegram\",\n%s\n%s\n} } }",
                strstr(member, "botToken") ? "" : "    \"botToken\": \"env:TEST_TOKEN\",", member);
        struct settings_source *src = source(text);

        free(text);
        return src;
}

static void assert_mistake(const char *member, const char *expected)
{
        struct settings_source *src = with_member(member);
        struct conf c = { 0 };
        const struct conf zero = { 0 };
        struct error err = { 0 };

        assert_int_equal(read_adapter(src, &c, &err), -1);
        assert_string_equal(err.text, expected);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_null(c.token);
        assert_null(c.base);
        assert_int_equal(c.debounce_ms, zero.debounce_ms);
        settings_source_free(src);
}

static void defaults_fill_absent_keys(void **state)
{
        struct settings_source *src = with_member("");
        struct conf c = { 0 };
        struct error err = { 0 };

        (void)state;
        if (read_adapter(src, &c, &err) < 0)
                fail_msg("%s", err.text);
        assert_true(c.typing);
        assert_int_equal(c.debounce_ms, 3000);
        assert_true(c.ratio > 0.4 && c.ratio < 0.6);
        assert_null(c.name);
        assert_string_equal(c.base, "https://api.telegram.org");
        assert_string_equal(c.mode, "polling");
        assert_string_equal(secret_reveal(c.token), "t0psecret");
        assert_int_equal(c.admins.count, 0);
        assert_false(c.admins.set);
        assert_int_equal(c.rate.turns, 5);
        assert_int_equal(c.pace.turns, 0);
        assert_string_equal(settings_source_warnings(src), "");
        settings_release(tables, &c);
        assert_null(c.token);
        assert_null(c.base);
        settings_source_free(src);
}

static void written_values_are_read(void **state)
{
        struct settings_source *src = with_member(
                "\"typing\": false, \"debounceMs\": 60000, \"workers\": 9000000000, \"ratio\": "
                "2,\"name\": \"abcdefgh\", \"apiBase\": \"http://[::1]:8081/x?y\", \"mode\": "
                "\"webhook\",\"admins\": [\"1\", \"2\"], \"rateLimit\": { \"seconds\": 1.5 }, "
                "\"pace\": {}");
        struct conf c = { 0 };

        (void)state;
        assert_int_equal(read_adapter(src, &c, NULL), 0);
        assert_false(c.typing);
        assert_int_equal(c.debounce_ms, 60000);
        assert_true(c.workers == 9000000000);
        assert_string_equal(c.name, "abcdefgh");
        assert_string_equal(c.base, "http://[::1]:8081/x?y");
        assert_string_equal(c.mode, "webhook");
        assert_int_equal(c.admins.count, 2);
        assert_string_equal(c.admins.items[1], "2");
        assert_true(c.admins.set);
        assert_true(c.rate.seconds > 1.4 && c.rate.seconds < 1.6);
        assert_int_equal(c.rate.turns, 5);
        assert_int_equal(c.pace.turns, 5);
        settings_release(tables, &c);
        settings_source_free(src);
}

static void a_string_is_a_list_and_null_needs_to_be_default(void **state)
{
        struct settings_source *src =
                with_member("\"admins\": \"42\", \"name\": null, \"pace\": null");
        struct conf c = { 0 };

        (void)state;
        assert_int_equal(read_adapter(src, &c, NULL), 0);
        assert_int_equal(c.admins.count, 1);
        assert_string_equal(c.admins.items[0], "42");
        assert_null(c.name);
        settings_release(tables, &c);
        settings_source_free(src);
}

static void a_number_may_accept_a_word_for_zero(void **state)
{
        static const struct {
                const char *member;
                int64_t shards;
        } rows[] = { { "", 0 }, { "\"shards\": \"auto\"", 0 }, { "\"shards\": 4", 4 } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct settings_source *src = with_member(rows[i].member);
                struct conf c = { .shards = -1 };
                struct error err = { 0 };

                assert_int_equal(read_adapter(src, &c, &err), 0);
                assert_int_equal(c.shards, rows[i].shards);
                settings_release(tables, &c);
                settings_source_free(src);
        }
        assert_mistake("\"shards\": \"all\"",
                       "config.json:5: adapters.tg.shards: expected a whole number (1 to 9) or "
                       "'auto', not a string");
}

static void an_absent_object_counts_as_empty(void **state)
{
        const struct setting *const rates[] = { rate_settings, NULL };
        struct settings_source *src = source("{}");
        struct rate r = { 0 };

        (void)state;
        assert_int_equal(settings_read(src, "", NULL, rates, NULL, &r, NULL), 0);
        assert_int_equal(r.turns, 5);
        settings_source_free(src);
}

#define AT "config.json:5: adapters.tg"

static void mistakes_name_the_line_and_what_is_accepted(void **state)
{
        static const struct {
                const char *member, *message;
        } rows[] = {
                { "\"debounceMs\": 90000", AT ".debounceMs: 90000 is too large (0 to 60000)" },
                { "\"debounceMs\": -1", AT ".debounceMs: -1 is too small (0 to 60000)" },
                { "\"workers\": 0", AT ".workers: 0 is too small (at least 1)" },
                { "\"debounceMs\": \"3 s\"",
                  AT ".debounceMs: expected a whole number (0 to 60000), not a string" },
                { "\"debounceMs\": 1.5",
                  AT ".debounceMs: expected a whole number (0 to 60000), not a fraction" },
                { "\"debounceMs\": null",
                  AT ".debounceMs: expected a whole number (0 to 60000), not null" },
                { "\"typing\": 1", AT ".typing: expected true or false, not a number" },
                { "\"ratio\": []", AT ".ratio: expected a number, not a list" },
                { "\"rateLimit\": { \"seconds\": 0.5 }",
                  AT ".rateLimit.seconds: 0.5 is too small (1 to 3600)" },
                { "\"rateLimit\": 5", AT ".rateLimit: expected an object, not a number" },
                { "\"rateLimit\": { \"turn\": 5 }",
                  AT ".rateLimit: unknown key 'turn' (did you mean 'turns'?)" },
                { "\"name\": true", AT ".name: expected a string or null, not true or false" },
                { "\"name\": \"abcdefghi\"", AT ".name: is too long (at most 8 bytes)" },
                { "\"name\": \"a\"", AT ".name: is too short (at least 2 bytes)" },
                { "\"name\": \"\"", AT ".name: must not be empty" },
                { "\"apiBase\": \"ftp://x\"", AT ".apiBase: must start with http:// or https://" },
                { "\"apiBase\": \"https://u:p@x/\"",
                  AT ".apiBase: must not contain a user name or password" },
                { "\"apiBase\": \"https://\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"apiBase\": \"https://x:99999\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"apiBase\": \"https://x:\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"apiBase\": \"https://:80\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"apiBase\": \"https://[::1\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"apiBase\": \"https://a b\"",
                  AT ".apiBase: is not a URL such as https://host:port/path" },
                { "\"mode\": \"poling\"",
                  AT ".mode: unknown value 'poling' (did you mean 'polling'?); expected one of "
                     "'polling' or 'webhook'" },
                { "\"mode\": \"carrier pigeon\"", AT
                  ".mode: unknown value 'carrier pigeon'; expected one of 'polling' or 'webhook'" },
                { "\"mode\": 1", AT ".mode: expected one of 'polling' or 'webhook', not a number" },
                { "\"admins\": 42",
                  AT ".admins: expected a string or a list of strings, not a number" },
                { "\"admins\": [\"1\", 42]", AT ".admins[1]: expected a string, not a number" },
                { "\"bottoken\": \"x\"", AT ": unknown key 'bottoken' (did you mean 'botToken'?)" },
                { "\"zzzzzzzz\": 1", AT ": unknown key 'zzzzzzzz'" },
                { "\"botToken\": \"env:TEST_NO_TOKEN\"",
                  AT ".botToken: environment variable 'TEST_NO_TOKEN' is not set" },
                { "\"botToken\": \"file:no/such/file\"",
                  AT ".botToken: cannot open '//no/such/file': No such file or directory" },
                { "\"botToken\": 7",
                  AT ".botToken: expected a string such as \"env:NAME\", \"file:PATH\" or "
                     "\"cmd:PROGRAM ARG\", not a number" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_mistake(rows[i].member, rows[i].message);
}

static void a_missing_key_is_reported_where_its_object_begins(void **state)
{
        struct settings_source *src = source("{\n\"adapters\": {\n\n\"tg\": {}}}");
        struct conf c = { 0 };
        struct error err;

        (void)state;
        assert_int_equal(read_adapter(src, &c, &err), -1);
        assert_string_equal(err.text, "config.json:4: adapters.tg: missing key 'botToken'");
        settings_source_free(src);
}

static void a_value_instead_of_an_object_is_reported(void **state)
{
        struct settings_source *src = source("{\n\"adapters\": {\n\"tg\": []}}");
        struct conf c = { 0 };
        struct error err;

        (void)state;
        assert_int_equal(read_adapter(src, &c, &err), -1);
        assert_string_equal(err.text, "config.json:3: adapters.tg: expected an object");
        settings_source_free(src);
}

static void a_secret_in_clear_is_read_with_a_warning(void **state)
{
        struct settings_source *src = with_member("\"botToken\": \"123:abcdef\"");
        struct conf c = { 0 };

        (void)state;
        assert_int_equal(read_adapter(src, &c, NULL), 0);
        assert_string_equal(secret_reveal(c.token), "123:abcdef");
        assert_string_equal(
                settings_source_warnings(src),
                AT ".botToken: a secret is written in clear; use \"env:NAME\", \"file:PATH\" or "
                   "\"cmd:PROGRAM\"\n");
        settings_release(tables, &c);
        settings_source_free(src);
}

static void a_secret_that_can_be_guessed_is_refused(void **state)
{
        static const struct setting signing[] = { { "botToken", SETTING_SECRET, NULL,
                                                    SETTING_SECRET_SHORTEST,
                                                    .at = offsetof(struct conf, token) },
                                                  SETTING_END };
        static const struct setting *const rows[] = { signing, NULL };
        struct settings_source *src = source("{\"botToken\": \"x\"}");
        struct conf c = { 0 };
        struct error err;

        (void)state;
        assert_int_equal(settings_read(src, "", settings_source_root(src), rows, NULL, &c, &err),
                         -1);
        assert_string_equal(err.text,
                            "config.json:1: botToken: a secret of 1 character can be guessed; "
                            "expected at least 16, such as from: openssl rand -hex 32");
        settings_source_free(src);
        src = source("{\"botToken\": \"0123456789abcdef\"}");
        assert_int_equal(settings_read(src, "", settings_source_root(src), rows, NULL, &c, &err),
                         0);
        settings_release(rows, &c);
        settings_source_free(src);
}

static void a_short_token_is_read_with_a_warning(void **state)
{
        struct settings_source *src = with_member("\"botToken\": \"12:ab\"");
        struct conf c = { 0 };

        (void)state;
        assert_int_equal(read_adapter(src, &c, NULL), 0);
        assert_non_null(strstr(settings_source_warnings(src), "fewer than 6 characters"));
        settings_release(tables, &c);
        settings_source_free(src);
}

static void comments_and_trailing_commas_are_allowed(void **state)
{
        struct settings_source *src =
                source("\xef\xbb\xbf/* a\n b */ { // c \"\n \"a\": [1, 2, /* d */ ], "
                       "\"u\": \"http://x/*y*/,]\", // e\n}\n// f");
        const json_t *root = settings_source_root(src);

        (void)state;
        assert_int_equal(json_array_size(json_object_get(root, "a")), 2);
        assert_string_equal(json_string_value(json_object_get(root, "u")), "http://x/*y*/,]");
        settings_source_free(src);
}

static void malformed_texts_name_the_line(void **state)
{
        static const struct {
                const char *text, *start;
        } rows[] = {
                { "", "config.json:1: " },
                { "{\n\n\"a\" 1}", "config.json:3: " },
                { "{\n/* x\n", "config.json:2: unterminated comment" },
                { "[\n,]", "config.json:2: " },
                { "[1\n,,]", "config.json:2: " },
                { "{\"a\":\n,}", "config.json:2: " },
                { "{\"a\": 1,\n \"a\": 2}", "config.json:2: malformed JSON at column " },
                { "{\"a\": \"x\n\"}", "config.json:1: " },
                { "/", "config.json:1: " },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                if (settings_source_new("config.json", NULL, rows[i].text, strlen(rows[i].text),
                                        &err))
                        fail_msg("accepted '%s'", rows[i].text);
                if (strncmp(err.text, rows[i].start, strlen(rows[i].start)) != 0)
                        fail_msg("'%s' gives '%s'", rows[i].text, err.text);
        }
}

static void lines_are_found_along_paths(void **state)
{
        static const struct {
                const char *path;
                int line;
        } rows[] = {
                { "", 2 },           { "a", 3 },
                { "a.b", 4 },        { "a.b.c", 6 },
                { "rules", 8 },      { "rules[0]", 8 },
                { "rules[1]", 9 },   { "rules[1].when", 10 },
                { "esc", 12 },       { "last[0][1]", 14 },
                { "nope", 0 },       { "rules[2]", 0 },
                { "rules.when", 0 }, { "a.b.d", 0 },
                { "last[0][9]", 0 }, { "rules[x]", 0 },
                { "empty[0]", 0 },   { "a.", 0 },
                { "last[0]x", 0 },
        };
        struct settings_source *src = source("// one\n"
                                             "{\n"
                                             "\"a\": { \"x\": \"}],\\\"\",\n"
                                             "  \"b\":\n"
                                             "     7 },\n"
                                             "\"a.b\": { \"c\": 1,\n"
                                             "  },\n"
                                             "\"rules\": [ {\"q\": [1, {}]},\n"
                                             "  { \"name\": -1e5,\n"
                                             "    \"when\": { } } ],\n"
                                             "/* \n"
                                             " */ \"\\u0065sc\": true,\n"
                                             "\"empty\": [], \"last\": [[0,\n"
                                             "null]]\n"
                                             "}");

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (settings_source_line(src, rows[i].path) != rows[i].line)
                        fail_msg("'%s' is on line %d", rows[i].path,
                                 settings_source_line(src, rows[i].path));
        }
        settings_source_free(src);
}

static void custom_errors_and_warnings_name_the_line(void **state)
{
        struct settings_source *src = source("{\n\"rules\": [\n{\"agent\": 1}]}");
        struct error err;

        (void)state;
        assert_int_equal(settings_error(src, "rules[0].agent", &err, "there is no agent '%s'", "x"),
                         -1);
        assert_string_equal(err.text, "config.json:3: rules[0].agent: there is no agent 'x'");
        settings_error(src, "rules[0].mode.deep", &err, "around");
        assert_string_equal(err.text, "config.json:3: rules[0].mode.deep: around");
        settings_error(src, NULL, &err, "the whole");
        assert_string_equal(err.text, "config.json:1: the whole");
        settings_warn(src, "rules", "%d of them", 1);
        settings_warn(src, "", "root");
        assert_string_equal(settings_source_warnings(src),
                            "config.json:2: rules: 1 of them\nconfig.json:1: root\n");
        settings_source_free(src);
}

static void the_nearest_word_is_found(void **state)
{
        static const char *const words[] = { "telegram", "discord", "slack", "cli", NULL };

        (void)state;
        assert_string_equal(settings_nearest("telegarm", words), "telegram");
        assert_string_equal(settings_nearest("Discord", words), "discord");
        assert_string_equal(settings_nearest("slak", words), "slack");
        assert_null(settings_nearest("matrix", words));
        assert_null(settings_nearest("", words));
        assert_null(settings_nearest(
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                words));
}

static void the_schema_has_types_ranges_and_defaults(void **state)
{
        json_t *properties = json_object(), *required = json_array();
        char *text;

        (void)state;
        settings_doc_schema(own, properties, required);
        settings_doc_schema(common, properties, required);
        text = json_dumps(required, JSON_COMPACT);
        assert_string_equal(text, "[\"botToken\"]");
        free(text);
        text = json_dumps(json_object_get(properties, "debounceMs"), JSON_COMPACT);
        assert_string_equal(
                text, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":60000,\"default\":3000,"
                      "\"description\":\"Wait "
                      "| gather.\"}");
        free(text);
        text = json_dumps(json_object_get(properties, "name"), JSON_COMPACT);
        assert_string_equal(text, "{\"type\":[\"string\",\"null\"],\"minLength\":1,\"maxLength\":8,"
                                  "\"default\":null}");
        free(text);
        text = json_dumps(json_object_get(properties, "mode"), JSON_COMPACT);
        assert_string_equal(
                text,
                "{\"type\":\"string\",\"enum\":[\"polling\",\"webhook\"],\"default\":\"polling\"}");
        free(text);
        text = json_dumps(json_object_get(properties, "admins"), JSON_COMPACT);
        assert_string_equal(
                text,
                "{\"type\":[\"string\",\"array\"],\"items\":{\"type\":\"string\"},\"default\":[]}");
        free(text);
        assert_true(json_is_false(
                json_object_get(json_object_get(properties, "pace"), "additionalProperties")));
        json_decref(properties);
        json_decref(required);
}

static void the_markdown_table_has_a_row_per_setting(void **state)
{
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        settings_doc_markdown(common, &out);
        assert_non_null(
                strstr(out.data, "| `typing` | true or false | `true` | Show `typing`. |\n"));
        assert_non_null(strstr(
                out.data,
                "| `debounceMs` | whole number, 0 to 60000 | `3000` | Wait \\| gather. |\n"));
        assert_non_null(strstr(
                out.data, "| `rateLimit.turns` | whole number, 0 to 100 | `5` | How many. |\n"));
        buf_clear(&out);
        settings_doc_markdown(own, &out);
        assert_non_null(strstr(out.data, "| `botToken` | secret | required | The token. |\n"));
        assert_non_null(strstr(out.data, "| `mode` | `polling`, `webhook` | `\"polling\"` |"));
        buf_release(&out);
}

static void values_are_shown_without_defaults_and_secrets(void **state)
{
        struct settings_source *src = with_member(
                "\"mode\": \"webhook\", \"admins\": \"7\", \"name\": \"Ann\", \"shards\": 4");
        struct conf c = { 0 };
        struct error err = { 0 };
        struct buf json;

        (void)state;
        assert_int_equal(read_adapter(src, &c, &err), 0);
        buf_init(&json, 0);
        settings_show(own, &c, &json);
        assert_string_equal(json.data,
                            "{\"name\":\"Ann\",\"mode\":\"webhook\",\"admins\":[\"7\"]}");
        buf_clear(&json);
        c.rate.turns = 9;
        c.typing = false;
        c.pace = (struct rate){ 5, 60 };
        settings_show(common, &c, &json);
        assert_string_equal(json.data,
                            "{\"typing\":false,\"shards\":4,\"rateLimit\":{\"turns\":9}}");
        buf_release(&json);
        settings_release(tables, &c);
        settings_source_free(src);
}

struct server {
        int64_t seconds;
        struct setting_pairs env;
};

static const struct setting server_settings[] = {
        { "seconds", SETTING_INT, "60", 1, 600, .at = offsetof(struct server, seconds) },
        { "env", SETTING_PAIRS, "{}", .at = offsetof(struct server, env) },
        SETTING_END
};

static const struct setting map_settings[] = { { "servers", SETTING_MAP, "{}", 0,
                                                 sizeof(struct server), .group = server_settings,
                                                 .help = "Servers.", .at = 0 },
                                               SETTING_END };

static int read_map_text(const char *text, struct setting_map *map, struct error *err)
{
        const struct setting *const map_tables[] = { map_settings, NULL };
        struct settings_source *src = source(text);
        int rc = settings_read(src, "", settings_source_root(src), map_tables, NULL, map, err);

        settings_source_free(src);
        return rc;
}

static void named_objects_and_pairs_are_read(void **state)
{
        const struct setting *const map_tables[] = { map_settings, NULL };
        struct setting_map map = { 0 };
        const struct server *s;
        struct buf shown;

        (void)state;
        buf_init(&shown, 0);
        assert_int_equal(read_map_text("{\"servers\": {\"z\": {}, \"a\": {\"seconds\": 5, "
                                       "\"env\": {\"KEY\": \"env:TEST_TOKEN\", \"D\": \"1\"}}}}",
                                       &map, NULL),
                         0);
        assert_int_equal(map.count, 2);
        assert_string_equal(map.names[0], "z");
        s = map.items[0];
        assert_int_equal(s->seconds, 60);
        s = map.items[1];
        assert_int_equal(s->env.count, 2);
        assert_string_equal(s->env.names[0], "KEY");
        assert_string_equal(secret_reveal(s->env.values[0]), getenv("TEST_TOKEN"));
        assert_string_equal(secret_reveal(s->env.values[1]), "1");
        settings_show(map_settings, &map, &shown);
        assert_string_equal(shown.data, "{\"servers\":{\"z\":{},\"a\":{\"seconds\":5}}}");
        buf_clear(&shown);
        settings_doc_markdown(map_settings, &shown);
        assert_non_null(strstr(shown.data, "| `servers.NAME.env` | object of strings or secrets"));
        buf_release(&shown);
        settings_release(map_tables, &map);
        assert_int_equal(map.count, 0);
}

static void mistakes_in_named_objects_name_their_path(void **state)
{
        struct setting_map map = { 0 };
        struct error err = { 0 };

        (void)state;
        assert_int_equal(read_map_text("{\"servers\": {\"a\": {\"seconds\": 0}}}", &map, &err), -1);
        assert_string_equal(err.text,
                            "config.json:1: servers.a.seconds: 0 is too small (1 to 600)");
        assert_int_equal(read_map_text("{\"servers\": {\"a b\": {}}}", &map, &err), -1);
        assert_non_null(strstr(err.text, "expected a name of 1 to 32 letters"));
        assert_int_equal(read_map_text("{\"servers\": {\"a\": {\"env\": {\"K\": 1}}}}", &map, &err),
                         -1);
        assert_string_equal(err.text,
                            "config.json:1: servers.a.env.K: expected a string, not a number");
        assert_int_equal(read_map_text("{\"servers\": [\"a\"]}", &map, &err), -1);
        assert_non_null(strstr(err.text, "expected an object of named objects, not a list"));
}

static void a_text_without_a_file_names_only_the_path(void **state)
{
        struct error err = { 0 };
        static const char text[] = "{\"a\":{\"typing\":1}}";
        struct settings_source *src = settings_source_new(NULL, NULL, text, strlen(text), &err);
        struct conf c = { 0 };

        (void)state;
        assert_int_equal(settings_read(src, "a", json_object_get(settings_source_root(src), "a"),
                                       tables, also, &c, &err),
                         -1);
        assert_string_equal(err.text, "a.typing: expected true or false, not a number");
        settings_source_free(src);
}

static int set_token(void **state)
{
        (void)state;
        unsetenv("TEST_NO_TOKEN");
        return setenv("TEST_TOKEN", "t0psecret", 1);
}

static void tokens_in_a_url_are_hidden(void **state)
{
        char text[] = "GET /x?token=sesame1&mode=fast-one&k=abcdefghijkl&sig=short, 404", *copy;
        struct settings_source *src = source(
                "{\"botToken\": \"env:T\", \"apiBase\": "
                "\"https://h/x?token=sesame1&mode=fast-one&k=abcdefghijkl&sig=short#part\"}");
        struct error err = { 0 };
        struct conf c = { 0 };

        (void)state;
        setenv("T", "123456:token", 1);
        copy = mem_strdup(text);
        if (settings_read(src, "", settings_source_root(src), tables, also, &c, &err) < 0)
                fail_msg("%s", err.text);
        log_redact(text);
        /* what is shorter than LOG_HIDE_SHORTEST stays, like any short secret */
        assert_string_equal(text,
                            "GET /x?token=*******&mode=fast-one&k=************&sig=short, 404");
        settings_release(tables, &c);
        log_redact(copy);
        assert_non_null(strstr(copy, "sesame1"));
        free(copy);
        settings_source_free(src);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults_fill_absent_keys),
                cmocka_unit_test(written_values_are_read),
                cmocka_unit_test(a_string_is_a_list_and_null_needs_to_be_default),
                cmocka_unit_test(a_number_may_accept_a_word_for_zero),
                cmocka_unit_test(an_absent_object_counts_as_empty),
                cmocka_unit_test(mistakes_name_the_line_and_what_is_accepted),
                cmocka_unit_test(a_missing_key_is_reported_where_its_object_begins),
                cmocka_unit_test(a_value_instead_of_an_object_is_reported),
                cmocka_unit_test(a_secret_in_clear_is_read_with_a_warning),
                cmocka_unit_test(tokens_in_a_url_are_hidden),
                cmocka_unit_test(a_secret_that_can_be_guessed_is_refused),
                cmocka_unit_test(a_short_token_is_read_with_a_warning),
                cmocka_unit_test(comments_and_trailing_commas_are_allowed),
                cmocka_unit_test(malformed_texts_name_the_line),
                cmocka_unit_test(lines_are_found_along_paths),
                cmocka_unit_test(custom_errors_and_warnings_name_the_line),
                cmocka_unit_test(the_nearest_word_is_found),
                cmocka_unit_test(the_schema_has_types_ranges_and_defaults),
                cmocka_unit_test(the_markdown_table_has_a_row_per_setting),
                cmocka_unit_test(values_are_shown_without_defaults_and_secrets),
                cmocka_unit_test(named_objects_and_pairs_are_read),
                cmocka_unit_test(mistakes_in_named_objects_name_their_path),
                cmocka_unit_test(a_text_without_a_file_names_only_the_path),
        };

        return cmocka_run_group_tests(tests, set_token, NULL);
}
