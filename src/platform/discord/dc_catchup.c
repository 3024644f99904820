#include "platform/discord/dc_catchup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/adapters.h"
#include "platform/discord/dc_guild_scan.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_readback.h"
#include "platform/discord/discord.h"

#define MARGIN_MS   60000  /* clocks differ */
#define TALE_MS     300000 /* after a gap, how long guilds may still be introduced */
#define DONE_MS     3000   /* after the last sign of something to read, it has ended */
#define AGAIN_MS    300000 /* after Discord could not tell all of it */
#define RECENT_DAYS 30
#define RECENT_PAGE 500

/* How the places of a shard's guilds are found. */
enum sight {
        SEEN,    /* the gateway introduces its guilds, or they have been called */
        UNSEEN,  /* they are to be called */
        CALLING, /* they are being called */
};

struct gap {
        bool open;
        enum sight sight;
        int64_t since_ms; /* by Discord's clock */
        int64_t until_ms; /* by the loop's clock: guilds that are introduced later are new to us */
};

struct dc_catchup {
        struct adapter *adapter;
        struct dc_intake *intake;
        dc_caught_up_fn *caught_up;
        void *caught_up_arg;
        int64_t seconds, messages, done_ms, again_ms;
        struct gap *gaps; /* by shard */
        unsigned gap_count, shards;
        struct dc_readback *readback;
        struct dc_guild_scan *scan;
        struct recent *recent; /* conversations are being looked up; NULL: they are not */
        int64_t recent_before; /* those with smaller numbers are still to be looked up; 0: none */
        int64_t recent_since_ms;
        bool holds_all;
        bool failed;       /* somebody could not tell what may be missing */
        bool again;        /* all of it is to be tried once more */
        struct timer *end; /* is there nothing left to read? */
};

static const struct gap *gap_of(const struct dc_catchup *c, unsigned shard)
{
        return shard < c->gap_count ? &c->gaps[shard] : NULL;
}

/* ---- everything waits ---- */

/* Whatever happens anywhere waits until we know which places have to wait. */
static void hold_all(struct dc_catchup *c)
{
        if (!c->holds_all)
                dc_intake_hold(c->intake, DC_EVERYWHERE);
        c->holds_all = true;
}

static void release_all(struct dc_catchup *c)
{
        if (c->holds_all)
                dc_intake_release(c->intake, DC_EVERYWHERE);
        c->holds_all = false;
}

void dc_catchup_behind(struct dc_catchup *c)
{
        hold_all(c);
}

/* ---- channels of recent conversations ---- */

struct recent {
        struct dc_catchup *c; /* NULL: nobody wants to know any more */
        char *adapter;
        int64_t from_ms, before;
        char places[RECENT_PAGE][24];
        size_t count;
        int64_t last; /* the smallest number of this page; 0: there is no further page */
};

/* The newest first, by a number that stays as it is while the conversations go on. */
static int read_recent(struct store_tx *tx, void *arg, struct error *err)
{
        struct recent *r = arg;
        struct store_stmt *s = store_prepare(
                tx, "SELECT id, COALESCE(thread, channel) FROM conversations"
                    " WHERE adapter = ? AND active_ms >= ? AND id < ? ORDER BY id DESC LIMIT ?");
        size_t rows = 0;
        int rc;

        r->count = 0;
        store_bind_text(s, 1, r->adapter);
        store_bind_int(s, 2, r->from_ms);
        store_bind_int(s, 3, r->before);
        store_bind_int(s, 4, RECENT_PAGE);
        while ((rc = store_step(s, err)) == 1) {
                const char *place = store_col_text(s, 1);

                r->last = store_col_int(s, 0);
                rows++;
                if (r->count < RECENT_PAGE && dc_id_valid(place))
                        snprintf(r->places[r->count++], sizeof(r->places[0]), "%s", place);
        }
        if (rows < RECENT_PAGE)
                r->last = 0;
        return rc;
}

static void look_up_recent(struct dc_catchup *c);

static void on_recent(void *arg, const struct error *err)
{
        struct recent *r = arg;
        struct dc_catchup *c = r->c;

        if (c && err)
                log_warn("cannot look up the recent conversations",
                         LOG_S("adapter", c->adapter->name), LOG_S("why", err->text));
        if (c) {
                c->recent = NULL;
                c->recent_before = err ? 0 : r->last;
                c->failed = c->failed || err;
                for (size_t i = 0; !err && i < r->count; i++)
                        dc_readback_want(c->readback, r->places[i], c->recent_since_ms);
                release_all(c);
                look_up_recent(c);
        }
        free(r->adapter);
        free(r);
}

