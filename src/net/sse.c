/*
 * The ring holds records in wire format. Positions count all bytes ever written; modulo the ring's
 * size they are offsets in it. A record is never split: a filler takes the rest before the end.
 */
#include "net/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/mem.h"

/* Every client has its turn twice per ping interval; a tick serves one slice of them. */
#define SLICES 16

static const char hello[] = "retry: 2000\n\n";
static const char ping[] = ": ping\n\n";
static const char gone[] =
        "event: gone\ndata: {\"reason\":\"you fell behind; come back with Last-Event-ID\"}\n\n";

struct record {
        int64_t id;                 /* 0: transient */
        uint32_t size;              /* of all, a multiple of 8 */
        uint32_t text_n;            /* 0: a filler */
        uint32_t topic_at, text_at; /* in bytes; topic_at 0: no topic */
        char bytes[];               /* type, topic, text */
};

struct client {
        struct sse_hub *hub; /* NULL: freed; end soon */
        struct http_stream *stream;
        const char *fixed; /* rest of a constant text to send */
        char *preface;
        size_t preface_n, preface_at;
        int64_t after;
        uint64_t cursor;    /* the record that comes next */
        size_t record_at;   /* bytes of it that were sent */
        uint64_t live_from; /* ignore transient events before this */
        bool behind;        /* the ring has overtaken the cursor */
        bool given_up;      /* behind since its last turn: close it */
        bool ending;        /* nothing after `fixed` */
        int64_t sent_ms;    /* when it was last sent something */
        int64_t turn_ms;    /* when it last had its turn */
        void *filter;
        void (*free_filter)(void *);
        TAILQ_ENTRY(client) next;
};

struct sse_hub {
        struct loop *loop;
        sse_wants_fn *wants;
        sse_over_fn *over; /* may be NULL */
        char *ring;
        size_t size;
        uint64_t head, tail;          /* next record goes to head; the oldest is at tail */
        int64_t oldest_after;         /* see sse_oldest_after */
        TAILQ_HEAD(, client) clients; /* by turn_ms */
        unsigned count, max_clients;
        struct timer *news;   /* wakes clients once for all events of a round */
        struct timer *ticker; /* runs while there are clients */
        int64_t ping_ms;
};

/* ---- the ring ---- */

/* Skips a rest of the ring that is too short for a record. */
static uint64_t skip_rest(const struct sse_hub *h, uint64_t pos)
{
        size_t rest = h->size - (size_t)(pos % h->size);

        return rest < sizeof(struct record) ? pos + rest : pos;
}

static struct record *record_at(const struct sse_hub *h, uint64_t pos)
{
        return (struct record *)(void *)(h->ring + pos % h->size);
}

static uint64_t after_record(const struct sse_hub *h, uint64_t pos)
{
        return skip_rest(h, pos + record_at(h, pos)->size);
}

/* Drops old records until n bytes fit at head. */
static void make_room(struct sse_hub *h, size_t n)
{
        while (h->tail < h->head && h->head + n - h->tail > h->size) {
                const struct record *oldest = record_at(h, h->tail);

                if (oldest->id > 0)
                        h->oldest_after = oldest->id;
                h->tail = after_record(h, h->tail);
        }
}

static void append(struct sse_hub *h, int64_t id, const char *type, const char *topic,
                   const struct buf *text)
{
        size_t type_n = strlen(type) + 1, topic_n = topic ? strlen(topic) + 1 : 0;
        size_t n = (sizeof(struct record) + type_n + topic_n + text->len + 7) & ~(size_t)7;
        size_t rest = h->size - (size_t)(h->head % h->size);
        struct record *r;

        if (n > h->size / 2) {
                if (id > 0) { /* too large: empty the ring, so that clients read the journal */
                        h->head += h->size;
                        h->tail = h->head;
                        h->oldest_after = id;
                }
                return;
        }
        if (rest < n) {
                make_room(h, rest);
                *record_at(h, h->head) = (struct record){ .size = (uint32_t)rest };
                h->head += rest;
        }
        make_room(h, n);
        r = record_at(h, h->head);
        r->id = id;
        r->size = (uint32_t)n;
        r->text_n = (uint32_t)text->len;
        r->topic_at = topic ? (uint32_t)type_n : 0;
        r->text_at = (uint32_t)(type_n + topic_n);
        memcpy(r->bytes, type, type_n);
        if (topic)
                memcpy(r->bytes + r->topic_at, topic, topic_n);
        memcpy(r->bytes + r->text_at, text->data, text->len);
        h->head = skip_rest(h, h->head + n);
}

