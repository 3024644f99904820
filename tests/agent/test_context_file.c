/* context.jsonl is a session of pi, and sessions of pi are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/bus_rig.h"
#include "agent/workspace/context_entry.h"
#include "agent/workspace/context_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "rows/conversation_row.h"
#include "rows/turn_row.h"

#define MAX_BYTES (1 << 20)

/* ---- a turn with a call of a tool ---- */

struct turn_plan {
        int64_t turn;
        const char *thread, *said;
        bool reset; /* /new before it */
};

static void add_step(struct store_tx *tx, int64_t conversation, int64_t turn, enum step_kind kind,
                     const char *call, const char *body)
{
        struct step_row row = { .conversation = conversation,
                                .turn = turn,
                                .agent = "main",
                                .kind = kind,
                                .call = call,
                                .body = body,
                                .time_ms = 1763287200000 };

        assert_int_equal(step_row_insert(tx, &row, 1, NULL), 1);
}

static int write_turn(struct store_tx *tx, void *arg, struct error *err)
{
        const struct turn_plan *p = arg;
        struct chat_key chat = { "tg", "42", p->thread };
        struct conversation_key key = { .lane = p->thread ? p->thread : "main",
                                        .chat = chat,
                                        .agent = "main" };
        struct turn_row turn = { .id = p->turn,
                                 .agent = "main",
                                 .state = TURN_RUNNING,
                                 .inputs = "1",
                                 .trace = "t",
                                 .attempt = 1,
                                 .fence = 1 };
        char *said = mem_printf("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                                "\"%s\"},{\"type\":\"image\",\"mimeType\":\"image/png\","
                                "\"blob\":\"abc\",\"name\":\"p.png\"}]}",
                                p->said);
        int64_t reset;

        assert_int_equal(conversation_row_touch(tx, &key, 1, &turn.conversation, &reset, err), 0);
        if (p->reset)
                assert_int_equal(conversation_row_reset(tx, &chat, NULL, p->turn, err), 0);
        assert_int_equal(turn_row_insert(tx, &turn, err), 0);
        add_step(tx, turn.conversation, p->turn, STEP_USER, NULL, said);
        add_step(tx, turn.conversation, p->turn, STEP_ASSISTANT, NULL,
                 "{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\","
                 "\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}],\"stopReason\":"
                 "\"toolUse\"}");
        add_step(tx, turn.conversation, p->turn, STEP_TOOL_STARTED, "2.0", "{}");
        add_step(tx, turn.conversation, p->turn, STEP_TOOL_DONE, "2.0",
                 "{\"role\":\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"bash\",\"content\":"
                 "[{\"type\":\"text\",\"text\":\"a.txt\"}],\"isError\":false}");
        add_step(tx, turn.conversation, p->turn, STEP_ASSISTANT, NULL,
                 "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"one file\"}],"
                 "\"stopReason\":\"stop\"}");
        free(said);
        return 0;
}

static void run_turn(struct bus_rig *r, const struct turn_plan *p)
{
        char *payload = mem_printf("{\"turnId\":\"trn-%lld\"}", (long long)p->turn);
        struct bus_event e = {
                .type = "turn.done", .adapter = "tg", .channel = "42", .payload = payload
        };
        struct rig_append a;
        struct error err;

        if (store_write_now(r->store, write_turn, (void *)p, &err) < 0)
                fail_msg("%s", err.text);
        bus_rig_append(r, &a, &e, 1);
        free(payload);
}

static void write_contexts(struct bus_rig *r)
{
        struct context_files *fs = context_files_new(r->loop, r->store, r->bus, r->dir, MAX_BYTES);

        bus_rig_run(r);
        context_files_free(fs);
        bus_rig_run(r);
}

static char *path_of(const struct bus_rig *r, const char *name)
{
        return mem_printf("%s/workspace/channels/tg/42/%s", r->dir, name);
}

static char *read_text(const struct bus_rig *r, const char *name)
{
        char *path = path_of(r, name);
        struct buf text;

        buf_init(&text, 0);
        file_read(path, 1 << 24, &text, NULL);
        free(path);
        return buf_take(&text);
}

/* "id<parent" of each line after the header. */
static void check_chain(const char *text, const char *expected)
{
        char *copy = mem_strdup(text), *rest = copy, *line;
        struct buf chain;
        bool is_header = true;

        buf_init(&chain, 0);
        while ((line = strsep(&rest, "\n")) && *line) {
                json_t *o = json_read(line, strlen(line), NULL);

                assert_non_null(o);
                if (is_header) {
                        assert_string_equal(json_str(o, "type", ""), "session");
                        assert_int_equal(json_int(o, "version", 0), 3);
                        assert_int_equal(strlen(json_str(o, "id", "")), 36);
                } else {
                        const char *id = json_str(o, "id", ""),
                                   *parent = json_str(o, "parentId", "");

                        assert_int_equal(strlen(id), 8);
                        buf_addf(&chain, "%s%s<%s", chain.len ? " " : "", id + 6,
                                 *parent ? parent + 6 : "");
                }
                is_header = false;
                json_decref(o);
        }
        assert_string_equal(chain.data, expected);
        buf_release(&chain);
        free(copy);
}