/* The next page, when there is room for it. */
static void look_up_recent(struct dc_catchup *c)
{
        struct recent *r;

        if (c->recent || c->recent_before == 0 || !dc_readback_has_room(c->readback))
                return;
        r = c->recent = mem_zalloc(sizeof(*r));
        r->c = c;
        r->adapter = mem_strdup(c->adapter->name);
        r->before = c->recent_before;
        r->from_ms = clock_wall_ms() - (int64_t)RECENT_DAYS * 86400000;
        store_read(c->adapter->all->store, read_recent, on_recent, r);
}

static void begin_recent(struct dc_catchup *c, int64_t since_ms)
{
        if (!c->adapter->all || !c->adapter->all->store) {
                release_all(c);
                return;
        }
        hold_all(c);
        c->recent_since_ms = since_ms;
        if (c->recent) { /* a page of an earlier gap: all of them once more */
                c->recent->c = NULL;
                c->recent = NULL;
        }
        c->recent_before = INT64_MAX;
        look_up_recent(c);
        if (!c->recent) /* there is no room now */
                release_all(c);
}

/* ---- places with news ---- */

static bool has_messages(int64_t type)
{
        return type != DC_TYPE_CATEGORY && type != DC_TYPE_FORUM && type != DC_TYPE_MEDIA;
}

static void look_at(struct dc_catchup *c, const json_t *channels, int64_t since_ms)
{
        const json_t *channel;
        size_t i;

        json_array_foreach(channels, i, channel) {
                const char *id = json_str(channel, "id", NULL),
                           *newest = json_str(channel, "last_message_id", NULL);

                if (dc_id_valid(id) && has_messages(json_int(channel, "type", 0)) &&
                    dc_id_time_ms(newest) >= since_ms)
                        dc_readback_want(c->readback, id, since_ms);
        }
}

/* ---- guilds nobody has introduced ---- */

/* Calls the guilds of all shards that want it. */
static void begin_roll(struct dc_catchup *c)
{
        bool any = false;

        if (!dc_guild_scan_is_idle(c->scan))
                return; /* on_over follows */
        for (unsigned i = 0; i < c->gap_count; i++) {
                if (c->gaps[i].sight != UNSEEN)
                        continue;
                c->gaps[i].sight = CALLING;
                any = true;
        }
        if (any)
                dc_guild_scan_begin(c->scan);
}

/*
 * The gap of the shard that has this guild, while its guilds are called; NULL: it is none of them.
 */
static const struct gap *gap_of_guild(const struct dc_catchup *c, const char *guild)
{
        uint64_t id = strtoull(guild, NULL, 10);
        const struct gap *gap =
                c->shards > 0 ? gap_of(c, (unsigned)((id >> 22) % c->shards)) : NULL;

        return gap && gap->open && gap->sight == CALLING ? gap : NULL;
}

static bool on_wants(void *arg, const char *guild)
{
        return gap_of_guild(arg, guild) != NULL;
}

static bool on_has_room(void *arg)
{
        return dc_readback_has_room(((struct dc_catchup *)arg)->readback);
}

static void on_places(void *arg, const char *guild, const json_t *places)
{
        struct dc_catchup *c = arg;
        const struct gap *gap = gap_of_guild(c, guild);

        if (gap)
                look_at(c, places, gap->since_ms);
}

/* Shards that came too late for this roll have their own. */
static void on_over(void *arg)
{
        struct dc_catchup *c = arg;

        for (unsigned i = 0; i < c->gap_count; i++)
                if (c->gaps[i].sight == CALLING)
                        c->gaps[i].sight = SEEN;
        begin_roll(c);
}

/* ---- gaps ---- */

static struct gap *gap_at(struct dc_catchup *c, unsigned shard)
{
        if (shard >= c->gap_count) {
                c->gaps = mem_realloc(c->gaps, (shard + 1) * sizeof(*c->gaps));
                memset(c->gaps + c->gap_count, 0, (shard + 1 - c->gap_count) * sizeof(*c->gaps));
                c->gap_count = shard + 1;
        }
        return &c->gaps[shard];
}

void dc_catchup_gap(struct dc_catchup *c, unsigned shard, unsigned shards, int64_t since_ms)
{
        int64_t now = clock_wall_ms(), from = since_ms - MARGIN_MS;

        if (since_ms <= 0 || c->seconds == 0 || c->messages == 0) {
                release_all(c);
                return;
        }
        if (from < now - c->seconds * 1000)
                from = now - c->seconds * 1000;
        c->shards = shards;
        *gap_at(c, shard) = (struct gap){ .open = true,
                                          .since_ms = from,
                                          .until_ms = loop_now_ms(c->adapter->loop) + TALE_MS };
        timer_start(c->end, c->done_ms);
        dc_readback_restart(c->readback);
        log_info("a session of Discord was lost; what was missed is read back",
                 LOG_S("adapter", c->adapter->name), LOG_I("shard", shard),
                 LOG_I("seconds", (now - from) / 1000));
        if (shard == 0) /* DMs are there */
                begin_recent(c, from);
        else if (!c->recent) /* nothing would end the waiting */
                release_all(c);
}

