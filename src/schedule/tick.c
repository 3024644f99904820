/*
 * tick: a claimed tick, from its check into the inbox or outbox, to its stored outcome.
 *
 * A crash anywhere leaves the row pending or running, and the next run begins again: the dedup key
 * of the event ("tick:12") and the request key of the message make the repetition harmless.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "schedule/missed.h"
#include "schedule/quiet.h"
#include "schedule/schedule_private.h"
#include "schedule/when.h"

#define RETRY_MS 5000

static void begin(struct tick_run *t);

static void tick_free(struct tick_run *t)
{
        struct schedule *s = t->schedule;

        TAILQ_REMOVE(&s->running, t, next);
        s->running_count--;
        timer_free(t->retry);
        free(t->row);
        free(t->tick);
        json_decref(t->options);
        buf_release(&t->output);
        bus_batch_release(&t->batch);
        free(t->note);
        free(t->trace);
        free(t);
        due_left(s);
}

/* ---- journal ---- */

static void add_time(struct buf *out, const char *key, int64_t wall_ms)
{
        char iso[CLOCK_ISO_SIZE];

        jsonw_str(out, key, clock_iso(wall_ms, iso));
}

/* Members of metadata and of journal payloads. */
static void describe(const struct schedule_row *row, const struct tick_row *tick, struct buf *out)
{
        char id[32];

        snprintf(id, sizeof(id), "sch-%lld", (long long)row->id);
        jsonw_str(out, "scheduleId", id);
        snprintf(id, sizeof(id), "tck-%lld", (long long)tick->id);
        jsonw_str(out, "tickId", id);
        jsonw_str(out, "name", row->name);
        jsonw_str(out, "source", row->source);
        jsonw_str(out, "type", schedule_kind_name(row->kind));
        add_time(out, "dueAt", tick->due_ms);
        jsonw_int(out, "runs", tick->runs);
}

