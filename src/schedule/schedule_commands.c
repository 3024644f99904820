/*
 * schedule_commands: /remind, /reminders and /quiet.
 *
 * The answer is read before the decision is written, so it says what the write will do; the write
 * itself cannot refuse any more.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "schedule/reach.h"
#include "schedule/reminders.h"
#include "schedule/schedule_private.h"
#include "schedule/when.h"

#define SPACE       " \t\r\n\v\f"
#define SHOWN_CHARS 80                  /* of a text in a list */
#define SOON_MS     ((int64_t)43200000) /* how long it takes is said, too */
#define OLD_MS      ((int64_t)86400000) /* of a message that a wish still counts from */

struct command {
        struct effect effect; /* first, so that they convert */
        struct schedule *schedule;
        const struct schedule_conf *conf;
        const struct incoming *in; /* outlives the commit */
        const char *args;          /* the same */
        struct arena arena;
        const char *platform, *identity;
        bool is_admin;
        int64_t now_ms, asked_ms; /* the clock; when the message was written */
        int64_t person;           /* as known when the answer is read; 0: not yet */
        /* what the write will do */
        struct schedule_row row;
        bool adds;
        int64_t cancels[REMINDERS_SHOWN];
        size_t cancel_count;
        struct person_reach reach;
        bool sets_reach;
};

typedef int report_fn(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err);

/* A refusal is an answer, unless the store failed. */
static int answer_refusal(struct buf *answer, const struct error *err)
{
        if (err->kind != ERR_INVALID && err->kind != ERR_LIMIT && err->kind != ERR_MISSING &&
            err->kind != ERR_CONFLICT)
                return -1;
        buf_addf(answer, "That did not work: %s.", err->text);
        return 0;
}

static void add_short(struct buf *answer, const char *text)
{
        size_t line = strcspn(text, "\r\n");
        size_t n = utf8_prefix(text, line, UTF8_CODE_POINTS, SHOWN_CHARS);

        buf_add(answer, text, n);
        if (text[n])
                buf_addstr(answer, "…");
}

/* ---- /remind ---- */

static struct reminder_wish wish_of(struct command *c)
{
        const struct incoming *in = c->in;

        return (struct reminder_wish){
                .source = "reminder",
                .request_key = arena_printf(&c->arena, "command:%lld", (long long)in->event),
                .when = c->args,
                .adapter = in->adapter,
                .channel = in->channel,
                .thread = in->thread,
                .person = c->person,
                .action = SCHEDULE_MESSAGE,
                .mention = in->chat == CHAT_DM ? NULL : in->sender_id,
                .asked_by_self = true,
                .max_age_seconds = -1,
                .created_by = c->identity,
                .trace = in->trace,
                .now_ms = c->asked_ms,
        };
}

static int report_remind(struct store_tx *tx, struct effect *e, struct buf *answer,
                         struct error *err)
{
        struct command *c = (struct command *)e;
        struct reminder_wish wish;

        if (reminder_person(tx, c->platform, c->in->sender_id, &c->person, err) < 0)
                return -1;
        wish = wish_of(c);
        if (reminder_make(tx, c->conf, &wish, &c->arena, &c->row, err) < 0)
                return answer_refusal(answer, err);
        c->adds = true;
        buf_addstr(answer, "⏰ I will remind you ");
        if (c->row.kind == SCHEDULE_ONE_SHOT && c->row.at_ms - c->asked_ms < SOON_MS) {
                buf_addstr(answer, "in ");
                when_describe_span(c->row.at_ms - c->asked_ms, answer);
                buf_addstr(answer, ", ");
        }
        reminder_describe_time(&c->row, c->now_ms, answer);
        buf_addf(answer, " (%s): ", c->row.timezone);
        add_short(answer, c->row.text);
        if (!c->conf->enabled)
                buf_addstr(answer,
                           "\n⚠️ Reminders are switched off at the moment. It comes when "
                           "the operator switches them on.");
        return 0;
}

/* ---- /reminders ---- */

/* Where people have no names, as in a terminal, they see what the chat has. */
static struct reminder_viewer viewer_of(const struct command *c)
{
        return (struct reminder_viewer){ .person = c->person,
                                         .identity = c->identity,
                                         .adapter = c->in->adapter,
                                         .channel = c->in->channel,
                                         .direct = c->in->chat == CHAT_DM,
                                         .shared = c->is_admin || !c->identity };
}

