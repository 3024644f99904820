/* Any bytes as tool.json: read or refused with a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/custom_source.h"
#include "agent/custom/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct error err = { 0 };
        struct manifest m;

        /* handles would run programs and read files */
        if (memmem(data, n, "cmd:", 4) || memmem(data, n, "file:", 5))
                return 0;
        if (manifest_read("tool.json", "/", (const char *)data, n, &m, &err) < 0) {
                if (err.text[0] == '\0')
                        abort();
                return 0;
        }
        if ((m.name && !custom_is_key(m.name)) || m.timeout_seconds < 1)
                abort();
        manifest_release(&m);
        return 0;
}
