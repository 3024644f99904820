#include "sim/slack/sl_admin.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_world.h"

static void set_text(char **slot, const json_t *request, const char *key)
{
        const json_t *value = json_object_get(request, key);

        if (!json_is_string(value) && !json_is_null(value))
                return;
        free(*slot);
        *slot = mem_strdup(json_string_value(value));
}

/* *team is unchanged unless the request names one. */
static int find_team(const struct slack_world *w, const json_t *request, struct slack_team **team,
                     struct error *err)
{
        const char *name = json_str(request, "team", NULL);
        struct slack_team *t = name ? sl_team_find(w, name) : NULL;

        if (name && !t)
                return error_set(err, ERR_MISSING, "no team '%s'", name);
        if (t)
                *team = t;
        return 0;
}

/* Absent is fine. */
static int check_id(const char *id, struct error *err)
{
        size_t n = id ? strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") : 0;

        return !id || (n > 1 && n < SL_ID_SIZE && !id[n])
                       ? 0
                       : error_set(err, ERR_INVALID,
                                   "'id' must have 2 to %d capital letters and digits",
                                   SL_ID_SIZE - 1);
}

/* {"id":"T2","name":"Other"} */
int sl_admin_team(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        const char *id = json_str(request, "id", NULL);
        struct slack_team *t = id ? sl_team_find(w, id) : NULL;

        if (check_id(id, err) != 0)
                return -1;
        if (!t)
                t = sl_team_make(w, id, json_str(request, "name", NULL));
        jsonw_str(out, "team", t->id);
        return 0;
}

/*
 * {"id":"U7","name":"bob","real_name":"Bob","display_name":"B","team":"T2","channel":"general",
 * "deleted":true,"guest":true}
 */
int sl_admin_user(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        const char *id = json_str(request, "id", NULL), *name = json_str(request, "name", NULL);
        const char *where = json_str(request, "channel", NULL);
        struct slack_channel *c = where ? sl_channel_by_name(w, where) : NULL;
        struct slack_team *team = w->teams;
        struct slack_user *u = id ? NULL : sl_user_by_name(w, name);

        if (check_id(id, err) != 0 || find_team(w, request, &team, err) != 0)
                return -1;
        if (where && !c)
                return error_set(err, ERR_MISSING, "no channel '%s'", where);
        u = sl_user_make(w, team, u ? u->id : id, name, json_str(request, "real_name", NULL));
        if (json_str(request, "display_name", NULL))
                set_text(&u->display_name, request, "display_name");
        u->deleted = json_flag(request, "deleted", u->deleted);
        u->guest = json_flag(request, "guest", u->guest);
        if (c && sl_channel_join(c, u))
                sl_event_member(w, c, u, true);
        jsonw_str(out, "user", u->id);
        jsonw_str(out, "name", u->name);
        return 0;
}

static int kind_of(const char *type)
{
        static const char *const names[] = { "public", "private" };

        for (int i = 0; i < (int)COUNT(names); i++) {
                if (strcmp(names[i], type) == 0)
                        return i;
        }
        return -1;
}

static int add_members(struct slack_world *w, struct slack_channel *c, const json_t *names,
                       struct error *err)
{
        const json_t *name;
        size_t i;

        json_array_foreach(names, i, name) {
                struct slack_user *u = sl_user_by_name(w, json_string_value(name));

                if (!u)
                        return error_set(err, ERR_MISSING, "no user '%s'",
                                         json_is_string(name) ? json_string_value(name) : "");
                sl_channel_join(c, u);
        }
        return 0;
}

/*
 * {"id":"C7","name":"help","type":"private","members":["ada"],"without_app":true}; an existing one
 * (by id or name) changes: "topic", "purpose", "archived", "shared".
 */
