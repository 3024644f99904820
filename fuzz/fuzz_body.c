/* Any bytes as a body: either the struct is filled or there is a sentence; never both, never a crash. */
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        for (size_t i = 0; i < api_route_count; i++) {
                const struct api_route *r = &api_routes[i];
                _Alignas(max_align_t) char out[1024] = { 0 };
                struct body b;

                if (!r->body)
                        continue;
                body_init(&b);
                if (body_read(&b, (const char *)data, n, r->body, out) < 0 && b.error.text[0] == '\0')
                        abort();
                body_release(&b);
        }
        return 0;
}
