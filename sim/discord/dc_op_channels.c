#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

static int get_channel(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);

        if (!channel)
                return -1;
        dc_render_channel(&c->out, NULL, channel);
        return 0;
}

static int update_channel(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);
        const char *name = json_str(c->args, "name", NULL),
                   *topic = json_str(c->args, "topic", NULL);
        bool archived, renamed;
        struct buf *b;

        if (!channel)
                return -1;
        if (!channel->guild)
                return dc_call_fail(c, 403, 50024, "Cannot execute action on this channel type");
        if (dc_channel_is_thread(channel) && channel->owner_id != c->bot->user->id &&
            !(dc_channel_permissions(c->bot, channel) & MAY_THREADS))
                return dc_call_fail(c, 403, 50013, "Missing Permissions");
        if (channel->archived && json_flag(c->args, "archived", true))
                return dc_call_archived(c);
        archived = json_flag(c->args, "archived", channel->archived);
        /* before it is archived: the message about it would open the thread again */
        channel->archived = false;
        renamed = name && strcmp(name, channel->name) != 0;
        if (renamed)
                dc_world_event_rename(c->world, channel, name, c->bot->user);
        channel->archived = archived;
        channel->locked = json_flag(c->args, "locked", channel->locked);
        channel->auto_archive =
                (int)json_int(c->args, "auto_archive_duration", channel->auto_archive);
        if (topic) {
                free(channel->topic);
                channel->topic = mem_strdup(topic);
        }
        b = dc_call_record(c, dc_channel_is_thread(channel) ? "thread_change" : "channel_change",
                           channel);
        dc_render_json(b, "change", c->args);
        dc_render_channel(b, "now", channel);
        journal_close(c->world->base.sent);
        if (!renamed || archived)
                dc_world_event_channel(c->world, channel, "UPDATE");
        dc_render_channel(&c->out, NULL, channel);
        return 0;
}

static int delete_channel(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);

        if (!channel)
                return -1;
        dc_render_channel(&c->out, NULL, channel);
        if (!channel->guild)
                return 0; /* closing direct messages only hides them */
        dc_call_record(c, dc_channel_is_thread(channel) ? "thread_delete" : "channel_delete",
                       channel);
        journal_close(c->world->base.sent);
        dc_world_event_channel(c->world, channel, "DELETE");
        dc_channel_remove(c->world, channel);
        return 0;
}

static int typing(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);

        if (!channel)
                return -1;
        dc_call_record(c, "typing", channel);
        journal_close(c->world->base.sent);
        dc_world_event_typing(c->world, channel, c->bot->user);
        return dc_call_no_content(c);
}

static int create_dm(struct call *c)
{
        struct user *u = dc_world_user(c->world, dc_call_args_id(c->args, "recipient_id"));
        struct channel *dm;

        if (!u || u->is_bot)
                return dc_call_fail(c, 400, u ? 50007 : 50033,
                                    u ? "Cannot send messages to this user"
                                      : "Invalid Recipient(s)");
        dm = dc_channel_dm(c->bot, u, true);
        dc_call_record(c, "dm_open", dm);
        journal_close(c->world->base.sent);
        dc_render_channel(&c->out, NULL, dm);
        return 0;
}

const struct dc_op_row dc_op_channels[] = {
        { "trigger_typing_indicator", typing },
        { "get_channel", get_channel },
        { "update_channel", update_channel },
        { "delete_channel", delete_channel },
        { "create_dm", create_dm },
        { 0 },
};
