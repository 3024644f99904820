/*
 * The writer: one transaction, one sync for everything that waits.
 *
 * There is no commit timer: while one commit waits for the disk the next batch gathers by itself.
 * One writer alone pays one sync per write, a thousand writers share it.
 */
#include "base/clock.h"
#include "base/fault.h"
#include "store/store_private.h"

static bool is_disk_trouble(enum error_kind kind)
{
        return kind == ERR_FULL || kind == ERR_IO || kind == ERR_CORRUPT || kind == ERR_BUSY;
}

static int commit(struct worker *w, size_t writes, struct error *err)
{
        uint64_t start = clock_mono_ns();
        int rc;

        fault_point("store.before_commit");
        rc = w->tx.driver->commit(w->tx.conn, err);
        if (rc != 0)
                return -1;
        fault_point("store.after_commit");
        store_note_commit(w->store, writes, (int64_t)((clock_mono_ns() - start) / 1000));
        return 0;
}

static void fail_all(struct worker *w, struct job **jobs, size_t n, const struct error *err)
{
        w->tx.driver->rollback(w->tx.conn);
        store_note_failure(w->store, err);
        if (err->kind == ERR_CORRUPT)
                store_note_damage(w->store, err);
        for (size_t i = 0; i < n; i++)
                store_job_fail(jobs[i], err);
}

/* Runs functions until one fails; returns how many went well. */
static size_t call_each(struct worker *w, struct job **jobs, size_t n, struct error *err)
{
        size_t i = 0;

        while (i < n && store_tx_call(&w->tx, jobs[i]->fn, jobs[i]->arg, err) == 0)
                i++;
        return i;
}

/*
 * One transaction for all, as long as all go well. When one fails the transaction is undone and
 * those before it are repeated without it; then it is tried again as the first of the rest, and a
 * failure there, with nobody before it, is its own. So the order of commits is the order of writes,
 * and neighbours cost two more commits, not a savepoint each.
 */
static void run_batch(struct worker *w, struct job **jobs, size_t n)
{
        size_t together = n; /* how many of the rest to try at once */

        while (n > 0) {
                struct error err = { 0 };
                size_t good;

                if (store_is_damaged(w->store, &err) ||
                    w->tx.driver->begin(w->tx.conn, &err) != 0) {
                        fail_all(w, jobs, n, &err);
                        return;
                }
                good = call_each(w, jobs, together, &err);
                if (good == together) {
                        if (commit(w, good, &err) != 0)
                                fail_all(w, jobs, good, &err);
                } else {
                        w->tx.driver->rollback(w->tx.conn);
                        if (good > 0) {
                                together = good;
                                continue;
                        }
                        if (is_disk_trouble(err.kind))
                                store_note_failure(w->store, &err);
                        if (w->tx.damage.kind != ERR_NONE)
                                store_note_damage(w->store, &w->tx.damage);
                        store_job_fail(jobs[0], &err);
                        good = 1;
                }
                jobs += good;
                n -= good;
                together = n;
        }
}

void store_run_writes(struct worker *w, struct jobs *taken)
{
        struct store *s = w->store;

        while (!STAILQ_EMPTY(taken)) {
                size_t n = 0;

                while (n < s->options.max_batch && !STAILQ_EMPTY(taken)) {
                        s->batch[n++] = STAILQ_FIRST(taken);
                        STAILQ_REMOVE_HEAD(taken, next);
                }
                run_batch(w, s->batch, n);
                store_worker_finish(w, s->batch, n);
        }
}
