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

/* The conversation as an agent would read it: "role name: text" lines. */
struct reading {
        struct buf text;
};

static int read_lines(struct store_tx *tx, void *arg, struct error *err)
{
        struct reading *r = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT t.role, t.name, t.text FROM transcript t JOIN conversations c ON c.id ="
                " t.conversation WHERE c.channel = 'room 1' AND c.agent = 'echo' ORDER BY t.id");
        int rc;

        while ((rc = store_step(s, err)) == 1)
                buf_addf(&r->text, "%s %s: %s\n", store_col_text(s, 0), store_col_text(s, 1),
                         store_col_text(s, 2));
        return rc;
}

static void the_agent_knows_messages_of_the_handover(void **state)
{
        struct api_rig *r = *state;
        struct reading lines;
        struct error err;

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
        buf_init(&lines.text, 0);
        assert_int_equal(store_read_now(r->store, read_lines, &lines, &err), 0);
        assert_string_equal(lines.text.data, "user Bob: one\n"
                                             "assistant echo: re: one\n"
                                             "user Bob: two\n"
                                             "assistant the operator: Ann here\n"
                                             "user Bob: three\n"
                                             "assistant echo: re: three\n"
                                             "assistant Bea: more\n");
        buf_release(&lines.text);
}

static void a_first_message_during_a_handover_is_known(void **state)
{
        struct api_rig *r = *state;
        struct reading lines;
        struct error err;

        api_rig_expect(r, "POST", CHAT "/pause", "", 200, "\"by\":\"the operator\"");
        say(r, "hello", "the agent is paused here");
        buf_init(&lines.text, 0);
        assert_int_equal(store_read_now(r->store, read_lines, &lines, &err), 0);
        assert_string_equal(lines.text.data, "user Bob: hello\n");
        buf_release(&lines.text);
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
