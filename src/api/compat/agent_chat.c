/*
 * POST /api/agent/chat: agents for bots that send their channel's last messages with each request
 * and post the response. Empty content means that the agent chose silence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/core/reply_waiters.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define CONTENT_MAX 262144

struct agent_chat_message {
        const char *type, *content, *name, *source;
        const json_t *ignored;
};
struct agent_chat_ask {
        struct field_list messages;
        const char *source, *agent, *conversation;
};

static const char *const types[] = { "human", "ai", "system", NULL };

/* clang-format off */
#define IGNORED(key)                                                    \
        { key, FIELD_ANY, FIELD_AT(agent_chat_message, ignored),        \
          .help = "Accepted and ignored." }
/* clang-format on */

static const struct field message_fields[] = {
        { "type", FIELD_CHOICE, .required = true, .choices = types,
          FIELD_AT(agent_chat_message, type), .help = "Who said it." },
        { "content", FIELD_STRING, .required = true, .max = CONTENT_MAX,
          FIELD_AT(agent_chat_message, content), .help = "The text." },
        { "name", FIELD_STRING, .max = 256, FIELD_AT(agent_chat_message, name),
          .help = "The speaker, such as discord:80351110224678912." },
        { "source", FIELD_STRING, .max = 64, FIELD_AT(agent_chat_message, source),
          .help = "The speaker's platform, such as discord." },
        IGNORED("id"),
        IGNORED("additional_kwargs"),
        IGNORED("response_metadata"),
        IGNORED("example"),
        FIELD_END,
};
static const struct field agent_chat_fields[] = {
        { "messages", FIELD_LIST, .required = true, .group = message_fields,
          .item_size = sizeof(struct agent_chat_message), .max = CHAT_BRIDGE_LINES_MAX,
          FIELD_AT(agent_chat_ask, messages),
          .help = "The last messages, oldest first; the last is a human's." },
        { "source", FIELD_STRING, .min = 1, .max = 64, FIELD_AT(agent_chat_ask, source),
          .help = "The speakers' platform, such as discord." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(agent_chat_ask, agent),
          .help = "Name of the agent. Absent: the rules choose." },
        { "conversationId", FIELD_STRING, .min = 1, .max = CHAT_BRIDGE_CHAT_MAX,
          FIELD_AT(agent_chat_ask, conversation),
          .help = "Names the conversation: its history is kept here, and only new messages are "
                  "used." },
        FIELD_END,
};

struct agent_chat_job {
        struct api_job job;
        char trace[ID_TRACE_SIZE];
};

static void answer(struct http_exchange *x, const char *trace, const struct awaited_reply *r)
{
        const char *text = r->text ? r->text : "";
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "type", "ai");
        jsonw_str(&b, "content", text);
        jsonw_str(&b, "reply", text);
        if (r->turn > 0)
                row_json_id(&b, "turnId", "trn-", r->turn);
        else
                jsonw_null(&b, "turnId"); /* answered by a command */
        jsonw_str(&b, "traceId", trace);
        jsonw_close(&b, '}');
        reply_json(x, 200, &b);
}

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct agent_chat_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && !r)
                reply_error(x, 504, "AGENT_TIMEOUT", NULL, "the agent did not answer in time");
        else if (x && r->turn == 0 && !r->text)
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"not_answered\"", "%s",
                            r->reason ? r->reason : "no agent answers here");
        else if (x && r->turn > 0 && strcmp(r->status, "done") != 0)
                reply_error(x, 502, "AGENT_ERROR", NULL, "%s",
                            r->text ? r->text : "the agent failed");
        else if (x)
                answer(x, j->trace, r);
        free(j);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct agent_chat_job *j = arg;
        struct http_exchange *x;

        if (j->job.api && r->outcome != INBOX_FAILED) {
                snprintf(j->trace, sizeof(j->trace), "%s", r->trace);
                reply_waiters_add(j->job.api->waiters, r->event, r->outcome == INBOX_DUPLICATE,
                                  CHAT_BRIDGE_WAIT_MS, on_reply, j);
                return;
        }
        x = api_job_end(&j->job);
        if (x)
                reply_failed(x, &r->error);
        free(j);
}

