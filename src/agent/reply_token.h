/*
 * reply_token: the key to one turn's reply URL, "EXPIRY.MAC".
 *
 * An HMAC over the turn and its expiry, so nothing is stored and a token survives a restart.
 */
#ifndef AGENT_REPLY_TOKEN_H
#define AGENT_REPLY_TOKEN_H

#include <stdint.h>

#include "base/crypto.h"
#include "base/error.h"

#define REPLY_TOKEN_SIZE 80

/* expiry: wall clock, in seconds. */
void reply_token_write(const unsigned char secret[SHA256_SIZE], const char *turn, int64_t expiry,
                       char out[REPLY_TOKEN_SIZE]);
/* -1: ERR_REFUSED when it is not the token of this turn, ERR_TIMEOUT when it has expired. */
int reply_token_check(const unsigned char secret[SHA256_SIZE], const char *turn, const char *token,
                      int64_t now, struct error *err);

#endif
