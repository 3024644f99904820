#include "sim/discord/dc_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/discord/dc_files.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_interactions.h"
#include "sim/discord/dc_rate_limit.h"
#include "sim/discord/dc_signer.h"
#include "sim/world_settings.h"

#define KEEP_MESSAGES 500
#define KEEP_LINKS    20000
#define MAX_LINKS     ((size_t)64 << 20)

/* clang-format off */
#define AT(field) offsetof(struct world, settings.field)
static const struct world_setting settings[] = {
        { "acks",            WORLD_SETTING_FLAG, AT(acks),            0,  0 },
        { "heartbeat_ms",    WORLD_SETTING_INT,  AT(heartbeat_ms),    10, INT32_MAX },
        { "resume_ms",       WORLD_SETTING_INT,  AT(resume_ms),       0,  0 },
        { "shards",          WORLD_SETTING_INT,  AT(shards),          1,  INT32_MAX },
        { "min_shards",      WORLD_SETTING_INT,  AT(min_shards),      0,  0 },
        { "max_concurrency", WORLD_SETTING_INT,  AT(max_concurrency), 1,  INT32_MAX },
        { "start_limit",     WORLD_SETTING_INT,  AT(start_limit),     0,  0 },
        { "start_reset_ms",  WORLD_SETTING_INT,  AT(start_reset_ms),  0,  0 },
        { "nonce_ms",        WORLD_SETTING_INT,  AT(nonce_ms),        0,  0 },
        { "ack_ms",          WORLD_SETTING_INT,  AT(ack_ms),          0,  0 },
        { 0 },
};
/* clang-format on */

/* ---- users ---- */

struct user *dc_world_user(const struct world *w, uint64_t id)
{
        return dc_id_map_get(&w->users, id);
}

static void set_text(char **slot, const char *text)
{
        if (!text)
                return;
        free(*slot);
        *slot = mem_strdup(text);
}

struct user *dc_world_make_user(struct world *w, uint64_t id, const char *username,
                                const char *global_name)
{
        struct user *u;

        if (id == 0)
                id = dc_id_new(w);
        u = dc_world_user(w, id);
        if (!u) {
                u = mem_zalloc(sizeof(*u));
                u->id = id;
                u->username = mem_printf("user%llu", (unsigned long long)id);
                dc_id_map_put(&w->users, id, u);
        }
        set_text(&u->username, username);
        set_text(&u->global_name, global_name);
        return u;
}

struct user *dc_world_user_by_name(const struct world *w, const char *text)
{
        struct user *u = dc_world_user(w, dc_id_parse(text));
        const char *key;
        void *value;

        if (u || !text)
                return u;
        for (size_t i = 0; map_each(&w->users, &i, &key, &value);) {
                u = value;
                if (strcasecmp(u->username, text) == 0)
                        return u;
        }
        return NULL;
}

/* ---- bots ---- */

struct bot *dc_world_bot_by_token(const struct world *w, const char *token)
{
        return token ? map_get(&w->bots_by_token, token) : NULL;
}

struct bot *dc_world_bot_by_name(const struct world *w, const char *text)
{
        struct bot *b = dc_world_bot_by_token(w, text);
        uint64_t id = dc_id_parse(text);

        if (b || !text)
                return b ? b : w->bots;
        for (b = w->bots; b; b = b->next) {
                if (b->user->id == id || strcasecmp(b->user->username, text) == 0)
                        return b;
        }
        return NULL;
}

/* A token begins with the bot's id in base64; 0: this one does not. */
static uint64_t id_of_token(const char *token)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char text[32];
        size_t n = 0;
        unsigned bits = 0, have = 0;

        for (; *token && *token != '.' && n + 1 < sizeof(text); token++) {
                const char *digit = strchr(digits, *token);

                if (!digit)
                        return 0;
                bits = bits << 6 | (unsigned)(digit - digits);
                have += 6;
                if (have >= 8) {
                        have -= 8;
                        text[n++] = (char)(bits >> have & 0xff);
                }
        }
        text[n] = '\0';
        return dc_id_parse(text);
}

struct bot *dc_world_make_bot(struct world *w, const char *token)
{
        struct bot *b = dc_world_bot_by_token(w, token), **end = &w->bots;
        uint64_t id = id_of_token(token);

        if (b)
                return b;
        b = mem_zalloc(sizeof(*b));
        b->world = w;
        b->token = mem_strdup(token);
        b->user = dc_world_make_user(w, id && !dc_world_user(w, id) ? id : 0,
                                     w->bots ? NULL : "dragoman", NULL);
        b->user->is_bot = true;
        b->application_id = b->user->id;
        b->intents = ~0ull;
        b->commands = json_array();
        b->guild_commands = json_object();
        b->starts_left = w->settings.start_limit;
        map_init(&b->dms);
        map_init(&b->nonces);
        while (*end)
                end = &(*end)->next;
        *end = b;
        map_put(&w->bots_by_token, token, b);
        for (struct guild *g = w->first_guild; g; g = g->next)
                dc_guild_add_member(g, b->user);
        return b;
}

static void bot_free(struct bot *b)
{
        dc_nonces_release(b);
        map_release(&b->dms);
        json_decref(b->commands);
        json_decref(b->guild_commands);
        free(b->interactions_url);
        free(b->token);
        free(b);
}

/* ---- the world ---- */

struct world *dc_world_new(struct loop *l)
{
        struct world *w = mem_zalloc(sizeof(*w));

        world_base_init(&w->base, l, KEEP_MESSAGES, settings);
        w->base.faults.rng = id_random_below(UINT64_MAX);
        w->settings = (struct world_settings){
                .heartbeat_ms = 41250,
                .resume_ms = 300000,
                .replay = 10000,
                .shards = 1,
                .min_shards = 1,
                .max_concurrency = 1,
                .start_limit = 1000,
                .start_reset_ms = 86400000,
                .acks = true,
                .nonce_ms = 300000,
                .ack_ms = 3000,
        };
        map_init(&w->bots_by_token);
        map_init(&w->users);
        map_init(&w->guilds);
        map_init(&w->channels);
        map_init(&w->files);
        map_init(&w->interactions);
        w->guilds_end = &w->first_guild;
        w->links = journal_new(l, KEEP_LINKS, MAX_LINKS);
        w->rates = dc_rate_limit_new();
        w->signer = dc_signer_new();
        w->gateway = dc_gateway_new(w);
        return w;
}

void dc_world_free(struct world *w)
{
        const char *key;
        void *value;

        if (!w)
                return;
        call_base_cut_all(&w->base);
        dc_gateway_free(w->gateway);
        journal_free(w->links);
        dc_interactions_release(w);
        dc_files_release(w);
        for (size_t i = 0; map_each(&w->channels, &i, &key, &value);)
                dc_channel_free(value);
        map_release(&w->channels);
        while (w->first_guild) {
                struct guild *g = w->first_guild;

                w->first_guild = g->next;
                dc_guild_free(g);
        }
        map_release(&w->guilds);
        while (w->bots) {
                struct bot *b = w->bots;

                w->bots = b->next;
                bot_free(b);
        }
        map_release(&w->bots_by_token);
        for (size_t i = 0; map_each(&w->users, &i, &key, &value);) {
                struct user *u = value;

                free(u->username);
                free(u->global_name);
                free(u);
        }
        map_release(&w->users);
        dc_rate_limit_free(w->rates);
        dc_signer_free(w->signer);
        world_base_release(&w->base);
        free(w);
}
