/* Cards, and deliveries that name others: their JSON, their order, what a crash leaves of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/patience.h"
#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "road/outbox/card.h"

static struct outbox_receipt last;
static unsigned receipts;

static void on_put(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        last = *receipt;
        receipts++;
}

/* The number of the delivery; 0: refused. */
static int64_t put(struct rig *g, struct outgoing out)
{
        unsigned before = receipts;

        if (!out.adapter)
                out.adapter = "cards";
        if (!out.channel)
                out.channel = "c";
        outbox_submit(g->road, &out, on_put, NULL);
        rig_until(g, &receipts, before + 1);
        return last.error.kind == ERR_NONE ? last.delivery : 0;
}

/* Of the delivery with this number, a literal: the first of a rig has 1. */
#define ROW(g, id, columns) rig_text(g, columns " FROM deliveries WHERE id = " #id)

static void until_ended(struct rig *g)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        struct road_stats s;

        for (road_stats(g->road, &s); s.deliveries_open > 0; road_stats(g->road, &s)) {
                assert_true(clock_mono_ms() < deadline);
                rig_run_for(g, 2);
        }
}

/* The place in g->sent of a delivery's last attempt. */
static const struct rig_sent *sent(const struct rig *g, int64_t id)
{
        for (unsigned i = g->sent_count; i > 0; i--)
                if (g->sent[i - 1].delivery == id)
                        return &g->sent[i - 1];
        fail_msg("delivery %lld was not sent", (long long)id);
        return NULL;
}

/* ---- JSON ---- */

static void a_card_is_written_and_read_again(void **state)
{
        const struct card card = { .title = "🛠️ Tool Execution: bash",
                                   .color = 0xffa500,
                                   .body = "Command execution started in **/home/dev**",
                                   .fields = { { "Input", "```\nls\n```", false },
                                               { "Session", "session-1", true } },
                                   .field_count = 2,
                                   .footer = "OMP Agent System",
                                   .time_ms = 1700000000000 };
        char *json = card_json(&card);
        struct card again;
        json_t *root;

        (void)state;
        assert_string_equal(json,
                            "{\"title\":\"🛠️ Tool Execution: bash\",\"color\":\"#FFA500\","
                            "\"body\":\"Command execution started in **/home/dev**\","
                            "\"fields\":[{\"name\":\"Input\",\"value\":\"```\\nls\\n```\"},"
                            "{\"name\":\"Session\",\"value\":\"session-1\",\"inline\":true}],"
                            "\"footer\":\"OMP Agent System\",\"time\":1700000000000}");
        assert_int_equal(card_parse(json, &root, &again, NULL), 0);
        assert_string_equal(again.title, card.title);
        assert_int_equal(again.color, card.color);
        assert_int_equal(again.field_count, 2);
        assert_string_equal(again.fields[0].value, card.fields[0].value);
        assert_true(again.fields[1].is_inline);
        assert_int_equal(again.time_ms, card.time_ms);
        json_decref(root);
        free(json);
}

static void hostile_text_becomes_a_small_valid_card(void **state)
{
        struct card card = { .title = "a\nb\x1b[31m\xff\xe2\x80\xae", .body = "\r\n \t" };
        char *long_text = mem_alloc(100001), *json;
        struct card again;
        json_t *root;

        (void)state;
        memset(long_text, '"', 100000);
        long_text[100000] = '\0';
        card.footer = long_text;
        for (size_t i = 0; i < CARD_FIELDS_MAX; i++)
                card.fields[i] = (struct card_field){ i == 3 ? " " : "name", long_text, false };
        card.field_count = 1000; /* more than there are */
        json = card_json(&card);
        assert_true(strlen(json) < CARD_BYTES_MAX);
        assert_int_equal(card_parse(json, &root, &again, NULL), 0);
        assert_string_equal(again.title, "a b[31m\xef\xbf\xbd");
        assert_null(again.body);
        assert_int_equal(again.field_count, CARD_FIELDS_MAX - 1);
        json_decref(root);
        free(json);
        free(long_text);
}

static void wrong_cards_are_refused_by_name(void **state)
{
        static const struct {
                const char *json, *why;
        } rows[] = {
                { "{", "the card is no JSON: " },
                { "[]", "a card must be an object" },
                { "{}", "a card needs a title, a body or fields" },
                { "{\"title\":1}", "'title' of the card must be a text" },
                { "{\"title\":\"x\",\"color\":\"red\"}",
                  "'color' of the card must be like \"#FFA500\"" },
                { "{\"title\":\"x\",\"color\":\"#12345g\"}",
                  "'color' of the card must be like \"#FFA500\"" },
                { "{\"titel\":\"x\"}", "a card has no 'titel'" },
                { "{\"title\":\"x\",\"time\":\"now\"}", "'time' of the card must be milliseconds" },
                { "{\"fields\":{}}", "'fields' of the card must be a list of at most 25" },
                { "{\"fields\":[{\"name\":\"x\"}]}",
                  "each field of the card needs 'name' and 'value'" },
                { "{\"fields\":[{\"name\":\"x\",\"values\":\"y\"}]}",
                  "a field of the card has 'name' and 'value', texts, and 'inline', true or "
                  "false; it has no such 'values'" },
        };
        struct error err;
        struct card card;
        json_t *root;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                assert_int_equal(card_parse(rows[i].json, &root, &card, &err), -1);
                assert_null(root);
                assert_int_equal(err.kind, ERR_INVALID);
                assert_memory_equal(err.text, rows[i].why, strlen(rows[i].why));
        }
}

