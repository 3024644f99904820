/*
 * launch: starts the daemon as a child of this program, and stops it.
 *
 * The child has its own session, so that Ctrl-C in the terminal does not reach it; it stops when
 * this program ends in any other way. It logs to DIR/state/daemon.log.
 *
 * Does not use net/process, whose children get pipes and a minimal environment: the daemon must
 * inherit ours (it holds keys) and write its log to a file that outlives us.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/client.h"

struct launch;

/* listen may be NULL: as configured. NULL with an error. */
struct launch *launch_start(struct client *c, const char *listen, struct error *err);
/* Waits until it answers; -1 when it exits first. */
int launch_wait(struct launch *l, struct error *err);
bool launch_has_exited(const struct launch *l);
int launch_exit_code(const struct launch *l);
/* Appends its last log lines since the start. */
void launch_log(const struct launch *l, struct buf *out);
/* Stops it cleanly and frees l; with hurry, without waiting for running turns. NULL is fine. */
void launch_stop(struct launch *l, bool hurry);

#endif
