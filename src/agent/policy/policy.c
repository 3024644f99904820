#include "agent/policy/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/policy_match.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define AT(field)       offsetof(struct policy_rule, field)
#define DEFAULT_MINUTES 60

static const char *const decisions[] = { "allow", "ask", "deny", NULL };
static const char *const approver_names[] = { "asker", "admins", NULL };

const struct setting policy_rule_settings[] = {
        { "decide", SETTING_CHOICE, NULL, .choices = decisions, .at = AT(decide),
          .help = "What to do with a matching call." },
        { "tool", SETTING_STRING, "null", 1, 200, .at = AT(tool),
          .help = "Match these tools; `*` stands for any text. Default: all." },
        { "command", SETTING_STRING, "null", 1, 1000, .at = AT(command),
          .help = "Match these shell commands: `git push *`. Commands are split at pipes, lists "
                  "and substitutions, and each part is judged separately." },
        { "path", SETTING_STRING, "null", 1, 1000, .at = AT(path),
          .help = "Match these files. `*` stays in a folder, `**` does not; relative paths start "
                  "at the channel's folder." },
        { "host", SETTING_STRING, "null", 1, 253, .at = AT(host),
          .help = "Match these hosts in URLs of the call: `*.example.org`." },
        { "adapter", SETTING_STRING, "null", 1, 200, .at = AT(adapter),
          .help = "Match these adapters; `*` stands for any text." },
        { "channel", SETTING_STRING, "null", 1, 200, .at = AT(channel),
          .help = "Match these channels; `*` stands for any text." },
        { "untrusted", SETTING_BOOL, "false", .at = AT(untrusted),
          .help = "Match only after the turn has seen untrusted text. A rule that allows risky "
                  "tools in such turns needs it." },
        { "approvers", SETTING_CHOICE, "\"admins\"", .choices = approver_names, .at = AT(approvers),
          .help = "Who may approve: `asker` means the person who began the turn, and admins." },
        { "always", SETTING_BOOL, "false", .at = AT(always),
          .help = "Let admins answer *Always*, which allows such calls in this channel in "
                  "future." },
        { "expiresMinutes", SETTING_INT, "60", 1, 10080, .at = AT(expires_minutes),
          .help = "Refuse the call after this time without an answer." },
        SETTING_END,
};

/* ---- verdicts ---- */

void policy_verdict_release(struct policy_verdict *v)
{
        free(v->reason);
        free(v->effect);
        free(v->rule);
        free(v->rule_label);
        *v = (struct policy_verdict){ 0 };
}

/* What one part of the call comes to. */
struct ruling {
        enum policy_decision decision;
        const char *name;               /* of the rule; NULL: the default */
        const struct policy_rule *rule; /* NULL: the default */
        const char *why;                /* of the default */
        enum approvers approvers;
        bool always; /* may be offered */
};

static enum policy_decision decision_of(const struct policy_rule *r)
{
        return strcmp(r->decide, "deny") == 0  ? POLICY_DENY
               : strcmp(r->decide, "ask") == 0 ? POLICY_ASK
                                               : POLICY_ALLOW;
}

static struct ruling judge_default(const struct policy_question *q)
{
        static const char *const writes[] = { "bash", "write", "edit", NULL };
        struct ruling r = { .decision = POLICY_ALLOW, .why = "nothing speaks against it" };

        if (q->asks)
                return (struct ruling){ .decision = POLICY_ASK,
                                        .why = "the agent asks before it does this",
                                        .approvers = q->approvers,
                                        .always = true };
        if (q->risky && q->untrusted)
                return (struct ruling){ .decision = POLICY_ASK,
                                        .why = "the tool is risky and the turn has seen untrusted "
                                               "text",
                                        .approvers = APPROVERS_ASKER };
        for (size_t i = 0; strcmp(q->sandbox, "host") == 0 && writes[i]; i++) {
                if (strcmp(q->tool, writes[i]) == 0)
                        return (struct ruling){ .decision = POLICY_ASK,
                                                .why = "it runs on the host, outside a sandbox",
                                                .approvers = APPROVERS_ADMINS,
                                                .always = true };
        }
        return r;
}

/* Does an answer "always" allow it? */
static bool is_stored(const struct policy_question *q, const struct policy_thing *thing)
{
        for (size_t i = 0; i < q->stored_count; i++) {
                json_t *json = json_read(q->stored[i], strlen(q->stored[i]), NULL);
                struct policy_rule r = { .tool = (char *)json_str(json, "tool", NULL),
                                         .command = (char *)json_str(json, "command", NULL),
                                         .path = (char *)json_str(json, "path", NULL) };
                /* one that names nothing would allow everything */
                bool matches =
                        r.tool && (r.command || r.path) && policy_match(&r, q, thing, POLICY_ALLOW);

                json_decref(json);
                if (matches)
                        return true;
        }
        return false;
}

static struct ruling judge_thing(const struct policy_question *q, const struct policy_thing *thing)
{
        struct ruling best = judge_default(q);
        bool decided = false;

