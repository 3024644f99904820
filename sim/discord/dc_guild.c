#include "sim/discord/dc_world_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* ---- guilds ---- */

struct guild *dc_guild(const struct world *w, uint64_t id)
{
        return dc_find(&w->guilds, id);
}

struct guild *dc_guild_by_name(const struct world *w, const char *text)
{
        struct guild *g = dc_guild(w, dc_parse_id(text));

        if (!text)
                return w->first_guild;
        for (struct guild *at = w->first_guild; !g && at; at = at->next)
                g = strcasecmp(at->name, text) == 0 ? at : NULL;
        return g;
}

struct guild *dc_guild_make(struct world *w, uint64_t id, const char *name, struct user *owner)
{
        struct guild *g = mem_zalloc(sizeof(*g));

        g->id = id ? id : dc_snowflake(w);
        g->name = mem_strdup(name);
        g->owner = owner;
        g->channels_end = &g->channels;
        map_init(&g->members_by_id);
        dc_put(&w->guilds, g->id, g);
        *w->guilds_end = g;
        w->guilds_end = &g->next;
        dc_role_make(w, g, g->id, "@everyone");
        dc_member_make(g, owner);
        for (struct bot *b = w->bots; b; b = b->next)
                dc_member_make(g, b->user);
        return g;
}

struct member *dc_member(const struct guild *g, uint64_t user_id)
{
        return dc_find(&g->members_by_id, user_id);
}

struct member *dc_member_make(struct guild *g, struct user *u)
{
        struct member *m = dc_member(g, u->id);

        if (m)
                return m;
        m = mem_zalloc(sizeof(*m));
        m->user = u;
        m->roles = json_array();
        m->next = g->members;
        g->members = m;
        dc_put(&g->members_by_id, u->id, m);
        return m;
}

static void member_free(struct member *m)
{
        json_decref(m->roles);
        free(m->nick);
        free(m);
}

void dc_member_remove(struct guild *g, uint64_t user_id)
{
        struct member **at = &g->members, *m;
        char key[DC_ID_SIZE];

        map_remove(&g->members_by_id, dc_id(user_id, key));
        while (*at && (*at)->user->id != user_id)
                at = &(*at)->next;
        if (!(m = *at))
                return;
        *at = m->next;
        member_free(m);
}

struct role *dc_role_make(struct world *w, struct guild *g, uint64_t id, const char *name)
{
        struct role *r = mem_zalloc(sizeof(*r)), **end = &g->roles;

        r->id = id ? id : dc_snowflake(w);
        r->name = mem_strdup(name);
        while (*end)
                end = &(*end)->next;
        *end = r;
        return r;
}

struct role *dc_role_by_name(const struct guild *g, const char *text)
{
        uint64_t id = dc_parse_id(text);

        for (struct role *r = g->roles; text && r; r = r->next) {
                if (r->id == id || strcasecmp(r->name, text) == 0)
                        return r;
        }
        return NULL;
}

void dc_guild_free(struct guild *g)
{
        while (g->members) {
                struct member *m = g->members;

                g->members = m->next;
                member_free(m);
        }
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
