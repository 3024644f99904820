/* Looking for sends that may have arrived: what the exchanges with the simulator cannot show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

#define OWN     NO("400", "Bad Request: message is not modified: specified new message content")
#define OTHERS  NO("400", "Bad Request: message can't be edited")
#define NOTHING NO("400", "Bad Request: message to edit not found")
#define MOVED                                                                             \
        "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: group chat was " \
        "upgraded to a supergroup chat\",\"parameters\":{\"migrate_to_chat_id\":" GROUP "}}"
#define SUPERGROUP "{\"ok\":true,\"result\":{\"type\":\"supergroup\"}}"
#define SENT                                                                         \
        "{\"ok\":true,\"result\":{\"message_id\":501,\"date\":1,\"chat\":{\"id\":7," \
        "\"type\":\"private\"}}}"
#define GROUP "-1001234567890"

/* As rig_connect; what was sent is looked for after so long. */
static void connect_after(struct rig *g, const char *ms)
{
        static const char *const greeting[] = { ME, NO_HOOK, NONE, NULL };
        char more[60];

        says_first(g, greeting, COUNT(greeting));
        snprintf(more, sizeof(more), ",\"reconcileAfterMs\":%s", ms);
        rig_open(g, more);
        for (int i = 0; i < 10000 && fake_server_requests(g->server) < 4; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
}

static void connect_now(struct rig *g)
{
        connect_after(g, "0");
}

static struct telegram *telegram_of(struct rig *g)
{
        return rig_adapter(g)->self;
}

static const struct delivery hello = { .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"a\"}" };

static void look_for(struct rig *g, struct delivery d, int64_t ms)
{
        d.id = 42;
        d.fence = 5;
        d.adapter = g->name;
        d.reconcile_until_ms = loop_now_ms(g->loop) + ms;
        adapters_reconcile(g->adapters, &d);
}

static void look(struct rig *g, const char *channel, const char *read_from)
{
        struct delivery d = hello;

        d.channel = channel;
        d.read_from = read_from;
        look_for(g, d, 60000);
}

/* The same, for a moment only. */
static void glance(struct rig *g, const char *channel, const char *read_from)
{
        struct delivery d = hello;

        d.channel = channel;
        d.read_from = read_from;
        look_for(g, d, 100);
}

/* The store has this message and no other. */
static void has_record(const struct message_record *record)
{
        static struct message_records records;

        records = (struct message_records){ .items = record, .count = 1, .whole = true };
        fake_road.records = &records;
}

/* The i-th request asks for this message. */
static void assert_asks(struct rig *g, unsigned i, const char *id)
{
        char member[40];

        snprintf(member, sizeof(member), "\"message_id\":%s", id);
        assert_string_equal(rig_method(g, i), "editMessageReplyMarkup");
        assert_non_null(strstr(rig_body(g, i), member));
}

/* The answer to the next questions. */
static void says_nothing_is_there(struct rig *g, int questions)
{
        while (questions-- > 0)
                says(g, 400, NOTHING);
}

static void assert_found(struct rig *g, const char *id)
{
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, id);
}

/* ---- what is asked ---- */

static void a_question_has_the_keyboard_of_the_message_that_is_looked_for(void **state)
{
        static const struct message_record record = {
                .channel = "7", .id = "3", .own = true, .plain = true
        };
        struct rig *g = *state;

        says(g, 400, OTHERS);
        says_nothing_is_there(g, 3);
        says(g, 400, OWN);
        connect_now(g);
        has_record(&record);
        look_for(g,
                 (struct delivery){ .kind = DELIVER_SEND,
                                    .channel = "7",
                                    .read_from = "7:5:7",
                                    .payload = "{\"text\":\"?\",\"buttons\":[[{\"text\":\"Yes\","
                                               "\"data\":\"y\"}]]}" },
                 60000);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_asks(g, 4, "6");
        assert_non_null(strstr(rig_body(g, 4),
                               "\"reply_markup\":{\"inline_keyboard\":[[{\"text\":\"Yes\","
                               "\"callback_data\":\"y\"}]]}"));
        assert_asks(g, 8, "3"); /* an earlier message, sent without one */
        assert_null(strstr(rig_body(g, 8), "reply_markup"));
}

