/* Messages and commands where a coding session is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/placement_stub.h"
#include "dispatch/dispatch_private.h"
#include "dispatch_rig.h"

/* Shows a session in the thread "9", which the sender "7" and admins may steer. */
struct fake_sessions {
        struct effect effect;
        char name[20], args[80];
        unsigned asked;
};

static enum remote_part part(struct remote *r, const struct chat_caller *by)
{
        (void)r;
        if (!by->thread || strcmp(by->thread, "9") != 0)
                return REMOTE_NONE;
        return by->is_admin || (by->sender_id && strcmp(by->sender_id, "7") == 0) ? REMOTE_STEERS
                                                                                  : REMOTE_LISTENER;
}

static struct effect *command(struct remote *r, const struct chat_caller *by,
                              const struct incoming *in, const char *name, const char *args)
{
        struct fake_sessions *f = (struct fake_sessions *)r;

        assert_string_equal(by->platform, "discord");
        assert_string_equal(by->channel, in->channel);
        snprintf(f->name, sizeof(f->name), "%s", name);
        snprintf(f->args, sizeof(f->args), "%s", args);
        f->asked++;
        return &f->effect;
}

static struct dispatch *dispatch_ruled(struct fake_sessions *f, struct dispatch_adapter a,
                                       const char *rules)
{
        struct dispatch *d = rig_dispatch(rules, a);

        dispatch_set_remote(d, &(struct road_remote){ (struct remote *)f, part, command });
        return d;
}

static struct dispatch *dispatch_with(struct fake_sessions *f, struct dispatch_adapter a)
{
        return dispatch_ruled(f, a, "[{\"name\":\"all\",\"when\":{}}]");
}

static struct decision decide_message(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, BEGINS_TURN, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

static struct decision decide(struct dispatch *d, const char *sender, const char *thread,
                              const char *text)
{
        struct incoming in = group_message(sender, text);

        in.thread = thread;
        return decide_message(d, &in);
}

static void a_message_where_a_session_is_shown_steers_it(void **state)
{
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());
        struct decision out = decide(d, "7", "9", "use the other branch");

        (void)state;
        assert_int_equal(out.command, COMMAND_EFFECT);
        assert_ptr_equal(out.effect, &f.effect);
        assert_false(out.trigger);
        assert_null(out.notice);
        assert_string_equal(out.reason, "it steers the session that is shown here");
        assert_string_equal(f.name, "");
        assert_string_equal(f.args, "use the other branch");
        decide(d, "7", "9", "stop"); /* the session, not an agent */
        assert_string_equal(f.args, "stop");
        assert_int_equal(f.asked, 2);
        dispatch_free(d);
}

static void others_neither_steer_nor_get_an_agent_there(void **state)
{
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());
        struct decision out = decide(d, "8", "9", "rm everything");

        (void)state;
        assert_false(out.trigger);
        assert_null(out.effect);
        assert_null(out.notice);
        assert_string_equal(out.reason, "a session is shown here, which the sender may not steer");
        out = decide(d, "7", "9", "  ");
        assert_null(out.effect);
        out = decide(d, "8", NULL, "hello"); /* elsewhere all is as it was */
        assert_true(out.trigger);
        out = decide(d, "7", NULL, "hello");
        assert_true(out.trigger);
        assert_int_equal(f.asked, 0);
        dispatch_free(d);
}

static void sessions_get_their_commands(void **state)
{
        static const struct {
                const char *text, *name, *args;
        } rows[] = {
                { "/sessions", "sessions", "" },
                { "/steer ses-3 go left", "steer", "ses-3 go left" },
                { "/followup ses-3 test it", "followup", "ses-3 test it" },
                { "/reply ses-3 yes", "reply", "ses-3 yes" },
                { "/abort", "abort", "" },
                { "/notify errors", "notify", "errors" },
        };
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct decision out = decide(d, "7", i % 2 ? "9" : NULL, rows[i].text);

                assert_ptr_equal(out.effect, &f.effect);
                assert_string_equal(f.name, rows[i].name);
                assert_string_equal(f.args, rows[i].args);
        }
        dispatch_set_remote(d, NULL);
        assert_string_equal(decide(d, "7", NULL, "/sessions").notice,
                            "Sessions are turned off here.");
        dispatch_free(d);
}

static void commands_that_are_off_are_steering_too(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct fake_sessions f = { 0 };
        struct dispatch *d;

        (void)state;
        a.commands = false;
        d = dispatch_with(&f, a);
        decide(d, "7", "9", "/help");
        assert_string_equal(f.name, "");
        assert_string_equal(f.args, "/help");
        /* a button says it */
        decide(d, "7", "9", "/abort ses-3");
        assert_string_equal(f.name, "abort");
        assert_string_equal(f.args, "ses-3");
        dispatch_free(d);
}

