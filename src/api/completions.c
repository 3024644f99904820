/*
 * POST /v1/chat/completions: agents for software that speaks OpenAI's protocol.
 *
 * The request is a message on the road like any other, so its answer is not lost when the client goes away: the turn goes on, is in the journal, and
 * whoever asks again with the same Idempotency-Key gets it. That is why a client that disconnects stops nothing; POST /api/v2/turns/:id/cancel does.
 *
 * Streamed pieces are found by the trace of the message that began the turn. They are transient: what is missing when the turn has ended (the turn
 * began before we listened, or another message began it) is sent from the stored answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/api_private.h"
#include "api/converse.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http_stream.h"

#define PING_MS    15000
#define OUT_MAX    (4 * 1024 * 1024) /* unread by a client before it is dropped */
#define IMAGES_MAX 20

struct message {
        const char *role, *name;
        const json_t *content;
        const json_t *ignored;
};
struct options {
        bool usage;
        const json_t *ignored;
};
struct ask {
        const char *model, *user;
        struct field_list messages;
        bool stream, logprobs;
        struct options options;
        int64_t n;
        const json_t *tools, *functions, *audio;
        const json_t *ignored;
};

static const char *const roles[] = { "system", "developer", "user", "assistant", "tool", "function", NULL };

/* clang-format off */
#define IGNORED(table, key) { key, FIELD_ANY, .at = offsetof(table, ignored), .help = "Accepted, but the agent decides by itself." }
static const struct field message_fields[] = {
        { "role", FIELD_CHOICE, .required = true, .choices = roles, .at = offsetof(struct message, role), .help = "Who said it." },
        { "content", FIELD_ANY, .at = offsetof(struct message, content),
          .help = "A text, or a list of parts of type text and image_url (http or https)." },
        { "name", FIELD_STRING, .max = 256, .at = offsetof(struct message, name), .help = "The name of who said it." },
        IGNORED(struct message, "tool_calls"), IGNORED(struct message, "tool_call_id"), IGNORED(struct message, "function_call"),
        IGNORED(struct message, "refusal"), IGNORED(struct message, "audio"), IGNORED(struct message, "annotations"),
        FIELD_END,
};
static const struct field options_fields[] = {
        { "include_usage", FIELD_BOOL, .at = offsetof(struct options, usage), .fallback = "false",
          .help = "A last piece tells the tokens." },
        IGNORED(struct options, "include_obfuscation"),
        FIELD_END,
};
const struct field completion_fields[] = {
        { "model", FIELD_STRING, .required = true, .min = 1, .max = 128, .at = offsetof(struct ask, model),
          .help = "Name of an agent, or dragoman: whoever the rules choose." },
        { "messages", FIELD_LIST, .required = true, .group = message_fields, .item_size = sizeof(struct message),
          .max = CONVERSE_LINES_MAX, .at = offsetof(struct ask, messages),
          .help = "The conversation; the last one is what a person says now." },
        { "stream", FIELD_BOOL, .at = offsetof(struct ask, stream), .fallback = "false", .help = "Pieces as they come." },
        { "stream_options", FIELD_GROUP, .group = options_fields, .at = offsetof(struct ask, options), .help = "With stream." },
        { "user", FIELD_STRING, .min = 1, .max = 256, .at = offsetof(struct ask, user),
          .help = "Names the conversation: its history is kept here, and only what is new in messages is used. The header "
                  "X-Dragoman-Chat does the same." },
        { "n", FIELD_INT, .min = 1, .max = 1, .at = offsetof(struct ask, n), .fallback = "1", .help = "There is one answer." },
        { "logprobs", FIELD_BOOL, .at = offsetof(struct ask, logprobs), .fallback = "false", .help = "Must be false." },
        { "tools", FIELD_ANY, .at = offsetof(struct ask, tools), .help = "Must be empty: agents have their own tools." },
        { "functions", FIELD_ANY, .at = offsetof(struct ask, functions), .help = "Must be empty." },
        { "audio", FIELD_ANY, .at = offsetof(struct ask, audio), .help = "Must be absent." },
        IGNORED(struct ask, "frequency_penalty"), IGNORED(struct ask, "function_call"), IGNORED(struct ask, "logit_bias"),
        IGNORED(struct ask, "max_completion_tokens"), IGNORED(struct ask, "max_tokens"), IGNORED(struct ask, "metadata"),
        IGNORED(struct ask, "modalities"), IGNORED(struct ask, "moderation"), IGNORED(struct ask, "parallel_tool_calls"),
        IGNORED(struct ask, "prediction"), IGNORED(struct ask, "presence_penalty"), IGNORED(struct ask, "prompt_cache_key"),
        IGNORED(struct ask, "prompt_cache_options"), IGNORED(struct ask, "prompt_cache_retention"),
        IGNORED(struct ask, "reasoning_effort"), IGNORED(struct ask, "response_format"), IGNORED(struct ask, "safety_identifier"),
        IGNORED(struct ask, "seed"), IGNORED(struct ask, "service_tier"), IGNORED(struct ask, "stop"), IGNORED(struct ask, "store"),
        IGNORED(struct ask, "temperature"), IGNORED(struct ask, "tool_choice"), IGNORED(struct ask, "top_logprobs"),
        IGNORED(struct ask, "top_p"), IGNORED(struct ask, "verbosity"), IGNORED(struct ask, "web_search_options"),
        FIELD_END,
};
/* clang-format on */

