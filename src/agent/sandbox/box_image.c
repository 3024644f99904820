#include "agent/sandbox/box_image.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* Linux 6.3; older ones make every memory file executable */
#endif

/* BOX_IMAGE is the path of the built program, see the Makefile. */
#ifndef BOX_IMAGE
#define BOX_IMAGE "/dev/null" /* static analysis */
#endif
__asm__(".section .rodata\n"
        ".balign 16\n"
        "box_image_start:\n"
        ".incbin \"" BOX_IMAGE "\"\n"
        "box_image_end:\n"
        ".previous\n");
extern const char box_image_start[], box_image_end[];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shared = -1;

static int make(struct error *err)
{
        int fd = memfd_create("box", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("box", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return error_set(err, ERR_IO,
                                 "cannot run a program from memory: %s (is vm.memfd_noexec 2?)",
                                 strerror(errno));
        for (const char *p = box_image_start; p < box_image_end;) {
                ssize_t n = write(fd, p, (size_t)(box_image_end - p));

                if (n <= 0) {
                        error_set(err, ERR_IO, "cannot write to memory: %s", strerror(errno));
                        close(fd);
                        return -1;
                }
                p += n;
        }
        /* a sandbox may get hold of it */
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        return fd;
}

int box_image_fd(struct error *err)
{
        pthread_mutex_lock(&lock);
        if (shared < 0)
                shared = make(err);
        pthread_mutex_unlock(&lock);
        return shared;
}
