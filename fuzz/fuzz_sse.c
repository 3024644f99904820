/* Any bytes, cut anywhere, give the same events as when fed at once. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/sse_reader.h"

#define MAX_EVENT 256

static void note(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct buf *b = arg;

        if (n > MAX_EVENT || data[n] != '\0')
                abort();
        buf_addf(b, "%s|%s|%zu|", event, id, n);
        buf_add(b, data, n);
}

static int feed_in_pieces(const char *bytes, size_t n, size_t piece, struct buf *out)
{
        struct sse_reader r;
        int rc = 0;

        sse_reader_init(&r, MAX_EVENT, note, out);
        for (size_t at = 0; at < n && rc == 0; at += piece)
                rc = sse_reader_feed(&r, bytes + at, n - at < piece ? n - at : piece);
        sse_reader_release(&r);
        return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct buf whole, cut;
        size_t piece = n > 0 ? data[0] % 16u + 1 : 1;
        int a, b;

        buf_init(&whole, 0);
        buf_init(&cut, 0);
        a = feed_in_pieces((const char *)data, n, n + 1, &whole);
        b = feed_in_pieces((const char *)data, n, piece, &cut);
        if (a != b || whole.len != cut.len || memcmp(whole.data, cut.data, whole.len) != 0)
                abort();
        buf_release(&whole);
        buf_release(&cut);
        return 0;
}
