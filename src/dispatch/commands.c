#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/dispatch_private.h"

#define SPACE             " \t\r\n\v\f"
#define WORD_MAX          20
#define COMMANDS_MAX      20 /* per sender and channel */
#define COMMANDS_SECONDS  60
#define PAUSE_MINUTES_MAX ((int64_t)60 * 24 * 366)

static const struct chat_command commands[] = {
        { "new", "start a new conversation and forget this one", COMMAND_NEW, false },
        { "stop", "stop the current answer", COMMAND_STOP, false },
        { "status", "show what is running here", COMMAND_STATUS, false },
        { "why", "explain why the last message was or was not answered", COMMAND_WHY, false },
        { "pause", "pause the agent here; `/pause 30` for thirty minutes", COMMAND_HANDLED, true },
        { "resume", "let the agent answer again", COMMAND_HANDLED, true },
        { "resend", "send `dlv-12` again, or with `no` leave it", COMMAND_RESEND, true },
        { "approve", "allow what `apr-12` asks; with `always` also in future", COMMAND_APPROVE,
          false },
        { "refuse", "refuse what `apr-12` asks", COMMAND_REFUSE, false },
        { "remind", "be reminded: `/remind 30m tea`, `/remind friday 18:00 call mum`",
          COMMAND_EFFECT, false },
        { "reminders", "list your reminders; `/reminders cancel sch-12` ends one", COMMAND_EFFECT,
          false },
        { "quiet", "when I leave you alone: `/quiet 22:00-07:00`, `/quiet off`", COMMAND_EFFECT,
          false },
        { "event", "plan something together: `/event new friday 20:00 Chess`, `/event list`",
          COMMAND_EFFECT, false },
        { "sessions", "list coding sessions that you may steer", COMMAND_EFFECT, false, true },
        { "steer", "tell a coding agent something: `/steer ses-3 use the other branch`",
          COMMAND_EFFECT, false, true },
        { "reply", "the same as `/steer`", COMMAND_EFFECT, false, true },
        { "followup", "tell it when it would stop: `/followup ses-3 run the tests`", COMMAND_EFFECT,
          false, true },
        { "abort", "let a coding agent stop: `/abort ses-3`", COMMAND_EFFECT, false, true },
        { "notify", "what you hear of sessions: `/notify errors`, `/notify off`", COMMAND_EFFECT,
          false, true },
        { "help", "show this list", COMMAND_HANDLED, false },
};

/* A message in the chat of a session; no word calls it. */
static const struct chat_command steering = { "", "", COMMAND_EFFECT, false, true };
/* Answers to a question of a session: "/approve sap-3". */
static const struct chat_command session_verdicts[] = {
        { "approve", "", COMMAND_EFFECT, false, true },
        { "refuse", "", COMMAND_EFFECT, false, true },
};

/* ---- parsing ---- */

/*
 * Reads the word after the slash, in lower case, skipping mentions ("@mybot /stop", "<@42> /stop").
 * Returns the rest; NULL: no such word.
 */
static const char *read_word(const char *text, char word[WORD_MAX])
{
        const char *p = text ? text + strspn(text, SPACE) : "";
        size_t n = 0;

        while (*p == '@' || strncmp(p, "<@", 2) == 0) {
                p += strcspn(p, SPACE);
                p += strspn(p, SPACE);
        }
        if (*p++ != '/')
                return NULL;
        for (; isalpha((unsigned char)*p) && n + 1 < WORD_MAX; p++)
                word[n++] = (char)tolower((unsigned char)*p);
        word[n] = '\0';
        if (*p == '@')
                p += strcspn(p, SPACE);
        return n > 0 && (*p == '\0' || strchr(SPACE, *p)) ? p + strspn(p, SPACE) : NULL;
}

/*
 * Does the command name a bot? Platforms remove the names of ours, so it is another one, unless
 * the message is addressed to ours all the same.
 */
static bool names_other(const struct incoming *in)
{
        const char *p = in->text ? in->text + strspn(in->text, SPACE) : "";

        if (in->is_mention || in->chat == CHAT_DM)
                return false;
        return *p == '@' || strncmp(p, "<@", 2) == 0 ||
               (*p == '/' && p[strcspn(p, SPACE "@")] == '@');
}

/* What people write as well. */
static const char *const aliases[][2] = { { "remindme", "remind" },
                                          { "reminder", "remind" },
                                          { "events", "event" } };

static const struct chat_command *find(const char *word)
{
        for (size_t i = 0; i < COUNT(aliases); i++)
                word = strcmp(aliases[i][0], word) == 0 ? aliases[i][1] : word;
        for (size_t i = 0; i < COUNT(commands); i++) {
                if (strcmp(commands[i].name, word) == 0)
                        return &commands[i];
        }
        return NULL;
}

