/*
 * discord_rig: a Discord adapter against a scripted REST server, with a fake intake and a road that
 * records.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_DISCORD_RIG_H
#define TESTS_DISCORD_RIG_H

#include "adapter_rig.h"
#include "platform/discord/discord.h"

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

#define ME "{\"id\":\"42\",\"username\":\"testbot\",\"bot\":true}"
#define APPLICATION \
        "{\"id\":\"43\",\"name\":\"Test\",\"verify_key\":\"" PUBLIC_KEY "\",\"flags\":524288}"
#define PUBLIC_KEY "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"

static inline struct rig *rig_new(void)
{
        unsetenv("DISCORD_BOT_TOKEN");
        memset(&fake_intake, 0, sizeof(fake_intake));
        return adapter_rig_new("discord", "dc");
}

static inline int rig_begin(void **state)
{
        *state = rig_new();
        return 0;
}

/* Starts the server and the adapter; `more` are further settings. */
static inline void rig_open(struct rig *g, const char *more)
{
        g->server = fake_server_new(g->loop, g->script, g->count);
        rig_apply(g, TOKEN, more);
}

/*
 * Connects, ready to send; no commands are registered. Answers scripted before follow those of the
 * greeting.
 */
static inline void rig_connect(struct rig *g, const char *more)
{
        static const char *const greeting[] = { ME, APPLICATION };
        char *settings = mem_printf(",\"slashCommands\":false%s", more);

        says_first(g, greeting, COUNT(greeting));
        g->greetings = COUNT(greeting);
        rig_open(g, settings);
        free(settings);
        rig_until_state(g, ADAPTER_UP);
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

#endif
