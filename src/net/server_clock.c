#include "net/server_clock.h"

#include "base/clock.h"
#include "net/http_text.h"

void server_clock_set(struct server_clock *c, const char *date)
{
        int64_t date_ms = http_text_date_ms(date);

        if (date_ms > 0)
                *c = (struct server_clock){ date_ms, clock_boot_ms() };
}

int64_t server_clock_now_ms(const struct server_clock *c)
{
        return c->date_ms > 0 ? c->date_ms + clock_boot_ms() - c->boot_ms : clock_wall_ms();
}
