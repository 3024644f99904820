/*
 * calendar_commands: /event, as people write it.
 *
 * The answer is read before the decision is written (struct effect), and seats are given out by
 * the write. In between somebody else may have taken the last one; then a correction follows, as a
 * row of the same transaction.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/settings.h"
#include "schedule/calendar/calendar_private.h"

#define SPACE    " \t\r\n"
#define WORD_MAX 20

static const char help[] =
        "Events that you plan together:\n"
        "- `/event new friday 20:00 Catan; place Ann's; seats 4; until 23:00` plans one. Further "
        "parts: `about ...`, `remind 2h` (before it begins; `remind off`), `zone Europe/Berlin`, "
        "`invite @ann, Bob`\n"
        "- `/event list`, `/event show cal-3`\n"
        "- `/event yes cal-3`, `no`, `maybe`; with a name, for somebody without an account\n"
        "- `/event invite cal-3 @ann, discord:42, Bob`\n"
        "- `/event change cal-3 when saturday 20:00; place here; seats 6`\n"
        "- `/event cancel cal-3`, `/event remove cal-3 Bob`\n"
        "Where only one event is planned, its number may be left out.";

static const struct {
        const char *word;
        enum calendar_action action;
        enum calendar_answer answer;
} words[] = {
        { "list", CALENDAR_UPCOMING, 0 },
        { "show", CALENDAR_SHOW, 0 },
        { "new", CALENDAR_CREATE, 0 },
        { "create", CALENDAR_CREATE, 0 },
        { "yes", CALENDAR_ANSWER, ANSWER_YES },
        { "no", CALENDAR_ANSWER, ANSWER_NO },
        { "maybe", CALENDAR_ANSWER, ANSWER_MAYBE },
        { "join", CALENDAR_ANSWER, ANSWER_YES },
        { "leave", CALENDAR_ANSWER, ANSWER_NO },
        { "invite", CALENDAR_INVITE, 0 },
        { "change", CALENDAR_CHANGE, 0 },
        { "move", CALENDAR_CHANGE, 0 },
        { "cancel", CALENDAR_CANCEL, 0 },
        { "remove", CALENDAR_REMOVE, 0 },
};

/* ---- parsing ---- */

/* The next word in lower case; returns what follows it. "": there is none, or a longer one. */
static const char *read_word(const char *p, char word[WORD_MAX])
{
        size_t n;

        p += strspn(p, SPACE);
        n = strcspn(p, SPACE);
        word[0] = '\0';
        if (n == 0 || n >= WORD_MAX)
                return p;
        for (size_t i = 0; i < n; i++)
                word[i] = (char)tolower((unsigned char)p[i]);
        word[n] = '\0';
        return p + n + strspn(p + n, SPACE);
}

/* "cal-3 ..." */
static const char *read_event(const char *p, int64_t *event)
{
        char word[WORD_MAX], *end;
        const char *rest = read_word(p, word);

        if (strncmp(word, "cal-", 4) != 0)
                return p + strspn(p, SPACE);
        *event = strtoll(word + 4, &end, 10);
        return *end == '\0' && *event > 0 ? rest : p;
}

/* By commas, or without any by spaces. */
static void read_people(struct calendar_request *q, const char *p)
{
        const char *by = strpbrk(p, ",\n") ? ",\n" : SPACE;

        while (*(p += strspn(p, by)) != '\0') {
                size_t n = strcspn(p, by), from = strspn(p, SPACE), end = n;

                while (end > from && strchr(SPACE, p[end - 1]))
                        end--;
                if (end > from)
                        calendar_request_add_person(q, p + from, end - from);
                p += n;
        }
}

static bool says_none(const char *text)
{
        return strcasecmp(text, "off") == 0 || strcasecmp(text, "none") == 0 ||
               strcasecmp(text, "no") == 0 || strcmp(text, "0") == 0;
}

static int read_number(const char *text, int64_t *out)
{
        char *end;

        if (says_none(text)) {
                *out = 0;
                return 0;
        }
        *out = strtoll(text, &end, 10);
        return end == text || *out < 1 || (*end != '\0' && !strchr(SPACE, *end)) ? -1 : 0;
}