static int report_list(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err)
{
        struct command *c = (struct command *)e;
        struct schedule_row *rows[REMINDERS_SHOWN];
        struct reminder_viewer v;
        bool more;
        int count;

        if (reminder_person(tx, c->platform, c->in->sender_id, &c->person, err) < 0)
                return -1;
        v = viewer_of(c);
        v.shared = !c->identity;
        count = reminders_list(tx, &v, rows, &more, err);
        if (count < 0)
                return -1;
        buf_addstr(answer, count == 0 ? "You have no reminders here. `/remind 30m tea` makes one."
                                      : "Your reminders:");
        for (int i = 0; i < count; i++) {
                buf_addf(answer, "\n- `sch-%lld` ", (long long)rows[i]->id);
                reminder_describe_time(rows[i], c->now_ms, answer);
                buf_addstr(answer, ": ");
                add_short(answer, rows[i]->text);
                free(rows[i]);
        }
        if (more)
                buf_addstr(answer, "\n- and more, which are shown when some of these are over");
        if (count > 0)
                buf_addstr(answer, "\n\n`/reminders cancel sch-12` ends one of them.");
        return 0;
}

/* "cancel all": those that the list shows. */
static int cancel_all(struct store_tx *tx, struct command *c, const struct reminder_viewer *v,
                      struct buf *answer, struct error *err)
{
        struct schedule_row *rows[REMINDERS_SHOWN];
        struct reminder_viewer own = *v;
        bool more;
        int count;

        own.shared = !c->identity;
        count = reminders_list(tx, &own, rows, &more, err);
        if (count < 0)
                return -1;
        for (int i = 0; i < count; i++) {
                if (strcmp(rows[i]->source, "reminder") == 0)
                        c->cancels[c->cancel_count++] = rows[i]->id;
                free(rows[i]);
        }
        buf_addf(answer, "%zu reminder%s cancelled.%s", c->cancel_count,
                 c->cancel_count == 1 ? " is" : "s are",
                 more ? " There are more: `/reminders` lists them." : "");
        return 0;
}

static int report_cancel(struct store_tx *tx, struct effect *e, struct buf *answer,
                         struct error *err)
{
        struct command *c = (struct command *)e;
        int64_t id = reminder_number(c->args);
        struct reminder_viewer v;
        struct schedule_row *row;

        if (reminder_person(tx, c->platform, c->in->sender_id, &c->person, err) < 0)
                return -1;
        v = viewer_of(c);
        if (strncasecmp(c->args, "all", 3) == 0 && !c->args[3 + strspn(c->args + 3, SPACE)])
                return cancel_all(tx, c, &v, answer, err);
        if (id == 0) {
                buf_addstr(answer, "Say which one: `/reminders cancel sch-12`, or `all`. "
                                   "`/reminders` lists them.");
                return 0;
        }
        if (reminder_check_cancel(tx, &v, id, &row, err) < 0)
                return answer_refusal(answer, err);
        c->cancels[c->cancel_count++] = id;
        buf_addf(answer, "`sch-%lld` is cancelled: ", (long long)id);
        add_short(answer, row->text);
        free(row);
        return 0;
}

static int report_usage(struct store_tx *tx, struct effect *e, struct buf *answer,
                        struct error *err)
{
        (void)tx;
        (void)e;
        (void)err;
        buf_addstr(answer, "Say when and what:\n- `/remind 30m tea`\n- `/remind tomorrow 9:00 call "
                           "mum`\n- `/remind every monday 20:00 take out the bins`\n\n`/reminders` "
                           "lists what is to come.");
        return 0;
}

/* ---- /quiet ---- */

static void describe_reach(const struct command *c, const struct person_reach *r,
                           struct buf *answer)
{
        const struct setting_list *common = &c->conf->quiet_hours;

        if (r->quiet_hours && strcmp(r->quiet_hours, "off") == 0)
                buf_addstr(answer, "You have no quiet hours: messages that you did not ask for "
                                   "come at any time.");
        else if (r->quiet_hours)
                buf_addf(answer, "Your quiet hours are %s.", r->quiet_hours);
        else if (common->count == 0)
                buf_addstr(answer, "You have no quiet hours. `/quiet 22:00-07:00` sets them.");
        else
                buf_addstr(answer, "Your quiet hours are those of everybody: ");
        for (size_t i = 0; !r->quiet_hours && i < common->count; i++)
                buf_addf(answer, "%s%s", common->items[i], i + 1 < common->count ? ", " : ".");
}

/* "22:00-07:00 Europe/Berlin", "zone Europe/Berlin", "off", "default". */
static void read_quiet(struct command *c, struct person_reach *r)
{
        const char *args = c->args;
        size_t n = strlen(args), last = 0;
        bool only_zone = strncasecmp(args, "zone ", 5) == 0;

        while (n > 0 && strchr(SPACE, args[n - 1]))
                n--;
        for (size_t i = 0; i < n; i++)
                if (strchr(SPACE, args[i]))
                        last = i + 1;
        if (only_zone || memchr(args + last, '/', n - last)) {
                r->timezone = arena_printf(&c->arena, "%.*s", (int)(n - last), args + last);
                n = last;
                while (n > 0 && strchr(SPACE, args[n - 1]))
                        n--;
        }
        if (n == 0 || only_zone)
                return;
        r->quiet_hours = n == 7 && strncasecmp(args, "default", n) == 0
                                 ? NULL
                                 : arena_printf(&c->arena, "%.*s", (int)n, args);
        if (n == 3 && strncasecmp(args, "off", n) == 0)
                r->quiet_hours = "off";
}

