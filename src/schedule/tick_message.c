#include "schedule/schedule_private.h"

struct tick_messages *tick_messages_open(struct schedule *s)
{
        (void)s;
        return NULL;
}

void tick_messages_start(struct schedule *s)
{
        (void)s;
}

void tick_messages_close(struct schedule *s)
{
        (void)s;
}

void tick_message_start(struct tick_run *t)
{
        tick_end(t, TICK_FAILED, "messages cannot be sent yet");
}
