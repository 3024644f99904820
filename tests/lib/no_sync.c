/*
 * Test programs do not wait for the disk. What they test is the order of things; no power fails
 * under them, and how long a machine takes to sync must not decide whether a message came within a
 * window. What a failing disk does is injected above this (base/fault.h), and the scripts and the
 * fault harness run the program as it is.
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
