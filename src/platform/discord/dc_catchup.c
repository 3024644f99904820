#include "platform/discord/dc_catchup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/adapters.h"
#include "platform/discord/discord.h"

#define AT_ONCE     4
#define PAGE        100
#define MARGIN_MS   60000  /* clocks differ */
#define TALE_MS     300000 /* after a gap, how long guilds may still be introduced */
#define HOLD_MS     30000  /* how long what happens now waits for what was missed */
#define DONE_MS     3000   /* after the last sign of something to read, it has ended */
#define TRIES       3
#define RECENT_DAYS 30
#define RECENT_MAX  500

/* One channel or thread that is read back. */
struct job {
        struct dc_catchup *c;
        char *place;
        char after[24];
        int64_t left;
        unsigned tries;
        bool running, held;
        bool earlier; /* of a gap before the last one */
        bool again;   /* and of the last one, too */
        TAILQ_ENTRY(job) next;
};

struct gap {
        bool open;
        int64_t since_ms; /* by Discord's clock */
        int64_t until_ms; /* by the loop's clock: guilds that are introduced later are new to us */
};

struct dc_catchup {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_intake *intake;
        dc_caught_up_fn *caught_up;
        void *caught_up_arg;
        int64_t seconds, messages;
        struct gap *gaps; /* by shard */
        unsigned gap_count;
        TAILQ_HEAD(, job) jobs; /* running ones and those that wait */
        unsigned running;
        struct map
                known; /* places looked at since the last gap; the value is their job, or ourselves when it is done */
        bool holds_all;
        bool incomplete;        /* some place could not be read: the next session tries again */
        struct timer *patience; /* holding ends */
        struct timer *end;      /* is there nothing left to read? */
        struct recent *recent;  /* being looked up */
        struct roll *roll;      /* guilds whose channels are asked for */
};

/* ---- life ---- */

struct dc_catchup *dc_catchup_new(const struct dc_inbound_options *o, const struct dc_inbound_hooks *hooks,
                                  struct dc_intake *intake, dc_caught_up_fn *caught_up, void *arg)
{
        struct dc_catchup *c = mem_zalloc(sizeof(*c));

        c->adapter = o->adapter;
        c->hooks = *hooks;
        c->intake = intake;
        c->caught_up = caught_up;
        c->caught_up_arg = arg;
        c->seconds = o->catchup_seconds;
        c->messages = o->catchup_messages;
        TAILQ_INIT(&c->jobs);
        map_init(&c->known);
        return c;
}

static void job_free(struct job *j)
{
        free(j->place);
        free(j);
}

static void job_end(struct job *j)
{
        struct dc_catchup *c = j->c;

        TAILQ_REMOVE(&c->jobs, j, next);
        if (j->running)
                c->running--;
        if (j->held)
                dc_intake_release(c->intake, j->place);
        if (j->earlier)
                map_remove(&c->known, j->place);
        else
                map_put(&c->known, j->place, c);
        job_free(j);
}

/* ---- reading back ---- */

static void pump(struct dc_catchup *c);
static void ask(struct job *j);

/* Discord has the newest first. */
static void take_page(struct job *j, const json_t *page)
{
        size_t n = json_array_size(page);

        for (size_t i = n; i-- > 0;)
                dc_intake_missed(j->c->intake, j->place, json_array_get(page, i));
        j->left -= (int64_t)n;
        if (n > 0)
                snprintf(j->after, sizeof(j->after), "%s", json_str(json_array_get(page, 0), "id", j->after));
}

static void on_page(void *arg, int status, json_t *body, const char *why)
{
        struct job *j = arg;
        struct dc_catchup *c = j->c;
        bool whole;

        if (status == 200 && json_is_array(body)) {
                whole = json_array_size(body) < PAGE;
                take_page(j, body);
                if (!whole && j->left > 0) {
                        ask(j);
                        return;
                }
                if (!whole)
                        log_warn("more was missed in a channel than is read back",
                                 LOG_S("adapter", c->adapter->name), LOG_S("channel", j->place),
                                 LOG_I("messages", c->messages));
        } else if ((status == 0 || status == 429 || status >= 500) && ++j->tries < TRIES) {
                ask(j);
                return;
        } else {
                c->incomplete = c->incomplete || status == 0 || status == 429 || status >= 500;
                log_info("what was missed in a channel cannot be read", LOG_S("adapter", c->adapter->name),
                         LOG_S("channel", j->place), LOG_S("why", why));
        }
        if (j->again) {
                j->again = false;
                j->left = c->messages;
                ask(j);
                return;
        }
        job_end(j);
        pump(c);
}

static void ask(struct job *j)
{
        int64_t n = j->left < PAGE ? j->left : PAGE;
        char *path = mem_printf("/channels/%s/messages?after=%s&limit=%" PRId64, j->place, j->after, n);

        j->c->hooks.get(j->c->hooks.ctx, path, on_page, j);
        free(path);
}