static bool is_session_verdict(const struct chat_command *c)
{
        return c >= session_verdicts && c < session_verdicts + COUNT(session_verdicts);
}

static bool is_verdict(const struct chat_command *c)
{
        return c->does == COMMAND_APPROVE || c->does == COMMAND_REFUSE || is_session_verdict(c);
}

/* "/event yes cal-3", which buttons below an invitation say; not "/event new friday local-1". */
static bool answers_event(const struct chat_command *c, const char *args)
{
        args += strcspn(args, SPACE);
        return strcmp(c->name, "event") == 0 && strncmp(args + strspn(args, SPACE), "cal-", 4) == 0;
}

/* "/abort ses-3", which a button below its first message says. */
static bool stops_session(const struct chat_command *c, const char *args)
{
        return strcmp(c->name, "abort") == 0 && strncmp(args, "ses-", 4) == 0;
}

const struct chat_command *command_parse(const char *text, const char **args)
{
        char word[WORD_MAX];
        const struct chat_command *c;

        *args = read_word(text, word);
        c = *args ? find(word) : NULL;
        if (c && is_verdict(c) && strncmp(*args, "sap-", 4) == 0)
                return &session_verdicts[c->does == COMMAND_REFUSE];
        if (c && is_verdict(c))
                return strncmp(*args, "apr-", 4) == 0 ? c : NULL;
        /* "/new ideas for the party" goes to the agent */
        return c && (**args == '\0' || strcmp(c->name, "pause") == 0 || c->does == COMMAND_EFFECT ||
                     (c->does == COMMAND_RESEND && strncmp(*args, "dlv-", 4) == 0))
                       ? c
                       : NULL;
}

const struct chat_command *command_suggest(const char *text)
{
        const char *names[COUNT(commands) + 1] = { NULL }, *near, *rest;
        char word[WORD_MAX];

        rest = read_word(text, word);
        if (!rest || *rest != '\0' || find(word) || strlen(word) < 3)
                return NULL;
        for (size_t i = 0; i < COUNT(commands); i++)
                names[i] = commands[i].name;
        near = settings_nearest(word, names);
        return near && near[0] == word[0] ? find(near) : NULL;
}

/* ---- guard ---- */

static const struct turn_rate command_rate = { COMMANDS_MAX, COMMANDS_SECONDS };

static struct rate_key command_rate_key(const struct incoming *in)
{
        return (struct rate_key){ in->adapter, in->channel, in->sender_id, "command" };
}

/* Commands are free, but their answers are messages. */
bool command_rate_guard(struct evaluation *e)
{
        struct rate_key key = command_rate_key(e->in);

        return rate_limit_wait_ms(e->d->rates, &key, command_rate, e->now_ms) == 0 ||
               evaluation_refuse(
                       e, "the sender gave %d commands within %d seconds here, more are ignored",
                       COMMANDS_MAX, COMMANDS_SECONDS);
}

void command_count(struct evaluation *e)
{
        struct rate_key key = command_rate_key(e->in);

        rate_limit_count(e->d->rates, &key, command_rate, e->now_ms);
}

static struct chat_caller caller_of(const struct evaluation *e)
{
        const struct incoming *in = e->in;

        return (struct chat_caller){
                .adapter = in->adapter,
                .platform = e->adapter->platform,
                .channel = in->channel,
                .thread = in->thread,
                .chat = in->chat,
                .guild = in->guild,
                .sender_id = in->sender_id,
                .sender_name = in->sender_name,
                .reply_to = in->reply_to,
                .trace = in->trace,
                .is_admin = access_check_is_admin(e->d->policy, e->adapter, in),
        };
}

/* Steering runs commands on somebody's machine: a name that a client gives is no proof. */
static struct chat_caller session_caller_of(const struct evaluation *e)
{
        struct chat_caller by = caller_of(e);

        if (e->adapter->trusted) {
                by.is_admin = incoming_is_operators(e->in);
                by.sender_id = by.is_admin ? by.sender_id : NULL;
        }
        return by;
}

/* What a message means where a session is shown. */
static enum remote_part session_part(const struct evaluation *e)
{
        struct chat_caller by;

        if (!e->d->remote.part)
                return REMOTE_NONE;
        by = session_caller_of(e);
        return e->d->remote.part(e->d->remote.remote, &by);
}

static bool is_addressed(const struct evaluation *e)
{
        return e->in->chat == CHAT_DM || e->in->is_mention || e->in->is_reply || e->live_session ||
               session_part(e) != REMOTE_NONE;
}

