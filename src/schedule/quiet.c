#include "schedule/quiet.h"

#include "base/hours.h"
#include "base/json.h"

int64_t quiet_end(const json_t *options, int64_t now_ms)
{
        const char *name = json_str(options, "quietZone", NULL);
        struct time_zone *zone = name ? timezone_new(name, NULL) : NULL;
        struct hours_list list = { 0 };
        const json_t *text;
        int64_t end;
        size_t i;

        json_array_foreach(json_object_get(options, "quietHours"), i, text)
                if (list.count < HOURS_LIST_MAX && json_is_string(text) &&
                    hours_parse(json_string_value(text), &list.items[list.count]) == 0)
                        list.count++;
        end = list.count > 0 ? hours_list_end(&list, zone, now_ms) : now_ms;
        timezone_free(zone);
        return end == INT64_MAX ? now_ms : end;
}
