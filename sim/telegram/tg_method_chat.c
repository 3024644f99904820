/*
 * Methods for chats, their members and topics.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sim/telegram/tg_compose.h"
#include "sim/telegram/tg_methods.h"
#include "sim/telegram/tg_people.h"

static int get_chat(struct call *c)
{
        struct chat *chat = tg_call_chat(c);

        if (!chat)
                return -1;
        tg_render_chat(&c->out, NULL, chat);
        buf_truncate(&c->out, c->out.len - 1); /* the closing brace */
        jsonw_int(&c->out, "accent_color_id", 0);
        jsonw_int(&c->out, "max_reaction_count", 11);
        jsonw_raw(&c->out, "accepted_gift_types",
                  "{\"unlimited_gifts\":false,\"limited_gifts\":false,\"unique_gifts\":false,"
                  "\"premium_subscription\":false,\"gifts_from_channels\":false}");
        if (chat->type == CHAT_GROUP || chat->type == CHAT_SUPERGROUP)
                jsonw_raw(&c->out, "permissions", "{\"can_send_messages\":true}");
        jsonw_close(&c->out, '}');
        return 0;
}

static int get_member(struct call *c)
{
        int64_t id = json_int(c->args, "user_id", 0);
        struct chat *chat = tg_call_chat(c);
        struct user *u = tg_world_user(c->world, id);
        struct member *m, stranger = { .user = u, .standing = STANDING_LEFT };

        if (!chat)
                return -1;
        if (!u)
                return tg_call_fail(c, 400, "Bad Request: PARTICIPANT_ID_INVALID");
        m = tg_chat_member(chat, id);
        if (!m && chat->type == CHAT_PRIVATE && (id == chat->id || u == &c->bot->user))
                stranger.standing = STANDING_MEMBER;
        tg_render_member(&c->out, NULL, m ? m : &stranger);
        return 0;
}

static struct chat *call_group(struct call *c)
{
        struct chat *chat = tg_call_chat(c);

        if (chat && chat->type == CHAT_PRIVATE) {
                tg_call_fail(c, 400,
                             "Bad Request: there are no administrators in the private chat");
                return NULL;
        }
        return chat;
}

static int get_admins(struct call *c)
{
        struct chat *chat = call_group(c);

        if (!chat)
                return -1;
        jsonw_open(&c->out, '[');
        for (struct member *m = chat->members; m; m = m->next) {
                if (m->standing >= STANDING_ADMIN)
                        tg_render_member(&c->out, NULL, m);
        }
        jsonw_close(&c->out, ']');
        return 0;
}

static int count_members(struct call *c)
{
        struct chat *chat = tg_call_chat(c);
        int64_t n = 0;

        if (!chat)
                return -1;
        for (struct member *m = chat->members; m; m = m->next)
                n += m->standing >= STANDING_MEMBER;
        jsonw_int(&c->out, NULL, chat->type == CHAT_PRIVATE ? 2 : n);
        return 0;
}

static int leave(struct call *c)
{
        struct chat *chat = call_group(c);

        if (!chat)
                return -1;
        tg_chat_set_member(chat, &c->bot->user, c->bot, STANDING_LEFT);
        tg_compose_record(c, "leave", chat);
        journal_close(c->world->base.sent);
        return tg_call_true(c);
}

/* ---- topics ---- */

static struct chat *call_forum(struct call *c)
{
        struct chat *chat = tg_call_chat(c);

        if (chat && !chat->forum) {
                tg_call_fail(c, 400, "Bad Request: the chat is not a forum");
                return NULL;
        }
        return chat;
}

static bool may_manage_topics(const struct call *c, const struct chat *chat)
{
        const struct member *me = tg_chat_member(chat, c->bot->user.id);

        return !me || (me->standing >= STANDING_ADMIN && !me->no_topics);
}

static void write_topic(struct buf *b, const char *key, const struct topic *t)
{
        jsonw_open_member(b, key, '{');
        jsonw_int(b, "message_thread_id", t->id);
        jsonw_str(b, "name", t->name);
        jsonw_int(b, "icon_color", t->color);
        jsonw_close(b, '}');
}

