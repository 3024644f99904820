#include "platform/attachment_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/backoff.h"

#define RUNNING_MAX    4
#define SENDER_RUNNING 2 /* of these: others find a place whatever one person sends */
#define DOWNLOAD_MS    30000
#define ATTEMPTS       3
#define RETRY_MS       500
#define PATIENCE_MS    10000 /* no retry after this: a person waits for an answer */
#define HOUR_MS        3600000
#define LEAST_CHARGE   65536 /* of a small file, so that budgets also limit the number */

/* A sender with open fetches, or with files fetched within the hour. */
struct fetch_sender {
        char *id;
        unsigned open, running; /* fetches */
        int64_t bytes;          /* within the hour */
};

enum fetch_state { FETCH_LOOKING, FETCH_WAITING, FETCH_RUNNING, FETCH_SAVING };

struct attachment_fetch {
        struct attachment_queue *queue;
        struct fetch_sender *sender;
        enum fetch_state state;
        bool has_place; /* counted in the queue */
        attachment_fetched_fn *done;
        void *arg;
        void *lookup; /* by source.locate; NULL: none, or answered */
        struct http_call *download;
        const char *page_why; /* of its place */
        struct attachment_job *job;
        char *source, *path;
        int64_t size, charge, started_ms;
        unsigned attempts;
        struct timer *retry;
        TAILQ_ENTRY(attachment_fetch) next;
};

struct attachment_queue {
        struct adapter *adapter;
        struct attachment_files *files;
        TAILQ_HEAD(, attachment_fetch) list;
        struct map senders;
        int64_t hour_began_ms; /* of the hour that is counted; 0: none */
        int64_t bytes;
        unsigned open, running;
        bool closing;
};

static void pump(struct attachment_queue *q);

/* ---- budgets ---- */

static struct fetch_sender *sender_get(struct attachment_queue *q, const char *id)
{
        struct fetch_sender *s = map_get(&q->senders, id);

        if (!s) {
                s = mem_zalloc(sizeof(*s));
                s->id = mem_strdup(id);
                map_put(&q->senders, id, s);
        }
        return s;
}

static void sender_free_if_idle(struct attachment_queue *q, struct fetch_sender *s)
{
        struct attachment_fetch *f;

        if (s->open > 0 || s->bytes > 0)
                return;
        TAILQ_FOREACH(f, &q->list, next) /* those that only look */
                if (f->sender == s)
                        return;
        map_remove(&q->senders, s->id);
        free(s->id);
        free(s);
}

static void begin_hour(struct attachment_queue *q)
{
        int64_t now_ms = loop_now_ms(q->adapter->loop),
                length = attachment_files_limits(q->files)->hour_ms;
        void *s;

        if (q->hour_began_ms > 0 && now_ms - q->hour_began_ms < (length > 0 ? length : HOUR_MS))
                return;
        q->hour_began_ms = now_ms;
        q->bytes = 0;
        for (size_t i = 0; map_each(&q->senders, &i, NULL, &s);) {
                ((struct fetch_sender *)s)->bytes = 0;
                sender_free_if_idle(q, s);
        }
}

static void charge(struct attachment_fetch *f, int64_t bytes)
{
        int64_t more = (bytes < LEAST_CHARGE ? LEAST_CHARGE : bytes) - f->charge;

        if (more <= 0)
                return;
        f->charge += more;
        f->sender->bytes += more;
        f->queue->bytes += more;
}

/* ---- the end of a fetch ---- */

static void leave_queue(struct attachment_fetch *f)
{
        struct attachment_queue *q = f->queue;

        TAILQ_REMOVE(&q->list, f, next);
        if (f->has_place) {
                q->open--;
                f->sender->open--;
        }
        if (f->state == FETCH_RUNNING) {
                q->running--;
                f->sender->running--;
        }
        sender_free_if_idle(q, f->sender);
}

static void fetch_free(struct attachment_fetch *f)
{
        if (f->lookup && f->queue->adapter->ops->files->cancel)
                f->queue->adapter->ops->files->cancel(f->lookup);
        http_call_abort(f->download);
        attachment_files_drop(f->job);
        timer_free(f->retry);
        free(f->source);
        free(f->path);
        free(f);
}

/* why NULL: the file is there. */
static void finish(struct attachment_fetch *f, int64_t size, const char *why)
{
        struct attachment_queue *q = f->queue;

        leave_queue(f);
        if (why)
                log_info("attachment not downloaded", LOG_S("adapter", q->adapter->name),
                         LOG_S("path", f->path), LOG_S("why", why));
        f->done(f->arg, why ? -1 : size, why);
        fetch_free(f);
        pump(q);
}

