/*
 * The control API's requests that change the world: users, guilds, channels, roles, permissions,
 * bots.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_interactions.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_world_events.h"

#define MAX_PADDING 1000000

static uint64_t id_of(const json_t *request)
{
        char room[DC_ID_SIZE];

        return dc_id_parse(dc_people_text(request, "id", room));
}

/* {"id":"7","username":"bob","global_name":"Bob","guild":"Lab","bot":true,"refuses":true} */
int dc_admin_user(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct guild *g = NULL;
        struct user *u;

        if (json_object_get(request, "guild") && !(g = dc_people_find_guild(w, request, err)))
                return -1;
        u = dc_world_make_user(w, id_of(request), json_str(request, "username", NULL),
                               json_str(request, "global_name", NULL));
        u->is_bot = json_flag(request, "bot", u->is_bot);
        u->refuses = json_flag(request, "refuses", u->refuses);
        if (g) {
                dc_guild_add_member(g, u);
                dc_world_event_member(w, g, u, "GUILD_MEMBER_ADD");
        }
        dc_render_user(out, "user", u);
        return 0;
}

/* {"name":"Lab","id":"..","members":1000,"channels":50,"unavailable":true} makes or changes one. */
int dc_admin_guild(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct guild *g = dc_guild_find(w, id_of(request));
        const char *name = json_str(request, "name", g ? g->name : "A guild");
        bool made = !g, was_away = g && g->unavailable;
        int64_t members = json_int(request, "members", g ? (int64_t)g->padding_members : 0);
        int64_t channels = json_int(request, "channels", g ? (int64_t)g->padding_channels : 0);

        if (members < 0 || members > MAX_PADDING || channels < 0 || channels > MAX_PADDING)
                return error_set(err, ERR_INVALID,
                                 "'members' and 'channels' must be between 0 and %d", MAX_PADDING);
        if (!g) {
                g = dc_guild_make(w, id_of(request), name, dc_people_find_user(w, request));
                dc_channel_make(w, g, 0, CHANNEL_TEXT, "general");
        }
        g->padding_members = (size_t)members;
        g->padding_channels = (size_t)channels;
        g->unavailable = json_flag(request, "unavailable", g->unavailable);
        if (made || (was_away && !g->unavailable))
                dc_world_event_guild(w, g, "GUILD_CREATE");
        else if (g->unavailable && !was_away)
                dc_world_event_guild(w, g, "GUILD_DELETE");
        dc_render_id(out, "guild", g->id);
        jsonw_str(out, "name", g->name);
        dc_render_id(out, "channel", g->channels->id);
        return 0;
}

static const struct {
        const char *name;
        enum channel_type type;
} channel_types[] = {
        { "text", CHANNEL_TEXT },         { "voice", CHANNEL_VOICE },
        { "category", CHANNEL_CATEGORY }, { "announcement", CHANNEL_NEWS },
        { "forum", CHANNEL_FORUM },       { "media", CHANNEL_MEDIA },
};

/* {"name":"help","type":"forum","guild":"Lab"}; {"channel":"help","remove":true} */
int dc_admin_channel(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *type = json_str(request, "type", "text"),
                   *topic = json_str(request, "topic", NULL);
        struct guild *g = dc_people_find_guild(w, request, err);
        uint64_t id = id_of(request);
        struct channel *c;

        if (!g)
                return -1;
        if (json_flag(request, "remove", false)) {
                c = dc_people_find_channel(w, request, err);
                if (!c || !c->guild)
                        return c ? error_set(err, ERR_INVALID, "direct messages cannot be removed")
                                 : -1;
                dc_world_event_channel(w, c, "DELETE");
                dc_channel_remove(w, c);
                return 0;
        }
        if (dc_channel_find(w, id))
                return error_set(err, ERR_CONFLICT, "channel '%" PRIu64 "' exists already", id);
        for (size_t i = 0; i < COUNT(channel_types); i++) {
                if (strcmp(channel_types[i].name, type) != 0)
                        continue;
                c = dc_channel_make(w, g, id, channel_types[i].type,
                                    json_str(request, "name", "channel"));
                c->topic = mem_strdup(topic);
                dc_world_event_channel(w, c, "CREATE");
                dc_render_id(out, "channel", c->id);
                return 0;
        }
        return error_set(err, ERR_INVALID,
                         "'type' must be one of text, voice, category, announcement, forum, media");
}

static void set_roles(struct world *w, struct guild *g, struct member *m, const json_t *roles)
{
        const json_t *name;
        char id[DC_ID_SIZE];
        size_t i;

        json_array_clear(m->roles);
        json_array_foreach(roles, i, name) {
                const char *text = json_string_value(name);
                struct role *r = text ? dc_guild_role_by_name(g, text) : NULL;

                if (!r && text)
                        r = dc_guild_add_role(w, g, dc_id_parse(text), text);
                if (r)
                        json_array_append_new(m->roles, json_string(dc_id_text(r->id, id)));
        }
}

