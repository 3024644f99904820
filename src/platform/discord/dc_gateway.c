#include "platform/discord/dc_gateway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap_trim.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/settings.h"
#include "net/backoff.h"
#include "platform/discord/dc_shard.h"

#define SHARDS_MAX 1000
#define BUDGET_MS  60000 /* how long an answer stays valid */
#define DAY_MS     86400000
#define LOW_PART   100 /* 1/100 of the budget stays in reserve */

/* ---- intents ---- */

/* flags: of the application, which grant a privileged intent. */
/* clang-format off */
static const struct {
        const char *name;
        unsigned bit;
        int64_t flags;
        const char *portal_name;
} intent_rows[] = {
        { "GUILDS", 0 },
        { "GUILD_MEMBERS", 1, 3 << 14, "Server Members Intent" },
        { "GUILD_MODERATION", 2 },
        { "GUILD_EXPRESSIONS", 3 },
        { "GUILD_INTEGRATIONS", 4 },
        { "GUILD_WEBHOOKS", 5 },
        { "GUILD_INVITES", 6 },
        { "GUILD_VOICE_STATES", 7 },
        { "GUILD_PRESENCES", 8, 3 << 12, "Presence Intent" },
        { "GUILD_MESSAGES", 9 },
        { "GUILD_MESSAGE_REACTIONS", 10 },
        { "GUILD_MESSAGE_TYPING", 11 },
        { "DIRECT_MESSAGES", 12 },
        { "DIRECT_MESSAGE_REACTIONS", 13 },
        { "DIRECT_MESSAGE_TYPING", 14 },
        { "MESSAGE_CONTENT", 15, 3 << 18, "Message Content Intent" },
        { "GUILD_SCHEDULED_EVENTS", 16 },
        { "AUTO_MODERATION_CONFIGURATION", 20 },
        { "AUTO_MODERATION_EXECUTION", 21 },
        { "GUILD_MESSAGE_POLLS", 24 },
        { "DIRECT_MESSAGE_POLLS", 25 },
};
/* clang-format on */

unsigned dc_gateway_intent(const char *name)
{
        for (size_t i = 0; i < COUNT(intent_rows); i++)
                if (strcmp(intent_rows[i].name, name) == 0)
                        return 1u << intent_rows[i].bit;
        return 0;
}

const char *dc_gateway_nearest_intent(const char *name)
{
        const char *names[COUNT(intent_rows) + 1] = { NULL };

        for (size_t i = 0; i < COUNT(intent_rows); i++)
                names[i] = intent_rows[i].name;
        return settings_nearest(name, names);
}

static size_t list_missing(unsigned intents, int64_t flags, char *out, size_t size)
{
        size_t at = 0;

        for (size_t i = COUNT(intent_rows); i-- > 0;)
                if (intent_rows[i].flags && (intents & 1u << intent_rows[i].bit) &&
                    !(flags & intent_rows[i].flags))
                        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " and " : "",
                                               intent_rows[i].portal_name);
        return at;
}

void dc_gateway_missing_intents(unsigned intents, int64_t flags, char *out, size_t size)
{
        /* flags that grant everything are outdated */
        if (list_missing(intents, flags, out, size) == 0 &&
            list_missing(intents, 0, out, size) == 0)
                snprintf(out, size, "privileged intents");
}

static void unref(struct dc_gateway *g)
{
        if (--g->refs > 0)
                return;
        free(g->shards);
        free(g->waiting);
        free(g->slots);
        free(g->url);
        free((char *)(uintptr_t)g->o.name);
        free((char *)(uintptr_t)g->o.dir);
        free((char *)(uintptr_t)g->o.url);
        free((char *)(uintptr_t)g->o.compress);
        free(g);
}

void dc_gateway_shard_up(struct dc_gateway *g, const struct dc_gateway_ready *ready,
                         int64_t since_ms)
{
        unsigned up = 0;

        g->refs++;
        g->on.ready(g->arg, ready);
        if (!g->freed && (!ready->resumed || since_ms > 0))
                g->on.gap(g->arg, ready, since_ms);
        while (up < g->count && g->shards[up]->state == SHARD_UP)
                up++;
        if (!g->freed && up == g->count && up > 0) {
                timer_stop(g->grace);
                if (g->reported != DC_GATEWAY_UP) {
                        g->reported = DC_GATEWAY_UP;
                        g->on.state(g->arg, DC_GATEWAY_UP, NULL);
                }
        }
        unref(g);
}

static void report_lost(void *arg)
{
        struct dc_gateway *g = arg;

        g->reported = DC_GATEWAY_LOST;
        g->on.state(g->arg, DC_GATEWAY_LOST, g->why);
}

void dc_gateway_shard_lost(struct dc_gateway *g, const char *why)
{
        if (g->freed || g->stopped)
                return;
        snprintf(g->why, sizeof(g->why), "%.199s", why);
        if (g->reported != DC_GATEWAY_UP)
                report_lost(g);
        else if (!timer_active(g->grace))
                timer_start(g->grace, g->o.times.grace_ms);
}

