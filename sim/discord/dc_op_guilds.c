#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_session.h"
#include "sim/discord/dc_signer.h"
#include "sim/discord/dc_world_events.h"

/* ---- the gateway ---- */

static int get_gateway(struct call *c)
{
        jsonw_open(&c->out, '{');
        jsonw_str(&c->out, "url", dc_gateway_url(c->world->gateway));
        jsonw_close(&c->out, '}');
        return 0;
}

static int get_bot_gateway(struct call *c)
{
        const struct world_settings *s = &c->world->settings;

        jsonw_open(&c->out, '{');
        jsonw_str(&c->out, "url", dc_gateway_url(c->world->gateway));
        jsonw_int(&c->out, "shards", s->shards);
        jsonw_open_member(&c->out, "session_start_limit", '{');
        jsonw_int(&c->out, "total", s->start_limit);
        jsonw_int(&c->out, "remaining", c->bot->starts_left > 0 ? c->bot->starts_left : 0);
        jsonw_int(&c->out, "reset_after", s->start_reset_ms);
        jsonw_int(&c->out, "max_concurrency", s->max_concurrency);
        jsonw_close(&c->out, '}');
        jsonw_close(&c->out, '}');
        return 0;
}

/* ---- users ---- */

static int get_me(struct call *c)
{
        dc_render_user(&c->out, NULL, c->bot->user);
        buf_truncate(&c->out, c->out.len - 1); /* the closing brace */
        jsonw_bool(&c->out, "verified", true);
        jsonw_bool(&c->out, "mfa_enabled", false);
        jsonw_str(&c->out, "locale", "en-US");
        jsonw_null(&c->out, "email");
        jsonw_close(&c->out, '}');
        return 0;
}

static int get_user(struct call *c)
{
        const struct user *u = dc_world_user(c->world, dc_call_id(c, "user_id"));

        if (!u)
                return dc_call_fail(c, 404, 10013, "Unknown User");
        dc_render_user(&c->out, NULL, u);
        return 0;
}

static int get_application(struct call *c)
{
        struct buf *b = &c->out;
        char flags[24];

        jsonw_open(b, '{');
        dc_render_id(b, "id", c->bot->application_id);
        jsonw_str(b, "name", c->bot->user->username);
        jsonw_null(b, "icon");
        jsonw_str(b, "description", "");
        jsonw_str(b, "summary", "");
        jsonw_null(b, "type");
        jsonw_bool(b, "bot_public", true);
        jsonw_bool(b, "bot_require_code_grant", false);
        jsonw_str(b, "verify_key", dc_signer_public(c->world->signer));
        snprintf(flags, sizeof(flags), "%" PRId64, dc_session_application_flags(c->bot));
        jsonw_raw(b, "flags", flags);
        jsonw_str(b, "flags_new", flags);
        jsonw_int(b, "approximate_guild_count", 1);
        jsonw_int(b, "approximate_user_install_count", 0);
        jsonw_int(b, "approximate_user_authorization_count", 0);
        jsonw_int(b, "explicit_content_filter", 0);
        jsonw_raw(b, "eligible_oauth2_scopes", "[]");
        jsonw_null(b, "role_connections_verification_url");
        jsonw_str(b, "interactions_endpoint_url", c->bot->interactions_url);
        jsonw_raw(b, "redirect_uris", "[]");
        jsonw_null(b, "team");
        dc_render_user(b, "owner",
                       c->world->first_guild ? c->world->first_guild->owner : c->bot->user);
        dc_render_user(b, "bot", c->bot->user);
        jsonw_close(b, '}');
        return 0;
}

/* ---- guilds ---- */

