#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/slack/sl_world.h"

struct slack_channel *sl_channel_find(const struct slack_world *w, const char *id)
{
        return id ? map_get(&w->channels, id) : NULL;
}

struct slack_channel *sl_channel_by_name(const struct slack_world *w, const char *text)
{
        struct slack_channel *c = sl_channel_find(w, text);

        if (c || !text)
                return c;
        text += *text == '#';
        for (c = *text ? w->first_channel : NULL; c; c = c->next) {
                if (strcmp(c->name, text) == 0)
                        return c;
        }
        return NULL;
}

struct slack_channel *sl_channel_make(struct slack_world *w, struct slack_team *t, const char *id,
                                      enum slack_channel_kind kind, const char *name,
                                      struct slack_user *creator)
{
        struct slack_channel *c = mem_zalloc(sizeof(*c));

        if (id)
                snprintf(c->id, sizeof(c->id), "%s", id);
        else
                sl_world_id(w, kind == SLACK_IM ? 'D' : 'C', c->id);
        c->kind = kind;
        c->team = t ? t : w->teams;
        c->name = mem_strdup(name ? name : "");
        c->topic = mem_strdup("");
        c->purpose = mem_strdup("");
        c->creator = creator;
        c->created_s = clock_wall_ms() / 1000;
        map_init(&c->assistant);
        if (creator)
                sl_channel_join(c, creator);
        map_put(&w->channels, c->id, c);
        *w->channels_end = c;
        w->channels_end = &c->next;
        return c;
}

struct slack_channel *sl_channel_im(struct slack_app *a, struct slack_user *u, bool make)
{
        struct slack_channel *c = a->world->first_channel;

        while (c && (c->kind != SLACK_IM || c->app != a || c->person != u))
                c = c->next;
        if (c || !make)
                return c;
        c = sl_channel_make(a->world, a->team, NULL, SLACK_IM, NULL, u);
        sl_channel_join(c, a->user);
        c->person = u;
        c->app = a;
        return c;
}

static bool has_exactly(const struct slack_channel *c, const struct slack_app *a,
                        struct slack_user **users, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (!sl_channel_has(c, users[i]))
                        return false;
        }
        return c->member_count == n + 1 && sl_channel_has(c, a->user);
}

struct slack_channel *sl_channel_mpim(struct slack_app *a, struct slack_user **users, size_t n,
                                      bool make)
{
        struct slack_channel *c = a->world->first_channel;
        char name[80] = "mpdm-";

        while (c && (c->kind != SLACK_MPIM || !has_exactly(c, a, users, n)))
                c = c->next;
        if (c || !make)
                return c;
        for (size_t i = 0; i < n; i++)
                snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s--", users[i]->name);
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s-1", a->user->name);
        c = sl_channel_make(a->world, a->team, NULL, SLACK_MPIM, name, users[0]);
        for (size_t i = 0; i < n; i++)
                sl_channel_join(c, users[i]);
        sl_channel_join(c, a->user);
        return c;
}

bool sl_channel_has(const struct slack_channel *c, const struct slack_user *u)
{
        for (size_t i = 0; i < c->member_count; i++) {
                if (c->members[i] == u)
                        return true;
        }
        return false;
}

bool sl_channel_join(struct slack_channel *c, struct slack_user *u)
{
        if (sl_channel_has(c, u))
                return false;
        c->members = mem_realloc(c->members, (c->member_count + 1) * sizeof(struct slack_user *));
        c->members[c->member_count++] = u;
        return true;
}

bool sl_channel_leave(struct slack_channel *c, const struct slack_user *u)
{
        for (size_t i = 0; i < c->member_count; i++) {
                if (c->members[i] != u)
                        continue;
                memmove(c->members + i, c->members + i + 1,
                        (c->member_count - i - 1) * sizeof(struct slack_user *));
                c->member_count--;
                return true;
        }
        return false;
}

const char *sl_channel_type(const struct slack_channel *c)
{
        static const char *const names[] = { "channel", "group", "im", "mpim" };

        return names[c->kind];
}

void sl_channel_free(struct slack_channel *c)
{
        const char *key;
        void *value;

        for (size_t i = 0; i < c->count; i++)
                sl_message_free(c->messages[i]);
        free(c->messages);
        for (size_t i = 0; map_each(&c->assistant, &i, &key, &value);)
                json_decref(value);
        map_release(&c->assistant);
        free(c->members);
        free(c->name);
        free(c->topic);
        free(c->purpose);
        free(c);
}
