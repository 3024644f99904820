/* Socket Mode. */
#include "platform/slack/slack.h"

void sl_socket_open(struct slack *sl)
{
        slack_lost(sl, "Socket Mode is not built yet");
}

void sl_socket_close(struct slack *sl)
{
        (void)sl;
}
