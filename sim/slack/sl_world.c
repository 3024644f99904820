#include "sim/slack/sl_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/call_base.h"
#include "sim/slack/sl_push.h"
#include "sim/slack/sl_rate_limit.h"
#include "sim/world_settings.h"

#define KEEP_MESSAGES 500
#define KEEP_LINKS    20000
#define MAX_LINKS     ((size_t)64 << 20)

/* clang-format off */
#define AT(field) offsetof(struct slack_world, settings.field)
static const struct world_setting settings[] = {
        { "posts_per_second",   WORLD_SETTING_REAL, AT(posts_per_second),   1e-6, 1e6 },
        { "post_burst",         WORLD_SETTING_INT,  AT(post_burst),         1, INT32_MAX },
        { "tier_percent",       WORLD_SETTING_INT,  AT(tier_percent),       1, INT32_MAX },
        { "history_per_minute", WORLD_SETTING_INT,  AT(history_per_minute), 0, 0 },
        { "stream_idle_ms",     WORLD_SETTING_INT,  AT(stream_idle_ms),     1, INT32_MAX },
        { "stream_ms",          WORLD_SETTING_INT,  AT(stream_ms),          1, INT32_MAX },
        { "trigger_ms",         WORLD_SETTING_INT,  AT(trigger_ms),         0, 0 },
        { "page_max",           WORLD_SETTING_INT,  AT(page_max),           0, 0 },
        { "share_ms",           WORLD_SETTING_INT,  AT(share_ms),           0, 0 },
        { "response_uses",      WORLD_SETTING_INT,  AT(response_uses),      0, 0 },
        { "response_ms",        WORLD_SETTING_INT,  AT(response_ms),        0, 0 },
        { "ack_ms",             WORLD_SETTING_INT,  AT(ack_ms),             1, INT32_MAX },
        { "retry_1_ms",         WORLD_SETTING_INT,  AT(retry_1_ms),         0, 0 },
        { "retry_2_ms",         WORLD_SETTING_INT,  AT(retry_2_ms),         0, 0 },
        { "retry_3_ms",         WORLD_SETTING_INT,  AT(retry_3_ms),         0, 0 },
        { "ping_ms",            WORLD_SETTING_INT,  AT(ping_ms),            1, INT32_MAX },
        { "connection_ms",      WORLD_SETTING_INT,  AT(connection_ms),      0, 0 },
        { "max_connections",    WORLD_SETTING_INT,  AT(max_connections),    1, 100 },
        { "disable_after",      WORLD_SETTING_INT,  AT(disable_after),      1, INT32_MAX },
        { "streams",            WORLD_SETTING_FLAG, AT(streams),            0, 0 },
        { "assistants",         WORLD_SETTING_FLAG, AT(assistants),         0, 0 },
        { "history_forward",    WORLD_SETTING_FLAG, AT(history_forward),    0, 0 },
        { 0 },
};
/* clang-format on */

static const char *const default_scopes[] = {
        "app_mentions:read", "assistant:write", "channels:history",  "channels:join",
        "channels:read",     "chat:write",      "chat:write.public", "chat:write.customize",
        "commands",          "files:read",      "files:write",       "groups:history",
        "groups:read",       "im:history",      "im:read",           "im:write",
        "mpim:history",      "mpim:read",       "mpim:write",        "pins:read",
        "pins:write",        "reactions:read",  "reactions:write",   "team:read",
        "users:read",
};

static void set_text(char **slot, const char *text)
{
        if (!text)
                return;
        free(*slot);
        *slot = mem_strdup(text);
}

void sl_world_id(struct slack_world *w, char letter, char out[SL_ID_SIZE])
{
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        uint64_t n = ++w->next_id;

        memcpy(out, "?0SIM000000", 12);
        out[0] = letter;
        for (int i = 10; i > 4; i--, n /= 36)
                out[i] = digits[n % 36];
}

/* ---- teams ---- */

struct slack_team *sl_team_find(const struct slack_world *w, const char *text)
{
        struct slack_team *t = w->teams;

