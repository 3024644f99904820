#include "sim/discord/dc_world.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/discord/dc_interactions.h"

struct channel *dc_channel_find(const struct world *w, uint64_t id)
{
        return dc_id_map_get(&w->channels, id);
}

struct channel *dc_channel_by_name(const struct world *w, const char *text)
{
        struct channel *c = dc_channel_find(w, dc_id_parse(text));

        for (const struct guild *g = w->first_guild; !c && text && g; g = g->next) {
                for (struct channel *at = g->channels; !c && at; at = at->next)
                        c = strcasecmp(at->name, text) == 0 ? at : NULL;
        }
        return c;
}

static struct channel *channel_new(struct world *w, uint64_t id, enum channel_type type,
                                   const char *name)
{
        struct channel *c = mem_zalloc(sizeof(*c));

        c->id = id ? id : dc_id_new(w);
        c->type = type;
        c->name = mem_strdup(name);
        c->created_ms = clock_wall_ms();
        dc_id_map_put(&w->channels, c->id, c);
        return c;
}

struct channel *dc_channel_make(struct world *w, struct guild *g, uint64_t id,
                                enum channel_type type, const char *name)
{
        struct channel *c = channel_new(w, id, type, name);

        c->guild = g;
        c->tags = json_array();
        for (const struct channel *at = g->channels; at; at = at->next)
                c->position++;
        *g->channels_end = c;
        g->channels_end = &c->next;
        return c;
}

struct channel *dc_channel_make_thread(struct world *w, struct channel *parent, uint64_t id,
                                       enum channel_type type, const char *name, struct user *owner)
{
        struct channel *c = dc_channel_make(w, parent->guild, id, type, name);

        c->parent = parent;
        c->owner_id = owner->id;
        c->auto_archive = 1440;
        c->joined = json_array();
        dc_channel_join(c, owner);
        return c;
}

void dc_channel_join(struct channel *c, const struct user *u)
{
        char id[DC_ID_SIZE];
        const json_t *at;
        size_t i;

        dc_id_text(u->id, id);
        json_array_foreach(c->joined, i, at) {
                if (strcmp(json_string_value(at), id) == 0)
                        return;
        }
        json_array_append_new(c->joined, json_string(id));
}

struct channel *dc_channel_dm(struct bot *b, struct user *u, bool make)
{
        struct channel *c = dc_id_map_get(&b->dms, u->id);

        if (c || !make)
                return c;
        c = channel_new(b->world, 0, CHANNEL_DM, NULL);
        c->user = u;
        c->bot = b;
        dc_id_map_put(&b->dms, u->id, c);
        return c;
}

void dc_channel_free(struct channel *c)
{
        for (size_t i = 0; i < c->count; i++)
                dc_message_free(c->messages[i]);
        free(c->messages);
        json_decref(c->tags);
        json_decref(c->joined);
        free(c->name);
        free(c->topic);
        free(c);
}

void dc_channel_remove(struct world *w, struct channel *c)
{
        struct channel **at = &c->guild->channels;
        char key[DC_ID_SIZE];

        dc_interactions_forget(w, c);
        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        if (c->guild->channels_end == &c->next)
                c->guild->channels_end = at;
        for (struct channel *other = c->guild->channels; other; other = other->next) {
                if (other->parent == c)
                        other->parent = NULL;
        }
        map_remove(&w->channels, dc_id_text(c->id, key));
        dc_channel_free(c);
}

bool dc_channel_is_thread(const struct channel *c)
{
        return c->type >= CHANNEL_NEWS_THREAD && c->type <= CHANNEL_PRIVATE_THREAD;
}

bool dc_channel_is_forum(const struct channel *c)
{
        return c->type == CHANNEL_FORUM || c->type == CHANNEL_MEDIA;
}

uint64_t dc_channel_permissions(const struct bot *b, const struct channel *c)
{
        uint64_t denied = c->denied | (c->parent ? c->parent->denied : 0);

        if (!c->guild)
                return c->bot == b ? ~denied : 0;
        return dc_guild_member(c->guild, b->user->id) ? ~denied : 0;
}
