/* What the events of a session become: pages, which are cards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/card_text.h"
#include "remote/session_card.h"

static int64_t last_seq;

static void add_from(struct digest *d, const char *type, const char *payload,
                     const struct chat_key *chat)
{
        char name[60];

        snprintf(name, sizeof(name), "session.%s", type);
        last_seq++;
        digest_add(d, &(struct bus_event){ .seq = last_seq,
                                           .type = name,
                                           .time_ms = 1000 * last_seq,
                                           .adapter = chat ? chat->adapter : NULL,
                                           .channel = chat ? chat->channel : NULL,
                                           .thread = chat ? chat->thread : NULL,
                                           .payload = payload });
}

static void add(struct digest *d, const char *type, const char *payload)
{
        add_from(d, type, payload, NULL);
}

static void add_call(struct digest *d, const char *tool, int number)
{
        char payload[200];

        snprintf(payload, sizeof(payload),
                 "{\"toolName\":\"%s\",\"content\":\"make %d\","
                 "\"metadata\":{\"toolCallId\":\"c%d\"}}",
                 tool, number, number);
        add(d, "tool_call", payload);
}

static void add_result(struct digest *d, const char *tool, int number, const char *more)
{
        char payload[300];

        snprintf(
                payload, sizeof(payload),
                "{\"toolName\":\"%s\",\"content\":\"out\",\"metadata\":{\"toolCallId\":\"c%d\"%s}}",
                tool, number, more);
        add(d, "tool_result", payload);
}

static void add_turn(struct digest *d)
{
        add(d, "turn_end",
            "{\"content\":\"All **done**\",\"metadata\":{\"durationMs\":1500,\"pending\":false,"
            "\"usage\":{\"totalTokens\":10,\"cost\":0.5}}}");
}

static struct digest fresh(size_t room)
{
        struct digest d;

        last_seq = 0;
        digest_init(&d, room, 0);
        return d;
}

static const struct session_row row = { .id = 3,
                                        .session = "0199-a",
                                        .program = "pi",
                                        .cwd = "/home/ada/project",
                                        .title = "fix *the* build",
                                        .turns = 2,
                                        .tokens = 20,
                                        .created_ms = 1000,
                                        .ended_ms = 3725000 };

static const struct session_card_place own_chat = { 0 };

/* The card of a page, as JSON; released by the next call. */
static const json_t *card_of(const struct page *p)
{
        static json_t *card;
        char *text = session_card_page(&row, p, &own_chat);

        json_decref(card);
        card = json_loads(text, 0, NULL);
        assert_non_null(card);
        free(text);
        return card;
}

static const char *field(const json_t *card, const char *name)
{
        const json_t *fields = json_object_get(card, "fields");

        for (size_t i = 0; i < json_array_size(fields); i++)
                if (strcmp(json_str(json_array_get(fields, i), "name", ""), name) == 0)
                        return json_str(json_array_get(fields, i), "value", NULL);
        return NULL;
}

#define ASSERT_HAS(text, part)                                            \
        do {                                                              \
                if (!strstr((text), (part)))                              \
                        fail_msg("expected '%s' in: %s", (part), (text)); \
        } while (0)

/* ---- the blueprint ---- */

static void a_tool_call_is_the_alert_of_the_blueprint(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        const json_t *card;

        (void)state;
        add(&d, "tool_call",
            "{\"toolName\":\"bash\",\"content\":\"rm -rf ./*\",\"metadata\":{\"destructive\":true,"
            "\"reason\":\"it deletes\",\"cwd\":\"/home/dev\"}}");
        assert_int_equal(d.count, 1);
        card = card_of(&d.pages[0]);
        assert_string_equal(json_str(card, "title", ""), "🛠️ Tool Execution: bash");
        assert_string_equal(json_str(card, "color", ""), "#FFA500");
        ASSERT_HAS(json_str(card, "body", ""), "Command execution started in /home/dev");
        ASSERT_HAS(json_str(card, "body", ""), "⚠️ it deletes");
        assert_string_equal(field(card, "Input"), "```bash\nrm -rf ./*\n```");
        assert_string_equal(field(card, "Session"), "`0199-a`");
        ASSERT_HAS(json_str(card, "footer", ""), "Agent System");
        assert_null(field(card, "Result"));
        /* without an id the result is that of the call that runs */
        add(&d, "tool_result",
            "{\"toolName\":\"bash\",\"content\":\"gone\",\"metadata\":{\"durationMs\":1234}}");
        assert_int_equal(d.count, 1);
        assert_string_equal(field(card_of(&d.pages[0]), "Result"), "✅ done, 1.2 s\n```\ngone\n```");
        digest_release(&d);
}

