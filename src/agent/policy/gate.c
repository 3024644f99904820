/*
 * gate: between the loop and its tools. Judges a call, asks a person where the policy says so, and
 * checks that what they approved is still what would run.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/policy/policy.h"
#include "agent/policy/shell_parts.h"
#include "agent/workspace/workspace.h"
#include "base/beneath.h"
#include "base/buf.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define SCRIPT_MAX  (1 << 20) /* bytes; a larger file cannot be bound */
#define SCRIPTS_MAX 8
#define SHOWN_MAX   3000 /* bytes of arguments in the question */

/* ---- what an approval is bound to ---- */

/* The hash of a file of the channel; "" if there is none, or it cannot be read. */
static void hash_file(const struct workspace_view *view, const char *name,
                      char out[SHA256_HEX_SIZE])
{
        struct error err;
        char *path = NULL, *bytes;
        int64_t size = 0;
        ssize_t n;
        int folder, fd;

        out[0] = '\0';
        if (workspace_resolve(view, name, false, &folder, &path, &err) < 0)
                return;
        fd = beneath_open_file(folder, "the channel's folder", path, SCRIPT_MAX, &size, &err);
        free(path);
        if (fd < 0)
                return;
        bytes = mem_alloc((size_t)size + 1);
        n = pread(fd, bytes, (size_t)size + 1, 0);
        if (n >= 0)
                crypto_sha256_hex(bytes, (size_t)n, out);
        close(fd);
        free(bytes);
}

static const char interpreters[] =
        " sh bash dash zsh ksh ash source . python python3 perl ruby node php lua awk gawk sed "
        "make ";

static bool may_be_script(const struct shell_part *p, size_t word)
{
        char *member;
        bool runs;

        if (!p->words[word].literal)
                return false;
        if (word == 0)
                return strchr(p->words[0].text, '/') != NULL;
        member = mem_printf(" %s ", p->program);
        runs = strstr(interpreters, member) != NULL;
        free(member);
        return runs;
}

/* The files of the channel that it runs. */
static void write_scripts(const struct policy_question *q, struct buf *json)
{
        const char *command = json_str(q->arguments, "command", NULL);
        struct shell_parts parts;
        struct error err;
        unsigned count = 0;

        if (!q->view || !command || strcmp(q->tool, "bash") != 0)
                return;
        jsonw_open_member(json, "files", '{');
        if (shell_parts_split(&parts, command, &err) < 0)
                parts.count = 0;
        for (size_t i = 0; i < parts.count; i++) {
                const struct shell_part *p = &parts.parts[i];

                for (size_t k = 0; p->text && k < p->count && count < SCRIPTS_MAX; k++) {
                        char hash[SHA256_HEX_SIZE];

                        if (!may_be_script(p, k))
                                continue;
                        hash_file(q->view, p->words[k].text, hash);
                        if (!hash[0])
                                continue;
                        jsonw_str(json, p->words[k].text, hash);
                        count++;
                }
        }
        jsonw_close(json, '}');
        shell_parts_release(&parts);
}

char *policy_subject(const struct policy_question *q)
{
        json_t *arguments = json_deep_copy(q->arguments);
        struct buf json;
        char *text;

        json_object_del(arguments, "label");
        text = json_text(arguments);
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "tool", q->tool);
        jsonw_raw(&json, "arguments", text);
        jsonw_str(&json, "cwd", q->cwd);
        jsonw_str(&json, "sandbox", q->sandbox);
        write_scripts(q, &json);
        jsonw_close(&json, '}');
        json_decref(arguments);
        free(text);
        return buf_take(&json);
}

/* ---- the question ---- */

/* A block that the text cannot end: its fence is longer than any in it. */
static void add_block(struct buf *b, const char *text, size_t n)
{
        size_t fence = 3, run = 0;

        for (size_t i = 0; i < n; i++) {
                run = text[i] == '`' ? run + 1 : 0;
                if (run >= fence)
                        fence = run + 1;
        }
        for (size_t i = 0; i < fence; i++)
                buf_addch(b, '`');
        buf_addch(b, '\n');
        buf_add(b, text, n);
        buf_addch(b, '\n');
        for (size_t i = 0; i < fence; i++)
                buf_addch(b, '`');
}

/* What is too long to show says so. */
static void add_shown(struct buf *b, const char *text)
{
        size_t n = strlen(text), half = SHOWN_MAX / 2;

        if (n <= SHOWN_MAX) {
                add_block(b, text, n);
                return;
        }
        add_block(b, text, half);
        buf_addf(b, "\n**%zu bytes are not shown here** (`dragoman approvals show`)\n",
                 n - 2 * half);
        add_block(b, text + n - half, half);
}

