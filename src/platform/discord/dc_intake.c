#include "platform/discord/dc_intake.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_lookup.h"
#include "platform/discord/dc_scheduled_event.h"

#define POSTS_MAX 1000

struct dc_update {
        struct intake_update base; /* first */
        struct dc_intake *in;
        struct dc_dispatch e; /* strings and d are owned */
        bool from_gateway;
        void (*stored)(void *arg, bool ok); /* of a post */
        void *stored_arg;
        bool channel_known;             /* false: being looked up */
        char *asked_guild, *asked_user; /* being looked up */
};

static bool is_interaction(const struct dc_update *u)
{
        return strcmp(u->e.type, "INTERACTION_CREATE") == 0;
}

static void read_event(struct dc_update *u, json_t *member)
{
        struct dc_intake *in = u->in;
        const struct dc_event_context context = { .self = in->self,
                                                  .cache = in->cache,
                                                  .role_mentions = in->o.role_mentions };
        const struct incoming *event;

        if (member) { /* in a copy: the original is not ours */
                json_t *d = json_copy(u->e.d);

                json_object_set(d, "member", member);
                json_decref(u->e.d);
                u->e.d = d;
        }
        dc_event_read(&u->base.content, &context, &u->e);
        if (u->base.content.event_count > 0 && u->base.content.events->is_own) {
                /* the journal has it as message.sent */
                if (in->hooks.own && strcmp(u->e.type, "MESSAGE_CREATE") == 0)
                        in->hooks.own(in->hooks.ctx, u->e.d);
                u->base.content.event_count = 0;
                u->base.content.ignored = "done by the bot itself";
        } else if (u->base.content.event_count > 0 && dc_event_is_of_guild(u->e.type) &&
                   in->hooks.wrote && in->hooks.wrote(in->hooks.ctx, u->e.type, u->e.d)) {
                u->base.content.event_count = 0; /* the journal has it as delivery.sent */
                u->base.content.ignored = "changed by the bot itself";
        }
        if (u->base.content.event_count == 0) {
                log_debug("discord event ignored", LOG_S("adapter", in->o.adapter->name),
                          LOG_S("type", u->e.type), LOG_S("why", u->base.content.ignored));
                intake_skip(&u->base);
                return;
        }
        event = u->base.content.events;
        dc_cache_set_username(in->cache, event->sender_username, event->sender_id);
        intake_prepared(&u->base);
}

/* The channel is known. Looks up the member if Discord did not send it. */
static void find_member(struct dc_update *u)
{
        struct dc_intake *in = u->in;
        const char *user = dc_event_missing_member(u->e.type, u->e.d),
                   *guild = json_str(u->e.d, "guild_id", NULL);
        struct dc_channel_info info = { .type = -1 };
        json_t *member;

        dc_cache_channel(in->cache, u->base.chat, &info);
        guild = guild ? guild : info.guild;
        if (!user || (in->self && strcmp(user, in->self) == 0) || !dc_id_valid(guild)) {
                read_event(u, NULL);
                return;
        }
        member = dc_lookup_member(in->lookup, guild, user, u->base.order == INTAKE_BACKFILL);
        if (member) {
                read_event(u, member);
                return;
        }
        u->asked_guild = mem_strdup(guild);
        u->asked_user = mem_strdup(user);
}

void dc_intake_member_found(struct dc_intake *in, const char *guild, const char *user,
                            json_t *member)
{
        struct intake_update *base, *after;

        for (base = TAILQ_FIRST(&in->window.window); base; base = after) {
                struct dc_update *u = (struct dc_update *)base;

                after = TAILQ_NEXT(base, next);
                if (!u->asked_user || strcmp(u->asked_user, user) != 0 ||
                    strcmp(u->asked_guild, guild) != 0)
                        continue;
                free(u->asked_guild);
                free(u->asked_user);
                u->asked_guild = u->asked_user = NULL;
                read_event(u, member);
        }
}

void dc_intake_channel_found(struct dc_intake *in, const char *channel, bool known)
{
        struct intake_update *base, *after;

        for (base = TAILQ_FIRST(&in->window.window); base; base = after) {
                struct dc_update *u = (struct dc_update *)base;

                after = TAILQ_NEXT(base, next);
                if (u->channel_known || strcmp(base->chat, channel) != 0)
                        continue;
                u->channel_known = true;
                if (known)
                        find_member(u);
                else /* a missed message; its channel may be a DM */
                        intake_skip(base);
        }
}

