/* Answers that mean "no reply", and answers that must be posted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "../lib/placement_stub.h"
#include "dispatch_rig.h"
#include "road/turn/no_reply.h"

/* Silence in any mode. */
static const char *const marked[] = {
        "[SILENT]",
        "[silent]",
        " [Silent]\n",
        "[SILENT].",
        "[SILENT]!",
        "`[SILENT]`",
        "``[SILENT]``",
        "**[SILENT]**",
        "_[SILENT]_",
        "***[SILENT]***",
        "~~[SILENT]~~",
        "\"[SILENT]\"",
        "'[SILENT]'",
        "“[SILENT]”",
        "«[SILENT]»",
        "```\n[SILENT]\n```",
        "```text\n[SILENT]\n```",
        "~~~\n[SILENT]\n~~~",
        "> [SILENT]",
        "- [SILENT]",
        "# [SILENT]",
        "([SILENT])",
        "\\[SILENT\\]",
        "[ SILENT ]",
        "[`SILENT`]",
        "[**SILENT**]",
        "(SILENT)",
        "<SILENT>",
        "<SILENT/>",
        "{SILENT}",
        "\xef\xbb\xbf[SILENT]",
        "\xe2\x80\x8b[SILENT]",
        "[SILENT] nobody asked me",
        "[SILENT]\n\nThey are talking with each other about the weather.",
        "[SILENT] - nobody asked me",
        "[SILENT] (nobody asked me)",
        "[SILENT](nobody asked me)",
        "[SILENT]: nobody asked me",
        "[SILENT: nobody asked me]",
        "`[SILENT]` nobody asked me",
        "**[SILENT]** What should I say? Nothing.",
        "[SILENT][SILENT]",
        "[SILENT",
};

/* Silence where an ambient rule listens. */
static const char *const phrased[] = {
        "",
        " \n",
        "No action needed",
        "no action needed.",
        "NO ACTION NEEDED!",
        "No action needed at this time.",
        "No action is needed at this time.",
        "No further action needed.",
        "No action required right now.",
        "No response needed.",
        "No response needed here.",
        "No response is necessary at this point.",
        "No reply needed from me.",
        "There is no response needed.",
        "*No action needed.*",
        "`No action needed`",
        "(no action needed)",
        "\"No action needed.\"",
        "“No action needed…”",
        "_No response needed_",
        "> No action needed.",
        "NO_REPLY",
        "`NO_REPLY`",
        "**NO_REPLY**",
        "_NO_REPLY_",
        "Nothing to add.",
        "I have nothing to add.",
        "I've nothing to add right now.",
        "Nothing to add from my side.",
        "Nothing for me to add here.",
        "*stays silent*",
        "*remains silent*",
};

/* Posted in any mode. */
static const char *const real[] = {
        "Silent",
        "SILENT",
        "Silent.",
        "Silence!",
        "silent letters are not pronounced",
        "(silent) k, as in knife",
        "(SILENT) k, as in knife",
        "(silent)",
        "<silent>",
        "[silent: a film of 2012]",
        "<silent> is not an HTML element",
        "[Silent Hill 2] is a horror game",
        "[SILENT HILL] opens on Friday",
        "[SILENTLY] she left",
        "[SILENT](https://example.org/silent) is a film of 2012",
        "[SILENT](#silent)",
        "[silent][1] is a film\n\n[1]: https://example.org",
        "[1] Wikipedia, [2] IMDb",
        "[x] bread\n[ ] milk",
        "Answer with [SILENT] to stay quiet.",
        "I answer with `[SILENT]` if I have nothing to say.",
        "Nobody asked me, but: Saturday. [SILENT]",
        "\"Silent Night\" was written in 1818.",
        "```c\nint silent = 1;\n```",
        "No.",
        "No",
        "no",
        "Nothing.",
        "Nothing to add to the cart: it is complete.",
        "Nothing to add? I have an idea.",
        "No action needed?",
        "No action needed on your side: the update installs tonight.",
        "No action needed, your payment went through.",
        "No action needed from you until Friday",
        "No action needed: I have booked the table for eight.",
        "No further action needed once you have signed the form.",
        "No response needed, but I would bring a cake.",
        "No response from the server: is it plugged in?",
        "No reply yet.",
        "No reply so far, I asked them at noon.",
        "No reply needed? I would thank them anyway.",
        "NO_REPLY is the address their mails come from.",
        "There is nothing to add to that list but salt.",
        "I have nothing to wear.",
        "Needed: action! No?",
        "At this time the shop is closed.",
        "Right now? No.",
        "The cat stays silent, the dog barks.",
        "Everything remains silent until the game starts at nine.",
        "无需回复",
        "👍",
        "...",
        "…",
        "-",
        "?",
};

static struct reply_policy policy_of(struct dispatch *d)
{
        struct incoming in = group_message("7", "nice weather");
        struct decision out;

        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        return out.policy;
}