static void a_turn_is_the_summary_of_the_blueprint(void **state)
{
        static const struct {
                const char *outcome, *title, *color;
        } rows[] = { { "completed", "✅ Turn Completed", "#00FF00" },
                     { "aborted", "⏹️ Turn Aborted", "#808080" },
                     { "error", "❌ Turn Failed", "#FF0000" } };
        const json_t *card;
        char payload[200];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct digest d = fresh(DIGEST_ROOM);

                snprintf(payload, sizeof(payload),
                         "{\"content\":\"\",\"metadata\":{\"outcome\":\"%s\",\"pending\":2,"
                         "\"usage\":{\"input\":1000,\"output\":245,\"cost\":{\"total\":0.0123}}}}",
                         rows[i].outcome);
                add(&d, "turn_end", payload);
                card = card_of(&d.pages[0]);
                assert_string_equal(json_str(card, "title", ""), rows[i].title);
                assert_string_equal(json_str(card, "color", ""), rows[i].color);
                assert_string_equal(field(card, "Tokens Used"), "1245");
                assert_string_equal(field(card, "Pending Messages"), "2");
                assert_string_equal(field(card, "Cost"), "$0.0123");
                assert_true(d.pages[0].errors == (i == 2));
                if (i == 0)
                        assert_string_equal(json_str(card, "body", ""),
                                            "Agent has finished processing the current prompt.");
                digest_release(&d);
        }
}

static void responses_within_a_turn_are_summed_up_at_its_end(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        add(&d, "turn_end",
            "{\"content\":\"x\",\"metadata\":{\"final\":false,\"usage\":{\"totalTokens\":5}}}");
        assert_int_equal(d.count, 0);
        add_turn(&d);
        assert_int_equal(d.count, 1);
        assert_string_equal(field(card_of(&d.pages[0]), "Tokens Used"), "15");
        assert_string_equal(json_str(card_of(&d.pages[0]), "body", ""), "All **done**");
        digest_release(&d);
}

/* ---- pages ---- */

static void calls_share_a_page_until_the_turn_ends(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        const json_t *card;

        (void)state;
        for (int i = 1; i <= 10; i++)
                add_call(&d, i % 3 ? "bash" : "read", i);
        add_result(&d, "bash", 10, ",\"durationMs\":61000");
        add_result(&d, "bash", 8, ",\"isError\":true");
        add_result(&d, "bash", 7, ",\"blocked\":true");
        add(&d, "retry",
            "{\"content\":\"over*loaded*\",\"metadata\":{\"attempt\":1,\"maxAttempts\":3}}");
        assert_int_equal(d.count, 1);
        assert_true(page_grows(&d.pages[0]));
        card = card_of(&d.pages[0]);
        assert_string_equal(json_str(card, "title", ""), "🛠️ 10 tool calls");
        ASSERT_HAS(json_str(card, "body", ""), "bash 7, read 3 in all, the last ones:");
        ASSERT_HAS(json_str(card, "body", ""), "✅ **bash** `make 10` (1 min 1 s)");
        ASSERT_HAS(json_str(card, "body", ""), "❌ **bash** `make 8`");
        ASSERT_HAS(json_str(card, "body", ""), "⛔ **bash** `make 7`");
        ASSERT_HAS(json_str(card, "body", ""), "⏳ **read** `make 9`");
        ASSERT_HAS(json_str(card, "body", ""), "🔁 Retry 1 of 3\\: over\\*loaded\\*");
        assert_null(strstr(json_str(card, "body", ""), "`make 2`"));
        assert_string_equal(field(card, "Failed"), "2");
        add_turn(&d);
        add_call(&d, "bash", 11);
        assert_int_equal(d.count, 3);
        assert_int_equal(d.pages[0].to, 14);
        assert_int_equal(d.pages[1].kind, PAGE_TURN);
        assert_int_equal(d.pages[2].from, 16);
        /* the call of this result is on an earlier page */
        add_result(&d, "bash", 9, "");
        assert_int_equal(d.pages[2].calls, 1);
        assert_int_equal(page_line_count(&d.pages[2]), 2);
        digest_release(&d);
}

