#include "road/road.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

#define AT(field) offsetof(struct road_limits, field)

const struct setting road_settings[] = {
        { "queuedEvents", SETTING_INT, "20000", 10, 10000000, .at = AT(queued_events),
          .help = "Stored events that may wait for a decision; beyond it new ones are refused "
                  "with 503 and `Retry-After`." },
        { "openTurns", SETTING_INT, "50000", 1, 10000000, .at = AT(open_turns),
          .help = "Turns that may be queued or running; beyond it new events are refused." },
        { "runningTurns", SETTING_INT, "1024", 1, 100000, .at = AT(running_turns),
          .help = "Turns that may run side by side." },
        { "mailbox", SETTING_INT, "1000", 1, 1000000, .at = AT(mailbox),
          .help = "Messages that may wait in one conversation; further ones are stored and marked skipped." },
        { "turnSeconds", SETTING_INT, "900", 1, 86400, .at = AT(turn_seconds),
          .help = "The longest a turn may run before it is stopped with a notice to the user." },
        { "turnAttempts", SETTING_INT, "3", 1, 100, .at = AT(turn_attempts),
          .help = "How often a turn is started again after the process ended in the middle of it." },
        { "openDeliveries", SETTING_INT, "50000", 1, 10000000, .at = AT(open_deliveries),
          .help = "Deliveries of one adapter that may be open; beyond it no further turn is started there." },
        { "sendsInDoubt", SETTING_INT, "32", 1, 100000, .at = AT(sends_in_doubt),
          .help = "Messages that may be under way at once through an adapter whose platform "
                  "cannot tell later whether one arrived: so many may be unknown after a crash." },
        { "deliveryAttempts", SETTING_INT, "8", 1, 1000, .at = AT(delivery_attempts),
          .help = "How often a delivery is tried before it becomes a dead letter; rate limits do "
                  "not count." },
        { "deliverySeconds", SETTING_INT, "60", 1, 3600, .at = AT(delivery_seconds),
          .help = "The longest one attempt to send may take." },
        { "deliveryExpirySeconds", SETTING_INT, "86400", 0, 31536000,
          .at = AT(delivery_expiry_seconds),
          .help = "An answer that could not be sent for this long is not sent any more; 0: never expires." },
        { "retryBaseMs", SETTING_INT, "500", 1, 60000, .at = AT(retry_base_ms),
          .help = "The first pause before a delivery is tried again; it doubles with every "
                  "attempt, with jitter." },
        { "retryCapMs", SETTING_INT, "60000", 1, 3600000, .at = AT(retry_cap_ms),
          .help = "The longest such pause." },
        { "historyMessages", SETTING_INT, "40", 0, 1000, .at = AT(history_messages),
          .help = "How many earlier messages of a conversation an agent is shown." },
        { "textBytes", SETTING_INT, "262144", 1, 16777216, .at = AT(text_bytes),
          .help = "The longest text of one inbound message, in bytes." },
        { "recordDays", SETTING_INT, "7", 1, 36500, .at = AT(record_days),
          .help = "How long finished turns, deliveries and the trigger log are kept." },
        { "transcriptDays", SETTING_INT, "90", 1, 36500, .at = AT(transcript_days),
          .help = "How long what was said in conversations is kept." },
        SETTING_END,
};

char *road_key(const char *prefix, int64_t n, char out[TURN_KEY_SIZE])
{
        snprintf(out, TURN_KEY_SIZE, "%s-%lld", prefix, (long long)n);
        return out;
}

/* ---- writes that must succeed ---- */

#define REWRITE_FIRST_MS 100
#define REWRITE_CAP_MS   5000

struct rewrite {
        struct road *road;
        const char *what;
        store_fn *fn;
        void (*done)(void *arg);
        void *arg;
        int64_t pause_ms;
        struct timer *timer; /* NULL until it has failed once */
};

static void on_rewrite(void *arg);

/*
 * Told once at the start, and again at every repetition when the error neither passes by itself nor
 * is known to everybody (damage).
 */
static void repeat_later(struct rewrite *w, const struct error *err)
{
        bool passes = err->kind == ERR_FULL || err->kind == ERR_IO || err->kind == ERR_BUSY ||
                      err->kind == ERR_LIMIT || err->kind == ERR_CORRUPT;

        if (!w->timer)
                w->timer = timer_new(w->road->loop, on_rewrite, w);
        if (w->pause_ms == REWRITE_FIRST_MS || !passes)
                log_error("the store does not take a write; it is repeated until it does",
                          LOG_S("write", w->what), LOG_S("why", err->text));
        timer_start(w->timer, w->pause_ms);
        w->pause_ms = w->pause_ms * 2 < REWRITE_CAP_MS ? w->pause_ms * 2 : REWRITE_CAP_MS;
}

static void on_rewritten(void *arg, const struct error *err)
{
        struct rewrite *w = arg;

        if (err && w->road->closing) {
                /* the row still says what it said; the next life of the process does this again */
                w->road->writes--;
                timer_free(w->timer);
                free(w);
                return;
        }
        if (err) {
                repeat_later(w, err);
                return;
        }
        w->road->writes--;
        w->done(w->arg);
        timer_free(w->timer);
        free(w);
}

static int run_write(struct store_tx *tx, void *arg, struct error *err)
{
        struct rewrite *w = arg;

        return w->fn(tx, w->arg, err);
}

