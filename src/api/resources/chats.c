/*
 * Chats and their messages, from the journal: there is no table of chats that could disagree with
 * it.
 *
 * By activity, the journal is read backwards and a chat is shown at its last message. The cursor is
 * that event's number, so no chat is shown twice or left out. A page reads a bounded number of
 * rows; one that found little says where to go on. By name, the index of chats is read in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/read_job.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "bus/bus.h"
#include "road/incoming.h"
#include "road/report/row_json.h"

#define ROWS_MAX   5000 /* of the journal, read for one page */
#define TEXT_SHOWN 200  /* bytes of a chat's last message */
/* After every channel's name: nothing in UTF-8 is greater. */
#define LAST_CHANNEL "\xf4\x8f\xbf\xbf"

struct chats_ask {
        const char *cursor, *instance, *sort;
        int64_t limit;
};

static const char *const sorts[] = { "activity", "name", NULL };

static const struct field chats_query[] = {
        { "cursor", FIELD_STRING, .min = 1, .max = 700, FIELD_AT(chats_ask, cursor),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(chats_ask),
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(chats_ask, instance),
          .help = "Only chats of this adapter." },
        { "sort", FIELD_CHOICE, .choices = sorts, FIELD_AT(chats_ask, sort),
          .fallback = "\"activity\"", .help = "The latest first, or by adapter and channel." },
        FIELD_END,
};

static bool is_ours(const char *type)
{
        return strcmp(type, EVENT_MESSAGE_SENT) == 0 || strcmp(type, EVENT_MESSAGE_FAILED) == 0;
}

/* ---- one chat ---- */

static void show_last(struct buf *b, int64_t seq, const char *type, const char *text)
{
        jsonw_open_member(b, "lastMessage", '{');
        show_id(b, "eventId", "evt-", seq);
        jsonw_str(b, "type", type);
        jsonw_str(b, "direction", is_ours(type) ? "out" : "in");
        if (text)
                jsonw_strn(b, "text", text,
                           utf8_prefix(text, strlen(text), UTF8_BYTES, TEXT_SHOWN));
        else
                jsonw_null(b, "text");
        jsonw_close(b, '}');
}

/*
 * The chat whose last message this is. The database takes the two members out: a tree of each
 * payload cost more than all the rest.
 */
static int show_chat(struct store_tx *tx, struct buf *b, int64_t seq, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT adapter, channel, type, time_ms, json_extract(payload, '$.chatType'),"
                    " json_extract(payload, '$.text') FROM journal WHERE seq = ?1");
        int rc;

        store_bind_int(s, 1, seq);
        rc = store_step(s, err);
        if (rc == 1) {
                jsonw_open(b, '{');
                jsonw_str(b, "instanceId", store_col_text(s, 0));
                jsonw_str(b, "channel", store_col_text(s, 1));
                jsonw_str(b, "chatType", store_col_text(s, 4));
                show_time(b, "lastActivityAt", store_col_int(s, 3));
                show_last(b, seq, store_col_text(s, 2), store_col_text(s, 5));
                jsonw_close(b, '}');
        }
        store_reset(s);
        return rc < 0 ? -1 : 0;
}

