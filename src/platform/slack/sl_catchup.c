/* What was missed while we were down. */
#include "platform/slack/slack.h"

void sl_catchup_open(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_close(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_start(struct slack *sl)
{
        (void)sl;
}

void sl_catchup_seen(struct slack *sl, const char *channel, const char *thread, const char *ts)
{
        (void)sl;
        (void)channel;
        (void)thread;
        (void)ts;
}