static int my_guilds(struct call *c)
{
        const char *after = json_str(c->query, "after", "0"),
                   *limit = json_str(c->query, "limit", "200");
        uint64_t from = dc_id_parse(after);
        long left = strtol(limit, NULL, 10);

        jsonw_open(&c->out, '[');
        for (const struct guild *g = c->world->first_guild; g && left > 0; g = g->next) {
                if (g->id <= from || !dc_guild_member(g, c->bot->user->id))
                        continue;
                left--;
                jsonw_open(&c->out, '{');
                dc_render_id(&c->out, "id", g->id);
                jsonw_str(&c->out, "name", g->name);
                jsonw_null(&c->out, "icon");
                jsonw_null(&c->out, "banner");
                jsonw_bool(&c->out, "owner", false);
                jsonw_str(&c->out, "permissions", "1125899906842623");
                jsonw_raw(&c->out, "features", "[]");
                jsonw_close(&c->out, '}');
        }
        jsonw_close(&c->out, ']');
        return 0;
}

static int get_guild(struct call *c)
{
        struct guild *g = dc_call_guild(c);

        if (!g)
                return -1;
        dc_render_guild(&c->out, g, c->bot, false);
        return 0;
}

static int list_channels(struct call *c)
{
        struct guild *g = dc_call_guild(c);

        if (!g)
                return -1;
        jsonw_open(&c->out, '[');
        for (const struct channel *at = g->channels; at; at = at->next) {
                if (!dc_channel_is_thread(at) && (dc_channel_permissions(c->bot, at) & MAY_VIEW))
                        dc_render_channel(&c->out, NULL, at);
        }
        jsonw_close(&c->out, ']');
        return 0;
}

static int create_channel(struct call *c)
{
        struct guild *g = dc_call_guild(c);
        struct channel *channel;

        if (!g)
                return -1;
        channel = dc_channel_make(c->world, g, 0,
                                  (enum channel_type)json_int(c->args, "type", CHANNEL_TEXT),
                                  json_str(c->args, "name", ""));
        channel->parent = dc_channel_find(c->world, dc_call_args_id(c->args, "parent_id"));
        dc_call_record(c, "channel", channel);
        journal_close(c->world->base.sent);
        dc_world_event_channel(c->world, channel, "CREATE");
        dc_render_channel(&c->out, NULL, channel);
        c->status = 201;
        return 0;
}

static int list_roles(struct call *c)
{
        struct guild *g = dc_call_guild(c);

        if (!g)
                return -1;
        jsonw_open(&c->out, '[');
        for (const struct role *r = g->roles; r; r = r->next)
                dc_render_role(&c->out, g, r);
        jsonw_close(&c->out, ']');
        return 0;
}

static int list_members(struct call *c)
{
        struct guild *g = dc_call_guild(c);
        int64_t left = dc_call_query_int(c, "limit", 1);

        if (!g)
                return -1;
        jsonw_open(&c->out, '[');
        for (const struct member *m = g->members; m && left > 0; m = m->next, left--)
                dc_render_member(&c->out, NULL, m, true);
        jsonw_close(&c->out, ']');
        return 0;
}

static int get_member(struct call *c)
{
        struct guild *g = dc_call_guild(c);
        const struct member *m = g ? dc_guild_member(g, dc_call_id(c, "user_id")) : NULL;

        if (!g)
                return -1;
        if (!m)
                return dc_call_fail(c, 404, 10007, "Unknown Member");
        dc_render_member(&c->out, NULL, m, true);
        return 0;
}

const struct dc_op_row dc_op_guilds[] = {
        { "get_gateway", get_gateway },
        { "get_bot_gateway", get_bot_gateway },
        { "get_my_user", get_me },
        { "get_user", get_user },
        { "list_my_guilds", my_guilds },
        { "get_my_application", get_application },
        { "get_my_oauth2_application", get_application },
        { "get_guild", get_guild },
        { "list_guild_channels", list_channels },
        { "create_guild_channel", create_channel },
        { "list_guild_roles", list_roles },
        { "list_guild_members", list_members },
        { "get_guild_member", get_member },
        { 0 },
};
