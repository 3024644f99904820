/* Tools for agents, lookups for the road and the API. */
#include "platform/slack/slack.h"

/* These call `done` later, from the loop. */
void sl_tools_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg)
{
        const struct error err = { ERR_INVALID, "history of Slack is not built yet" };

        (void)a;
        (void)channel;
        (void)thread;
        (void)limit;
        done(arg, NULL, 0, &err);
}

void sl_tools_message(struct adapter *a, const char *channel, const char *thread, const char *id,
                      channel_history_fn *done, void *arg)
{
        (void)id;
        sl_tools_history(a, channel, thread, 1, done, arg);
}

int sl_tools_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err)
{
        (void)a;
        (void)channel;
        (void)done;
        (void)arg;
        return error_set(err, ERR_INVALID, "lookups in Slack are not built yet");
}

int sl_tools_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err)
{
        (void)a;
        (void)user;
        (void)done;
        (void)arg;
        return error_set(err, ERR_INVALID, "lookups in Slack are not built yet");
}

const struct platform_tool sl_tools[] = { { .tool = { .name = NULL } } };
