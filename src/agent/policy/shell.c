/*
 * A recursive descent over bash's grammar, as far as it says which programs run. Reserved words
 * (if, while, {, ...) are skipped: bash itself refuses what is not well formed, so only the
 * commands between them matter.
 */
#include "agent/policy/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define HEREDOCS_MAX 8

struct heredoc {
        char *end; /* the line that ends it */
        bool strips_tabs, expands;
};

struct parser {
        const char *p;
        struct shell_script *out;
        unsigned depth;
        struct heredoc heredocs[HEREDOCS_MAX]; /* whose bodies follow the next newline */
        size_t heredoc_count;
        struct error *err;
};

/* A word being read. */
struct word {
        struct buf text;
        bool literal, quoted;
};

static int parse_list(struct parser *s, char until);
static int read_dollar(struct parser *s, struct word *w);
static int read_backquotes(struct parser *s, struct word *w);

static int fail(struct parser *s, const char *what)
{
        return error_set(s->err, ERR_INVALID, "%s", what);
}

/*
 * Bash joins continued lines before it looks for "$(", "((", "<<-" and the like. What may be the
 * beginning of one of them is not understood with a continued line behind it.
 */
static int fail_if_continued(struct parser *s)
{
        return s->p[0] == '\\' && s->p[1] == '\n' ? fail(s, "a line is continued in an operator")
                                                  : 0;
}

static bool ends_word(char c)
{
        return c == '\0' || strchr(" \t\n;&|<>()", c) != NULL;
}

/* ---- growing arrays in the arena ---- */

/* Room for one more in an array that doubles; the old one stays in the arena. */
static void *grow(struct arena *a, void *items, size_t count, size_t size)
{
        void *more;

        if (count > 0 && (count & (count - 1)) != 0)
                return items;
        more = arena_alloc(a, (count ? count * 2 : 1) * size);
        if (count > 0)
                memcpy(more, items, count * size);
        return more;
}

static void add_word(struct parser *s, struct shell_command *c, const struct word *w)
{
        c->words = grow(&s->out->arena, c->words, c->count, sizeof(*c->words));
        c->words[c->count++] =
                (struct shell_word){ arena_strdup(&s->out->arena, w->text.data), w->literal };
}

static void add_assignment(struct parser *s, struct shell_command *c, const struct word *w)
{
        c->assignments =
                grow(&s->out->arena, c->assignments, c->assignment_count, sizeof(*c->assignments));
        c->assignments[c->assignment_count++] = arena_strdup(&s->out->arena, w->text.data);
}

static void add_path(struct parser *s, struct shell_command *c, const struct word *w, bool writes)
{
        c->paths = grow(&s->out->arena, c->paths, c->path_count, sizeof(*c->paths));
        c->paths[c->path_count++] = (struct shell_path){ arena_strdup(&s->out->arena, w->text.data),
                                                         w->literal, writes };
}

static int add_command(struct parser *s, const struct shell_command *c)
{
        struct shell_script *out = s->out;

        if (c->count == 0 && c->assignment_count == 0 && c->path_count == 0)
                return 0;
        if (out->count == SHELL_COMMANDS_MAX)
                return error_set(s->err, ERR_LIMIT, "it consists of more than %d commands",
                                 SHELL_COMMANDS_MAX);
        out->commands = grow(&out->arena, out->commands, out->count, sizeof(*out->commands));
        out->commands[out->count++] = *c;
        return 0;
}

/* ---- nested scripts ---- */

/* Parses a text that is not part of the input as it stands. */
static int parse_text(struct parser *s, const char *text)
{
        struct parser inner = { .p = text, .out = s->out, .depth = s->depth + 1, .err = s->err };

        return parse_list(&inner, '\0');
}

/* After the opening parenthesis, to the closing one. */
static int parse_nested(struct parser *s)
{
        int rc;

        if (s->heredoc_count > 0)
                return fail(s, "a here-document is followed by a nested command in its line");
        if (fail_if_continued(s) < 0)
                return -1;
        s->depth++;
        rc = parse_list(s, ')');
        s->depth--;
        if (rc == 0 && s->heredoc_count > 0)
                return fail(s, "a here-document does not end within its parentheses");
        return rc;
}

