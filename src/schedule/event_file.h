/*
 * event_file: one file of workspace/events.
 *
 *     { "type": "immediate", "channelId": "tg/42", "text": "A ticket was opened" }
 *     { "type": "one-shot", "channelId": "tg/42", "text": "...",
 *       "at": "2026-12-15T09:00:00+01:00" }
 *     { "type": "periodic", "channelId": "tg/42", "text": "...",
 *       "schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin" }
 *
 * These are mom's keys. Ours besides: thread, agent, missed, maxAgeSeconds, quietHours, check,
 * checkSeconds, enabled. Agents write such files, so they are foreign input.
 */
#ifndef SCHEDULE_EVENT_FILE_H
#define SCHEDULE_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "rows/schedule_row.h"

#define EVENT_FILE_MAX      65536 /* bytes of a file */
#define EVENT_FILE_TEXT_MAX 16384
#define EVENT_FILE_NAME_MAX 200

struct event_file {
        char *type;
        char *channel_id; /* "adapter/channel", or a channel alone; NULL: the chat of the folder */
        char *thread, *agent, *text;
        char *at, *schedule, *timezone;
        char *missed;            /* NULL: the configured policy */
        int64_t max_age_seconds; /* -1: the configured limit */
        struct setting_list quiet_hours;
        char *check; /* a command; NULL: none */
        int64_t check_seconds;
        bool enabled;
        /* what the above means */
        enum schedule_kind kind;
        int64_t at_ms;
};

/*
 * name is for errors: "events/nightly.json". -1: ERR_INVALID; *mistakes (may be NULL) gets all of
 * them, a line each.
 */
int event_file_parse(const char *name, const char *text, size_t n, struct event_file *out,
                     struct buf *mistakes, struct error *err);
void event_file_release(struct event_file *f);

/* Is it a name of an event file: ends with .json, is neither hidden nor too long? */
bool event_file_is_name(const char *name);
/*
 * schedule_row.options as a JSON object; yours. check_agent (NULL: not known): whose sandbox its
 * check runs in.
 */
char *event_file_options(const struct event_file *f, bool is_dm, const char *check_agent);

#endif
