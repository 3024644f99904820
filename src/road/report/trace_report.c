/*
 * The story is gathered in the order in which it happened: the event, what was decided about it,
 * the turn, its deliveries. What each part says about the outcome is kept as facts, from which the
 * summary is made at the end.
 */
#include "road/report/trace_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/utf8.h"
#include "net/pace.h"
#include "road/incoming.h"
#include "road/report/row_json.h"

#define TEXT_SHOWN 2000  /* bytes of a message's text */
#define LOOK_BACK  20000 /* rows looked at where no index helps */
#define WHY_SIZE   300

struct story {
        struct store_tx *tx;
        struct buf *json;
        struct error *err;
        int64_t now_ms;
        bool discreet; /* for a chat: errors are not told */

        /* where to look; 0: not known */
        int64_t event, turn, delivery;
        char trace[ID_TRACE_SIZE];

        /* facts for the summary */
        bool has_event, has_decision, has_turn, inbound;
        char text[WHY_SIZE];
        int64_t stored_ms;
        char status[20], reason[WHY_SIZE];
        char agent[80], turn_state[20], turn_error[WHY_SIZE];
        int64_t due_ms, started_ms, attempt;
        unsigned sent, waiting, failed, unknown, other;
        int64_t last_sent_ms;
        char delivery_error[WHY_SIZE];
};

static void keep(char *out, size_t size, const char *text)
{
        snprintf(out, size, "%s", text ? text : "");
        out[utf8_prefix(out, strlen(out), UTF8_BYTES, size - 1)] = '\0';
}

/* ---- from any id to a place on the road ---- */

/* The first column of the first row: 1 found, 0 no row, -1 error. Resets the statement. */
static int one_number(struct story *st, struct store_stmt *s, int64_t *out)
{
        int rc = store_step(s, st->err);

        if (rc == 1) {
                *out = store_col_int(s, 0);
                store_reset(s);
        }
        return rc;
}

static int find_turn(struct story *st)
{
        struct store_stmt *s =
                store_prepare(st->tx, "SELECT inputs, trace FROM turns WHERE id = ?1");
        int rc;

        store_bind_int(s, 1, st->turn);
        rc = store_step(s, st->err);
        if (rc != 1)
                return rc;
        st->event = strtoll(store_col_text(s, 0), NULL, 10);
        keep(st->trace, sizeof(st->trace), store_col_text(s, 1));
        store_reset(s);
        return 1;
}

static int find_delivery(struct story *st)
{
        struct store_stmt *s =
                store_prepare(st->tx, "SELECT turn, trace FROM deliveries WHERE id = ?1");
        int rc;

        store_bind_int(s, 1, st->delivery);
        rc = store_step(s, st->err);
        if (rc != 1)
                return rc;
        st->turn = store_col_int(s, 0);
        keep(st->trace, sizeof(st->trace), store_col_text(s, 1));
        store_reset(s);
        if (st->turn > 0 && find_turn(st) < 0)
                return -1;
        return 1;
}

/*
 * Of a trace the first inbound event is what people mean; a message sent without one has only a
 * delivery.
 */
static int find_trace(struct story *st, const char *trace)
{
        struct store_stmt *s = store_prepare(
                st->tx, "SELECT event FROM trigger_log WHERE trace = ?1 ORDER BY event LIMIT 1");
        int rc;

        if (trace != st->trace)
                keep(st->trace, sizeof(st->trace), trace);
        store_bind_text(s, 1, trace);
        rc = one_number(st, s, &st->event);
        if (rc != 0)
                return rc;
        s = store_prepare(
                st->tx,
                "SELECT id FROM (SELECT id, trace FROM deliveries ORDER BY id DESC LIMIT ?2) AS d"
                " WHERE trace = ?1 ORDER BY id LIMIT 1");
        store_bind_text(s, 1, trace);
        store_bind_int(s, 2, LOOK_BACK);
        rc = one_number(st, s, &st->delivery);
        if (rc != 0)
                return rc < 0 ? -1 : find_delivery(st);
        s = store_prepare(
                st->tx,
                "SELECT seq FROM (SELECT seq, trace FROM journal ORDER BY seq DESC LIMIT ?2) AS j"
                " WHERE trace = ?1 ORDER BY seq LIMIT 1");
        store_bind_text(s, 1, trace);
        store_bind_int(s, 2, LOOK_BACK);
        return one_number(st, s, &st->event);
}

