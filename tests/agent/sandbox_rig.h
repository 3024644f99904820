/*
 * sandbox_rig: a data directory with a workspace, and commands in a sandbox.
 */
#ifndef TESTS_SANDBOX_RIG_H
#define TESTS_SANDBOX_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/patience.h"
#include "../lib/scratch.h"
#include "agent/sandbox/sandbox.h"
#include "base/buf.h"
#include "base/mem.h"

struct rig {
        struct loop *loop;
        char *dir;
        struct sandbox_conf conf;
        struct sandboxes *all;
        struct workspace_view *view;
        struct sandbox_key key;
};

/* One command and what came of it. */
struct ran {
        struct rig *rig;
        struct sandbox_run *run;
        struct buf out, err;
        bool exited;
        int exit_code, signal;
        enum error_kind kind;
        char why[600];
};

static inline void rig_view(struct rig *r, const char *channel)
{
        struct error err = { 0 };

        workspace_view_free(r->view);
        r->view = NULL;
        if (workspace_view_open(r->dir, "tg", channel, &r->view, &err) < 0)
                fail_msg("%s", err.text);
        r->key = (struct sandbox_key){ 1, r->view };
}

static inline void rig_open(struct rig *r)
{
        memset(r, 0, sizeof(*r));
        r->loop = loop_new();
        r->dir = scratch_new();
        r->conf = (struct sandbox_conf){ .kind = (char *)(uintptr_t) "bwrap",
                                         .memory_mb = 1024,
                                         .total_mb = 2048,
                                         .processes = 256,
                                         .file_mb = 64,
                                         .disk_mb = 1024,
                                         .cpu_seconds = 300,
                                         .timeout_seconds = PATIENCE_MS / 1000,
                                         .output_kb = 4096,
                                         .idle_seconds = 300,
                                         .jobs = 4,
                                         .job_seconds = 600 };
        r->all = sandboxes_new(r->loop, &r->conf, r->dir);
        rig_view(r, "42");
}

static inline void rig_close(struct rig *r)
{
        sandboxes_free(r->all);
        workspace_view_free(r->view);
        loop_free(r->loop);
        scratch_free(r->dir);
}

/* Setup and teardown of a test; *state is the rig. */
static inline int rig_begin(void **state)
{
        struct rig *r = mem_zalloc(sizeof(*r));

        rig_open(r);
        *state = r;
        return 0;
}

static inline int rig_end(void **state)
{
        rig_close(*state);
        free(*state);
        return 0;
}

static inline void rig_on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct ran *c = arg;

        assert_false(c->exited);
        buf_add(fd == 1 ? &c->out : &c->err, bytes, n);
}

static inline void rig_on_exit(void *arg, const struct sandbox_result *result)
{
        struct ran *c = arg;

        assert_false(c->exited);
        c->exited = true;
        c->exit_code = result->exit_code;
        c->signal = result->signal;
        c->kind = result->kind;
        if (result->why)
                strncat(c->why, result->why, sizeof(c->why) - 1);
}

static inline void ran_begin_command(struct ran *c, struct rig *r,
                                     const struct sandbox_command *command)
{
        static const struct sandbox_handlers h = { rig_on_output, rig_on_exit };
        struct error err = { 0 };

        memset(c, 0, sizeof(*c));
        c->rig = r;
        buf_init(&c->out, 0);
        buf_init(&c->err, 0);
        c->run = sandbox_start(r->all, &r->key, command, &h, c, &err);
        if (!c->run)
                fail_msg("%s", err.text);
        assert_false(c->exited);
}

static inline void ran_begin(struct ran *c, struct rig *r, const char *script)
{
        ran_begin_command(c, r, &(struct sandbox_command){ .command = script });
}

static inline void ran_await(struct ran *c)
{
        while (!c->exited)
                assert_true(loop_step(c->rig->loop, true) || c->exited);
}

static inline void ran_await_text(struct ran *c, const char *text)
{
        while (!strstr(c->out.data, text)) {
                assert_false(c->exited);
                assert_true(loop_step(c->rig->loop, true));
        }
}

static inline void ran_release(struct ran *c)
{
        buf_release(&c->out);
        buf_release(&c->err);
}

static inline void ran_run(struct ran *c, struct rig *r, const char *script)
{
        ran_begin(c, r, script);
        ran_await(c);
}

/* Runs the script, which has to print exactly the output. */
static inline void rig_expect(struct rig *r, const char *script, const char *output)
{
        struct ran c;

        ran_run(&c, r, script);
        if (strcmp(c.out.data, output) != 0)
                fail_msg("%s\nprinted: %s%s%s\ninstead of: %s", script, c.out.data, c.err.data,
                         c.why, output);
        ran_release(&c);
}

#endif
