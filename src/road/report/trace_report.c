/*
 * Reads rows in the order in which things happened: event, decision, turn, deliveries. The summary
 * comes last, from these rows.
 */
#include "road/report/trace_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/pace.h"
#include "road/outbox/card.h"
#include "road/report/row_json.h"
#include "road/report/trace_find.h"
#include "rows/a2a_turn_row.h"
#include "rows/journal_row.h"

#define TEXT_BYTES    2000 /* of a message's text */
#define ITEM_BYTES    300  /* of the same in a list */
#define ERROR_BYTES   300  /* of an error in the summary */
#define QUOTE_CHARS   60   /* of a message in a chat */
#define APPROVALS_MAX 50   /* of a turn, the newest */

/* Deliveries by state. */
struct tally {
        unsigned sent, waiting, failed, unknown, other;
        int64_t last_sent_ms;
        char *error; /* the last one */
};

struct trace_report {
        struct store_tx *tx;
        struct buf *json;
        struct error *err;
        const char *adapters; /* NULL: all */
        int64_t now_ms;
        bool for_chat; /* leave out errors */

        /* where to look; 0: unknown */
        int64_t event_id, turn_id, delivery_id;
        char trace[ID_TRACE_SIZE];
        const char *own; /* asked about a message of the bot: what it is; NULL: not */
        bool hidden;     /* a row belongs to an adapter that must not be shown */

        /* found rows; NULL: none */
        struct journal_row *event;
        struct trigger_log_row *decision;
        struct turn_row *turn;
        struct tick_row *tick; /* that sent the message */
        struct schedule_row *schedule;
        json_t *payload; /* of the event */

        int64_t begin_ms;
        struct tally answer, late, notice;
        struct buf waits; /* what the turn waits for a person to decide; "": nothing */
        struct buf summary;
};

static void report_release(struct trace_report *r)
{
        free(r->event);
        free(r->decision);
        free(r->turn);
        free(r->tick);
        free(r->schedule);
        json_decref(r->payload);
        free(r->answer.error);
        free(r->late.error);
        free(r->notice.error);
        buf_release(&r->waits);
        buf_release(&r->summary);
}

/* The number of "trn-7" in a member; 0: none. */
static int64_t id_number(const json_t *object, const char *key, const char *prefix)
{
        const char *id = json_str(object, key, "");
        size_t n = strlen(prefix);

        return strncmp(id, prefix, n) == 0 ? strtoll(id + n, NULL, 10) : 0;
}

static void set_trace(struct trace_report *r, const char *trace)
{
        snprintf(r->trace, sizeof(r->trace), "%s", trace ? trace : "");
}

static unsigned tally_sum(const struct tally *t)
{
        return t->sent + t->waiting + t->failed + t->unknown + t->other;
}

/* ---- rows of the report: 1, 0 (unknown) or -1 ---- */

static int begin_turn(struct trace_report *r)
{
        struct turn_row *turn;
        int rc = turn_row_get(r->tx, r->turn_id, &turn, r->err);

        if (rc == 1) {
                const char *inputs = turn->inputs;

                turn_row_next_input(&inputs, &r->event_id);
                set_trace(r, turn->trace);
        }
        free(turn);
        return rc;
}

/* A notice has no turn: its event is that of its trace, in the same chat. */
static int find_noticed(struct trace_report *r, const struct delivery_row *d)
{
        const struct trigger_log_filter filter = {
                .trace = d->trace, .adapter = d->adapter, .channel = d->channel, .limit = 1
        };
        struct store_stmt *s = trigger_log_row_list(r->tx, &filter);
        struct trigger_log_row row;
        int rc = trigger_log_row_next(s, &row, r->err);

        if (rc == 1 && row.turn == 0) {
                r->event_id = row.event;
                r->own = "notice";
        }
        rows_end(s);
        return rc < 0 ? -1 : 0;
}

/* Was it the schedule that spoke? 1; 0; -1. */
static int find_tick(struct trace_report *r)
{
        int rc = tick_row_find(r->tx, r->delivery_id, &r->tick, r->err);

        if (rc == 1)
                rc = schedule_row_get(r->tx, r->tick->schedule, &r->schedule, r->err);
        if (rc == 1)
                r->own = "scheduled message";
        return rc;
}