static int read_substitution(struct parser *s, struct word *w)
{
        const char *start = s->p;

        s->p += 2; /* "$(", "<(" or ">(" */
        if (parse_nested(s) < 0)
                return -1;
        /* read_word goes on with "$(a)#b"; elsewhere "#b" would be taken for a comment */
        if (*start != '$' && !ends_word(*s->p))
                return fail(s, "a word goes on after a substitution");
        buf_add(&w->text, start, (size_t)(s->p - start));
        w->literal = false;
        return 0;
}

static int read_backquotes(struct parser *s, struct word *w)
{
        const char *start = s->p++;
        struct buf text;
        int rc;

        buf_init(&text, 0);
        while (*s->p && *s->p != '`') {
                if (*s->p == '\\' && s->p[1] && strchr("`\\$", s->p[1]))
                        s->p++;
                else if (*s->p == '\\' && s->p[1] == '"')
                        break; /* it depends on the quotes around */
                buf_addch(&text, *s->p++);
        }
        rc = *s->p == '`' ? parse_text(s, text.data) : fail(s, "a backquote is not understood");
        buf_release(&text);
        if (rc < 0)
                return -1;
        s->p++;
        buf_add(&w->text, start, (size_t)(s->p - start));
        w->literal = false;
        return 0;
}

/* ---- quotes and expansions ---- */

static int read_single_quotes(struct parser *s, struct word *w)
{
        const char *end = strchr(++s->p, '\'');

        if (!end)
                return fail(s, "a single quote is not closed");
        buf_add(&w->text, s->p, (size_t)(end - s->p));
        s->p = end + 1;
        w->quoted = true;
        return 0;
}

static int read_double_quotes(struct parser *s, struct word *w)
{
        s->p++;
        w->quoted = true;
        while (*s->p && *s->p != '"') {
                if (*s->p == '\\' && s->p[1] == '\n') {
                        s->p += 2;
                } else if (*s->p == '\\' && s->p[1] && strchr("$`\"\\", s->p[1])) {
                        buf_addch(&w->text, s->p[1]);
                        s->p += 2;
                } else if (*s->p == '$') {
                        if (read_dollar(s, w) < 0)
                                return -1;
                } else if (*s->p == '`') {
                        if (read_backquotes(s, w) < 0)
                                return -1;
                } else {
                        buf_addch(&w->text, *s->p++);
                }
        }
        if (*s->p != '"')
                return fail(s, "a double quote is not closed");
        s->p++;
        return 0;
}

/* $'...': the escapes are not decoded, so it is never literal. */
static int read_ansi_quotes(struct parser *s, struct word *w)
{
        const char *start = s->p;

        for (s->p += 2; *s->p && *s->p != '\''; s->p++) {
                if (*s->p == '\\' && s->p[1])
                        s->p++;
        }
        if (*s->p != '\'')
                return fail(s, "a quote $' is not closed");
        s->p++;
        buf_add(&w->text, start, (size_t)(s->p - start));
        w->literal = false;
        w->quoted = true;
        return 0;
}

/* Arithmetic evaluates variables, and those may hold commands: only numbers are understood. */
static int read_arithmetic(struct parser *s, struct word *w)
{
        const char *start = s->p;
        unsigned open = 2;

        for (s->p += 3; *s->p && open > 0; s->p++) {
                if (*s->p == '(')
                        open++;
                else if (*s->p == ')')
                        open--;
                else if (!isdigit((unsigned char)*s->p) && !strchr(" \t+-*/%<>=!&|^~?:,", *s->p))
                        return fail(s, "it calculates with variables");
        }
        if (open > 0 || s->p[-2] != ')')
                return fail(s, "a calculation is not closed");
        buf_add(&w->text, start, (size_t)(s->p - start));
        w->literal = false;
        return 0;
}

/*
 * ${...}. Subscripts are arithmetic, and "@P" expands like a prompt, so both may run commands;
 * indirection reads a name from a variable. What quotes mean in it depends on those around it.
 */
