#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_world.h"

#define DEFAULT_USER 42

/* ---- finding ---- */

struct bot *tg_people_find_bot(struct world *w, const json_t *request, struct error *err)
{
        const json_t *value = json_object_get(request, "bot");
        char number[24];
        struct bot *b;

        if (json_is_integer(value)) {
                snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
                b = tg_world_bot_by_name(w, number);
        } else {
                b = tg_world_bot_by_name(w, json_string_value(value));
        }
        if (!b)
                error_set(err, ERR_MISSING, "there is no such bot");
        return b;
}

struct user *tg_people_find_user(struct world *w, const json_t *request, const struct chat *chat)
{
        const json_t *from = json_object_get(request, "from");

        if (json_is_integer(from))
                return tg_world_make_user(w, json_integer_value(from), NULL, NULL);
        if (json_is_object(from))
                return tg_world_make_user(w, json_int(from, "id", 0),
                                          json_str(from, "first_name", NULL),
                                          json_str(from, "username", NULL));
        if (chat && chat->user)
                return chat->user;
        return tg_world_make_user(w, DEFAULT_USER, NULL, NULL);
}

struct chat *tg_people_find_chat(struct world *w, const json_t *request, struct error *err)
{
        int64_t id = json_int(request, "chat", 0);
        struct bot *b = tg_people_find_bot(w, request, err);
        struct chat *c;

        if (!b)
                return NULL;
        if (id > 0)
                return tg_chat_private(b, tg_world_make_user(w, id, NULL, NULL), true);
        if (id == 0)
                return tg_chat_private(b, tg_people_find_user(w, request, NULL), true);
        c = tg_chat_group(w, id);
        if (!c)
                error_set(err, ERR_MISSING, "there is no chat %lld: make it with POST /sim/chats",
                          (long long)id);
        return c;
}

struct message *tg_people_find_message(struct world *w, const json_t *request, struct error *err)
{
        struct chat *c = tg_people_find_chat(w, request, err);
        struct message *m = c ? tg_chat_find_message(c, json_int(request, "message_id", 0)) : NULL;

        if (c && !m)
                error_set(err, ERR_MISSING, "the chat has no such message (any more)");
        return m;
}

/* ---- telling ---- */

static bool mentions(const char *text, const char *username)
{
        size_t n = strlen(username);

        for (; text && (text = strchr(text, '@')); text++) {
                if (strncasecmp(text + 1, username, n) == 0)
                        return true;
        }
        return false;
}

/* In groups a bot with privacy sees only what is meant for it. */
static bool sees(const struct member *m, const struct message *message)
{
        const struct message *to;

        if (!m->bot || m->standing < STANDING_MEMBER)
                return false;
        if (message->chat->type == CHAT_CHANNEL)
                return m->standing >= STANDING_ADMIN;
        if (!m->bot->privacy || m->standing >= STANDING_ADMIN || !message->text)
                return true;
        to = message->reply_to ? tg_chat_find_message(message->chat, message->reply_to) : NULL;
        return message->text[0] == '/' || mentions(message->text, m->bot->user.username) ||
               (to && to->from == m->user);
}

unsigned tg_people_deliver(struct world *w, const struct message *m, bool edited)
{
        const struct chat *c = m->chat;
        const char *kind = edited ? "edited_message" : "message";
        unsigned told = 0;
        struct buf text;

        (void)w;
        if (c->type == CHAT_CHANNEL)
                kind = edited ? "edited_channel_post" : "channel_post";
        buf_init(&text, 0);
        tg_render_message(&text, NULL, m);
        if (c->bot)
                told += tg_updates_push(c->bot, kind, c->id, text.data);
        for (const struct member *member = c->members; member; member = member->next) {
                if (sees(member, m))
                        told += tg_updates_push(member->bot, kind, c->id, text.data);
        }
        buf_release(&text);
        return told;
}

static struct buf member_change(const struct chat *chat, const struct user *by,
                                const struct user *who, int before, int after)
{
        struct member old = { .user = (struct user *)who, .standing = (enum standing)before };
        struct member new = { .user = (struct user *)who, .standing = (enum standing)after };
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        tg_render_chat(&b, "chat", chat);
        tg_render_user(&b, "from", by);
        jsonw_int(&b, "date", clock_wall_ms() / 1000);
        tg_render_member(&b, "old_chat_member", &old);
        tg_render_member(&b, "new_chat_member", &new);
        jsonw_close(&b, '}');
        return b;
}

void tg_people_deliver_member(struct world *w, struct chat *chat, const struct user *by,
                              const struct user *who, int before, int after)
{
        struct buf text = member_change(chat, by, who, before, after);

        for (struct bot *b = w->bots; b; b = b->next) {
                const struct member *m = tg_chat_member(chat, b->user.id);

                if (who == &b->user || chat->bot == b)
                        tg_updates_push(b, "my_chat_member", chat->id, text.data);
                else if (m && m->standing >= STANDING_ADMIN)
                        tg_updates_push(b, "chat_member", chat->id, text.data);
        }
        buf_release(&text);
}

/* ---- making ---- */

