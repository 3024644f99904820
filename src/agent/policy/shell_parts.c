#include "agent/policy/shell_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static int split_into(struct shell_parts *out, const char *text, struct error *err);

/* ---- programs that run others ---- */

struct wrapper {
        const char *name;
        const char *with_value; /* options that take a value, as letters */
        size_t operands;        /* before the command: the seconds of timeout */
        bool assigns;           /* takes NAME=value before the command */
        bool keeps_rule;        /* more than a wrapper: also judged by itself */
};

static const struct wrapper wrappers[] = {
        { "env", "uC", 0, true, false },          { "nohup", "", 0, false, false },
        { "timeout", "ks", 1, false, false },     { "nice", "n", 0, false, false },
        { "ionice", "cnpPu", 0, false, false },   { "setsid", "", 0, false, false },
        { "stdbuf", "ioe", 0, false, false },     { "command", "", 0, false, false },
        { "builtin", "", 0, false, false },       { "exec", "a", 0, false, false },
        { "time", "fo", 0, false, false },        { "xargs", "adEILnPs", 0, false, false },
        { "busybox", "", 0, false, false },       { "toybox", "", 0, false, false },
        { "taskset", "", 1, false, false },       { "chrt", "TPD", 1, false, false },
        { "setpriv", "", 0, false, true },        { "unshare", "SGR", 0, false, true },
        { "sudo", "ughpCDRTUrt", 0, true, true }, { "doas", "uC", 0, false, true },
        { "chroot", "", 1, false, true },
};

static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "ash", NULL };
/*
 * Builtins that calculate, run text, or change what a name means; programs that run text or another
 * program in their own way.
 */
static const char *const opaque[] = { "let",     "mapfile", "readarray", "complete",    "bind",
                                      "hash",    "enable",  "alias",     "fc",          "su",
                                      "runuser", "script",  "watch",     "flock",       "at",
                                      "batch",   "nsenter", "parallel",  "strace",      "ltrace",
                                      "gdb",     "prlimit", "choom",     "setarch",     "linux32",
                                      "linux64", "sg",      "pkexec",    "capsh",       "numactl",
                                      "bwrap",   "expect",  "run-parts", "systemd-run", NULL };
/* Builtins that set variables, whose names may be arithmetic or mean more to the shell. */
static const char *const setters[] = { "declare", "typeset", "local",   "export", "readonly",
                                       "read",    "unset",   "getopts", NULL };
static const char *const movers[] = { "cd", "pushd", "popd", NULL };

static bool is_one_of(const char *word, const char *const *list)
{
        for (; *list; list++) {
                if (strcmp(*list, word) == 0)
                        return true;
        }
        return false;
}

bool shell_is_system(const char *program)
{
        static const char *const folders[] = { "/bin/", "/usr/bin/" };
        const char *name = strrchr(program, '/');

        for (size_t i = 0; name && i < COUNT(folders); i++)
                if (strlen(folders[i]) == (size_t)(name + 1 - program) &&
                    strncmp(program, folders[i], strlen(folders[i])) == 0)
                        return true;
        return !name;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash && slash[1] ? slash + 1 : path;
}

/* ---- texts ---- */

/* A word that is not a plain one is quoted, so that its text cannot look like two words. */
static void add_quoted(struct buf *b, const struct shell_word *w)
{
        bool plain = w->text[0] != '\0';

        for (const char *p = w->text; *p && plain; p++)
                plain = isalnum((unsigned char)*p) || strchr("_-./:=@%+,~^", *p) ||
                        (unsigned char)*p >= 0x80;
        if (!w->literal || plain) {
                buf_addstr(b, w->text);
                return;
        }
        buf_addch(b, '\'');
        for (const char *p = w->text; *p; p++) {
                if (*p == '\'')
                        buf_addstr(b, "'\\''");
                else
                        buf_addch(b, *p);
        }
        buf_addch(b, '\'');
}

static char *join(struct arena *a, const struct shell_command *c, bool assignments, bool folder)
{
        struct buf b;
        char *text;

        buf_init(&b, 0);
        for (size_t i = 0; assignments && i < c->assignment_count; i++)
                buf_addf(&b, "%s%s", b.len ? " " : "", c->assignments[i]);
        for (size_t i = 0; i < c->count; i++) {
                struct shell_word w = c->words[i];

                if (i == 0 && !folder)
                        w.text = base_name(w.text);
                if (b.len > 0)
                        buf_addch(&b, ' ');
                add_quoted(&b, &w);
        }
        text = arena_strdup(a, b.data);
        buf_release(&b);
        return text;
}