int sl_admin_channel(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        const char *id = json_str(request, "id", NULL), *name = json_str(request, "name", NULL);
        int kind = kind_of(json_str(request, "type", "public"));
        struct slack_channel *c = sl_channel_by_name(w, id ? id : name);
        struct slack_team *team = w->teams;

        if (kind < 0)
                return error_set(err, ERR_INVALID, "'type' must be public or private");
        if (check_id(id, err) != 0 || find_team(w, request, &team, err) != 0)
                return -1;
        if (!c) {
                c = sl_channel_make(w, team, id, (enum slack_channel_kind)kind,
                                    name ? name : "channel", w->first_user);
                if (!json_flag(request, "without_app", false)) {
                        for (struct slack_app *a = w->apps; a; a = a->next) {
                                if (a->team == team && sl_channel_join(c, a->user))
                                        sl_event_member(w, c, a->user, true);
                        }
                }
        }
        if (json_str(request, "topic", NULL))
                set_text(&c->topic, request, "topic");
        if (json_str(request, "purpose", NULL))
                set_text(&c->purpose, request, "purpose");
        c->archived = json_flag(request, "archived", c->archived);
        c->shared = json_flag(request, "shared", c->shared);
        if (add_members(w, c, json_object_get(request, "members"), err) != 0)
                return -1;
        jsonw_str(out, "channel", c->id);
        return 0;
}

/* Texts in a list, or null: none. */
static int set_list(json_t **slot, const json_t *request, const char *key, struct error *err)
{
        json_t *list = json_object_get(request, key), *item;
        size_t i;

        if (!list)
                return 0;
        if (!json_is_array(list) && !json_is_null(list))
                return error_set(err, ERR_INVALID, "'%s' must be a list", key);
        json_array_foreach(list, i, item) {
                if (!json_is_string(item))
                        return error_set(err, ERR_INVALID, "'%s' must be a list of texts", key);
        }
        json_decref(*slot);
        *slot = json_is_array(list) ? json_incref(list) : NULL;
        return 0;
}

static void without(json_t *scopes, const json_t *names)
{
        const json_t *name;
        size_t i;

        json_array_foreach(names, i, name) {
                for (size_t k = json_array_size(scopes); k > 0; k--) {
                        if (json_equal(json_array_get(scopes, k - 1), name))
                                json_array_remove(scopes, k - 1);
                }
        }
}

/*
 * {"token":"xoxb-2","team":"T2"} makes one; {"app":"dragoman"} changes one: "app_token",
 * "signing_secret", "token_error" (such as token_revoked; null ends it), "app_token_error",
 * "scopes", "without_scopes", "events" (null: all), "assistant".
 */
int sl_admin_app(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        const char *token = json_str(request, "token", NULL);
        struct slack_team *team = NULL;
        struct slack_app *a;

        if (find_team(w, request, &team, err) != 0)
                return -1;
        a = token ? sl_app_make(w, token, team) : sl_app_find(w, json_str(request, "app", NULL));
        if (!a)
                return error_set(err, ERR_MISSING, "no app '%s'", json_str(request, "app", ""));
        if (set_list(&a->events, request, "events", err) != 0 ||
            (json_is_array(json_object_get(request, "scopes")) &&
             set_list(&a->scopes, request, "scopes", err) != 0))
                return -1;
        without(a->scopes, json_object_get(request, "without_scopes"));
        if (json_str(request, "app_token", NULL))
                set_text(&a->app_token, request, "app_token");
        if (json_str(request, "signing_secret", NULL))
                set_text(&a->signing_secret, request, "signing_secret");
        set_text(&a->token_error, request, "token_error");
        set_text(&a->app_token_error, request, "app_token_error");
        a->assistant = json_flag(request, "assistant", a->assistant);
        jsonw_str(out, "app", a->id);
        jsonw_str(out, "user", a->user->id);
        jsonw_str(out, "bot_id", a->bot_id);
        jsonw_str(out, "token", a->token);
        jsonw_str(out, "app_token", a->app_token);
        jsonw_str(out, "signing_secret", a->signing_secret);
        return 0;
}

/* {"message_id":".."}: a person presses Stop */
int sl_admin_stop_stream(struct world *world, const json_t *request, struct buf *out,
                         struct error *err)
{
        struct slack_message *m = sl_people_find_message(sl_world_of(world), request, err);

        if (!m)
                return -1;
        if (m->stream != SLACK_STREAMING)
                return error_set(err, ERR_INVALID, "message '%s' does not grow", m->ts);
        m->stream = SLACK_STREAMED;
        m->stopped = true;
        jsonw_str(out, "ts", m->ts);
        return 0;
}
