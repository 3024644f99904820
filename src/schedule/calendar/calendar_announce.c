/*
 * calendar_announce: what people see of an event follows its row.
 *
 * A scan reads the rows that are ahead and makes a step for each: send the announcement, edit it,
 * or change the platform's own event. A step is a delivery with a request key of its own, so that a
 * crash between the delivery's commit and ours repeats nothing. While one scan runs no other does,
 * and an edit that is still queued is replaced by the outbox: many answers at once are few edits.
 *
 *     IDLE ──wake──► SCANNING ──► SUBMITTING ──► STORING ──► IDLE, or SCANNING again
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "road/calendar_sync.h"
#include "schedule/calendar/calendar_private.h"

#define SCAN_ROWS 64
#define RETRY_MS  10000 /* after an error */
#define PUTS_MAX  3     /* of one sequence; see calendar_inbox.c */

struct announce_step {
        struct calendar_announcer *announcer;
        int64_t event;
        enum {
                STEP_WAIT, /* a delivery is under way */
                STEP_NOTE, /* only the row changes */
                STEP_SEND,
                STEP_EDIT,
                STEP_PUT,
        } what;
        char *adapter, *channel, *thread, *trace;
        char *text, *buttons; /* of the announcement */
        char *message;        /* to edit */
        char *calendar;       /* STEP_PUT: JSON */
        char request_key[80];
        bool failed; /* the outbox did not take it */
        /* what is stored afterwards */
        int64_t delivery; /* 0: none */
        int64_t version, sequence, announcement, puts;
        bool edits_possible;
        /* STEP_NOTE */
        bool sets_message, sets_platform, sets_announced, sets_synced;
        char *new_message, *new_platform;
        char *refusal; /* the platform will not show it: why */
};

struct calendar_announcer {
        struct schedule *schedule;
        struct bus_listener *listener;
        struct timer *retry;
        bool busy, again, waits, freed;
        bool failed;
        struct announce_step *steps;
        size_t count, submitting;
        int64_t after; /* the last row of the page before */
        bool more;
};

static void scan(struct calendar_announcer *a);

static void release_steps(struct calendar_announcer *a)
{
        for (size_t i = 0; i < a->count; i++) {
                struct announce_step *p = &a->steps[i];

                free(p->adapter);
                free(p->channel);
                free(p->thread);
                free(p->trace);
                free(p->text);
                free(p->buttons);
                free(p->message);
                free(p->calendar);
                free(p->new_message);
                free(p->new_platform);
                free(p->refusal);
        }
        free(a->steps);
        a->steps = NULL;
        a->count = 0;
}

static void destroy(struct calendar_announcer *a)
{
        release_steps(a);
        free(a);
}

/* ---- reading: what each row needs ---- */

/* The state of a delivery, and the platform's id of what it sent. 1; 0: it is forgotten; -1. */
static int read_delivery(struct store_tx *tx, int64_t id, enum delivery_state *state, char **sent,
                         char **error_kind, char **why, struct error *err)
{
        struct delivery_row *d;
        int rc = delivery_row_get(tx, id, &d, err);

        *sent = *error_kind = NULL;
        if (rc != 1)
                return rc;
        *state = d->state;
        if (d->state == DELIVERY_SENT)
                *sent = d->platform_id ? mem_strdup(d->platform_id)
                                       : mem_printf("dlv-%lld", (long long)id);
        *error_kind = mem_strdup(d->error_kind);
        if (why)
                *why = mem_strdup(d->error);
        free(d);
        return 1;
}

/*
 * An announcement whose message is not known yet. Sets *message once it is; false: wait, or there
 * is nothing more to do.
 */
static int await_message(struct store_tx *tx, const struct calendar_event_row *row,
                         struct announce_step *p, bool *dead, struct error *err)
{
        enum delivery_state state;
        char *sent, *kind;
        int rc = read_delivery(tx, row->announcement, &state, &sent, &kind, NULL, err);

