/*
 * crypto: digests, signatures and constant-time comparison, by OpenSSL.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>

#define SHA256_SIZE     32
#define SHA256_HEX_SIZE 65

void crypto_sha256(const void *data, size_t n, unsigned char out[SHA256_SIZE]);
char *crypto_sha256_hex(const void *data, size_t n, char out[SHA256_HEX_SIZE]);
void crypto_hmac_sha256(const void *key, size_t key_n, const void *data, size_t n,
                        unsigned char out[SHA256_SIZE]);

#define ED25519_KEY_SIZE       32
#define ED25519_SIGNATURE_SIZE 64

bool crypto_ed25519_verify(const unsigned char key[ED25519_KEY_SIZE],
                           const unsigned char signature[ED25519_SIGNATURE_SIZE], const void *data,
                           size_t n);

/* Decodes exactly 2 * n hex digits of either case. */
bool crypto_unhex(const char *hex, unsigned char *out, size_t n);
/* Lower case; out needs 2 * n + 1 bytes. */
char *crypto_hex(const void *data, size_t n, char *out);
/* With padding, without line ends; yours to free. */
char *crypto_base64(const void *data, size_t n);
/* With padding, without line ends; yours to free, NUL-terminated. NULL: malformed. */
char *crypto_unbase64(const char *text, size_t n, size_t *out_n);
bool crypto_equal(const void *a, size_t a_n, const void *b, size_t b_n);

#endif
