#include "road/calendar_sync.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define CUT "…" /* at the end of a text that is too long for the platform */

static const char *const op_names[] = {
        [CALENDAR_PUT] = "put",     [CALENDAR_DELETE] = "delete", [CALENDAR_JOIN] = "join",
        [CALENDAR_LEAVE] = "leave", [CALENDAR_LIST] = "list",     [CALENDAR_MEMBERS] = "members",
};

void calendar_sync_write(const struct calendar_sync *s, struct buf *out)
{
        char time[CLOCK_ISO_SIZE];

        jsonw_open(out, '{');
        jsonw_str(out, "op", op_names[s->op]);
        jsonw_opt(out, "calendar", s->calendar);
        jsonw_opt(out, "guildId", s->guild);
        jsonw_opt(out, "eventId", s->event);
        if (s->by_us)
                jsonw_bool(out, "byUs", true);
        jsonw_opt(out, "state", s->state);
        jsonw_opt(out, "title", s->title);
        jsonw_opt(out, "description", s->description);
        jsonw_opt(out, "place", s->place);
        if (s->starts_ms > 0)
                jsonw_str(out, "startsAt", clock_iso(s->starts_ms, time));
        if (s->ends_ms > 0)
                jsonw_str(out, "endsAt", clock_iso(s->ends_ms, time));
        if (s->recurs)
                jsonw_bool(out, "recurs", true);
        if (s->user_id) {
                jsonw_open_member(out, "user", '{');
                jsonw_str(out, "id", s->user_id);
                jsonw_opt(out, "name", s->user_name);
                jsonw_close(out, '}');
        }
        jsonw_close(out, '}');
}

static int read_time(const json_t *object, const char *key, int64_t *ms, struct error *err)
{
        const char *text = json_str(object, key, NULL);

        *ms = 0;
        if (text && (clock_parse_iso(text, ms) < 0 || *ms <= 0))
                return error_set(err, ERR_INVALID,
                                 "%s '%.40s' is no time after 1970: write 2026-11-20T18:00:00Z",
                                 key, text);
        return 0;
}

int calendar_sync_read(const json_t *object, struct calendar_sync *out, struct error *err)
{
        const char *op = json_str(object, "op", "");
        const json_t *user = json_object_get(object, "user"),
                     *events = json_object_get(object, "events");
        size_t i = 0;

        while (i < COUNT(op_names) && strcmp(op, op_names[i]) != 0)
                i++;
        if (i == COUNT(op_names))
                return error_set(err, ERR_INVALID,
                                 "op '%.40s' is none of put, delete, join, leave, list, members",
                                 op);
        *out = (struct calendar_sync){
                .op = (enum calendar_op)i,
                .calendar = json_str(object, "calendar", NULL),
                .guild = json_str(object, "guildId", NULL),
                .event = json_str(object, "eventId", NULL),
                .title = json_str(object, "title", NULL),
                .description = json_str(object, "description", NULL),
                .place = json_str(object, "place", NULL),
                .state = json_str(object, "state", NULL),
                .by_us = json_flag(object, "byUs", false),
                .recurs = json_flag(object, "recurs", false),
                .user_id = json_str(user, "id", NULL),
                .user_name = json_str(user, "name", NULL),
                .list = events ? events : json_object_get(object, "users"),
                .complete = json_flag(object, "complete", false),
        };
        if (read_time(object, "startsAt", &out->starts_ms, err) < 0 ||
            read_time(object, "endsAt", &out->ends_ms, err) < 0)
                return -1;
        return 0;
}

/* NULL is the same as "". */
static bool is_same_text(const char *ours, const char *theirs)
{
        size_t n, cut = strlen(CUT);

        ours = ours ? ours : "";
        theirs = theirs ? theirs : "";
        if (strcmp(ours, theirs) == 0)
                return true;
        n = strlen(theirs);
        return n > cut && strcmp(theirs + n - cut, CUT) == 0 && strlen(ours) > n - cut &&
               strncmp(ours, theirs, n - cut) == 0;
}

unsigned calendar_sync_diff(const struct calendar_sync *ours, const struct calendar_sync *theirs)
{
        unsigned differ = 0;

        if (theirs->title && !is_same_text(ours->title, theirs->title))
                differ |= CALENDAR_TITLE;
        if (!is_same_text(ours->description, theirs->description))
                differ |= CALENDAR_DESCRIPTION;
        if (!is_same_text(ours->place, theirs->place))
                differ |= CALENDAR_PLACE;
        if (theirs->starts_ms > 0 && theirs->starts_ms / 1000 != ours->starts_ms / 1000)
                differ |= CALENDAR_STARTS;
        if (theirs->ends_ms > 0 && theirs->ends_ms / 1000 != ours->ends_ms / 1000)
                differ |= CALENDAR_ENDS;
        return differ;
}
