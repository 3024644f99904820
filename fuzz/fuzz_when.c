/* Times as people write them in chats. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule/cron.h"
#include "schedule/when.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct time_zone *zone;
        char *text = mem_strndup((const char *)data, size);
        int64_t now_ms = 1774000000000 + (int64_t)size * 7200000;
        struct when w;
        struct cron c;
        struct buf out;

        if (!zone)
                zone = timezone_new("Europe/Berlin", NULL);
        buf_init(&out, 0);
        if (zone && when_parse(text, zone, now_ms, &w, NULL) == 0) {
                assert(w.used <= strlen(text));
                if (w.cron[0]) {
                        assert(w.at_ms == 0 && cron_parse(w.cron, &c, NULL) == 0);
                } else {
                        assert(w.at_ms > now_ms);
                        when_describe(w.at_ms, zone, now_ms, &out);
                        when_describe_span(w.at_ms - now_ms, &out);
                }
        }
        buf_release(&out);
        free(text);
        return 0;
}
