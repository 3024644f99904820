/*
 * process_usage: the memory and processor time of a process with all it has started, from /proc.
 */
#ifndef NET_PROCESS_USAGE_H
#define NET_PROCESS_USAGE_H

#include <stddef.h>
#include <stdint.h>

struct process_usage {
        int pid;              /* given */
        int64_t memory_bytes; /* resident; what they share is counted for each */
        int64_t cpu_ms;       /* of those that live */
        unsigned processes;   /* 0: it has ended */
};

/* Fills in each. Reads every process of /proc once: for a pool thread. */
void process_usage_read(struct process_usage *list, size_t n);

#endif
