/*
 * fake_sandbox: commands whose output and end the test decides.
 *
 * Defines the functions of agent/sandbox/sandbox.h that tools call, so a test program includes it
 * once and links no sandbox.
 */
#ifndef TESTS_AGENT_FAKE_SANDBOX_H
#define TESTS_AGENT_FAKE_SANDBOX_H

#include <stdlib.h>
#include <string.h>

#include "agent/sandbox/sandbox.h"
#include "base/buf.h"
#include "base/mem.h"

struct sandboxes {
        struct error refuse; /* kind set: nothing starts */
        char *command;       /* the last one */
        int64_t timeout_ms;
        struct sandbox_run *run; /* that runs; NULL: none */
        int abandoned;
        /* one job */
        struct sandbox_job job;
        struct buf printed, fed;
        bool closed;
};

struct sandbox_run {
        struct sandboxes *all;
        struct sandbox_handlers h;
        void *arg;
};

static inline void fake_sandbox_init(struct sandboxes *all)
{
        *all = (struct sandboxes){ 0 };
        buf_init(&all->printed, 0);
        buf_init(&all->fed, 0);
}

static inline void fake_sandbox_release(struct sandboxes *all)
{
        free(all->command);
        free(all->run);
        buf_release(&all->printed);
        buf_release(&all->fed);
}

static inline void fake_print(struct sandboxes *all, int fd, const char *text, size_t n)
{
        assert_non_null(all->run);
        all->run->h.on_output(all->run->arg, fd, text, n);
}

static inline void fake_exit(struct sandboxes *all, const struct sandbox_result *r)
{
        struct sandbox_run *run = all->run;

        assert_non_null(run);
        all->run = NULL;
        run->h.on_exit(run->arg, r);
        free(run);
}

struct sandbox_run *sandbox_start(struct sandboxes *all, const struct sandbox_key *key,
                                  const struct sandbox_command *command,
                                  const struct sandbox_handlers *h, void *arg, struct error *err)
{
        struct sandbox_run *r;

        assert_non_null(key->view);
        if (all->refuse.kind != ERR_NONE) {
                *err = all->refuse;
                return NULL;
        }
        assert_null(all->run);
        free(all->command);
        all->command = mem_strdup(command->command);
        all->timeout_ms = command->timeout_ms;
        r = mem_zalloc(sizeof(*r));
        *r = (struct sandbox_run){ all, *h, arg };
        all->run = r;
        return r;
}

void sandbox_abandon(struct sandbox_run *r)
{
        r->all->abandoned++;
        r->all->run = NULL;
        free(r);
}

int sandbox_job_start(struct sandboxes *all, const struct sandbox_key *key,
                      const struct sandbox_command *command, int *id, struct error *err)
{
        (void)key;
        (void)err;
        free(all->command);
        all->command = mem_strdup(command->command);
        all->job = (struct sandbox_job){
                .id = 3, .command = all->command, .started_ms = 1, .running = true
        };
        *id = 3;
        return 0;
}

static inline int find_job(const struct sandboxes *all, int id, struct error *err)
{
        return id == all->job.id ? 0 : error_set(err, ERR_MISSING, "there is no job %d", id);
}

int sandbox_job_read(struct sandboxes *all, const struct sandbox_key *key, int id, struct buf *out,
                     struct sandbox_job *state, struct error *err)
{
        (void)key;
        if (find_job(all, id, err) < 0)
                return -1;
        buf_add(out, all->printed.data, all->printed.len);
        buf_clear(&all->printed);
        *state = all->job;
        return 0;
}

int sandbox_job_write(struct sandboxes *all, const struct sandbox_key *key, int id,
                      const char *bytes, size_t n, bool close, struct error *err)
{
        (void)key;
        if (find_job(all, id, err) < 0)
                return -1;
        buf_add(&all->fed, bytes, n);
        all->closed = close;
        return 0;
}

int sandbox_job_kill(struct sandboxes *all, const struct sandbox_key *key, int id,
                     struct error *err)
{
        (void)key;
        if (find_job(all, id, err) < 0)
                return -1;
        all->job.running = false;
        all->job.signal = 9;
        return 0;
}

void sandbox_jobs_each(struct sandboxes *all, int64_t conversation,
                       void (*fn)(void *arg, int64_t conversation, const struct sandbox_job *j),
                       void *arg)
{
        all->job.unread = all->printed.len;
        if (all->job.id)
                fn(arg, conversation, &all->job);
}

#endif
