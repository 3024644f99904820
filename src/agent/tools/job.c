/*
 * job: commands in the background: what they printed, what they are fed, their end.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/tools/tool_output.h"
#include "agent/tools/tools_private.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define WAIT_STEP_MS 100

/* ---- list ---- */

static void add_state(struct buf *out, const struct sandbox_job *j)
{
        if (j->running)
                buf_addf(out, "running for %lld s",
                         (long long)((clock_wall_ms() - j->started_ms) / 1000));
        else if (j->signal)
                buf_addf(out, "ended by signal %d", j->signal);
        else
                buf_addf(out, "ended with code %d", j->exit_code);
}

static void list_one(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        struct buf *out = arg;

        (void)conversation;
        buf_addf(out, "%d: ", j->id);
        add_state(out, j);
        buf_addf(out, ", %zu bytes to read: %.200s\n", j->unread, j->command);
}

static void list(struct tool_call *c)
{
        struct buf out;

        buf_init(&out, 0);
        sandbox_jobs_each(c->scope->sandboxes, c->scope->sandbox.conversation, list_one, &out);
        tool_finish_text(c, false, "%s", out.len > 0 ? out.data : "There are no jobs.");
        buf_release(&out);
}

/* ---- read ---- */

struct job_read {
        struct tool_output output;
        int id;
        struct timer *timer; /* NULL: does not wait */
        int64_t until_ms;
};

static void stop(struct tool_output *o)
{
        timer_free(((struct job_read *)o)->timer);
}

struct job_search {
        int id;
        bool found, idle; /* idle: it runs and has printed nothing */
};

static void look(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        struct job_search *s = arg;

        (void)conversation;
        if (j->id == s->id) {
                s->found = true;
                s->idle = j->running && j->unread == 0;
        }
}

static void read_now(struct job_read *r)
{
        struct tool_call *c = r->output.call;
        struct sandbox_job state = { 0 };
        struct error err = { 0 };
        struct buf bytes, text;

        buf_init(&bytes, 0);
        if (sandbox_job_read(c->scope->sandboxes, &c->scope->sandbox, r->id, &bytes, &state, &err) <
            0) {
                tool_output_cancel(c);
                tool_finish_text(c, true, "%s", err.text);
        } else {
                buf_init(&text, 0);
                buf_addf(&text, "Job %d: ", r->id);
                add_state(&text, &state);
                tool_output_add(&r->output, bytes.data, bytes.len);
                tool_output_end(&r->output, false, buf_take(&text), NULL);
        }
        buf_release(&bytes);
}

static void on_wait(void *arg)
{
        struct job_read *r = arg;
        const struct tool_scope *scope = r->output.call->scope;
        struct job_search s = { .id = r->id };

        sandbox_jobs_each(scope->sandboxes, scope->sandbox.conversation, look, &s);
        if (s.found && s.idle && loop_now_ms(scope->loop) < r->until_ms)
                timer_start(r->timer, WAIT_STEP_MS);
        else
                read_now(r);
}

static void start_read(struct tool_call *c, int id)
{
        struct job_read *r = mem_zalloc(sizeof(*r));
        int64_t wait = json_int(c->arguments, "wait", 0);

        tool_output_init(&r->output, c);
        r->output.stop = stop;
        r->id = id;
        if (wait == 0) {
                read_now(r);
                return;
        }
        r->timer = timer_new(c->scope->loop, on_wait, r);
        r->until_ms = loop_now_ms(c->scope->loop) + wait * 1000;
        timer_start(r->timer, 1);
}

/* ---- write and kill ---- */

static void start_write(struct tool_call *c, int id)
{
        const json_t *input = json_object_get(c->arguments, "input");
        bool close = json_flag(c->arguments, "close", false);
        struct error err = { 0 };

        if (!input && !close)
                tool_finish_text(c, true, "write needs input, or close to end the job's input");
        else if (sandbox_job_write(c->scope->sandboxes, &c->scope->sandbox, id,
                                   input ? json_string_value(input) : "", json_string_length(input),
                                   close, &err) < 0)
                tool_finish_text(c, true, "%s", err.text);
        else
                tool_finish_text(c, false, "Wrote %zu bytes to job %d%s.",
                                 json_string_length(input), id,
                                 close ? " and closed its input" : "");
}

static void start_kill(struct tool_call *c, int id)
{
        struct error err = { 0 };

        if (sandbox_job_kill(c->scope->sandboxes, &c->scope->sandbox, id, &err) < 0)
                tool_finish_text(c, true, "%s", err.text);
        else
                tool_finish_text(c, false, "Ended job %d.", id);
}

static void job_start(struct tool_call *c)
{
        const char *action = json_str(c->arguments, "action", "");
        int id = (int)json_int(c->arguments, "id", 0);

        if (strcmp(action, "list") == 0)
                list(c);
        else if (id == 0)
                tool_finish_text(c, true, "%s needs the id of a job; list shows them", action);
        else if (strcmp(action, "read") == 0)
                start_read(c, id);
        else if (strcmp(action, "write") == 0)
                start_write(c, id);
        else
                start_kill(c, id);
}

static void job_cancel(struct tool_call *c)
{
        if (c->data)
                tool_output_cancel(c);
}

/* Reading takes the output away, so only the list can be asked for twice. */
static unsigned flags_of(const struct tool_scope *scope, const json_t *arguments)
{
        (void)scope;
        return strcmp(json_str(arguments, "action", ""), "list") == 0
                       ? TOOL_READ_ONLY | TOOL_UNTRUSTED
                       : TOOL_UNTRUSTED;
}

static bool has_sandbox(const struct tool_scope *scope)
{
        return scope->sandboxes != NULL;
}

const struct tool job_tool = {
        .name = "job",
        .description =
                "Look after the commands that bash started in the background: list them, read "
                "what one printed since the last read, write to its stdin, or kill it.",
        .parameters =
                "{\"properties\":{"
                "\"action\":{\"enum\":[\"list\",\"read\",\"write\",\"kill\"]},"
                "\"id\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"The job, for all but "
                "list\"},"
                "\"wait\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":60,\"description\":\"For "
                "read: seconds to wait for output or its end\"},"
                "\"input\":{\"type\":\"string\",\"description\":\"For write\"},"
                "\"close\":{\"type\":\"boolean\",\"description\":\"For write: the end of its "
                "input\"}},"
                "\"required\":[\"action\"],\"additionalProperties\":false}",
        .flags = TOOL_UNTRUSTED,
        .flags_of = flags_of,
        .offered = has_sandbox,
        .start = job_start,
        .cancel = job_cancel,
};
