/* Sessions, their commands and approvals: unique by name, each step of a command taken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows.h"
#include "../lib/rows_rig.h"
#include "rows/prune_row.h"
#include "rows/session_row.h"
#include "rows/session_view_row.h"

static struct session_row session(const char *name, int64_t owner)
{
        return (struct session_row){ .session = name,
                                     .owner = owner,
                                     .program = "pi",
                                     .cwd = "/src",
                                     .trace = "t1",
                                     .created_ms = 1000,
                                     .last_event_ms = 1000 };
}

static int64_t add(struct store_tx *tx, const struct session_row *row, int expected)
{
        int64_t id = 0;

        assert_int_equal(session_row_insert(tx, row, &id, NULL), expected);
        return id;
}

static struct session_command_row command(int64_t of, const char *id)
{
        return (struct session_command_row){ .command = id,
                                             .session = of,
                                             .action = SESSION_STEER,
                                             .content = "go left",
                                             .given_by = "discord:42",
                                             .display_name = "Ana",
                                             .adapter = "dc",
                                             .channel = "7",
                                             .message = "9",
                                             .created_ms = 1000,
                                             .expires_ms = 5000 };
}

static int keep_sessions(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row in = session("s-1", 3), *out;
        struct chat_key chat = { "dc", "7", "8" };
        int64_t id = add(tx, &in, 1), quiet_ms;
        struct session_row archived;
        struct store_stmt *s;

        (void)arg;
        assert_int_equal(add(tx, &in, 0), 0);
        assert_int_equal(session_row_find(tx, "s-1", &out, err), 1);
        assert_int_equal(out->id, id);
        assert_int_equal(out->owner, 3);
        assert_string_equal(out->cwd, "/src");
        assert_null(out->adapter);
        free(out);
        in.id = id;
        in.title = "fix the build";
        in.tokens = 12;
        in.last_event_ms = 2000;
        assert_int_equal(session_row_update(tx, &in, err), 1);
        assert_int_equal(session_row_link(tx, id, &chat, "discord:42", err), 1);
        assert_int_equal(session_row_link(tx, id, &chat, NULL, err), 1);
        assert_int_equal(session_row_get(tx, id, &out, err), 1);
        assert_string_equal(out->thread, "8");
        assert_string_equal(out->identity, "discord:42");
        assert_string_equal(out->title, "fix the build");
        assert_int_equal(out->tokens, 12);
        free(out);
        assert_int_equal(session_row_quiet_ms(tx, &quiet_ms, err), 0);
        assert_int_equal(quiet_ms, 2000);
        assert_int_equal(session_row_archive(tx, id, 2000, err), 0);
        assert_int_equal(session_row_archive(tx, id, 2001, err), 1);
        assert_int_equal(session_row_count(tx, 10, err), 0);
        s = session_row_list(tx,
                             &(struct session_filter){ .owner = 3, .linked = true, .limit = 9 });
        assert_int_equal(session_row_next(s, &archived, err), 1);
        assert_int_equal(archived.state, SESSION_ARCHIVED);
        assert_int_equal(session_row_next(s, &archived, err), 0);
        s = session_row_list(tx, &(struct session_filter){ .owner = 4, .limit = 9 });
        assert_int_equal(session_row_next(s, &archived, err), 0);
        return 0;
}

static void a_session_keeps_what_is_said_about_it(void **state)
{
        rows_rig_run(*state, keep_sessions);
}

static int step_command(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row of = session("s-1", 3);
        struct session_command_row in = command(add(tx, &of, 1), "abc"), *out;
        int64_t id, again, first_ms;

        (void)arg;
        in.request_key = "event:5";
        assert_int_equal(session_command_row_find_request(tx, "event:5", &again, err), 0);
        assert_int_equal(session_command_row_insert(tx, &in, &id, err), 0);
        assert_int_equal(session_command_row_find_request(tx, "event:5", &again, err), 1);
        assert_int_equal(again, id);
        assert_int_equal(session_command_row_count(tx, in.session, 10, err), 1);
        assert_int_equal(session_command_row_first_ms(tx, &first_ms, err), 0);
        assert_int_equal(first_ms, 5000);
        assert_int_equal(session_command_row_move(tx, id, SESSION_COMMAND_QUEUED,
                                                  SESSION_COMMAND_DELIVERED, NULL, NULL, 2000, err),
                         1);
        assert_int_equal(session_command_row_move(tx, id, SESSION_COMMAND_QUEUED,
                                                  SESSION_COMMAND_DELIVERED, NULL, NULL, 2001, err),
                         0);
        assert_int_equal(session_command_row_move(tx, id, SESSION_COMMAND_DELIVERED,
                                                  SESSION_COMMAND_FAILED, "gone", NULL, 3000, err),
                         1);
        assert_int_equal(session_command_row_find(tx, "abc", &out, err), 1);
        assert_int_equal(out->delivered_ms, 2000);
        assert_int_equal(out->ended_ms, 3000);
        assert_int_equal(out->state, SESSION_COMMAND_FAILED);
        assert_string_equal(out->error, "gone");
        assert_string_equal(out->display_name, "Ana");
        free(out);
        return 0;
}

static void a_command_takes_each_step_once(void **state)
{
        rows_rig_run(*state, step_command);
}

static int decide_approval(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row of = session("s-1", 3);
        struct session_approval_row in = { .session = add(tx, &of, 1),
                                           .approval = "a1",
                                           .tool = "bash",
                                           .content = "rm -rf x",
                                           .created_ms = 1 },
                                    *out;
        int64_t id, other;

        (void)arg;
        assert_int_equal(session_approval_row_insert(tx, &in, &id, err), 1);
        assert_int_equal(session_approval_row_insert(tx, &in, &other, err), 0);
        assert_int_equal(session_approval_row_set_shown(tx, id, 77, NULL, err), 0);
        assert_int_equal(session_approval_row_decide(tx, id, "deny", "desk", "no", 9, err), 1);
        assert_int_equal(session_approval_row_decide(tx, id, "allow", "discord:42", NULL, 9, err),
                         0);
        assert_int_equal(session_approval_row_find(tx, in.session, "a1", &out, err), 1);
        assert_string_equal(out->state, "deny");
        assert_string_equal(out->decided_by, "desk");
        assert_string_equal(out->note, "no");
        assert_int_equal(out->delivery, 77);
        free(out);
        /* the end of the session decides those that are open */
        in.approval = "a2";
        session_approval_row_insert(tx, &in, &other, err);
        assert_int_equal(session_approval_row_close(tx, in.session, "end", 10, err), 0);
        session_approval_row_get(tx, id, &out, err);
        assert_string_equal(out->decided_by, "desk");
        free(out);
        session_approval_row_get(tx, other, &out, err);
        assert_string_equal(out->state, "deny");
        assert_string_equal(out->decided_by, "end");
        assert_int_equal(out->ended_ms, 10);
        free(out);
        return 0;
}

