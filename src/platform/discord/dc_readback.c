#include "platform/discord/dc_catchup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/discord/dc_id.h"

#define AT_ONCE      4
#define PAGE         100
#define HOLD_MS      30000
#define TRIES        10 /* with waits of about three minutes */
#define WAIT_MS      250
#define WAIT_MAX_MS  60000
#define UNSTORED_MAX 500 /* messages; beyond it reading waits */
#define STORING_MS   100
#define JOBS_LOW     200
#define JOBS_MAX     5000
#define KNOWN_MAX    50000 /* channels remembered as read */

struct readback_job {
        struct dc_readback *r;
        char *channel;
        char after[DC_ID_SIZE];
        int64_t left, asked;
        unsigned tries;
        struct timer *timer;
        bool running;
        bool held;
        bool failed; /* given up */
        bool of_old_gap;
        bool again; /* wanted for the current gap, too */
        TAILQ_ENTRY(readback_job) next;
};

struct dc_readback {
        struct dc_intake *in;
        TAILQ_HEAD(, readback_job) jobs;
        size_t count, running;
        struct map known; /* of the current gap: their job, or r when read */
        bool crowded;     /* catch-up waits for room */
        bool failed;
        struct timer *holding; /* ends it */
};

static void pump(struct dc_readback *r);

static void job_free(struct readback_job *j)
{
        timer_free(j->timer);
        free(j->channel);
        free(j);
}

/* ---- one channel ---- */

static void read_page(void *job);

static void read_later(struct readback_job *j, int64_t ms)
{
        if (!j->timer)
                j->timer = timer_new(j->r->in->o.adapter->loop, read_page, j);
        timer_start(j->timer, ms);
}

/* It is read or given up. */
static void end_job(struct readback_job *j)
{
        struct dc_readback *r = j->r;

        if (j->again) {
                j->again = j->failed = false;
                j->left = r->in->o.catchup_messages;
                j->tries = 0;
                read_page(j);
                return;
        }
        TAILQ_REMOVE(&r->jobs, j, next);
        r->count--;
        r->running--;
        if (j->held)
                intake_release(&r->in->window, j->channel);
        if (j->of_old_gap || j->failed)
                map_remove(&r->known, j->channel);
        else
                map_put(&r->known, j->channel, r);
        job_free(j);
        pump(r);
}

static void on_page(void *arg, const struct dc_answer *a)
{
        struct readback_job *j = arg;
        bool unavailable = dc_rest_is_unavailable(a);
        int64_t wait = unavailable ? dc_readback_wait_ms(j->r->in, j->tries++) : -1;
        const char *adapter = j->r->in->o.adapter->name;
        size_t n = json_array_size(a->result);

        if (wait >= 0) {
                read_later(j, wait);
                return;
        }
        if (a->status != 200 || !json_is_array(a->result)) {
                j->failed = unavailable;
                j->r->failed = j->r->failed || j->failed;
                log_debug("cannot read missed messages of a channel", LOG_S("adapter", adapter),
                          LOG_S("channel", j->channel), LOG_S("why", a->why));
                end_job(j);
                return;
        }
        for (size_t i = n; i-- > 0;) /* the newest comes first */
                dc_intake_missed(j->r->in, j->channel, json_array_get(a->result, i));
        j->tries = 0;
        j->left -= (int64_t)n;
        if (n > 0)
                snprintf(j->after, sizeof(j->after), "%s",
                         json_str(json_array_get(a->result, 0), "id", j->after));
        if ((int64_t)n >= j->asked && j->left > 0) {
                read_page(j);
                return;
        }
        if ((int64_t)n >= j->asked)
                log_warn("catch-up limit of a channel reached; further messages may be missing",
                         LOG_S("adapter", adapter), LOG_S("channel", j->channel),
                         LOG_I("messages", j->r->in->o.catchup_messages));
        end_job(j);
}

