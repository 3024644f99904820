/*
 * Whose a row is. Keys that reach all adapters go straight to the handler; for the others the row
 * is looked up first, and one that is not theirs is as good as missing: that it exists is nobody's
 * business either.
 */
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/report/trace_report.h"

struct ownership {
        struct api_job job;
        row_scope_fn *owner;
        char *id;
        struct buf adapters; /* what the store found */
        int found;
};

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct ownership *o = arg;

        buf_clear(&o->adapters);
        o->found = o->owner(tx, o->id, &o->adapters, err);
        return o->found < 0 ? -1 : 0;
}

/* Each of the names, which commas part; none at all is nobody's. */
static bool reaches_each(const struct key *k, const char *names)
{
        bool any = false;

        for (const char *p = names; *p;) {
                size_t n = strcspn(p, ",");
                char *name = mem_strndup(p, n);
                bool ok = key_reaches(k, name);

                free(name);
                if (!ok)
                        return false;
                any = true;
                p += n + (p[n] == ',');
        }
        return any;
}

static void on_looked(void *arg, const struct error *err)
{
        struct ownership *o = arg;
        struct http_exchange *x = api_job_end(&o->job);

        if (x && err && err->kind != ERR_MISSING)
                reply_failed(x, err);
        else if (x && (err || o->found == 0 || !reaches_each(caller_of(x), o->adapters.data)))
                reply_missing(x, "row", o->id);
        else if (x)
                request_run(x);
        buf_release(&o->adapters);
        free(o->id);
        free(o);
}

void row_scope_run(struct http_exchange *x)
{
        const struct route *route = http_route_of(x)->more;
        const char *id = http_param(x, "id");
        struct ownership *o;

        if (!caller_of(x)->adapters || api_of(x)->closed) {
                request_run(x);
                return;
        }
        o = mem_zalloc(sizeof(*o));
        o->owner = route->owner;
        o->id = mem_strdup(id ? id : "");
        buf_init(&o->adapters, 0);
        api_job_begin(&o->job, x);
        store_read(api_of(x)->env.store, on_reader, on_looked, o);
}

/* ---- by the kind of row ---- */

/* The first column of the row with this number. */
static int by_number(struct store_tx *tx, const char *sql, const char *prefix, const char *id,
                     struct buf *adapter, struct error *err)
{
        int64_t n = field_id(prefix, id);
        struct store_stmt *s;
        int rc;

        if (n < 0)
                return 0;
        s = store_prepare(tx, sql);
        store_bind_int(s, 1, n);
        rc = store_step(s, err);
        if (rc == 1) {
                const char *name = store_col_text(s, 0);

                buf_addstr(adapter, name ? name : "");
                store_reset(s);
        }
        return rc;
}

int row_scope_turn(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        return by_number(
                tx,
                "SELECT c.adapter FROM turns t JOIN conversations c ON c.id = t.conversation WHERE t.id = ?1",
                "trn-", id, adapter, err);
}

int row_scope_delivery(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        return by_number(tx, "SELECT adapter FROM deliveries WHERE id = ?1", "dlv-", id, adapter,
                         err);
}

int row_scope_event(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        return by_number(tx, "SELECT adapter FROM journal WHERE seq = ?1", "evt-", id, adapter,
                         err);
}

int row_scope_dead_letter(struct store_tx *tx, const char *id, struct buf *adapter,
                          struct error *err)
{
        return strncmp(id, "trn-", 4) == 0 ? row_scope_turn(tx, id, adapter, err)
                                           : row_scope_delivery(tx, id, adapter, err);
}

static void add_instance(const json_t *part, struct buf *adapter)
{
        const char *name = json_str(part, "instanceId", NULL);

        if (name)
                buf_addf(adapter, "%s%s", adapter->len > 0 ? "," : "", name);
}

/* Everybody the story is about: it is told only to those who reach them all. */
int row_scope_trace(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        static const char *const parts[] = { "event", "decision", "turn" };
        struct buf text;
        json_t *story, *d;
        size_t i;

        buf_init(&text, 0);
        if (story_tell(tx, id, &text, err) < 0) {
                buf_release(&text);
                return -1;
        }
        story = json_loadb(text.data, text.len, 0, NULL);
        for (i = 0; i < COUNT(parts); i++)
                add_instance(json_object_get(story, parts[i]), adapter);
        json_array_foreach(json_object_get(story, "deliveries"), i, d)
                add_instance(d, adapter);
        json_decref(story);
        buf_release(&text);
        return 1;
}
