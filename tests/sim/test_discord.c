/*
 * The simulated HTTP API, beyond what discord.js and discord.py use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/fake_server.h"
#include "../lib/sim_dc.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/discord/dc_signer.h"

#define MESSAGES "/channels/" GENERAL "/messages"

/* The bot sends a message to the channel; out gets its id. */
static void post_message(struct sim_rig *r, const char *body, char *out, size_t room)
{
        json_t *m = sim_dc_call(r, NULL, MESSAGES, body, 200);

        snprintf(out, room, "%s", json_str(m, "id", ""));
        json_decref(m);
}

static size_t count_items(struct sim_rig *r, const char *what)
{
        json_t *page = sim_rig_control(r, what, NULL);
        size_t n = json_array_size(json_object_get(page, "items"));

        json_decref(page);
        return n;
}

static void a_wrong_token_is_401(void **state)
{
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "bots", "{\"new_token\":\"another.one.now\"}");
        sim_dc_refused(r, NULL, "/users/@me", NULL, 401, 0);
        sim_rig_control_ok(r, "bots", "{\"new_token\":\"" TOKEN "\"}");
        json_decref(sim_dc_call(r, NULL, "/users/@me", NULL, 200));
}

static void a_channel_id_in_use_is_refused(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_start(r, &a, "POST", "/sim/channels", "{\"id\":\"" GENERAL "\",\"name\":\"two\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 400);
        assert_string_equal(json_str(a.body, "error", ""), "channel '" GENERAL "' exists already");
        json_decref(a.body);
        sim_rig_control_ok(r, "channels", "{\"id\":\"1005\",\"name\":\"two\"}");
}

static void errors_have_discords_codes(void **state)
{
        struct sim_rig *r = *state;

        sim_dc_refused(r, NULL, "/channels/5/messages", "{\"content\":\"x\"}", 404, 10003);
        sim_dc_refused(r, "PATCH", MESSAGES "/5", "{\"content\":\"x\"}", 404, 10008);
        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":\"\"}", 400, 50006);
        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":1}", 400, 50035);
        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":", 400, 50109);
        sim_dc_refused(r, "PUT", MESSAGES "/5/reactions/x/@me", NULL, 404, 10008);
        sim_dc_refused(r, NULL, "/users/@me/channels", "{\"recipient_id\":\"5\"}", 400, 50033);
        sim_dc_refused(r, NULL, "/guilds/5", NULL, 404, 10004);
        sim_dc_refused(r, NULL, "/interactions/5/abc/callback", "{\"type\":5}", 404, 10062);
}

static void missing_permissions_have_distinct_codes(void **state)
{
        struct sim_rig *r = *state;
        char id[32];

        post_message(r, "{\"content\":\"before\"}", id, sizeof(id));
        sim_rig_control_ok(r, "permissions",
                           "{\"channel\":\"general\",\"deny\":[\"SEND_MESSAGES\"]}");
        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":\"x\"}", 403, 50013);
        sim_rig_control_ok(r, "permissions",
                           "{\"channel\":\"general\",\"deny\":[\"VIEW_CHANNEL\"]}");
        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":\"x\"}", 403, 50001);
        sim_rig_control_ok(r, "permissions",
                           "{\"channel\":\"general\",\"deny\":[\"READ_MESSAGE_HISTORY\"]}");
        {
                char *reply = mem_printf(
                        "{\"content\":\"x\",\"message_reference\":{\"message_id\":\"%s\"}}", id);

                sim_dc_refused(r, NULL, MESSAGES, reply, 403, 160002);
                free(reply);
        }
}

