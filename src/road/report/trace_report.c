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
#include "road/report/row_json.h"
#include "rows/journal_row.h"

#define TEXT_BYTES  2000  /* of a message's text */
#define ERROR_BYTES 300   /* of an error in the summary */
#define QUOTE_CHARS 60    /* of a message in a chat */
#define NEWEST      20000 /* rows searched without an index */

struct trace_report {
        struct store_tx *tx;
        struct buf *json;
        struct error *err;
        int64_t now_ms;
        bool for_chat; /* leave out errors */

        /* where to look; 0: unknown */
        int64_t event_id, turn_id, delivery_id;
        char trace[ID_TRACE_SIZE];

        /* found rows; NULL: none */
        struct journal_row *event;
        struct trigger_log_row *decision;
        struct turn_row *turn;

        int64_t begin_ms;
        unsigned sent, waiting, failed, unknown, other; /* deliveries of the answer */
        int64_t last_sent_ms;
        char *delivery_error; /* the last one */
};

static void report_release(struct trace_report *r)
{
        free(r->event);
        free(r->decision);
        free(r->turn);
        free(r->delivery_error);
}

static void set_trace(struct trace_report *r, const char *trace)
{
        snprintf(r->trace, sizeof(r->trace), "%s", trace ? trace : "");
}

/* ---- resolving an id: 1, 0 (unknown) or -1 ---- */

static int find_turn(struct trace_report *r)
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

static int find_delivery(struct trace_report *r)
{
        struct delivery_row *delivery;
        int rc = delivery_row_get(r->tx, r->delivery_id, &delivery, r->err);

        if (rc == 1) {
                r->turn_id = delivery->turn;
                set_trace(r, delivery->trace);
        }
        free(delivery);
        if (rc == 1 && r->turn_id > 0 && find_turn(r) < 0)
                return -1;
        return rc;
}

/* Finds the first inbound event; a message sent without one has only a delivery. */
static int find_trace(struct trace_report *r)
{
        int rc = trigger_log_row_find_trace(r->tx, r->trace, &r->event_id, r->err);

        if (rc != 0)
                return rc;
        rc = delivery_row_find_trace(r->tx, r->trace, NEWEST, &r->delivery_id, r->err);
        if (rc != 0)
                return rc < 0 ? -1 : find_delivery(r);
        return journal_row_find_trace(r->tx, r->trace, NEWEST, &r->event_id, r->err);
}

/* For our own events (turn.done, message.sent) reports the message that caused them. */
static int find_event(struct trace_report *r)
{
        struct journal_row *row;
        int64_t event = r->event_id;
        int rc = journal_row_get(r->tx, event, &row, r->err);
        bool ours = rc == 1 && !row->key && row->trace;

        if (ours)
                set_trace(r, row->trace);
        free(row);
        if (rc < 0)
                return -1;
        if (!ours)
                return 1;
        rc = find_trace(r);
        if (rc == 0)
                r->event_id = event;
        return rc < 0 ? -1 : 1;
}

static bool parse_id(const char *id, const char *prefix, int64_t *out)
{
        size_t n = strlen(prefix);

        if (strncmp(id, prefix, n) != 0 || id[n] == '\0' || strlen(id + n) > 18 ||
            strspn(id + n, "0123456789") != strlen(id + n))
                return false;
        *out = strtoll(id + n, NULL, 10);
        return true;
}

static int find(struct trace_report *r, const char *id)
{
        int rc;

        if (parse_id(id, "evt-", &r->event_id))
                return find_event(r);
        if (parse_id(id, "trn-", &r->turn_id))
                return find_turn(r);
        if (parse_id(id, "dlv-", &r->delivery_id))
                return find_delivery(r);
        if (strlen(id) == ID_TRACE_SIZE - 1 && strspn(id, "0123456789abcdef") == strlen(id)) {
                set_trace(r, id);
                return find_trace(r);
        }
        rc = journal_row_find_key(r->tx, id, &r->event_id, r->err);
        if (rc != 0)
                return rc;
        rc = delivery_row_find_platform_id(r->tx, id, NEWEST, &r->delivery_id, r->err);
        return rc == 1 ? find_delivery(r) : rc;
}

/* ---- report members ---- */

