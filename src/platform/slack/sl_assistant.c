/* Assistant threads. */
#include "platform/slack/slack.h"

void sl_assistant_open(struct slack *sl)
{
        (void)sl;
}

void sl_assistant_close(struct slack *sl)
{
        (void)sl;
}
