/*
 * token_bucket: a rate limit whose tokens grow back with time.
 */
#ifndef SIM_TOKEN_BUCKET_H
#define SIM_TOKEN_BUCKET_H

#include <stdint.h>

struct token_bucket {
        double tokens;
        int64_t at_ms; /* 0: never used, full */
};

/*
 * Refills it with `rate` tokens a second (0: no limit) up to `burst`; returns the seconds until it
 * has n. If that is 0, the caller takes them. A full bucket lets more than the burst pass.
 */
double token_bucket_wait(struct token_bucket *b, double rate, double burst, double n,
                         int64_t now_ms);

#endif
