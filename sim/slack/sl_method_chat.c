/*
 * Methods that post, change and remove messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_compose.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_rate_limit.h"

/* ---- where ---- */

/* By id, by "#name", or a person's id: their direct messages. */
static struct slack_channel *find_target(struct slack_call *c)
{
        const char *text = sl_call_text(c, "channel");
        struct slack_user *u = sl_user_find(c->world, text);
        struct slack_channel *channel = sl_channel_by_name(c->world, text);

        if (u && !u->app && !u->deleted)
                return sl_channel_im(c->app, u, true);
        if (channel && channel->kind != SLACK_PUBLIC && strcmp(channel->id, text) != 0)
                channel = NULL; /* only public channels have names here */
        return channel;
}

/* The conversation to post to; NULL after sl_call_fail. */
static struct slack_channel *target(struct slack_call *c)
{
        struct slack_channel *channel = find_target(c);
        bool member = channel && sl_channel_has(channel, c->app->user);

        if (!channel ||
            (!member && (channel->kind != SLACK_PUBLIC || channel->team != c->app->team)))
                sl_call_fail(c, "channel_not_found");
        else if (channel->archived)
                sl_call_fail(c, "is_archived");
        else if (!member && !sl_app_has_scope(c->app, "chat:write.public"))
                sl_call_fail(c, "not_in_channel");
        else
                return channel;
        return NULL;
}

static int check_pace(struct slack_call *c, const struct slack_channel *channel)
{
        const struct slack_settings *s = &c->world->settings;
        double wait;
        char *key;

        if (!c->world->base.limits)
                return 0;
        key = mem_printf("post %s %s", c->app->id, channel->id);
        wait = sl_rate_limit_count(c->world->rates, key, s->posts_per_second,
                                   (double)s->post_burst);
        free(key);
        return wait > 0 ? sl_call_limit(c, wait) : 0;
}

/*
 * A reply's ts must not be used; Slack's clients then show the message in no thread. A reply to a
 * deleted message appears in the channel (slack-go/slack#1571).
 */
int sl_method_set_thread(struct slack_call *c, struct slack_message *m, const char *thread_ts)
{
        int64_t us = sl_message_parse_ts(thread_ts);
        const struct slack_message *root;

        if (!thread_ts)
                return 0;
        if (us < 0 || strlen(thread_ts) >= SL_TS_SIZE)
                return sl_call_fail(c, "invalid_thread_ts");
        root = sl_message_find(m->channel, thread_ts);
        if (!root && us > m->channel->forgotten_us)
                return 0;
        if (root && root->thread_ts[0] && strcmp(root->thread_ts, root->ts) != 0) {
                c->base.valid = false;
                snprintf(c->problem, sizeof(c->problem), "thread_ts %.23s is that of a reply",
                         thread_ts);
                thread_ts = root->thread_ts;
        }
        snprintf(m->thread_ts, sizeof(m->thread_ts), "%s", thread_ts);
        return 0;
}

void sl_method_posted(struct slack_call *c, struct slack_message *m, const char *kind)
{
        json_t *about = map_get(&m->channel->assistant, m->thread_ts);
        struct buf *b;

        sl_message_post(c->world, m);
        if (about) /* an Assistant thread; the next message ends its status */
                json_object_del(about, "status");
        c->world->base.message_count++;
        b = sl_call_record(c, kind, m->channel);
        sl_compose_record(c, b, m);
        journal_close(c->world->base.sent);
        sl_call_print(c, m);
        sl_event_posted(c->world, m);
}

/* ---- posting ---- */

