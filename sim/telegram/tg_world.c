#include "sim/telegram/tg_world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"
#include "sim/world_settings.h"

#define KEEP_MESSAGES 200

/* clang-format off */
#define AT(field) offsetof(struct world, settings.field)
static const struct world_setting settings[] = {
        { "per_second",           WORLD_SETTING_REAL, AT(per_second),       0, 0 },
        { "per_chat_per_second",  WORLD_SETTING_REAL, AT(per_chat_second),  0, 0 },
        { "chat_burst",           WORLD_SETTING_REAL, AT(chat_burst),       0, 0 },
        { "per_group_per_minute", WORLD_SETTING_REAL, AT(per_group_minute), 0, 0 },
        { "ids_per_chat",         WORLD_SETTING_FLAG, AT(ids_per_chat),     0, 0 },
        { "id_step",              WORLD_SETTING_INT,  AT(id_step),          -1000, 1000 },
        { 0 },
};
/* clang-format on */

struct tg_world_key tg_world_key(int64_t id)
{
        struct tg_world_key k;

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

        world_base_init(&w->base, l, KEEP_MESSAGES, settings);
        w->settings = (struct world_settings){ .per_second = 30,
                                               .per_chat_second = 1,
                                               .chat_burst = 3,
                                               .per_group_minute = 20,
                                               .id_step = 1 };
        map_init(&w->bots_by_token);
        map_init(&w->users);
        map_init(&w->chats);
        map_init(&w->names);
        w->files = tg_files_new(w);
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
        return map_get(&w->users, tg_world_key(id).text);
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
                map_put(&w->users, tg_world_key(u->id).text, u);
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
                    strcmp(tg_world_key(b->user.id).text, text) == 0)
                        return b;
        }
        return NULL;
}

static bool parse_token(const char *token, long long *id)
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

struct bot *tg_world_make_bot(struct world *w, const char *token, struct error *err)
{
        struct bot *b = tg_world_bot_by_token(w, token), **last = &w->bots;
        long long id;

        if (b)
                return b;
        if (!parse_token(token, &id)) {
                error_set(err, ERR_INVALID, "'token' must have the form '1001:abc'");
                return NULL;
        }
        if (tg_world_user(w, id)) {
                error_set(err, ERR_CONFLICT, "the id %lld is taken", id);
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
        while (*last)
                last = &(*last)->next;
        *last = b;
        map_put(&w->bots_by_token, b->token, b);
        map_put(&w->users, tg_world_key(b->user.id).text, &b->user);
        return b;
}

/* ---- freeing ---- */

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
        tg_chat_free(value);
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
        for (struct bot *b = w->bots; b; b = b->next)
                tg_updates_interrupt(b->updates, "server is shutting down");
        call_base_cut_all(&w->base);
        free_values(&w->users, free_user);
        while (w->bots) {
                struct bot *b = w->bots;

                w->bots = b->next;
                bot_free(b);
        }
        map_release(&w->bots_by_token);
        free_values(&w->chats, free_chat);
        map_release(&w->names);
        tg_files_free(w->files);
        world_base_release(&w->base);
        free(w);
}