static void messages_that_are_known_are_not_asked_for(void **state)
{
        static const struct message_record record = { .channel = "9", .id = "9:7" };
        struct rig *g = *state;

        says_nothing_is_there(g, 3);
        connect_now(g);
        has_record(&record);
        tg_ids_note(telegram_of(g), "8", 6, 0); /* other chats of the account */
        look(g, "7", "7:5:8");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_asks(g, 4, "9");
        assert_int_equal(fake_server_requests(g->server), 7);
}

static void keys_of_other_events_are_not_message_ids(void **state)
{
        static const struct message_record record = { .channel = "9", .id = "9:1:6" };
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        has_record(&record);
        look(g, "7", "7:5");
        assert_found(g, "6");
}

static void many_ids_are_asked_for_only_if_updates_do_not_explain_them(void **state)
{
        struct rig *g = *state;

        says_nothing_is_there(g, 3);
        connect_now(g);
        look(g, "7", "7:5:60");
        for (int64_t id = 6; id < 60; id++)
                tg_ids_note(telegram_of(g), "8", id, 0);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_asks(g, 4, "61");
        assert_int_equal(fake_server_requests(g->server), 7);
}

static void too_many_later_messages_end_the_search(void **state)
{
        struct rig *g = *state;

        connect_now(g);
        look(g, "7", "7:5:4102");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_string_equal(rig_sent(g)->why,
                            "it may have arrived: too many messages came after it");
}

/* The keyboard of the other message is not known; a question would remove it. */
static void nothing_is_asked_while_another_message_may_be_there(void **state)
{
        static const struct message_records records = { .whole = true, .ambiguous = true };
        struct rig *g = *state;

        connect_now(g);
        fake_road.records = &records;
        glance(g, "7", "7:5");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_string_equal(rig_sent(g)->why, "it may have arrived: an earlier message of this "
                                              "chat may have arrived, too");
        assert_int_equal(fake_server_requests(g->server), 4);
}

static void another_message_that_may_be_there_does_not_forbid_proof(void **state)
{
        static const struct message_records records = { .whole = true, .ambiguous = true };
        struct rig *g = *state;

        connect_now(g);
        fake_road.records = &records;
        look(g, "7", "7:5");
        tg_reconcile_sent(telegram_of(g), "8", 6, loop_now_ms(g->loop));
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(fake_server_requests(g->server), 4);
}

static void the_search_begins_after_the_newest_message_of_the_chat(void **state)
{
        static const struct message_record record = { .channel = "7", .id = "7", .own = true };
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        has_record(&record);
        look(g, "7", "7:5");
        assert_found(g, "8");
}

/* It was asked for when no message had this id yet. */
static void an_id_is_asked_for_again_once_a_higher_one_is_known(void **state)
{
        struct rig *g = *state;

        says_nothing_is_there(g, 3);
        says(g, 400, OWN);
        connect_now(g);
        look(g, "7", "7:5");
        rig_requests(g, 7);
        tg_ids_note(telegram_of(g), "8", 9, 0);
        tg_reconcile_sent(telegram_of(g), "8", 9, loop_now_ms(g->loop));
        assert_found(g, "6");
}

static void a_search_begins_at_the_message_that_is_answered(void **state)
{
        static const struct delivery answer = { .channel = "7",
                                                .payload = "{\"text\":\"\\\"replyTo\\\":\\\"99\","
                                                           "\"replyTo\":\"12\"}" };
        struct rig *g = *state;
        struct delivery other = answer;
        char text[60];

        connect_now(g);
        tg_reconcile_from(rig_adapter(g), &answer, text, sizeof(text));
        assert_string_equal(text, "7:12");
        tg_ids_note(telegram_of(g), "8", 20, 0);
        tg_reconcile_from(rig_adapter(g), &answer, text, sizeof(text));
        assert_string_equal(text, "7:20");
        other.channel = "-5"; /* message 12 is of the chat before it moved */
        tg_chat_moved(telegram_of(g), "-5", GROUP);
        tg_reconcile_from(rig_adapter(g), &other, text, sizeof(text));
        assert_string_equal(text, "");
        other.channel = "@news";
        tg_reconcile_from(rig_adapter(g), &other, text, sizeof(text));
        assert_string_equal(text, "");
}

/* ---- what is proof ---- */

