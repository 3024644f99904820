/*
 * Messages from other software. The busiest route: it parses once, fills a struct incoming that
 * borrows from the parsed body, and answers when the inbox has stored the event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/core/reply_waiters.h"
#include "api/core/request.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define TEXT_MAX 1048576 /* bounds the work per request; the road's limit is smaller */
#define WAIT_MAX 120000
/* As JSON: each rule that needs it and each reader of the event parses it again. */
#define METADATA_MAX 65536

struct inbound_sender {
        const char *id, *username, *display_name;
        bool is_bot;
};
struct inbound_file {
        const char *kind, *name, *mime, *url;
        int64_t size;
};
struct inbound_ask {
        const char *adapter, *chat, *text, *external_id, *thread, *reply_to, *trace;
        struct inbound_sender sender;
        bool is_dm, is_mention;
        int64_t time_ms;
        const json_t *metadata;
        struct field_list files;
};
struct inbound_wait {
        int64_t ms;
};

static const char *const file_kinds[] = { "image",   "audio",    "voice",   "video", "document",
                                          "sticker", "location", "contact", NULL };

static const struct field sender_fields[] = {
        { "id", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(inbound_sender, id),
          .fallback = "\"api\"", .help = "The sender's id in the other software." },
        { "username", FIELD_STRING, .max = 256, FIELD_AT(inbound_sender, username),
          .help = "The sender's handle." },
        { "displayName", FIELD_STRING, .max = 256, FIELD_AT(inbound_sender, display_name),
          .help = "The sender's display name." },
        { "isBot", FIELD_BOOL, FIELD_AT(inbound_sender, is_bot), .fallback = "false",
          .help = "The sender is a program." },
        FIELD_END,
};

static const struct field file_fields[] = {
        { "kind", FIELD_CHOICE, .required = true, .choices = file_kinds,
          FIELD_AT(inbound_file, kind), .help = "What it is." },
        { "name", FIELD_STRING, .max = 255, FIELD_AT(inbound_file, name),
          .help = "Its file name." },
        { "mimeType", FIELD_STRING, .max = 127, FIELD_AT(inbound_file, mime),
          .help = "Its media type." },
        { "url", FIELD_STRING, .required = true, .min = 1, .max = 4096, FIELD_AT(inbound_file, url),
          .help = "Where to download it." },
        { "size", FIELD_INT, .min = 0, .max = INT64_MAX, FIELD_AT(inbound_file, size),
          .help = "Bytes, when known." },
        FIELD_END,
};

static const struct field inbound_fields[] = {
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(inbound_ask, adapter),
          .fallback = "\"api\"", .help = "Name of an adapter of type api or cli." },
        { "chatId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(inbound_ask, chat),
          .fallback = "\"default\"",
          .help = "The conversation, not beginning with a2a:; its messages are answered in "
                  "order." },
        { "text", FIELD_STRING, .min = 1, .max = TEXT_MAX, FIELD_AT(inbound_ask, text),
          .help = "The text; required unless there are attachments." },
        { "externalId", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(inbound_ask, external_id),
          .help = "The message's own id, not beginning with openai:, agent-chat: or a2a:; the same "
                  "message again is a duplicate, another one with it a conflict. Absent: a random "
                  "one." },
        { "threadId", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(inbound_ask, thread),
          .help = "A thread inside the chat." },
        { "replyToId", FIELD_STRING, .min = 1, .max = 256, FIELD_AT(inbound_ask, reply_to),
          .help = "Id of the message this one answers." },
        { "sender", FIELD_GROUP, .group = sender_fields, FIELD_AT(inbound_ask, sender),
          .help = "Who wrote it." },
        { "isDm", FIELD_BOOL, FIELD_AT(inbound_ask, is_dm), .fallback = "true",
          .help = "A conversation between two." },
        { "isMention", FIELD_BOOL, FIELD_AT(inbound_ask, is_mention), .fallback = "false",
          .help = "The message addresses the bot." },
        { "timestamp", FIELD_TIME, FIELD_AT(inbound_ask, time_ms),
          .help = "When it was written. Absent: now." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, FIELD_AT(inbound_ask, trace),
          .help = "Continues a W3C trace: 32 lower-case hex digits. Absent: that of the header "
                  "traceparent, or a new one." },
        { "metadata", FIELD_OBJECT, FIELD_AT(inbound_ask, metadata),
          .help = "Anything to keep with the event; at most 65536 bytes." },
        { "attachments", FIELD_LIST, .group = file_fields, .item_size = sizeof(struct inbound_file),
          .max = 20, FIELD_AT(inbound_ask, files), .help = "Files that belong to the message." },
        FIELD_END,
};

