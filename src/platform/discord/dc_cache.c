#include "platform/discord/dc_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define PLACES_MAX 200000
#define PEOPLE_MAX 20000

struct place {
        struct guild *guild; /* NULL: a DM */
        char *id, *name, *parent;
        int type;
};

struct guild {
        char *id, *name;
        json_t *roles; /* ids of our own */
};

struct dc_cache {
        struct map places, guilds;
        size_t oldest;     /* where in the map to look for a place that can go */
        struct map people; /* user name to id */
};

/* ---- life ---- */

struct dc_cache *dc_cache_new(void)
{
        struct dc_cache *c = mem_zalloc(sizeof(*c));

        map_init(&c->places);
        map_init(&c->guilds);
        map_init(&c->people);
        return c;
}

static void place_free(struct place *p)
{
        if (!p)
                return;
        free(p->id);
        free(p->name);
        free(p->parent);
        free(p);
}

static void guild_free(struct guild *g)
{
        free(g->id);
        free(g->name);
        json_decref(g->roles);
        free(g);
}

static void forget_people(struct dc_cache *c)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&c->people, &i, &key, &value);)
                free(value);
        map_release(&c->people);
        map_init(&c->people);
}

void dc_cache_free(struct dc_cache *c)
{
        const char *key;
        void *value;

        if (!c)
                return;
        for (size_t i = 0; map_each(&c->places, &i, &key, &value);)
                place_free(value);
        for (size_t i = 0; map_each(&c->guilds, &i, &key, &value);)
                guild_free(value);
        forget_people(c);
        map_release(&c->places);
        map_release(&c->guilds);
        map_release(&c->people);
        free(c);
}

/* ---- learning ---- */

static struct guild *guild_of(struct dc_cache *c, const char *id)
{
        struct guild *g = id ? map_get(&c->guilds, id) : NULL;

        if (g || !id)
                return g;
        g = mem_zalloc(sizeof(*g));
        g->id = mem_strdup(id);
        map_put(&c->guilds, id, g);
        return g;
}

static bool is_thread(int64_t type)
{
        return type >= DC_TYPE_THREAD_FIRST && type <= DC_TYPE_THREAD_LAST;
}

/* One place has to go, whichever: it is asked for when it is needed again. */
static void make_room(struct dc_cache *c)
{
        const char *key;
        void *value;

        if (c->places.count < PLACES_MAX)
                return;
        if (!map_each(&c->places, &c->oldest, &key, &value)) {
                c->oldest = 0;
                map_each(&c->places, &c->oldest, &key, &value);
        }
        map_remove(&c->places, ((struct place *)value)->id);
        place_free(value);
}

void dc_cache_add(struct dc_cache *c, const char *guild, const json_t *channel)
{
        const char *id = json_str(channel, "id", NULL);
        int64_t type = json_int(channel, "type", -1);
        struct place *p;

        if (!id || type < 0 || type > 1000 || type == DC_TYPE_CATEGORY)
                return;
        make_room(c);
        p = mem_zalloc(sizeof(*p));
        p->id = mem_strdup(id);
        p->name = mem_strdup(json_str(channel, "name", NULL));
        p->parent = is_thread(type) ? mem_strdup(json_str(channel, "parent_id", NULL)) : NULL;
        p->type = (int)type;
        p->guild = guild_of(c, guild ? guild : json_str(channel, "guild_id", NULL));
        place_free(map_put(&c->places, id, p));
}

static void add_all(struct dc_cache *c, const char *guild, const json_t *list)
{
        for (size_t i = 0; i < json_array_size(list); i++)
                dc_cache_add(c, guild, json_array_get(list, i));
}

void dc_cache_set_roles(struct dc_cache *c, const char *guild, json_t *roles)
{
        struct guild *g = guild_of(c, guild);

        if (!g)
                return;
        json_decref(g->roles);
        g->roles = json_is_array(roles) ? json_incref(roles) : json_array();
}

static void take_member(struct dc_cache *c, const char *self, const char *guild,
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
        struct guild *g = guild_of(c, id);

        if (!g)
                return;
        if (name) {
                free(g->name);
                g->name = mem_strdup(name);
        }
        add_all(c, id, json_object_get(d, "channels"));
        add_all(c, id, json_object_get(d, "threads"));
        for (size_t i = 0; i < json_array_size(members); i++)
                take_member(c, self, id, json_array_get(members, i));
}

