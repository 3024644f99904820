#include "platform/slack/sl_ts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_US 1000000

bool sl_ts_valid(const char *ts)
{
        size_t n = ts ? strspn(ts, "0123456789") : 0;

        return n >= 1 && n <= 11 && ts[n] == '.' && strspn(ts + n + 1, "0123456789") == 6 &&
               ts[n + 7] == '\0';
}

int64_t sl_ts_us(const char *ts)
{
        char *dot;
        int64_t seconds;

        if (!sl_ts_valid(ts))
                return 0;
        seconds = strtoll(ts, &dot, 10);
        return seconds * SECOND_US + strtoll(dot + 1, NULL, 10);
}

const char *sl_ts_write(int64_t us, char out[SL_TS_SIZE])
{
        us = us < 0 ? 0 : us;
        snprintf(out, SL_TS_SIZE, "%" PRId64 ".%06" PRId64, us / SECOND_US, us % SECOND_US);
        return out;
}