static int read_braces(struct parser *s, struct word *w)
{
        const char *start = s->p;
        struct word inner = { .literal = true };
        int rc = 0;

        buf_init(&inner.text, 0);
        s->p += 2;
        if (++s->depth > SHELL_DEPTH_MAX)
                rc = fail(s, "its braces are nested too deeply");
        else if (*s->p == '!')
                rc = fail(s, "a variable names another one");
        while (rc == 0 && *s->p && *s->p != '}') {
                if (*s->p == '\'' || *s->p == '"') {
                        rc = fail(s, "quotes in braces");
                } else if (*s->p == '$') {
                        rc = read_dollar(s, &inner);
                } else if (*s->p == '`') {
                        rc = read_backquotes(s, &inner);
                } else if (*s->p == '[' && strncmp(s->p, "[@]", 3) != 0 &&
                           strncmp(s->p, "[*]", 3) != 0) {
                        rc = fail(s, "it calculates a subscript");
                } else if (*s->p == '@' && isalpha((unsigned char)s->p[1])) {
                        rc = fail(s, "a variable is transformed");
                } else if (*s->p == '\\' && s->p[1]) {
                        rc = fail_if_continued(s);
                        s->p += 2;
                } else {
                        s->p++;
                }
        }
        if (rc == 0 && *s->p != '}')
                rc = fail(s, "a brace ${ is not closed");
        buf_release(&inner.text);
        s->depth--;
        if (rc < 0)
                return -1;
        s->p++;
        buf_add(&w->text, start, (size_t)(s->p - start));
        w->literal = false;
        return 0;
}

static int read_dollar(struct parser *s, struct word *w)
{
        char next = s->p[1];

        if (strncmp(s->p, "$((", 3) == 0)
                return read_arithmetic(s, w);
        if (next == '(')
                return read_substitution(s, w);
        if (next == '{')
                return read_braces(s, w);
        if (next == '[') /* the old form of $(( */
                return fail(s, "it calculates");
        buf_addch(&w->text, *s->p++);
        if (fail_if_continued(s) < 0)
                return -1;
        if (isalnum((unsigned char)next) || (next && strchr("_@*#?-$!", next))) {
                buf_addch(&w->text, *s->p++);
                while (isalpha((unsigned char)next) || next == '_') {
                        next = *s->p;
                        if (!isalnum((unsigned char)next) && next != '_')
                                break;
                        buf_addch(&w->text, *s->p++);
                        next = 'a';
                }
                w->literal = false;
        }
        return 0;
}

/* ---- words ---- */

static int read_word(struct parser *s, struct word *w)
{
        buf_clear(&w->text);
        w->literal = true;
        w->quoted = false;
        while (!ends_word(*s->p)) {
                int rc = 0;

                if (s->p[0] == '\\' && s->p[1] == '\n') {
                        s->p += 2;
                } else if (*s->p == '\\') {
                        if (!s->p[1])
                                return fail(s, "it ends with a backslash");
                        buf_addch(&w->text, s->p[1]);
                        w->quoted = true;
                        s->p += 2;
                } else if (*s->p == '\'') {
                        rc = read_single_quotes(s, w);
                } else if (*s->p == '"') {
                        rc = read_double_quotes(s, w);
                } else if (s->p[0] == '$' && s->p[1] == '\'') {
                        rc = read_ansi_quotes(s, w);
                } else if (s->p[0] == '$' && s->p[1] == '"') {
                        s->p++;
                        rc = read_double_quotes(s, w);
                        w->literal = false;
                } else if (*s->p == '$') {
                        rc = read_dollar(s, w);
                } else if (*s->p == '`') {
                        rc = read_backquotes(s, w);
                } else {
                        /* globs, braces and a home directory become something else */
                        if (strchr("*?[{", *s->p) || (*s->p == '~' && w->text.len == 0))
                                w->literal = false;
                        buf_addch(&w->text, *s->p++);
                }
                if (rc < 0)
                        return -1;
        }
        if ((*s->p == '<' || *s->p == '>') && s->p[1] == '(') /* "cat<(a)" does not run cat */
                return fail(s, "a word goes on with a substitution");
        if (!w->quoted && (strcmp(w->text.data, "{") == 0 || strcmp(w->text.data, "[") == 0 ||
                           strcmp(w->text.data, "[[") == 0))
                w->literal = true; /* alone they are what they are */
        return 0;
}

static void skip_blanks(struct parser *s)
{
        for (;;) {
                s->p += strspn(s->p, " \t");
                if (s->p[0] != '\\' || s->p[1] != '\n')
                        return;
                s->p += 2;
        }
}

/* ---- here-documents ---- */

