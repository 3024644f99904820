/*
 * fault: named points at which a test kills the process or makes a system call fail, in builds
 * with -DDRAGOMAN_FAULTS. They read
 *     DRAGOMAN_FAULT=name@n     raise SIGKILL the n-th time the point is passed
 *     DRAGOMAN_FAULT_FILE=path  a mapped struct fault_control, changed by the test at any time
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct fault_control {
        int64_t clock_offset_ms; /* added to the wall clock */
        uint32_t fsync_fails;    /* the store's fsync fails */
        uint32_t disk_full;      /* the store's writes find no space */
};

#ifdef DRAGOMAN_FAULTS
void fault_point(const char *name);
int64_t fault_clock_offset_ms(void);
bool fault_fsync_fails(void);
bool fault_disk_full(void);
#else
static inline void fault_point(const char *name)
{
        (void)name;
}
static inline int64_t fault_clock_offset_ms(void)
{
        return 0;
}
static inline bool fault_fsync_fails(void)
{
        return false;
}
static inline bool fault_disk_full(void)
{
        return false;
}
#endif

#endif