static int create_topic(struct call *c)
{
        const char *name = json_str(c->args, "name", "");
        size_t length = utf8_length(name, strlen(name), UTF8_UTF16);
        struct chat *chat = call_forum(c);
        const struct message *m;
        const struct topic *t;

        if (!chat)
                return -1;
        if (!may_manage_topics(c, chat))
                return tg_call_fail(c, 400, "Bad Request: not enough rights to create a topic");
        if (length < 1 || length > 128)
                return tg_call_fail(c, 400, "Bad Request: TOPIC_TITLE_EMPTY");
        if (tg_call_pace(c, chat, 1) != 0)
                return -1;
        m = tg_people_create_topic(c->world, chat, &c->bot->user, name,
                                   json_int(c->args, "icon_color", TG_TOPIC_COLOR));
        t = tg_chat_topic(chat, m->id);
        write_topic(&c->out, NULL, t);
        write_topic(tg_compose_record(c, "topic", chat), "topic", t);
        journal_close(c->world->base.sent);
        return 0;
}

static void remove_topic(struct chat *chat, struct topic *gone)
{
        struct topic **at = &chat->topics;

        while (*at != gone)
                at = &(*at)->next;
        *at = gone->next;
        free(gone->name);
        free(gone);
}

static int refuse_topic(struct call *c, const struct chat *chat, const struct topic *t)
{
        if (!t)
                return tg_call_fail(c, 400, "Bad Request: message thread not found");
        if (!may_manage_topics(c, chat) && t->creator != &c->bot->user)
                return tg_call_fail(c, 400, "Bad Request: not enough rights to manage the topic");
        return 0;
}

static int end_change(struct call *c, struct chat *chat, int64_t id, const char *name)
{
        struct buf *b = tg_compose_record(c, "topic_change", chat);

        jsonw_str(b, "method", c->method->name);
        jsonw_int(b, "message_thread_id", id);
        jsonw_opt(b, "name", name);
        journal_close(c->world->base.sent);
        return tg_call_true(c);
}

static int edit_topic(struct call *c)
{
        struct chat *chat = call_forum(c);
        int64_t id = json_int(c->args, "message_thread_id", 0);
        struct topic *t = chat ? tg_chat_topic(chat, id) : NULL;
        const char *name = json_str(c->args, "name", NULL);
        struct buf extra;

        if (!chat || refuse_topic(c, chat, t) != 0)
                return -1;
        if (!name || !*name || strcmp(name, t->name) == 0)
                return tg_call_fail(c, 400, "Bad Request: TOPIC_NOT_MODIFIED");
        if (utf8_length(name, strlen(name), UTF8_UTF16) > 128)
                return tg_call_fail(c, 400, "Bad Request: TOPIC_TITLE_EMPTY");
        free(t->name);
        t->name = mem_strdup(name);
        buf_init(&extra, 0);
        jsonw_open_member(&extra, "forum_topic_edited", '{');
        jsonw_str(&extra, "name", name);
        jsonw_close(&extra, '}');
        tg_people_announce(c->world, chat, &c->bot->user, buf_take(&extra), id);
        return end_change(c, chat, id, name);
}

/* closes and reopens */
static int close_topic(struct call *c)
{
        struct chat *chat = call_forum(c);
        int64_t id = json_int(c->args, "message_thread_id", 0);
        struct topic *t = chat ? tg_chat_topic(chat, id) : NULL;
        bool closed = strcmp(c->method->name, "closeForumTopic") == 0;

        if (!chat || refuse_topic(c, chat, t) != 0)
                return -1;
        if (t->closed == closed)
                return tg_call_fail(c, 400, "Bad Request: TOPIC_NOT_MODIFIED");
        t->closed = closed;
        tg_people_announce(c->world, chat, &c->bot->user,
                           mem_printf("\"forum_topic_%s\":{}", closed ? "closed" : "reopened"), id);
        return end_change(c, chat, id, NULL);
}

static int delete_topic(struct call *c)
{
        struct chat *chat = call_forum(c);
        int64_t id = json_int(c->args, "message_thread_id", 0);
        struct topic *t = chat ? tg_chat_topic(chat, id) : NULL;

        if (!chat || refuse_topic(c, chat, t) != 0)
                return -1;
        remove_topic(chat, t);
        return end_change(c, chat, id, NULL);
}

const struct tg_method_row tg_method_chat[] = {
        { "getChat", get_chat },
        { "getChatMember", get_member },
        { "getChatAdministrators", get_admins },
        { "getChatMemberCount", count_members },
        { "leaveChat", leave },
        { "createForumTopic", create_topic },
        { "editForumTopic", edit_topic },
        { "closeForumTopic", close_topic },
        { "reopenForumTopic", close_topic },
        { "deleteForumTopic", delete_topic },
        { 0 },
};
