/*
 * process: child programs with pipes, in a process group of their own, with limits.
 *
 * Output is delivered as it arrives, up to a cap. process_stop ends the whole group: TERM, then
 * KILL after the grace period.
 */
#ifndef NET_PROCESS_H
#define NET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

struct process;

/* A descriptor that the child gets beside the standard ones. */
struct process_fd {
        int child; /* its number there, from 3 */
        int here;
};
#define PROCESS_FD_MAX 64 /* the highest number in a child */

struct process_options {
        const char *const *argv; /* NULL-terminated; argv[0] is looked up in our PATH */
        /* "NAME=value", NULL-terminated; NULL: PATH, HOME, LANG, TZ only */
        const char *const *env;
        const char *cwd;     /* NULL: ours */
        size_t max_output;   /* 0: 16 MiB; more ends the child (ERR_LIMIT) */
        int64_t timeout_ms;  /* 0: none */
        int64_t grace_ms;    /* 0: 2000 */
        bool inherit_stderr; /* instead of on_output */
        bool keep_stdin;     /* process_write will be used; otherwise stdin is /dev/null */
        size_t max_waiting;  /* of process_write; 0: 1 MiB */
        const struct process_fd *fds;
        size_t fd_count;
};

struct process_result {
        int exit_code; /* -1 when ended by a signal */
        int signal;
        enum error_kind kind; /* ERR_NONE, ERR_TIMEOUT, ERR_LIMIT, ERR_CANCELLED */
};

struct process_handlers {
        /* fd: 1 or 2. May be NULL. */
        void (*on_output)(void *arg, int fd, const char *bytes, size_t n);
        /* Once, after the child has ended and its output was delivered. Frees the process. */
        void (*on_exit)(void *arg, const struct process_result *result);
};

/* NULL with an error when the program cannot be started. */
struct process *process_start(struct loop *l, const struct process_options *options,
                              const struct process_handlers *handlers, void *arg,
                              struct error *err);
/* Copies; ERR_LIMIT when more than max_waiting waits. */
int process_write(struct process *p, const char *bytes, size_t n, struct error *err);
void process_close_stdin(struct process *p);
/* Asks the group to end; on_exit follows. */
void process_stop(struct process *p);
/* Kills the group; no callback follows. */
void process_abandon(struct process *p);
int process_pid(const struct process *p);
/* The program's path in our PATH, yours to free; NULL: there is none. */
char *process_find(const char *name);

#endif