static void a_full_page_is_followed_by_another(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        for (int i = 0; i <= PAGE_FULL; i++)
                add_call(&d, "bash", i);
        assert_int_equal(d.count, 2);
        assert_int_equal(d.pages[0].calls, PAGE_FULL);
        assert_false(page_grows(&d.pages[0]));
        assert_int_equal(d.pages[1].calls, 1);
        digest_release(&d);
}

static void errors_in_a_row_are_one_page(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        const json_t *card;

        (void)state;
        add(&d, "error", "{\"content\":\"no `key`\\nat all\"}");
        card = card_of(&d.pages[0]);
        assert_string_equal(json_str(card, "title", ""), "❌ Error");
        assert_string_equal(json_str(card, "color", ""), "#FF0000");
        assert_string_equal(json_str(card, "body", ""), "```\nno `key`\nat all\n```");
        add(&d, "error", "{\"content\":\"again\"}");
        add(&d, "error", "{\"content\":\"\"}");
        assert_int_equal(d.count, 1);
        card = card_of(&d.pages[0]);
        assert_string_equal(json_str(card, "title", ""), "❌ 3 Errors");
        ASSERT_HAS(json_str(card, "body", ""), "again");
        digest_release(&d);
}

static void a_notice_calls_a_person_or_is_a_line(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        add(&d, "notice", "{\"content\":\"by the way\"}");
        add(&d, "odd_type", "{\"content\":\"something\"}");
        assert_int_equal(d.count, 1);
        assert_string_equal(json_str(card_of(&d.pages[0]), "title", ""), "📋 News");
        ASSERT_HAS(json_str(card_of(&d.pages[0]), "body", ""), "odd\\_type\\: something");
        add(&d, "notice", "{\"content\":\"look *here*\",\"metadata\":{\"mention\":true}}");
        assert_int_equal(d.count, 2);
        assert_true(d.pages[1].mention);
        assert_string_equal(json_str(card_of(&d.pages[1]), "body", ""), "look \\*here\\*");
        digest_release(&d);
}

static void the_end_says_how_it_was(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        const json_t *card;

        (void)state;
        add(&d, "session_end", "{\"content\":\"\",\"metadata\":{\"reason\":\"quit\"}}");
        card = card_of(&d.pages[0]);
        assert_string_equal(json_str(card, "title", ""), "🏁 Session Ended");
        assert_string_equal(field(card, "Turns"), "2");
        assert_string_equal(field(card, "Time"), "1 h 2 min");
        assert_string_equal(field(card, "Reason"), "quit");
        digest_release(&d);
}

static void what_was_given_elsewhere_is_shown_and_what_was_given_here_is_not(void **state)
{
        static const char given[] =
                "{\"action\":\"steer\",\"content\":\"go left\",\"by\":\"telegram:7\","
                "\"displayName\":\"Ana\"}";
        struct chat_key thread = { "dc", "7", "9" }, other = { "dc", "7", NULL },
                        alone = { "dc", "9", NULL };
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        d.here = other;
        d.own_thread = "9";
        add_from(&d, "command.queued", given, &thread);
        assert_int_equal(d.count, 0);
        add_from(&d, "command.queued", given, &other);
        add_from(&d, "command.delivered", given, &other);
        add_from(&d, "command.queued", "{\"action\":\"decision\",\"content\":\"\"}", NULL);
        assert_int_equal(d.count, 1);
        assert_int_equal(d.pages[0].note_count, 1);
        assert_string_equal(page_note(&d.pages[0], 0), "💬 Ana\\: go left");
        digest_release(&d);
        /* linked by the thread's id alone */
        d = fresh(DIGEST_ROOM);
        d.here = alone;
        add_from(&d, "command.queued", given, &thread);
        assert_int_equal(d.count, 0);
        add_from(&d, "command.queued",
                 "{\"action\":\"abort\",\"content\":\"\",\"by\":\"the operator\"}", NULL);
        assert_string_equal(page_note(&d.pages[0], 0), "💬 the operator asked it to stop");
        digest_release(&d);
}

