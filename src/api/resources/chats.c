/*
 * Chats and their messages, from the journal: no table of chats could disagree with it.
 *
 * By activity, the journal is read backwards and a chat shown at its last message. The cursor is
 * that event's number, so no chat is repeated or missed. A page reads a bounded number of rows, and
 * gives a cursor even if it found little. By name, the index of chats is read in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "bus/bus.h"
#include "road/incoming.h"
#include "road/outbox/card.h"
#include "road/report/row_json.h"
#include "rows/journal_row.h"

#define ROWS_MAX   5000 /* of the journal, per page */
#define TEXT_SHOWN 200  /* bytes of a chat's last message */
/* Sorts after every channel: nothing in UTF-8 is greater. */
#define LAST_CHANNEL "\xf4\x8f\xbf\xbf"

struct chats_ask {
        const char *cursor, *adapter, *sort;
        int64_t limit;
};

static const char *const sorts[] = { "activity", "name", NULL };

static const struct field chats_query[] = {
        { "cursor", FIELD_STRING, .min = 1, .max = 700, FIELD_AT(chats_ask, cursor),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(chats_ask),
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(chats_ask, adapter),
          .help = "Only chats of this adapter." },
        { "sort", FIELD_CHOICE, .choices = sorts, FIELD_AT(chats_ask, sort),
          .fallback = "\"activity\"", .help = "The latest first, or by adapter and channel." },
        FIELD_END,
};

static bool is_ours(const char *type)
{
        return strcmp(type, EVENT_MESSAGE_SENT) == 0 || strcmp(type, EVENT_MESSAGE_FAILED) == 0;
}

/* Writes the chat whose last message this is. */
static int write_chat(struct store_tx *tx, struct buf *b, int64_t seq, struct error *err)
{
        struct journal_row *e;
        const char *text;
        json_t *payload;
        int rc = journal_row_get(tx, seq, &e, err);

        if (rc != 1)
                return rc;
        payload = json_loads(e->payload, 0, NULL);
        text = card_said(payload);
        jsonw_open(b, '{');
        jsonw_str(b, "instanceId", e->adapter);
        jsonw_str(b, "channel", e->channel);
        jsonw_str(b, "chatType", json_str(payload, "chatType", NULL));
        row_json_time(b, "lastActivityAt", e->time_ms);
        jsonw_open_member(b, "lastMessage", '{');
        row_json_id(b, "eventId", "evt-", seq);
        jsonw_str(b, "type", e->type);
        jsonw_str(b, "direction", is_ours(e->type) ? "out" : "in");
        if (text)
                jsonw_strn(b, "text", text,
                           utf8_prefix(text, strlen(text), UTF8_BYTES, TEXT_SHOWN));
        else
                jsonw_null(b, "text");
        jsonw_close(b, '}');
        jsonw_close(b, '}');
        json_decref(payload);
        free(e);
        return 0;
}

static bool is_wanted(const struct read_job *j, const char *adapter, const char *channel)
{
        const struct chats_ask *ask = j->query;

        return adapter && adapter[0] && channel &&
               (!ask->adapter || strcmp(ask->adapter, adapter) == 0) &&
               key_reaches(j->caller, adapter);
}

/* Reads the journal backwards; shows a message if it is its chat's last. */
static int read_by_activity(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;
        int64_t at = ask->cursor ? field_id("evt-", ask->cursor) : INT64_MAX, shown = 0, rows = 0;
        struct journal_row e;
        struct store_stmt *s;
        char id[BUS_ID_SIZE];
        int rc = 0;

        if (at < 0)
                return error_set(err, ERR_INVALID, "'%.100s' is not the cursor of a previous page",
                                 ask->cursor);
        s = journal_row_scan(tx, &(struct journal_range){ .before = at });
        page_open(&j->json);
        while (shown < ask->limit && rows++ < ROWS_MAX &&
               (rc = journal_row_next(s, &e, err)) == 1) {
                int64_t last;

                at = e.seq;
                if (e.stream != STREAM_MESSAGE || !is_wanted(j, e.adapter, e.channel))
                        continue;
                if (journal_row_last_of_chat(tx, e.adapter, e.channel, &last, err) < 0)
                        return -1;
                if (last != at)
                        continue;
                if (write_chat(tx, &j->json, at, err) < 0)
                        return -1;
                shown++;
        }
        if (rc < 0)
                return -1;
        rows_end(s);
        page_close(&j->json, rc == 1, rc == 1 ? bus_event_id(at, id) : NULL);
        return 0;
}

/* Starts after the cursor "tg/12345", or before the first chat of an adapter. */
static int read_cursor(const struct chats_ask *ask, char **adapter, char **channel,
                       struct error *err)
{
        /* adapter names have no slash */
        const char *slash = ask->cursor ? strchr(ask->cursor, '/') : NULL;

