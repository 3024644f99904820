#include "sim/token_bucket.h"

double token_bucket_wait(struct token_bucket *b, double rate, double burst, double n,
                         int64_t now_ms)
{
        if (rate <= 0)
                return 0;
        if (b->at_ms == 0)
                b->tokens = burst;
        else
                b->tokens += (double)(now_ms - b->at_ms) / 1000 * rate;
        if (b->tokens > burst)
                b->tokens = burst;
        b->at_ms = now_ms;
        return b->tokens >= n || b->tokens >= burst ? 0
                                                    : ((n < burst ? n : burst) - b->tokens) / rate;
}
