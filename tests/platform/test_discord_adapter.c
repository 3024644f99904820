/* The token test, the lock, slash commands and channel history of the Discord adapter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "discord_rig.h"
#include "platform/attachment_files.h"

/* Where registered commands are remembered; NULL: there are none. */
static const json_t *commands_memory(struct rig *g)
{
        const struct discord *dc = rig_adapter(g)->self;

        return json_object_get(dc->saved, "commands");
}

/* ---- the token ---- */

static void a_good_token_shows_the_bot(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        assert_string_equal(rig_adapter(g)->bot_name, "testbot");
        assert_string_equal(rig_adapter(g)->bot_id, "42");
        assert_int_equal(fake_intake.opened, 1);
}

static void a_wrong_token_stops_with_advice(void **state)
{
        struct rig *g = *state;

        says(g, 401, "{\"message\":\"401: Unauthorized\",\"code\":0}");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "Discord does not know this bot token"));
        assert_non_null(strstr(rig_adapter(g)->why, "adapters.dc.botToken or DISCORD_BOT_TOKEN"));
        assert_int_equal(fake_intake.opened, 0);
}

static void a_token_the_gateway_refuses_stops_too(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        fake_intake.hooks.state(fake_intake.hooks.ctx, DC_GATEWAY_BAD_TOKEN, "close code 4004");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_non_null(strstr(rig_adapter(g)->why, "adapters.dc.botToken or DISCORD_BOT_TOKEN"));
}

/* The gateway is closed from the loop: until then it may still report. */
static void a_stopped_adapter_stays_stopped(void **state)
{
        static const struct {
                enum dc_gateway_state state;
                const char *why;
        } reports[] = {
                { DC_GATEWAY_UP, NULL },
                { DC_GATEWAY_LOST, "it broke" },
                { DC_GATEWAY_STOPPED, "another reason" },
        };
        struct rig *g = *state;

        rig_connect(g, "");
        fake_intake.hooks.state(fake_intake.hooks.ctx, DC_GATEWAY_BAD_TOKEN, "close code 4004");
        for (size_t i = 0; i < COUNT(reports); i++) {
                fake_intake.hooks.state(fake_intake.hooks.ctx, reports[i].state, reports[i].why);
                assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
                assert_non_null(strstr(rig_adapter(g)->why, "does not know this bot token"));
        }
}

static void a_lost_gateway_is_reported(void **state)
{
        struct rig *g = *state;

        rig_connect(g, "");
        fake_intake.hooks.state(fake_intake.hooks.ctx, DC_GATEWAY_LOST, "it broke");
        assert_int_equal(rig_adapter(g)->state, ADAPTER_LOST);
        assert_string_equal(rig_adapter(g)->why, "it broke");
}

static void a_missing_token_names_both_places(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c = adapter_conf_make("dc", "discord", "{}", &err);

        assert_non_null(c);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_STOPPED);
        assert_string_equal(rig_adapter(g)->why,
                            "there is no bot token: set DISCORD_BOT_TOKEN in the environment, or "
                            "adapters.dc.botToken");
}

static void the_environment_may_hold_the_token(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c;
        char *json;

        says(g, 200, ME);
        g->server = fake_server_new(g->loop, g->script, g->count);
        setenv("DISCORD_BOT_TOKEN", "from.the.environment", 1);
        json = mem_printf("{\"apiBase\":\"http://127.0.0.1:%d\"}", fake_server_port(g->server));
        c = adapter_conf_make("dc", "discord", json, &err);
        free(json);
        assert_non_null(c);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
        rig_requests(g, 1);
        assert_non_null(strstr(fake_server_request(g->server, 0),
                               "Authorization: Bot from.the.environment\r\n"));
        unsetenv("DISCORD_BOT_TOKEN");
}

static void an_unreachable_discord_is_retried(void **state)
{
        struct rig *g = *state;

        says(g, 502, "");
        says(g, 200, ME);
        says(g, 200, APPLICATION);
        rig_open(g, ",\"slashCommands\":false");
        rig_until_state(g, ADAPTER_LOST);
        assert_non_null(
                strstr(rig_adapter(g)->why, "Discord answered 502 (apiBase is http://127.0.0.1:"));
        rig_until_state(g, ADAPTER_UP);
}

