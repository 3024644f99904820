/*
 * What it means that Discord closes, as one table.
 * https://docs.discord.com/developers/topics/opcodes-and-status-codes
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"

/* clang-format off */
static const struct dc_close_rule rules[] = {
        { 4000, DC_RESUME,   false, "an unknown error at Discord" },
        { 4001, DC_RESUME,   true,  "Discord did not know an opcode of ours" },
        { 4002, DC_RESUME,   true,  "Discord could not read a frame of ours" },
        { 4003, DC_IDENTIFY, false, "the session is not known any more" },
        { 4004, DC_STOP,     false, "Discord does not know this bot token" },
        { 4005, DC_RESUME,   true,  "we identified twice" },
        { 4007, DC_IDENTIFY, false, "the session cannot be resumed from there" },
        { 4008, DC_RESUME,   true,  "we sent too fast" },
        { 4009, DC_IDENTIFY, false, "the session was away too long" },
        { 4010, DC_STOP,     false, "Discord refuses the shard" },
        { 4011, DC_STOP,     false, "the bot is in too many servers for so few shards" },
        { 4012, DC_STOP,     false, "Discord does not speak this version of its API any more" },
        { 4013, DC_STOP,     false, "Discord does not know one of the intents" },
        { 4014, DC_STOP,     false, "Discord refuses one of the intents" },
};
/* clang-format on */

static const struct dc_close_rule lost = { 0, DC_RESUME, false, "the connection was lost" };

const struct dc_close_rule *dc_close_rule(int code)
{
        for (size_t i = 0; i < COUNT(rules); i++)
                if (rules[i].code == code)
                        return &rules[i];
        return &lost;
}

/*
 * Privileged intents, and the flags of an application that has them: with a review, or without one
 * while it is small.
 */
/* clang-format off */
static const struct {
        unsigned intent;
        int64_t flags;
        const char *name;
} privileged[] = {
        { DC_INTENT_MESSAGE_CONTENT, 3 << 18, "Message Content Intent" },
        { DC_INTENT_GUILD_MEMBERS,   3 << 14, "Server Members Intent" },
        { DC_INTENT_GUILD_PRESENCES, 3 << 12, "Presence Intent" },
};
/* clang-format on */

/*
 * The names of privileged intents that we ask for and these flags do not grant; how many bytes that
 * are.
 */
static size_t name_privileged(const struct dc_gateway_options *o, int64_t flags, char *out,
                              size_t size)
{
        const char *between = "";
        size_t at = 0;

        for (size_t i = 0; i < COUNT(privileged); i++) {
                if (!(o->intents & privileged[i].intent) || (flags & privileged[i].flags))
                        continue;
                at += (size_t)snprintf(out + at, size - at, "%s%s", between, privileged[i].name);
                between = " and ";
        }
        return at;
}

/* When the flags we know have it all, they are not what they were: it may be any of them. */
static void name_missing(const struct dc_gateway_options *o, char *out, size_t size)
{
        if (name_privileged(o, o->flags, out, size) == 0 && name_privileged(o, 0, out, size) == 0)
                snprintf(out, size, "privileged intents");
}

void dc_close_sentence(const struct dc_gateway_options *o, int code, char *out, size_t size)
{
        char names[100];

        switch (code) {
        case 4013:
                snprintf(out, size,
                         "Discord does not know one of the intents in the number %u: look at "
                         "adapters.%.60s.intents (close code 4013)",
                         o->intents, o->name);
                break;
        case 4014:
                name_missing(o, names, sizeof(names));
                snprintf(out, size,
                         "Discord refuses the %s: switch it on in the developer portal, page "
                         "Bot, Privileged Gateway Intents (close code 4014)",
                         names);
                break;
        case 4010:
        case 4011:
                snprintf(out, size, "%s: %s adapters.%.60s.shards%s (close code %d)",
                         dc_close_rule(code)->what, o->shards ? "set" : "start again, or set",
                         o->name, o->shards ? " to \"auto\"" : "", code);
                break;
        default:
                snprintf(out, size, "%s (close code %d)", dc_close_rule(code)->what, code);
        }
}
