/*
 * a2a_send: takes a message, and follows its task as the client wishes: by waiting for its end, by
 * a stream of events, or not at all.
 *
 * A client that has gone stops nothing. The same message again does nothing twice: its context, if
 * the client names none, is made of its id, and the inbox knows its key.
 *
 * A turn that asks a person something (an approval) waits for input: requests that follow it are
 * told, and a further message to the task is put into its chat, where it decides. What such a
 * message has done is known when it is decided.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/compat/a2a.h"
#include "api/core/reply_stream.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "platform/platform.h"
#include "rows/trigger_log_row.h"

#define DECIDED_MS    50
#define DECIDED       600 /* tries */

#define NUMBER_DIGITS 15 /* of a hash, which make the number of a file */
#define SOURCE_SIZE   32

/* Somebody who follows a task, and wants to know when it asks for something. */
struct follower {
        LIST_ENTRY(follower) next;
        struct api *api;
        struct question *reading; /* what it asks; NULL: nothing is being read */
        char *trace;              /* of the task */
        char *agent;
        struct key *caller;
        int64_t event;
        /* Takes what is in the task. */
        void (*asked)(struct follower *f, struct a2a_task *t);
};

struct a2a_server {
        struct api *api;
        struct bus_listener *listener;
        LIST_HEAD(, follower) followers;
        LIST_HEAD(, send_job) saving; /* whose files are being saved */
};

/* ---- questions ---- */

struct question {
        struct follower *who; /* NULL: it has gone */
        bool again;           /* something was asked during the read */
        struct key *caller;
        char *agent;
        int64_t event;
        struct a2a_task task;
};

static int read_question(struct store_tx *tx, void *arg, struct error *err)
{
        struct question *q = arg;

        return a2a_task_read(tx, q->caller, q->agent, q->event, &q->task, err);
}

static void look_for_question(struct follower *f);

static void on_question(void *arg, const struct error *err)
{
        struct question *q = arg;
        struct follower *f = q->who;

        if (f)
                f->reading = NULL;
        if (f && !err && q->task.found && q->task.state == A2A_INPUT_REQUIRED)
                f->asked(f, &q->task);
        else if (f && q->again)
                look_for_question(f);
        a2a_task_release(&q->task);
        key_unref(q->caller);
        free(q->agent);
        free(q);
}

static void look_for_question(struct follower *f)
{
        struct question *q;

        if (f->reading) {
                f->reading->again = true;
                return;
        }
        q = mem_zalloc(sizeof(*q));
        q->who = f;
        q->caller = key_ref(f->caller);
        q->agent = mem_strdup(f->agent);
        q->event = f->event;
        f->reading = q;
        store_read(f->api->env.store, read_question, on_question, q);
}

/* Requests may share a trace, so the task is looked at. */
static void on_event(void *arg, const struct bus_event *e)
{
        struct a2a_server *s = arg;
        struct follower *f;

        if (LIST_EMPTY(&s->followers) || strcmp(e->type, "approval.requested") != 0 || !e->trace)
                return;
        LIST_FOREACH(f, &s->followers, next)
                if (strcmp(f->trace, e->trace) == 0)
                        look_for_question(f);
}

static void follow(struct follower *f, const struct a2a_job *j, const char *trace,
                   void (*asked)(struct follower *f, struct a2a_task *t))
{
        f->api = j->job.api;
        f->trace = mem_strdup(trace);
        f->agent = mem_strdup(j->agent);
        f->caller = key_ref(j->caller);
        f->event = j->event;
        f->asked = asked;
        LIST_INSERT_HEAD(&f->api->a2a->followers, f, next);
        if (j->task.state == A2A_WORKING) /* it may have asked since it was read */
                look_for_question(f);
}

static void unfollow(struct follower *f)
{
        if (!f->trace)
                return;
        LIST_REMOVE(f, next);
        if (f->reading)
                f->reading->who = NULL;
        f->reading = NULL;
        key_unref(f->caller);
        free(f->agent);
        free(f->trace);
        f->trace = NULL;
}

/* ---- streams ---- */

struct a2a_stream {
        struct follower follower; /* first */
        struct reply_stream *http;
        struct a2a_to to;
        struct a2a_task task; /* as it was told first */
        int64_t history;
        bool working;  /* its state was told */
        bool wrote;    /* pieces were sent */
        bool replaces; /* the next one replaces them */
};

