#include "agent/agents_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAC_DIGITS 32 /* of the HMAC's 64 */

void reply_token_write(const unsigned char secret[SHA256_SIZE], const char *turn, int64_t expiry,
                       char out[REPLY_TOKEN_SIZE])
{
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], text[96];

        snprintf(text, sizeof(text), "reply/%s/%" PRId64, turn, expiry);
        crypto_hmac_sha256(secret, SHA256_SIZE, text, strlen(text), mac);
        crypto_hex(mac, sizeof(mac), hex);
        snprintf(out, REPLY_TOKEN_SIZE, "%" PRId64 ".%.*s", expiry, MAC_DIGITS, hex);
}

int reply_token_check(const unsigned char secret[SHA256_SIZE], const char *turn, const char *token,
                      int64_t now, struct error *err)
{
        char expected[REPLY_TOKEN_SIZE];
        int64_t expiry = strtoll(token, NULL, 10);

        reply_token_write(secret, turn, expiry, expected);
        if (!crypto_equal(token, strlen(token), expected, strlen(expected)))
                return error_set(err, ERR_REFUSED, "this is not the reply token of turn '%s'",
                                 turn);
        if (expiry < now)
                return error_set(
                        err, ERR_TIMEOUT,
                        "the reply token of turn '%s' has expired (the agent's replySeconds)",
                        turn);
        return 0;
}