void dc_gateway_stop(struct dc_gateway *g, enum dc_gateway_state state, const char *why)
{
        if (g->stopped)
                return;
        g->stopped = true;
        timer_stop(g->timer);
        sleep_watch_stop(g->watch);
        timer_stop(g->grace);
        for (unsigned i = 0; i < g->count; i++)
                dc_shard_stop(g->shards[i]);
        g->on.state(g->arg, state, why);
}

/* ---- permission to identify ---- */

/* From the loop, so that no shard identifies inside a callback of another. */
static void want_pump(struct dc_gateway *g)
{
        if (!g->stopped && !g->freed)
                timer_start(g->timer, 0);
}

void dc_gateway_want_identify(struct dc_gateway *g, unsigned shard)
{
        for (unsigned i = 0; i < g->waiting_count; i++)
                if (g->waiting[i] == shard)
                        return;
        g->waiting[g->waiting_count++] = shard;
        want_pump(g);
}

void dc_gateway_end_identify(struct dc_gateway *g, unsigned shard, bool sent)
{
        struct dc_identify_slot *slot = &g->slots[shard % g->concurrency];

        if (slot->holder != g->shards[shard])
                return;
        slot->holder = NULL;
        if (sent)
                slot->next_ms = loop_now_ms(g->o.loop) + g->o.times.identify_ms;
        else
                g->remaining++;
        want_pump(g);
}

/* Discord resets the token of a bot that exceeds its session budget. */
static bool defer_for_budget(struct dc_gateway *g)
{
        int64_t now = loop_now_ms(g->o.loop);
        char why[200];

        if (g->remaining > g->total / LOW_PART || now >= g->reset_at_ms)
                return false;
        snprintf(why, sizeof(why),
                 "only %" PRId64 " of %" PRId64 " sessions a day are left; waiting %" PRId64
                 " minutes, because Discord resets the token beyond them",
                 g->remaining, g->total, (g->reset_at_ms - now) / 60000 + 1);
        g->asked_ms = -1;
        g->retry_at_ms = g->reset_at_ms;
        timer_start(g->timer, g->reset_at_ms - now);
        dc_gateway_shard_lost(g, why);
        return true;
}

static void grant_slots(struct dc_gateway *g)
{
        int64_t now = loop_now_ms(g->o.loop), next = INT64_MAX;
        unsigned i = 0;

        while (i < g->waiting_count) {
                unsigned shard = g->waiting[i];
                struct dc_identify_slot *slot = &g->slots[shard % g->concurrency];

                if (defer_for_budget(g))
                        return;
                if (slot->holder || now < slot->next_ms) {
                        if (!slot->holder && slot->next_ms < next)
                                next = slot->next_ms;
                        i++;
                        continue;
                }
                slot->holder = g->shards[shard];
                memmove(&g->waiting[i], &g->waiting[i + 1],
                        (g->waiting_count - i - 1) * sizeof(*g->waiting));
                g->waiting_count--;
                g->remaining--;
                dc_shard_connect(g->shards[shard], g->url);
        }
        if (next < INT64_MAX)
                timer_start(g->timer, next - now);
}

/* ---- the answer to /gateway/bot ---- */

static unsigned clamp_shards(int64_t n)
{
        return (unsigned)(n < 1 ? 1 : n > SHARDS_MAX ? SHARDS_MAX : n);
}

void dc_gateway_bot(struct dc_gateway *g, int status, const json_t *body, const char *why)
{
        const json_t *limit = json_object_get(body, "session_start_limit");
        int64_t now = loop_now_ms(g->o.loop), reset_after = json_int(limit, "reset_after", 0), wait;

        g->asking = false;
        if (g->stopped || g->freed)
                return;
        if (status == 401) {
                dc_gateway_stop(g, DC_GATEWAY_BAD_TOKEN, "Discord does not know this bot token");
                return;
        }
        if (status != 200 || !(g->o.url || json_str(body, "url", NULL))) {
                wait = backoff_full_jitter_ms(g->failures++, g->o.times.backoff_ms,
                                              g->o.times.backoff_max_ms);
                g->retry_at_ms = now + wait;
                timer_start(g->timer, wait);
                dc_gateway_shard_lost(g, why ? why : "Discord does not name its gateway");
                return;
        }
        free(g->url);
        g->url = mem_strdup(g->o.url ? g->o.url : json_str(body, "url", NULL));
        g->total = json_int(limit, "total", 1000);
        g->remaining = json_int(limit, "remaining", g->total);
        g->reset_at_ms = now + (reset_after < 0 ? 0 : reset_after > DAY_MS ? DAY_MS : reset_after);
        g->asked_ms = now;
        g->failures = 0;
        want_pump(g);
        if (g->count > 0)
                return;
        g->count = clamp_shards(g->o.shards > 0 ? g->o.shards : json_int(body, "shards", 1));
        g->concurrency = clamp_shards(json_int(limit, "max_concurrency", 1));
        g->shards = mem_array(g->count, sizeof(struct dc_shard *));
        g->waiting = mem_array(g->count, sizeof(*g->waiting));
        g->slots = mem_array(g->concurrency, sizeof(*g->slots));
        log_info("discord shards", LOG_S("adapter", g->o.name), LOG_I("count", g->count),
                 LOG_I("atOnce", g->concurrency));
        for (unsigned i = 0; i < g->count; i++)
                g->shards[i] = dc_shard_new(g, i, g->count);
        for (unsigned i = 0; i < g->count; i++)
                dc_shard_start(g->shards[i]);
}

