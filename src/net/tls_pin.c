#include "net/tls_pin.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"

int tls_pin_of_file(const char *cert_file, char out[TLS_PIN_SIZE], struct error *err)
{
        FILE *f = fopen(cert_file, "re");
        unsigned char *der = NULL, digest[SHA256_SIZE], base64[48];
        X509 *cert;
        int n;

        if (!f)
                return error_set(err, ERR_IO, "cannot read '%s': %s", cert_file, strerror(errno));
        cert = PEM_read_X509(f, NULL, NULL, NULL);
        fclose(f);
        if (!cert)
                return error_set(err, ERR_INVALID, "'%s' holds no PEM certificate", cert_file);
        n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
        X509_free(cert);
        if (n <= 0)
                return error_set(err, ERR_INVALID, "the certificate in '%s' has no public key",
                                 cert_file);
        crypto_sha256(der, (size_t)n, digest);
        OPENSSL_free(der);
        EVP_EncodeBlock(base64, digest, sizeof(digest));
        snprintf(out, TLS_PIN_SIZE, "sha256//%s", (const char *)base64);
        return 0;
}
