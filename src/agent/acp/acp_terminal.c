/*
 * acp_terminal: terminal/..., commands that run beside the agent, in the same sandbox.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "agent/sandbox/sandbox.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TERMINALS_MAX 16
#define WAITERS_MAX   4
#define WORDS_MAX     200
#define OUTPUT_MAX    (1 << 20) /* bytes that are kept, the last ones */
#define KILL_MS       2000

struct acp_terminal {
        struct acp *acp;
        char id[32];
        struct sandbox_run *run; /* NULL: it has ended */
        struct buf output;
        size_t limit;
        bool truncated;
        int exit_code, signal;
        json_t *waiters[WAITERS_MAX]; /* ids of wait_for_exit */
        size_t waiter_count;
        LIST_ENTRY(acp_terminal) next;
};

static void terminal_free(struct acp_terminal *t)
{
        LIST_REMOVE(t, next);
        t->acp->terminal_count--;
        sandbox_abandon(t->run);
        for (size_t i = 0; i < t->waiter_count; i++)
                json_decref(t->waiters[i]);
        buf_release(&t->output);
        free(t);
}

void acp_terminals_release(struct acp *a)
{
        struct acp_terminal *t;

        while ((t = LIST_FIRST(&a->terminals)))
                terminal_free(t);
}

static json_t *exit_status(const struct acp_terminal *t)
{
        char name[16];

        if (!t->signal)
                return json_pack("{s:i, s:n}", "exitCode", t->exit_code, "signal");
        snprintf(name, sizeof(name), "%d", t->signal);
        return json_pack("{s:n, s:s}", "exitCode", "signal", name);
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct acp_terminal *t = arg;
        size_t cut;

        (void)fd;
        buf_add(&t->output, bytes, n);
        if (t->output.len <= t->limit)
                return;
        cut = t->output.len - t->limit;
        while (cut < t->output.len && (t->output.data[cut] & 0xc0) == 0x80)
                cut++; /* not within a character */
        buf_consume(&t->output, cut);
        t->truncated = true;
}

static void on_exit_seen(void *arg, const struct sandbox_result *r)
{
        struct acp_terminal *t = arg;

        t->run = NULL;
        t->exit_code = r->exit_code >= 0 ? r->exit_code : 1;
        t->signal = r->signal;
        if (r->why)
                on_output(t, 2, r->why, strlen(r->why));
        for (size_t i = 0; i < t->waiter_count; i++) {
                acp_answer(t->acp, t->waiters[i], exit_status(t));
                json_decref(t->waiters[i]);
        }
        t->waiter_count = 0;
}

/* ---- starting ---- */

/* argv of the command, with its variables set by env(1). Borrowed but for *owned. */
static size_t command_words(const json_t *params, const char *argv[WORDS_MAX + 1],
                            char *owned[WORDS_MAX], size_t *owned_count)
{
        const char *command = json_str(params, "command", NULL);
        const json_t *args = json_object_get(params, "args"), *item;
        size_t n = 0, i;

        *owned_count = 0;
        if (json_array_size(json_object_get(params, "env")) > 0)
                argv[n++] = "env";
        json_array_foreach(json_object_get(params, "env"), i, item) {
                const char *name = json_str(item, "name", "");

                if (n >= WORDS_MAX / 2 || !*name || strchr(name, '='))
                        continue;
                owned[*owned_count] = mem_printf("%s=%s", name, json_str(item, "value", ""));
                argv[n++] = owned[(*owned_count)++];
        }
        if (json_array_size(args) == 0 && strchr(command, ' ')) { /* meant for a shell */
                argv[n++] = "sh";
                argv[n++] = "-c";
        }
        argv[n++] = command;
        json_array_foreach(args, i, item)
                if (n < WORDS_MAX && json_is_string(item))
                        argv[n++] = json_string_value(item);
        argv[n] = NULL;
        return n;
}

