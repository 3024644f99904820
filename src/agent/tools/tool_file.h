/*
 * tool_file: work of a tool on one file of the view, on a pool thread.
 *
 * Programs of the agent change names in its folders at any time, so a file is opened first and then
 * checked: a regular file with one name, no link on the way to it. The job keeps everything it
 * needs, because the call may be cancelled while it runs.
 */
#ifndef AGENT_TOOLS_TOOL_FILE_H
#define AGENT_TOOLS_TOOL_FILE_H

#include "agent/tools/tool.h"
#include "base/buf.h"

struct tool_file {
        int folder;     /* O_PATH */
        char *path;     /* beneath it */
        char *name;     /* as the model wrote it */
        bool is_shared; /* by all channels, put there by the operator */
};

/* 0, or -1 with a text for the model. */
int tool_file_find(struct tool_file *f, const struct workspace_view *v, const char *name,
                   bool writes, struct error *err);
void tool_file_release(struct tool_file *f);

/* These block. Opens it for reading; max: bytes. */
int tool_file_open(const struct tool_file *f, int64_t max, int64_t *size, struct error *err);
/* Appends all of it. ERR_INVALID beyond max. */
int tool_file_read(const struct tool_file *f, int64_t max, struct buf *out, struct error *err);
/* Replaces it atomically, makes missing folders, keeps its mode. *created: it is new. */
int tool_file_write(const struct tool_file *f, const char *bytes, size_t n, bool *created,
                    struct error *err);

/* Copies what is left in a descriptor to another path beneath the same folder. */
int tool_file_copy(const struct tool_file *f, int from, const char *path, struct error *err);

/* The beginning of a tool's own struct. */
struct file_job {
        struct tool_file file;
        void (*work)(struct file_job *j);    /* on a pool thread: fills in result or err */
        void (*release)(struct file_job *j); /* of the tool's own fields; may be NULL */
        struct tool_result result;
        struct error err;
        struct tool_call *call; /* for file_job_start; NULL: cancelled */
        struct loop *loop;
};

/* Ends the call at once if the path is wrong. Takes the job, which begins an allocated block. */
void file_job_start(struct tool_call *c, struct file_job *j, const char *path, bool writes);
/* The slot `cancel`. */
void file_job_cancel(struct tool_call *c);

#endif