static void what_was_before_the_link_is_not_shown(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        d.from_link = true;
        add_turn(&d);
        add(&d, "chat.linked", "{\"channel\":\"7\"}");
        add_call(&d, "bash", 1);
        assert_int_equal(d.count, 1);
        assert_int_equal(d.pages[0].from, 3);
        digest_release(&d);
}

/* ---- room ---- */

/* Everything that was reported is counted exactly once. */
static void count(const struct digest *d, size_t *calls, size_t *turns, size_t *errors)
{
        *calls = *turns = *errors = 0;
        for (size_t i = 0; i < d->count; i++) {
                *calls += d->pages[i].calls;
                *turns += d->pages[i].turns;
                *errors += d->pages[i].errors;
        }
}

static void a_burst_is_summed_up_and_nothing_is_lost(void **state)
{
        size_t calls, turns, errors;
        const json_t *card;

        (void)state;
        for (size_t room = 1; room <= DIGEST_ROOM; room++) {
                struct digest d = fresh(room);

                for (int i = 0; i < 500; i++) {
                        add_call(&d, "bash", i);
                        add_call(&d, "read", 1000 + i);
                        add_result(&d, "bash", i, i % 5 ? "" : ",\"isError\":true");
                        if (i % 10 == 9)
                                add_turn(&d);
                        if (i % 50 == 49)
                                add(&d, "error", "{\"content\":\"broke\"}");
                        assert_true(d.count <= room);
                }
                count(&d, &calls, &turns, &errors);
                assert_int_equal(calls, 1000);
                assert_int_equal(turns, 50);
                assert_int_equal(errors, 10);
                assert_int_equal(d.pages[0].from, 1);
                assert_int_equal(d.pages[d.count - 1].to, last_seq);
                for (size_t i = 1; i < d.count; i++)
                        assert_true(d.pages[i].from > d.pages[i - 1].to);
                assert_int_equal(d.pages[0].kind, PAGE_SUMMARY);
                card = card_of(&d.pages[0]);
                ASSERT_HAS(json_str(card, "title", ""), "⏩ ");
                ASSERT_HAS(json_str(card, "title", ""), "tool calls, ");
                ASSERT_HAS(field(card, "Tools"), "bash ");
                assert_string_equal(json_str(card, "body", ""), "All **done**");
                ASSERT_HAS(field(card, "Last error"), "broke");
                digest_release(&d);
        }
}

static void the_page_that_grows_keeps_its_place(void **state)
{
        struct digest d;

        (void)state;
        last_seq = 0;
        digest_init(&d, 1, 1);
        add_call(&d, "bash", 1);
        for (int i = 0; i < 20; i++) {
                add_turn(&d);
                add_call(&d, "bash", 2 + i);
        }
        assert_int_equal(d.count, 2);
        assert_int_equal(d.pages[0].kind, PAGE_WORK);
        assert_int_equal(d.pages[0].from, 1);
        assert_int_equal(d.pages[0].to, 1);
        assert_int_equal(d.pages[1].kind, PAGE_SUMMARY);
        assert_int_equal(d.pages[1].calls, 20);
        digest_release(&d);
}

static void many_tools_are_counted_together(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        char tool[20];

        (void)state;
        for (int i = 0; i < 20; i++) {
                snprintf(tool, sizeof(tool), "tool%d", i);
                add_call(&d, tool, i);
        }
        ASSERT_HAS(json_str(card_of(&d.pages[0]), "body", ""), "tool4 1, others 15 in all");
        digest_release(&d);
}

