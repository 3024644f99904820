/*
 * log_record: a line of log.jsonl, one message of a channel.
 *
 * Written: {"id", "channelId", "timestamp", "sender": {"id", "username", "displayName", "isBot"},
 * "text", "rawText", "attachments": [{"filename", "localPath", "mimeType", "size"}], "isMention",
 * "replyTo", "metadata": {"event", "thread", "turn"}}. Read: the same, and mom's older lines
 * {"date", "ts", "user", "userName", "displayName", "text", "attachments": [{"original", "local"}],
 * "isBot"}.
 */
#ifndef AGENT_WORKSPACE_LOG_RECORD_H
#define AGENT_WORKSPACE_LOG_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "bus/bus.h"

struct log_attachment {
        const char *name, *path; /* relative to the channel's folder; NULL: not saved */
        const char *mime;
        int64_t size; /* 0: unknown */
};

#define LOG_ATTACHMENTS_MAX 32

/* Borrowed; NULL: not known. */
struct log_record {
        const char *id, *channel, *thread;
        int64_t time_ms;
        const char *sender_id, *username, *name;
        bool is_bot;
        const char *text, *raw_text;
        bool is_mention;
        const char *reply_to, *turn;
        int64_t event; /* in the journal; 0: of another program */
        struct log_attachment attachments[LOG_ATTACHMENTS_MAX];
        size_t attachment_count;
};

/* Appends the line with its end. */
void log_record_write(const struct log_record *r, struct buf *out);
/*
 * A line of either kind; *r borrows from *json, which is yours to decref. channel: the folder's
 * name in mom's workspace, which begins paths of its attachments; may be NULL. -1: it is none.
 */
int log_record_read(struct log_record *r, const char *line, size_t n, const char *channel,
                    json_t **json, struct error *err);
/* The number of the event that the line is of; 0: none, or no line of ours. */
int64_t log_record_event(const char *line, size_t n);

/*
 * Appends the line of an event: messages of people, and final texts of ours. 1; 0: there is none
 * for this event.
 */
int log_record_from_event(const struct bus_event *e, struct buf *out);

#endif