static int begin_delivery(struct trace_report *r)
{
        struct delivery_row *d;
        int rc = delivery_row_get(r->tx, r->delivery_id, &d, r->err);

        if (rc != 1)
                return rc;
        set_trace(r, d->trace);
        r->turn_id = d->turn > 0 ? d->turn : d->reply_of;
        r->own = d->turn > 0 ? "answer" : d->reply_of > 0 ? "late answer" : "message";
        rc = r->turn_id > 0 ? begin_turn(r) : find_tick(r);
        if (r->turn_id == 0 && rc == 0)
                rc = find_noticed(r, d);
        free(d);
        return rc < 0 ? -1 : 1;
}

/* Our own events (turn.done, message.sent) name the row they are about. */
static int begin_own_event(struct trace_report *r, const struct journal_row *row)
{
        json_t *payload = json_loads(row->payload, 0, NULL);
        int64_t delivery = id_number(payload, "deliveryId", "dlv-"),
                turn = id_number(payload, "turnId", "trn-"), event = r->event_id;
        int rc = 0;

        json_decref(payload);
        if (delivery > 0) {
                r->delivery_id = delivery;
                rc = begin_delivery(r);
        } else if (turn > 0) {
                r->turn_id = turn;
                rc = begin_turn(r);
        } else if (row->trace) {
                set_trace(r, row->trace);
                rc = trigger_log_row_find_trace(r->tx, r->trace, &r->event_id, r->err);
        }
        if (rc == 0)
                r->event_id = event;
        return rc < 0 ? -1 : 1;
}

/* A platform may report the bot's own messages as well. */
static int begin_echo(struct trace_report *r, const struct journal_row *row)
{
        json_t *payload = json_loads(row->payload, 0, NULL);
        const char *id = json_str(payload, "id", NULL);
        int64_t delivery = 0;
        int rc = 0;

        if (json_flag(payload, "isOwn", false)) {
                r->own = "message";
                if (id)
                        rc = trace_find_own(r->tx, row->adapter, NULL, id, &delivery, r->err);
        }
        json_decref(payload);
        if (rc < 0 || delivery == 0)
                return rc < 0 ? -1 : 1;
        r->delivery_id = delivery;
        r->event_id = 0;
        return begin_delivery(r);
}

static int begin_event(struct trace_report *r)
{
        struct journal_row *row;
        int rc = journal_row_get(r->tx, r->event_id, &row, r->err);

        if (rc != 1)
                return rc < 0 ? -1 : 1; /* its decision may be left */
        rc = row->key ? begin_echo(r, row) : begin_own_event(r, row);
        free(row);
        return rc;
}

static int begin(struct trace_report *r, struct trace_ref ref)
{
        switch (ref.kind) {
        case TRACE_EVENT:
                r->event_id = ref.id;
                return begin_event(r);
        case TRACE_TURN:
                r->turn_id = ref.id;
                return begin_turn(r);
        case TRACE_DELIVERY:
                break;
        }
        r->delivery_id = ref.id;
        return begin_delivery(r);
}

static void check_adapter(struct trace_report *r, const char *adapter)
{
        r->hidden = r->hidden || !trace_find_allows(r->adapters, adapter);
}

/* ---- report members ---- */

static void add_text(struct buf *json, const char *text, size_t max)
{
        if (text)
                jsonw_strn(json, "text", text, utf8_prefix(text, strlen(text), UTF8_BYTES, max));
        else
                jsonw_null(json, "text");
}

/* Which schedule fired, and when it was due. */
static void add_schedule(struct trace_report *r)
{
        json_t *metadata = json_object_get(r->payload, "metadata");
        char *raw;

        if (strcmp(r->event->type, EVENT_SCHEDULE_FIRED) != 0)
                return;
        raw = metadata ? json_text(metadata) : NULL;
        jsonw_raw(r->json, "schedule", raw ? raw : "null");
        free(raw);
}