int sl_method_post(struct slack_call *c)
{
        struct slack_channel *channel = target(c);
        const char *username = sl_call_text(c, "username");
        struct slack_message *m;

        if (!channel || check_pace(c, channel) != 0)
                return -1;
        m = sl_message_new(channel, c->app->user, NULL);
        m->app = c->app;
        if (sl_compose(c, m, false) != 0 ||
            sl_method_set_thread(c, m, sl_call_text(c, "thread_ts")) != 0) {
                sl_message_free(m);
                return -1;
        }
        m->broadcast = m->thread_ts[0] && sl_call_flag(c, "reply_broadcast", false);
        if (username && sl_app_has_scope(c->app, "chat:write.customize"))
                m->username = mem_strdup(username);
        sl_method_posted(c, m, "message");
        sl_call_set(c, "channel", channel->id);
        sl_call_set(c, "ts", m->ts);
        sl_call_set_new(c, "message", sl_render_message(c->world, m, SLACK_RENDER_METADATA));
        return 0;
}

/* Shown to one person, and not kept. */
int sl_method_post_ephemeral(struct slack_call *c)
{
        struct slack_channel *channel = target(c);
        const struct slack_user *u = sl_user_find(c->world, sl_call_text(c, "user"));
        struct slack_message *m;
        struct buf *b;

        if (!channel)
                return -1;
        if (!u || !sl_channel_has(channel, u))
                return sl_call_fail(c, u ? "user_not_in_channel" : "user_not_found");
        m = sl_message_new(channel, c->app->user, NULL);
        m->app = c->app;
        if (sl_compose(c, m, false) != 0 ||
            sl_method_set_thread(c, m, sl_call_text(c, "thread_ts")) != 0) {
                sl_message_free(m);
                return -1;
        }
        b = sl_call_record(c, "ephemeral", channel);
        jsonw_str(b, "user", u->id);
        sl_compose_record(c, b, m);
        journal_close(c->world->base.sent);
        sl_call_set(c, "message_ts", m->ts);
        sl_message_free(m);
        return 0;
}

/* ---- changing ---- */

/* A message of the app; NULL after sl_call_fail. */
static struct slack_message *own_message(struct slack_call *c, const char *otherwise)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        struct slack_message *m = channel ? sl_call_message(c, channel, "ts") : NULL;

        if (m && m->app != c->app) {
                sl_call_fail(c, otherwise);
                return NULL;
        }
        return m;
}

int sl_method_update(struct slack_call *c)
{
        struct slack_message *m = own_message(c, "cant_update_message");
        json_t *previous;
        struct buf *b;

        if (!m)
                return -1;
        sl_method_expire_stream(c, m);
        if (m->stream == SLACK_STREAMING)
                return sl_call_fail(c, "streaming_state_conflict");
        previous = sl_render_message(c->world, m, SLACK_RENDER_METADATA);
        if (sl_compose(c, m, true) != 0) {
                json_decref(previous);
                return -1;
        }
        /* a message with blocks gets no mark */
        if (!m->blocks)
                sl_message_edited(m, c->app->user);
        c->world->edit_count++;
        b = sl_call_record(c, "edit", m->channel);
        sl_compose_record(c, b, m);
        journal_close(c->world->base.sent);
        sl_event_changed(c->world, m, previous);
        sl_call_set(c, "channel", m->channel->id);
        sl_call_set(c, "ts", m->ts);
        sl_call_set(c, "text", m->text);
        sl_call_set_new(c, "message", sl_render_message(c->world, m, SLACK_RENDER_METADATA));
        return 0;
}

int sl_method_delete(struct slack_call *c)
{
        struct slack_message *m = own_message(c, "cant_delete_message");

        if (!m)
                return -1;
        jsonw_str(sl_call_record(c, "delete", m->channel), "ts", m->ts);
        journal_close(c->world->base.sent);
        sl_call_set(c, "channel", m->channel->id);
        sl_call_set(c, "ts", m->ts);
        sl_event_delete(c->world, m);
        return 0;
}

int sl_method_permalink(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        const struct slack_message *m = channel ? sl_call_message(c, channel, "message_ts") : NULL;
        char *link;

        if (!m)
                return -1;
        link = sl_render_permalink(m);
        sl_call_set(c, "channel", channel->id);
        sl_call_set(c, "permalink", link);
        free(link);
        return 0;
}
