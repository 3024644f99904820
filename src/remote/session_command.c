#include "remote/session_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "remote/session_journal.h"

#define SUPERSEDE_MAX 100 /* queued commands looked at */

char *session_command_id(char out[SESSION_COMMAND_ID_SIZE])
{
        return id_random_text(out, SESSION_COMMAND_ID_SIZE - 1);
}

/* The audit trail: who gave it, and what became of it. */
static int journal(struct store_tx *tx, struct bus_batch *batch, const struct session_row *session,
                   const struct session_command_row *row, enum session_command_state state,
                   const char *error, int64_t now_ms, struct error *err)
{
        char type[40];
        struct bus_event e = { .type = type,
                               .time_ms = now_ms,
                               .adapter = row->adapter,
                               .channel = row->channel,
                               .thread = row->thread };
        struct buf json;

        snprintf(type, sizeof(type), "session.command.%s", session_command_state_name(state));
        session_journal_begin(&json, session);
        jsonw_str(&json, "commandId", row->command);
        jsonw_str(&json, "action", session_action_name(row->action));
        jsonw_str(&json, "content", row->content);
        jsonw_str(&json, "state", session_command_state_name(state));
        jsonw_str(&json, "by", row->given_by);
        jsonw_opt(&json, "displayName", row->display_name);
        jsonw_opt(&json, "message", row->message);
        jsonw_opt(&json, "approvalId", row->approval);
        jsonw_opt(&json, "decision", row->decision);
        jsonw_opt(&json, "reason", row->reason);
        jsonw_opt(&json, "error", error);
        return session_journal_end(tx, batch, session, &e, &json, err);
}

/* Guarded and journaled. 1; 0: it is not in that state any more; -1. */
static int move(struct store_tx *tx, struct bus_batch *batch, const struct session_row *session,
                const struct session_command_row *row, enum session_command_state to,
                const char *error, const char *receipt, int64_t now_ms, struct error *err)
{
        int rc = session_command_row_move(tx, row->id, row->state, to, error, receipt, now_ms, err);

        fault_point("session.command");
        if (rc == 1 && journal(tx, batch, session, row, to, error, now_ms, err) < 0)
                return -1;
        return rc;
}

/* ---- queueing ---- */

