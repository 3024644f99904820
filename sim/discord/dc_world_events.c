#include "sim/discord/dc_world_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_gateway.h"

/* Closes the object, sends it and releases b. */
static unsigned publish(struct world *w, const struct gateway_event *e, struct buf *b)
{
        unsigned count;

        jsonw_close(b, '}');
        count = dc_session_publish(w, e, b->data);
        buf_release(b);
        return count;
}

static struct buf begin(const struct channel *c)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        dc_render_id(&b, "channel_id", c->id);
        if (c->guild)
                dc_render_id(&b, "guild_id", c->guild->id);
        return b;
}

/* ---- messages ---- */

unsigned dc_world_event_message(struct world *w, struct message *m)
{
        struct channel *c = m->channel;

        dc_message_post(w, m);
        if (dc_channel_is_thread(c) && c->archived) {
                c->archived = false;
                dc_world_event_channel(w, c, "UPDATE");
        }
        if (dc_channel_is_thread(c))
                dc_channel_join(c, m->author);
        return dc_session_publish_message(w, "MESSAGE_CREATE", m);
}

unsigned dc_world_event_edit(struct world *w, struct message *m)
{
        m->edited_ms = clock_wall_ms();
        return dc_session_publish_message(w, "MESSAGE_UPDATE", m);
}

unsigned dc_world_event_delete(struct world *w, struct message *m)
{
        struct gateway_event t = { .event = "MESSAGE_DELETE",
                                   .channel = m->channel,
                                   .guild_intent = INTENT_MESSAGES,
                                   .dm_intent = INTENT_DM };
        struct buf b = begin(m->channel);

        dc_render_id(&b, "id", m->id);
        dc_message_remove(m);
        return publish(w, &t, &b);
}

/* ---- reactions ---- */

static unsigned publish_reaction(struct world *w, const char *event, const struct message *m,
                                 const struct emoji *e, const struct user *u, bool added)
{
        struct gateway_event t = { .event = event,
                                   .channel = m->channel,
                                   .guild_intent = INTENT_REACTIONS,
                                   .dm_intent = INTENT_DM_REACTIONS };
        const struct guild *g = m->channel->guild;
        const struct member *member = g && u ? dc_guild_member(g, u->id) : NULL;
        struct buf b = begin(m->channel);

        dc_render_id(&b, "message_id", m->id);
        if (u) {
                dc_render_id(&b, "user_id", u->id);
                jsonw_bool(&b, "burst", false);
                jsonw_int(&b, "type", 0);
        }
        if (e)
                dc_render_emoji(&b, "emoji", e);
        if (added) {
                dc_render_id(&b, "message_author_id", m->author->id);
                if (member)
                        dc_render_member(&b, "member", member, true);
        }
        return publish(w, &t, &b);
}

unsigned dc_world_event_react(struct world *w, struct message *m, const struct emoji *e,
                              struct user *u)
{
        return dc_message_add_reaction(m, e, u)
                       ? publish_reaction(w, "MESSAGE_REACTION_ADD", m, e, u, true)
                       : 0;
}

unsigned dc_world_event_unreact(struct world *w, struct message *m, const struct emoji *e,
                                struct user *u)
{
        return dc_message_remove_reaction(m, e, u)
                       ? publish_reaction(w, "MESSAGE_REACTION_REMOVE", m, e, u, false)
                       : 0;
}

unsigned dc_world_event_clear(struct world *w, struct message *m, const struct emoji *e)
{
        struct reaction *next;

        for (struct reaction *r = m->reactions; r; r = next) {
                struct emoji emoji = r->emoji;

                next = r->next;
                if (e && r != dc_message_reaction(m, e))
                        continue;
                for (size_t left = r->count; left > 0; left--)
                        dc_message_remove_reaction(m, &emoji, r->users[left - 1]);
        }
        return publish_reaction(w,
                                e ? "MESSAGE_REACTION_REMOVE_EMOJI" : "MESSAGE_REACTION_REMOVE_ALL",
                                m, e, NULL, false);
}

unsigned dc_world_event_typing(struct world *w, const struct channel *c, const struct user *u)
{
        struct gateway_event t = { .event = "TYPING_START",
                                   .channel = c,
                                   .guild_intent = INTENT_TYPING,
                                   .dm_intent = INTENT_DM_TYPING };
        const struct member *member = c->guild ? dc_guild_member(c->guild, u->id) : NULL;
        struct buf b = begin(c);

        dc_render_id(&b, "user_id", u->id);
        jsonw_int(&b, "timestamp", clock_wall_ms() / 1000);
        if (member)
                dc_render_member(&b, "member", member, true);
        return publish(w, &t, &b);
}