static int start(struct acp_terminal *t, const json_t *params, struct error *err)
{
        static const struct sandbox_handlers handlers = { on_output, on_exit_seen };
        struct child *c = t->acp->child;
        const struct acp_conf *conf = child_conf(c);
        const char *cwd = json_str(params, "cwd", child_folder(c)), *argv[WORDS_MAX + 1];
        struct sandbox_key key = child_sandbox_key(c);
        char *owned[WORDS_MAX];
        size_t owned_count;

        command_words(params, argv, owned, &owned_count);
        t->run = sandbox_start(
                child_sandboxes(c), &key,
                &(struct sandbox_command){ .argv = argv,
                                           .cwd = cwd,
                                           .timeout_ms = conf->child.turn_minutes * 60000,
                                           .any_output = true },
                &handlers, t, err);
        for (size_t i = 0; i < owned_count; i++)
                free(owned[i]);
        return t->run ? 0 : -1;
}

void acp_terminal_create(struct acp *a, const json_t *id, const json_t *params)
{
        const struct acp_conf *conf = child_conf(a->child);
        int64_t limit = json_int(params, "outputByteLimit", OUTPUT_MAX);
        struct acp_terminal *t;
        struct error err = { 0 };

        if (!conf->terminals || !json_str(params, "command", NULL)) {
                acp_answer_error(a, id, conf->terminals ? ACP_INVALID_PARAMS : ACP_METHOD_NOT_FOUND,
                                 conf->terminals ? "command must be a text"
                                                 : "commands are not run for agents here: use your "
                                                   "own tools");
                return;
        }
        if (a->terminal_count >= TERMINALS_MAX) {
                acp_answer_error(a, id, ACP_INTERNAL_ERROR,
                                 "there are 16 terminals: release one first");
                return;
        }
        t = mem_zalloc(sizeof(*t));
        t->acp = a;
        t->limit = (size_t)(limit > 0 && limit < OUTPUT_MAX ? limit : OUTPUT_MAX);
        buf_init(&t->output, 0);
        snprintf(t->id, sizeof(t->id), "term-%u", ++a->last_terminal);
        LIST_INSERT_HEAD(&a->terminals, t, next);
        a->terminal_count++;
        if (start(t, params, &err) == 0) {
                acp_answer(a, id, json_pack("{s:s}", "terminalId", t->id));
                return;
        }
        terminal_free(t);
        acp_answer_error(a, id, ACP_INTERNAL_ERROR, err.text);
}

/* ---- the rest ---- */

/* NULL: there is none, and the request is answered. */
static struct acp_terminal *find(struct acp *a, const json_t *id, const json_t *params)
{
        const char *name = json_str(params, "terminalId", "");
        struct acp_terminal *t;

        LIST_FOREACH(t, &a->terminals, next)
                if (strcmp(t->id, name) == 0)
                        return t;
        acp_answer_error(a, id, ACP_NOT_FOUND, "there is no such terminal");
        return NULL;
}

void acp_terminal_output(struct acp *a, const json_t *id, const json_t *params)
{
        struct acp_terminal *t = find(a, id, params);
        json_t *result;
        char *text;

        if (!t)
                return;
        text = utf8_clean(t->output.data, t->output.len);
        result = json_pack("{s:s, s:b}", "output", text, "truncated", t->truncated);
        if (!t->run)
                json_object_set_new(result, "exitStatus", exit_status(t));
        acp_answer(a, id, result);
        free(text);
}

void acp_terminal_wait(struct acp *a, const json_t *id, const json_t *params)
{
        struct acp_terminal *t = find(a, id, params);

        if (!t)
                return;
        if (!t->run)
                acp_answer(a, id, exit_status(t));
        else if (t->waiter_count < WAITERS_MAX)
                t->waiters[t->waiter_count++] = json_incref((json_t *)id);
        else
                acp_answer_error(a, id, ACP_INTERNAL_ERROR, "it is being waited for already");
}

void acp_terminal_kill(struct acp *a, const json_t *id, const json_t *params)
{
        struct acp_terminal *t = find(a, id, params);

        if (!t)
                return;
        if (t->run)
                sandbox_stop(t->run, KILL_MS);
        acp_answer(a, id, json_object());
}

void acp_terminal_release(struct acp *a, const json_t *id, const json_t *params)
{
        struct acp_terminal *t = find(a, id, params);

        if (!t)
                return;
        terminal_free(t);
        acp_answer(a, id, json_object());
}
