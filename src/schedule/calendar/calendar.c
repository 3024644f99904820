#include "schedule/calendar/calendar.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/id.h"
#include "base/mem.h"
#include "rows/meta_row.h"
#include "schedule/calendar/calendar_private.h"

#define FEED_TOKEN   "calendar.feedToken" /* its SHA-256; absent or "": there is no feed */
#define FEED_PAST_MS ((int64_t)30 * 24 * 3600 * 1000)
#define FEED_EVENTS  500

struct calendar *calendar_open(struct schedule *s)
{
        struct calendar *c = mem_zalloc(sizeof(*c));

        c->schedule = s;
        return c;
}

void calendar_start(struct schedule *s)
{
        struct calendar *c = s->calendar;

        if (c->announcer)
                return;
        c->announcer = calendar_announcer_new(s);
        c->inbox = calendar_inbox_new(s);
        calendar_announcer_wake(c->announcer);
}

void calendar_close(struct schedule *s)
{
        struct calendar *c = s->calendar;

        if (!c)
                return;
        calendar_inbox_free(c->inbox);
        calendar_announcer_free(c->announcer);
        free(c);
        s->calendar = NULL;
}

struct calendar_request *calendar_request_for(struct schedule *s, enum calendar_action action)
{
        return calendar_request_new(action, s->conf);
}

const char *calendar_platform_of(struct schedule *s, const char *adapter)
{
        const char *name, *platform;

        for (size_t i = 0; s->env.adapter_at && s->env.adapter_at(s->env.arg, i, &name, &platform);
             i++)
                if (strcmp(name, adapter) == 0)
                        return platform;
        return NULL;
}

/* ---- requests ---- */

struct submission {
        struct schedule *schedule;
        struct calendar_request *q;
        calendar_done_fn *done;
        void *arg;
};

static int run_request(struct store_tx *tx, void *arg, struct error *err)
{
        struct submission *m = arg;

        return calendar_request_run(tx, m->q, err);
}

static void on_request(void *arg, const struct error *err)
{
        struct submission *m = arg;
        struct schedule *s = m->schedule;

        s->writes--;
        if (!err)
                calendar_committed(s, m->q);
        m->done(m->arg, m->q, err);
        calendar_request_free(m->q);
        free(m);
}

void calendar_submit(struct schedule *s, struct calendar_request *q, calendar_done_fn *done,
                     void *arg)
{
        struct submission *m = mem_zalloc(sizeof(*m));

        *m = (struct submission){ s, q, done, arg };
        s->writes++;
        if (q->action == CALENDAR_SHOW || q->action == CALENDAR_UPCOMING)
                store_read(s->env.store, run_request, on_request, m);
        else
                store_write(s->env.store, run_request, on_request, m);
}

void calendar_committed(struct schedule *s, struct calendar_request *q)
{
        bus_publish(s->env.bus, &q->batch);
        if (!q->changed)
                return;
        schedule_wake(s);
        if (s->calendar && s->calendar->announcer)
                calendar_announcer_wake(s->calendar->announcer);
}

/* ---- the feed ---- */

int calendar_feed_renew(struct store_tx *tx, char token[CALENDAR_TOKEN_SIZE], struct error *err)
{
        char hex[SHA256_HEX_SIZE];

        id_random_text(token, CALENDAR_TOKEN_SIZE - 1);
        crypto_sha256_hex(token, strlen(token), hex);
        return meta_row_put(tx, FEED_TOKEN, hex, err);
}

int calendar_feed_disable(struct store_tx *tx, struct error *err)
{
        return meta_row_put(tx, FEED_TOKEN, "", err);
}

int calendar_feed_check(struct store_tx *tx, const char *token, struct error *err)
{
        char hex[SHA256_HEX_SIZE];
        char *stored;
        int rc = meta_row_get(tx, FEED_TOKEN, &stored, err);

        if (rc == 1) {
                crypto_sha256_hex(token, strlen(token), hex);
                rc = crypto_equal(stored, strlen(stored), hex, strlen(hex));
        }
        free(stored);
        return rc;
}

int calendar_feed_write(struct store_tx *tx, int64_t now_ms, struct buf *out, struct error *err)
{
        struct calendar_filter filter = { .ends_after_ms = now_ms - FEED_PAST_MS,
                                          .limit = FEED_EVENTS };
        struct store_stmt *s = calendar_row_list(tx, &filter);
        struct calendar_event_row row;
        int64_t *ids = mem_array(FEED_EVENTS, sizeof(*ids));
        size_t count = 0;
        int rc;

        while ((rc = calendar_row_next(s, &row, err)) == 1 && count < FEED_EVENTS)
                ids[count++] = row.id;
        if (rc == 1)
                rows_end(s);
        calendar_ics_begin(out, ICS_STORED, "Events");
        for (size_t i = 0; rc >= 0 && i < count; i++) {
                struct calendar_view v;

                rc = calendar_view_load(tx, ids[i], &v, err);
                if (rc == 1)
                        calendar_view_ics(out, ICS_STORED, &v);
                calendar_view_release(&v);
        }
        calendar_ics_end(out);
        free(ids);
        return rc < 0 ? -1 : 0;
}