static void only_a_message_that_is_certainly_later_is_proof(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;
        int64_t now;

        connect_after(g, "60000");
        tg = telegram_of(g);
        now = loop_now_ms(g->loop);
        look(g, "7", "7:5");
        tg_reconcile_sent(tg, "8", 9, now + 30000); /* Telegram may still work on ours */
        tg_reconcile_quiet(tg, now + 30000);
        tg_reconcile_received(tg, "8", 9);
        tg_ids_note(tg, "8", 20, 0);
        tg_reconcile_quiet(tg, now + 90000);
        tg_reconcile_received(tg, "8", 4);
        tg_reconcile_received(tg, "8", 19); /* older than one that had come before */
        tg_reconcile_received(tg, GROUP, 30);
        assert_string_equal(fake_road.read_from, "");
        tg_reconcile_received(tg, "8", 21);
        assert_string_equal(fake_road.read_from, "7:5:21");
}

static void a_message_with_an_id_from_before_the_send_is_no_proof(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        connect_after(g, "60000");
        tg = telegram_of(g);
        look(g, "7", "7:50"); /* nothing else is known */
        tg_reconcile_quiet(tg, loop_now_ms(g->loop) + 90000);
        tg_reconcile_received(tg, "8", 50);
        assert_string_equal(fake_road.read_from, "");
}

/* Message 6 may be older than ours, although its update came later. */
static void ids_above_an_update_are_asked_for(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;

        says_nothing_is_there(g, 3);
        says(g, 400, OWN);
        connect_now(g);
        tg = telegram_of(g);
        look(g, "7", "7:5");
        rig_requests(g, 7);
        tg_reconcile_quiet(tg, loop_now_ms(g->loop));
        tg_ids_note(tg, "8", 6, 0);
        tg_reconcile_received(tg, "8", 6);
        assert_found(g, "9");
}

static void a_later_send_with_a_lower_id_ends_the_search(void **state)
{
        struct rig *g = *state;

        connect_now(g);
        look(g, "7", "7:5");
        tg_reconcile_sent(telegram_of(g), "8", 5, loop_now_ms(g->loop));
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_string_equal(rig_sent(g)->why, "it may have arrived: Telegram's message ids do not "
                                              "only grow");
}

/* Bots do not get their own messages; if they did, the one that is looked for would be known. */
static void a_message_of_the_bot_among_the_updates_is_not_another(void **state)
{
        static const char update[] = "{\"update_id\":1,\"message\":{\"message_id\":6,\"date\":9,"
                                     "\"chat\":{\"id\":7,\"type\":\"private\"},"
                                     "\"from\":{\"id\":42,\"is_bot\":true,\"first_name\":\"Bot\"},"
                                     "\"text\":\"a\"}}";
        struct rig *g = *state;
        json_t *json = json_read(update, strlen(update), NULL);

        connect_now(g);
        tg_intake_add(telegram_of(g), json, NULL);
        json_decref(json);
        assert_false(tg_ids_known(telegram_of(g), "7", 6));
}

/* ---- topics ---- */

/* An update about a topic of the bot's own. */
static void topic_is_created(struct rig *g, int id, const char *name)
{
        json_t *json =
                json_pack("{s:i, s:{s:i, s:i, s:{s:I, s:s}, s:{s:i, s:b}, s:{s:s, s:i}}}",
                          "update_id", id, "message", "message_id", id, "date", 9, "chat", "id",
                          (json_int_t)-1001234567890, "type", "supergroup", "from", "id", 42,
                          "is_bot", true, "forum_topic_created", "name", name, "icon_color", 1);

        tg_intake_add(telegram_of(g), json, NULL);
        json_decref(json);
}

static void look_for_topic(struct rig *g, const char *read_from, int64_t ms)
{
        look_for(g,
                 (struct delivery){ .kind = DELIVER_THREAD,
                                    .channel = GROUP,
                                    .payload = "{\"name\":\"session\"}",
                                    .read_from = read_from },
                 ms);
}

static void a_topic_is_found_by_its_name_and_a_later_id(void **state)
{
        struct rig *g = *state;
        char from[60];

        connect_after(g, "60000");
        topic_is_created(g, 6, "session"); /* an older one */
        tg_reconcile_from(rig_adapter(g),
                          &(struct delivery){ .kind = DELIVER_THREAD, .channel = GROUP }, from,
                          sizeof(from));
        assert_string_equal(from, GROUP ":6");
        look_for_topic(g, from, 60000);
        topic_is_created(g, 7, "other");
        topic_is_created(g, 8, "session");
        assert_found(g, "8");
        assert_int_equal(fake_server_requests(g->server), 4); /* nothing was asked */
}

