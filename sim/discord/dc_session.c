/*
 * Sessions: which events they get, in which order, and what they store for a resume.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_session.h"

int64_t dc_session_application_flags(const struct bot *b)
{
        return (b->intents & INTENT_PRESENCES ? 1 << 13 : 0) |
               (b->intents & INTENT_MEMBERS ? 1 << 15 : 0) |
               (b->intents & INTENT_CONTENT ? 1 << 19 : 0);
}

struct session *dc_session_new(struct gateway *g, struct bot *b, uint64_t intents, int shard,
                               int shards)
{
        struct session *s = mem_zalloc(sizeof(*s));

        s->gateway = g;
        s->bot = b;
        s->intents = intents;
        s->shard = shard;
        s->shards = shards;
        id_trace(s->id);
        s->ring_n = (size_t)g->world->settings.replay;
        s->ring = mem_array(s->ring_n, sizeof(*s->ring));
        LIST_INSERT_HEAD(&g->sessions, s, next);
        return s;
}

void dc_session_free(struct session *s)
{
        if (!s)
                return;
        if (s->link)
                s->link->session = NULL;
        LIST_REMOVE(s, next);
        timer_free(s->expiry);
        for (size_t i = 0; i < s->ring_n; i++)
                free(s->ring[i].text);
        free(s->ring);
        free(s);
}

struct session *dc_session_find(struct gateway *g, const char *id)
{
        struct session *s;

        LIST_FOREACH(s, &g->sessions, next) {
                if (strcmp(s->id, id) == 0)
                        return s;
        }
        return NULL;
}

static void on_expired(void *arg)
{
        dc_session_free(arg);
}

void dc_session_lost(struct session *s)
{
        s->link = NULL;
        if (!s->expiry)
                s->expiry = timer_new(s->gateway->world->base.loop, on_expired, s);
        timer_start(s->expiry, s->gateway->world->settings.resume_ms);
}

/* ---- events ---- */

static struct sent *slot(const struct session *s, int64_t seq)
{
        return &s->ring[(size_t)seq % s->ring_n];
}

void dc_session_dispatch(struct session *s, const char *event, const char *d)
{
        struct sent *keep = slot(s, ++s->seq);
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "t", event);
        jsonw_int(&b, "s", s->seq);
        jsonw_int(&b, "op", 0);
        jsonw_raw(&b, "d", d);
        jsonw_close(&b, '}');
        s->gateway->world->event_count++;
        if (s->link)
                dc_gateway_send(s->link, b.data, b.len);
        free(keep->text);
        keep->seq = s->seq;
        keep->n = b.len;
        keep->text = buf_take(&b);
}

/* The bot is a member, and the guild belongs to this shard. */
static bool has_guild(const struct session *s, const struct guild *g)
{
        return (int)((g->id >> 22) % (uint64_t)s->shards) == s->shard &&
               dc_guild_member(g, s->bot->user->id);
}

static bool gets_event(const struct session *s, const struct gateway_event *t)
{
        const struct guild *g = t->channel ? t->channel->guild : t->guild;
        uint64_t intent = g ? t->guild_intent : t->dm_intent;

        if (t->bot && t->bot != s->bot)
                return false;
        if (intent && !(s->intents & intent))
                return false;
        if (!g && s->shard != 0)
                return false;
        if (g && !has_guild(s, g))
                return false;
        return !t->channel || (dc_channel_permissions(s->bot, t->channel) & MAY_VIEW);
}

/* Faults may drop or duplicate it. */
static void dispatch(struct session *s, const char *event, const char *d)
{
        struct faults *f = &s->gateway->world->base.faults;

        if (faults_fire(f, FAULT_DROP, event))
                return;
        dc_session_dispatch(s, event, d);
        if (faults_fire(f, FAULT_DUPLICATE, event))
                dc_session_dispatch(s, event, d);
}

unsigned dc_session_publish(struct world *w, const struct gateway_event *t, const char *d)
{
        struct session *s;
        unsigned count = 0;

        LIST_FOREACH(s, &w->gateway->sessions, next) {
                if (gets_event(s, t)) {
                        dispatch(s, t->event, d);
                        count++;
                }
        }
        return count;
}

