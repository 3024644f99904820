/*
 * Test programs skip fsync, so that the speed of the disk decides nothing. Disk failures are
 * injected above this (base/fault.h); scripts and the fault harness run the program unchanged.
 */
#include <unistd.h>

int fsync(int fd)
{
        (void)fd;
        return 0;
}

int fdatasync(int fd)
{
        (void)fd;
        return 0;
}
