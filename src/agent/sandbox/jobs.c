#include <stdlib.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/clock.h"
#include "base/mem.h"

/*
 * A job is a command whose output waits here until somebody reads it. It is kept after its end,
 * until that was read or newer jobs need its place.
 */

#define KEPT_MAX 32 /* ended jobs of a conversation */

struct job {
        struct sandboxes *all;
        LIST_ENTRY(job) next; /* newest first */
        int64_t conversation;
        char *signature; /* of its sandbox */
        char *command;
        struct sandbox_run *run; /* NULL: it has ended */
        struct sandbox_job state;
        struct buf output; /* the last of it */
        bool cut;          /* the beginning of it is gone */
};

static void job_free(struct job *j)
{
        LIST_REMOVE(j, next);
        buf_release(&j->output);
        free(j->signature);
        free(j->command);
        free(j);
}

void jobs_forget(struct sandboxes *all, int64_t conversation)
{
        struct job *j, *after;

        for (j = LIST_FIRST(&all->jobs); j; j = after) {
                after = LIST_NEXT(j, next);
                if (conversation && j->conversation != conversation)
                        continue;
                if (j->run)
                        sandbox_abandon(j->run);
                job_free(j);
        }
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct job *j = arg;
        size_t max = (size_t)j->all->conf->output_kb << 10;

        (void)fd;
        buf_add(&j->output, bytes, n);
        /* let it grow to twice the size, so that bytes are moved rarely */
        if (j->output.len > 2 * max) {
                buf_consume(&j->output, j->output.len - max);
                j->cut = true;
        }
}

static void on_ended(void *arg, const struct sandbox_result *r)
{
        struct job *j = arg;

        j->run = NULL;
        j->state.running = false;
        j->state.exit_code = r->exit_code;
        j->state.signal = r->signal;
        if (r->why)
                buf_addf(&j->output, "\n[%s]\n", r->why);
}

static size_t running(const struct sandboxes *all, int64_t conversation)
{
        const struct job *j;
        size_t n = 0;

        LIST_FOREACH(j, &all->jobs, next)
                n += j->run && j->conversation == conversation;
        return n;
}

static void forget_oldest(struct sandboxes *all, int64_t conversation)
{
        struct job *j, *oldest = NULL;
        size_t ended = 0;

        LIST_FOREACH(j, &all->jobs, next) {
                if (j->run || j->conversation != conversation)
                        continue;
                ended++;
                oldest = j;
        }
        if (ended > KEPT_MAX)
                job_free(oldest);
}

int sandbox_job_start(struct sandboxes *all, const struct sandbox_key *key,
                      const struct sandbox_command *command, int *id, struct error *err)
{
        static const struct sandbox_handlers handlers = { on_output, on_ended };
        struct job *j;

        if (running(all, key->conversation) >= (size_t)all->conf->jobs)
                return error_set(err, ERR_LIMIT,
                                 "%lld background jobs are running, the most that are allowed: "
                                 "kill one first",
                                 (long long)all->conf->jobs);
        j = mem_zalloc(sizeof(*j));
        j->all = all;
        j->conversation = key->conversation;
        j->signature = box_signature(key->view);
        j->command = mem_strdup(command->command ? command->command : command->argv[0]);
        buf_init(&j->output, 0);
        LIST_INSERT_HEAD(&all->jobs, j, next);
        j->run = run_start(all, key, command, RUN_JOB, &handlers, j, err);
        if (!j->run) {
                job_free(j);
                return -1;
        }
        *id = ++all->last_job;
        j->state = (struct sandbox_job){
                .id = *id, .command = j->command, .started_ms = clock_wall_ms(), .running = true
        };
        forget_oldest(all, key->conversation);
        return 0;
}

/* Only jobs of the same conversation and the same rights are found. */
static struct job *find_job(struct sandboxes *all, const struct sandbox_key *key, int id,
                            struct error *err)
{
        char *signature = box_signature(key->view);
        struct job *j;

        LIST_FOREACH(j, &all->jobs, next)
                if (j->state.id == id && j->conversation == key->conversation &&
                    strcmp(j->signature, signature) == 0)
                        break;
        free(signature);
        if (!j)
                error_set(err, ERR_MISSING, "there is no background job %d", id);
        return j;
}

int sandbox_job_read(struct sandboxes *all, const struct sandbox_key *key, int id, struct buf *out,
                     struct sandbox_job *state, struct error *err)
{
        struct job *j = find_job(all, key, id, err);
        size_t max = (size_t)all->conf->output_kb << 10;

        if (!j)
                return -1;
        if (j->run)
                box_touch(j->run->box);
        if (j->output.len > max) {
                buf_consume(&j->output, j->output.len - max);
                j->cut = true;
        }
        if (j->cut)
                buf_addstr(out, "[earlier output is lost]\n");
        buf_add(out, j->output.data, j->output.len);
        buf_release(&j->output);
        j->cut = false;
        *state = j->state;
        return 0;
}

int sandbox_job_write(struct sandboxes *all, const struct sandbox_key *key, int id,
                      const char *bytes, size_t n, bool close, struct error *err)
{
        struct job *j = find_job(all, key, id, err);

        if (!j)
                return -1;
        if (!j->run)
                return error_set(err, ERR_CONFLICT, "background job %d has ended", id);
        box_touch(j->run->box);
        return run_write(j->run, bytes, n, close, err);
}

int sandbox_job_kill(struct sandboxes *all, const struct sandbox_key *key, int id,
                     struct error *err)
{
        struct job *j = find_job(all, key, id, err);

        if (!j)
                return -1;
        if (j->run)
                run_stop(j->run, ERR_CANCELLED, 500, "killed");
        return 0;
}

void sandbox_jobs_each(struct sandboxes *all, int64_t conversation,
                       void (*fn)(void *arg, int64_t conversation, const struct sandbox_job *j),
                       void *arg)
{
        struct job *j;

        LIST_FOREACH(j, &all->jobs, next) {
                struct sandbox_job state = j->state;

                state.unread = j->output.len;
                if (!conversation || j->conversation == conversation)
                        fn(arg, j->conversation, &state);
        }
}
