#include "sim/telegram/tg_world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_rich_text.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"

#define KEEP_SENT       200000
#define KEEP_CALLS      20000
#define KEEP_INVALID    1000
#define MAX_SENT        ((size_t)256 << 20)
#define MAX_CALLS       ((size_t)64 << 20)
#define FIRST_RING      8

#define SUPERGROUP_BASE (-1000000000000)

struct key {
        char text[24];
};

static struct key key_of(int64_t id)
{
        struct key k;

        snprintf(k.text, sizeof(k.text), "%lld", (long long)id);
        return k;
}

static void replace(char **field, const char *text)
{
        if (!text)
                return;
        free(*field);
        *field = *text ? mem_strdup(text) : NULL;
}

struct world *tg_world_new(struct loop *l)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->loop = l;
        w->settings = (struct world_settings){ .strict = true,
                                               .limits = true,
                                               .record_calls = true,
                                               .per_second = 30,
                                               .per_chat_second = 1,
                                               .chat_burst = 3,
                                               .per_group_minute = 20,
                                               .keep_messages = 200 };
        map_init(&w->bots_by_token);
        map_init(&w->users);
        map_init(&w->chats);
        map_init(&w->names);
        w->files = tg_files_new(w);
        faults_init(&w->faults, 1);
        w->sent = journal_new(l, KEEP_SENT, MAX_SENT);
        w->calls = journal_new(l, KEEP_CALLS, MAX_CALLS);
        w->invalid = journal_new(l, KEEP_INVALID, MAX_CALLS);
        w->next_user = 1000;
        w->next_group = 1;
        return w;
}

/* ---- users ---- */

static void user_release(struct user *u)
{
        free(u->first_name);
        free(u->last_name);
        free(u->username);
        free(u->language);
}

struct user *tg_world_user(const struct world *w, int64_t id)
{
        return map_get(&w->users, key_of(id).text);
}

struct user *tg_world_make_user(struct world *w, int64_t id, const char *first_name,
                                const char *username)
{
        struct user *u = id ? tg_world_user(w, id) : NULL;

        if (!u) {
                while (id == 0 && tg_world_user(w, ++w->next_user) != NULL)
                        ;
                u = mem_zalloc(sizeof(*u));
                u->id = id ? id : w->next_user;
                u->first_name = mem_printf("User %lld", (long long)u->id);
                u->language = mem_strdup("en");
                map_put(&w->users, key_of(u->id).text, u);
        }
        if (!u->is_bot) {
                replace(&u->first_name, first_name);
                replace(&u->username, username);
        }
        return u;
}

struct user *tg_world_user_by_username(const struct world *w, const char *username)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->users, &i, &key, &value);) {
                struct user *u = value;

                if (u->username && strcasecmp(u->username, username) == 0)
                        return u;
        }
        return NULL;
}

/* ---- bots ---- */

struct bot *tg_world_bot_by_token(const struct world *w, const char *token)
{
        return map_get(&w->bots_by_token, token);
}

struct bot *tg_world_bot_by_name(const struct world *w, const char *text)
{
        if (!text)
                return w->bots;
        for (struct bot *b = w->bots; b; b = b->next) {
                if (strcmp(b->token, text) == 0 || strcasecmp(b->user.username, text) == 0 ||
                    strcmp(key_of(b->user.id).text, text) == 0)
                        return b;
        }
        return NULL;
}

static bool token_ok(const char *token, long long *id)
{
        char *end;

        *id = strtoll(token, &end, 10);
        if (!isdigit((unsigned char)*token) || *id <= 0 || *end != ':' || !end[1] ||
            strlen(end) > 100)
                return false;
        for (end++; *end; end++) {
                if (!isalnum((unsigned char)*end) && *end != '_' && *end != '-')
                        return false;
        }
        return true;
}

static void append_bot(struct world *w, struct bot *b)
{
        struct bot **last = &w->bots;

        while (*last)
                last = &(*last)->next;
        *last = b;
        map_put(&w->bots_by_token, b->token, b);
        map_put(&w->users, key_of(b->user.id).text, &b->user);
}

struct bot *tg_world_make_bot(struct world *w, const char *token, struct error *err)
{
        struct bot *b = tg_world_bot_by_token(w, token);
        long long id;

