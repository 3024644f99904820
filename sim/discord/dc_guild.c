#include "sim/discord/dc_world.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

struct guild *dc_guild_find(const struct world *w, uint64_t id)
{
        return dc_id_map_get(&w->guilds, id);
}

struct guild *dc_guild_by_name(const struct world *w, const char *text)
{
        struct guild *g = dc_guild_find(w, dc_id_parse(text));

        if (!text)
                return w->first_guild;
        for (struct guild *at = w->first_guild; !g && at; at = at->next)
                g = strcasecmp(at->name, text) == 0 ? at : NULL;
        return g;
}

struct guild *dc_guild_make(struct world *w, uint64_t id, const char *name, struct user *owner)
{
        struct guild *g = mem_zalloc(sizeof(*g));

        g->id = id ? id : dc_id_new(w);
        g->name = mem_strdup(name);
        g->owner = owner;
        g->channels_end = &g->channels;
        map_init(&g->members_by_id);
        dc_id_map_put(&w->guilds, g->id, g);
        *w->guilds_end = g;
        w->guilds_end = &g->next;
        dc_guild_add_role(w, g, g->id, "@everyone");
        dc_guild_add_member(g, owner);
        for (struct bot *b = w->bots; b; b = b->next)
                dc_guild_add_member(g, b->user);
        return g;
}

struct member *dc_guild_member(const struct guild *g, uint64_t user_id)
{
        return dc_id_map_get(&g->members_by_id, user_id);
}

struct member *dc_guild_add_member(struct guild *g, struct user *u)
{
        struct member *m = dc_guild_member(g, u->id);

        if (m)
                return m;
        m = mem_zalloc(sizeof(*m));
        m->user = u;
        m->roles = json_array();
        m->next = g->members;
        g->members = m;
        dc_id_map_put(&g->members_by_id, u->id, m);
        return m;
}

void dc_guild_remove_member(struct guild *g, uint64_t user_id)
{
        struct member **at = &g->members, *m;
        char key[DC_ID_SIZE];

        map_remove(&g->members_by_id, dc_id_text(user_id, key));
        while (*at && (*at)->user->id != user_id)
                at = &(*at)->next;
        if (!(m = *at))
                return;
        *at = m->next;
        json_decref(m->roles);
        free(m->nick);
        free(m);
}

struct role *dc_guild_add_role(struct world *w, struct guild *g, uint64_t id, const char *name)
{
        struct role *r = mem_zalloc(sizeof(*r)), **end = &g->roles;

        r->id = id ? id : dc_id_new(w);
        r->name = mem_strdup(name);
        while (*end)
                end = &(*end)->next;
        *end = r;
        return r;
}

struct role *dc_guild_role_by_name(const struct guild *g, const char *text)
{
        uint64_t id = dc_id_parse(text);

        for (struct role *r = g->roles; text && r; r = r->next) {
                if (r->id == id || strcasecmp(r->name, text) == 0)
                        return r;
        }
        return NULL;
}

void dc_guild_free(struct guild *g)
{
        while (g->events)
                dc_scheduled_event_remove(g->events);
        while (g->members)
                dc_guild_remove_member(g, g->members->user->id);
        while (g->roles) {
                struct role *r = g->roles;

                g->roles = r->next;
                free(r->name);
                free(r);
        }
        map_release(&g->members_by_id);
        free(g->name);
        free(g);
}