static void call_guilds(struct dc_catchup *c, unsigned shard)
{
        c->gaps[shard].sight = UNSEEN;
        begin_roll(c);
}

void dc_catchup_resumed(struct dc_catchup *c, unsigned shard, unsigned shards, int64_t since_ms)
{
        const struct gap *gap = gap_of(c, shard);

        if (gap && gap->open) {
                if (!c->recent)
                        release_all(c);
                return;
        }
        dc_catchup_gap(c, shard, shards, since_ms);
        gap = gap_of(c, shard);
        if (gap && gap->open)
                call_guilds(c, shard);
}

void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild)
{
        const struct gap *gap = gap_of(c, shard);

        if (!gap || loop_now_ms(c->adapter->loop) > gap->until_ms)
                return;
        if (gap->open)
                timer_start(c->end, c->done_ms);
        if (gap->open && dc_readback_is_full(c->readback)) {
                call_guilds(c, shard); /* when there is room again */
                return;
        }
        look_at(c, json_object_get(guild, "channels"), gap->since_ms);
        look_at(c, json_object_get(guild, "threads"), gap->since_ms);
}

static void on_room(void *arg)
{
        struct dc_catchup *c = arg;

        look_up_recent(c);
        dc_guild_scan_continue(c->scan);
}

/* ---- the end ---- */

static bool is_over(const struct dc_catchup *c)
{
        return dc_readback_is_idle(c->readback) && c->recent_before == 0 && !c->recent &&
               dc_guild_scan_is_idle(c->scan);
}

static bool has_failed(struct dc_catchup *c)
{
        bool failed = dc_readback_take_failed(c->readback);

        failed = dc_guild_scan_take_failed(c->scan) || failed || c->failed;
        c->failed = false;
        return failed;
}

/* Everything that is open is looked at once more: what was given up is wanted again. */
static void begin_again(struct dc_catchup *c)
{
        c->again = false;
        for (unsigned i = 0; i < c->gap_count; i++)
                if (c->gaps[i].open)
                        c->gaps[i].sight = UNSEEN;
        if (c->gap_count > 0 && c->gaps[0].open)
                begin_recent(c, c->gaps[0].since_ms);
        begin_roll(c);
}

/* All of it is read and stored: after a restart nothing has to be read again. */
static void close_gaps(struct dc_catchup *c)
{
        for (unsigned i = 0; i < c->gap_count; i++) {
                if (c->gaps[i].open)
                        c->caught_up(c->caught_up_arg, i);
                c->gaps[i].open = false;
        }
}

static void on_end(void *arg)
{
        struct dc_catchup *c = arg;

        if (c->again)
                begin_again(c);
        if (!is_over(c)) {
                timer_start(c->end, c->done_ms);
        } else if (has_failed(c)) {
                log_info("not everything that was missed could be read back; it is tried again",
                         LOG_S("adapter", c->adapter->name), LOG_I("inMs", c->again_ms));
                c->again = true;
                timer_start(c->end, c->again_ms);
        } else {
                close_gaps(c);
        }
}

/* ---- life ---- */

struct dc_catchup *dc_catchup_new(const struct dc_inbound_options *o,
                                  const struct dc_inbound_hooks *hooks, struct dc_intake *intake,
                                  dc_caught_up_fn *caught_up, void *arg)
{
        struct dc_catchup *c = mem_zalloc(sizeof(*c));
        const struct dc_guild_scan_owner owner = { .arg = c,
                                                   .wants = on_wants,
                                                   .has_room = on_has_room,
                                                   .channels = on_places,
                                                   .done = on_over };

        c->adapter = o->adapter;
        c->intake = intake;
        c->caught_up = caught_up;
        c->caught_up_arg = arg;
        c->seconds = o->catchup_seconds;
        c->messages = o->catchup_messages;
        c->done_ms = o->catchup_times.done_ms > 0 ? o->catchup_times.done_ms : DONE_MS;
        c->again_ms = o->catchup_times.again_ms > 0 ? o->catchup_times.again_ms : AGAIN_MS;
        c->readback = dc_readback_new(o, hooks, intake, on_room, c);
        c->scan = dc_guild_scan_new(o, hooks, &owner);
        c->end = timer_new(o->adapter->loop, on_end, c);
        return c;
}

void dc_catchup_free(struct dc_catchup *c)
{
        if (!c)
                return;
        if (c->recent)
                c->recent->c = NULL;
        dc_guild_scan_free(c->scan);
        dc_readback_free(c->readback);
        timer_free(c->end);
        free(c->gaps);
        free(c);
}