static void pump(void *arg)
{
        struct dc_gateway *g = arg;
        int64_t now = loop_now_ms(g->o.loop);
        bool stale = g->asked_ms < 0 || now - g->asked_ms > BUDGET_MS;

        if (g->asking || (g->count > 0 && g->waiting_count == 0))
                return;
        if (now < g->retry_at_ms) {
                timer_start(g->timer, g->retry_at_ms - now);
        } else if (g->count == 0 || stale) {
                g->asking = true;
                g->on.ask(g->arg);
        } else {
                grant_slots(g);
        }
}

/* ---- sleep and memory ---- */

static void on_slept(void *arg)
{
        struct dc_gateway *g = arg;

        for (unsigned i = 0; i < g->count; i++)
                if (g->shards[i]->state == SHARD_UP)
                        dc_shard_renew(g->shards[i], "the machine was asleep");
}

static void trim_on_pool(void *arg)
{
        (void)arg;
        heap_trim_freed();
}

static void do_nothing(void *arg)
{
        (void)arg;
}

/* Handling a guild takes ten times its size, which may be megabytes. */
static void on_trim(void *gateway)
{
        loop_work(((struct dc_gateway *)gateway)->o.loop, trim_on_pool, do_nothing, NULL);
}

struct dc_gateway *dc_gateway_new(const struct dc_gateway_options *o,
                                  const struct dc_gateway_handlers *handlers, void *arg)
{
        struct dc_gateway *g = mem_zalloc(sizeof(*g));
        struct dc_gateway_times *t = &g->o.times;
        const struct {
                int64_t *at, otherwise;
        } defaults[] = {
                { &t->hello_ms, 20000 },   { &t->ready_ms, 60000 },       { &t->backoff_ms, 1000 },
                { &t->identify_ms, 5000 }, { &t->backoff_max_ms, 60000 }, { &t->invalid_ms, 5000 },
                { &t->save_ms, 1000 },     { &t->suspend_ms, 60000 },     { &t->grace_ms, 5000 },
                { &t->stable_ms, 60000 },
        };

        g->o = *o;
        g->o.name = mem_strdup(o->name);
        g->o.dir = mem_strdup(o->dir);
        g->o.url = mem_strdup(o->url);
        g->o.compress = mem_strdup(o->compress);
        g->o.wall_ms = o->wall_ms ? o->wall_ms : clock_wall_ms;
        for (size_t i = 0; i < COUNT(defaults); i++)
                if (*defaults[i].at <= 0)
                        *defaults[i].at = defaults[i].otherwise;
        g->on = *handlers;
        g->arg = arg;
        g->refs = 1;
        g->asked_ms = -1;
        g->counted.ping_ms = -1;
        g->timer = timer_new(o->loop, pump, g);
        g->watch = sleep_watch_new(o->loop, g->o.times.suspend_ms, g->o.wall_ms, on_slept, g);
        g->grace = timer_new(o->loop, report_lost, g);
        g->trimming = timer_new(o->loop, on_trim, g);
        want_pump(g);
        return g;
}

void dc_gateway_free(struct dc_gateway *g)
{
        if (!g || g->freed)
                return;
        g->freed = true;
        for (unsigned i = 0; i < g->count; i++)
                dc_shard_free(g->shards[i]);
        g->count = 0;
        timer_free(g->timer);
        sleep_watch_free(g->watch);
        timer_free(g->grace);
        timer_free(g->trimming);
        unref(g);
}

void dc_gateway_committed(struct dc_gateway *g, uint64_t ticket)
{
        uint64_t shard = ticket >> DC_TICKET_SHARD;

        if (shard < g->count)
                dc_shard_committed(g->shards[shard],
                                   ticket & ((UINT64_C(1) << DC_TICKET_SHARD) - 1));
}

void dc_gateway_caught_up(struct dc_gateway *g, unsigned shard)
{
        if (shard < g->count)
                dc_session_caught_up(&g->shards[shard]->session);
}

void dc_gateway_stats(const struct dc_gateway *g, struct dc_gateway_stats *out)
{
        *out = g->counted;
        out->shards = g->count;
        for (unsigned i = 0; i < g->count; i++) {
                const struct dc_shard *s = g->shards[i];
                int64_t ping_ms = dc_connection_ping_ms(s->connection);

                out->uncommitted += s->session.window.open;
                out->ready += s->state == SHARD_UP;
                if (ping_ms > out->ping_ms)
                        out->ping_ms = ping_ms;
        }
}
