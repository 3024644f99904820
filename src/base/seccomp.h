/*
 * seccomp: programs that tell the kernel which system calls to refuse.
 *
 * seccomp_begin, then any number of refusals, then seccomp_end. What is not refused is allowed.
 */
#ifndef BASE_SECCOMP_H
#define BASE_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seccomp {
        struct sock_filter code[400];
        unsigned short n;
};

/* False: the architecture is unknown, and the program is empty. Refuses calls of other ones. */
bool seccomp_begin(struct seccomp *s);
/* Refuses calls by number with an errno; negative numbers are skipped. */
void seccomp_refuse(struct seccomp *s, const int *calls, size_t count, int error);
/* clone with a new namespace; clone3 does not exist, because a filter cannot see its flags. */
void seccomp_refuse_namespaces(struct seccomp *s);
/* ioctls that put text into a terminal as if it were typed. */
void seccomp_refuse_typing(struct seccomp *s);
/* Sockets of other families than UNIX, INET, INET6 and NETLINK. */
void seccomp_refuse_families(struct seccomp *s);
/* Changes of the execution domain; asking for it is fine. */
void seccomp_refuse_personality(struct seccomp *s);
void seccomp_end(struct seccomp *s);

#endif