/* "place Ann's" */
static int read_part(struct calendar_request *q, const char *part, struct error *wrong)
{
        static const char *const names[] = { "title", "when",   "place", "seats",  "until",
                                             "about", "remind", "zone",  "invite", NULL };
        struct calendar_fields *f = &q->fields;
        char word[WORD_MAX];
        const char *value = read_word(part, word), *near;

        if (strcmp(word, "title") == 0)
                f->title = value;
        else if (strcmp(word, "when") == 0 || strcmp(word, "time") == 0)
                f->when = value;
        else if (strcmp(word, "place") == 0 || strcmp(word, "at") == 0)
                f->place = says_none(value) ? "" : value;
        else if (strcmp(word, "about") == 0)
                f->description = says_none(value) ? "" : value;
        else if (strcmp(word, "until") == 0 || strcmp(word, "for") == 0)
                f->until = value;
        else if (strcmp(word, "zone") == 0 || strcmp(word, "timezone") == 0)
                f->timezone = value;
        else if (strcmp(word, "invite") == 0)
                read_people(q, value);
        else if (strcmp(word, "seats") == 0) {
                if (read_number(value, &f->capacity) < 0)
                        return error_set(wrong, ERR_INVALID,
                                         "'seats %.20s' is no number; `seats off`: no limit",
                                         value);
        } else if (strcmp(word, "remind") == 0) {
                if (says_none(value))
                        f->reminder_ms = 0;
                else if (clock_parse_span(value, &f->reminder_ms) < 0 || f->reminder_ms <= 0)
                        return error_set(wrong, ERR_INVALID,
                                         "'remind %.20s' is no time before it begins: write 30m, "
                                         "2h, 1d, or off",
                                         value);
        } else {
                near = settings_nearest(word, names);
                return error_set(wrong, ERR_INVALID,
                                 "'%.40s' is not understood%s%s; parts are title, when, place, "
                                 "seats, until, about, remind, zone and invite, separated by ;",
                                 part, near ? ", perhaps it means " : "", near ? near : "");
        }
        return 0;
}

/* "first; key value; key value". first: may be anything but a part; NULL: there is none such. */
static int read_parts(struct calendar_request *q, const char *text, const char **first,
                      struct error *wrong)
{
        while (*text) {
                size_t n = strcspn(text, ";\n"), end = n;
                char *part;

                while (end > 0 && strchr(SPACE, text[end - 1]))
                        end--;
                part = arena_printf(&q->arena, "%.*s", (int)end, text);
                part += strspn(part, SPACE);
                if (first && !*first)
                        *first = part;
                else if (*part && read_part(q, part, wrong) < 0)
                        return -1;
                text += n + (text[n] != '\0');
        }
        return 0;
}

static int read_arguments(struct calendar_request *q, const char *word, const char *rest,
                          struct error *wrong)
{
        const char *first = NULL;
        int rc = 0;

        if (q->action != CALENDAR_CREATE)
                rest = read_event(rest, &q->event);
        switch (q->action) {
        case CALENDAR_CREATE:
                rc = read_parts(q, rest, &first, wrong);
                q->fields.when = first;
                q->fields.title_follows = !q->fields.title;
                break;
        case CALENDAR_CHANGE:
                if (strcmp(word, "move") == 0)
                        rc = read_parts(q, rest, &q->fields.when, wrong);
                else
                        rc = read_parts(q, rest, NULL, wrong);
                break;
        case CALENDAR_INVITE:
                read_people(q, rest);
                break;
        case CALENDAR_ANSWER:
        case CALENDAR_REMOVE:
                if (*rest)
                        calendar_request_add_person(q, rest, strlen(rest));
                break;
        default:
                break;
        }
        return rc;
}

struct calendar_request *calendar_command_parse(const struct schedule_conf *conf, const char *args,
                                                struct error *wrong)
{
        const char *names[COUNT(words) + 1] = { NULL }, *near, *rest;
        struct calendar_request *q;
        char word[WORD_MAX];
        size_t i;