void attachment_fetch_drop(struct attachment_fetch *f)
{
        struct attachment_queue *q;

        if (!f)
                return;
        q = f->queue;
        leave_queue(f);
        fetch_free(f);
        pump(q);
}

/* ---- downloading ---- */

static void on_saved(void *arg, int64_t size, const char *why)
{
        struct attachment_fetch *f = arg;

        f->job = NULL;
        finish(f, size, why);
}

static void locate(void *arg)
{
        struct attachment_fetch *f = arg;
        struct adapter *a = f->queue->adapter;
        void *lookup = a->ops->files->locate(a, f, f->source);

        if (lookup) /* else it has answered, and f may be gone */
                f->lookup = lookup;
}

void attachment_fetch_retry(struct attachment_fetch *f, const char *why)
{
        struct loop *l = f->queue->adapter->loop;

        f->lookup = NULL;
        if (++f->attempts == ATTEMPTS || loop_now_ms(l) - f->started_ms > PATIENCE_MS) {
                finish(f, -1, why);
                return;
        }
        if (!f->retry)
                f->retry = timer_new(l, locate, f);
        timer_start(f->retry, backoff_ms(f->attempts - 1, RETRY_MS, PATIENCE_MS));
}

static void save(struct attachment_fetch *f, const struct http_result *r)
{
        struct attachment_queue *q = f->queue;

        charge(f, (int64_t)r->body_n);
        q->running--;
        f->sender->running--;
        f->state = FETCH_SAVING;
        f->job = attachment_files_save(q->files, f->path, mem_dup(r->body, r->body_n), r->body_n,
                                       on_saved, f);
        pump(q);
}

/* A file, also a web page, comes with its name. */
static bool is_login_page(const struct attachment_fetch *f, const struct http_result *r)
{
        const char *type = http_call_header(f->download, "Content-Type");
        bool page = type && strncasecmp(type, "text/html", 9) == 0 &&
                    !http_call_header(f->download, "Content-Disposition");

        return f->page_why && ((r->status == 200 && page) || (r->status >= 300 && r->status < 400));
}

static void on_download(void *arg, const struct http_result *r)
{
        struct attachment_fetch *f = arg;
        bool login = is_login_page(f, r);
        bool transient = r->status == 0 || r->status == 200 || r->status == 429 || r->status >= 500;
        char why[200];

        f->download = NULL;
        if (login) {
                finish(f, -1, f->page_why);
                return;
        }
        if (r->status == 200 && r->kind == ERR_NONE) {
                save(f, r);
                return;
        }
        if (r->kind == ERR_LIMIT) {
                charge(f, f->queue->adapter->ops->files->max_bytes(f->queue->adapter));
                finish(f, -1, "it is larger than mediaMaxBytes");
                return;
        }
        if (r->status != 0 && r->status != 200)
                snprintf(why, sizeof(why), "the download failed: %s refused it",
                         f->queue->adapter->ops->title);
        else
                snprintf(why, sizeof(why), "the download failed: %s", r->why);
        log_redact(why);
        if (transient)
                attachment_fetch_retry(f, why);
        else
                finish(f, -1, why);
}

void attachment_fetch_with(struct attachment_fetch *f, const struct attachment_place *place)
{
        static const struct http_handlers handlers = { .on_done = on_download };
        struct adapter *a = f->queue->adapter;
        const char *const headers[] = { place->header, NULL };
        /* redirects are not followed: they could lead to any host */
        const struct http_request request = { .url = place->url,
                                              .headers = headers,
                                              .total_ms = DOWNLOAD_MS,
                                              .max_body = (size_t)a->ops->files->max_bytes(a),
                                              .repeatable = true };

        f->lookup = NULL;
        f->page_why = place->page_why;
        f->download = http_call_start(a->http, &request, &handlers, f);
}

void attachment_fetch_from(struct attachment_fetch *f, const char *url)
{
        attachment_fetch_with(f, &(struct attachment_place){ .url = url });
}

void attachment_fetch_fail(struct attachment_fetch *f, const char *why)
{
        f->lookup = NULL;
        finish(f, -1, why);
}

/* ---- the queue ---- */

/* The waiting fetch whose sender has the fewest running; of these the first. NULL: none may run. */
static struct attachment_fetch *next_fetch(const struct attachment_queue *q)
{
        struct attachment_fetch *f, *best = NULL;