static void pump(struct dc_catchup *c)
{
        struct job *j;

        TAILQ_FOREACH(j, &c->jobs, next) {
                if (c->running >= AT_ONCE)
                        return;
                if (j->running)
                        continue;
                j->running = true;
                c->running++;
                ask(j);
        }
}

/* ---- the end ---- */

/* All of it is read and stored: after a restart nothing has to be read again. */
static void on_end(void *arg)
{
        struct dc_catchup *c = arg;

        if (!TAILQ_EMPTY(&c->jobs) || c->recent || c->roll || dc_intake_missing(c->intake) > 0) {
                timer_start(c->end, DONE_MS);
                return;
        }
        for (unsigned i = 0; i < c->gap_count; i++) {
                if (c->gaps[i].open && !c->incomplete)
                        c->caught_up(c->caught_up_arg, i);
                c->gaps[i].open = false;
        }
}

static void look_for_end(struct dc_catchup *c)
{
        if (!c->end)
                c->end = timer_new(c->adapter->loop, on_end, c);
        timer_start(c->end, DONE_MS);
}

/* Whatever happens now has waited long enough; the rest is read back all the same. */
static void on_patience(void *arg)
{
        struct dc_catchup *c = arg;
        struct job *j;

        TAILQ_FOREACH(j, &c->jobs, next) {
                if (j->held)
                        dc_intake_release(c->intake, j->place);
                j->held = false;
        }
}

static void want(struct dc_catchup *c, const char *place, int64_t since_ms)
{
        void *known = map_get(&c->known, place);
        struct job *j = known != c ? known : NULL;

        if (j && j->earlier) { /* what it reads may be older than the last gap: once more */
                j->earlier = false;
                j->again = true;
        }
        if (known)
                return;
        j = mem_zalloc(sizeof(*j));
        map_put(&c->known, place, j);
        j->c = c;
        j->place = mem_strdup(place);
        j->left = c->messages;
        j->held = true;
        dc_id_at(since_ms, j->after);
        dc_intake_hold(c->intake, place);
        TAILQ_INSERT_TAIL(&c->jobs, j, next);
        if (!c->patience)
                c->patience = timer_new(c->adapter->loop, on_patience, c);
        if (!timer_active(c->patience))
                timer_start(c->patience, HOLD_MS);
}

/* ---- channels of recent conversations ---- */

struct recent {
        struct dc_catchup *c; /* NULL: nobody wants to know any more */
        char *adapter;
        int64_t from_ms, since_ms;
        char places[RECENT_MAX][24];
        size_t count;
};

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

static int read_recent(struct store_tx *tx, void *arg, struct error *err)
{
        struct recent *r = arg;
        struct store_stmt *s =
                store_prepare(tx, "SELECT COALESCE(thread, channel), MAX(active_ms) FROM conversations"
                                  " WHERE adapter = ? AND active_ms >= ? GROUP BY 1 ORDER BY 2 DESC"
                                  " LIMIT 500");
        int rc;

        r->count = 0;
        store_bind_text(s, 1, r->adapter);
        store_bind_int(s, 2, r->from_ms);
        while ((rc = store_step(s, err)) == 1) {
                const char *place = store_col_text(s, 0);

                if (r->count < RECENT_MAX && dc_is_id(place))
                        snprintf(r->places[r->count++], sizeof(r->places[0]), "%s", place);
        }
        return rc;
}

static void on_recent(void *arg, const struct error *err)
{
        struct recent *r = arg;
        struct dc_catchup *c = r->c;

        if (c && err)
                log_warn("cannot look up the recent conversations", LOG_S("adapter", c->adapter->name),
                         LOG_S("why", err->text));
        if (c) {
                c->recent = NULL;
                for (size_t i = 0; !err && i < r->count; i++)
                        want(c, r->places[i], r->since_ms);
                release_all(c);
                pump(c);
        }
        free(r->adapter);
        free(r);
}

static void look_up_recent(struct dc_catchup *c, int64_t since_ms)
{
        struct recent *r;

        if (!c->adapter->all || !c->adapter->all->store) {
                release_all(c);
                return;
        }
        if (c->recent)
                return;
        hold_all(c);
        r = c->recent = mem_zalloc(sizeof(*r));
        r->c = c;
        r->adapter = mem_strdup(c->adapter->name);
        r->since_ms = since_ms;
        r->from_ms = clock_wall_ms() - (int64_t)RECENT_DAYS * 86400000;
        store_read(c->adapter->all->store, read_recent, on_recent, r);
}

/* ---- gaps ---- */

/* Every place may have to be looked at again. */
static void forget_known(struct dc_catchup *c)
{
        struct job *j;

        map_release(&c->known);
        map_init(&c->known);
        TAILQ_FOREACH(j, &c->jobs, next) {
                j->earlier = true;
                map_put(&c->known, j->place, j);
        }
}

