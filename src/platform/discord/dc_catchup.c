#include "platform/discord/dc_catchup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_scheduled_event.h"
#include "platform/recent_chats.h"

#define MARGIN_MS    60000 /* clocks differ */
#define INTRODUCE_MS 300000
#define DONE_MS      3000
#define AGAIN_MS     300000 /* the next attempt, after Discord was unavailable */
#define GUILD_PAGE   200    /* Discord's maximum */

/* How the channels of a shard's guilds become known. */
enum guild_source {
        GUILDS_INTRODUCED, /* by the gateway, or they have been listed */
        GUILDS_TO_LIST,
        GUILDS_LISTING,
};

struct gap {
        bool open;
        enum guild_source source;
        int64_t since_ms; /* by Discord's clock */
        int64_t until_ms; /* loop time */
};

struct guild_scan {
        enum scan_state {
                SCAN_IDLE,
                SCAN_GUILDS,
                SCAN_CHANNELS,
                SCAN_THREADS,
                SCAN_EVENTS,
                SCAN_WAITING
        } state;
        char guilds[GUILD_PAGE][DC_ID_SIZE];
        size_t count, next;
        char after[DC_ID_SIZE]; /* of the last page */
        bool last;
        unsigned tries;
        struct timer *retry;
};

struct dc_catchup {
        struct dc_intake *in;
        struct gap *gaps; /* by shard */
        unsigned gap_count, shards;
        struct readback *readback;
        struct guild_scan scan;
        struct dc_dm_scan *dms;
        struct recent_chats *recent; /* NULL: none */
        int64_t recent_before;       /* below this id; 0: none */
        int64_t recent_since_ms;
        bool holds_all;
        bool failed;
        bool again; /* start over */
        struct timer *timer;
};

static struct gap *find_gap(const struct dc_catchup *c, unsigned shard)
{
        return shard < c->gap_count ? &c->gaps[shard] : NULL;
}

void dc_catchup_hold(void *intake)
{
        struct dc_catchup *c = ((struct dc_intake *)intake)->catchup;

        if (!c->holds_all)
                intake_hold(&c->in->window, INTAKE_EVERYWHERE);
        c->holds_all = true;
}

static void release_all(struct dc_catchup *c)
{
        if (c->holds_all)
                intake_release(&c->in->window, INTAKE_EVERYWHERE);
        c->holds_all = false;
}

/* ---- recent conversations ---- */

static void read_recent_page(struct dc_catchup *c);

static void on_recent(void *arg, const struct recent_chat *chats, size_t count, int64_t before,
                      const struct error *err)
{
        struct dc_catchup *c = arg;

        c->recent = NULL;
        c->recent_before = before;
        c->failed = c->failed || err;
        for (size_t i = 0; i < count; i++) { /* a thread is a channel of its own */
                const char *id = chats[i].thread[0] ? chats[i].thread : chats[i].channel;

                if (dc_id_valid(id))
                        dc_readback_want(c->readback, id, c->recent_since_ms);
        }
        release_all(c);
        read_recent_page(c);
}

static void read_recent_page(struct dc_catchup *c)
{
        if (!c->recent && c->recent_before != 0 && readback_load(c->readback) < READBACK_CROWDED)
                c->recent = recent_chats_read(c->in->o.adapter, c->recent_before, on_recent, c);
}

static void begin_recent(struct dc_catchup *c, int64_t since_ms)
{
        if (!c->in->o.adapter->store) {
                release_all(c);
                return;
        }
        dc_catchup_hold(c->in);
        c->recent_since_ms = since_ms;
        recent_chats_drop(c->recent); /* of an earlier gap: start over */
        c->recent = NULL;
        c->recent_before = INT64_MAX;
        read_recent_page(c);
        if (!c->recent) /* there is no room now */
                release_all(c);
}

/* ---- guilds that the gateway introduces ---- */

/* Null is an empty channel; a server that leaves the member out says nothing. */
static bool may_have_missed(const json_t *channel, int64_t since_ms)
{
        const json_t *last = json_object_get(channel, "last_message_id");

        return !last || dc_id_time_ms(json_string_value(last)) >= since_ms;
}