/* The journal's index begins with the adapter, so its few adapters are walked first. */
static int find_key(struct story *st, const char *key)
{
        struct store_stmt *s = store_prepare(
                st->tx,
                "WITH RECURSIVE a(name) AS ("
                " SELECT min(adapter) FROM journal WHERE key IS NOT NULL"
                " UNION ALL SELECT (SELECT min(adapter) FROM journal WHERE key IS NOT NULL AND "
                "adapter > a.name)"
                " FROM a WHERE a.name IS NOT NULL)"
                " SELECT j.seq FROM a JOIN journal j ON j.adapter = a.name AND j.key = ?1 LIMIT 1");
        int rc;

        store_bind_text(s, 1, key);
        rc = one_number(st, s, &st->event);
        if (rc != 0)
                return rc;
        s = store_prepare(
                st->tx,
                "SELECT id FROM (SELECT id, platform_id FROM deliveries ORDER BY id DESC LIMIT ?2) AS d"
                " WHERE platform_id = ?1 LIMIT 1");
        store_bind_text(s, 1, key);
        store_bind_int(s, 2, LOOK_BACK);
        rc = one_number(st, s, &st->delivery);
        return rc == 1 ? find_delivery(st) : rc;
}

static bool is_trace(const char *id)
{
        return strlen(id) == ID_TRACE_SIZE - 1 &&
               strspn(id, "0123456789abcdef") == ID_TRACE_SIZE - 1;
}

static bool is_numbered(const char *id, const char *prefix, int64_t *out)
{
        size_t n = strlen(prefix);

        if (strncmp(id, prefix, n) != 0 || id[n] == '\0' || strlen(id + n) > 18 ||
            strspn(id + n, "0123456789") != strlen(id + n))
                return false;
        *out = strtoll(id + n, NULL, 10);
        return true;
}

/* An event of ours (turn.done, message.sent) belongs to the story of the message that caused it. */
static int find_event(struct story *st)
{
        struct store_stmt *s = store_prepare(
                st->tx,
                "SELECT trace FROM journal WHERE seq = ?1 AND key IS NULL AND trace IS NOT NULL");
        int64_t event = st->event;
        int rc;

        store_bind_int(s, 1, st->event);
        rc = store_step(s, st->err);
        if (rc != 1)
                return rc < 0 ? -1 : 1;
        keep(st->trace, sizeof(st->trace), store_col_text(s, 0));
        store_reset(s);
        rc = find_trace(st, st->trace);
        if (rc == 0)
                st->event = event;
        return rc < 0 ? -1 : 1;
}

static int find(struct story *st, const char *id)
{
        if (is_numbered(id, "evt-", &st->event))
                return find_event(st);
        if (is_numbered(id, "trn-", &st->turn))
                return find_turn(st);
        if (is_numbered(id, "dlv-", &st->delivery))
                return find_delivery(st);
        return is_trace(id) ? find_trace(st, id) : find_key(st, id);
}

/* ---- the parts ---- */

static void show_sender(struct buf *b, const json_t *payload)
{
        json_t *sender = json_object_get(payload, "sender");
        char *text = json_is_object(sender) ? json_text(sender) : NULL;

        if (text)
                jsonw_raw(b, "sender", text);
        else
                jsonw_null(b, "sender");
        free(text);
}

static void show_event(struct story *st, struct store_stmt *s)
{
        json_t *payload = json_loads(store_col_text(s, 6), 0, NULL);
        const char *text = json_str(payload, "text", NULL);
        size_t n = text ? strlen(text) : 0;

        keep(st->text, sizeof(st->text), text);
        jsonw_open_member(st->json, "event", '{');
        row_json_id(st->json, "id", "evt-", st->event);
        jsonw_str(st->json, "type", store_col_text(s, 0));
        row_json_time(st->json, "storedAt", st->stored_ms);
        jsonw_str(st->json, "instanceId", store_col_text(s, 2));
        jsonw_str(st->json, "channel", store_col_text(s, 3));
        jsonw_str(st->json, "threadId", store_col_text(s, 4));
        jsonw_str(st->json, "key", store_col_text(s, 7));
        show_sender(st->json, payload);
        if (text)
                jsonw_strn(st->json, "text", text, utf8_prefix(text, n, UTF8_BYTES, TEXT_SHOWN));
        else
                jsonw_null(st->json, "text");
        jsonw_close(st->json, '}');
        json_decref(payload);
}