/* Said once: a person waits for what the agent makes of it. */
static bool steering_rate_guard(struct evaluation *e)
{
        struct rate_key key = command_rate_key(e->in);

        if (command_rate_guard(e))
                return true;
        if (!e->dry && rate_limit_claim_notice(e->d->rates, &key, command_rate, e->now_ms))
                evaluation_notify(
                        e,
                        "Too many messages: I pass on %d of one person within %d seconds. "
                        "The agent did not get the last one.",
                        COMMANDS_MAX, COMMANDS_SECONDS);
        return false;
}

/* No agent answers where a session is shown: it is steered, by those who may. */
static bool session_guard(struct evaluation *e)
{
        enum remote_part part = session_part(e);

        if (part == REMOTE_NONE)
                return true;
        if (part == REMOTE_LISTENER)
                return evaluation_refuse(e, "a session is shown here, which the sender may not "
                                            "steer");
        if (!evaluation_age_guard(e) || !steering_rate_guard(e))
                return false;
        e->counts_command = true;
        if (!e->in->text || !e->in->text[strspn(e->in->text, SPACE)]) {
                if (e->in->attachment_count > 0)
                        evaluation_notify(e, "I can pass on only text to the agent.");
                return evaluation_refuse(e, "a session is shown here, and it has no text");
        }
        if (e->in->attachment_count > 0)
                evaluation_notify(e, "The agent gets the text, but no files.");
        e->command = &steering;
        return evaluation_refuse(e, "it steers the session that is shown here");
}

/*
 * Finds the command's conversation as for a message. A rule with "off" also ignores commands. The
 * schedule's commands need no agent.
 */
static bool find_conversation(struct evaluation *e, const struct chat_command *c)
{
        bool meant = rule_select_guard(e) || e->adapter->trusted || is_addressed(e);

        buf_clear(&e->d->reason);
        e->out->agent = rule_select_agent(e);
        if (meant && (e->out->agent || (c && c->does == COMMAND_EFFECT)) &&
            !(e->rule && e->rule->off)) {
                chat_session_assign(e);
                return true;
        }
        *e->out = (struct decision){ 0 };
        return false;
}

/*
 * "/approve apr-12", a pressed button, or "yes" to a question: the road knows whether the sender
 * may decide, the schedule who is invited. The question has its own time limit, so even an old
 * answer counts.
 */
static bool take_answer(struct evaluation *e, const struct chat_command *c)
{
        e->command = c;
        e->counts_command = true;
        return evaluation_refuse(e, "it answers an %s", is_verdict(c) ? "approval" : "invitation");
}

static bool carry_out(struct evaluation *e, const struct chat_command *c)
{
        e->command = c;
        e->counts_command = true;
        return evaluation_refuse(e, "the command /%s was carried out", c->name);
}

/* Whatever the rules say: a pressed button, and a command where a session is shown. */
static bool is_for_session(const struct evaluation *e, const struct chat_command *c)
{
        return stops_session(c, e->command_args) ||
               (c->of_sessions && e->adapter->commands && session_part(e) == REMOTE_STEERS);
}

/* A person in a hurry writes "stop"; some platforms do not even let a "/stop" through. */
static bool says_stop(const char *text)
{
        if (!text)
                return false;
        text += strspn(text, SPACE);
        return strncasecmp(text, "stop", 4) == 0 && !text[4 + strspn(text + 4, SPACE ".!")];
}

bool command_guard(struct evaluation *e)
{
        const struct chat_command *c, *near;
        bool approves, bare;

        if (e->in->is_for_other)
                return evaluation_refuse(e, "it is a command for another bot");
        if (e->in->sender_is_bot || strcmp(e->type, EVENT_MESSAGE_RECEIVED) != 0)
                return true;
        if (names_other(e->in))
                return session_guard(e);
        c = command_parse(e->in->text, &e->command_args);
        if (!c && e->query && e->query->answers_approval &&
            e->query->answers_approval(e->query->arg, &approves))
                c = find(approves ? "approve" : "refuse");
        /* buttons work even where commands do not */
        if (c && (is_verdict(c) || answers_event(c, e->command_args)))
                return command_rate_guard(e) && take_answer(e, c);
        if (c && is_for_session(e, c))
                return evaluation_age_guard(e) && steering_rate_guard(e) && carry_out(e, c);
        if (!e->adapter->commands)
                return session_guard(e);
        near = c ? NULL : command_suggest(e->in->text);
        bare = !c && says_stop(e->in->text) && session_part(e) == REMOTE_NONE;
        if (bare) {
                c = find("stop");
                e->command_args = "";
        }
        if ((!c && !near) || !find_conversation(e, c))
                return session_guard(e);
        if (bare && !is_addressed(e)) { /* people say it to each other */
                *e->out = (struct decision){ 0 };
                return true;
        }
        if (!evaluation_age_guard(e) || !command_rate_guard(e))
                return false;
        e->counts_command = true;
        if (near) {
                evaluation_notify(e, "Did you mean `/%s`? `/help` lists what I understand.",
                                  near->name);
                return evaluation_refuse(e, "it is almost the command /%s", near->name);
        }
        if (c->admins_only && !access_check_is_admin(e->d->policy, e->adapter, e->in)) {
                evaluation_notify(e, "Only admins may use `/%s`.", c->name);
                return evaluation_refuse(e, "the command /%s is for admins", c->name);
        }
        return carry_out(e, c);
}