static void read_page(void *job)
{
        struct readback_job *j = job;
        struct dc_readback *r = j->r;
        char query[60];

        if (r->in->window.backfilling >= UNSTORED_MAX) {
                read_later(j, STORING_MS);
                return;
        }
        j->asked = j->left < PAGE ? j->left : PAGE;
        snprintf(query, sizeof(query), "after=%s&limit=%" PRId64, j->after, j->asked);
        r->in->hooks.get(r->in->hooks.ctx,
                         &(struct dc_get){ "/channels/{channel_id}/messages",
                                           { j->channel },
                                           .query = query,
                                           .idle = true },
                         on_page, j);
}

int64_t dc_readback_wait_ms(const struct dc_intake *in, unsigned failures)
{
        int64_t first = in->o.catchup_times.wait_ms;

        if (failures >= TRIES)
                return -1;
        return backoff_ms(failures, first > 0 ? first : WAIT_MS, WAIT_MAX_MS);
}

/* ---- all channels ---- */

static void pump(struct dc_readback *r)
{
        struct readback_job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (r->running >= AT_ONCE)
                        break;
                if (j->running)
                        continue;
                j->running = true;
                r->running++;
                read_page(j);
        }
        if (r->crowded && r->count <= JOBS_LOW / 2) {
                r->crowded = false;
                dc_catchup_continue(r->in->catchup);
        }
}

static void stop_holding(void *arg)
{
        struct dc_readback *r = arg;
        struct readback_job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (j->held)
                        intake_release(&r->in->window, j->channel);
                j->held = false;
        }
}

static void forget_known(struct dc_readback *r)
{
        struct readback_job *j;

        map_release(&r->known);
        map_init(&r->known);
        TAILQ_FOREACH(j, &r->jobs, next)
                map_put(&r->known, j->channel, j);
}

void dc_readback_restart(struct dc_readback *r)
{
        struct readback_job *j;

        forget_known(r);
        TAILQ_FOREACH(j, &r->jobs, next)
                j->of_old_gap = true;
}

void dc_readback_want(struct dc_readback *r, const char *channel, int64_t since_ms)
{
        void *known = map_get(&r->known, channel);
        struct readback_job *j = known != r ? known : NULL;

        if (j && j->of_old_gap) { /* it may have read past the current gap */
                j->of_old_gap = false;
                j->again = true;
        }
        if (known)
                return;
        if (r->known.count >= KNOWN_MAX)
                forget_known(r);
        j = mem_zalloc(sizeof(*j));
        map_put(&r->known, channel, j);
        j->r = r;
        j->channel = mem_strdup(channel);
        j->left = r->in->o.catchup_messages;
        dc_id_at(since_ms, j->after);
        j->held = true;
        intake_hold(&r->in->window, channel);
        if (!timer_active(r->holding))
                timer_start(r->holding, r->in->o.catchup_times.hold_ms);
        TAILQ_INSERT_TAIL(&r->jobs, j, next);
        r->count++;
        r->crowded = r->crowded || r->count >= JOBS_LOW;
        pump(r);
}

enum dc_readback_load dc_readback_load(const struct dc_readback *r)
{
        if (r->count >= JOBS_MAX)
                return DC_READBACK_FULL;
        if (r->crowded)
                return DC_READBACK_CROWDED;
        return r->count == 0 && r->in->window.backfilling == 0 ? DC_READBACK_IDLE
                                                               : DC_READBACK_BUSY;
}

bool dc_readback_take_failed(struct dc_readback *r)
{
        bool failed = r->failed;

        r->failed = false;
        return failed;
}

struct dc_readback *dc_readback_new(struct dc_intake *in)
{
        struct dc_readback *r = mem_zalloc(sizeof(*r));

        if (in->o.catchup_times.hold_ms <= 0)
                in->o.catchup_times.hold_ms = HOLD_MS;
        r->in = in;
        TAILQ_INIT(&r->jobs);
        map_init(&r->known);
        r->holding = timer_new(in->o.adapter->loop, stop_holding, r);
        return r;
}

/* Releases nothing: held events come again after the restart. */
void dc_readback_free(struct dc_readback *r)
{
        struct readback_job *j, *after;

        if (!r)
                return;
        for (j = TAILQ_FIRST(&r->jobs); j; j = after) {
                after = TAILQ_NEXT(j, next);
                job_free(j);
        }
        timer_free(r->holding);
        map_release(&r->known);
        free(r);
}