/* Text that expands as in double quotes. */
static int parse_expansions(struct parser *s, const char *text)
{
        struct parser inner = { .p = text, .out = s->out, .depth = s->depth + 1, .err = s->err };
        struct word w = { .literal = true };
        int rc = 0;

        buf_init(&w.text, 0);
        while (rc == 0 && *inner.p) {
                if (inner.p[0] == '\\' && inner.p[1])
                        inner.p += 2;
                else if (*inner.p == '$')
                        rc = read_dollar(&inner, &w);
                else if (*inner.p == '`')
                        rc = read_backquotes(&inner, &w);
                else
                        inner.p++;
        }
        buf_release(&w.text);
        return rc;
}

static int read_heredoc(struct parser *s, const struct heredoc *h)
{
        struct buf body;
        int rc = 1;

        buf_init(&body, 0);
        while (rc == 1) {
                const char *line = s->p;
                size_t n = strcspn(line, "\n");
                size_t tabs = h->strips_tabs ? strspn(line, "\t") : 0;

                if (tabs > n)
                        tabs = n;
                if (n - tabs == strlen(h->end) && strncmp(line + tabs, h->end, n - tabs) == 0) {
                        s->p = line + n + (line[n] == '\n');
                        rc = 0;
                } else if (line[n] == '\0') {
                        rc = fail(s, "a here-document is not closed");
                } else if (h->expands && n > 0 && line[n - 1] == '\\') {
                        rc = fail(s, "a line of a here-document is continued");
                } else {
                        buf_add(&body, line, n + 1);
                        s->p = line + n + 1;
                }
        }
        if (rc == 0 && h->expands)
                rc = parse_expansions(s, body.data);
        buf_release(&body);
        return rc;
}

static int read_newline(struct parser *s)
{
        size_t count = s->heredoc_count;

        s->p++;
        s->heredoc_count = 0;
        for (size_t i = 0; i < count; i++) {
                if (read_heredoc(s, &s->heredocs[i]) < 0)
                        return -1;
        }
        return 0;
}

static int begin_heredoc(struct parser *s, bool strips_tabs)
{
        struct word w = { 0 };
        int rc;

        buf_init(&w.text, 0);
        skip_blanks(s);
        rc = read_word(s, &w);
        if (rc == 0 && (w.text.len == 0 || !w.literal || strchr(w.text.data, '\n') ||
                        s->heredoc_count == HEREDOCS_MAX))
                rc = fail(s, "a here-document has no plain end mark");
        if (rc == 0)
                s->heredocs[s->heredoc_count++] =
                        (struct heredoc){ arena_strdup(&s->out->arena, w.text.data), strips_tabs,
                                          !w.quoted };
        buf_release(&w.text);
        return rc;
}

/* ---- redirections ---- */

static const struct redirection {
        const char *op;
        enum { FILE_READ, FILE_WRITE, DUP, HEREDOC, HEREDOC_TABS, HERE_STRING } kind;
} redirections[] = {
        /* longer ones first */
        { "&>>", FILE_WRITE }, { "<<<", HERE_STRING }, { "<<-", HEREDOC_TABS },
        { "&>", FILE_WRITE },  { ">>", FILE_WRITE },   { ">|", FILE_WRITE },
        { ">&", DUP },         { "<<", HEREDOC },      { "<>", FILE_WRITE },
        { "<&", DUP },         { ">", FILE_WRITE },    { "<", FILE_READ },
};

/* NULL: none begins here. */
static const struct redirection *find_redirection(const char *p)
{
        p += strspn(p, "0123456789");
        for (size_t i = 0; i < COUNT(redirections); i++) {
                if (strncmp(p, redirections[i].op, strlen(redirections[i].op)) == 0)
                        return &redirections[i];
        }
        return NULL;
}

/* "2", "-" or "2-": no file. */
static bool is_descriptor(const struct word *w)
{
        size_t digits = strspn(w->text.data, "0123456789");

        return w->literal && w->text.len > 0 &&
               (w->text.data[digits] == '\0' ||
                (w->text.data[digits] == '-' && w->text.data[digits + 1] == '\0'));
}

