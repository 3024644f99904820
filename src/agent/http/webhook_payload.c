/*
 * Writes the body of a webhook request.
 *
 * The nested objects (event, instance, source, chat, sender, content) are Omni's, the flat fields
 * ours. Both describe the newest message; `text` and content.text hold all messages of the turn,
 * `messages` lists them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/http_agent.h"
#include "agent/message_text.h"
#include "base/jsonw.h"
#include "bus/bus.h"

static const char *type_of(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

static void write_sender(struct buf *b, const struct http_agent *h, const struct incoming *in)
{
        int64_t person = agent_person(h->agent, in);
        char id[32];

        jsonw_open_member(b, "sender", '{');
        jsonw_str(b, "id", in->sender_id);
        jsonw_opt(b, "name", in->sender_name ? in->sender_name : in->sender_username);
        jsonw_opt(b, "username", in->sender_username);
        jsonw_bool(b, "isBot", in->sender_is_bot);
        jsonw_opt(b, "platformUserId", in->sender_id);
        jsonw_opt(b, "displayName", in->sender_name);
        snprintf(id, sizeof(id), "per-%lld", (long long)person);
        jsonw_opt(b, "personId", person > 0 ? id : NULL);
        jsonw_close(b, '}');
}

static void write_attachments(struct buf *b, const struct incoming *in)
{
        jsonw_open_member(b, "attachments", '[');
        for (size_t i = 0; i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                jsonw_open(b, '{');
                jsonw_str(b, "kind", a->kind);
                jsonw_opt(b, "name", a->name);
                jsonw_opt(b, "mimeType", a->mime);
                jsonw_opt(b, "url", a->url);
                jsonw_opt(b, "path", a->path);
                jsonw_opt(b, "error", a->error);
                if (a->size > 0)
                        jsonw_int(b, "size", a->size);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_nested(struct buf *b, const struct http_agent *h, const struct turn_run *run,
                         const struct incoming *in, const char *text)
{
        static const char *const chat_types[] = {
                [CHAT_DM] = "dm", [CHAT_GROUP] = "group", [CHAT_BROADCAST] = "broadcast"
        };
        char id[BUS_ID_SIZE];

        jsonw_open_member(b, "event", '{');
        jsonw_str(b, "id", bus_event_id(in->event, id));
        jsonw_str(b, "type", type_of(in));
        jsonw_int(b, "timestamp", in->time_ms);
        jsonw_close(b, '}');
        jsonw_open_member(b, "instance", '{');
        jsonw_str(b, "id", run->adapter);
        jsonw_str(b, "channelType", in->platform);
        jsonw_str(b, "name", run->adapter);
        jsonw_close(b, '}');
        jsonw_open_member(b, "source", '{');
        jsonw_str(b, "channelType", in->platform);
        jsonw_str(b, "instanceId", run->adapter);
        jsonw_str(b, "chatId", run->channel);
        jsonw_opt(b, "threadId", run->thread);
        jsonw_str(b, "messageId", in->id);
        jsonw_close(b, '}');
        jsonw_open_member(b, "chat", '{');
        jsonw_str(b, "id", run->channel);
        jsonw_opt(b, "name", in->chat_name);
        jsonw_str(b, "type", chat_types[in->chat]);
        jsonw_opt(b, "threadId", run->thread);
        jsonw_opt(b, "guildId", in->guild);
        jsonw_close(b, '}');
        write_sender(b, h, in);
        jsonw_open_member(b, "content", '{');
        jsonw_str(b, "text", text);
        jsonw_opt(b, "emoji", in->emoji);
        jsonw_opt(b, "referencedMessageId", in->emoji ? in->id : in->reply_to);
        write_attachments(b, in);
        jsonw_close(b, '}');
}

static void write_message(struct buf *b, const struct http_agent *h, const struct incoming *in)
{
        char id[BUS_ID_SIZE];

        jsonw_open(b, '{');
        jsonw_str(b, "eventId", bus_event_id(in->event, id));
        jsonw_str(b, "type", type_of(in));
        jsonw_int(b, "timestamp", in->time_ms);
        jsonw_str(b, "messageId", in->id);
        write_sender(b, h, in);
        jsonw_str(b, "text", in->text);
        jsonw_opt(b, "emoji", in->emoji);
        jsonw_opt(b, "replyTo", in->reply_to);
        write_attachments(b, in);
        jsonw_close(b, '}');
}

static void write_history(struct buf *b, const struct turn_run *run)
{
        if (run->history_count == 0)
                return;
        jsonw_open_member(b, "history", '[');
        for (unsigned i = 0; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];

                jsonw_open(b, '{');
                jsonw_str(b, "role", l->role);
                jsonw_opt(b, "name", l->name);
                jsonw_opt(b, "displayName", l->display);
                jsonw_str(b, "text", l->text);
                jsonw_int(b, "timestamp", l->time_ms);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_flat(struct buf *b, const struct http_agent *h, const struct turn_run *run,
                       const struct incoming *in)
{
        char conversation[32], *session = agent_session(h->agent, run);

        snprintf(conversation, sizeof(conversation), "conv-%lld", (long long)run->conversation);
        jsonw_str(b, "type", type_of(in));
        jsonw_str(b, "turnId", run->key);
        jsonw_int(b, "attempt", run->attempt);
        jsonw_str(b, "messageId", in->id);
        jsonw_opt(b, "replyTo", in->reply_to);
        jsonw_opt(b, "threadId", run->thread);
        jsonw_str(b, "conversationId", conversation);
        jsonw_str(b, "sessionId", session);
        jsonw_bool(b, "isMention", in->is_mention);
        jsonw_bool(b, "isReply", in->is_reply);
        jsonw_str(b, "mode", reply_mode_name(run->mode));
        jsonw_opt(b, "prompt", run->prompt);
        jsonw_str(b, "traceId", run->trace);
        free(session);
}

void webhook_payload_write(const struct http_agent *h, const struct turn_run *run,
                           const char *reply_url, struct buf *out)
{
        const struct incoming *in = run->inputs[run->input_count - 1];
        char *text = message_text_of_run(run);

        jsonw_open(out, '{');
        write_nested(out, h, run, in, text);
        write_flat(out, h, run, in);
        jsonw_str(out, "text", text);
        write_attachments(out, in);
        jsonw_open_member(out, "messages", '[');
        for (unsigned i = 0; i < run->input_count; i++)
                write_message(out, h, run->inputs[i]);
        jsonw_close(out, ']');
        write_history(out, run);
        jsonw_str(out, "replyUrl", reply_url);
        jsonw_str(out, "replyEndpoint", "POST /api/v2/messages/send");
        jsonw_close(out, '}');
        free(text);
}