/* An outage is no farewell. */
static void learn_guild_gone(struct dc_cache *c, const char *self, const json_t *d)
{
        struct guild *g = map_get(&c->guilds, json_str(d, "id", ""));
        const char *key;
        void *value;

        (void)self;
        if (!g || json_flag(d, "unavailable", false))
                return;
        for (size_t i = 0; map_each(&c->places, &i, &key, &value);) {
                struct place *p = value;

                if (p->guild == g) {
                        map_remove(&c->places, p->id);
                        place_free(p);
                }
        }
        map_remove(&c->guilds, g->id);
        guild_free(g);
}

static void learn_channel(struct dc_cache *c, const char *self, const json_t *d)
{
        (void)self;
        dc_cache_add(c, NULL, d);
}

static void learn_channel_gone(struct dc_cache *c, const char *self, const json_t *d)
{
        (void)self;
        place_free(map_remove(&c->places, json_str(d, "id", "")));
}

static void learn_threads(struct dc_cache *c, const char *self, const json_t *d)
{
        (void)self;
        add_all(c, json_str(d, "guild_id", NULL), json_object_get(d, "threads"));
}

static void learn_member(struct dc_cache *c, const char *self, const json_t *d)
{
        take_member(c, self, json_str(d, "guild_id", NULL), d);
}

static const struct {
        const char *type;
        void (*learn)(struct dc_cache *c, const char *self, const json_t *d);
} lessons[] = {
        { "GUILD_CREATE", learn_guild },         { "GUILD_UPDATE", learn_guild },
        { "GUILD_DELETE", learn_guild_gone },    { "CHANNEL_CREATE", learn_channel },
        { "CHANNEL_UPDATE", learn_channel },     { "CHANNEL_DELETE", learn_channel_gone },
        { "THREAD_CREATE", learn_channel },      { "THREAD_UPDATE", learn_channel },
        { "THREAD_DELETE", learn_channel_gone }, { "THREAD_LIST_SYNC", learn_threads },
        { "GUILD_MEMBER_UPDATE", learn_member },
};

void dc_cache_learn(struct dc_cache *c, const char *self, const char *type, const json_t *d)
{
        for (size_t i = 0; i < COUNT(lessons); i++)
                if (strcmp(lessons[i].type, type) == 0)
                        lessons[i].learn(c, self, d);
}

void dc_cache_met(struct dc_cache *c, const char *username, const char *id)
{
        const char *known = username ? map_get(&c->people, username) : NULL;

        if (!username || !id || (known && strcmp(known, id) == 0))
                return;
        if (c->people.count >= PEOPLE_MAX)
                forget_people(c);
        free(map_put(&c->people, username, mem_strdup(id)));
}

/* ---- asking ---- */

bool dc_cache_place(const struct dc_cache *c, const char *id, struct dc_place *out)
{
        const struct place *p = id ? map_get(&c->places, id) : NULL;

        if (!p)
                return false;
        *out = (struct dc_place){ .id = p->id,
                                  .guild = p->guild ? p->guild->id : NULL,
                                  .name = p->name,
                                  .parent = p->parent,
                                  .type = p->type };
        return true;
}

const char *dc_cache_guild_name(const struct dc_cache *c, const char *guild)
{
        const struct guild *g = guild ? map_get(&c->guilds, guild) : NULL;

        return g ? g->name : NULL;
}

bool dc_cache_knows_roles(const struct dc_cache *c, const char *guild)
{
        const struct guild *g = map_get(&c->guilds, guild);

        return g && g->roles;
}

bool dc_cache_has_role(const struct dc_cache *c, const char *guild, const char *role)
{
        const struct guild *g = guild ? map_get(&c->guilds, guild) : NULL;
        const json_t *own;
        size_t i;

        if (!g)
                return false;
        json_array_foreach(g->roles, i, own)
                if (json_is_string(own) && strcmp(json_string_value(own), role) == 0)
                        return true;
        return false;
}

const char *dc_cache_user_named(const struct dc_cache *c, const char *username)
{
        return map_get(&c->people, username);
}

size_t dc_cache_size(const struct dc_cache *c)
{
        return c->places.count;
}
