#include "agent/workspace/log_record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/channel_folder.h"
#include "road/incoming.h"

/* ---- writing ---- */

static void write_attachments(const struct log_record *r, struct buf *out)
{
        jsonw_open_member(out, "attachments", '[');
        for (size_t i = 0; i < r->attachment_count; i++) {
                const struct log_attachment *a = &r->attachments[i];

                jsonw_open(out, '{');
                jsonw_str(out, "filename", a->name ? a->name : "file");
                jsonw_opt(out, "localPath", a->path);
                jsonw_opt(out, "mimeType", a->mime);
                if (a->size > 0)
                        jsonw_int(out, "size", a->size);
                jsonw_close(out, '}');
        }
        jsonw_close(out, ']');
}

void log_record_write(const struct log_record *r, struct buf *out)
{
        char iso[CLOCK_ISO_SIZE], event[BUS_ID_SIZE];

        jsonw_open(out, '{');
        jsonw_opt(out, "id", r->id);
        jsonw_opt(out, "channelId", r->channel);
        jsonw_str(out, "timestamp", clock_iso(r->time_ms, iso));
        jsonw_open_member(out, "sender", '{');
        jsonw_opt(out, "id", r->sender_id);
        jsonw_opt(out, "username", r->username);
        jsonw_opt(out, "displayName", r->name);
        jsonw_bool(out, "isBot", r->is_bot);
        jsonw_close(out, '}');
        jsonw_str(out, "text", r->text ? r->text : "");
        if (r->raw_text && (!r->text || strcmp(r->raw_text, r->text) != 0))
                jsonw_str(out, "rawText", r->raw_text);
        write_attachments(r, out);
        jsonw_bool(out, "isMention", r->is_mention);
        jsonw_opt(out, "replyTo", r->reply_to);
        if (r->event > 0 || r->thread || r->turn) {
                jsonw_open_member(out, "metadata", '{');
                if (r->event > 0)
                        jsonw_str(out, "event", bus_event_id(r->event, event));
                jsonw_opt(out, "thread", r->thread);
                jsonw_opt(out, "turn", r->turn);
                jsonw_close(out, '}');
        }
        jsonw_close(out, '}');
        buf_addch(out, '\n');
}

/* ---- reading ---- */

/* Seconds with micros; very old lines have milliseconds. */
static int64_t slack_time(const char *ts)
{
        char *end;
        double n = strtod(ts, &end);

        if (*end || end == ts || !(n > 0) || n > 1e15)
                return 0;
        return n > 1e12 ? (int64_t)n : (int64_t)llround(n * 1000);
}

static int64_t read_time(const json_t *o)
{
        static const char *const keys[] = { "timestamp", "date", "ts" };
        int64_t ms = 0;

        for (size_t i = 0; i < COUNT(keys); i++) {
                const char *text = json_str(o, keys[i], NULL);

                if (text && clock_parse_iso(text, &ms) == 0)
                        return ms;
        }
        return slack_time(json_str(o, "ts", ""));
}

static void read_attachments(struct log_record *r, const json_t *list, const char *channel)
{
        size_t prefix = channel ? strlen(channel) : 0, i;
        const json_t *a;

        json_array_foreach(list, i, a) {
                const char *path = json_str(a, "localPath", json_str(a, "local", NULL));

                if (r->attachment_count == LOG_ATTACHMENTS_MAX)
                        return;
                if (path && channel && strncmp(path, channel, prefix) == 0 && path[prefix] == '/')
                        path += prefix + 1;
                r->attachments[r->attachment_count++] = (struct log_attachment){
                        .name = json_str(a, "filename", json_str(a, "original", NULL)),
                        .path = path,
                        .mime = json_str(a, "mimeType", NULL),
                        .size = json_int(a, "size", 0),
                };
        }
}

