/* Takes over the workspace of another agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/workspace/mom_import.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "road/channel_folder.h"
#include "rows/schema.h"

static void print_note(void *arg, const char *line)
{
        (void)arg;
        print_line(stderr, line, 0);
        fputc('\n', stderr);
}

static const char *find_agent(const struct config *c, const char *name, struct error *err)
{
        for (size_t i = 0; i < c->agent_count; i++)
                if (name ? strcmp(c->agents[i]->name, name) == 0
                         : strcmp(c->agents[i]->ops->type, "builtin") == 0)
                        return c->agents[i]->name;
        error_set(err, ERR_MISSING,
                  name ? "there is no agent '%s' in the configuration"
                       : "no agent of type builtin is configured; name one with --agent%s",
                  name ? name : "");
        return NULL;
}

/* mom's workspace is one of Slack. Without a configured adapter: that of the environment. */
static const char *find_adapter(const struct config *c, struct error *err)
{
        const char *found = NULL;

        for (size_t i = 0; i < c->adapter_count; i++) {
                if (strcmp(c->adapters[i]->ops->name, "slack") != 0)
                        continue;
                if (found) {
                        error_set(err, ERR_INVALID,
                                  "'%s' and '%s' are both adapters of Slack; choose one with "
                                  "--adapter",
                                  found, c->adapters[i]->name);
                        return NULL;
                }
                found = c->adapters[i]->name;
        }
        return found ? found : "slack";
}

/* The daemon makes both when it first starts; so does this. */
static struct store *open_store(const char *dir, struct error *err)
{
        char *state = mem_printf("%s/state", dir), *url = config_store_url(dir);
        struct store_options options = { .url = url, .dir = state, .migrations = schema_steps };
        struct store *s = NULL;

        if (file_make_dirs(state, err) == 0)
                s = store_open(NULL, &options, err);
        free(state);
        free(url);
        return s;
}

static void print_report(const struct args *a, const struct mom_report *r, bool dry_run)
{
        if (a->json) {
                json_t *all =
                        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "channels",
                                  (json_int_t)r->channels, "files", (json_int_t)r->files, "same",
                                  (json_int_t)r->same, "differ", (json_int_t)r->differ, "lines",
                                  (json_int_t)r->lines, "skipped", (json_int_t)r->skipped,
                                  "sessions", (json_int_t)r->sessions, "messages",
                                  (json_int_t)r->messages, "dryRun", (int)dry_run);

                print_json(all);
                json_decref(all);
                return;
        }
        printf("%s%lld %s, %lld %s copied, %lld already there, %lld kept because they differ\n",
               dry_run ? "would import: " : "", (long long)r->channels,
               print_plural(r->channels, "channel", "channels"), (long long)r->files,
               print_plural(r->files, "file", "files"), (long long)r->same, (long long)r->differ);
        printf("%lld %s of logs, %lld %s of %lld %s remembered, %lld malformed %s skipped\n",
               (long long)r->lines, print_plural(r->lines, "line", "lines"), (long long)r->messages,
               print_plural(r->messages, "message", "messages"), (long long)r->sessions,
               print_plural(r->sessions, "session", "sessions"), (long long)r->skipped,
               print_plural(r->skipped, "line", "lines"));
}

static int import(struct args *a, const char *from, struct error *err)
{
        struct mom_import m = { .from = from,
                                .dir = a->dir,
                                .adapter = args_value(a, "adapter"),
                                .dry_run = args_has(a, "dry-run"),
                                .note = print_note };
        struct mom_report report;
        struct config *c = NULL;
        int rc = -1;

        if (local_store_has_daemon(a->dir) == 1)
                return error_set(err, ERR_BUSY, "a daemon runs on '%s'; stop it first", a->dir);
        if (config_load(a->dir, &c, err) < 0)
                return -1;
        channel_folder_set_user(c->workspace.user);
        if (!m.adapter)
                m.adapter = find_adapter(c, err);
        m.agent = m.adapter ? find_agent(c, args_value(a, "agent"), err) : NULL;
        if (m.agent && !m.dry_run)
                m.store = open_store(a->dir, err);
        if (m.agent && (m.store || m.dry_run))
                rc = mom_import_run(&m, &report, err);
        store_close(m.store);
        config_free(c);
        if (rc == 0)
                print_report(a, &report, m.dry_run);
        return rc;
}

int import_command(struct args *a)
{
        static const char *const kinds[] = { "mom", NULL };
        const char *kind = args_action(a, kinds, NULL), *from;
        struct error err = { 0 };

        if (!kind)
                return CLI_USAGE;
        from = args_operand(a, "FOLDER");
        if (!from || args_end(a) < 0)
                return CLI_USAGE;
        return import(a, from, &err) < 0 ? command_failed(a, &err) : CLI_OK;
}
