/*
 * MCP over stdin and stdout of a child: a JSON object per line. Lines end at byte 0x0A only: U+2028
 * appears inside. A program that is no longer needed gets its stdin closed, 2 s later TERM, then
 * KILL; meanwhile its link is kept in custom_ending.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/custom/child_env.h"
#include "agent/custom/mcp_private.h"
#include "base/mem.h"
#include "net/lines.h"
#include "net/process.h"
#include "net/stderr_tail.h"

#define GRACE_MS 2000
#define WHY_SIZE 400

struct mcp_stdio_link {
        struct mcp_server *server; /* NULL: ending */
        struct process *process;
        struct lines lines;
        struct stderr_tail errors;
        struct timer *grace;
        LIST_ENTRY(mcp_stdio_link) next;
};

static void link_free(struct mcp_stdio_link *k)
{
        timer_free(k->grace);
        lines_release(&k->lines);
        stderr_tail_release(&k->errors);
        free(k);
}

static bool on_line(void *arg, const char *line, size_t n)
{
        struct mcp_stdio_link *k = arg;

        if (n > 0)
                mcp_received(k->server, line, n);
        return k->server != NULL;
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct mcp_stdio_link *k = arg;

        if (fd == 2)
                stderr_tail_add(&k->errors, bytes, n);
        else if (k->server && lines_add(&k->lines, bytes, n, on_line, k) < 0)
                mcp_lost(k->server, "it sent a line over 16 MiB");
}

static void on_exit_seen(void *arg, const struct process_result *end)
{
        struct mcp_stdio_link *k = arg;
        struct mcp_server *s = k->server;
        char why[WHY_SIZE], *words = stderr_tail_line(&k->errors);

        k->process = NULL;
        if (!s) {
                LIST_REMOVE(k, next);
                link_free(k);
                free(words);
                return;
        }
        if (end->signal)
                snprintf(why, sizeof(why), "it was ended by signal %d%s%s", end->signal,
                         *words ? ": " : "", words);
        else
                snprintf(why, sizeof(why), "it ended with exit code %d%s%s", end->exit_code,
                         *words ? ": " : "", words);
        free(words);
        mcp_lost(s, why);
}

static int wire_open(struct mcp_server *s, struct error *err)
{
        static const struct process_handlers h = { on_output, on_exit_seen };
        const struct mcp_conf *conf = s->conf;
        const char **argv = mem_array(conf->args.count + 2, sizeof(*argv));
        char **env = child_env_new(&conf->env);
        struct mcp_stdio_link *k = mem_zalloc(sizeof(*k));
        struct process_options o = {
                .argv = argv,
                .env = (const char *const *)env,
                .cwd = conf->cwd ? conf->cwd : custom_options(s->base.all)->dir,
                .max_output = SIZE_MAX,
                .max_waiting = 2 * MCP_MESSAGE_MAX,
                .grace_ms = GRACE_MS,
                .keep_stdin = true,
        };

        argv[0] = conf->command;
        for (size_t i = 0; i < conf->args.count; i++)
                argv[i + 1] = conf->args.items[i];
        lines_init(&k->lines, MCP_MESSAGE_MAX);
        stderr_tail_init(&k->errors);
        k->server = s;
        k->process = process_start(custom_options(s->base.all)->loop, &o, &h, k, err);
        child_env_free(env);
        free(argv);
        if (!k->process) {
                link_free(k);
                return -1;
        }
        s->link = k;
        return 0;
}

static int wire_send(struct mcp_server *s, const struct mcp_message *m, struct error *err)
{
        struct mcp_stdio_link *k = s->link;

        if (m->n >= MCP_MESSAGE_MAX)
                return error_set(err, ERR_LIMIT, "the message has more than 16 MiB");
        if (process_write(k->process, m->text, m->n, err) < 0)
                return -1;
        return process_write(k->process, "\n", 1, err);
}

static void on_grace(void *arg)
{
        struct mcp_stdio_link *k = arg;

        process_stop(k->process);
}

static void wire_close(struct mcp_server *s, bool lost)
{
        struct mcp_stdio_link *k = s->link;

        (void)lost;
        s->link = NULL;
        k->server = NULL;
        if (!k->process) { /* called from on_exit_seen */
                link_free(k);
                return;
        }
        LIST_INSERT_HEAD(custom_ending(s->base.all), k, next);
        k->grace = timer_new(custom_options(s->base.all)->loop, on_grace, k);
        timer_start(k->grace, GRACE_MS);
        process_close_stdin(k->process);
}

void mcp_stdio_kill(struct mcp_stdio_links *all)
{
        struct mcp_stdio_link *k;

        while ((k = LIST_FIRST(all))) {
                LIST_REMOVE(k, next);
                process_abandon(k->process);
                link_free(k);
        }
}

const struct mcp_wire mcp_stdio = {
        .name = "stdio",
        .open = wire_open,
        .send = wire_send,
        .close = wire_close,
};