static void odd_payloads_do_no_harm(void **state)
{
        static const char *const odd[] = {
                "",
                "[]",
                "{}",
                "{\"content\":7,\"toolName\":[],\"metadata\":\"x\"}",
                "{\"metadata\":{\"toolCallId\":5,\"usage\":[],\"pending\":{}}}",
                "{\"metadata\":{\"durationMs\":\"x\"}}",
                "{\"metadata\":{\"durationMs\":9223372036854775807}}",
                "{\"metadata\":{\"durationMs\":9223372036854775807}}",
                "{\"metadata\":{\"durationMs\":-9223372036854775808}}",
                "{\"metadata\":{\"durationMs\":-9223372036854775808}}",
                "{\"content\":\"\\u0000\\ud83d\"}"
        };
        static const char *const types[] = { "tool_call",   "tool_result", "turn_end",
                                             "error",       "notice",      "retry",
                                             "compaction",  "session_end", "command.queued",
                                             "chat.linked", "x",           "state.archived" };

        (void)state;
        for (size_t i = 0; i < COUNT(types); i++) {
                struct digest d = fresh(2);

                for (size_t k = 0; k < COUNT(odd); k++)
                        add(&d, types[i], odd[k]);
                for (size_t k = 0; k < d.count; k++)
                        assert_non_null(card_of(&d.pages[k]));
                assert_int_equal(d.upto, COUNT(odd));
                digest_release(&d);
        }
}

/* ---- other cards ---- */

static void a_session_is_named_by_what_is_known_of_it(void **state)
{
        static const struct {
                struct session_row row;
                const char *name;
        } rows[] = { { { .session = "s", .title = "fix it\nnow", .cwd = "/a/b" }, "fix it…" },
                     { { .session = "s", .cwd = "/a/b" }, "b" },
                     { { .session = "s", .cwd = "/" }, "/" },
                     { { .session = "0199" }, "0199" } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *name = session_card_name(&rows[i].row);

                assert_string_equal(name, rows[i].name);
                free(name);
        }
}

static void the_first_message_says_how_the_session_is(void **state)
{
        struct session_row ended = row;
        const struct session_card_place place = { .ways_to_steer = "Write here." };
        char *text = session_card_root(&row, &place);
        json_t *card = json_loads(text, 0, NULL);

        (void)state;
        assert_string_equal(json_str(card, "title", ""), "💻 fix *the* build");
        ASSERT_HAS(json_str(card, "body", ""), "Write here.");
        ASSERT_HAS(json_str(card, "body", ""), "🟢 Active");
        assert_string_equal(field(card, "Folder"), "`/home/ada/project`");
        assert_string_equal(field(card, "Tokens Used"), "20");
        assert_null(field(card, "Cost"));
        json_decref(card);
        free(text);
        ended.state = SESSION_ENDED;
        text = session_card_root(&ended, &place);
        ASSERT_HAS(text, "🏁 Ended");
        assert_null(strstr(text, "Write here"));
        free(text);
}

