/*
 * launch: starts the daemon as a child of this program, and ends it.
 *
 * The child has a session of its own, so that Ctrl-C in the terminal reaches only us; it ends by
 * itself when we end in any other way. Its log goes to DIR/state/daemon.log.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/client.h"

struct launch;

/* listen: NULL, as configured. NULL with an error. */
struct launch *launch_start(struct client *c, const char *listen, struct error *err);
/*
 * Waits until it answers: 0, or -1 when it ended first; then launch_exit_code and launch_log tell
 * more.
 */
int launch_wait(struct launch *l, struct error *err);
/* Has it ended? */
bool launch_ended(const struct launch *l);
int launch_exit_code(const struct launch *l);
/* The last lines it logged since it was started, appended to out. */
void launch_log(const struct launch *l, struct buf *out);
/*
 * Lets it end cleanly, waits for that, frees. With hurry it does not wait for answers in the
 * making. NULL is fine.
 */
void launch_stop(struct launch *l, bool hurry);

#endif
