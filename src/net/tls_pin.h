/*
 * tls_pin: a certificate's public key as one short text, so that a client can insist on exactly
 * this server.
 */
#ifndef NET_TLS_PIN_H
#define NET_TLS_PIN_H

#include "base/error.h"

#define TLS_PIN_SIZE 64 /* "sha256//" and 44 characters, and room */

/* Of the first certificate in a PEM file, as libcurl wants it: "sha256//BASE64". */
int tls_pin_of_file(const char *cert_file, char out[TLS_PIN_SIZE], struct error *err);

#endif