static void a_question_says_what_no_answer_means_and_then_what_was_decided(void **state)
{
        struct session_approval_row a = { .id = 5,
                                          .tool = "bash",
                                          .content = "rm -rf build",
                                          .fallback = "deny",
                                          .state = "open",
                                          .created_ms = 1000,
                                          .expires_ms = 301000 };
        static const struct {
                const char *state, *by, *name, *note, *title, *body;
        } rows[] = {
                { "allow", "discord:42", NULL, NULL, "✅ Allowed: bash",
                  "Allowed by discord\\:42." },
                { "allow", "discord:42", "Ada", NULL, "✅ Allowed: bash", "Allowed by Ada." },
                { "deny", "discord:42", "Ada", "use the trash", "⛔ Refused: bash",
                  "Refused by Ada: use the trash" },
                { "deny", "timeout", NULL, NULL, "⛔ Refused: bash",
                  "because nobody answered in time" },
                { "deny", SESSION_DECIDED_BY_END, NULL, NULL, "⛔ Refused: bash",
                  "because the session has ended" },
                { "deny", "[a](https://x) <@5>", NULL, NULL, "⛔ Refused: bash",
                  "Refused by \\[a\\]\\(https\\://x\\) \\<\\@5\\>." },
                { "deny", NULL, NULL, NULL, "⛔ Refused: bash", "at the desk" },
        };
        const struct session_card_place place = { .ways_to_answer = "Answer here." };
        char *text = session_card_approval(&row, &a, NULL, &place), *shown;
        json_t *card = json_loads(text, 0, NULL);

        (void)state;
        assert_null(session_card_outcome(&a));
        assert_string_equal(json_str(card, "title", ""), "✋ Approval needed: bash");
        assert_string_equal(field(card, "Without an answer"), "refused after 5 min");
        assert_string_equal(field(card, "Input"), "```bash\nrm -rf build\n```");
        ASSERT_HAS(json_str(card, "body", ""), "Answer here.");
        json_decref(card);
        free(text);
        for (size_t i = 0; i < COUNT(rows); i++) {
                a.state = rows[i].state;
                a.decided_by = rows[i].by;
                a.note = rows[i].note;
                text = session_card_approval(&row, &a, rows[i].name, &place);
                card = json_loads(text, 0, NULL);
                assert_string_equal(json_str(card, "title", ""), rows[i].title);
                ASSERT_HAS(json_str(card, "body", ""), rows[i].body);
                assert_null(strstr(json_str(card, "body", ""), "Answer here"));
                assert_null(field(card, "Without an answer"));
                json_decref(card);
                free(text);
        }
        shown = session_card_outcome(&a);
        assert_string_equal(shown, "deny ");
        free(shown);
}

static void among_other_sessions_a_card_says_of_which_it_is(void **state)
{
        const struct session_card_place among = { .named = true };
        struct digest d = fresh(DIGEST_ROOM);
        json_t *card;
        char *text;

        (void)state;
        add_turn(&d);
        assert_string_equal(json_str(card_of(&d.pages[0]), "footer", ""),
                            "pi Agent System · ses-3");
        text = session_card_page(&row, &d.pages[0], &among);
        card = json_loads(text, 0, NULL);
        assert_string_equal(json_str(card, "footer", ""),
                            "pi Agent System · ses-3 fix *the* build");
        json_decref(card);
        free(text);
        digest_release(&d);
}

/* content: of a call; of two, in a list; of one alone. */
static void what_a_tool_gets_is_easy_to_read(void **state)
{
        static const struct {
                const char *content, *listed, *alone;
        } rows[] = {
                { "make test\\nmake all", "`make test…`", "```bash\nmake test\nmake all\n```" },
                { "{\\\"path\\\":\\\"src/a.c\\\"}", "`src/a.c`", "```bash\nsrc/a.c\n```" },
                { "{\\\"limit\\\":3,\\\"path\\\":\\\"a.c\\\"}", "`a.c`",
                  "```json\n{\n  \"limit\": 3,\n  \"path\": \"a.c\"\n}\n```" },
                { "{\\\"note\\\":\\\"hi\\\",\\\"n\\\":1}", "`hi`",
                  "```json\n{\n  \"note\": \"hi\",\n  \"n\": 1\n}\n```" },
                { "{}", "`{}`", "```json\n{}\n```" },
                { "{not json", "`{not json`", "```json\n{not json\n```" },
        };
        char payload[300];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct digest d = fresh(DIGEST_ROOM);

                snprintf(payload, sizeof(payload), "{\"toolName\":\"bash\",\"content\":\"%s\"}",
                         rows[i].content);
                add(&d, "tool_call", payload);
                assert_string_equal(field(card_of(&d.pages[0]), "Input"), rows[i].alone);
                add(&d, "tool_call", payload);
                ASSERT_HAS(json_str(card_of(&d.pages[0]), "body", ""), rows[i].listed);
                digest_release(&d);
        }
}

