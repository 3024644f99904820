/*
 * What the files of this folder share.
 *
 *     sandbox.c        sandboxes and the commands in them
 *     box_process.c    one standing sandbox: its process and what it says
 *     frames.c         the frames it says it in
 *     jobs.c           background commands
 *     launch.c         how the process is started, by kind; bwrap.c: the default kind
 *     refused_calls.c  the seccomp filter
 *     disk_use.c       what a channel's folder holds
 *     egress.c         the proxy to listed hosts; egress_rules.c: which they are
 *     refusal.c        why a sandbox cannot be made, and what mends it
 */
#ifndef AGENT_SANDBOX_SANDBOX_PRIVATE_H
#define AGENT_SANDBOX_SANDBOX_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/sandbox/egress.h"
#include "agent/sandbox/sandbox.h"
#include "base/buf.h"
#include "base/seccomp.h"
#include "box/frame.h"
#include "net/process.h"

/* False: this architecture has none. */
bool sandbox_filter(struct seccomp *s, bool debuggers);

/* ---- launch.c: the process of a sandbox ---- */

#define LAUNCH_WORDS_MAX 48
#define LAUNCH_ENV_MAX   (LAUNCH_WORDS_MAX + SANDBOX_ENV_MAX)
#define LAUNCH_IMAGE_FD  3 /* the box, in the child */

struct sandbox_launch {
        const char *argv[LAUNCH_WORDS_MAX];
        const char *env[LAUNCH_ENV_MAX];
        const char *const *given; /* of the caller, in place of ours; may be NULL */
        size_t argc, envc;
        char *owned[2 * LAUNCH_WORDS_MAX]; /* words to free */
        size_t owned_count;
        struct process_fd fds[PROCESS_FD_MAX];
        bool close_after[PROCESS_FD_MAX]; /* ours to close once the child has it */
        size_t fd_count;
        int status; /* bwrap's reports are read here; -1: none */
        int egress; /* and here the box's listening socket; -1: no network */
};

/* view may be NULL: no folder is mounted. On error nothing has to be released. */
int launch_prepare(struct sandbox_launch *l, const struct sandbox_conf *conf,
                   const struct workspace_view *view, struct error *err);
void launch_release(struct sandbox_launch *l);
/* Where the command runs: cwd, as the model writes it, for this kind. Yours to free. */
char *launch_folder(const struct sandbox_conf *conf, const struct workspace_view *view,
                    const char *cwd);

/* For bwrap.c. */
void launch_word(struct sandbox_launch *l, const char *word);
void launch_env(struct sandbox_launch *l, const char *name, const char *value);
/* Adds "box serve" with its limits. */
void launch_serve(struct sandbox_launch *l, const struct sandbox_conf *conf, bool processes);
/* The number of the descriptor in the child. */
int launch_fd(struct sandbox_launch *l, int fd, bool close_after);
/* The same for one that was given before. */
int launch_number(const struct sandbox_launch *l, int fd);
/* The launcher's words, with the mounts of the view; the program's follow. */
void launch_launcher(struct sandbox_launch *l, const struct sandbox_conf *conf,
                     const struct workspace_view *view);
int launch_bwrap(struct sandbox_launch *l, const struct sandbox_conf *conf,
                 const struct workspace_view *view, struct error *err);

/* ---- frames.c ---- */

/* 1: a frame; 0: more bytes are needed; -1: that is no frame of a box. */
int frame_next(const struct buf *from, struct box_head *head, const char **data, size_t *consumed);
/* Appends a frame. */
void frame_add(struct buf *to, uint32_t id, enum box_type type, const void *data, size_t n);
/* Appends BOX_RUN with flags of enum box_flag; -1: too long. */
int frame_add_run(struct buf *to, uint32_t id, unsigned flags, const char *cwd,
                  const char *const *argv, struct error *err);

/* ---- refusal.c ---- */

/* Why no sandbox could be made, from what the program wrote to stderr. */
void refusal_explain(const struct sandbox_conf *conf, const char *complaint, struct error *err);

/* ---- disk_use.c ---- */

/* Bytes below a folder, up to a number of entries; removes sockets if told to. Blocks. */
int64_t disk_use(int folder, bool remove_sockets);

/* ---- box_process.c ---- */

struct sandbox_box {
        struct sandboxes *all;
        LIST_ENTRY(sandbox_box) next;
        int64_t conversation;
        char *signature; /* of what is mounted */
        struct process *process;
        int status;            /* as in struct sandbox_launch */
        struct egress *egress; /* NULL: no network */
        int folders;           /* the channel's folder, for disk_use; -1: none */
        struct buf from, complaint;
        struct buf waiting; /* frames until the folder was measured */
        bool ready, measured, over, released;
        bool measuring; /* on the pool */
        int64_t used_bytes;
        int64_t window_ms; /* of is_flooding */
        size_t window_bytes;
        uint32_t last_id;
        struct timer *idle, *measure;
        LIST_HEAD(, sandbox_run) runs;
};

enum run_kind {
        RUN_COMMAND,
        RUN_JOB,     /* its output is not limited */
        RUN_PROGRAM, /* nor is its time, and its sandbox ends with it */
};

struct sandbox_run {
        struct sandbox_box *box;
        LIST_ENTRY(sandbox_run) next;
        uint32_t id;
        struct sandbox_handlers on; /* empty once abandoned */
        void *arg;
        enum run_kind sort;
        bool no_writes;
        size_t output_left;   /* SIZE_MAX: no limit */
        enum error_kind kind; /* why it is being stopped; ERR_NONE: it is not */
        char why[200];
        int64_t timeout_ms;
        struct timer *timer; /* until its time is over; then until the box must have ended it */
        size_t input_waiting;
};

struct job;
struct sandboxes {
        struct loop *loop;
        const struct sandbox_conf *conf;
        char *dir;
        LIST_HEAD(, sandbox_box) boxes;
        LIST_HEAD(, job) jobs;
        int last_job;
        void (*on_request)(void *arg, const struct sandbox_request *request);
        void *request_arg;
        char problem[500]; /* "": none known */
};

struct sandbox_box *box_new(struct sandboxes *all, const struct sandbox_key *key,
                            struct error *err);
/* Kills it; runs that are left fail with why. The box frees itself later. */
void box_end(struct sandbox_box *b, enum error_kind kind, const char *why);
void box_send(struct sandbox_box *b, const struct buf *frames);
void box_touch(struct sandbox_box *b); /* it is not idle */
/* Sends BOX_STOP. kind is for the result. */
void run_stop(struct sandbox_run *r, enum error_kind kind, int64_t grace_ms, const char *why);
struct sandbox_run *run_start(struct sandboxes *all, const struct sandbox_key *key,
                              const struct sandbox_command *command, enum run_kind kind,
                              const struct sandbox_handlers *h, void *arg, struct error *err);
int run_write(struct sandbox_run *r, const char *bytes, size_t n, bool close, struct error *err);
struct sandbox_box *box_find(struct sandboxes *all, const struct sandbox_key *key);
/* Yours to free; equal for views with the same mounts. */
char *box_signature(const struct workspace_view *view);

/* jobs.c: forgets the jobs of a conversation (0: all). Their processes are not its business. */
void jobs_forget(struct sandboxes *all, int64_t conversation);
size_t jobs_running(const struct sandboxes *all, const struct sandbox_box *b);

#endif
