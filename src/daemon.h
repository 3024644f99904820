/*
 * daemon: introduces everybody to everybody, runs the loop, and says goodbye in the reverse order.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "cli/cli.h"

/* Runs until SIGTERM or SIGINT; returns the exit code. */
int daemon_run(const struct daemon_options *options);

#endif
