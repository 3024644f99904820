/*
 * Every REST call matches Discord's own description of its API: the route exists, the query
 * parameters are known, and the body fits its schema without further members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "discord_rig.h"
#include "platform/platform_tool.h"

static json_t *spec;

/* ---- schemas, as far as the description uses them ---- */

static const json_t *resolve(const json_t *schema)
{
        const char *ref = json_str(schema, "$ref", NULL);

        while (ref) {
                const json_t *schemas =
                        json_object_get(json_object_get(spec, "components"), "schemas");

                schema = json_object_get(schemas, strrchr(ref, '/') + 1);
                assert_non_null(schema);
                ref = json_str(schema, "$ref", NULL);
        }
        return schema;
}

static bool is_type(const json_t *value, const char *type)
{
        if (strcmp(type, "object") == 0)
                return json_is_object(value);
        if (strcmp(type, "array") == 0)
                return json_is_array(value);
        if (strcmp(type, "string") == 0)
                return json_is_string(value);
        if (strcmp(type, "integer") == 0)
                return json_is_integer(value);
        if (strcmp(type, "number") == 0)
                return json_is_number(value);
        if (strcmp(type, "boolean") == 0)
                return json_is_boolean(value);
        return json_is_null(value);
}

static bool has_type(const json_t *value, const json_t *types)
{
        if (!types)
                return true;
        if (json_is_string(types))
                return is_type(value, json_string_value(types));
        for (size_t i = 0; i < json_array_size(types); i++)
                if (is_type(value, json_string_value(json_array_get(types, i))))
                        return true;
        return false;
}

static bool fits(const json_t *value, const json_t *schema, struct buf *why);

static bool fits_one(const json_t *value, const json_t *choices, struct buf *why)
{
        for (size_t i = 0; i < json_array_size(choices); i++) {
                struct buf ignored;
                bool ok;

                buf_init(&ignored, 0);
                ok = fits(value, json_array_get(choices, i), &ignored);
                buf_release(&ignored);
                if (ok)
                        return true;
        }
        buf_addstr(why, "fits none of the choices");
        return false;
}

static bool in_range(const json_t *value, const json_t *schema)
{
        int64_t n = json_is_string(value)
                            ? (int64_t)utf8_length(json_string_value(value),
                                                   json_string_length(value), UTF8_CODE_POINTS)
                    : json_is_array(value) ? (int64_t)json_array_size(value)
                                           : json_integer_value(value);
        const char *low = json_is_string(value)  ? "minLength"
                          : json_is_array(value) ? "minItems"
                                                 : "minimum";
        const char *high = json_is_string(value)  ? "maxLength"
                           : json_is_array(value) ? "maxItems"
                                                  : "maximum";

        return n >= json_int(schema, low, INT64_MIN) && n <= json_int(schema, high, INT64_MAX);
}

static bool members_fit(const json_t *value, const json_t *schema, struct buf *why)
{
        const json_t *properties = json_object_get(schema, "properties"),
                     *required = json_object_get(schema, "required");
        const char *key;
        json_t *member;

        for (size_t i = 0; i < json_array_size(required); i++) {
                const char *name = json_string_value(json_array_get(required, i));

                if (!json_object_get(value, name)) {
                        buf_addf(why, "'%s' is missing", name);
                        return false;
                }
        }
        json_object_foreach((json_t *)value, key, member) {
                const json_t *known = json_object_get(properties, key);

                if (!known || !fits(member, known, why)) {
                        buf_addf(why, "%s in '%s'", known ? "" : "unknown member", key);
                        return false;
                }
        }
        return true;
}

static bool items_fit(const json_t *value, const json_t *schema, struct buf *why)
{
        for (size_t i = 0; i < json_array_size(value); i++)
                if (!fits(json_array_get(value, i), json_object_get(schema, "items"), why))
                        return false;
        return true;
}

/* The first of these that is present lists the permitted values. */
static bool is_permitted(const json_t *value, const json_t *schema)
{
        const json_t *list = json_object_get(schema, "enum"),
                     *only = json_object_get(schema, "const");

        if (only)
                return json_equal(value, only);
        for (size_t i = 0; i < json_array_size(list); i++)
                if (json_equal(value, json_array_get(list, i)))
                        return true;
        return !list;
}