void sse_format(struct buf *out, int64_t id, const char *type, const char *data, size_t n)
{
        char name[24];

        snprintf(name, sizeof(name), "%lld", (long long)id);
        sse_format_named(out, id > 0 ? name : NULL, type, data, n);
}

void sse_format_named(struct buf *out, const char *name, const char *type, const char *data,
                      size_t n)
{
        const char *end = data + n;

        if (name)
                buf_addf(out, "id: %s\n", name);
        buf_addf(out, "event: %s\n", type);
        do {
                size_t line = 0;

                while (data + line < end && data[line] != '\n' && data[line] != '\r')
                        line++;
                buf_addstr(out, "data: ");
                buf_add(out, data, line);
                buf_addch(out, '\n');
                data += line;
                if (data + 1 < end && data[0] == '\r' && data[1] == '\n')
                        data++;
        } while (data++ < end);
        buf_addch(out, '\n');
}

/* ---- clients ---- */

/* Moves to the next record for this client; false: none yet, or fallen behind. */
static bool find_next(struct client *c)
{
        const struct sse_hub *h = c->hub;

        if (c->cursor < h->tail) {
                c->behind = true;
                return false;
        }
        if (c->record_at > 0)
                return true;
        while (c->cursor < h->head) {
                const struct record *r = record_at(h, c->cursor);
                bool new = r->id > 0 ? r->id > c->after : c->cursor >= c->live_from;

                if (r->text_n > 0 && new &&
                    (!h->wants ||
                     h->wants(c->filter, r->bytes, r->topic_at ? r->bytes + r->topic_at : NULL)))
                        return true;
                c->cursor = after_record(h, c->cursor);
        }
        return false;
}

static size_t copy_some(char *out, size_t max, const char *from, size_t n)
{
        size_t k = n < max ? n : max;

        memcpy(out, from, k);
        return k;
}

static size_t pull_some(struct client *c, char *out, size_t max)
{
        size_t k = 0;

        if (!c->fixed && !c->preface && c->hub && !c->ending) {
                if (!c->behind && find_next(c)) {
                        const struct record *r = record_at(c->hub, c->cursor);

                        k = copy_some(out, max, r->bytes + r->text_at + c->record_at,
                                      r->text_n - c->record_at);
                        c->record_at += k;
                        if (c->record_at == r->text_n) {
                                c->record_at = 0;
                                c->cursor = after_record(c->hub, c->cursor);
                        }
                        return k;
                }
                if (c->behind) {
                        /* nothing after half an event, or the client would take it for whole */
                        c->fixed = c->record_at == 0 ? gone : NULL;
                        c->ending = true;
                }
        }
        if (c->fixed) {
                k = copy_some(out, max, c->fixed, strlen(c->fixed));
                c->fixed += k;
                if (!*c->fixed)
                        c->fixed = NULL;
        } else if (c->preface) {
                k = copy_some(out, max, c->preface + c->preface_at, c->preface_n - c->preface_at);
                c->preface_at += k;
                if (c->preface_at == c->preface_n) {
                        free(c->preface);
                        c->preface = NULL;
                }
        }
        return k;
}

static ssize_t on_pull(void *arg, char *out, size_t max)
{
        struct client *c = arg;
        size_t n = 0, k;

        while (n < max && (k = pull_some(c, out + n, max - n)) > 0)
                n += k;
        if (n == 0)
                return c->ending ? -1 : 0;
        if (c->hub)
                c->sent_ms = loop_now_ms(c->hub->loop);
        return (ssize_t)n;
}

static void on_closed(void *arg)
{
        struct client *c = arg;
        struct sse_hub *h = c->hub;

        if (h) {
                TAILQ_REMOVE(&h->clients, c, next);
                if (--h->count == 0)
                        timer_stop(h->ticker);
        }
        free(c->preface);
        if (c->free_filter)
                c->free_filter(c->filter);
        free(c);
}

static const struct http_stream_ops client_ops = { on_pull, on_closed };

/* ---- the hub ---- */

static bool is_over(const struct client *c)
{
        return c->hub->over && c->hub->over(c->filter);
}

static void on_news(void *arg)
{
        struct sse_hub *h = arg;
        struct client *c;

        TAILQ_FOREACH(c, &h->clients, next) {
                if (is_over(c))
                        http_stream_cut(c->stream);
                else if (!c->fixed && !c->preface && (c->behind || find_next(c) || c->behind))
                        http_stream_wake(c->stream); /* also if it has just fallen behind */
        }
}

