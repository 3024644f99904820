/*
 * session_expiry: one timer for everything that becomes stale.
 *
 * A look is one transaction: commands that nobody fetched in time expire, so do questions whose
 * program does not say what became of them, and sessions without an event for long are archived.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "remote/session_command.h"
#include "remote/session_journal.h"

#define TAKE_MAX 100 /* of each per look */
#define RETRY_MS 5000
#define SLEEP_MS 60000 /* after which the wall clock is checked */
#define GRACE_MS 30000 /* in which a program may report the end of its question itself */

struct look {
        struct remote *remote;
        int64_t now_ms, archive_ms;
        /* results */
        size_t expired;
        int64_t first_ms; /* when the next is due; 0: nothing is */
        struct bus_batch batch;
};

static int expire(struct store_tx *tx, struct look *l, struct error *err)
{
        struct store_stmt *s = session_command_row_list_due(tx, l->now_ms, TAKE_MAX);
        struct session_command_row *due[TAKE_MAX], row;
        size_t n = 0;
        int rc;

        while ((rc = session_command_row_next(s, &row, err)) == 1)
                due[n++] = session_command_row_dup(&row);
        for (size_t i = 0; i < n; i++) {
                if (rc >= 0)
                        rc = session_command_expire(tx, &l->batch, due[i], l->now_ms, err);
                l->expired += rc == 1;
                free(due[i]);
        }
        return rc < 0 ? -1 : 0;
}

/* The program will not hear of it: it has decided by itself, or is gone. */
static int expire_question(struct store_tx *tx, struct look *l,
                           const struct session_approval_row *a, struct error *err)
{
        const char *decision = a->fallback ? a->fallback : "deny";
        struct bus_event e = { .type = "session.approval.expired", .time_ms = l->now_ms };
        struct session_row *session;
        struct buf json;
        int rc = session_row_get(tx, a->session, &session, err);

        if (rc < 0 ||
            session_approval_row_decide(tx, a->id, decision, "timeout", NULL, l->now_ms, err) < 0) {
                free(session);
                return -1;
        }
        if (!session)
                return 0;
        session_journal_begin(&json, session);
        jsonw_str(&json, "approvalId", a->approval);
        jsonw_str(&json, "decision", decision);
        rc = session_journal_end(tx, &l->batch, session, &e, &json, err);
        free(session);
        return rc;
}

static int expire_questions(struct store_tx *tx, struct look *l, struct error *err)
{
        struct store_stmt *s = session_approval_row_list_due(tx, l->now_ms - GRACE_MS, TAKE_MAX);
        struct session_approval_row *due[TAKE_MAX], row;
        size_t n = 0;
        int rc;

        while ((rc = session_approval_row_next(s, &row, err)) == 1)
                due[n++] = session_approval_row_dup(&row);
        for (size_t i = 0; i < n; i++) {
                if (rc >= 0)
                        rc = expire_question(tx, l, due[i], err);
                free(due[i]);
        }
        return rc < 0 ? -1 : 0;
}

static int archive_one(struct store_tx *tx, struct look *l, const struct session_row *row,
                       struct error *err)
{
        struct bus_event e = { .type = "session.state.archived", .time_ms = l->now_ms };
        int rc = session_row_archive(tx, row->id, l->now_ms - l->archive_ms, err);
        struct buf json;

        if (rc != 1)
                return rc;
        session_journal_begin(&json, row);
        return session_journal_end(tx, &l->batch, row, &e, &json, err);
}

static int archive(struct store_tx *tx, struct look *l, struct error *err)
{
        struct store_stmt *s = session_row_list_quiet(tx, l->now_ms - l->archive_ms, TAKE_MAX);
        struct session_row *quiet[TAKE_MAX], row;
        size_t n = 0;
        int rc;

        while ((rc = session_row_next(s, &row, err)) == 1)
                quiet[n++] = session_row_dup(&row);
        for (size_t i = 0; i < n; i++) {
                if (rc >= 0)
                        rc = archive_one(tx, l, quiet[i], err);
                free(quiet[i]);
        }
        return rc < 0 ? -1 : 0;
}

static int write_look(struct store_tx *tx, void *arg, struct error *err)
{
        struct look *l = arg;
        int64_t quiet_ms, asked_ms;

        bus_batch_reset(&l->batch);
        l->expired = 0;
        if (expire(tx, l, err) < 0 || expire_questions(tx, l, err) < 0 || archive(tx, l, err) < 0 ||
            session_command_row_first_ms(tx, &l->first_ms, err) < 0 ||
            session_approval_row_first_ms(tx, &asked_ms, err) < 0 ||
            session_row_quiet_ms(tx, &quiet_ms, err) < 0)
                return -1;
        if (asked_ms > 0 && (l->first_ms == 0 || asked_ms + GRACE_MS < l->first_ms))
                l->first_ms = asked_ms + GRACE_MS;
        if (quiet_ms > 0 && (l->first_ms == 0 || quiet_ms + l->archive_ms + 1 < l->first_ms))
                l->first_ms = quiet_ms + l->archive_ms + 1;
        return 0;
}

/* ---- on the loop ---- */

static void sleep_until(struct remote *r, int64_t when_ms)
{
        int64_t wait_ms = when_ms - clock_wall_ms();

        r->next_ms = when_ms;
        if (when_ms == 0 || r->quiet)
                timer_stop(r->timer);
        else
                timer_start(r->timer, wait_ms < 0 ? 0 : wait_ms > SLEEP_MS ? SLEEP_MS : wait_ms);
}

static void on_timer(void *arg)
{
        struct remote *r = arg;

        if (r->next_ms > clock_wall_ms())
                sleep_until(r, r->next_ms);
        else
                session_expiry_look(r);
}

static void on_looked(void *arg, const struct error *err)
{
        struct look *l = arg;
        struct remote *r = l->remote;

        r->writes--;
        r->looking = false;
        if (err) {
                log_error("cannot look for stale commands of sessions; retrying",
                          LOG_S("why", err->text));
                sleep_until(r, clock_wall_ms() + RETRY_MS);
        } else {
                bus_publish(r->env.bus, &l->batch);
                r->stats.expired += l->expired;
                sleep_until(r, l->first_ms);
        }
        bus_batch_release(&l->batch);
        free(l);
        if (!err && r->look_again)
                session_expiry_look(r);
}

void session_expiry_look(struct remote *r)
{
        struct look *l;

        r->look_again = r->looking;
        if (r->looking || r->quiet || !r->started)
                return;
        r->looking = true;
        l = mem_zalloc(sizeof(*l));
        l->remote = r;
        l->now_ms = clock_wall_ms();
        l->archive_ms = r->conf.archive_seconds * 1000;
        r->writes++;
        store_write(r->env.store, write_look, on_looked, l);
}

void session_expiry_open(struct remote *r)
{
        r->timer = timer_new(r->env.loop, on_timer, r);
}

void session_expiry_close(struct remote *r)
{
        timer_stop(r->timer);
        while (r->writes > 0 && loop_step(r->env.loop, true))
                ;
        timer_free(r->timer);
}
