/*
 * dc_twin: another process that speaks with our token.
 *
 * Discord gives each of them every message, so both answer, and nobody is refused. One data
 * directory has a lock; across directories and machines it shows in the bot's own messages: each of
 * ours carries a nonce that we have made, and a message with such a nonce that we have not sent is
 * a twin's.
 */
#ifndef PLATFORM_DISCORD_DC_TWIN_H
#define PLATFORM_DISCORD_DC_TWIN_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define DC_TWIN_NONCES 1024

struct dc_twin {
        struct {
                uint64_t nonce; /* its first digits */
                int64_t wall_ms;
        } sent[DC_TWIN_NONCES]; /* a ring */
        size_t next;
        unsigned seen;   /* messages of a twin */
        int64_t told_ms; /* when the operator was told; 0: never */
};

/* Before the message goes out. */
void dc_twin_sent(struct dc_twin *t, const char *nonce, int64_t wall_ms);
/* Discord tells of a message of the bot itself; opened_ms: since when we remember. */
void dc_twin_heard(struct dc_twin *t, const char *adapter, const json_t *message, int64_t opened_ms,
                   int64_t wall_ms);

#endif
