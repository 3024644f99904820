#include "platform/discord/dc_guild_scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_readback.h"

#define PAGE 200 /* Discord's maximum */

/* What is being fetched. */
enum scan_state { SCAN_IDLE, SCAN_GUILDS, SCAN_CHANNELS, SCAN_THREADS, SCAN_WAITING };

struct dc_guild_scan {
        struct adapter *adapter;
        struct dc_intake_hooks hooks;
        struct dc_guild_scan_owner owner;
        struct dc_catchup_times times;
        enum scan_state state;
        char guilds[PAGE][DC_ID_SIZE];
        size_t count, next;
        char after[DC_ID_SIZE]; /* the last id of the page before */
        bool last;              /* no page follows */
        unsigned tries;
        struct timer *retry;
        bool failed;
};

static void on_answer(void *arg, const struct dc_answer *a);

static void send_query(void *scan)
{
        struct dc_guild_scan *s = scan;
        struct dc_get q = { "/users/@me/guilds", .idle = true };
        char query[60];

        if (s->state == SCAN_GUILDS) {
                snprintf(query, sizeof(query), "limit=%d&after=%s", PAGE, s->after);
                q.query = query;
        } else {
                q.route = s->state == SCAN_CHANNELS ? "/guilds/{guild_id}/channels"
                                                    : "/guilds/{guild_id}/threads/active";
                q.args[0] = s->guilds[s->next];
        }
        s->hooks.get(s->hooks.ctx, &q, on_answer, s);
}

static void enter(struct dc_guild_scan *s, enum scan_state state)
{
        s->state = state;
        s->tries = 0;
        if (state == SCAN_IDLE)
                s->owner.done(s->owner.arg);
        else if (state != SCAN_WAITING)
                send_query(s);
}

static void next_guild(struct dc_guild_scan *s)
{
        while (s->next < s->count && !s->owner.wants(s->owner.arg, s->guilds[s->next]))
                s->next++;
        if (s->next == s->count)
                enter(s, s->last ? SCAN_IDLE : SCAN_GUILDS);
        else
                enter(s, s->owner.has_room(s->owner.arg) ? SCAN_CHANNELS : SCAN_WAITING);
}

static void take_guilds(struct dc_guild_scan *s, const json_t *page)
{
        s->count = s->next = 0;
        for (size_t i = 0; i < json_array_size(page) && s->count < PAGE; i++) {
                const char *id = json_str(json_array_get(page, i), "id", NULL);

                if (dc_id_valid(id))
                        snprintf(s->guilds[s->count++], DC_ID_SIZE, "%s", id);
        }
        if (s->count > 0)
                snprintf(s->after, sizeof(s->after), "%s", s->guilds[s->count - 1]);
        s->last = json_array_size(page) < PAGE || s->count == 0;
}

static void on_answer(void *arg, const struct dc_answer *a)
{
        struct dc_guild_scan *s = arg;
        bool unavailable = dc_rest_is_unavailable(a);
        int64_t wait = unavailable ? dc_readback_wait_ms(&s->times, s->tries++) : -1;
        const json_t *body = a->status == 200 ? a->result : NULL;
        const char *guild = s->state == SCAN_GUILDS ? "all" : s->guilds[s->next];

        if (wait >= 0) {
                timer_start(s->retry, wait);
                return;
        }
        if (!body) {
                s->failed = s->failed || unavailable;
                log_info("cannot list channels for catch-up", LOG_S("adapter", s->adapter->name),
                         LOG_S("guild", guild), LOG_S("why", a->why));
        }
        if (s->state == SCAN_GUILDS) {
                take_guilds(s, body);
                next_guild(s);
        } else if (s->state == SCAN_CHANNELS) {
                s->owner.channels(s->owner.arg, guild, body);
                enter(s, SCAN_THREADS);
        } else {
                s->owner.channels(s->owner.arg, guild, json_object_get(body, "threads"));
                s->next++;
                next_guild(s);
        }
}

void dc_guild_scan_begin(struct dc_guild_scan *s)
{
        if (s->state != SCAN_IDLE)
                return;
        snprintf(s->after, sizeof(s->after), "0");
        enter(s, SCAN_GUILDS);
}

void dc_guild_scan_continue(struct dc_guild_scan *s)
{
        if (s->state == SCAN_WAITING)
                next_guild(s);
}

bool dc_guild_scan_is_idle(const struct dc_guild_scan *s)
{
        return s->state == SCAN_IDLE;
}

bool dc_guild_scan_take_failed(struct dc_guild_scan *s)
{
        bool failed = s->failed;

        s->failed = false;
        return failed;
}

struct dc_guild_scan *dc_guild_scan_new(const struct dc_intake_options *o,
                                        const struct dc_intake_hooks *hooks,
                                        const struct dc_guild_scan_owner *owner)
{
        struct dc_guild_scan *s = mem_zalloc(sizeof(*s));

        s->adapter = o->adapter;
        s->times = o->catchup_times;
        s->hooks = *hooks;
        s->owner = *owner;
        s->retry = timer_new(o->adapter->loop, send_query, s);
        return s;
}

void dc_guild_scan_free(struct dc_guild_scan *s)
{
        if (!s)
                return;
        timer_free(s->retry);
        free(s);
}