static void want_channels(struct dc_catchup *c, const json_t *channels, int64_t since_ms)
{
        const json_t *channel;
        size_t i;

        json_array_foreach(channels, i, channel) {
                const char *id = json_str(channel, "id", NULL);
                int64_t type = json_int(channel, "type", 0);

                if (dc_id_valid(id) && type != DC_TYPE_CATEGORY && type != DC_TYPE_FORUM &&
                    type != DC_TYPE_MEDIA && may_have_missed(channel, since_ms))
                        dc_readback_want(c->readback, id, since_ms);
        }
}

void dc_catchup_dm(struct dc_catchup *c, const char *channel, const json_t *dm)
{
        const struct gap *gap = find_gap(c, 0);

        if (!gap || loop_now_ms(c->in->o.adapter->loop) > gap->until_ms ||
            readback_load(c->readback) == READBACK_FULL ||
            (dm && !may_have_missed(dm, gap->since_ms)))
                return;
        dc_readback_want(c->readback, channel, gap->since_ms);
}

static void begin_scan(struct dc_catchup *c);

void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild)
{
        struct gap *gap = find_gap(c, shard);

        if (!gap || loop_now_ms(c->in->o.adapter->loop) > gap->until_ms)
                return;
        if (gap->open)
                timer_start(c->timer, c->in->o.catchup_times.done_ms);
        if (gap->open && readback_load(c->readback) == READBACK_FULL) {
                gap->source = GUILDS_TO_LIST;
                begin_scan(c);
                return;
        }
        want_channels(c, json_object_get(guild, "channels"), gap->since_ms);
        want_channels(c, json_object_get(guild, "threads"), gap->since_ms);
}

/* ---- guilds listed by REST ---- */

/* The gap of the guild's shard, while its guilds are listed; NULL: none. */
static const struct gap *find_scanned_gap(const struct dc_catchup *c, const char *guild)
{
        const struct gap *gap = c->shards > 0 ? find_gap(c, dc_id_shard(guild, c->shards)) : NULL;

        return gap && gap->open && gap->source == GUILDS_LISTING ? gap : NULL;
}

static void on_listed(void *arg, const struct dc_answer *a);

static void send_scan_query(void *catchup)
{
        struct dc_catchup *c = catchup;
        struct guild_scan *s = &c->scan;
        struct dc_get q = { "/users/@me/guilds", .idle = true };
        char query[60];

        if (s->state == SCAN_GUILDS) {
                snprintf(query, sizeof(query), "limit=%d&after=%s", GUILD_PAGE, s->after);
                q.query = query;
        } else {
                q.route = s->state == SCAN_CHANNELS  ? "/guilds/{guild_id}/channels"
                          : s->state == SCAN_THREADS ? "/guilds/{guild_id}/threads/active"
                                                     : "/guilds/{guild_id}/scheduled-events";
                q.args[0] = s->guilds[s->next];
        }
        c->in->hooks.get(c->in->hooks.ctx, &q, on_listed, c);
}

static void enter_scan(struct dc_catchup *c, enum scan_state state)
{
        c->scan.state = state;
        c->scan.tries = 0;
        if (state == SCAN_IDLE) {
                for (unsigned i = 0; i < c->gap_count; i++)
                        if (c->gaps[i].source == GUILDS_LISTING)
                                c->gaps[i].source = GUILDS_INTRODUCED;
                begin_scan(c); /* for shards that came too late */
        } else if (state != SCAN_WAITING) {
                send_scan_query(c);
        }
}

/* Lists the guilds of all shards that need it. */
static void begin_scan(struct dc_catchup *c)
{
        bool any = false;

        if (c->scan.state != SCAN_IDLE)
                return;
        for (unsigned i = 0; i < c->gap_count; i++) {
                if (c->gaps[i].source != GUILDS_TO_LIST)
                        continue;
                c->gaps[i].source = GUILDS_LISTING;
                any = true;
        }
        if (!any)
                return;
        snprintf(c->scan.after, sizeof(c->scan.after), "0");
        enter_scan(c, SCAN_GUILDS);
}