static void an_approval_is_decided_once(void **state)
{
        rows_rig_run(*state, decide_approval);
}

static size_t count_approvals(struct store_stmt *s, struct error *err)
{
        struct session_approval_row row;
        size_t n = 0;

        while (session_approval_row_next(s, &row, err) == 1)
                n++;
        return n;
}

static int show_approvals(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row of = session("s-1", 3);
        struct session_approval_row in = { .session = add(tx, &of, 1),
                                           .approval = "a1",
                                           .content = "",
                                           .created_ms = 1,
                                           .expires_ms = 50 };
        int64_t id, first;

#define BEHIND_SINCE(delivery) \
        count_approvals(session_approval_row_list_behind(tx, in.session, delivery, 10), err)
#define BEHIND() BEHIND_SINCE(0)
        (void)arg;
        session_approval_row_insert(tx, &in, &id, err);
        assert_int_equal(BEHIND(), 1); /* nobody was asked */
        assert_int_equal(count_approvals(session_approval_row_list_open(tx, in.session), err), 0);
        session_approval_row_set_shown(tx, id, 0, SESSION_APPROVAL_UNASKED, err);
        assert_int_equal(BEHIND(), 0); /* the chat refused it */
        session_approval_row_set_shown(tx, id, 77, NULL, err);
        assert_int_equal(BEHIND(), 0);
        assert_int_equal(BEHIND_SINCE(77), 0);
        assert_int_equal(BEHIND_SINCE(78), 1); /* it was asked in another place */
        assert_int_equal(count_approvals(session_approval_row_list_open(tx, in.session), err), 1);
        assert_int_equal(count_approvals(session_approval_row_list_due(tx, 49, 10), err), 0);
        assert_int_equal(count_approvals(session_approval_row_list_due(tx, 50, 10), err), 1);
        session_approval_row_first_ms(tx, &first, err);
        assert_int_equal(first, 50);
        session_approval_row_decide(tx, id, "allow", "discord:42", NULL, 9, err);
        assert_int_equal(BEHIND(), 1); /* its message still asks */
        session_approval_row_set_shown(tx, id, 77, "allow discord:42", err);
        assert_int_equal(BEHIND(), 0);
        assert_int_equal(count_approvals(session_approval_row_list_due(tx, 50, 10), err), 0);
        session_approval_row_first_ms(tx, &first, err);
        assert_int_equal(first, 0);
        /* decided before anybody was asked: there is no message */
        in.approval = "a2";
        session_approval_row_insert(tx, &in, &id, err);
        session_approval_row_decide(tx, id, "deny", NULL, NULL, 9, err);
        session_approval_row_set_shown(tx, id, 0, "deny ", err);
        assert_int_equal(BEHIND_SINCE(78), 0);
        /* decided after its chat refused it */
        in.approval = "a3";
        session_approval_row_insert(tx, &in, &id, err);
        session_approval_row_set_shown(tx, id, 0, SESSION_APPROVAL_UNASKED, err);
        session_approval_row_decide(tx, id, "deny", NULL, NULL, 9, err);
        assert_int_equal(BEHIND(), 1);
        return 0;
#undef BEHIND
#undef BEHIND_SINCE
}

