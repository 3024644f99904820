#include "road/road.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"

#define AT(field) offsetof(struct road_limits, field)

const struct setting road_settings[] = {
        { "queuedEvents", SETTING_INT, "20000", 10, 10000000, .at = AT(queued_events),
          .help = "Stored events that may wait for a decision; further ones are refused with "
                  "503 and `Retry-After`." },
        { "openTurns", SETTING_INT, "50000", 1, 10000000, .at = AT(open_turns),
          .help = "Turns that may be queued or running; further events are refused." },
        { "runningTurns", SETTING_INT, "1024", 1, 100000, .at = AT(running_turns),
          .help = "Turns that may run at the same time." },
        { "mailbox", SETTING_INT, "1000", 1, 1000000, .at = AT(mailbox),
          .help = "Messages that may wait in one conversation; further ones are stored and "
                  "skipped." },
        { "turnSeconds", SETTING_INT, "900", 1, 86400, .at = AT(turn_seconds),
          .help = "The longest a turn may run; then it is stopped with a notice. A turn of the "
                  "built-in agent may take this long for each step; programs that are started "
                  "(`acp`, `pi`, `omp`) have limits of their own." },
        { "turnAttempts", SETTING_INT, "3", 1, 100, .at = AT(turn_attempts),
          .help = "How often a turn is started if the process ends while it runs. Attempts of the "
                  "built-in agent that finished a step do not count." },
        { "fileSeconds", SETTING_INT, "60", 0, 3600, .at = AT(file_seconds),
          .help = "How long a turn waits for the files of its messages. After that the agent runs "
                  "without the missing files; they are marked as not available." },
        { "openDeliveries", SETTING_INT, "50000", 1, 10000000, .at = AT(open_deliveries),
          .help = "Deliveries of one adapter that may be open; at the limit no further turn "
                  "starts there." },
        { "unconfirmedSends", SETTING_INT, "32", 1, 100000, .at = AT(unconfirmed_sends),
          .was = "sendsInDoubt",
          .help = "How many sends of one adapter may be in progress at once where a repeated send "
                  "could post twice. A crash leaves at most this many to reconcile." },
        { "deliveryAttempts", SETTING_INT, "8", 1, 1000, .at = AT(delivery_attempts),
          .help = "Attempts before a delivery becomes a dead letter; rate limits do not count." },
        { "deliverySeconds", SETTING_INT, "60", 1, 3600, .at = AT(delivery_seconds),
          .help = "The longest one attempt may take." },
        { "deliveryExpirySeconds", SETTING_INT, "86400", 0, 31536000,
          .at = AT(delivery_expiry_seconds),
          .help = "An answer that could not be sent for this long expires; 0: never." },
        { "reconcileSeconds", SETTING_INT, "600", 1, 86400, .at = AT(reconcile_seconds),
          .help = "How long to ask the platform whether an unconfirmed send arrived. The chat "
                  "waits meanwhile." },
        { "retryBaseMs", SETTING_INT, "500", 1, 60000, .at = AT(retry_base_ms),
          .help = "The first pause before a delivery is retried; it doubles with every attempt, "
                  "with jitter." },
        { "retryCapMs", SETTING_INT, "60000", 1, 3600000, .at = AT(retry_cap_ms),
          .help = "The longest such pause." },
        { "historyMessages", SETTING_INT, "40", 0, 1000, .at = AT(history_messages),
          .help = "How many earlier messages of a conversation an agent gets." },
        { "textBytes", SETTING_INT, "262144", 1, 16777216, .at = AT(text_bytes),
          .help = "The longest text of one inbound message, in bytes." },
        { "recordDays", SETTING_INT, "7", 1, 36500, .at = AT(record_days),
          .help = "How long finished turns, deliveries, schedules and the trigger log are kept." },
        { "transcriptDays", SETTING_INT, "90", 1, 36500, .at = AT(transcript_days),
          .help = "How long transcripts are kept." },
        SETTING_END,
};

char *road_key(const char *prefix, int64_t n, char out[ROAD_KEY_SIZE])
{
        snprintf(out, ROAD_KEY_SIZE, "%s-%lld", prefix, (long long)n);
        return out;
}

/* ---- writes that must succeed ---- */

#define RETRY_FIRST_MS 100
#define RETRY_CAP_MS   5000

struct sure_write {
        struct road *road;
        const char *what;
        store_fn *fn;
        store_done_fn *done;
        store_done_fn *failed; /* may be NULL */
        void *arg;
        int64_t pause_ms;
        struct timer *timer; /* NULL until it has failed once */
};

static int run_write(struct store_tx *tx, void *arg, struct error *err)
{
        struct sure_write *w = arg;

        return w->fn(tx, w->arg, err);
}

static void on_written(void *arg, const struct error *err);

static void try_write(void *arg)
{
        struct sure_write *w = arg;

        store_write(w->road->store, run_write, on_written, w);
}

