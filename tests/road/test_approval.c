/* Approvals: a turn waits until a person decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/road_rig.h"
#include "../lib/scratch.h"
#include "base/mem.h"
#include "road/turn/approval.h"
#include "road/turn/turn.h"

/* What the agent learned. */
static struct {
        unsigned count;
        enum approval_state state;
        char by[100], note[100], subject[100];
} got;

static bool admin, trusted;

static void on_decided(void *arg, const struct approval_decision *d)
{
        (void)arg;
        got.count++;
        got.state = d->state;
        snprintf(got.by, sizeof(got.by), "%s", d->by ? d->by : "");
        snprintf(got.note, sizeof(got.note), "%s", d->note ? d->note : "");
        snprintf(got.subject, sizeof(got.subject), "%s", d->subject);
}

static void decides(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        if (strncmp(in->text, "/approve", 8) == 0)
                out->command = COMMAND_APPROVE;
        else if (strncmp(in->text, "/refuse", 7) == 0)
                out->command = COMMAND_REFUSE;
        else if (strcmp(in->text, "/stop") == 0)
                out->command = COMMAND_STOP;
        else if (strcmp(in->text, "/status") == 0)
                out->command = COMMAND_STATUS;
        if (out->command != COMMAND_NONE)
                out->trigger = false;
        out->by_admin = admin;
        out->by_trusted = trusted;
}

static int begin(void **state)
{
        struct rig *g = rig_new();

        g->decides = decides;
        g->auto_send = true;
        admin = trusted = false;
        memset(&got, 0, sizeof(got));
        *state = g;
        return 0;
}

static int end(void **state)
{
        rig_free(*state);
        return 0;
}

static struct approval_request question(void)
{
        return (struct approval_request){ .call = "call-1",
                                          .tool = "bash",
                                          .title = "run a command",
                                          .detail = "make install",
                                          .subject = "{\"command\":\"make install\"}",
                                          .reason = "it runs outside a sandbox",
                                          .effect = "run make",
                                          .rule = "{\"tool\":\"bash\",\"command\":\"make *\"}",
                                          .rule_label = "make *",
                                          .approvers = APPROVERS_ASKER,
                                          .expires_ms = 60000 };
}

/* A turn on the adapter that waits for its approval. */
static void ask(struct rig *g, const char *adapter, const struct approval_request *q)
{
        unsigned before = g->run_count;
        int64_t asked = rig_count(g, "approvals");

        rig_say(g, adapter, "c", "echo", "install it", NULL);
        rig_until(g, &g->run_count, before + 1);
        turn_ask_approval(g->runs[before].run, q, on_decided, NULL);
        rig_until_count(g, "approvals", asked + 1);
        rig_settle(g);
}

static long long last_id(struct rig *g)
{
        return rig_number(g, "max(id) FROM approvals");
}

