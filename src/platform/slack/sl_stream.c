/*
 * Growing answers. In a thread a draft is a stream:
 *
 *     draft     chat.startStream    with the text so far
 *     pieces    chat.appendStream   what is new; what the agent does is a task beside the text
 *     answer    chat.stopStream     the rest; then chat.update, if the answer is not just longer
 *
 * Elsewhere, and where Slack refuses to stream (which is remembered), it is chat.postMessage and
 * chat.update. A stream cannot take back text and lives about five minutes: before that it is
 * stopped, and its message is edited from then on. So it is one message whatever happens. A start
 * without an answer is looked for by sl_readback.c: it is the message of ours in the thread that
 * carries no metadata yet. After a restart it is unknown what an open stream shows; chat.update
 * says that it is open, and it is stopped first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_send.h"

#define EDIT_EVERY_MS   3000 /* Slack's advice */
#define APPEND_EVERY_MS 1200
#define PIECE_WAIT_MS   500 /* then it is skipped: the next one has its text */
#define FORGET_MS       1200000
#define STREAMS_MAX     1000
#define REFUSED_MAX     1000 /* channels */
#define TITLE_MAX       250  /* code points of a task */
#define TASK            "work"

#define START           "chat.startStream"
#define APPEND          "chat.appendStream"
#define STOP            "chat.stopStream"

struct sl_stream {
        struct buf shown;  /* Markdown that was appended and is still part of the draft */
        char *task;        /* title; NULL: none is under way */
        bool mixed;        /* the message also shows text that the draft has no more */
        bool doubtful;     /* a call had no answer: what it shows is not known */
        bool stopped;      /* it is edited */
        int64_t began_ms;  /* monotonic */
        int64_t edited_ms; /* the last edit */
};

struct sl_streams {
        struct map open;    /* "CHANNEL TS" -> struct sl_stream */
        struct map refused; /* channels where Slack does not stream */
        bool off;           /* it streams nowhere */
};

/* ---- the table ---- */

static void stream_free(struct sl_stream *v)
{
        if (!v)
                return;
        buf_release(&v->shown);
        free(v->task);
        free(v);
}

void sl_streams_open(struct slack *sl)
{
        sl->streams = mem_zalloc(sizeof(*sl->streams));
        map_init(&sl->streams->open);
        map_init(&sl->streams->refused);
}

static void forget_old(struct sl_streams *all, int64_t age_ms)
{
        int64_t now = clock_mono_ms();
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&all->open, &i, &key, &value);) {
                struct sl_stream *v = value;

                if (now - v->began_ms < age_ms)
                        continue;
                map_remove(&all->open, key);
                stream_free(v);
                i = 0; /* the map may have changed its order */
        }
}

void sl_streams_close(struct slack *sl)
{
        if (!sl->streams)
                return;
        forget_old(sl->streams, 0);
        map_release(&sl->streams->open);
        map_release(&sl->streams->refused);
        free(sl->streams);
        sl->streams = NULL;
}

static struct sl_stream *find(const struct sl_send *s)
{
        char *key = mem_printf("%s %s", s->conversation, s->message ? s->message : "");
        struct sl_stream *v = map_get(&s->sl->streams->open, key);

        free(key);
        return v;
}

bool sl_stream_knows(const struct slack *sl, const char *channel, const char *ts)
{
        char *key = mem_printf("%s %s", channel, ts);
        bool known = map_get(&sl->streams->open, key);

        free(key);
        return known;
}

static void forget(const struct sl_send *s)
{
        char *key = mem_printf("%s %s", s->conversation, s->message);

        stream_free(map_remove(&s->sl->streams->open, key));
        free(key);
}

static struct sl_stream *add(const struct sl_send *s, const char *ts)
{
        struct sl_streams *all = s->sl->streams;
        struct sl_stream *v = mem_zalloc(sizeof(*v));
        char *key = mem_printf("%s %s", s->conversation, ts);

        forget_old(all, FORGET_MS);
        if (all->open.count >= STREAMS_MAX) /* chat.update finds out that they are open */
                forget_old(all, 0);
        buf_init(&v->shown, 0);
        v->began_ms = clock_mono_ms();
        stream_free(map_put(&all->open, key, v));
        free(key);
        return v;
}

