/*
 * confine: limits what a mistake in this process can do.
 *
 * Landlock limits where it writes, seccomp which system calls it makes. Both apply permanently to
 * the calling thread and to threads and children it starts later. So call confine_self before other
 * threads exist, and start children by base/spawn_thread.h, which is not confined. A kernel without
 * one of them is no error: see the report.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>

#include "base/error.h"

/* Is this a build with a sanitizer? Each compiler says it in its own way. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED 0
#endif

struct confine_report {
        bool writes;         /* Landlock limits them */
        bool calls;          /* seccomp limits them */
        bool dumps;          /* core dumps and debuggers are possible */
        char writes_why[80]; /* why not; "" when it does */
        char calls_why[80];
};

/*
 * Forbids core dumps and debuggers, because memory holds every secret; `allow` permits them again
 * unless an earlier call was `final`. Call it with false as early as possible, and again, final,
 * with the setting. Builds with a sanitizer, which attaches to itself, keep both.
 */
void confine_memory(bool allow, bool final, struct confine_report *report);
/*
 * writable: NULL-terminated; files, and directories with everything below them. -1: one of them
 * cannot be opened, and nothing is confined.
 */
int confine_self(const char *const *writable, struct confine_report *report, struct error *err);

#endif
