/* Commands to the bot itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/placement_stub.h"
#include "base/clock.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/dry_run.h"
#include "dispatch_rig.h"

static void a_command_is_the_whole_message(void **state)
{
        static const struct {
                const char *text, *name, *rest;
        } rows[] = {
                { "/stop", "stop", "" },
                { " /STOP \n", "stop", "" },
                { "/stop@mybot", "stop", "" },
                { "@mybot /stop", "stop", "" },
                { "<@42> <@!43> /new", "new", "" },
                { "/pause 30 lunch", "pause", "30 lunch" },
                { "/help", "help", "" },
                { "/approve apr-12", "approve", "apr-12" },
                { "/refuse@mybot apr-12 too late", "refuse", "apr-12 too late" },
                { "/approve", NULL, NULL },
                { "/approve of this", NULL, NULL },
                { "/remind", "remind", "" },
                { "/remind 30m tea", "remind", "30m tea" },
                { "/Remind@mybot me in 30 minutes to call mum", "remind",
                  "me in 30 minutes to call mum" },
                { "<@42> /reminders cancel sch-3", "reminders", "cancel sch-3" },
                { "/remindme 30m tea", "remind", "30m tea" },
                { "/quiet 22:00-07:00", "quiet", "22:00-07:00" },
                { "/event yes cal-3", "event", "yes cal-3" },
                { "/new ideas", NULL, NULL },
                { "stop", NULL, NULL },
                { "/", NULL, NULL },
                { "/stopp", NULL, NULL },
                { "/st op", NULL, NULL },
                { "//stop", NULL, NULL },
                { "please /stop", NULL, NULL },
                { "/stop!", NULL, NULL },
                { "", NULL, NULL },
                { NULL, NULL, NULL },
                { "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, NULL },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *rest;
                const struct chat_command *c = command_parse(rows[i].text, &rest);

                if (!c != !rows[i].name ||
                    (c && (strcmp(c->name, rows[i].name) != 0 || strcmp(rest, rows[i].rest) != 0)))
                        fail_msg("'%s' is read as %s", rows[i].text, c ? c->name : "no command");
        }
}

static void a_misspelt_command_is_recognised(void **state)
{
        static const struct {
                const char *text, *name;
        } rows[] = {
                { "/stpo", "stop" },   { "/statsu", "status" }, { "/hlep", "help" },
                { "/puase", "pause" }, { "/remid", "remind" },  { "/stop", NULL },
                { "/start", NULL },    { "/settings", NULL },   { "/ask", NULL },
                { "/deploy", NULL },   { "/stpo it", NULL },    { "/x", NULL },
                { "/ne", NULL },       { "/atop", NULL },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct chat_command *c = command_suggest(rows[i].text);

                if (!c != !rows[i].name || (c && strcmp(c->name, rows[i].name) != 0))
                        fail_msg("'%s' is taken for %s", rows[i].text, c ? c->name : "nothing");
        }
}

static struct decision decided(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, NULL, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

static void a_command_must_be_meant_for_the_bot(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct dispatch *room = rig_dispatch(
                "[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]", rig_adapter());
        struct incoming in = group_message("7", "/stop");
        struct decision out;

        (void)state;
        out = decided(d, &in); /* addressed to another bot */
        assert_int_equal(out.command, COMMAND_NONE);
        assert_null(out.agent);
        assert_int_equal(decided(room, &in).command, COMMAND_STOP);
        in.is_mention = true;
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_STOP);
        assert_false(out.trigger);
        assert_string_equal(out.agent, "echo"); /* the agent whose turn is stopped */
        assert_true(out.per_person);
        in.is_mention = false;
        in.chat = CHAT_DM;
        assert_int_equal(decided(d, &in).command, COMMAND_STOP);
        in.sender_is_bot = true;
        assert_int_equal(decided(d, &in).command, COMMAND_NONE);
        dispatch_free(d);
        dispatch_free(room);
}

static void the_word_stop_stops_when_it_is_said_to_the_bot(void **state)
{
        static const char *const others[] = { "stop it", "stopp", "please stop", "s", "" };
        struct dispatch *room = rig_dispatch(
                "[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]", rig_adapter());
        struct incoming in = group_message("7", " Stop! ");
        struct decision out = decided(room, &in); /* people say it to each other */

        (void)state;
        assert_int_equal(out.command, COMMAND_NONE);
        assert_true(out.trigger);
        in.is_mention = true;
        assert_int_equal(decided(room, &in).command, COMMAND_STOP);
        in.is_mention = false;
        in.chat = CHAT_DM;
        assert_int_equal(decided(room, &in).command, COMMAND_STOP);
        for (size_t i = 0; i < COUNT(others); i++) {
                in.text = others[i];
                assert_int_equal(decided(room, &in).command, COMMAND_NONE);
        }
        dispatch_free(room);
}