/* The number of the last message there; 0: none, -1. */
static int64_t last_of(struct store_tx *tx, const char *adapter, const char *channel,
                       struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT max(seq) FROM journal WHERE stream = 0 AND adapter = ?1 AND channel = ?2");
        int64_t seq = 0;
        int rc;

        store_bind_text(s, 1, adapter);
        store_bind_text(s, 2, channel);
        rc = store_step(s, err);
        if (rc == 1) {
                seq = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : seq;
}

/* ---- by activity ---- */

static bool is_wanted(const struct read_job *j, const char *adapter, const char *channel)
{
        const struct chats_ask *ask = j->query;

        return adapter && adapter[0] && channel &&
               (!ask->instance || strcmp(ask->instance, adapter) == 0) &&
               key_reaches(j->caller, adapter);
}

static int by_activity(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;
        int64_t at = ask->cursor ? field_id("evt-", ask->cursor) : INT64_MAX, shown = 0, rows = 0;
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT seq, adapter, channel, stream FROM journal WHERE seq < ?1 ORDER BY seq DESC");
        char id[BUS_ID_SIZE];
        int rc = 0;

        if (at < 0)
                return error_set(err, ERR_INVALID, "'%.100s' is no cursor of a previous page",
                                 ask->cursor);
        store_bind_int(s, 1, at);
        page_open(&j->json);
        while (shown < ask->limit && rows++ < ROWS_MAX && (rc = store_step(s, err)) == 1) {
                const char *adapter = store_col_text(s, 1), *channel = store_col_text(s, 2);
                int64_t last;

                at = store_col_int(s, 0);
                if (store_col_int(s, 3) != STREAM_MESSAGE || !is_wanted(j, adapter, channel))
                        continue;
                last = last_of(tx, adapter, channel, err);
                if (last < 0)
                        return -1;
                if (last != at)
                        continue;
                if (show_chat(tx, &j->json, at, err) < 0)
                        return -1;
                shown++;
        }
        if (rc < 0)
                return -1;
        store_reset(s);
        page_close(&j->json, rc == 1, rc == 1 ? bus_event_id(at, id) : NULL);
        return 0;
}

/* ---- by name ---- */

/* "tg/12345": the first slash parts them, which no adapter's name has. */
struct place {
        char *adapter, *channel;
};

static void place_set(struct place *p, const char *adapter, const char *channel)
{
        char *new_adapter = mem_strdup(adapter), *new_channel = mem_strdup(channel);

        free(p->adapter);
        free(p->channel);
        p->adapter = new_adapter;
        p->channel = new_channel;
}

/* 1 and *p moved to the next chat, 0 there is none, -1. */
static int next_chat(struct store_tx *tx, struct place *p, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT adapter, channel FROM journal WHERE stream = 0 AND (adapter, channel) > (?1, ?2)"
                " ORDER BY adapter, channel LIMIT 1");
        int rc;

        store_bind_text(s, 1, p->adapter);
        store_bind_text(s, 2, p->channel);
        rc = store_step(s, err);
        if (rc == 1) {
                place_set(p, store_col_text(s, 0), store_col_text(s, 1));
                store_reset(s);
        }
        return rc;
}

static int show_named(struct store_tx *tx, struct read_job *j, const struct place *p,
                      struct error *err)
{
        int64_t last = last_of(tx, p->adapter, p->channel, err);

        if (last <= 0)
                return last < 0 ? -1 : 0;
        return show_chat(tx, &j->json, last, err);
}

/* Where the walk begins: behind the cursor, or before the first chat of the adapter asked for. */
static int first_place(const struct chats_ask *ask, struct place *p, struct error *err)
{
        const char *slash = ask->cursor ? strchr(ask->cursor, '/') : NULL;

        if (ask->cursor && !slash)
                return error_set(err, ERR_INVALID, "'%.100s' is no cursor of a previous page",
                                 ask->cursor);
        p->adapter = slash ? mem_strndup(ask->cursor, (size_t)(slash - ask->cursor))
                           : mem_strdup(ask->instance ? ask->instance : "");
        p->channel = mem_strdup(slash ? slash + 1 : "");
        return 0;
}

static int by_name(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;
        struct place p = { 0 };
        char *cursor = NULL;
        int64_t shown = 0, rows = 0;
        int rc = first_place(ask, &p, err) < 0 ? -1 : 1;

        page_open(&j->json);
        while (rc == 1 && shown < ask->limit && rows++ < ROWS_MAX &&
               (rc = next_chat(tx, &p, err)) == 1) {
                if (ask->instance && strcmp(ask->instance, p.adapter) != 0) {
                        rc = 0; /* behind the last of this adapter */
                        break;
                }
                if (!key_reaches(j->caller, p.adapter)) {
                        /* none of its chats is even a cursor */
                        place_set(&p, p.adapter, LAST_CHANNEL);
                        continue;
                }
                free(cursor);
                cursor = mem_printf("%s/%s", p.adapter, p.channel);
                if (!is_wanted(j, p.adapter, p.channel))
                        continue;
                if (show_named(tx, j, &p, err) < 0)
                        rc = -1;
                shown++;
        }
        page_close(&j->json, rc == 1, rc == 1 ? cursor : NULL);
        free(cursor);
        free(p.adapter);
        free(p.channel);
        return rc < 0 ? -1 : 0;
}

static int read_chats(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct chats_ask *ask = j->query;

        return strcmp(ask->sort, "name") == 0 ? by_name(tx, j, err) : by_activity(tx, j, err);
}

static void list(struct http_exchange *x)
{
        struct chats_ask ask = { .limit = 50, .sort = sorts[0] };

        read_job_list(x, &ask, sizeof(ask), read_chats);
}

/* ---- messages ---- */

struct messages_ask {
        int64_t after, before, limit;
        const char *adapter, *channel; /* of the path; in the body's arena */
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