static void a_card_is_told_by_its_title(void **state)
{
        static const struct {
                const char *payload, *said;
        } rows[] = {
                { "{\"text\":\"a\",\"card\":{\"title\":\"b\"}}", "a" },
                { "{\"card\":{\"title\":\"b\",\"body\":\"c\"}}", "b" },
                { "{\"card\":{\"body\":\"c\"}}", "c" },
                { "{}", NULL },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                json_t *payload = json_loads(rows[i].payload, 0, NULL);
                const char *said = card_said(payload);

                assert_true(said ? rows[i].said && strcmp(said, rows[i].said) == 0 : !rows[i].said);
                json_decref(payload);
        }
}

/* ---- in the outbox ---- */

#define CARD "{\"title\":\"Tool\",\"color\":\"#FFA500\"}"

static void a_card_is_part_of_its_delivery(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        put(g, (struct outgoing){ .card = CARD, .buttons = "[[{\"text\":\"Go\"}]]" });
        assert_string_equal(ROW(g, 1, "payload"),
                            "{\"card\":{\"title\":\"Tool\",\"color\":\"#FFA500\"},"
                            "\"buttons\":[[{\"text\":\"Go\"}]]}");
        put(g, (struct outgoing){ .text = "one|two", .card = CARD });
        assert_string_equal(ROW(g, 2, "payload"), "{\"text\":\"one\"}");
        assert_string_equal(ROW(g, 3, "payload"), "{\"text\":\"two\",\"card\":{\"title\":\"Tool\","
                                                  "\"color\":\"#FFA500\"}}");
        until_ended(g);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.sent'"), 3);
        rig_free(g);
}

static void a_platform_without_cards_gets_text(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_send = true;
        put(g, (struct outgoing){ .adapter = "x", .text = "see", .card = CARD });
        until_ended(g);
        assert_string_equal(g->sent[0].text, "see/Tool");
        rig_free(g);
}

static void a_wrong_card_is_refused(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        assert_int_equal(put(g, (struct outgoing){ .card = "{\"title\":7}" }), 0);
        assert_string_equal(last.error.text, "'title' of the card must be a text");
        assert_int_equal(put(g, (struct outgoing){ .kind = DELIVER_UPLOAD,
                                                   .file = { .path = "x" },
                                                   .card = CARD }),
                         0);
        assert_string_equal(last.error.text, "only messages and edits have cards");
        assert_int_equal(rig_count(g, "deliveries"), 0);
        rig_free(g);
}

/* ---- deliveries that name others ---- */

static void an_edit_waits_for_the_message_it_changes(void **state)
{
        struct rig *g = rig_new();
        int64_t id, edit;

        (void)state;
        id = put(g, (struct outgoing){ .text = "working" });
        edit = put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "done", .edits = id });
        rig_settle(g);
        assert_int_equal(g->sent_count, 1);
        rig_result(g, 0, SEND_RETRY, ERR_NET, 0); /* it does not pass a message that fails */
        rig_until(g, &g->sent_count, 2);
        rig_result(g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until(g, &g->sent_count, 3);
        assert_string_equal(sent(g, edit)->kind, "edit");
        assert_string_equal(sent(g, edit)->target, ROW(g, 1, "platform_id"));
        assert_string_equal(sent(g, edit)->text, "done");
        rig_free(g);
}

static void of_the_edits_that_wait_the_newest_is_sent(void **state)
{
        struct rig *g = rig_new();
        int64_t id, edit;

        (void)state;
        id = put(g, (struct outgoing){ .card = CARD });
        edit = put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "1", .edits = id });
        for (int i = 2; i < 50; i++) {
                char text[12];

                snprintf(text, sizeof(text), "%d", i);
                /* however its number is given */
                assert_int_equal(
                        put(g,
                            (struct outgoing){ .kind = DELIVER_EDIT, .text = text, .edits = id }),
                        edit);
        }
        g->auto_send = true;
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        until_ended(g);
        assert_int_equal(g->sent_count, 2);
        assert_string_equal(g->sent[1].text, "49");
        /* the message is known now, and nothing waits: each is sent */
        put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "50", .edits = edit });
        until_ended(g);
        assert_string_equal(g->sent[2].text, "50");
        assert_string_equal(g->sent[2].target, g->sent[1].target);
        rig_free(g);
}

