#include "dispatch/commands.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/access/access_check.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/guards.h"
#include "dispatch/tx_extra.h"

#define WORD_MAX        20
#define COMMANDS        20 /* of one person in one channel */
#define COMMAND_SECONDS 60
#define PAUSE_MINUTES   ((int64_t)60 * 24 * 366)

/* clang-format off */
const struct chat_command chat_commands[] = {
        { "new", "begin a new conversation: what was said before no longer counts", COMMAND_NEW, false },
        { "stop", "stop the answer that is being made", COMMAND_STOP, false },
        { "status", "what is going on here", COMMAND_STATUS, false },
        { "why", "why the last message was answered, or was not", COMMAND_WHY, false },
        { "pause", "the agent is silent here; `/pause 30` for thirty minutes", COMMAND_HANDLED, true },
        { "resume", "the agent answers again", COMMAND_HANDLED, true },
        { "help", "this list", COMMAND_HANDLED, false },
        { NULL, NULL, COMMAND_NONE, false },
};
/* clang-format on */

/* ---- reading ---- */

static const char *skip_space(const char *p)
{
        while (isspace((unsigned char)*p))
                p++;
        return p;
}

/* Mentions before the command: "@mybot /stop", "<@42> /stop". */
static const char *skip_mentions(const char *p)
{
        p = skip_space(p);
        while (*p == '@' || strncmp(p, "<@", 2) == 0)
                p = skip_space(p + strcspn(p, " \t\r\n"));
        return p;
}

/*
 * The word behind the slash, in lower case; returns what follows it, NULL when there is no such
 * word.
 */
static const char *read_word(const char *text, char word[WORD_MAX])
{
        const char *p = skip_mentions(text ? text : "");
        size_t n = 0;

        if (*p++ != '/')
                return NULL;
        for (; isalpha((unsigned char)*p) && n + 1 < WORD_MAX; p++)
                word[n++] = (char)tolower((unsigned char)*p);
        word[n] = '\0';
        if (*p == '@')
                p += strcspn(p, " \t\r\n");
        return n > 0 && (*p == '\0' || isspace((unsigned char)*p)) ? skip_space(p) : NULL;
}

static const struct chat_command *find(const char *word)
{
        for (const struct chat_command *c = chat_commands; c->name; c++) {
                if (strcmp(c->name, word) == 0)
                        return c;
        }
        return NULL;
}

const struct chat_command *command_read(const char *text, const char **rest)
{
        char word[WORD_MAX];
        const struct chat_command *c;

        *rest = read_word(text, word);
        c = *rest ? find(word) : NULL;
        /* "/new ideas for the party" is something to answer */
        return c && (**rest == '\0' || strcmp(c->name, "pause") == 0) ? c : NULL;
}

const struct chat_command *command_meant(const char *text)
{
        const char *names[COUNT(chat_commands)] = { NULL }, *near, *rest;
        char word[WORD_MAX];

        rest = read_word(text, word);
        if (!rest || *rest != '\0' || find(word) || strlen(word) < 3)
                return NULL;
        for (size_t i = 0; chat_commands[i].name; i++)
                names[i] = chat_commands[i].name;
        near = settings_nearest(word, names);
        return near && near[0] == word[0] ? find(near) : NULL;
}

/* ---- the guard ---- */

/* Is it said to the bot, as far as one can tell without rules? */
static bool is_addressed(const struct matter *m)
{
        return m->adapter->trusted || m->in->chat == CHAT_DM || m->in->is_mention ||
               m->in->is_reply || m->live;
}

/*
 * Whose conversation it is about is found as for a message. Where a rule says off the bot is not
 * there at all.
 */
static bool is_meant(struct matter *m)
{
        bool answered = rule_select_passes(m), off = m->rule && m->rule->off;

        buf_clear(&m->d->reason);
        m->out->agent = rule_select_agent(m);
        if (!off && m->out->agent && (answered || is_addressed(m))) {
                conversation_name(m);
                return true;
        }
        /* what earlier guards want stored stays */
        *m->out = (struct decision){ .extra = m->out->extra };
        return false;
}

static bool is_admin(const struct matter *m)
{
        return access_check_is_admin(m->d->policy, m->adapter, m->in);
}

static void add_help(const struct matter *m, struct buf *out)
{
        buf_addstr(out, "What I understand besides your questions:");
        for (const struct chat_command *c = chat_commands; c->name; c++) {
                if (!c->admins || is_admin(m))
                        buf_addf(out, "\n- `/%s`: %s", c->name, c->help);
        }
        if (m->d->policy && !m->adapter->trusted && m->in->chat == CHAT_DM) /* link.h */
                buf_addstr(out, "\n- `/link`: an account of yours elsewhere is you as well");
}

