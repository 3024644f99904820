/*
 * confine: what this process can no longer do, whatever mistake is in its code.
 *
 * Landlock limits where it writes, seccomp which system calls it makes. Both hold for the calling
 * thread and for threads and children it starts later, for ever. So call confine_self before other
 * threads exist, and start children by base/spawn_thread.h, which is exempt. A kernel that lacks
 * one of them is no error: the report says so.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>

#include "base/error.h"

struct confine_report {
        bool writes;         /* Landlock limits them */
        bool calls;          /* seccomp limits them */
        bool dumps;          /* core dumps and debuggers are possible */
        char writes_why[80]; /* why not; "" when it does */
        char calls_why[80];
};

/*
 * No core dumps and no debuggers: memory holds every secret. `allow` undoes it, as far as it is not
 * final; call it with false as early as possible, and again with the setting. The second call is
 * final. Builds with a sanitizer, which attaches to itself, keep both.
 */
void confine_memory(bool allow, bool final, struct confine_report *report);
/*
 * writable: NULL-terminated; directories, with all beneath them, and files. -1: one of them cannot
 * be opened; nothing is confined then.
 */
int confine_self(const char *const *writable, struct confine_report *report, struct error *err);

#endif
