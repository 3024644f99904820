/* Chat sessions: who need not address the bot again, for how long, and under which session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/placement_stub.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/dry_run.h"
#include "dispatch_rig.h"

/* Decides as for the road, and frees the extra write. */
static bool placed(struct dispatch *d, const struct incoming *in, struct decision *out)
{
        dispatch_decide(d, in, BEGINS_TURN, out);
        if (out->extra.fn)
                out->extra.done(out->extra.arg, NULL);
        return out->trigger;
}

static void end_turn(struct dispatch *d, const char *session, const char *thread)
{
        struct turn_run run = { .adapter = CHAT, .channel = "456", .session = session };
        struct turn_outcome outcome = { .answered = true, .thread = thread };

        dispatch_ended(d, &run, &outcome);
}

static bool understood(struct dispatch *d, const struct incoming *in)
{
        struct decision out;

        dispatch_decide(d, in, NULL, &out);
        return out.trigger;
}

static void a_mention_opens_a_session_for_its_sender(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming ann = group_message("7", "hello"), bob = group_message("8", "me too"),
                        elsewhere;
        struct decision out;
        char session[100];

        (void)state;
        assert_false(understood(d, &ann));
        ann.is_mention = true;
        assert_true(placed(d, &ann, &out));
        assert_true(out.per_person);
        assert_int_equal(strncmp(out.session, "discord-channel-456:", 20), 0);
        assert_int_equal(strlen(out.session), 20 + 36);
        snprintf(session, sizeof(session), "%s", out.session);
        end_turn(d, session, NULL);

        ann.is_mention = false;
        dispatch_set_clock(d, NOON + (WINDOW - 1) * SECONDS);
        assert_true(placed(d, &ann, &out));
        assert_string_equal(out.session, session);
        end_turn(d, session, NULL);
        assert_false(understood(d, &bob));
        elsewhere = ann;
        elsewhere.channel = "457";
        assert_false(understood(d, &elsewhere));
        dispatch_free(d);
}

static void activity_keeps_a_session_live_and_quiet_ends_it(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;
        char first[100];

        (void)state;
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        snprintf(first, sizeof(first), "%s", out.session);
        in.is_mention = false;
        dispatch_set_clock(d, NOON + 200 * SECONDS);
        assert_true(placed(d, &in, &out)); /* the person */
        end_turn(d, first, NULL);
        dispatch_set_clock(d, NOON + 400 * SECONDS);
        end_turn(d, first, NULL); /* the bot */
        dispatch_set_clock(d, NOON + 699 * SECONDS);
        assert_true(understood(d, &in));
        dispatch_set_clock(d, NOON + 700 * SECONDS);
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(
                out.reason,
                "not addressed to the bot: neither DM, mention, reply nor part of a conversation");
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        assert_string_not_equal(out.session, first);
        dispatch_free(d);
}

static void a_late_message_counts_when_it_was_written(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;

        (void)state;
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        end_turn(d, out.session, NULL);
        in.is_mention = false;
        dispatch_set_clock(d, NOON + 3600 * SECONDS); /* after an hour of downtime */
        in.time_ms = NOON + 100 * SECONDS;
        assert_true(understood(d, &in));
        in.time_ms = NOON + 400 * SECONDS;
        assert_false(understood(d, &in));
        in.time_ms = NOON + 7200 * SECONDS; /* the platform's clock may be ahead */
        assert_false(understood(d, &in));
        dispatch_free(d);
}

static void an_explanation_has_conversation_and_mode(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;
        struct buf json;

        (void)state;
        buf_init(&json, 0);
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json);
        assert_non_null(strstr(json.data, "\"mode\":null,\"conversation\":false,\"command\":null"));
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        buf_clear(&json);
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json);
        assert_non_null(
                strstr(json.data, "\"mode\":\"reply\",\"conversation\":true,\"command\":null"));
        in.text = "/why";
        buf_clear(&json);
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &json);
        assert_non_null(
                strstr(json.data, "\"mode\":null,\"conversation\":true,\"command\":\"why\""));
        buf_release(&json);
        dispatch_free(d);
}