static void an_enforced_nonce_makes_one_message(void **state)
{
        struct sim_rig *r = *state;
        static const char body[] = "{\"content\":\"x\",\"nonce\":\"abc\",\"enforce_nonce\":true}";
        char first[32], second[32], third[32];

        post_message(r, body, first, sizeof(first));
        post_message(r, body, second, sizeof(second));
        assert_string_equal(first, second);
        post_message(r, "{\"content\":\"x\",\"nonce\":\"abc\"}", third, sizeof(third));
        assert_string_not_equal(first, third);
        assert_int_equal(count_items(r, "messages?kind=message"), 2);
        sim_rig_control_ok(r, "settings", "{\"nonce_ms\":-1}");
        post_message(r, "{\"content\":\"x\",\"nonce\":\"def\",\"enforce_nonce\":true}", first,
                     sizeof(first));
        post_message(r, "{\"content\":\"x\",\"nonce\":\"def\",\"enforce_nonce\":true}", second,
                     sizeof(second));
        assert_string_not_equal(first, second); /* forgotten after nonce_ms */
}

static void a_reply_to_a_missing_message_fails_by_default(void **state)
{
        struct sim_rig *r = *state;
        json_t *m;

        sim_dc_refused(r, NULL, MESSAGES,
                       "{\"content\":\"x\",\"message_reference\":{\"message_id\":\"5\"}}", 400,
                       50035);
        m = sim_dc_call(r, NULL, MESSAGES,
                        "{\"content\":\"x\",\"message_reference\":{\"message_id\":\"5\","
                        "\"fail_if_not_exists\":false}}",
                        200);
        assert_int_equal(json_int(m, "type", -1), 0);
        assert_null(json_object_get(m, "message_reference"));
        json_decref(m);
}

static void only_allowed_mentions_ping(void **state)
{
        struct sim_rig *r = *state;
        json_t *m = sim_dc_call(r, NULL, MESSAGES, "{\"content\":\"@everyone <@42>\"}", 200);

        assert_true(json_flag(m, "mention_everyone", false));
        assert_int_equal(json_array_size(json_object_get(m, "mentions")), 1);
        json_decref(m);
        m = sim_dc_call(r, NULL, MESSAGES,
                        "{\"content\":\"@everyone <@42>\",\"allowed_mentions\":{\"parse\":[]}}",
                        200);
        assert_false(json_flag(m, "mention_everyone", true));
        assert_int_equal(json_array_size(json_object_get(m, "mentions")), 0);
        json_decref(m);
        sim_dc_refused(r, NULL, MESSAGES,
                       "{\"content\":\"x\",\"allowed_mentions\":{\"parse\":[\"users\"],"
                       "\"users\":[\"42\"]}}",
                       400, 50035);
}

static void a_refused_edit_changes_nothing(void **state)
{
        struct sim_rig *r = *state;
        char id[32], *path;
        json_t *m;

        post_message(r, "{\"content\":\"as it was\"}", id, sizeof(id));
        path = mem_printf(MESSAGES "/%s", id);
        sim_dc_refused(r, "PATCH", path, "{\"content\":\"\"}", 400, 50006);
        m = sim_dc_call(r, NULL, path, NULL, 200);
        assert_string_equal(json_str(m, "content", ""), "as it was");
        json_decref(m);
        free(path);
}

static void a_message_has_one_thread(void **state)
{
        struct sim_rig *r = *state;
        char id[32], *path;
        json_t *thread;

        post_message(r, "{\"content\":\"x\"}", id, sizeof(id));
        path = mem_printf(MESSAGES "/%s/threads", id);
        thread = sim_dc_call(r, NULL, path, "{\"name\":\"T\"}", 201);
        assert_string_equal(json_str(thread, "id", ""), id);
        assert_string_equal(json_str(thread, "parent_id", ""), GENERAL);
        json_decref(thread);
        sim_dc_refused(r, NULL, path, "{\"name\":\"T\"}", 400, 160004);
        free(path);
}

/* A message with this embed, in which "$N" becomes N characters. */
static char *embed_of(const char *shape)
{
        struct buf body;

        buf_init(&body, 0);
        buf_addstr(&body, "{\"embeds\":[");
        for (const char *p = shape; *p; p++) {
                char *end;
                long n;

                if (*p != '$') {
                        buf_addch(&body, *p);
                        continue;
                }
                for (n = strtol(p + 1, &end, 10); n > 0; n--)
                        buf_addch(&body, 'x');
                p = end - 1;
        }
        buf_addstr(&body, "]}");
        return buf_take(&body);
}

