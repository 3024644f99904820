/*
 * Messages in both directions. The inbound route is the busiest of all: it parses once, fills a
 * struct incoming that borrows from the parsed body, and answers when the inbox says that the event
 * is on disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/chat_bridge.h"
#include "api/core/api_private.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "road/report/row_json.h"

#define TEXT_MAX 1048576 /* the road's own limit is smaller; this one bounds what is looked at */
#define WAIT_MAX 120000
/*
 * Of metadata as JSON: every rule that asks for it, and everybody who reads the event, parses it
 * again.
 */
#define METADATA_MAX 65536

/* ---- inbound ---- */

struct inbound_sender {
        const char *id, *username, *display_name;
        bool is_bot;
};
struct inbound_file {
        const char *kind, *name, *mime, *url;
        int64_t size;
};
struct inbound {
        const char *instance, *chat, *text, *external_id, *thread, *reply_to, *trace;
        struct inbound_sender sender;
        bool is_dm, is_mention;
        int64_t time_ms;
        const json_t *metadata;
        const char *metadata_text; /* NULL: none */
        struct field_list files;
};
struct inbound_wait {
        int64_t ms;
};

static const char *const file_kinds[] = { "image",   "audio",    "voice",   "video", "document",
                                          "sticker", "location", "contact", NULL };

/* clang-format off */
static const struct field sender_fields[] = {
        { "id", FIELD_STRING, .min = 1, .max = 256, .at = offsetof(struct inbound_sender, id),
          .fallback = "\"api\"", .help = "Who wrote it, as the other software knows them." },
        { "username", FIELD_STRING, .max = 256, .at = offsetof(struct inbound_sender, username), .help = "Their handle." },
        { "displayName", FIELD_STRING, .max = 256, .at = offsetof(struct inbound_sender, display_name),
          .help = "Their name as people see it." },
        { "isBot", FIELD_BOOL, .at = offsetof(struct inbound_sender, is_bot), .fallback = "false",
          .help = "The writer is a program." },
        FIELD_END,
};
static const struct field file_fields[] = {
        { "kind", FIELD_CHOICE, .required = true, .choices = file_kinds, .at = offsetof(struct inbound_file, kind),
          .help = "What it is." },
        { "name", FIELD_STRING, .max = 255, .at = offsetof(struct inbound_file, name), .help = "Its file name." },
        { "mimeType", FIELD_STRING, .max = 127, .at = offsetof(struct inbound_file, mime), .help = "Its media type." },
        { "url", FIELD_STRING, .required = true, .min = 1, .max = 4096, .at = offsetof(struct inbound_file, url),
          .help = "Where it can be had." },
        { "size", FIELD_INT, .min = 0, .max = INT64_MAX, .at = offsetof(struct inbound_file, size), .help = "Bytes, when known." },
        FIELD_END,
};
const struct field inbound_fields[] = {
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct inbound, instance),
          .fallback = "\"api\"", .help = "Name of an adapter of type api or cli." },
        { "chatId", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct inbound, chat),
          .fallback = "\"default\"", .help = "The conversation; messages of one are answered in order." },
        { "text", FIELD_STRING, .min = 1, .max = TEXT_MAX, .at = offsetof(struct inbound, text),
          .help = "What was written; required unless there are attachments." },
        { "externalId", FIELD_STRING, .min = 1, .max = 256, .at = offsetof(struct inbound, external_id),
          .help = "The message's own id, not beginning with openai: or agent-chat:; the same message again is a duplicate, another one with it a conflict. Absent: a random one." },
        { "threadId", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct inbound, thread),
          .help = "A thread inside the chat." },
        { "replyToId", FIELD_STRING, .min = 1, .max = 256, .at = offsetof(struct inbound, reply_to),
          .help = "Id of the message this one answers." },
        { "sender", FIELD_GROUP, .group = sender_fields, .at = offsetof(struct inbound, sender), .help = "Who wrote it." },
        { "isDm", FIELD_BOOL, .at = offsetof(struct inbound, is_dm), .fallback = "true",
          .help = "A conversation between two." },
        { "isMention", FIELD_BOOL, .at = offsetof(struct inbound, is_mention), .fallback = "false",
          .help = "The message addresses the bot." },
        { "timestamp", FIELD_TIME, .at = offsetof(struct inbound, time_ms), .help = "When it was written. Absent: now." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, .at = offsetof(struct inbound, trace),
          .help = "Continues a W3C trace: 32 lower-case hex digits." },
        { "metadata", FIELD_OBJECT, .at = offsetof(struct inbound, metadata),
          .help = "Whatever the other software wants to keep with the event; at most 65536 bytes." },
        { "attachments", FIELD_LIST, .group = file_fields, .item_size = sizeof(struct inbound_file), .max = 20,
          .at = offsetof(struct inbound, files), .help = "Files that belong to the message." },
        FIELD_END,
};
const struct field inbound_query[] = {
        { "wait", FIELD_INT, .min = 0, .max = WAIT_MAX, .at = offsetof(struct inbound_wait, ms), .fallback = "0",
          .help = "Milliseconds to hold the answer until the turn has ended; the reply is then part of it." },
        FIELD_END,
};
/* clang-format on */

