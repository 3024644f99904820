#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_world.h"

/* ---- reactions ---- */

/* ["👍"] and [{"type":"custom_emoji",...}] into the server's form. */
static json_t *reaction_list(const json_t *request)
{
        json_t *out = json_array(), *one;
        size_t i;

        json_array_foreach(json_object_get(request, "reaction"), i, one) {
                if (json_is_string(one))
                        json_array_append_new(
                                out, json_pack("{s:s,s:O}", "type", "emoji", "emoji", one));
                else
                        json_array_append(out, one);
        }
        return out;
}

static struct buf reaction_change(const struct message *m, const struct user *u,
                                  const json_t *before, const json_t *after)
{
        char *old = before ? json_text(before) : mem_strdup("[]"), *new = json_text(after);
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        tg_render_chat(&b, "chat", m->chat);
        jsonw_int(&b, "message_id", m->id);
        if (u)
                tg_render_user(&b, "user", u);
        else
                tg_render_chat(&b, "actor_chat", m->chat);
        jsonw_int(&b, "date", clock_wall_ms() / 1000);
        jsonw_raw(&b, "old_reaction", old);
        jsonw_raw(&b, "new_reaction", new);
        jsonw_close(&b, '}');
        free(old);
        free(new);
        return b;
}

/* In groups only administrators learn of reactions. */
static unsigned tell_reaction(const struct message *m, const char *text, const char **why)
{
        const struct chat *c = m->chat;
        unsigned told = 0;

        *why = "the bot did not ask for message_reaction in allowed_updates";
        if (c->bot)
                return tg_updates_push(c->bot, "message_reaction", c->id, text);
        for (const struct member *member = c->members; member; member = member->next) {
                if (!member->bot)
                        continue;
                if (member->standing >= STANDING_ADMIN)
                        told += tg_updates_push(member->bot, "message_reaction", c->id, text);
                else
                        *why = "the bot is not an administrator of the chat";
        }
        return told;
}

int tg_people_react(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);
        bool anonymous = json_flag(request, "anonymous", false);
        struct user *u;
        json_t *list;
        char key[24];
        const char *why;
        struct buf text;
        unsigned told;

        if (!m)
                return -1;
        u = anonymous ? NULL : tg_people_find_user(w, request, m->chat);
        snprintf(key, sizeof(key), "%lld", (long long)(u ? u->id : m->chat->id));
        list = reaction_list(request);
        if (!m->reactions)
                m->reactions = json_object();
        text = reaction_change(m, u, json_object_get(m->reactions, key), list);
        json_object_set_new(m->reactions, key, list);
        told = tell_reaction(m, text.data, &why);
        buf_release(&text);
        jsonw_int(out, "bots", told);
        if (told == 0)
                jsonw_str(out, "why", why);
        return 0;
}

/* ---- buttons ---- */

static bool is_meant(const json_t *button, const json_t *request)
{
        const char *data = json_str(request, "data", NULL), *text = json_str(request, "text", NULL);

        return (!data || strcmp(data, json_str(button, "callback_data", "")) == 0) &&
               (!text || strcmp(text, json_str(button, "text", "")) == 0) &&
               json_str(button, "callback_data", NULL);
}

/* The callback_data of the button meant; yours to free. */
static char *find_button(const struct message *m, const json_t *request)
{
        json_t *markup = m->markup ? json_read(m->markup, strlen(m->markup), NULL) : NULL, *row,
               *button;
        char *data = NULL;
        size_t i, k;

        json_array_foreach(json_object_get(markup, "inline_keyboard"), i, row) {
                json_array_foreach(row, k, button) {
                        if (!data && is_meant(button, request))
                                data = mem_strdup(json_str(button, "callback_data", ""));
                }
        }
        json_decref(markup);
        return data;
}

static struct bot *author(const struct world *w, const struct message *m)
{
        struct bot *b = w->bots;

        while (b && &b->user != m->from)
                b = b->next;
        return b;
}

int tg_people_press(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = tg_people_find_message(w, request, err);
        struct bot *b = m ? author(w, m) : NULL;
        char *data, id[32];
        struct buf text;

        if (!m)
                return -1;
        data = b ? find_button(m, request) : NULL;
        if (!data)
                return error_set(err, ERR_MISSING, "the message has no such button");
        snprintf(id, sizeof(id), "%llu",
                 4000000000000000000ull + (unsigned long long)++w->next_token);
        map_put(&b->callbacks, id, b);
        buf_init(&text, 0);
        jsonw_open(&text, '{');
        jsonw_str(&text, "id", id);
        tg_render_user(&text, "from", tg_people_find_user(w, request, m->chat));
        tg_render_message(&text, "message", m);
        jsonw_str(&text, "chat_instance", "-4611686018427387904");
        jsonw_str(&text, "data", data);
        jsonw_close(&text, '}');
        jsonw_int(out, "bots", tg_updates_push(b, "callback_query", m->chat->id, text.data));
        jsonw_str(out, "callback_query_id", id);
        buf_release(&text);
        free(data);
        return 0;
}

/* ---- blocking and moving ---- */

int tg_people_block(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct bot *b = tg_people_find_bot(w, request, err);
        struct user *u =
                b ? tg_world_make_user(w, json_int(request, "user", 42), NULL, NULL) : NULL;
        struct chat *c = u ? tg_chat_private(b, u, true) : NULL;
        bool blocked = json_flag(request, "blocked", true);

        if (!b)
                return -1;
        if (!c)
                return error_set(err, ERR_INVALID, "'user' must be a person");
        if (c->blocked != blocked)
                tg_people_deliver_member(w, c, u, &b->user,
                                         blocked ? STANDING_MEMBER : STANDING_KICKED,
                                         blocked ? STANDING_KICKED : STANDING_MEMBER);
        c->blocked = blocked;
        jsonw_bool(out, "blocked", blocked);
        return 0;
}

static void tell_migration(struct world *w, struct chat *c, struct user *by, const char *member,
                           int64_t other)
{
        struct message *m = tg_chat_message_new(c, by);

        m->extra = mem_printf("\"%s\":%lld", member, (long long)other);
        tg_chat_post(c, m, w->settings.keep_messages);
        tg_people_deliver(w, m, false);
}

int tg_people_migrate(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct chat *old = tg_people_find_chat(w, request, err), *new;
        struct user *by;

        if (!old)
                return -1;
        if (old->type != CHAT_GROUP || old->migrated_to)
                return error_set(err, ERR_INVALID,
                                 "only a group can become a supergroup, and only once");
        new = tg_chat_make(w, json_int(request, "to", 0), CHAT_SUPERGROUP, old->title);
        if (!new)
                return error_set(err, ERR_CONFLICT, "'to' is taken or no number of a supergroup");
        for (const struct member *m = old->members; m; m = m->next)
                tg_chat_set_member(new, m->user, m->bot, m->standing);
        by = tg_people_find_user(w, request, old);
        tell_migration(w, old, by, "migrate_to_chat_id", new->id);
        old->migrated_to = new->id;
        tell_migration(w, new, by, "migrate_from_chat_id", old->id);
        jsonw_int(out, "chat", new->id);
        return 0;
}
