/*
 * bash: runs a command in the conversation's sandbox.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tools/tool_output.h"
#include "agent/tools/tools_private.h"
#include "base/json.h"
#include "base/mem.h"

#define SILENCE_MS 60000

struct bash_call {
        struct tool_output output;
        struct sandbox_run *run; /* NULL: ended */
        struct timer *silence;
        int64_t started_ms;
};

static void stop(struct tool_output *o)
{
        struct bash_call *b = (struct bash_call *)o;

        if (b->run)
                sandbox_abandon(b->run);
        timer_free(b->silence);
}

static int64_t seconds_so_far(const struct bash_call *b)
{
        return (loop_now_ms(b->output.call->scope->loop) - b->started_ms) / 1000;
}

/* People are told that it still runs. */
static void on_silence(void *arg)
{
        struct bash_call *b = arg;
        struct tool_call *c = b->output.call;
        char *text = mem_printf("[no output for a while, still running after %lld s]\n",
                                (long long)seconds_so_far(b));

        if (c->on_output)
                c->on_output(c, text, strlen(text));
        free(text);
}

static void await_silence(struct bash_call *b)
{
        int64_t ms = b->output.call->scope->silence_ms;

        timer_repeat(b->silence, ms > 0 ? ms : SILENCE_MS);
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct bash_call *b = arg;

        (void)fd; /* both, as they come */
        await_silence(b);
        tool_output_add(&b->output, bytes, n);
}

/* What the model is told besides the output; NULL: it went well. Yours to free. */
static char *ending(const struct bash_call *b, const struct sandbox_result *r)
{
        const char *why = r->why ? r->why : error_kind_name(r->kind);

        if (r->kind == ERR_TIMEOUT)
                return mem_printf("The command was ended after %lld s: %s",
                                  (long long)seconds_so_far(b), why);
        if (r->kind != ERR_NONE)
                return mem_printf("The command was ended: %s", why);
        if (r->signal)
                return mem_printf("The command was ended by signal %d (%s)%s%s", r->signal,
                                  strsignal(r->signal), r->why ? ": " : "", r->why ? r->why : "");
        if (r->exit_code != 0)
                return mem_printf("The command exited with code %d%s%s", r->exit_code,
                                  r->why ? ": " : "", r->why ? r->why : "");
        return NULL;
}

static void on_ended(void *arg, const struct sandbox_result *r)
{
        struct bash_call *b = arg;
        char *text = ending(b, r);
        json_t *details =
                json_pack("{s:i, s:I}", "exitCode", r->exit_code, "durationMs",
                          (json_int_t)(loop_now_ms(b->output.call->scope->loop) - b->started_ms));

        if (r->signal)
                json_object_set_new(details, "signal", json_integer(r->signal));
        b->run = NULL;
        timer_free(b->silence);
        b->silence = NULL;
        tool_output_end(&b->output, text != NULL, text, details);
}

static void run(struct tool_call *c, const struct sandbox_command *command)
{
        static const struct sandbox_handlers handlers = { on_output, on_ended };
        struct bash_call *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        tool_output_init(&b->output, c);
        b->output.stop = stop;
        b->started_ms = loop_now_ms(c->scope->loop);
        b->silence = timer_new(c->scope->loop, on_silence, b);
        b->run =
                sandbox_start(c->scope->sandboxes, &c->scope->sandbox, command, &handlers, b, &err);
        if (b->run) {
                await_silence(b);
                return;
        }
        tool_output_cancel(c);
        tool_finish_text(c, true, "The command did not run: %s", err.text);
}

static void run_in_background(struct tool_call *c, const struct sandbox_command *command)
{
        struct error err = { 0 };
        int id = 0;

        if (sandbox_job_start(c->scope->sandboxes, &c->scope->sandbox, command, &id, &err) < 0)
                tool_finish_text(c, true, "The command did not run: %s", err.text);
        else
                tool_finish_text(
                        c, false,
                        "Started as job %d. It goes on after this turn; use the tool job to "
                        "read its output, write to it or end it.",
                        id);
}

static void bash_start(struct tool_call *c)
{
        struct sandbox_command command = {
                .command = json_str(c->arguments, "command", ""),
                .timeout_ms = json_int(c->arguments, "timeout", 0) * 1000,
        };

        if (json_flag(c->arguments, "background", false))
                run_in_background(c, &command);
        else
                run(c, &command);
}

static bool has_sandbox(const struct tool_scope *scope)
{
        return scope->sandboxes != NULL;
}

const struct tool bash_tool = {
        .name = "bash",
        .description =
                "Run a command with bash in the channel's folder. Returns stdout and stderr, at "
                "most the last 2000 lines or 50 KB; all of a longer output is kept in a file. "
                "There is no terminal and nothing on stdin. With background a long-running "
                "command, such as a server, becomes a job.",
        .parameters =
                "{\"properties\":{"
                "\"command\":{\"type\":\"string\",\"minLength\":1,\"description\":\"For bash -c\"},"
                "\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":86400,\"description\":"
                "\"Seconds after which it is ended\"},"
                "\"background\":{\"type\":\"boolean\",\"description\":\"Start it as a job and do "
                "not wait for it\"}},"
                "\"required\":[\"command\"],\"additionalProperties\":false}",
        .flags = TOOL_UNTRUSTED,
        .offered = has_sandbox,
        .start = bash_start,
        .cancel = tool_output_cancel,
};
