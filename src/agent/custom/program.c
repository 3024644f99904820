#include "agent/custom/program.h"

#include <stdlib.h>
#include <string.h>

#include "agent/custom/child_env.h"
#include "agent/custom/custom_result.h"
#include "agent/custom/custom_source.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/process.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define ERRORS_MAX ((size_t)8 << 10) /* of stderr, for an error */
#define LINE_BYTES 200               /* of progress */
/* Kept beyond both until secrets are hidden: a cut could leave half of one. */
#define MORE_BYTES 4096

struct program {
        struct custom_source base;
        char *path;
        struct manifest manifest;
};

struct program_run {
        struct custom_call *call;
        struct process *process;
        struct buf out, errors, line;
};

static void run_free(struct program_run *r)
{
        buf_release(&r->out);
        buf_release(&r->errors);
        buf_release(&r->line);
        free(r);
}

static void show_line(struct program_run *r)
{
        char *text = utf8_clean(r->line.data, r->line.len);

        log_redact(text);
        text[utf8_prefix(text, strlen(text), UTF8_BYTES, LINE_BYTES)] = '\0';
        if (*text && r->call->on.on_progress)
                r->call->on.on_progress(r->call->arg, text);
        free(text);
        buf_clear(&r->line);
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct program_run *r = arg;

        if (fd == 1) {
                buf_add(&r->out, bytes, n);
                return;
        }
        buf_add(&r->errors, bytes, n);
        if (r->errors.len > ERRORS_MAX + MORE_BYTES)
                buf_consume(&r->errors, r->errors.len - ERRORS_MAX - MORE_BYTES);
        for (size_t i = 0; i < n; i++) {
                if (bytes[i] == '\n')
                        show_line(r);
                else if (r->line.len < LINE_BYTES + MORE_BYTES)
                        buf_addch(&r->line, bytes[i]);
        }
}

/* What went wrong, or NULL; yours to free. */
static char *describe_end(const struct program_run *r, const struct process_result *end)
{
        if (end->kind == ERR_TIMEOUT)
                return mem_printf("The tool was ended after %lld seconds.",
                                  (long long)(r->call->timeout_ms / 1000));
        if (end->kind == ERR_LIMIT)
                return mem_printf("The tool was ended because it printed more than %zu MiB.",
                                  OUTPUT_MAX >> 20);
        if (end->signal)
                return mem_printf("The tool was ended by signal %d.", end->signal);
        if (end->exit_code != 0)
                return mem_printf("The tool ended with exit code %d.", end->exit_code);
        return NULL;
}

static void read_output(struct program_run *r, char *fault, struct tool_result *result)
{
        json_t *value = json_read_lenient(r->out.data, r->out.len, NULL);
        struct buf text;
        size_t cut;

        if (custom_result_is(value)) {
                custom_result_read(value, r->call->files, result);
                result->is_error = result->is_error || fault;
                json_decref(value);
                return;
        }
        json_decref(value);
        buf_init(&text, 0);
        buf_add(&text, r->out.data, r->out.len);
        if (fault) {
                buf_addf(&text, "%s", text.len && text.data[text.len - 1] != '\n' ? "\n" : "");
                log_redact(r->errors.data);
                cut = r->errors.len > ERRORS_MAX ? r->errors.len - ERRORS_MAX : 0;
                buf_add(&text, r->errors.data + cut, r->errors.len - cut);
                buf_addf(&text, "%s%s", text.len && text.data[text.len - 1] != '\n' ? "\n" : "",
                         fault);
        }
        custom_result_text(text.data, text.len, fault != NULL, r->call->files, result);
        buf_release(&text);
}

static void on_exit_seen(void *arg, const struct process_result *end)
{
        struct program_run *r = arg;
        struct custom_call *c = r->call;
        struct tool_result result = { 0 };
        char *fault = describe_end(r, end);

        read_output(r, fault, &result);
        free(fault);
        run_free(r);
        custom_call_done(c, &result);
}

static void call(struct custom_call *c)
{
        struct program *p = (struct program *)c->source;
        struct program_run *r = mem_zalloc(sizeof(*r));
        const struct process_handlers h = { on_output, on_exit_seen };
        char **env = child_env_new(&p->manifest.env), *text = json_text(c->args);
        struct process_options o = {
                .argv = (const char *const *)p->manifest.command.items,
                .env = (const char *const *)env,
                .cwd = p->path,
                .max_output = OUTPUT_MAX,
                .timeout_ms = c->timeout_ms,
                .keep_stdin = true,
        };
        struct error err;

        buf_init(&r->out, OUTPUT_MAX + 1);
        buf_init(&r->errors, 0);
        buf_init(&r->line, 0);
        r->call = c;
        r->process = process_start(custom_options(c->all)->loop, &o, &h, r, &err);
        if (r->process && (process_write(r->process, text, strlen(text), &err) < 0 ||
                           process_write(r->process, "\n", 1, &err) < 0)) {
                process_abandon(r->process);
                r->process = NULL;
        }
        child_env_free(env);
        free(text);
        if (!r->process) {
                run_free(r);
                custom_call_refuse(c, "The tool cannot be run: %s", err.text);
                return;
        }
        process_close_stdin(r->process);
        c->data = r;
}

static void cancel(struct custom_call *c)
{
        struct program_run *r = c->data;

        process_abandon(r->process);
        run_free(r);
}

static void program_free(struct custom_source *s)
{
        struct program *p = (struct program *)s;

        manifest_release(&p->manifest);
        free(p->path);
        custom_source_release(s);
        free(p);
}

static const struct custom_source_ops ops = {
        .kind = "program",
        .call = call,
        .cancel = cancel,
        .free = program_free,
};

struct custom_source *program_new(struct custom_tools *all, const char *name, const char *path,
                                  struct manifest *m)
{
        struct program *p = (struct program *)custom_source_new(all, sizeof(*p), &ops, name);
        struct setting_list *argv = &m->command;
        struct custom_tool *t;

        /* process_start wants a NULL at the end */
        argv->items = mem_realloc(argv->items, (argv->count + 1) * sizeof(*argv->items));
        argv->items[argv->count] = NULL;
        p->manifest = *m;
        *m = (struct manifest){ 0 };
        p->path = mem_strdup(path);
        p->base.known = true;
        t = custom_source_tool(&p->base);
        t->key = mem_strdup(p->manifest.name ? p->manifest.name : name);
        t->name = mem_strdup(t->key);
        t->description = mem_strdup(p->manifest.description);
        t->schema = p->manifest.parameters ? json_incref(p->manifest.parameters)
                                           : json_pack("{s:s}", "type", "object");
        t->flags = manifest_flags(&p->manifest);
        t->timeout_ms = p->manifest.timeout_seconds * 1000;
        return &p->base;
}
