/*
 * Any bytes as the messages of a gateway connection, plain or compressed, give JSON objects or end
 * it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/discord/dc_shard.h"

static void on_payload(void *arg, json_t *payload)
{
        unsigned *count = arg;

        if (!json_is_object(payload))
                abort();
        ++*count;
}

static void on_event(void *arg, enum dc_connection_event event, const char *why)
{
        (void)arg;
        if (event == DC_CONNECTION_UNREADABLE && !*why)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char *const kinds[] = { "none", "zlib-stream", "zstd-stream" };
        static const struct dc_connection_handlers handlers = { .event = on_event,
                                                                .payload = on_payload };
        static struct loop *loop;
        unsigned count = 0;
        struct dc_gateway_options o = { 0 };
        struct dc_connection *c;
        size_t piece;

        if (n < 2)
                return 0;
        if (!loop)
                loop = loop_new();
        o.loop = loop;
        o.compress = kinds[data[0] % COUNT(kinds)];
        c = dc_connection_open(&o, NULL, NULL, &handlers, &count);
        piece = (size_t)data[1] * 8 + 1;
        for (size_t at = 2; at < n; at += piece)
                dc_connection_feed(c, data[0] % COUNT(kinds) != 0, (const char *)data + at,
                                   n - at < piece ? n - at : piece);
        dc_connection_free(c);
        loop_step(loop, false);
        return 0;
}