/* Waits until the message is decided. */
static void says(struct rig *g, const char *adapter, const char *sender, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static void says(struct rig *g, const char *adapter, const char *sender, const char *fmt, ...)
{
        int64_t before = rig_count(g, "trigger_log");
        char text[200];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        rig_receive(g, &(struct incoming){ .adapter = adapter,
                                           .channel = "c",
                                           .guild = "echo",
                                           .sender_id = sender,
                                           .text = text });
        rig_until_count(g, "trigger_log", before + 1);
        rig_settle(g);
}

static const char *last_answer(struct rig *g)
{
        return rig_members(
                g, "payload FROM deliveries WHERE kind = 'send' ORDER BY id DESC LIMIT 1", "text");
}

/* ---- killed at every step ---- */

static const char *const points[] = {
        "approval.before_ask@1", "approval.asked@1", "outbox.answered@1",      "outbox.settled@1",
        "lane.before_write@2",   "lane.committed@2", "approval.decided@1",     "outbox.settled@2",
        "turn.before_end@1",     "turn.ended@1",     "outbox.before_settle@3",
};

/* Asks, approves and answers in a process that is killed at the point, or at its end. */
static void play_until_killed(const char *dir, const char *point)
{
        struct rig *g;
        struct approval_request q = question();

        setenv("DRAGOMAN_FAULT", point, 1);
        g = rig_new_in(dir);
        g->decides = decides;
        g->auto_send = admin = true;
        ask(g, "nonce", &q);
        says(g, "nonce", NULL, "/approve apr-%lld", last_id(g));
        rig_until(g, &got.count, 1);
        rig_answer(g, 0, "installed");
        rig_settle(g);
        raise(SIGKILL);
}

/* What the next run makes of it: one question, one decision, one answer. */
static void check_after(const char *dir, const char *point)
{
        struct rig *g = rig_new_in(dir);
        struct approval_request q = question();

        memset(&got, 0, sizeof(got));
        g->decides = decides;
        g->auto_send = admin = true;
        g->next_key = 100; /* other messages than those of the earlier run */
        rig_settle(g);
        if (g->run_count > 0) {
                turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
                rig_until_count(g, "approvals", 1);
                rig_settle(g);
                if (got.count == 0)
                        says(g, "nonce", NULL, "/approve apr-%lld", last_id(g));
                rig_until(g, &got.count, 1);
                assert_int_equal(got.state, APPROVAL_APPROVED);
                rig_answer(g, 0, "installed");
        }
        rig_until_count(g, "turns WHERE state = 'done'", 1);
        rig_settle(g);
        if (rig_count(g, "approvals") != 1 ||
            rig_count(g, "approvals WHERE state = 'approved'") != 1)
                fail_msg("%s: %s", point, rig_list(g, "state FROM approvals"));
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.requested'"), 1);
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.decided'"), 1);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%approvalId%'"
                                      " AND kind = 'send'"),
                         1);
        assert_int_equal(rig_count(g, "deliveries WHERE payload LIKE '%\"installed\"%'"), 1);
        rig_free(g);
}

/* The first test: the points are read once in the life of a process. */
static void a_kill_at_any_step_loses_no_question_and_no_decision(void **state)
{
        char *dirs[COUNT(points)];

        (void)state;
        for (size_t i = 0; i < COUNT(points); i++) {
                pid_t child;
                int status;

                dirs[i] = scratch_new();
                child = fork();
                assert_true(child >= 0);
                if (child == 0)
                        play_until_killed(dirs[i], points[i]);
                assert_int_equal(waitpid(child, &status, 0), child);
                if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                        fail_msg("%s: status %d", points[i], status);
        }
        for (size_t i = 0; i < COUNT(points); i++) {
                check_after(dirs[i], points[i]);
                free(dirs[i]);
        }
}

static void a_question_is_stored_with_the_message_that_asks(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        assert_string_equal(rig_text(g, "state FROM approvals"), "open");
        assert_int_equal(rig_number(g, "id FROM approvals"), rig_number(g, "id FROM deliveries"));
        assert_non_null(strstr(g->sent[0].text, "make install"));
        assert_non_null(strstr(g->sent[0].text, "it runs outside a sandbox"));
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "say:/approve apr-"));
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), " always"));
        assert_null(strstr(rig_text(g, "payload FROM deliveries"), "ask:"));
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.requested'"), 1);
        assert_int_equal(got.count, 0);
}

static void a_form_may_ask_why_it_is_refused(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "form", &q);
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "\"ask:/refuse apr-"));
        says(g, "form", NULL, "/refuse apr-%lld too risky", last_id(g));
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_REFUSED);
        assert_string_equal(got.note, "too risky");
}