/* The speaker of the last message, "discord:803...". */
static const char *sender_of(struct body *b, const struct agent_chat_ask *ask, const char *fallback)
{
        const struct agent_chat_message *m = ask->messages.items, *last;
        const char *source;

        last = &m[ask->messages.count - 1];
        source = last->source ? last->source : ask->source;
        if (!last->name || last->name[0] == '\0')
                return fallback;
        if (!source || strchr(last->name, ':'))
                return last->name;
        return arena_printf(&b->arena, "%s:%s", source, last->name);
}

static void submit(struct http_exchange *x, struct adapter *adapter, struct body *b,
                   const struct agent_chat_ask *ask, const struct chat_bridge_line *lines,
                   const char *chat, const char *key)
{
        struct agent_chat_job *j = mem_zalloc(sizeof(*j));
        struct chat_bridge_ask out = { .protocol = "agent-chat",
                                       .agent = ask->agent,
                                       .conversation = chat,
                                       .sender = sender_of(b, ask, caller_of(x)->name),
                                       .caller = caller_of(x)->id,
                                       .external_id = key,
                                       .traceparent = http_header(x, "traceparent"),
                                       .lines = lines,
                                       .line_count = ask->messages.count };

        api_job_begin(&j->job, x);
        chat_bridge_submit(api_of(x), adapter, &out, on_receipt, j);
}

/* NULL after a mistake. */
static struct chat_bridge_line *read_lines(struct body *b, const struct field_list *messages)
{
        const struct agent_chat_message *m = messages->items;
        size_t n = messages->count;
        struct chat_bridge_line *lines = arena_alloc(&b->arena, (n + 1) * sizeof(*lines));

        for (size_t i = 0; i < n; i++)
                lines[i] = (struct chat_bridge_line){
                        strcmp(m[i].type, "human") == 0 ? CHAT_BRIDGE_USER
                        : strcmp(m[i].type, "ai") == 0  ? CHAT_BRIDGE_AGENT
                                                        : CHAT_BRIDGE_SYSTEM,
                        m[i].name,
                        m[i].content,
                };
        if (n > 0 && lines[n - 1].role == CHAT_BRIDGE_USER && lines[n - 1].text[0])
                return lines;
        body_mistake(b, "messages", "must end with a message of a human");
        return NULL;
}

static void chat(struct http_exchange *x)
{
        struct chat_bridge_line *lines;
        struct agent_chat_ask ask = { 0 };
        struct adapter *adapter;
        const char *chat, *key;
        struct body b;

        if (request_key(x, &key) < 0 || !reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        if (!(lines = read_lines(&b, &ask.messages)))
                reply_mistakes(x, &b);
        else if (ask.agent && !chat_bridge_agent(x, &ask.agent))
                reply_missing(x, "agent", ask.agent);
        else if (chat_bridge_chat(x, ask.conversation, &chat) &&
                 (adapter = chat_bridge_choose(x)) &&
                 chat_bridge_check_agent(x, adapter, ask.agent))
                submit(x, adapter, &b, &ask, lines, chat, key);
        body_release(&b);
}

const struct route agent_chat_routes[] = {
        { "POST", "/api/agent/chat", SCOPE_WRITE, chat, REACH_HANDLER,
          .summary = "Ask an agent with a list of messages of type human and ai, as agent-chat "
                     "clients do. An empty content means silence.",
          .body = agent_chat_fields, .status = 200,
          .answer = "{\"type\": \"ai\", \"content\", \"reply\", \"turnId\", \"traceId\"}",
          .example = ROUTE_JSON({
                  "messages" : [ {
                          "type" : "human",
                          "content" : "Catan tonight?",
                          "name" : "discord:80351110224678912"
                  } ],
                  "source" : "discord"
          }),
          .example_answer = ROUTE_JSON({
                  "type" : "ai",
                  "content" : "Want to lock in a time?",
                  "reply" : "Want to lock in a time?",
                  "turnId" : "trn-7",
                  "traceId" : "0198c0ffee00aabbccddeeff00112233"
          }) },
        ROUTE_END,
};