        while (t && text && strcmp(t->id, text) != 0 && strcasecmp(t->name, text) != 0 &&
               strcmp(t->domain, text) != 0)
                t = t->next;
        return t;
}

struct slack_team *sl_team_make(struct slack_world *w, const char *id, const char *name)
{
        struct slack_team *t = mem_zalloc(sizeof(*t)), **end = &w->teams;

        if (id)
                snprintf(t->id, sizeof(t->id), "%s", id);
        else
                sl_world_id(w, 'T', t->id);
        t->name = mem_strdup(name ? name : t->id);
        t->domain = mem_strdup(t->name);
        for (char *p = t->domain; *p; p++)
                *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p == ' ' ? '-' : *p;
        while (*end)
                end = &(*end)->next;
        *end = t;
        return t;
}

/* ---- users ---- */

struct slack_user *sl_user_find(const struct slack_world *w, const char *id)
{
        return id ? map_get(&w->users, id) : NULL;
}

struct slack_user *sl_user_make(struct slack_world *w, struct slack_team *t, const char *id,
                                const char *name, const char *real_name)
{
        struct slack_user *u = sl_user_find(w, id);

        if (!u) {
                u = mem_zalloc(sizeof(*u));
                if (id)
                        snprintf(u->id, sizeof(u->id), "%s", id);
                else
                        sl_world_id(w, 'U', u->id);
                u->team = t ? t : w->teams;
                u->name = mem_printf("user_%s", u->id);
                u->real_name = mem_strdup(name ? name : u->name);
                u->display_name = mem_strdup("");
                u->tz = mem_strdup("Europe/Amsterdam");
                map_put(&w->users, u->id, u);
                *w->users_end = u;
                w->users_end = &u->next;
        }
        set_text(&u->name, name);
        set_text(&u->real_name, real_name);
        return u;
}

struct slack_user *sl_user_by_name(const struct slack_world *w, const char *text)
{
        struct slack_user *u = sl_user_find(w, text);

        if (u || !text)
                return u;
        for (u = w->first_user; u; u = u->next) {
                if (strcasecmp(u->name, text) == 0)
                        return u;
        }
        return NULL;
}

static void user_free(struct slack_user *u)
{
        free(u->name);
        free(u->real_name);
        free(u->display_name);
        free(u->tz);
        free(u);
}

/* ---- apps ---- */

static struct slack_app *find_app(const struct slack_world *w, const char *token, size_t at)
{
        for (struct slack_app *a = token ? w->apps : NULL; a; a = a->next) {
                if (strcmp(*(char *const *)((const char *)a + at), token) == 0)
                        return a;
        }
        return NULL;
}

struct slack_app *sl_app_by_token(const struct slack_world *w, const char *token)
{
        return find_app(w, token, offsetof(struct slack_app, token));
}

struct slack_app *sl_app_by_app_token(const struct slack_world *w, const char *token)
{
        return find_app(w, token, offsetof(struct slack_app, app_token));
}

struct slack_app *sl_app_find(const struct slack_world *w, const char *text)
{
        struct slack_app *a = w->apps;

        while (a && text && strcmp(a->id, text) != 0 && strcmp(a->bot_id, text) != 0 &&
               strcmp(a->user->id, text) != 0 && strcasecmp(a->user->name, text) != 0 &&
               strcmp(a->token, text) != 0)
                a = a->next;
        return a;
}

struct slack_app *sl_app_make(struct slack_world *w, const char *token, struct slack_team *t)
{
        struct slack_app *a = sl_app_by_token(w, token), **end = &w->apps;
        bool first = !w->apps;
        char *name;

