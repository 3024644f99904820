/*
 * cli: the command line: one file per command, and one table (commands.c).
 *
 * Exit codes: 0 success, 1 failure, 64 wrong usage, 69 no daemon, 78 wrong configuration.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "base/log.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 64, CLI_NO_DAEMON = 69, CLI_CONFIG = 78 };

struct daemon_options {
        const char *dir;    /* the data directory */
        const char *listen; /* overrides http.listen; NULL: as configured */
        bool parent_watch;  /* exit when the parent process does */
        enum log_format log_format;
        enum log_level log_level;
};

/* From main.c, so that the command line does not depend on the daemon. */
struct cli_env {
        int (*run_daemon)(const struct daemon_options *options); /* returns an exit code */
};

int cli_main(int argc, char **argv, const struct cli_env *env);

#endif