static bool is_refused(const struct slack *sl, const char *channel)
{
        return strcmp(sl->conf->streaming, "auto") != 0 || sl->streams->off ||
               map_get(&sl->streams->refused, channel);
}

int64_t sl_stream_draft_ms(const struct adapter *a, const char *channel, const char *thread)
{
        return thread && !is_refused(a->self, channel) ? APPEND_EVERY_MS : EDIT_EVERY_MS;
}

/* ---- calls ---- */

static bool is_draft(const struct sl_send *s)
{
        return json_flag(s->payload, "draft", false);
}

/* Keeps the call that the stream's replaces. */
static void replace_call(struct sl_send *s, const char *method, json_t *args)
{
        if (s->instead.method) {
                json_decref(s->args);
        } else {
                s->instead.method = s->method;
                s->instead.args = s->args;
        }
        s->method = method;
        s->args = args;
}

static void restore_call(struct sl_send *s)
{
        json_decref(s->args);
        s->method = s->instead.method;
        s->args = s->instead.args;
        s->instead.method = NULL;
        s->instead.args = NULL;
}

/*
 * Model text must not notify people: "<!channel>" is written out. Rendered text is escaped by its
 * renderer, this is Markdown.
 */
static char *escape(const char *text, size_t n)
{
        struct buf out;

        buf_init(&out, 0);
        for (size_t i = 0; i < n; i++) {
                if (text[i] == '<' && i + 1 < n && strchr("!@#", text[i + 1]))
                        buf_addstr(&out, "&lt;");
                else
                        buf_addch(&out, text[i]);
        }
        return buf_take(&out);
}

/* The Markdown without a last "<", which may become a tag. */
static struct slice wanted(const struct sl_send *s)
{
        const json_t *text = json_object_get(s->payload, "markdown");
        size_t n = json_string_length(text);
        const char *p = n > 0 ? json_string_value(text) : "";

        while (is_draft(s) && n > 0 && p[n - 1] == '<')
                n--;
        return (struct slice){ p, n };
}

static bool continues(const struct sl_stream *v, struct slice text)
{
        return text.n >= v->shown.len &&
               (v->shown.len == 0 || memcmp(text.p, v->shown.data, v->shown.len) == 0);
}

static json_t *task_chunk(const char *title, const char *status)
{
        size_t n = utf8_prefix(title, strlen(title), UTF8_CODE_POINTS, TITLE_MAX);

        return json_pack("{s:s, s:s, s:s%, s:s}", "type", "task_update", "id", TASK, "title", title,
                         n, "status", status);
}

/* Adds what is new: text, or text and a task. False: nothing is. v NULL: all is. */
static bool add_growth(const struct sl_send *s, const struct sl_stream *v, json_t *args)
{
        struct slice text = wanted(s);
        const char *task = is_draft(s) ? json_str(s->payload, "label", NULL) : NULL,
                   *was = v ? v->task : NULL;
        bool goes_on = !v || continues(v, text);
        size_t from = v && goes_on ? v->shown.len : 0;
        char *escaped = escape(text.p + from, text.n - from);
        char *grown = mem_printf("%s%s", goes_on || text.n == 0 ? "" : "\n\n", escaped);
        bool same_task = (!task && !was) || (task && was && strcmp(task, was) == 0);

        if (same_task && *grown) {
                json_object_set_new(args, "markdown_text", json_string(grown));
        } else if (!same_task) {
                json_t *chunks = json_array();

                if (*grown)
                        json_array_append_new(chunks, json_pack("{s:s, s:s}", "type",
                                                                "markdown_text", "text", grown));
                json_array_append_new(chunks, task ? task_chunk(task, "in_progress")
                                                   : task_chunk(was, "complete"));
                json_object_set_new(args, "chunks", chunks);
        }
        same_task = same_task && !*grown;
        free(escaped);
        free(grown);
        return !same_task;
}

/* The message shows it now. */
static void note_growth(const struct sl_send *s, struct sl_stream *v)
{
        const char *task = json_str(s->payload, "label", NULL);
        struct slice text = wanted(s);

        v->mixed = v->mixed || !continues(v, text);
        buf_clear(&v->shown);
        buf_add(&v->shown, text.p, text.n);
        free(v->task);
        v->task = mem_strdup(task);
}