static void the_question_names_only_ways_to_answer_that_work(void **state)
{
        static const struct {
                const char *adapter, *platform, *says, *never;
        } rows[] = {
                { "nonce", NULL, "*Always* also allows `make *`", "dragoman approvals" },
                { "nonce", NULL, "with the buttons, a reply \"yes\" or \"no\", `/approve ", "--" },
                { "j", NULL, "with a reply \"yes\" or \"no\", `/approve ", "buttons" },
                { "named", NULL, "`/dragoman approve apr-", "`/approve" },
                { "named", NULL, " or `/dragoman refuse apr-", "`/refuse" },
                { "j", NULL, " --always` also allows `make *`", "*Always*" },
                { "j", "cli", "with \"yes\", \"always\" or \"no\".", "/approve" },
                { "j", "cli", "*Always* also allows `make *`", "buttons" },
        };
        struct approval_request q = question();

        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *text;
                struct rig *g;

                begin(state);
                g = *state;
                rig_receive(g, &(struct incoming){ .adapter = rows[i].adapter,
                                                   .platform = rows[i].platform,
                                                   .channel = "c",
                                                   .guild = "echo",
                                                   .text = "install it" });
                rig_until(g, &g->run_count, 1);
                turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
                rig_until_count(g, "approvals", 1);
                rig_settle(g);
                text = last_answer(g);
                if (!strstr(text, rows[i].says) || strstr(text, rows[i].never))
                        fail_msg("row %zu: %s", i, text);
                end(state);
        }
}

static void what_is_asked_hides_nothing(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        q.detail = "echo \x1b[2J\xe2\x80\xae"
                   "fdp.\r rm\n\tx";
        ask(g, "x", &q);
        assert_string_equal(rig_text(g, "detail FROM approvals"),
                            "echo \\u{1b}[2J\\u{202e}fdp.\\u{d} rm\n\tx");
}

static void who_asked_approves_and_the_turn_goes_on(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        says(g, "x", NULL, "/approve apr-%lld fine", last_id(g));
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
        assert_string_equal(got.note, "fine");
        assert_string_equal(got.subject, "{\"command\":\"make install\"}");
        assert_string_equal(rig_text(g, "state FROM approvals"), "approved");
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.decided'"), 1);
        /* the question shows the outcome, without buttons */
        assert_int_equal(rig_count(g, "deliveries WHERE kind = 'edit' AND payload LIKE "
                                      "'%was approved%\"buttons\":[]%'"),
                         1);
        rig_answer(g, 0, "installed");
        rig_until_idle(g);
}

static void others_change_nothing(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        says(g, "x", "eve", "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "Only who asked, and admins, may decide"));
        assert_string_equal(rig_text(g, "state FROM approvals"), "open");
        assert_int_equal(got.count, 0);
        admin = true;
        says(g, "nonce", "root", "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "There is no approval"));
        says(g, "x", "root", "/refuse apr-%lld no way", last_id(g));
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_REFUSED);
        assert_string_equal(got.note, "no way");
}

static void where_admins_decide_the_asker_does_not(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        q.approvers = APPROVERS_ADMINS;
        ask(g, "x", &q);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "Only admins may decide"));
        assert_int_equal(got.count, 0);
}

/* Whoever holds a key can write as the terminal does. */
static void at_a_terminal_only_the_operator_is_an_admin(void **state)
{
        static const char *const callers[] = { NULL, "key-3", "operator" };
        struct rig *g = *state;
        struct approval_request q = question();

        q.approvers = APPROVERS_ADMINS;
        ask(g, "j", &q);
        admin = trusted = true;
        for (size_t i = 0; i < COUNT(callers); i++) {
                int64_t before = rig_count(g, "trigger_log");
                char text[40];

                assert_int_equal(got.count, 0);
                snprintf(text, sizeof(text), "/approve apr-%lld", last_id(g));
                rig_receive(g, &(struct incoming){ .adapter = "j",
                                                   .platform = "cli",
                                                   .guild = "echo",
                                                   .caller = callers[i],
                                                   .text = text });
                rig_until_count(g, "trigger_log", before + 1);
                rig_settle(g);
        }
        assert_int_equal(got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
}

static void what_a_schedule_asks_admins_decide(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        rig_receive(g, &(struct incoming){ .type = EVENT_SCHEDULE_FIRED,
                                           .adapter = "x",
                                           .sender_id = SCHEDULE_SENDER,
                                           .text = "install it" });
        rig_until(g, &g->run_count, 1);
        turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
        rig_until_count(g, "approvals", 1);
        assert_string_equal(rig_list(g, "coalesce(asker, '-') || ' ' || approvers FROM approvals"),
                            "- admins");
        rig_settle(g);
        assert_non_null(strstr(last_answer(g), " Admins may answer until"));
}

static void a_second_press_says_what_was_decided(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        says(g, "x", NULL, "/refuse apr-%lld", last_id(g));
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "was already refused by Ann"));
        assert_string_equal(rig_text(g, "state FROM approvals"), "refused");
        assert_int_equal(got.count, 1);
        says(g, "x", NULL, "/approve apr-999");
        assert_string_equal(last_answer(g), "There is no approval `apr-999`.");
}