        free(kind);
        if (rc < 0)
                return -1;
        if (rc == 1 && (state == DELIVERY_QUEUED || state == DELIVERY_SENDING)) {
                p->what = STEP_WAIT;
                return 0;
        }
        p->what = STEP_NOTE;
        p->sets_message = true;
        /* one that may have arrived is not sent again, and cannot be edited */
        if (rc == 0 || state == DELIVERY_UNKNOWN)
                p->new_message = mem_strdup("?");
        else if (state == DELIVERY_SENT)
                p->new_message = sent;
        *dead = !p->new_message;
        if (p->new_message != sent)
                free(sent);
        return 0;
}

static int plan_announcement(struct store_tx *tx, const struct calendar_event_row *row,
                             struct announce_step *p, struct error *err)
{
        struct calendar_view v;
        struct buf b;
        bool dead = false;
        int rc;

        if (row->announcement > 0 && !row->message) {
                rc = await_message(tx, row, p, &dead, err);
                if (rc < 0 || !dead || row->announced == row->version)
                        return rc;
                /* sent again with what has changed since */
                return 0;
        }
        if (!row->channel || row->announced >= row->version)
                return 0;
        p->version = row->version;
        p->sequence = row->sequence;
        p->announcement = row->announcement;
        if ((row->state == CALENDAR_CANCELLED && row->announcement == 0) ||
            (row->message && strcmp(row->message, "?") == 0)) {
                p->what = STEP_NOTE;
                p->sets_announced = true;
                return 0;
        }
        rc = calendar_view_load(tx, row->id, &v, err);
        if (rc == 1) {
                p->what = row->message ? STEP_EDIT : STEP_SEND;
                p->message = mem_strdup(row->message);
                p->version = v.row->version;
                p->sequence = v.row->sequence;
                buf_init(&b, 0);
                calendar_view_announcement(&v, &b);
                p->text = buf_take(&b);
                buf_init(&b, 0);
                calendar_view_buttons(v.row, &b);
                p->buttons = buf_take(&b);
                snprintf(p->request_key, sizeof(p->request_key), "cal:%lld:v%lld",
                         (long long)row->id, (long long)p->version);
        }
        calendar_view_release(&v);
        return rc < 0 ? -1 : 0;
}

static char *put_json(const struct calendar_event_row *row)
{
        char id[40];
        struct calendar_sync sync = { .op = CALENDAR_PUT,
                                      .calendar = id,
                                      .guild = row->guild,
                                      .event = row->platform_event,
                                      .title = row->title,
                                      .description = row->description ? row->description : "",
                                      .place = row->place ? row->place : "",
                                      .starts_ms = row->starts_ms,
                                      .ends_ms = row->ends_ms };
        struct buf b;

        snprintf(id, sizeof(id), "cal-%lld", (long long)row->id);
        if (row->state == CALENDAR_CANCELLED)
                sync = (struct calendar_sync){ .op = CALENDAR_DELETE,
                                               .calendar = id,
                                               .guild = row->guild,
                                               .event = row->platform_event };
        buf_init(&b, 0);
        calendar_sync_write(&sync, &b);
        return buf_take(&b);
}

/* A change of the platform's event has ended, or not. */
static int await_put(struct store_tx *tx, const struct calendar_event_row *row,
                     struct announce_step *p, struct error *err)
{
        enum delivery_state state;
        char *sent, *kind, *why = NULL;
        int rc = read_delivery(tx, row->put, &state, &sent, &kind, &why, err);