static json_t *stream_args(const struct sl_send *s)
{
        return json_pack("{s:s, s:s}", "channel", s->conversation, "ts", s->message);
}

/* ---- before a call ---- */

static void prepare_start(struct sl_send *s)
{
        const char *person = json_str(s->payload, "recipient", NULL);
        const struct sl_user *user = person ? sl_cache_user(s->sl->cache, person) : NULL;
        const char *team = user && user->team ? user->team : s->sl->self.team;
        json_t *args;

        if (!is_draft(s) || !s->thread || !person || !team || s->only_for_one ||
            !json_object_get(s->payload, "markdown") || is_refused(s->sl, s->conversation))
                return;
        args = json_pack("{s:s, s:s, s:s, s:s}", "channel", s->conversation, "thread_ts", s->thread,
                         "recipient_user_id", person, "recipient_team_id", team);
        if (!add_growth(s, NULL, args)) {
                json_decref(args);
                return;
        }
        replace_call(s, START, args);
}

/* Is the whole answer what is streamed and a rest? Mentions and buttons need an edit. */
static bool ends_with_rest(const struct sl_send *s, const struct sl_stream *v)
{
        return json_object_get(s->payload, "markdown") && !v->mixed && !v->doubtful &&
               continues(v, wanted(s)) && !strstr(json_str(s->payload, "text", ""), "<@") &&
               !json_object_get(s->payload, "buttons") && !json_object_get(s->args, "blocks");
}

static void prepare_stop(struct sl_send *s, const struct sl_stream *v)
{
        json_t *args = stream_args(s);

        s->stream_ends = v && !is_draft(s) && ends_with_rest(s, v);
        if (s->stream_ends)
                add_growth(s, v, args);
        else if (v && v->task)
                json_object_set_new(args, "chunks",
                                    json_pack("[o]", task_chunk(v->task, "complete")));
        /* a message without metadata is taken for a stream whose start had no answer */
        sl_payload_add_metadata(s, args);
        if (!s->stream_ends)
                sl_payload_add_metadata(s, s->args);
        replace_call(s, STOP, args);
}

static void prepare_append(struct sl_send *s, const struct sl_stream *v)
{
        json_t *args = stream_args(s);

        if (json_object_get(s->payload, "markdown") && add_growth(s, v, args)) {
                replace_call(s, APPEND, args);
                return;
        }
        json_decref(args);
        s->method = NULL; /* the message is full, or nothing is new */
}

void sl_stream_prepare(struct sl_send *s)
{
        struct sl_stream *v;
        int64_t now = clock_mono_ms();

        if (s->delivery_kind == DELIVER_SEND) {
                prepare_start(s);
                return;
        }
        if (is_draft(s))
                s->wait_ms = PIECE_WAIT_MS;
        v = find(s);
        if (!v)
                return;
        if (v->stopped && is_draft(s) && now - v->edited_ms < EDIT_EVERY_MS)
                s->method = NULL; /* a later one shows it */
        else if (v->stopped)
                v->edited_ms = now;
        else if (!is_draft(s) || v->doubtful ||
                 now - v->began_ms >= s->sl->conf->stream_seconds * 1000)
                prepare_stop(s, v);
        else
                prepare_append(s, v);
}

/* ---- after a call ---- */

/* Remembers it, unless only this one cannot be streamed. */
static void note_refusal(struct sl_send *s, const struct sl_answer *a)
{
        static const char *const everywhere[] = { "unknown_method",         "missing_scope",
                                                  "not_allowed_token_type", "access_denied",
                                                  "feature_not_enabled",    "method_deprecated" };
        static const char *const once[] = { "invalid_chunks",   "msg_too_long",
                                            "no_text",          "invalid_thread_ts",
                                            "thread_not_found", "user_not_found" };
        struct sl_streams *all = s->sl->streams;

        for (size_t i = 0; i < COUNT(once); i++)
                if (strcmp(a->error, once[i]) == 0)
                        return;
        for (size_t i = 0; i < COUNT(everywhere); i++)
                all->off = all->off || strcmp(a->error, everywhere[i]) == 0;
        if (all->refused.count >= REFUSED_MAX) {
                map_release(&all->refused);
                map_init(&all->refused);
        }
        map_put(&all->refused, s->conversation, all);
        log_info("Slack does not stream here; editing messages instead",
                 LOG_S("adapter", s->adapter->name),
                 LOG_S("channel", all->off ? "all" : s->conversation), LOG_S("why", a->why));
}

