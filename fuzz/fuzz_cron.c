/* Cron schedules, as people and agents write them. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "schedule/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const names[] = { "Europe/Berlin", "Australia/Lord_Howe", "UTC",
                                             "Pacific/Apia" };
        static struct time_zone *zones[COUNT(names)];
        char *text = mem_strndup((const char *)data, size);
        size_t pick = size % COUNT(names);
        int64_t at = 1774000000000 + (int64_t)size * 86400000, next;
        struct cron c;

        if (!zones[pick])
                zones[pick] = timezone_new(names[pick], NULL);
        if (zones[pick] && cron_parse(text, &c, NULL) == 0) {
                for (int i = 0; i < 3; i++, at = next) {
                        next = cron_next(&c, zones[pick], at);
                        if (next == 0)
                                break;
                        assert(next > at && next % 1000 == 0);
                        /* nothing is left out in between */
                        assert(cron_next(&c, zones[pick], next - 1) == next);
                }
        }
        free(text);
        return 0;
}