static void each_limit_of_an_embed_is_enforced(void **state)
{
        static const struct {
                const char *fits, *too_long;
        } rows[] = {
                { "{\"title\":\"$256\"}", "{\"title\":\"$257\"}" },
                { "{\"description\":\"$4096\"}", "{\"description\":\"$4097\"}" },
                { "{\"footer\":{\"text\":\"$2048\"}}", "{\"footer\":{\"text\":\"$2049\"}}" },
                { "{\"fields\":[{\"name\":\"$256\",\"value\":\"v\"}]}",
                  "{\"fields\":[{\"name\":\"$257\",\"value\":\"v\"}]}" },
                { "{\"fields\":[{\"name\":\"n\",\"value\":\"$1024\"}]}",
                  "{\"fields\":[{\"name\":\"n\",\"value\":\"$1025\"}]}" },
                { "{\"description\":\"$4096\",\"footer\":{\"text\":\"$1904\"}}",
                  "{\"description\":\"$4096\",\"footer\":{\"text\":\"$1905\"}}" },
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *fits = embed_of(rows[i].fits), *too_long = embed_of(rows[i].too_long);

                json_decref(sim_dc_call(r, NULL, MESSAGES, fits, 200));
                sim_dc_refused(r, NULL, MESSAGES, too_long, 400, 50035);
                free(fits);
                free(too_long);
        }
}

static void an_embed_has_at_most_25_fields(void **state)
{
        struct sim_rig *r = *state;

        for (int count = 25; count <= 26; count++) {
                json_t *fields = json_array(),
                       *message = json_pack("{s:[{s:o}]}", "embeds", "fields", fields);
                char *body;

                for (int i = 0; i < count; i++)
                        json_array_append_new(fields,
                                              json_pack("{s:s, s:s}", "name", "n", "value", "v"));
                body = json_text(message);
                if (count == 25)
                        json_decref(sim_dc_call(r, NULL, MESSAGES, body, 200));
                else
                        sim_dc_refused(r, NULL, MESSAGES, body, 400, 50035);
                free(body);
                json_decref(message);
        }
}

static void an_embed_that_shows_nothing_is_refused(void **state)
{
        struct sim_rig *r = *state;

        sim_dc_refused(r, NULL, MESSAGES, "{\"embeds\":[{}]}", 400, 50035);
        sim_dc_refused(r, NULL, MESSAGES,
                       "{\"embeds\":[{\"fields\":[{\"name\":\"n\",\"value\":\" \"}]}]}", 400,
                       50035);
        sim_rig_control_ok(r, "permissions",
                           "{\"channel\":\"general\",\"deny\":[\"EMBED_LINKS\"]}");
        sim_dc_refused(r, NULL, MESSAGES, "{\"embeds\":[{\"title\":\"t\"}]}", 403, 50013);
}

static void an_embed_is_returned_as_discord_does(void **state)
{
        struct sim_rig *r = *state;
        json_t *m = sim_dc_call(r, NULL, MESSAGES,
                                "{\"embeds\":[{\"title\":\" t\\n\",\"timestamp\":"
                                "\"2023-11-14T22:13:20.120Z\",\"fields\":[{\"name\":\"n\","
                                "\"value\":\"v \"}]}]}",
                                200);
        char *embeds = json_text(json_object_get(m, "embeds"));

        assert_string_equal(embeds, "[{\"title\":\"t\",\"timestamp\":"
                                    "\"2023-11-14T22:13:20.120000+00:00\",\"fields\":"
                                    "[{\"name\":\"n\",\"value\":\"v\",\"inline\":false}],"
                                    "\"type\":\"rich\"}]");
        free(embeds);
        json_decref(m);
}

