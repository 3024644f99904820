/*
 * tool_rig: calls of a platform's tools, and the checks that hold for the tools of every platform.
 *
 * Include it in one file of a test program, after the rig of the platform.
 */
#ifndef TESTS_TOOL_RIG_H
#define TESTS_TOOL_RIG_H

#include "adapter_rig.h"
#include "platform/platform_tool.h"

/* The last answer of a tool or a lookup. */
static struct {
        unsigned calls;
        char result[3000], why[600];
        enum error_kind kind;
} last;

static inline int tool_rig_begin(void **state)
{
        memset(&last, 0, sizeof(last));
        return rig_begin(state);
}

static inline void on_tool_done(void *arg, const char *result, const struct error *err)
{
        (void)arg;
        last.calls++;
        fake_copy(last.result, sizeof(last.result), result);
        fake_copy(last.why, sizeof(last.why), err ? err->text : NULL);
        last.kind = err ? err->kind : ERR_NONE;
}

static inline void call(struct rig *g, const char *tool, const char *arguments)
{
        json_t *parsed = json_read(arguments, strlen(arguments), NULL);

        assert_non_null(parsed);
        last.calls = 0;
        platform_tool_call(g->adapters, g->name, tool,
                           &(struct tool_request){ .arguments = parsed }, on_tool_done, NULL);
        json_decref(parsed);
        assert_int_equal(last.calls, 0); /* not before the call has returned */
}

static inline void await_result(struct rig *g)
{
        for (int i = 0; i < 100000 && last.calls == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(last.calls, 1);
}

/* The tools are those named, in any order, each with a help text and a schema. */
static inline void assert_tools(const struct platform_tool *tools, const char *const *names,
                                size_t count)
{
        size_t n = 0;

        for (const struct platform_tool *t = tools; t->tool.name; t++, n++) {
                json_t *schema = json_read(t->tool.parameters, strlen(t->tool.parameters), NULL);
                size_t i = 0;

                while (i < count && strcmp(names[i], t->tool.name) != 0)
                        i++;
                assert_true(i < count);
                assert_true(strlen(t->tool.help) > 10);
                assert_string_equal(json_str(schema, "type", ""), "object");
                assert_true(json_is_array(json_object_get(schema, "required")));
                json_decref(schema);
        }
        assert_int_equal(n, count);
}

/* A tool that sends, and the delivery that it makes; NULL: the field is empty. */
struct tool_put {
        const char *tool, *arguments, *kind, *channel, *message, *text, *emoji, *thread, *name;
};

/* Connects and calls the tools. They make no request: everything goes through the outbox. */
static inline void assert_tools_put(struct rig *g, const struct tool_put *rows, size_t count)
{
        const struct outbox_receipt receipt = { .delivery = 12, .count = 2 };

        rig_connect(g, "");
        for (const struct tool_put *row = rows; row < rows + count; row++) {
                const struct {
                        const char *is, *wanted;
                } fields[] = {
                        { fake_road.put.kind, row->kind },
                        { fake_road.put.channel, row->channel },
                        { fake_road.put.message_id, row->message },
                        { fake_road.put.text, row->text },
                        { fake_road.put.emoji, row->emoji },
                        { fake_road.put.thread, row->thread },
                        { fake_road.put.name, row->name },
                };

                call(g, row->tool, row->arguments);
                for (size_t i = 0; i < COUNT(fields); i++)
                        assert_string_equal(fields[i].is, fields[i].wanted ? fields[i].wanted : "");
                fake_road.put.ack(fake_road.put.arg, &receipt);
                assert_string_equal(
                        last.result,
                        "{\"deliveryId\":\"dlv-12\",\"status\":\"queued\",\"messages\":2}");
        }
        assert_int_equal(fake_server_requests(g->server), g->greetings);
}

/* A call with a mistake, and the text about it. */
struct tool_mistake {
        const char *tool, *arguments, *why;
};

/* Connects and calls the tools. None of them makes a request. */
static inline void assert_tools_refuse(struct rig *g, const struct tool_mistake *rows, size_t count)
{
        rig_connect(g, "");
        for (size_t i = 0; i < count; i++) {
                call(g, rows[i].tool, rows[i].arguments);
                await_result(g);
                assert_string_equal(last.why, rows[i].why);
        }
        assert_int_equal(fake_server_requests(g->server), g->greetings);
}

#endif