static void a_command_that_names_another_bot_is_left_alone(void **state)
{
        static const char *const texts[] = { "/stop@otherbot", "@otherbot /stop", "<@42> /stop" };
        struct dispatch *d = rig_dispatch("[{\"when\": {\"channel\": \"456\"}}]", rig_adapter());
        struct incoming in = group_message("1", NULL);
        struct decision out;

        (void)state;
        for (size_t i = 0; i < COUNT(texts); i++) {
                in.text = texts[i];
                in.is_mention = false;
                assert_int_equal(decided(d, &in).command, COMMAND_NONE);
                in.is_reply = true; /* which does not change whom it names */
                assert_int_equal(decided(d, &in).command, COMMAND_NONE);
                in.is_reply = false;
                in.is_mention = true; /* the platform leaves names in the text */
                assert_int_equal(decided(d, &in).command, COMMAND_STOP);
        }
        in.is_mention = false;
        in.is_for_other = in.is_reply = true; /* by the platform's own marks */
        in.text = "/pause@otherbot";
        out = decided(d, &in);
        assert_false(out.trigger);
        assert_int_equal(out.command, COMMAND_NONE);
        assert_string_equal(out.reason, "it is a command for another bot");
        dispatch_free(d);
}

static void a_command_works_where_no_rule_answers(void **state)
{
        static const char rules[] = "[{\"when\": {\"text\": \"^hello\"}}]";
        struct dispatch_adapter terminal = rig_adapter();
        struct incoming dm = group_message("7", "/status"), mention = dm, reply = dm, live = dm;
        struct dispatch *d = rig_dispatch(rules, rig_adapter()), *trusted;
        struct decision out;

        (void)state;
        assert_int_equal(decided(d, &dm).command, COMMAND_NONE);
        dm.chat = CHAT_DM;
        mention.is_mention = true;
        reply.is_reply = true;
        assert_int_equal(decided(d, &dm).command, COMMAND_STATUS);
        assert_int_equal(decided(d, &mention).command, COMMAND_STATUS);
        assert_int_equal(decided(d, &reply).command, COMMAND_STATUS);
        mention.type = EVENT_MESSAGE_EDITED;
        assert_int_equal(decided(d, &mention).command, COMMAND_NONE);
        live.text = "hello";
        dispatch_decide(d, &live, BEGINS_TURN, &out);
        assert_true(out.trigger);
        out.extra.done(out.extra.arg, NULL);
        live.text = "/status";
        assert_int_equal(decided(d, &live).command, COMMAND_STATUS);
        terminal.trusted = true;
        trusted = rig_dispatch(rules, terminal);
        assert_int_equal(decided(trusted, &live).command, COMMAND_STATUS);
        live.text = "/help";
        assert_non_null(strstr(decided(trusted, &live).notice, "/pause"));
        dispatch_free(trusted);
        dispatch_free(d);
}

static void a_command_needs_an_agent_and_pauses_need_a_store(void **state)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("1", "/pause");

        (void)state;
        in.is_mention = true;
        assert_string_equal(decided(d, &in).notice,
                            "I could not pause the agent: too many chats are paused.");
        in.text = "/resume";
        assert_string_equal(decided(d, &in).notice, "The agent was not paused here.");
        in.text = "/stop";
        assert_int_equal(decided(d, &in).command, COMMAND_STOP);
        a[0] = rig_adapter();
        a[0].name = mem_strdup(CHAT);
        a[0].platform = mem_strdup("discord");
        a[0].trusted = true;
        dispatch_set(d, a, 1, NULL, 0, NULL);
        assert_int_equal(decided(d, &in).command, COMMAND_NONE);
        dispatch_free(d);
}

static void a_command_in_a_session_needs_no_mention(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;

        (void)state;
        in.is_mention = true;
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        assert_true(out.trigger);
        out.extra.done(out.extra.arg, NULL);
        in.is_mention = false;
        in.text = "/status";
        assert_int_equal(decided(d, &in).command, COMMAND_STATUS);
        in.sender_id = "8";
        assert_int_equal(decided(d, &in).command, COMMAND_NONE);
        dispatch_free(d);
}

