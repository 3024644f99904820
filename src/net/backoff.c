#include "net/backoff.h"

#include "base/id.h"

int64_t backoff_ms(unsigned failures, int64_t base_ms, int64_t cap_ms)
{
        int64_t ms = base_ms;

        while (failures-- > 0 && ms > 0 && ms < cap_ms)
                ms *= 2;
        return ms < cap_ms ? ms : cap_ms;
}

int64_t backoff_half_jitter_ms(unsigned failures, int64_t base_ms, int64_t cap_ms)
{
        int64_t half = backoff_ms(failures, base_ms, cap_ms) / 2;

        return half + (int64_t)id_random_below((uint64_t)half + 1);
}

int64_t backoff_full_jitter_ms(unsigned failures, int64_t base_ms, int64_t cap_ms)
{
        int64_t ms = backoff_ms(failures, base_ms, cap_ms);

        return (int64_t)id_random_below((uint64_t)ms + 1);
}