/* The first thing that the bot does in a forum. */
static void a_topic_is_looked_for_in_a_chat_of_which_nothing_is_known(void **state)
{
        struct rig *g = *state;
        char from[60];

        connect_after(g, "60000");
        tg_reconcile_from(rig_adapter(g),
                          &(struct delivery){ .kind = DELIVER_THREAD, .channel = GROUP }, from,
                          sizeof(from));
        assert_string_equal(from, GROUP ":0");
        topic_is_created(g, 2, "session"); /* before it is looked for, as after a crash */
        look_for_topic(g, from, 60000);
        assert_found(g, "2");
}

static void a_topic_is_unsure_while_updates_may_wait(void **state)
{
        struct rig *g = *state;

        connect_now(g);
        look_for_topic(g, GROUP ":5", 100);
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
}

static void many_topics_are_not_remembered_for_ever(void **state)
{
        struct rig *g = *state;

        connect_now(g);
        for (int id = 1; id <= 200; id++)
                topic_is_created(g, id, "session");
        assert_int_equal(tg_topic_find(telegram_of(g), GROUP, "session", 0), 200 - 31);
        assert_int_equal(tg_topic_newest(telegram_of(g), GROUP), 200);
        assert_int_equal(json_object_size(json_object_get(telegram_of(g)->saved, "topics")), 32);
}

/* ---- chats that moved ---- */

static void a_position_in_the_chat_before_it_moved_is_of_no_use(void **state)
{
        struct rig *g = *state;

        connect_now(g);
        tg_chat_moved(telegram_of(g), "-5", GROUP);
        look(g, "-5", "-5:7");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_non_null(strstr(rig_sent(g)->why, "became a supergroup"));
        assert_int_equal(fake_server_requests(g->server), 4);
}

static void a_chat_that_moves_while_it_is_asked_is_followed(void **state)
{
        struct rig *g = *state;

        says(g, 400, MOVED);
        connect_now(g);
        look(g, "-5", "-5:7");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_non_null(strstr(rig_sent(g)->why, "became a supergroup"));
        assert_string_equal(tg_chat_id(telegram_of(g), "-5"), GROUP);
}

/* The record has the old name of the chat; message 9 may be of either. */
static void records_of_the_chat_before_it_moved_are_not_compared(void **state)
{
        static const struct message_record record = { .channel = "-5", .id = "9", .own = true };
        struct rig *g = *state;

        connect_now(g);
        tg_chat_moved(telegram_of(g), "-5", GROUP);
        has_record(&record);
        glance(g, GROUP, GROUP ":5");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_UNSURE);
        assert_non_null(strstr(rig_sent(g)->why, "an earlier message of this chat"));
        assert_false(tg_ids_known(telegram_of(g), GROUP, 9));
}

static void ids_of_the_chat_before_it_moved_are_not_known_in_the_new_one(void **state)
{
        static const struct message_record record = { .channel = "-5", .id = "-5:6" };
        struct rig *g = *state;

        says(g, 200, SUPERGROUP);
        says(g, 400, OWN);
        connect_now(g);
        tg_chat_moved(telegram_of(g), "-5", GROUP);
        has_record(&record);
        look(g, GROUP, GROUP ":5");
        assert_found(g, "6");
}

/* Sends to the old and to the new name do not wait for each other. */
static void a_send_by_the_new_name_does_not_hide_an_earlier_one_by_the_old(void **state)
{
        static const struct message_record record = { .channel = GROUP, .id = "7", .own = true };
        struct rig *g = *state;

        says(g, 200, SUPERGROUP);
        says(g, 400, OWN);
        connect_now(g);
        tg_chat_moved(telegram_of(g), "-5", GROUP);
        has_record(&record);
        look(g, "-5", GROUP ":5");
        assert_found(g, "6");
}

/* ---- late answers ---- */

static void a_send_under_way_is_cut_before_it_is_looked_for(void **state)
{
        struct rig *g = *state;

        says(g, 200, NULL);
        says(g, 400, OWN);
        connect_now(g);
        rig_send(g, hello);
        rig_requests(g, 5);
        look(g, "7", "7:5");
        assert_true(TAILQ_EMPTY(&telegram_of(g)->sends));
        assert_found(g, "6");
}

static void an_answer_that_comes_too_late_is_not_taken_for_another_message(void **state)
{
        struct rig *g = *state;

        says(g, 200, SENT);
        connect_now(g);
        fake_road.ignores_results = true;
        rig_send(g, hello);
        rig_sent(g);
        assert_false(tg_ids_known(telegram_of(g), "7", 501));
}

