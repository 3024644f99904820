#include "agent/sandbox/sandbox.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/log.h"
#include "base/mem.h"

#define PROBE_CONVERSATION (-1)

#define AT(field)          offsetof(struct sandbox_conf, field)

const struct setting sandbox_settings[] = {
        { "kind", SETTING_STRING, "\"bwrap\"", 4, 200, .at = AT(kind),
          .help = "Where commands run: `bwrap` (bubblewrap), `docker:NAME` (a container that has "
                  "the workspace at `/workspace`), `host` (no sandbox) or `none` (no commands)." },
        { "hosts", SETTING_STRINGS, "[]", 0, 0, .at = AT(hosts),
          .help = "Servers that commands may reach over HTTP and HTTPS, such as `pypi.org`, "
                  "`*.example.org` or `example.org:8080`; no other network exists inside." },
        { "debuggers", SETTING_BOOL, "false", .at = AT(debuggers),
          .help = "Permit `ptrace` inside, which debuggers and `strace` need." },
        { "memoryMb", SETTING_INT, "1024", 64, 1048576, .at = AT(memory_mb),
          .help = "The most memory of a process, in MiB." },
        { "totalMb", SETTING_INT, "2048", 64, 16777216, .at = AT(total_mb),
          .help = "The most memory of a sandbox, in MiB; needs delegated control groups (systemd: "
                  "`Delegate=yes`)." },
        { "processes", SETTING_INT, "256", 8, 65536, .at = AT(processes),
          .help = "The most processes of a sandbox." },
        { "fileMb", SETTING_INT, "512", 1, 1048576, .at = AT(file_mb),
          .help = "The largest file that a command may write, in MiB." },
        { "diskMb", SETTING_INT, "2048", 1, 16777216, .at = AT(disk_mb),
          .help = "The largest size of a channel's folder, in MiB; above it, running commands are "
                  "killed and later ones can only delete." },
        { "cpuSeconds", SETTING_INT, "300", 1, 86400, .at = AT(cpu_seconds),
          .help = "The most CPU time of a process, in seconds." },
        { "timeoutSeconds", SETTING_INT, "120", 1, 86400, .at = AT(timeout_seconds),
          .help = "The default timeout of a command, in seconds; the agent may ask for another." },
        { "outputKb", SETTING_INT, "4096", 16, 65536, .at = AT(output_kb),
          .help = "The most output of a command, in KiB; background jobs keep the end of theirs." },
        { "idleSeconds", SETTING_INT, "300", 1, 86400, .at = AT(idle_seconds),
          .help = "How long a sandbox without running commands is kept." },
        { "jobs", SETTING_INT, "8", 0, 32, .at = AT(jobs),
          .help = "The most background jobs of a conversation at a time." },
        { "jobSeconds", SETTING_INT, "3600", 1, 604800, .at = AT(job_seconds),
          .help = "The longest time of a background job, in seconds." },
        SETTING_END,
};

int sandbox_conf_check(const struct sandbox_conf *conf, const char **key, struct error *err)
{
        static const char *const kinds[] = { "bwrap", "host", "none" };
        bool known =
                strncmp(conf->kind, "docker:", 7) == 0 && isalnum((unsigned char)conf->kind[7]);

        for (size_t i = 0; i < COUNT(kinds); i++)
                known = known || strcmp(conf->kind, kinds[i]) == 0;
        *key = "kind";
        if (!known)
                return error_set(
                        err, ERR_INVALID,
                        "'%s' is no sandbox: write \"bwrap\", \"docker:NAME\", \"host\" or "
                        "\"none\"",
                        conf->kind);
        *key = "hosts";
        for (size_t i = 0; i < conf->hosts.count; i++)
                if (egress_check_entry(conf->hosts.items[i], err) < 0)
                        return -1;
        if (conf->hosts.count > 0 && strcmp(conf->kind, "bwrap") != 0)
                return error_set(err, ERR_INVALID,
                                 "works with \"kind\": \"bwrap\" only: '%s' has the network of its "
                                 "place",
                                 conf->kind);
        return 0;
}

struct sandboxes *sandboxes_new(struct loop *l, const struct sandbox_conf *conf, const char *dir)
{
        struct sandboxes *all = mem_zalloc(sizeof(*all));

        all->loop = l;
        all->conf = conf;
        all->dir = mem_strdup(dir);
        LIST_INIT(&all->boxes);
        LIST_INIT(&all->jobs);
        return all;
}

void sandboxes_on_request(struct sandboxes *all,
                          void (*fn)(void *arg, const struct sandbox_request *request), void *arg)
{
        all->on_request = fn;
        all->request_arg = arg;
}

