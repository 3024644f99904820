#include "schedule/schedule_private.h"

const struct schedule_tool calendar_tools[] = {
        { { NULL }, NULL },
};

const struct schedule_command calendar_commands[] = {
        { NULL, NULL },
};

struct calendar *calendar_open(struct schedule *s)
{
        (void)s;
        return NULL;
}

void calendar_start(struct schedule *s)
{
        (void)s;
}

void calendar_close(struct schedule *s)
{
        (void)s;
}