static const struct field inbound_query[] = {
        { "wait", FIELD_INT, .min = 0, .max = WAIT_MAX, FIELD_AT(inbound_wait, ms), .fallback = "0",
          .help = "Milliseconds to wait for the end of the turn; the answer then has the reply." },
        FIELD_END,
};

struct inbound_job {
        struct api_job job;
        int64_t wait_ms;
        int64_t event;
        char trace[ID_TRACE_SIZE];
        bool duplicate;
};

/* Without the closing brackets. */
static void write_receipt(struct buf *json, int64_t event, const char *trace, bool duplicate)
{
        buf_addstr(json, "{\"data\":{\"eventId\":\"evt-");
        buf_addint(json, event);
        buf_addstr(json, "\",\"traceId\":\"");
        buf_addstr(json, trace);
        buf_addstr(json, duplicate ? "\",\"status\":\"duplicate\"" : "\",\"status\":\"stored\"");
}

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct inbound_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf json;

        if (x) {
                buf_init(&json, 0);
                write_receipt(&json, j->event, j->trace, j->duplicate);
                if (r) {
                        jsonw_open_member(&json, "reply", '{');
                        jsonw_str(&json, "status", r->status);
                        jsonw_str(&json, "text", r->text);
                        if (r->turn > 0)
                                row_json_id(&json, "turnId", "trn-", r->turn);
                        else
                                jsonw_null(&json, "turnId");
                        jsonw_str(&json, "reason", r->reason);
                        jsonw_close(&json, '}');
                } else {
                        jsonw_null(&json, "reply");
                }
                buf_addstr(&json, "}}");
                reply_json(x, 202, &json);
        }
        free(j);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct inbound_job *j = arg;
        struct http_exchange *x;
        struct buf json;

        if (j->wait_ms > 0 && j->job.api && r->outcome != INBOX_FAILED) {
                j->event = r->event;
                j->duplicate = r->outcome == INBOX_DUPLICATE;
                snprintf(j->trace, sizeof(j->trace), "%s", r->trace);
                reply_waiters_add(j->job.api->waiters, r->event, j->duplicate, j->wait_ms, on_reply,
                                  j);
                return;
        }
        x = api_job_end(&j->job);
        free(j);
        if (x && r->outcome == INBOX_FAILED) {
                reply_failed(x, &r->error);
        } else if (x) {
                buf_init(&json, 0);
                buf_reserve(&json, 128);
                write_receipt(&json, r->event, r->trace, r->outcome == INBOX_DUPLICATE);
                buf_addstr(&json, "}}");
                reply_json(x, 202, &json);
        }
}

static int add_piece(const char *bytes, size_t n, void *out)
{
        return buf_add(out, bytes, n);
}

/*
 * The metadata as text, in the body's memory. Stops at the limit, since it may be as large as a
 * whole body. NULL after a mistake.
 */
static const char *metadata_text(struct body *b, const json_t *metadata)
{
        const char *copy = NULL;
        struct buf text;

        buf_init(&text, METADATA_MAX);
        if (json_dump_callback(metadata, add_piece, &text, JSON_COMPACT) < 0)
                body_mistake(b, "metadata", "must have at most %d bytes", METADATA_MAX);
        else
                copy = arena_strdup(&b->arena, text.data);
        buf_release(&text);
        return copy;
}

