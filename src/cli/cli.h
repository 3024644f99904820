/*
 * cli: the command line. One file per command, one command table (commands.c) from which help
 * comes.
 *
 * Exit codes: 0 fine, 1 it failed, 64 wrong usage, 69 no daemon runs, 78 the configuration is
 * wrong.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "base/log.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 64, CLI_NO_DAEMON = 69, CLI_CONFIG = 78 };

struct daemon_options {
        const char *dir;    /* the data directory */
        const char *listen; /* instead of http.listen; NULL: as configured */
        bool check_only;    /* validate the configuration and end */
        bool parent_watch;  /* end when the parent process ends */
        enum log_format log_format;
        enum log_level log_level;
};

/* What only main.c can give: it alone knows everybody. */
struct cli_env {
        int (*run_daemon)(const struct daemon_options *options); /* returns an exit code */
};

int cli_main(int argc, char **argv, const struct cli_env *env);

#endif