static int add_event(struct trace_report *r)
{
        json_t *payload, *sender;
        const char *text;
        char *raw;

        if (r->event_id > 0 && journal_row_get(r->tx, r->event_id, &r->event, r->err) < 0)
                return -1;
        if (!r->event) {
                jsonw_null(r->json, "event");
                return 0;
        }
        r->begin_ms = r->event->time_ms;
        if (r->trace[0] == '\0')
                set_trace(r, r->event->trace);
        payload = json_loads(r->event->payload, 0, NULL);
        jsonw_open_member(r->json, "event", '{');
        row_json_id(r->json, "id", "evt-", r->event_id);
        jsonw_str(r->json, "type", r->event->type);
        row_json_time(r->json, "storedAt", r->event->time_ms);
        jsonw_str(r->json, "instanceId", r->event->adapter);
        jsonw_str(r->json, "channel", r->event->channel);
        jsonw_str(r->json, "threadId", r->event->thread);
        jsonw_str(r->json, "key", r->event->key);
        sender = json_object_get(payload, "sender");
        raw = json_is_object(sender) ? json_text(sender) : NULL;
        jsonw_raw(r->json, "sender", raw ? raw : "null");
        free(raw);
        text = json_str(payload, "text", NULL);
        if (text)
                jsonw_strn(r->json, "text", text,
                           utf8_prefix(text, strlen(text), UTF8_BYTES, TEXT_BYTES));
        else
                jsonw_null(r->json, "text");
        jsonw_close(r->json, '}');
        json_decref(payload);
        return 0;
}

static int add_decision(struct trace_report *r)
{
        if (r->event_id > 0 && trigger_log_row_get(r->tx, r->event_id, &r->decision, r->err) < 0)
                return -1;
        if (!r->decision) {
                jsonw_null(r->json, "decision");
                return 0;
        }
        if (r->turn_id == 0)
                r->turn_id = r->decision->turn;
        if (r->trace[0] == '\0')
                set_trace(r, r->decision->trace);
        row_json_trigger_log(r->json, "decision", r->decision);
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
        if (r->begin_ms == 0)
                r->begin_ms = r->turn->created_ms;
        row_json_turn(r->json, "turn", r->turn);
        return 0;
}

/* Counts only the turn's answer: no drafts, reactions or threads. */
static void count_delivery(struct trace_report *r, const struct delivery_row *row)
{
        if (r->turn && (row->class != PACE_FINAL || row->kind == DELIVER_THREAD))
                return;
        switch (row->state) {
        case DELIVERY_SENT:
                r->sent++;
                if (row->ended_ms > r->last_sent_ms)
                        r->last_sent_ms = row->ended_ms;
                break;
        case DELIVERY_QUEUED:
        case DELIVERY_SENDING:
                r->waiting++;
                break;
        case DELIVERY_FAILED:
                r->failed++;
                break;
        case DELIVERY_UNKNOWN:
                r->unknown++;
                break;
        default:
                r->other++;
        }
        if (r->begin_ms == 0)
                r->begin_ms = row->created_ms;
        if (row->error) {
                free(r->delivery_error);
                r->delivery_error = mem_strdup(row->error);
        }
}

