/*
 * script: answers from a file, for tests and demonstrations.
 *
 * Each line is a verb and its words; empty lines and lines that start with # are ignored. A rule
 * starts with `when` and a pattern (* and ? as in file names, case-insensitive) for the whole text
 * of the message; the first matching rule answers. Its lines are performed in order:
 *
 *     # a greeting, after a pause
 *     when hello*
 *         wait 50
 *         say Hi there.
 *         say How are you?
 *     when sing
 *         progress looking for the notes
 *         piece "la la "
 *         piece "la"
 *     when flaky
 *         once
 *         fail limit The model is busy.
 *     when flaky
 *         say Now it works.
 *     when stuck
 *         hang
 *     when tidy up
 *         ask asker 60000 rm -r drafts
 *         say Done.
 *     when *
 *         say You said: {text}
 *
 *   say TEXT        a line of the answer; several are joined by line ends
 *   piece TEXT      a streamed piece, added as it is; in quotes, as in JSON, it keeps blanks and
 *                   knows \n
 *   wait MS         a pause
 *   progress TEXT   a progress label
 *   fail KIND TEXT  ends with a failure of that kind ("timeout", "limit", "net", ...); TEXT is the
 *                   notice for the user
 *   ask WHO MS TEXT asks for an approval by WHO (asker, admins), which expires after MS
 *                   milliseconds; a refusal ends the answer
 *   hang            never ends
 *   once            the rule matches only once
 *
 * In say and piece {text} stands for the message. The file is read when the agent opens.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/local/canned_reply.h"
#include "agent/message_text.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define FILE_MAX (1 << 20)

struct script_conf {
        char *file;
};

static const struct setting settings[] = {
        { "file", SETTING_STRING, NULL, 1, 4096,
          .help = "The script; relative to the data directory. `src/agent/local/script.c` "
                  "describes its form.",
          .at = offsetof(struct script_conf, file) },
        SETTING_END
};

enum script_verb { VERB_SAY, VERB_PIECE, VERB_WAIT, VERB_PROGRESS, VERB_FAIL, VERB_ASK, VERB_HANG };

struct script_line {
        enum script_verb verb;
        int64_t ms;
        enum error_kind kind;
        enum approvers approvers;
        char *text;
};

struct script_rule {
        char *pattern;
        bool once, used;
        struct script_line *lines;
        size_t count;
};

struct script {
        struct script_rule *rules;
        size_t count;
};

/* ---- reading ---- */

static void script_free(struct script *s)
{
        if (!s)
                return;
        for (size_t i = 0; i < s->count; i++) {
                for (size_t j = 0; j < s->rules[i].count; j++)
                        free(s->rules[i].lines[j].text);
                free(s->rules[i].lines);
                free(s->rules[i].pattern);
        }
        free(s->rules);
        free(s);
}

static struct script_line *add_line(struct script_rule *r, enum script_verb verb, const char *text)
{
        r->lines = mem_realloc(r->lines, (r->count + 1) * sizeof(*r->lines));
        r->lines[r->count] = (struct script_line){ .verb = verb, .text = mem_strdup(text) };
        return &r->lines[r->count++];
}

static int read_piece(struct script_rule *r, const char *rest, struct error *err)
{
        json_t *quoted;

        if (*rest != '"') {
                add_line(r, VERB_PIECE, rest);
                return 0;
        }
        quoted = json_loads(rest, JSON_DECODE_ANY, NULL);
        if (!json_is_string(quoted)) {
                json_decref(quoted);
                return error_set(err, ERR_INVALID, "the quoted text is not written as in JSON");
        }
        add_line(r, VERB_PIECE, json_string_value(quoted));
        json_decref(quoted);
        return 0;
}

static int read_fail(struct script_rule *r, const char *rest, struct error *err)
{
        size_t n = strcspn(rest, " \t");
        const char *notice = rest + n + strspn(rest + n, " \t");

        for (enum error_kind kind = ERR_INVALID; kind <= ERR_INTERNAL; kind++) {
                const char *name = error_kind_name(kind);

                if (strlen(name) == n && strncmp(name, rest, n) == 0) {
                        add_line(r, VERB_FAIL, notice)->kind = kind;
                        return 0;
                }
        }
        return error_set(err, ERR_INVALID, "'fail' needs a kind such as timeout, limit or net");
}

static int read_ask(struct script_rule *r, const char *rest, struct error *err)
{
        bool admins = strncmp(rest, "admins ", 7) == 0;
        struct script_line *l;
        char *end;
        long long ms;

        if (!admins && strncmp(rest, "asker ", 6) != 0)
                return error_set(err, ERR_INVALID, "'ask' needs asker or admins");
        rest += admins ? 7 : 6;
        ms = strtoll(rest, &end, 10);
        if (end == rest || *end != ' ' || ms < 1 || ms > 86400000)
                return error_set(err, ERR_INVALID, "'ask' needs milliseconds (1 to 86400000)");
        l = add_line(r, VERB_ASK, end + 1);
        l->ms = ms;
        l->approvers = admins ? APPROVERS_ADMINS : APPROVERS_ASKER;
        return 0;
}