static void one_token_serves_one_adapter(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        struct adapter_conf *c[2];

        rig_connect(g, "");
        c[0] = adapter_conf_make("again", "discord", "{\"botToken\":\"" TOKEN "\"}", &err);
        c[1] = NULL;
        assert_non_null(c[0]);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
        {
                char *json = mem_printf(
                        "{\"botToken\":\"" TOKEN
                        "\",\"apiBase\":\"http://127.0.0.1:%d\",\"slashCommands\":false}",
                        fake_server_port(g->server));

                c[1] = adapter_conf_make("dc", "discord", json, &err);
                free(json);
        }
        assert_non_null(c[1]);
        assert_int_equal(adapters_apply(g->adapters, c, 2, &err), 0);
        assert_int_equal(adapters_find(g->adapters, "again")->state, ADAPTER_STOPPED);
        assert_non_null(
                strstr(adapters_find(g->adapters, "again")->why, "each bot may be connected once"));
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
}

static void a_changed_token_is_used_everywhere_at_once(void **state)
{
        struct rig *g = *state;
        const struct delivery d = {
                .id = 1, .adapter = "dc", .kind = DELIVER_TYPE, .channel = "7", .payload = "{}"
        };

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 204, "");
        rig_connect(g, "");
        rig_apply(g, "the.new.token", ",\"slashCommands\":false");
        assert_int_equal(fake_intake.freed, 1);
        rig_until_state(g, ADAPTER_UP);
        adapters_send(g->adapters, &d);
        rig_requests(g, 3);
        for (unsigned i = 2; i < 5; i++)
                assert_non_null(strstr(fake_server_request(g->server, i),
                                       "Authorization: Bot the.new.token\r\n"));
        assert_int_equal(fake_intake.opened, 2);
}

static void intents_are_the_defaults_and_the_configured(void **state)
{
        struct rig *g = *state;

        rig_connect(g, ",\"messageContent\":false,\"intents\":[\"GUILD_MEMBERS\"]");
        assert_int_equal(fake_intake.intents, 112129 - (1 << 15) + (1 << 1));
}

static void wrong_settings_are_reported(void **state)
{
        static const struct {
                const char *json, *why;
        } rows[] = {
                { "{\"botToken\":\"Bot abc\"}",
                  "dc:1: botToken: the token is written without 'Bot ' before it" },
                { "{\"botToken\":\"a b\"}",
                  "dc:1: botToken: this does not look like a bot's token from the "
                  "developer portal" },
                { "{\"botToken\":\"a\",\"gatewayUrl\":\"https://x\"}",
                  "dc:1: gatewayUrl: must start with wss:// or ws://" },
                { "{\"botToken\":\"a\",\"intents\":[\"GUILD_MEMBER\"]}",
                  "dc:1: intents: Discord has no intent 'GUILD_MEMBER' (did you mean "
                  "'GUILD_MEMBERS'?)" },
                { "{\"botToken\":\"a\",\"publicKey\":\"zz\"}",
                  "dc:1: publicKey: is too short (at least 64 bytes)" },
                { "{\"botToken\":\"a\",\"commandGuilds\":[\"here\"]}",
                  "dc:1: commandGuilds: ids of servers are digits" },
                { "{\"botToken\":\"a\",\"shards\":\"many\"}",
                  "dc:1: shards: expected a whole number (1 to 1000) or 'auto', not a string" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(adapter_conf_make("dc", "discord", rows[i].json, &err));
                assert_string_equal(err.text, rows[i].why);
        }
}

/* ---- slash commands ---- */

static void commands_are_registered_only_when_they_changed(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        says(g, 200, ME);
        says(g, 200, APPLICATION);
        rig_open(g, "");
        rig_requests(g, 3);
        assert_string_equal(rig_line(g, 2), "PUT /applications/43/commands");
        for (const char *const *name =
                     (const char *const[]){
                             "ask",    "status",   "new",      "stop",   "why",       "pause",
                             "resume", "help",     "link",     "remind", "reminders", "quiet",
                             "event",  "sessions", "steer",    "reply",  "followup",  "abort",
                             "notify", "\"when\"", "\"what\"", NULL };
             *name; name++)
                assert_non_null(strstr(rig_body(g, 2), *name));
        for (int i = 0; i < 100000 && !commands_memory(g); i++)
                loop_step(g->loop, true);
        rig_apply(g, TOKEN, ",\"roleMentions\":true"); /* a new run */
        rig_until_state(g, ADAPTER_UP);
        rig_requests(g, 5);
        loop_step(g->loop, false);
        assert_int_equal(fake_server_requests(g->server), 5);
}

static void command_registration_retries(void **state)
{
        struct rig *g = *state;
        const struct discord *dc;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 503, "{}");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_UP);
        dc = rig_adapter(g)->self;
        for (int i = 0; i < 100000 && !timer_active(dc->commands_timer); i++)
                loop_step(g->loop, true);
        assert_true(timer_active(dc->commands_timer));
        assert_null(json_object_get(dc->saved, "commands"));
}