static enum placement begins(void *arg, struct decision *d)
{
        (void)arg;
        (void)d;
        return PLACEMENT_NEW_TURN;
}

/* The road's word: arg is what the message answers. */
static bool answers(void *arg, bool *approves)
{
        const char *answer = arg;

        *approves = strcmp(answer, "yes") == 0;
        return *answer != '\0';
}

static struct decision decided_as(struct dispatch *d, const struct incoming *in, char *answer)
{
        struct placement_query query = { begins, answers, answer };
        struct decision out;

        dispatch_decide(d, in, &query, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

/* Without a mention, from whoever may talk to the bot, and even where commands are disabled. */
static void an_answer_to_an_approval_is_none_to_the_agent(void **state)
{
        static char yes[] = "yes", no[] = "no", nothing[] = "";
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "/approve apr-12");
        struct dispatch *d;

        (void)state;
        a.commands = false;
        d = rig_dispatch("[]", a);
        assert_int_equal(decided_as(d, &in, nothing).command, COMMAND_APPROVE);
        in.text = "/refuse apr-12 no";
        assert_int_equal(decided_as(d, &in, nothing).command, COMMAND_REFUSE);
        in.text = "yes";
        assert_int_equal(decided_as(d, &in, yes).command, COMMAND_APPROVE);
        assert_false(decided_as(d, &in, yes).trigger);
        in.text = "no";
        assert_int_equal(decided_as(d, &in, no).command, COMMAND_REFUSE);
        assert_int_equal(decided_as(d, &in, nothing).command, COMMAND_NONE);
        in.sender_is_bot = true;
        assert_int_equal(decided_as(d, &in, no).command, COMMAND_NONE);
        in.sender_is_bot = false;
        in.is_own = true;
        assert_int_equal(decided_as(d, &in, no).command, COMMAND_NONE);
        in.is_own = false;
        in.time_ms = 1000; /* old: the approval has its own time limit */
        assert_int_equal(decided_as(d, &in, no).command, COMMAND_REFUSE);
        assert_false(decided_as(d, &in, no).by_admin);
        dispatch_free(d);
}

static void disabled_commands_are_text(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "/stop");
        struct dispatch *d;

        (void)state;
        a.commands = false;
        d = rig_dispatch("[]", a);
        in.chat = CHAT_DM;
        assert_true(decided(d, &in).trigger);
        dispatch_free(d);
}

static void old_commands_and_rules_that_say_off_are_ignored(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "/stop");
        struct decision out;
        struct dispatch *d;

        (void)state;
        a.max_age_seconds = 60;
        d = rig_dispatch(
                "[{\"name\": \"quiet\", \"when\": {\"channel\": \"457\"}, \"mode\": \"off\"}, {}]",
                a);
        in.is_mention = true;
        in.time_ms = NOON - 61 * SECONDS;
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_NONE);
        assert_true(out.expired);
        in.time_ms = NOON;
        assert_int_equal(decided(d, &in).command, COMMAND_STOP);
        in.channel = "457";
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_NONE);
        assert_string_equal(out.reason, "rule 'quiet' says off");
        dispatch_free(d);
}

static void new_begins_a_new_session(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;
        char first[100];

        (void)state;
        in.is_mention = true;
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        assert_true(out.trigger);
        out.extra.done(out.extra.arg, NULL);
        snprintf(first, sizeof(first), "%s", out.session);
        in.is_mention = false;
        in.text = "/new";
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_NEW);
        assert_non_null(out.extra.fn); /* written with the decision */
        in.text = "hello again";
        out = decided(d, &in); /* the session is still live */
        assert_true(out.trigger);
        assert_string_not_equal(out.session, first);
        dispatch_free(d);
        d = rig_dispatch("[]", (struct dispatch_adapter){ .commands = true }); /* no sessions */
        in.is_mention = true;
        in.text = "/new";
        dispatch_decide(d, &in, NULL, &out);
        assert_int_equal(out.command, COMMAND_NEW);
        assert_null(out.extra.fn);
        dispatch_free(d);
}

static void help_lists_what_the_sender_may_do(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "/help");
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        out = decided(d, &in);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "the command /help was carried out");
        assert_non_null(strstr(out.notice, "- `/why`: "));
        assert_null(strstr(out.notice, "/pause"));
        in.sender_id = "1"; /* an admin */
        out = decided(d, &in);
        assert_non_null(strstr(out.notice, "- `/pause`: "));
        in.text = "/hepl";
        out = decided(d, &in);
        assert_string_equal(out.notice, "Did you mean `/help`? `/help` lists what I understand.");
        assert_string_equal(out.reason, "it is almost the command /help");
        dispatch_free(d);
}

