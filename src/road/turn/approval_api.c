/*
 * approval_api: decisions by operators, on the command line or over the API.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/turn/approval_private.h"

struct api_decision {
        struct road *road;
        struct approval_change *change; /* NULL: it is not open */
        int64_t id;
        char *adapters;
        struct approval_row *row; /* result */
        approval_decided_fn *done;
        void *arg;
        struct error err; /* refused at once */
};

static bool may_see(const char *adapters, const char *adapter)
{
        char *member = mem_printf(",%s,", adapter);
        bool may = !adapters || strstr(adapters, member);

        free(member);
        return may;
}

static void api_end(struct api_decision *d, const struct approval_row *row, const struct error *err)
{
        d->done(d->arg, row, err);
        free(d->row);
        free(d->adapters);
        free(d);
}

static int write_api(struct store_tx *tx, void *arg, struct error *err)
{
        return approval_change_write(tx, ((struct api_decision *)arg)->change, err);
}

static void conflict(struct error *err, const struct approval_row *row)
{
        struct buf words;

        buf_init(&words, 200);
        approval_describe(row, &words);
        error_set(err, ERR_CONFLICT, "approval 'apr-%lld' was %s", (long long)row->id, words.data);
        buf_release(&words);
}

static void on_api_written(void *arg, const struct error *err)
{
        struct api_decision *d = arg;
        struct approval_change *c = d->change;
        struct error decided;

        if (err) {
                api_end(d, NULL, err);
        } else if (c->found) {
                conflict(&decided, c->found);
                d->row = approval_row_dup(c->found);
                approval_change_committed(c);
                api_end(d, d->row, &decided);
        } else {
                d->row = approval_row_dup(c->row);
                approval_change_committed(c);
                api_end(d, d->row, NULL);
        }
        approval_change_free(c);
}

static int read_decided(struct store_tx *tx, void *arg, struct error *err)
{
        struct api_decision *d = arg;

        free(d->row);
        return approval_row_get(tx, d->id, &d->row, err) < 0 ? -1 : 0;
}

static void on_decided_read(void *arg, const struct error *err)
{
        struct api_decision *d = arg;
        struct error why;

        d->road->writes--;
        if (err) {
                api_end(d, NULL, err);
                return;
        }
        if (!d->row || !may_see(d->adapters, d->row->adapter)) {
                error_set(&why, ERR_MISSING, "there is no approval 'apr-%lld'", (long long)d->id);
                api_end(d, NULL, &why);
                return;
        }
        if (d->row->state == APPROVAL_OPEN)
                error_set(&why, ERR_BUSY, "approval 'apr-%lld' is being stored; try again",
                          (long long)d->id);
        else
                conflict(&why, d->row);
        api_end(d, d->row->state == APPROVAL_OPEN ? NULL : d->row, &why);
}

static void on_api_refused(void *arg)
{
        struct api_decision *d = arg;

        api_end(d, NULL, &d->err);
}

void approval_decide(struct road *r, const struct approval_verdict *v, approval_decided_fn *done,
                     void *arg)
{
        struct approval *a = approval_find(r, v->id);
        struct api_decision *d = mem_zalloc(sizeof(*d));

        d->road = r;
        d->id = v->id;
        d->adapters = mem_strdup(v->adapters);
        d->done = done;
        d->arg = arg;
        if (!a || !may_see(v->adapters, a->row->adapter)) {
                r->writes++;
                store_read(r->store, read_decided, on_decided_read, d);
                return;
        }
        if (a->deciding)
                error_set(&d->err, ERR_BUSY, "approval 'apr-%lld' is being decided; try again",
                          (long long)v->id);
        else if (v->always && !a->row->rule)
                error_set(&d->err, ERR_INVALID,
                          "approval 'apr-%lld' offers no rule: approve it once", (long long)v->id);
        if (d->err.kind != ERR_NONE) {
                loop_defer(r->loop, on_api_refused, d);
                return;
        }
        d->change = approval_change_new(a, v->approve ? APPROVAL_APPROVED : APPROVAL_REFUSED, v->by,
                                        v->note, v->always);
        road_write(r, "approval", write_api, on_api_written, d);
}