static void an_edit_of_a_message_that_failed_ends_with_the_reason(void **state)
{
        struct rig *g = rig_new();
        int64_t id;

        (void)state;
        id = put(g, (struct outgoing){ .text = "working", .class = PACE_FINAL });
        put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "done", .edits = id });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        until_ended(g);
        assert_int_equal(g->sent_count, 1);
        assert_string_equal(ROW(g, 1, "state"), "failed");
        assert_string_equal(ROW(g, 2, "state || ': ' || error"),
                            "expired: the message it changes was never sent");
        rig_free(g);
}

static void an_edit_of_a_message_that_may_be_there_says_so(void **state)
{
        struct rig *g = rig_new();
        int64_t id;

        (void)state;
        id = put(g, (struct outgoing){ .adapter = "x", .text = "working" });
        put(g,
            (struct outgoing){ .adapter = "x", .kind = DELIVER_EDIT, .text = "done", .edits = id });
        rig_until(g, &g->sent_count, 1);
        rig_result(g, 0, SEND_UNSURE, ERR_NET, -1);
        until_ended(g);
        assert_string_equal(ROW(g, 1, "state"), "unknown");
        assert_string_equal(ROW(g, 2, "error"),
                            "the message it belongs to may have arrived, but its id is not known");
        rig_free(g);
}

static void messages_go_into_the_thread_of_another_in_order(void **state)
{
        struct rig *g = rig_new();
        int64_t root, thread, ids[3], edit, again;
        char place[32];

        (void)state;
        root = put(g, (struct outgoing){ .card = CARD, .class = PACE_EDIT });
        thread = put(g, (struct outgoing){
                                .kind = DELIVER_THREAD, .edits = root, .thread_name = "session" });
        for (int i = 0; i < 3; i++)
                ids[i] = put(g, (struct outgoing){ .text = i == 0   ? "first"
                                                           : i == 1 ? "second"
                                                                    : "third",
                                                   .in_thread_of = thread,
                                                   .class = i == 1 ? PACE_FINAL : PACE_EDIT });
        edit = put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "1st", .edits = ids[0] });
        again = put(g, (struct outgoing){ .text = "too", .in_thread_of = ids[0] });
        g->auto_send = true;
        rig_result(g, 0, SEND_DONE, ERR_NONE, -1);
        until_ended(g);
        assert_string_equal(sent(g, thread)->target, ROW(g, 1, "platform_id"));
        assert_string_equal(sent(g, thread)->thread, "");
        assert_string_equal(sent(g, ids[0])->target, ""); /* it answers no message */
        snprintf(place, sizeof(place), "%s", ROW(g, 2, "platform_id"));
        for (int i = 0; i < 3; i++) {
                assert_int_equal(g->sent[2 + i].delivery, ids[i]);
                assert_string_equal(g->sent[2 + i].thread, place);
        }
        assert_string_equal(sent(g, edit)->target, ROW(g, 3, "platform_id"));
        assert_string_equal(sent(g, edit)->thread, place); /* where the message is */
        assert_string_equal(sent(g, again)->thread, place);
        rig_free(g);
}

static void what_follows_a_message_in_a_known_thread_goes_there(void **state)
{
        struct rig *g = rig_new();
        int64_t id, edit;

        (void)state;
        g->auto_send = true;
        id = put(g, (struct outgoing){ .thread = "t", .text = "one" });
        edit = put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "1|2", .edits = id });
        until_ended(g);
        assert_string_equal(sent(g, edit)->thread, "t");
        assert_string_equal(sent(g, edit + 1)->thread, "t"); /* the rest of a longer text */
        assert_string_equal(sent(g, edit + 1)->kind, "send");
        rig_free(g);
}

static void deliveries_of_other_chats_cannot_be_named(void **state)
{
        struct rig *g = rig_new();
        int64_t id;

        (void)state;
        g->auto_send = true;
        id = put(g, (struct outgoing){ .text = "one" });
        assert_int_equal(put(g, (struct outgoing){ .channel = "other", .text = "x", .edits = id }),
                         0);
        assert_string_equal(last.error.text, "delivery 'dlv-1' is of another chat");
        assert_int_equal(
                put(g, (struct outgoing){ .adapter = "x", .text = "x", .in_thread_of = id }), 0);
        assert_string_equal(last.error.text, "delivery 'dlv-1' is of another chat");
        assert_int_equal(put(g, (struct outgoing){ .text = "x", .edits = 99 }), 0);
        assert_int_equal(last.error.kind, ERR_MISSING);
        rig_free(g);
}