static int add_event(struct trace_report *r)
{
        json_t *sender;
        char *raw;

        if (r->event_id > 0 && journal_row_get(r->tx, r->event_id, &r->event, r->err) < 0)
                return -1;
        if (!r->event) {
                jsonw_null(r->json, "event");
                return 0;
        }
        check_adapter(r, r->event->adapter);
        r->begin_ms = r->event->time_ms;
        if (r->trace[0] == '\0')
                set_trace(r, r->event->trace);
        r->payload = json_loads(r->event->payload, 0, NULL);
        jsonw_open_member(r->json, "event", '{');
        row_json_id(r->json, "id", "evt-", r->event_id);
        jsonw_str(r->json, "type", r->event->type);
        row_json_time(r->json, "storedAt", r->event->time_ms);
        jsonw_str(r->json, "instanceId", r->event->adapter);
        jsonw_str(r->json, "channel", r->event->channel);
        jsonw_str(r->json, "threadId", r->event->thread);
        jsonw_str(r->json, "key", r->event->key);
        jsonw_str(r->json, "messageId", json_str(r->payload, "id", NULL));
        sender = json_object_get(r->payload, "sender");
        raw = json_is_object(sender) ? json_text(sender) : NULL;
        jsonw_raw(r->json, "sender", raw ? raw : "null");
        free(raw);
        add_text(r->json, json_str(r->payload, "text", NULL), TEXT_BYTES);
        add_schedule(r);
        jsonw_str(r->json, "traceparent", json_str(r->payload, "traceparent", NULL));
        jsonw_close(r->json, '}');
        return 0;
}

static int add_decision(struct trace_report *r)
{
        char *rules;

        if (r->event_id > 0 && trigger_log_row_get(r->tx, r->event_id, &r->decision, r->err) < 0)
                return -1;
        if (!r->decision) {
                jsonw_null(r->json, "decision");
                jsonw_raw(r->json, "rules", "[]");
                return 0;
        }
        check_adapter(r, r->decision->adapter);
        if (r->turn_id == 0)
                r->turn_id = r->decision->turn;
        if (r->trace[0] == '\0')
                set_trace(r, r->decision->trace);
        row_json_trigger_log(r->json, "decision", r->decision);
        if (trigger_log_row_rules(r->tx, r->event_id, &rules, r->err) < 0)
                return -1;
        jsonw_raw(r->json, "rules", rules ? rules : "[]");
        free(rules);
        return 0;
}

static int add_turn(struct trace_report *r)
{
        if (r->turn_id > 0 && turn_row_get(r->tx, r->turn_id, &r->turn, r->err) < 0)
                return -1;
        if (!r->turn) {
                jsonw_null(r->json, "turn");
                return 0;
        }
        if (r->turn->adapter) /* its conversation exists */
                check_adapter(r, r->turn->adapter);
        if (r->begin_ms == 0)
                r->begin_ms = r->turn->created_ms;
        row_json_turn(r->json, "turn", r->turn);
        return 0;
}

static int add_steps(struct trace_report *r)
{
        struct step_row row;
        struct store_stmt *s;
        int rc = 0;

        jsonw_open_member(r->json, "steps", '[');
        s = r->turn_id > 0 ? step_row_list_turn(r->tx, r->turn_id) : NULL;
        while (s && (rc = step_row_next(s, &row, r->err)) == 1)
                row_json_step(r->json, NULL, &row);
        jsonw_close(r->json, ']');
        return rc;
}

/* What an a2a agent was asked. */
static int add_remote_task(struct trace_report *r)
{
        struct a2a_turn_row *row = NULL;
        int rc = r->turn_id > 0 ? a2a_turn_row_get(r->tx, r->turn_id, &row, r->err) : 0;

        if (rc == 1) {
                jsonw_open_member(r->json, "remoteTask", '{');
                jsonw_str(r->json, "agent", row->agent);
                jsonw_str(r->json, "messageId", row->message);
                jsonw_str(r->json, "taskId", *row->task ? row->task : NULL);
                row_json_time(r->json, "at", row->used_ms);
                jsonw_close(r->json, '}');
        }
        free(row);
        return rc < 0 ? -1 : 0;
}

