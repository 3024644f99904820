#include "agent/sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"

#define AT(field) offsetof(struct sandbox_conf, field)

const struct setting sandbox_settings[] = {
        { "kind", SETTING_STRING, "\"bwrap\"", 4, 200, .at = AT(kind),
          .help = "Where commands run: `bwrap` (bubblewrap), `docker:NAME` (a container that has "
                  "the workspace at `/workspace`), `host` (no sandbox) or `none` (no commands)." },
        { "hosts", SETTING_STRINGS, "[]", 0, 0, .at = AT(hosts),
          .help = "Servers that commands may reach over HTTP and HTTPS, such as `pypi.org`, "
                  "`*.example.org` or `example.org:8080`; no other network exists inside." },
        { "memoryMb", SETTING_INT, "1024", 64, 1048576, .at = AT(memory_mb),
          .help = "The most memory of a process, in MiB." },
        { "totalMb", SETTING_INT, "2048", 64, 16777216, .at = AT(total_mb),
          .help = "The most memory of a sandbox, in MiB, where the daemon was given control groups "
                  "(systemd: `Delegate=yes`)." },
        { "processes", SETTING_INT, "256", 8, 65536, .at = AT(processes),
          .help = "The most processes of a sandbox." },
        { "fileMb", SETTING_INT, "512", 1, 1048576, .at = AT(file_mb),
          .help = "The largest file that a command may write, in MiB." },
        { "diskMb", SETTING_INT, "2048", 1, 16777216, .at = AT(disk_mb),
          .help = "The most that a channel's folder may hold, in MiB; commands are ended above." },
        { "cpuSeconds", SETTING_INT, "300", 1, 86400, .at = AT(cpu_seconds),
          .help = "The most CPU time of a process, in seconds." },
        { "timeoutSeconds", SETTING_INT, "120", 1, 86400, .at = AT(timeout_seconds),
          .help = "The longest time of a command, in seconds, unless the agent asks for another." },
        { "outputKb", SETTING_INT, "4096", 16, 65536, .at = AT(output_kb),
          .help = "The most that a command may print, in KiB; of background jobs, the end of the "
                  "output that is kept." },
        { "idleSeconds", SETTING_INT, "300", 1, 86400, .at = AT(idle_seconds),
          .help = "How long a sandbox without running commands is kept." },
        { "jobs", SETTING_INT, "8", 0, 32, .at = AT(jobs),
          .help = "The most background jobs of a conversation at a time." },
        { "jobSeconds", SETTING_INT, "3600", 1, 604800, .at = AT(job_seconds),
          .help = "The longest time of a background job, in seconds." },
        SETTING_END,
};

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
        struct box *b, *after;

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
        struct box *b;

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
        return run_start(all, key, command, false, h, arg, err);
}

void sandbox_abandon(struct sandbox_run *r)
{
        if (!r)
                return;
        memset(&r->on, 0, sizeof(r->on));
        run_stop(r, ERR_CANCELLED, 0, NULL);
}

/* ---- the probe ---- */

struct probe {
        bool done;
        struct sandbox_result result;
        char why[400];
};

static void on_probe_exit(void *arg, const struct sandbox_result *r)
{
        struct probe *p = arg;

        p->done = true;
        p->result = *r;
        if (r->why)
                strncat(p->why, r->why, sizeof(p->why) - 1);
}

int sandbox_probe(const struct sandbox_conf *conf, const char *dir, struct error *err)
{
        static const struct sandbox_handlers handlers = { .on_exit = on_probe_exit };
        const char *argv[] = { "true", NULL };
        struct loop *l = loop_new();
        struct sandboxes *all = sandboxes_new(l, conf, dir);
        struct probe p = { 0 };
        struct sandbox_run *r = sandbox_start(
                all, &(struct sandbox_key){ 0 },
                &(struct sandbox_command){ .argv = argv, .timeout_ms = 20000 }, &handlers, &p, err);
        int rc = -1;

        while (r && !p.done)
                loop_step(l, true);
        sandboxes_free(all);
        loop_free(l);
        if (r)
                rc = p.result.kind == ERR_NONE && p.result.exit_code == 0
                             ? 0
                             : error_set(err, p.result.kind ? p.result.kind : ERR_REFUSED, "%s",
                                         p.why[0] ? p.why : "the sandbox does not run commands");
        return rc;
}