static void an_archived_thread_takes_only_new_messages(void **state)
{
        struct sim_rig *r = *state;
        char id[32], *threads, *thread, *messages, *edit;
        json_t *m;

        post_message(r, "{\"content\":\"x\"}", id, sizeof(id));
        threads = mem_printf(MESSAGES "/%s/threads", id);
        thread = mem_printf("/channels/%s", id);
        messages = mem_printf("/channels/%s/messages", id);
        json_decref(sim_dc_call(r, NULL, threads, "{\"name\":\"T\"}", 201));
        m = sim_dc_call(r, NULL, messages, "{\"content\":\"one\"}", 200);
        edit = mem_printf("%s/%s", messages, json_str(m, "id", ""));
        json_decref(m);
        json_decref(sim_dc_call(r, "PATCH", thread, "{\"name\":\"U\",\"archived\":true}", 200));
        sim_dc_refused(r, "PATCH", edit, "{\"content\":\"1\"}", 400, 50083);
        sim_dc_refused(r, "PATCH", thread, "{\"name\":\"V\"}", 400, 50083);
        json_decref(sim_dc_call(r, "PATCH", thread, "{\"archived\":false}", 200));
        json_decref(sim_dc_call(r, "PATCH", edit, "{\"content\":\"1\"}", 200));
        json_decref(sim_dc_call(r, "PATCH", thread, "{\"archived\":true}", 200));
        json_decref(sim_dc_call(r, NULL, messages, "{\"content\":\"two\"}", 200));
        json_decref(sim_dc_call(r, "PATCH", edit, "{\"content\":\"2\"}", 200));
        free(edit);
        free(messages);
        free(thread);
        free(threads);
}

static void direct_messages_to_strangers_are_refused(void **state)
{
        struct sim_rig *r = *state;
        json_t *dm;
        char *path;

        sim_rig_control_ok(r, "users", "{\"id\":\"7\",\"username\":\"bob\"}");
        dm = sim_dc_call(r, NULL, "/users/@me/channels", "{\"recipient_id\":\"7\"}", 200);
        path = mem_printf("/channels/%s/messages", json_str(dm, "id", ""));
        json_decref(dm);
        sim_dc_refused(r, NULL, path, "{\"content\":\"x\"}", 403, 50278);
        sim_rig_control_ok(r, "send", "{\"from\":\"bob\",\"text\":\"hi\"}");
        json_decref(sim_dc_call(r, NULL, path, "{\"content\":\"x\"}", 200));
        sim_rig_control_ok(r, "users", "{\"id\":\"7\",\"refuses\":true}");
        sim_dc_refused(r, NULL, path, "{\"content\":\"x\"}", 403, 50007);
        free(path);
}

static void a_channel_keeps_its_last_messages(void **state)
{
        struct sim_rig *r = *state;
        json_t *page, *messages;

        r->world->base.keep_messages = 8;
        for (int i = 0; i < 30; i++)
                sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"old\"}");
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"new\"}");
        page = sim_rig_control(r, "history?channel=general", NULL);
        messages = json_object_get(page, "messages");
        assert_in_range(json_array_size(messages), 2, 8);
        assert_string_equal(
                json_str(json_array_get(messages, json_array_size(messages) - 1), "content", ""),
                "new");
        json_decref(page);
}

static void a_full_bucket_answers_429(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "settings", "{\"limits\":true}");
        for (int i = 4; i >= 0; i--) {
                sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
                sim_rig_await(r, &a);
                assert_int_equal(a.status, 200);
                assert_int_equal(a.remaining[0], '0' + i);
                json_decref(a.body);
        }
        sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 429);
        assert_string_equal(a.scope, "user");
        assert_true(json_number_value(json_object_get(a.body, "retry_after")) > 0);
        assert_int_equal(strlen(a.bucket), 32);
        json_decref(a.body);
        /* another route has another bucket */
        json_decref(sim_dc_call(r, NULL, "/channels/" GENERAL, NULL, 200));
}

