/* The Events API over HTTP. */
#include "platform/slack/slack.h"

void sl_webhook_open(struct slack *sl)
{
        slack_lost(sl, "the Events API is not built yet");
}

void sl_webhook_close(struct slack *sl)
{
        (void)sl;
}

bool sl_webhook_admits(struct adapter *a, struct http_exchange *x)
{
        http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' takes no posts yet", a->name);
        return false;
}

void sl_webhook_handle(struct adapter *a, struct http_exchange *x)
{
        http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' takes no posts yet", a->name);
}
