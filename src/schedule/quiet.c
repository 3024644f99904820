#include "schedule/quiet.h"

#include "base/hours.h"
#include "base/json.h"

int64_t quiet_end(const json_t *options, const char *zone, int64_t now_ms)
{
        struct time_zone *tz;
        struct hours_list list = { 0 };
        const json_t *text;
        int64_t end;
        size_t i;

        json_array_foreach(json_object_get(options, "quietHours"), i, text)
                if (list.count < HOURS_LIST_MAX && json_is_string(text) &&
                    hours_parse(json_string_value(text), &list.items[list.count]) == 0)
                        list.count++;
        if (list.count == 0)
                return now_ms;
        tz = timezone_new(json_str(options, "quietZone", zone), NULL);
        end = hours_list_end(&list, tz, now_ms);
        timezone_free(tz);
        return end == INT64_MAX ? now_ms : end;
}
