/* Growing answers. */
#include "platform/slack/slack.h"

void sl_streams_open(struct slack *sl)
{
        (void)sl;
}

void sl_streams_close(struct slack *sl)
{
        (void)sl;
}
