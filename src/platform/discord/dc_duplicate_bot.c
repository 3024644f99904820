#include "platform/discord/dc_duplicate_bot.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "platform/discord/dc_id.h"

#define DIGITS    16      /* of a nonce, enough to recognise it */
#define MARGIN_MS 60000   /* clocks differ */
#define WARN_MS   3600000 /* between warnings */

/* 0: not one of ours. */
static uint64_t nonce_value(const char *nonce)
{
        char digits[DIGITS + 1];

        if (!nonce || strlen(nonce) != DC_NONCE_SIZE ||
            strspn(nonce, "0123456789abcdef") != DC_NONCE_SIZE)
                return 0;
        memcpy(digits, nonce, DIGITS);
        digits[DIGITS] = '\0';
        return strtoull(digits, NULL, 16);
}

void dc_duplicate_bot_sent(struct dc_duplicate_bot *d, const char *nonce, int64_t wall_ms)
{
        d->sent[d->next].nonce = nonce_value(nonce);
        d->sent[d->next].wall_ms = wall_ms;
        d->next = (d->next + 1) % DC_DUPLICATE_BOT_SENT;
}

void dc_duplicate_bot_check(struct dc_duplicate_bot *d, const char *adapter, const json_t *message,
                            int64_t opened_ms, int64_t wall_ms)
{
        uint64_t nonce = nonce_value(json_str(message, "nonce", NULL));
        int64_t message_ms = dc_id_time_ms(json_str(message, "id", NULL)),
                oldest_ms = d->sent[d->next].wall_ms; /* the next to be overwritten */

        /* a message from before the ring began may be ours */
        if (nonce == 0 || message_ms <= opened_ms + MARGIN_MS ||
            message_ms <= oldest_ms + MARGIN_MS)
                return;
        for (size_t i = 0; i < DC_DUPLICATE_BOT_SENT; i++)
                if (d->sent[i].nonce == nonce)
                        return;
        d->seen++;
        if (d->warned_ms > 0 && wall_ms - d->warned_ms < WARN_MS)
                return;
        d->warned_ms = wall_ms;
        log_warn("another process uses this bot's token, and both answer; stop one of them or give "
                 "it its own bot",
                 LOG_S("adapter", adapter), LOG_S("channel", json_str(message, "channel_id", "")),
                 LOG_S("message", json_str(message, "id", "")), LOG_I("messages", d->seen));
}
