/* From the words of the command line to a command. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/settings.h"
#include "cli/command.h"

const struct command *command_find(const char *name)
{
        for (const struct command *c = commands; c->name; c++) {
                if (strcmp(c->name, name) == 0)
                        return c;
        }
        return NULL;
}

const char *command_nearest(const char *word)
{
        const char *names[32];
        size_t n = 0;

        for (const struct command *c = commands;
             c->name && n + 1 < sizeof(names) / sizeof(names[0]); c++)
                names[n++] = c->name;
        names[n] = NULL;
        return settings_nearest(word, names);
}

static int show_help(const struct command *c)
{
        struct buf text;

        buf_init(&text, 0);
        if (c)
                help_write(c, &text);
        else
                help_write_overview(&text);
        fputs(text.data, stdout);
        buf_release(&text);
        return CLI_OK;
}

static int run(const struct command *c, const struct cli_env *env, int argc, char **argv)
{
        struct args a;
        int rc;

        if (args_parse(&a, c, env, argc, argv) < 0)
                rc = CLI_USAGE;
        else if (a.wants_help)
                rc = show_help(c);
        else
                rc = c->run(&a);
        args_release(&a);
        if (fflush(stdout) != 0 && rc == CLI_OK)
                rc = CLI_FAILED;
        return rc;
}

/* `dragoman DIR`: a place that is there, or one that is plainly written as a path. */
static bool is_place(const char *word)
{
        struct stat st;

        return strchr(word, '/') || (stat(word, &st) == 0 && S_ISDIR(st.st_mode));
}

static int unknown_command(const char *word)
{
        const char *near = command_nearest(word);

        if (near)
                return command_usage_error(NULL, "unknown command '%s' (did you mean '%s'?)", word,
                                           near);
        if (word[0] == '-')
                return command_usage_error(NULL, "unknown flag '%s'; flags stand behind a command",
                                           word);
        return command_usage_error(
                NULL,
                "unknown command '%s'; to start on a new directory of that name: dragoman run %s",
                word, word);
}

int cli_main(int argc, char **argv, const struct cli_env *env)
{
        const char *word = argc > 1 ? argv[1] : NULL;
        const struct command *c;

        if (!word) {
                show_help(NULL);
                return CLI_USAGE;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
                word = "help";
        else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
                word = "version";
        c = command_find(word);
        if (c)
                return run(c, env, argc - 2, argv + 2);
        if (is_place(word))
                return run(command_find("run"), env, argc - 1, argv + 1);
        return unknown_command(word);
}
