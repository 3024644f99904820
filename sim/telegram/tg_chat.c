#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/telegram/tg_rich_text.h"
#include "sim/telegram/tg_world.h"

#define FIRST_RING      8
#define SUPERGROUP_BASE (-1000000000000)

static const char *const type_names[] = { "private", "group", "supergroup", "channel" };
static const char *const standing_names[] = { "left", "kicked", "member", "administrator",
                                              "creator" };

const char *tg_chat_type_name(enum chat_type t)
{
        return type_names[t];
}

const char *tg_chat_standing_name(enum standing s)
{
        return standing_names[s];
}

struct chat *tg_chat_private(struct bot *b, struct user *u, bool make)
{
        struct tg_world_key k = tg_world_key(u->id);
        struct chat *c = map_get(&b->private_chats, k.text);

        if (c || !make || u->is_bot)
                return c;
        c = mem_zalloc(sizeof(*c));
        c->id = u->id;
        c->type = CHAT_PRIVATE;
        c->user = u;
        c->bot = b;
        map_put(&b->private_chats, k.text, c);
        return c;
}

struct chat *tg_chat_group(const struct world *w, int64_t id)
{
        return map_get(&w->chats, tg_world_key(id).text);
}

struct chat *tg_chat_make(struct world *w, int64_t id, enum chat_type type, const char *title)
{
        bool made = false;
        struct chat *c;

        while (id == 0 || (made && tg_chat_group(w, id))) {
                int64_t n = ++w->next_group;

                id = type == CHAT_GROUP ? -n : SUPERGROUP_BASE - 1000000000 - n;
                made = true;
        }
        if (!(type == CHAT_GROUP ? id < 0 && id > SUPERGROUP_BASE : id < SUPERGROUP_BASE) ||
            tg_chat_group(w, id))
                return NULL;
        c = mem_zalloc(sizeof(*c));
        c->id = id;
        c->type = type;
        c->title = mem_strdup(title ? title : type_names[type]);
        map_put(&w->chats, tg_world_key(id).text, c);
        return c;
}

void tg_chat_set_username(struct world *w, struct chat *c, const char *username)
{
        struct buf name;

        buf_init(&name, 0);
        for (const char *p = username; *p; p++)
                buf_addch(&name, (char)tolower((unsigned char)*p));
        free(c->username);
        c->username = *username ? mem_strdup(username) : NULL;
        map_put(&w->names, name.data, c);
        buf_release(&name);
}

struct member *tg_chat_member(const struct chat *c, int64_t user_id)
{
        for (struct member *m = c->members; m; m = m->next) {
                if (m->user->id == user_id)
                        return m;
        }
        return NULL;
}

struct member *tg_chat_set_member(struct chat *c, struct user *u, struct bot *b, enum standing s)
{
        struct member *m = tg_chat_member(c, u->id);

        if (!m) {
                m = mem_zalloc(sizeof(*m));
                m->user = u;
                m->bot = b;
                m->next = c->members;
                c->members = m;
        }
        m->standing = s;
        return m;
}

struct topic *tg_chat_topic(const struct chat *c, int64_t id)
{
        for (struct topic *t = c->topics; t; t = t->next) {
                if (t->id == id)
                        return t;
        }
        return NULL;
}

struct topic *tg_chat_add_topic(struct chat *c, int64_t id, const char *name)
{
        struct topic *t = mem_zalloc(sizeof(*t));

        t->id = id;
        t->name = mem_strdup(name);
        t->color = 7322096;
        t->next = c->topics;
        c->topics = t;
        return t;
}

void tg_chat_free(struct chat *c)
{
        for (size_t i = 0; i < c->ring_n; i++)
                tg_chat_message_free(c->ring[i]);
        free(c->ring);
        while (c->members) {
                struct member *m = c->members;

                c->members = m->next;
                free(m);
        }
        while (c->topics) {
                struct topic *t = c->topics;

                c->topics = t->next;
                free(t->name);
                free(t);
        }
        free(c->title);
        free(c->username);
        free(c);
}

/* ---- messages ---- */

struct message *tg_chat_message_new(struct chat *c, struct user *from)
{
        struct message *m = mem_zalloc(sizeof(*m));

        m->chat = c;
        m->from = from;
        return m;
}

void tg_chat_message_free(struct message *m)
{
        if (!m)
                return;
        free(m->media);
        free(m->text);
        free(m->entities);
        free(m->markup);
        free(m->extra);
        json_decref(m->reactions);
        free(m);
}

void tg_chat_message_set_text(struct message *m, struct rich_text *r)
{
        free(m->text);
        free(m->entities);
        m->entities = tg_rich_text_entities(r);
        m->text = buf_take(&r->text);
}

static void grow_ring(struct chat *c, size_t keep)
{
        size_t n = c->ring_n ? c->ring_n * 4 : FIRST_RING;
        struct message **ring;

        n = n < keep ? n : keep;
        ring = mem_array(n, sizeof(struct message *));
        for (size_t i = c->posted - c->ring_n; i < c->posted; i++)
                ring[i % n] = c->ring[i % c->ring_n];
        free(c->ring);
        c->ring = ring;
        c->ring_n = n;
}

/* A basic group counts in the accounts of all its bots: the highest continues in each. */
static int64_t next_id(struct world *w, struct chat *c)
{
        int64_t id = c->last_id;

        if (c->type == CHAT_SUPERGROUP || c->type == CHAT_CHANNEL || w->settings.ids_per_chat)
                return id + w->settings.id_step;
        if (c->bot)
                return c->bot->last_id += w->settings.id_step;
        for (const struct member *m = c->members; m; m = m->next) {
                if (m->bot && m->bot->last_id > id)
                        id = m->bot->last_id;
        }
        id += w->settings.id_step;
        for (struct member *m = c->members; m; m = m->next) {
                if (m->bot)
                        m->bot->last_id = id;
        }
        return id;
}

struct message *tg_chat_post(struct world *w, struct chat *c, struct message *m)
{
        struct message **at;

        m->id = c->last_id = next_id(w, c);
        m->date = clock_wall_ms() / 1000;
        if (c->posted >= c->ring_n && c->ring_n < w->base.keep_messages)
                grow_ring(c, w->base.keep_messages);
        at = &c->ring[c->posted++ % c->ring_n];
        tg_chat_message_free(*at);
        return *at = m;
}

/* Where it is; NULL: gone or never there. */
static struct message **find(const struct chat *c, int64_t id)
{
        for (size_t i = 1; i <= c->ring_n && i <= c->posted; i++) {
                struct message **at = &c->ring[(c->posted - i) % c->ring_n];

                if (*at && (*at)->id == id)
                        return at;
        }
        return NULL;
}

struct message *tg_chat_find_message(const struct chat *c, int64_t id)
{
        struct message **at = find(c, id);

        return at ? *at : NULL;
}

struct message *tg_chat_message_at(const struct chat *c, size_t i)
{
        return c->ring[(c->posted + i) % c->ring_n];
}

void tg_chat_replace(struct chat *c, struct message *m)
{
        struct message **at = find(c, m->id);

        tg_chat_message_free(*at);
        *at = m;
}

void tg_chat_delete(struct chat *c, struct message *m)
{
        *find(c, m->id) = NULL;
        tg_chat_message_free(m);
}
