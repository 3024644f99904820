/*
 * People join, leave and rename channels, open the assistant and look at the app's home.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_push.h"

/* ---- channels ---- */

/* "channel_join" and the like appear as messages, too. */
static void announce(struct slack_world *w, struct slack_channel *c, struct slack_user *u,
                     const char *subtype, const char *what)
{
        struct slack_message *m = sl_message_new(c, u, NULL);

        free(m->text);
        m->text = mem_printf("<@%s> %s", u->id, what);
        m->subtype = mem_strdup(subtype);
        sl_message_post(w, m);
        sl_push_event(w, sl_render_message(w, m, SLACK_RENDER_EVENT));
}

/* {"from":"bob","channel":"general"}, {"leave":true}; "from" may be a bot */
int sl_people_places_member(struct world *world, const json_t *request, struct buf *out,
                            struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_channel *c = sl_people_find_channel(w, request, err);
        struct slack_user *u = c ? sl_people_find_user(w, request, err) : NULL;
        bool leaves = json_flag(request, "leave", false), group;

        if (!u)
                return -1;
        group = c->kind == SLACK_PRIVATE;
        jsonw_str(out, "channel", c->id);
        if (leaves ? !sl_channel_has(c, u) : !sl_channel_join(c, u))
                return 0;
        jsonw_int(out, "apps", sl_event_member(w, c, u, !leaves));
        if (leaves) {
                announce(w, c, u, group ? "group_leave" : "channel_leave", "has left the channel");
                sl_channel_leave(c, u);
        } else {
                announce(w, c, u, group ? "group_join" : "channel_join", "has joined the channel");
        }
        return 0;
}

int sl_people_places_rename(struct world *world, const json_t *request, struct buf *out,
                            struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_channel *c = sl_people_find_channel(w, request, err);
        const char *name = json_str(request, "name", NULL);

        if (!c)
                return -1;
        if (!name || !*c->name)
                return error_set(err, ERR_INVALID, "rename needs a channel and a 'name'");
        free(c->name);
        c->name = mem_strdup(name);
        jsonw_int(out, "apps",
                  sl_push_event(
                          w, json_pack("{s:s,s:{s:s,s:s,s:I}}", "type",
                                       c->kind == SLACK_PUBLIC ? "channel_rename" : "group_rename",
                                       "channel", "id", c->id, "name", c->name, "created",
                                       (json_int_t)c->created_s)));
        return 0;
}

/* ---- the app's own places ---- */

static json_t *assistant_context(const struct slack_channel *seen)
{
        return seen ? json_pack("{s:s,s:s,s:n}", "channel_id", seen->id, "team_id", seen->team->id,
                                "enterprise_id")
                    : json_object();
}

/*
 * {"from":"ada","context":"general"} opens the assistant: a thread of the direct messages begins.
 * With "thread" the person looks at another channel meanwhile.
 */
int sl_people_places_assistant(struct world *world, const json_t *request, struct buf *out,
                               struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_app *a = sl_people_find_app(w, request, err);
        struct slack_user *u = a ? sl_people_find_user(w, request, err) : NULL;
        const char *thread = json_str(request, "thread", NULL),
                   *context = json_str(request, "context", NULL);
        struct slack_channel *c;
        struct slack_message *root;

        if (!u)
                return -1;
        c = sl_channel_im(a, u, true);
        if (!thread) {
                root = sl_message_new(c, a->user, "New Assistant Thread");
                root->app = a;
                root->subtype = mem_strdup("assistant_app_thread");
                memcpy(root->thread_ts, root->ts, sizeof(root->thread_ts));
                sl_message_post(w, root);
                sl_event_posted(w, root);
        } else if (!(root = sl_message_find(c, thread))) {
                return error_set(err, ERR_MISSING, "no thread '%s'", thread);
        }
        jsonw_str(out, "channel", c->id);
        jsonw_str(out, "message_id", root->ts);
        jsonw_int(out, "apps",
                  sl_push_event(w,
                                json_pack("{s:s,s:s,s:{s:s,s:o,s:s,s:s}}", "type",
                                          thread ? "assistant_thread_context_changed"
                                                 : "assistant_thread_started",
                                          "app", a->id, "assistant_thread", "user_id", u->id,
                                          "context",
                                          assistant_context(context ? sl_channel_by_name(w, context)
                                                                    : NULL),
                                          "channel_id", c->id, "thread_ts", root->ts)));
        return 0;
}

/* What the person sees beside the app: "context", a channel. */
static json_t *viewed(struct slack_world *w, const json_t *request)
{
        const char *name = json_str(request, "context", NULL);
        const struct slack_channel *seen = name ? sl_channel_by_name(w, name) : NULL;

        return seen ? json_pack("{s:[{s:s,s:s,s:s}]}", "entities", "type",
                                "slack#/types/channel_id", "value", seen->id, "team_id",
                                seen->team->id)
                    : json_object();
}

static int look(struct slack_world *w, const json_t *request, const char *type, struct buf *out,
                struct error *err)
{
        struct slack_app *a = sl_people_find_app(w, request, err);
        struct slack_user *u = a ? sl_people_find_user(w, request, err) : NULL;
        json_t *event;

        if (!u)
                return -1;
        event = json_pack("{s:s,s:s,s:s,s:s,s:o}", "type", type, "app", a->id, "user", u->id,
                          "channel", sl_channel_im(a, u, true)->id, "context", viewed(w, request));
        if (json_str(request, "tab", NULL))
                json_object_set(event, "tab", json_object_get(request, "tab"));
        jsonw_int(out, "apps", sl_push_event(w, event));
        return 0;
}

/* {"from":"ada","tab":"messages"} looks at the app's home or its direct messages. */
int sl_people_places_home(struct world *world, const json_t *request, struct buf *out,
                          struct error *err)
{
        return look(sl_world_of(world), request, "app_home_opened", out, err);
}

/* {"from":"ada","context":"general"}: beside the app they look at something else. */
int sl_people_places_context(struct world *world, const json_t *request, struct buf *out,
                             struct error *err)
{
        return look(sl_world_of(world), request, "app_context_changed", out, err);
}
