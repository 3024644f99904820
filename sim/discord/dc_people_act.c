#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_world_events.h"

int dc_people_delete(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);

        if (!m)
                return -1;
        jsonw_int(out, "sessions", dc_world_event_delete(w, m));
        return 0;
}

/* ---- reactions and typing ---- */

static int find_emoji(const json_t *request, struct emoji *e, struct error *err)
{
        const char *text = json_str(request, "emoji", "");

        if (dc_message_parse_emoji(text, e) == 0)
                return 0;
        return error_set(err, ERR_INVALID, "'%s' is no emoji; write one, or name:id", text);
}

int dc_people_react(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);
        struct user *u = dc_people_find_user(w, request);
        struct emoji e;

        if (!m || find_emoji(request, &e, err) != 0)
                return -1;
        if (m->channel->guild)
                dc_guild_add_member(m->channel->guild, u);
        jsonw_int(out, "sessions", dc_world_event_react(w, m, &e, u));
        return 0;
}

int dc_people_unreact(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);
        struct emoji e;

        if (!m || find_emoji(request, &e, err) != 0)
                return -1;
        jsonw_int(out, "sessions",
                  dc_world_event_unreact(w, m, &e, dc_people_find_user(w, request)));
        return 0;
}

int dc_people_typing(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);

        if (!c)
                return -1;
        jsonw_int(out, "sessions", dc_world_event_typing(w, c, dc_people_find_user(w, request)));
        return 0;
}

/* ---- threads ---- */

static void write_thread(struct buf *out, const struct channel *c)
{
        dc_render_id(out, "channel", c->id);
        jsonw_str(out, "name", c->name);
}

/* On "message_id", or without one; in a forum "text" is the first message. */
int dc_people_thread(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        bool on_message = json_object_get(request, "message_id") != NULL;
        struct message *m = on_message ? dc_people_find_message(w, request, err) : NULL, *first;
        struct channel *parent =
                on_message ? (m ? m->channel : NULL) : dc_people_find_channel(w, request, err);
        struct user *from = dc_people_find_user(w, request);
        struct channel *c;

        if (!parent)
                return -1;
        if (!parent->guild || dc_channel_is_thread(parent) || (m && m->has_thread))
                return error_set(err, ERR_INVALID, "no thread can be opened there");
        dc_guild_add_member(parent->guild, from);
        c = dc_world_event_thread(w, parent, m, CHANNEL_THREAD,
                                  json_str(request, "name", "a thread"), from);
        write_thread(out, c);
        if (!json_str(request, "text", NULL))
                return 0;
        first = dc_message_new(w, c, from);
        first->id = dc_channel_is_forum(parent) ? c->id : first->id;
        dc_people_set_text(w, first, json_str(request, "text", ""));
        dc_render_id(out, "message_id", first->id);
        dc_world_event_message(w, first);
        return 0;
}

int dc_people_rename(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);
        const char *name = json_str(request, "name", NULL);

        if (!c)
                return -1;
        if (!c->guild || !name)
                return error_set(err, ERR_INVALID,
                                 "a channel of a guild and its new 'name' are needed");
        jsonw_int(out, "sessions",
                  dc_world_event_rename(w, c, name, dc_people_find_user(w, request)));
        return 0;
}

int dc_people_archive(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);

        if (!c)
                return -1;
        if (!dc_channel_is_thread(c))
                return error_set(err, ERR_INVALID, "only threads are archived");
        c->archived = json_flag(request, "archived", true);
        c->locked = json_flag(request, "locked", c->locked);
        jsonw_int(out, "sessions", dc_world_event_channel(w, c, "UPDATE"));
        return 0;
}