static void calls_are_listed_line_by_line(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);

        (void)state;
        add_call(&d, "bash", 1);
        add_call(&d, "bash", 2);
        add(&d, "notice", "{\"content\":\"look\"}");
        assert_string_equal(json_str(card_of(&d.pages[0]), "body", ""),
                            "⏳ **bash** `make 1`\n⏳ **bash** `make 2`\nℹ️ look");
        digest_release(&d);
}

static void times_are_short(void **state)
{
        static const struct {
                int ms;
                const char *text;
        } rows[] = { { 80, "0.1 s" },         { 1500, "1.5 s" },      { 59999, "59 s" },
                     { 60000, "1 min" },      { 65000, "1 min 5 s" }, { 3600000, "1 h" },
                     { 3720000, "1 h 2 min" } };
        char payload[100];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct digest d = fresh(DIGEST_ROOM);

                snprintf(payload, sizeof(payload), "{\"metadata\":{\"durationMs\":%d}}",
                         rows[i].ms);
                add(&d, "turn_end", payload);
                assert_string_equal(field(card_of(&d.pages[0]), "Time"), rows[i].text);
                digest_release(&d);
        }
}

static void a_headline_says_what_a_phone_announces(void **state)
{
        static const struct {
                const char *type, *payload, *line;
        } rows[] = {
                { "turn_end", "{\"content\":\"# All **done**\\nand more\"}", "All done…" },
                { "turn_end", "{\"content\":\"Ask @ada\"}", "Ask \\@ada" },
                { "turn_end", "{}", "✅ Done\\." },
                { "turn_end", "{\"metadata\":{\"outcome\":\"aborted\"}}", "⏹️ Stopped\\." },
                { "turn_end", "{\"content\":\"no key\",\"metadata\":{\"outcome\":\"error\"}}",
                  "❌ no key" },
                { "error", "{\"content\":\"rm *\\nfailed\"}", "❌ rm \\*…" },
                { "notice", "{\"content\":\"look *here*\",\"metadata\":{\"mention\":true}}",
                  "look \\*here\\*" },
                { "session_end", "{}", "🏁 The session has ended\\." },
        };
        struct session_approval_row asked = { .tool = "bash", .content = "rm -rf ./*" };
        char *line = session_card_question(&asked);

        (void)state;
        assert_string_equal(line, "✋ bash\\: rm \\-rf \\./\\*");
        free(line);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct digest d = fresh(DIGEST_ROOM);

                add(&d, rows[i].type, rows[i].payload);
                line = session_card_headline(&d.pages[0]);
                assert_string_equal(line, rows[i].line);
                free(line);
                digest_release(&d);
        }
}

static void a_question_says_that_it_shows_only_a_part(void **state)
{
        char content[1200];
        struct session_approval_row a = { .tool = "bash", .content = content, .state = "open" };
        const struct session_card_place place = { 0 };
        char *text;

        (void)state;
        memset(content, 'x', sizeof(content));
        content[900] = '\0';
        text = session_card_approval(&row, &a, NULL, &place);
        assert_null(strstr(text, "Only the beginning"));
        free(text);
        content[900] = 'x';
        content[1100] = '\0';
        text = session_card_approval(&row, &a, NULL, &place);
        ASSERT_HAS(text, "Only the beginning of the input is shown, 900 of 1100 characters.");
        free(text);
}

static struct card *read_card(const char *json, json_t **root)
{
        static struct card card;

        assert_int_equal(card_parse(json, root, &card, NULL), 0);
        return &card;
}