static void on_rewrite(void *arg)
{
        struct rewrite *w = arg;

        store_write(w->road->store, run_write, on_rewritten, w);
}

void road_write(struct road *r, const char *what, store_fn *fn, void (*done)(void *arg), void *arg)
{
        struct rewrite *w = mem_zalloc(sizeof(*w));

        w->road = r;
        w->what = what;
        w->fn = fn;
        w->done = done;
        w->arg = arg;
        w->pause_ms = REWRITE_FIRST_MS;
        r->writes++;
        on_rewrite(w);
}

/* ---- opening and closing ---- */

static bool wants_dual_emit(void)
{
        const char *value = getenv(ROAD_DUAL_EMIT);

        return value && strcmp(value, "true") == 0;
}

struct road *road_open(const struct road_env *env, const struct road_limits *limits,
                       struct error *err)
{
        struct road *r = mem_zalloc(sizeof(*r));

        r->loop = env->loop;
        r->store = env->store;
        r->bus = env->bus;
        r->dispatch = env->dispatch;
        r->agents = env->agents;
        r->platforms = env->platforms;
        r->limits = *limits;
        r->dual_emit = wants_dual_emit();
        id_random_text(r->owner, sizeof(r->owner) - 1);
        r->next_turn = r->next_delivery = 1;
        STAILQ_INIT(&r->pending);
        TAILQ_INIT(&r->ready);
        map_init(&r->lanes);
        map_init(&r->places);
        map_init(&r->turns);
        map_init(&r->flights);
        LIST_INIT(&r->late_replies);
        map_init(&r->inputs);
        map_init(&r->adapters);
        map_init(&r->outs);
        bus_cursor_hold(r->bus, ROAD_CURSOR);
        bus_cursor_hold(r->bus, TURNS_CURSOR);
        prune_begin(r);
        if (recover_deliveries(r, err) < 0 || recover_events(r, err) < 0 ||
            recover_turns(r, err) < 0) {
                road_close(r);
                return NULL;
        }
        if (r->pending_count > 0 || r->out_count > 0)
                log_info("resuming", LOG_I("events", r->pending_count),
                         LOG_I("deliveries", r->out_count));
        return r;
}

void road_set_limits(struct road *r, const struct road_limits *limits)
{
        r->limits = *limits;
        lane_pump_ready(r);
}

static void drained(struct road *r)
{
        void (*fn)(void *arg) = r->drained;

        if (!fn)
                return;
        r->drained = NULL;
        timer_stop(r->drain_timer);
        fn(r->drained_arg);
}

static void on_drain_timeout(void *arg)
{
        drained(arg);
}

void road_check_drained(struct road *r)
{
        if (r->draining && r->drained && r->running_count == 0 && r->sending_count == 0)
                timer_start(r->drain_timer, 0);
}

void road_drain(struct road *r, int64_t ms, void (*fn)(void *arg), void *arg)
{
        r->draining = true;
        r->drained = fn;
        r->drained_arg = arg;
        if (!r->drain_timer)
                r->drain_timer = timer_new(r->loop, on_drain_timeout, r);
        timer_start(r->drain_timer, ms);
        road_check_drained(r);
}

static void release_lanes(struct road *r)
{
        void *value;

        for (size_t i = 0; map_each(&r->lanes, &i, NULL, &value);)
                lane_free(r, value);
        map_release(&r->lanes);
        map_release(&r->places);
        for (size_t i = 0; map_each(&r->turns, &i, NULL, &value);) {
                struct turn *t = value;

                if (t->phase == PHASE_RUNNING)
                        r->agents.cancel(r->agents.agents, &t->run);
                turn_free(t);
        }
        map_release(&r->turns);
        flight_release_all(r);
        map_release(&r->inputs);
}

void road_close(struct road *r)
{
        struct pending *p;

        if (!r)
                return;
        r->draining = r->closing = true;
        while (r->writes > 0 && loop_step(r->loop, true))
                ;
        late_reply_release(r);
        release_lanes(r);
        outbox_release(r);
        decide_forget(r);
        while ((p = STAILQ_FIRST(&r->pending))) {
                STAILQ_REMOVE_HEAD(&r->pending, next);
                incoming_free(p->in);
                free(p);
        }
        timer_free(r->prune);
        timer_free(r->drain_timer);
        free(r);
}

/* ---- what is going on ---- */

void road_stats(const struct road *r, struct road_stats *out)
{
        *out = r->stats;
        out->events_waiting = r->pending_count + (r->asked ? 1 : 0);
        out->turns_running = r->running_count;
        out->turns_queued = r->turn_count -
                            (r->running_count < r->turn_count ? r->running_count : r->turn_count);
        out->lanes = r->lanes.count;
        out->deliveries_open = r->out_count;
}

void road_adapter_stats(const struct road *r, const char *adapter, struct adapter_stats *out)
{
        const struct out_adapter *a = map_get(&r->adapters, adapter);
        void *channel;

        *out = (struct adapter_stats){ 0 };
        if (!a)
                return;
        *out = a->stats;
        for (size_t i = 0; map_each(&a->channels, &i, NULL, &channel);) {
                const struct out *head = TAILQ_FIRST(&((struct out_channel *)channel)->queue);

                if (head && (out->oldest_open_ms == 0 || head->d.created_ms < out->oldest_open_ms))
                        out->oldest_open_ms = head->d.created_ms;
        }
}
