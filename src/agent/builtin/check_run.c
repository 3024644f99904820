#include "agent/builtin/check_run.h"

#include <stdlib.h>
#include <string.h>

#include "agent/policy/policy.h"
#include "agent/workspace/workspace.h"
#include "base/mem.h"
#include "base/utf8.h"

#define CHECK_CONVERSATION (-2) /* of no conversation, so that no turn's sandbox is shared */
#define OUTPUT_MAX         16384

struct check_run {
        struct agent *agent;
        int64_t seconds;
        struct buf out, err;
        agent_check_fn *done;
        void *arg;
        LIST_ENTRY(check_run) next;
};

static void run_free(struct check_run *r)
{
        LIST_REMOVE(r, next);
        buf_release(&r->out);
        buf_release(&r->err);
        free(r);
}

/* The beginning is kept: it says what happened first. */
static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct check_run *r = arg;
        struct buf *to = fd == 2 ? &r->err : &r->out;
        size_t left = OUTPUT_MAX > to->len ? OUTPUT_MAX - to->len : 0;

        buf_add(to, bytes, n < left ? n : left);
        if (n > left)
                to->overflow = true;
}

/* Clean, without white space at its ends; says whether something was left out. Yours to free. */
static char *output_text(const struct check_run *r, bool failed)
{
        struct buf all;
        size_t from, n;
        char *text;

        buf_init(&all, 0);
        buf_add(&all, r->out.data, r->out.len);
        if (failed && r->err.len > 0)
                buf_addf(&all, "%s%s", all.len > 0 ? "\n" : "", r->err.data);
        from = strspn(all.data, " \t\r\n");
        n = all.len;
        while (n > from && strchr(" \t\r\n", all.data[n - 1]))
                n--;
        text = utf8_clean(all.data + from, n - from);
        buf_release(&all);
        if (text[0] && (r->out.overflow || (failed && r->err.overflow))) {
                char *cut = mem_printf("%s\n[more output was left out]", text);

                free(text);
                text = cut;
        }
        return text;
}

static void on_ended(void *arg, const struct sandbox_result *result)
{
        struct check_run *r = arg;
        bool failed = result->kind != ERR_NONE || result->signal || result->exit_code != 0;
        char *text = output_text(r, failed);
        struct error err = { 0 };
        struct agent *agent = r->agent;
        agent_check_fn *done = r->done;
        void *done_arg = r->arg;

        if (result->kind == ERR_TIMEOUT)
                error_set(&err, ERR_TIMEOUT, "the check was ended after %lld s",
                          (long long)r->seconds);
        else if (result->kind != ERR_NONE)
                error_set(&err, result->kind, "the check was ended: %s",
                          result->why ? result->why : error_kind_name(result->kind));
        else if (result->signal)
                error_set(&err, ERR_INTERNAL, "the check was ended by signal %d", result->signal);
        run_free(r);
        done(done_arg, err.kind ? -1 : result->exit_code, text, err.kind ? &err : NULL);
        free(text);
        agent_unhold(agent);
}

static int judge(const struct check_place *p, const struct agent_check *check,
                 const struct workspace_view *view, struct error *err)
{
        json_t *arguments = json_pack("{s:s}", "command", check->command);
        struct policy_question q = {
                .rules = p->policy,
                .tool = "bash",
                .arguments = arguments,
                .adapter = check->adapter,
                .channel = check->channel,
                .cwd = view->folder,
                .sandbox = p->conf->kind,
                .view = view,
        };
        struct policy_verdict v;
        int rc = 0;

        policy_judge(&q, &v);
        if (v.decision != POLICY_ALLOW)
                rc = error_set(err, ERR_REFUSED,
                               "the policy of agent '%s' %s this check: %s. A check runs without "
                               "asking anybody; a policy rule for the tool 'bash' that allows its "
                               "command permits it",
                               p->agent->name,
                               v.decision == POLICY_DENY ? "denies" : "asks a person about",
                               v.reason);
        policy_verdict_release(&v);
        json_decref(arguments);
        return rc;
}

int check_run_start(struct check_runs *all, const struct check_place *place,
                    const struct agent_check *check, agent_check_fn *done, void *arg,
                    struct error *err)
{
        static const struct sandbox_handlers handlers = { on_output, on_ended };
        struct workspace_view *view = NULL;
        struct check_run *r = NULL;
        int rc = -1;

        if (!place->sandboxes)
                return error_set(err, ERR_REFUSED,
                                 "agent '%s' runs no commands: its sandbox.kind is \"none\"",
                                 place->agent->name);
        if (workspace_view_open(place->agent->dir, check->adapter, check->channel, &view, err) < 0)
                return -1;
        if (judge(place, check, view, err) < 0)
                goto out;
        r = mem_zalloc(sizeof(*r));
        *r = (struct check_run){
                .agent = place->agent, .seconds = check->seconds, .done = done, .arg = arg
        };
        buf_init(&r->out, 0);
        buf_init(&r->err, 0);
        LIST_INSERT_HEAD(all, r, next);
        if (!sandbox_start(place->sandboxes, &(struct sandbox_key){ CHECK_CONVERSATION, view },
                           &(struct sandbox_command){ .command = check->command,
                                                      .timeout_ms = check->seconds * 1000 },
                           &handlers, r, err)) {
                run_free(r);
                goto out;
        }
        agent_hold(place->agent);
        rc = 0;
out:
        workspace_view_free(view);
        return rc;
}

void check_runs_drop(struct check_runs *all)
{
        struct error err;

        error_set(&err, ERR_CANCELLED, "the agent was closed");
        while (!LIST_EMPTY(all)) {
                struct check_run *r = LIST_FIRST(all);

                r->done(r->arg, -1, "", &err);
                run_free(r);
        }
}
