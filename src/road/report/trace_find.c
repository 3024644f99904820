#include "road/report/trace_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/incoming.h"
#include "rows/delivery_row.h"
#include "rows/journal_row.h"
#include "rows/schedule_row.h"
#include "rows/trigger_log_row.h"

struct trace_search {
        struct store_tx *tx;
        const char *adapters;
        struct trace_refs *out;
        struct error *err;
};

bool trace_find_allows(const char *adapters, const char *adapter)
{
        size_t n = adapter ? strlen(adapter) : 0;

        if (!adapters)
                return true;
        for (const char *p = adapters; n > 0 && (p = strstr(p, adapter)); p++) {
                if (p > adapters && p[-1] == ',' && p[n] == ',')
                        return true;
        }
        return false;
}

static void add(struct trace_search *f, enum trace_kind kind, int64_t id)
{
        struct trace_refs *out = f->out;

        for (size_t i = 0; i < out->count; i++) {
                if (out->items[i].kind == kind && out->items[i].id == id)
                        return;
        }
        if (out->count < TRACE_REFS_MAX)
                out->items[out->count++] = (struct trace_ref){ kind, id };
}

static bool parse_id(const char *id, const char *prefix, int64_t *out)
{
        size_t n = strlen(prefix);

        if (strncmp(id, prefix, n) != 0 || id[n] == '\0' || id[n] == '0' || strlen(id + n) > 18 ||
            strspn(id + n, "0123456789") != strlen(id + n))
                return false;
        *out = strtoll(id + n, NULL, 10);
        return true;
}

static bool is_chat(const char *chat, const char *channel, const char *thread)
{
        return !chat || (channel && strcmp(channel, chat) == 0) ||
               (thread && strcmp(thread, chat) == 0);
}

/* ---- messages ---- */

int trace_find_own(struct store_tx *tx, const char *adapter, const char *chat, const char *id,
                   int64_t *delivery, struct error *err)
{
        const struct delivery_message message = { adapter, chat, id };
        int rc = delivery_row_find_message(tx, &message, TRACE_NEWEST, delivery, 1, err);

        if (rc == 0)
                *delivery = 0;
        return rc < 0 ? -1 : 0;
}

/* Adds the event, unless it is the echo of a delivery, which is found as such. */
static int add_event(struct trace_search *f, int64_t seq, const char *adapter, const char *chat)
{
        struct journal_row *row;
        int64_t sent = 0;
        json_t *payload;
        int rc = journal_row_get(f->tx, seq, &row, f->err);

        if (rc != 1)
                return rc;
        payload = json_loads(row->payload, 0, NULL);
        if (json_flag(payload, "isOwn", false) && json_str(payload, "id", NULL))
                rc = trace_find_own(f->tx, row->adapter, NULL, json_str(payload, "id", NULL), &sent,
                                    f->err);
        if (rc >= 0 && sent == 0 && trace_find_allows(f->adapters, row->adapter) &&
            (!adapter || (row->adapter && strcmp(row->adapter, adapter) == 0)) &&
            is_chat(chat, row->channel, row->thread))
                add(f, TRACE_EVENT, seq);
        json_decref(payload);
        free(row);
        return rc < 0 ? -1 : 0;
}

/* adapter, chat: NULL: any. */
static int find_message(struct trace_search *f, const char *adapter, const char *chat,
                        const char *id)
{
        const struct delivery_message message = { adapter, chat, id };
        int64_t found[TRACE_REFS_MAX];
        int n = journal_row_find_message(f->tx, id, chat, TRACE_NEWEST, found, TRACE_REFS_MAX,
                                         f->err);

        for (int i = 0; i < n; i++) {
                if (add_event(f, found[i], adapter, chat) < 0)
                        return -1;
        }
        if (n < 0)
                return -1;
        n = delivery_row_find_message(f->tx, &message, TRACE_NEWEST, found, TRACE_REFS_MAX, f->err);
        for (int i = 0; i < n; i++) {
                struct delivery_row *d;

                if (delivery_row_get(f->tx, found[i], &d, f->err) < 0)
                        return -1;
                if (d && trace_find_allows(f->adapters, d->adapter))
                        add(f, TRACE_DELIVERY, found[i]);
                free(d);
        }
        return n < 0 ? -1 : 0;
}