        if (b)
                return b;
        if (!token_ok(token, &id)) {
                error_set(err, ERR_INVALID, "a token is a number, a colon and letters: '1001:abc'");
                return NULL;
        }
        if (tg_world_user(w, id)) {
                error_set(err, ERR_CONFLICT, "the number %lld is taken", id);
                return NULL;
        }
        b = mem_zalloc(sizeof(*b));
        b->world = w;
        b->token = mem_strdup(token);
        b->user.id = id;
        b->user.is_bot = true;
        b->user.first_name = mem_strdup("Dragoman");
        b->user.username =
                w->bots ? mem_printf("sim_%lld_bot", id) : mem_strdup("dragoman_sim_bot");
        map_init(&b->private_chats);
        map_init(&b->commands);
        map_init(&b->texts);
        map_init(&b->callbacks);
        b->updates = tg_updates_new(b);
        b->webhook = tg_webhook_new(b);
        append_bot(w, b);
        return b;
}

/* ---- chats ---- */

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

static struct chat *chat_new(int64_t id, enum chat_type type)
{
        struct chat *c = mem_zalloc(sizeof(*c));

        c->id = id;
        c->type = type;
        return c;
}

struct chat *tg_chat_private(struct bot *b, struct user *u, bool make)
{
        struct key k = key_of(u->id);
        struct chat *c = map_get(&b->private_chats, k.text);

        if (c || !make || u->is_bot)
                return c;
        c = chat_new(u->id, CHAT_PRIVATE);
        c->user = u;
        c->bot = b;
        map_put(&b->private_chats, k.text, c);
        return c;
}

struct chat *tg_chat_group(const struct world *w, int64_t id)
{
        return map_get(&w->chats, key_of(id).text);
}

static bool id_fits(int64_t id, enum chat_type type)
{
        return type == CHAT_GROUP ? id < 0 && id > SUPERGROUP_BASE : id < SUPERGROUP_BASE;
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
        if (!id_fits(id, type) || tg_chat_group(w, id))
                return NULL;
        c = chat_new(id, type);
        c->title = mem_strdup(title ? title : type_names[type]);
        map_put(&w->chats, key_of(id).text, c);
        return c;
}

static struct buf lower(const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        for (; *text; text++)
                buf_addch(&b, (char)tolower((unsigned char)*text));
        return b;
}

void tg_chat_set_username(struct world *w, struct chat *c, const char *username)
{
        struct buf name = lower(username);

        replace(&c->username, username);
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

static void chat_free(struct chat *c)
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
        for (size_t i = 0; i < c->ring_n; i++) {
                if (c->ring[i])
                        ring[(size_t)c->ring[i]->id % n] = c->ring[i];
        }
        free(c->ring);
        c->ring = ring;
        c->ring_n = n;
}

struct message *tg_chat_post(struct chat *c, struct message *m, size_t keep)
{
        size_t at;

        m->id = ++c->last_id;
        m->date = clock_wall_ms() / 1000;
        if ((size_t)m->id >= c->ring_n && c->ring_n < keep)
                grow_ring(c, keep);
        at = (size_t)m->id % c->ring_n;
        tg_chat_message_free(c->ring[at]);
        c->ring[at] = m;
        return m;
}

struct message *tg_chat_find_message(const struct chat *c, int64_t id)
{
        struct message *m = c->ring_n && id > 0 ? c->ring[(size_t)id % c->ring_n] : NULL;

        return m && m->id == id ? m : NULL;
}

void tg_chat_replace(struct chat *c, struct message *m)
{
        size_t at = (size_t)m->id % c->ring_n;

        tg_chat_message_free(c->ring[at]);
        c->ring[at] = m;
}

void tg_chat_delete(struct chat *c, struct message *m)
{
        c->ring[(size_t)m->id % c->ring_n] = NULL;
        tg_chat_message_free(m);
}

/* ---- the end ---- */

static void free_values(struct map *m, void (*free_fn)(void *))
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(m, &i, &key, &value);)
                free_fn(value);
        map_release(m);
}

static void free_chat(void *value)
{
        chat_free(value);
}

static void free_json(void *value)
{
        json_decref(value);
}

static void free_user(void *value)
{
        struct user *u = value;

        if (u->is_bot)
                return; /* part of its bot */
        user_release(u);
        free(u);
}

static void bot_free(struct bot *b)
{
        tg_updates_free(b->updates);
        tg_webhook_free(b->webhook);
        free_values(&b->private_chats, free_chat);
        free_values(&b->commands, free_json);
        free_values(&b->texts, free);
        map_release(&b->callbacks);
        user_release(&b->user);
        free(b->token);
        free(b);
}

void tg_world_free(struct world *w)
{
        if (!w)
                return;
        free_values(&w->users, free_user);
        while (w->bots) {
                struct bot *b = w->bots;

                w->bots = b->next;
                bot_free(b);
        }
        map_release(&w->bots_by_token);
        free_values(&w->chats, free_chat);
        map_release(&w->names);
        journal_free(w->sent);
        journal_free(w->calls);
        journal_free(w->invalid);
        tg_files_free(w->files);
        faults_clear(&w->faults);
        free(w);
}