void dc_catchup_gap(struct dc_catchup *c, unsigned shard, int64_t since_ms)
{
        int64_t now = clock_wall_ms(), from = since_ms - MARGIN_MS;

        if (since_ms <= 0 || c->seconds == 0 || c->messages == 0) {
                release_all(c);
                return;
        }
        if (from < now - c->seconds * 1000)
                from = now - c->seconds * 1000;
        if (shard >= c->gap_count) {
                c->gaps = mem_realloc(c->gaps, (shard + 1) * sizeof(*c->gaps));
                memset(c->gaps + c->gap_count, 0, (shard + 1 - c->gap_count) * sizeof(*c->gaps));
                c->gap_count = shard + 1;
        }
        c->gaps[shard] = (struct gap){ .open = true,
                                       .since_ms = from,
                                       .until_ms = loop_now_ms(c->adapter->loop) + TALE_MS };
        c->incomplete = false;
        look_for_end(c);
        forget_known(c);
        log_info("a session of Discord was lost; what was missed is read back",
                 LOG_S("adapter", c->adapter->name), LOG_I("shard", shard),
                 LOG_I("seconds", (now - from) / 1000));
        if (shard == 0) /* DMs are there */
                look_up_recent(c, from);
}

void dc_catchup_behind(struct dc_catchup *c)
{
        hold_all(c);
}

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

                if (dc_is_id(id) && has_messages(json_int(channel, "type", 0)) &&
                    dc_id_time_ms(newest) >= since_ms)
                        want(c, id, since_ms);
        }
}

void dc_catchup_guild(struct dc_catchup *c, unsigned shard, const json_t *guild)
{
        const struct gap *gap = shard < c->gap_count ? &c->gaps[shard] : NULL;

        if (!gap || loop_now_ms(c->adapter->loop) > gap->until_ms)
                return;
        if (gap->open)
                look_for_end(c);
        look_at(c, json_object_get(guild, "channels"), gap->since_ms);
        look_at(c, json_object_get(guild, "threads"), gap->since_ms);
        pump(c);
}

/* ---- guilds nobody has introduced ---- */

struct roll {
        struct dc_catchup *c;
        int64_t since_ms;
        json_t *guilds;
        size_t next;
};

static void roll_free(struct roll *r)
{
        if (!r)
                return;
        json_decref(r->guilds);
        free(r);
}

static void next_guild(struct roll *r);

static void on_channels(void *arg, int status, json_t *body, const char *why)
{
        struct roll *r = arg;
        struct dc_catchup *c = r->c;

        if (status == 200) {
                look_at(c, body, r->since_ms);
                pump(c);
        } else {
                c->incomplete = c->incomplete || status == 0 || status == 429 || status >= 500;
                log_info("the channels of a guild cannot be listed", LOG_S("adapter", c->adapter->name),
                         LOG_S("why", why));
        }
        next_guild(r);
}

static void next_guild(struct roll *r)
{
        const char *id = NULL;
        char *path;

        while (!id && r->next < json_array_size(r->guilds))
                id = json_str(json_array_get(r->guilds, r->next++), "id", NULL);
        if (!dc_is_id(id)) {
                r->c->roll = NULL;
                roll_free(r);
                return;
        }
        path = mem_printf("/guilds/%s/channels", id);
        r->c->hooks.get(r->c->hooks.ctx, path, on_channels, r);
        free(path);
}

static void on_guilds(void *arg, int status, json_t *body, const char *why)
{
        struct roll *r = arg;

        if (status == 200) {
                r->guilds = json_incref(body);
        } else {
                r->c->incomplete = true;
                log_info("the bot's guilds cannot be listed", LOG_S("adapter", r->c->adapter->name),
                         LOG_S("why", why));
        }
        next_guild(r);
}

void dc_catchup_unseen(struct dc_catchup *c, unsigned shard)
{
        if (c->roll || shard >= c->gap_count || !c->gaps[shard].open)
                return;
        c->roll = mem_zalloc(sizeof(*c->roll));
        c->roll->c = c;
        c->roll->since_ms = c->gaps[shard].since_ms;
        c->hooks.get(c->hooks.ctx, "/users/@me/guilds", on_guilds, c->roll);
}

void dc_catchup_free(struct dc_catchup *c)
{
        struct job *j;

        if (!c)
                return;
        if (c->recent)
                c->recent->c = NULL;
        roll_free(c->roll);
        while ((j = TAILQ_FIRST(
                        &c->jobs))) { /* nothing is released: whatever is held is told again after the restart */
                TAILQ_REMOVE(&c->jobs, j, next);
                job_free(j);
        }
        timer_free(c->patience);
        timer_free(c->end);
        map_release(&c->known);
        free(c->gaps);
        free(c);
}
