/*
 * search_history: what was said in this chat, newest first.
 *
 * Reads the journal backwards, at most ROWS_MAX events a call. Shows the channel and the thread of
 * the turn, not other threads, which may be closed to the people here. Of an edited message the
 * last text counts, and a deleted one is not shown.
 */
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "agent/tools/tools_private.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/incoming.h"

#define ROWS_MAX   5000
#define READ_MAX   (8 << 20) /* bytes of events a call: others wait for the reader, too */
#define SHOWN_MAX  (TOOL_BYTES_MAX - 2048)
#define WORDS_MAX  16
#define LIMIT      20
#define TEXT_SHOWN 600 /* bytes of a message */
#define LEAD       150 /* of them before the first word found */

struct history_search {
        struct tool_call *call; /* NULL: cancelled */
        char *adapter, *channel, *thread;
        pcre2_code *words[WORDS_MAX];
        pcre2_code *from; /* NULL: anybody */
        size_t word_count;
        int64_t since_ms, until_ms, before, limit; /* until 0: none */
        /* results */
        struct buf found;
        int64_t count, oldest_ms, next; /* next 0: all was read */
};

static void search_free(struct history_search *s)
{
        for (size_t i = 0; i < s->word_count; i++)
                pcre2_code_free(s->words[i]);
        pcre2_code_free(s->from);
        buf_release(&s->found);
        free(s->adapter);
        free(s->channel);
        free(s->thread);
        free(s);
}

/* ---- on the reader's thread ---- */

/* Where it occurs in the text; -1: nowhere. */
static int64_t find(const pcre2_code *code, const char *text)
{
        pcre2_match_data *data = pcre2_match_data_create(1, NULL);
        int rc = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, NULL);
        int64_t at = rc >= 0 ? (int64_t)pcre2_get_ovector_pointer(data)[0] : -1;

        pcre2_match_data_free(data);
        return at;
}

/* Are all words in it? *first: where the first of them is. */
static bool has_words(const struct history_search *s, const char *text, size_t *first)
{
        *first = 0;
        for (size_t i = 0; i < s->word_count; i++) {
                int64_t at = find(s->words[i], text);

                if (at < 0)
                        return false;
                if (i == 0)
                        *first = (size_t)at;
        }
        return true;
}

static void add_text(struct buf *out, const char *text, size_t first)
{
        size_t start = first > LEAD ? first - LEAD : 0, n;
        char *clean;

        while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80)
                start--;
        n = utf8_prefix(text + start, strlen(text + start), UTF8_BYTES, TEXT_SHOWN);
        clean = utf8_clean(text + start, n);
        buf_addf(out, "%s%s%s\n", start > 0 ? "..." : "", clean, text[start + n] ? "..." : "");
        free(clean);
}

static bool is_seen(struct map *seen, const char *id)
{
        return id[0] && map_put(seen, id, seen) != NULL;
}

static void take_event(struct history_search *s, const struct journal_row *row, struct map *seen)
{
        json_t *p = json_read(row->payload, strlen(row->payload), NULL);
        const json_t *sender = json_object_get(p, "sender");
        const char *id = json_str(p, "id", ""), *text = json_str(p, "text", "");
        bool own = strcmp(row->type, EVENT_MESSAGE_SENT) == 0 || json_flag(p, "isOwn", false);
        const char *name =
                own ? "you"
                    : json_str(sender, "displayName",
                               json_str(sender, "username", json_str(sender, "id", "?")));
        bool deleted = strcmp(row->type, EVENT_MESSAGE_DELETED) == 0;
        char time[CLOCK_ISO_SIZE];
        size_t first;

        /* newest first: what was seen of a message is its last state */
        if (!is_seen(seen, id) && !deleted && text[0] && has_words(s, text, &first) &&
            (!s->from || find(s->from, name) >= 0 ||
             find(s->from, json_str(sender, "username", "")) >= 0)) {
                char *clean = utf8_clean(
                        name, utf8_prefix(name, strcspn(name, "\r\n[]"), UTF8_BYTES, 80));

                buf_addf(&s->found, "[%.19s] [%s] (evt-%lld): ",
                         clock_iso(json_int(p, "timestamp", row->time_ms), time), clean,
                         (long long)row->seq);
                add_text(&s->found, text, first);
                s->count++;
                free(clean);
        }
        json_decref(p);
}

static bool is_wanted(const struct history_search *s, const struct journal_row *row)
{
        return (!row->thread || !row->thread[0] ||
                (s->thread && strcmp(row->thread, s->thread) == 0)) &&
               (s->until_ms == 0 || row->time_ms < s->until_ms) &&
               (strcmp(row->type, EVENT_MESSAGE_RECEIVED) == 0 ||
                strcmp(row->type, EVENT_MESSAGE_SENT) == 0 ||
                strcmp(row->type, EVENT_MESSAGE_EDITED) == 0 ||
                strcmp(row->type, EVENT_MESSAGE_DELETED) == 0);
}