/* The first decision counts, whoever makes it. */
static int decide_approval(struct store_tx *tx, const struct session_row *session,
                           const struct session_command_row *row, struct error *err)
{
        struct session_approval_row *known;
        int rc = session_approval_row_find(tx, session->id, row->approval, &known, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no approval '%.130s'", row->approval);
        if (rc == 1)
                rc = session_approval_row_decide(tx, known->id, row->decision, row->given_by,
                                                 row->reason, row->created_ms, err);
        if (rc == 0)
                error_set(err, ERR_CONFLICT, "it is decided already: %s, by %s", known->state,
                          known->decided_by ? known->decided_by : "nobody");
        free(known);
        return rc == 1 ? 0 : -1;
}

int session_command_queue(struct store_tx *tx, struct bus_batch *batch,
                          const struct session_row *session, const struct session_command_row *row,
                          int64_t most, int64_t *id, struct error *err)
{
        int64_t waiting;
        int rc = row->request_key ? session_command_row_find_request(tx, row->request_key, id, err)
                                  : 0;

        if (rc != 0)
                return rc < 0 ? -1 : 0;
        if (session->state == SESSION_ENDED)
                return error_set(err, ERR_CONFLICT, "the session has ended");
        /* there are no more decisions than questions */
        waiting = row->approval ? 0 : session_command_row_count(tx, session->id, most, err);
        if (waiting < 0)
                return -1;
        if (waiting >= most)
                return error_set(err, ERR_LIMIT,
                                 "%lld commands wait for this session already, the most there may "
                                 "be (sessions.queued)",
                                 (long long)most);
        if ((row->approval && decide_approval(tx, session, row, err) < 0) ||
            session_command_row_insert(tx, row, id, err) < 0)
                return -1;
        if (journal(tx, batch, session, row, SESSION_COMMAND_QUEUED, NULL, row->created_ms, err) <
            0)
                return -1;
        return 1;
}

int session_command_supersede(struct store_tx *tx, struct bus_batch *batch,
                              const struct session_row *session, const char *approval,
                              int64_t now_ms, struct error *err)
{
        struct store_stmt *s = session_command_row_list_queued(tx, session->id, SUPERSEDE_MAX);
        struct session_command_row *late[SUPERSEDE_MAX], row;
        size_t n = 0;
        int rc;

        while ((rc = session_command_row_next(s, &row, err)) == 1)
                if (row.approval && strcmp(row.approval, approval) == 0)
                        late[n++] = session_command_row_dup(&row);
        for (size_t i = 0; i < n; i++) {
                if (rc >= 0)
                        rc = move(tx, batch, session, late[i], SESSION_COMMAND_SUPERSEDED, NULL,
                                  NULL, now_ms, err);
                free(late[i]);
        }
        return rc < 0 ? -1 : 0;
}

int session_command_expire(struct store_tx *tx, struct bus_batch *batch,
                           const struct session_command_row *row, int64_t now_ms, struct error *err)
{
        struct session_row gone = { .id = row->session, .session = "" }, *session;
        int rc = session_row_get(tx, row->session, &session, err);

        if (rc < 0)
                return -1;
        rc = move(tx, batch, session ? session : &gone, row, SESSION_COMMAND_EXPIRED, NULL, NULL,
                  now_ms, err);
        free(session);
        return rc;
}

/* ---- acknowledging ---- */

/* Does the state `to` come after `from`? Then the program has something new to say. */
static bool follows(enum session_command_state from, enum session_command_state to)
{
        return from == SESSION_COMMAND_QUEUED ||
               (from == SESSION_COMMAND_DELIVERED && to != SESSION_COMMAND_DELIVERED);
}

static int acknowledge(struct store_tx *tx, struct bus_batch *batch, struct session_ack *ack,
                       const struct session_command_row *row, const struct session_row *session,
                       struct error *err)
{
        bool late = row->state == SESSION_COMMAND_QUEUED && row->expires_ms <= ack->now_ms;
        int rc;

        if (late || row->state == SESSION_COMMAND_EXPIRED)
                return error_set(err, ERR_CONFLICT, "the command '%s' has expired", row->command);
        ack->now = row->state;
        ack->duplicate = row->state != ack->state || !ack->receipt || !row->receipt ||
                         strcmp(ack->receipt, row->receipt) != 0;
        if (!follows(row->state, ack->state))
                return 0;
        rc = move(tx, batch, session, row, ack->state, ack->error, ack->receipt, ack->now_ms, err);
        if (rc == 1) {
                ack->now = ack->state;
                ack->duplicate = false;
        }
        return rc < 0 ? -1 : 0;
}

int session_command_ack(struct store_tx *tx, struct bus_batch *batch, struct session_ack *ack,
                        struct error *err)
{
        struct session_command_row *row;
        struct session_row *session = NULL;
        int rc = session_command_row_find(tx, ack->command, &row, err);

        if (rc == 1)
                rc = session_row_get(tx, row->session, &session, err);
        if (rc == 1 && !ack->by.all && session->owner != ack->by.owner)
                rc = 0;
        if (rc == 0)
                error_set(err, ERR_MISSING, "there is no command '%.60s'", ack->command);
        rc = rc == 1 ? acknowledge(tx, batch, ack, row, session, err) : -1;
        free(row);
        free(session);
        return rc;
}

void session_command_json(struct buf *out, const struct session_command_row *row)
{
        char created[CLOCK_ISO_SIZE];

        jsonw_open(out, '{');
        jsonw_str(out, "command_id", row->command);
        jsonw_str(out, "action", session_action_name(row->action));
        jsonw_str(out, "content", row->content);
        jsonw_str(out, "created_at", clock_iso(row->created_ms, created));
        jsonw_opt(out, "approval_id", row->approval);
        jsonw_opt(out, "decision", row->decision);
        jsonw_opt(out, "reason", row->reason);
        jsonw_str(out, "by", row->display_name ? row->display_name : row->given_by);
        jsonw_close(out, '}');
}