/* The greeting may be denied the application; READY names it as well. */
static void ready_names_the_application_of_the_commands(void **state)
{
        static const struct dc_gateway_ready ready = { .user_id = "42", .application_id = "43" };
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 403, "{\"code\":50001,\"message\":\"Missing Access\"}");
        says(g, 200, "[]");
        rig_open(g, "");
        rig_until_state(g, ADAPTER_UP);
        assert_int_equal(fake_server_requests(g->server), 2);
        fake_intake.hooks.ready(fake_intake.hooks.ctx, &ready);
        fake_intake.hooks.ready(fake_intake.hooks.ctx, &ready); /* of another shard */
        rig_requests(g, 3);
        assert_string_equal(rig_line(g, 2), "PUT /applications/43/commands");
        for (int i = 0; i < 100000 && !commands_memory(g); i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_server_requests(g->server), 3);
}

static void guild_commands_are_registered_in_their_guilds(void **state)
{
        struct rig *g = *state;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        says(g, 200, "[]");
        rig_open(g, ",\"commandGuilds\":[\"5\",\"6\"]");
        rig_requests(g, 4);
        for (unsigned i = 2; i < 4; i++)
                assert_non_null(strstr("PUT /applications/43/guilds/5/commands PUT "
                                       "/applications/43/guilds/6/commands",
                                       rig_line(g, i)));
}

static void unwanted_commands_are_removed(void **state)
{
        struct rig *g = *state;
        bool gone = false, there = false;

        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        says(g, 200, ME);
        says(g, 200, APPLICATION);
        says(g, 200, "[]");
        says(g, 200, "[]");
        rig_open(g, "");
        rig_requests(g, 3);
        for (int i = 0; i < 100000 && !commands_memory(g); i++)
                loop_step(g->loop, true);
        rig_apply(g, TOKEN, ",\"commandGuilds\":[\"5\"]");
        rig_requests(g, 7);
        for (unsigned i = 5; i < 7; i++) {
                gone = gone || (strcmp(rig_line(g, i), "PUT /applications/43/commands") == 0 &&
                                strcmp(rig_body(g, i), "[]") == 0);
                there = there ||
                        strcmp(rig_line(g, i), "PUT /applications/43/guilds/5/commands") == 0;
        }
        assert_true(gone && there);
}

/* ---- channel history ---- */

struct fetched {
        unsigned calls, count;
        char text[600];
};

static void on_recalled(void *arg, const struct channel_message *lines, size_t count,
                        const struct error *err)
{
        struct fetched *h = arg;

        h->calls++;
        h->count = (unsigned)count;
        if (err)
                snprintf(h->text, sizeof(h->text), "%s", err->text);
        for (size_t i = 0; i < count; i++) {
                size_t n = strlen(h->text);

                snprintf(h->text + n, sizeof(h->text) - n, "%s%s%s:%s ", lines[i].sender_name,
                         lines[i].is_own ? "*" : "", lines[i].is_bot ? "+" : "", lines[i].text);
        }
}