        error_clear(wrong);
        rest = read_word(args, word);
        if (strcmp(word, "help") == 0)
                return NULL;
        if (!*args || word[0] == '\0')
                snprintf(word, sizeof(word), "%s", *args ? "?" : "list");
        if (strncmp(word, "cal-", 4) == 0) { /* "/event cal-3" */
                rest = args;
                snprintf(word, sizeof(word), "show");
        }
        for (i = 0; i < COUNT(words) && strcmp(words[i].word, word) != 0; i++)
                names[i] = words[i].word;
        if (i == COUNT(words)) {
                near = settings_nearest(word, names);
                error_set(wrong, ERR_INVALID,
                          "`/event %.20s` is not understood%s%s%s; `/event help` says what is",
                          word, near ? ", perhaps it means `" : "", near ? near : "",
                          near ? "`" : "");
                return NULL;
        }
        q = calendar_request_new(words[i].action, conf);
        q->answer = words[i].answer;
        if (read_arguments(q, word, rest, wrong) < 0) {
                calendar_request_free(q);
                return NULL;
        }
        return q;
}

/* ---- the effect ---- */

struct calendar_effect {
        struct effect effect; /* first, so that they convert */
        struct schedule *schedule;
        struct calendar_request *q; /* NULL: nothing to do */
        struct error wrong;
        char *said; /* what was reported; NULL: nothing yet */
        bool refused;
};

static int report(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err)
{
        struct calendar_effect *c = (struct calendar_effect *)e;
        const char *why = c->q ? c->q->refusal.text : c->wrong.text;

        if (c->q) {
                c->q->dry = true;
                if (calendar_request_run(tx, c->q, err) < 0)
                        return -1;
        }
        c->refused = c->q ? calendar_request_is_refused(c->q) : c->wrong.kind != ERR_NONE;
        if (c->refused)
                buf_addf(answer, "%c%s.", toupper((unsigned char)why[0]), why + 1);
        else
                buf_addstr(answer, c->q ? c->q->text.data : help);
        c->said = c->q ? mem_strdup(c->q->text.data ? c->q->text.data : "") : NULL;
        return 0;
}

static int write_effect(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct calendar_effect *c = (struct calendar_effect *)e;
        struct calendar_request *q = c->q;

        if (!q || !c->said || c->refused || q->action == CALENDAR_SHOW ||
            q->action == CALENDAR_UPCOMING)
                return 0;
        q->dry = false;
        if (calendar_request_run(tx, q, err) < 0)
                return -1;
        if (!calendar_request_is_refused(q) &&
            strcmp(c->said, q->text.data ? q->text.data : "") == 0)
                return 0;
        q->changed = true;
        return calendar_notices_correct(tx, q, err);
}

static void on_committed(struct effect *e)
{
        struct calendar_effect *c = (struct calendar_effect *)e;

        if (c->q)
                calendar_committed(c->schedule, c->q);
}

static void effect_free(struct effect *e)
{
        struct calendar_effect *c = (struct calendar_effect *)e;

        calendar_request_free(c->q);
        free(c->said);
        free(c);
}

struct effect *calendar_command(struct schedule *s, const struct chat_caller *by,
                                const struct incoming *in, const char *args)
{
        struct calendar_effect *c = mem_zalloc(sizeof(*c));

        c->effect = (struct effect){ write_effect, on_committed, effect_free, report };
        c->schedule = s;
        c->q = calendar_command_parse(s->conf, args, &c->wrong);
        if (!c->q)
                return &c->effect;
        calendar_request_set_by(c->q, by);
        c->q->by.username = arena_strdup(&c->q->arena, in->sender_username);
        c->q->by.name = arena_strdup(&c->q->arena, incoming_sender(in));
        if (in->time_ms > 0 && in->time_ms < c->q->now_ms)
                c->q->said_ms = in->time_ms;
        if (in->event > 0)
                c->q->request_key = arena_printf(&c->q->arena, "evt:%lld", (long long)in->event);
        return &c->effect;
}

const struct schedule_command calendar_commands[] = {
        { "event", calendar_command },
        { NULL, NULL },
};