        if (rc == 1 && (state == DELIVERY_QUEUED || state == DELIVERY_SENDING)) {
                p->what = STEP_WAIT;
        } else if (rc >= 0) {
                bool done = rc == 1 && state == DELIVERY_SENT;
                bool gone = kind && strcmp(kind, "missing") == 0;
                /* the put may be older than the cancellation: then the deletion follows */
                bool deletes = row->state == CALENDAR_CANCELLED && row->platform_event &&
                               row->synced >= row->sequence;

                p->what = STEP_NOTE;
                p->sets_platform = true;
                if (!gone && !(deletes && (done || rc == 0)))
                        p->new_platform =
                                mem_strdup(row->platform_event ? row->platform_event : sent);
                if (rc == 1 && state == DELIVERY_FAILED && !row->platform_event && kind &&
                    strcmp(kind, "refused") == 0 && row->state == CALENDAR_PLANNED)
                        p->refusal = mem_strdup(why ? why : "it was refused");
        }
        free(why);
        free(sent);
        free(kind);
        return rc < 0 ? -1 : 0;
}

static int plan_put(struct store_tx *tx, const struct calendar_event_row *row,
                    struct announce_step *p, struct error *err)
{
        if (row->put > 0)
                return await_put(tx, row, p, err);
        if (!row->guild || row->synced >= row->sequence)
                return 0;
        p->sequence = row->sequence;
        if ((row->state == CALENDAR_CANCELLED && !row->platform_event) || row->puts >= PUTS_MAX) {
                p->what = STEP_NOTE;
                p->sets_synced = true;
                return 0;
        }
        p->what = STEP_PUT;
        p->puts = row->puts + 1;
        p->calendar = put_json(row);
        snprintf(p->request_key, sizeof(p->request_key), "cal:%lld:s%lld:%lld", (long long)row->id,
                 (long long)row->sequence, (long long)p->puts);
        return 0;
}

static struct announce_step *add_step(struct calendar_announcer *a,
                                      const struct calendar_event_row *row)
{
        struct announce_step *p;

        a->steps = mem_realloc(a->steps, (a->count + 1) * sizeof(*a->steps));
        p = &a->steps[a->count++];
        *p = (struct announce_step){ .announcer = a,
                                     .event = row->id,
                                     .what = STEP_WAIT,
                                     .adapter = mem_strdup(row->adapter),
                                     .channel = mem_strdup(row->channel),
                                     .thread = mem_strdup(row->thread),
                                     .trace = mem_strdup(row->trace),
                                     .announcement = row->announcement };
        return p;
}

/* On a store thread; nothing else touches the steps meanwhile. */
static int read_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct calendar_announcer *a = arg;
        struct calendar_event_row *rows[SCAN_ROWS], row;
        struct store_stmt *s = calendar_row_list_behind(tx, a->after, SCAN_ROWS);
        size_t n = 0;
        int rc;

        release_steps(a);
        while ((rc = calendar_row_next(s, &row, err)) == 1 && n < SCAN_ROWS)
                rows[n++] = calendar_row_dup(&row);
        if (rc == 1)
                rows_end(s);
        for (size_t i = 0; i < n; i++) {
                if (rc >= 0)
                        rc = plan_announcement(tx, rows[i], add_step(a, rows[i]), err);
                if (rc >= 0)
                        rc = plan_put(tx, rows[i], add_step(a, rows[i]), err);
                a->after = rows[i]->id;
                free(rows[i]);
        }
        a->more = n == SCAN_ROWS;
        return rc < 0 ? -1 : 0;
}

/* ---- writing: what was done ---- */

static int tell_refusal(struct store_tx *tx, const struct announce_step *p, struct error *err)
{
        struct calendar_event_row *row;
        int rc = calendar_row_get(tx, p->event, &row, err);

        if (rc != 1)
                return rc;
        rc = calendar_notices_not_shown(tx, row, p->refusal, err);
        free(row);
        return rc;
}