static void a_long_turn_keeps_its_session_live(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello"), follow;
        struct decision out;
        char session[100];

        (void)state;
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        snprintf(session, sizeof(session), "%s", out.session);
        in.is_mention = false;
        dispatch_set_clock(d, NOON + 360 * SECONDS); /* still running */
        assert_true(understood(d, &in));
        end_turn(d, session, "900");
        follow = group_message("8", "and then?");
        follow.thread = "900";
        dispatch_set_clock(d, NOON + 659 * SECONDS);
        assert_true(understood(d, &in));
        assert_true(understood(d, &follow)); /* in the thread it began */
        dispatch_set_clock(d, NOON + 660 * SECONDS);
        assert_false(understood(d, &in));
        assert_false(understood(d, &follow));
        dispatch_free(d);
}

static void a_joined_message_keeps_its_session_live_no_longer(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;

        (void)state;
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        dispatch_decide(d, &in, JOINS_TURN, &out);
        assert_true(out.trigger);
        end_turn(d, out.session, NULL);
        out.extra.done(out.extra.arg, NULL);
        in.is_mention = false;
        dispatch_set_clock(d, NOON + (WINDOW - 1) * SECONDS);
        assert_true(understood(d, &in));
        dispatch_set_clock(d, NOON + WINDOW * SECONDS);
        assert_false(understood(d, &in));
        dispatch_free(d);
}