static int add_approvals(struct trace_report *r)
{
        const struct approval_filter filter = { .turn = r->turn_id, .limit = APPROVALS_MAX };
        struct approval_row row;
        struct store_stmt *s;
        int rc = 0;

        jsonw_open_member(r->json, "approvals", '[');
        s = r->turn_id > 0 ? approval_row_list(r->tx, &filter) : NULL;
        while (s && (rc = approval_row_next(s, &row, r->err)) == 1) {
                check_adapter(r, row.adapter);
                row_json_approval(r->json, NULL, &row);
                if (row.state == APPROVAL_OPEN)
                        buf_addf(&r->waits, "%s'apr-%lld' (%s)", r->waits.len ? ", " : "",
                                 (long long)row.id, row.title);
        }
        jsonw_close(r->json, ']');
        return rc;
}

static void count(struct tally *t, const struct delivery_row *row)
{
        switch (row->state) {
        case DELIVERY_SENT:
                t->sent++;
                if (row->ended_ms > t->last_sent_ms)
                        t->last_sent_ms = row->ended_ms;
                break;
        case DELIVERY_QUEUED:
        case DELIVERY_SENDING:
                t->waiting++;
                break;
        case DELIVERY_FAILED:
                t->failed++;
                break;
        case DELIVERY_UNKNOWN:
                t->unknown++;
                break;
        default:
                t->other++;
        }
        if (row->error) {
                free(t->error);
                t->error = mem_strdup(row->error);
        }
}

/* Counts only texts and files: no drafts, reactions or threads. */
static int add_delivery(struct trace_report *r, const struct delivery_row *row)
{
        struct tally *t = row->reply_of > 0            ? &r->late
                          : row->turn > 0 || !r->event ? &r->answer
                                                       : &r->notice;

        check_adapter(r, row->adapter);
        if (!r->turn || (row->class == PACE_FINAL && row->kind != DELIVER_THREAD))
                count(t, row);
        if (r->begin_ms == 0)
                r->begin_ms = row->created_ms;
        return row_json_delivery_attempts(r->tx, r->json, NULL, row, r->err);
}

static int add_each(struct trace_report *r, struct store_stmt *s)
{
        struct delivery_row row;
        int rc;

        while ((rc = delivery_row_next(s, &row, r->err)) == 1) {
                if (add_delivery(r, &row) < 0) {
                        rows_end(s);
                        return -1;
                }
        }
        return rc;
}

static int add_deliveries(struct trace_report *r)
{
        struct delivery_row *one = NULL;
        int rc = 0;

        jsonw_open_member(r->json, "deliveries", '[');
        if (r->turn_id > 0) {
                rc = add_each(r, delivery_row_list_turn(r->tx, r->turn_id));
                if (rc == 0)
                        rc = add_each(r, delivery_row_list_replies(r->tx, r->turn_id));
        } else if (r->decision && r->decision->channel) {
                rc = add_each(r, delivery_row_list_notices(r->tx, r->decision->trace,
                                                           r->decision->adapter,
                                                           r->decision->channel, TRACE_NEWEST));
        } else if (r->delivery_id > 0) {
                rc = delivery_row_get(r->tx, r->delivery_id, &one, r->err);
                if (rc == 1)
                        rc = add_delivery(r, one);
                free(one);
        }
        jsonw_close(r->json, ']');
        return rc;
}

/* The message of the bot that was asked about, and what it answers. */
static void add_answer_to(struct trace_report *r)
{
        if (!r->own) {
                jsonw_null(r->json, "answerTo");
                return;
        }
        jsonw_open_member(r->json, "answerTo", '{');
        jsonw_str(r->json, "kind", r->own);
        row_json_optional_id(r->json, "eventId", "evt-", r->event_id);
        row_json_optional_id(r->json, "turnId", "trn-", r->turn_id);
        row_json_optional_id(r->json, "deliveryId", "dlv-", r->delivery_id);
        jsonw_close(r->json, '}');
}

/* ---- summary ---- */