static bool fits(const json_t *value, const json_t *schema, struct buf *why)
{
        const json_t *choices;

        if (!schema)
                return true;
        schema = resolve(schema);
        choices = json_object_get(schema, "oneOf") ? json_object_get(schema, "oneOf")
                                                   : json_object_get(schema, "anyOf");
        if (!has_type(value, json_object_get(schema, "type")) || !is_permitted(value, schema) ||
            !in_range(value, schema)) {
                buf_addstr(why, "wrong type or value");
                return false;
        }
        if (choices && !fits_one(value, choices, why))
                return false;
        if (json_is_object(value) && json_object_get(schema, "properties"))
                return members_fit(value, schema, why);
        return !json_is_array(value) || items_fit(value, schema, why);
}

/* ---- a request ---- */

/* Does the path match the pattern? Braces match one part. */
static bool path_fits(const char *path, const char *pattern)
{
        while (*path && *pattern) {
                if (*pattern == '{') {
                        path += strcspn(path, "/?");
                        pattern = strchr(pattern, '}') + 1;
                } else if (*path++ != *pattern++) {
                        return false;
                }
        }
        return *pattern == '\0' && (*path == '\0' || *path == '?');
}

/* Counts the literal parts of a pattern: "@me" matches better than "{user_id}". */
static size_t literal(const char *pattern)
{
        size_t n = 0;

        for (; *pattern; pattern++)
                if (*pattern == '{')
                        pattern = strchr(pattern, '}');
                else
                        n++;
        return n;
}

static const json_t *find_operation(const char *method, const char *path)
{
        const json_t *paths = json_object_get(spec, "paths"), *found = NULL;
        char lower[10] = { 0 };
        const char *pattern;
        size_t best = 0;
        json_t *item;

        for (size_t i = 0; method[i] && i < sizeof(lower) - 1; i++)
                lower[i] = (char)(method[i] | 0x20);
        json_object_foreach((json_t *)paths, pattern, item) {
                if (path_fits(path, pattern) && literal(pattern) >= best) {
                        found = json_object_get(item, lower);
                        best = literal(pattern);
                }
        }
        return found;
}

static bool knows_parameter(const json_t *operation, const char *name, size_t n)
{
        json_t *p;
        size_t i;

        json_array_foreach(json_object_get(operation, "parameters"), i, p) {
                const char *known = json_str(resolve(p), "name", "");

                if (strlen(known) == n && strncmp(known, name, n) == 0)
                        return true;
        }
        return false;
}

static void check_query(const json_t *operation, const char *line)
{
        const char *at = strchr(line, '?');

        while (at) {
                size_t n = strcspn(at + 1, "=&");

                if (!knows_parameter(operation, at + 1, n))
                        fail_msg("%s: unknown query parameter '%.*s'", line, (int)n, at + 1);
                at = strchr(at + 1, '&');
        }
}

/* The JSON of a request; for an upload the part payload_json. */
static json_t *body_of(const char *request)
{
        const char *body = strstr(request, "\r\n\r\n") + 4,
                   *part = strstr(body, "name=\"payload_json\"");
        const char *end = part ? strstr(part, "\r\n--") : NULL;

        if (!part)
                return *body ? json_loads(body, JSON_DECODE_ANY, NULL) : NULL;
        body = strstr(part, "\r\n\r\n") + 4;
        return json_loadb(body, (size_t)(end - body), 0, NULL);
}

static void check_request(const char *request)
{
        char method[10], path[300], line[320];
        const json_t *operation, *schema;
        struct buf why;
        json_t *body;

        assert_int_equal(sscanf(request, "%9s %299s", method, path), 2);
        snprintf(line, sizeof(line), "%s %s", method, path);
        operation = find_operation(method, path);
        if (!operation)
                fail_msg("%s is no call of Discord's API", line);
        check_query(operation, path);
        schema = json_object_get(
                json_object_get(
                        json_object_get(json_object_get(operation, "requestBody"), "content"),
                        "application/json"),
                "schema");
        body = body_of(request);
        buf_init(&why, 0);
        if (!schema != !body)
                fail_msg("%s: %s", line, body ? "takes no body" : "wants a body");
        if (schema && !fits(body, schema, &why))
                fail_msg("%s: %s: %s", line, why.data, strstr(request, "\r\n\r\n") + 4);
        buf_release(&why);
        json_decref(body);
}

static void check_requests(struct rig *g, unsigned expected)
{
        assert_int_equal(fake_server_requests(g->server), expected);
        for (unsigned i = 0; i < expected; i++)
                check_request(fake_server_request(g->server, i));
}

/* ---- the tests ---- */