static int parse_redirection(struct parser *s, struct shell_command *c, const struct redirection *r)
{
        struct word w = { 0 };
        int rc;

        s->p += strspn(s->p, "0123456789");
        s->p += strlen(r->op);
        if (fail_if_continued(s) < 0)
                return -1;
        if (r->kind == HEREDOC || r->kind == HEREDOC_TABS)
                return begin_heredoc(s, r->kind == HEREDOC_TABS);
        skip_blanks(s);
        buf_init(&w.text, 0);
        if ((*s->p == '<' || *s->p == '>') && s->p[1] == '(') {
                rc = read_substitution(s, &w);
                buf_release(&w.text);
                return rc;
        }
        rc = read_word(s, &w);
        if (rc == 0 && w.text.len == 0 && !w.quoted)
                rc = fail(s, "a redirection names no file");
        if (rc == 0 && r->kind != HERE_STRING && !(r->kind == DUP && is_descriptor(&w)))
                add_path(s, c, &w, r->kind != FILE_READ);
        buf_release(&w.text);
        return rc;
}

/* ---- commands ---- */

/* Reserved words after which a command may follow, and those after which none does. */
static const char *const openers[] = { "if", "then", "else", "elif", "while", "until",
                                       "do", "{",    "!",    "time", NULL };
static const char *const closers[] = { "fi", "done", "}", NULL };
static const char *const unknown[] = { "case", "esac", "select", "function", "coproc", "((", NULL };

static bool is_one_of(const char *word, const char *const *list)
{
        for (; *list; list++) {
                if (strcmp(*list, word) == 0)
                        return true;
        }
        return false;
}

static bool is_assignment(const struct word *w)
{
        const char *p = w->text.data;

        if (!isalpha((unsigned char)*p) && *p != '_')
                return false;
        while (isalnum((unsigned char)*p) || *p == '_')
                p++;
        return *p == '=' || (*p == '+' && p[1] == '=');
}

/* "for x in a b": the words are data. */
static int parse_for(struct parser *s, struct word *w)
{
        skip_blanks(s);
        if (read_word(s, w) < 0)
                return -1;
        if (w->text.len == 0)
                return fail(s, "a loop names no variable");
        skip_blanks(s);
        if (!ends_word(*s->p)) {
                if (read_word(s, w) < 0)
                        return -1;
                if (strcmp(w->text.data, "do") == 0) /* over the arguments */
                        return 0;
                if (strcmp(w->text.data, "in") != 0)
                        return fail(s, "a loop over something unknown");
        }
        for (;;) {
                skip_blanks(s);
                if (*s->p == '\0' || *s->p == ';' || *s->p == '\n')
                        return 0;
                if (ends_word(*s->p) || *s->p == '#')
                        return fail(s, "a loop over something unknown");
                if (read_word(s, w) < 0)
                        return -1;
        }
}

/* "[[ ... ]]": no command, but numbers in it are arithmetic. */
static int parse_test(struct parser *s, struct word *w)
{
        static const char *const arithmetic[] = { "-eq", "-ne", "-lt", "-le", "-gt",
                                                  "-ge", "-v",  "-R",  NULL };

        for (;;) {
                skip_blanks(s);
                if (*s->p == '\0' || *s->p == '\n' || *s->p == ';' || *s->p == '#')
                        return fail(s, "a test [[ is not closed");
                if (ends_word(*s->p)) {
                        if ((*s->p == '<' || *s->p == '>') && s->p[1] == '(')
                                return fail(s, "a test holds a command");
                        s->p++;
                        continue;
                }
                if (read_word(s, w) < 0)
                        return -1;
                if (!w->quoted && strcmp(w->text.data, "]]") == 0)
                        return 0;
                if (is_one_of(w->text.data, arithmetic))
                        return fail(s, "a test calculates");
        }
}

/* What a word means at the beginning of a command. 1: it is part of it; 0: dealt with; -1. */
static int parse_first(struct parser *s, struct shell_command *c, struct word *w, bool *compound)
{
        if (w->quoted || !w->literal || c->assignment_count > 0)
                return 1;
        if (is_one_of(w->text.data, openers)) {
                skip_blanks(s);
                if (strcmp(w->text.data, "time") == 0 && *s->p == '-')
                        return fail(s, "an option of time");
                return 0;
        }
        if (is_one_of(w->text.data, unknown))
                return fail(s, "it uses case, select, function or coproc");
        if (is_one_of(w->text.data, closers)) {
                *compound = true;
                return 0;
        }
        if (strcmp(w->text.data, "for") == 0)
                return parse_for(s, w);
        if (strcmp(w->text.data, "[[") == 0) {
                *compound = true;
                return parse_test(s, w);
        }
        return 1;
}