        if (ask->cursor && !slash)
                return error_set(err, ERR_INVALID, "'%.100s' is not the cursor of a previous page",
                                 ask->cursor);
        *adapter = slash ? mem_strndup(ask->cursor, (size_t)(slash - ask->cursor))
                         : mem_strdup(ask->adapter ? ask->adapter : "");
        *channel = mem_strdup(slash ? slash + 1 : "");
        return 0;
}

static int read_by_name(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;
        char *adapter = NULL, *channel = NULL, *cursor = NULL;
        int64_t shown = 0, rows = 0, last;
        int rc = read_cursor(ask, &adapter, &channel, err) < 0 ? -1 : 1;

        page_open(&j->json);
        while (rc == 1 && shown < ask->limit && rows++ < ROWS_MAX &&
               (rc = journal_row_next_chat(tx, &adapter, &channel, err)) == 1) {
                if (ask->adapter && strcmp(ask->adapter, adapter) != 0) {
                        rc = 0; /* past the last one of this adapter */
                        break;
                }
                if (!key_reaches(j->caller, adapter)) {
                        /* skip its chats: none may even be a cursor */
                        free(channel);
                        channel = mem_strdup(LAST_CHANNEL);
                        continue;
                }
                free(cursor);
                cursor = mem_printf("%s/%s", adapter, channel);
                if (!is_wanted(j, adapter, channel))
                        continue;
                if (journal_row_last_of_chat(tx, adapter, channel, &last, err) < 0 ||
                    (last > 0 && write_chat(tx, &j->json, last, err) < 0))
                        rc = -1;
                shown++;
        }
        page_close(&j->json, rc == 1, rc == 1 ? cursor : NULL);
        free(cursor);
        free(adapter);
        free(channel);
        return rc < 0 ? -1 : 0;
}

static int read_chats(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;

        return strcmp(ask->sort, "name") == 0 ? read_by_name(tx, j, err)
                                              : read_by_activity(tx, j, err);
}

static void list(struct http_exchange *x)
{
        struct chats_ask ask = { .limit = 50, .sort = sorts[0] };

        read_job_list(x, &ask, sizeof(ask), read_chats);
}

/* ---- messages ---- */

struct messages_ask {
        int64_t after, before, limit;
        const char *adapter, *channel; /* from the path; in the body's arena */
};

static const struct field messages_query[] = {
        { "after", FIELD_ID, .prefix = "evt-", FIELD_AT(messages_ask, after),
          .help = "Messages after this event, oldest first." },
        { "before", FIELD_ID, .prefix = "evt-", FIELD_AT(messages_ask, before),
          .help = "Messages before this event, newest first. Without after and before: the "
                  "newest." },
        PAGE_LIMIT_FIELD(messages_ask),
        FIELD_END,
};

static void on_message(void *arg, const struct bus_event *e)
{
        struct page *p = arg;

        if (!page_add(p, e->seq))
                return;
        jsonw_open(p->json, '{');
        jsonw_str(p->json, "direction", is_ours(e->type) ? "out" : "in");
        buf_addstr(p->json, ",\"event\":");
        bus_event_json(e, p->json);
        jsonw_close(p->json, '}');
}

static int read_messages(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct messages_ask *ask = j->query;
        struct bus_filter f = { .streams = 1u << STREAM_MESSAGE,
                                .adapter = ask->adapter,
                                .channel = ask->channel };
        struct page p;

        if (ask->after >= 0)
                f.after = ask->after;
        else
                f.before = ask->before > 0 ? ask->before : INT64_MAX;
        page_begin(&p, &j->json, ask->limit);
        if (bus_read(tx, &f, (unsigned)ask->limit + 1, on_message, &p, NULL, err) < 0)
                return -1;
        page_end(&p, "evt-");
        return 0;
}

static void list_messages(struct http_exchange *x)
{
        struct messages_ask defaults = { .limit = 50, .after = -1, .before = -1 }, *ask;
        struct read_job *j = read_job_new(x, &defaults, sizeof(defaults));

        if (!j)
                return;
        ask = j->query;
        ask->adapter = arena_strdup(&j->body.arena, http_param(x, "adapter"));
        ask->channel = arena_strdup(&j->body.arena, http_param(x, "channel"));
        read_job_run(j, read_messages);
}

const struct route chats_routes[] = {
        { "GET", "/api/v2/chats", SCOPE_READ, list, REACH_LIST,
          .summary = "The chats with messages in the journal, the latest first, or by name. "
                     "meta.cursor is the next cursor.",
          .query = chats_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"instanceId\", \"channel\", \"chatType\", "
                               "\"lastActivityAt\", \"lastMessage\"}." },
        { "GET", "/api/v2/chats/:adapter/:channel/messages", SCOPE_READ, list_messages, REACH_PATH,
          .summary = "The messages of a chat, in both directions, newest first, or oldest first "
                     "with after.",
          .query = messages_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"direction\": \"in\" or \"out\", \"event\"}." },
        ROUTE_END,
};
