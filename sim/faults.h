/*
 * faults: misbehaviour on request.
 *
 * A test adds a fault: a kind, for one method or all, for the next n occasions or with a
 * probability. The simulator checks at each occasion. The random numbers are seeded, so a run can
 * be repeated.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum fault_kind {
        FAULT_CUT_BEFORE,  /* close the connection, do nothing */
        FAULT_CUT_AFTER,   /* do it, but close the connection instead of answering */
        FAULT_SLOW,        /* do it at once, answer late */
        FAULT_ERROR,       /* server error, nothing done */
        FAULT_ERROR_AFTER, /* server error, but done */
        FAULT_FLOOD,       /* 429 with retry_after */
        FAULT_DUPLICATE,   /* deliver an update twice */
        FAULT_REORDER,     /* deliver updates in another order */
        FAULT_DROP,        /* never deliver an update */
        FAULT_CLOSE,       /* close a connection with a code instead of an answer */
        FAULT_REFUSE,      /* refuse in the platform's way */
        FAULT_MUTE,        /* keep the connection, never answer */
        FAULT_LATE,        /* close the connection, do it later */
        /* of streamed answers */
        FAULT_CUT_AT,      /* cut the connection after `at` bytes */
        FAULT_CUT_PIECES,  /* ... after `at` events */
        FAULT_OVERLOAD,    /* an error in the stream after `at` events */
        FAULT_SLOW_PIECES, /* wait before each event */
        FAULT_NO_DONE,     /* leave out the event that ends the stream */
        FAULT_SAME_INDEX,  /* give all tool calls the same index */
        /* of what a model answers */
        FAULT_BAD_JSON, /* tool arguments that are not JSON */
        FAULT_TRUNCATE, /* cut the answer off in its last block, as the output limit does */
        FAULT_EMPTY,    /* answer nothing */
        FAULT_PAUSE,    /* ask to be called again with the same messages */
        FAULT_OVERFLOW, /* say that the prompt is too long */
        FAULT_KINDS,
};

struct fault {
        enum fault_kind kind;
        char method[64]; /* "": any */
        int64_t next;    /* occasions left; -1: by probability */
        double probability;
        int64_t ms;
        int64_t at; /* bytes or events */
        int status;
        char description[160]; /* of error; "": the simulator's own */
        double retry_after;
        int code;         /* of close */
        char scope[8];    /* of flood: "", "user", "global" or "shared" */
        bool within_chat; /* of reorder: also updates of one chat */
        uint64_t fired;
        struct fault *link;
};

struct faults {
        struct fault *first;
        uint64_t rng;
        uint64_t fired[FAULT_KINDS];
        unsigned active[FAULT_KINDS]; /* rows of each kind, for a quick "none" */
};

void faults_init(struct faults *f, uint64_t seed);
/* Removes the faults; the counters stay. Also releases f. */
void faults_clear(struct faults *f);
/*
 * {"kind":"cut_after","method":"sendMessage","next":3} or with "probability", and "ms", "status",
 * "at", "description", "retry_after", "scope", "code", "within_chat".
 */
int faults_add(struct faults *f, const json_t *request, struct error *err);
/* Returns and counts a fault of this kind that fires now; borrowed until the next change. */
const struct fault *faults_fire(struct faults *f, enum fault_kind kind, const char *method);
/* Writes members "faults" and "fired" (the counters). */
void faults_write(const struct faults *f, struct buf *b);
/* Uniform in [0, below). */
uint64_t faults_random(struct faults *f, uint64_t below);

#endif
