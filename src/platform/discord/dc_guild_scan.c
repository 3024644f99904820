#include "platform/discord/dc_guild_scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_readback.h"
#include "platform/discord/dc_rest.h"
#include "platform/discord/dc_route.h"

#define PAGE 200 /* the most Discord lists at once */

/* What is asked now. */
enum roll_state { ROLL_OVER, ROLL_GUILDS, ROLL_CHANNELS, ROLL_THREADS, ROLL_WAITING };

struct dc_roll {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_roll_owner owner;
        struct dc_catchup_times times;
        enum roll_state state;
        char guilds[PAGE][DC_ID_SIZE];
        size_t count, next;
        char after[DC_ID_SIZE]; /* the page before ended there */
        bool last;              /* no page follows */
        unsigned tries;
        struct timer *later; /* Discord was unwell */
        bool failed;
};

static void pose(struct dc_roll *r);

static void enter(struct dc_roll *r, enum roll_state state)
{
        r->state = state;
        r->tries = 0;
        if (state == ROLL_OVER)
                r->owner.over(r->owner.arg);
        else if (state != ROLL_WAITING)
                pose(r);
}

static const char *guild(const struct dc_roll *r)
{
        return r->guilds[r->next];
}

static void next_guild(struct dc_roll *r)
{
        while (r->next < r->count && !r->owner.wants(r->owner.arg, guild(r)))
                r->next++;
        if (r->next == r->count)
                enter(r, r->last ? ROLL_OVER : ROLL_GUILDS);
        else
                enter(r, r->owner.has_room(r->owner.arg) ? ROLL_CHANNELS : ROLL_WAITING);
}

static void take_guilds(struct dc_roll *r, const json_t *page)
{
        r->count = r->next = 0;
        r->last = json_array_size(page) < PAGE;
        for (size_t i = 0; i < json_array_size(page) && r->count < PAGE; i++) {
                const char *id = json_str(json_array_get(page, i), "id", NULL);

                if (dc_is_id(id))
                        snprintf(r->guilds[r->count++], DC_ID_SIZE, "%s", id);
        }
        if (r->count > 0)
                snprintf(r->after, sizeof(r->after), "%s", r->guilds[r->count - 1]);
        r->last = r->last || r->count == 0;
}

/* What was asked is answered, or will not be. */
static void proceed(struct dc_roll *r, const json_t *body)
{
        switch (r->state) {
        case ROLL_GUILDS:
                take_guilds(r, body);
                next_guild(r);
                break;
        case ROLL_CHANNELS:
                r->owner.places(r->owner.arg, guild(r), body);
                enter(r, ROLL_THREADS);
                break;
        case ROLL_THREADS:
                r->owner.places(r->owner.arg, guild(r), json_object_get(body, "threads"));
                r->next++;
                next_guild(r);
                break;
        default:
                break;
        }
}

static void on_answer(void *arg, int status, json_t *body, const char *why)
{
        struct dc_roll *r = arg;
        int64_t wait = DC_UNWELL(status) ? dc_readback_wait_ms(&r->times, r->tries++) : -1;

        if (wait >= 0) {
                timer_start(r->later, wait);
                return;
        }
        if (status != 200) {
                r->failed = r->failed || DC_UNWELL(status);
                log_info("Discord does not tell where something may have been missed",
                         LOG_S("adapter", r->adapter->name),
                         LOG_S("guild", r->state == ROLL_GUILDS ? "all" : guild(r)),
                         LOG_S("why", why));
        }
        proceed(r, status == 200 ? body : NULL);
}

static char *path_of(const struct dc_roll *r)
{
        if (r->state == ROLL_GUILDS)
                return mem_printf("/users/@me/guilds?limit=%d&after=%s", PAGE, r->after);
        return mem_printf("/guilds/%s/%s", guild(r),
                          r->state == ROLL_CHANNELS ? "channels" : "threads/active");
}

static void pose(struct dc_roll *r)
{
        char *path = path_of(r);

        r->hooks.get_later(r->hooks.ctx, path, on_answer, r);
        free(path);
}

static void on_later(void *arg)
{
        pose(arg);
}

void dc_roll_begin(struct dc_roll *r)
{
        if (r->state != ROLL_OVER)
                return;
        snprintf(r->after, sizeof(r->after), "0"); /* by their ids, from the first */
        enter(r, ROLL_GUILDS);
}

void dc_roll_go_on(struct dc_roll *r)
{
        if (r->state == ROLL_WAITING)
                next_guild(r);
}

bool dc_roll_is_over(const struct dc_roll *r)
{
        return r->state == ROLL_OVER;
}

bool dc_roll_take_failed(struct dc_roll *r)
{
        bool failed = r->failed;

        r->failed = false;
        return failed;
}

/* ---- life ---- */

struct dc_roll *dc_roll_new(const struct dc_inbound_options *o,
                            const struct dc_inbound_hooks *hooks, const struct dc_roll_owner *owner)
{
        struct dc_roll *r = mem_zalloc(sizeof(*r));

        r->adapter = o->adapter;
        r->times = o->catchup_times;
        r->hooks = *hooks;
        r->owner = *owner;
        r->later = timer_new(o->adapter->loop, on_later, r);
        return r;
}

void dc_roll_free(struct dc_roll *r)
{
        if (!r)
                return;
        timer_free(r->later);
        free(r);
}