static void faults_fire_once(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "faults",
                           "{\"kind\":\"flood\",\"method\":\"create_message\",\"retry_after\":0.25,"
                           "\"scope\":\"global\"}");
        sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 429);
        assert_string_equal(a.scope, "global");
        assert_true(json_flag(a.body, "global", false));
        json_decref(a.body);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"status\":502}");
        sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 502);
        json_decref(a.body);
        assert_int_equal(count_items(r, "messages"), 0);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"cut_after\"}");
        sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 0);
        assert_int_equal(count_items(r, "messages"), 1); /* the message was posted */
}

static void a_simulated_error_may_be_429(void **state)
{
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"error\",\"status\":429}");
        json_decref(sim_dc_call(r, NULL, MESSAGES, "{\"content\":\"x\"}", 429));
        assert_int_equal(count_items(r, "messages"), 0);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"error_after\",\"status\":429}");
        json_decref(sim_dc_call(r, NULL, MESSAGES, "{\"content\":\"x\"}", 429));
        assert_int_equal(count_items(r, "messages"), 1);
}

static void a_slow_call_is_done_at_once_and_answered_late(void **state)
{
        struct sim_rig *r = *state;
        struct sim_answer a;

        sim_rig_control_ok(r, "faults", "{\"kind\":\"slow\",\"ms\":1}");
        json_decref(sim_dc_call(r, NULL, MESSAGES, "{\"content\":\"x\"}", 200));
        sim_rig_control_ok(r, "faults", "{\"kind\":\"slow\",\"ms\":600000}");
        sim_rig_start(r, &a, NULL, "/api/v10" MESSAGES, "{\"content\":\"x\"}");
        while (r->world->base.message_count < 2)
                assert_true(loop_step(r->loop, true));
        assert_false(a.done);
        call_base_cut_all(&r->world->base); /* the simulator ends */
        sim_rig_await(r, &a);
        assert_int_equal(a.status, 0);
}

static void invalid_calls_are_listed(void **state)
{
        struct sim_rig *r = *state;
        json_t *page;

        sim_dc_refused(r, NULL, MESSAGES, "{\"content\":\"x\",\"colour\":1}", 400, 50035);
        sim_rig_control_ok(r, "settings", "{\"strict\":false}");
        json_decref(sim_dc_call(r, NULL, MESSAGES, "{\"content\":\"x\",\"colour\":1}", 200));
        page = sim_rig_control(r, "calls?valid=false", NULL);
        assert_int_equal(json_array_size(json_object_get(page, "items")), 2);
        json_decref(page);
}

static void history_pages_list_newest_first(void **state)
{
        struct sim_rig *r = *state;
        char ids[4][32], *path;
        json_t *page;

        for (int i = 0; i < 4; i++)
                post_message(r, "{\"content\":\"x\"}", ids[i], sizeof(ids[i]));
        path = mem_printf(MESSAGES "?after=%s&limit=2", ids[0]);
        page = sim_dc_call(r, NULL, path, NULL, 200);
        assert_int_equal(json_array_size(page), 2);
        assert_string_equal(json_str(json_array_get(page, 0), "id", ""), ids[2]);
        json_decref(page);
        free(path);
        path = mem_printf(MESSAGES "?before=%s&limit=2", ids[3]);
        page = sim_dc_call(r, NULL, path, NULL, 200);
        assert_string_equal(json_str(json_array_get(page, 0), "id", ""), ids[2]);
        assert_string_equal(json_str(json_array_get(page, 1), "id", ""), ids[1]);
        json_decref(page);
        free(path);
}

/* ---- interactions over HTTP ---- */

static void wait_for_entries(struct sim_rig *r, const char *kind, size_t n)
{
        char *what = mem_printf("messages?wait=5000&after=0&kind=%s", kind);

        while (count_items(r, what) < n)
                continue;
        free(what);
}

/* Copies the value of a request header to out. */
static void header(const char *request, const char *name, char *out, size_t room)
{
        const char *at = strcasestr(request, name);

        assert_non_null(at);
        at += strlen(name) + 2;
        snprintf(out, room, "%.*s", (int)strcspn(at, "\r\n"), at);
}

