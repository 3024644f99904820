#include "cli/command.h"

/* in the order of enum log_format and enum log_level */
static const char *const formats[] = { "text", "json", NULL };
static const char *const levels[] = { "debug", "info", "warn", "error", NULL };

int run_command(struct args *a)
{
        struct daemon_options options = { .parent_watch = args_has(a, "parent-watch") };
        int format = args_choice(a, "log-format", formats, a->json ? LOG_JSON : LOG_TEXT);
        int level = args_choice(a, "log-level", levels, LOG_INFO);

        if (format < 0 || level < 0 || args_listen(a, &options.listen) < 0 || args_end(a) < 0)
                return CLI_USAGE;
        if (args_has(a, "check"))
                return config_check(a);
        options.dir = a->dir;
        options.log_format = (enum log_format)format;
        options.log_level = (enum log_level)level;
        return a->env->run_daemon(&options);
}
