/* Messages as plain text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/message_text.h"
#include "base/mem.h"

static void every_event_becomes_text(void **state)
{
        static const struct attachment files[] = { { .kind = "image", .name = "cat.jpg" },
                                                   { .kind = "voice" } };
        static const struct {
                struct incoming in;
                const char *said;
        } rows[] = {
                { { .text = "hello" }, "hello" },
                { { .text = "look",
                    .attachments = (struct attachment *)files,
                    .attachment_count = 2 },
                  "look\n[attached: image cat.jpg]\n[attached: voice]" },
                { { .attachments = (struct attachment *)files, .attachment_count = 1 },
                  "[attached: image cat.jpg]" },
                { { .type = "reaction.received", .emoji = "👍" }, "[reacted with 👍]" },
                { { .type = "reaction.removed", .emoji = "👍" }, "[removed the reaction 👍]" },
                { { .type = "reaction.received", .emoji = "123456", .emoji_name = "party" },
                  "[reacted with party]" },
                { { .type = "reaction.received",
                    .emoji = "👍",
                    .text = "[reacted with 👍 to your message:]\n> hi" },
                  "[reacted with 👍 to your message:]\n> hi" },
                { { .type = "message.deleted" }, "[deleted a message]" },
                { { .text = "" }, "[empty message]" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct buf out;

                buf_init(&out, 0);
                buf_addstr(&out, "before: ");
                message_text_add(&out, &rows[i].in);
                assert_string_equal(out.data + 8, rows[i].said);
                buf_release(&out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_event_becomes_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
