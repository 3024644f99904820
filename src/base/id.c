#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/crypto.h"

#define POOL_BYTES 1024

static void from_system(void *out, size_t n)
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

/*
 * Each thread fetches random bytes in advance to save a system call per id. Wipes bytes handed
 * out, which may become a key. Processes never share a pool: we do not fork without exec.
 */
void id_random_bytes(void *out, size_t n)
{
        static _Thread_local unsigned char pool[POOL_BYTES];
        static _Thread_local size_t left;

        if (n > sizeof(pool)) {
                from_system(out, n);
                return;
        }
        if (n > left) {
                from_system(pool, sizeof(pool));
                left = sizeof(pool);
        }
        left -= n;
        memcpy(out, pool + left, n);
        explicit_bzero(pool + left, n);
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
        unsigned char bytes[16];

        for (int i = 0; i < 6; i++)
                bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
        id_random_bytes(bytes + 6, sizeof(bytes) - 6);
        return crypto_hex(bytes, sizeof(bytes), out);
}

#define HEX "0123456789abcdef"

/* n lower-case hex digits, not all zero. */
static bool is_hex(const char *text, size_t n)
{
        return strspn(text, HEX) >= n && strspn(text, "0") < n;
}

bool id_is_trace(const char *trace)
{
        return trace && strlen(trace) == ID_TRACE_SIZE - 1 && is_hex(trace, ID_TRACE_SIZE - 1);
}

/* Of later versions the beginning is read, as the standard asks. */
bool id_trace_of_parent(const char *traceparent, char out[ID_TRACE_SIZE])
{
        const char *p = traceparent;
        size_t n = p ? strlen(p) : 0;

        if (n < 55 || strspn(p, HEX) != 2 || strncmp(p, "ff", 2) == 0 || p[2] != '-' ||
            strspn(p + 3, HEX) != 32 || !is_hex(p + 3, 32) || p[35] != '-' ||
            strspn(p + 36, HEX) != 16 || !is_hex(p + 36, 16) || p[52] != '-' ||
            strspn(p + 53, HEX) != 2 || (n > 55 && (strncmp(p, "00", 2) == 0 || p[55] != '-')))
                return false;
        memcpy(out, p + 3, ID_TRACE_SIZE - 1);
        out[ID_TRACE_SIZE - 1] = '\0';
        return true;
}

bool id_parent_samples(const char *traceparent, const char *trace)
{
        char begun[ID_TRACE_SIZE];

        return !trace || !id_trace_of_parent(traceparent, begun) || strcmp(begun, trace) != 0 ||
               strchr("13579bdf", traceparent[54]);
}

char *id_span(char out[ID_SPAN_SIZE])
{
        unsigned char bytes[8];

        id_random_bytes(bytes, sizeof(bytes));
        return crypto_hex(bytes, sizeof(bytes), out);
}

char *id_random_text(char *out, size_t n)
{
        static const char alphabet[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

        for (size_t i = 0; i < n; i++)
                out[i] = alphabet[id_random_below(sizeof(alphabet) - 1)];
        out[n] = '\0';
        return out;
}
