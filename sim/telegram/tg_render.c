#include <string.h>

#include "base/jsonw.h"
#include "sim/telegram/tg_media.h"
#include "sim/telegram/tg_world.h"

void tg_render_user(struct buf *b, const char *key, const struct user *u)
{
        jsonw_open_member(b, key, '{');
        jsonw_int(b, "id", u->id);
        jsonw_bool(b, "is_bot", u->is_bot);
        jsonw_str(b, "first_name", u->first_name ? u->first_name : "");
        jsonw_opt(b, "last_name", u->last_name);
        jsonw_opt(b, "username", u->username);
        if (!u->is_bot)
                jsonw_opt(b, "language_code", u->language);
        jsonw_close(b, '}');
}

void tg_render_chat(struct buf *b, const char *key, const struct chat *c)
{
        jsonw_open_member(b, key, '{');
        jsonw_int(b, "id", c->id);
        if (c->user) {
                jsonw_str(b, "first_name", c->user->first_name ? c->user->first_name : "");
                jsonw_opt(b, "last_name", c->user->last_name);
                jsonw_opt(b, "username", c->user->username);
        } else {
                jsonw_opt(b, "title", c->title);
                jsonw_opt(b, "username", c->username);
        }
        jsonw_str(b, "type", tg_chat_type_name(c->type));
        if (c->forum)
                jsonw_bool(b, "is_forum", true);
        jsonw_close(b, '}');
}

void tg_render_member(struct buf *b, const char *key, const struct member *m)
{
        static const char *const rights[] = {
                "can_be_edited",          "can_manage_chat",   "can_change_info",
                "can_delete_messages",    "can_invite_users",  "can_restrict_members",
                "can_pin_messages",       "can_manage_topics", "can_promote_members",
                "can_manage_video_chats", "can_post_stories",  "can_edit_stories",
                "can_delete_stories",
        };

        jsonw_open_member(b, key, '{');
        tg_render_user(b, "user", m->user);
        jsonw_str(b, "status", tg_chat_standing_name(m->standing));
        if (m->standing >= STANDING_ADMIN)
                jsonw_bool(b, "is_anonymous", false);
        for (size_t i = 0; m->standing == STANDING_ADMIN && i < sizeof(rights) / sizeof(rights[0]);
             i++)
                jsonw_bool(b, rights[i],
                           i > 0 && !(m->no_topics && strcmp(rights[i], "can_manage_topics") == 0));
        if (m->standing == STANDING_KICKED)
                jsonw_int(b, "until_date", 0);
        jsonw_close(b, '}');
}

static void render_body(struct buf *b, const struct message *m, bool with_reply)
{
        const struct message *to =
                with_reply && m->reply_to ? tg_chat_find_message(m->chat, m->reply_to) : NULL;

        jsonw_int(b, "message_id", m->id);
        if (m->thread_id)
                jsonw_int(b, "message_thread_id", m->thread_id);
        if (m->from)
                tg_render_user(b, "from", m->from);
        else
                tg_render_chat(b, "sender_chat", m->chat);
        tg_render_chat(b, "chat", m->chat);
        jsonw_int(b, "date", m->date);
        if (m->edit_date)
                jsonw_int(b, "edit_date", m->edit_date);
        if (m->thread_id && m->chat->forum)
                jsonw_bool(b, "is_topic_message", true);
        if (to) {
                jsonw_open_member(b, "reply_to_message", '{');
                render_body(b, to, false);
                jsonw_close(b, '}');
        }
        if (m->media)
                buf_addf(b, ",%s", m->media);
        if (m->text && *m->text) {
                jsonw_str(b, m->media ? "caption" : "text", m->text);
                if (m->entities)
                        jsonw_raw(b, m->media ? "caption_entities" : "entities", m->entities);
        }
        if (m->extra)
                buf_addf(b, ",%s", m->extra);
        if (m->markup)
                jsonw_raw(b, "reply_markup", m->markup);
}

void tg_render_message(struct buf *b, const char *key, const struct message *m)
{
        jsonw_open_member(b, key, '{');
        render_body(b, m, true);
        jsonw_close(b, '}');
}
