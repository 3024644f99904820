/*
 * Any bytes as a body: either the struct is filled or there is a sentence; never both, never a
 * crash.
 */
#include <stdlib.h>
#include <string.h>

#include "api/compat/completion_ask.h"
#include "api/core/body.h"
#include "api/core/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What the table lets pass is read further, into lines and the one message they make. */
static void read_completion(const uint8_t *data, size_t n)
{
        struct completion_ask ask = { .n = 1 };
        struct completion_lines said = { 0 };
        struct buf text;
        struct body b;

        body_init(&b);
        buf_init(&text, 0);
        if (body_read(&b, (const char *)data, n, completion_ask_fields, &ask) == 0) {
                if (completion_ask_read(&b, &ask, &said) < 0) {
                        if (b.error.text[0] == '\0')
                                abort();
                } else if (!chat_bridge_text(said.lines, ask.messages.count, true, &text)) {
                        abort();
                }
        }
        buf_release(&text);
        body_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        read_completion(data, n);
        ROUTES_FOREACH(r) {
                _Alignas(max_align_t) char out[1024] = { 0 };
                struct body b;

                if (!r->body)
                        continue;
                body_init(&b);
                if (body_read(&b, (const char *)data, n, r->body, out) < 0 &&
                    b.error.text[0] == '\0')
                        abort();
                body_release(&b);
        }
        return 0;
}