static void an_approval_is_behind_until_its_message_says_what_it_is(void **state)
{
        rows_rig_run(*state, show_approvals);
}

static int keep_view(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row of = session("s-1", 3);
        struct session_view_row in = { .session = add(tx, &of, 1),
                                       .adapter = "dc",
                                       .channel = "7",
                                       .root = 11,
                                       .shown_seq = 4,
                                       .used_ms = 1 },
                                *out;
        struct session_view_recent recent;
        struct store_stmt *s;

        (void)arg;
        assert_int_equal(session_view_row_get(tx, in.session, &out, err), 0);
        session_view_row_put(tx, &in, err);
        in.own_thread = "9";
        in.closed = true;
        in.page = 12;
        in.page_from = 5;
        in.error = "gone";
        in.named = "fix it (ses-1)";
        in.renamed_ms = 6;
        session_view_row_put(tx, &in, err);
        assert_int_equal(session_view_row_get(tx, in.session, &out, err), 1);
        assert_string_equal(out->own_thread, "9");
        assert_string_equal(out->error, "gone");
        assert_null(out->thread);
        assert_int_equal(out->root, 11);
        assert_int_equal(out->page_from, 5);
        assert_string_equal(out->named, "fix it (ses-1)");
        assert_int_equal(out->renamed_ms, 6);
        assert_true(out->closed);
        free(out);
        s = session_view_row_list_recent(tx, 1001, 10);
        assert_int_equal(session_view_row_next(s, &recent, err), 0);
        s = session_view_row_list_recent(tx, 1000, 10);
        assert_int_equal(session_view_row_next(s, &recent, err), 1);
        assert_int_equal(recent.session, in.session);
        rows_end(s);
        return 0;
}

static void a_view_is_replaced(void **state)
{
        rows_rig_run(*state, keep_view);
}

