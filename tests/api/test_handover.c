/* Handover over the API: the agent knows afterwards what people and the operator said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "rows/conversation_row.h"

#define CHAT "/api/v2/chats/api/room%201"

static int setup(void **state)
{
        api_rig_setup(state);
        api_rig_dispatch(*state, NULL, NULL);
        return 0;
}

static void say(struct api_rig *r, const char *text, const char *status)
{
        char *body =
                mem_printf("{\"instanceId\":\"api\",\"chatId\":\"room "
                           "1\",\"text\":\"%s\",\"sender\":{\"id\":\"7\",\"displayName\":\"Bob\"}}",
                           text);

        api_rig_expect(r, "POST", "/api/v2/messages/inbound?wait=15000", body, 202, status);
        free(body);
}

/* The transcript, newest first: "role name: text" lines. */
static int read_lines(struct store_tx *tx, void *arg, struct error *err)
{
        struct history_start all = { 0 };
        struct store_stmt *s = transcript_row_list_conversation(tx, 1, &all, 100);
        struct transcript_row line;
        int rc;

        while ((rc = transcript_row_next(s, &line, err)) == 1)
                buf_addf(arg, "%s %s: %s\n", line.role, line.name, line.text);
        return rc;
}

static void expect_transcript(struct api_rig *r, const char *expected)
{
        struct error err;
        struct buf text;

        buf_init(&text, 0);
        assert_int_equal(store_read_now(r->store, read_lines, &text, &err), 0);
        assert_string_equal(text.data, expected);
        buf_release(&text);
}

static void the_agent_knows_messages_of_the_handover(void **state)
{
        struct api_rig *r = *state;

        say(r, "one", "re: one");
        api_rig_expect(r, "POST", CHAT "/pause", "{\"by\":\"Ann\",\"reason\":\"a refund\"}", 200,
                       "\"channel\":\"room 1\"");
        say(r, "two", "the agent is paused here since");
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"api\",\"to\":\"room 1\",\"text\":\"Ann here\"}", 202,
                       NULL);
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"api\",\"to\":\"room 2\",\"text\":\"elsewhere\"}", 202,
                       NULL);
        api_rig_expect(r, "GET", "/api/v2/handover", NULL, 200,
                       "\"by\":\"Ann\",\"reason\":\"a refund\"");
        api_rig_expect(r, "POST", CHAT "/resume", "{}", 200, "resumed");
        api_rig_expect(r, "GET", "/api/v2/handover", NULL, 200, "\"items\":[]");
        say(r, "three", "re: three");
        api_rig_expect(r, "POST", "/api/v2/messages/send",
                       "{\"instanceId\":\"api\",\"to\":\"room 1\",\"text\":\"news\"}", 202, NULL);
        api_rig_expect(
                r, "POST", "/api/v2/messages/send",
                "{\"instanceId\":\"api\",\"to\":\"room 1\",\"text\":\"more\",\"author\":\"Bea\"}",
                202, NULL);
        expect_transcript(r, "assistant Bea: more\n"
                             "assistant echo: re: three\n"
                             "user Bob: three\n"
                             "assistant the operator: Ann here\n"
                             "user Bob: two\n"
                             "assistant echo: re: one\n"
                             "user Bob: one\n");
}

static void a_first_message_during_a_handover_is_known(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", CHAT "/pause", "", 404, "nothing has been said in 'api/room 1'");
        api_rig_expect(r, "POST", CHAT "/pause", "{\"force\":true}", 200,
                       "\"by\":\"the operator\"");
        say(r, "hello", "the agent is paused here");
        expect_transcript(r, "user Bob: hello\n");
        api_rig_expect(r, "POST", CHAT "/resume", "", 200, NULL);
        say(r, "again", "re: again");
}

static void mistakes_are_reported(void **state)
{
        struct api_rig *r = *state;

        api_rig_expect(r, "POST", "/api/v2/chats/nobody/1/pause", "{}", 404, "NOT_FOUND");
        api_rig_expect(r, "POST", CHAT "/pause", "{\"until\":\"2001-01-01T00:00:00Z\"}", 400,
                       "is not in the future");
        api_rig_expect(r, "POST", CHAT "/pause", "{\"untill\":1}", 400, "untill");
        api_rig_expect(r, "POST", CHAT "/resume", "{}", 404, "the agent is not paused there");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_agent_knows_messages_of_the_handover, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(a_first_message_during_a_handover_is_known, setup,
                                                api_rig_teardown),
                cmocka_unit_test_setup_teardown(mistakes_are_reported, setup, api_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
