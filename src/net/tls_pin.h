/*
 * tls_pin: the digest of a certificate's public key, by which a client recognises one server.
 */
#ifndef NET_TLS_PIN_H
#define NET_TLS_PIN_H

#include "base/error.h"

#define TLS_PIN_SIZE 64 /* "sha256//" and 44 characters */

/* Of the first certificate in a PEM file, in libcurl's form: "sha256//BASE64". */
int tls_pin_of_file(const char *cert_file, char out[TLS_PIN_SIZE], struct error *err);

#endif
