/*
 * daemon: opens all parts of the program, connects them, runs the loop, and closes them in reverse
 * order.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "cli/cli.h"

/* Runs until SIGTERM or SIGINT; returns the exit code. */
int daemon_run(const struct daemon_options *options);

#endif
