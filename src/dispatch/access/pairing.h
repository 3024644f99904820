/*
 * pairing: how strangers are let in without their ids being known beforehand.
 *
 * Where an adapter's dm says "pairing", a stranger who writes a direct message is told a code,
 * once; he shows it to the operator by any other way, and the operator approves it: an access rule
 * (access_rules.h) then lets him in, durably and at once. The code does nothing in the chat, so
 * nobody can approve himself. A code is valid for an hour; only few may wait on one adapter at a
 * time, and nothing is said in groups or to bots: strangers cannot make us talk much. A deny makes
 * a rule that keeps him out, which wins over everything.
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
#include "store/store.h"

struct pairings;

#define PAIRING_VALID_MS    (3600 * 1000)
#define PAIRING_WAITING_MAX 20   /* on one adapter */
#define PAIRING_TOTAL_MAX   2000 /* on all */

struct pairing {
        int64_t id;       /* shown as "pair-N" */
        const char *code; /* "ABCD2345" */
        const char *adapter, *platform, *sender, *name;
        const char *state; /* "waiting", "approved" or "denied" */
        int64_t rule;      /* the access rule that was made of it; 0: none */
        int64_t created_ms, expires_ms;
        int64_t decided_ms; /* 0: not yet */
        const char *by;     /* who decided */
};

/*
 * Reads those that wait; blocks. The rules are where approvals go. Free it after the store is
 * closed.
 */
struct pairings *pairing_open(struct store *s, struct access_rules *rules, struct error *err);
void pairing_free(struct pairings *p);

struct pairing_words {
        /* what he is told; stays empty when he has been told already, or too many wait */
        struct buf *notice;
        struct buf *why; /* for the log, behind why he is not let in */
};
/* A stranger has written a direct message. The code is written with the decision. */
void pairing_offer(struct pairings *p, const char *platform, const struct incoming *in,
                   struct decision *out, struct pairing_words words);

/* How the operator decides. */
struct pairing_decision {
        bool deny;
        const char *code;   /* as people write it: case, spaces and dashes do not count */
        const char *by;     /* who decides; may be NULL */
        int64_t expires_ms; /* until when the rule holds; 0: for ever */
};
/*
 * ERR_MISSING when no such code waits. On success *result (borrowed for the call) has state and
 * rule.
 */
typedef void pairing_done_fn(void *arg, const struct pairing *result, const struct error *err);
void pairing_decide(struct pairings *p, const struct pairing_decision *d, pairing_done_fn *done,
                    void *arg);
/* Takes back what was decided, or a code that waits: the rule goes with it. ERR_MISSING. */
void pairing_revoke(struct pairings *p, int64_t id, pairing_done_fn *done, void *arg);

/*
 * Inside a store function: all that is known, newest first, at most `limit` below `before`. Returns
 * how many, or -1.
 */
int pairing_each(struct store_tx *tx, int64_t before, int64_t limit,
                 void (*each)(void *arg, const struct pairing *r), void *arg, struct error *err);

#endif