static void scan_next_guild(struct dc_catchup *c)
{
        struct guild_scan *s = &c->scan;

        while (s->next < s->count && !find_scanned_gap(c, s->guilds[s->next]))
                s->next++;
        if (s->next == s->count)
                enter_scan(c, s->last ? SCAN_IDLE : SCAN_GUILDS);
        else if (readback_load(c->readback) < READBACK_CROWDED)
                enter_scan(c, SCAN_CHANNELS);
        else
                enter_scan(c, SCAN_WAITING);
}

static bool had_events(const struct dc_catchup *c, const char *guild)
{
        const struct dc_intake_hooks *h = &c->in->hooks;

        return h->was_scheduled && h->was_scheduled(h->ctx, guild);
}

static void on_listed(void *arg, const struct dc_answer *a)
{
        struct dc_catchup *c = arg;
        struct guild_scan *s = &c->scan;
        bool unavailable = dc_rest_is_unavailable(a);
        int64_t wait = unavailable ? dc_readback_wait_ms(c->in, s->tries++) : -1;
        const json_t *body = a->status == 200 ? a->result : NULL;
        const char *guild = s->state == SCAN_GUILDS ? "all" : s->guilds[s->next];
        const struct gap *gap = s->state == SCAN_GUILDS ? NULL : find_scanned_gap(c, guild);

        if (wait >= 0) {
                timer_start(s->retry, wait);
                return;
        }
        if (!body) {
                c->failed = c->failed || unavailable;
                log_info("cannot list channels for catch-up",
                         LOG_S("adapter", c->in->o.adapter->name), LOG_S("guild", guild),
                         LOG_S("why", a->why));
        }
        if (s->state == SCAN_GUILDS) {
                s->count = s->next = 0;
                for (size_t i = 0; i < json_array_size(body) && s->count < GUILD_PAGE; i++) {
                        const char *id = json_str(json_array_get(body, i), "id", NULL);

                        if (dc_id_valid(id))
                                snprintf(s->guilds[s->count++], DC_ID_SIZE, "%s", id);
                }
                if (s->count > 0)
                        snprintf(s->after, sizeof(s->after), "%s", s->guilds[s->count - 1]);
                s->last = json_array_size(body) < GUILD_PAGE || s->count == 0;
                scan_next_guild(c);
        } else if (s->state == SCAN_CHANNELS) {
                if (gap)
                        want_channels(c, body, gap->since_ms);
                enter_scan(c, SCAN_THREADS);
        } else if (s->state == SCAN_THREADS) {
                if (gap)
                        want_channels(c, json_object_get(body, "threads"), gap->since_ms);
                if (had_events(c, guild)) {
                        enter_scan(c, SCAN_EVENTS);
                        return;
                }
                s->next++;
                scan_next_guild(c);
        } else {
                if (gap)
                        dc_event_list_want(c->in->events, guild, body);
                s->next++;
                scan_next_guild(c);
        }
}

void dc_catchup_continue(struct dc_catchup *c)
{
        read_recent_page(c);
        if (c->scan.state == SCAN_WAITING)
                scan_next_guild(c);
}