        if (a)
                return a;
        a = mem_zalloc(sizeof(*a));
        a->world = w;
        a->team = t ? t : w->teams;
        sl_world_id(w, 'A', a->id);
        sl_world_id(w, 'B', a->bot_id);
        name = first ? mem_strdup("dragoman") : mem_printf("app_%s", a->id);
        a->user = sl_user_make(w, a->team, first ? "U0DRAGOMAN" : NULL, name,
                               first ? "Dragoman" : name);
        free(name);
        a->user->app = a;
        a->token = mem_strdup(token);
        a->app_token = mem_printf("xapp-%s", token + (strncmp(token, "xoxb-", 5) == 0 ? 5 : 0));
        a->signing_secret = mem_printf("signing-%s", a->id);
        a->assistant = true;
        a->scopes = json_array();
        for (size_t i = 0; i < COUNT(default_scopes); i++)
                json_array_append_new(a->scopes, json_string(default_scopes[i]));
        while (*end)
                end = &(*end)->next;
        *end = a;
        for (struct slack_channel *c = w->first_channel; c; c = c->next) {
                if (c->general && c->team == a->team)
                        sl_channel_join(c, a->user);
        }
        return a;
}

static bool list_has(const json_t *list, const char *text)
{
        const json_t *item;
        size_t i;

        json_array_foreach(list, i, item) {
                if (strcmp(json_string_value(item), text) == 0)
                        return true;
        }
        return false;
}

bool sl_app_has_scope(const struct slack_app *a, const char *scope)
{
        return list_has(a->scopes, scope);
}

bool sl_app_subscribes(const struct slack_app *a, const char *event)
{
        return !a->events || list_has(a->events, event);
}

static void app_free(struct slack_app *a)
{
        free(a->token);
        free(a->app_token);
        free(a->signing_secret);
        free(a->token_error);
        free(a->app_token_error);
        free(a->request_url);
        free(a->interactive_url);
        free(a->command_url);
        json_decref(a->scopes);
        json_decref(a->events);
        free(a);
}

/* ---- the world ---- */

struct slack_world *sl_world_new(struct loop *l)
{
        struct slack_world *w = mem_zalloc(sizeof(*w));

        world_base_init(&w->base, l, KEEP_MESSAGES, settings);
        w->base.faults.rng = id_random_below(UINT64_MAX);
        w->settings = (struct slack_settings){
                .posts_per_second = 1,
                .post_burst = 5,
                .tier_percent = 100,
                .stream_idle_ms = 30000,
                .stream_ms = 306000,
                .trigger_ms = 3000,
                .share_ms = 20,
                .response_uses = 5,
                .response_ms = 1800000,
                .ack_ms = 3000,
                .retry_2_ms = 60000,
                .retry_3_ms = 300000,
                .ping_ms = 10000,
                .max_connections = 10,
                .disable_after = 1000,
                .streams = true,
                .assistants = true,
                .history_forward = true,
        };
        map_init(&w->users);
        map_init(&w->channels);
        map_init(&w->files);
        map_init(&w->uploads);
        map_init(&w->triggers);
        map_init(&w->hooks);
        w->users_end = &w->first_user;
        w->channels_end = &w->first_channel;
        w->link_log = journal_new(l, KEEP_LINKS, MAX_LINKS);
        w->rates = sl_rate_limit_new();
        sl_team_make(w, "T0SIMULATOR", "Lab");
        w->links = sl_push_new(w);
        return w;
}

void sl_world_free(struct slack_world *w)
{
        void *next;

        if (!w)
                return;
        call_base_cut_all(&w->base);
        sl_push_free(w->links);
        journal_free(w->link_log);
        sl_interactions_release(w);
        sl_views_release(w);
        sl_files_release(w);
        map_release(&w->files);
        map_release(&w->uploads);
        for (struct slack_channel *c = w->first_channel; c; c = next) {
                next = c->next;
                sl_channel_free(c);
        }
        map_release(&w->channels);
        for (struct slack_app *a = w->apps; a; a = next) {
                next = a->next;
                app_free(a);
        }
        for (struct slack_user *u = w->first_user; u; u = next) {
                next = u->next;
                user_free(u);
        }
        map_release(&w->users);
        for (struct slack_team *t = w->teams; t; t = next) {
                next = t->next;
                free(t->name);
                free(t->domain);
                free(t);
        }
        sl_rate_limit_free(w->rates);
        world_base_release(&w->base);
        free(w);
}