static void begin_event(struct buf *b, const struct a2a_stream *s)
{
        buf_init(b, 0);
        a2a_open(b, &s->to);
        buf_addstr(b, ",\"result\":");
}

static void send_event(struct reply_stream *http, struct buf *b)
{
        a2a_close(b);
        reply_stream_send(http, b);
}

static void send_status(struct reply_stream *http, struct a2a_stream *s, enum a2a_state state,
                        const char *said)
{
        struct buf b;

        begin_event(&b, s);
        a2a_status_write(&b, s->to.version, &s->task, state, said);
        send_event(http, &b);
}

static void on_begin(struct reply_stream *http, void *arg)
{
        struct a2a_stream *s = arg;
        struct a2a_task_form form = { s->to.version, s->history, s->task.answer != NULL };
        struct buf b;

        s->http = http;
        s->working = s->task.state == A2A_WORKING;
        begin_event(&b, s);
        if (s->to.version == A2A_1_0) {
                jsonw_open(&b, '{');
                a2a_task_write(&b, "task", &form, &s->task);
                jsonw_close(&b, '}');
        } else {
                a2a_task_write(&b, NULL, &form, &s->task);
        }
        send_event(http, &b);
        if (a2a_state_is_final(s->task.state))
                reply_stream_close(http);
}

static void tell_working(struct reply_stream *http, struct a2a_stream *s, const char *said)
{
        if (!s->working || said)
                send_status(http, s, A2A_WORKING, said);
        s->working = true;
}

static void on_piece(struct reply_stream *http, void *arg, const char *text, size_t n)
{
        struct a2a_stream *s = arg;
        struct buf b;

        tell_working(http, s, NULL);
        begin_event(&b, s);
        a2a_artifact_write(&b, s->to.version, &s->task, text, n, s->wrote && !s->replaces);
        send_event(http, &b);
        s->wrote = true;
        s->replaces = false;
}

static void on_aside(struct reply_stream *http, void *arg)
{
        struct a2a_stream *s = arg;

        (void)http;
        s->replaces = true;
}

static void on_progress(struct reply_stream *http, void *arg, const char *label)
{
        tell_working(http, arg, label);
}

static bool has_failed(const struct awaited_reply *r)
{
        return a2a_state_of(r) != A2A_COMPLETED;
}

static void on_end(struct reply_stream *http, void *arg, const struct awaited_reply *r)
{
        struct a2a_stream *s = arg;

        if (r) /* else it goes on: the client may subscribe to it again */
                send_status(http, s, a2a_state_of(r), a2a_reason_of(r));
}

static void stream_free(void *arg)
{
        struct a2a_stream *s = arg;

        unfollow(&s->follower);
        a2a_task_release(&s->task);
        free(s->to.id);
        free(s);
}

/* The stream of the task ends with its question. */
static void on_stream_asked(struct follower *f, struct a2a_task *t)
{
        struct a2a_stream *s = (struct a2a_stream *)f;

        unfollow(f);
        send_status(s->http, s, A2A_INPUT_REQUIRED, t->said);
        reply_stream_close(s->http);
}

/* j->task is what the client is told first. live: all of the answer is still to come. */
static void open_stream(struct a2a_job *j, bool live)
{
        static const struct reply_stream_ops ops = { .begin = on_begin,
                                                     .piece = on_piece,
                                                     .aside = on_aside,
                                                     .progress = on_progress,
                                                     .end = on_end,
                                                     .is_failure = has_failed,
                                                     .free = stream_free };
        struct a2a_stream *s = mem_zalloc(sizeof(*s));

        follow(&s->follower, j, j->task.trace ? j->task.trace : "", on_stream_asked);
        s->to = j->to;
        j->to.id = NULL;
        s->task = j->task;
        j->task = (struct a2a_task){ 0 };
        s->history = j->history;
        reply_stream_open(api_job_end(&j->job), j->event, live, !live, CHAT_BRIDGE_WAIT_MS, &ops,
                          s);
        a2a_job_free(j);
}

void a2a_subscribe_task(struct a2a_job *j)
{
        open_stream(j, false);
}

/* ---- messages ---- */

struct send_job {
        struct a2a_job base; /* first */
        struct follower follower;
        struct a2a_ask ask;
        enum a2a_method method;
        char *context, *channel, *sender, *traceparent;
        size_t saved; /* files */
        char *bytes;  /* of the next one */
        size_t byte_count;
        char sources[A2A_ASK_FILES][SOURCE_SIZE];
        struct attachment_job *saving; /* NULL: none */
        LIST_ENTRY(send_job) next;     /* while it is saved */
        bool goes_on;                  /* the message is for a task that asks */
        int64_t answering;             /* the event of that message */
        struct reply_waiter *waiter;   /* NULL: it does not wait */
};

