/*
 * tool_rig: a scope with a workspace of its own, and calls of tools.
 *
 * setup and teardown are for cmocka. A call is checked and started as the agent does it. Commands
 * go to fake_sandbox.h, unless TOOL_RIG_WITH_SANDBOX is defined.
 */
#ifndef TESTS_AGENT_TOOL_RIG_H
#define TESTS_AGENT_TOOL_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "agent/tools/tool.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#ifndef TOOL_RIG_WITH_SANDBOX
#include "fake_sandbox.h"
#endif

#define TOOL_ROUNDS 200000 /* of the loop, before a test gives up */

struct tool_rig {
        struct loop *loop;
        char *dir;
        char *folder; /* of the channel, on the host */
        struct turn_run run;
        struct tool_scope scope;
        /* the last call */
        struct tool_call call;
        json_t *arguments;
        int done;
        struct tool_result result;
        char *text; /* of its text blocks */
        struct buf output;
};

static inline int setup(void **state)
{
        struct tool_rig *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        b->loop = loop_new();
        b->dir = scratch_new();
        if (workspace_view_open(b->dir, "test", "c1", &b->scope.view, &err) < 0)
                fail_msg("%s", err.text);
        b->folder = scratch_path(b->dir, "workspace/channels/test/c1");
        b->run = (struct turn_run){ .id = 7,
                                    .conversation = 12,
                                    .adapter = "test",
                                    .channel = "c1",
                                    .trace = "0af7651916cd43dd8448eb211c80319c" };
        b->scope.run = &b->run;
        b->scope.loop = b->loop;
        b->scope.sandbox.conversation = b->run.conversation;
        b->scope.sandbox.view = b->scope.view;
        buf_init(&b->output, 0);
        *state = b;
        return 0;
}

static inline void rig_clear(struct tool_rig *b)
{
        json_decref(b->arguments);
        json_decref(b->result.content);
        json_decref(b->result.details);
        free(b->text);
        b->arguments = NULL;
        b->result = (struct tool_result){ 0 };
        b->text = NULL;
        b->done = 0;
        buf_clear(&b->output);
}

static inline int teardown(void **state)
{
        struct tool_rig *b = *state;

        rig_clear(b);
        buf_release(&b->output);
        while (loop_step(b->loop, true))
                ;
        workspace_view_free(b->scope.view);
        loop_free(b->loop);
        free(b->folder);
        scratch_free(b->dir);
        free(b);
        return 0;
}

static inline void on_call_done(struct tool_call *c, struct tool_result *r)
{
        struct tool_rig *b = c->arg;
        struct buf text;
        json_t *block;
        size_t i;

        assert_int_equal(b->done++, 0);
        b->result = *r;
        buf_init(&text, 0);
        json_array_foreach(r->content, i, block)
                if (strcmp(json_str(block, "type", ""), "text") == 0)
                        buf_addstr(&text, json_str(block, "text", ""));
        b->text = buf_take(&text);
}

static inline void on_call_output(struct tool_call *c, const char *text, size_t n)
{
        struct tool_rig *b = c->arg;

        assert_int_equal(b->done, 0);
        buf_add(&b->output, text, n);
}

/* Takes the arguments. */
static inline void rig_start(struct tool_rig *b, const struct tool *t, json_t *arguments)
{
        struct error err = { 0 };

        rig_clear(b);
        assert_non_null(t);
        assert_non_null(arguments);
        if (!json_object_get(arguments, "label"))
                json_object_set_new(arguments, "label", json_string("testing"));
        if (tool_check(t, arguments, &err) < 0)
                fail_msg("%s", err.text);
        b->arguments = arguments;
        b->call = (struct tool_call){ .tool = t,
                                      .scope = &b->scope,
                                      .id = "call_1",
                                      .arguments = arguments,
                                      .on_done = on_call_done,
                                      .on_output = on_call_output,
                                      .arg = b };
        t->start(&b->call);
}

static inline void rig_await(struct tool_rig *b)
{
        for (int i = 0; i < TOOL_ROUNDS && !b->done; i++)
                loop_step(b->loop, true);
        assert_int_equal(b->done, 1);
}

/* Its text, until the next call. */
static inline const char *rig_call(struct tool_rig *b, const char *tool, json_t *arguments)
{
        rig_start(b, tool_find(tool), arguments);
        rig_await(b);
        return b->text;
}

static inline void expect_text(struct tool_rig *b, const char *text)
{
        if (b->result.is_error)
                fail_msg("error result: %s", b->text);
        assert_string_equal(b->text, text);
}

static inline void expect_error(struct tool_rig *b, const char *part)
{
        assert_true(b->result.is_error);
        if (!strstr(b->text, part))
                fail_msg("'%s' does not say '%s'", b->text, part);
}

/* ---- files of the channel, from outside ---- */

static inline void put_bytes(struct tool_rig *b, const char *name, const char *bytes, size_t n)
{
        char *path = mem_printf("%s/%s", b->folder, name);
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fclose(f);
        free(path);
}

static inline void put(struct tool_rig *b, const char *name, const char *text)
{
        put_bytes(b, name, text, strlen(text));
}

/* Yours to free. */
static inline char *get(struct tool_rig *b, const char *name)
{
        char *path = mem_printf("%s/%s", b->folder, name), piece[4096];
        FILE *f = fopen(path, "r");
        struct buf text;
        size_t n;

        if (!f)
                fail_msg("there is no %s", path);
        buf_init(&text, 0);
        while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
                buf_add(&text, piece, n);
        fclose(f);
        free(path);
        return buf_take(&text);
}

static inline void expect_file(struct tool_rig *b, const char *name, const char *text)
{
        char *got = get(b, name);

        assert_string_equal(got, text);
        free(got);
}

#endif
