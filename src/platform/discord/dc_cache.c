#include "platform/discord/dc_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define CHANNELS_MAX 200000
#define USERS_MAX    20000

struct cached_guild {
        char *id, *name;
        json_t *roles; /* ids of the bot's; NULL: unknown */
};

struct cached_channel {
        struct cached_guild *guild; /* NULL: a DM */
        char *id, *name, *parent;
        int type;
};

struct dc_cache {
        struct map channels, guilds;
        size_t evict_at;
        struct map users;
};

struct dc_cache *dc_cache_new(void)
{
        struct dc_cache *c = mem_zalloc(sizeof(*c));

        map_init(&c->channels);
        map_init(&c->guilds);
        map_init(&c->users);
        return c;
}

static void channel_free(struct cached_channel *ch)
{
        if (!ch)
                return;
        free(ch->id);
        free(ch->name);
        free(ch->parent);
        free(ch);
}

static void guild_free(struct cached_guild *g)
{
        free(g->id);
        free(g->name);
        json_decref(g->roles);
        free(g);
}

static void forget_users(struct dc_cache *c)
{
        void *value;

        for (size_t i = 0; map_each(&c->users, &i, NULL, &value);)
                free(value);
        map_release(&c->users);
        map_init(&c->users);
}

void dc_cache_free(struct dc_cache *c)
{
        void *value;

        if (!c)
                return;
        for (size_t i = 0; map_each(&c->channels, &i, NULL, &value);)
                channel_free(value);
        for (size_t i = 0; map_each(&c->guilds, &i, NULL, &value);)
                guild_free(value);
        forget_users(c);
        map_release(&c->channels);
        map_release(&c->guilds);
        map_release(&c->users);
        free(c);
}

static struct cached_guild *guild_of(struct dc_cache *c, const char *id)
{
        struct cached_guild *g = id ? map_get(&c->guilds, id) : NULL;

        if (g || !id)
                return g;
        g = mem_zalloc(sizeof(*g));
        g->id = mem_strdup(id);
        map_put(&c->guilds, id, g);
        return g;
}

void dc_cache_add(struct dc_cache *c, const char *guild, const json_t *channel)
{
        const char *id = json_str(channel, "id", NULL);
        int64_t type = json_int(channel, "type", -1);
        bool is_thread = type >= DC_TYPE_THREAD_FIRST && type <= DC_TYPE_THREAD_LAST;
        struct cached_channel *ch;

        if (!id || type < 0 || type > 1000 || type == DC_TYPE_CATEGORY)
                return;
        if (c->channels.count >= CHANNELS_MAX) { /* evict any: it is looked up again when needed */
                void *value;

                if (!map_each(&c->channels, &c->evict_at, NULL, &value)) {
                        c->evict_at = 0;
                        map_each(&c->channels, &c->evict_at, NULL, &value);
                }
                ch = value;
                map_remove(&c->channels, ch->id);
                channel_free(ch);
        }
        ch = mem_zalloc(sizeof(*ch));
        ch->id = mem_strdup(id);
        ch->name = mem_strdup(json_str(channel, "name", NULL));
        ch->parent = is_thread ? mem_strdup(json_str(channel, "parent_id", NULL)) : NULL;
        ch->type = (int)type;
        ch->guild = guild_of(c, guild ? guild : json_str(channel, "guild_id", NULL));
        channel_free(map_put(&c->channels, id, ch));
}

static void add_all(struct dc_cache *c, const char *guild, const json_t *list)
{
        for (size_t i = 0; i < json_array_size(list); i++)
                dc_cache_add(c, guild, json_array_get(list, i));
}

void dc_cache_set_roles(struct dc_cache *c, const char *guild, json_t *roles)
{
        struct cached_guild *g = guild_of(c, guild);

        if (!g)
                return;
        json_decref(g->roles);
        g->roles = json_is_array(roles) ? json_incref(roles) : json_array();
}

void dc_cache_set_username(struct dc_cache *c, const char *username, const char *id)
{
        const char *known = username ? map_get(&c->users, username) : NULL;

        if (!username || !id || (known && strcmp(known, id) == 0))
                return;
        if (c->users.count >= USERS_MAX)
                forget_users(c);
        free(map_put(&c->users, username, mem_strdup(id)));
}

static void learn_member(struct dc_cache *c, const char *self, const char *guild,
                         const json_t *member)
{
        json_t *roles = json_object_get(member, "roles");

        if (self && strcmp(json_str(json_object_get(member, "user"), "id", ""), self) == 0 &&
            json_is_array(roles))
                dc_cache_set_roles(c, guild, roles);
}