static void release_send(struct a2a_job *j)
{
        struct send_job *s = (struct send_job *)j;

        unfollow(&s->follower);
        if (s->waiter)
                reply_waiters_remove(s->waiter);
        a2a_ask_release(&s->ask);
        free(s->bytes);
        free(s->context);
        free(s->channel);
        free(s->sender);
        free(s->traceparent);
}

/* ---- its end ---- */

static void on_loaded(struct a2a_job *j, const struct error *err)
{
        if (err)
                a2a_job_failed(j, err);
        else if (!j->task.found)
                a2a_job_mistake(j, A2A_INTERNAL_ERROR, "the task is gone");
        else
                a2a_job_reply_task(j);
}

static void on_reply(void *arg, const struct awaited_reply *reply)
{
        struct send_job *s = arg;

        (void)reply;
        s->waiter = NULL;
        unfollow(&s->follower);
        s->base.loaded = on_loaded;
        if (s->base.job.api)
                a2a_job_load(&s->base);
        else
                a2a_job_free(&s->base);
}

static void on_send_asked(struct follower *f, struct a2a_task *t)
{
        struct send_job *s = (struct send_job *)((char *)f - offsetof(struct send_job, follower));

        a2a_task_release(&s->base.task);
        s->base.task = *t;
        *t = (struct a2a_task){ 0 };
        a2a_job_reply_task(&s->base);
}

static void wait_for_end(struct send_job *s, const char *trace, bool now)
{
        follow(&s->follower, &s->base, trace, on_send_asked);
        s->waiter = reply_waiters_add(s->base.job.api->waiters, s->base.event, now,
                                      CHAT_BRIDGE_WAIT_MS, on_reply, s);
}

/* ---- a message to a task that asks ---- */

static void on_decided_loaded(struct a2a_job *j, const struct error *err)
{
        struct send_job *s = (struct send_job *)j;

        if (err || !j->task.found || a2a_state_is_final(j->task.state) ||
            j->task.state == A2A_INPUT_REQUIRED || (s->method == A2A_SEND && !s->ask.waits))
                on_loaded(j, err);
        else if (s->method == A2A_SEND_STREAM)
                open_stream(j, true);
        else
                wait_for_end(s, j->task.trace ? j->task.trace : "", true);
}

static void await_decision(void *arg);

static int read_decision(struct store_tx *tx, void *arg, struct error *err)
{
        struct send_job *s = arg;
        struct trigger_log_row *row;
        int rc = trigger_log_row_get(tx, s->answering, &row, err);

        if (rc == 1)
                s->goes_on = false;
        free(row);
        return rc < 0 ? -1 : 0;
}

static void on_decision(void *arg, const struct error *err)
{
        struct send_job *s = arg;
        struct a2a_job *j = &s->base;

        if (!j->job.api) {
                a2a_job_free(j);
        } else if (err) {
                a2a_job_failed(j, err);
        } else if (s->goes_on && ++j->tries < DECIDED) {
                if (!j->timer)
                        j->timer = timer_new(j->job.api->env.loop, await_decision, s);
                timer_start(j->timer, DECIDED_MS);
        } else {
                j->loaded = on_decided_loaded;
                a2a_job_load(j);
        }
}

static void await_decision(void *arg)
{
        struct send_job *s = arg;

        if (s->base.job.api)
                store_read(s->base.job.api->env.store, read_decision, on_decision, s);
        else
                a2a_job_free(&s->base);
}

/* ---- storing it ---- */

/* What is known of a new task without reading it. */
static void make_task(struct send_job *s, const char *trace)
{
        struct a2a_task *t = &s->base.task;

        a2a_task_release(t);
        *t = (struct a2a_task){ .found = true,
                                .event = s->base.event,
                                .state = A2A_SUBMITTED,
                                .time_ms = clock_wall_ms(),
                                .context = mem_strdup(s->context),
                                .message = mem_strdup(s->ask.message),
                                .trace = mem_strdup(trace),
                                .payload = json_pack("{s:s}", "text", s->ask.text.data) };
}

