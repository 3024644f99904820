/* Sends deliveries. */
#include "platform/slack/slack.h"

void sl_sends_open(struct slack *sl)
{
        (void)sl;
}

void sl_sends_close(struct slack *sl)
{
        (void)sl;
}

void sl_send(struct adapter *a, const struct delivery *d)
{
        adapter_refuse(a, d, SEND_REJECTED, ERR_INVALID, "sending to Slack is not built yet");
}
