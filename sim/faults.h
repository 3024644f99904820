/*
 * faults: misbehaviour on request.
 *
 * Somebody who tests asks for a fault: of a kind, for some or all methods, for the next n occasions
 * or with a probability. The simulator asks at each occasion whether it has to misbehave. The dice
 * are seeded, so that a run can be repeated.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum fault_kind {
        FAULT_CUT_BEFORE,  /* the connection ends, nothing has happened */
        FAULT_CUT_AFTER,   /* it has happened, but the answer never comes */
        FAULT_SLOW,        /* it happens at once, the answer comes late */
        FAULT_ERROR,       /* a server error, nothing has happened */
        FAULT_ERROR_AFTER, /* a server error, but it has happened */
        FAULT_FLOOD,       /* 429 with retry_after */
        FAULT_DUPLICATE,   /* an update is delivered twice */
        FAULT_REORDER,     /* updates are delivered in another order */
        FAULT_DROP,        /* an update is never delivered */
        FAULT_CLOSE,       /* a connection is closed with a code instead of an answer */
        FAULT_REFUSE,      /* what is asked for is refused in the platform's way */
        FAULT_MUTE,        /* no answer comes, the connection stays */
        FAULT_KINDS,
};

struct fault {
        enum fault_kind kind;
        char method[64]; /* "": any */
        int64_t next;    /* occasions left; -1: by probability */
        double probability;
        int64_t ms;
        int status;
        double retry_after;
        int code;         /* of close */
        char scope[8];    /* of flood: "", "user", "global" or "shared" */
        bool within_chat; /* of reorder: updates of one chat, too */
        uint64_t fired;
        struct fault *link;
};

struct faults {
        struct fault *first;
        uint64_t dice;
        uint64_t fired[FAULT_KINDS];
        unsigned standing[FAULT_KINDS]; /* how many rows of each kind: the usual answer is "none" */
};

void faults_init(struct faults *f, uint64_t seed);
void faults_release(struct faults *f);
/* Forgets the faults asked for; the counters stay. */
void faults_clear(struct faults *f);
/*
 * {"kind":"cut_after","method":"sendMessage","next":3} or with "probability", and "ms", "status",
 * "retry_after", "scope", "code", "within_chat".
 */
int faults_add(struct faults *f, const json_t *request, struct error *err);
/* Does one of this kind strike now? Counted. The row is borrowed until the next change. */
const struct fault *faults_fire(struct faults *f, enum fault_kind kind, const char *method);
/* A member "faults" with the standing ones and a member "fired" with the counters. */
void faults_write(const struct faults *f, struct buf *b);
/* Uniform in [0, below). */
uint64_t faults_random(struct faults *f, uint64_t below);

#endif