static int read_verb(struct script *s, const char *verb, const char *rest, struct error *err)
{
        struct script_rule *r = s->count ? &s->rules[s->count - 1] : NULL;
        char *end;
        long long ms;

        if (strcmp(verb, "when") == 0) {
                s->rules = mem_realloc(s->rules, (s->count + 1) * sizeof(*s->rules));
                s->rules[s->count++] =
                        (struct script_rule){ .pattern = mem_strdup(*rest ? rest : "*") };
                return 0;
        }
        if (!r)
                return error_set(err, ERR_INVALID, "'%s' stands before the first 'when'", verb);
        if (strcmp(verb, "piece") == 0)
                return read_piece(r, rest, err);
        if (strcmp(verb, "fail") == 0)
                return read_fail(r, rest, err);
        if (strcmp(verb, "ask") == 0)
                return read_ask(r, rest, err);
        if (strcmp(verb, "wait") == 0) {
                ms = strtoll(rest, &end, 10);
                if (end == rest || *end || ms < 0 || ms > 3600000)
                        return error_set(err, ERR_INVALID,
                                         "'wait' needs milliseconds (0 to 3600000)");
                add_line(r, VERB_WAIT, NULL)->ms = ms;
                return 0;
        }
        if (strcmp(verb, "say") == 0)
                add_line(r, VERB_SAY, rest);
        else if (strcmp(verb, "progress") == 0)
                add_line(r, VERB_PROGRESS, rest);
        else if (strcmp(verb, "hang") == 0)
                add_line(r, VERB_HANG, NULL);
        else if (strcmp(verb, "once") == 0)
                r->once = true;
        else
                return error_set(
                        err, ERR_INVALID,
                        "unknown verb '%s' (when, say, piece, wait, progress, fail, ask, hang, "
                        "once)",
                        verb);
        return 0;
}

/* Splits the text into lines in place. */
static int read_script(struct script *s, char *text, struct error *err)
{
        char *following;
        int number = 1;

        for (char *line = text; line; line = following, number++) {
                char *verb, *rest;

                following = strchr(line, '\n');
                if (following)
                        *following++ = '\0';
                line[strcspn(line, "\r")] = '\0';
                verb = line + strspn(line, " \t");
                if (!*verb || *verb == '#')
                        continue;
                rest = verb + strcspn(verb, " \t");
                if (*rest)
                        *rest++ = '\0';
                rest += strspn(rest, " \t");
                if (read_verb(s, verb, rest, err) < 0)
                        return error_prefix(err, "line %d", number);
        }
        return 0;
}

static int script_open(struct agent *a, struct error *err)
{
        const struct script_conf *conf = a->conf;
        char *path = *conf->file == '/' ? mem_strdup(conf->file)
                                        : mem_printf("%s/%s", a->dir, conf->file);
        struct script *s = mem_zalloc(sizeof(*s));
        struct buf text;
        int rc;

        buf_init(&text, 0);
        rc = file_read(path, FILE_MAX, &text, err);
        if (rc == 0) {
                rc = read_script(s, text.data, err);
                if (rc < 0)
                        error_prefix(err, "%s", path);
        }
        if (rc == 0)
                a->self = s;
        else
                script_free(s);
        buf_release(&text);
        free(path);
        return rc;
}

static void script_close(struct agent *a)
{
        script_free(a->self);
}

/* ---- playing ---- */

static struct script_rule *find(struct script *s, const char *message)
{
        for (size_t i = 0; i < s->count; i++) {
                struct script_rule *r = &s->rules[i];

                if (!(r->once && r->used) &&
                    fnmatch(r->pattern, message, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
                        return r;
        }
        return NULL;
}

static void say(struct canned_reply *c, const char *text, const char *message, bool new_line)
{
        struct buf b;
        const char *mark;

        buf_init(&b, 0);
        if (new_line)
                buf_addch(&b, '\n');
        while ((mark = strstr(text, "{text}"))) {
                buf_add(&b, text, (size_t)(mark - text));
                buf_addstr(&b, message);
                text = mark + strlen("{text}");
        }
        buf_addstr(&b, text);
        canned_reply_say(c, b.data, b.len);
        buf_release(&b);
}

static void perform(struct canned_reply *c, const struct script_rule *r, const char *message)
{
        bool said = false;

        for (size_t i = 0; i < r->count; i++) {
                const struct script_line *l = &r->lines[i];

                switch (l->verb) {
                case VERB_WAIT:
                        canned_reply_wait(c, l->ms);
                        break;
                case VERB_PROGRESS:
                        canned_reply_progress(c, l->text);
                        break;
                case VERB_ASK:
                        canned_reply_ask(c, l->approvers, l->ms, l->text);
                        break;
                case VERB_HANG:
                        canned_reply_hang(c);
                        break;
                case VERB_FAIL:
                        canned_reply_fail(c, l->kind, l->text, "the script says so");
                        break;
                case VERB_SAY:
                        say(c, l->text, message, said);
                        said = true;
                        break;
                case VERB_PIECE:
                        say(c, l->text, message, false);
                        said = true;
                        break;
                }
        }
}

static void start(struct agent *a, struct turn_run *run)
{
        struct canned_reply *c = canned_reply_new(a, run);
        char *message = message_text_of_run(run);
        struct script_rule *r = find(a->self, message);

        if (r) {
                r->used = true;
                perform(c, r, message);
        } else {
                canned_reply_fail(c, ERR_MISSING, "The script has no answer to that.",
                                  "no rule of the script matches");
        }
        canned_reply_start(c);
        free(message);
}

const struct agent_ops script_agent = {
        .type = "script",
        .help = "Answers from a file; for tests and demonstrations.",
        .can = AGENT_REPEATABLE | AGENT_STREAMS | AGENT_CANCELS,
        .settings = settings,
        .conf_size = sizeof(struct script_conf),
        .open = script_open,
        .close = script_close,
        .start = start,
        .cancel = canned_reply_cancel,
};