static int add_deliveries(struct trace_report *r)
{
        struct delivery_row *one = NULL, row;
        struct store_stmt *s;
        int rc;

        jsonw_open_member(r->json, "deliveries", '[');
        if (r->turn_id > 0) {
                s = delivery_row_list_turn(r->tx, r->turn_id);
                while ((rc = delivery_row_next(s, &row, r->err)) == 1) {
                        count_delivery(r, &row);
                        if (row_json_delivery_attempts(r->tx, r->json, NULL, &row, r->err) < 0) {
                                rows_end(s);
                                return -1;
                        }
                }
        } else {
                rc = delivery_row_get(r->tx, r->delivery_id, &one, r->err);
                if (rc == 1) {
                        count_delivery(r, one);
                        rc = row_json_delivery_attempts(r->tx, r->json, NULL, one, r->err);
                }
                free(one);
        }
        jsonw_close(r->json, ']');
        return rc;
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

static void summarize_deliveries(const struct trace_report *r, struct buf *b, const char *what)
{
        if (r->unknown > 0)
                buf_addf(b, "it is not known whether the %s arrived", what);
        else if (r->failed > 0)
                buf_addf(b, "the %s could not be delivered", what);
        else if (r->waiting > 0)
                buf_addf(b, "waiting for the %s to be delivered", what);
        else if (r->other > 0 && r->sent == 0)
                buf_addf(b, "the %s was not sent", what);

        if (r->unknown + r->failed + r->waiting > 0 || r->sent == 0) {
                add_error(r, b, r->delivery_error);
                return;
        }
        buf_addstr(b, r->turn ? "answered in " : "sent in ");
        add_duration(b, r->last_sent_ms - r->begin_ms);
}

static void summarize_turn(const struct trace_report *r, struct buf *b)
{
        const struct turn_row *t = r->turn;
        const char *reason = r->decision ? r->decision->reason : NULL;

        switch (t->state) {
        case TURN_RUNNING:
                buf_addf(b, "waiting for agent '%s', which has been working for ", t->agent);
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
                buf_addf(b, "agent '%s' failed after %lld attempt%s", t->agent,
                         (long long)t->attempt, t->attempt == 1 ? "" : "s");
                add_error(r, b, t->error);
                return;
        case TURN_CANCELLED:
        case TURN_EXPIRED:
                buf_addf(b, "no answer: the turn was %s", turn_state_name(t->state));
                add_error(r, b, t->error);
                return;
        case TURN_DONE:
                break;
        }
        if (r->sent + r->waiting + r->failed + r->unknown + r->other > 0)
                summarize_deliveries(r, b, "answer");
        else if (reason && reason[0] != '\0')
                buf_addf(b, "silent because %s", reason);
        else
                buf_addf(b, "silent because agent '%s' had nothing to say", t->agent);
}

static void summarize(const struct trace_report *r, struct buf *b)
{
        const struct trigger_log_row *d = r->decision;

        if (r->turn)
                summarize_turn(r, b);
        else if (r->delivery_id > 0)
                summarize_deliveries(r, b, "message");
        else if (d && d->status == TRIGGER_DONE)
                buf_addstr(b, d->reason ? d->reason : ""); /* a command of the road */
        else if (d && d->reason && d->reason[0] != '\0')
                buf_addf(b, "silent because %s", d->reason);
        else if (d)
                buf_addf(b, "silent: the event was %s", trigger_status_name(d->status));
        else if (r->event && incoming_is_type(r->event->type))
                buf_addstr(b, "stored, waiting to be decided");
        else
                buf_addstr(b, "recorded; nothing had to be decided about it");
}

/* ---- reports ---- */

static int add_parts(struct trace_report *r)
{
        struct buf summary;

        if (add_event(r) < 0 || add_decision(r) < 0 || add_turn(r) < 0 || add_deliveries(r) < 0)
                return -1;
        if (!r->event && !r->decision && !r->turn && r->delivery_id == 0)
                return error_set(r->err, ERR_MISSING, "it was pruned");
        buf_init(&summary, 0);
        summarize(r, &summary);
        jsonw_str(r->json, "traceId", r->trace[0] ? r->trace : NULL);
        jsonw_str(r->json, "summary", summary.data);
        buf_release(&summary);
        return 0;
}

int trace_report_write(struct store_tx *tx, const char *id, struct buf *json, struct error *err)
{
        struct trace_report r = { .tx = tx, .json = json, .err = err, .now_ms = clock_wall_ms() };
        size_t start = json->len;
        int rc = find(&r, id);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "nothing is known about '%.100s'", id);
        jsonw_open(json, '{');
        jsonw_str(json, "id", id);
        rc = add_parts(&r);
        report_release(&r);
        if (rc < 0) {
                buf_truncate(json, start);
                return error_prefix(err, "cannot report on '%.100s'", id);
        }
        jsonw_close(json, '}');
        return 0;
}

/* Opens the sentence with the first line of the message. */
static void add_quote(const struct trace_report *r, struct buf *text)
{
        json_t *payload = r->event ? json_loads(r->event->payload, 0, NULL) : NULL;
        const char *said = json_str(payload, "text", "");
        size_t shown = utf8_prefix(said, strcspn(said, "\r\n"), UTF8_CODE_POINTS, QUOTE_CHARS);

        if (shown == 0) {
                buf_addstr(text, "Your last message: ");
        } else {
                buf_addstr(text, "Your message “");
                buf_add(text, said, shown);
                buf_addstr(text, said[shown] != '\0' ? "…”: " : "”: ");
        }
        json_decref(payload);
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
                                           asked->event, NEWEST, &r.event_id, err);

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
                summarize(&r, text);
                buf_addch(text, '.');
        }
        report_release(&r);
        return rc;
}
