/*
 * Any timestamp, signature and body: only the right signature is accepted, and whatever is signed
 * gives an object or nothing. Input: "TIMESTAMP\nSIGNATURE\nBODY" after a byte that says whether
 * the body is a form.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/mem.h"
#include "platform/slack/sl_webhook.h"

#define KEY "8f742231b10e8888abcd99yyyzzz85a5"

/* The next line, yours; moves *at behind it. */
static char *take_line(const char **at, const char *end)
{
        const char *stop = memchr(*at, '\n', (size_t)(end - *at));
        char *line;

        if (!stop)
                stop = end;
        line = mem_strndup(*at, (size_t)(stop - *at));
        *at = stop < end ? stop + 1 : end;
        return line;
}

static void check_signature(const struct secret *secret, const char *timestamp, const char *given,
                            const char *body, size_t n)
{
        size_t head = strlen(timestamp) + 4;
        char *text = mem_alloc(head + n + 1), right[3 + SHA256_HEX_SIZE] = "v0=";
        unsigned char digest[SHA256_SIZE];
        bool accepted = sl_webhook_is_signed(secret, timestamp, given, body, n);

        memcpy(text, "v0:", 3);
        memcpy(text + 3, timestamp, head - 4);
        text[head - 1] = ':';
        memcpy(text + head, body, n);
        crypto_hmac_sha256(KEY, strlen(KEY), text, head + n, digest);
        crypto_hex(digest, sizeof(digest), right + 3);
        free(text);
        if (accepted != (strncmp(given, "v0=", 3) == 0 && strcasecmp(given + 3, right + 3) == 0))
                abort();
        if (!sl_webhook_is_signed(secret, timestamp, right, body, n))
                abort();
        right[3 + n % 64] = right[3 + n % 64] == '0' ? '1' : '0';
        if (sl_webhook_is_signed(secret, timestamp, right, body, n))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        const char *at = (const char *)data + 1, *end = (const char *)data + n;
        static struct secret *secret;
        char *timestamp, *signature;
        enum sl_arrival kind;
        enum sl_posted posted;
        json_t *payload;

        if (n < 1)
                return 0;
        if (!secret)
                secret = secret_new(KEY, strlen(KEY));
        timestamp = take_line(&at, end);
        signature = take_line(&at, end);
        check_signature(secret, timestamp, signature, at, (size_t)(end - at));
        posted = sl_webhook_read(at, (size_t)(end - at), data[0] & 1, &payload, &kind);
        if ((posted == SL_POSTED_OTHER) != (payload == NULL) ||
            (payload && !json_is_object(payload)))
                abort();
        json_decref(payload);
        free(timestamp);
        free(signature);
        return 0;
}
