#include "net/json_queue.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/json_offload.h"

struct waiting_text {
        char *text;
        size_t n;
        STAILQ_ENTRY(waiting_text) next;
};

struct json_queue {
        struct loop *loop;
        const struct json_queue_handlers *on;
        void *arg;
        struct json_offload *parsing; /* a large text; NULL: none */
        STAILQ_HEAD(, waiting_text) waiting;
        size_t bytes, max_bytes;
        unsigned refs; /* the owner, handlers on the stack */
        bool freed;
};

static void unref(struct json_queue *q)
{
        struct waiting_text *w;

        if (--q->refs > 0)
                return;
        while ((w = STAILQ_FIRST(&q->waiting))) {
                STAILQ_REMOVE_HEAD(&q->waiting, next);
                free(w->text);
                free(w);
        }
        free(q);
}

static void parse(struct json_queue *q, const char *text, size_t n);

static void on_parsed(void *arg, const struct json_parsed *parsed)
{
        struct json_queue *q = arg;
        struct waiting_text *w;

        q->refs++;
        q->parsing = NULL;
        q->on->parsed(q->arg, parsed->root);
        while (!q->freed && !q->parsing && (w = STAILQ_FIRST(&q->waiting))) {
                STAILQ_REMOVE_HEAD(&q->waiting, next);
                q->bytes -= w->n;
                parse(q, w->text, w->n);
                free(w->text);
                free(w);
        }
        if (!q->freed && !q->parsing)
                q->on->busy(q->arg, false);
        unref(q);
}

static void parse(struct json_queue *q, const char *text, size_t n)
{
        json_t *root;

        if (n >= JSON_OFFLOAD_MIN) {
                q->parsing = json_offload_start(q->loop, mem_dup(text, n), n, json_read_lenient,
                                                on_parsed, q);
                q->on->busy(q->arg, true);
                return;
        }
        root = json_read_lenient(text, n, NULL);
        q->on->parsed(q->arg, root);
        json_decref(root);
}

int json_queue_add(struct json_queue *q, const char *text, size_t n)
{
        struct waiting_text *w;

        if (!q->parsing && STAILQ_EMPTY(&q->waiting)) {
                q->refs++;
                parse(q, text, n);
                unref(q);
                return 0;
        }
        if (n > q->max_bytes - q->bytes)
                return -1;
        w = mem_zalloc(sizeof(*w));
        w->text = mem_dup(text, n);
        w->n = n;
        STAILQ_INSERT_TAIL(&q->waiting, w, next);
        q->bytes += n;
        return 0;
}

bool json_queue_busy(const struct json_queue *q)
{
        return q->parsing != NULL;
}

struct json_queue *json_queue_new(struct loop *l, size_t max_waiting,
                                  const struct json_queue_handlers *handlers, void *arg)
{
        struct json_queue *q = mem_zalloc(sizeof(*q));

        q->loop = l;
        q->max_bytes = max_waiting;
        q->on = handlers;
        q->arg = arg;
        q->refs = 1;
        STAILQ_INIT(&q->waiting);
        return q;
}

void json_queue_free(struct json_queue *q)
{
        if (!q || q->freed)
                return;
        q->freed = true;
        json_offload_cancel(q->parsing);
        q->parsing = NULL;
        unref(q);
}