static void channel_history_comes_oldest_first(void **state)
{
        struct rig *g = *state;
        struct fetched h = { 0 };

        says(g, 200,
             "[{\"id\":\"3\",\"content\":\"hello\",\"author\":{\"id\":\"42\","
             "\"username\":\"testbot\",\"bot\":true}},{\"id\":\"2\",\"content\":\"\","
             "\"author\":{\"id\":\"8\",\"username\":\"bob\",\"global_name\":\"Bob\"},"
             "\"message_snapshots\":[{\"message\":{\"content\":\"forwarded\"}}]}]");
        rig_connect(g, "");
        adapters_channel_history(g->adapters, "dc", "7", "70", 25, on_recalled, &h);
        for (int i = 0; i < 100000 && h.calls == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_line(g, 0), "GET /channels/70/messages?limit=25");
        assert_string_equal(h.text, "Bob:forwarded testbot*+:hello ");
}

static void one_message_is_fetched_from_its_channel(void **state)
{
        struct rig *g = *state;
        struct fetched h = { 0 };

        says(g, 200,
             "{\"id\":\"3\",\"content\":\"hello\",\"author\":{\"id\":\"8\",\"username\":\"bob\"}}");
        says(g, 404, "{\"code\":10008,\"message\":\"Unknown Message\"}");
        rig_connect(g, "");
        adapters_message(g->adapters, "dc", "7", "70", "3", on_recalled, &h);
        for (int i = 0; i < 100000 && h.calls == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_line(g, 0), "GET /channels/70/messages/3");
        assert_string_equal(h.text, "bob:hello ");
        adapters_message(g->adapters, "dc", "7", "3", "3", on_recalled, &h);
        for (int i = 0; i < 100000 && h.calls == 1; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_line(g, 1), "GET /channels/7/messages/3"); /* it began the thread */
        assert_int_equal(h.count, 0);
        assert_non_null(strstr(h.text, "Unknown Message"));
}

static void there_is_no_channel_history_without_a_connection(void **state)
{
        static const struct {
                const char *adapter, *why;
        } rows[] = {
                { "dc", "adapter 'dc' is not connected" },
                { "none", "adapter 'none' cannot read a channel's history" },
        };
        struct rig *g = *state;

        rig_connect(g, "");
        adapter_lost(rig_adapter(g), "test");
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fetched h = { 0 };

                adapters_channel_history(g->adapters, rows[i].adapter, "7", NULL, 25, on_recalled,
                                         &h);
                assert_int_equal(h.calls, 0); /* not before the call has returned */
                for (int k = 0; k < 100000 && h.calls == 0; k++)
                        loop_step(g->loop, true);
                assert_string_equal(h.text, rows[i].why);
        }
}

