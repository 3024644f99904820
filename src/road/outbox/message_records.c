/*
 * message_records: which messages of an adapter are stored, for a platform that looks for one that
 * may have arrived.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "road/outbox/delivery_job.h"
#include "road/road_state.h"
#include "rows/journal_row.h"

#define DELIVERIES_READ 2000
#define NEAR_READ       5000 /* deliveries around the one that is looked for */
#define NEAR_AFTER      4000 /* of these, later ones */
#define EVENTS_READ     8000
#define EVENTS_SINCE    25000 /* after it was sent */

struct records_read {
        struct road *road;
        int64_t delivery, read_seq; /* delivery 0: the newest of the adapter alone */
        char *adapter, *channel;
        int64_t known_ms; /* the last end of a send of the channel that has an id */
        struct arena arena;
        struct message_record *items;
        size_t item_max;
        struct message_records found;
        message_records_fn *done;
        void *arg;
};

static void add(struct records_read *v, const char *channel, const char *id, bool own, bool plain)
{
        if (v->found.count == v->item_max) {
                v->item_max = v->item_max > 0 ? 2 * v->item_max : 1024;
                v->items = mem_realloc(v->items, v->item_max * sizeof(*v->items));
        }
        v->items[v->found.count++] =
                (struct message_record){ .channel = arena_strdup(&v->arena, channel),
                                         .id = arena_strdup(&v->arena, id),
                                         .own = own,
                                         .plain = plain };
}

/*
 * A message whose id nobody knows may be there, whatever became of its delivery since, unless
 * another one was sent after it had ended: sends of a channel follow each other, and the other's id
 * is known. Rows come newest first.
 */
static void judge(struct records_read *v, const struct sent_row *row)
{
        if (row->id == v->delivery || strcmp(row->channel, v->channel) != 0)
                return;
        if (row->platform_id && row->ended_ms > v->known_ms)
                v->known_ms = row->ended_ms;
        else if (!row->platform_id && (row->ended_ms == 0 || row->ended_ms > v->known_ms))
                v->found.ambiguous = true;
}

/* Reads deliveries below *before, newest first; *before is then the last one's. How many, or -1. */
static int read_sent(struct store_tx *tx, struct records_read *v, int most, int64_t *before,
                     struct error *err)
{
        struct store_stmt *s = delivery_row_list_sent(tx, *before, most);
        struct sent_row row;
        int rc, n = 0;

        while ((rc = delivery_row_next_sent(s, &row, err)) == 1) {
                n++;
                *before = row.id;
                if (strcmp(row.adapter, v->adapter) != 0 || !row.message)
                        continue;
                judge(v, &row);
                if (row.platform_id)
                        add(v, row.channel, row.platform_id, true, !row.buttons);
        }
        return rc < 0 ? -1 : n;
}

/* The newest, and those around the delivery: they may have been sent at the same time. */
static int read_sends(struct store_tx *tx, struct records_read *v, struct error *err)
{
        int64_t before = INT64_MAX;
        int n = read_sent(tx, v, DELIVERIES_READ, &before, err);

        v->found.whole = n >= 0 && n < DELIVERIES_READ;
        if (n < 0 || v->found.whole || v->delivery == 0 ||
            before <= v->delivery - (NEAR_READ - NEAR_AFTER))
                return n < 0 ? -1 : 0;
        if (before > v->delivery + NEAR_AFTER)
                before = v->delivery + NEAR_AFTER;
        return read_sent(tx, v, NEAR_READ, &before, err) < 0 ? -1 : 0;
}

/*
 * What was not known before the send was stored after it: a search that began long ago does not
 * depend on how much has been stored since.
 */
static int read_received(struct store_tx *tx, struct records_read *v, struct error *err)
{
        struct journal_range since = { .after = v->read_seq }, newest = { .before = INT64_MAX };
        struct store_stmt *s = journal_row_scan(tx, v->read_seq > 0 ? &since : &newest);
        int most = v->read_seq > 0 ? EVENTS_SINCE : EVENTS_READ;
        struct journal_row row;
        int rc, n = 0;

        while ((rc = journal_row_next(s, &row, err)) == 1) {
                if (row.key && row.channel && row.adapter && strcmp(row.adapter, v->adapter) == 0)
                        add(v, row.channel, row.key, false, false);
                if (++n == most) {
                        rows_end(s);
                        return 0;
                }
        }
        return rc;
}

static int read_records(struct store_tx *tx, void *arg, struct error *err)
{
        struct records_read *v = arg;

        arena_release(&v->arena);
        arena_init(&v->arena);
        v->found = (struct message_records){ 0 };
        v->known_ms = 0;
        if (read_sends(tx, v, err) < 0 || read_received(tx, v, err) < 0)
                return -1;
        v->found.items = v->items;
        return 0;
}

static void on_read(void *arg, const struct error *err)
{
        struct records_read *v = arg;

        v->road->writes--;
        v->done(v->arg, err ? NULL : &v->found);
        arena_release(&v->arena);
        free(v->items);
        free(v->adapter);
        free(v->channel);
        free(v);
}

void message_records_read(struct road *r, const struct delivery *d, message_records_fn *done,
                          void *arg)
{
        struct records_read *v = mem_zalloc(sizeof(*v));

        v->road = r;
        v->delivery = d->id;
        v->read_seq = d->read_seq;
        v->adapter = mem_strdup(d->adapter);
        v->channel = mem_strdup(d->channel);
        v->done = done;
        v->arg = arg;
        arena_init(&v->arena);
        r->writes++;
        store_read(r->store, read_records, on_read, v);
}

struct progress_write {
        int64_t delivery, fence;
        char *text;
        read_from_stored_fn *done; /* may be NULL */
        void *arg;
};

static int write_progress(struct store_tx *tx, void *arg, struct error *err)
{
        const struct progress_write *v = arg;

        return delivery_row_set_read_from(tx, v->delivery, v->fence, v->text, err);
}

static void on_progress_written(void *arg, const struct error *err)
{
        struct progress_write *v = arg;

        if (v->done)
                v->done(v->arg, !err);
        free(v->text);
        free(v);
}

bool delivery_store_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text,
                              read_from_stored_fn *done, void *arg)
{
        struct delivery_job *j = r ? outbox_find(r, delivery) : NULL;
        struct progress_write *v;

        if (!j || j->d.fence != fence || j->phase != JOB_SENDING)
                return false;
        free(j->read_from);
        j->d.read_from = j->read_from = mem_strdup(text);
        v = mem_zalloc(sizeof(*v));
        v->delivery = delivery;
        v->fence = fence;
        v->text = mem_strdup(text);
        v->done = done;
        v->arg = arg;
        road_write(r, "progress of a search", write_progress, on_progress_written, v);
        return true;
}

void delivery_set_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text)
{
        delivery_store_read_from(r, delivery, fence, text, NULL, NULL);
}

int64_t delivery_take_probe(struct road *r, const char *adapter, const char *channel)
{
        bool group = r->platforms.channel_is_group(r->platforms.adapters, adapter, channel);
        int64_t wait = pace_take(outbox_adapter(r, adapter)->pace, channel, group, PACE_TYPING,
                                 loop_now_ms(r->loop));

        r->stats.probes += wait <= 0;
        return wait;
}
