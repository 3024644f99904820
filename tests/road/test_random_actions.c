/*
 * Random actions with restarts in between: people in a channel, and in threads that continue its
 * sessions, write, edit, delete and stop. SEED=n repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/id.h"

#define PEOPLE   3
#define MESSAGES 150

static void decides(struct rig *g, const struct incoming *in, struct decision *out)
{
        static char session[16];

        (void)g;
        out->per_person = !in->thread;
        /* thread t1 continues the session of person 1 */
        snprintf(session, sizeof(session), "s%s", in->thread ? in->thread + 1 : in->sender_id);
        out->session = session;
        if (in->text && strcmp(in->text, "/stop") == 0) {
                out->trigger = false;
                out->command = COMMAND_STOP;
        }
}

/* A person writes, edits or deletes a message, in the channel or in a thread. */
static void acts(struct rig *g, const char *type, unsigned message, const char *text,
                 bool in_thread)
{
        char sender[4], thread[4], id[16];
        struct incoming in = {
                .type = type, .guild = "batch", .text = text, .id = id, .sender_id = sender
        };

        snprintf(id, sizeof(id), "m%u", message);
        snprintf(sender, sizeof(sender), "%u", message % PEOPLE);
        snprintf(thread, sizeof(thread), "t%u", (message / PEOPLE) % PEOPLE);
        in.thread = in_thread ? thread : NULL;
        rig_receive(g, &in);
}

static void answer_one(struct rig *g, unsigned i)
{
        if (g->runs[i].run)
                rig_answer(g, i, "yes");
}

static void check_one_turn_per_session(const struct rig *g)
{
        for (unsigned i = 0; i < g->run_count; i++) {
                for (unsigned k = i + 1; g->runs[i].run && k < g->run_count; k++)
                        assert_false(g->runs[k].run &&
                                     strcmp(g->runs[i].run->session, g->runs[k].run->session) == 0);
        }
}

static void check_rows(struct rig *g)
{
        struct road_stats stats;

        road_stats(g->road, &stats);
        assert_int_equal(stats.lanes, 0);
        assert_int_equal(rig_count(g, "trigger_log WHERE status NOT IN ('done', 'cancelled')"
                                      " AND event_type = 'message.received'"),
                         0);
        assert_int_equal(rig_count(g, "turns WHERE state NOT IN ('done', 'cancelled')"), 0);
        /* only stopped turns and deleted messages are cancelled */
        assert_int_equal(
                rig_count(g, "trigger_log WHERE status = 'cancelled'"
                             " AND error NOT LIKE 'stopped by%' AND error NOT LIKE '%deleted%'"),
                0);
        /* each answered message was read once, as last edited */
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'done' AND turn IS NOT NULL"),
                         rig_count(g, "transcript WHERE role = 'user'"));
        assert_int_equal(rig_count(g, "trigger_log l"
                                      " JOIN journal j ON j.seq = coalesce(l.edited_by, l.event)"
                                      " WHERE l.status = 'done' AND l.turn IS NOT NULL"
                                      " AND NOT EXISTS (SELECT 1 FROM transcript x"
                                      " WHERE x.turn = l.turn AND x.role = 'user'"
                                      " AND j.payload LIKE '%\"text\":\"' || x.text || '\"%')"),
                         0);
        /* in the order of the messages */
        assert_int_equal(
                rig_count(g, "turns a"
                             " JOIN turns b ON a.conversation = b.conversation AND a.id < b.id"
                             " WHERE a.started_ms > b.started_ms"),
                0);
}

static void each_message_is_answered_once_or_was_taken_back(void **state)
{
        const char *given = getenv("SEED");
        unsigned seed =
                given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)id_random_below(1000000);
        struct rig *g = rig_new();
        unsigned said = 0, sent = 0, restarts = 0;

        (void)state;
        print_message("SEED=%u\n", seed);
        srand(seed);
        g->decides = decides;
        g->limits.turn_attempts = 100;
        road_set_limits(g->road, &g->limits);
        while (said < MESSAGES) {
                int what = rand() % 20;
                unsigned back = said > 0 ? said - 1 - (unsigned)rand() % (said < 4 ? said : 4) : 0;
                char text[32];

                g->debounce_ms = rand() % 3 ? 0 : rand() % 12;
                g->debounce_max_ms = 30;
                snprintf(text, sizeof(text), "%u.%u", said, sent);
                if (what < 8)
                        acts(g, EVENT_MESSAGE_RECEIVED, said++, text, rand() % 2);
                else if (what < 10)
                        acts(g, EVENT_MESSAGE_EDITED, back, text, rand() % 2);
                else if (what < 11)
                        acts(g, EVENT_MESSAGE_DELETED, back, NULL, false);
                else if (what < 12 && rand() % 4 == 0)
                        acts(g, EVENT_MESSAGE_RECEIVED, said++, "/stop", rand() % 2);
                else if (what < 16 && g->run_count > 0)
                        answer_one(g, g->run_count - 1 -
                                              (unsigned)rand() %
                                                      (g->run_count < 6 ? g->run_count : 6));
                sent += what < 11;
                if (what == 16 && restarts < 8 && rand() % 3 == 0) {
                        rig_run_for(g, 10);
                        rig_restart(g);
                        restarts++;
                }
                if (what > 12)
                        rig_run_for(g, rand() % 8);
                check_one_turn_per_session(g);
        }
        g->auto_answer = true;
        for (unsigned i = 0; i < g->run_count; i++)
                answer_one(g, i);
        rig_until_idle(g);
        check_rows(g);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_message_is_answered_once_or_was_taken_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