/* {"from":"bob","guild":"Lab","roles":["mods"],"nick":"B","leave":true}; "from" may be a bot */
int dc_admin_member(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct guild *g = dc_people_find_guild(w, request, err);
        struct user *u = dc_people_find_user(w, request);
        const char *nick = json_str(request, "nick", NULL);
        bool known = g && dc_guild_member(g, u->id);
        struct member *m;

        if (!g)
                return -1;
        dc_render_id(out, "guild", g->id);
        if (json_flag(request, "leave", false)) {
                if (u->is_bot)
                        dc_world_event_guild(w, g, "GUILD_DELETE");
                dc_guild_remove_member(g, u->id);
                dc_world_event_member(w, g, u, "GUILD_MEMBER_REMOVE");
                return 0;
        }
        m = dc_guild_add_member(g, u);
        if (json_is_array(json_object_get(request, "roles")))
                set_roles(w, g, m, json_object_get(request, "roles"));
        if (nick) {
                free(m->nick);
                m->nick = mem_strdup(nick);
        }
        dc_world_event_member(w, g, u, known ? "GUILD_MEMBER_UPDATE" : "GUILD_MEMBER_ADD");
        dc_render_json(out, "roles", m->roles);
        return 0;
}

static const struct {
        const char *name;
        uint64_t bit;
} permissions[] = {
        { "ADD_REACTIONS", MAY_REACT },
        { "VIEW_CHANNEL", MAY_VIEW },
        { "SEND_MESSAGES", MAY_SEND },
        { "MANAGE_MESSAGES", MAY_MANAGE },
        { "EMBED_LINKS", MAY_EMBED },
        { "ATTACH_FILES", MAY_ATTACH },
        { "READ_MESSAGE_HISTORY", MAY_READ_HISTORY },
        { "MENTION_EVERYONE", MAY_EVERYONE },
        { "MANAGE_THREADS", MAY_THREADS },
        { "CREATE_PUBLIC_THREADS", MAY_OPEN_THREADS },
        { "SEND_MESSAGES_IN_THREADS", MAY_SEND_THREADS },
        { "CREATE_EVENTS", MAY_CREATE_EVENTS },
        { "MANAGE_EVENTS", MAY_MANAGE_EVENTS },
};

/* {"channel":"general","deny":["SEND_MESSAGES"]}, or with "guild"; [] allows everything */
int dc_admin_permissions(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        struct guild *g =
                json_object_get(request, "guild") ? dc_people_find_guild(w, request, err) : NULL;
        struct channel *c = g ? NULL : dc_people_find_channel(w, request, err);
        const json_t *name;
        uint64_t denied = 0, bit;
        size_t i;

        if (!c && !g)
                return -1;
        json_array_foreach(json_object_get(request, "deny"), i, name) {
                bit = 0;
                for (size_t k = 0; k < COUNT(permissions); k++) {
                        if (json_is_string(name) &&
                            strcasecmp(permissions[k].name, json_string_value(name)) == 0)
                                bit = permissions[k].bit;
                }
                if (!bit)
                        return error_set(err, ERR_INVALID, "no permission '%s'",
                                         json_is_string(name) ? json_string_value(name) : "");
                denied |= bit;
        }
        if (g) {
                g->denied = denied;
                dc_render_id(out, "guild", g->id);
                return 0;
        }
        c->denied = denied;
        dc_render_id(out, "channel", c->id);
        jsonw_int(out, "sessions", dc_world_event_channel(w, c, "UPDATE"));
        return 0;
}

static const struct {
        const char *name;
        uint64_t bit;
} intents[] = {
        { "GUILD_MEMBERS", INTENT_MEMBERS },
        { "GUILD_PRESENCES", INTENT_PRESENCES },
        { "MESSAGE_CONTENT", INTENT_CONTENT },
};

static int set_intents(struct bot *b, const json_t *list, struct error *err)
{
        uint64_t allowed = 0, bit;
        const json_t *name;
        size_t i;

        json_array_foreach(list, i, name) {
                bit = 0;
                for (size_t k = 0; k < COUNT(intents); k++) {
                        if (json_is_string(name) &&
                            strcmp(intents[k].name, json_string_value(name)) == 0)
                                bit = intents[k].bit;
                }
                if (!bit)
                        return error_set(err, ERR_INVALID,
                                         "'intents' may list GUILD_MEMBERS, GUILD_PRESENCES, "
                                         "MESSAGE_CONTENT");
                allowed |= bit;
        }
        b->intents = allowed;
        return 0;
}

/*
 * {"token":".."} makes one;
 * {"bot":"..","intents":["MESSAGE_CONTENT"],"interactions_url":"http://..","starts_left":5,
 * "new_token":"..","username":".."} changes one.
 */
int dc_admin_bot(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *token = json_str(request, "token", NULL),
                   *renewed = json_str(request, "new_token", NULL);
        const json_t *list = json_object_get(request, "intents"),
                     *url = json_object_get(request, "interactions_url");
        struct bot *b = token ? dc_world_make_bot(w, token) : dc_people_find_bot(w, request, err);

        if (!b || (list && set_intents(b, list, err) != 0))
                return -1;
        dc_world_make_user(w, b->user->id, json_str(request, "username", NULL), NULL);
        b->starts_left = json_int(request, "starts_left", b->starts_left);
        b->token_reset = json_flag(request, "token_reset", b->token_reset);
        if (url) {
                free(b->interactions_url);
                b->interactions_url = mem_strdup(json_string_value(url));
                if (b->interactions_url)
                        dc_interaction_ping(b);
        }
        if (renewed && !dc_world_bot_by_token(w, renewed)) {
                map_remove(&w->bots_by_token, b->token);
                free(b->token);
                b->token = mem_strdup(renewed);
                map_put(&w->bots_by_token, renewed, b);
        }
        dc_render_user(out, "user", b->user);
        jsonw_str(out, "token", b->token);
        return 0;
}
