#include "base/fault.h"

#ifdef DRAGOMAN_FAULTS

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char wanted[64];
static atomic_long passes_left;
static const volatile struct fault_control *control;

static void read_environment(void)
{
        const char *spec = getenv("DRAGOMAN_FAULT");
        const char *path = getenv("DRAGOMAN_FAULT_FILE");

        if (spec) {
                const char *at = strchr(spec, '@');
                size_t n = at ? (size_t)(at - spec) : strlen(spec);

                if (n < sizeof(wanted)) {
                        memcpy(wanted, spec, n);
                        wanted[n] = '\0';
                        atomic_store(&passes_left, at ? strtol(at + 1, NULL, 10) : 1);
                }
        }
        if (path) {
                int fd = open(path, O_RDONLY | O_CLOEXEC);
                void *map = MAP_FAILED;

                if (fd >= 0) {
                        map = mmap(NULL, sizeof(*control), PROT_READ, MAP_SHARED, fd, 0);
                        close(fd);
                }
                if (map != MAP_FAILED)
                        control = map;
        }
}

void fault_point(const char *name)
{
        pthread_once(&once, read_environment);
        if (wanted[0] == '\0' || strcmp(name, wanted) != 0)
                return;
        if (atomic_fetch_sub(&passes_left, 1) == 1)
                raise(SIGKILL);
}

int64_t fault_clock_offset_ms(void)
{
        pthread_once(&once, read_environment);
        return control ? control->clock_offset_ms : 0;
}

bool fault_fsync_fails(void)
{
        pthread_once(&once, read_environment);
        return control && control->fsync_fails;
}

bool fault_disk_full(void)
{
        pthread_once(&once, read_environment);
        return control && control->disk_full;
}

#endif
