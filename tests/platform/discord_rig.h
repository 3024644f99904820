/*
 * discord_rig: a Discord adapter against a scripted REST server, with a fake intake and a road that
 * records.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_DISCORD_RIG_H
#define TESTS_DISCORD_RIG_H

#include <stdio.h>
#include <sys/stat.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "fake_road.h"
#include "platform/discord/discord.h"
#include "platform/platform.h"

#define TOKEN "MTIz.bot_token-of.Discord"

/* ---- the fake intake ---- */

static struct {
        struct dc_intake_hooks hooks;
        unsigned opened, freed, intents;
        struct {
                void (*stored)(void *arg, bool ok);
                void *arg;
        } waiting;
        const char *named, *named_id; /* a known user */
        const char *dm;               /* a channel that is a DM */
} fake_intake;

struct dc_intake *dc_intake_new(const struct dc_intake_options *options,
                                const struct dc_intake_hooks *hooks)
{
        fake_intake.intents = options->gateway.intents;
        fake_intake.hooks = *hooks;
        fake_intake.opened++;
        hooks->state(hooks->ctx, DC_GATEWAY_UP, NULL);
        return (struct dc_intake *)&fake_intake;
}

void dc_intake_free(struct dc_intake *in)
{
        if (in)
                fake_intake.freed++;
}

void dc_intake_post(struct dc_intake *in, const json_t *interaction,
                    void (*stored)(void *arg, bool ok), void *arg)
{
        (void)in;
        (void)interaction;
        fake_intake.waiting.stored = stored;
        fake_intake.waiting.arg = arg;
}

bool dc_intake_channel(const struct dc_intake *in, const char *channel, struct dc_channel_info *out)
{
        (void)in;
        *out = (struct dc_channel_info){
                .id = channel,
                .guild = fake_intake.dm && strcmp(fake_intake.dm, channel) == 0 ? NULL : "1"
        };
        return true;
}

const char *dc_intake_user_named(const struct dc_intake *in, const char *username)
{
        (void)in;
        return fake_intake.named && strcmp(fake_intake.named, username) == 0 ? fake_intake.named_id
                                                                             : NULL;
}

/* ---- the rig ---- */

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct adapters *adapters;
        struct fake_server *server;
        struct fake_answer script[40];
        char *bytes[40];
        size_t count;
        unsigned greetings; /* requests before the first that matters */
};

/* Adds an answer to the script; json NULL: the server stays silent. */
static inline void says_with(struct rig *g, int status, const char *headers, const char *json)
{
        if (json)
                g->bytes[g->count] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n%s",
                                                status, strlen(json), headers, json);
        g->script[g->count] = (struct fake_answer){ .bytes = g->bytes[g->count] };
        g->count++;
}

static inline void says(struct rig *g, int status, const char *json)
{
        says_with(g, status, "", json);
}

#define ME "{\"id\":\"42\",\"username\":\"testbot\",\"bot\":true}"
#define APPLICATION \
        "{\"id\":\"43\",\"name\":\"Test\",\"verify_key\":\"" PUBLIC_KEY "\",\"flags\":524288}"
#define PUBLIC_KEY "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"

static inline struct rig *rig_new(void)
{
        static const char *const folders[] = { "state", "workspace" };
        struct rig *g = mem_zalloc(sizeof(*g));

        fake_road_reset();
        memset(&fake_intake, 0, sizeof(fake_intake));
        g->dir = scratch_new();
        for (size_t i = 0; i < COUNT(folders); i++) {
                char *path = scratch_path(g->dir, folders[i]);

                assert_int_equal(mkdir(path, 0700), 0);
                free(path);
        }
        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        g->adapters = adapters_new(g->loop, g->http, g->dir);
        adapters_set_road(g->adapters, FAKE_ROAD);
        return g;
}

static inline void rig_free(struct rig *g)
{
        adapters_free(g->adapters);
        http_client_free(g->http);
        if (g->server)
                fake_server_free(g->server);
        loop_free(g->loop);
        for (size_t i = 0; i < g->count; i++)
                free(g->bytes[i]);
        scratch_free(g->dir);
        free(g);
}

/* Configures the adapter "dc"; `more` begins with a comma. */
static inline void rig_apply(struct rig *g, const char *token, const char *more)
{
        struct error err = { 0 };
        struct adapter_conf *c;
        char *json = mem_printf("{\"botToken\":\"%s\",\"apiBase\":\"http://127.0.0.1:%d\"%s}",
                                token, fake_server_port(g->server), more);

        c = adapter_conf_make("dc", "discord", json, &err);
        free(json);
        if (!c)
                fail_msg("%s", err.text);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
}

/* Starts the server and the adapter; `more` are further settings. */
static inline void rig_open(struct rig *g, const char *more)
{
        g->server = fake_server_new(g->loop, g->script, g->count);
        rig_apply(g, TOKEN, more);
}

static inline struct adapter *rig_adapter(struct rig *g)
{
        return adapters_find(g->adapters, "dc");
}

static inline void rig_until_state(struct rig *g, enum adapter_state state)
{
        for (int i = 0; i < 100000 && rig_adapter(g)->state != state; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, state);
}

/*
 * Connects, ready to send; no commands are registered. Answers scripted before follow those of the
 * greeting.
 */
static inline void rig_connect(struct rig *g, const char *more)
{
        size_t wanted = g->count;
        char *settings = mem_printf(",\"slashCommands\":false%s", more);

        memmove(g->script + 2, g->script, sizeof(g->script[0]) * wanted);
        memmove(g->bytes + 2, g->bytes, sizeof(g->bytes[0]) * wanted);
        memset(g->bytes, 0, 2 * sizeof(g->bytes[0]));
        g->count = 0;
        says(g, 200, ME);
        says(g, 200, APPLICATION);
        g->count = wanted + 2;
        g->greetings = 2;
        rig_open(g, settings);
        free(settings);
        rig_until_state(g, ADAPTER_UP);
}

/* Runs the loop until the server has had n requests after the greeting. */
static inline void rig_requests(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && fake_server_requests(g->server) < g->greetings + n; i++)
                loop_step(g->loop, true);
        assert_true(fake_server_requests(g->server) >= g->greetings + n);
}

/* "POST /channels/7/messages" of the i-th request after the greeting; static memory. */
static inline const char *rig_line(struct rig *g, unsigned i)
{
        static char line[400];
        const char *request = fake_server_request(g->server, g->greetings + i);

        assert_non_null(request);
        snprintf(line, sizeof(line), "%.*s", (int)(strstr(request, " HTTP/") - request), request);
        return line;
}

/* Its body; borrowed. */
static inline const char *rig_body(struct rig *g, unsigned i)
{
        return strstr(fake_server_request(g->server, g->greetings + i), "\r\n\r\n") + 4;
}

#endif
