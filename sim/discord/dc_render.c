/*
 * The JSON of answers and events.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_world.h"

#define ALL_PERMISSIONS "1125899906842623"

void dc_render_id(struct buf *b, const char *key, uint64_t id)
{
        char text[DC_ID_SIZE];

        jsonw_str(b, key, id ? dc_id_text(id, text) : NULL);
}

void dc_render_json(struct buf *b, const char *key, const json_t *value)
{
        char *text = value ? json_text(value) : mem_strdup("null");

        jsonw_raw(b, key, text);
        free(text);
}

static void json_time(struct buf *b, const char *key, int64_t wall_ms)
{
        char iso[CLOCK_ISO_SIZE];
        char *text;

        if (wall_ms == 0) {
                jsonw_null(b, key);
                return;
        }
        clock_iso(wall_ms, iso);
        /* Discord writes microseconds and an offset */
        text = mem_printf("%.23s000+00:00", iso);
        jsonw_str(b, key, text);
        free(text);
}

static void open_value(struct buf *b, const char *key, char bracket)
{
        if (key)
                jsonw_open_member(b, key, bracket);
        else
                jsonw_open(b, bracket);
}

/* ---- people ---- */

static void user_members(struct buf *b, const struct user *u)
{
        dc_render_id(b, "id", u->id);
        jsonw_str(b, "username", u->username);
        jsonw_str(b, "discriminator", u->is_bot ? "0000" : "0");
        jsonw_str(b, "global_name", u->global_name);
        jsonw_null(b, "avatar");
        jsonw_null(b, "avatar_decoration_data");
        jsonw_null(b, "banner");
        jsonw_null(b, "accent_color");
        jsonw_null(b, "primary_guild");
        jsonw_int(b, "public_flags", 0);
        jsonw_int(b, "flags", 0);
        if (u->is_bot)
                jsonw_bool(b, "bot", true);
}

void dc_render_user(struct buf *b, const char *key, const struct user *u)
{
        open_value(b, key, '{');
        user_members(b, u);
        jsonw_close(b, '}');
}

void dc_render_member(struct buf *b, const char *key, const struct member *m, bool with_user)
{
        open_value(b, key, '{');
        jsonw_str(b, "nick", m->nick);
        jsonw_null(b, "avatar");
        jsonw_null(b, "banner");
        dc_render_json(b, "roles", m->roles);
        jsonw_str(b, "joined_at", "2026-01-01T00:00:00.000000+00:00");
        jsonw_null(b, "premium_since");
        jsonw_null(b, "communication_disabled_until");
        jsonw_bool(b, "deaf", false);
        jsonw_bool(b, "mute", false);
        jsonw_bool(b, "pending", false);
        jsonw_int(b, "flags", 0);
        if (with_user)
                dc_render_user(b, "user", m->user);
        jsonw_close(b, '}');
}

/* ---- guilds and channels ---- */

void dc_render_role(struct buf *b, const struct guild *g, const struct role *r)
{
        jsonw_open(b, '{');
        dc_render_id(b, "id", r->id);
        jsonw_str(b, "name", r->name);
        jsonw_int(b, "color", 0);
        jsonw_raw(b, "colors",
                  "{\"primary_color\":0,\"secondary_color\":null,\"tertiary_color\":null}");
        jsonw_bool(b, "hoist", false);
        jsonw_bool(b, "managed", false);
        jsonw_bool(b, "mentionable", r->id != g->id);
        jsonw_null(b, "icon");
        jsonw_null(b, "unicode_emoji");
        jsonw_str(b, "permissions", ALL_PERMISSIONS);
        jsonw_int(b, "position", r->id == g->id ? 0 : 1);
        jsonw_int(b, "flags", 0);
        jsonw_close(b, '}');
}

