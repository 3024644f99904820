/*
 * attachment_files: the saved attachments of all adapters, in
 * workspace/channels/<adapter>/<chat>/attachments/<message>-<name>.
 *
 * All work is done on a worker thread, one job after the other, so a file that a job found cannot
 * be deleted by an earlier one. Files in use are pinned. When a quota is reached, those that were
 * unused for the longest time go; a sweep removes those that are too old. Other files of these
 * folders, whose names do not begin with the digits of a message and a dash, are left alone.
 */
#ifndef PLATFORM_ATTACHMENT_FILES_H
#define PLATFORM_ATTACHMENT_FILES_H

#include <stdint.h>

#include "base/settings.h"
#include "net/loop.h"

struct attachment_limits {
        int64_t total_bytes, chat_bytes;
        double keep_days; /* -1: for ever */
        int64_t adapter_hour_bytes, sender_hour_bytes;
        int64_t adapter_queue, sender_queue;
        int64_t hour_ms; /* 0: an hour; tests shorten it */
};
extern const struct setting attachment_settings[]; /* the section "attachments" */

struct attachment_files;
struct attachment_job;

/* Sweeps soon, and then every hour. */
struct attachment_files *attachment_files_new(struct loop *l, const char *dir);
/* Jobs end by themselves, without a call. */
void attachment_files_free(struct attachment_files *fs);
void attachment_files_set_limits(struct attachment_files *fs, const struct attachment_limits *l);
const struct attachment_limits *attachment_files_limits(const struct attachment_files *fs);

/* Paths are relative to the workspace. Pins count. */
void attachment_files_pin(struct attachment_files *fs, const char *path);
void attachment_files_unpin(struct attachment_files *fs, const char *path);

/* size -1: there is none, see why (of a save). */
typedef void attachment_job_fn(void *arg, int64_t size, const char *why);
/* Is there such a file, of this size (0: any)? It counts as used now. */
struct attachment_job *attachment_files_find(struct attachment_files *fs, const char *path,
                                             int64_t size, attachment_job_fn *done, void *arg);
/* Takes the bytes, and makes room for them. */
struct attachment_job *attachment_files_save(struct attachment_files *fs, const char *path,
                                             char *bytes, size_t n, attachment_job_fn *done,
                                             void *arg);
/* Deletes what is too old or beyond the quota, now. done may be NULL. */
void attachment_files_sweep(struct attachment_files *fs, attachment_job_fn *done, void *arg);
/* No call follows. NULL is fine. */
void attachment_files_drop(struct attachment_job *j);

#endif
