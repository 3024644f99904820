/* REST calls: paths, limits, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "../lib/scratch.h"
#include "base/buf.h"
#include "call_rig.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/dc_rest.h"

#define TOKEN "a-bot.token_of-discord"

/* What only Discord has; of the test that runs. */
static struct {
        struct dc_rest *rest;
        struct secret *token;
        /* of the last answer */
        bool global;
        int code;
        char id[30];
} discord;

static void on_unauthorized(void *arg)
{
        ((struct rig *)arg)->unauthorized++;
}

static struct rig *rig_new(void)
{
        memset(&discord, 0, sizeof(discord));
        discord.token = secret_new(TOKEN, strlen(TOKEN));
        return call_rig_new();
}

static void rig_open(struct rig *g, unsigned invalid_max)
{
        char *base;

        g->server = fake_server_new(g->loop, g->script, g->count);
        base = fake_server_url(g->server, "/api/v10/");
        discord.rest = dc_rest_new(&(struct dc_rest_options){ .loop = g->loop,
                                                              .http = g->http,
                                                              .base = base,
                                                              .token = discord.token,
                                                              .name = "dc",
                                                              .invalid_max = invalid_max,
                                                              .unauthorized = on_unauthorized,
                                                              .arg = g });
        free(base);
}

static void rig_free(struct rig *g)
{
        dc_rest_free(discord.rest);
        call_rig_free(g);
        secret_free(discord.token);
}

static void on_answer(void *arg, const struct dc_answer *a)
{
        answered(arg,
                 &(struct call_answer){ .ok = a->ok,
                                        .status = a->status,
                                        .reach = a->reach,
                                        .kind = a->kind,
                                        .retry_after_ms = a->retry_after_ms },
                 a->why);
        discord.global = a->global;
        discord.code = a->code;
        snprintf(discord.id, sizeof(discord.id), "%s", json_str(a->result, "id", ""));
}

static struct dc_call *ask(struct rig *g, char letter, struct dc_request q)
{
        return dc_rest_call(discord.rest, &q, on_answer, named(g, letter));
}

static struct dc_request to_channel(const char *channel)
{
        return (struct dc_request){ .method = "POST",
                                    .route = "/channels/{channel_id}/messages",
                                    .args = { channel },
                                    .priority = DC_NORMAL };
}

static size_t waiting(void)
{
        unsigned invalid;
        size_t n;

        dc_rest_stats(discord.rest, &n, &invalid);
        return n;
}

static unsigned invalid(void)
{
        unsigned n;
        size_t waiting;

        dc_rest_stats(discord.rest, &waiting, &n);
        return n;
}

/* ---- requests ---- */

static void a_call_has_the_user_agent_and_token(void **state)
{
        struct rig *g = rig_new();
        json_t *body = json_pack("{s:s}", "content", "hi");
        struct dc_request q = to_channel("123");

        (void)state;
        says(g, 200, "", "{\"id\":\"9\"}");
        rig_open(g, 0);
        q.body = body;
        q.query = "wait=true";
        ask(g, 'a', q);
        json_decref(body);
        until_answers(g, 1);
        assert_true(g->last.ok);
        assert_true(asked_for(g, 0, "POST /api/v10/channels/123/messages?wait=true HTTP"));
        assert_true(asked_for(g, 0, "Authorization: Bot " TOKEN "\r\n"));
        assert_true(asked_for(g, 0, "User-Agent: DiscordBot (https://"));
        assert_true(asked_for(g, 0, "Content-Type: application/json\r\n"));
        assert_true(asked_for(g, 0, "{\"content\":\"hi\"}"));
        assert_null(strstr(fake_server_request(g->server, 0), "User-Agent: dragoman"));
        rig_free(g);
}

static void interaction_routes_do_not_send_the_token(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 204, "", "");
        rig_open(g, 0);
        ask(g, 'a',
            (struct dc_request){
                    .method = "POST",
                    .route = "/interactions/{interaction_id}/{interaction_token}/callback",
                    .args = { "1", "its.token" } });
        until_answers(g, 1);
        assert_true(asked_for(g, 0, "POST /api/v10/interactions/1/its.token/callback"));
        assert_false(asked_for(g, 0, "Authorization"));
        rig_free(g);
}