/* One request that is being answered. It lives until its waiter has been told and its stream, if it is one, has closed. */
struct completion {
        struct job job;          /* until the answer has begun */
        struct completions *all; /* NULL once the API is gone */
        LIST_ENTRY(completion) next;
        char *model;
        char trace[ID_TRACE_SIZE];
        int64_t created;
        bool stream, usage;
        bool waiting, streaming, ended;
        struct http_stream *http; /* NULL: none, or gone */
        struct buf out, said;     /* what the client has not read yet; the text sent so far */
        bool quiet;               /* nothing was sent since the last ping */
};

struct completions {
        struct api *api;
        struct timer *ping;
        LIST_HEAD(, completion) list;
        struct map streaming; /* trace → struct completion */
};

/* ---- what it looks like ---- */

static void write_head(struct buf *b, const struct completion *c, const char *object)
{
        char *id = mem_printf("chatcmpl-%s", c->trace);

        jsonw_open(b, '{');
        jsonw_str(b, "id", id);
        jsonw_str(b, "object", object);
        jsonw_int(b, "created", c->created);
        jsonw_str(b, "model", c->model);
        free(id);
}

static void write_usage(struct buf *b, const struct outcome *o)
{
        jsonw_open_member(b, "usage", '{');
        jsonw_int(b, "prompt_tokens", o->tokens_in);
        jsonw_int(b, "completion_tokens", o->tokens_out);
        jsonw_int(b, "total_tokens", o->tokens_in + o->tokens_out);
        jsonw_close(b, '}');
}

static void write_whole(struct buf *b, const struct completion *c, const struct outcome *o)
{
        write_head(b, c, "chat.completion");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "message", '{');
        jsonw_str(b, "role", "assistant");
        jsonw_str(b, "content", o->text ? o->text : "");
        jsonw_null(b, "refusal");
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", "stop");
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        write_usage(b, o);
        jsonw_close(b, '}');
}

/* A piece: role with the first, text with those that have some, finish with the last. */
struct piece {
        const char *role, *text, *finish;
        size_t n;
};

