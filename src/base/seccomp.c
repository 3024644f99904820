#include "base/seccomp.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

#define NAMESPACES                                                                     \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
         CLONE_NEWPID | CLONE_NEWNET)
#define LOW(argument) (offsetof(struct seccomp_data, args[argument])) /* both are little-endian */

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK /* of getaddrinfo */ };

static void add(struct seccomp *s, unsigned short code, unsigned char yes, unsigned char no,
                uint32_t k)
{
        assert(s->n < COUNT(s->code));
        s->code[s->n++] = (struct sock_filter){ code, yes, no, k };
}

static void load(struct seccomp *s, size_t at)
{
        add(s, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)at);
}

static void answer(struct seccomp *s, int error)
{
        add(s, BPF_RET | BPF_K, 0, 0,
            error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW);
}

bool seccomp_begin(struct seccomp *s)
{
        s->n = 0;
        if (!ARCHITECTURE)
                return false;
        load(s, offsetof(struct seccomp_data, arch));
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
        answer(s, EPERM); /* calls of another architecture have other numbers */
        load(s, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
        add(s, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* x32 */
        answer(s, EPERM);
#endif
        return true;
}

void seccomp_refuse(struct seccomp *s, const int *calls, size_t count, int error)
{
        for (size_t i = 0; i < count; i++) {
                if (calls[i] < 0)
                        continue;
                add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)calls[i]);
                answer(s, error);
        }
}

/* Each of the following ends the program for its call. */

void seccomp_refuse_namespaces(struct seccomp *s)
{
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3);
        answer(s, ENOSYS); /* libc then uses clone */
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
        load(s, LOW(0));
        add(s, BPF_JMP | BPF_JSET | BPF_K, 0, 1, NAMESPACES);
        answer(s, EPERM);
        answer(s, 0);
}

void seccomp_refuse_typing(struct seccomp *s)
{
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_ioctl);
        load(s, LOW(1));
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, TIOCSTI);
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, TIOCLINUX);
        answer(s, EPERM);
        answer(s, 0);
}

void seccomp_refuse_families(struct seccomp *s)
{
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, (unsigned char)(2 * COUNT(families) + 2), SYS_socket);
        load(s, LOW(0));
        for (size_t i = 0; i < COUNT(families); i++) {
                add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)families[i]);
                answer(s, 0);
        }
        answer(s, EAFNOSUPPORT);
}

void seccomp_refuse_personality(struct seccomp *s)
{
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, SYS_personality);
        load(s, LOW(0));
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 0);
        add(s, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0xffffffff); /* only asks */
        answer(s, EPERM);
        answer(s, 0);
}

void seccomp_end(struct seccomp *s)
{
        answer(s, 0);
}
