/*
 * numbers: turn and delivery numbers, reserved from the store in blocks.
 *
 * A number is known before its row is written, and no two processes use the same one. Numbers only
 * grow. A clean close returns unused ones; a crash leaves a gap.
 */
#ifndef ROAD_NUMBERS_H
#define ROAD_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ROAD_KEY_SIZE 24 /* "trn-" and a number */

struct road;

struct numbers {
        struct road *road;
        const char *name;  /* of the row */
        int64_t next, end; /* free: next to end - 1 */
        int64_t wanted;    /* reserve at least this many */
        bool reserving;    /* a block is being reserved */
        bool failing;      /* the last attempt to reserve one failed */
        struct {
                int64_t count, first;
        } block; /* the one being reserved, for the store function */
};

/* Blocks while reserving; a failure is retried later. */
void numbers_open(struct numbers *n, struct road *r, const char *name);
void numbers_close(struct numbers *n); /* blocks while returning unused numbers */
/* Takes consecutive numbers. False: not enough; road_numbers_refilled follows. */
bool numbers_take(struct numbers *n, size_t count, int64_t *first);
/* Are there enough? False: they are being reserved; road_numbers_refilled follows. */
bool numbers_request(struct numbers *n, size_t count);
int64_t numbers_left(const struct numbers *n);
/* The lowest number not yet taken; needs numbers_left > 0. */
int64_t numbers_next(const struct numbers *n);

#endif
