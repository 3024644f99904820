/* Any bytes as a zlib stream, cut into messages anywhere, stay within the cap. */
#include <stdint.h>
#include <stdlib.h>

#include "net/inflate.h"

#define CAP 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct inflate *z = inflate_new(INFLATE_ZLIB);
        size_t piece = n > 0 ? data[0] * 4u + 1 : 1;
        struct buf out;
        int rc = 0;

        buf_init(&out, CAP);
        for (size_t at = n > 0; at < n && rc >= 0; at += piece) {
                rc = inflate_feed(z, (const char *)data + at, n - at < piece ? n - at : piece, &out,
                                  NULL);
                if (out.len > CAP || (rc > 0 && out.overflow))
                        abort();
                if (rc > 0)
                        buf_clear(&out);
        }
        buf_release(&out);
        inflate_free(z);
        return 0;
}
