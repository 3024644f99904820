/* Quiet hours of one schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "schedule/quiet.h"

#define MONDAY_2AM (1794794400LL * 1000) /* 2026-11-16 02:00 UTC */
#define HOUR_MS    3600000LL

static void a_turn_waits_until_its_quiet_hours_end(void **state)
{
        static const struct {
                const char *options;
                int64_t hours; /* that it waits */
        } rows[] = {
                { "{}", 0 },
                { "{\"quietHours\":[]}", 0 },
                { "{\"quietHours\":[\"22:00-07:00\"],\"quietZone\":\"UTC\"}", 5 },
                { "{\"quietHours\":[\"22:00-07:00\",\"07:00-08:00\"],\"quietZone\":\"UTC\"}", 6 },
                { "{\"quietHours\":[\"22:00-07:00\"],\"quietZone\":\"Asia/Tokyo\"}", 0 },
                { "{\"quietHours\":[\"10:00-13:00\"],\"quietZone\":\"Asia/Tokyo\"}", 2 },
                { "{\"quietHours\":[\"10:00-13:00\"]}", 2 }, /* in the zone of those without */
                { "{\"quietHours\":[\"sat,sun 00:00-24:00\"],\"quietZone\":\"UTC\"}", 0 },
                { "{\"quietHours\":[\"what\",7]}", 0 },
                { "{\"quietHours\":[\"00:00-24:00\"],\"quietZone\":\"UTC\"}", 0 }, /* never ends */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *options = json_read(rows[i].options, strlen(rows[i].options), NULL);
                int64_t end = quiet_end(options, "Asia/Tokyo", MONDAY_2AM);

                if (end != MONDAY_2AM + rows[i].hours * HOUR_MS)
                        fail_msg("row %zu: %lld", i, (long long)(end - MONDAY_2AM) / HOUR_MS);
                json_decref(options);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_turn_waits_until_its_quiet_hours_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