static int write_step(struct store_tx *tx, const struct announce_step *p, struct error *err)
{
        if (p->failed || p->what == STEP_WAIT)
                return 0;
        if (p->sets_message &&
            calendar_row_set_message(tx, p->event, p->announcement, p->new_message, err) < 0)
                return -1;
        if (p->refusal && tell_refusal(tx, p, err) < 0)
                return -1;
        if (p->sets_platform && calendar_row_set_platform(tx, p->event, p->new_platform, err) < 0)
                return -1;
        if (p->sets_synced || p->what == STEP_PUT)
                return calendar_row_set_put(tx, p->event, p->delivery, p->sequence, p->puts, err);
        if (p->what == STEP_SEND)
                return calendar_row_set_announced(tx, p->event, p->delivery, p->version,
                                                  p->sequence, err);
        if (p->sets_announced || p->what == STEP_EDIT)
                return calendar_row_set_announced(tx, p->event, p->announcement, p->version,
                                                  p->sequence, err);
        return 0;
}

/* did: there may be a next step, such as the edit of a message that is known now. */
static void end_page(struct calendar_announcer *a, bool did)
{
        a->busy = false;
        release_steps(a);
        if (a->more || did || a->again) {
                if (!a->more)
                        a->after = 0;
                scan(a);
        } else if (a->failed) {
                timer_start(a->retry, RETRY_MS);
        }
}

static int write_steps(struct store_tx *tx, void *arg, struct error *err)
{
        const struct calendar_announcer *a = arg;

        for (size_t i = 0; i < a->count; i++)
                if (write_step(tx, &a->steps[i], err) < 0)
                        return -1;
        return 0;
}

static void on_stored(void *arg, const struct error *err)
{
        struct calendar_announcer *a = arg;
        bool did = false;

        if (a->freed) {
                destroy(a);
                return;
        }
        for (size_t i = 0; i < a->count; i++) {
                if (a->steps[i].refusal)
                        schedule_wake(a->schedule);
                a->waits =
                        a->waits || a->steps[i].what == STEP_PUT || a->steps[i].what == STEP_SEND;
                did = did || (a->steps[i].what != STEP_WAIT && !a->steps[i].failed);
                a->failed = a->failed || a->steps[i].failed;
        }
        if (err) {
                a->busy = false;
                release_steps(a);
                return;
        }
        end_page(a, did);
}

static void store_steps(struct calendar_announcer *a)
{
        schedule_write(a->schedule, "what was announced", write_steps, on_stored, a);
}

/* ---- submitting ---- */

static void on_submitted(void *arg, const struct outbox_receipt *receipt)
{
        struct announce_step *p = arg;
        struct calendar_announcer *a = p->announcer;

        p->delivery = receipt->delivery;
        p->failed = receipt->error.kind != ERR_NONE;
        if (p->failed && receipt->error.kind == ERR_INVALID) {
                /* never: the row counts as shown */
                log_warn("an event cannot be shown", LOG_I("event", p->event),
                         LOG_S("adapter", p->adapter), LOG_S("why", receipt->error.text));
                p->failed = false;
                p->delivery = 0;
        } else if (p->failed) {
                log_info("an event is announced later", LOG_I("event", p->event),
                         LOG_S("why", receipt->error.text));
        }
        if (--a->submitting > 0)
                return;
        if (a->freed)
                destroy(a);
        else
                store_steps(a);
}

static void submit(struct calendar_announcer *a, struct announce_step *p)
{
        char *text = p->text ? command_spell(a->schedule->env.road, p->adapter, p->text) : NULL;

        outbox_submit(a->schedule->env.road,
                      &(struct outgoing){ .adapter = p->adapter,
                                          .channel = p->channel ? p->channel : "",
                                          .thread = p->thread,
                                          .kind = p->what == STEP_PUT    ? DELIVER_CALENDAR
                                                  : p->what == STEP_EDIT ? DELIVER_EDIT
                                                                         : DELIVER_SEND,
                                          .text = text,
                                          .message_id = p->message,
                                          .buttons = p->buttons,
                                          .had_buttons = p->what == STEP_EDIT && p->buttons,
                                          .calendar = p->calendar,
                                          .trace = p->trace,
                                          .request_key = p->request_key,
                                          .class = p->what == STEP_EDIT ? PACE_EDIT : PACE_FINAL },
                      on_submitted, p);
        free(text);
}