static void assert_signed(const struct sim_rig *r, const char *request)
{
        char signature[SIGNER_SIGNATURE_SIZE], timestamp[32], expected[SIGNER_SIGNATURE_SIZE];
        const char *body = strstr(request, "\r\n\r\n") + 4;

        header(request, "X-Signature-Ed25519", signature, sizeof(signature));
        header(request, "X-Signature-Timestamp", timestamp, sizeof(timestamp));
        dc_signer_sign(r->world->signer, timestamp, body, strlen(body), expected);
        assert_string_equal(signature, expected);
        assert_non_null(strstr(body, "\"name\":\"ask\""));
}

static void an_endpoint_gets_signed_interactions(void **state)
{
        static const char refusal[] = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        static const char answer[] = "HTTP/1.1 200 OK\r\n"
                                     "Content-Type: application/json\r\n"
                                     "Content-Length: 38\r\n"
                                     "\r\n"
                                     "{\"type\":4,\"data\":{\"content\":\"here\"}}";
        static const struct fake_answer script[] = { { .bytes = refusal },
                                                     { .bytes = refusal },
                                                     { .bytes = answer } };
        struct sim_rig *r = *state;
        struct fake_server *endpoint = fake_server_new(r->loop, script, 3);
        char *request, *url = fake_server_url(endpoint, "/interactions");
        json_t *page, *last;

        json_decref(sim_dc_call(r, "PUT", "/applications/900/commands",
                                "[{\"name\":\"ask\",\"description\":\"Asks\"}]", 200));
        request = mem_printf("{\"interactions_url\":\"%s\"}", url);
        sim_rig_control_ok(r, "bots", request);
        free(request);
        wait_for_entries(r, "endpoint", 2); /* the ping, and the forged probe */
        sim_rig_control_ok(r, "command", "{\"channel\":\"general\",\"name\":\"ask\"}");
        wait_for_entries(r, "interaction_answer", 1);
        page = sim_rig_control(r, "messages?kind=interaction_answer", NULL);
        last = json_array_get(json_object_get(page, "items"), 0);
        assert_string_equal(json_str(last, "text", ""), "here");
        json_decref(page);
        assert_signed(r, fake_server_request(endpoint, 2));
        fake_server_free(endpoint);
        free(url);
}

static void an_interaction_is_answered_once_in_time(void **state)
{
        struct sim_rig *r = *state;
        json_t *made;
        char *path;

        json_decref(sim_dc_call(r, "PUT", "/applications/900/commands",
                                "[{\"name\":\"ask\",\"description\":\"Asks\"}]", 200));
        made = sim_rig_control(r, "command", "{\"channel\":\"general\",\"name\":\"ask\"}");
        path = mem_printf("/interactions/%s/%s/callback", json_str(made, "interaction", ""),
                          json_str(made, "token", ""));
        json_decref(sim_dc_call(r, "POST", path, "{\"type\":5}", 204));
        sim_dc_refused(r, "POST", path, "{\"type\":5}", 400, 40060);
        free(path);
        json_decref(made);
        sim_rig_control_ok(r, "settings", "{\"ack_ms\":-1}");
        made = sim_rig_control(r, "command", "{\"channel\":\"general\",\"name\":\"ask\"}");
        path = mem_printf("/interactions/%s/%s/callback", json_str(made, "interaction", ""),
                          json_str(made, "token", ""));
        sim_dc_refused(r, "POST", path, "{\"type\":5}", 404, 10062);
        free(path);
        json_decref(made);
}

/* ---- scheduled events ---- */

#define EVENTS "/guilds/" LAB "/scheduled-events"
#define PLAN(name, start)                                                                   \
        "{\"name\":\"" name "\",\"privacy_level\":2,\"entity_type\":3,\"entity_metadata\":" \
        "{\"location\":\"here\"},\"scheduled_start_time\":\"" start                         \
        "\",\"scheduled_end_time\":\"2126-11-20T21:00:00Z\"}"
#define LATER "2126-11-20T18:00:00Z"