static void add_duration(struct buf *b, int64_t ms)
{
        if (ms < 1000)
                buf_addf(b, "%lld ms", (long long)(ms > 0 ? ms : 0));
        else
                buf_addf(b, "%.1f s", (double)ms / 1000.0);
}

static void add_error(const struct trace_report *r, struct buf *b, const char *error)
{
        if (!error || error[0] == '\0')
                return;
        if (!r->for_chat) {
                buf_addstr(b, ": ");
                buf_add(b, error, utf8_prefix(error, strlen(error), UTF8_BYTES, ERROR_BYTES));
        } else if (r->turn_id > 0) {
                buf_addf(b, " (trn-%lld)", (long long)r->turn_id);
        }
}

/* sent: how a complete delivery is called, "answered in ". */
static void summarize_deliveries(const struct trace_report *r, struct buf *b, const struct tally *t,
                                 const char *what, const char *sent)
{
        if (t->unknown > 0)
                buf_addf(b, "it is not known whether the %s arrived", what);
        else if (t->failed > 0)
                buf_addf(b, "the %s could not be delivered", what);
        else if (t->waiting > 0)
                buf_addf(b, "waiting for the %s to be delivered", what);
        else if (t->other > 0 && t->sent == 0)
                buf_addf(b, "the %s was not sent", what);

        if (t->unknown + t->failed + t->waiting > 0 || t->sent == 0) {
                add_error(r, b, t->error);
                return;
        }
        buf_addstr(b, sent);
        add_duration(b, t->last_sent_ms - r->begin_ms);
}

static void summarize_late(const struct trace_report *r, struct buf *b, const char *before)
{
        if (tally_sum(&r->late) == 0)
                return;
        buf_addstr(b, before);
        summarize_deliveries(r, b, &r->late, "late answer", "answered late, in ");
}

static void summarize_done(const struct trace_report *r, struct buf *b)
{
        const struct turn_row *t = r->turn;
        const char *reason = r->decision ? r->decision->reason : NULL;

        if (tally_sum(&r->answer) > 0) {
                summarize_deliveries(r, b, &r->answer, "answer", "answered in ");
                if (t->answered_by)
                        buf_addf(b, " by agent '%s', after agent '%s' failed", t->answered_by,
                                 t->agent);
                summarize_late(r, b, "; also ");
        } else if (tally_sum(&r->late) > 0) {
                summarize_late(r, b, "");
        } else if (reason && reason[0] != '\0') {
                buf_addf(b, "silent because %s", reason);
        } else {
                buf_addf(b, "silent because agent '%s' had nothing to say", turn_row_agent(t));
        }
}

static void summarize_turn(const struct trace_report *r, struct buf *b)
{
        const struct turn_row *t = r->turn;

        switch (t->state) {
        case TURN_RUNNING:
                if (r->waits.len > 0) {
                        buf_addf(b, "agent '%s' waits for an approval: %s", turn_row_agent(t),
                                 r->waits.data);
                        return;
                }
                buf_addf(b, "waiting for agent '%s', ", turn_row_agent(t));
                if (t->answered_by)
                        buf_addf(b, "after agent '%s' failed; the turn has been running for ",
                                 t->agent);
                else
                        buf_addstr(b, "which has been working for ");
                add_duration(b, r->now_ms - t->started_ms);
                return;
        case TURN_QUEUED:
                if (t->due_ms <= r->now_ms) {
                        buf_addf(b, "waiting for its turn with agent '%s'", t->agent);
                        return;
                }
                buf_addstr(b, "waiting for further messages for another ");
                add_duration(b, t->due_ms - r->now_ms);
                return;
        case TURN_FAILED:
                buf_addf(b, "agent '%s' failed after %lld attempt%s", turn_row_agent(t),
                         (long long)t->attempt, t->attempt == 1 ? "" : "s");
                add_error(r, b, t->error);
                summarize_late(r, b, "; ");
                return;
        case TURN_CANCELLED:
        case TURN_EXPIRED:
                buf_addf(b, "no answer: the turn was %s", turn_state_name(t->state));
                add_error(r, b, t->error);
                summarize_late(r, b, "; ");
                return;
        case TURN_DONE:
                break;
        }
        summarize_done(r, b);
}