static void presses_at_the_same_moment_count_once(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();
        char approve[40], refuse[40];

        ask(g, "x", &q);
        snprintf(approve, sizeof(approve), "/approve apr-%lld", last_id(g));
        snprintf(refuse, sizeof(refuse), "/refuse apr-%lld", last_id(g));
        admin = true;
        rig_say(g, "x", "c", "echo", refuse, NULL);
        rig_say(g, "x", "c", "echo", approve, NULL);
        rig_say(g, "x", "c", "echo", approve, NULL);
        rig_until_count(g, "trigger_log", 4);
        rig_settle(g);
        assert_int_equal(got.count, 1);
        assert_int_equal(got.state, APPROVAL_REFUSED);
        assert_string_equal(rig_text(g, "state FROM approvals"), "refused");
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.decided'"), 1);
}

static void nobody_answers_in_time(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        q.expires_ms = 1;
        ask(g, "x", &q);
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_EXPIRED);
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.expired'"), 1);
        rig_until_count(g, "deliveries WHERE kind = 'edit' AND payload LIKE '%expired%'", 1);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "was already expired"));
}

static void a_waiting_turn_has_no_deadline(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        g->limits.turn_seconds = 1;
        road_set_limits(g->road, &g->limits);
        ask(g, "x", &q);
        rig_run_for(g, 1300);
        assert_non_null(g->runs[0].run);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        rig_until(g, &got.count, 1);
        rig_until_count(g, "turns WHERE error_kind = 'timeout'", 1);
}

static void a_restart_finds_the_question_open(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        assert_int_equal(g->runs[1].attempt, 2);
        turn_ask_approval(g->runs[1].run, &q, on_decided, NULL);
        rig_settle(g);
        assert_int_equal(rig_count(g, "approvals"), 1);
        assert_int_equal(rig_count(g, "deliveries"), 1); /* asked once */
        assert_int_equal(got.count, 0);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
}

static void what_was_decided_before_the_turn_resumed_counts(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        assert_int_equal(got.count, 0);
        rig_restart(g);
        rig_until(g, &g->run_count, 3);
        turn_ask_approval(g->runs[2].run, &q, on_decided, NULL);
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
        assert_int_equal(rig_count(g, "approvals"), 1);
}

static void it_expires_also_after_a_restart(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        rig_update(g, "approvals SET expires_ms = ?1, created_ms = ?2", 1, 0);
        rig_restart(g);
        rig_until_count(g, "approvals WHERE state = 'expired'", 1);
        rig_until(g, &g->run_count, 2);
        turn_ask_approval(g->runs[1].run, &q, on_decided, NULL);
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_EXPIRED);
}

