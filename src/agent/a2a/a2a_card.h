/*
 * a2a_card: what an agent says of itself, and where it takes requests. Without network.
 *
 * The first JSON-RPC interface of version 1.0 is taken, else the first of 0.3. A card names URLs,
 * and so could send us anywhere, with our key: a2a_card_trust decides what that is worth.
 */
#ifndef AGENT_A2A_A2A_CARD_H
#define AGENT_A2A_A2A_CARD_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/a2a/a2a_wire.h"
#include "base/error.h"
#include "base/settings.h"

enum a2a_trust {
        A2A_OURS,     /* where the operator said: it gets the credentials, wherever it is */
        A2A_STRANGER, /* elsewhere: no credentials, and only on the Internet, by https */
};

struct a2a_card {
        char *name;          /* "" : not told */
        char *agent_version; /* may be NULL */
        enum a2a_version version;
        char *url;            /* of the interface */
        char *tenant;         /* each request names it; NULL: none */
        enum a2a_trust trust; /* in the URL; not read */
        bool streams;
        unsigned refs;
};

/* One reference. NULL: no card, or no interface that we speak. */
struct a2a_card *a2a_card_read(const json_t *card, struct error *err);
struct a2a_card *a2a_card_ref(struct a2a_card *c);
void a2a_card_unref(struct a2a_card *c); /* NULL is fine */

/*
 * Of a URL that the card at card_url names; origins: those that the operator listed. -1: it must
 * not be used.
 */
int a2a_card_trust(const char *url, const char *card_url, const struct setting_list *origins,
                   enum a2a_trust *out, struct error *err);

#endif