void dc_catchup_gap(void *intake, const struct dc_gateway_ready *ready, int64_t since_ms)
{
        struct dc_catchup *c = ((struct dc_intake *)intake)->catchup;
        const struct dc_intake_options *o = &c->in->o;
        int64_t now = clock_wall_ms(), from = since_ms - MARGIN_MS;
        struct gap *gap = find_gap(c, ready->shard);
        unsigned shard = ready->shard;
        struct dc_gateway_stats stats;

        if (ready->resumed && gap && gap->open) { /* catch-up is running */
                if (!c->recent)
                        release_all(c);
                return;
        }
        if (since_ms <= 0 || o->catchup_seconds == 0 || o->catchup_messages == 0) {
                release_all(c);
                return;
        }
        if (from < now - o->catchup_seconds * 1000)
                from = now - o->catchup_seconds * 1000;
        if (from < ready->first_ms) /* there was no session to miss it */
                from = ready->first_ms;
        dc_gateway_stats(c->in->gateway, &stats);
        c->shards = stats.shards;
        if (shard >= c->gap_count) {
                c->gaps = mem_realloc(c->gaps, (shard + 1) * sizeof(*c->gaps));
                memset(c->gaps + c->gap_count, 0, (shard + 1 - c->gap_count) * sizeof(*c->gaps));
                c->gap_count = shard + 1;
        }
        c->gaps[shard] = (struct gap){ .open = true,
                                       .since_ms = from,
                                       .until_ms = loop_now_ms(o->adapter->loop) +
                                                   o->catchup_times.introduce_ms };
        timer_start(c->timer, o->catchup_times.done_ms);
        readback_restart(c->readback);
        log_info("discord session lost; reading back missed messages",
                 LOG_S("adapter", o->adapter->name), LOG_I("shard", shard),
                 LOG_I("seconds", (now - from) / 1000));
        if (shard == 0) { /* the shard with the DMs */
                dc_intake_want_dms(c->in);
                begin_recent(c, from);
                dc_dm_scan_begin(c->dms);
        } else if (!c->recent) { /* nothing else would release */
                release_all(c);
        }
        if (ready->resumed) { /* the gateway introduces no guilds */
                c->gaps[shard].source = GUILDS_TO_LIST;
                begin_scan(c);
        }
}

static void on_timer(void *arg)
{
        struct dc_catchup *c = arg;
        bool failed;

        if (c->again) { /* retry what was given up */
                c->again = false;
                for (unsigned i = 0; i < c->gap_count; i++)
                        if (c->gaps[i].open)
                                c->gaps[i].source = GUILDS_TO_LIST;
                if (c->gap_count > 0 && c->gaps[0].open) {
                        begin_recent(c, c->gaps[0].since_ms);
                        dc_dm_scan_begin(c->dms);
                }
                begin_scan(c);
        }
        if (readback_load(c->readback) != READBACK_IDLE || c->recent_before != 0 || c->recent ||
            c->scan.state != SCAN_IDLE || !dc_dm_scan_is_over(c->dms) ||
            !dc_event_list_is_idle(c->in->events)) {
                timer_start(c->timer, c->in->o.catchup_times.done_ms);
                return;
        }
        failed = readback_take_failed(c->readback) || c->failed;
        failed = dc_dm_scan_take_failed(c->dms) || failed;
        failed = dc_event_list_take_failed(c->in->events) || failed;
        c->failed = false;
        if (failed) {
                log_info("catch-up incomplete; retrying", LOG_S("adapter", c->in->o.adapter->name),
                         LOG_I("inMs", c->in->o.catchup_times.again_ms));
                c->again = true;
                timer_start(c->timer, c->in->o.catchup_times.again_ms);
                return;
        }
        for (unsigned i = 0; i < c->gap_count; i++) {
                if (c->gaps[i].open)
                        dc_gateway_caught_up(c->in->gateway, i);
                c->gaps[i].open = false;
        }
}

struct dc_catchup *dc_catchup_new(struct dc_intake *in)
{
        struct dc_catchup *c = mem_zalloc(sizeof(*c));
        struct dc_catchup_times *times = &in->o.catchup_times;

        if (times->done_ms <= 0)
                times->done_ms = DONE_MS;
        if (times->again_ms <= 0)
                times->again_ms = AGAIN_MS;
        if (times->introduce_ms <= 0)
                times->introduce_ms = INTRODUCE_MS;
        c->in = in;
        c->readback = dc_readback_new(in);
        c->dms = dc_dm_scan_new(in);
        c->scan.retry = timer_new(in->o.adapter->loop, send_scan_query, c);
        c->timer = timer_new(in->o.adapter->loop, on_timer, c);
        return c;
}

void dc_catchup_free(struct dc_catchup *c)
{
        if (!c)
                return;
        recent_chats_drop(c->recent);
        timer_free(c->scan.retry);
        dc_dm_scan_free(c->dms);
        readback_free(c->readback);
        timer_free(c->timer);
        free(c->gaps);
        free(c);
}