        for (size_t i = 0; q->rules && i < q->rules->count; i++) {
                const struct policy_rule *r = q->rules->items[i];
                enum policy_decision d = decision_of(r);

                if (d == POLICY_DENY && !policy_match_is_sure(r, thing))
                        d = POLICY_ASK; /* it may be another command or file */
                if ((decided && d <= best.decision) || !policy_match(r, q, thing, d))
                        continue;
                decided = true;
                best = (struct ruling){ .decision = d,
                                        .name = q->rules->names[i],
                                        .rule = r,
                                        .approvers = strcmp(r->approvers, "asker") == 0
                                                             ? APPROVERS_ASKER
                                                             : APPROVERS_ADMINS,
                                        .always = r->always };
        }
        if (best.decision == POLICY_ASK && best.always && is_stored(q, thing))
                best = (struct ruling){ .decision = POLICY_ALLOW, .why = "somebody said always" };
        return best;
}

/* ---- what an approval would allow ---- */

static const struct {
        const char *effect;
        const char *programs; /* with spaces around each */
} effects[] = {
        { "delete", " rm rmdir unlink shred truncate wipefs dd mkfs " },
        { "network", " curl wget nc ncat netcat ssh scp sftp rsync ftp telnet socat " },
        { "privileges", " sudo doas su pkexec chroot " },
        { "permissions", " chmod chown chgrp setfacl setcap " },
        { "processes", " kill pkill killall systemctl service shutdown reboot " },
        { "packages", " apt apt-get dpkg pip pip3 npm yarn pnpm cargo gem brew dnf yum apk " },
};

static char *effect_of(const struct policy_question *q, const struct policy_thing *thing)
{
        const char *program = thing && thing->part ? thing->part->program : NULL;
        char *member;

        if (!program || !*program)
                return mem_printf("%s%s%s", q->tool, thing && thing->path ? " " : "",
                                  thing && thing->path ? thing->path : "");
        member = mem_printf(" %s ", program);
        for (size_t i = 0; i < COUNT(effects); i++) {
                if (strstr(effects[i].programs, member)) {
                        free(member);
                        return mem_strdup(effects[i].effect);
                }
        }
        free(member);
        if (strcmp(program, "find") == 0 && strstr(thing->part->plain, "-delete"))
                return mem_strdup("delete");
        return mem_printf("run %s", program);
}

/* Programs that do whatever their arguments say: a rule about them would allow everything. */
static const char anything[] =
        " sh bash dash zsh ksh ash python python3 perl ruby node php lua awk gawk sed find xargs "
        "env sudo doas su ssh eval exec source . command builtin timeout nohup nice make docker "
        "podman git-shell rm dd chmod chown tee ";
/* Programs whose first word says what they do. */
static const char families[] = " git npm yarn pnpm cargo go pip pip3 apt apt-get kubectl systemctl "
                               "gh terraform helm brew ";

static bool is_word_of(const char *list, const char *word)
{
        char *member = mem_printf(" %s ", word);
        bool found = strstr(list, member) != NULL;

        free(member);
        return found;
}