static void on_written(void *arg, const struct error *err)
{
        struct sure_write *w = arg;
        bool passes;

        /* closing: the row is unchanged, and the next run repeats the work */
        if (!err || w->road->closing) {
                w->road->writes--;
                w->done(w->arg, err);
                timer_free(w->timer);
                free(w);
                return;
        }
        /* logged once if it passes by itself or is reported elsewhere (damage) */
        passes = err->kind == ERR_FULL || err->kind == ERR_IO || err->kind == ERR_BUSY ||
                 err->kind == ERR_LIMIT || err->kind == ERR_CORRUPT;
        if (w->pause_ms == RETRY_FIRST_MS || !passes)
                log_error("the store refused a write; retrying", LOG_S("write", w->what),
                          LOG_S("why", err->text));
        if (w->failed)
                w->failed(w->arg, err);
        if (!w->timer)
                w->timer = timer_new(w->road->loop, try_write, w);
        timer_start(w->timer, w->pause_ms);
        w->pause_ms = w->pause_ms * 2 < RETRY_CAP_MS ? w->pause_ms * 2 : RETRY_CAP_MS;
}

void road_write_watched(struct road *r, const char *what, store_fn *fn, store_done_fn *done,
                        store_done_fn *failed, void *arg)
{
        struct sure_write *w = mem_zalloc(sizeof(*w));

        w->road = r;
        w->what = what;
        w->fn = fn;
        w->done = done;
        w->failed = failed;
        w->arg = arg;
        w->pause_ms = RETRY_FIRST_MS;
        r->writes++;
        try_write(w);
}

void road_write(struct road *r, const char *what, store_fn *fn, store_done_fn *done, void *arg)
{
        road_write_watched(r, what, fn, done, NULL, arg);
}

/* ---- opening and closing ---- */

struct road *road_open(const struct road_env *env, const struct road_limits *limits,
                       struct error *err)
{
        struct road *r = mem_zalloc(sizeof(*r));
        const char *dual_emit = getenv(ROAD_DUAL_EMIT);

        r->loop = env->loop;
        r->store = env->store;
        r->bus = env->bus;
        r->dispatch = env->dispatch;
        r->agents = env->agents;
        r->platforms = env->platforms;
        r->limits = *limits;
        id_random_text(r->owner, sizeof(r->owner) - 1);
        STAILQ_INIT(&r->inbox.pending);
        r->inbox.dual_emit = dual_emit && strcmp(dual_emit, "true") == 0;
        map_init(&r->turns.lanes);
        map_init(&r->turns.lane_groups);
        map_init(&r->turns.by_number);
        map_init(&r->turns.inputs);
        map_init(&r->turns.session_locks);
        TAILQ_INIT(&r->turns.ready);
        TAILQ_INIT(&r->turns.ends);
        LIST_INIT(&r->turns.late_replies);
        map_init(&r->approvals.open);
        map_init(&r->approvals.by_turn);
        map_init(&r->outbox.adapters);
        map_init(&r->outbox.jobs);
        map_init(&r->outbox.edits);
        STAILQ_INIT(&r->outbox.submissions);
        bus_cursor_hold(r->bus, ROAD_CURSOR);
        bus_cursor_hold(r->bus, TURNS_CURSOR);
        prune_begin(r);
        if (approvals_open(r, err) < 0 || recover_open(r, err) < 0) {
                road_close(r);
                return NULL;
        }
        numbers_open(&r->turn_numbers, r, "turn");
        numbers_open(&r->delivery_numbers, r, "delivery");
        if (r->inbox.pending_count > 0 || r->outbox.open > 0)
                log_info("resuming", LOG_I("events", r->inbox.pending_count),
                         LOG_I("deliveries", r->outbox.open));
        return r;
}

void road_set_limits(struct road *r, const struct road_limits *limits)
{
        r->limits = *limits;
        lane_pump_ready(r);
}

void road_numbers_refilled(struct road *r)
{
        turn_commit_waiting(r);
        decide_pending(r);
        outbox_submit_resume(r);
}

static void on_drained(void *arg)
{
        struct road *r = arg;
        void (*fn)(void *arg) = r->drained;

        r->drained = NULL;
        if (fn)
                fn(r->drained_arg);
}

void road_check_drained(struct road *r)
{
        /* a person may take for ever, and the next run finds what they decided */
        if (r->draining && r->drained && r->turns.running == r->approvals.parked &&
            r->outbox.sending == 0)
                timer_start(r->drain_timer, 0);
}

void road_drain(struct road *r, int64_t ms, void (*fn)(void *arg), void *arg)
{
        r->draining = true;
        r->drained = fn;
        r->drained_arg = arg;
        if (!r->drain_timer)
                r->drain_timer = timer_new(r->loop, on_drained, r);
        timer_start(r->drain_timer, ms);
        road_check_drained(r);
}

static const char stopped[] = "shutting down";