static void summarize_discarded(const struct turn_row *t, struct buf *b)
{
        if (t->discarded_replies == 1)
                buf_addstr(b, "; a late answer was discarded because ");
        else if (t->discarded_replies > 1)
                buf_addf(b, "; %lld late answers were discarded, the last because ",
                         (long long)t->discarded_replies);
        if (t->discarded_replies > 0)
                buf_addstr(b, t->discard_reason ? t->discard_reason : "?");
}

/* No turn. */
static void summarize_decision(const struct trace_report *r, struct buf *b)
{
        const struct trigger_log_row *d = r->decision;

        if (d->status == TRIGGER_DONE)
                buf_addstr(b, d->reason ? d->reason : ""); /* a command of the road */
        else if (d->reason && d->reason[0] != '\0')
                buf_addf(b, "%s because %s",
                         tally_sum(&r->notice) > 0 ? "refused with a notice" : "silent", d->reason);
        else
                buf_addf(b, "silent: the event was %s", trigger_status_name(d->status));
}

static void summarize(const struct trace_report *r, struct buf *b)
{
        if (r->own && r->delivery_id == 0) {
                buf_addstr(b, "a message of the bot itself, sent by other software or no longer "
                              "on record here");
                return;
        }
        if (r->own && r->event_id > 0) {
                buf_addf(b, "the bot's %s %s evt-%lld", r->own,
                         strcmp(r->own, "notice") == 0 ? "about" : "to", (long long)r->event_id);
                if (r->turn_id > 0)
                        buf_addf(b, " (trn-%lld)", (long long)r->turn_id);
                buf_addstr(b, ": ");
        }
        if (r->schedule) {
                char due[CLOCK_ISO_SIZE];

                buf_addf(b, "%s '%.100s' (sch-%lld) was due at %s: ", r->schedule->source,
                         r->schedule->name, (long long)r->schedule->id,
                         clock_iso(r->tick->due_ms, due));
        }
        if (r->event && strcmp(r->event->type, EVENT_SCHEDULE_FIRED) == 0) {
                const json_t *sender = json_object_get(r->payload, "sender");

                buf_addf(b, "schedule '%.100s' (%s) fired: ", json_str(sender, "displayName", "?"),
                         json_str(sender, "username", "?"));
        }
        if (r->turn) {
                summarize_turn(r, b);
                summarize_discarded(r->turn, b);
        } else if (r->decision)
                summarize_decision(r, b);
        else if (r->delivery_id > 0)
                summarize_deliveries(r, b, &r->answer, "message", "sent in ");
        else if (r->event && incoming_is_type(r->event->type))
                buf_addstr(b, "stored, waiting to be decided");
        else
                buf_addstr(b, "recorded; nothing had to be decided about it");
}

/* ---- reports ---- */

static int add_parts(struct trace_report *r)
{
        buf_init(&r->summary, 0);
        buf_init(&r->waits, 0);
        if (add_event(r) < 0 || add_decision(r) < 0 || add_turn(r) < 0 || add_approvals(r) < 0 ||
            add_deliveries(r) < 0)
                return -1;
        if (r->hidden || (!r->event && !r->decision && !r->turn && r->delivery_id == 0))
                return error_set(r->err, ERR_MISSING, "it was pruned");
        if (r->schedule) {
                row_json_schedule(r->json, "schedule", r->schedule);
                row_json_tick(r->json, "tick", r->tick);
        }
        add_answer_to(r);
        summarize(r, &r->summary);
        jsonw_str(r->json, "traceId", r->trace[0] ? r->trace : NULL);
        jsonw_str(r->json, "summary", r->summary.data);
        return 0;
}