static void on_stream_loaded(struct a2a_job *j, const struct error *err)
{
        if (err || !j->task.found)
                on_loaded(j, err);
        else
                open_stream(j, false);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct send_job *s = arg;
        struct a2a_job *j = &s->base;
        bool known = r->outcome == INBOX_DUPLICATE;

        if (!j->job.api) {
                a2a_job_free(j);
        } else if (r->outcome == INBOX_FAILED) {
                a2a_job_failed(j, &r->error);
        } else if (s->goes_on) {
                s->answering = r->event;
                await_decision(s);
        } else {
                j->event = r->event;
                j->loaded = s->method == A2A_SEND_STREAM ? on_stream_loaded
                            : known                      ? on_decided_loaded
                                                         : on_loaded;
                if (s->method == A2A_SEND_STREAM && !known) {
                        make_task(s, r->trace);
                        open_stream(j, true);
                } else if (s->method == A2A_SEND && s->ask.waits && !known) {
                        wait_for_end(s, r->trace, false);
                } else {
                        a2a_job_load(j);
                }
        }
}

static void submit(struct send_job *s)
{
        struct api *api = s->base.job.api;
        struct adapter *adapter = adapters_find(api->env.adapters, s->base.adapter);
        const struct chat_bridge_line line = { CHAT_BRIDGE_USER, NULL, s->ask.text.data };
        struct chat_bridge_ask ask = { .protocol = "a2a",
                                       .agent = s->base.agent,
                                       .conversation = s->channel,
                                       .sender = s->sender,
                                       .caller = s->base.caller->id,
                                       .external_id = s->ask.message,
                                       .traceparent = s->traceparent,
                                       .lines = &line,
                                       .line_count = 1,
                                       .attachments = s->ask.files,
                                       .attachment_count = s->ask.file_count };
        struct error err;

        if (adapter) {
                chat_bridge_submit(api, adapter, &ask, on_receipt, s);
                return;
        }
        error_set(&err, ERR_MISSING, "instance '%s' was removed", s->base.adapter);
        a2a_job_failed(&s->base, &err);
}

/* ---- files that were sent along ---- */

static void save_next(struct send_job *s);

static void on_saved(void *arg, int64_t size, const char *why)
{
        struct send_job *s = arg;

        LIST_REMOVE(s, next);
        s->saving = NULL;
        if (!s->base.job.api) {
                a2a_job_free(&s->base);
                return;
        }
        if (size < 0) {
                a2a_job_mistake(&s->base, A2A_INTERNAL_ERROR, "a file cannot be kept: %.150s", why);
                return;
        }
        s->ask.files[s->saved].size = size;
        s->saved++;
        save_next(s);
}

/* The turn finds it where it looks for files that it fetches. */
static void save(struct send_job *s)
{
        struct api *api = s->base.job.api;
        char *bytes = s->bytes;

        s->bytes = NULL;
        s->ask.files[s->saved].source = s->sources[s->saved];
        LIST_INSERT_HEAD(&api->a2a->saving, s, next);
        s->saving = adapters_save_file(api->env.adapters,
                                       &(struct incoming){ .adapter = s->base.adapter,
                                                           .channel = s->channel,
                                                           .attachments = s->ask.files,
                                                           .attachment_count = s->ask.file_count },
                                       s->saved, bytes, s->byte_count, on_saved, s);
}

static void on_decoded(void *arg)
{
        struct send_job *s = arg;

        if (!s->base.job.api)
                a2a_job_free(&s->base);
        else if (s->byte_count == 0)
                a2a_job_mistake(&s->base, A2A_INVALID_PARAMS, "a file is not in base64, or empty");
        else
                save(s);
}

/*
 * Its number is made of message and content: what is sent again is the same file, and another one
 * leaves it alone. On a pool thread, as it may be large.
 */
static void decode_on_pool(void *arg)
{
        struct send_job *s = arg;
        const char *base64 = s->ask.bytes[s->saved];
        char hex[SHA256_HEX_SIZE];
        char *name;

        s->byte_count = 0;
        s->bytes = crypto_unbase64(base64, strlen(base64), &s->byte_count);
        crypto_sha256_hex(s->bytes ? s->bytes : "", s->byte_count, hex);
        name = mem_printf("%s\n%s", s->ask.message, hex);
        crypto_sha256_hex(name, strlen(name), hex);
        free(name);
        hex[NUMBER_DIGITS] = '\0';
        snprintf(s->sources[s->saved], SOURCE_SIZE, ATTACHMENT_SAVED "%llu",
                 strtoull(hex, NULL, 16));
}