/* ---- channels and guilds ---- */

unsigned dc_world_event_channel(struct world *w, const struct channel *c, const char *event)
{
        char name[32];
        struct gateway_event t = { .event = name, .channel = c, .guild_intent = INTENT_GUILDS };
        struct buf b;
        unsigned count;

        snprintf(name, sizeof(name), "%s_%s", dc_channel_is_thread(c) ? "THREAD" : "CHANNEL",
                 event);
        buf_init(&b, 0);
        dc_render_channel(&b, NULL, c);
        if (dc_channel_is_thread(c) && strcmp(event, "CREATE") == 0) {
                buf_truncate(&b, b.len - 1); /* the closing brace */
                jsonw_bool(&b, "newly_created", true);
                jsonw_close(&b, '}');
        }
        count = dc_session_publish(w, &t, b.data);
        buf_release(&b);
        return count;
}

unsigned dc_world_event_guild(struct world *w, const struct guild *g, const char *event)
{
        unsigned count = 0;
        struct buf b;

        buf_init(&b, 0);
        for (const struct bot *bot = w->bots; bot; bot = bot->next) {
                struct gateway_event t = {
                        .event = event, .guild = g, .bot = bot, .guild_intent = INTENT_GUILDS
                };

                buf_clear(&b);
                if (strcmp(event, "GUILD_DELETE") == 0) {
                        jsonw_open(&b, '{');
                        dc_render_id(&b, "id", g->id);
                        if (g->unavailable)
                                jsonw_bool(&b, "unavailable", true);
                        jsonw_close(&b, '}');
                } else {
                        dc_render_guild(&b, g, bot, strcmp(event, "GUILD_CREATE") == 0);
                }
                count += dc_session_publish(w, &t, b.data);
        }
        buf_release(&b);
        return count;
}

unsigned dc_world_event_member(struct world *w, const struct guild *g, const struct user *u,
                               const char *event)
{
        struct gateway_event t = { .event = event, .guild = g, .guild_intent = INTENT_MEMBERS };
        const struct member *m = dc_guild_member(g, u->id);
        struct buf b;

        buf_init(&b, 0);
        if (m) {
                dc_render_member(&b, NULL, m, true);
                buf_truncate(&b, b.len - 1);
        } else {
                jsonw_open(&b, '{');
                dc_render_user(&b, "user", u);
        }
        dc_render_id(&b, "guild_id", g->id);
        return publish(w, &t, &b);
}

/* ---- threads ---- */

static struct message *notice(struct world *w, struct channel *c, struct user *by,
                              enum message_type type, const char *text)
{
        struct message *m = dc_message_new(w, c, by);

        m->type = (int)type;
        free(m->content);
        m->content = mem_strdup(text);
        return m;
}

struct channel *dc_world_event_thread(struct world *w, struct channel *parent, struct message *on,
                                      enum channel_type type, const char *name, struct user *owner)
{
        struct channel *c = dc_channel_make_thread(w, parent, on ? on->id : 0, type, name, owner);
        struct message *m;

        dc_world_event_channel(w, c, "CREATE");
        if (dc_channel_is_forum(parent))
                return c;
        if (on) {
                on->has_thread = true;
                on->flags |= MESSAGE_FLAG_HAS_THREAD;
                dc_session_publish_message(w, "MESSAGE_UPDATE", on);
                m = notice(w, c, on->author, MESSAGE_THREAD_STARTER, "");
                m->reply_to = on->id;
                m->reply_channel = parent->id;
                dc_world_event_message(w, m);
        } else if (type != CHANNEL_PRIVATE_THREAD) {
                m = notice(w, parent, owner, MESSAGE_THREAD_CREATED, name);
                m->reply_channel = c->id;
                dc_world_event_message(w, m);
        }
        return c;
}

unsigned dc_world_event_rename(struct world *w, struct channel *c, const char *name,
                               struct user *by)
{
        free(c->name);
        c->name = mem_strdup(name);
        dc_world_event_channel(w, c, "UPDATE");
        return dc_world_event_message(w, notice(w, c, by, MESSAGE_RENAMED, name));
}