/* One at a message is the same however often it is begun. */
static void a_thread_by_its_name_is_looked_for(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        put(g, (struct outgoing){
                       .adapter = "look", .kind = DELIVER_THREAD, .thread_name = "session" });
        rig_until(g, &g->sent_count, 1);
        assert_string_equal(g->sent[0].name, "session");
        rig_restart(g);
        rig_until(g, &g->sent_count, 2);
        assert_true(g->sent[1].reconcile);
        rig_result(g, 1, SEND_RETRY, ERR_NET, 0); /* it is not there */
        rig_until(g, &g->sent_count, 3);
        assert_false(g->sent[2].reconcile);
        rig_result(g, 2, SEND_DONE, ERR_NONE, -1);
        until_ended(g);
        put(g, (struct outgoing){ .adapter = "look",
                                  .kind = DELIVER_THREAD,
                                  .message_id = "5",
                                  .thread_name = "session" });
        rig_until(g, &g->sent_count, 4);
        rig_restart(g);
        rig_until(g, &g->sent_count, 5);
        assert_false(g->sent[4].reconcile);
        rig_free(g);
}

static void on_threads(void *arg, enum chat_threads threads, const struct error *err)
{
        enum chat_threads *out = arg;

        assert_null(err);
        *out = threads;
}

static void the_threads_of_a_chat_can_be_asked(void **state)
{
        struct rig *g = rig_new();
        enum chat_threads threads = CHAT_THREADS_VARY;

        (void)state;
        g->threads = CHAT_THREADS_BY_NAME;
        road_ask_threads(g->road, "cards", "c", on_threads, &threads);
        assert_int_equal(threads, CHAT_THREADS_VARY); /* later */
        while (threads == CHAT_THREADS_VARY)
                loop_step(g->loop, true);
        assert_int_equal(threads, CHAT_THREADS_BY_NAME);
        rig_free(g);
}

static void a_crash_at_any_time_keeps_their_order(void **state)
{
        struct rig *g = rig_new();
        int64_t root, thread, post, edit;

        (void)state;
        root = put(g, (struct outgoing){ .card = CARD });
        thread = put(g, (struct outgoing){ .kind = DELIVER_THREAD, .edits = root });
        post = put(g, (struct outgoing){ .text = "one", .in_thread_of = thread });
        edit = put(g, (struct outgoing){ .kind = DELIVER_EDIT, .text = "1", .edits = post });
        rig_until(g, &g->sent_count, 1);
        for (unsigned i = 0; i < 4; i++) { /* each is sent twice */
                unsigned before = g->sent_count;

                rig_restart(g);
                rig_until(g, &g->sent_count, before + 1);
                if (i == 1) /* the edit that waits is known after a restart, too */
                        assert_int_equal(put(g, (struct outgoing){ .kind = DELIVER_EDIT,
                                                                   .text = "2",
                                                                   .edits = post }),
                                         edit);
                rig_result(g, before, SEND_DONE, ERR_NONE, -1);
                if (i < 3)
                        rig_until(g, &g->sent_count, before + 2);
        }
        until_ended(g);
        assert_string_equal(rig_list(g, "kind || ' ' || state FROM deliveries ORDER BY id"),
                            "send sent, thread sent, send sent, edit sent");
        assert_string_equal(sent(g, post)->thread, ROW(g, 2, "platform_id"));
        assert_string_equal(sent(g, edit)->text, "2");
        assert_string_equal(sent(g, edit)->target, ROW(g, 3, "platform_id"));
        assert_string_equal(sent(g, edit)->thread, ROW(g, 2, "platform_id"));
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_card_is_written_and_read_again),
                cmocka_unit_test(hostile_text_becomes_a_small_valid_card),
                cmocka_unit_test(wrong_cards_are_refused_by_name),
                cmocka_unit_test(a_card_is_told_by_its_title),
                cmocka_unit_test(a_card_is_part_of_its_delivery),
                cmocka_unit_test(a_platform_without_cards_gets_text),
                cmocka_unit_test(a_wrong_card_is_refused),
                cmocka_unit_test(an_edit_waits_for_the_message_it_changes),
                cmocka_unit_test(of_the_edits_that_wait_the_newest_is_sent),
                cmocka_unit_test(an_edit_of_a_message_that_failed_ends_with_the_reason),
                cmocka_unit_test(an_edit_of_a_message_that_may_be_there_says_so),
                cmocka_unit_test(messages_go_into_the_thread_of_another_in_order),
                cmocka_unit_test(what_follows_a_message_in_a_known_thread_goes_there),
                cmocka_unit_test(deliveries_of_other_chats_cannot_be_named),
                cmocka_unit_test(a_thread_by_its_name_is_looked_for),
                cmocka_unit_test(the_threads_of_a_chat_can_be_asked),
                cmocka_unit_test(a_crash_at_any_time_keeps_their_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
