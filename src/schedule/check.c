#include "schedule/schedule_private.h"

void check_start(struct tick_run *t)
{
        tick_checked(t);
}

void check_stop(struct tick_run *t)
{
        (void)t;
}
