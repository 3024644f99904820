#include "sim/journal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define MAX_WAIT_MS 60000

struct entry {
        char *text;
        size_t n;
        const char *kind;
        int64_t subject;
};

struct reader {
        struct journal *journal;
        struct http_exchange *x;
        struct timer *deadline;
        uint64_t after;
        LIST_ENTRY(reader) next;
};

LIST_HEAD(readers, reader);

struct journal {
        struct loop *loop;
        struct entry *entries; /* a ring; entry n is at n % keep */
        size_t keep, max_bytes, bytes;
        uint64_t first, last; /* numbers; empty when first > last */
        struct buf draft;
        const char *draft_kind;
        int64_t draft_subject;
        /* answers readers in the next loop iteration, with all entries of this one */
        struct timer *wake;
        struct readers readers;
};

static void on_wake(void *arg);

struct journal *journal_new(struct loop *l, size_t keep, size_t max_bytes)
{
        struct journal *j = mem_zalloc(sizeof(*j));

        j->loop = l;
        j->keep = keep;
        j->max_bytes = max_bytes;
        j->entries = mem_array(keep, sizeof(*j->entries));
        j->first = 1;
        buf_init(&j->draft, 0);
        j->wake = timer_new(l, on_wake, j);
        LIST_INIT(&j->readers);
        return j;
}

static struct entry *entry_at(const struct journal *j, uint64_t number)
{
        return &j->entries[number % j->keep];
}

static void forget_oldest(struct journal *j)
{
        struct entry *e = entry_at(j, j->first++);

        j->bytes -= e->n;
        free(e->text);
        e->text = NULL;
}

void journal_clear(struct journal *j)
{
        while (j->first <= j->last)
                forget_oldest(j);
}

struct buf *journal_open(struct journal *j, const char *kind, int64_t subject)
{
        buf_clear(&j->draft);
        j->draft_kind = kind;
        j->draft_subject = subject;
        jsonw_open(&j->draft, '{');
        jsonw_int(&j->draft, "seq", (int64_t)j->last + 1);
        jsonw_str(&j->draft, "kind", kind);
        return &j->draft;
}

uint64_t journal_close(struct journal *j)
{
        struct entry *e;

        jsonw_close(&j->draft, '}');
        while (j->first <= j->last &&
               (j->last - j->first + 1 >= j->keep || j->bytes + j->draft.len > j->max_bytes))
                forget_oldest(j);
        e = entry_at(j, ++j->last);
        *e = (struct entry){ mem_strndup(j->draft.data, j->draft.len), j->draft.len, j->draft_kind,
                             j->draft_subject };
        j->bytes += e->n;
        if (!LIST_EMPTY(&j->readers) && !timer_active(j->wake))
                timer_start(j->wake, 0);
        return j->last;
}

uint64_t journal_last(const struct journal *j)
{
        return j->last;
}

/* ---- readers ---- */

static int64_t query_number(const struct http_exchange *x, const char *name, int64_t fallback)
{
        const char *text = http_query(x, name);

        return text && *text ? strtoll(text, NULL, 10) : fallback;
}

/* Writes the entries the exchange asks for; returns how many. */
static size_t collect(const struct journal *j, const struct http_exchange *x, uint64_t after,
                      struct buf *b)
{
        const char *kind = http_query(x, "kind");
        const char *of = http_query(x, "chat") ? "chat" : "channel";
        bool has_subject = http_query(x, of) != NULL;
        int64_t subject = query_number(x, of, 0), limit = query_number(x, "limit", 1000);
        uint64_t at = after + 1 > j->first ? after + 1 : j->first, seen = after;
        size_t count = 0;

        jsonw_open(b, '{');
        jsonw_open_member(b, "items", '[');
        for (; at <= j->last && (int64_t)count < limit; at++) {
                const struct entry *e = entry_at(j, at);

                seen = at;
                if ((kind && strcmp(kind, e->kind) != 0) || (has_subject && subject != e->subject))
                        continue;
                if (count++)
                        buf_addch(b, ',');
                buf_add(b, e->text, e->n);
        }
        jsonw_close(b, ']');
        jsonw_int(b, "last", (int64_t)(seen > j->last ? j->last : seen));
        jsonw_bool(b, "missed", after + 1 < j->first);
        jsonw_close(b, '}');
        return count;
}

/* Answers, unless there are no entries and the reader may wait. */
static bool answer(const struct journal *j, struct http_exchange *x, uint64_t after, bool may_wait)
{
        struct buf b;
        size_t n;

        buf_init(&b, 0);
        if (collect(j, x, after, &b) == 0 && may_wait) {
                buf_release(&b);
                return false;
        }
        n = b.len;
        http_answer_take(x, 200, "application/json", buf_take(&b), n);
        return true;
}

static void reader_free(struct reader *r)
{
        LIST_REMOVE(r, next);
        timer_free(r->deadline);
        free(r);
}

static void on_deadline(void *arg)
{
        struct reader *r = arg;

        answer(r->journal, r->x, r->after, false);
        reader_free(r);
}

static void on_wake(void *arg)
{
        struct journal *j = arg;
        struct reader *r, *next;

        for (r = LIST_FIRST(&j->readers); r; r = next) {
                next = LIST_NEXT(r, next);
                if (answer(j, r->x, r->after, true))
                        reader_free(r);
                else
                        r->after = j->last; /* no match up to here */
        }
}

void journal_serve(struct journal *j, struct http_exchange *x)
{
        uint64_t after = (uint64_t)query_number(x, "after", 0);
        int64_t wait_ms = query_number(x, "wait", 0);
        struct reader *r;

        if (answer(j, x, after, wait_ms > 0))
                return;
        r = mem_zalloc(sizeof(*r));
        r->journal = j;
        r->x = x;
        r->after = after > j->last ? after : j->last;
        r->deadline = timer_new(j->loop, on_deadline, r);
        timer_start(r->deadline, wait_ms < MAX_WAIT_MS ? wait_ms : MAX_WAIT_MS);
        LIST_INSERT_HEAD(&j->readers, r, next);
}

void journal_free(struct journal *j)
{
        if (!j)
                return;
        for (struct reader *r = LIST_FIRST(&j->readers), *next; r; r = next) {
                next = LIST_NEXT(r, next);
                on_deadline(r);
        }
        timer_free(j->wake);
        journal_clear(j);
        free(j->entries);
        buf_release(&j->draft);
        free(j);
}
