/*
 * calendar_sync: a calendar event that a platform shows, too (a scheduled event of Discord), kept
 * in step both ways.
 *
 * To the platform: a delivery of the kind DELIVER_CALENDAR, for adapters with ADAPTER_CALENDAR,
 * made with outbox_submit (struct outgoing, member `calendar`: what calendar_sync_write writes).
 * Its payload, and the member "calendar" of the events delivery.sent and delivery.failed about it
 * (kind "calendar"):
 *
 *     {"op": "put", "calendar": "cal-3", "guildId": "41", "eventId": "77", "title": "Catan",
 *      "description": "...", "place": "Ann's", "startsAt": "2026-11-20T18:00:00.000Z",
 *      "endsAt": "..."}
 *     {"op": "delete", "calendar": "cal-3", "guildId": "41", "eventId": "77"}
 *
 * A put without eventId creates, with one it changes what it names: members that are missing stay
 * as they are, an empty description or place is removed. guildId may be missing: then it is the
 * server of the delivery's channel. Deliveries of one chat arrive in order, and a repetition
 * creates nothing twice. delivery.sent says the platform's id as "id". delivery.failed says in
 * "errorKind" and "error" why it never will: "refused" (a permission is missing; the text says
 * which), "missing" (deleted there), "invalid". The calendar event lives on without it.
 *
 * From the platform: an incoming of the type EVENT_CALENDAR (STREAM_SCHEDULE), which no agent
 * answers; a durable consumer of the journal applies it (incoming_parse). `channel` is
 * "guild:ID", `guild` the server, `id` the platform's event, `sender_*` who created it, joined or
 * left, and metadata:
 *
 *     {"op": "put", "guildId", "eventId", "byUs": true, "state": "scheduled", "title",
 *      "description", "place", "startsAt", "endsAt", "recurs": true}
 *     {"op": "delete", "guildId", "eventId", "byUs"}          deleted or cancelled there
 *     {"op": "join", "guildId", "eventId", "user": {"id", "name"}}
 *     {"op": "leave", "guildId", "eventId", "user": {"id", "name"}}
 *     {"op": "list", "guildId", "events": ["77", ...]}         others of this server are gone
 *     {"op": "members", "guildId", "eventId", "users": [{"id", "name"}, ...], "complete": true}
 *
 * The last two, and a put for each event, follow a time without connection: what was missed is only
 * known by its result. A put is the whole event as it is now, so applying one twice, or one that
 * changes nothing (calendar_sync_diff), does no harm. byUs: this bot created it, so an unknown one
 * is no new event: the result of its delivery is still to come, or it was forgotten.
 *
 * No echo: the adapter drops what it did itself, as far as it can tell. The rest is harmless as
 * long as applying an incoming change submits no delivery: events arrive in order, and the last
 * one is what the platform shows.
 */
#ifndef ROAD_CALENDAR_SYNC_H
#define ROAD_CALENDAR_SYNC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum calendar_op {
        CALENDAR_PUT,
        CALENDAR_DELETE,
        CALENDAR_JOIN,
        CALENDAR_LEAVE,
        CALENDAR_LIST,
        CALENDAR_MEMBERS,
};

/* Strings and lists are borrowed; NULL or 0: not said. */
struct calendar_sync {
        enum calendar_op op;
        const char *calendar;      /* "cal-3"; only to the platform */
        const char *guild, *event; /* the platform's ids */
        const char *title, *description, *place;
        int64_t starts_ms, ends_ms;
        const char *state; /* "scheduled", "active" or "completed" */
        bool by_us, recurs;
        const char *user_id, *user_name;
        const json_t *list; /* "events" or "users" */
        bool complete;      /* false: there are more users than those of the list */
};

/* Appends a JSON object; without lists. */
void calendar_sync_write(const struct calendar_sync *s, struct buf *out);
/* Borrows from the object. -1: ERR_INVALID that names the member. */
int calendar_sync_read(const json_t *object, struct calendar_sync *out, struct error *err);

enum calendar_field {
        CALENDAR_TITLE = 1 << 0,
        CALENDAR_DESCRIPTION = 1 << 1,
        CALENDAR_PLACE = 1 << 2,
        CALENDAR_STARTS = 1 << 3,
        CALENDAR_ENDS = 1 << 4,
};
/*
 * What theirs, a put of the platform, says otherwise than ours. A text that the platform had to cut
 * ("...beginning…") is the same, and so are times within the same second.
 */
unsigned calendar_sync_diff(const struct calendar_sync *ours, const struct calendar_sync *theirs);

#endif
