/* Writes the logs and sessions of the workspace anew. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/workspace/context_file.h"
#include "agent/workspace/log_file.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "road/channel_folder.h"

struct rebuild {
        const char *dir;
        const struct workspace_conf *conf;
        struct log_rebuild logs;
        int64_t contexts;
};

static int rebuild_context(struct store_tx *tx, struct rebuild *b, int64_t conversation,
                           struct error *err)
{
        struct context_steps steps;
        int rc = context_steps_read(tx, conversation, 0, &steps, err);

        if (rc < 0)
                return -1;
        if (steps.count > 0) {
                rc = context_file_write(b->dir, &steps, b->conf->context_bytes, err);
                b->contexts += rc == 1;
        }
        context_steps_release(&steps);
        return rc < 0 ? -1 : 0;
}

static int rebuild(struct store_tx *tx, void *arg, struct error *err)
{
        struct rebuild *b = arg;
        struct store_stmt *list;
        int64_t *ids = NULL, id;
        size_t n = 0;
        int rc = log_rebuild(tx, b->dir, b->conf->log_bytes, &b->logs, err);

        if (rc < 0)
                return -1;
        list = step_row_list_conversations(tx);
        while ((rc = step_row_next_conversation(list, &id, err)) == 1) {
                ids = mem_realloc(ids, (n + 1) * sizeof(*ids));
                ids[n++] = id;
        }
        for (size_t i = 0; i < n && rc == 0; i++)
                rc = rebuild_context(tx, b, ids[i], err);
        free(ids);
        return rc;
}

static void print_report(const struct args *a, const struct rebuild *b)
{
        if (a->json) {
                json_t *report =
                        json_pack("{s:I, s:I, s:I}", "kept", (json_int_t)b->logs.kept, "written",
                                  (json_int_t)b->logs.written, "sessions", (json_int_t)b->contexts);

                print_json(report);
                json_decref(report);
                return;
        }
        printf("%lld %s made from the journal, %lld older %s kept, %lld %s written\n",
               (long long)b->logs.written, print_plural(b->logs.written, "line", "lines"),
               (long long)b->logs.kept, print_plural(b->logs.kept, "line", "lines"),
               (long long)b->contexts, print_plural(b->contexts, "session", "sessions"));
}

int workspace_command(struct args *a)
{
        static const char *const actions[] = { "rebuild", NULL };
        const char *action = args_action(a, actions, NULL);
        struct config *c = NULL;
        struct rebuild b = { 0 };
        struct error err = { 0 };
        int rc = -1;

        if (!action || args_end(a) < 0)
                return CLI_USAGE;
        b.dir = a->dir;
        if (local_store_has_daemon(a->dir) == 1)
                error_set(&err, ERR_BUSY,
                          "a daemon runs on '%s' and writes these files; stop it first", a->dir);
        else if (config_load(a->dir, &c, &err) == 0) {
                channel_folder_set_user(c->workspace.user);
                b.conf = &c->workspace;
                rc = local_store_read(a->dir, rebuild, &b, &err);
        }
        if (rc == 0)
                print_report(a, &b);
        config_free(c);
        return rc < 0 ? command_failed(a, &err) : CLI_OK;
}
