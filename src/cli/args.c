#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/settings.h"
#include "cli/command.h"
#include "net/address.h"

#define NAMES_MAX (COMMAND_MAX_FLAGS + 8)
#define FILE_MAX  ((size_t)1024 * 1024)

/* ---- parsing ---- */

struct args_parser {
        struct args *args;
        int argc, at;
        char **argv;
};

static const struct flag *find_flag(const struct flag *table, const char *name, size_t n)
{
        for (; table && table->name; table++) {
                if (strlen(table->name) == n && strncmp(table->name, name, n) == 0)
                        return table;
        }
        return NULL;
}

static const struct flag *find_letter(const struct flag *table, char letter)
{
        for (; table && table->name; table++) {
                if (table->letter == letter)
                        return table;
        }
        return NULL;
}

static const char *nearest_flag(const struct cli_command *c, const char *name, size_t n)
{
        const char *names[NAMES_MAX + 1];
        char *word = mem_strndup(name, n);
        size_t count = 0;
        const char *near;

        for (const struct flag *f = c->flags; f && f->name; f++)
                names[count++] = f->name;
        for (const struct flag *f = common_flags; f->name; f++)
                names[count++] = f->name;
        names[count] = NULL;
        near = settings_nearest(word, names);
        free(word);
        return near;
}

/* given: after '=' or the letter; NULL: the next argument, if needed. */
static int set_flag(struct args_parser *p, const struct flag *f, bool common, const char *given)
{
        struct args *a = p->args;

        if (f->value && !given) {
                if (p->at + 1 >= p->argc) {
                        command_usage_error(a->command, "--%s needs %s", f->name, f->value);
                        return -1;
                }
                given = p->argv[++p->at];
        } else if (!f->value && given) {
                command_usage_error(a->command, "--%s takes no value", f->name);
                return -1;
        }
        if (!common) {
                a->values[f - a->command->flags] = given ? given : "";
        } else if (strcmp(f->name, "json") == 0) {
                a->json = true;
        } else if (strcmp(f->name, "help") == 0) {
                a->wants_help = true;
        } else {
                a->dir = given;
                a->dir_given = true;
        }
        return 0;
}

static int parse_long(struct args_parser *p, const char *word)
{
        const struct cli_command *c = p->args->command;
        size_t n = strcspn(word, "=");
        const char *given = word[n] == '=' ? word + n + 1 : NULL;
        const struct flag *f = find_flag(c->flags, word, n);
        const char *near;

        if (f)
                return set_flag(p, f, false, given);
        f = find_flag(common_flags, word, n);
        if (f)
                return set_flag(p, f, true, given);
        near = nearest_flag(c, word, n);
        if (near)
                command_usage_error(c, "unknown flag '--%.*s' (did you mean '--%s'?)", (int)n, word,
                                    near);
        else
                command_usage_error(c, "unknown flag '--%.*s'", (int)n, word);
        return -1;
}

/* "-C dir" or "-Cdir". */
static int parse_short(struct args_parser *p, const char *word)
{
        const struct cli_command *c = p->args->command;
        const struct flag *own = find_letter(c->flags, word[0]);
        const struct flag *f = own ? own : find_letter(common_flags, word[0]);

        if (f)
                return set_flag(p, f, !own, word[1] ? word + 1 : NULL);
        command_usage_error(c, "unknown flag '-%s'", word);
        return -1;
}

int args_parse(struct args *a, const struct cli_command *c, const struct cli_env *env, int argc,
               char **argv)
{
        struct args_parser p = { a, argc, 0, argv };
        bool only_operands = false;

        *a = (struct args){ .command = c, .env = env, .dir = DEFAULT_DIR };
        a->operands = mem_array((size_t)argc + 1, sizeof(*a->operands));
        for (; p.at < argc; p.at++) {
                const char *word = argv[p.at];
                int rc = 0;

                /* no flag begins with a digit, but ids of groups on Telegram are negative */
                if (only_operands || word[0] != '-' || word[1] == '\0' ||
                    isdigit((unsigned char)word[1]))
                        a->operands[a->operand_count++] = word;
                else if (strcmp(word, "--") == 0)
                        only_operands = true;
                else
                        rc = word[1] == '-' ? parse_long(&p, word + 2) : parse_short(&p, word + 1);
                if (rc < 0)
                        return -1;
        }
        return 0;
}

void args_release(struct args *a)
{
        free(a->operands);
        a->operands = NULL;
}

/* ---- access ---- */

const char *args_value(const struct args *a, const char *flag)
{
        for (size_t i = 0; a->command->flags && a->command->flags[i].name; i++) {
                if (strcmp(a->command->flags[i].name, flag) == 0)
                        return a->values[i];
        }
        return NULL;
}