static void an_ambient_turn_has_no_session(void **state)
{
        struct dispatch *d = rig_dispatch(
                "[{\"when\": {\"channel\": \"456\"}, \"mode\": \"ambient\"}]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;

        (void)state;
        assert_true(placed(d, &in, &out));
        assert_null(out.session);
        assert_false(out.per_person);
        dispatch_free(d);
}

/* Each of two messages in a row; a new thread is not the channel's, nor one of a direct chat. */
static void only_a_new_thread_begins_a_session(void **state)
{
        static const struct {
                enum chat_kind chat;
                const char *thread;
                bool same;
        } rows[] = { { CHAT_GROUP, NULL, false },
                     { CHAT_GROUP, "900", true },
                     { CHAT_DM, NULL, true } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct dispatch *d = rig_dispatch("[{\"name\": \"deep\", \"when\": {\"text\": "
                                                  "\"deep\"}, \"mode\": \"thread\"}, {}]",
                                                  rig_adapter());
                struct incoming in = group_message("7", "hello");
                struct decision out;
                char session[100];

                in.chat = rows[i].chat;
                in.thread = rows[i].thread;
                assert_true(placed(d, &in, &out));
                snprintf(session, sizeof(session), "%s", out.session);
                in.text = "a deep question";
                for (int n = 0; n < 2; n++) {
                        assert_true(placed(d, &in, &out));
                        assert_string_equal(out.rule, "deep");
                        assert_int_equal(strcmp(out.session, session) == 0, rows[i].same);
                }
                in.text = "hello again";
                assert_true(placed(d, &in, &out));
                assert_string_equal(out.session, session);
                dispatch_free(d);
        }
}

static void a_thread_continues_the_session_that_began_it(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming ann = group_message("7", "a long story please"),
                        bob = group_message("8", "why?");
        struct decision out;
        char session[100];

        (void)state;
        ann.is_mention = true;
        assert_true(placed(d, &ann, &out));
        snprintf(session, sizeof(session), "%s", out.session);
        end_turn(d, session, "900");
        bob.thread = "900";
        dispatch_set_clock(d, NOON + 200 * SECONDS);
        assert_true(placed(d, &bob, &out));
        assert_string_equal(out.session, session);
        assert_false(out.per_person);
        end_turn(d, session, NULL);
        /* both chats keep the session live */
        ann.is_mention = false;
        dispatch_set_clock(d, NOON + 400 * SECONDS);
        assert_true(placed(d, &ann, &out));
        assert_string_equal(out.session, session);
        dispatch_free(d);
}

static void a_direct_chat_has_a_window_of_its_own(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;
        char first[100];

        (void)state;
        in.chat = CHAT_DM;
        in.channel = "77";
        assert_true(placed(d, &in, &out));
        assert_int_equal(strncmp(out.session, "discord-dm:", 11), 0);
        assert_false(out.per_person);
        snprintf(first, sizeof(first), "%s", out.session);
        end_turn(d, first, NULL);
        dispatch_set_clock(d, NOON + (DM_WINDOW - 1) * SECONDS);
        assert_true(placed(d, &in, &out));
        assert_string_equal(out.session, first);
        end_turn(d, first, NULL);
        dispatch_set_clock(d, NOON + (2 * DM_WINDOW) * SECONDS);
        /* a DM is always answered, here in a new session */
        assert_true(placed(d, &in, &out));
        assert_string_not_equal(out.session, first);
        dispatch_free(d);
}

static void without_windows_there_are_no_sessions(void **state)
{
        struct dispatch_adapter plain = rig_adapter();
        struct incoming in = group_message("7", "hello");
        struct decision out;
        struct dispatch *d;

        (void)state;
        plain.conversation_seconds = plain.dm_conversation_seconds = 0;
        d = rig_dispatch("[]", plain);
        in.is_mention = true;
        assert_true(placed(d, &in, &out));
        assert_null(out.session);
        assert_false(out.per_person);
        in.is_mention = false;
        dispatch_decide(d, &in, NULL, &out);
        assert_string_equal(out.reason, "not addressed to the bot: neither DM, mention nor reply");
        dispatch_free(d);
}

static void a_refused_message_opens_no_session(void **state)
{
        struct dispatch_adapter a = rig_adapter();
        struct incoming in = group_message("7", "hello");
        struct decision out;
        struct dispatch *d;

        (void)state;
        a.max_hops = 0;
        d = rig_dispatch("[]", a);
        in.is_mention = true;
        in.hops = 1;
        assert_false(placed(d, &in, &out));
        in.is_mention = false;
        in.hops = 0;
        assert_false(understood(d, &in));
        dispatch_free(d);
}

static void a_rule_may_require_a_conversation(void **state)
{
        struct dispatch *d = rig_dispatch(
                "[{\"name\": \"talk\", \"when\": {\"mention\": true, \"conversation\": true}}, "
                "{\"name\": \"call\", \"when\": {\"text\": \"^robo\"}}]",
                rig_adapter());
        struct dispatch *deaf = rig_dispatch("[{\"when\": {\"mention\": true}}]", rig_adapter());
        struct incoming in = group_message("7", "hello");
        struct decision out;

        (void)state;
        assert_false(understood(d, &in));
        in.text = "robo, hello";
        assert_true(placed(d, &in, &out));
        assert_string_equal(out.rule, "call");
        in.text = "and now?";
        assert_true(placed(d, &in, &out));
        assert_string_equal(out.rule, "talk");
        /* a rule without `conversation` does not accept it */
        in.is_mention = true;
        assert_true(placed(deaf, &in, &out));
        in.is_mention = false;
        assert_false(understood(deaf, &in));
        dispatch_free(d);
        dispatch_free(deaf);
}

static void an_answer_in_a_thread_has_the_threads_session(void **state)
{
        struct dispatch *d =
                rig_dispatch("[{\"when\": {\"reaction\": \"🔬\"}, \"mode\": \"thread\"}, "
                             "{\"when\": {\"conversation\": true}}]",
                             rig_adapter());
        struct incoming reaction = group_message("7", NULL), in = group_message("7", "thanks"),
                        follow;
        struct decision out;
        char session[100];

        (void)state;
        reaction.type = EVENT_REACTION_RECEIVED;
        reaction.emoji = "🔬";
        reaction.id = "900";
        assert_true(placed(d, &reaction, &out));
        snprintf(session, sizeof(session), "%s", out.session);
        assert_false(understood(d, &in)); /* not in the channel */
        end_turn(d, session, "900");
        assert_false(understood(d, &in));
        follow = group_message("8", "tell me more");
        follow.thread = "900";
        assert_true(placed(d, &follow, &out));
        assert_string_equal(out.session, session);
        dispatch_free(d);
}

/* ---- restarts, with a whole road ---- */

static void hear(struct rig *g, const struct incoming *in)
{
        unsigned acks = g->acks;

        rig_receive(g, in);
        rig_until(g, &g->acks, acks + 1);
        rig_until_idle(g);
}

static void sessions_and_their_threads_survive_a_restart(void **state)
{
        struct dispatch_adapter chat = rig_adapter();
        struct dispatch *d;
        struct incoming ann = group_message("7", "a long story please"),
                        bob = group_message("8", "why?");
        struct rig *g = rig_new();
        struct error err;
        char session[100];

        (void)state;
        g->auto_answer = g->auto_send = true;
        chat.thread_chars = 5; /* longer answers begin a thread */
        d = rig_dispatch("[]", chat);
        rig_decided_by(g, d);
        ann.is_mention = true;
        ann.id = "900";
        hear(g, &ann);
        assert_int_equal(g->run_count, 1);
        ann.id = NULL;
        snprintf(session, sizeof(session), "%s", rig_text(g, "session FROM turns"));
        assert_int_equal(strncmp(session, "discord-channel-456:", 20), 0);

        dispatch_free(d);
        d = rig_dispatch("[]", chat);
        dispatch_set_clock(d, NOON + 200 * SECONDS);
        assert_int_equal(dispatch_restore(d, g->store, &err), 0);
        rig_restart(g);
        rig_decided_by(g, d);
        ann.is_mention = false;
        hear(g, &ann);
        bob.thread = "t-900";
        hear(g, &bob);
        assert_int_equal(g->run_count, 3);
        assert_int_equal(rig_number(g, "count(DISTINCT session) FROM turns"), 1);
        bob.thread = NULL;
        hear(g, &bob); /* in the channel the session is Ann's */
        assert_int_equal(g->run_count, 3);
        dispatch_free(d);
        rig_free(g);
}

static void a_turn_open_at_a_restart_keeps_its_session_live(void **state)
{
        struct dispatch *d = rig_dispatch("[]", rig_adapter());
        struct incoming in = group_message("7", "think hard");
        struct rig *g = rig_new();
        struct error err;

        (void)state;
        rig_decided_by(g, d);
        in.is_mention = true;
        rig_receive(g, &in);
        rig_until(g, &g->run_count, 1);
        rig_update(g, "turns SET created_ms = ?1", NOON, 0); /* the road uses the real clock */
        dispatch_free(d);
        d = rig_dispatch("[]", rig_adapter());
        dispatch_set_clock(d, NOON + 2 * WINDOW * SECONDS);
        assert_int_equal(dispatch_restore(d, g->store, &err), 0);
        in.is_mention = false;
        assert_true(understood(d, &in));
        dispatch_set_clock(d, NOON + (int64_t)86400 * SECONDS); /* but not longer than a day */
        assert_false(understood(d, &in));
        g->real = (struct road_dispatch){ 0 };
        dispatch_free(d);
        rig_free(g);
}

/* ---- limits ---- */

static void the_quietest_session_is_evicted(void **state)
{
        struct chat_sessions *cs = chat_sessions_new(3);

        (void)state;
        chat_sessions_set_longest(cs, 900);
        chat_session_touch(cs, "p1", "s1", 0, NOON);
        chat_session_touch(cs, "p2", "s2", 0, NOON + 1);
        chat_session_touch(cs, "p3", "s3", 0, NOON + 2);
        chat_session_touch(cs, "p1", "s1", 0, NOON + 3);
        chat_session_touch(cs, "p4", "s4", 0, NOON + 4);
        assert_int_equal(chat_sessions_count(cs), 3);
        assert_null(chat_session_find(cs, "p2", 900, NOON + 5));
        assert_string_equal(chat_session_find(cs, "p1", 900, NOON + 5), "s1");
        /* expired ones are evicted first */
        chat_session_touch(cs, "p5", "s5", 0, NOON + 1000 * SECONDS);
        assert_int_equal(chat_sessions_count(cs), 1);
        chat_sessions_free(cs);
}

static void odd_clocks_and_ends_do_no_harm(void **state)
{
        struct chat_sessions *cs = chat_sessions_new(3);

        (void)state;
        chat_sessions_set_longest(cs, 900);
        chat_session_touch(cs, "p1", "s1", -1, NOON); /* its beginning was not seen */
        assert_non_null(chat_session_find(cs, "p1", 900, NOON));
        assert_null(chat_session_find(cs, "p1", 900, NOON + 900 * SECONDS));
        chat_session_touch(cs, "p1", "s1", 0, NOON - 100 * SECONDS); /* the clock was set back */
        assert_non_null(chat_session_find(cs, "p1", 900, NOON + 899 * SECONDS));
        chat_sessions_free(cs);
}

static void a_session_has_few_chats_and_a_chat_one_session(void **state)
{
        struct chat_sessions *cs = chat_sessions_new(10);
        char key[16];

        (void)state;
        chat_sessions_set_longest(cs, 900);
        for (int i = 0; i < 40; i++) {
                snprintf(key, sizeof(key), "t%d", i);
                chat_session_touch(cs, key, "s", 0, NOON);
        }
        assert_null(chat_session_find(cs, "t0", 900, NOON));
        assert_non_null(chat_session_find(cs, "t39", 900, NOON));
        chat_session_touch(cs, "t39", "other", 0, NOON);
        assert_string_equal(chat_session_find(cs, "t39", 900, NOON), "other");
        assert_non_null(chat_session_find(cs, "t38", 900, NOON));
        chat_sessions_free(cs);
}

static void a_question_does_not_join_an_ambient_turn(void **state)
{
        struct dispatch_adapter chat = { .commands = true,
                                         .debounce_ms = 60000,
                                         .debounce_max_ms = 60000 };
        struct dispatch *d = rig_dispatch(
                "[{\"name\": \"asked\", \"when\": {\"mention\": true}}, {\"name\": \"room\", "
                "\"when\": {\"channel\": \"456\"}, \"mode\": \"ambient\"}]",
                chat);
        struct incoming talk = group_message("7", "hm"),
                        question = group_message("8", "can you help?");
        struct rig *g = rig_new();

        (void)state;
        rig_decided_by(g, d);
        question.is_mention = true;
        rig_receive(g, &talk);
        rig_receive(g, &question);
        rig_receive(g, &question);
        rig_receive(g, &talk);
        rig_until_count(g, "trigger_log", 4);
        /* one ambient turn reads the channel for all of them */
        assert_string_equal(rig_list(g, "rule || ' ' || inputs FROM turns ORDER BY id"),
                            "room 1,4, asked 2,3");
        rig_free(g);
        dispatch_free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_mention_opens_a_session_for_its_sender),
                cmocka_unit_test(activity_keeps_a_session_live_and_quiet_ends_it),
                cmocka_unit_test(a_late_message_counts_when_it_was_written),
                cmocka_unit_test(an_explanation_has_conversation_and_mode),
                cmocka_unit_test(a_long_turn_keeps_its_session_live),
                cmocka_unit_test(a_joined_message_keeps_its_session_live_no_longer),
                cmocka_unit_test(an_ambient_turn_has_no_session),
                cmocka_unit_test(only_a_new_thread_begins_a_session),
                cmocka_unit_test(a_thread_continues_the_session_that_began_it),
                cmocka_unit_test(a_direct_chat_has_a_window_of_its_own),
                cmocka_unit_test(without_windows_there_are_no_sessions),
                cmocka_unit_test(a_refused_message_opens_no_session),
                cmocka_unit_test(a_rule_may_require_a_conversation),
                cmocka_unit_test(an_answer_in_a_thread_has_the_threads_session),
                cmocka_unit_test(sessions_and_their_threads_survive_a_restart),
                cmocka_unit_test(a_turn_open_at_a_restart_keeps_its_session_live),
                cmocka_unit_test(the_quietest_session_is_evicted),
                cmocka_unit_test(odd_clocks_and_ends_do_no_harm),
                cmocka_unit_test(a_session_has_few_chats_and_a_chat_one_session),
                cmocka_unit_test(a_question_does_not_join_an_ambient_turn),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