        TAILQ_FOREACH(f, &q->list, next)
                if (f->state == FETCH_WAITING && f->sender->running < SENDER_RUNNING &&
                    (!best || f->sender->running < best->sender->running))
                        best = f;
        return best;
}

/* One that ends at once pumps again, so each round looks again. */
static void pump(struct attachment_queue *q)
{
        struct attachment_fetch *f;

        while (!q->closing && q->running < RUNNING_MAX && (f = next_fetch(q))) {
                f->state = FETCH_RUNNING;
                q->running++;
                f->sender->running++;
                f->started_ms = loop_now_ms(q->adapter->loop);
                locate(f);
        }
}

/* Takes a place from the sender with the most places, unless that is s. */
static bool make_place(struct attachment_queue *q, const struct fetch_sender *s)
{
        struct attachment_fetch *f, *newest = NULL;

        TAILQ_FOREACH(f, &q->list, next)
                if (f->state == FETCH_WAITING &&
                    (!newest || f->sender->open >= newest->sender->open))
                        newest = f;
        if (!newest || newest->sender->open <= s->open + 1)
                return false;
        finish(newest, -1, "too many files wait to be downloaded (attachments.adapterQueue)");
        return true;
}

/* Why the sender's budgets do not permit a file of this size; NULL: they do. */
static const char *budget_refusal(struct attachment_queue *q, const struct fetch_sender *s,
                                  int64_t size)
{
        const struct attachment_limits *l = attachment_files_limits(q->files);

        begin_hour(q);
        if (s->open >= l->sender_queue)
                return "too many files of this sender wait to be downloaded "
                       "(attachments.senderQueue)";
        if (s->bytes + size > l->sender_hour_bytes)
                return "this sender's files have used up the budget for this hour "
                       "(attachments.senderBytesPerHour)";
        if (q->bytes + size > l->adapter_hour_bytes)
                return "the budget for this hour is used up (attachments.adapterBytesPerHour)";
        if (q->open >= l->adapter_queue && !make_place(q, s))
                return "too many files wait to be downloaded (attachments.adapterQueue)";
        return NULL;
}

static void on_looked(void *arg, int64_t size, const char *why)
{
        struct attachment_fetch *f = arg;
        struct attachment_queue *q = f->queue;
        const char *refusal;

        (void)why;
        f->job = NULL;
        if (size >= 0) {
                finish(f, size, NULL);
                return;
        }
        f->size = f->size < LEAST_CHARGE ? LEAST_CHARGE : f->size;
        refusal = budget_refusal(q, f->sender, f->size);
        if (refusal) {
                finish(f, -1, refusal);
                return;
        }
        charge(f, f->size);
        f->has_place = true;
        q->open++;
        f->sender->open++;
        f->state = FETCH_WAITING;
        pump(q);
}

const char *attachment_fetch_refusal(const struct attachment_queue *q, int64_t size)
{
        int64_t max = q->adapter->ops->files->max_bytes(q->adapter);

        if (max == 0)
                return "downloads are switched off (mediaMaxBytes)";
        return size > max ? "it is larger than mediaMaxBytes" : NULL;
}

struct attachment_fetch *attachment_fetch_start(struct attachment_queue *q,
                                                const struct attachment_order *o,
                                                attachment_fetched_fn *done, void *arg)
{
        struct attachment_fetch *f = mem_zalloc(sizeof(*f));

        f->queue = q;
        f->sender = sender_get(q, o->sender);
        f->done = done;
        f->arg = arg;
        f->source = mem_strdup(o->source);
        f->path = mem_strdup(o->path);
        f->size = o->size;
        TAILQ_INSERT_TAIL(&q->list, f, next);
        f->job = attachment_files_find(q->files, f->path, o->size, on_looked, f);
        return f;
}

struct adapter *attachment_fetch_adapter(const struct attachment_fetch *f)
{
        return f->queue->adapter;
}

struct attachment_queue *attachment_queue_new(struct adapter *a, struct attachment_files *files)
{
        struct attachment_queue *q = mem_zalloc(sizeof(*q));

        q->adapter = a;
        q->files = files;
        TAILQ_INIT(&q->list);
        map_init(&q->senders);
        return q;
}

void attachment_queue_free(struct attachment_queue *q)
{
        struct attachment_fetch *f;
        void *s;

        if (!q)
                return;
        q->closing = true;
        while ((f = TAILQ_FIRST(&q->list)))
                finish(f, -1, "its adapter was stopped");
        for (size_t i = 0; map_each(&q->senders, &i, NULL, &s);) {
                free(((struct fetch_sender *)s)->id);
                free(s);
        }
        map_release(&q->senders);
        free(q);
}