static void emoji_are_percent_encoded(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 204, "", "");
        says(g, 204, "", "");
        rig_open(g, 0);
        ask(g, 'a',
            (struct dc_request){
                    .method = "PUT",
                    .route = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}"
                             "/@me",
                    .args = { "1", "2", "👀" } });
        until_answers(g, 1);
        assert_true(
                asked_for(g, 0, "PUT /api/v10/channels/1/messages/2/reactions/%F0%9F%91%80/@me"));
        ask(g, 'b',
            (struct dc_request){
                    .method = "PUT",
                    .route = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}"
                             "/@me",
                    .args = { "1", "2", "party:77" } });
        until_answers(g, 2);
        assert_true(asked_for(g, 1, "/reactions/party%3A77/@me"));
        rig_free(g);
}

static void ids_must_be_digits(void **state)
{
        static const char *const bad[] = { "",   "12a", "../users/@me",
                                           "-1", "1 ",  "123456789012345678901",
                                           NULL };
        struct rig *g = rig_new();

        (void)state;
        rig_open(g, 0);
        for (unsigned i = 0; i < COUNT(bad); i++) {
                ask(g, 'a', to_channel(bad[i]));
                assert_int_equal(g->answers, i); /* not before the call has returned */
                until_answers(g, i + 1);
                assert_int_equal(g->last.kind, ERR_INVALID);
                assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        }
        assert_string_equal(g->last.why, "'' is no channel_id of Discord: ids are digits");
        assert_int_equal(fake_server_requests(g->server), 0);
        rig_free(g);
}

static void files_are_parts_next_to_the_json(void **state)
{
        struct rig *g = rig_new();
        char *dir = scratch_new(), *path = scratch_path(dir, "a.txt");
        struct dc_upload file = { { -1, 9 }, "note.txt", "text/plain" };
        json_t *body = json_pack("{s:s}", "content", "see");
        struct dc_request q = to_channel("5");
        FILE *f = fopen(path, "w");

        (void)state;
        assert_non_null(f);
        fputs("the bytes", f);
        fclose(f);
        file.file.fd = open(path, O_RDONLY | O_CLOEXEC);
        says(g, 200, "", "{}");
        rig_open(g, 0);
        q.body = body;
        q.files = &file;
        q.file_count = 1;
        ask(g, 'a', q);
        json_decref(body);
        close(file.file.fd); /* the call has its own */
        until_answers(g, 1);
        assert_true(asked_for(g, 0, "name=\"payload_json\""));
        assert_true(asked_for(g, 0, "{\"content\":\"see\"}"));
        assert_true(asked_for(g, 0, "name=\"files[0]\"; filename=\"note.txt\""));
        assert_true(asked_for(g, 0, "the bytes"));
        rig_free(g);
        free(path);
        scratch_free(dir);
}

static void a_refusal_names_code_and_field(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 400, "",
             "{\"code\":50035,\"message\":\"Invalid Form "
             "Body\",\"errors\":{\"content\":{\"_errors\":[{\"code\":\"BASE_TYPE_MAX_LENGTH\","
             "\"message\":\"Must "
             "be 2000 or fewer in length.\"}]}}}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_false(g->last.ok);
        assert_int_equal(discord.code, 50035);
        assert_string_equal(
                g->last.why,
                "Discord says: Invalid Form Body (50035): content: Must be 2000 or fewer in "
                "length.");
        rig_free(g);
}

/* ---- failures ---- */

static void cuts_before_and_after_sending_differ(void **state)
{
        struct rig *g = rig_new();
        char *base;

        (void)state;
        g->script[g->count++] = (struct fake_answer){ .bytes = NULL, .end = FAKE_RESET };
        says(g, 502, "", "<html>");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_int_equal(g->last.status, 0);
        assert_int_equal(g->last.reach, HTTP_UNSURE);
        ask(g, 'b', to_channel("1"));
        until_answers(g, 2);
        assert_int_equal(g->last.status, 502);
        assert_int_equal(g->last.reach, HTTP_ANSWERED);
        assert_string_equal(g->last.why, "Discord answered 502");

        dc_rest_free(discord.rest);
        base = fake_server_url(g->server, "");
        fake_server_free(g->server);
        g->server = NULL;
        loop_step(g->loop, false);
        discord.rest = dc_rest_new(&(struct dc_rest_options){ .loop = g->loop,
                                                              .http = g->http,
                                                              .base = base,
                                                              .token = discord.token,
                                                              .name = "dc" });
        free(base);
        ask(g, 'c', to_channel("1"));
        until_answers(g, 3);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_non_null(strstr(g->last.why, "Discord could not be reached: "));
        rig_free(g);
}

