/*
 * signer: the Ed25519 key that signs what is posted to an interactions endpoint.
 */
#ifndef SIM_DISCORD_DC_SIGNER_H
#define SIM_DISCORD_DC_SIGNER_H

#include <stddef.h>

#define SIGNER_PUBLIC_SIZE    65  /* hex and the NUL */
#define SIGNER_SIGNATURE_SIZE 129 /* hex and the NUL */

struct signer;

/* A fresh key. */
struct signer *dc_signer_new(void);
void dc_signer_free(struct signer *s);
/* The public key in hex; borrowed. */
const char *dc_signer_public(const struct signer *s);
/* Signs the timestamp followed by the body. */
void dc_signer_sign(const struct signer *s, const char *timestamp, const char *body, size_t n,
                    char out[SIGNER_SIGNATURE_SIZE]);

#endif