/* The last messages of a chat. */
static int find_chat(struct trace_search *f, const char *adapter, const char *chat)
{
        const struct trigger_log_filter filter = { .adapter = adapter,
                                                   .channel = chat,
                                                   .adapters = f->adapters,
                                                   .limit = TRACE_REFS_MAX / 2 };
        struct store_stmt *s = trigger_log_row_list(f->tx, &filter);
        struct trigger_log_row row;
        int rc;

        while ((rc = trigger_log_row_next(s, &row, f->err)) == 1)
                add(f, TRACE_EVENT, row.event);
        return rc;
}

/* ADAPTER/CHAT/ID or ADAPTER/CHAT; a chat of other software may contain slashes. */
static int find_path(struct trace_search *f, const char *path)
{
        const char *first = strchr(path, '/'), *last = strrchr(path, '/');
        char *adapter = mem_strndup(path, (size_t)(first - path)),
             *chat = first < last ? mem_strndup(first + 1, (size_t)(last - first - 1)) : NULL;
        int rc = chat ? find_message(f, adapter, chat, last + 1) : 0;

        if (rc == 0 && f->out->count == 0)
                rc = find_chat(f, adapter, first + 1);
        if (rc == 0 && f->out->count == 0 && !chat)
                rc = find_message(f, adapter, NULL, first + 1);
        free(adapter);
        free(chat);
        return rc;
}

/* ---- traces ---- */

/* Inbound events first; a message sent without one has only a delivery. */
static int find_trace(struct trace_search *f, const char *trace)
{
        const struct trigger_log_filter filter = { .trace = trace,
                                                   .adapters = f->adapters,
                                                   .limit = TRACE_REFS_MAX };
        struct store_stmt *s = trigger_log_row_list(f->tx, &filter);
        struct trigger_log_row row;
        int64_t id;
        int rc;

        while ((rc = trigger_log_row_next(s, &row, f->err)) == 1)
                add(f, TRACE_EVENT, row.event);
        if (rc < 0 || f->out->count > 0)
                return rc;
        rc = delivery_row_find_trace(f->tx, trace, TRACE_NEWEST, &id, f->err);
        if (rc == 1)
                add(f, TRACE_DELIVERY, id);
        if (rc != 0)
                return rc < 0 ? -1 : 0;
        rc = journal_row_find_trace(f->tx, trace, TRACE_NEWEST, &id, f->err);
        if (rc == 1)
                add(f, TRACE_EVENT, id);
        return rc < 0 ? -1 : 0;
}

/* What a tick led to: a question to the agent, or a delivery. */
static int find_tick(struct trace_search *f, int64_t id)
{
        struct tick_row *row = NULL;
        int rc = tick_row_get(f->tx, id, &row, f->err);

        if (rc == 1 && row->event > 0)
                add(f, TRACE_EVENT, row->event);
        else if (rc == 1 && row->delivery > 0)
                add(f, TRACE_DELIVERY, row->delivery);
        free(row);
        return rc < 0 ? -1 : 0;
}

int trace_find(struct store_tx *tx, const char *id, const char *adapters, struct trace_refs *out,
               struct error *err)
{
        struct trace_search f = { tx, adapters, out, err };
        int64_t number;
        int rc;

        out->count = 0;
        if (parse_id(id, "evt-", &number))
                add(&f, TRACE_EVENT, number);
        else if (parse_id(id, "trn-", &number))
                add(&f, TRACE_TURN, number);
        else if (parse_id(id, "dlv-", &number))
                add(&f, TRACE_DELIVERY, number);
        else if (parse_id(id, "tck-", &number) && find_tick(&f, number) < 0)
                return -1;
        if (out->count > 0 || id[0] == '\0')
                return 0;
        if (strlen(id) == ID_TRACE_SIZE - 1 && strspn(id, "0123456789abcdef") == strlen(id)) {
                rc = find_trace(&f, id);
                if (rc < 0 || out->count > 0)
                        return rc;
        }
        rc = find_message(&f, NULL, NULL, id);
        if (rc == 0 && out->count == 0 && strchr(id, '/') && id[0] != '/')
                rc = find_path(&f, id);
        return rc;
}
