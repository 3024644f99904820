#include "platform/discord/dc_readback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define AT_ONCE     4
#define PAGE        100
#define HOLD_MS     30000 /* how long what happens now waits for what was missed */
#define TRIES       10    /* about five minutes */
#define WAIT_MS     250
#define WAIT_MAX_MS 60000
#define UNSTORED    500 /* messages; beyond it nothing more is read until they are stored */
#define STORING_MS  100 /* how often to look whether they are */
#define PLACES_LOW  200
#define PLACES_MAX  5000
#define KNOWN_MAX   50000 /* places remembered as read; to read one twice only costs */

/* One channel or thread. */
struct job {
        struct dc_readback *r;
        char *place;
        char after[24];
        int64_t left, asked;
        unsigned tries;
        struct timer *later; /* Discord was unwell, or the intake is busy */
        bool running, held;
        bool failed;  /* it was given up */
        bool earlier; /* of a gap before the last one */
        bool again;   /* and of the last one, too */
        TAILQ_ENTRY(job) next;
};

struct dc_readback {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_intake *intake;
        void (*room)(void *arg);
        void *room_arg;
        int64_t messages;
        struct dc_catchup_times times;
        TAILQ_HEAD(, job) jobs; /* running ones and those that wait */
        size_t count, running;
        /* places of the last gap; the value is their job, or ourselves when they have been read */
        struct map known;
        bool crowded;           /* `room` is to be told */
        bool failed;            /* some place could not be read */
        struct timer *patience; /* holding ends */
};

static void pump(struct dc_readback *r);
static void ask(struct job *j);

/* ---- life ---- */

struct dc_readback *dc_readback_new(const struct dc_inbound_options *o,
                                    const struct dc_inbound_hooks *hooks, struct dc_intake *intake,
                                    void (*room)(void *arg), void *arg)
{
        struct dc_readback *r = mem_zalloc(sizeof(*r));

        r->adapter = o->adapter;
        r->hooks = *hooks;
        r->intake = intake;
        r->room = room;
        r->room_arg = arg;
        r->messages = o->catchup_messages;
        r->times = o->catchup_times;
        TAILQ_INIT(&r->jobs);
        map_init(&r->known);
        return r;
}

static void job_free(struct job *j)
{
        timer_free(j->later);
        free(j->place);
        free(j);
}

void dc_readback_free(struct dc_readback *r)
{
        struct job *j, *after;

        if (!r)
                return;
        for (j = TAILQ_FIRST(&r->jobs); j;
             /* nothing is released: whatever is held is told again after the restart */
             j = after) {
                after = TAILQ_NEXT(j, next);
                job_free(j);
        }
        timer_free(r->patience);
        map_release(&r->known);
        free(r);
}

/* ---- one place ---- */

static void job_end(struct job *j)
{
        struct dc_readback *r = j->r;

        TAILQ_REMOVE(&r->jobs, j, next);
        r->count--;
        r->running--;
        if (j->held)
                dc_intake_release(r->intake, j->place);
        if (j->earlier || j->failed)
                map_remove(&r->known, j->place);
        else
                map_put(&r->known, j->place, r);
        job_free(j);
        pump(r);
}

/* It is read, or given up; but perhaps a gap has opened meanwhile. */
static void read_through(struct job *j)
{
        if (!j->again) {
                job_end(j);
                return;
        }
        j->again = j->failed = false;
        j->left = j->r->messages;
        j->tries = 0;
        ask(j);
}

static void on_later(void *arg)
{
        ask(arg);
}

static void ask_later(struct job *j, int64_t ms)
{
        if (!j->later)
                j->later = timer_new(j->r->adapter->loop, on_later, j);
        timer_start(j->later, ms);
}

/* Discord has the newest first. */
static void take_page(struct job *j, const json_t *page)
{
        size_t n = json_array_size(page);

        for (size_t i = n; i-- > 0;)
                dc_intake_missed(j->r->intake, j->place, json_array_get(page, i));
        j->left -= (int64_t)n;
        if (n > 0)
                snprintf(j->after, sizeof(j->after), "%s",
                         json_str(json_array_get(page, 0), "id", j->after));
}

static void on_read(struct job *j, const json_t *page)
{
        bool last = (int64_t)json_array_size(page) < j->asked;

        j->tries = 0;
        take_page(j, page);
        if (!last && j->left > 0) {
                ask(j);
                return;
        }
        if (!last)
                log_warn("perhaps more was missed in a channel than is read back",
                         LOG_S("adapter", j->r->adapter->name), LOG_S("channel", j->place),
                         LOG_I("messages", j->r->messages));
        read_through(j);
}