static void write_piece(struct buf *b, const struct completion *c, const struct piece *p)
{
        write_head(b, c, "chat.completion.chunk");
        jsonw_open_member(b, "choices", '[');
        jsonw_open(b, '{');
        jsonw_int(b, "index", 0);
        jsonw_open_member(b, "delta", '{');
        jsonw_opt(b, "role", p->role);
        if (p->text)
                jsonw_strn(b, "content", p->text, p->n);
        jsonw_close(b, '}');
        jsonw_null(b, "logprobs");
        jsonw_str(b, "finish_reason", p->finish);
        jsonw_close(b, '}');
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

/* How an event that was not answered is told: NULL when it was. */
struct trouble {
        int status;
        const char *code, *message;
};

static bool find_trouble(const struct outcome *o, struct trouble *t)
{
        if (!o)
                *t = (struct trouble){ 504, "timeout",
                                       "the agent has not answered in time; the answer can still be had with "
                                       "the same Idempotency-Key" };
        else if (strcmp(o->status, "done") == 0)
                return false;
        else if (o->turn == 0 && o->text)
                return false; /* a command was answered */
        else if (o->turn > 0)
                *t = (struct trouble){ 502, "agent_error", o->text ? o->text : "the agent failed" };
        else
                *t = (struct trouble){ 409, "not_answered", o->reason ? o->reason : "nobody answers here" };
        return true;
}

/* ---- streams ---- */

static void leave(struct completion *c)
{
        struct completions *all = c->all;

        LIST_REMOVE(c, next);
        if (map_get(&all->streaming, c->trace) == c)
                map_remove(&all->streaming, c->trace);
        if (LIST_EMPTY(&all->list))
                timer_stop(all->ping);
        c->all = NULL;
}

static void completion_free(struct completion *c)
{
        if (c->all)
                leave(c);
        buf_release(&c->out);
        buf_release(&c->said);
        free(c->model);
        free(c);
}

static ssize_t on_pull(void *arg, char *out, size_t max)
{
        struct completion *c = arg;
        size_t n = c->out.len < max ? c->out.len : max;

        if (n == 0)
                return c->ended ? -1 : 0;
        memcpy(out, c->out.data, n);
        buf_consume(&c->out, n);
        return (ssize_t)n;
}

static void on_closed(void *arg)
{
        struct completion *c = arg;

        c->http = NULL;
        c->streaming = false;
        if (!c->waiting)
                completion_free(c);
}

static const struct http_stream_ops stream_ops = { on_pull, on_closed };

static void send_data(struct completion *c, const char *data, size_t n)
{
        if (!c->http)
                return;
        buf_addstr(&c->out, "data: ");
        buf_add(&c->out, data, n);
        buf_addstr(&c->out, "\n\n");
        c->quiet = false;
        http_stream_wake(c->http);
}

static void send_piece(struct completion *c, const struct piece *p)
{
        struct buf json;

        buf_init(&json, 0);
        write_piece(&json, c, p);
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void send_text(struct completion *c, const char *text, size_t n)
{
        if (n == 0 || !c->http)
                return;
        if (c->out.len > OUT_MAX) {
                http_stream_cut(c->http);
                return;
        }
        buf_add(&c->said, text, n);
        send_piece(c, &(struct piece){ .text = text, .n = n });
}

/* What was streamed is a beginning of the answer, or (an agent that began anew) it is not, and the answer follows whole. */
static void send_rest(struct completion *c, const char *text)
{
        size_t n = strlen(text);

        if (c->said.len <= n && memcmp(c->said.data, text, c->said.len) == 0) {
                send_text(c, text + c->said.len, n - c->said.len);
                return;
        }
        send_text(c, "\n\n", 2);
        send_text(c, text, n);
}

static void send_usage(struct completion *c, const struct outcome *o)
{
        struct buf json;

        buf_init(&json, 0);
        write_head(&json, c, "chat.completion.chunk");
        jsonw_raw(&json, "choices", "[]");
        write_usage(&json, o);
        jsonw_close(&json, '}');
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void send_trouble(struct completion *c, const struct trouble *t)
{
        struct buf json;

        buf_init(&json, 0);
        reply_write_error(&json, "/v1/", t->status, t->code, NULL, t->message);
        send_data(c, json.data, json.len);
        buf_release(&json);
}

static void end_stream(struct completion *c, const struct outcome *o)
{
        struct trouble t;

        if (find_trouble(o, &t)) {
                send_trouble(c, &t);
        } else {
                send_rest(c, o->text ? o->text : "");
                send_piece(c, &(struct piece){ .finish = "stop" });
                if (c->usage)
                        send_usage(c, o);
        }
        send_data(c, "[DONE]", 6);
        c->ended = true;
        if (c->http)
                http_stream_wake(c->http);
        else
                completion_free(c);
}

static void begin_stream(struct completion *c)
{
        struct http_exchange *x = job_end(&c->job);

        c->streaming = true;
        map_put(&c->all->streaming, c->trace, c);
        http_add_header(x, "Cache-Control", "no-store");
        http_add_header(x, "X-Accel-Buffering", "no");
        http_answer_stream(x, "text/event-stream", &stream_ops, c, &c->http);
        if (!c->streaming)
                c->http = NULL; /* the client was gone already */
        send_piece(c, &(struct piece){ .role = "assistant", .text = "", .n = 0 });
}

void completions_live(struct completions *all, const char *type, const char *json)
{
        struct completion *c;
        const char *text;
        json_t *delta;

        if (all->streaming.count == 0 || strcmp(type, "turn.delta") != 0)
                return;
        delta = json_loads(json, 0, NULL);
        c = map_get(&all->streaming, json_str(delta, "traceId", ""));
        text = json_str(delta, "text", "");
        if (c && !c->ended)
                send_text(c, text, strlen(text));
        json_decref(delta);
}

/* A client that has gone is noticed by writing to it. */
static void on_ping(void *arg)
{
        struct completions *all = arg;
        struct completion *c;

        LIST_FOREACH(c, &all->list, next) {
                if (c->http && c->quiet) {
                        buf_addstr(&c->out, ": still at it\n\n");
                        http_stream_wake(c->http);
                }
                c->quiet = true;
        }
}

/* ---- the answer ---- */

static void answer_whole(struct completion *c, const struct outcome *o)
{
        struct http_exchange *x = job_end(&c->job);
        struct trouble t;
        struct buf json;

        if (x && find_trouble(o, &t)) {
                reply_error(x, t.status, t.code, NULL, "%s", t.message);
        } else if (x) {
                buf_init(&json, 0);
                write_whole(&json, c, o);
                reply_json(x, 200, &json);
        }
        completion_free(c);
}

static void on_outcome(void *arg, const struct outcome *o)
{
        struct completion *c = arg;

        c->waiting = false;
        if (c->stream)
                end_stream(c, o);
        else
                answer_whole(c, o);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct completion *c = arg;
        struct http_exchange *x;

        if (!c->job.api || r->outcome == INBOX_FAILED) {
                x = job_end(&c->job);
                if (x)
                        reply_failed(x, &r->error);
                completion_free(c);
                return;
        }
        snprintf(c->trace, sizeof(c->trace), "%s", r->trace);
        c->waiting = true;
        if (c->stream)
                begin_stream(c);
        waiters_add(c->all->api->waiters, r->event, r->outcome == INBOX_DUPLICATE, CONVERSE_WAIT_MS,
                    on_outcome, c);
}

/* ---- the request ---- */

/* What is read of a request besides its body. */
struct reading {
        struct body *body;
        struct converse_line *lines;
        struct attachment *images;
        size_t image_count;
};

static int add_image(struct reading *r, const char *path, const char *url)
{
        if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
                return body_mistake(r->body, path, "images must be given by an http or https URL");
        if (r->image_count == IMAGES_MAX)
                return body_mistake(r->body, path, "there are more than %d images", IMAGES_MAX);
        r->images[r->image_count++] = (struct attachment){ .kind = "image", .url = url };
        return 0;
}

static int add_part(struct reading *r, const char *path, const json_t *part, struct buf *text)
{
        const char *type = json_str(part, "type", ""),
                   *url = json_str(json_object_get(part, "image_url"), "url", NULL);

        if (strcmp(type, "text") == 0 && json_str(part, "text", NULL)) {
                if (text->len > 0)
                        buf_addch(text, '\n');
                buf_addstr(text, json_str(part, "text", ""));
                return 0;
        }
        if (strcmp(type, "image_url") == 0 && url)
                return add_image(r, path, url);
        return body_mistake(r->body, path, "only parts of type text and image_url are understood");
}

/* The text of a message; NULL after a mistake. */
static const char *text_of(struct reading *r, const char *path, const json_t *content)
{
        const json_t *part;
        const char *text;
        struct buf b;
        size_t i;

        if (!content || json_is_string(content))
                return content ? json_string_value(content) : "";
        if (!json_is_array(content)) {
                body_mistake(r->body, path, "must be a text or a list of parts");
                return NULL;
        }
        buf_init(&b, 0);
        json_array_foreach(content, i, part)
                if (add_part(r, path, part, &b) < 0)
                        break;
        text = i < json_array_size(content) ? NULL : arena_strdup(&r->body->arena, b.data);
        buf_release(&b);
        return text;
}

static enum converse_role role_of(const char *role)
{
        if (strcmp(role, "user") == 0)
                return CONVERSE_USER;
        return strcmp(role, "assistant") == 0 ? CONVERSE_AGENT : CONVERSE_SYSTEM;
}

static int read_lines(struct reading *r, const struct field_list *messages)
{
        const struct message *m = messages->items;

        r->lines = arena_alloc(&r->body->arena, (messages->count + 1) * sizeof(*r->lines));
        r->images = arena_alloc(&r->body->arena, IMAGES_MAX * sizeof(*r->images));
        for (size_t i = 0; i < messages->count; i++) {
                char path[40];

                snprintf(path, sizeof(path), "messages[%zu].content", i);
                /* images of earlier messages were seen when they came */
                if (role_of(m[i].role) == CONVERSE_AGENT)
                        r->image_count = 0;
                r->lines[i] = (struct converse_line){ role_of(m[i].role), m[i].name,
                                                      text_of(r, path, m[i].content) };
                if (!r->lines[i].text)
                        return -1;
        }
        return 0;
}

static bool is_something(const json_t *v)
{
        return v && !(json_is_array(v) && json_array_size(v) == 0);
}

static int check(struct reading *r, const struct ask *ask)
{
        struct buf text;
        bool something;

        if (is_something(ask->tools) || is_something(ask->functions))
                return body_mistake(r->body, "tools", "must be empty: agents have tools of their own");
        if (ask->audio)
                return body_mistake(r->body, "audio", "is not spoken here");
        if (ask->logprobs)
                return body_mistake(r->body, "logprobs", "must be false");
        if (read_lines(r, &ask->messages) < 0)
                return -1;
        buf_init(&text, 0);
        something = converse_text(r->lines, ask->messages.count, false, &text) &&
                    (text.len > 0 || r->image_count > 0);
        buf_release(&text);
        return something ? 0 : body_mistake(r->body, "messages", "must end with what a user says");
}

static void hand_over(struct http_exchange *x, struct adapter *adapter, const struct ask *ask,
                      const struct reading *r, const char *agent, const char *key)
{
        struct completions *all = api_of(x)->completions;
        struct completion *c = mem_zalloc(sizeof(*c));
        const char *chat = http_header(x, "X-Dragoman-Chat");
        struct converse_ask out = { .protocol = "openai",
                                    .agent = agent,
                                    .conversation = chat ? chat : ask->user,
                                    .sender = ask->user ? ask->user : caller_of(x)->name,
                                    .external_id = key,
                                    .lines = r->lines,
                                    .line_count = ask->messages.count,
                                    .attachments = r->images,
                                    .attachment_count = r->image_count };

        c->all = all;
        c->model = mem_strdup(ask->model);
        c->created = clock_wall_ms() / 1000;
        c->stream = ask->stream;
        c->usage = ask->options.usage;
        buf_init(&c->out, 0);
        buf_init(&c->said, 0);
        if (LIST_EMPTY(&all->list))
                timer_repeat(all->ping, PING_MS);
        LIST_INSERT_HEAD(&all->list, c, next);
        job_begin(&c->job, x);
        converse_hand_over(adapter, &out, on_receipt, c);
}

void completions_create(struct http_exchange *x)
{
        struct ask ask = { .n = 1 };
        struct adapter *adapter;
        struct body b;
        struct reading r = { .body = &b };
        const char *agent, *key;

        if (request_key(x, &key) < 0 || !waiters_room(x) || request_body(x, &b, &ask) < 0)
                return;
        agent = ask.model;
        if (check(&r, &ask) < 0)
                reply_mistakes(x, &b);
        else if (!converse_agent(x, &agent))
                reply_error(x, 404, "model_not_found", NULL, "there is no agent '%.100s'; see /v1/models",
                            ask.model);
        else if (converse_chat_ok(x) && (adapter = converse_choose(x)))
                hand_over(x, adapter, &ask, &r, agent, key);
        body_release(&b);
}

/* ---- all of them ---- */

struct completions *completions_new(struct api *a)
{
        struct completions *all = mem_zalloc(sizeof(*all));

        all->api = a;
        all->ping = timer_new(a->env.loop, on_ping, all);
        timer_unref(all->ping);
        map_init(&all->streaming);
        LIST_INIT(&all->list);
        return all;
}

void completions_free(struct completions *all)
{
        if (!all)
                return;
        /* those whose message is still on its way to the disk end when it is there */
        while (!LIST_EMPTY(&all->list))
                leave(LIST_FIRST(&all->list));
        timer_free(all->ping);
        map_release(&all->streaming);
        free(all);
}