static void add_update(struct dc_intake *in, struct dc_update *u, const struct dc_dispatch *e,
                       const char *channel)
{
        const char *guild = json_str(e->d, "guild_id", NULL);
        const json_t *embedded = json_object_get(e->d, "channel");

        u->in = in;
        u->e = *e;
        u->e.type = mem_strdup(e->type);
        u->e.session = mem_strdup(e->session);
        u->e.d = json_incref(e->d);
        u->base.chat = channel;
        if (is_interaction(u)) {
                u->base.order = INTAKE_URGENT;
                if (json_is_object(embedded))
                        dc_cache_add(in->cache, guild, embedded);
        }
        intake_add(&in->window, &u->base);
        if (dc_event_is_of_guild(e->type))
                u->channel_known = true;           /* there is none */
        else if (u->base.order == INTAKE_BACKFILL) /* a message does not say whether it is a DM */
                u->channel_known = dc_lookup_has_channel(in->lookup, channel, NULL);
        else
                u->channel_known =
                        !guild || dc_lookup_has_channel(in->lookup, channel,
                                                        is_interaction(u) ? NULL : guild);
        if (u->channel_known)
                find_member(u);
        else
                dc_lookup_channel(in->lookup, channel, guild);
}

static void on_done(struct intake_update *base, bool stored)
{
        struct dc_update *u = (struct dc_update *)base;
        struct dc_intake *in = u->in;
        const struct incoming *first = base->content.event_count > 0 ? base->content.events : NULL;

        if (stored && first && in->hooks.scheduled &&
            (strcmp(u->e.type, "GUILD_SCHEDULED_EVENT_CREATE") == 0 ||
             strcmp(u->e.type, "GUILD_CREATE") == 0))
                in->hooks.scheduled(in->hooks.ctx, first->guild, first->id != NULL);
        if (stored && first) {
                if (first->chat == CHAT_DM && !first->is_own && !first->sender_is_bot &&
                    first->sender_id && in->hooks.dm)
                        in->hooks.dm(in->hooks.ctx, first->sender_id, first->channel);
                if (is_interaction(u) && u->from_gateway && in->hooks.stored)
                        in->hooks.stored(in->hooks.ctx, u->e.d);
        }
        if (u->stored) {
                in->posts--;
                u->stored(u->stored_arg, stored);
        }
        if (u->from_gateway && stored && in->gateway)
                dc_gateway_committed(in->gateway, u->e.ticket);
}

static void on_free(struct intake_update *base)
{
        struct dc_update *u = (struct dc_update *)base;

        json_decref(u->e.d);
        free((char *)(uintptr_t)u->e.type);
        free((char *)(uintptr_t)u->e.session);
        free(u->asked_guild);
        free(u->asked_user);
        free(u);
}

/* ---- sources of updates ---- */

/* A message of another person in a DM. */
static bool is_of_dm(const struct dc_intake *in, const struct dc_dispatch *e)
{
        const char *author = json_str(json_object_get(e->d, "author"), "id", "");

        return strcmp(e->type, "MESSAGE_CREATE") == 0 && !json_object_get(e->d, "guild_id") &&
               !(in->self && strcmp(author, in->self) == 0);
}

/*
 * A new session lists the scheduled events of each guild: what was missed. An empty list tells
 * something only if there were any. Yours; NULL: nothing to tell.
 */
static json_t *take_scheduled(struct dc_intake *in, const json_t *guild)
{
        const struct dc_intake_hooks *h = &in->hooks;
        json_t *list = dc_scheduled_event_list_of(guild);
        const char *id = json_str(list, "guild_id", NULL);
        const json_t *events = json_object_get(list, "guild_scheduled_events");

        if (json_array_size(events) == 0 &&
            !(id && h->was_scheduled && h->was_scheduled(h->ctx, id))) {
                json_decref(list);
                return NULL;
        }
        dc_event_list_want(in->events, id, events);
        return list;
}

static void on_event(void *arg, const struct dc_dispatch *e)
{
        struct dc_intake *in = arg;
        bool introduces = strcmp(e->type, "GUILD_CREATE") == 0;
        json_t *scheduled = introduces ? take_scheduled(in, e->d) : NULL;
        const char *channel = dc_event_channel(e->type, scheduled ? scheduled : e->d);
        bool completion = strcmp(e->type, "INTERACTION_CREATE") == 0 &&
                          json_int(e->d, "type", 0) == DC_INTERACTION_AUTOCOMPLETE;
        struct dc_dispatch event = *e;
        struct dc_update *u;

        dc_cache_learn(in->cache, in->self, e->type, e->d);
        if (introduces)
                dc_catchup_guild(in->catchup, e->shard, e->d);
        if (strncmp(e->type, "GUILD_SCHEDULED_EVENT_USER_", 27) == 0)
                dc_event_list_touch(in->events, json_str(e->d, "guild_scheduled_event_id", ""));
        if (channel && is_of_dm(in, e)) /* what was written before must come first */
                dc_catchup_dm(in->catchup, channel, NULL);
        if (completion || !channel) {
                dc_gateway_committed(in->gateway, e->ticket);
                return;
        }
        if (scheduled) /* the rest of a guild may be large */
                event.d = scheduled;
        u = mem_zalloc(sizeof(*u));
        u->from_gateway = true;
        add_update(in, u, &event, channel);
        json_decref(scheduled);
}