static void save_next(struct send_job *s)
{
        while (s->saved < s->ask.file_count && !s->ask.bytes[s->saved])
                s->saved++;
        if (s->saved < s->ask.file_count)
                loop_work(s->base.job.api->env.loop, decode_on_pool, on_decoded, s);
        else
                submit(s);
}

/* ---- beginning ---- */

static void begin(struct send_job *s)
{
        char *chats = a2a_chats(s->base.caller->id, s->base.agent);

        s->channel = mem_printf("%s%s", chats, s->context);
        free(chats);
        save_next(s);
}

static int read_continued(struct store_tx *tx, void *arg, struct error *err)
{
        struct send_job *s = arg;
        struct a2a_job *j = &s->base;
        char *key = a2a_key(j->caller->id, s->ask.message);
        int rc = journal_row_find(tx, j->adapter, key, &s->answering, err);

        free(key);
        s->goes_on = rc == 1;
        return rc < 0 ? -1 : a2a_task_read(tx, j->caller, j->agent, j->event, &j->task, err);
}

/* The task takes the message if it asks, or had it before: then it does nothing twice. */
static void on_continued(void *arg, const struct error *err)
{
        struct send_job *s = arg;
        struct a2a_job *j = &s->base;

        if (!j->job.api) {
                a2a_job_free(j);
        } else if (err) {
                a2a_job_failed(j, err);
        } else if (!j->task.found) {
                a2a_job_mistake(j, A2A_TASK_NOT_FOUND, "there is no task '%.60s'", s->ask.task);
        } else if (s->ask.context && strcmp(s->ask.context, j->task.context) != 0) {
                a2a_job_mistake(j, A2A_INVALID_PARAMS, "the task is in another context");
        } else if (!s->goes_on && j->task.state != A2A_INPUT_REQUIRED) {
                a2a_job_mistake(j, A2A_UNSUPPORTED_OPERATION,
                                a2a_state_is_final(j->task.state)
                                        ? "the task has ended; send a message with its contextId"
                                        : "the task asks for nothing; send a message with its "
                                          "contextId alone");
        } else {
                s->goes_on = true;
                s->context = mem_strdup(j->task.context);
                begin(s);
        }
}

void a2a_send_message(struct http_exchange *x, struct a2a_rpc *rpc, json_t *root, const char *agent,
                      const char *adapter)
{
        struct a2a_mistake m;
        struct send_job *s;
        int64_t task = 0;

        if (!reply_waiters_check(x))
                return;
        s = mem_zalloc(sizeof(*s));
        if (a2a_ask_read(rpc, &s->ask, &m) < 0) {
                a2a_ask_release(&s->ask);
                free(s);
                a2a_reply_mistake(x, rpc, &m);
                return;
        }
        s->method = rpc->method;
        s->sender = mem_strdup(caller_of(x)->name);
        s->traceparent = mem_strdup(http_header(x, "traceparent"));
        a2a_job_init(&s->base, x, rpc, root, agent, adapter);
        s->base.release = release_send;
        s->base.history = s->ask.history;
        if (s->ask.task) {
                task = strncmp(s->ask.task, "evt-", 4) == 0 ? bus_event_seq(s->ask.task) : -1;
                s->base.event = task > 0 ? task : 0;
                store_read(s->base.job.api->env.store, read_continued, on_continued, s);
                return;
        }
        s->context = s->ask.context ? mem_strdup(s->ask.context)
                                    : a2a_context_for(s->base.caller->id, s->ask.message);
        begin(s);
}

/* ---- opening and closing ---- */

struct a2a_server *a2a_server_new(struct api *a)
{
        struct a2a_server *s = mem_zalloc(sizeof(*s));

        s->api = a;
        LIST_INIT(&s->followers);
        LIST_INIT(&s->saving);
        s->listener = bus_listen(a->env.bus, 1u << STREAM_TURN, on_event, s);
        return s;
}

void a2a_server_free(struct a2a_server *s)
{
        struct send_job *saving;

        if (!s)
                return;
        while ((saving = LIST_FIRST(&s->saving))) {
                LIST_REMOVE(saving, next);
                adapters_drop_saving(saving->saving);
                a2a_job_free(&saving->base);
        }
        while (!LIST_EMPTY(&s->followers))
                unfollow(LIST_FIRST(&s->followers));
        bus_unlisten(s->api->env.bus, s->listener);
        free(s);
}