static void a_turn_becomes_entries_in_a_chain(void **state)
{
        struct bus_rig *r = *state;
        char *text;
        size_t skipped;
        json_t *messages;

        run_turn(r, &(struct turn_plan){ .turn = 1, .said = "[x] [ann]: list" });
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        check_chain(text, "01< 02<01 04<02 05<04");
        assert_non_null(strstr(text, "\"cwd\":\"/workspace/channels/tg/42\""));
        assert_non_null(strstr(text, "{\"type\":\"text\",\"text\":\"[image p.png]\"}"));
        assert_null(strstr(text, "blob"));
        messages = context_read(text, strlen(text), &skipped, NULL);
        assert_int_equal(json_array_size(messages), 4);
        assert_int_equal(skipped, 0);
        json_decref(messages);
        free(text);
}

static void turns_are_appended_once(void **state)
{
        struct bus_rig *r = *state;
        struct rig_append a;
        struct bus_event again = { .type = "turn.done",
                                   .adapter = "tg",
                                   .channel = "42",
                                   .payload = "{\"turnId\":\"trn-1\"}" };
        char *text;

        run_turn(r, &(struct turn_plan){ .turn = 1, .said = "one" });
        write_contexts(r);
        run_turn(r, &(struct turn_plan){ .turn = 2, .said = "two" });
        bus_rig_append(r, &a, &again, 1);
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        check_chain(text, "01< 02<01 04<02 05<04 06<05 07<06 09<07 0a<09");
        free(text);
}

static void after_a_reset_a_new_chain_begins(void **state)
{
        struct bus_rig *r = *state;
        size_t skipped;
        json_t *messages;
        char *text;

        run_turn(r, &(struct turn_plan){ .turn = 1, .said = "one" });
        run_turn(r, &(struct turn_plan){ .turn = 2, .said = "two", .reset = true });
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        check_chain(text, "01< 02<01 04<02 05<04 06< 07<06 09<07 0a<09");
        messages = context_read(text, strlen(text), &skipped, NULL);
        assert_int_equal(json_array_size(messages), 4);
        json_decref(messages);
        free(text);
}

static void a_thread_has_a_file_of_its_own(void **state)
{
        struct bus_rig *r = *state;
        char *text;

        run_turn(r, &(struct turn_plan){ .turn = 1, .said = "main" });
        run_turn(r, &(struct turn_plan){ .turn = 2, .said = "aside", .thread = "9" });
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        assert_null(strstr(text, "aside"));
        free(text);
        text = read_text(r, "contexts/conv-2.jsonl");
        assert_non_null(strstr(text, "aside"));
        check_chain(text, "06< 07<06 09<07 0a<09");
        free(text);
}

static void a_lost_or_foreign_file_is_made_anew(void **state)
{
        struct bus_rig *r = *state;
        char *path = path_of(r, "context.jsonl"), *text;
        FILE *f;

        run_turn(r, &(struct turn_plan){ .turn = 1, .said = "one" });
        write_contexts(r);
        assert_int_equal(unlink(path), 0);
        run_turn(r, &(struct turn_plan){ .turn = 2, .said = "two" });
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        check_chain(text, "01< 02<01 04<02 05<04 06<05 07<06 09<07 0a<09");
        free(text);
        f = fopen(path, "w");
        fputs("{\"type\":\"session\",\"id\":\"of another program\"}\n", f);
        fclose(f);
        run_turn(r, &(struct turn_plan){ .turn = 3, .said = "three" });
        write_contexts(r);
        text = read_text(r, "context.jsonl");
        assert_non_null(strstr(text, "one"));
        assert_non_null(strstr(text, "three"));
        free(text);
        text = read_text(r, "context.1.jsonl");
        assert_non_null(strstr(text, "of another program"));
        free(text);
        free(path);
}

/* ---- reading ---- */

#define HEADER \
        "{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n"
#define ENTRY(id, parent, message) \
        "{\"type\":\"message\",\"id\":\"" id "\",\"parentId\":" parent ",\"message\":" message "}\n"
#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define ANSWER(text) \
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define CALL(id)                                                                         \
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"" id "\"," \
        "\"name\":\"bash\",\"arguments\":{}}],\"stopReason\":\"toolUse\"}"
