/*
 * log_file: keeps channels/<adapter>/<channel>/log.jsonl, every message of a channel in order.
 *
 * A durable consumer of the journal, so nothing is missing after a restart; the last line of each
 * file names its event, so nothing is there twice.
 */
#ifndef AGENT_WORKSPACE_LOG_FILE_H
#define AGENT_WORKSPACE_LOG_FILE_H

#include "agent/workspace/projection.h"
#include "bus/bus.h"
#include "net/loop.h"

#define LOG_FILE_CONSUMER "workspace-log"
#define LOG_FILE_NAME     "log.jsonl"
#define LOG_FILE_STREAMS  (1u << STREAM_MESSAGE | 1u << STREAM_DELIVERY | 1u << STREAM_SCHEDULE)

struct log_files;
struct log_files *log_files_new(struct loop *l, struct bus *b, const char *dir, int64_t max_bytes);
/* Before bus_close. What is being written is written; no call follows. */
void log_files_free(struct log_files *fs);

/* ---- blocking, for commands and the worker ---- */

struct log_target {
        const char *dir;   /* the data directory */
        int64_t max_bytes; /* of a log */
        int64_t head;      /* the journal's last event: a later one in a log is not of us */
};
/* Adds the lines of events of one channel that its log lacks. -1: see projection_can_retry. */
int log_file_append(const struct log_target *to, const struct bus_event *const *events,
                    size_t count, struct error *err);

/* Sorts events by channel and number; then the end of the group that begins at `i`. */
void log_file_sort(struct bus_event **events, size_t count);
size_t log_file_group(struct bus_event *const *events, size_t i, size_t count);

/* ---- log_rebuild.c ---- */

struct log_rebuild {
        int64_t channels; /* with a log */
        int64_t kept;     /* lines that the journal cannot give again */
        int64_t written;  /* lines made from the journal */
};
/*
 * Writes all logs anew: what the journal no longer has is kept, all else is made from it. Inside a
 * store function, while no daemon runs.
 */
int log_rebuild(struct store_tx *tx, const char *dir, int64_t max_bytes, struct log_rebuild *out,
                struct error *err);

#endif
