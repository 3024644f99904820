/* What programs report: read as the blueprint writes it, tolerant, bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "remote/session_event.h"

static struct session_events read_ok(const char *text)
{
        struct error err = { 0 };
        json_t *body = json_read_lenient(text, strlen(text), &err);
        struct session_events e;

        assert_non_null(body);
        if (session_events_read(body, &e, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        json_decref(body); /* what was read does not need it any more */
        return e;
}

static void the_blueprints_event_is_read(void **state)
{
        struct session_events e =
                read_ok("{\"session_id\":\"s\",\"event_type\":\"tool_call\",\"tool_name\":\"bash\","
                        "\"content\":\"make\",\"metadata\":{\"cwd\":\"/src\"},\"timestamp\":\"t\","
                        "\"event_id\":\"a:b\",\"newer\":true}");

        (void)state;
        assert_int_equal(e.count, 1);
        assert_string_equal(e.items[0].type, "session.tool_call");
        assert_string_equal(e.items[0].key, "session:1:s:a:b");
        assert_string_equal(e.items[0].payload,
                            "{\"sessionId\":\"s\",\"toolName\":\"bash\",\"content\":\"make\","
                            "\"metadata\":{\"cwd\":\"/src\"},\"timestamp\":\"t\","
                            "\"eventId\":\"a:b\"}");
        assert_null(e.items[0].cwd); /* a start says it */
        session_events_release(&e);
}

static void odd_metadata_is_tolerated(void **state)
{
        struct session_events e = read_ok(
                "[{\"session_id\":12,\"event_type\":\"session_start\",\"metadata\":{\"cwd\":7,"
                "\"title\":\"a\\u0000b\"},\"content\":null},"
                "{\"session_id\":\"s\",\"event_type\":\"turn_end\",\"metadata\":{\"usage\":{"
                "\"totalTokens\":-5,\"input\":9223372036854775807,\"output\":3,\"cost\":-1}}},"
                "{\"session_id\":\"s\",\"event_type\":\"turn_end\",\"metadata\":[1]},"
                "{\"session_id\":\"s\",\"event_type\":\"approval_request\",\"metadata\":"
                "{\"approval_id\":5,\"default\":\"perhaps\",\"timeoutMs\":\"x\"}}]");

        (void)state;
        assert_string_equal(e.items[0].session, "12");
        assert_null(e.items[0].cwd);
        assert_non_null(e.items[0].title);
        assert_string_equal(e.items[0].content, "");
        assert_int_equal(e.items[1].tokens, 3);
        assert_int_equal(e.items[1].cost_microusd, 0);
        assert_int_equal(e.items[2].tokens, 0);
        assert_string_equal(e.items[3].approval, "5");
        assert_null(e.items[3].fallback);
        assert_int_equal(e.items[3].timeout_ms, 0);
        session_events_release(&e);
}

static void huge_metadata_is_left_out(void **state)
{
        char *long_text = mem_alloc(SESSION_METADATA_MAX + 1), *body;
        struct session_events e;

        (void)state;
        memset(long_text, 'x', SESSION_METADATA_MAX);
        long_text[SESSION_METADATA_MAX] = '\0';
        body = mem_printf("{\"session_id\":\"s\",\"event_type\":\"session_start\","
                          "\"metadata\":{\"title\":\"%s\"}}",
                          long_text);
        e = read_ok(body);
        assert_non_null(strstr(e.items[0].payload, "\"metadataLeftOut\":true"));
        assert_int_equal(strlen(e.items[0].title), 1024);
        session_events_release(&e);
        free(body);
        free(long_text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_blueprints_event_is_read),
                cmocka_unit_test(odd_metadata_is_tolerated),
                cmocka_unit_test(huge_metadata_is_left_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
