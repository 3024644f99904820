/*
 * policy: may a tool call of the built-in agent run, must a person be asked, or is it denied?
 *
 * Rules come from the configuration, and from people who answered "always" (road/turn/approval.h);
 * nothing the agent can write is among them. All matching rules count: deny beats ask, ask beats
 * allow. A call that no rule decides runs if it cannot leave its sandbox.
 *
 *     commands on the host, and writing files there           ask (admins)
 *     risky tools, once the turn has seen untrusted text      ask (who began it)
 *     everything else                                         allow
 *
 * A shell command is judged part by part (shell.h, shell_parts.h). One that cannot be taken apart
 * asks where a rule about commands could have matched.
 */
#ifndef AGENT_POLICY_POLICY_H
#define AGENT_POLICY_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "road/turn/approval.h"

struct workspace_view;

enum policy_decision { POLICY_ALLOW, POLICY_ASK, POLICY_DENY };

/* Members that are NULL match everything. */
struct policy_rule {
        char *tool;    /* glob */
        char *command; /* glob over one part of a shell command; "git push *" is also "git push" */
        char *path;    /* glob; "*" stays in a folder, "**" does not */
        char *host;    /* glob */
        char *adapter, *channel;
        char *decide, *approvers;
        bool untrusted, always;
        int64_t expires_minutes;
};
extern const struct setting policy_rule_settings[];

#define POLICY_HELP                                                                          \
        "Rules about tool calls by name. Of all that match, deny beats ask, and ask beats "  \
        "allow. Without a rule, calls that stay in the sandbox are allowed; commands and "   \
        "writes with the sandbox `host` ask, and so do risky tools after the turn has seen " \
        "untrusted text."

/* The row "policy" of a built-in agent, a struct setting_map of policy_rule by name. */
/* clang-format off */
#define POLICY_SETTING(offset)                                                                \
        { "policy", SETTING_MAP, "{}", .max = sizeof(struct policy_rule),                     \
          .group = policy_rule_settings, .at = (offset), .help = POLICY_HELP }
/* clang-format on */

#define POLICY_FILES_MAX 100 /* of a question; more cannot be judged one by one */

/* Borrowed. */
struct policy_question {
        const struct setting_map *rules; /* of the configuration; may be NULL */
        const char *const *stored;       /* of turn_approval_rules */
        size_t stored_count;
        const char *tool;
        bool risky;              /* TOOL_RISKY */
        const json_t *arguments; /* checked */
        const json_t *files;     /* further ones it is about, an array; NULL: see arguments */
        const char *adapter, *channel;
        const char *cwd;          /* of commands and relative paths: the channel's folder, inside */
        const char *sandbox;      /* "bwrap", "docker:NAME", "host" or "none" */
        bool untrusted;           /* the turn has seen untrusted text */
        bool asks;                /* the agent asks by itself: without a rule, a person decides */
        enum approvers approvers; /* then */
        bool admins;              /* whatever rules say, nobody else may allow it */
        int64_t expires_ms;       /* it waits no longer than this; 0: as long as the rule says */
        /* Its words for people, "ask you something" and a text; NULL: made from the arguments. */
        const char *title, *text;
        const struct workspace_view *view; /* where scripts are; NULL: they are not hashed */
};

struct policy_verdict {
        enum policy_decision decision;
        char *reason; /* "the rule 'no-push' says so for `git push`" */
        /* POLICY_ASK: */
        enum approvers approvers;
        int64_t expires_ms;
        char *effect;            /* see struct approval_request */
        char *rule, *rule_label; /* that "always" would write; NULL: not offered */
};

/* Pure: depends on nothing but the question. */
void policy_judge(const struct policy_question *q, struct policy_verdict *out);
void policy_verdict_release(struct policy_verdict *v);

/*
 * What an approval of the call is bound to, as JSON: tool, arguments without the label, cwd, and
 * the hash of each file of the channel that the command runs. Yours to free.
 */
char *policy_subject(const struct policy_question *q);

/* ---- gate.c: judges, and asks a person if needed ---- */

struct policy_gate;
/* why: for the model, borrowed; NULL: allowed. */
typedef void policy_gate_fn(void *arg, bool allowed, const char *why);

/*
 * POLICY_ALLOW: run it. POLICY_DENY: *why is for the model, yours to free. POLICY_ASK: a person is
 * asked; done follows once, later, with *gate freed before. A turn that runs again asks with the
 * same call and finds the decision.
 */
enum policy_decision policy_gate(struct turn_run *run, const struct policy_question *q,
                                 const char *call, char **why, policy_gate_fn *done, void *arg,
                                 struct policy_gate **gate);
/* Called when the turn is cancelled: no call of done follows. NULL is fine. */
void policy_gate_free(struct policy_gate *g);

#endif