/* As the plain text, where words that are only known when it runs may be anything, or nothing. */
static char *join_pattern(struct arena *a, const struct shell_command *c)
{
        bool any = c->open;
        struct buf b;
        char *text = NULL;

        buf_init(&b, 0);
        for (size_t i = 0; i < c->count; i++) {
                struct shell_word w = c->words[i];

                any = any || !w.literal;
                if (!w.literal) {
                        buf_addch(&b, SHELL_ANY);
                        continue;
                }
                if (i == 0)
                        w.text = base_name(w.text);
                else
                        buf_addch(&b, ' ');
                add_quoted(&b, &w);
        }
        if (c->open)
                buf_addch(&b, SHELL_ANY);
        if (any)
                text = arena_strdup(a, b.data);
        buf_release(&b);
        return text;
}

/* ---- parts ---- */

static void add_part(struct shell_parts *out, const struct shell_part *part)
{
        out->parts = mem_realloc(out->parts, (out->count + 1) * sizeof(*out->parts));
        out->parts[out->count++] = *part;
}

static int split_command(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                         unsigned depth, struct error *err);

/* The rest of the words as a command of its own. */
static int split_inner(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                       size_t from, unsigned depth, struct error *err)
{
        struct shell_command inner = { .words = c->words + from,
                                       .count = c->count - from,
                                       .open = c->open };
        size_t first = from;

        for (size_t i = from; i < c->count && strchr(c->words[i].text, '=') &&
                              c->words[i].text[0] != '-' && c->words[i].text[0] != '/';
             i++)
                first++;
        if (first > from) { /* env A=1 program */
                const char **set = arena_alloc(a, (first - from) * sizeof(*set));

                for (size_t i = from; i < first; i++)
                        set[i - from] = c->words[i].text;
                inner = (struct shell_command){ .words = c->words + first,
                                                .count = c->count - first,
                                                .assignments = set,
                                                .assignment_count = first - from,
                                                .open = c->open };
        }
        if (inner.count == 0)
                return 0;
        return split_command(out, a, &inner, depth + 1, err);
}

/* Does a cluster of options ("-iu") end in one whose value is the next word? */
static bool takes_next(const struct wrapper *w, const char *word)
{
        for (const char *p = word + 1; *p; p++) {
                if (strchr(w->with_value, *p))
                        return p[1] == '\0';
        }
        return false;
}

/* "{}" stands for a text that is only known when it runs, quoted or not. */
static struct shell_word *fill_in(struct arena *a, const struct shell_word *words, size_t count)
{
        struct shell_word *copy = arena_alloc(a, (count + 1) * sizeof(*copy));

        for (size_t i = 0; i < count; i++)
                copy[i] = (struct shell_word){ words[i].text,
                                               words[i].literal && !strstr(words[i].text, "{}") };
        return copy;
}

/* Does it replace another text than "{}"? */
static bool replaces_other(const struct shell_command *c, size_t option)
{
        const char *word = c->words[option].text, *value = strpbrk(word, "Ii");

        if (!value || (value[0] == 'i' && value[1] == '\0'))
                return false;
        if (value[1] == '\0')
                value = option + 1 < c->count ? c->words[option + 1].text : "";
        else
                value++;
        return strcmp(value, "{}") != 0;
}

/* Options are skipped one by one; what is not an option is the command. */
static int split_wrapped(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                         const struct wrapper *w, unsigned depth, struct error *err)
{
        bool xargs = strcmp(w->name, "xargs") == 0, env = strcmp(w->name, "env") == 0;
        size_t i = 1, operands = w->operands;
        struct shell_command added;

        while (i < c->count) {
                const char *word = c->words[i].text;

                if (!c->words[i].literal && !(operands > 0))
                        return error_set(err, ERR_INVALID,
                                         "what `%s` runs is only known when it runs", w->name);
                if (strcmp(word, "--") == 0) {
                        i++;
                        break;
                }
                if (word[0] == '-' && word[1] == '-') {
                        /* --signal=TERM; a value in the next word cannot be told apart */
                        if (!strchr(word, '=') || env || xargs)
                                return error_set(err, ERR_INVALID,
                                                 "the option %.40s of `%s` is not understood", word,
                                                 w->name);
                        i++;
                } else if (word[0] == '-' && word[1]) {
                        if (env && strchr(word, 'S'))
                                return error_set(err, ERR_INVALID, "`env -S` is not understood");
                        if (xargs && replaces_other(c, i))
                                return error_set(err, ERR_INVALID,
                                                 "`xargs` replaces another text than {}");
                        i += takes_next(w, word) ? 2 : 1;
                } else if (env && strcmp(word, "-") == 0) {
                        i++; /* as -i */
                } else if (operands > 0) {
                        operands--;
                        i++;
                } else {
                        break;
                }
        }
        if (i >= c->count)
                return c->open ? error_set(err, ERR_INVALID,
                                           "what `%s` runs is only known when it runs", w->name)
                               : 0;
        if (!xargs)
                return split_inner(out, a, c, i, depth, err);
        added = (struct shell_command){ .words = fill_in(a, c->words, c->count),
                                        .count = c->count,
                                        .open = true };
        return split_inner(out, a, &added, i, depth, err);
}