static void scheduled_events_obey_discords_rules(void **state)
{
        struct sim_rig *r = *state;
        json_t *made;
        char *path;

        sim_dc_refused(r, NULL, EVENTS, PLAN("x", "2020-01-01T00:00:00Z"), 400, 50035);
        sim_dc_refused(r, NULL, EVENTS, PLAN("x", "2127-01-01T00:00:00Z"), 400, 50035);
        sim_dc_refused(r, NULL, EVENTS,
                       "{\"name\":\"x\",\"privacy_level\":2,\"entity_type\":3,\"entity_metadata\":"
                       "{\"location\":\"here\"},\"scheduled_start_time\":\"" LATER "\"}",
                       400, 50035);
        sim_dc_refused(r, "DELETE", EVENTS "/5", NULL, 404, 10070);
        made = sim_dc_call(r, NULL, EVENTS, PLAN("Catan", LATER), 200);
        path = mem_printf(EVENTS "/%s", json_str(made, "id", ""));
        json_decref(made);
        sim_dc_refused(r, "PATCH", path, "{\"scheduled_start_time\":\"2020-01-01T00:00:00Z\"}", 400,
                       50035);
        sim_rig_control_ok(r, "permissions", "{\"guild\":\"Lab\",\"deny\":[\"CREATE_EVENTS\"]}");
        sim_dc_refused(r, NULL, EVENTS, PLAN("x", LATER), 403, 50013);
        sim_dc_refused(r, "PATCH", path, "{\"name\":\"y\"}", 403, 50013);
        sim_rig_control_ok(r, "permissions", "{\"guild\":\"Lab\",\"deny\":[]}");
        json_decref(sim_dc_call(r, "PATCH", path, "{\"status\":4}", 200));
        sim_dc_refused(r, "PATCH", path, "{\"name\":\"y\"}", 400, 180000);
        json_decref(sim_dc_call(r, "DELETE", path, NULL, 204));
        free(path);
}

static void events_of_people_need_another_permission(void **state)
{
        struct sim_rig *r = *state;
        json_t *made = sim_rig_control(r, "event", "{\"name\":\"Go\",\"guild\":\"Lab\"}");
        char *path = mem_printf(EVENTS "/%s", json_str(made, "event_id", ""));

        json_decref(made);
        sim_rig_control_ok(r, "permissions", "{\"guild\":\"Lab\",\"deny\":[\"MANAGE_EVENTS\"]}");
        sim_dc_refused(r, "PATCH", path, "{\"name\":\"y\"}", 403, 50013);
        json_decref(sim_dc_call(r, NULL, EVENTS, PLAN("Catan", LATER), 200));
        free(path);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, sim_dc_setup, sim_dc_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_wrong_token_is_401),
                TEST(a_channel_id_in_use_is_refused),
                TEST(errors_have_discords_codes),
                TEST(missing_permissions_have_distinct_codes),
                TEST(an_enforced_nonce_makes_one_message),
                TEST(a_reply_to_a_missing_message_fails_by_default),
                TEST(only_allowed_mentions_ping),
                TEST(a_refused_edit_changes_nothing),
                TEST(a_message_has_one_thread),
                TEST(each_limit_of_an_embed_is_enforced),
                TEST(an_embed_has_at_most_25_fields),
                TEST(an_embed_that_shows_nothing_is_refused),
                TEST(an_embed_is_returned_as_discord_does),
                TEST(an_archived_thread_takes_only_new_messages),
                TEST(direct_messages_to_strangers_are_refused),
                TEST(a_channel_keeps_its_last_messages),
                TEST(a_full_bucket_answers_429),
                TEST(faults_fire_once),
                TEST(a_simulated_error_may_be_429),
                TEST(a_slow_call_is_done_at_once_and_answered_late),
                TEST(invalid_calls_are_listed),
                TEST(history_pages_list_newest_first),
                TEST(an_endpoint_gets_signed_interactions),
                TEST(an_interaction_is_answered_once_in_time),
                TEST(scheduled_events_obey_discords_rules),
                TEST(events_of_people_need_another_permission),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