static bool is_subcommand(const struct shell_part *p)
{
        const char *w = p->count > 1 && p->words[1].literal ? p->words[1].text : "";

        return islower((unsigned char)*w) && w[strspn(w, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

/* The rule that "always" writes for a thing; NULL: none is safe. */
static char *offer_rule(const struct policy_question *q, const struct policy_thing *thing,
                        char **label)
{
        const struct shell_part *p = thing->part;
        struct buf json;

        *label = NULL;
        if (p && p->text) {
                bool literal = !p->assigned && p->count > 0;

                for (size_t i = 0; i < p->count; i++)
                        literal = literal && p->words[i].literal;
                if (!literal || is_word_of(anything, p->program) ||
                    strcmp(p->program, p->words[0].text) != 0)
                        return NULL;
                if (is_word_of(families, p->program) && is_subcommand(p))
                        *label = mem_printf("%s %s *", p->program, p->words[1].text);
                else if (!strchr(p->text, '*'))
                        *label = mem_strdup(p->text);
        } else if (thing->path && !p && !strchr(thing->path, '*')) {
                *label = mem_strdup(thing->path);
        }
        if (!*label)
                return NULL;
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "tool", q->tool);
        jsonw_str(&json, p ? "command" : "path", *label);
        jsonw_str(&json, "decide", "allow");
        jsonw_close(&json, '}');
        return buf_take(&json);
}

/* ---- judging a call ---- */

/* The strongest ruling so far, and what it is about. */
struct judgement {
        struct ruling ruling;
        const struct policy_thing *thing; /* NULL: the whole call */
        unsigned asks;                    /* things that ask */
};

static void judge_one(struct judgement *j, const struct policy_question *q,
                      const struct policy_thing *thing)
{
        struct ruling r = judge_thing(q, thing);

        /* it only runs another part, which is judged: no rule is no question */
        if (thing->part && thing->part->wraps && !r.rule && r.decision == POLICY_ASK)
                return;
        if (r.decision == POLICY_ASK)
                j->asks++;
        if (!j->thing || r.decision > j->ruling.decision) {
                j->ruling = r;
                j->thing = thing;
        }
}

static void describe(const struct judgement *j, const char *unclear, struct buf *out)
{
        const struct ruling *r = &j->ruling;

        if (unclear)
                buf_addf(out, "it cannot be taken apart (%s)", unclear);
        else if (r->name)
                buf_addf(out, "the rule '%s' says so", r->name);
        else
                buf_addstr(out, r->why);
        if (!unclear && j->thing && j->thing->part && j->thing->part->text)
                buf_addf(out, ", for `%.200s`", j->thing->part->text);
        else if (!unclear && j->thing && j->thing->path)
                buf_addf(out, ", for `%.200s`", j->thing->path);
}

static void conclude(const struct policy_question *q, const struct judgement *j,
                     const char *unclear, struct policy_verdict *out)
{
        const struct ruling *r = &j->ruling;
        int64_t minutes = r->rule ? r->rule->expires_minutes : DEFAULT_MINUTES;
        bool raised = q->admins && r->decision == POLICY_ALLOW;
        struct buf reason;

        buf_init(&reason, 0);
        if (raised)
                buf_addstr(&reason, "only admins may allow this");
        else
                describe(j, unclear, &reason);
        out->decision = raised ? POLICY_ASK : r->decision;
        out->reason = buf_take(&reason);
        out->approvers = q->admins ? APPROVERS_ADMINS : r->approvers;
        out->expires_ms = minutes * 60000;
        if (q->expires_ms > 0 && q->expires_ms < out->expires_ms)
                out->expires_ms = q->expires_ms;
        if (out->decision != POLICY_ASK)
                return;
        out->effect = effect_of(q, j->thing);
        if (!unclear && !q->admins && r->always && j->asks == 1 && j->thing)
                out->rule = offer_rule(q, j->thing, &out->rule_label);
}

/* It cannot be taken apart: a rule about commands, files or hosts could have matched. */
static void judge_unclear(const struct policy_question *q, const char *why,
                          struct policy_verdict *out)
{
        const struct policy_thing whole = { .unclear = true };
        struct judgement j = { .ruling = judge_thing(q, &whole), .thing = NULL };

        if (j.ruling.decision == POLICY_ALLOW)
                for (size_t i = 0; q->rules && i < q->rules->count; i++) {
                        const struct policy_rule *r = q->rules->items[i];

                        if (decision_of(r) != POLICY_ALLOW && (r->command || r->path || r->host) &&
                            policy_match_scope(r, q, decision_of(r)))
                                j.ruling = (struct ruling){ .decision = POLICY_ASK,
                                                            .name = q->rules->names[i],
                                                            .rule = r,
                                                            .approvers = APPROVERS_ADMINS };
                }
        conclude(q, &j, j.ruling.decision == POLICY_ASK ? why : NULL, out);
}

static void judge_command(const struct policy_question *q, const char *command,
                          struct policy_verdict *out)
{
        struct shell_parts parts;
        struct policy_thing *things = NULL;
        struct judgement j = { .ruling = judge_default(q) };
        struct error err;
        int rc = shell_parts_split(&parts, command, &err);

        things = mem_array(parts.count + 1, sizeof(*things));
        for (size_t i = 0; i < parts.count; i++) {
                policy_thing_of_part(&things[i], q, &parts, &parts.parts[i]);
                if (!things[i].harmless)
                        judge_one(&j, q, &things[i]);
        }
        if (parts.count == 0)
                j.ruling = (struct ruling){ .decision = POLICY_ALLOW, .why = "it does nothing" };
        if (rc < 0 && j.ruling.decision != POLICY_DENY)
                judge_unclear(q, err.text, out);
        else
                conclude(q, &j, NULL, out);
        for (size_t i = 0; i < parts.count; i++)
                policy_thing_release(&things[i]);
        free(things);
        shell_parts_release(&parts);
}

/* A call about several files is judged file by file. */
static void judge_files(const struct policy_question *q, struct policy_verdict *out)
{
        size_t count = json_array_size(q->files);
        struct policy_thing *things = mem_array(count + 1, sizeof(*things));
        struct judgement j = { 0 };

        policy_thing_of_call(&things[count], q);
        if (count == 0 || things[count].path)
                judge_one(&j, q, &things[count]);
        for (size_t i = 0; i < count; i++) {
                policy_thing_of_file(&things[i], q, json_string_value(json_array_get(q->files, i)));
                judge_one(&j, q, &things[i]);
        }
        conclude(q, &j, NULL, out);
        for (size_t i = 0; i <= count; i++)
                policy_thing_release(&things[i]);
        free(things);
}

void policy_judge(const struct policy_question *q, struct policy_verdict *out)
{
        const char *command = json_str(q->arguments, "command", NULL);

        *out = (struct policy_verdict){ 0 };
        if (strcmp(q->tool, "bash") == 0 && command)
                judge_command(q, command, out);
        else if (json_array_size(q->files) > POLICY_FILES_MAX)
                judge_unclear(q, "it is about too many files", out);
        else
                judge_files(q, out);
}
