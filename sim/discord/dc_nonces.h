/*
 * nonces: which message a bot has already sent with enforce_nonce.
 */
#ifndef SIM_DISCORD_DC_NONCES_H
#define SIM_DISCORD_DC_NONCES_H

#include "sim/discord/dc_world.h"

/* The message sent with this nonce to this channel in the last minutes; NULL: none. */
struct message *dc_nonce_find(struct bot *b, const struct channel *c, const char *nonce);
void dc_nonce_remember(struct bot *b, const struct message *m, const char *nonce);
void dc_nonces_release(struct bot *b);

#endif
