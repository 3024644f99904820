/* What follows /remind: a time and a text, in either order. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule/reminder_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct time_zone *zone;
        char *words = mem_strndup((const char *)data, size);
        struct reminder_text said;
        struct arena a;

        if (!zone)
                zone = timezone_new("Europe/Berlin", NULL);
        arena_init(&a);
        for (int alone = 0; zone && alone < 2; alone++) {
                if (reminder_text_read(words, alone ? "tea" : NULL, zone, 1774000000000, &a, &said,
                                       NULL) < 0)
                        continue;
                assert(said.text && strlen(said.text) <= strlen(words) + 3);
                assert((said.when.cron[0] == '\0') == (said.when.at_ms != 0) || alone);
        }
        arena_release(&a);
        free(words);
        return 0;
}