/* Commands cost nothing, but their answers are messages. */
bool command_is_heard(struct matter *m)
{
        static const struct turn_rate rate = { COMMANDS, COMMAND_SECONDS };
        struct rate_key who = { m->in->adapter, m->in->channel, m->in->sender_id, "command" };

        if (rate_limit_wait_ms(m->d->rates, &who, rate, m->now_ms) > 0)
                return matter_refuse(
                        m, "the sender gave %d commands within %d seconds here, more are not heard",
                        COMMANDS, COMMAND_SECONDS);
        if (!m->dry)
                rate_limit_count(m->d->rates, &who, rate, m->now_ms);
        return true;
}

static bool is_permitted(struct matter *m, const struct chat_command *c)
{
        if (!c->admins || is_admin(m))
                return true;
        matter_notice(m, "Only admins may use `/%s`.", c->name);
        return matter_refuse(m, "the command /%s is for admins", c->name);
}

static bool refuse_slip(struct matter *m, const struct chat_command *meant)
{
        matter_notice(m, "Did you mean `/%s`? `/help` lists what I understand.", meant->name);
        return matter_refuse(m, "it is almost the command /%s", meant->name);
}

bool is_no_command(struct matter *m)
{
        const struct incoming *in = m->in;
        const struct chat_command *c, *meant;

        if (!m->adapter->commands || in->sender_is_bot ||
            strcmp(event_type(in), EVENT_MESSAGE_RECEIVED) != 0)
                return true;
        c = command_read(in->text, &m->command_rest);
        meant = c ? NULL : command_meant(in->text);
        if ((!c && !meant) || !is_meant(m))
                return true;
        if (!age_passes(m) || !command_is_heard(m))
                return false;
        if (meant)
                return refuse_slip(m, meant);
        if (!is_permitted(m, c))
                return false;
        m->command = c;
        return matter_refuse(m, "the command /%s was carried out", c->name);
}

/* ---- carrying out ---- */

/* The next message goes on with a session that has no past. */
static void begin_session(struct matter *m)
{
        if (m->window_seconds <= 0)
                return;
        buf_clear(&m->d->session);
        chat_session_name(m->adapter->platform, m->in, &m->d->session);
        chat_session_touch(m->d->sessions, m->d->place.data, m->d->session.data, false, m->now_ms);
        tx_extra_add(m->out,
                     chat_session_touch_extra(m->d->place.data, m->d->session.data, m->now_ms));
}

static struct handovers *handover_of(const struct matter *m)
{
        return m->d->policy ? m->d->policy->handovers : NULL;
}

static struct chat_key chat_of(const struct matter *m)
{
        return (struct chat_key){ m->in->adapter, m->in->channel, m->in->thread };
}

static const char *name_of(const struct incoming *in)
{
        if (in->sender_name)
                return in->sender_name;
        return in->sender_username ? in->sender_username : in->sender_id;
}

/* "30 back after lunch": minutes, if it begins with a number, and a reason. */
static void pause_here(struct matter *m)
{
        char *reason;
        long long minutes = strtoll(m->command_rest, &reason, 10);
        struct handover p = { .chat = chat_of(m), .by = name_of(m->in), .since_ms = m->now_ms };

        reason += strspn(reason, " \t\r\n");
        if (minutes > 0 && minutes <= PAUSE_MINUTES)
                p.until_ms = m->now_ms + minutes * 60000;
        p.reason = *reason ? reason : NULL;
        if (!handover_of(m) || !handover_pause_with(handover_of(m), &p, m->out))
                matter_notice(m, "It could not be paused: too many chats are.");
        else if (p.until_ms > 0)
                matter_notice(
                        m, "The agent is silent here for %lld minutes; `/resume` ends it before.",
                        minutes);
        else
                matter_notice(m, "The agent is silent here until somebody says `/resume`.");
}

static void resume_here(struct matter *m)
{
        struct chat_key here = chat_of(m);

        if (handover_of(m) && handover_resume_with(handover_of(m), &here, m->out))
                matter_notice(m, "The agent answers again.");
        else if (handover_of(m) && handover_find(handover_of(m), &here))
                matter_notice(m, "The whole channel is paused: say `/resume` there.");
        else
                matter_notice(m, "The agent was not paused here.");
}

void command_carry_out(struct matter *m)
{
        const char *name = m->command->name;

        m->out->command = m->command->does;
        if (m->command->does == COMMAND_NEW)
                begin_session(m);
        else if (strcmp(name, "pause") == 0)
                pause_here(m);
        else if (strcmp(name, "resume") == 0)
                resume_here(m);
        else if (strcmp(name, "help") == 0)
                add_help(m, &m->d->notice);
        m->out->notice = m->d->notice.len > 0 ? m->d->notice.data : NULL;
}
