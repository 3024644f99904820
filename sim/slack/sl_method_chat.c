/*
 * Methods that post, change and remove messages.
 */
#include <stdio.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_methods.h"

int sl_method_post(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        struct slack_message *m;
        struct buf *b;

        if (!channel)
                return -1;
        m = sl_message_new(channel, c->app->user, sl_call_text(c, "text"));
        m->app = c->app;
        m->metadata = json_incref(json_object_get(c->args, "metadata"));
        m->blocks = json_incref(json_object_get(c->args, "blocks"));
        if (sl_call_text(c, "thread_ts"))
                snprintf(m->thread_ts, sizeof(m->thread_ts), "%.23s", sl_call_text(c, "thread_ts"));
        sl_message_post(c->world, m);
        c->world->base.message_count++;
        b = sl_call_record(c, "message", channel);
        jsonw_str(b, "ts", m->ts);
        jsonw_str(b, "text", m->text);
        if (m->thread_ts[0])
                jsonw_str(b, "thread_ts", m->thread_ts);
        journal_close(c->world->base.sent);
        sl_call_print(c, m);
        sl_call_set(c, "channel", channel->id);
        sl_call_set(c, "ts", m->ts);
        sl_call_set_new(c, "message", sl_render_message(c->world, m, SLACK_RENDER_METADATA));
        sl_event_posted(c->world, m);
        return 0;
}