static int parse_subshell(struct parser *s, const struct shell_command *c, bool *compound)
{
        if (c->count > 0 || c->assignment_count > 0 || *compound)
                return fail(s, "a parenthesis follows a word");
        if (s->p[1] == '(')
                return fail(s, "it calculates");
        s->p++;
        *compound = true;
        return parse_nested(s);
}

static int parse_word(struct parser *s, struct shell_command *c, struct word *w, bool *compound)
{
        int rc = read_word(s, w);

        if (rc < 0)
                return -1;
        if (*compound)
                return fail(s, "a word follows a compound command");
        if (c->count == 0) {
                /* an array would follow "=" as a parenthesis */
                if (is_assignment(w)) {
                        add_assignment(s, c, w);
                        return 0;
                }
                rc = parse_first(s, c, w, compound);
        } else {
                rc = 1;
        }
        if (rc == 1)
                add_word(s, c, w);
        return rc < 0 ? -1 : 0;
}

static int parse_command(struct parser *s)
{
        struct shell_command c = { 0 };
        bool compound = false;
        struct word w = { 0 };
        int rc = 0;

        buf_init(&w.text, 0);
        while (rc == 0) {
                const struct redirection *r;

                skip_blanks(s);
                r = find_redirection(s->p);
                if ((*s->p == '<' || *s->p == '>') && s->p[1] == '(') {
                        buf_clear(&w.text);
                        rc = read_substitution(s, &w);
                        if (rc == 0)
                                add_word(s, &c, &w);
                } else if (r) {
                        rc = parse_redirection(s, &c, r);
                } else if (*s->p == '(') {
                        rc = parse_subshell(s, &c, &compound);
                } else if (*s->p == '#') {
                        s->p += strcspn(s->p, "\n");
                } else if (ends_word(*s->p)) {
                        break;
                } else {
                        rc = parse_word(s, &c, &w, &compound);
                }
        }
        buf_release(&w.text);
        return rc < 0 ? -1 : add_command(s, &c);
}

/* Between commands. 1: there may be another; 0: the end; -1. */
static int parse_separator(struct parser *s, char until)
{
        static const char *const separators[] = { "&&", "||", "|&", "|", "&", ";", NULL };

        if (*s->p == '\0')
                return until == '\0' ? 0 : fail(s, "a parenthesis is not closed");
        if (*s->p == '\n')
                return read_newline(s) < 0 ? -1 : 1;
        if (*s->p == ')') {
                if (until != ')')
                        return fail(s, "a parenthesis is closed that was not opened");
                s->p++;
                return 0;
        }
        if (strncmp(s->p, ";;", 2) == 0 || strncmp(s->p, ";&", 2) == 0)
                return fail(s, "it uses case");
        for (const char *const *op = separators; *op; op++) {
                if (strncmp(s->p, *op, strlen(*op)) == 0) {
                        s->p += strlen(*op);
                        return 1;
                }
        }
        return fail(s, "an operator is not understood");
}

static int parse_list(struct parser *s, char until)
{
        int rc = 1;

        if (s->depth > SHELL_DEPTH_MAX)
                return error_set(s->err, ERR_LIMIT, "it is nested more than %d times",
                                 SHELL_DEPTH_MAX);
        while (rc == 1) {
                if (parse_command(s) < 0)
                        return -1;
                rc = parse_separator(s, until);
        }
        if (rc == 0 && until == '\0' && s->heredoc_count > 0)
                return fail(s, "a here-document is missing");
        return rc;
}

int shell_split(struct shell_script *out, const char *text, struct error *err)
{
        struct parser s = { .p = text, .out = out, .err = err };

        *out = (struct shell_script){ 0 };
        arena_init(&out->arena);
        if (strlen(text) > SHELL_BYTES_MAX)
                return error_set(err, ERR_LIMIT, "it is longer than %d bytes", SHELL_BYTES_MAX);
        return parse_list(&s, '\0');
}

void shell_release(struct shell_script *s)
{
        arena_release(&s->arena);
        *s = (struct shell_script){ 0 };
}
