/* Which chat shows which session, and who is trusted to steer all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/bus_rig.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "rows/prune_row.h"
#include "rows/session_view_row.h"

static int64_t person_of(void *arg, const char *platform, const char *user)
{
        (void)arg;
        return strcmp(platform, "discord") == 0 && strcmp(user, "42") == 0 ? 3 : 0;
}

static struct remote *open_remote(struct bus_rig *r, char **people, size_t count)
{
        struct remote_env env = {
                .loop = r->loop, .store = r->store, .bus = r->bus, .person_of = person_of
        };
        struct remote_conf conf = { .command_seconds = 60,
                                    .archive_seconds = 60,
                                    .active = 10,
                                    .queued = 10,
                                    .people = { people, count, true } };
        struct error err = { 0 };
        struct remote *remote = remote_open(&env, &conf, &err);

        assert_non_null(remote);
        return remote;
}

static int64_t at(const struct remote *r, const char *channel, const char *thread)
{
        struct chat_key chat = { "dc", channel, thread };

        return session_index_find(r, &chat, NULL, NULL);
}

static int64_t reply(const struct remote *r, unsigned message)
{
        struct chat_key chat = { "dc", "7", NULL };
        char id[20];

        snprintf(id, sizeof(id), "%u", message);
        return session_index_find(r, &chat, id, NULL);
}

static void show(struct remote *r, const struct session_row *row, unsigned message, bool is_root)
{
        struct chat_key chat = { "dc", "7", NULL };
        char id[20];

        snprintf(id, sizeof(id), "%u", message);
        session_index_add_message(r, row, &chat, id, is_root);
}

static void a_thread_is_found_with_and_without_its_channel(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);
        struct session_row alone = { .id = 1, .adapter = "dc", .channel = "9" };
        struct session_row whole = { .id = 2, .adapter = "dc", .channel = "7", .thread = "8" };

        assert_int_equal(at(r, "7", "9"), 0);
        remote_linked(r, &alone);
        remote_linked(r, &whole);
        assert_int_equal(at(r, "7", "9"), 1); /* Discord names the channel of a thread, too */
        assert_int_equal(at(r, "9", NULL), 1);
        assert_int_equal(at(r, "7", "8"), 2);
        assert_int_equal(at(r, "7", NULL), 0);
        remote_close(r);
}

static void the_last_session_of_a_chat_has_it_until_it_ends_or_moves(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);
        struct session_row first = { .id = 1, .adapter = "dc", .channel = "7" };
        struct session_row second = { .id = 2, .adapter = "dc", .channel = "7" };

        remote_linked(r, &first);
        remote_linked(r, &second);
        assert_int_equal(at(r, "7", NULL), 2);
        second.channel = "8";
        remote_linked(r, &second);
        assert_int_equal(at(r, "7", NULL), 1);
        assert_int_equal(at(r, "8", NULL), 2);
        second.state = SESSION_ENDED;
        remote_linked(r, &second);
        assert_int_equal(at(r, "8", NULL), 0);
        remote_close(r);
}

static void when_it_ends_the_one_before_has_the_chat(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);
        struct session_row rows[] = { { .id = 1, .adapter = "dc", .channel = "7" },
                                      { .id = 2, .adapter = "dc", .channel = "7" },
                                      { .id = 3, .adapter = "dc", .channel = "7" } };

        for (size_t i = 0; i < COUNT(rows); i++)
                remote_linked(r, &rows[i]);
        remote_linked(r, &rows[1]); /* again */
        assert_int_equal(at(r, "7", NULL), 2);
        rows[1].state = SESSION_ENDED;
        remote_linked(r, &rows[1]);
        assert_int_equal(at(r, "7", NULL), 3);
        rows[0].channel = "8";
        remote_linked(r, &rows[0]);
        assert_int_equal(at(r, "8", NULL), 1);
        rows[2].state = SESSION_ENDED;
        remote_linked(r, &rows[2]);
        assert_int_equal(at(r, "7", NULL), 0);
        remote_close(r);
}

static int write_rows(struct store_tx *tx, void *arg, struct error *err)
{
        static const struct {
                const char *name;
                enum session_state state;
        } rows[] = { { "a", SESSION_ACTIVE },
                     { "b", SESSION_ARCHIVED },
                     { "c", SESSION_ENDED },
                     { "a", SESSION_ARCHIVED },
                     { "a", SESSION_ENDED } };
        char name[8];
        int64_t id;

        (void)arg;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct session_row row = { .session = name,
                                           .trace = "t",
                                           .state = rows[i].state,
                                           .adapter = "dc",
                                           .channel = rows[i].name };

                snprintf(name, sizeof(name), "%zu", i);
                if (session_row_insert(tx, &row, &id, err) < 0)
                        return -1;
        }
        return 0;
}

