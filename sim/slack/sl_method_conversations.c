/*
 * Methods about conversations.
 */
#include "sim/slack/sl_methods.h"

int sl_method_channel_info(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        json_t *about;

        if (!channel)
                return -1;
        about = sl_render_channel(channel, c->app);
        if (sl_call_flag(c, "include_num_members", false))
                json_object_set_new(about, "num_members",
                                    json_integer((json_int_t)channel->member_count));
        sl_call_set_new(c, "channel", about);
        return 0;
}