static void after_a_401_no_calls_are_made(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 401, "", "{\"message\":\"401: Unauthorized\",\"code\":0}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_int_equal(g->unauthorized, 1);
        ask(g, 'b', to_channel("2"));
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_REFUSED);
        assert_int_equal(g->unauthorized, 1);
        assert_int_equal(fake_server_requests(g->server), 1);
        rig_free(g);
}

/* The first call to a channel goes alone; the others wait for its answer. */
static void a_closed_guard_stops_waiting_calls(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 403, "", "{\"code\":50001,\"message\":\"Missing Access\"}");
        rig_open(g, 1);
        for (int i = 0; i < 3; i++)
                ask(g, 'a', to_channel("1"));
        until_answers(g, 3);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_int_equal(fake_server_requests(g->server), 1);
        rig_free(g);
}

static void idle_calls_stop_at_half_the_refusals(void **state)
{
        struct dc_request idle = to_channel("9");
        struct rig *g = rig_new();

        (void)state;
        says(g, 403, "", "{\"code\":50001,\"message\":\"Missing Access\"}");
        says(g, 200, "", "{}");
        rig_open(g, 2);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        idle.priority = DC_IDLE;
        ask(g, 'b', idle);
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        ask(g, 'c', to_channel("2"));
        until_answers(g, 3);
        assert_int_equal(g->last.status, 200);
        rig_free(g);
}

static void an_unknown_token_stops_waiting_calls(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 401, "", "{\"code\":0,\"message\":\"401: Unauthorized\"}");
        rig_open(g, 0);
        for (int i = 0; i < 3; i++)
                ask(g, 'a', to_channel("1"));
        until_answers(g, 3);
        assert_int_equal(g->last.kind, ERR_REFUSED);
        assert_int_equal(fake_server_requests(g->server), 1);
        rig_free(g);
}

static void refused_calls_stop_before_a_ban(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 403, "", "{\"code\":50001,\"message\":\"Missing Access\"}");
        says(g, 404, "", "{\"code\":10003,\"message\":\"Unknown Channel\"}");
        says(g, 429, "X-RateLimit-Scope: shared\r\n",
             "{\"retry_after\":60,\"message\":\"slow\",\"global\":false}");
        says(g, 429, "X-RateLimit-Scope: user\r\n",
             "{\"retry_after\":60,\"message\":\"slow\",\"global\":false}");
        rig_open(g, 2);
        for (unsigned i = 0; i < 4; i++) {
                static const char *const channels[] = { "1", "2", "3", "4" };

                ask(g, 'a', to_channel(channels[i]));
                until_answers(g, i + 1);
        }
        assert_int_equal(invalid(), 2); /* a 404 and a shared limit do not count */
        ask(g, 'b', to_channel("5"));
        until_answers(g, 5);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_non_null(strstr(g->last.why, "ban our address"));
        assert_int_equal(fake_server_requests(g->server), 4);
        rig_free(g);
}

/* Also without a code we know. A code about one message or person stops no others. */
static void denied_typing_is_not_tried_again(void **state)
{
        static const struct {
                const char *body;
                int code; /* of the second answer */
                unsigned requests;
        } rows[] = {
                { "{\"code\":50013,\"message\":\"Missing Permissions\"}", 50013, 1 },
                { "{\"code\":99999,\"message\":\"New\"}", 99999, 1 },
                { "{\"message\":\"403: Forbidden\",\"code\":0}", 50013, 1 },
                { "", 50013, 1 },
                { "{\"code\":90001,\"message\":\"Reaction blocked\"}", 90001, 2 },
        };
        struct dc_request typing = { .method = "POST",
                                     .route = "/channels/{channel_id}/typing",
                                     .args = { "1" },
                                     .priority = DC_IDLE };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 403, "", rows[i].body);
                says(g, 403, "", rows[i].body);
                rig_open(g, 0);
                ask(g, 'a', typing);
                until_answers(g, 1);
                ask(g, 'b', typing);
                until_answers(g, 2);
                assert_int_equal(discord.code, rows[i].code);
                assert_int_equal(fake_server_requests(g->server), rows[i].requests);
                rig_free(g);
        }
}

/* ---- limits ---- */

#define BUCKET(hash, remaining, reset)                                  \
        "X-RateLimit-Bucket: " hash                                     \
        "\r\nX-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: " remaining \
        "\r\nX-RateLimit-Reset-After: " reset "\r\n"

