/* From the link to the inbox. */
#include "platform/slack/slack.h"

void sl_intake_open(struct slack *sl)
{
        (void)sl;
}

void sl_intake_close(struct slack *sl)
{
        (void)sl;
}

void sl_intake_take(struct slack *sl, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *arg)
{
        (void)sl;
        (void)kind;
        (void)payload;
        (void)retry;
        stored(arg, false, NULL);
}

void sl_intake_missed(struct slack *sl, const char *channel, json_t *message)
{
        (void)sl;
        (void)channel;
        (void)message;
}

bool sl_intake_is_full(const struct slack *sl)
{
        (void)sl;
        return false;
}