static void links_are_known_after_a_restart(void **state)
{
        struct bus_rig *rig = *state;
        struct remote *r;

        assert_int_equal(store_write_now(rig->store, write_rows, NULL, NULL), 0);
        r = open_remote(rig, NULL, 0);
        assert_int_equal(at(r, "a", NULL), 4);
        remote_linked(r, &(struct session_row){ .id = 4, .state = SESSION_ENDED });
        assert_int_equal(at(r, "a", NULL), 1);
        assert_int_equal(at(r, "b", NULL), 2);
        assert_int_equal(at(r, "c", NULL), 0);
        remote_close(r);
}

static void a_reply_finds_its_session_by_the_first_and_the_newest_messages(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);
        struct session_row row = { .id = 1, .identity = "discord:42" };
        struct session_row other = { .id = 2 };
        const char *owner;
        unsigned last = SESSION_MESSAGES_KEPT + 10;

        show(r, &other, 1000, false);
        for (unsigned i = 1; i <= last; i++) {
                show(r, &row, i, i == 2);
                show(r, &row, i, i == 2); /* known */
        }
        for (unsigned i = 1; i <= last; i++)
                assert_int_equal(reply(r, i), i == 2 || i > last - SESSION_MESSAGES_KEPT);
        assert_int_equal(reply(r, 1000), 2);
        session_index_find(r, &(struct chat_key){ "dc", "7", NULL }, "2", &owner);
        assert_string_equal(owner, "discord:42");
        remote_close(r);
}

static void messages_are_known_when_their_session_goes_on(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);
        struct session_row row = { .id = 1, .adapter = "dc", .channel = "7" };

        remote_linked(r, &row);
        show(r, &row, 1, true);
        row.state = SESSION_ENDED;
        session_index_put(r, &row);
        assert_int_equal(reply(r, 1), 0);
        row.state = SESSION_ACTIVE;
        row.adapter = NULL;
        session_index_put(r, &row);
        assert_int_equal(reply(r, 1), 1);
        assert_int_equal(at(r, "7", NULL), 0);
        remote_close(r);
}

#define MANY 1000 /* sessions, with more messages than are kept of all */

static void messages_of_the_session_shown_longest_ago_go_first(void **state)
{
        struct remote *r = open_remote(*state, NULL, 0);

        for (unsigned i = 0; i < MANY * SESSION_MESSAGES_KEPT; i++)
                show(r, &(struct session_row){ .id = 1 + i / SESSION_MESSAGES_KEPT }, i, false);
        assert_int_equal(reply(r, 0), 0);
        assert_int_equal(reply(r, MANY * SESSION_MESSAGES_KEPT - 1), MANY);
        assert_int_equal(reply(r, MANY * SESSION_MESSAGES_KEPT / 2), 1 + MANY / 2);
        remote_close(r);
}

static int prune_row(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return prune_row_delete(tx, PRUNE_SESSIONS, 9000, 9000, err) > 0 ? 0 : -1;
}

static void sessions_that_were_pruned_are_forgotten(void **state)
{
        struct bus_rig *rig = *state;
        struct remote *r;

        assert_int_equal(store_write_now(rig->store, write_rows, NULL, NULL), 0);
        r = open_remote(rig, NULL, 0);
        show(r, &(struct session_row){ .id = 2 }, 1, true);
        assert_int_equal(store_write_now(rig->store, prune_row, NULL, NULL), 0);
        session_index_check(r);
        while (r->writes > 0)
                loop_step(rig->loop, true);
        assert_int_equal(at(r, "a", NULL), 1); /* is active */
        assert_int_equal(at(r, "b", NULL), 0);
        assert_int_equal(reply(r, 1), 0);
        assert_int_equal(session_index_chats(r), 1);
        remote_close(r);
}

static void accounts_and_persons_are_trusted(void **state)
{
        char account[] = "telegram:7", person[] = "per-3";
        char *people[] = { account, person };
        struct remote *r = open_remote(*state, people, 2);

        assert_true(remote_trusts(r, "telegram", "7"));
        assert_true(remote_trusts(r, "discord", "42"));
        assert_false(remote_trusts(r, "discord", "7"));
        assert_false(remote_trusts(r, "telegram", "77"));
        assert_false(remote_trusts(r, "telegram", NULL));
        remote_close(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_thread_is_found_with_and_without_its_channel,
                                                bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(
                        the_last_session_of_a_chat_has_it_until_it_ends_or_moves, bus_rig_setup,
                        bus_rig_teardown),
                cmocka_unit_test_setup_teardown(when_it_ends_the_one_before_has_the_chat,
                                                bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(links_are_known_after_a_restart, bus_rig_setup,
                                                bus_rig_teardown),
                cmocka_unit_test_setup_teardown(
                        a_reply_finds_its_session_by_the_first_and_the_newest_messages,
                        bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(messages_are_known_when_their_session_goes_on,
                                                bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(messages_of_the_session_shown_longest_ago_go_first,
                                                bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(sessions_that_were_pruned_are_forgotten,
                                                bus_rig_setup, bus_rig_teardown),
                cmocka_unit_test_setup_teardown(accounts_and_persons_are_trusted, bus_rig_setup,
                                                bus_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
