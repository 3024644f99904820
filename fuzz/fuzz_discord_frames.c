/*
 * Any bytes as the messages of a gateway connection, plain or compressed, give JSON objects in
 * order, or an end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"

static void on_payload(void *arg, json_t *payload)
{
        unsigned *count = arg;

        if (!json_is_object(payload))
                abort();
        ++*count;
}

static void on_busy(void *arg, bool busy)
{
        (void)arg, (void)busy;
}

static void on_failed(void *arg, const char *why)
{
        (void)arg;
        if (!*why)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char *const kinds[] = { "none", "zlib-stream", "zstd-stream" };
        static const struct dc_frames_handlers handlers = { .payload = on_payload,
                                                            .busy = on_busy,
                                                            .failed = on_failed };
        static struct loop *loop;
        unsigned count = 0;
        struct dc_frames *f;
        size_t piece;

        if (n < 2)
                return 0;
        if (!loop)
                loop = loop_new();
        f = dc_frames_new(loop, kinds[data[0] % COUNT(kinds)], &handlers, &count);
        piece = (size_t)data[1] * 8 + 1;
        for (size_t at = 2; at < n; at += piece)
                dc_frames_feed(f, data[0] % COUNT(kinds) != 0, (const char *)data + at,
                               n - at < piece ? n - at : piece);
        dc_frames_free(f);
        loop_step(loop, false);
        return 0;
}