/* What the adapter cannot show needs no delivery. */
static void fit_abilities(struct calendar_announcer *a, struct announce_step *p)
{
        unsigned can = p->adapter ? road_abilities(a->schedule->env.road, p->adapter) : 0;

        if (p->what == STEP_PUT && !(can & ADAPTER_CALENDAR)) {
                p->what = STEP_NOTE;
                p->sets_synced = true;
        } else if (p->what == STEP_EDIT && !(can & ADAPTER_EDITS)) {
                p->what = STEP_NOTE;
                p->sets_announced = true;
        }
        if (!(can & ADAPTER_BUTTONS)) {
                free(p->buttons);
                p->buttons = NULL;
        }
}

static void on_rows(void *arg, const struct error *err)
{
        struct calendar_announcer *a = arg;
        bool wanted = false;

        a->schedule->writes--;
        if (a->freed) {
                destroy(a);
                return;
        }
        if (err) {
                if (err->kind != ERR_CANCELLED)
                        log_warn("cannot read the calendar; retrying", LOG_S("why", err->text));
                a->busy = false;
                timer_start(a->retry, RETRY_MS);
                return;
        }
        for (size_t i = 0; i < a->count; i++) {
                struct announce_step *p = &a->steps[i];

                fit_abilities(a, p);
                a->submitting +=
                        p->what == STEP_SEND || p->what == STEP_EDIT || p->what == STEP_PUT;
                wanted = wanted || p->what != STEP_WAIT;
                a->waits = a->waits || p->what == STEP_WAIT;
        }
        if (a->submitting == 0) {
                if (wanted)
                        store_steps(a);
                else
                        end_page(a, false);
                return;
        }
        for (size_t i = 0; i < a->count; i++)
                if (a->steps[i].what == STEP_SEND || a->steps[i].what == STEP_EDIT ||
                    a->steps[i].what == STEP_PUT)
                        submit(a, &a->steps[i]);
}

static void scan(struct calendar_announcer *a)
{
        a->busy = true;
        if (a->after == 0)
                a->again = a->waits = a->failed = false;
        a->schedule->writes++; /* schedule_close waits for it */
        store_read(a->schedule->env.store, read_rows, on_rows, a);
}

/* ---- life ---- */

/* A delivery has ended: perhaps one that is waited for. */
static void on_event(void *arg, const struct bus_event *e)
{
        struct calendar_announcer *a = arg;

        if ((a->waits || a->busy) && (strcmp(e->type, EVENT_MESSAGE_SENT) == 0 ||
                                      strcmp(e->type, EVENT_MESSAGE_FAILED) == 0 ||
                                      strcmp(e->type, EVENT_DELIVERY_SENT) == 0 ||
                                      strcmp(e->type, EVENT_DELIVERY_FAILED) == 0))
                calendar_announcer_wake(a);
}

static void on_retry(void *arg)
{
        calendar_announcer_wake(arg);
}

struct calendar_announcer *calendar_announcer_new(struct schedule *s)
{
        struct calendar_announcer *a = mem_zalloc(sizeof(*a));

        a->schedule = s;
        a->retry = timer_new(s->env.loop, on_retry, a);
        a->listener =
                bus_listen(s->env.bus, 1u << STREAM_MESSAGE | 1u << STREAM_DELIVERY, on_event, a);
        return a;
}

void calendar_announcer_wake(struct calendar_announcer *a)
{
        if (a->busy) {
                a->again = true;
        } else if (!a->schedule->quiet) {
                a->after = 0;
                scan(a);
        }
}

void calendar_announcer_free(struct calendar_announcer *a)
{
        if (!a)
                return;
        bus_unlisten(a->schedule->env.bus, a->listener);
        timer_free(a->retry);
        a->freed = true;
        if (!a->busy)
                destroy(a);
}
