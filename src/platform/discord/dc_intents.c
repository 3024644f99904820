#include "platform/discord/dc_intents.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/settings.h"

/*
 * Privileged intents have the application's flags that grant them: one after a review, one without
 * while the bot is small.
 */
/* clang-format off */
static const struct {
        const char *name;
        unsigned bit;
        int64_t flags;
        const char *portal_name;
} rows[] = {
        { "GUILDS", 0 },
        { "GUILD_MEMBERS", 1, 3 << 14, "Server Members Intent" },
        { "GUILD_MODERATION", 2 },
        { "GUILD_EXPRESSIONS", 3 },
        { "GUILD_INTEGRATIONS", 4 },
        { "GUILD_WEBHOOKS", 5 },
        { "GUILD_INVITES", 6 },
        { "GUILD_VOICE_STATES", 7 },
        { "GUILD_PRESENCES", 8, 3 << 12, "Presence Intent" },
        { "GUILD_MESSAGES", 9 },
        { "GUILD_MESSAGE_REACTIONS", 10 },
        { "GUILD_MESSAGE_TYPING", 11 },
        { "DIRECT_MESSAGES", 12 },
        { "DIRECT_MESSAGE_REACTIONS", 13 },
        { "DIRECT_MESSAGE_TYPING", 14 },
        { "MESSAGE_CONTENT", 15, 3 << 18, "Message Content Intent" },
        { "GUILD_SCHEDULED_EVENTS", 16 },
        { "AUTO_MODERATION_CONFIGURATION", 20 },
        { "AUTO_MODERATION_EXECUTION", 21 },
        { "GUILD_MESSAGE_POLLS", 24 },
        { "DIRECT_MESSAGE_POLLS", 25 },
};
/* clang-format on */

unsigned dc_intents_bit(const char *name)
{
        for (size_t i = 0; i < COUNT(rows); i++)
                if (strcmp(rows[i].name, name) == 0)
                        return 1u << rows[i].bit;
        return 0;
}

const char *dc_intents_nearest(const char *name)
{
        const char *names[COUNT(rows) + 1] = { NULL };

        for (size_t i = 0; i < COUNT(rows); i++)
                names[i] = rows[i].name;
        return settings_nearest(name, names);
}

static size_t list_missing(unsigned intents, int64_t flags, char *out, size_t size)
{
        size_t at = 0;

        for (size_t i = COUNT(rows); i-- > 0;)
                if (rows[i].flags && (intents & 1u << rows[i].bit) && !(flags & rows[i].flags))
                        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " and " : "",
                                               rows[i].portal_name);
        return at;
}

void dc_intents_missing(unsigned intents, int64_t flags, char *out, size_t size)
{
        /* flags that grant everything are outdated: any of them may be missing */
        if (list_missing(intents, flags, out, size) == 0 &&
            list_missing(intents, 0, out, size) == 0)
                snprintf(out, size, "privileged intents");
}
