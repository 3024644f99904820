#include "schedule/calendar/calendar_ics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

#define LINE_MAX_BYTES 75 /* RFC 5545, 3.1 */

/* ---- lines ---- */

/* The content line, folded where a character ends. Empties it. */
static void add_line(struct buf *out, struct buf *line)
{
        size_t column = 0;

        for (size_t i = 0; i < line->len;) {
                uint32_t cp;
                size_t n = utf8_decode(line->data + i, line->len - i, &cp);

                if (column + n > LINE_MAX_BYTES) {
                        buf_addstr(out, "\r\n ");
                        column = 1;
                }
                buf_add(out, line->data + i, n);
                column += n;
                i += n;
        }
        buf_addstr(out, "\r\n");
        buf_clear(line);
}

static void add_cp(struct buf *out, uint32_t cp)
{
        char bytes[4];

        buf_add(out, bytes, utf8_encode(cp, bytes));
}

/* A TEXT value: no controls but line breaks, which are written as \n. */
static void add_text(struct buf *line, const char *text)
{
        for (size_t i = 0, n = strlen(text); i < n;) {
                uint32_t cp;

                i += utf8_decode(text + i, n - i, &cp);
                if (cp == '\n')
                        buf_addstr(line, "\\n");
                else if (cp == '\\' || cp == ';' || cp == ',')
                        buf_addf(line, "\\%c", (char)cp);
                else if (cp == '\t' || !utf8_is_control(cp))
                        add_cp(line, cp);
        }
}

/* A quoted parameter value; quotes inside it as RFC 6868 has them. */
static void add_parameter(struct buf *line, const char *text)
{
        buf_addch(line, '"');
        for (size_t i = 0, n = strlen(text); i < n;) {
                uint32_t cp;

                i += utf8_decode(text + i, n - i, &cp);
                if (cp == '"')
                        buf_addstr(line, "^'");
                else if (cp == '^')
                        buf_addstr(line, "^^");
                else if (cp == '\n')
                        buf_addstr(line, "^n");
                else if (!utf8_is_control(cp))
                        add_cp(line, cp);
        }
        buf_addch(line, '"');
}

/* Part of a URI: everything but letters, digits and a few others is percent-encoded. */
static void add_uri_part(struct buf *line, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++)
                buf_addf(line, isalnum(*p) || strchr("-._~", *p) ? "%c" : "%%%02X", *p);
}

static void text_line(struct buf *out, struct buf *line, const char *name, const char *text)
{
        if (!text || !*text)
                return;
        buf_addf(line, "%s:", name);
        add_text(line, text);
        add_line(out, line);
}

static void time_line(struct buf *out, struct buf *line, const char *name, int64_t ms)
{
        time_t t = (time_t)(ms / 1000);
        char text[24];
        struct tm tm;

        /* four digits are all that the format has */
        if (!gmtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm) != 16)
                return;
        buf_addf(line, "%s:%s", name, text);
        add_line(out, line);
}

/* ---- people ---- */

/* We know no mail addresses; a URN tells people apart. */
static void end_person(struct buf *out, struct buf *line, const struct ics_person *p)
{
        if (p->name && *p->name) {
                buf_addstr(line, ";CN=");
                add_parameter(line, p->name);
        }
        buf_addstr(line, ":urn:x-dragoman:");
        add_uri_part(line, p->source && *p->source ? p->source : "guest");
        buf_addch(line, ':');
        add_uri_part(line, p->id && *p->id ? p->id : p->name && *p->name ? p->name : "unknown");
        add_line(out, line);
}

static void add_members(struct buf *out, struct buf *line, const struct ics_event *e)
{
        static const struct {
                const char *role, *status;
        } answers[] = {
                [ICS_INVITED] = { "REQ", "NEEDS-ACTION" }, [ICS_YES] = { "REQ", "ACCEPTED" },
                [ICS_MAYBE] = { "REQ", "TENTATIVE" },      [ICS_NO] = { "REQ", "DECLINED" },
                [ICS_WAITING] = { "OPT", "TENTATIVE" },
        };

        for (size_t i = 0; i < e->member_count; i++) {
                const struct ics_person *p = &e->members[i];

                buf_addf(line, "ATTENDEE;ROLE=%s-PARTICIPANT;PARTSTAT=%s", answers[p->answer].role,
                         answers[p->answer].status);
                end_person(out, line, p);
        }
}

/* ---- the file ---- */

void calendar_ics_begin(struct buf *out, enum ics_method method, const char *name)
{
        static const char *const methods[] = { NULL, "PUBLISH", "REQUEST", "CANCEL" };
        struct buf line;

        buf_init(&line, 0);
        buf_addstr(out, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Dragoman//Dragoman//EN\r\n"
                        "CALSCALE:GREGORIAN\r\n");
        text_line(out, &line, "METHOD", methods[method]);
        text_line(out, &line, "NAME", name);
        text_line(out, &line, "X-WR-CALNAME", name); /* what came before NAME (RFC 7986) */
        buf_release(&line);
}

static void add_alarm(struct buf *out, struct buf *line, const struct ics_event *e)
{
        if (e->reminder_ms <= 0 || e->cancelled)
                return;
        buf_addstr(out, "BEGIN:VALARM\r\nACTION:DISPLAY\r\n");
        text_line(out, line, "DESCRIPTION", e->title);
        buf_addf(line, "TRIGGER:-PT%lldM", (long long)(e->reminder_ms / 60000));
        add_line(out, line);
        buf_addstr(out, "END:VALARM\r\n");
}

void calendar_ics_event(struct buf *out, enum ics_method method, const struct ics_event *e)
{
        struct buf line;

        buf_init(&line, 0);
        buf_addstr(out, "BEGIN:VEVENT\r\n");
        text_line(out, &line, "UID", e->uid);
        time_line(out, &line, "DTSTAMP", e->updated_ms);
        time_line(out, &line, "CREATED", e->created_ms);
        time_line(out, &line, "LAST-MODIFIED", e->updated_ms);
        buf_addf(&line, "SEQUENCE:%lld", (long long)e->sequence);
        add_line(out, &line);
        time_line(out, &line, "DTSTART", e->starts_ms);
        if (e->ends_ms > e->starts_ms)
                time_line(out, &line, "DTEND", e->ends_ms);
        text_line(out, &line, "SUMMARY", e->title);
        text_line(out, &line, "DESCRIPTION", e->description);
        text_line(out, &line, "LOCATION", e->place);
        /* a URI has neither spaces nor controls */
        if (e->url && e->url[strcspn(e->url, " \t\r\n\"<>")] == '\0' && *e->url) {
                buf_addf(&line, "URL:%s", e->url);
                add_line(out, &line);
        }
        buf_addf(&line, "STATUS:%s",
                 e->cancelled || method == ICS_CANCEL ? "CANCELLED" : "CONFIRMED");
        add_line(out, &line);
        if (e->organizer) {
                buf_addstr(&line, "ORGANIZER");
                end_person(out, &line, e->organizer);
                if (method != ICS_PUBLISH)
                        add_members(out, &line, e);
        }
        add_alarm(out, &line, e);
        buf_addstr(out, "END:VEVENT\r\n");
        buf_release(&line);
}

void calendar_ics_end(struct buf *out)
{
        buf_addstr(out, "END:VCALENDAR\r\n");
}