/* A descriptor as a file: what a shell reads there is only known when it runs. */
static bool is_stream(const char *path)
{
        return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* sh -c TEXT, sh -ec -x TEXT; without -c the script is a file or the input. */
static int split_shell(struct shell_parts *out, const struct shell_command *c, bool *wraps,
                       struct error *err)
{
        bool text = false, input = c->open;
        size_t i = 1;

        for (; i < c->count; i++) {
                const char *word = c->words[i].text;

                if (!c->words[i].literal)
                        return error_set(err, ERR_INVALID,
                                         "what the shell runs is only known when it runs");
                if (strcmp(word, "--") == 0) {
                        i++;
                        break;
                }
                if (word[0] == '-' && word[1] == '-')
                        return error_set(err, ERR_INVALID,
                                         "the option %.40s of the shell is not understood", word);
                if (word[0] != '-' && word[0] != '+')
                        break;
                text = text || (word[0] == '-' && strchr(word, 'c'));
                input = input || (word[0] == '-' && strchr(word, 's'));
                if (strchr(word, 'o') || strchr(word, 'O'))
                        i++; /* the name of an option */
        }
        if (!text && (input || i >= c->count || is_stream(c->words[i].text)))
                return error_set(err, ERR_INVALID, "the shell runs what it reads");
        if (!text)
                return 0;
        if (i >= c->count || !c->words[i].literal)
                return error_set(err, ERR_INVALID,
                                 "what `%.20s -c` runs is only known when it runs",
                                 base_name(c->words[0].text));
        *wraps = true;
        return split_into(out, c->words[i].text, err);
}

static int split_eval(struct shell_parts *out, const struct shell_command *c, size_t from,
                      size_t to, struct error *err)
{
        struct buf text;
        int rc = 0;

        buf_init(&text, 0);
        for (size_t i = from; i < to && rc == 0; i++) {
                if (!c->words[i].literal)
                        rc = error_set(err, ERR_INVALID,
                                       "what `%.20s` runs is only known when it runs",
                                       base_name(c->words[0].text));
                buf_addf(&text, "%s%s", text.len ? " " : "", c->words[i].text);
        }
        if (rc == 0)
                rc = split_into(out, text.data, err);
        buf_release(&text);
        return rc;
}

/* find ... -exec PROGRAM ... ; */
static int split_find(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                      unsigned depth, struct error *err)
{
        static const char *const runs[] = { "-exec", "-execdir", "-ok", "-okdir", NULL };

        for (size_t i = 1; i < c->count; i++) {
                struct shell_command inner = { 0 };

                if (!is_one_of(c->words[i].text, runs))
                        continue;
                inner.words = c->words + i + 1;
                while (i + 1 + inner.count < c->count &&
                       strcmp(inner.words[inner.count].text, ";") != 0 &&
                       strcmp(inner.words[inner.count].text, "+") != 0)
                        inner.count++;
                i += inner.count;
                inner.words = fill_in(a, inner.words, inner.count);
                if (inner.count > 0 && split_command(out, a, &inner, depth + 1, err) < 0)
                        return -1;
        }
        return 0;
}

/* Adds what the program runs in turn. */
static int split_program(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                         const char *program, bool *wraps, unsigned depth, struct error *err)
{
        size_t dashes;

        for (size_t i = 0; i < COUNT(wrappers); i++) {
                if (strcmp(program, wrappers[i].name) != 0)
                        continue;
                *wraps = !wrappers[i].keeps_rule && c->count > 1;
                return split_wrapped(out, a, c, &wrappers[i], depth, err);
        }
        if (is_one_of(program, shells))
                return split_shell(out, c, wraps, err);
        dashes = c->count > 1 && strcmp(c->words[1].text, "--") == 0;
        if (strcmp(program, "eval") == 0) {
                *wraps = true;
                return split_eval(out, c, dashes ? 2 : 1, c->count, err);
        }
        if (strcmp(program, "trap") == 0 && c->count > 1 + dashes &&
            (dashes || c->words[1].text[0] != '-'))
                return split_eval(out, c, 1 + dashes, 2 + dashes, err);
        if (strcmp(program, "find") == 0)
                return split_find(out, a, c, depth, err);
        if ((strcmp(program, "source") == 0 || strcmp(program, ".") == 0) &&
            (c->open || c->count < 2 || !c->words[1].literal || is_stream(c->words[1].text)))
                return error_set(err, ERR_INVALID, "the shell runs what it reads");
        if (is_one_of(program, opaque))
                return error_set(err, ERR_INVALID, "`%s` is not understood", program);
        return 0;
}

/* Subscripts are arithmetic; the shell expands these variables when it traces or starts. */
static bool may_hide(const char *text)
{
        return strstr(text, "[$") || strstr(text, "[`") || strstr(text, "PS4") ||
               strstr(text, "BASH_ENV");
}

/* Arguments of builtins and values of variables may hold commands. */
static bool hides_command(const struct shell_command *c)
{
        bool sets = c->count > 0 && is_one_of(base_name(c->words[0].text), setters);

        for (size_t i = 0; i < c->count; i++) {
                const char *word = c->words[i].text;
                size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_");

                if (may_hide(word) || (sets && !c->words[i].literal && word[name] != '='))
                        return true;
        }
        for (size_t i = 0; i < c->assignment_count; i++) {
                if (may_hide(c->assignments[i]))
                        return true;
        }
        return false;
}

static int split_command(struct shell_parts *out, struct arena *a, const struct shell_command *c,
                         unsigned depth, struct error *err)
{
        struct shell_part part = { .words = c->words,
                                   .count = c->count,
                                   .assigned = c->assignment_count > 0,
                                   .literal = true };
        int rc = 0;

        if (depth > SHELL_DEPTH_MAX)
                return error_set(err, ERR_LIMIT, "it is nested more than %d times",
                                 SHELL_DEPTH_MAX);
        for (size_t i = 0; i < c->path_count; i++)
                add_part(out, &(struct shell_part){ .path = c->paths[i].path,
                                                    .literal = c->paths[i].literal,
                                                    .writes = c->paths[i].writes });
        if (c->count == 0 && c->assignment_count == 0)
                return 0;
        if (c->count > 0 && !c->words[0].literal)
                return error_set(err, ERR_INVALID,
                                 "which program `%.60s` is, is only known when it runs",
                                 c->words[0].text);
        if (hides_command(c))
                return error_set(err, ERR_INVALID, "an argument may hold a command");
        part.text = join(a, c, true, true);
        part.plain = join(a, c, false, false);
        part.pattern = join_pattern(a, c);
        part.open = c->open;
        part.program = c->count > 0 ? base_name(c->words[0].text) : "";
        out->moves = out->moves || is_one_of(part.program, movers);
        rc = split_program(out, a, c, part.program, &part.wraps, depth, err);
        part.wraps = part.wraps && !part.assigned && shell_is_system(c->words[0].text);
        add_part(out, &part);
        return rc;
}

static int split_into(struct shell_parts *out, const char *text, struct error *err)
{
        struct shell_script *s;
        struct error later;
        int rc;

        if (out->script_count == COUNT(out->scripts))
                return error_set(err, ERR_LIMIT, "it holds more than %zu scripts",
                                 COUNT(out->scripts));
        s = &out->scripts[out->script_count++];
        rc = shell_split(s, text, err);
        for (size_t i = 0; i < s->count; i++) {
                if (split_command(out, &s->arena, &s->commands[i], 0, rc < 0 ? &later : err) < 0)
                        rc = -1;
        }
        return rc;
}

int shell_parts_split(struct shell_parts *out, const char *text, struct error *err)
{
        *out = (struct shell_parts){ 0 };
        return split_into(out, text, err);
}

void shell_parts_release(struct shell_parts *p)
{
        for (size_t i = 0; i < p->script_count; i++)
                shell_release(&p->scripts[i]);
        free(p->parts);
        *p = (struct shell_parts){ 0 };
}
