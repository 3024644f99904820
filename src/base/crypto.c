#include "base/crypto.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHA256_BLOCK 64

/* OpenSSL 3 otherwise looks the algorithm up by name at each use. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void fetch(void)
{
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static void digest(const void *a, size_t a_n, const void *b, size_t b_n,
                   unsigned char out[SHA256_SIZE])
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();

        pthread_once(&once, fetch);
        if (!ctx || !sha256 || !EVP_DigestInit_ex(ctx, sha256, NULL) ||
            !EVP_DigestUpdate(ctx, a, a_n) || !EVP_DigestUpdate(ctx, b, b_n) ||
            !EVP_DigestFinal_ex(ctx, out, NULL)) {
                /* no signature could be checked */
                fprintf(stderr, "dragoman: OpenSSL has no SHA-256\n");
                abort();
        }
        EVP_MD_CTX_free(ctx);
}

void crypto_sha256(const void *data, size_t n, unsigned char out[SHA256_SIZE])
{
        digest(data, n, NULL, 0, out);
}

char *crypto_sha256_hex(const void *data, size_t n, char out[SHA256_HEX_SIZE])
{
        unsigned char sum[SHA256_SIZE];

        crypto_sha256(data, n, sum);
        return crypto_hex(sum, sizeof(sum), out);
}

/* RFC 2104; OpenSSL's HMAC() looks the digest up by name. */
void crypto_hmac_sha256(const void *key, size_t key_n, const void *data, size_t n,
                        unsigned char out[SHA256_SIZE])
{
        unsigned char inner_pad[SHA256_BLOCK] = { 0 }, outer_pad[SHA256_BLOCK];
        unsigned char inner[SHA256_SIZE];

        if (key_n > SHA256_BLOCK)
                crypto_sha256(key, key_n, inner_pad);
        else if (key_n > 0)
                memcpy(inner_pad, key, key_n);
        for (size_t i = 0; i < SHA256_BLOCK; i++) {
                outer_pad[i] = inner_pad[i] ^ 0x5c;
                inner_pad[i] ^= 0x36;
        }
        digest(inner_pad, sizeof(inner_pad), data, n, inner);
        digest(outer_pad, sizeof(outer_pad), inner, sizeof(inner), out);
        OPENSSL_cleanse(inner_pad, sizeof(inner_pad));
        OPENSSL_cleanse(outer_pad, sizeof(outer_pad));
}

char *crypto_hex(const void *data, size_t n, char *out)
{
        static const char digits[] = "0123456789abcdef";
        const unsigned char *p = data;

        for (size_t i = 0; i < n; i++) {
                out[2 * i] = digits[p[i] >> 4];
                out[2 * i + 1] = digits[p[i] & 15];
        }
        out[2 * n] = '\0';
        return out;
}

char *crypto_base64(const void *data, size_t n)
{
        /* EVP_EncodeBlock takes an int: a multiple of three at a time needs no padding between */
        enum { PIECE = 3 << 20 };
        char *out = mem_alloc((n + 2) / 3 * 4 + 1), *end = out;
        const unsigned char *p = data;

        *end = '\0';
        for (size_t piece; n > 0; p += piece, n -= piece) {
                piece = n < PIECE ? n : PIECE;
                end += EVP_EncodeBlock((unsigned char *)end, p, (int)piece);
        }
        return out;
}

char *crypto_unbase64(const char *text, size_t n, size_t *out_n)
{
        static const char skipped[] = " \t\r\n-";
        unsigned char *out;
        int got;

        /* EVP_DecodeBlock skips space and '-' around the text */
        if (n % 4 != 0 || n > INT_MAX ||
            (n > 0 && (strchr(skipped, text[0]) || strchr(skipped, text[n - 1]))))
                return NULL;
        out = mem_alloc(n / 4 * 3 + 1);
        got = n > 0 ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)n) : 0;
        if (got < 0) {
                free(out);
                return NULL;
        }
        /* the padding was counted as bytes */
        for (size_t i = n; got > 0 && i + 2 > n && text[i - 1] == '='; i--)
                got--;
        out[got] = '\0';
        *out_n = (size_t)got;
        return (char *)out;
}

bool crypto_equal(const void *a, size_t a_n, const void *b, size_t b_n)
{
        return a_n == b_n && (a_n == 0 || CRYPTO_memcmp(a, b, a_n) == 0);
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool crypto_unhex(const char *hex, unsigned char *out, size_t n)
{
        if (!hex || strlen(hex) != 2 * n)
                return false;
        for (size_t i = 0; i < n; i++) {
                int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                out[i] = (unsigned char)(high << 4 | low);
        }
        return true;
}

bool crypto_ed25519_verify(const unsigned char key[ED25519_KEY_SIZE],
                           const unsigned char signature[ED25519_SIGNATURE_SIZE], const void *data,
                           size_t n)
{
        EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, ED25519_KEY_SIZE);
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        bool ok = pkey && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
                  EVP_DigestVerify(ctx, signature, ED25519_SIGNATURE_SIZE, data, n) == 1;

        EVP_MD_CTX_free(ctx);
        EVP_PKEY_free(pkey);
        return ok;
}
