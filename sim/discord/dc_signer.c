#include "sim/discord/dc_signer.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/mem.h"

struct signer {
        EVP_PKEY *key;
        char public_hex[SIGNER_PUBLIC_SIZE];
};

struct signer *dc_signer_new(void)
{
        struct signer *s = mem_zalloc(sizeof(*s));
        unsigned char public[32];
        size_t n = sizeof(public);

        s->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        if (!s->key || EVP_PKEY_get_raw_public_key(s->key, public, &n) != 1)
                abort(); /* OpenSSL always has Ed25519 */
        crypto_hex(public, n, s->public_hex);
        return s;
}

void dc_signer_free(struct signer *s)
{
        if (!s)
                return;
        EVP_PKEY_free(s->key);
        free(s);
}

const char *dc_signer_public(const struct signer *s)
{
        return s->public_hex;
}

void dc_signer_sign(const struct signer *s, const char *timestamp, const char *body, size_t n,
                    char out[SIGNER_SIGNATURE_SIZE])
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        unsigned char signature[64] = { 0 };
        size_t signature_n = sizeof(signature);
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, timestamp);
        buf_add(&b, body, n);
        EVP_DigestSignInit(ctx, NULL, NULL, NULL, s->key);
        EVP_DigestSign(ctx, signature, &signature_n, (const unsigned char *)b.data, b.len);
        crypto_hex(signature, signature_n, out);
        buf_release(&b);
        EVP_MD_CTX_free(ctx);
}