struct arrival {
        struct api_job job;
        int64_t wait_ms;
        int64_t event;
        char trace[ID_TRACE_SIZE];
        bool duplicate;
};

/* The receipt, without its last brackets. */
static void write_receipt(struct buf *json, int64_t event, const char *trace, bool duplicate)
{
        buf_addstr(json, "{\"data\":{\"eventId\":\"evt-");
        buf_addint(json, event);
        buf_addstr(json, "\",\"traceId\":\"");
        buf_addstr(json, trace);
        buf_addstr(json, duplicate ? "\",\"status\":\"duplicate\"" : "\",\"status\":\"stored\"");
}

static void write_reply(struct buf *json, const struct awaited_reply *o)
{
        if (!o) {
                jsonw_null(json, "reply");
                return;
        }
        jsonw_open_member(json, "reply", '{');
        jsonw_str(json, "status", o->status);
        jsonw_str(json, "text", o->text);
        if (o->turn > 0)
                show_id(json, "turnId", "trn-", o->turn);
        else
                jsonw_null(json, "turnId");
        jsonw_str(json, "reason", o->reason);
        jsonw_close(json, '}');
}

static void on_outcome(void *arg, const struct awaited_reply *o)
{
        struct arrival *a = arg;
        struct http_exchange *x = api_job_end(&a->job);
        struct buf json;

        if (x) {
                buf_init(&json, 0);
                write_receipt(&json, a->event, a->trace, a->duplicate);
                write_reply(&json, o);
                buf_addstr(&json, "}}");
                reply_json(x, 202, &json);
        }
        free(a);
}

static void reply_stored(struct http_exchange *x, const struct inbox_receipt *r)
{
        struct buf json;

        buf_init(&json, 0);
        buf_reserve(&json, 128);
        write_receipt(&json, r->event, r->trace, r->outcome == INBOX_DUPLICATE);
        buf_addstr(&json, "}}");
        reply_json(x, 202, &json);
}

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct arrival *a = arg;
        struct http_exchange *x;

        if (a->wait_ms > 0 && a->job.api && r->outcome != INBOX_FAILED) {
                a->event = r->event;
                a->duplicate = r->outcome == INBOX_DUPLICATE;
                snprintf(a->trace, sizeof(a->trace), "%s", r->trace);
                reply_waiters_add(a->job.api->waiters, r->event, a->duplicate, a->wait_ms,
                                  on_outcome, a);
                return;
        }
        x = api_job_end(&a->job);
        free(a);
        if (!x)
                return;
        if (r->outcome == INBOX_FAILED)
                reply_failed(x, &r->error);
        else
                reply_stored(x, r);
}