static void rename_to(char **field, const json_t *request, const char *key)
{
        const char *text = json_str(request, key, NULL);

        if (!text)
                return;
        free(*field);
        *field = mem_strdup(text);
}

int tg_admin_bot(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct bot *b = tg_world_make_bot(w, json_str(request, "token", ""), err);

        if (!b)
                return -1;
        rename_to(&b->user.first_name, request, "first_name");
        rename_to(&b->user.username, request, "username");
        b->privacy = json_flag(request, "privacy", b->privacy);
        b->logged_out = false;
        tg_render_user(out, "bot", &b->user);
        return 0;
}

int tg_admin_user(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        int64_t id = json_int(request, "id", 0);
        struct user *u = id ? tg_world_user(w, id) : NULL;

        if (id < 0 || (u && u->is_bot))
                return error_set(err, ERR_INVALID, "'id' must be a number of a person");
        u = tg_world_make_user(w, id, json_str(request, "first_name", NULL),
                               json_str(request, "username", NULL));
        rename_to(&u->last_name, request, "last_name");
        rename_to(&u->language, request, "language_code");
        tg_render_user(out, "user", u);
        return 0;
}

static int type_of(const char *name)
{
        for (int t = CHAT_GROUP; t <= CHAT_CHANNEL; t++) {
                if (strcmp(name, tg_chat_type_name((enum chat_type)t)) == 0)
                        return t;
        }
        return -1;
}

static int standing_of(const char *name)
{
        for (int s = STANDING_LEFT; s <= STANDING_CREATOR; s++) {
                if (strcmp(name, tg_chat_standing_name((enum standing)s)) == 0)
                        return s;
        }
        return -1;
}

int tg_admin_chat(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        int type = type_of(json_str(request, "type", "supergroup"));
        int standing = standing_of(json_str(request, "bot_status", "member"));
        const json_t *members = json_object_get(request, "members"), *id;
        struct chat *c;
        size_t i;

        if (type < 0 || standing < 0)
                return error_set(
                        err, ERR_INVALID,
                        "'type' must be group, supergroup or channel, 'bot_status' member, "
                        "administrator, left or kicked");
        c = tg_chat_make(w, json_int(request, "id", 0), (enum chat_type)type,
                         json_str(request, "title", NULL));
        if (!c)
                return error_set(err, ERR_CONFLICT,
                                 "the id is taken or does not fit the type (groups -1 and below, "
                                 "supergroups and channels -100...)");
        c->forum = json_flag(request, "forum", false);
        /* the message of its creation; in a forum also the number of the general topic */
        c->last_id = 1;
        if (json_str(request, "username", NULL))
                tg_chat_set_username(w, c, json_str(request, "username", ""));
        tg_chat_set_member(c, tg_world_make_user(w, DEFAULT_USER, NULL, NULL), NULL,
                           STANDING_CREATOR);
        json_array_foreach(members, i, id) {
                tg_chat_set_member(c, tg_world_make_user(w, json_integer_value(id), NULL, NULL),
                                   NULL, STANDING_MEMBER);
        }
        for (struct bot *b = w->bots; b; b = b->next) {
                tg_chat_set_member(c, &b->user, b, (enum standing)standing);
                tg_people_deliver_member(w, c, tg_world_user(w, DEFAULT_USER), &b->user,
                                         STANDING_LEFT, standing);
        }
        tg_render_chat(out, "chat", c);
        return 0;
}

int tg_admin_topic(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct chat *c = tg_people_find_chat(w, request, err);
        const char *name = json_str(request, "name", "Topic");
        struct message *m;

        if (!c)
                return -1;
        if (!c->forum)
                return error_set(err, ERR_INVALID, "the chat is not a forum");
        m = tg_chat_message_new(c, tg_people_find_user(w, request, c));
        m->extra =
                mem_printf("\"forum_topic_created\":{\"name\":\"Topic\",\"icon_color\":7322096}");
        tg_chat_post(c, m, w->settings.keep_messages);
        m->thread_id = m->id;
        tg_chat_add_topic(c, m->id, name);
        tg_people_deliver(w, m, false);
        jsonw_int(out, "message_thread_id", m->id);
        return 0;
}

int tg_admin_member(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct chat *c = tg_people_find_chat(w, request, err);
        int standing = standing_of(json_str(request, "status", ""));
        int64_t id = json_int(request, "user", 0);
        struct bot *b = id ? NULL : tg_people_find_bot(w, request, err);
        struct user *u = id ? tg_world_make_user(w, id, NULL, NULL) : b ? &b->user : NULL;
        const struct member *old;
        int before;

        if (!c || !u)
                return -1;
        if (standing < 0 || c->type == CHAT_PRIVATE)
                return error_set(
                        err, ERR_INVALID,
                        "'status' must be member, administrator, creator, left or kicked, and "
                        "'chat' a group");
        old = tg_chat_member(c, u->id);
        before = old ? (int)old->standing : STANDING_LEFT;
        tg_chat_set_member(c, u, b, (enum standing)standing);
        tg_people_deliver_member(w, c, tg_people_find_user(w, request, c), u, before, standing);
        jsonw_int(out, "user", u->id);
        jsonw_str(out, "status", tg_chat_standing_name((enum standing)standing));
        return 0;
}