/* Exactly what would be done. */
static char *describe_call(const struct policy_question *q, const char **title)
{
        const char *command = json_str(q->arguments, "command", NULL);
        const char *path = json_str(q->arguments, "path", NULL);
        json_t *arguments = json_deep_copy(q->arguments);
        char *all;
        struct buf b;

        json_object_del(arguments, "label");
        all = strcmp(q->tool, "bash") == 0 && command
                      ? mem_strdup(command)
                      : json_dumps(arguments, JSON_INDENT(1) | JSON_ENCODE_ANY);
        json_decref(arguments);
        if (strcmp(q->tool, "bash") == 0)
                *title = "run a command";
        else if (path && (strcmp(q->tool, "write") == 0 || strcmp(q->tool, "edit") == 0))
                *title = "write a file";
        else
                *title = "use a tool";
        buf_init(&b, 0);
        if (strcmp(q->tool, "bash") != 0)
                buf_addf(&b, "`%s`\n", q->tool);
        add_shown(&b, all);
        free(all);
        return buf_take(&b);
}

static char *describe(const struct policy_question *q, const char **title)
{
        struct buf b;

        if (!q->text)
                return describe_call(q, title);
        *title = q->title;
        buf_init(&b, 0);
        add_shown(&b, q->text);
        return buf_take(&b);
}

/* ---- asking ---- */

struct policy_gate {
        struct policy_question question; /* our copies of what policy_subject needs */
        char *tool, *cwd, *sandbox;
        policy_gate_fn *done;
        void *arg;
};

void policy_gate_free(struct policy_gate *g)
{
        if (!g)
                return;
        json_decref((json_t *)g->question.arguments);
        free(g->tool);
        free(g->cwd);
        free(g->sandbox);
        free(g);
}

static struct policy_gate *gate_new(const struct policy_question *q, policy_gate_fn *done,
                                    void *arg)
{
        struct policy_gate *g = mem_zalloc(sizeof(*g));

        g->tool = mem_strdup(q->tool);
        g->cwd = mem_strdup(q->cwd);
        g->sandbox = mem_strdup(q->sandbox);
        g->question = (struct policy_question){ .tool = g->tool,
                                                .cwd = g->cwd,
                                                .sandbox = g->sandbox,
                                                .arguments = json_incref((json_t *)q->arguments),
                                                .view = q->view };
        g->done = done;
        g->arg = arg;
        return g;
}

/* NULL: it may run. */
static char *refusal(const struct policy_gate *g, const struct approval_decision *d)
{
        char *subject, *why = NULL;

        if (d->state == APPROVAL_EXPIRED)
                return mem_strdup("Nobody answered the question in time, so this was not done. Do "
                                  "not try it in another way; tell the person what you wanted.");
        if (d->state != APPROVAL_APPROVED)
                return mem_printf("%s refused this%s%s. Do not try it in another way.",
                                  d->by ? d->by : "A person", d->note ? ": " : "",
                                  d->note ? d->note : "");
        subject = policy_subject(&g->question);
        if (strcmp(subject, d->subject) != 0)
                why = mem_strdup("This was not done: what would run is no longer what was "
                                 "approved, because a file of it has changed. Ask again.");
        free(subject);
        return why;
}

static void on_decided(void *arg, const struct approval_decision *d)
{
        struct policy_gate *g = arg;
        char *why = refusal(g, d);
        policy_gate_fn *done = g->done;
        void *done_arg = g->arg;

        policy_gate_free(g);
        done(done_arg, !why, why);
        free(why);
}

enum policy_decision policy_gate(struct turn_run *run, const struct policy_question *q,
                                 const char *call, char **why, policy_gate_fn *done, void *arg,
                                 struct policy_gate **gate)
{
        struct policy_verdict v;
        enum policy_decision decision;
        const char *title;
        char *detail, *subject;

        *why = NULL;
        *gate = NULL;
        policy_judge(q, &v);
        decision = v.decision;
        if (decision == POLICY_DENY)
                *why = mem_printf("This is not allowed here: %s. Do not try it in another way.",
                                  v.reason);
        if (decision == POLICY_ASK) {
                detail = describe(q, &title);
                subject = policy_subject(q);
                *gate = gate_new(q, done, arg);
                turn_ask_approval(run,
                                  &(struct approval_request){ .call = call,
                                                              .tool = q->tool,
                                                              .title = title,
                                                              .detail = detail,
                                                              .subject = subject,
                                                              .reason = v.reason,
                                                              .effect = v.effect,
                                                              .rule = v.rule,
                                                              .rule_label = v.rule_label,
                                                              .approvers = v.approvers,
                                                              .expires_ms = v.expires_ms },
                                  on_decided, *gate);
                free(detail);
                free(subject);
        }
        policy_verdict_release(&v);
        return decision;
}