void dc_intake_want_dms(struct dc_intake *in)
{
        struct intake_update *base;

        TAILQ_FOREACH(base, &in->window.window, next) {
                const struct dc_update *u = (const struct dc_update *)base;

                if (u->from_gateway && is_of_dm(in, &u->e))
                        dc_catchup_dm(in->catchup, base->chat, NULL);
        }
}

void dc_intake_post(struct dc_intake *in, const json_t *interaction,
                    void (*stored)(void *arg, bool ok), void *arg)
{
        const struct dc_dispatch e = { .type = "INTERACTION_CREATE",
                                       .d = (json_t *)(uintptr_t)interaction };
        const char *channel = dc_event_channel(e.type, interaction);
        struct dc_update *u;

        if (!channel || in->posts >= POSTS_MAX || !in->o.adapter->road) {
                stored(arg, false);
                return;
        }
        in->posts++;
        u = mem_zalloc(sizeof(*u));
        u->stored = stored;
        u->stored_arg = arg;
        u->base.sender_retries = true;
        add_update(in, u, &e, channel);
}

void dc_intake_missed(struct dc_intake *in, const char *channel, json_t *message)
{
        const struct dc_dispatch e = { .type = "MESSAGE_CREATE", .d = message };
        const char *named = dc_event_channel(e.type, message);
        struct dc_update *u;

        if (!named || strcmp(named, channel) != 0)
                return;
        u = mem_zalloc(sizeof(*u));
        u->base.order = INTAKE_BACKFILL;
        add_update(in, u, &e, named);
}

void dc_intake_members(struct dc_intake *in, json_t *members)
{
        const struct dc_dispatch e = { .type = DC_EVENT_MEMBERS, .d = members };
        struct dc_update *u = mem_zalloc(sizeof(*u));

        add_update(in, u, &e, dc_event_channel(e.type, members));
}

/* ---- the gateway ---- */

static void on_bot(void *arg, const struct dc_answer *a)
{
        struct dc_intake *in = arg;

        dc_gateway_bot(in->gateway, a->status, a->result, a->why);
}

static void on_ask(void *arg)
{
        struct dc_intake *in = arg;

        in->hooks.get(in->hooks.ctx, &(struct dc_get){ "/gateway/bot" }, on_bot, in);
}

static void on_ready(void *arg, const struct dc_gateway_ready *ready)
{
        struct dc_intake *in = arg;

        if (ready->user_id) {
                free(in->self);
                in->self = mem_strdup(ready->user_id);
        }
        in->hooks.ready(in->hooks.ctx, ready);
}

static void on_state(void *arg, enum dc_gateway_state state, const char *why)
{
        struct dc_intake *in = arg;

        in->hooks.state(in->hooks.ctx, state, why);
}

struct dc_intake *dc_intake_new(const struct dc_intake_options *o,
                                const struct dc_intake_hooks *hooks)
{
        static const struct intake_handlers handlers = { .done = on_done, .free = on_free };
        static const struct dc_gateway_handlers gateway_handlers = { .ask = on_ask,
                                                                     .event = on_event,
                                                                     .ready = on_ready,
                                                                     .gap = dc_catchup_gap,
                                                                     .behind = dc_catchup_hold,
                                                                     .state = on_state };
        struct dc_gateway_options gateway = o->gateway;
        struct dc_intake *in = mem_zalloc(sizeof(*in));

        in->o = *o;
        in->hooks = *hooks;
        in->cache = dc_cache_new();
        intake_open(&in->window, o->adapter, &handlers);
        in->lookup = dc_lookup_new(in);
        in->events = dc_event_list_new(in);
        in->catchup = dc_catchup_new(in);
        gateway.loop = o->adapter->loop;
        gateway.http = o->adapter->http;
        gateway.name = o->adapter->name;
        gateway.dir = o->adapter->dir;
        in->gateway = dc_gateway_new(&gateway, &gateway_handlers, in);
        return in;
}

void dc_intake_free(struct dc_intake *in)
{
        struct dc_gateway *gateway;

        if (!in)
                return;
        gateway = in->gateway;
        in->gateway = NULL; /* nothing is acknowledged from here on */
        dc_catchup_free(in->catchup);
        dc_event_list_free(in->events);
        intake_close(&in->window);
        dc_lookup_free(in->lookup);
        dc_gateway_free(gateway);
        dc_cache_free(in->cache);
        free(in->self);
        free(in);
}

bool dc_intake_channel(const struct dc_intake *in, const char *channel, struct dc_channel_info *out)
{
        return dc_cache_channel(in->cache, channel, out);
}

const char *dc_intake_user_named(const struct dc_intake *in, const char *username)
{
        return dc_cache_user_named(in->cache, username);
}