/* ---- execution ---- */

/* "30 back after lunch": optional minutes and a reason. */
static void pause_agent(struct evaluation *e)
{
        const struct incoming *in = e->in;
        struct handovers *all = e->d->policy ? e->d->policy->handovers : NULL;
        char *reason;
        long long minutes = strtoll(e->command_args, &reason, 10);
        struct handover h = { .chat = { in->adapter, in->channel, in->thread },
                              .by = in->sender_name       ? in->sender_name
                                    : in->sender_username ? in->sender_username
                                                          : in->sender_id,
                              .since_ms = e->now_ms };

        reason += strspn(reason, SPACE);
        if (minutes > 0 && minutes <= PAUSE_MINUTES_MAX)
                h.until_ms = e->now_ms + minutes * 60000;
        h.reason = *reason ? reason : NULL;
        if (!all || !handover_pause_with(all, &h, e->out))
                evaluation_notify(e, "I could not pause the agent: too many chats are paused.");
        else if (h.until_ms > 0)
                evaluation_notify(
                        e, "The agent is silent here for %lld minutes; `/resume` ends it earlier.",
                        minutes);
        else
                evaluation_notify(e, "The agent is silent here until someone writes `/resume`.");
}

/* Dry runs and replays have neither a schedule nor sessions. */
static void ask_others(struct evaluation *e)
{
        const struct road_schedule *s = &e->d->schedule;
        const struct road_remote *r = &e->d->remote;
        struct chat_caller by = e->command->of_sessions ? session_caller_of(e) : caller_of(e);
        bool steers = e->command == &steering;

        if (e->command->of_sessions && r->command && e->query)
                e->out->effect = r->command(r->remote, &by, e->in, e->command->name,
                                            steers ? e->in->text : e->command_args);
        else if (!e->command->of_sessions && s->command && e->query)
                e->out->effect =
                        s->command(s->schedule, &by, e->in, e->command->name, e->command_args);
        if (!e->out->effect) {
                e->out->command = COMMAND_HANDLED;
                if (!steers)
                        evaluation_notify(e, e->command->of_sessions
                                                     ? "Sessions are turned off here."
                                                     : "Reminders and events are turned off here.");
        }
}

void command_run(struct evaluation *e)
{
        const struct runtime_policy *policy = e->d->policy;
        struct handovers *all = policy ? policy->handovers : NULL;
        struct chat_key chat = { e->in->adapter, e->in->channel, e->in->thread };
        bool admin = access_check_is_admin(policy, e->adapter, e->in);
        const char *name = e->command->name;

        e->out->command = e->command->does;
        e->out->by_admin = admin;
        e->out->by_trusted = e->adapter->trusted;
        if (e->command->does == COMMAND_EFFECT) {
                ask_others(e);
        } else if (e->command->does == COMMAND_NEW) {
                chat_session_restart(e);
        } else if (strcmp(name, "pause") == 0) {
                pause_agent(e);
        } else if (strcmp(name, "resume") == 0) {
                if (all && handover_resume_with(all, &chat, e->out))
                        evaluation_notify(e, "The agent answers again.");
                else if (all && handover_find(all, &chat))
                        evaluation_notify(e, "The whole channel is paused: write `/resume` there.");
                else
                        evaluation_notify(e, "The agent was not paused here.");
        } else if (strcmp(name, "help") == 0) {
                evaluation_notify(e, "Besides your questions, I understand these commands:");
                for (size_t i = 0; i < COUNT(commands); i++) {
                        if ((!commands[i].admins_only || admin) &&
                            (commands[i].does != COMMAND_EFFECT ||
                             (commands[i].of_sessions ? e->d->remote.command != NULL
                                                      : e->d->schedule.command != NULL)))
                                evaluation_notify(e, "\n- `/%s`: %s", commands[i].name,
                                                  commands[i].help);
                }
                if (policy && !e->adapter->trusted && e->in->chat == CHAT_DM)
                        evaluation_notify(e, "\n- `/link`: connect another account to this one");
                if (e->adapter->command_help)
                        evaluation_notify(e, "\n\n%s", e->adapter->command_help);
        }
}