static int tell_event(struct story *st)
{
        struct store_stmt *s =
                store_prepare(st->tx, "SELECT type, time_ms, adapter, channel, thread, trace, "
                                      "payload, key FROM journal WHERE seq = ?1");
        int rc;

        store_bind_int(s, 1, st->event);
        rc = st->event > 0 ? store_step(s, st->err) : 0;
        if (rc < 0)
                return -1;
        if (rc == 0) {
                jsonw_null(st->json, "event");
                store_reset(s);
                return 0;
        }
        st->has_event = true;
        st->inbound = event_is_inbound(store_col_text(s, 0));
        st->stored_ms = store_col_int(s, 1);
        if (st->trace[0] == '\0')
                keep(st->trace, sizeof(st->trace), store_col_text(s, 5));
        show_event(st, s);
        store_reset(s);
        return 0;
}

static int tell_decision(struct story *st)
{
        struct store_stmt *s = store_prepare(st->tx, SHOW_DECISION "WHERE l.event = ?1");
        int rc;

        store_bind_int(s, 1, st->event);
        rc = st->event > 0 ? store_step(s, st->err) : 0;
        if (rc < 0)
                return -1;
        if (rc == 0) {
                jsonw_null(st->json, "decision");
                store_reset(s);
                return 0;
        }
        st->has_decision = true;
        if (st->turn == 0)
                st->turn = store_col_int(s, 10);
        if (st->trace[0] == '\0')
                keep(st->trace, sizeof(st->trace), store_col_text(s, 11));
        keep(st->status, sizeof(st->status), store_col_text(s, 12));
        keep(st->reason, sizeof(st->reason), store_col_text(s, 13));
        show_decision(st->json, "decision", s);
        store_reset(s);
        return 0;
}

static int tell_turn(struct story *st)
{
        struct store_stmt *s = store_prepare(st->tx, SHOW_TURN "WHERE t.id = ?1");
        int rc;

        store_bind_int(s, 1, st->turn);
        rc = st->turn > 0 ? store_step(s, st->err) : 0;
        if (rc < 0)
                return -1;
        if (rc == 0) {
                jsonw_null(st->json, "turn");
                store_reset(s);
                return 0;
        }
        st->has_turn = true;
        keep(st->agent, sizeof(st->agent), store_col_text(s, 2));
        keep(st->turn_state, sizeof(st->turn_state), store_col_text(s, 4));
        st->attempt = store_col_int(s, 7);
        st->due_ms = store_col_int(s, 8);
        if (st->stored_ms == 0)
                st->stored_ms = store_col_int(s, 9);
        st->started_ms = store_col_int(s, 10);
        keep(st->turn_error, sizeof(st->turn_error), store_col_text(s, 13));
        show_turn(st->json, "turn", s);
        store_reset(s);
        return 0;
}

static void count_delivery(struct story *st, struct store_stmt *s)
{
        const char *state = store_col_text(s, 7);

        /*
         * pieces of a draft, signs and threads are told, but only the answer decides whether there
         * was one
         */
        if (st->has_turn &&
            (store_col_int(s, 17) != PACE_FINAL || strcmp(store_col_text(s, 5), "thread") == 0))
                return;
        if (strcmp(state, "sent") == 0) {
                st->sent++;
                if (store_col_int(s, 12) > st->last_sent_ms)
                        st->last_sent_ms = store_col_int(s, 12);
        } else if (strcmp(state, "queued") == 0 || strcmp(state, "sending") == 0) {
                st->waiting++;
        } else if (strcmp(state, "failed") == 0) {
                st->failed++;
        } else if (strcmp(state, "unknown") == 0) {
                st->unknown++;
        } else {
                st->other++;
        }
        if (!st->has_event && !st->has_turn && st->stored_ms == 0)
                st->stored_ms = store_col_int(s, 11);
        if (!store_col_null(s, 15))
                keep(st->delivery_error, sizeof(st->delivery_error), store_col_text(s, 15));
}

