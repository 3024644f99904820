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

void sl_assistant_event(struct slack *sl, const json_t *event)
{
        (void)sl;
        (void)event;
}

void sl_assistant_said(struct slack *sl, const char *channel, const char *thread, const char *text)
{
        (void)sl;
        (void)channel;
        (void)thread;
        (void)text;
}

void sl_assistant_type(struct slack *sl, const struct delivery *d)
{
        adapter_refuse(sl->adapter, d, SEND_DONE, ERR_NONE, NULL);
}

void sl_assistant_answered(struct slack *sl, const struct delivery *d, bool sent)
{
        (void)sl;
        (void)d;
        (void)sent;
}
