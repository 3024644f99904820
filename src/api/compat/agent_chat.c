/*
 * POST /api/agent/chat: the agents of this daemon for bots that bring the last messages of their
 * channel along with each request and post what comes back. Silence is an answer: its content is
 * empty.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/core/api_private.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

struct message {
        const char *type, *content, *name, *source;
        const json_t *ignored;
};
struct ask {
        struct field_list messages;
        const char *source, *agent, *conversation;
        const json_t *ignored;
};

static const char *const types[] = { "human", "ai", "system", NULL };

#define CONTENT_MAX 262144

/* clang-format off */
#define IGNORED(key) { key, FIELD_ANY, .at = offsetof(struct message, ignored), .help = "Accepted and not looked at." }
static const struct field message_fields[] = {
        { "type", FIELD_CHOICE, .required = true, .choices = types, .at = offsetof(struct message, type), .help = "Who said it." },
        { "content", FIELD_STRING, .required = true, .max = CONTENT_MAX, .at = offsetof(struct message, content), .help = "What was said." },
        { "name", FIELD_STRING, .max = 256, .at = offsetof(struct message, name), .help = "Who said it, such as discord:80351110224678912." },
        { "source", FIELD_STRING, .max = 64, .at = offsetof(struct message, source), .help = "Where they are from, such as discord." },
        IGNORED("id"), IGNORED("additional_kwargs"), IGNORED("response_metadata"), IGNORED("example"),
        FIELD_END,
};
const struct field agent_chat_fields[] = {
        { "messages", FIELD_LIST, .required = true, .group = message_fields, .item_size = sizeof(struct message),
          .max = CHAT_BRIDGE_LINES_MAX, .at = offsetof(struct ask, messages), .help = "The last messages, oldest first; the last is a person's." },
        { "source", FIELD_STRING, .min = 1, .max = 64, .at = offsetof(struct ask, source), .help = "Where they are from, such as discord." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct ask, agent), .help = "Name of the agent. Absent: whoever the rules choose." },
        { "conversationId", FIELD_STRING, .min = 1, .max = CHAT_BRIDGE_CHAT_MAX, .at = offsetof(struct ask, conversation),
          .help = "Names the conversation: its history is kept here, and only what is new in messages is used." },
        FIELD_END,
};
/* clang-format on */

struct asking {
        struct api_job job;
        char trace[ID_TRACE_SIZE];
};

static void write_answer(struct buf *b, const struct asking *a, const struct awaited_reply *o)
{
        const char *text = o->text ? o->text : "";

        jsonw_open(b, '{');
        jsonw_str(b, "type", "ai");
        jsonw_str(b, "content", text);
        jsonw_str(b, "reply", text);
        if (o->turn > 0)
                show_id(b, "turnId", "trn-", o->turn);
        else
                jsonw_null(b, "turnId"); /* a command was answered */
        jsonw_str(b, "traceId", a->trace);
        jsonw_close(b, '}');
}

static void on_outcome(void *arg, const struct awaited_reply *o)
{
        struct asking *a = arg;
        struct http_exchange *x = api_job_end(&a->job);
        struct buf json;

        if (x && !o) {
                reply_error(x, 504, "AGENT_TIMEOUT", NULL, "the agent has not answered in time");
        } else if (x && o->turn == 0 && !o->text) {
                reply_error(x, 409, "CONFLICT", "\"conflictReason\":\"not_answered\"", "%s",
                            o->reason ? o->reason : "nobody answers here");
        } else if (x && o->turn > 0 && strcmp(o->status, "done") != 0) {
                reply_error(x, 502, "AGENT_ERROR", NULL, "%s",
                            o->text ? o->text : "the agent failed");
        } else if (x) {
                buf_init(&json, 0);
                write_answer(&json, a, o);
                reply_json(x, 200, &json);
        }
        free(a);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct asking *a = arg;
        struct http_exchange *x;

        if (a->job.api && r->outcome != INBOX_FAILED) {
                snprintf(a->trace, sizeof(a->trace), "%s", r->trace);
                reply_waiters_add(a->job.api->waiters, r->event, r->outcome == INBOX_DUPLICATE,
                                  CHAT_BRIDGE_WAIT_MS, on_outcome, a);
                return;
        }
        x = api_job_end(&a->job);
        if (x)
                reply_failed(x, &r->error);
        free(a);
}

static enum chat_bridge_role role_of(const char *type)
{
        if (strcmp(type, "human") == 0)
                return CHAT_BRIDGE_USER;
        return strcmp(type, "ai") == 0 ? CHAT_BRIDGE_AGENT : CHAT_BRIDGE_SYSTEM;
}

/* Who says the last words, as the source knows them. */
static const char *sender_of(struct body *b, const struct ask *ask, const struct message *last,
                             const char *otherwise)
{
        const char *source = last->source ? last->source : ask->source;

        if (!last->name || last->name[0] == '\0')
                return otherwise;
        if (!source || strchr(last->name, ':'))
                return last->name;
        return arena_printf(&b->arena, "%s:%s", source, last->name);
}

static void hand_over(struct http_exchange *x, struct adapter *adapter, struct body *b,
                      const struct ask *ask, const struct chat_bridge_line *lines, const char *key)
{
        struct asking *a = mem_zalloc(sizeof(*a));
        const char *chat = http_header(x, "X-Dragoman-Chat");
        const struct message *m = ask->messages.items;
        struct chat_bridge_ask out = { .protocol = "agent-chat",
                                       .agent = ask->agent,
                                       .conversation = chat ? chat : ask->conversation,
                                       .sender = sender_of(b, ask, &m[ask->messages.count - 1],
                                                           caller_of(x)->name),
                                       .caller = caller_of(x)->id,
                                       .external_id = key,
                                       .lines = lines,
                                       .line_count = ask->messages.count };

        api_job_begin(&a->job, x);
        chat_bridge_submit(api_of(x), adapter, &out, on_receipt, a);
}

/* NULL after a mistake. */
static struct chat_bridge_line *read_lines(struct body *b, const struct field_list *messages)
{
        const struct message *m = messages->items;
        struct chat_bridge_line *lines =
                arena_alloc(&b->arena, (messages->count + 1) * sizeof(*lines));

        for (size_t i = 0; i < messages->count; i++)
                lines[i] = (struct chat_bridge_line){ role_of(m[i].type), m[i].name, m[i].content };
        if (messages->count > 0 && role_of(m[messages->count - 1].type) == CHAT_BRIDGE_USER &&
            m[messages->count - 1].content[0])
                return lines;
        body_mistake(b, "messages", "must end with what a human says");
        return NULL;
}

void agent_chat(struct http_exchange *x)
{
        struct chat_bridge_line *lines;
        struct adapter *adapter;
        struct ask ask = { 0 };
        const char *key;
        struct body b;

        if (request_key(x, &key) < 0 || !reply_waiters_check(x) || request_body(x, &b, &ask) < 0)
                return;
        if (!(lines = read_lines(&b, &ask.messages)))
                reply_mistakes(x, &b);
        else if (ask.agent && !chat_bridge_agent(x, &ask.agent))
                reply_missing(x, "agent", ask.agent);
        else if (chat_bridge_check_chat(x) && (adapter = chat_bridge_choose(x)))
                hand_over(x, adapter, &b, &ask, lines, key);
        body_release(&b);
}