static void a_find_that_comes_too_late_is_not_taken_for_another_message(void **state)
{
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        fake_road.ignores_results = true;
        look(g, "7", "7:5");
        rig_sent(g);
        assert_false(tg_ids_known(telegram_of(g), "7", 6));
}

/* Message 6 was written before ours, but its update came after a poll without updates. */
static void a_late_update_is_no_proof_that_nothing_arrived(void **state)
{
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        look(g, "7", "7:5:6");
        assert_found(g, "7");
}

static void nothing_before_and_after_a_later_message_is_proof(void **state)
{
        struct rig *g = *state;

        says_nothing_is_there(g, 3);
        connect_now(g);
        look(g, "7", "7:5:6");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(fake_server_requests(g->server), 7);
}

/* In a supergroup, an own message may be newer than what is known, and not among the records. */
static void a_find_needs_the_newest_message_of_a_supergroup(void **state)
{
        static const struct message_record record = {
                .channel = GROUP, .id = "4", .own = true, .plain = true
        };
        static const struct {
                struct message_records records;
                enum send_outcome outcome;
        } rows[] = {
                { { .whole = true }, SEND_DONE },
                { { .items = &record, .count = 1 }, SEND_DONE },
                { { .whole = false }, SEND_UNSURE },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 200, SUPERGROUP);
                says(g, 400, OWN);
                connect_now(g);
                fake_road.records = &rows[i].records;
                glance(g, GROUP, GROUP ":5");
                assert_int_equal(rig_sent(g)->result.outcome, rows[i].outcome);
                rig_free(g);
        }
}

static void many_supergroups_do_not_displace_the_ids_of_the_account(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;
        char chat[24];

        connect_now(g);
        tg = telegram_of(g);
        tg_ids_note(tg, "7", 5, 0);
        for (int i = 0; i < 1000; i++) {
                snprintf(chat, sizeof(chat), "-100%010d", 1000000000 + i);
                tg_ids_note(tg, chat, 9, 0);
        }
        assert_true(tg_ids_known(tg, "8", 5));
        assert_int_equal(tg_ids_highest(tg, chat), 9);
        assert_true(tg->spaces.count <= 256);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                T(a_question_has_the_keyboard_of_the_message_that_is_looked_for),
                T(messages_that_are_known_are_not_asked_for),
                T(keys_of_other_events_are_not_message_ids),
                T(many_ids_are_asked_for_only_if_updates_do_not_explain_them),
                T(too_many_later_messages_end_the_search),
                T(nothing_is_asked_while_another_message_may_be_there),
                T(another_message_that_may_be_there_does_not_forbid_proof),
                T(the_search_begins_after_the_newest_message_of_the_chat),
                T(an_id_is_asked_for_again_once_a_higher_one_is_known),
                T(a_search_begins_at_the_message_that_is_answered),
                T(only_a_message_that_is_certainly_later_is_proof),
                T(a_message_with_an_id_from_before_the_send_is_no_proof),
                T(ids_above_an_update_are_asked_for),
                T(a_later_send_with_a_lower_id_ends_the_search),
                T(a_message_of_the_bot_among_the_updates_is_not_another),
                T(a_topic_is_found_by_its_name_and_a_later_id),
                T(a_topic_is_looked_for_in_a_chat_of_which_nothing_is_known),
                T(a_topic_is_unsure_while_updates_may_wait),
                T(many_topics_are_not_remembered_for_ever),
                T(a_position_in_the_chat_before_it_moved_is_of_no_use),
                T(a_chat_that_moves_while_it_is_asked_is_followed),
                T(records_of_the_chat_before_it_moved_are_not_compared),
                T(ids_of_the_chat_before_it_moved_are_not_known_in_the_new_one),
                T(a_send_by_the_new_name_does_not_hide_an_earlier_one_by_the_old),
                T(a_send_under_way_is_cut_before_it_is_looked_for),
                T(an_answer_that_comes_too_late_is_not_taken_for_another_message),
                T(a_find_that_comes_too_late_is_not_taken_for_another_message),
                T(a_late_update_is_no_proof_that_nothing_arrived),
                T(nothing_before_and_after_a_later_message_is_proof),
                cmocka_unit_test(a_find_needs_the_newest_message_of_a_supergroup),
                T(many_supergroups_do_not_displace_the_ids_of_the_account),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