static void stopping_the_turn_closes_its_questions(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        says(g, "x", NULL, "/stop");
        rig_until_count(g, "approvals WHERE state = 'cancelled'", 1);
        assert_true(g->runs[0].cancelled);
        assert_int_equal(rig_count(g, "journal WHERE type = 'approval.cancelled'"), 1);
        rig_until_count(g, "deliveries WHERE kind = 'edit' AND state = 'sent'", 1);
        says(g, "x", NULL, "/approve apr-%lld", last_id(g));
        assert_non_null(strstr(last_answer(g), "its turn ended"));
        assert_int_equal(got.count, 0);
}

static void a_turn_stopped_while_it_asks_leaves_nothing_open(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        rig_say(g, "x", "c", "echo", "install it", NULL);
        rig_until(g, &g->run_count, 1);
        turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
        turn_cancel(g->road, g->runs[0].run->id, "the test", NULL, NULL);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "approvals WHERE state = 'open'"), 0);
        assert_int_equal(got.count, 0);
}

static void what_was_refused_is_not_asked_again_in_other_words(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();

        ask(g, "x", &q);
        says(g, "x", NULL, "/refuse apr-%lld", last_id(g));
        rig_until(g, &got.count, 1);
        q.call = "call-2";
        q.subject = "{\"command\":\"make -k install\"}";
        turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
        rig_until(g, &got.count, 2);
        assert_int_equal(got.state, APPROVAL_REFUSED);
        assert_non_null(strstr(got.note, "same kind of action"));
        assert_string_equal(got.subject, q.subject);
        assert_int_equal(rig_count(g, "approvals"), 1);
        q.call = "call-3";
        q.effect = "run ls";
        turn_ask_approval(g->runs[0].run, &q, on_decided, NULL);
        rig_until_count(g, "approvals", 2);
}

static void a_reply_yes_or_no_decides(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();
        bool approves;
        char message[24];

        assert_true(approval_is_answer("Yes!", &approves) && approves);
        assert_true(approval_is_answer("no.", &approves) && !approves);
        assert_false(approval_is_answer("yes, but later", &approves));
        assert_false(approval_is_answer("", &approves));
        assert_false(approval_is_answer(NULL, &approves));
        ask(g, "x", &q);
        snprintf(message, sizeof(message), "%s",
                 rig_text(g, "platform_id FROM deliveries ORDER BY id LIMIT 1"));
        for (int restarted = 0; restarted < 2; restarted++) {
                struct incoming in = { .adapter = "x", .channel = "c", .text = "yes" };

                in.chat = CHAT_GROUP;
                assert_false(approval_is_answered_by(g->road, &in));
                in.reply_to = "another";
                assert_false(approval_is_answered_by(g->road, &in));
                in.reply_to = message;
                assert_true(approval_is_answered_by(g->road, &in));
                in.text = "of course";
                assert_false(approval_is_answered_by(g->road, &in));
                in.text = "no";
                in.chat = CHAT_DM; /* the only question there */
                in.reply_to = NULL;
                assert_true(approval_is_answered_by(g->road, &in));
                in.channel = "d";
                assert_false(approval_is_answered_by(g->road, &in));
                rig_restart(g);
        }
}

static void always_leaves_a_rule_for_this_agent_and_channel(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();
        size_t count;

        ask(g, "x", &q);
        says(g, "x", NULL, "/approve apr-%lld always", last_id(g));
        assert_non_null(strstr(last_answer(g), "Only admins may allow it for the future"));
        admin = true;
        says(g, "x", NULL, "/approve apr-%lld always", last_id(g));
        rig_until(g, &got.count, 1);
        assert_int_equal(got.state, APPROVAL_APPROVED);
        assert_string_equal(turn_approval_rules(g->runs[0].run, &count)[0], q.rule);
        assert_int_equal(count, 1);
        rig_say(g, "x", "other", "echo", "hi", NULL);
        rig_until(g, &g->run_count, 2);
        turn_approval_rules(g->runs[1].run, &count);
        assert_int_equal(count, 0);
        rig_restart(g);
        assert_int_equal(approval_rules_count(g->road), 1);
}

struct outcome {
        unsigned done;
        enum error_kind kind;
        enum approval_state state;
};

