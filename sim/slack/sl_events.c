/*
 * The events of what happens in the world, for the apps that see it.
 */
#include <string.h>

#include "base/mem.h"
#include "sim/slack/sl_push.h"
#include "sim/slack/sl_world.h"

static unsigned push(struct slack_world *w, json_t *event)
{
        w->event_count++;
        return sl_push_event(w, event);
}

static bool mentions(const char *text, const char *user)
{
        char *plain = mem_printf("<@%s>", user), *labelled = mem_printf("<@%s|", user);
        bool yes = strstr(text, plain) || strstr(text, labelled);

        free(plain);
        free(labelled);
        return yes;
}

/* Not in direct messages, and not of what the app itself says; also where it is no member. */
static unsigned push_mentions(struct slack_world *w, const struct slack_message *m)
{
        unsigned n = 0;

        if (m->channel->kind == SLACK_IM)
                return 0;
        for (struct slack_app *a = w->apps; a; a = a->next) {
                json_t *event;

                if (a == m->app || !mentions(m->text, a->user->id))
                        continue;
                event = sl_render_message(w, m, SLACK_RENDER_EVENT);
                json_object_set_new(event, "type", json_string("app_mention"));
                json_object_del(event, "channel_type");
                json_object_del(event, "subtype");
                json_object_set_new(event, "app", json_string(a->id));
                n += push(w, event);
        }
        return n;
}

unsigned sl_event_posted(struct slack_world *w, const struct slack_message *m)
{
        unsigned mentioned = push_mentions(w, m);
        unsigned posted =
                push(w, sl_render_message(w, m, SLACK_RENDER_EVENT | SLACK_RENDER_METADATA));

        return posted > mentioned ? posted : mentioned;
}

/* The event of a change to a message has a ts of its own. */
static json_t *envelope(struct slack_channel *c, const char *subtype)
{
        struct slack_message *now = sl_message_new(c, NULL, NULL);
        json_t *event = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:b}", "type", "message", "subtype",
                                  subtype, "channel", c->id, "channel_type", sl_channel_type(c),
                                  "ts", now->ts, "event_ts", now->ts, "hidden", 1);

        sl_message_free(now);
        return event;
}

unsigned sl_event_changed(struct slack_world *w, const struct slack_message *m, json_t *previous)
{
        json_t *event = envelope(m->channel, "message_changed");

        json_object_set_new(event, "message", sl_render_message(w, m, SLACK_RENDER_METADATA));
        json_object_set_new(event, "previous_message", previous);
        return push(w, event);
}

unsigned sl_event_delete(struct slack_world *w, struct slack_message *m)
{
        json_t *previous = sl_render_message(w, m, SLACK_RENDER_METADATA), *event;
        struct slack_channel *c = m->channel;

        if (!sl_message_remove(m))
                return sl_event_changed(w, m, previous);
        event = envelope(c, "message_deleted");
        json_object_set(event, "deleted_ts", json_object_get(previous, "ts"));
        json_object_set_new(event, "previous_message", previous);
        return push(w, event);
}

unsigned sl_event_reaction(struct slack_world *w, const struct slack_message *m, const char *name,
                           const struct slack_user *u, bool added)
{
        struct slack_message *now = sl_message_new(m->channel, NULL, NULL);
        json_t *event = json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:s},s:s}", "type",
                                  added ? "reaction_added" : "reaction_removed", "user", u->id,
                                  "reaction", name, "item", "type", "message", "channel",
                                  m->channel->id, "ts", m->ts, "event_ts", now->ts);

        if (m->user)
                json_object_set_new(event, "item_user", json_string(m->user->id));
        sl_message_free(now);
        return push(w, event);
}

unsigned sl_event_member(struct slack_world *w, const struct slack_channel *c,
                         const struct slack_user *u, bool joined)
{
        return push(w, json_pack("{s:s,s:s,s:s,s:s,s:s}", "type",
                                 joined ? "member_joined_channel" : "member_left_channel", "user",
                                 u->id, "channel", c->id, "channel_type",
                                 c->kind == SLACK_PUBLIC ? "C" : "G", "team", u->team->id));
}

unsigned sl_event_file_shared(struct slack_world *w, const struct slack_file *f,
                              const struct slack_channel *c, const struct slack_user *u)
{
        return push(w,
                    json_pack("{s:s,s:s,s:s,s:{s:s},s:s}", "type", "file_shared", "file_id", f->id,
                              "user_id", u->id, "file", "id", f->id, "channel_id", c->id));
}
