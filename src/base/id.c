#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

void id_random_bytes(void *out, size_t n)
{
        unsigned char *p = out;

        while (n > 0) {
                ssize_t got = getrandom(p, n, 0);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        perror("dragoman: no random numbers");
                        abort();
                }
                p += got;
                n -= (size_t)got;
        }
}

uint64_t id_random_below(uint64_t below)
{
        uint64_t limit = UINT64_MAX - UINT64_MAX % below;
        uint64_t r;

        do {
                id_random_bytes(&r, sizeof(r));
        } while (r >= limit);
        return r % below;
}

char *id_trace(char out[ID_TRACE_SIZE])
{
        uint64_t ms = (uint64_t)clock_wall_ms();
        unsigned char r[10];

        id_random_bytes(r, sizeof(r));
        snprintf(out, ID_TRACE_SIZE, "%012llx%02x%02x%02x%02x%02x%02x%02x%02x%02x%02x",
                 (unsigned long long)(ms & 0xffffffffffffULL), r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7],
                 r[8], r[9]);
        return out;
}

char *id_span(char out[ID_SPAN_SIZE])
{
        uint64_t r;

        id_random_bytes(&r, sizeof(r));
        snprintf(out, ID_SPAN_SIZE, "%016llx", (unsigned long long)r);
        return out;
}

char *id_random_text(char *out, size_t n)
{
        static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

        for (size_t i = 0; i < n; i++)
                out[i] = alphabet[id_random_below(sizeof(alphabet) - 1)];
        out[n] = '\0';
        return out;
}