static void a_refused_channel_history_says_why(void **state)
{
        struct rig *g = *state;
        struct fetched h = { 0 };

        says(g, 403, "{\"code\":50001,\"message\":\"Missing Access\"}");
        rig_connect(g, "");
        adapters_channel_history(g->adapters, "dc", "7", NULL, 500, on_recalled, &h);
        for (int i = 0; i < 100000 && h.calls == 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(rig_line(g, 0), "GET /channels/7/messages?limit=100");
        assert_string_equal(
                h.text, "Discord says: Missing Access (50001): give the bot View Channel there");
}

/* ---- channels and users ---- */

struct looked_up {
        unsigned calls;
        enum error_kind kind;
        char text[200];
};

static void on_channel(void *arg, const struct channel_info *info, const struct error *err)
{
        struct looked_up *l = arg;

        l->calls++;
        l->kind = err ? err->kind : ERR_NONE;
        if (info)
                snprintf(l->text, sizeof(l->text), "%s %s %s topic=%s parent=%s members=%d",
                         info->id, info->kind == CHAT_DM ? "dm" : "group", info->name,
                         info->topic ? info->topic : "", info->parent ? info->parent : "",
                         (int)info->members);
}

static void on_user(void *arg, const struct user_info *info, const struct error *err)
{
        struct looked_up *l = arg;

        l->calls++;
        l->kind = err ? err->kind : ERR_NONE;
        if (info)
                snprintf(l->text, sizeof(l->text), "%s %s %s%s", info->id, info->username,
                         info->name, info->is_bot ? " bot" : "");
}

static void await_lookup(struct rig *g, const struct looked_up *l)
{
        for (int i = 0; i < 100000 && l->calls == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(l->calls, 1);
}

static void channels_are_looked_up(void **state)
{
        static const struct {
                const char *json, *text;
        } rows[] = {
                { "{\"id\":\"7\",\"type\":11,\"guild_id\":\"1\",\"name\":\"topic\","
                  "\"parent_id\":\"6\",\"member_count\":3}",
                  "7 group topic topic= parent=6 members=3" },
                { "{\"id\":\"7\",\"type\":0,\"guild_id\":\"1\",\"name\":\"general\","
                  "\"topic\":\"chat\"}",
                  "7 group general topic=chat parent= members=-1" },
                { "{\"id\":\"7\",\"type\":1,\"recipients\":[{\"username\":\"ann\"}]}",
                  "7 dm ann topic= parent= members=-1" },
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                says(g, 200, rows[i].json);
        rig_connect(g, "");
        for (unsigned i = 0; i < COUNT(rows); i++) {
                struct looked_up l = { 0 };

                assert_int_equal(
                        adapters_channel_info(g->adapters, "dc", "7", on_channel, &l, NULL), 0);
                await_lookup(g, &l);
                assert_string_equal(rig_line(g, i), "GET /channels/7");
                assert_string_equal(l.text, rows[i].text);
        }
}

static void users_are_looked_up(void **state)
{
        struct rig *g = *state;
        struct looked_up l = { 0 };
        struct error err = { 0 };

        says(g, 200, "{\"id\":\"5\",\"username\":\"ann\",\"global_name\":\"Ann\"}");
        says(g, 404, "{\"code\":10013,\"message\":\"Unknown User\"}");
        rig_connect(g, "");
        assert_int_equal(adapters_user_info(g->adapters, "dc", "5", on_user, &l, NULL), 0);
        await_lookup(g, &l);
        assert_string_equal(rig_line(g, 0), "GET /users/5");
        assert_string_equal(l.text, "5 ann Ann");
        l = (struct looked_up){ 0 };
        assert_int_equal(adapters_user_info(g->adapters, "dc", "6", on_user, &l, NULL), 0);
        await_lookup(g, &l);
        assert_int_equal(l.kind, ERR_MISSING);
        assert_int_equal(adapters_user_info(g->adapters, "dc", "ann", on_user, &l, &err), -1);
        assert_string_equal(err.text, "'ann' is not a Discord user id");
        assert_int_equal(adapters_channel_info(g->adapters, "dc", "#x", on_channel, &l, &err), -1);
}

static void lookups_in_flight_end_with_the_adapter(void **state)
{
        struct rig *g = *state;
        struct looked_up l = { 0 };

        rig_connect(g, "");
        assert_int_equal(adapters_user_info(g->adapters, "dc", "5", on_user, &l, NULL), 0);
        rig_requests(g, 1);
        adapters_apply(g->adapters, NULL, 0, NULL);
        assert_int_equal(l.calls, 1);
        assert_int_equal(l.kind, ERR_CANCELLED);
}

static void groups_and_abilities_are_known(void **state)
{
        struct rig *g = *state;

        fake_intake.dm = "8";
        rig_connect(g, ",\"admins\":[\"10\"]");
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "10", "100"); /* kept */
        fake_intake.hooks.dm(fake_intake.hooks.ctx, "11", "110");
        assert_true(adapters_channel_is_group(g->adapters, "dc", "7"));
        assert_false(adapters_channel_is_group(g->adapters, "dc", "8"));
        assert_false(adapters_channel_is_group(g->adapters, "dc", "100"));
        assert_false(adapters_channel_is_group(g->adapters, "dc", "110"));
        assert_false(adapters_channel_is_group(g->adapters, "dc", "user:5"));
        assert_int_equal(adapters_abilities(g->adapters, "dc") & (ADAPTER_EDITS | ADAPTER_STREAMS),
                         ADAPTER_EDITS);
}

static void threads_start_only_in_guild_channels(void **state)
{
        struct rig *g = *state;
        struct incoming in = { .adapter = "dc", .id = "55", .chat = CHAT_GROUP };

        rig_connect(g, "");
        assert_string_equal(adapters_thread_at(g->adapters, &in), "55");
        in.thread = "66";
        assert_null(adapters_thread_at(g->adapters, &in));
        in.thread = NULL;
        in.key = "interaction:55";
        assert_null(adapters_thread_at(g->adapters, &in));
        in.key = NULL;
        in.chat = CHAT_DM;
        assert_null(adapters_thread_at(g->adapters, &in));
}

/* ---- reads of the intake ---- */

static void on_got(void *arg, const struct dc_answer *a)
{
        *(int *)arg = a->status;
        assert_true(json_is_object(a->result));
}

static void the_intake_reads_by_rest(void **state)
{
        const struct dc_get q = { "/channels/{channel_id}/messages/{message_id}",
                                  { "7", "8" },
                                  .query = "around=9" };
        struct rig *g = *state;
        int status = 0;

        says(g, 200, "{}");
        rig_connect(g, "");
        fake_intake.hooks.get(fake_intake.hooks.ctx, &q, on_got, &status);
        for (int i = 0; i < 100000 && status == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(status, 200);
        assert_string_equal(rig_line(g, 0), "GET /channels/7/messages/8?around=9");
}

/* The intake is freed while a call is in flight. */
static void a_stopped_gateway_gets_no_late_answers(void **state)
{
        static const struct fake_answer late = {
                .bytes = "HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\n{}"
        };
        const struct dc_get q = { "/channels/{channel_id}/messages", { "7" }, .query = "after=9" };
        struct rig *g = *state;
        int status = 0;

        rig_connect(g, "");
        fake_intake.hooks.get(fake_intake.hooks.ctx, &q, on_got, &status);
        rig_requests(g, 1);
        fake_intake.hooks.state(fake_intake.hooks.ctx, DC_GATEWAY_STOPPED, "the intent is missing");
        for (int i = 0; i < 1000 && fake_intake.freed == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_intake.freed, 1);
        fake_server_answer(g->server, &late);
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, false);
        assert_int_equal(status, 0);
}

/* ---- files that people send ---- */

static void files_are_fetched_from_discord_alone(void **state)
{
        static const char *const foreign[] = {
                "http://127.0.0.1:1/a.txt",
                "https://127.0.0.1/a.txt",
                "http://cdn.discordapp.com/a.txt",
                "https://cdn.discordapp.com:8443/a.txt",
                "https://cdn.discordapp.com.example.org/a.txt",
                "https://someone@cdn.discordapp.com/a.txt",
                "https://cdn.discordapp.com@127.0.0.1/a.txt",
                "file:///etc/passwd",
                "nonsense",
        };
        struct rig *g = *state;
        struct held_files *held;
        char *url;

        says(g, 200, "the bytes");
        rig_connect(g, "");
        for (size_t i = 0; i < COUNT(foreign); i++) {
                held = rig_hold(g, foreign[i], "a.txt");
                assert_string_equal(held->items[0].error,
                                    "its address is neither Discord's nor that of apiBase");
                adapters_release_files(held);
        }
        url = mem_printf("http://someone@127.0.0.1:%d/a.txt", fake_server_port(g->server));
        held = rig_hold(g, url, "a.txt");
        assert_string_equal(held->items[0].error,
                            "its address is neither Discord's nor that of apiBase");
        adapters_release_files(held);
        free(url);
        url = fake_server_url(g->server, "/attachments/a.txt");
        held = rig_hold(g, url, "a.txt");
        assert_null(held->items[0].error);
        assert_string_equal(held->items[0].path, "channels/dc/7/attachments/1-a.txt");
        assert_int_equal(held->items[0].size, 9);
        adapters_release_files(held);
        free(url);
}

static void a_held_file_makes_no_room_for_others(void **state)
{
        const struct attachment_limits limits = { .total_bytes = 1 << 20,
                                                  .chat_bytes = 4096, /* one file */
                                                  .keep_days = -1,
                                                  .adapter_hour_bytes = 1 << 20,
                                                  .sender_hour_bytes = 1 << 20,
                                                  .adapter_queue = 10,
                                                  .sender_queue = 10 };
        struct rig *g = *state;
        struct held_files *first, *second;
        char *url;

        says(g, 200, "one");
        says(g, 200, "two");
        says(g, 200, "three");
        rig_connect(g, "");
        adapters_set_attachment_limits(g->adapters, &limits);
        url = fake_server_url(g->server, "/attachments/a.txt");
        first = rig_hold(g, url, "a.txt");
        assert_null(first->items[0].error);
        second = rig_hold(g, url, "b.txt");
        assert_non_null(strstr(second->items[0].error, "attachments.chatBytes"));
        adapters_release_files(second);
        adapters_release_files(first);
        second = rig_hold(g, url, "b.txt");
        assert_null(second->items[0].error);
        adapters_release_files(second);
        free(url);
}

/* Every pasted picture is called image.png. */
static void files_with_one_name_do_not_collide(void **state)
{
        struct rig *g = *state;
        struct attachment files[2] = { { .name = "image.png", .size = 3 },
                                       { .name = "image.png", .size = 3 } };
        const struct incoming in = { .adapter = "dc",
                                     .channel = "10",
                                     .id = "100",
                                     .sender_id = "5",
                                     .attachments = files,
                                     .attachment_count = 2 };
        struct held_files *held;
        bool done = false;

        says(g, 200, "one");
        says(g, 200, "two");
        rig_connect(g, "");
        files[0].source = files[1].source = fake_server_url(g->server, "/image.png");
        held = adapters_hold_files(g->adapters, &in, rig_on_held, &done);
        while (!done)
                loop_step(g->loop, true);
        assert_string_equal(held->items[0].path, "channels/dc/10/attachments/100-image.png");
        assert_string_equal(held->items[1].path, "channels/dc/10/attachments/100-2-image.png");
        adapters_release_files(held);
        free((char *)(uintptr_t)files[0].source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_good_token_shows_the_bot),
                TEST(files_are_fetched_from_discord_alone),
                TEST(a_held_file_makes_no_room_for_others),
                TEST(files_with_one_name_do_not_collide),
                TEST(a_wrong_token_stops_with_advice),
                TEST(a_token_the_gateway_refuses_stops_too),
                TEST(a_stopped_adapter_stays_stopped),
                TEST(a_lost_gateway_is_reported),
                TEST(a_missing_token_names_both_places),
                TEST(the_environment_may_hold_the_token),
                TEST(an_unreachable_discord_is_retried),
                TEST(one_token_serves_one_adapter),
                TEST(a_changed_token_is_used_everywhere_at_once),
                TEST(intents_are_the_defaults_and_the_configured),
                TEST(wrong_settings_are_reported),
                TEST(commands_are_registered_only_when_they_changed),
                TEST(command_registration_retries),
                TEST(ready_names_the_application_of_the_commands),
                TEST(guild_commands_are_registered_in_their_guilds),
                TEST(unwanted_commands_are_removed),
                TEST(channel_history_comes_oldest_first),
                TEST(a_refused_channel_history_says_why),
                TEST(one_message_is_fetched_from_its_channel),
                TEST(there_is_no_channel_history_without_a_connection),
                TEST(channels_are_looked_up),
                TEST(users_are_looked_up),
                TEST(lookups_in_flight_end_with_the_adapter),
                TEST(groups_and_abilities_are_known),
                TEST(threads_start_only_in_guild_channels),
                TEST(the_intake_reads_by_rest),
                TEST(a_stopped_gateway_gets_no_late_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
