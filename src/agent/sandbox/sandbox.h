/*
 * sandbox: runs commands of the agent where they can see and change only what they may.
 *
 * Commands of a conversation share a standing sandbox (bubblewrap around a small command server),
 * which is made for the first command and ended when idle. If the configured sandbox cannot be
 * made, commands are refused with the reason and how to mend it; nothing runs elsewhere instead.
 */
#ifndef AGENT_SANDBOX_SANDBOX_H
#define AGENT_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/workspace/workspace.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "net/loop.h"

struct sandbox_conf {
        char *kind;                /* "bwrap", "docker:NAME", "host" or "none" */
        struct setting_list hosts; /* reachable, "example.org" or "*.example.org:8080"; else none */
        bool debuggers;            /* ptrace works */
        int64_t memory_mb, total_mb, processes, file_mb, disk_mb, cpu_seconds;
        int64_t timeout_seconds, output_kb, idle_seconds, jobs, job_seconds;
        /* beside the settings */
        const char *const *env; /* "NAME=value", in place of ours of that name; may be NULL */
        bool as_daemon;         /* with "host": as the user that the daemon is, even root */
};
#define SANDBOX_ENV_MAX 100
extern const struct setting sandbox_settings[]; /* the group "sandbox" of a built-in agent */
/* What the table cannot express; *key is the setting that is wrong. */
int sandbox_conf_check(const struct sandbox_conf *conf, const char **key, struct error *err);

struct sandboxes;
/* conf is borrowed. */
struct sandboxes *sandboxes_new(struct loop *l, const struct sandbox_conf *conf, const char *dir);
void sandboxes_free(struct sandboxes *all); /* ends everything; no callback follows */

/* What a command asked of the network, for the journal. */
struct sandbox_request {
        int64_t conversation;
        const char *host;
        int port;
        bool allowed;
        const char *why;         /* refused: why */
        uint64_t sent, received; /* bytes; allowed ones are told when they end */
};
void sandboxes_on_request(struct sandboxes *all,
                          void (*fn)(void *arg, const struct sandbox_request *request), void *arg);

/* Which sandbox: commands with an equal key share one. */
struct sandbox_key {
        int64_t conversation;
        struct workspace_view *view; /* what is mounted */
};

struct sandbox_command {
        const char *command;     /* for bash -c, as data: never pasted into another command */
        const char *const *argv; /* instead of command */
        const char *input;       /* for stdin; NULL: /dev/null */
        size_t input_n;
        const char *cwd;    /* inside; NULL: the channel's folder */
        int64_t timeout_ms; /* 0: the configured one */
        bool any_output;    /* without a limit: the caller keeps what it needs */
};

struct sandbox_result {
        int exit_code; /* -1 when ended by a signal */
        int signal;
        enum error_kind kind; /* ERR_NONE, ERR_TIMEOUT, ERR_LIMIT, ERR_CANCELLED; else it failed */
        const char *why;      /* for the model; NULL: none */
};

struct sandbox_handlers {
        void (*on_output)(void *arg, int fd, const char *bytes, size_t n); /* fd 1 or 2 */
        void (*on_exit)(void *arg, const struct sandbox_result *r);        /* once, last */
};

struct sandbox_run;
/* NULL with an error for the model and the operator. No handler is called before it returns. */
struct sandbox_run *sandbox_start(struct sandboxes *all, const struct sandbox_key *key,
                                  const struct sandbox_command *command,
                                  const struct sandbox_handlers *h, void *arg, struct error *err);
/* Ends it with all its children; no handler is called. */
void sandbox_abandon(struct sandbox_run *r);

/* ---- programs: they run until they end, and read from the daemon ---- */

/*
 * The first command of a key, whose sandbox ends with it; others run beside it. Neither its time
 * nor its output is limited.
 */
struct sandbox_run *sandbox_start_program(struct sandboxes *all, const struct sandbox_key *key,
                                          const struct sandbox_command *command,
                                          const struct sandbox_handlers *h, void *arg,
                                          struct error *err);
/* To its stdin; copies. ERR_LIMIT: it does not read. */
int sandbox_write(struct sandbox_run *r, const char *bytes, size_t n, struct error *err);
void sandbox_close_input(struct sandbox_run *r);
/* TERM to its group, KILL to all it started after grace_ms; on_exit follows, no more output. */
void sandbox_stop(struct sandbox_run *r, int64_t grace_ms);
/* Of the process above all those of its sandbox. */
int sandbox_pid(const struct sandbox_run *r);

/* ---- background jobs: they live as long as their sandbox ---- */

struct sandbox_job {
        int id;
        const char *command; /* borrowed */
        int64_t started_ms;  /* wall clock */
        bool running;
        int exit_code, signal;
        size_t unread; /* bytes of output */
};

/* 0 with the id, or -1. */
int sandbox_job_start(struct sandboxes *all, const struct sandbox_key *key,
                      const struct sandbox_command *command, int *id, struct error *err);
/* Moves what was printed since the last call to *out (the last output_kb of it). */
int sandbox_job_read(struct sandboxes *all, const struct sandbox_key *key, int id, struct buf *out,
                     struct sandbox_job *state, struct error *err);
int sandbox_job_write(struct sandboxes *all, const struct sandbox_key *key, int id,
                      const char *bytes, size_t n, bool close, struct error *err);
int sandbox_job_kill(struct sandboxes *all, const struct sandbox_key *key, int id,
                     struct error *err);
void sandbox_jobs_each(struct sandboxes *all, int64_t conversation, /* 0: all */
                       void (*fn)(void *arg, int64_t conversation, const struct sandbox_job *j),
                       void *arg);
/* Ends a conversation's sandboxes: /new, or the policy. */
void sandbox_end(struct sandboxes *all, int64_t conversation);

/* ---- for doctor, status and start ---- */

/* Tries it out, as sandbox_probe does, without blocking; a failure is logged. */
void sandboxes_probe(struct sandboxes *all);
/* Why commands are refused, by the last try; NULL: they are not, or nothing was tried yet. */
const char *sandboxes_problem(const struct sandboxes *all);
/* Runs `true` with the full argument list; blocks. 0, or -1 with why it cannot work here. */
int sandbox_probe(const struct sandbox_conf *conf, const char *dir, struct error *err);

#endif