static void only_an_admin_resends(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "/resend dlv-1");
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_NONE);
        assert_false(out.trigger);
        assert_string_equal(out.notice, "Only admins may use `/resend`.");
        assert_string_equal(out.reason, "the command /resend is for admins");
        in.sender_id = "1"; /* an admin */
        assert_int_equal(decided(d, &in).command, COMMAND_RESEND);
        in.text = "/resend the last one"; /* for the agent */
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_NONE);
        assert_true(out.trigger);
        dispatch_free(d);
}

/* Discord shows a placeholder until the command is answered. */
static void an_awaited_command_is_answered_by_its_result_alone(void **state)
{
        static const char *const rows[][2] = {
                { "/help", "Besides your questions, I understand these commands:" },
                { "/pause", "I could not pause the agent: too many chats are paused." },
                { "/resume", "The agent was not paused here." },
                { "/stpo", "Did you mean `/stop`? `/help` lists what I understand." },
        };
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("1", NULL); /* an admin */
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        in.is_command = in.is_awaited = true;
        for (size_t i = 0; i < COUNT(rows); i++) {
                in.text = rows[i][0];
                out = decided(d, &in);
                assert_int_equal(strcspn(out.notice, "\n"), strlen(rows[i][1]));
                assert_memory_equal(out.notice, rows[i][1], strlen(rows[i][1]));
        }
        in.text = "/status";
        out = decided(d, &in);
        assert_int_equal(out.command, COMMAND_STATUS);
        assert_null(out.notice);
        dispatch_free(d);
}

static void help_says_how_commands_are_written(void **state)
{
        static const char how[] = "Write them after my name.";
        struct dispatch_adapter chat = rig_adapter();
        struct incoming in = group_message("1", "/help");
        struct dispatch *d;
        struct decision out;

        (void)state;
        chat.command_help = how;
        d = rig_dispatch("[]", chat);
        in.chat = CHAT_DM;
        out = decided(d, &in);
        assert_string_equal(strrchr(out.notice, '\n') + 1, how);
        dispatch_free(d);
}

/* ---- commands of the schedule ---- */

struct fake_schedule {
        struct effect effect;
        char name[20], args[80], sender[20];
        unsigned asked;
        bool admin;
};

static struct effect *on_command(struct schedule *s, const struct chat_caller *by,
                                 const struct incoming *in, const char *name, const char *args)
{
        struct fake_schedule *f = (struct fake_schedule *)s;

        assert_string_equal(by->platform, "discord");
        assert_string_equal(by->channel, in->channel);
        snprintf(f->name, sizeof(f->name), "%s", name);
        snprintf(f->args, sizeof(f->args), "%s", args);
        snprintf(f->sender, sizeof(f->sender), "%s", by->sender_id);
        f->admin = by->is_admin;
        f->asked++;
        return &f->effect;
}

static struct dispatch *dispatch_with(struct fake_schedule *f, const char *rules,
                                      struct dispatch_adapter a)
{
        struct dispatch *d = rig_dispatch(rules, a);

        dispatch_set_schedule(d, &(struct road_schedule){ .schedule = (struct schedule *)f,
                                                          .command = on_command });
        return d;
}

