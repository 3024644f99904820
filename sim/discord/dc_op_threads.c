#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

static void record(const struct call *c, const struct channel *thread, const struct message *on)
{
        struct buf *b = dc_call_record(c, "thread", thread->parent);

        dc_render_id(b, "thread", thread->id);
        jsonw_str(b, "name", thread->name);
        if (on)
                dc_render_id(b, "message_id", on->id);
        dc_render_channel(b, "now", thread);
        journal_close(c->world->base.sent);
}

static bool has_threads(const struct channel *channel)
{
        return channel->type == CHANNEL_TEXT || channel->type == CHANNEL_NEWS;
}

static int thread_on_message(struct call *c)
{
        struct channel *channel = dc_call_channel(c, MAY_OPEN_THREADS), *thread;
        struct message *m = channel ? dc_call_message(c, channel) : NULL;

        if (!m)
                return -1;
        if (!has_threads(channel))
                return dc_call_fail(c, 400, 50024, "Cannot execute action on this channel type");
        if (m->has_thread || dc_channel_find(c->world, m->id))
                return dc_call_fail(c, 400, 160004,
                                    "A thread has already been created for this message");
        thread = dc_world_event_thread(c->world, channel, m,
                                       channel->type == CHANNEL_NEWS ? CHANNEL_NEWS_THREAD
                                                                     : CHANNEL_THREAD,
                                       json_str(c->args, "name", ""), c->bot->user);
        thread->auto_archive =
                (int)json_int(c->args, "auto_archive_duration", thread->auto_archive);
        record(c, thread, m);
        dc_render_channel(&c->out, NULL, thread);
        c->status = 201;
        return 0;
}

/* A post in a forum: a thread and its first message, with the same id. */
static int create_post(struct call *c, struct channel *forum)
{
        struct channel *post = dc_world_event_thread(c->world, forum, NULL, CHANNEL_THREAD,
                                                     json_str(c->args, "name", ""), c->bot->user);
        struct message *m = dc_message_new(c->world, post, c->bot->user);
        const json_t *tags = json_object_get(c->args, "applied_tags");

        m->id = post->id;
        if (dc_compose(c, m, json_object_get(c->args, "message"), false) != 0) {
                dc_message_free(m);
                dc_world_event_channel(c->world, post, "DELETE");
                dc_channel_remove(c->world, post);
                return -1;
        }
        if (json_is_array(tags)) {
                json_decref(post->tags);
                post->tags = json_deep_copy(tags);
        }
        dc_world_event_message(c->world, m);
        record(c, post, m);
        dc_render_channel(&c->out, NULL, post);
        buf_truncate(&c->out, c->out.len - 1); /* the closing brace */
        dc_render_message(&c->out, "message", c->world, m, c->bot, RENDER_PLAIN);
        jsonw_close(&c->out, '}');
        c->status = 201;
        return 0;
}

static int create_thread(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0), *thread;
        int64_t type = json_int(c->args, "type", CHANNEL_PRIVATE_THREAD);

        if (!channel)
                return -1;
        if (dc_channel_is_forum(channel))
                return json_is_object(json_object_get(c->args, "message"))
                               ? create_post(c, channel)
                               : dc_call_invalid(c, "message", "BASE_TYPE_REQUIRED",
                                                 "This field is required");
        if (!has_threads(channel))
                return dc_call_fail(c, 400, 50024, "Cannot execute action on this channel type");
        thread = dc_world_event_thread(c->world, channel, NULL, (enum channel_type)type,
                                       json_str(c->args, "name", ""), c->bot->user);
        thread->auto_archive =
                (int)json_int(c->args, "auto_archive_duration", thread->auto_archive);
        record(c, thread, NULL);
        dc_render_channel(&c->out, NULL, thread);
        c->status = 201;
        return 0;
}

/* ---- members ---- */

static struct channel *find_thread(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);

        if (channel && !dc_channel_is_thread(channel)) {
                dc_call_fail(c, 400, 50024, "Cannot execute action on this channel type");
                return NULL;
        }
        return channel;
}

static int join_thread(struct call *c)
{
        struct channel *thread = find_thread(c);

        if (!thread)
                return -1;
        dc_channel_join(thread, c->bot->user);
        return dc_call_no_content(c);
}

static int leave_thread(struct call *c)
{
        struct channel *thread = find_thread(c);
        char id[DC_ID_SIZE];
        size_t i = 0;

        if (!thread)
                return -1;
        dc_id_text(c->bot->user->id, id);
        while (i < json_array_size(thread->joined)) {
                if (strcmp(json_string_value(json_array_get(thread->joined, i)), id) == 0)
                        json_array_remove(thread->joined, i);
                else
                        i++;
        }
        return dc_call_no_content(c);
}

static int add_thread_member(struct call *c)
{
        struct channel *thread = find_thread(c);
        const struct user *u = dc_world_user(c->world, dc_call_id(c, "user_id"));

        if (!thread)
                return -1;
        if (!u)
                return dc_call_fail(c, 404, 10013, "Unknown User");
        dc_channel_join(thread, u);
        return dc_call_no_content(c);
}

static int list_thread_members(struct call *c)
{
        struct channel *thread = find_thread(c);
        const json_t *id;
        size_t i;

        if (!thread)
                return -1;
        jsonw_open(&c->out, '[');
        json_array_foreach(thread->joined, i, id)
                dc_render_thread_member(&c->out, NULL, thread, dc_id_parse(json_string_value(id)));
        jsonw_close(&c->out, ']');
        return 0;
}

/* ---- lists ---- */

static void write_threads(struct call *c, const struct guild *g, const struct channel *parent,
                          bool archived)
{
        jsonw_open(&c->out, '{');
        jsonw_open_member(&c->out, "threads", '[');
        for (const struct channel *at = g->channels; at; at = at->next) {
                if (dc_channel_is_thread(at) && at->archived == archived &&
                    (!parent || at->parent == parent))
                        dc_render_channel(&c->out, NULL, at);
        }
        jsonw_close(&c->out, ']');
        jsonw_raw(&c->out, "members", "[]");
        jsonw_bool(&c->out, "has_more", false);
        jsonw_close(&c->out, '}');
}

static int active_threads(struct call *c)
{
        struct guild *g = dc_call_guild(c);

        if (!g)
                return -1;
        write_threads(c, g, NULL, false);
        return 0;
}

static int archived_threads(struct call *c)
{
        struct channel *channel = dc_call_channel(c, MAY_READ_HISTORY);

        if (!channel)
                return -1;
        if (!channel->guild)
                return dc_call_fail(c, 400, 50024, "Cannot execute action on this channel type");
        write_threads(c, channel->guild, channel, true);
        return 0;
}

const struct dc_op_row dc_op_threads[] = {
        { "create_thread_from_message", thread_on_message },
        { "create_thread", create_thread },
        { "join_thread", join_thread },
        { "leave_thread", leave_thread },
        { "add_thread_member", add_thread_member },
        { "list_thread_members", list_thread_members },
        { "get_active_guild_threads", active_threads },
        { "list_public_archived_threads", archived_threads },
        { "list_private_archived_threads", archived_threads },
        { 0 },
};
