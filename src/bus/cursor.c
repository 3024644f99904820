/*
 * Cursors: how far each reader of the journal has come, and when its owner was last there.
 * Everything here runs inside store functions.
 *
 * A reader that is there holds back pruning for as long as it needs. One that is not is waited for
 * as long as the events are kept, and no longer, or a name that is never used again would keep the
 * journal for ever. Its row stays: when it comes back after all it goes on where it stopped and is
 * told what it missed.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bus/journal.h"

int cursor_find(struct store_tx *tx, const char *name, struct bus_cursor *out, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT seq, updated_ms, missed FROM cursors WHERE name = ?1");
        int rc;

        *out = (struct bus_cursor){ .name = name };
        store_bind_text(s, 1, name);
        rc = store_step(s, err);
        if (rc == 1) {
                out->seq = store_col_int(s, 0);
                out->seen_ms = store_col_int(s, 1);
                out->missed = store_col_int(s, 2);
        }
        store_reset(s);
        return rc;
}

int bus_cursor_get(struct store_tx *tx, const char *name, int64_t *seq, struct error *err)
{
        struct bus_cursor c;
        int rc = cursor_find(tx, name, &c, err);

        *seq = c.seq;
        return rc;
}

int bus_cursor_set(struct store_tx *tx, const char *name, int64_t seq, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO cursors(name, seq, updated_ms) VALUES(?1, ?2, ?3) "
                "ON CONFLICT(name) DO UPDATE SET seq = excluded.seq, updated_ms = excluded.updated_ms, "
                "missed = 0 WHERE excluded.seq > cursors.seq");

        store_bind_text(s, 1, name);
        store_bind_int(s, 2, seq);
        store_bind_int(s, 3, clock_wall_ms());
        return store_run(s, err);
}

int cursor_seen(struct store_tx *tx, const char *name, int64_t seq, int64_t stale_ms,
                struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "UPDATE cursors SET updated_ms = ?3, "
                                  "seq = CASE WHEN ?2 > seq THEN ?2 ELSE seq END "
                                  "WHERE name = ?1 AND (?2 > seq OR updated_ms < ?4)");

        store_bind_text(s, 1, name);
        store_bind_int(s, 2, seq);
        store_bind_int(s, 3, clock_wall_ms());
        store_bind_int(s, 4, stale_ms);
        return store_run(s, err);
}

int cursor_missed(struct store_tx *tx, const char *name, int64_t events, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "UPDATE cursors SET missed = missed + ?2 WHERE name = ?1");

        store_bind_text(s, 1, name);
        store_bind_int(s, 2, events);
        return store_run(s, err);
}

int cursors_passed(struct store_tx *tx, int64_t seen_since_ms, int64_t *out, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT min(seq) FROM cursors WHERE updated_ms >= ?1");

        store_bind_int(s, 1, seen_since_ms);
        return store_number(s, INT64_MAX, out, err);
}

/* --- lists --- */

static int each_row(struct store_stmt *s, int64_t head, bus_cursor_fn *each, void *arg,
                    struct error *err)
{
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct bus_cursor c = {
                        .name = store_col_text(s, 0),
                        .seq = store_col_int(s, 1),
                        .seen_ms = store_col_int(s, 2),
                        .missed = store_col_int(s, 3),
                };

                c.lag = head > c.seq ? head - c.seq : 0;
                each(arg, &c);
        }
        store_reset(s);
        return rc;
}

int bus_cursors(struct store_tx *tx, bus_cursor_fn *each, void *arg, struct error *err)
{
        struct journal_extent extent;

        if (journal_extent(tx, &extent, err) != 0)
                return -1;
        return each_row(
                store_prepare(tx,
                              "SELECT name, seq, updated_ms, missed FROM cursors ORDER BY name"),
                extent.head, each, arg, err);
}

static void add_to_list(void *arg, const struct bus_cursor *c)
{
        struct cursor_list *l = arg;

        if (l->count == l->cap) {
                l->cap = l->cap ? l->cap * 2 : 4;
                l->items = mem_realloc(l->items, l->cap * sizeof(*l->items));
        }
        l->items[l->count] = *c;
        l->items[l->count++].name = mem_strdup(c->name);
}

int cursors_behind(struct store_tx *tx, int64_t seq, struct cursor_list *out, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT name, seq, updated_ms, missed FROM cursors WHERE seq < ?1");

        store_bind_int(s, 1, seq);
        return each_row(s, seq, add_to_list, out, err);
}

void cursor_list_release(struct cursor_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                free((char *)l->items[i].name);
        free(l->items);
        *l = (struct cursor_list){ 0 };
}
