/* What Discord calls the kinds of events, and the bits that ask for them. */
#include <string.h>

#include "base/mem.h"
#include "platform/discord/discord.h"

/* clang-format off */
static const struct {
        const char *name;
        unsigned bit;
} intents[] = {
        { "GUILDS", 0 },                  { "GUILD_MEMBERS", 1 },            { "GUILD_MODERATION", 2 },
        { "GUILD_EXPRESSIONS", 3 },       { "GUILD_INTEGRATIONS", 4 },       { "GUILD_WEBHOOKS", 5 },
        { "GUILD_INVITES", 6 },           { "GUILD_VOICE_STATES", 7 },       { "GUILD_PRESENCES", 8 },
        { "GUILD_MESSAGES", 9 },          { "GUILD_MESSAGE_REACTIONS", 10 }, { "GUILD_MESSAGE_TYPING", 11 },
        { "DIRECT_MESSAGES", 12 },        { "DIRECT_MESSAGE_REACTIONS", 13 }, { "DIRECT_MESSAGE_TYPING", 14 },
        { "MESSAGE_CONTENT", 15 },        { "GUILD_SCHEDULED_EVENTS", 16 },  { "AUTO_MODERATION_CONFIGURATION", 20 },
        { "AUTO_MODERATION_EXECUTION", 21 }, { "GUILD_MESSAGE_POLLS", 24 },  { "DIRECT_MESSAGE_POLLS", 25 },
};
/* clang-format on */

unsigned dc_intent(const char *name)
{
        for (size_t i = 0; i < COUNT(intents); i++)
                if (strcmp(intents[i].name, name) == 0)
                        return 1u << intents[i].bit;
        return 0;
}

const char *dc_intent_near(const char *name)
{
        const char *names[COUNT(intents) + 1] = { NULL };

        for (size_t i = 0; i < COUNT(intents); i++)
                names[i] = intents[i].name;
        return settings_nearest(name, names);
}