static void on_tick(void *arg)
{
        struct sse_hub *h = arg;
        int64_t now = loop_now_ms(h->loop);
        struct client *c;

        for (unsigned n = 2 * h->count / SLICES + 1; n > 0 && (c = TAILQ_FIRST(&h->clients)); n--) {
                if (now - c->turn_ms < h->ping_ms / 2)
                        return;
                TAILQ_REMOVE(&h->clients, c, next);
                TAILQ_INSERT_TAIL(&h->clients, c, next);
                c->turn_ms = now;
                if (c->given_up || is_over(c)) {
                        http_stream_cut(c->stream);
                        continue;
                }
                c->given_up = c->behind;
                /* ping if the silence would last too long until the next turn */
                if (now - c->sent_ms > h->ping_ms - h->ping_ms / 2 &&
                    http_stream_parked(c->stream)) {
                        c->fixed = ping;
                        http_stream_wake(c->stream);
                }
        }
}

struct sse_hub *sse_hub_new(struct loop *l, const struct sse_options *options, sse_wants_fn *wants)
{
        struct sse_hub *h = mem_zalloc(sizeof(*h));

        h->loop = l;
        h->wants = wants;
        h->over = options->over;
        h->size = options->ring_bytes ? (options->ring_bytes + 7) & ~(size_t)7 : 1024 * 1024;
        if (h->size < 1024)
                h->size = 1024;
        h->ring = mem_alloc(h->size);
        h->oldest_after = INT64_MAX;
        h->max_clients = options->max_clients ? options->max_clients : 10000;
        h->ping_ms = options->ping_ms ? options->ping_ms : 15000;
        TAILQ_INIT(&h->clients);
        h->news = timer_new(l, on_news, h);
        h->ticker = timer_new(l, on_tick, h);
        return h;
}

unsigned sse_room(const struct sse_hub *h)
{
        return h->count < h->max_clients ? h->max_clients - h->count : 0;
}

void sse_hub_free(struct sse_hub *h)
{
        struct client *c;

        if (!h)
                return;
        while ((c = TAILQ_FIRST(&h->clients))) {
                TAILQ_REMOVE(&h->clients, c, next);
                c->hub = NULL;
                c->ending = true;
                http_stream_wake(c->stream);
        }
        timer_free(h->news);
        timer_free(h->ticker);
        free(h->ring);
        free(h);
}

void sse_publish(struct sse_hub *h, int64_t id, const char *type, const char *topic,
                 const char *data, size_t n)
{
        char name[24];

        snprintf(name, sizeof(name), "%lld", (long long)id);
        sse_publish_named(h, id, id > 0 ? name : NULL, type, topic, data, n);
}

void sse_publish_named(struct sse_hub *h, int64_t id, const char *name, const char *type,
                       const char *topic, const char *data, size_t n)
{
        struct buf text;

        buf_init(&text, 0);
        sse_format_named(&text, name, type, data, n);
        if (id > 0 && h->oldest_after == INT64_MAX)
                h->oldest_after = id - 1;
        append(h, id, type, topic, &text);
        buf_release(&text);
        if (h->count > 0 && !timer_active(h->news))
                timer_start(h->news, 0);
}

int64_t sse_oldest_after(const struct sse_hub *h)
{
        return h->oldest_after;
}

unsigned sse_clients(const struct sse_hub *h)
{
        return h->count;
}

void sse_attach(struct sse_hub *h, struct http_exchange *x, int64_t after, char *preface,
                size_t preface_n, void *filter, void (*free_filter)(void *))
{
        bool is_head = strcmp(http_method(x), "HEAD") == 0;
        struct client *c;

        if (is_head || sse_room(h) == 0) {
                if (is_head) {
                        http_answer(x, 200, "text/event-stream", "", 0);
                } else {
                        http_add_header(x, "Retry-After", "10");
                        http_refuse(x, 503, "too_many_streams",
                                    "there are already %u event streams", h->count);
                }
                free(preface);
                if (free_filter)
                        free_filter(filter);
                return;
        }
        c = mem_zalloc(sizeof(*c));
        c->hub = h;
        c->fixed = hello;
        if (preface_n > 0)
                c->preface = preface;
        else
                free(preface);
        c->preface_n = preface_n;
        c->after = after;
        c->cursor = h->tail;
        c->live_from = h->head;
        c->sent_ms = c->turn_ms = loop_now_ms(h->loop);
        c->behind = h->oldest_after != INT64_MAX && after < h->oldest_after;
        c->filter = filter;
        c->free_filter = free_filter;
        TAILQ_INSERT_TAIL(&h->clients, c, next);
        if (h->count++ == 0)
                timer_repeat(h->ticker, h->ping_ms > SLICES ? h->ping_ms / SLICES : 1);
        http_add_header(x, "X-Accel-Buffering", "no");
        http_answer_stream(x, "text/event-stream", &client_ops, c, &c->stream);
}