void road_settle(struct road *r)
{
        struct error err;

        if (!r)
                return;
        r->draining = r->closing = true;
        while (r->writes > 0 && loop_step(r->loop, true))
                ;
        error_set(&err, ERR_CANCELLED, stopped);
        outbox_submit_refuse(r, &err);
}

void road_close(struct road *r)
{
        struct error err;
        void *turn;

        if (!r)
                return;
        road_settle(r);
        error_set(&err, ERR_CANCELLED, stopped);
        late_reply_release(r);
        lane_release_all(r);
        for (size_t i = 0; map_each(&r->turns.by_number, &i, NULL, &turn);) {
                struct turn *t = turn;

                if (t->phase == PHASE_RUNNING)
                        r->agents.cancel(r->agents.agents, &t->run);
                if (t->cancel.done)
                        t->cancel.done(t->cancel.arg, &err);
                turn_free(t);
        }
        map_release(&r->turns.by_number);
        approvals_close(r);
        session_lock_release_all(r);
        map_release(&r->turns.inputs);
        outbox_release(r);
        decide_release(r, &err);
        numbers_close(&r->turn_numbers);
        numbers_close(&r->delivery_numbers);
        timer_free(r->prune);
        timer_free(r->drain_timer);
        free(r);
}

/* ---- status ---- */

void road_stats(const struct road *r, struct road_stats *out)
{
        *out = r->stats;
        out->events_waiting = r->inbox.pending_count + (r->inbox.asked ? 1 : 0);
        out->turns_running = r->turns.running;
        out->turns_queued = r->turns.open -
                            (r->turns.running < r->turns.open ? r->turns.running : r->turns.open);
        out->lanes = r->turns.lanes.count;
        out->deliveries_open = r->outbox.open;
        out->approvals_open = r->approvals.open.count;
}

void road_adapter_stats(const struct road *r, const char *adapter, struct adapter_stats *out)
{
        const struct outbox_adapter *a = map_get(&r->outbox.adapters, adapter);
        void *queue;

        *out = (struct adapter_stats){ 0 };
        if (!a)
                return;
        *out = a->stats;
        for (size_t i = 0; map_each(&a->queues, &i, NULL, &queue);) {
                const struct delivery_job *head =
                        TAILQ_FIRST(&((struct delivery_queue *)queue)->jobs);

                if (head && (out->oldest_open_ms == 0 || head->d.created_ms < out->oldest_open_ms))
                        out->oldest_open_ms = head->d.created_ms;
        }
}

/* ---- for agents ---- */

unsigned road_abilities(const struct road *r, const char *adapter)
{
        return r->platforms.abilities(r->platforms.adapters, adapter);
}

const struct setting_list *road_admins(const struct road *r, const char *adapter)
{
        const struct road_platforms *p = &r->platforms;
        const struct setting_list *admins = NULL;

        if (p->when_unsure)
                (void)p->when_unsure(p->adapters, adapter, &admins);
        return admins;
}

void road_mention(const struct road *r, const char *adapter, const char *id, const char *name,
                  struct buf *out)
{
        const struct road_platforms *p = &r->platforms;
        const char *link = p->user_link ? p->user_link(p->adapters, adapter) : NULL;

        if (!link) {
                buf_addf(out, "@%s", id);
                return;
        }
        buf_addch(out, '[');
        for (const char *c = name; *c; c++)
                if (!strchr("[]()<>\\`*_~\n\r", *c)) /* no markup */
                        buf_addch(out, *c);
        buf_addf(out, "](%s%s)", link, id);
}

bool road_is_ready(const struct road *r, const char *adapter)
{
        return r->platforms.ready(r->platforms.adapters, adapter);
}

int64_t road_upload_max(const struct road *r, const char *adapter)
{
        const struct road_platforms *p = &r->platforms;

        if (!p->upload_max || !(road_abilities(r, adapter) & ADAPTER_FILES))
                return 0;
        return p->upload_max(p->adapters, adapter);
}

void road_ask_threads(const struct road *r, const char *adapter, const char *channel,
                      chat_threads_fn *done, void *arg)
{
        r->platforms.threads(r->platforms.adapters, adapter, channel, done, arg);
}

void road_set_schedule(struct road *r, const struct road_schedule *s)
{
        r->schedule = s ? *s : (struct road_schedule){ 0 };
}

const struct road_schedule *road_get_schedule(const struct road *r)
{
        return r->schedule.schedule ? &r->schedule : NULL;
}

const struct road_tool *road_tool_at(const struct road *r, const char *adapter, size_t i)
{
        const struct road_platforms *p = &r->platforms;

        return p->tool_at ? p->tool_at(p->adapters, adapter, i) : NULL;
}

void road_call_tool(struct road *r, const char *adapter, const char *tool,
                    const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        r->platforms.call_tool(r->platforms.adapters, adapter, tool, q, done, arg);
}