static int keep_messages(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row of = session("s-1", 3);
        struct session_message_row in = { .session = add(tx, &of, 1),
                                          .adapter = "tg",
                                          .channel = "42",
                                          .created_ms = 1 },
                                   out;
        struct store_stmt *s;
        char id[20];
        int n = 0;

        (void)arg;
        in.message = id;
        for (int i = 1; i <= SESSION_MESSAGES_KEPT + 10; i++) {
                snprintf(id, sizeof(id), "%d", i);
                in.is_root = i == 2 || i == 4;
                session_message_row_insert(tx, &in, err);
                session_message_row_insert(tx, &in, err); /* known */
        }
        s = session_message_row_list(tx, 1000);
        while (session_message_row_next(s, &out, err) == 1) {
                assert_int_equal(strtol(out.message, NULL, 10), n == 0 ? 4 : n + 10);
                assert_int_equal(out.is_root, n == 0);
                n++;
        }
        assert_int_equal(n, SESSION_MESSAGES_KEPT + 1);
        s = session_message_row_list(tx, 1);
        assert_int_equal(session_message_row_next(s, &out, err), 1);
        assert_string_equal(out.message, id);
        assert_false(out.has_ended);
        rows_end(s);
        return 0;
}

static void the_first_and_the_newest_messages_of_a_session_are_kept(void **state)
{
        rows_rig_run(*state, keep_messages);
}

/* In a chat, with a message. */
static void show(struct store_tx *tx, int64_t session, const char *message)
{
        const struct session_view_row view = {
                .session = session, .adapter = "tg", .channel = "42", .used_ms = 1
        };
        const struct session_message_row in = { .session = session,
                                                .adapter = "tg",
                                                .channel = "42",
                                                .message = message,
                                                .created_ms = 1 };

        session_view_row_put(tx, &view, NULL);
        session_message_row_insert(tx, &in, NULL);
}

static int prune(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row active = session("s-1", 3), ended = session("s-2", 3);
        struct session_command_row old = command(0, "abc");
        int64_t id;

        (void)arg;
        ended.state = SESSION_ENDED;
        show(tx, add(tx, &active, 1), "1");
        old.session = add(tx, &ended, 1);
        show(tx, old.session, "2");
        session_command_row_insert(tx, &old, &id, err);
        for (enum prune_table t = PRUNE_SESSION_COMMANDS; t <= PRUNE_SESSIONS; t++)
                assert_int_equal(prune_row_delete(tx, t, 9000, 9000, err), 0);
        session_command_row_move(tx, id, SESSION_COMMAND_QUEUED, SESSION_COMMAND_EXPIRED, NULL,
                                 NULL, 6, err);
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSION_COMMANDS, 9000, 9000, err), 1);
        /* what belongs to it goes first */
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSIONS, 9000, 9000, err), 0);
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSION_VIEWS, 9000, 9000, err), 1);
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSIONS, 9000, 9000, err), 0);
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSION_MESSAGES, 9000, 9000, err), 1);
        assert_int_equal(prune_row_delete(tx, PRUNE_SESSIONS, 9000, 9000, err), 1);
        for (enum prune_table t = PRUNE_SESSION_COMMANDS; t <= PRUNE_SESSIONS; t++)
                assert_int_equal(prune_row_delete(tx, t, 9000, 9000, err), 0);
        return 0;
}

static void old_sessions_go_and_active_ones_stay(void **state)
{
        rows_rig_run(*state, prune);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ROWS_RIG_CASE(a_session_keeps_what_is_said_about_it),
                ROWS_RIG_CASE(a_command_takes_each_step_once),
                ROWS_RIG_CASE(an_approval_is_decided_once),
                ROWS_RIG_CASE(an_approval_is_behind_until_its_message_says_what_it_is),
                ROWS_RIG_CASE(a_view_is_replaced),
                ROWS_RIG_CASE(the_first_and_the_newest_messages_of_a_session_are_kept),
                ROWS_RIG_CASE(old_sessions_go_and_active_ones_stay),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