static int report_quiet(struct store_tx *tx, struct effect *e, struct buf *answer,
                        struct error *err)
{
        struct command *c = (struct command *)e;
        struct person_reach *stored = NULL;
        const char *zone;

        if (reminder_person(tx, c->platform, c->in->sender_id, &c->person, err) < 0 ||
            (c->person > 0 && person_row_get_reach(tx, c->person, &stored, err) < 0))
                return -1;
        if (stored) {
                c->reach = (struct person_reach){ arena_strdup(&c->arena, stored->timezone),
                                                  arena_strdup(&c->arena, stored->quiet_hours),
                                                  arena_strdup(&c->arena, stored->reach_at),
                                                  stored->daily_cap };
                free(stored);
        }
        if (*c->args && !c->identity) {
                buf_addstr(answer, "That did not work: there is no account here to keep it for. "
                                   "`schedule.quietHours` and `schedule.timezone` in the "
                                   "configuration are for everybody.");
                return 0;
        }
        if (*c->args) {
                read_quiet(c, &c->reach);
                if (reach_check(&c->reach, err) < 0)
                        return answer_refusal(answer, err);
                c->sets_reach = true;
        }
        describe_reach(c, &c->reach, answer);
        zone = c->reach.timezone ? c->reach.timezone
                                 : reminder_zone(tx, c->conf, c->person, &c->arena, err);
        if (!zone)
                return -1;
        buf_addf(answer, " Your time zone is %s.", zone);
        if (!*c->args)
                buf_addstr(answer, " Change them with `/quiet 22:00-07:00`, `/quiet off`, or "
                                   "`/quiet zone Europe/Berlin`.");
        return 0;
}

/* ---- the effect ---- */

/* The person may be recorded in this transaction. */
static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct command *c = (struct command *)e;
        int64_t id, person;

        if (reminder_person(tx, c->platform, c->in->sender_id, &person, err) < 0)
                return -1;
        c->row.person = person;
        if (c->adds && schedule_row_insert(tx, &c->row, &id, err) < 0)
                return -1;
        for (size_t i = 0; i < c->cancel_count; i++)
                if (schedule_row_cancel(tx, c->cancels[i], c->identity, c->now_ms, err) < 0)
                        return -1;
        if (!c->sets_reach || person == 0)
                return 0;
        return person_row_set_reach(tx, person, &c->reach, c->now_ms, err) < 0 ? -1 : 0;
}

static void on_committed(struct effect *e)
{
        struct command *c = (struct command *)e;

        schedule_wake(c->schedule);
}

static void command_free(struct effect *e)
{
        struct command *c = (struct command *)e;

        arena_release(&c->arena);
        free(c);
}

static struct effect *command_new(struct schedule *s, const struct chat_caller *by,
                                  const struct incoming *in, const char *args, report_fn *report)
{
        struct command *c = mem_zalloc(sizeof(*c));

        c->effect = (struct effect){ write_command, on_committed, command_free, report };
        c->schedule = s;
        c->conf = s->conf;
        c->in = in;
        c->args = args;
        arena_init(&c->arena);
        c->platform = arena_strdup(&c->arena, by->platform);
        c->identity = reminder_identity(&c->arena, by->platform, by->sender_id);
        c->is_admin = by->is_admin;
        c->reach.daily_cap = -1;
        c->now_ms = c->asked_ms = clock_wall_ms();
        if (in->time_ms > c->now_ms - OLD_MS && in->time_ms < c->now_ms)
                c->asked_ms = in->time_ms;
        return &c->effect;
}

/* "cancel sch-3" with its argument; NULL: another word. */
static const char *after_word(const char *args, const char *word)
{
        size_t n = strlen(word);

        if (strncasecmp(args, word, n) != 0 || (args[n] && !strchr(SPACE, args[n])))
                return NULL;
        return args + n + strspn(args + n, SPACE);
}

static struct effect *run_reminders(struct schedule *s, const struct chat_caller *by,
                                    const struct incoming *in, const char *args)
{
        const char *which = after_word(args, "cancel");

        return which ? command_new(s, by, in, which, report_cancel)
                     : command_new(s, by, in, args, report_list);
}

static struct effect *run_remind(struct schedule *s, const struct chat_caller *by,
                                 const struct incoming *in, const char *args)
{
        const char *rest = after_word(args, "list");

        if (after_word(args, "cancel") || (rest && !*rest))
                return run_reminders(s, by, in, args);
        return command_new(s, by, in, args, *args ? report_remind : report_usage);
}

static struct effect *run_quiet(struct schedule *s, const struct chat_caller *by,
                                const struct incoming *in, const char *args)
{
        return command_new(s, by, in, args, report_quiet);
}

const struct schedule_command reminder_commands[] = {
        { "remind", run_remind },
        { "reminders", run_reminders },
        { "quiet", run_quiet },
        { NULL, NULL },
};