static void on_outcome(void *arg, const struct approval_row *row, const struct error *err)
{
        struct outcome *o = arg;

        o->done++;
        o->kind = err ? err->kind : ERR_NONE;
        if (row)
                o->state = row->state;
}

static void on_removed(void *arg, const struct error *err)
{
        struct outcome *o = arg;

        o->done++;
        o->kind = err ? err->kind : ERR_NONE;
}

static void operators_decide_without_the_chat(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();
        struct approval_verdict v = { .approve = true, .by = "operator", .adapters = ",j," };
        struct outcome o = { 0 };

        ask(g, "x", &q);
        v.id = last_id(g);
        approval_decide(g->road, &v, on_outcome, &o);
        rig_until(g, &o.done, 1);
        assert_int_equal(o.kind, ERR_MISSING); /* another adapter's */
        v.adapters = ",x,";
        v.always = true;
        approval_decide(g->road, &v, on_outcome, &o);
        rig_until(g, &o.done, 2);
        assert_int_equal(o.kind, ERR_NONE);
        assert_int_equal(o.state, APPROVAL_APPROVED);
        assert_int_equal(got.count, 1);
        assert_string_equal(got.by, "operator");
        v.approve = false;
        approval_decide(g->road, &v, on_outcome, &o);
        rig_until(g, &o.done, 3);
        assert_int_equal(o.kind, ERR_CONFLICT);
        assert_int_equal(o.state, APPROVAL_APPROVED);
        approval_rule_delete(g->road, approval_rules_at(g->road, 0)->id, on_removed, &o);
        rig_until(g, &o.done, 4);
        assert_int_equal(o.kind, ERR_NONE);
        assert_int_equal(approval_rules_count(g->road), 0);
        approval_rule_delete(g->road, 77, on_removed, &o);
        rig_until(g, &o.done, 5);
        assert_int_equal(o.kind, ERR_MISSING);
}

static void a_shutdown_does_not_wait_for_people(void **state)
{
        struct rig *g = *state;
        struct approval_request q = question();
        struct road_stats stats;

        ask(g, "x", &q);
        says(g, "x", NULL, "/status");
        assert_non_null(strstr(last_answer(g), "It waits for an approval: run a command (`apr-"));
        road_stats(g->road, &stats);
        assert_int_equal(stats.approvals_open, 1);
        assert_int_equal(stats.turns_running, 1);
        rig_restart(g);
        rig_until(g, &g->run_count, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kill_at_any_step_loses_no_question_and_no_decision),
                TEST(a_question_is_stored_with_the_message_that_asks),
                TEST(a_form_may_ask_why_it_is_refused),
                cmocka_unit_test(the_question_names_only_ways_to_answer_that_work),
                TEST(what_is_asked_hides_nothing),
                TEST(who_asked_approves_and_the_turn_goes_on),
                TEST(others_change_nothing),
                TEST(where_admins_decide_the_asker_does_not),
                TEST(at_a_terminal_only_the_operator_is_an_admin),
                TEST(what_a_schedule_asks_admins_decide),
                TEST(a_second_press_says_what_was_decided),
                TEST(presses_at_the_same_moment_count_once),
                TEST(nobody_answers_in_time),
                TEST(a_waiting_turn_has_no_deadline),
                TEST(a_restart_finds_the_question_open),
                TEST(what_was_decided_before_the_turn_resumed_counts),
                TEST(it_expires_also_after_a_restart),
                TEST(stopping_the_turn_closes_its_questions),
                TEST(a_turn_stopped_while_it_asks_leaves_nothing_open),
                TEST(what_was_refused_is_not_asked_again_in_other_words),
                TEST(a_reply_yes_or_no_decides),
                TEST(always_leaves_a_rule_for_this_agent_and_channel),
                TEST(operators_decide_without_the_chat),
                TEST(a_shutdown_does_not_wait_for_people),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