static int check(struct body *b, const struct inbound_ask *ask)
{
        if (!ask->text && ask->files.count == 0)
                return body_mistake(b, "text", "is required");
        if (ask->trace && !id_is_trace(ask->trace))
                return body_mistake(b, "traceId", "must be 32 lower-case hex digits, not all 0");
        if (chat_bridge_is_owned(ask->chat))
                return body_mistake(b, "chatId", "must not begin with 'a2a:'");
        if (ask->external_id && chat_bridge_is_key(ask->external_id))
                return body_mistake(b, "externalId",
                                    "must not begin with 'openai:', 'agent-chat:' or 'a2a:'");
        return 0;
}

static void submit(struct http_exchange *x, struct adapter *adapter, struct body *b,
                   const struct inbound_ask *ask, const char *metadata, int64_t wait_ms)
{
        struct inbound_job *j = mem_zalloc(sizeof(*j));
        const struct inbound_file *f = ask->files.items;
        struct attachment *files =
                f ? arena_alloc(&b->arena, ask->files.count * sizeof(*files)) : NULL;
        char key[ID_TRACE_SIZE], caller[CHAT_BRIDGE_CALLER_SIZE];
        struct incoming in = {
                .key = ask->external_id ? ask->external_id : id_trace(key),
                .channel = ask->chat,
                .thread = ask->thread,
                .chat = ask->is_dm ? CHAT_DM : CHAT_GROUP,
                .sender_id = ask->sender.id ? ask->sender.id : "api",
                .sender_username = ask->sender.username,
                .sender_name = ask->sender.display_name,
                .sender_is_bot = ask->sender.is_bot,
                .text = ask->text,
                .is_mention = ask->is_mention,
                .reply_to = ask->reply_to,
                .time_ms = ask->time_ms,
                .trace = ask->trace,
                .caller = chat_bridge_caller(caller_of(x)->id, caller),
                .traceparent = http_header(x, "traceparent"),
                .metadata = metadata,
                .attachments = files,
                .attachment_count = ask->files.count,
        };

        in.id = in.key;
        for (size_t i = 0; i < ask->files.count; i++)
                files[i] = (struct attachment){ .kind = f[i].kind,
                                                .name = f[i].name,
                                                .mime = f[i].mime,
                                                .url = f[i].url,
                                                .size = f[i].size };
        api_job_begin(&j->job, x);
        j->wait_ms = wait_ms;
        if (ask->external_id)
                chat_bridge_receive(api_of(x), adapter, &in, on_receipt, j);
        else
                adapter_received(adapter, &in, on_receipt, j);
}

static void receive(struct http_exchange *x)
{
        struct inbound_ask ask = { .adapter = "api", .chat = "default", .is_dm = true };
        struct inbound_wait wait = { 0 };
        const char *metadata = NULL;
        struct adapter *adapter;
        struct body b;

        if (request_query(x, &b, &wait) < 0)
                return;
        body_release(&b);
        if ((wait.ms > 0 && !reply_waiters_check(x)) || request_body(x, &b, &ask) < 0)
                return;
        if (check(&b, &ask) < 0 || (ask.metadata && !(metadata = metadata_text(&b, ask.metadata))))
                reply_mistakes(x, &b);
        else if ((adapter = chat_bridge_adapter(x, ask.adapter)))
                submit(x, adapter, &b, &ask, metadata, wait.ms);
        body_release(&b);
}

const struct route messages_routes[] = {
        { "POST", "/api/v2/messages/inbound", SCOPE_WRITE, receive, REACH_BODY,
          .summary = "Hand over a message from other software, as a platform would.",
          .query = inbound_query, .body = inbound_fields, .status = 202,
          .answer = "The event is stored: {\"data\": {\"eventId\", \"traceId\", \"status\": "
                    "\"stored\" or \"duplicate\"}}; with wait also \"reply\": {\"status\", "
                    "\"text\", \"turnId\", \"reason\"}, null when the time was up.",
          .example = ROUTE_JSON({
                  "instanceId" : "api",
                  "chatId" : "support-17",
                  "text" : "What is the time?",
                  "externalId" : "msg-1",
                  "sender" : { "id" : "ann", "displayName" : "Ann" }
          }),
          .example_answer = ROUTE_JSON({
                  "data" : {
                          "eventId" : "evt-42",
                          "traceId" : "0198c0ffee00aabbccddeeff00112233",
                          "status" : "stored"
                  }
          }) },
        ROUTE_END,
};