int schedule_journal(struct store_tx *tx, struct bus_batch *batch, const char *type,
                     const struct schedule_row *row, const struct tick_row *tick, const char *note,
                     const char *trace, struct error *err)
{
        struct bus_event e = { .type = type,
                               .adapter = row->adapter,
                               .channel = row->channel,
                               .thread = row->thread,
                               .trace = trace ? trace : row->trace };
        char own[ID_TRACE_SIZE], id[32];
        struct buf payload;
        int rc;

        if (!e.trace) {
                id_trace(own);
                e.trace = own;
        }
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        describe(row, tick, &payload);
        if (tick->started_ms - tick->due_ms > MISSED_GRACE_MS)
                jsonw_int(&payload, "lateMs", tick->started_ms - tick->due_ms);
        if (tick->delivery > 0) {
                snprintf(id, sizeof(id), "dlv-%lld", (long long)tick->delivery);
                jsonw_str(&payload, "deliveryId", id);
        }
        jsonw_opt(&payload, "why", note);
        jsonw_close(&payload, '}');
        e.payload = payload.data;
        rc = bus_append(tx, batch, &e, NULL, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* ---- the outcome ---- */

static int write_outcome(struct store_tx *tx, void *arg, struct error *err)
{
        struct tick_run *t = arg;
        const struct tick_row *o = &t->outcome;
        bool handed_over = o->state == TICK_RUNNING || o->state == TICK_DONE;
        const char *type = NULL;
        int rc;

        bus_batch_reset(&t->batch);
        if (o->state == TICK_PENDING)
                rc = tick_row_defer(tx, o->id, o->not_before_ms, o->note, err);
        else if (o->state == TICK_RUNNING)
                rc = tick_row_set_delivery(tx, o->id, o->delivery, o->address, o->note, err);
        else
                rc = tick_row_end(tx, o, err);
        fault_point("schedule.outcome");
        t->stored = rc == 1;
        if (rc != 1)
                return rc; /* 0: it was cancelled, or another scheduler had it */
        if (o->state == TICK_FAILED)
                type = "schedule.failed";
        else if (o->state == TICK_SKIPPED)
                type = "schedule.skipped";
        else if (handed_over && t->late_ms > 0 && t->tick->address == 0)
                type = "schedule.late";
        return type ? schedule_journal(tx, &t->batch, type, t->row, o, o->note, t->trace, err) : 0;
}

static void count(struct schedule_stats *n, const struct tick_run *t)
{
        switch (t->outcome.state) {
        case TICK_PENDING:
                n->deferred++;
                break;
        case TICK_RUNNING:
        case TICK_DONE:
                n->fired++;
                n->late += t->late_ms > 0;
                break;
        case TICK_QUIET:
                n->quiet++;
                break;
        case TICK_SKIPPED:
                n->skipped++;
                break;
        case TICK_FAILED:
                n->failed++;
                break;
        }
}

static void on_outcome(void *arg, const struct error *err)
{
        struct tick_run *t = arg;
        struct schedule *s = t->schedule;
        bool again = t->outcome.state == TICK_PENDING;

        fault_point("schedule.outcome_stored");
        if (!err && t->stored) {
                bus_publish(s->env.bus, &t->batch);
                count(&s->stats, t);
        }
        tick_free(t);
        if (again)
                schedule_wake(s);
}

static void store_outcome(struct tick_run *t, const char *note, const char *trace)
{
        fault_point("schedule.outcome_known");
        t->phase = TICK_PHASE_WRITE;
        t->note = note ? mem_strdup(note) : NULL;
        t->trace = trace ? mem_strdup(trace) : NULL;
        t->outcome.note = t->note;
        t->outcome.ended_ms = clock_wall_ms();
        schedule_write(t->schedule, "outcome of a tick", write_outcome, on_outcome, t);
}

void tick_end(struct tick_run *t, enum tick_state state, const char *note)
{
        char id[32];

        t->outcome = *t->tick;
        t->outcome.state = state;
        if (state == TICK_FAILED) {
                snprintf(id, sizeof(id), "sch-%lld", (long long)t->row->id);
                log_warn("a scheduled run failed", LOG_S("schedule", id),
                         LOG_S("name", t->row->name), LOG_S("why", note ? note : "unknown"));
        }
        store_outcome(t, note, NULL);
}

void tick_defer(struct tick_run *t, int64_t not_before_ms, const char *note)
{
        t->outcome = *t->tick;
        t->outcome.state = TICK_PENDING;
        t->outcome.not_before_ms = not_before_ms;
        store_outcome(t, note, NULL);
}

void tick_handed_over(struct tick_run *t, int64_t delivery, int64_t address, const char *note,
                      const char *trace)
{
        t->outcome = *t->tick;
        t->outcome.state = TICK_RUNNING;
        t->outcome.delivery = delivery;
        t->outcome.address = address;
        store_outcome(t, note, trace);
}

static void on_retry(void *arg)
{
        begin(arg);
}

void tick_retry(struct tick_run *t, const char *why)
{
        log_warn("cannot hand over a scheduled run; retrying", LOG_S("name", t->row->name),
                 LOG_S("why", why));
        t->phase = TICK_PHASE_WAIT;
        if (!t->retry)
                t->retry = timer_new(t->schedule->env.loop, on_retry, t);
        timer_start(t->retry, RETRY_MS);
}

void tick_stop(struct tick_run *t)
{
        if (t->phase == TICK_PHASE_CHECK)
                check_stop(t);
        if (t->phase == TICK_PHASE_CHECK || t->phase == TICK_PHASE_WAIT)
                tick_free(t);
}

/* ---- a turn ---- */

void tick_describe_lateness(const struct tick_run *t, struct buf *out)
{
        const struct schedule *s = t->schedule;
        const char *name = t->row->timezone ? t->row->timezone : schedule_default_zone(s);
        struct time_zone *zone;
        struct error err;

        if (t->late_ms <= 0)
                return;
        zone = timezone_new(name, &err);
        if (!zone)
                zone = timezone_new("UTC", &err);
        buf_addstr(out, "(late: it was due ");
        when_describe(t->tick->due_ms, zone, clock_wall_ms(), out);
        buf_addstr(out, ", ");
        when_describe_span(t->late_ms, out);
        buf_addstr(out, " ago");
        if (t->tick->runs > 1)
                buf_addf(out, "; it stands for %lld%s missed times", (long long)t->tick->runs,
                         t->tick->runs >= MISSED_COUNTED ? " or more" : "");
        buf_addstr(out, ")");
        timezone_free(zone);
}

/* What is asked of the agent; "[EVENT:...]" precedes it, see schedule_fired_receive. */
static void add_text(const struct tick_run *t, struct buf *out)
{
        buf_addstr(out, t->row->text);
        if (t->output.len > 0)
                buf_addf(out, "\n\n%s", t->output.data);
        if (t->late_ms > 0) {
                buf_addstr(out, "\n\n");
                tick_describe_lateness(t, out);
        }
}

/* A file or an operator speaks for themselves; others repeat what somebody said. */
static bool is_untrusted(const struct tick_run *t)
{
        const char *source = t->row->source, *by = t->row->created_by;

        return t->output.len > 0 || (by && strncmp(by, "agent ", 6) == 0) ||
               (strcmp(source, "file") != 0 && strcmp(source, "api") != 0);
}

static const char *platform_of(const struct schedule *s, const char *adapter)
{
        const char *name, *platform;

        for (size_t i = 0; adapter && s->env.adapter_at(s->env.arg, i, &name, &platform); i++)
                if (strcmp(name, adapter) == 0)
                        return platform;
        return NULL;
}

static void on_received(void *arg, const struct inbox_receipt *receipt)
{
        struct tick_run *t = arg;

        fault_point("schedule.received");
        if (receipt->outcome == INBOX_FAILED && receipt->error.kind == ERR_INVALID) {
                tick_end(t, TICK_FAILED, receipt->error.text);
                return;
        }
        if (receipt->outcome == INBOX_FAILED) {
                tick_retry(t, receipt->error.text);
                return;
        }
        t->outcome = *t->tick;
        t->outcome.state = TICK_DONE;
        t->outcome.event = receipt->event;
        store_outcome(t, NULL, receipt->trace);
}

static void fire(struct tick_run *t)
{
        const struct schedule_row *row = t->row;
        const char *platform = platform_of(t->schedule, row->adapter);
        const char *chat = json_string_value(json_object_get(t->options, "chat")),
                   *at = json_string_value(json_object_get(t->options, "at"));
        char iso[CLOCK_ISO_SIZE], note[160];
        struct schedule_fired what = {
                .schedule = row->id,
                .tick = t->tick->id,
                .name = row->name,
                .kind = schedule_kind_name(row->kind),
                .info = row->kind == SCHEDULE_IMMEDIATE  ? "immediate"
                        : row->kind == SCHEDULE_PERIODIC ? row->cron
                        : at                             ? at
                                                         : clock_iso(row->at_ms, iso),
                .adapter = row->adapter,
                .platform = platform,
                .channel = row->channel,
                .thread = row->thread,
                .direct = t->direct || (chat && strcmp(chat, "dm") == 0),
                .person = json_string_value(json_object_get(t->options, "mention")),
                .agent = json_string_value(json_object_get(t->options, "agent")),
                .trace = row->kind == SCHEDULE_PERIODIC ? NULL : row->trace,
        };
        struct buf text, metadata;

        if (!platform || !row->channel) {
                snprintf(note, sizeof(note), "there is no adapter '%.100s'",
                         row->adapter ? row->adapter : "");
                tick_end(t, TICK_FAILED, note);
                return;
        }
        buf_init(&text, 0);
        buf_init(&metadata, 0);
        add_text(t, &text);
        jsonw_open(&metadata, '{');
        describe(row, t->tick, &metadata);
        if (t->late_ms > 0)
                jsonw_int(&metadata, "lateMs", t->late_ms);
        jsonw_opt(&metadata, "createdBy", row->created_by);
        jsonw_bool(&metadata, "untrusted", is_untrusted(t));
        if (row->missed == MISSED_ALL)
                jsonw_bool(&metadata, "queues", true);
        jsonw_close(&metadata, '}');
        what.text = text.data;
        what.metadata = metadata.data;
        fault_point("schedule.fire");
        schedule_fired_receive(t->schedule->env.road, &what, on_received, t);
        buf_release(&text);
        buf_release(&metadata);
}

/* ---- the beginning ---- */

void tick_checked(struct tick_run *t)
{
        fault_point("schedule.checked");
        t->phase = TICK_PHASE_SEND;
        fire(t);
}

static void begin(struct tick_run *t)
{
        bool by_hand = t->tick->note && strcmp(t->tick->note, TICK_BY_HAND) == 0;
        int64_t now_ms = clock_wall_ms(),
                quiet_ms =
                        by_hand ? now_ms
                                : quiet_end(t->options, schedule_default_zone(t->schedule), now_ms);

        fault_point("schedule.begin");
        t->phase = TICK_PHASE_SEND;
        if (t->row->action == SCHEDULE_MESSAGE) {
                tick_message_start(t);
        } else if (quiet_ms > now_ms) {
                tick_defer(t, quiet_ms, "these are its quiet hours");
        } else if (json_object_get(t->options, "check") && t->output.len == 0) {
                t->phase = TICK_PHASE_CHECK;
                check_start(t);
        } else {
                fire(t);
        }
}

void tick_start(struct schedule *s, struct schedule_row *row, struct tick_row *tick, bool direct)
{
        struct tick_run *t = mem_zalloc(sizeof(*t));
        int64_t from_ms = tick->not_before_ms > tick->due_ms ? tick->not_before_ms : tick->due_ms;

        t->schedule = s;
        t->row = row;
        t->tick = tick;
        t->direct = direct;
        t->options = row->options ? json_loads(row->options, 0, NULL) : NULL;
        if (!json_is_object(t->options)) {
                json_decref(t->options);
                t->options = json_object();
        }
        buf_init(&t->output, 0);
        if (tick->started_ms - from_ms > MISSED_GRACE_MS)
                t->late_ms = tick->started_ms - tick->due_ms;
        TAILQ_INSERT_TAIL(&s->running, t, next);
        s->running_count++;
        begin(t);
}