static int begin(void **state)
{
        spec = json_load_file("tests/data/discord_openapi.json", 0, NULL);
        assert_non_null(spec);
        *state = rig_new();
        return 0;
}

static int end(void **state)
{
        rig_free(*state);
        json_decref(spec);
        return 0;
}

static void until_sent(struct rig *g, size_t n)
{
        for (int i = 0; i < 100000 && fake_road.count < n; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.count, n);
}

static void deliveries_match_discords_description(void **state)
{
        static const struct {
                enum delivery_kind kind;
                const char *channel, *payload, *thread;
        } rows[] = {
                { DELIVER_SEND, "7", "{\"text\":\"<@11> hi\",\"replyTo\":\"5\"}" },
                { DELIVER_SEND, "7",
                  "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\",\"data\":\"y\"},"
                  "{\"text\":\"See\",\"url\":\"https://x.org\"}]]}" },
                { DELIVER_EDIT, "7", "{\"text\":\"more\",\"messageId\":\"5\"}" },
                { DELIVER_DELETE, "7", "{\"messageId\":\"5\"}" },
                { DELIVER_REACT, "7", "{\"messageId\":\"5\",\"emoji\":\"👀\"}" },
                { DELIVER_UNREACT, "7", "{\"messageId\":\"5\",\"emoji\":\"👀\"}" },
                { DELIVER_TYPE, "7", "{}" },
                { DELIVER_THREAD, "7", "{\"messageId\":\"5\",\"name\":\"a talk\"}" },
                { DELIVER_UPLOAD, "7",
                  "{\"path\":\"a.txt\",\"text\":\"see\",\"mime\":\"text/plain\"}" },
                { DELIVER_CALENDAR, "7",
                  "{\"calendar\":{\"op\":\"put\",\"title\":\"Go\",\"description\":\"x\","
                  "\"startsAt\":\"2126-11-20T18:00:00Z\"}}" },
                { DELIVER_CALENDAR, "7",
                  "{\"calendar\":{\"op\":\"put\",\"eventId\":\"77\",\"title\":\"Go\",\"place\":"
                  "\"x\",\"description\":\"\",\"endsAt\":\"2126-11-20T18:00:00Z\"}}" },
                { DELIVER_CALENDAR, "7", "{\"calendar\":{\"op\":\"delete\",\"eventId\":\"77\"}}" },
                { DELIVER_SEND, "7",
                  "{\"card\":{\"title\":\"t\",\"color\":\"#FFA500\",\"body\":\"b\","
                  "\"footer\":\"f\",\"time\":1700000000000,"
                  "\"fields\":[{\"name\":\"n\",\"value\":\"v\",\"inline\":true}]}}" },
                { DELIVER_EDIT, "7", "{\"card\":{\"title\":\"t\"},\"messageId\":\"5\"}" },
                { DELIVER_CHANGE_THREAD, "7", "{\"name\":\"n\",\"closed\":true}", "70" },
                { DELIVER_SEND, "user:9", "{\"text\":\"hi\"}" }, /* two calls */
        };
        struct rig *g = *state;

        rig_put_file(g, "a.txt", "bytes");
        for (size_t i = 0; i < COUNT(rows) + 1; i++)
                says(g, 200, "{\"id\":\"88\"}");
        rig_connect(g, "");
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct delivery d = { .id = (int64_t)i + 1,
                                            .adapter = "dc",
                                            .kind = rows[i].kind,
                                            .channel = rows[i].channel,
                                            .thread = rows[i].thread,
                                            .payload = rows[i].payload,
                                            .attempt = 1,
                                            .created_ms = clock_wall_ms() };

                adapters_send(g->adapters, &d);
                until_sent(g, i + 1);
        }
        check_requests(g, 2 + COUNT(rows) + 1);
}

static void looking_for_a_message_matches_discords_description(void **state)
{
        const struct delivery d = { .id = 1,
                                    .adapter = "dc",
                                    .kind = DELIVER_SEND,
                                    .channel = "7",
                                    .payload = "{\"text\":\"hi\"}",
                                    .attempt = 2,
                                    .created_ms = 1 };
        struct rig *g = *state;

        says(g, 200, "[]");
        says(g, 200, "{\"id\":\"88\"}");
        rig_connect(g, "");
        adapters_send(g->adapters, &d);
        until_sent(g, 1);
        check_requests(g, 4);
}

static void guild_commands_match_discords_description(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        says(g, 200, "[]");
        rig_open(g, ",\"commandGuilds\":[\"5\",\"6\"]");
        rig_requests(g, 4);
        check_requests(g, 4);
}

