#include "sim/llm/lm_pieces.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

void lm_pieces_init(struct lm_pieces *p)
{
        *p = (struct lm_pieces){ .cut_at = -1 };
        buf_init(&p->bytes, 0);
}

void lm_pieces_release(struct lm_pieces *p)
{
        buf_release(&p->bytes);
        free(p->list);
        lm_pieces_init(p);
}

void lm_pieces_raw(struct lm_pieces *p, const char *text)
{
        buf_addstr(&p->bytes, text);
        if (p->count == p->room) {
                p->room = p->room ? p->room * 2 : 16;
                p->list = mem_realloc(p->list, p->room * sizeof(*p->list));
        }
        p->list[p->count++] = (struct lm_piece){ p->bytes.len, p->wait_ms + p->next_wait_ms };
        p->next_wait_ms = 0;
}

void lm_pieces_event(struct lm_pieces *p, const char *name, json_t *data)
{
        char *text = json_text(data);

        if (name)
                buf_addf(&p->bytes, "event: %s\n", name);
        buf_addf(&p->bytes, "data: %s", text);
        lm_pieces_raw(p, "\n\n");
        free(text);
        json_decref(data);
}

void lm_pieces_keep(struct lm_pieces *p, size_t n)
{
        if (n >= p->count)
                return;
        p->count = n;
        buf_truncate(&p->bytes, n ? p->list[n - 1].end : 0);
}

size_t lm_pieces_step(const char *text, size_t n, size_t max)
{
        size_t step = 0;

        while (step < n && step < max) {
                uint32_t cp;
                size_t length = utf8_decode(text + step, n - step, &cp);

                if (step > 0 && step + length > max)
                        break;
                step += length;
        }
        return step;
}

/* ---- to the client ---- */

#define WATCH_MS 100

struct lm_stream {
        struct world *world; /* NULL: gone */
        struct loop *loop;
        struct http_stream *http;
        struct lm_pieces pieces;
        struct timer *timer;
        struct timer *watch; /* for a client that leaves while the model is silent */
        size_t next;         /* piece that waits for its time */
        size_t released;     /* bytes the client may have */
        size_t sent;
        bool cutting;
        LIST_ENTRY(lm_stream) link;
};

/* Lets pieces go until one has to wait. */
static void release(struct lm_stream *s)
{
        while (s->next < s->pieces.count) {
                s->released = s->pieces.list[s->next++].end;
                if (s->next < s->pieces.count && s->pieces.list[s->next].wait_ms > 0) {
                        timer_start(s->timer, s->pieces.list[s->next].wait_ms);
                        return;
                }
        }
}

static void on_time(void *arg)
{
        struct lm_stream *s = arg;

        if (s->cutting) {
                http_stream_cut(s->http);
                return;
        }
        release(s);
        http_stream_wake(s->http);
}

static void on_watch(void *arg)
{
        struct lm_stream *s = arg;

        if (http_stream_is_gone(s->http))
                http_stream_cut(s->http);
}

static ssize_t pull(void *arg, char *out, size_t max)
{
        struct lm_stream *s = arg;
        size_t limit = s->released, n;

        if (s->pieces.cut_at >= 0 && (size_t)s->pieces.cut_at < limit)
                limit = (size_t)s->pieces.cut_at;
        n = limit - s->sent < max ? limit - s->sent : max;
        memcpy(out, s->pieces.bytes.data + s->sent, n);
        s->sent += n;
        if (n > 0)
                return (ssize_t)n;
        if (s->pieces.cut_at >= 0 && s->sent >= (size_t)s->pieces.cut_at) {
                s->cutting = true; /* what was pulled before is with the kernel by now */
                timer_start(s->timer, 1);
                return 0;
        }
        return s->sent == s->pieces.bytes.len ? -1 : 0;
}

static void note_abort(struct lm_stream *s)
{
        struct buf *b = journal_open(s->world->base.sent, "aborted", 0);

        jsonw_int(b, "sent_bytes", (int64_t)s->sent);
        jsonw_int(b, "of_bytes", (int64_t)s->pieces.bytes.len);
        journal_close(s->world->base.sent);
        s->world->aborted_count++;
}

static void closed(void *arg)
{
        struct lm_stream *s = arg;

        if (s->world) {
                if (!s->cutting && s->sent < s->pieces.bytes.len)
                        note_abort(s);
                LIST_REMOVE(s, link);
        }
        timer_free(s->timer);
        timer_free(s->watch);
        lm_pieces_release(&s->pieces);
        free(s);
}

void lm_stream_start(struct world *w, struct http_exchange *x, struct lm_pieces *p)
{
        static const struct http_stream_ops ops = { .pull = pull, .closed = closed };
        struct lm_stream *s = mem_zalloc(sizeof(*s));

        s->world = w;
        s->loop = w->base.loop;
        s->pieces = *p;
        lm_pieces_init(p);
        s->timer = timer_new(s->loop, on_time, s);
        s->watch = timer_new(s->loop, on_watch, s);
        timer_repeat(s->watch, WATCH_MS);
        LIST_INSERT_HEAD(&w->streams, s, link);
        if (s->pieces.count > 0 && s->pieces.list[0].wait_ms > 0)
                timer_start(s->timer, s->pieces.list[0].wait_ms);
        else
                release(s);
        http_answer_stream(x, "text/event-stream; charset=utf-8", &ops, s, &s->http);
}

void lm_stream_forget_all(struct world *w)
{
        struct lm_stream *s;

        while ((s = LIST_FIRST(&w->streams))) {
                LIST_REMOVE(s, link);
                s->world = NULL;
                timer_stop(s->timer); /* the server closes them */
                timer_stop(s->watch);
        }
}