static int tell_deliveries(struct story *st)
{
        struct store_stmt *s =
                st->turn > 0
                        ? store_prepare(st->tx, SHOW_DELIVERY "WHERE d.turn = ?1 ORDER BY d.id")
                        : store_prepare(st->tx, SHOW_DELIVERY "WHERE d.id = ?1");
        int rc;

        store_bind_int(s, 1, st->turn > 0 ? st->turn : st->delivery);
        jsonw_open_member(st->json, "deliveries", '[');
        while ((rc = store_step(s, st->err)) == 1) {
                int64_t id = store_col_int(s, 0);

                count_delivery(st, s);
                show_delivery_begin(st->json, NULL, s);
                if (show_attempts(st->tx, st->json, id, st->err) < 0) {
                        store_reset(s);
                        return -1;
                }
                show_delivery_end(st->json);
        }
        jsonw_close(st->json, ']');
        return rc;
}

/* ---- the sentence ---- */

static void say_seconds(struct buf *b, int64_t ms)
{
        if (ms < 1000)
                buf_addf(b, "%lld ms", (long long)(ms > 0 ? ms : 0));
        else
                buf_addf(b, "%.1f s", (double)ms / 1000.0);
}

static void say_because(const struct story *st, struct buf *b, const char *why)
{
        if (why[0] == '\0')
                return;
        if (!st->discreet)
                buf_addf(b, ": %s", why);
        else if (st->turn > 0)
                buf_addf(b, " (trn-%lld)", (long long)st->turn);
}

static void summarize_deliveries(struct story *st, struct buf *b, const char *what)
{
        if (st->unknown > 0) {
                buf_addf(b, "it is not known whether the %s arrived", what);
                say_because(st, b, st->delivery_error);
        } else if (st->failed > 0) {
                buf_addf(b, "the %s could not be delivered", what);
                say_because(st, b, st->delivery_error);
        } else if (st->waiting > 0) {
                buf_addf(b, "waiting for the %s to be delivered", what);
                say_because(st, b, st->delivery_error);
        } else if (st->sent > 0) {
                buf_addstr(b, strcmp(what, "answer") == 0 ? "answered in " : "sent in ");
                say_seconds(b, st->last_sent_ms - st->stored_ms);
        } else if (st->other > 0) {
                buf_addf(b, "the %s was not sent", what);
                say_because(st, b, st->delivery_error);
        }
}

static void summarize_open_turn(struct story *st, struct buf *b)
{
        if (strcmp(st->turn_state, "running") == 0) {
                buf_addf(b, "waiting for agent '%s', which has been working for ", st->agent);
                say_seconds(b, st->now_ms - st->started_ms);
        } else if (st->due_ms > st->now_ms) {
                buf_addstr(b, "waiting for further messages for another ");
                say_seconds(b, st->due_ms - st->now_ms);
        } else {
                buf_addf(b, "waiting for its turn with agent '%s'", st->agent);
        }
}

static void summarize_turn(struct story *st, struct buf *b)
{
        unsigned deliveries = st->sent + st->waiting + st->failed + st->unknown + st->other;

        if (strcmp(st->turn_state, "queued") == 0 || strcmp(st->turn_state, "running") == 0) {
                summarize_open_turn(st, b);
        } else if (strcmp(st->turn_state, "failed") == 0) {
                buf_addf(b, "agent '%s' failed after %lld attempt%s", st->agent,
                         (long long)st->attempt, st->attempt == 1 ? "" : "s");
                say_because(st, b, st->turn_error);
        } else if (strcmp(st->turn_state, "done") != 0) {
                buf_addf(b, "no answer: the turn was %s", st->turn_state);
                say_because(st, b, st->turn_error);
        } else if (deliveries == 0 && st->reason[0] != '\0') {
                buf_addf(b, "silent because %s", st->reason);
        } else if (deliveries == 0) {
                buf_addf(b, "silent because agent '%s' had nothing to say", st->agent);
        } else {
                summarize_deliveries(st, b, "answer");
        }
}