static void on_page(void *arg, int status, json_t *body, const char *why)
{
        struct job *j = arg;
        int64_t wait = DC_UNWELL(status) ? dc_readback_wait_ms(&j->r->times, j->tries++) : -1;

        if (status == 200 && json_is_array(body)) {
                on_read(j, body);
        } else if (wait >= 0) {
                ask_later(j, wait);
        } else {
                j->failed = DC_UNWELL(status);
                j->r->failed = j->r->failed || j->failed;
                log_debug("what was missed in a channel cannot be read",
                          LOG_S("adapter", j->r->adapter->name), LOG_S("channel", j->place),
                          LOG_S("why", why));
                read_through(j);
        }
}

static void ask(struct job *j)
{
        struct dc_readback *r = j->r;
        char *path;

        if (dc_intake_missing(r->intake) >= UNSTORED) {
                ask_later(j, STORING_MS);
                return;
        }
        j->asked = j->left < PAGE ? j->left : PAGE;
        path = mem_printf("/channels/%s/messages?after=%s&limit=%" PRId64, j->place, j->after,
                          j->asked);
        r->hooks.get_later(r->hooks.ctx, path, on_page, j);
        free(path);
}

int64_t dc_readback_wait_ms(const struct dc_catchup_times *times, unsigned tries)
{
        int64_t first = times->wait_ms > 0 ? times->wait_ms : WAIT_MS,
                ms = first << (tries < 8 ? tries : 8);

        if (tries >= TRIES)
                return -1;
        return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

/* ---- all of them ---- */

/* Those that run are at the head. */
static void pump(struct dc_readback *r)
{
        struct job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (r->running >= AT_ONCE)
                        break;
                if (j->running)
                        continue;
                j->running = true;
                r->running++;
                ask(j);
        }
        if (r->crowded && r->count <= PLACES_LOW / 2) {
                r->crowded = false;
                r->room(r->room_arg);
        }
}

/* Whatever happens now has waited long enough; the rest is read back all the same. */
static void on_patience(void *arg)
{
        struct dc_readback *r = arg;
        struct job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (j->held)
                        dc_intake_release(r->intake, j->place);
                j->held = false;
        }
}

static void hold(struct job *j)
{
        struct dc_readback *r = j->r;

        j->held = true;
        dc_intake_hold(r->intake, j->place);
        if (!r->patience)
                r->patience = timer_new(r->adapter->loop, on_patience, r);
        if (!timer_active(r->patience))
                timer_start(r->patience, HOLD_MS);
}

/* Forgets what has been read, and remembers what is to be. */
static void forget_known(struct dc_readback *r)
{
        struct job *j;

        map_release(&r->known);
        map_init(&r->known);
        TAILQ_FOREACH(j, &r->jobs, next)
                map_put(&r->known, j->place, j);
}

void dc_readback_again(struct dc_readback *r)
{
        struct job *j;

        forget_known(r);
        TAILQ_FOREACH(j, &r->jobs, next)
                j->earlier = true;
}

void dc_readback_want(struct dc_readback *r, const char *place, int64_t since_ms)
{
        void *known = map_get(&r->known, place);
        struct job *j = known != r ? known : NULL;

        if (j && j->earlier) { /* what it reads may be older than the last gap: once more */
                j->earlier = false;
                j->again = true;
        }
        if (known)
                return;
        if (r->known.count >= KNOWN_MAX)
                forget_known(r);
        j = mem_zalloc(sizeof(*j));
        map_put(&r->known, place, j);
        j->r = r;
        j->place = mem_strdup(place);
        j->left = r->messages;
        dc_id_at(since_ms, j->after);
        hold(j);
        TAILQ_INSERT_TAIL(&r->jobs, j, next);
        r->count++;
        r->crowded = r->crowded || r->count >= PLACES_LOW;
        pump(r);
}

bool dc_readback_has_room(const struct dc_readback *r)
{
        return !r->crowded;
}

bool dc_readback_is_full(const struct dc_readback *r)
{
        return r->count >= PLACES_MAX;
}

bool dc_readback_is_idle(const struct dc_readback *r)
{
        return r->count == 0 && dc_intake_missing(r->intake) == 0;
}

bool dc_readback_take_failed(struct dc_readback *r)
{
        bool failed = r->failed;

        r->failed = false;
        return failed;
}