static int write_one(struct store_tx *tx, const char *id, struct trace_ref ref,
                     const char *adapters, struct buf *json, struct error *err)
{
        struct trace_report r = {
                .tx = tx, .json = json, .err = err, .adapters = adapters, .now_ms = clock_wall_ms()
        };
        int rc = begin(&r, ref);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "nothing is known about '%.100s'", id);
        jsonw_open(json, '{');
        jsonw_str(json, "id", id);
        if (rc > 0)
                rc = add_parts(&r) < 0 || add_remote_task(&r) < 0 ? -1 : add_steps(&r);
        if (r.hidden)
                error_set(err, ERR_MISSING, "nothing is known about '%.100s'", id);
        else if (rc < 0)
                error_prefix(err, "cannot report on '%.100s'", id);
        report_release(&r);
        jsonw_close(json, '}');
        return rc;
}

/* ---- lists ---- */

static void add_item_of_event(const struct trace_report *r, struct buf *json)
{
        const json_t *sender = json_object_get(r->payload, "sender");
        const struct trigger_log_row *d = r->decision;

        row_json_id(json, "id", "evt-", r->event_id);
        row_json_time(json, "at", r->event->time_ms);
        jsonw_str(json, "instanceId", r->event->adapter);
        jsonw_str(json, "channel", r->event->channel);
        jsonw_str(json, "threadId", r->event->thread);
        jsonw_str(json, "messageId", json_str(r->payload, "id", NULL));
        jsonw_str(json, "direction", "in");
        jsonw_str(json, "sender",
                  json_str(sender, "displayName",
                           json_str(sender, "username", json_str(sender, "id", NULL))));
        add_text(json, json_str(r->payload, "text", NULL), ITEM_BYTES);
        jsonw_str(json, "status", d ? trigger_status_name(d->status) : NULL);
        jsonw_str(json, "agent", d ? d->agent : NULL);
}

static void add_item_of_delivery(struct buf *json, const struct delivery_row *d)
{
        json_t *payload = json_loads(d->payload, 0, NULL);

        row_json_id(json, "id", "dlv-", d->id);
        row_json_time(json, "at", d->created_ms);
        jsonw_str(json, "instanceId", d->adapter);
        jsonw_str(json, "channel", d->channel);
        jsonw_str(json, "threadId", d->thread);
        jsonw_str(json, "messageId", d->platform_id);
        jsonw_str(json, "direction", "out");
        jsonw_null(json, "sender");
        add_text(json, card_said(payload), ITEM_BYTES);
        jsonw_str(json, "status", delivery_state_name(d->state));
        jsonw_null(json, "agent");
        json_decref(payload);
}

/* 1: added; 0: nothing to show; -1. */
static int add_item(struct store_tx *tx, struct trace_ref ref, const char *adapters,
                    bool people_only, struct buf *json, struct error *err)
{
        struct delivery_row *d = NULL;
        struct buf parts;
        struct trace_report r = { .tx = tx,
                                  .json = &parts,
                                  .err = err,
                                  .adapters = adapters,
                                  .now_ms = clock_wall_ms() };
        int rc;

        buf_init(&parts, 0);
        rc = begin(&r, ref);
        jsonw_open(&parts, '{');
        if (rc == 1 && add_parts(&r) < 0)
                rc = err->kind == ERR_MISSING ? 0 : -1;
        if (rc == 1 && (r.own ? people_only : !r.event))
                rc = 0;
        if (rc == 1 && ref.kind == TRACE_DELIVERY)
                rc = delivery_row_get(tx, ref.id, &d, err);
        if (rc == 1) {
                jsonw_open(json, '{');
                if (d)
                        add_item_of_delivery(json, d);
                else
                        add_item_of_event(&r, json);
                jsonw_str(json, "summary", r.summary.data);
                jsonw_close(json, '}');
        }
        free(d);
        report_release(&r);
        buf_release(&parts);
        return rc;
}