static struct decision placed(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, BEGINS_TURN, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

static void the_schedule_gets_its_commands(void **state)
{
        struct fake_schedule f = { 0 };
        struct dispatch *d = dispatch_with(&f, "[]", rig_adapter());
        struct incoming in = group_message("7", "/remind me in 30 minutes to call mum");
        struct decision out;

        (void)state;
        out = placed(d, &in); /* said to somebody else */
        assert_null(out.effect);
        in.is_mention = true;
        out = placed(d, &in);
        assert_int_equal(out.command, COMMAND_EFFECT);
        assert_ptr_equal(out.effect, &f.effect);
        assert_false(out.trigger);
        assert_null(out.notice); /* the effect answers */
        assert_string_equal(out.reason, "the command /remind was carried out");
        assert_string_equal(f.name, "remind");
        assert_string_equal(f.args, "me in 30 minutes to call mum");
        assert_string_equal(f.sender, "7");
        assert_false(f.admin);
        in.sender_id = "1";
        in.text = "/reminders";
        placed(d, &in);
        assert_string_equal(f.name, "reminders");
        assert_string_equal(f.args, "");
        assert_true(f.admin);
        dispatch_free(d);
}

static void an_invitation_is_answered_where_commands_are_off(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct fake_schedule f = { 0 };
        struct dispatch *d;
        struct incoming in = group_message("7", "/event yes cal-3");
        struct decision out;

        (void)state;
        a.commands = false;
        d = dispatch_with(&f, "[]", a);
        out = placed(d, &in);
        assert_ptr_equal(out.effect, &f.effect);
        assert_string_equal(out.reason, "it answers an invitation");
        assert_string_equal(f.args, "yes cal-3");
        in.is_mention = true;
        for (int i = 0; i < 2; i++) {
                in.text = i == 0 ? "/event list" : "/event new friday 20:00 local-1 chess";
                out = placed(d, &in);
                assert_null(out.effect);
                assert_true(out.trigger);
        }
        dispatch_free(d);
}

static void reminders_need_no_agent(void **state)
{
        struct fake_schedule f = { 0 };
        struct dispatch *d = dispatch_with(&f, "[]", rig_adapter());
        struct dispatch_adapter *only = mem_zalloc(sizeof(*only));
        struct incoming in = group_message("7", "/remind 5m tea");

        (void)state;
        *only = rig_adapter();
        only->name = mem_strdup(CHAT);
        only->platform = mem_strdup("discord");
        only->access = rig_open_access();
        dispatch_set(d, only, 1, NULL, 0, NULL);
        in.chat = CHAT_DM;
        assert_ptr_equal(placed(d, &in).effect, &f.effect);
        in.text = "/stop";
        assert_int_equal(placed(d, &in).command, COMMAND_NONE);
        dispatch_free(d);
}

static void without_a_schedule_its_commands_say_so(void **state)
{
        struct fake_schedule f = { 0 };
        struct dispatch *d = dispatch_with(&f, "[]", rig_adapter());
        struct incoming in = group_message("7", "/help");
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        assert_non_null(strstr(placed(d, &in).notice, "`/remind`"));
        dispatch_set_schedule(d, NULL);
        assert_null(strstr(placed(d, &in).notice, "`/remind`"));
        in.text = "/remind 5m tea";
        out = placed(d, &in);
        assert_int_equal(out.command, COMMAND_HANDLED);
        assert_null(out.effect);
        assert_string_equal(out.notice, "Reminders and events are turned off here.");
        dispatch_free(d);
}

static void too_many_commands_are_ignored(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "/help");
        struct buf json;

        (void)state;
        in.chat = CHAT_DM;
        buf_init(&json, 0);
        for (int i = 0; i < 20; i++) {
                dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json); /* is not counted */
                assert_non_null(decided(d, &in).notice);
        }
        assert_null(decided(d, &in).notice);
        in.text = "hello"; /* turns are counted separately */
        assert_true(decided(d, &in).trigger);
        dispatch_set_clock(d, NOON + 60 * SECONDS);
        in.text = "/help";
        assert_non_null(decided(d, &in).notice);
        buf_release(&json);
        dispatch_free(d);
}

/* ---- with a whole road ---- */

static void hear(struct rig *g, const struct incoming *in)
{
        unsigned acks = g->acks;

        rig_receive(g, in);
        rig_until(g, &g->acks, acks + 1);
        rig_until_idle(g);
}

static const char *last_text(struct rig *g)
{
        return rig_text(g, "payload FROM deliveries ORDER BY id DESC LIMIT 1");
}