/* Coding agents know files by such names. */
static void a_message_that_begins_with_a_name_steers_too(void **state)
{
        static const char *const texts[] = { "@src/main.c has the bug", "<@42> look at this",
                                             "/etc/hosts@old is wrong" };
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());

        (void)state;
        for (size_t i = 0; i < COUNT(texts); i++) {
                struct decision out = decide(d, "7", "9", texts[i]);

                assert_ptr_equal(out.effect, &f.effect);
                assert_string_equal(f.name, "");
                assert_string_equal(f.args, texts[i]);
                out = decide(d, "8", "9", texts[i]);
                assert_null(out.effect);
                assert_false(out.trigger);
        }
        dispatch_free(d);
}

static void commands_to_a_session_work_where_no_agent_answers(void **state)
{
        static const char *const rules = "[{\"name\":\"no\",\"when\":{},\"mode\":\"off\"}]";
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_ruled(&f, rig_adapter(), rules);

        (void)state;
        decide(d, "7", "9", "/abort");
        assert_string_equal(f.name, "abort");
        decide(d, "7", "9", "/followup then test it");
        assert_string_equal(f.name, "followup");
        decide(d, "7", "9", "then test it");
        assert_string_equal(f.name, "");
        /* a button says it, wherever its message is */
        decide(d, "7", NULL, "/abort ses-3");
        assert_string_equal(f.name, "abort");
        assert_int_equal(f.asked, 4);
        decide(d, "7", NULL, "/abort");
        decide(d, "8", "9", "/abort");
        assert_int_equal(f.asked, 4);
        dispatch_free(d);
}

static void too_many_messages_are_refused_aloud_once(void **state)
{
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());

        (void)state;
        for (unsigned i = 0; i < 20; i++)
                assert_null(decide(d, "7", "9", "go left").notice);
        assert_non_null(strstr(decide(d, "7", "9", "go left").notice, "Too many"));
        assert_null(decide(d, "7", "9", "go left").notice);
        assert_int_equal(f.asked, 20);
        assert_ptr_equal(decide(d, "1", "9", "go left").effect, &f.effect);
        dispatch_free(d);
}

static void files_are_not_passed_on_and_that_is_said(void **state)
{
        const struct attachment file = { .name = "log.txt" };
        struct fake_sessions f = { 0 };
        struct dispatch *d = dispatch_with(&f, rig_adapter());
        struct incoming in = group_message("7", "see the log");
        struct decision out;

        (void)state;
        in.thread = "9";
        in.attachments = &file;
        in.attachment_count = 1;
        out = decide_message(d, &in);
        assert_ptr_equal(out.effect, &f.effect);
        assert_string_equal(out.notice, "The agent gets the text, but no files.");
        in.text = NULL;
        out = decide_message(d, &in);
        assert_null(out.effect);
        assert_string_equal(out.notice, "I can pass on only text to the agent.");
        in.sender_id = "8";
        assert_null(decide_message(d, &in).notice);
        assert_int_equal(f.asked, 1);
        dispatch_free(d);
}

/* Whoever holds a key says there who writes. */
static void where_clients_are_trusted_only_the_terminal_of_the_operator_steers(void **state)
{
        static const struct {
                const char *platform, *caller;
                bool may;
        } rows[] = { { "api", "operator", false },
                     { "api", "key-3", false },
                     { "cli", "key-3", false },
                     { "cli", NULL, false },
                     { "cli", "operator", true } };
        struct dispatch_adapter a = rig_adapter();
        struct fake_sessions f = { 0 };
        struct dispatch *d;

        (void)state;
        a.trusted = true;
        d = dispatch_with(&f, a);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct incoming in = group_message("7", "use the other branch");
                struct decision out;

                in.platform = rows[i].platform;
                in.caller = rows[i].caller;
                in.thread = "9";
                out = decide_message(d, &in);
                assert_int_equal(out.effect != NULL, rows[i].may);
                assert_false(out.trigger);
        }
        dispatch_free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_where_a_session_is_shown_steers_it),
                cmocka_unit_test(others_neither_steer_nor_get_an_agent_there),
                cmocka_unit_test(sessions_get_their_commands),
                cmocka_unit_test(commands_that_are_off_are_steering_too),
                cmocka_unit_test(a_message_that_begins_with_a_name_steers_too),
                cmocka_unit_test(commands_to_a_session_work_where_no_agent_answers),
                cmocka_unit_test(too_many_messages_are_refused_aloud_once),
                cmocka_unit_test(files_are_not_passed_on_and_that_is_said),
                cmocka_unit_test(
                        where_clients_are_trusted_only_the_terminal_of_the_operator_steers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
