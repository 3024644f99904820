#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"

static int show_help(const struct cli_command *c)
{
        struct buf text;

        buf_init(&text, 0);
        help_write(c, &text);
        fputs(text.data, stdout);
        buf_release(&text);
        return CLI_OK;
}

static int run(const struct cli_command *c, const struct cli_env *env, int argc, char **argv)
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

int cli_main(int argc, char **argv, const struct cli_env *env)
{
        const char *word = argc > 1 ? argv[1] : NULL, *near;
        const struct cli_command *c;
        struct stat st;

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
        /* `dragoman DIR`: an existing directory, or a word with a slash */
        if (strchr(word, '/') || (stat(word, &st) == 0 && S_ISDIR(st.st_mode)))
                return run(command_find("run"), env, argc - 1, argv + 1);
        near = command_nearest(word);
        if (near)
                return command_usage_error(NULL, "unknown command '%s' (did you mean '%s'?)", word,
                                           near);
        if (word[0] == '-')
                return command_usage_error(NULL, "unknown flag '%s'; flags follow a command", word);
        return command_usage_error(NULL,
                                   "unknown command '%s'; to start on a new directory of that "
                                   "name: dragoman run %s",
                                   word, word);
}