static bool call_instead(struct sl_send *s)
{
        restore_call(s);
        sl_send_call(s);
        return true;
}

static bool on_started(struct sl_send *s, const struct sl_answer *a)
{
        const char *ts = json_str(a->result, "ts", NULL);

        if (a->ok && sl_ts_valid(ts)) {
                s->message = mem_strdup(ts);
                note_growth(s, add(s, ts));
                return false;
        }
        if (a->ok || (!sl_api_is_limited(a) && (!a->error || sl_api_is_unavailable(a))))
                return false; /* it may have begun */
        if (!sl_api_is_limited(a))
                note_refusal(s, a);
        return call_instead(s);
}

/* A piece of a draft that Slack has no time for: a later one has its text. */
static bool skip(struct sl_send *s)
{
        sl_send_end(s, &(struct send_result){ .outcome = SEND_DONE,
                                              .platform_id = s->message,
                                              .retry_after_ms = -1 });
        return true;
}

static void on_stop_received(void *arg, const struct inbox_receipt *receipt)
{
        (void)arg;
        (void)receipt; /* if it is not stored, the answer goes on */
}

/* The person pressed Slack's stop button: as if they had said it in the thread. */
static void say_stop(const struct sl_send *s)
{
        const char *person = json_str(s->payload, "recipient", NULL);
        const struct sl_user *user = person ? sl_cache_user(s->sl->cache, person) : NULL;
        char *key = mem_printf("stop:%s:%s", s->conversation, s->message);
        struct incoming in = { .key = key,
                               .channel = s->conversation,
                               .thread = s->thread,
                               .chat = *s->conversation == 'D' ? CHAT_DM : CHAT_GROUP,
                               .guild = s->sl->self.team,
                               .sender_id = person,
                               .sender_username = user ? user->username : NULL,
                               .sender_name = user ? user->name : NULL,
                               .text = "stop",
                               .is_mention = true,
                               .time_ms = clock_wall_ms() };

        if (person && s->adapter->road)
                adapter_received(s->adapter, &in, on_stop_received, NULL);
        free(key);
}

static bool on_appended(struct sl_send *s, const struct sl_answer *a)
{
        struct sl_stream *v = find(s);

        if (sl_api_is_limited(a))
                return skip(s);
        if (v && a->ok) {
                note_growth(s, v);
                return false;
        }
        if (v && (!a->error || sl_api_is_unavailable(a))) {
                v->doubtful = true; /* the retry stops it, and edits */
                return false;
        }
        if (v) {
                v->stopped = true; /* by Slack, or by a person */
                v->edited_ms = clock_mono_ms();
        }
        if (a->error && strcmp(a->error, "stopped_by_user") == 0) {
                say_stop(s);
                return skip(s);
        }
        return call_instead(s);
}

static bool on_stopped(struct sl_send *s, const struct sl_answer *a)
{
        struct sl_stream *v = find(s);

        if (sl_api_is_limited(a))
                return false;
        if (!a->ok && (!a->error || sl_api_is_unavailable(a))) {
                if (v)
                        v->doubtful = true;
                return false;
        }
        if (is_draft(s)) {
                v = v ? v : add(s, s->message); /* of an earlier run */
                v->stopped = true;
                v->edited_ms = clock_mono_ms();
        } else {
                forget(s);
        }
        return a->ok && s->stream_ends ? false : call_instead(s);
}

bool sl_stream_goes_on(struct sl_send *s, const struct sl_answer *a)
{
        bool edits = s->delivery_kind == DELIVER_EDIT;

        if (strcmp(s->method, START) == 0)
                return on_started(s, a);
        if (strcmp(s->method, APPEND) == 0)
                return on_appended(s, a);
        if (strcmp(s->method, STOP) == 0)
                return on_stopped(s, a);
        if (edits && is_draft(s) && sl_api_is_limited(a))
                return skip(s);
        if (edits && !s->stream_stopped && a->error &&
            strcmp(a->error, "streaming_state_conflict") == 0) {
                s->stream_stopped = true; /* once */
                prepare_stop(s, NULL);
                sl_send_call(s);
                return true;
        }
        return false;
}