/* Without the intent a bot gets only the text of messages addressed to it. */
static bool may_read(const struct session *s, const struct message *m)
{
        return (s->intents & INTENT_CONTENT) || !m->channel->guild || m->author == s->bot->user ||
               dc_message_mentions_user(m, s->bot->user->id);
}

unsigned dc_session_publish_message(struct world *w, const char *event, const struct message *m)
{
        struct gateway_event t = { .event = event,
                                   .channel = m->channel,
                                   .guild_intent = INTENT_MESSAGES,
                                   .dm_intent = INTENT_DM };
        struct session *s;
        unsigned count = 0;
        struct buf b;

        buf_init(&b, 0);
        LIST_FOREACH(s, &w->gateway->sessions, next) {
                unsigned how = RENDER_EVENT | RENDER_NONCE | (may_read(s, m) ? 0 : RENDER_SECRET);

                if (!gets_event(s, &t))
                        continue;
                buf_clear(&b);
                dc_render_message(&b, NULL, w, m, s->bot, how);
                dispatch(s, event, b.data);
                count++;
        }
        buf_release(&b);
        return count;
}

/* ---- identify and resume ---- */

static void write_ready(const struct session *s, struct buf *b)
{
        const struct gateway *gateway = s->gateway;
        char *resume = mem_printf("%s/resume", gateway->url);

        jsonw_open(b, '{');
        jsonw_int(b, "v", 10);
        dc_render_user(b, "user", s->bot->user);
        jsonw_str(b, "session_id", s->id);
        jsonw_str(b, "session_type", "normal");
        jsonw_str(b, "resume_gateway_url", resume);
        jsonw_open_member(b, "shard", '[');
        jsonw_int(b, NULL, s->shard);
        jsonw_int(b, NULL, s->shards);
        jsonw_close(b, ']');
        jsonw_open_member(b, "application", '{');
        dc_render_id(b, "id", s->bot->application_id);
        jsonw_int(b, "flags", dc_session_application_flags(s->bot));
        jsonw_close(b, '}');
        jsonw_open_member(b, "guilds", '[');
        for (const struct guild *g = gateway->world->first_guild; g; g = g->next) {
                if (!has_guild(s, g))
                        continue;
                jsonw_open(b, '{');
                dc_render_id(b, "id", g->id);
                jsonw_bool(b, "unavailable", true);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        jsonw_raw(b, "private_channels", "[]");
        jsonw_raw(b, "relationships", "[]");
        jsonw_raw(b, "presences", "[]");
        jsonw_raw(b, "user_settings", "{}");
        jsonw_raw(b, "geo_ordered_rtc_regions", "[]");
        jsonw_raw(b, "guild_join_requests", "[]");
        jsonw_raw(b, "_trace", "[\"dragoman-sim\"]");
        jsonw_close(b, '}');
        free(resume);
}

void dc_session_ready(struct session *s)
{
        struct buf b;

        buf_init(&b, 0);
        write_ready(s, &b);
        dc_session_dispatch(s, "READY", b.data);
        for (const struct guild *g = s->gateway->world->first_guild; g; g = g->next) {
                struct gateway_event t = { .guild = g, .guild_intent = INTENT_GUILDS };

                if (!gets_event(s, &t) || g->unavailable)
                        continue;
                buf_clear(&b);
                dc_render_guild(&b, g, s->bot, true);
                dispatch(s, "GUILD_CREATE", b.data);
        }
        buf_release(&b);
}

int dc_session_replay(struct session *s, int64_t seq)
{
        timer_free(s->expiry);
        s->expiry = NULL;
        for (int64_t at = seq + 1; at <= s->seq; at++) {
                if (slot(s, at)->seq != at)
                        return -1;
        }
        for (int64_t at = seq + 1; at <= s->seq; at++)
                dc_gateway_send(s->link, slot(s, at)->text, slot(s, at)->n);
        dc_session_dispatch(s, "RESUMED", "{\"_trace\":[\"dragoman-sim\"]}");
        return 0;
}