#define RESULT(id) \
        "{\"role\":\"toolResult\",\"toolCallId\":\"" id "\",\"toolName\":\"bash\",\"content\":[]}"

/* "u:text", "a:text", "a!call", "r:call" of each message. */
static void check_messages(const char *text, const char *expected)
{
        size_t skipped, i;
        struct error err;
        json_t *messages = context_read(text, strlen(text), &skipped, &err), *m;
        struct buf out;

        buf_init(&out, 0);
        if (!messages)
                buf_addstr(&out, err.text);
        json_array_foreach(messages, i, m) {
                const json_t *block = json_array_get(json_object_get(m, "content"), 0);
                const char *role = json_str(m, "role", "?");

                assert_true(json_is_object(block));
                buf_addf(&out, "%s%c", i > 0 ? " " : "", *role == 't' ? 'r' : *role);
                if (*role == 't')
                        buf_addf(&out, ":%s", json_str(m, "toolCallId", "?"));
                else if (json_str(block, "name", NULL))
                        buf_addf(&out, "!%s", json_str(block, "id", "?"));
                else
                        buf_addf(&out, ":%s", json_str(block, "text", "?"));
        }
        assert_string_equal(out.data, expected);
        buf_release(&out);
        json_decref(messages);
}

static void sessions_of_all_versions_are_read(void **state)
{
        (void)state;
        check_messages(HEADER ENTRY("a", "null", USER("hi")) ENTRY("b", "\"a\"", ANSWER("ho")),
                       "u:hi a:ho");
        /* version 1 has no ids, and an index into the file for the summary */
        check_messages("{\"type\":\"session\",\"id\":\"x\",\"provider\":\"p\",\"modelId\":\"m\"}\n"
                       "{\"type\":\"message\",\"message\":" USER(
                               "old") "}\n"
                                      "{\"type\":\"message\",\"message\":" USER(
                                              "kept") "}\n"
                                                      "{\"type\":\"compaction\",\"summary\":\"s\","
                                                      "\"firstKeptEntryIndex\":2}\n"
                                                      "{\"type\":\"message\",\"message\":" ANSWER(
                                                              "new") "}\n",
                       "u:The earlier conversation was summarised:\n\n<summary>\ns\n</summary> "
                       "u:kept a:new");
        /* the newest leaf counts, not the branch that was left */
        check_messages(HEADER ENTRY("a", "null", USER("hi")) ENTRY("b", "\"a\"", ANSWER("left"))
                               ENTRY("c", "\"a\"", ANSWER("taken")),
                       "u:hi a:taken");
        check_messages(HEADER "{\"type\":\"custom_message\",\"id\":\"a\",\"parentId\":null,"
                              "\"customType\":\"x\",\"content\":\"note\"}\n"
                              "{\"type\":\"model_change\",\"id\":\"b\",\"parentId\":\"a\"}\n"
                              "not json\n" ENTRY("c", "\"b\"", USER("hi")),
                       "u:note u:hi");
        check_messages("not json\n" ENTRY("a", "null", USER("hi")),
                       "the first line is no header of a session");
        check_messages("", "the file is empty");
        check_messages(HEADER, "");
}

static void what_is_read_can_be_sent(void **state)
{
        (void)state;
        check_messages(HEADER ENTRY("a", "null", USER("hi")) ENTRY("b", "\"a\"", CALL("c1"))
                               ENTRY("c", "\"b\"", USER("well?")),
                       "u:hi a!c1 r:c1 u:well?");
        check_messages(HEADER ENTRY("a", "null", USER("hi")) ENTRY("b", "\"a\"", CALL("c1"))
                               ENTRY("c", "\"b\"", RESULT("c1")) ENTRY("d", "\"c\"", RESULT("c1")),
                       "u:hi a!c1 r:c1");
        check_messages(HEADER ENTRY("a", "null", RESULT("c9")) ENTRY("b", "\"a\"", USER(" ")), "");
        check_messages(HEADER ENTRY("a", "null", USER("hi"))
                               ENTRY("b", "\"a\"",
                                     "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
                                     "\"text\":\"half\"}],"
                                     "\"stopReason\":\"aborted\"}"),
                       "u:hi");
        check_messages(HEADER ENTRY("a", "null", USER("hi")) ENTRY("b", "\"a\"", CALL("c1")),
                       "u:hi a!c1 r:c1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bus_rig_setup, bus_rig_teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_turn_becomes_entries_in_a_chain),
                TEST(turns_are_appended_once),
                TEST(after_a_reset_a_new_chain_begins),
                TEST(a_thread_has_a_file_of_its_own),
                TEST(a_lost_or_foreign_file_is_made_anew),
                cmocka_unit_test(sessions_of_all_versions_are_read),
                cmocka_unit_test(what_is_read_can_be_sent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