static void write_overwrites(struct buf *b, const struct channel *c)
{
        char *denied = mem_printf("%llu", (unsigned long long)c->denied);

        jsonw_open_member(b, "permission_overwrites", '[');
        if (c->denied) {
                jsonw_open(b, '{');
                dc_render_id(b, "id", c->guild->id);
                jsonw_int(b, "type", 0);
                jsonw_str(b, "allow", "0");
                jsonw_str(b, "deny", denied);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        free(denied);
}

void dc_render_thread_member(struct buf *b, const char *key, const struct channel *c,
                             uint64_t user_id)
{
        open_value(b, key, '{');
        dc_render_id(b, "id", c->id);
        dc_render_id(b, "user_id", user_id);
        json_time(b, "join_timestamp", c->created_ms);
        jsonw_int(b, "flags", 1);
        jsonw_close(b, '}');
}

static void write_thread(struct buf *b, const struct channel *c)
{
        int count = (int)json_array_size(c->joined);

        dc_render_id(b, "owner_id", c->owner_id);
        jsonw_int(b, "message_count", (int64_t)c->count);
        jsonw_int(b, "total_message_sent", (int64_t)c->count);
        jsonw_int(b, "member_count", count < 50 ? count : 50);
        dc_render_json(b, "applied_tags", c->tags);
        jsonw_open_member(b, "thread_metadata", '{');
        jsonw_bool(b, "archived", c->archived);
        jsonw_bool(b, "locked", c->locked);
        jsonw_int(b, "auto_archive_duration", c->auto_archive);
        json_time(b, "archive_timestamp", c->created_ms);
        json_time(b, "create_timestamp", c->created_ms);
        if (c->type == CHANNEL_PRIVATE_THREAD)
                jsonw_bool(b, "invitable", true);
        jsonw_close(b, '}');
}

static void write_channel(struct buf *b, const struct channel *c)
{
        dc_render_id(b, "id", c->id);
        jsonw_int(b, "type", c->type);
        dc_render_id(b, "last_message_id", c->last_message_id);
        jsonw_int(b, "flags", 0);
        if (!c->guild) {
                jsonw_open_member(b, "recipients", '[');
                dc_render_user(b, NULL, c->user);
                jsonw_close(b, ']');
                return;
        }
        dc_render_id(b, "guild_id", c->guild->id);
        dc_render_id(b, "parent_id", c->parent ? c->parent->id : 0);
        jsonw_str(b, "name", c->name);
        jsonw_int(b, "rate_limit_per_user", 0);
        if (dc_channel_is_thread(c)) {
                write_thread(b, c);
                return;
        }
        jsonw_str(b, "topic", c->topic);
        jsonw_int(b, "position", c->position);
        jsonw_bool(b, "nsfw", false);
        write_overwrites(b, c);
        if (dc_channel_is_forum(c)) {
                dc_render_json(b, "available_tags", c->tags);
                jsonw_null(b, "default_reaction_emoji");
                jsonw_null(b, "default_sort_order");
                jsonw_int(b, "default_forum_layout", 0);
        }
        if (c->type == CHANNEL_VOICE) {
                jsonw_int(b, "bitrate", 64000);
                jsonw_int(b, "user_limit", 0);
        }
}

void dc_render_channel(struct buf *b, const char *key, const struct channel *c)
{
        open_value(b, key, '{');
        write_channel(b, c);
        jsonw_close(b, '}');
}

/* Writes invented members and channels, to make the event as large as that of a large guild. */
static void pad_members(struct buf *b, const struct guild *g)
{
        for (size_t i = 0; i < g->padding_members; i++) {
                struct user u = { .id = 1000000000000000000u + i, .username = (char *)"padding" };
                struct member m = { .user = &u };

                m.roles = json_array();
                dc_render_member(b, NULL, &m, true);
                json_decref(m.roles);
        }
}

static void pad_channels(struct buf *b, const struct guild *g)
{
        for (size_t i = 0; i < g->padding_channels; i++) {
                struct channel c = { .id = 1100000000000000000u + i,
                                     .guild = (struct guild *)g,
                                     .name = (char *)"padding",
                                     .position = (int)i };

                dc_render_channel(b, NULL, &c);
        }
}

static void write_created(struct buf *b, const struct guild *g, const struct bot *bot)
{
        size_t count = g->members_by_id.count + g->padding_members;

        jsonw_str(b, "joined_at", "2026-01-01T00:00:00.000000+00:00");
        jsonw_bool(b, "large", count > 250);
        jsonw_bool(b, "unavailable", false);
        jsonw_int(b, "member_count", (int64_t)count);
        jsonw_open_member(b, "members", '[');
        for (const struct member *m = g->members; m; m = m->next)
                dc_render_member(b, NULL, m, true);
        pad_members(b, g);
        jsonw_close(b, ']');
        jsonw_open_member(b, "channels", '[');
        for (const struct channel *c = g->channels; c; c = c->next) {
                if (!dc_channel_is_thread(c) && (dc_channel_permissions(bot, c) & MAY_VIEW))
                        dc_render_channel(b, NULL, c);
        }
        pad_channels(b, g);
        jsonw_close(b, ']');
        jsonw_open_member(b, "threads", '[');
        for (const struct channel *c = g->channels; c; c = c->next) {
                if (dc_channel_is_thread(c) && !c->archived &&
                    (dc_channel_permissions(bot, c) & MAY_VIEW))
                        dc_render_channel(b, NULL, c);
        }
        jsonw_close(b, ']');
        jsonw_raw(b, "presences", "[]");
        jsonw_raw(b, "voice_states", "[]");
        jsonw_raw(b, "stage_instances", "[]");
        jsonw_open_member(b, "guild_scheduled_events", '[');
        for (const struct scheduled_event *e = g->events; e; e = e->next)
                dc_scheduled_event_render(b, NULL, e, false);
        jsonw_close(b, ']');
        jsonw_raw(b, "soundboard_sounds", "[]");
}

void dc_render_guild(struct buf *b, const struct guild *g, const struct bot *viewer, bool created)
{
        static const char *const nulls[] = {
                "icon",
                "icon_hash",
                "splash",
                "discovery_splash",
                "banner",
                "description",
                "vanity_url_code",
                "afk_channel_id",
                "public_updates_channel_id",
                "rules_channel_id",
                "system_channel_id",
                "safety_alerts_channel_id",
                "application_id",
                "widget_channel_id",
                "home_header",
                "incidents_data",
                "max_presences",
        };
        static const char *const zeros[] = {
                "verification_level",
                "default_message_notifications",
                "explicit_content_filter",
                "mfa_level",
                "nsfw_level",
                "premium_tier",
                "premium_subscription_count",
                "system_channel_flags",
        };

        jsonw_open(b, '{');
        dc_render_id(b, "id", g->id);
        jsonw_str(b, "name", g->name);
        dc_render_id(b, "owner_id", g->owner->id);
        for (size_t i = 0; i < COUNT(nulls); i++)
                jsonw_null(b, nulls[i]);
        for (size_t i = 0; i < COUNT(zeros); i++)
                jsonw_int(b, zeros[i], 0);
        jsonw_int(b, "afk_timeout", 300);
        jsonw_int(b, "max_members", 500000);
        jsonw_int(b, "max_video_channel_users", 25);
        jsonw_int(b, "max_stage_video_channel_users", 50);
        jsonw_str(b, "preferred_locale", "en-US");
        jsonw_str(b, "region", "deprecated");
        jsonw_bool(b, "nsfw", false);
        jsonw_bool(b, "widget_enabled", false);
        jsonw_bool(b, "premium_progress_bar_enabled", false);
        jsonw_raw(b, "features", "[]");
        jsonw_raw(b, "emojis", "[]");
        jsonw_raw(b, "stickers", "[]");
        jsonw_open_member(b, "roles", '[');
        for (const struct role *r = g->roles; r; r = r->next)
                dc_render_role(b, g, r);
        jsonw_close(b, ']');
        if (created)
                write_created(b, g, viewer);
        jsonw_close(b, '}');
}

/* ---- messages ---- */

void dc_render_emoji(struct buf *b, const char *key, const struct emoji *e)
{
        open_value(b, key, '{');
        dc_render_id(b, "id", e->id);
        jsonw_str(b, "name", e->name);
        if (e->id)
                jsonw_bool(b, "animated", false);
        jsonw_close(b, '}');
}

static void write_reactions(struct buf *b, const struct message *m, const struct user *me)
{
        if (!m->reactions)
                return;
        jsonw_open_member(b, "reactions", '[');
        for (const struct reaction *r = m->reactions; r; r = r->next) {
                jsonw_open(b, '{');
                dc_render_emoji(b, "emoji", &r->emoji);
                jsonw_int(b, "count", (int64_t)r->count);
                jsonw_open_member(b, "count_details", '{');
                jsonw_int(b, "burst", 0);
                jsonw_int(b, "normal", (int64_t)r->count);
                jsonw_close(b, '}');
                jsonw_raw(b, "burst_colors", "[]");
                jsonw_bool(b, "me", me && dc_message_reacted(r, me));
                jsonw_bool(b, "me_burst", false);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_mentions(struct buf *b, const struct world *w, const struct message *m,
                           bool event)
{
        const json_t *id;
        size_t i;

        jsonw_open_member(b, "mentions", '[');
        json_array_foreach(m->mentions, i, id) {
                const struct user *u = dc_world_user(w, dc_id_parse(json_string_value(id)));
                const struct member *member = event && m->channel->guild
                                                      ? dc_guild_member(m->channel->guild, u->id)
                                                      : NULL;

                jsonw_open(b, '{');
                user_members(b, u);
                if (member)
                        dc_render_member(b, "member", member, false);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        dc_render_json(b, "mention_roles", m->mention_roles);
}

static void write_reference(struct buf *b, struct world *w, const struct message *m,
                            const struct bot *viewer, unsigned how)
{
        const struct channel *c = dc_channel_find(w, m->reply_channel);
        const struct message *to = c ? dc_message_find(c, m->reply_to) : NULL;

        if (!m->reply_to)
                return;
        jsonw_open_member(b, "message_reference", '{');
        jsonw_int(b, "type", 0);
        dc_render_id(b, "message_id", m->reply_to);
        dc_render_id(b, "channel_id", m->reply_channel);
        if (m->channel->guild)
                dc_render_id(b, "guild_id", m->channel->guild->id);
        jsonw_close(b, '}');
        if (how & RENDER_ALONE)
                return;
        if (to)
                dc_render_message(b, "referenced_message", w, to, viewer,
                                  RENDER_ALONE | (how & RENDER_SECRET));
        else
                jsonw_null(b, "referenced_message");
}

static void write_content(struct buf *b, const struct message *m, bool secret)
{
        if (secret) {
                jsonw_str(b, "content", "");
                jsonw_raw(b, "attachments", "[]");
                jsonw_raw(b, "embeds", "[]");
                jsonw_raw(b, "components", "[]");
                return;
        }
        jsonw_str(b, "content", m->content);
        dc_render_json(b, "attachments", m->attachments);
        dc_render_json(b, "embeds", m->embeds);
        dc_render_json(b, "components", m->components);
}

void dc_render_message(struct buf *b, const char *key, struct world *w, const struct message *m,
                       const struct bot *viewer, unsigned how)
{
        const struct guild *g = m->channel->guild;
        const struct member *member = g ? dc_guild_member(g, m->author->id) : NULL;
        const struct channel *thread = m->has_thread ? dc_channel_find(w, m->id) : NULL;
        const char *name;
        json_t *value;

        open_value(b, key, '{');
        dc_render_id(b, "id", m->id);
        dc_render_id(b, "channel_id", m->channel->id);
        jsonw_int(b, "type", m->type);
        dc_render_user(b, "author", m->author);
        write_content(b, m, (how & RENDER_SECRET) != 0);
        json_time(b, "timestamp", dc_id_ms(m->id));
        json_time(b, "edited_timestamp", m->edited_ms);
        jsonw_bool(b, "tts", m->tts);
        jsonw_bool(b, "pinned", m->pinned);
        jsonw_bool(b, "mention_everyone", m->mention_everyone);
        write_mentions(b, w, m, (how & RENDER_EVENT) != 0);
        jsonw_int(b, "flags", m->flags);
        write_reactions(b, m, viewer ? viewer->user : NULL);
        write_reference(b, w, m, viewer, how);
        if (m->application_id) {
                dc_render_id(b, "application_id", m->application_id);
                dc_render_id(b, "webhook_id", m->application_id);
        }
        if (m->interaction)
                dc_render_json(b, "interaction_metadata", m->interaction);
        if (m->nonce && (how & RENDER_NONCE))
                jsonw_raw(b, "nonce", m->nonce);
        if (thread)
                dc_render_channel(b, "thread", thread);
        if (!(how & RENDER_SECRET)) {
                json_object_foreach(m->extra, name, value)
                        dc_render_json(b, name, value);
        }
        if (how & RENDER_EVENT) {
                jsonw_int(b, "channel_type", m->channel->type);
                if (g)
                        dc_render_id(b, "guild_id", g->id);
                if (member && !m->application_id)
                        dc_render_member(b, "member", member, false);
        }
        jsonw_close(b, '}');
}
