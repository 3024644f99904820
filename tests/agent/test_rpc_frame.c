/* What is left of an agent's lines before they are parsed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_frame.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct reading {
        struct rpc_frames frames;
        struct buf out;
};

static void reading_init(struct reading *g, size_t max)
{
        rpc_frames_init(&g->frames, max);
        buf_init(&g->out, 0);
}

static void reading_release(struct reading *g)
{
        rpc_frames_release(&g->frames);
        buf_release(&g->out);
}

/* What is parsed of the line; "": nothing. */
static const char *reading_take(struct reading *g, const char *line)
{
        buf_clear(&g->out);
        if (rpc_frames_read(&g->frames, line, strlen(line), &g->out) == RPC_LINE_WHOLE)
                buf_addstr(&g->out, line);
        return g->out.data;
}

static void pieces_are_without_the_message_so_far(void **state)
{
        struct reading g;

        (void)state;
        reading_init(&g, 1000);
        assert_string_equal(
                reading_take(&g, "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":"
                                 "\"text_delta\",\"contentIndex\":0,\"delta\":\"a \\\"}\\\\\","
                                 "\"partial\":{\"content\":[\"this is cut off"),
                "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"text_delta\","
                "\"contentIndex\":0,\"delta\":\"a \\\"}\\\\\"}}");
        assert_string_equal(
                reading_take(&g,
                             "{\"type\":\"message_update\",\"usage\":{\"cost\":{\"total\":1}},"
                             "\"assistantMessageEvent\":{\"type\":\"toolcall_end\",\"toolCall\":"
                             "{\"id\":\"c\",\"arguments\":{\"x\":[1,{}]}},\"partial\":{}},"
                             "\"message\":{}}"),
                "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"toolcall_end\","
                "\"toolCall\":{\"id\":\"c\",\"arguments\":{\"x\":[1,{}]}}}}");
        assert_string_equal(reading_take(&g,
                                         "{\"type\":\"message_update\",\"assistantMessageEvent\":"
                                         "{\"type\":\"thinking_delta\",\"delta\":\"x\"}}"),
                            "");
        reading_release(&g);
}

static void the_end_of_a_run_is_without_its_messages(void **state)
{
        struct reading g;

        (void)state;
        reading_init(&g, 1000);
        assert_string_equal(reading_take(&g, "{\"type\":\"agent_end\",\"messages\":[{\"a\":\"]\"}],"
                                             "\"willRetry\":true}"),
                            "{\"type\":\"agent_end\",\"willRetry\":true}");
        assert_string_equal(reading_take(&g, "{\"type\":\"turn_end\",\"message\":{}}"), "");
        reading_release(&g);
}

static void what_is_not_known_is_parsed_as_it_is(void **state)
{
        static const char *const lines[] = {
                "{\"type\":\"message_end\",\"message\":{}}",
                "{\"id\":\"1\",\"type\":\"response\"}",
                "{\"type\":\"message_update\",\"assistantMessageEvent\":7}",
                "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"text_",
                "{\"type\":\"agent_end\",\"messages\":[",
                "{\"type\":",
                "{",
                "[]",
        };
        struct reading g;

        (void)state;
        reading_init(&g, 1000);
        for (size_t i = 0; i < COUNT(lines); i++)
                assert_string_equal(reading_take(&g, lines[i]), lines[i]);
        reading_release(&g);
}

/* ---- chunks ---- */

static char *chunk(const char *id, int index, int count, size_t bytes, const char *text, size_t n)
{
        char *data = crypto_base64(text, n);
        char *line =
                mem_printf("{\"type\":\"rpc_chunk\",\"chunkId\":\"%s\",\"index\":%d,\"count\":%d,"
                           "\"byteLength\":%zu,\"data\":\"%s\"}",
                           id, index, count, bytes, data);

        free(data);
        return line;
}

/* Takes part `index` of 2 of the text. */
static const char *take_half(struct reading *g, const char *id, const char *text, int index)
{
        size_t n = strlen(text), half = n / 2;
        char *line = chunk(id, index, 2, n, text + (index ? half : 0), index ? n - half : half);
        const char *what = reading_take(g, line);

        free(line);
        return what;
}

static void chunks_become_one_message(void **state)
{
        static const char text[] = "{\"type\":\"message_end\",\"message\":{\"x\":\"\xc3\xa9\"}}";
        struct reading g;

        (void)state;
        reading_init(&g, 1000);
        assert_string_equal(take_half(&g, "a", text, 0), "");
        assert_string_equal(take_half(&g, "a", text, 1), text);
        assert_int_equal(g.frames.lost, 0);
        reading_release(&g);
}

static void chunks_of_a_piece_are_not_awaited(void **state)
{
        static const char text[] =
                "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":"
                "\"text_delta\",\"delta\":\"new\",\"partial\":{\"content\":"
                "\"this is very very very long, and therefore in two chunks of "
                "which the second does not matter, as it is only what is known\"}}}";
        struct reading g;

        (void)state;
        reading_init(&g, 1000);
        assert_string_equal(take_half(&g, "a", text, 0),
                            "{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":"
                            "\"text_delta\",\"delta\":\"new\"}}");
        assert_string_equal(take_half(&g, "a", text, 1), "");
        assert_int_equal(g.frames.lost, 0);
        reading_release(&g);
}

static void wrong_chunks_are_dropped(void **state)
{
        static const char text[] = "{\"type\":\"message_end\",\"message\":{}}",
                          other[] = "{\"type\":\"x\"}";
        struct reading g;
        char *line;

        (void)state;
        reading_init(&g, 1000);
        take_half(&g, "a", text, 0);
        assert_string_equal(take_half(&g, "b", text, 1), ""); /* of another message */
        assert_int_equal(g.frames.lost, 1);
        assert_string_equal(take_half(&g, "a", text, 1), ""); /* without its beginning */
        assert_int_equal(g.frames.lost, 2);
        take_half(&g, "a", text, 0);
        assert_string_equal(reading_take(&g, other), other); /* between two chunks */
        assert_int_equal(g.frames.lost, 3);
        line = chunk("a", 0, 2, 1001, text, strlen(text)); /* too long as a whole */
        assert_string_equal(reading_take(&g, line), "");
        assert_int_equal(g.frames.lost, 4);
        free(line);
        line = chunk("a", 0, 1, 5, text, strlen(text)); /* longer than it says */
        assert_string_equal(reading_take(&g, line), "");
        assert_int_equal(g.frames.lost, 5);
        free(line);
        assert_string_equal(reading_take(&g,
                                         "{\"type\":\"rpc_chunk\",\"chunkId\":\"a\",\"index\":0,"
                                         "\"count\":1,\"byteLength\":3,\"data\":\"%%%%\"}"),
                            "");
        assert_int_equal(g.frames.lost, 6);
        take_half(&g, "c", text, 0);
        assert_string_equal(take_half(&g, "c", text, 1), text); /* it goes on */
        reading_release(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pieces_are_without_the_message_so_far),
                cmocka_unit_test(the_end_of_a_run_is_without_its_messages),
                cmocka_unit_test(what_is_not_known_is_parsed_as_it_is),
                cmocka_unit_test(chunks_become_one_message),
                cmocka_unit_test(chunks_of_a_piece_are_not_awaited),
                cmocka_unit_test(wrong_chunks_are_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