bool args_has(const struct args *a, const char *flag)
{
        return args_value(a, flag) != NULL;
}

int args_number(const struct args *a, const char *flag, long min, long max, long *out)
{
        const char *text = args_value(a, flag);
        char *end;
        long n;

        if (!text)
                return 0;
        errno = 0;
        n = strtol(text, &end, 10);
        if (errno || end == text || *end || n < min || n > max) {
                command_usage_error(a->command, "--%s: '%s' is not a number from %ld to %ld", flag,
                                    text, min, max);
                return -1;
        }
        *out = n;
        return 0;
}

int args_time(const struct args *a, const char *flag, enum args_span span, char *iso)
{
        const char *text = args_value(a, flag);
        int64_t ms, span_ms;

        iso[0] = '\0';
        if (!text)
                return 0;
        if (clock_parse_span(text, &span_ms) == 0) {
                ms = clock_wall_ms() + (span == ARGS_AGO ? -span_ms : span_ms);
        } else if (clock_parse_iso(text, &ms) < 0) {
                command_usage_error(a->command,
                                    "--%s: '%s' is neither a time such as 2026-11-15T18:00:00Z "
                                    "nor a span such as 30m, 2h or 1d",
                                    flag, text);
                return -1;
        }
        if (span == ARGS_AHEAD && ms <= clock_wall_ms()) {
                command_usage_error(a->command, "--%s: '%s' lies in the past", flag, text);
                return -1;
        }
        clock_iso(ms, iso);
        return 1;
}

static int index_of(const char *word, const char *const *words)
{
        for (int i = 0; words[i]; i++) {
                if (strcmp(word, words[i]) == 0)
                        return i;
        }
        return -1;
}

static void list_words(struct buf *out, const char *const *words)
{
        for (int i = 0; words[i]; i++)
                buf_addf(out, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

int args_choice(const struct args *a, const char *flag, const char *const *choices, int fallback)
{
        const char *text = args_value(a, flag);
        struct buf list;
        int at;

        if (!text)
                return fallback;
        at = index_of(text, choices);
        if (at >= 0)
                return at;
        buf_init(&list, 0);
        list_words(&list, choices);
        command_usage_error(a->command, "--%s: '%s' must be %s", flag, text, list.data);
        buf_release(&list);
        return -1;
}

const char *args_operand(struct args *a, const char *what)
{
        if (a->next < a->operand_count)
                return a->operands[a->next++];
        command_usage_error(a->command, "%s is missing", what);
        return NULL;
}

const char *args_action(struct args *a, const char *const *actions, const char *fallback)
{
        const char *word = a->next < a->operand_count ? a->operands[a->next] : NULL;
        struct buf list;

        if (word && index_of(word, actions) >= 0) {
                a->next++;
                return word;
        }
        /* a similar word is a typing mistake, not a directory */
        if (word && settings_nearest(word, actions)) {
                command_usage_error(a->command, "unknown action '%s' (did you mean '%s'?)", word,
                                    settings_nearest(word, actions));
                return NULL;
        }
        if (fallback)
                return fallback;
        buf_init(&list, 0);
        list_words(&list, actions);
        if (word)
                command_usage_error(a->command, "unknown action '%s'; it must be %s", word,
                                    list.data);
        else
                command_usage_error(a->command, "an action is missing: %s", list.data);
        buf_release(&list);
        return NULL;
}

int args_end(struct args *a)
{
        if (a->next < a->operand_count && !a->dir_given)
                a->dir = a->operands[a->next++];
        if (a->dir[0] == '\0') {
                command_usage_error(a->command, "the name of the data directory is empty");
                return -1;
        }
        if (a->next == a->operand_count)
                return 0;
        command_usage_error(a->command, "unexpected operand '%s'", a->operands[a->next]);
        return -1;
}

const char *args_channel(const struct args *a, const char *chat)
{
        const char *slash = strchr(chat, '/');

        if (slash && slash > chat && slash[1] != '\0')
                return slash + 1;
        command_usage_error(a->command, "'%s' must be ADAPTER/CHANNEL, such as tg/12345", chat);
        return NULL;
}

int args_listen(const struct args *a, const char **out)
{
        struct error err = { 0 };

        *out = args_value(a, "listen");
        if (!*out || address_split(*out, NULL, NULL, &err) == 0)
                return 0;
        command_usage_error(a->command, "--listen: %s", err.text);
        return -1;
}

char *args_file(const char *path, struct error *err)
{
        struct buf text;
        int rc;

        buf_init(&text, 0);
        if (strcmp(path, "-") == 0)
                rc = file_read_fd(STDIN_FILENO, path, FILE_MAX, &text, err);
        else
                rc = file_read(path, FILE_MAX, &text, err);
        if (rc == 0)
                return buf_take(&text);
        buf_release(&text);
        return NULL;
}