static void learn_guild(struct dc_cache *c, const char *self, const json_t *d)
{
        const char *id = json_str(d, "id", NULL), *name = json_str(d, "name", NULL);
        const json_t *members = json_object_get(d, "members");
        struct cached_guild *g = guild_of(c, id);

        if (!g)
                return;
        if (name) {
                free(g->name);
                g->name = mem_strdup(name);
        }
        add_all(c, id, json_object_get(d, "channels"));
        add_all(c, id, json_object_get(d, "threads"));
        for (size_t i = 0; i < json_array_size(members); i++)
                learn_member(c, self, id, json_array_get(members, i));
}

static void forget_guild(struct dc_cache *c, const json_t *d)
{
        struct cached_guild *g = map_get(&c->guilds, json_str(d, "id", ""));
        void *value;

        if (!g || json_flag(d, "unavailable", false)) /* an outage is not a removal */
                return;
        for (size_t i = 0; map_each(&c->channels, &i, NULL, &value);) {
                struct cached_channel *ch = value;

                if (ch->guild == g) {
                        map_remove(&c->channels, ch->id);
                        channel_free(ch);
                }
        }
        map_remove(&c->guilds, g->id);
        guild_free(g);
}

void dc_cache_learn(struct dc_cache *c, const char *self, const char *type, const json_t *d)
{
        static const struct {
                const char *type;
                enum { GUILD, GUILD_GONE, CHANNEL, CHANNEL_GONE, THREADS, MEMBER } what;
        } rows[] = {
                { "GUILD_CREATE", GUILD },         { "GUILD_UPDATE", GUILD },
                { "GUILD_DELETE", GUILD_GONE },    { "CHANNEL_CREATE", CHANNEL },
                { "CHANNEL_UPDATE", CHANNEL },     { "CHANNEL_DELETE", CHANNEL_GONE },
                { "THREAD_CREATE", CHANNEL },      { "THREAD_UPDATE", CHANNEL },
                { "THREAD_DELETE", CHANNEL_GONE }, { "THREAD_LIST_SYNC", THREADS },
                { "GUILD_MEMBER_UPDATE", MEMBER },
        };
        const char *guild = json_str(d, "guild_id", NULL);
        size_t i = 0;

        while (i < COUNT(rows) && strcmp(rows[i].type, type) != 0)
                i++;
        if (i == COUNT(rows))
                return;
        switch (rows[i].what) {
        case GUILD:
                learn_guild(c, self, d);
                break;
        case GUILD_GONE:
                forget_guild(c, d);
                break;
        case CHANNEL:
                dc_cache_add(c, NULL, d);
                break;
        case CHANNEL_GONE:
                channel_free(map_remove(&c->channels, json_str(d, "id", "")));
                break;
        case THREADS:
                add_all(c, guild, json_object_get(d, "threads"));
                break;
        case MEMBER:
                learn_member(c, self, guild, d);
                break;
        }
}

bool dc_cache_channel(const struct dc_cache *c, const char *id, struct dc_channel_info *out)
{
        const struct cached_channel *ch = id ? map_get(&c->channels, id) : NULL;

        if (!ch)
                return false;
        *out = (struct dc_channel_info){ .id = ch->id,
                                         .guild = ch->guild ? ch->guild->id : NULL,
                                         .name = ch->name,
                                         .parent = ch->parent,
                                         .type = ch->type };
        return true;
}

const char *dc_cache_guild_name(const struct dc_cache *c, const char *guild)
{
        const struct cached_guild *g = guild ? map_get(&c->guilds, guild) : NULL;

        return g ? g->name : NULL;
}

const char *dc_cache_user_named(const struct dc_cache *c, const char *username)
{
        return map_get(&c->users, username);
}

bool dc_cache_knows_roles(const struct dc_cache *c, const char *guild)
{
        const struct cached_guild *g = map_get(&c->guilds, guild);

        return g && g->roles;
}

bool dc_cache_has_role(const struct dc_cache *c, const char *guild, const char *role)
{
        const struct cached_guild *g = guild ? map_get(&c->guilds, guild) : NULL;
        const json_t *own;
        size_t i;

        if (!g)
                return false;
        json_array_foreach(g->roles, i, own)
                if (json_is_string(own) && strcmp(json_string_value(own), role) == 0)
                        return true;
        return false;
}

size_t dc_cache_size(const struct dc_cache *c)
{
        return c->channels.count;
}