int trace_report_recent(struct store_tx *tx, const struct trace_filter *f, struct buf *json,
                        int64_t *last, bool *more, struct error *err)
{
        struct trigger_log_filter filter = { .adapter = f->adapter,
                                             .channel = f->channel,
                                             .adapters = f->adapters,
                                             .before = f->before,
                                             .limit = f->limit * 4 + 1 };
        struct store_stmt *s = trigger_log_row_list(tx, &filter);
        struct trigger_log_row row;
        int64_t *events = mem_array((size_t)filter.limit, sizeof(*events));
        int64_t count = 0, added = 0;
        int rc;

        *last = 0;
        *more = false;
        while ((rc = trigger_log_row_next(s, &row, err)) == 1)
                events[count++] = row.event;
        for (int64_t i = 0; rc >= 0 && i < count && !*more; i++) {
                if (added == f->limit || i + 1 == filter.limit) {
                        *more = true;
                        break;
                }
                rc = add_item(tx, (struct trace_ref){ TRACE_EVENT, events[i] }, f->adapters, true,
                              json, err);
                *last = events[i];
                added += rc == 1;
        }
        free(events);
        return rc < 0 ? -1 : 0;
}

static int write_candidates(struct store_tx *tx, const char *id, const struct trace_refs *refs,
                            const char *adapters, struct buf *json, struct error *err)
{
        char *summary = mem_printf("%zu messages have this id; ask for one of them", refs->count);
        int rc = 0;

        jsonw_open(json, '{');
        jsonw_str(json, "id", id);
        jsonw_str(json, "summary", summary);
        jsonw_open_member(json, "candidates", '[');
        for (size_t i = 0; rc >= 0 && i < refs->count; i++)
                rc = add_item(tx, refs->items[i], adapters, false, json, err);
        jsonw_close(json, ']');
        jsonw_close(json, '}');
        free(summary);
        return rc < 0 ? -1 : 0;
}

int trace_report_write(struct store_tx *tx, const char *id, const char *adapters, struct buf *json,
                       struct error *err)
{
        size_t start = json->len;
        struct trace_refs refs;
        int rc = trace_find(tx, id, adapters, &refs, err);

        if (rc < 0)
                return -1;
        if (refs.count == 0 && strncmp(id, "sch-", 4) == 0)
                return error_set(
                        err, ERR_MISSING,
                        "'%.100s' names a schedule; `dragoman schedule history %.100s` shows "
                        "its runs",
                        id, id);
        if (refs.count == 0 && strncmp(id, "tck-", 4) == 0)
                return error_set(
                        err, ERR_MISSING,
                        "no message of '%.100s' is known; `dragoman schedule history sch-N` "
                        "shows the runs of a schedule",
                        id);
        if (refs.count == 0)
                return error_set(err, ERR_MISSING, "nothing is known about '%.100s'", id);
        if (refs.count == 1)
                rc = write_one(tx, id, refs.items[0], adapters, json, err);
        else
                rc = write_candidates(tx, id, &refs, adapters, json, err);
        if (rc < 0)
                buf_truncate(json, start);
        return rc;
}

/* Opens the sentence with the first line of the message. */
static void add_quote(const struct trace_report *r, struct buf *text)
{
        const char *said = json_str(r->payload, "text", "");
        size_t shown = utf8_prefix(said, strcspn(said, "\r\n"), UTF8_CODE_POINTS, QUOTE_CHARS);

        if (shown == 0) {
                buf_addstr(text, "Your last message: ");
        } else {
                buf_addstr(text, "Your message “");
                buf_add(text, said, shown);
                buf_addstr(text, said[shown] != '\0' ? "…”: " : "”: ");
        }
}

int trace_report_last(struct store_tx *tx, const struct incoming *asked, struct buf *text,
                      struct error *err)
{
        const struct chat_key chat = { asked->adapter, asked->channel, asked->thread };
        struct buf json;
        struct trace_report r = {
                .tx = tx, .json = &json, .err = err, .now_ms = clock_wall_ms(), .for_chat = true
        };
        int rc = trigger_log_row_find_last(tx, &chat, asked->sender_id, EVENT_MESSAGE_RECEIVED,
                                           asked->event, TRACE_NEWEST, &r.event_id, err);

        if (rc <= 0) {
                buf_addstr(text, "I know of no earlier message from you here.");
                return rc;
        }
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        rc = add_parts(&r);
        buf_release(&json);
        if (rc == 0) {
                add_quote(&r, text);
                buf_addf(text, "%s.", r.summary.data);
        }
        report_release(&r);
        return rc;
}
