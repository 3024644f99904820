#include "platform/discord/dc_duplicate_bot.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "platform/discord/discord.h"

#define DIGITS    16      /* of a nonce, that are enough to know it by */
#define MARGIN_MS 60000   /* clocks differ */
#define AGAIN_MS  3600000 /* the operator is not told more often */

/* 0: it is none of those we make. */
static uint64_t value_of(const char *nonce)
{
        char digits[DIGITS + 1];

        if (!nonce || strlen(nonce) != DC_NONCE_SIZE ||
            strspn(nonce, "0123456789abcdef") != DC_NONCE_SIZE)
                return 0;
        memcpy(digits, nonce, DIGITS);
        digits[DIGITS] = '\0';
        return strtoull(digits, NULL, 16);
}

void dc_twin_sent(struct dc_twin *t, const char *nonce, int64_t wall_ms)
{
        t->sent[t->next].nonce = value_of(nonce);
        t->sent[t->next].wall_ms = wall_ms;
        t->next = (t->next + 1) % DC_TWIN_NONCES;
}

static bool is_ours(const struct dc_twin *t, uint64_t nonce)
{
        for (size_t i = 0; i < DC_TWIN_NONCES; i++)
                if (t->sent[i].nonce == nonce)
                        return true;
        return false;
}

/* Would we still know it if it were ours? */
static bool is_remembered(const struct dc_twin *t, int64_t message_ms, int64_t opened_ms)
{
        const int64_t oldest_ms = t->sent[t->next].wall_ms; /* the next one to be overwritten */

        return message_ms > opened_ms + MARGIN_MS && message_ms > oldest_ms + MARGIN_MS;
}

void dc_twin_heard(struct dc_twin *t, const char *adapter, const json_t *message, int64_t opened_ms,
                   int64_t wall_ms)
{
        uint64_t nonce = value_of(json_str(message, "nonce", NULL));

        if (nonce == 0 || is_ours(t, nonce) ||
            !is_remembered(t, dc_id_time_ms(json_str(message, "id", NULL)), opened_ms))
                return;
        t->seen++;
        if (t->told_ms > 0 && wall_ms - t->told_ms < AGAIN_MS)
                return;
        t->told_ms = wall_ms;
        log_warn("another process speaks with this bot's token, and both answer: stop one of "
                 "them, or give it a bot of its own",
                 LOG_S("adapter", adapter), LOG_S("channel", json_str(message, "channel_id", "")),
                 LOG_S("message", json_str(message, "id", "")), LOG_I("messages", t->seen));
}