static int read_journal(struct store_tx *tx, void *arg, struct error *err)
{
        struct history_search *s = arg;
        struct store_stmt *rows = journal_row_scan(
                tx, &(struct journal_range){
                            .before = s->before, .adapter = s->adapter, .channel = s->channel });
        struct journal_row row;
        struct map seen;
        size_t bytes = 0;
        int rc = 1, read = 0;

        map_init(&seen);
        buf_clear(&s->found);
        s->count = s->oldest_ms = s->next = 0;
        while (s->count < s->limit && s->found.len < SHOWN_MAX && bytes < READ_MAX &&
               read++ < ROWS_MAX && (rc = journal_row_next(rows, &row, err)) == 1) {
                if (row.time_ms < s->since_ms) {
                        rc = 0; /* all that is wanted was read */
                        break;
                }
                s->next = row.seq;
                s->oldest_ms = row.time_ms;
                if (!is_wanted(s, &row))
                        continue;
                journal_row_read_payload(rows, &row);
                bytes += strlen(row.payload);
                take_event(s, &row, &seen);
        }
        if (rc == 0)
                s->next = 0;
        rows_end(rows);
        map_release(&seen);
        return rc < 0 ? -1 : 0;
}

/* ---- on the loop ---- */

static void on_read(void *arg, const struct error *err)
{
        struct history_search *s = arg;
        struct tool_call *c = s->call;
        char time[CLOCK_ISO_SIZE];

        if (c)
                c->data = NULL;
        if (c && err) {
                tool_finish_text(c, true, "The history could not be read: %s", err->text);
        } else if (c) {
                if (s->count == 0)
                        buf_addstr(&s->found, "Nothing was found.\n");
                if (s->next > 0)
                        buf_addf(&s->found,
                                 "[Searched back to %.19s. Use before=\"evt-%lld\" to go on "
                                 "with older messages.]",
                                 clock_iso(s->oldest_ms, time), (long long)s->next);
                tool_finish_text(c, false, "%s", s->found.data);
        }
        search_free(s);
}

/* Letters of any case; NULL: no valid text. */
static pcre2_code *compile(const char *word, size_t n)
{
        PCRE2_SIZE offset;
        int problem;

        return pcre2_compile((PCRE2_SPTR)word, n,
                             PCRE2_LITERAL | PCRE2_CASELESS | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF,
                             &problem, &offset, NULL);
}

static void read_words(struct history_search *s, const char *query)
{
        for (const char *p = query + strspn(query, " \t\r\n"); *p && s->word_count < WORDS_MAX;) {
                size_t n = strcspn(p, " \t\r\n");
                pcre2_code *code = compile(p, n);

                if (code)
                        s->words[s->word_count++] = code;
                p += n + strspn(p + n, " \t\r\n");
        }
}

/* "2026-11-16" or an RFC 3339 time; 0: not given. */
static int read_time(const json_t *arguments, const char *key, int64_t *ms, struct error *err)
{
        const char *text = json_str(arguments, key, NULL);
        char *whole;
        int rc;

        if (!text)
                return 0;
        whole = strlen(text) == 10 ? mem_printf("%sT00:00:00Z", text) : mem_strdup(text);
        rc = clock_parse_iso(whole, ms);
        free(whole);
        if (rc < 0)
                error_set(err, ERR_INVALID,
                          "'%s' is '%.60s', but must be a day such as 2026-11-16 or a time such as "
                          "2026-11-16T10:00:00Z",
                          key, text);
        return rc;
}

static void search_start(struct tool_call *c)
{
        const struct turn_run *run = c->scope->run;
        const char *from = json_str(c->arguments, "from", NULL);
        const char *before = json_str(c->arguments, "before", NULL);
        struct history_search *s = mem_zalloc(sizeof(*s));
        struct error err = { 0 };

        buf_init(&s->found, 0);
        s->call = c;
        s->adapter = mem_strdup(run->adapter);
        s->channel = mem_strdup(run->channel);
        s->thread = mem_strdup(run->thread);
        s->limit = json_int(c->arguments, "limit", LIMIT);
        s->before = before ? strtoll(before + strlen("evt-"), NULL, 10) : INT64_MAX;
        s->from = from ? compile(from, strlen(from)) : NULL;
        read_words(s, json_str(c->arguments, "query", ""));
        if (read_time(c->arguments, "since", &s->since_ms, &err) < 0 ||
            read_time(c->arguments, "until", &s->until_ms, &err) < 0) {
                tool_finish_text(c, true, "%s", err.text);
                search_free(s);
                return;
        }
        c->data = s;
        store_read(c->scope->store, read_journal, on_read, s);
}

static void search_cancel(struct tool_call *c)
{
        ((struct history_search *)c->data)->call = NULL;
        c->data = NULL;
}

static bool has_store(const struct tool_scope *scope)
{
        return scope->store != NULL;
}

const struct tool search_history_tool = {
        .name = "search_history",
        .description =
                "Search the messages of this chat, newest first. All words of the query must "
                "occur in a message, in any case; without a query the last messages come.",
        .parameters =
                "{\"properties\":{"
                "\"query\":{\"type\":\"string\",\"maxLength\":500,\"description\":\"Words\"},"
                "\"from\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100,\"description\":"
                "\"Only messages whose author's name has this; yours are from you\"},"
                "\"since\":{\"type\":\"string\",\"description\":\"Day or time (UTC), such as "
                "2026-11-16\"},"
                "\"until\":{\"type\":\"string\",\"description\":\"Only messages before this day or "
                "time\"},"
                "\"before\":{\"type\":\"string\",\"pattern\":\"^evt-[0-9]{1,18}$\",\"description\":"
                "\"Only messages before this one\"},"
                "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100}},"
                "\"additionalProperties\":false}",
        .flags = TOOL_READ_ONLY | TOOL_UNTRUSTED,
        .offered = has_store,
        .start = search_start,
        .cancel = search_cancel,
};
