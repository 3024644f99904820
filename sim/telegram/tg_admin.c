/*
 * The control API's requests that change the world: bots, users, chats, topics, members.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_world.h"

#define DEFAULT_USER 42

static void set_text(char **field, const json_t *request, const char *key)
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
        set_text(&b->user.first_name, request, "first_name");
        set_text(&b->user.username, request, "username");
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
                return error_set(err, ERR_INVALID, "'id' must be the id of a person");
        u = tg_world_make_user(w, id, json_str(request, "first_name", NULL),
                               json_str(request, "username", NULL));
        set_text(&u->last_name, request, "last_name");
        set_text(&u->language, request, "language_code");
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
        /* the message about its creation; in a forum also the id of the general topic */
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
        const struct message *m;

        if (!c)
                return -1;
        if (!c->forum)
                return error_set(err, ERR_INVALID, "the chat is not a forum");
        m = tg_people_create_topic(w, c, tg_people_find_user(w, request, c), name, TG_TOPIC_COLOR);
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
        struct member *changed;
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
        changed = tg_chat_set_member(c, u, b, (enum standing)standing);
        changed->no_topics = !json_flag(request, "can_manage_topics", !changed->no_topics);
        tg_people_deliver_member(w, c, tg_people_find_user(w, request, c), u, before, standing);
        jsonw_int(out, "user", u->id);
        jsonw_str(out, "status", tg_chat_standing_name((enum standing)standing));
        return 0;
}