/* While it grows, it is not shown. */
static void check_growing(const struct reply_policy *policy, const char *text)
{
        char *part = mem_strdup(text);

        for (size_t n = strlen(text); n > 0; n--) {
                if (((unsigned char)text[n] & 0xc0) == 0x80)
                        continue; /* within a character */
                part[n] = '\0';
                if (!no_reply_may_follow(policy, part))
                        fail_msg("'%s' is shown on the way to '%s'", part, text);
        }
        free(part);
}

static void silence_is_recognised_however_it_is_written(void **state)
{
        struct dispatch *d = rig_dispatch(
                "[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]", rig_adapter());
        struct reply_policy ambient = policy_of(d), plain = { 0 };

        (void)state;
        assert_true(COUNT(marked) >= 24 && COUNT(phrased) >= 24);
        for (size_t i = 0; i < COUNT(marked); i++) {
                if (!no_reply_matches(&ambient, marked[i]) || !no_reply_matches(&plain, marked[i]))
                        fail_msg("'%s' would be posted", marked[i]);
                check_growing(&ambient, marked[i]);
                check_growing(&plain, marked[i]);
        }
        for (size_t i = 0; i < COUNT(phrased); i++) {
                if (!no_reply_matches(&ambient, phrased[i]))
                        fail_msg("'%s' would be posted", phrased[i]);
                if (no_reply_matches(&plain, phrased[i]))
                        fail_msg("'%s' would be swallowed as the answer to a question", phrased[i]);
                check_growing(&ambient, phrased[i]);
        }
        dispatch_free(d);
}

static void real_answers_are_never_swallowed(void **state)
{
        struct dispatch *d = rig_dispatch(
                "[{\"mode\": \"ambient\", \"when\": {\"channel\": \"456\"}}]", rig_adapter());
        struct reply_policy ambient = policy_of(d), plain = { 0 };

        (void)state;
        for (size_t i = 0; i < COUNT(real); i++) {
                if (no_reply_matches(&ambient, real[i]) || no_reply_matches(&plain, real[i]))
                        fail_msg("'%s' would not be posted", real[i]);
        }
        dispatch_free(d);
}

static void phrases_can_be_set_with_a_limit_of_length(void **state)
{
        static const struct {
                const char *text;
                bool silent;
        } rows[] = {
                { "meh", true },
                { "Meh!", true },
                { "Meh, then.", true },
                { "Meh, but try the soup", false },
                { "Passing on this", true },
                { "Passing: not my thing", true },
                { "Passing: not my thing, but you could ask the others", false }, /* too long */
                { "Passing the salt?", false },
                { "Passing 盐？", false },
                { "I am passing", false },
                { "¯\\_(ツ)_/¯", true },
                { " ... ", true }, /* without words it is compared as it is */
                { "....", false },
                { "No action needed.", false }, /* a rule that answers has only its own phrases */
                { "[SILENT] as ever, however long the reason may be", true },
        };
        struct dispatch *d = rig_dispatch("[{\"when\": {\"mention\": true}, \"silence\": [\"meh\", "
                                          "\"passing*\", \"¯\\\\_(ツ)_/¯\", \"...\"], "
                                          "\"silenceMaxChars\": 30}]",
                                          rig_adapter());
        struct reply_policy policy = policy_of(d);

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (no_reply_matches(&policy, rows[i].text) != rows[i].silent)
                        fail_msg("'%s'", rows[i].text);
                if (rows[i].silent)
                        check_growing(&policy, rows[i].text);
        }
        dispatch_free(d);
}

static void the_limit_of_length_applies_to_the_default_phrases_too(void **state)
{
        struct dispatch *d =
                rig_dispatch("[{\"mode\": \"ambient\", \"when\": {\"channel\": \"*\"}, "
                             "\"silenceMaxChars\": 16}]",
                             rig_adapter());
        struct reply_policy policy = policy_of(d);

        (void)state;
        assert_true(no_reply_matches(&policy, "No action needed"));
        assert_false(no_reply_matches(&policy, "No action needed at this time."));
        dispatch_free(d);
}

/* A model's answer has up to 256 KB. */
static void long_answers_are_read_in_linear_time(void **state)
{
        static const char *const pieces[] = { "`", "` ", "```", "“", "(", "[", "\\", "_a", "无" };
        struct reply_policy ambient = { .mode = MODE_AMBIENT };
        struct buf text;

        (void)state;
        for (size_t i = 0; i < COUNT(pieces); i++) {
                buf_init(&text, 0);
                while (text.len < ((size_t)1 << 20))
                        buf_addstr(&text, pieces[i]);
                assert_false(no_reply_matches(&ambient, text.data));
                no_reply_may_follow(&ambient, text.data);
                buf_release(&text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(silence_is_recognised_however_it_is_written),
                cmocka_unit_test(real_answers_are_never_swallowed),
                cmocka_unit_test(phrases_can_be_set_with_a_limit_of_length),
                cmocka_unit_test(the_limit_of_length_applies_to_the_default_phrases_too),
                cmocka_unit_test(long_answers_are_read_in_linear_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
