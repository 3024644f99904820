/*
 * box: the parts of the small static program inside and around sandboxes; see frame.h.
 */
#ifndef BOX_BOX_H
#define BOX_BOX_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Runs a program with this process as the ancestor that its orphans fall back to, so that all of
 * its descendants can be found and killed when it ends. Returns the keeper's pid, or -1 with errno.
 *
 * flags: enum box_flag. std: descriptors for the program's 0, 1 and 2. status: where the keeper
 * writes a struct box_exit when the program and everything it started are gone; closed without one:
 * the keeper was killed.
 */
pid_t keeper_start(const char *cwd, char **argv, unsigned flags, const int std[3], int status);
/* TERM for the program's group, KILL for all of its descendants after grace_ms (0: at once). */
void keeper_stop(pid_t keeper, unsigned grace_ms);

/* Reads "cpu=60", "memory=1024", ... (see limits.c) until a word of another form. */
char **limits_read(char **argv);
/* For the calling process and its children; nothing inside can raise them again. */
void limits_apply(bool no_writes);

/* The parent of a process, whose number is written as text; -1: it is gone. */
pid_t process_parent(const char *pid);

/*
 * Puts this process into a new control group with these limits. False: the daemon was given none.
 * given: the daemon's group; NULL: the one it is in.
 */
bool group_join(const char *given, unsigned long memory_mb, unsigned long processes);

/*
 * Becomes a program, after joining an empty session keyring. argv: "user=UID:GID" and "mount=FD"
 * (both for root; see launch.c), "folder=FD" to run in, "group=MEMORY_MB:PROCESSES" to limit all of
 * it where possible, then the program's path and arguments.
 */
int launch(char **argv);
/* Serves commands until stdin ends. argv: limits, then "egress=FD" if there is a network. */
int serve(char **argv);

#endif
