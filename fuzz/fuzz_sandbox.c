/* What a sandbox says to the daemon, and what it asks of the proxy: every byte may be hostile. */
#include <stdint.h>
#include <stdlib.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct egress_target to;
        struct box_head head;
        const char *bytes;
        size_t consumed;
        struct buf b;

        buf_init(&b, 0);
        buf_add(&b, data, size);
        while (frame_next(&b, &head, &bytes, &consumed) == 1) {
                if (consumed > b.len || bytes + head.n > b.data + b.len)
                        abort();
                buf_consume(&b, consumed);
        }
        buf_clear(&b);
        buf_add(&b, data, size);
        if (egress_read(b.data, b.len, &to) == 1) {
                if (to.head > size || to.line + 2 > to.head || to.path > to.line || to.port < 1 ||
                    to.port > 65535 || !to.host[0])
                        abort();
        }
        buf_release(&b);
        return 0;
}