static void summarize(struct story *st, struct buf *b)
{
        if (st->has_turn)
                summarize_turn(st, b);
        else if (st->delivery > 0)
                summarize_deliveries(st, b, "message");
        else if (st->has_decision && strcmp(st->status, "done") == 0)
                buf_addstr(b, st->reason); /* carried out by the road itself */
        else if (st->has_decision && st->reason[0] != '\0')
                buf_addf(b, "silent because %s", st->reason);
        else if (st->has_decision)
                buf_addf(b, "silent: the event was %s", st->status);
        else if (st->inbound)
                buf_addstr(b, "stored, waiting to be looked at");
        else
                buf_addstr(b, "recorded; nothing had to be decided about it");
}

static int tell_parts(struct story *st)
{
        struct buf summary;

        if (tell_event(st) < 0 || tell_decision(st) < 0 || tell_turn(st) < 0 ||
            tell_deliveries(st) < 0)
                return -1;
        if (!st->has_event && !st->has_decision && !st->has_turn && st->delivery == 0)
                return error_set(st->err, ERR_MISSING, "it is gone");
        buf_init(&summary, 0);
        summarize(st, &summary);
        jsonw_str(st->json, "traceId", st->trace[0] ? st->trace : NULL);
        jsonw_str(st->json, "summary", summary.data);
        buf_release(&summary);
        return 0;
}

int story_tell(struct store_tx *tx, const char *id, struct buf *json, struct error *err)
{
        struct story st = { .tx = tx, .json = json, .err = err, .now_ms = clock_wall_ms() };
        size_t start = json->len;
        int rc = find(&st, id);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "nothing is known of '%.100s'", id);
        jsonw_open(json, '{');
        jsonw_str(json, "id", id);
        if (tell_parts(&st) < 0) {
                buf_truncate(json, start);
                return error_prefix(err, "cannot tell the story of '%.100s'", id);
        }
        jsonw_close(json, '}');
        return 0;
}

/* ---- for a chat ---- */

#define QUOTED 60 /* characters of the message */

/* 1 and st->event, 0, or -1. Commands and changes of messages are not what people ask about. */
static int find_last(struct story *st, const struct incoming *asked)
{
        struct store_stmt *s = store_prepare(
                st->tx,
                "SELECT event FROM (SELECT event, event_type, adapter, channel, thread, sender, status, turn"
                " FROM trigger_log WHERE event < ?1 ORDER BY event DESC LIMIT ?2) AS l"
                " WHERE adapter = ?3 AND channel = ?4 AND coalesce(thread, '') = ?5 AND sender = ?6"
                " AND event_type = ?7 AND (status <> 'done' OR turn IS NOT NULL)"
                " ORDER BY event DESC LIMIT 1");

        store_bind_int(s, 1, asked->event);
        store_bind_int(s, 2, LOOK_BACK);
        store_bind_text(s, 3, asked->adapter);
        store_bind_text(s, 4, asked->channel);
        store_bind_text(s, 5, asked->thread ? asked->thread : "");
        store_bind_text(s, 6, asked->sender_id);
        store_bind_text(s, 7, EVENT_MESSAGE_RECEIVED);
        return one_number(st, s, &st->event);
}

static void quote(const struct story *st, struct buf *text)
{
        size_t line = strcspn(st->text, "\r\n"),
               shown = utf8_prefix(st->text, line, UTF8_CODE_POINTS, QUOTED);

        if (shown == 0) {
                buf_addstr(text, "Your last message: ");
                return;
        }
        buf_addstr(text, "Your message “");
        buf_add(text, st->text, shown);
        buf_addstr(text, st->text[shown] != '\0' ? "…”: " : "”: ");
}

int story_of_last(struct store_tx *tx, const struct incoming *asked, struct buf *text,
                  struct error *err)
{
        struct buf json;
        struct story st = {
                .tx = tx, .json = &json, .err = err, .now_ms = clock_wall_ms(), .discreet = true
        };
        int rc = find_last(&st, asked);

        if (rc <= 0) {
                buf_addstr(text, "I know of no earlier message from you here.");
                return rc;
        }
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        rc = tell_parts(&st);
        buf_release(&json);
        if (rc < 0)
                return -1;
        quote(&st, text);
        summarize(&st, text);
        buf_addch(text, '.');
        return 0;
}