static void an_empty_bucket_waits_others_do_not(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, BUCKET("h", "0", "0.300"), "{}");
        says(g, 200, BUCKET("h", "4", "5"), "{}");
        says(g, 200, BUCKET("h", "4", "5"), "{}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        ask(g, 'b', to_channel("1"));
        ask(g, 'c', to_channel("2"));
        assert_int_equal(waiting(), 1);
        until_answers(g, 3);
        assert_string_equal(g->order, "acb");
        rig_free(g);
}

static void a_long_wait_is_refused_at_once(void **state)
{
        struct rig *g = rig_new();
        struct dc_request q = to_channel("1");

        (void)state;
        says(g, 200, BUCKET("h", "0", "60"), "{}");
        rig_open(g, 0);
        ask(g, 'a', q);
        until_answers(g, 1);
        ask(g, 'b', q);
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_in_range(g->last.retry_after_ms, 50000, 60000);
        assert_int_equal(waiting(), 0);
        rig_free(g);
}

static void routes_of_one_bucket_share_it(void **state)
{
        struct rig *g = rig_new();
        struct dc_request other = { .method = "PATCH",
                                    .route = "/channels/{channel_id}/messages/{message_id}",
                                    .args = { "1", "2" } };

        (void)state;
        says(g, 200, BUCKET("same", "3", "60"), "{}");
        says(g, 200, BUCKET("same", "0", "60"), "{}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        ask(g, 'b', other);
        until_answers(g, 2);
        ask(g, 'c', to_channel("1"));
        until_answers(g, 3);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_int_equal(fake_server_requests(g->server), 2);
        rig_free(g);
}

static void the_first_call_of_a_route_goes_alone(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, BUCKET("h", "4", "5"), "{}");
        says(g, 200, BUCKET("h", "3", "5"), "{}");
        says(g, 200, BUCKET("h", "2", "5"), "{}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        ask(g, 'b', to_channel("1"));
        ask(g, 'c', to_channel("1"));
        assert_int_equal(waiting(), 2);
        until_answers(g, 3);
        assert_int_equal(g->order[0], 'a');
        rig_free(g);
}

static void urgent_calls_go_first(void **state)
{
        struct rig *g = rig_new();
        struct dc_request q = to_channel("1");

        (void)state;
        for (int i = 0; i < 4; i++)
                says(g, 200, BUCKET("h", "1", "0.001"), "{}");
        rig_open(g, 0);
        ask(g, 'a', q);
        q.priority = DC_IDLE;
        ask(g, 'b', q);
        q.priority = DC_NORMAL;
        ask(g, 'c', q);
        q.priority = DC_URGENT;
        ask(g, 'd', q);
        until_answers(g, 4);
        assert_string_equal(g->order, "adcb");
        rig_free(g);
}

static void a_short_429_is_retried(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, BUCKET("h", "0", "0.05"),
             "{\"message\":\"slow\",\"retry_after\":0.05,\"global\":false}");
        says(g, 200, BUCKET("h", "4", "5"), "{}");
        says(g, 200, BUCKET("h", "3", "5"), "{}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        ask(g, 'b', to_channel("1"));
        until_answers(g, 2);
        assert_true(g->last.ok);
        assert_string_equal(g->order, "ab");
        assert_int_equal(fake_server_requests(g->server), 3);
        rig_free(g);
}

static void a_long_429_is_reported(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, BUCKET("h", "0", "3600"),
             "{\"message\":\"slow\",\"retry_after\":3600.5,\"global\":false}");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_int_equal(g->last.status, 429);
        assert_in_range(g->last.retry_after_ms, 3600500, 3600501);
        assert_false(discord.global);
        rig_free(g);
}

static void a_global_429_spares_interactions(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, "X-RateLimit-Global: true\r\nX-RateLimit-Scope: global\r\nRetry-After: 60\r\n",
             "{\"message\":\"slow\",\"retry_after\":60,\"global\":true}");
        says(g, 204, "", "");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_true(discord.global);
        ask(g, 'b', to_channel("2"));
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        ask(g, 'c',
            (struct dc_request){
                    .method = "POST",
                    .route = "/interactions/{interaction_id}/{interaction_token}/callback",
                    .args = { "1", "t" } });
        until_answers(g, 3);
        assert_true(g->last.ok);
        rig_free(g);
}