static void end_boxes(struct sandboxes *all, int64_t conversation)
{
        struct sandbox_box *b, *after;

        jobs_forget(all, conversation);
        for (b = LIST_FIRST(&all->boxes); b; b = after) {
                after = LIST_NEXT(b, next);
                if (!conversation || b->conversation == conversation)
                        box_end(b, ERR_CANCELLED, "the sandbox was ended");
        }
}

void sandboxes_free(struct sandboxes *all)
{
        struct sandbox_run *r;
        struct sandbox_box *b;

        if (!all)
                return;
        LIST_FOREACH(b, &all->boxes, next)
                LIST_FOREACH(r, &b->runs, next)
                        memset(&r->on, 0, sizeof(r->on));
        end_boxes(all, 0);
        free(all->dir);
        free(all);
}

void sandbox_end(struct sandboxes *all, int64_t conversation)
{
        end_boxes(all, conversation);
}

struct sandbox_run *sandbox_start(struct sandboxes *all, const struct sandbox_key *key,
                                  const struct sandbox_command *command,
                                  const struct sandbox_handlers *h, void *arg, struct error *err)
{
        return run_start(all, key, command, RUN_COMMAND, h, arg, err);
}

struct sandbox_run *sandbox_start_program(struct sandboxes *all, const struct sandbox_key *key,
                                          const struct sandbox_command *command,
                                          const struct sandbox_handlers *h, void *arg,
                                          struct error *err)
{
        return run_start(all, key, command, RUN_PROGRAM, h, arg, err);
}

int sandbox_write(struct sandbox_run *r, const char *bytes, size_t n, struct error *err)
{
        return run_write(r, bytes, n, false, err);
}

void sandbox_close_input(struct sandbox_run *r)
{
        run_write(r, "", 0, true, NULL);
}

void sandbox_stop(struct sandbox_run *r, int64_t grace_ms)
{
        run_stop(r, ERR_CANCELLED, grace_ms, NULL);
}

int sandbox_pid(const struct sandbox_run *r)
{
        return process_pid(r->box->process);
}

void sandbox_abandon(struct sandbox_run *r)
{
        if (!r)
                return;
        memset(&r->on, 0, sizeof(r->on));
        run_stop(r, ERR_CANCELLED, 0, NULL);
}

/* ---- the probe ---- */

static const char *const nothing[] = { "true", NULL };
static const struct sandbox_command probe_command = { .argv = nothing, .timeout_ms = 20000 };

/* 0: it ran. */
static int judge_probe(const struct sandbox_result *r, struct error *err)
{
        if (r->kind == ERR_NONE && r->exit_code == 0)
                return 0;
        return error_set(err, r->kind ? r->kind : ERR_REFUSED, "%s",
                         r->why ? r->why : "the sandbox does not run commands");
}

static void note_problem(struct sandboxes *all, const char *why)
{
        snprintf(all->problem, sizeof(all->problem), "%s", why);
        log_warn("sandbox does not work; commands are refused", LOG_S("why", why));
}

static void on_probed(void *arg, const struct sandbox_result *r)
{
        struct sandboxes *all = arg;
        struct error err = { 0 };

        all->problem[0] = '\0';
        if (judge_probe(r, &err) < 0)
                note_problem(all, err.text);
        sandbox_end(all, PROBE_CONVERSATION);
}

void sandboxes_probe(struct sandboxes *all)
{
        static const struct sandbox_handlers handlers = { .on_exit = on_probed };
        struct error err = { 0 };

        if (!sandbox_start(all, &(struct sandbox_key){ .conversation = PROBE_CONVERSATION },
                           &probe_command, &handlers, all, &err))
                note_problem(all, err.text);
}

const char *sandboxes_problem(const struct sandboxes *all)
{
        return all->problem[0] ? all->problem : NULL;
}

struct probe {
        bool done;
        int rc;
        struct error *err;
};

static void on_probe_exit(void *arg, const struct sandbox_result *r)
{
        struct probe *p = arg;

        p->done = true;
        p->rc = judge_probe(r, p->err);
}

int sandbox_probe(const struct sandbox_conf *conf, const char *dir, struct error *err)
{
        static const struct sandbox_handlers handlers = { .on_exit = on_probe_exit };
        struct loop *l = loop_new();
        struct sandboxes *all = sandboxes_new(l, conf, dir);
        struct probe p = { .rc = -1, .err = err };
        struct sandbox_run *r =
                sandbox_start(all, &(struct sandbox_key){ 0 }, &probe_command, &handlers, &p, err);

        while (r && !p.done)
                loop_step(l, true);
        sandboxes_free(all);
        loop_free(l);
        return p.rc;
}
