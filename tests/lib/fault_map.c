#include "fault_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fault_control *fault_map(void)
{
        char path[] = "/tmp/dragoman-fault-XXXXXX";
        struct fault_control *control;
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, sizeof(*control)), 0);
        control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(control, MAP_FAILED);
        close(fd);
        setenv("DRAGOMAN_FAULT_FILE", path, 1);
        (void)fault_disk_full(); /* maps the file, so that it can be removed */
        unlink(path);
        return control;
}
