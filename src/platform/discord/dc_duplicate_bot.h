/*
 * dc_duplicate_bot: detects another process that uses the same token.
 *
 * Discord sends every message to both, so both answer. A lock protects a data directory; beyond it
 * the bot's own messages show the other process: each of ours carries a nonce that we made, so a
 * message with such a nonce that we did not send is the duplicate's.
 */
#ifndef PLATFORM_DISCORD_DC_DUPLICATE_BOT_H
#define PLATFORM_DISCORD_DC_DUPLICATE_BOT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define DC_NONCE_SIZE         24 /* hexadecimal digits; Discord takes 25 characters */
#define DC_DUPLICATE_BOT_SENT 1024

struct dc_duplicate_bot {
        struct {
                uint64_t nonce; /* its first digits */
                int64_t wall_ms;
        } sent[DC_DUPLICATE_BOT_SENT]; /* a ring */
        size_t next;
        unsigned seen;     /* messages of the duplicate */
        int64_t warned_ms; /* 0: never */
};

/* Before the message goes out. */
void dc_duplicate_bot_sent(struct dc_duplicate_bot *d, const char *nonce, int64_t wall_ms);
/* A message of the bot itself has come; logs a warning when we did not send it. */
void dc_duplicate_bot_check(struct dc_duplicate_bot *d, const char *adapter, const json_t *message,
                            int64_t opened_ms, int64_t wall_ms);

#endif