static struct attachment *attachments_of(struct body *b, const struct field_list *files)
{
        const struct inbound_file *f = files->items;
        struct attachment *list = arena_alloc(&b->arena, files->count * sizeof(*list));

        for (size_t i = 0; i < files->count; i++)
                list[i] = (struct attachment){ .kind = f[i].kind,
                                               .name = f[i].name,
                                               .mime = f[i].mime,
                                               .url = f[i].url,
                                               .size = f[i].size };
        return list;
}

static int add_piece(const char *bytes, size_t n, void *out)
{
        return buf_add(out, bytes, n);
}

/*
 * As text, in a copy of the body's own. It may be as large as a whole body: writing stops where it
 * is too long.
 */
static int write_metadata(struct body *b, struct inbound *in)
{
        struct buf text;
        int rc = 0;

        if (!in->metadata)
                return 0;
        buf_init(&text, METADATA_MAX);
        if (json_dump_callback(in->metadata, add_piece, &text, JSON_COMPACT) < 0)
                rc = body_mistake(b, "metadata", "must have at most %d bytes", METADATA_MAX);
        else
                in->metadata_text = arena_strdup(&b->arena, text.data);
        buf_release(&text);
        return rc;
}

static int check_inbound(struct body *b, const struct inbound *in)
{
        if (!in->text && in->files.count == 0)
                return body_mistake(b, "text", "is required");
        if (in->trace && strspn(in->trace, "0123456789abcdef") != ID_TRACE_SIZE - 1)
                return body_mistake(b, "traceId", "must be 32 lower-case hex digits");
        if (in->external_id && chat_bridge_is_key(in->external_id))
                return body_mistake(b, "externalId",
                                    "must not begin with 'openai:' or 'agent-chat:'");
        return 0;
}

static void receive(struct http_exchange *x, struct adapter *adapter, struct body *b,
                    const struct inbound *m, int64_t wait_ms)
{
        struct arrival *a = mem_zalloc(sizeof(*a));
        char key[ID_TRACE_SIZE];
        struct incoming in = {
                .key = m->external_id ? m->external_id : id_trace(key),
                .channel = m->chat,
                .thread = m->thread,
                .chat = m->is_dm ? CHAT_DM : CHAT_GROUP,
                .sender_id = m->sender.id ? m->sender.id : "api",
                .sender_username = m->sender.username,
                .sender_name = m->sender.display_name,
                .sender_is_bot = m->sender.is_bot,
                .text = m->text,
                .is_mention = m->is_mention,
                .reply_to = m->reply_to,
                .time_ms = m->time_ms,
                .trace = m->trace,
                .metadata = m->metadata_text,
                .attachment_count = m->files.count,
        };

        in.id = in.key;
        if (m->files.count > 0)
                in.attachments = attachments_of(b, &m->files);
        api_job_begin(&a->job, x);
        a->wait_ms = wait_ms;
        if (m->external_id)
                chat_bridge_receive(api_of(x), adapter, &in, on_receipt, a);
        else
                adapter_received(adapter, &in, on_receipt, a);
}

/* Most requests have no query, and need none of the machinery. */
static int read_wait(struct http_exchange *x, int64_t *ms)
{
        struct inbound_wait w = { 0 };
        struct body q;

        if (request_query(x, &q, &w) < 0)
                return -1;
        body_release(&q);
        *ms = w.ms;
        return *ms == 0 || reply_waiters_check(x) ? 0 : -1;
}

void messages_inbound(struct http_exchange *x)
{
        struct inbound m = { .instance = "api", .chat = "default", .is_dm = true };
        struct adapter *adapter;
        struct body b;
        int64_t wait_ms;

        if (read_wait(x, &wait_ms) < 0 || request_body(x, &b, &m) < 0)
                return;
        if (check_inbound(&b, &m) < 0 || write_metadata(&b, &m) < 0)
                reply_mistakes(x, &b);
        else if ((adapter = chat_bridge_adapter(x, m.instance)))
                receive(x, adapter, &b, &m, wait_ms);
        body_release(&b);
}