static void global_commands_match_discords_description(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        rig_open(g, "");
        rig_requests(g, 3);
        check_requests(g, 3);
}

static void replies_to_commands_match_discords_description(void **state)
{
        static const struct {
                const char *id;
                enum delivery_kind kind;
                const char *payload;
        } rows[] = { { "900", DELIVER_SEND, "{\"text\":\"hi\",\"replyTo\":\"900\"}" },
                     { "901", DELIVER_CANCEL_DEFERRED, "{\"messageId\":\"901\"}" } };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                says(g, 204, "");
                says(g, 200, "{\"id\":\"88\"}");
        }
        rig_connect(g, "");
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct delivery d = { .id = (int64_t)i + 1,
                                            .adapter = "dc",
                                            .kind = rows[i].kind,
                                            .channel = "7",
                                            .payload = rows[i].payload,
                                            .attempt = 1,
                                            .created_ms = clock_wall_ms() };
                json_t *command = json_pack("{s:s, s:s, s:i, s:s}", "id", rows[i].id,
                                            "application_id", "43", "type", 2, "token", "tkn123");

                fake_intake.hooks.stored(fake_intake.hooks.ctx, command);
                json_decref(command);
                adapters_send(g->adapters, &d);
                until_sent(g, i + 1);
        }
        check_requests(g, 2 + 2 * COUNT(rows));
}

static void on_got(void *arg, const struct dc_answer *a)
{
        (void)a;
        ++*(unsigned *)arg;
}

static void reads_of_the_intake_match_discords_description(void **state)
{
        static const struct dc_get rows[] = {
                { "/gateway/bot" },
                { "/channels/{channel_id}", { "7" } },
                { "/guilds/{guild_id}/members/{user_id}", { "1", "42" } },
                { "/users/@me/guilds", .query = "limit=200&after=0", .idle = true },
                { "/guilds/{guild_id}/channels", { "1" }, .idle = true },
                { "/guilds/{guild_id}/threads/active", { "1" }, .idle = true },
                { "/channels/{channel_id}/messages", { "7" }, "after=9&limit=100", true },
                { "/guilds/{guild_id}/scheduled-events", { "1" }, .idle = true },
                { "/guilds/{guild_id}/scheduled-events/{guild_scheduled_event_id}/users",
                  { "1", "77" },
                  "limit=100&with_member=true&after=9",
                  true },
        };
        struct rig *g = *state;
        unsigned got = 0;

        for (size_t i = 0; i < COUNT(rows); i++)
                says(g, 200, "{}");
        rig_connect(g, "");
        for (unsigned i = 0; i < COUNT(rows); i++) {
                fake_intake.hooks.get(fake_intake.hooks.ctx, &rows[i], on_got, &got);
                for (int n = 0; n < 100000 && got <= i; n++)
                        loop_step(g->loop, true);
        }
        check_requests(g, 2 + COUNT(rows));
}

static void on_tool_done(void *arg, const char *result, const struct error *err)
{
        (void)result;
        (void)err;
        ++*(unsigned *)arg;
}

static void tools_match_discords_description(void **state)
{
        static const struct {
                const char *tool, *arguments;
        } rows[] = {
                { "discord_read", "{\"channel_id\":\"7\",\"before\":\"9\"}" },
                { "discord_list_guilds", "{\"after\":\"9\"}" },
                { "discord_list_channels", "{\"guild_id\":\"1\"}" }, /* two calls */
                { "discord_whoami", "{}" },
        };
        struct rig *g = *state;
        unsigned done = 0;

        for (size_t i = 0; i < COUNT(rows) + 1; i++)
                says(g, 200, "[]");
        rig_connect(g, "");
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *arguments = json_loads(rows[i].arguments, 0, NULL);

                platform_tool_call(g->adapters, "dc", rows[i].tool,
                                   &(struct tool_request){ .arguments = arguments }, on_tool_done,
                                   &done);
                json_decref(arguments);
                for (int n = 0; n < 100000 && done <= i; n++)
                        loop_step(g->loop, true);
        }
        check_requests(g, 2 + COUNT(rows) + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                TEST(deliveries_match_discords_description),
                TEST(looking_for_a_message_matches_discords_description),
                TEST(guild_commands_match_discords_description),
                TEST(global_commands_match_discords_description),
                TEST(replies_to_commands_match_discords_description),
                TEST(reads_of_the_intake_match_discords_description),
                TEST(tools_match_discords_description),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