int log_record_read(struct log_record *r, const char *line, size_t n, const char *channel,
                    json_t **json, struct error *err)
{
        json_t *o = json_read_lenient(line, n, err);
        const json_t *sender = json_object_get(o, "sender"), *metadata;

        *r = (struct log_record){ 0 };
        *json = NULL;
        if (!o)
                return -1;
        metadata = json_object_get(o, "metadata");
        r->id = json_str(o, "id", json_str(o, "ts", NULL));
        r->channel = json_str(o, "channelId", NULL);
        r->time_ms = read_time(o);
        r->sender_id = json_str(sender, "id", json_str(o, "user", NULL));
        r->username = json_str(sender, "username", json_str(o, "userName", NULL));
        r->name = json_str(sender, "displayName", json_str(o, "displayName", NULL));
        r->is_bot = json_flag(sender, "isBot", json_flag(o, "isBot", false));
        r->text = json_str(o, "text", "");
        r->raw_text = json_str(o, "rawText", NULL);
        r->is_mention = json_flag(o, "isMention", false);
        r->reply_to = json_str(o, "replyTo", NULL);
        r->thread = json_str(metadata, "thread", NULL);
        r->turn = json_str(metadata, "turn", NULL);
        r->event = bus_event_seq(json_str(metadata, "event", ""));
        if (r->event < 0)
                r->event = 0;
        if (!r->username && r->is_bot && !sender)
                r->username = "mom"; /* of mom's own lines */
        read_attachments(r, json_object_get(o, "attachments"), channel);
        if (!json_is_object(o) || !r->id || r->time_ms == 0) {
                json_decref(o);
                return error_set(err, ERR_INVALID, "it has no id or no time");
        }
        *json = o;
        return 0;
}

int64_t log_record_event(const char *line, size_t n)
{
        struct log_record r;
        json_t *json;

        if (log_record_read(&r, line, n, NULL, &json, NULL) < 0)
                return 0;
        json_decref(json);
        return r.event;
}

/* ---- from the journal ---- */

/* Where a file is once a turn needed it. *paths: to free. */
static void add_attachments(struct log_record *r, const struct incoming *in, char **paths)
{
        for (size_t i = 0; i < in->attachment_count && i < LOG_ATTACHMENTS_MAX; i++) {
                const struct attachment *a = &in->attachments[i];

                if (a->source)
                        paths[i] = channel_folder_attachment(in, i);
                r->attachments[r->attachment_count++] = (struct log_attachment){
                        .name = a->name ? a->name : a->kind,
                        .path = paths[i] ? strrchr(paths[i], '/') - strlen("attachments") : NULL,
                        .mime = a->mime,
                        .size = a->size,
                };
        }
}

static int from_person(const struct bus_event *e, struct buf *out)
{
        struct incoming *in = incoming_parse(e, NULL);
        char *paths[LOG_ATTACHMENTS_MAX] = { 0 };
        struct log_record r;

        if (!in)
                return 0;
        r = (struct log_record){ .id = in->id ? in->id : in->key,
                                 .channel = in->channel,
                                 .thread = in->thread,
                                 .time_ms = in->time_ms > 0 ? in->time_ms : e->time_ms,
                                 .sender_id = in->sender_id,
                                 .username = in->sender_username,
                                 .name = in->sender_name,
                                 .is_bot = in->sender_is_bot,
                                 .text = in->text,
                                 .raw_text = in->raw_text,
                                 .is_mention = in->is_mention,
                                 .reply_to = in->reply_to,
                                 .event = e->seq };
        add_attachments(&r, in, paths);
        log_record_write(&r, out);
        for (size_t i = 0; i < LOG_ATTACHMENTS_MAX; i++)
                free(paths[i]);
        incoming_free(in);
        return 1;
}

/* Drafts are not written; the edit that ends one has the text. Nor are details of the work. */
static int from_us(const struct bus_event *e, bool is_edit, struct buf *out)
{
        json_t *p = json_read(e->payload, strlen(e->payload), NULL);
        const char *text = json_str(p, "plain", json_str(p, "text", NULL));
        bool counts = text && !json_flag(p, "draft", false) && !json_flag(p, "detail", false) &&
                      (!is_edit || json_object_get(p, "answers"));

        if (counts)
                log_record_write(&(struct log_record){ .id = json_str(p, "id", NULL),
                                                       .channel = e->channel,
                                                       .thread = e->thread,
                                                       .time_ms = e->time_ms,
                                                       .sender_id = "bot",
                                                       .username = "bot",
                                                       .is_bot = true,
                                                       .text = text,
                                                       .reply_to = json_str(p, "replyTo", NULL),
                                                       .turn = json_str(p, "turnId", NULL),
                                                       .event = e->seq },
                                 out);
        json_decref(p);
        return counts;
}

int log_record_from_event(const struct bus_event *e, struct buf *out)
{
        if (!e->adapter || !e->channel)
                return 0;
        if (strcmp(e->type, EVENT_MESSAGE_RECEIVED) == 0 ||
            strcmp(e->type, EVENT_SCHEDULE_FIRED) == 0)
                return from_person(e, out);
        if (strcmp(e->type, EVENT_MESSAGE_SENT) == 0)
                return from_us(e, false, out);
        if (strcmp(e->type, EVENT_DELIVERY_SENT) == 0)
                return from_us(e, true, out);
        return 0;
}
