/*
 * dc_intents: the kinds of events a bot asks for in IDENTIFY, and which of them Discord has to
 * grant.
 */
#ifndef PLATFORM_DISCORD_DC_INTENTS_H
#define PLATFORM_DISCORD_DC_INTENTS_H

#include <stddef.h>
#include <stdint.h>

#define DC_INTENT_GUILDS                   (1u << 0)
#define DC_INTENT_GUILD_MESSAGES           (1u << 9)
#define DC_INTENT_GUILD_MESSAGE_REACTIONS  (1u << 10)
#define DC_INTENT_DIRECT_MESSAGES          (1u << 12)
#define DC_INTENT_DIRECT_MESSAGE_REACTIONS (1u << 13)
#define DC_INTENT_MESSAGE_CONTENT          (1u << 15)
/* What an agent needs: 46593. */
#define DC_INTENTS                                                                         \
        (DC_INTENT_GUILDS | DC_INTENT_GUILD_MESSAGES | DC_INTENT_GUILD_MESSAGE_REACTIONS | \
         DC_INTENT_DIRECT_MESSAGES | DC_INTENT_DIRECT_MESSAGE_REACTIONS |                  \
         DC_INTENT_MESSAGE_CONTENT)

/* The bit of an intent by Discord's name; 0: unknown. */
unsigned dc_intents_bit(const char *name);
/* The name that may have been meant; NULL: none is near. */
const char *dc_intents_nearest(const char *name);
/*
 * Names, as the portal does, the privileged intents that these flags of the application do not
 * grant.
 */
void dc_intents_missing(unsigned intents, int64_t flags, char *out, size_t size);

#endif