/* It has three seconds, however slow Discord is with other calls. */
static void an_acknowledgement_overtakes_slow_calls(void **state)
{
        struct rig *g = rig_new();
        struct dc_request urgent = {
                .method = "POST",
                .route = "/interactions/{interaction_id}/{interaction_token}/callback",
                .args = { "1", "t" },
                .priority = DC_URGENT
        };
        char channel[16];

        (void)state;
        rig_open(g, 0);
        for (int i = 0; i < 40; i++) { /* none of them is answered */
                snprintf(channel, sizeof(channel), "%d", 1 + i);
                ask(g, 'a', to_channel(channel));
        }
        while (waiting() < DC_WAITING_MAX)
                ask(g, 'b', to_channel("1"));
        assert_true(dc_rest_begun(ask(g, 'c', urgent)));
        rig_free(g);
}

static void a_429_of_cloudflare_is_global(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, "Retry-After: 60\r\nContent-Type: text/html\r\n",
             "<html>error code: 1015</html>");
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_true(discord.global);
        assert_int_equal(g->last.retry_after_ms, 60000);
        ask(g, 'b', to_channel("2"));
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_int_equal(fake_server_requests(g->server), 1);
        rig_free(g);
}

static void the_queue_of_calls_is_bounded(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_open(g, 0);
        for (int i = 0; i < DC_WAITING_MAX + 1; i++)
                ask(g, 'a', to_channel("1"));
        assert_int_equal(waiting(), DC_WAITING_MAX);
        ask(g, 'z', to_channel("1"));
        until_answers(g, 1);
        assert_int_equal(g->order[0], 'z');
        assert_int_equal(g->last.kind, ERR_LIMIT);
        rig_free(g);
}

/* 400 KB of JSON. */
static char *large_answer(void)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "{\"id\":\"77\",\"list\":[0");
        for (int i = 0; i < 100000; i++)
                buf_addstr(&b, ",123");
        buf_addstr(&b, "]}");
        return buf_take(&b);
}

static void a_large_answer_is_parsed_off_the_loop(void **state)
{
        struct rig *g = rig_new();
        struct dc_call *aborted;
        char *large = large_answer();

        (void)state;
        for (int i = 0; i < 3; i++)
                says(g, 200, "", large);
        free(large);
        rig_open(g, 0);
        ask(g, 'a', to_channel("1"));
        until_answers(g, 1);
        assert_true(g->last.ok);
        assert_string_equal(discord.id, "77");
        aborted = ask(g, 'b', to_channel("1"));
        for (int i = 0; i < 100000 && !aborted->parsing; i++)
                loop_step(g->loop, true);
        assert_non_null(aborted->parsing);
        assert_true(dc_rest_begun(aborted));
        dc_rest_abort(aborted);
        aborted = ask(g, 'c', to_channel("1"));
        for (int i = 0; i < 100000 && !aborted->parsing; i++)
                loop_step(g->loop, true);
        dc_rest_free(discord.rest); /* with one of them in flight */
        discord.rest = NULL;
        for (int i = 0; i < 50; i++)
                loop_step(g->loop, false);
        assert_int_equal(g->answers, 1);
        rig_free(g);
}

static void an_aborted_call_is_never_answered(void **state)
{
        struct rig *g = rig_new();
        struct dc_call *flying, *waiting, *refused;

        (void)state;
        says(g, 200, "", "{}");
        says(g, 200, "", "{}");
        rig_open(g, 0);
        flying = ask(g, 'a', to_channel("1"));
        waiting = ask(g, 'b', to_channel("1"));
        refused = ask(g, 'c', to_channel("x"));
        assert_true(dc_rest_begun(flying));
        assert_false(dc_rest_begun(waiting));
        ask(g, 'd', to_channel("1"));
        dc_rest_abort(flying);
        dc_rest_abort(waiting);
        dc_rest_abort(refused);
        until_answers(g, 1);
        assert_string_equal(g->order, "d");
        rig_free(g);
}

/* ---- arithmetic ---- */

