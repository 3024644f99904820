#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_world_events.h"

int dc_play_delete(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct message *m = dc_play_find_message(w, wish, err);

        if (!m)
                return -1;
        jsonw_int(out, "sessions", dc_happen_delete(w, m));
        return 0;
}

/* ---- reactions and typing ---- */

static int find_emoji(const json_t *wish, struct emoji *e, struct error *err)
{
        const char *text = json_str(wish, "emoji", "");

        if (dc_emoji_parse(text, e) == 0)
                return 0;
        return error_set(err, ERR_INVALID, "'%s' is no emoji; write one, or name:id", text);
}

int dc_play_react(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct message *m = dc_play_find_message(w, wish, err);
        struct user *u = dc_play_find_user(w, wish);
        struct emoji e;

        if (!m || find_emoji(wish, &e, err) != 0)
                return -1;
        if (m->channel->guild)
                dc_member_make(m->channel->guild, u);
        jsonw_int(out, "sessions", dc_happen_react(w, m, &e, u));
        return 0;
}

int dc_play_unreact(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct message *m = dc_play_find_message(w, wish, err);
        struct emoji e;

        if (!m || find_emoji(wish, &e, err) != 0)
                return -1;
        jsonw_int(out, "sessions", dc_happen_unreact(w, m, &e, dc_play_find_user(w, wish)));
        return 0;
}

int dc_play_typing(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct channel *c = dc_play_find_channel(w, wish, err);

        if (!c)
                return -1;
        jsonw_int(out, "sessions", dc_happen_typing(w, c, dc_play_find_user(w, wish)));
        return 0;
}

/* ---- threads ---- */

static void write_thread(struct buf *out, const struct channel *c)
{
        dc_json_id(out, "channel", c->id);
        jsonw_str(out, "name", c->name);
}

/* On "message_id", or without one; in a forum "text" is the first message. */
int dc_play_thread(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        bool on_message = json_object_get(wish, "message_id") != NULL;
        struct message *m = on_message ? dc_play_find_message(w, wish, err) : NULL, *first;
        struct channel *parent =
                on_message ? (m ? m->channel : NULL) : dc_play_find_channel(w, wish, err);
        struct user *from = dc_play_find_user(w, wish);
        struct channel *c;

        if (!parent)
                return -1;
        if (!parent->guild || dc_is_thread(parent) || (m && m->has_thread))
                return error_set(err, ERR_INVALID, "no thread can be opened there");
        dc_member_make(parent->guild, from);
        c = dc_happen_thread(w, parent, m, CHANNEL_THREAD, json_str(wish, "name", "a thread"),
                             from);
        write_thread(out, c);
        if (!json_str(wish, "text", NULL))
                return 0;
        first = dc_message_new(w, c, from);
        first->id = dc_is_forum(parent) ? c->id : first->id;
        dc_play_set_text(w, first, json_str(wish, "text", ""));
        dc_json_id(out, "message_id", first->id);
        dc_happen_message(w, first);
        return 0;
}

int dc_play_rename(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct channel *c = dc_play_find_channel(w, wish, err);
        const char *name = json_str(wish, "name", NULL);

        if (!c)
                return -1;
        if (!c->guild || !name)
                return error_set(err, ERR_INVALID,
                                 "a channel of a guild and its new 'name' are needed");
        jsonw_int(out, "sessions", dc_happen_rename(w, c, name, dc_play_find_user(w, wish)));
        return 0;
}

int dc_play_archive(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        struct channel *c = dc_play_find_channel(w, wish, err);

        if (!c)
                return -1;
        if (!dc_is_thread(c))
                return error_set(err, ERR_INVALID, "only threads are archived");
        c->archived = json_flag(wish, "archived", true);
        c->locked = json_flag(wish, "locked", c->locked);
        jsonw_int(out, "sessions", dc_happen_channel(w, c, "UPDATE"));
        return 0;
}