static void only_an_admin_pauses_and_resumes(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming ann = group_message("7", "/pause"),
                        admin = group_message("1", "/pause 30 at lunch");
        struct rig *g = rig_new();
        struct error err;
        struct runtime_policy *policy = runtime_policy_open(g->store, NULL, &err);

        (void)state;
        dispatch_set_clock(d, clock_wall_ms());
        dispatch_set_policy(d, policy);
        rig_decided_by(g, d);
        g->auto_answer = g->auto_send = true;
        ann.is_mention = admin.is_mention = true;
        hear(g, &ann);
        assert_non_null(strstr(last_text(g), "Only admins may use `/pause`."));
        assert_int_equal(rig_count(g, "handovers"), 0);
        hear(g, &admin);
        assert_non_null(strstr(last_text(g), "silent here for 30 minutes"));
        assert_string_equal(rig_text(g, "reason FROM handovers"), "at lunch");
        assert_int_equal(rig_number(g, "(until_ms - since_ms) / 60000 FROM handovers"), 30);
        ann.text = "hello?";
        hear(g, &ann);
        assert_int_equal(g->run_count, 0);
        assert_non_null(strstr(rig_text(g, "reason FROM trigger_log ORDER BY event DESC LIMIT 1"),
                               "the agent is paused here"));
        admin.text = "/resume";
        hear(g, &admin);
        assert_non_null(strstr(last_text(g), "The agent answers again."));
        hear(g, &ann);
        assert_int_equal(g->run_count, 1);
        hear(g, &admin);
        assert_non_null(strstr(last_text(g), "was not paused"));
        admin.text = "/pause";
        hear(g, &admin);
        admin.thread = "900"; /* a paused channel includes its threads */
        admin.text = "/resume";
        hear(g, &admin);
        assert_non_null(strstr(last_text(g), "The whole channel is paused"));
        admin.text = "/pause 99999999999999999999"; /* longer than any pause */
        hear(g, &admin);
        assert_non_null(strstr(last_text(g), "until someone writes `/resume`"));
        dispatch_set_policy(d, NULL);
        dispatch_free(d);
        g->real = (struct road_dispatch){ 0 };
        rig_free(g);
        runtime_policy_free(policy);
}

static void a_command_for_another_bot_changes_nothing(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "/stop");
        struct rig *g = rig_new();
        struct error err;
        struct runtime_policy *policy = runtime_policy_open(g->store, g->bus, &err);

        (void)state;
        dispatch_set_policy(d, policy);
        rig_decided_by(g, d);
        hear(g, &in);
        assert_int_equal(rig_count(g, "deliveries"), 0);
        assert_int_equal(rig_count(g, "identities"), 1); /* the sender is recorded anyway */
        dispatch_set_policy(d, NULL);
        dispatch_free(d);
        g->real = (struct road_dispatch){ 0 };
        rig_free(g);
        runtime_policy_free(policy);
}

static void stop_ends_the_running_turn_of_its_sender(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming ann = group_message("7", "think"), bob = group_message("8", "think, too");
        struct rig *g = rig_new();

        (void)state;
        rig_decided_by(g, d);
        ann.is_mention = bob.is_mention = true;
        rig_receive(g, &ann);
        rig_receive(g, &bob);
        rig_until(g, &g->run_count, 2); /* two conversations in one channel */
        bob.text = "/stop";
        rig_receive(g, &bob);
        rig_until_count(g, "turns WHERE state = 'cancelled'", 1);
        assert_false(g->runs[0].cancelled);
        assert_true(g->runs[1].cancelled);
        g->auto_send = true;
        rig_answer(g, 0, "thought");
        rig_until_count(g, "turns WHERE state = 'done'", 1);
        dispatch_free(d);
        g->real = (struct road_dispatch){ 0 };
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_is_the_whole_message),
                cmocka_unit_test(a_misspelt_command_is_recognised),
                cmocka_unit_test(a_command_must_be_meant_for_the_bot),
                cmocka_unit_test(the_word_stop_stops_when_it_is_said_to_the_bot),
                cmocka_unit_test(a_command_that_names_another_bot_is_left_alone),
                cmocka_unit_test(a_command_works_where_no_rule_answers),
                cmocka_unit_test(a_command_needs_an_agent_and_pauses_need_a_store),
                cmocka_unit_test(a_command_in_a_session_needs_no_mention),
                cmocka_unit_test(disabled_commands_are_text),
                cmocka_unit_test(an_answer_to_an_approval_is_none_to_the_agent),
                cmocka_unit_test(old_commands_and_rules_that_say_off_are_ignored),
                cmocka_unit_test(new_begins_a_new_session),
                cmocka_unit_test(help_lists_what_the_sender_may_do),
                cmocka_unit_test(only_an_admin_resends),
                cmocka_unit_test(an_awaited_command_is_answered_by_its_result_alone),
                cmocka_unit_test(help_says_how_commands_are_written),
                cmocka_unit_test(the_schedule_gets_its_commands),
                cmocka_unit_test(an_invitation_is_answered_where_commands_are_off),
                cmocka_unit_test(reminders_need_no_agent),
                cmocka_unit_test(without_a_schedule_its_commands_say_so),
                cmocka_unit_test(too_many_commands_are_ignored),
                cmocka_unit_test(only_an_admin_pauses_and_resumes),
                cmocka_unit_test(a_command_for_another_bot_changes_nothing),
                cmocka_unit_test(stop_ends_the_running_turn_of_its_sender),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
