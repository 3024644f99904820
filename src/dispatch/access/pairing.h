/*
 * pairing: lets strangers in without their ids being known beforehand.
 *
 * Where an adapter's dm says "pairing", a stranger who writes a direct message gets a code, once.
 * They show it to the operator by other means, and the operator approves or denies it, which makes
 * an access rule (access_rules.h). The code does nothing in the chat, so strangers cannot approve
 * themselves. It is valid for an hour. Few may wait on one adapter, and groups and bots get none,
 * so strangers cannot make the bot talk much.
 */
#ifndef DISPATCH_ACCESS_PAIRING_H
#define DISPATCH_ACCESS_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "dispatch/access/access_rules.h"
#include "road/road.h"
#include "rows/pairing_row.h"
#include "store/store.h"

struct pairings;

#define PAIRING_VALID_MS    (3600 * 1000)
#define PAIRING_WAITING_MAX 20   /* on one adapter */
#define PAIRING_TOTAL_MAX   2000 /* on all */

/* Reads the waiting codes; blocks. Approvals go into `rules`. Free it after the store is closed. */
struct pairings *pairings_open(struct store *s, struct access_rules *rules, struct error *err);
void pairings_free(struct pairings *ps);

struct evaluation;
/*
 * A stranger has written a direct message. The code is written with the decision and sent in its
 * notice, unless they have one or too many wait.
 */
void pairing_offer(struct evaluation *e);

/* The operator's decision. */
struct pairing_verdict {
        bool deny;
        const char *code;   /* as typed: case, spaces and dashes do not count */
        const char *by;     /* who decides; may be NULL */
        int64_t expires_ms; /* of the rule; 0: never */
};
/* On success *result (borrowed for the call) has state and rule. ERR_MISSING, ERR_LIMIT. */
typedef void pairing_done_fn(void *arg, const struct pairing *result, const struct error *err);
void pairing_decide(struct pairings *ps, const struct pairing_verdict *verdict,
                    pairing_done_fn *done, void *arg);
/* Deletes a pairing, waiting or decided, together with its access rule. ERR_MISSING. */
void pairing_revoke(struct pairings *ps, int64_t id, pairing_done_fn *done, void *arg);

#endif