/* Whoever decides must not be shown less than they believe, whatever the agent says. */
static void no_platform_cuts_a_question_without_saying_so(void **state)
{
        static const char *const pieces[] = { "&", "<", "`", "\n", "x", " ", "é", "😀", "```" };
        static const struct markdown_limits limits[] = {
                { .dialect = MARKDOWN_TELEGRAM_HTML, .unit = UTF8_UTF16, .max = 4096 },
                { .dialect = MARKDOWN_DISCORD, .unit = UTF8_CODE_POINTS, .max = 2000 },
                { .dialect = MARKDOWN_SLACK, .unit = UTF8_CODE_POINTS, .max = 4000 },
        };
        const struct session_card_place place = { .ways_to_answer = "Or write `yes`." };
        char reason[1024];
        unsigned seed = getenv("SEED") ? (unsigned)strtoul(getenv("SEED"), NULL, 10)
                                       : (unsigned)clock_mono_ns();

        (void)state;
        print_message("SEED=%u\n", seed);
        srand(seed);
        for (int i = 0; i < 300; i++) {
                size_t kind = (size_t)rand() % (COUNT(pieces) + 1), room = (size_t)rand() % 1000;
                struct session_approval_row a = { .tool = "bash", .state = "open" };
                struct buf content;
                json_t *root;
                char *card;

                memset(reason, '*', sizeof(reason));
                reason[(size_t)rand() % sizeof(reason)] = '\0';
                reason[sizeof(reason) - 1] = '\0';
                a.reason = reason;
                buf_init(&content, 0);
                for (size_t k = 0; k < room; k++)
                        buf_addstr(&content,
                                   pieces[kind < COUNT(pieces) ? kind
                                                               : (size_t)rand() % COUNT(pieces)]);
                buf_addstr(&content, "THE END");
                a.content = content.data;
                card = session_card_approval(&row, &a, NULL, &place);
                for (size_t k = 0; k < COUNT(limits); k++) {
                        char *text = card_text_message(read_card(card, &root), &limits[k]);

                        if (!strstr(text, "THE END") && !strstr(text, "nly the beginning"))
                                fail_msg("%zu cuts the question: %s", k, text);
                        json_decref(root);
                        free(text);
                }
                free(card);
                buf_release(&content);
        }
}

static void code_cannot_leave_its_block(void **state)
{
        struct digest d = fresh(DIGEST_ROOM);
        const json_t *card;

        (void)state;
        add(&d, "tool_call", "{\"toolName\":\"bash\",\"content\":\"```\\n@everyone\\n````\"}");
        card = card_of(&d.pages[0]);
        assert_string_equal(field(card, "Input"), "`````bash\n```\n@everyone\n````\n`````");
        add(&d, "tool_call", "{\"toolName\":\"**x**\",\"content\":\"`a`\"}");
        ASSERT_HAS(json_str(card_of(&d.pages[0]), "body", ""), "**\\*\\*x\\*\\*** `` `a` ``");
        digest_release(&d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tool_call_is_the_alert_of_the_blueprint),
                cmocka_unit_test(a_turn_is_the_summary_of_the_blueprint),
                cmocka_unit_test(responses_within_a_turn_are_summed_up_at_its_end),
                cmocka_unit_test(calls_share_a_page_until_the_turn_ends),
                cmocka_unit_test(a_full_page_is_followed_by_another),
                cmocka_unit_test(errors_in_a_row_are_one_page),
                cmocka_unit_test(a_notice_calls_a_person_or_is_a_line),
                cmocka_unit_test(the_end_says_how_it_was),
                cmocka_unit_test(what_was_given_elsewhere_is_shown_and_what_was_given_here_is_not),
                cmocka_unit_test(what_was_before_the_link_is_not_shown),
                cmocka_unit_test(a_burst_is_summed_up_and_nothing_is_lost),
                cmocka_unit_test(the_page_that_grows_keeps_its_place),
                cmocka_unit_test(many_tools_are_counted_together),
                cmocka_unit_test(odd_payloads_do_no_harm),
                cmocka_unit_test(a_session_is_named_by_what_is_known_of_it),
                cmocka_unit_test(the_first_message_says_how_the_session_is),
                cmocka_unit_test(a_question_says_what_no_answer_means_and_then_what_was_decided),
                cmocka_unit_test(among_other_sessions_a_card_says_of_which_it_is),
                cmocka_unit_test(what_a_tool_gets_is_easy_to_read),
                cmocka_unit_test(calls_are_listed_line_by_line),
                cmocka_unit_test(times_are_short),
                cmocka_unit_test(a_headline_says_what_a_phone_announces),
                cmocka_unit_test(a_question_says_that_it_shows_only_a_part),
                cmocka_unit_test(no_platform_cuts_a_question_without_saying_so),
                cmocka_unit_test(code_cannot_leave_its_block),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