static void decimals_do_not_depend_on_the_locale(void **state)
{
        static const struct {
                const char *text;
                int64_t ms;
        } rows[] = { { "1", 1000 },      { "0.5", 500 },
                     { "1.25", 1250 },   { "0.0004", 1 },
                     { "64.57", 64570 }, { "0.001", 1 },
                     { "2.", 2000 },     { "1470173023.123", INT64_C(1470173023123) },
                     { "1.2000", 1200 }, { "", -1 },
                     { "x", -1 },        { "-1", -1 },
                     { ".5", -1 } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(dc_rate_limit_ms(rows[i].text), rows[i].ms);
        assert_int_equal(dc_rate_limit_ms(NULL), -1);
        assert_true(dc_rate_limit_ms("99999999999999999999999999") > 0);
}

static void overtaking_answers_keep_the_limit(void **state)
{
        struct dc_rate_limits l;
        struct dc_bucket *b;
        struct dc_rate_limit_headers second = {
                .limit = 5, .remaining = 3, .reset_after_ms = 1000, .window = 77
        };
        struct dc_rate_limit_headers first = {
                .limit = 5, .remaining = 4, .reset_after_ms = 1000, .window = 77
        };

        (void)state;
        dc_rate_limits_init(&l);
        b = dc_rate_limits_bucket(&l, "GET", "/x", "", 0);
        assert_int_equal(dc_rate_limit_wait(b, 0), 0);
        b->lane.flying = 1;
        assert_int_equal(dc_rate_limit_wait(b, 0), -1);
        b->lane.flying = 0;
        dc_rate_limit_update(b, &second, 0);
        dc_rate_limit_update(b, &first, 10);
        assert_int_equal(b->remaining, 3);
        b->lane.flying = 3;
        assert_int_equal(dc_rate_limit_wait(b, 20), -1);
        b->lane.flying = 2;
        assert_int_equal(dc_rate_limit_wait(b, 20), 0);
        b->lane.flying = 4;
        assert_int_equal(dc_rate_limit_wait(b, 1000), 0); /* a new window */
        b->lane.flying = 5;
        assert_int_equal(dc_rate_limit_wait(b, 1000), -1);
        b->lane.flying = 0;
        dc_rate_limit_close(b, 500, 1000);
        dc_rate_limit_close(b, 100, 1000);
        assert_int_equal(dc_rate_limit_wait(b, 1200), 300);
        dc_rate_limits_release(&l);
}

static void idle_buckets_are_forgotten(void **state)
{
        struct dc_rate_limits l;
        char major[24];

        (void)state;
        dc_rate_limits_init(&l);
        for (int i = 0; i < 5000; i++) {
                snprintf(major, sizeof(major), "%d", i);
                dc_rate_limits_bucket(&l, "POST", "/webhooks/{webhook_id}/{webhook_token}", major,
                                      i);
        }
        assert_true(l.buckets.count < 1100);
        dc_rate_limits_release(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_call_has_the_user_agent_and_token),
                cmocka_unit_test(interaction_routes_do_not_send_the_token),
                cmocka_unit_test(emoji_are_percent_encoded),
                cmocka_unit_test(ids_must_be_digits),
                cmocka_unit_test(files_are_parts_next_to_the_json),
                cmocka_unit_test(a_refusal_names_code_and_field),
                cmocka_unit_test(cuts_before_and_after_sending_differ),
                cmocka_unit_test(after_a_401_no_calls_are_made),
                cmocka_unit_test(refused_calls_stop_before_a_ban),
                cmocka_unit_test(a_closed_guard_stops_waiting_calls),
                cmocka_unit_test(idle_calls_stop_at_half_the_refusals),
                cmocka_unit_test(an_unknown_token_stops_waiting_calls),
                cmocka_unit_test(denied_typing_is_not_tried_again),
                cmocka_unit_test(an_empty_bucket_waits_others_do_not),
                cmocka_unit_test(a_long_wait_is_refused_at_once),
                cmocka_unit_test(routes_of_one_bucket_share_it),
                cmocka_unit_test(the_first_call_of_a_route_goes_alone),
                cmocka_unit_test(urgent_calls_go_first),
                cmocka_unit_test(a_short_429_is_retried),
                cmocka_unit_test(a_long_429_is_reported),
                cmocka_unit_test(a_global_429_spares_interactions),
                cmocka_unit_test(an_acknowledgement_overtakes_slow_calls),
                cmocka_unit_test(a_429_of_cloudflare_is_global),
                cmocka_unit_test(the_queue_of_calls_is_bounded),
                cmocka_unit_test(a_large_answer_is_parsed_off_the_loop),
                cmocka_unit_test(an_aborted_call_is_never_answered),
                cmocka_unit_test(decimals_do_not_depend_on_the_locale),
                cmocka_unit_test(overtaking_answers_keep_the_limit),
                cmocka_unit_test(idle_buckets_are_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
