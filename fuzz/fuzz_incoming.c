/*
 * Any payload in the journal, which holds what platforms and clients sent: a damaged one is an
 * error, and what is read is written again as JSON that reads the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/incoming.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct incoming *parse(const char *payload)
{
        struct bus_event e = { .seq = 1,
                               .type = EVENT_MESSAGE_RECEIVED,
                               .adapter = "api",
                               .channel = "c",
                               .key = "k",
                               .payload = payload };
        struct error err = { 0 };
        struct incoming *in = incoming_parse(&e, &err);

        if (!in && err.kind == ERR_NONE)
                abort();
        return in;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *payload = mem_strndup((const char *)data, n);
        struct incoming *in = parse(payload), *copy, *again;
        struct buf first, second;

        free(payload);
        if (!in)
                return 0;
        buf_init(&first, 0);
        buf_init(&second, 0);
        copy = incoming_dup(in);
        incoming_payload(copy, &first);
        again = parse(first.data);
        if (!again)
                abort();
        incoming_payload(again, &second);
        if (strcmp(first.data, second.data) != 0)
                abort();
        incoming_free(again);
        incoming_free(copy);
        incoming_free(in);
        buf_release(&second);
        buf_release(&first);
        return 0;
}
