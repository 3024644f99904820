/* heap_trim returns memory and leaves the process working. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap_trim.h"

#define FILE_BYTES 1048576

/* Resident KB of the mapping of this file, from the kernel's figures. */
static int resident_kb(const char *path)
{
        FILE *f = fopen("/proc/self/smaps", "re");
        int kb = -1, found = 0;
        char line[512];

        assert_non_null(f);
        while (kb < 0 && fgets(line, sizeof(line), f)) {
                found = found || strstr(line, path) != NULL;
                if (found)
                        sscanf(line, "Rss: %d", &kb);
        }
        fclose(f);
        return kb;
}

static int resident_kb_at(const void *address)
{
        char start[32];

        snprintf(start, sizeof(start), "%lx-", (unsigned long)(uintptr_t)address);
        return resident_kb(start);
}

static void unused_file_pages_are_returned(void **state)
{
        char path[] = "/tmp/test_trim.XXXXXX";
        int fd = mkstemp(path);
        volatile char sum = 0;
        char *map;

        (void)state;
        assert_true(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
        for (size_t i = 0; i < FILE_BYTES; i += 4096)
                assert_int_equal(pwrite(fd, "x", 1, (off_t)i), 1);
        assert_int_equal(fsync(fd), 0); /* only clean pages are dropped */
        map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(map != MAP_FAILED);
        for (size_t i = 0; i < FILE_BYTES; i += 4096)
                sum = (char)(sum + map[i]);
        assert_true(resident_kb(path) >= FILE_BYTES / 1024 / 2);
        heap_trim_idle();
        assert_true(resident_kb(path) < FILE_BYTES / 1024 / 2);
        assert_int_equal(map[4096], 'x'); /* read back on access */
        munmap(map, FILE_BYTES);
        close(fd);
        unlink(path);
}

/* A shared library: other processes map its pages as well. */
static void shared_code_pages_are_returned(void **state)
{
        char path[] = "/tmp/test_trim.XXXXXX";
        int fd = mkstemp(path);
        volatile char sum = 0;
        char *other, *code;

        (void)state;
        assert_true(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
        code = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        assert_true(code != MAP_FAILED);
        unlink(path);
        other = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(other != MAP_FAILED);
        memset(other, 'x', FILE_BYTES);
        for (size_t i = 0; i < FILE_BYTES; i += 4096)
                sum = (char)(sum + code[i]);
        assert_true(resident_kb_at(code) >= FILE_BYTES / 1024 / 2);
        heap_trim_idle();
        assert_true(resident_kb_at(code) < FILE_BYTES / 1024 / 2);
        assert_int_equal(code[4096], 'x');
        munmap(code, FILE_BYTES);
        munmap(other, FILE_BYTES);
        close(fd);
}

static void memory_in_use_keeps_its_contents(void **state)
{
        char *text = malloc(100000);

        (void)state;
        assert_non_null(text);
        memset(text, 'x', 100000);
        heap_trim_idle();
        heap_trim_idle();
        for (size_t i = 0; i < 100000; i++)
                assert_int_equal(text[i], 'x');
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unused_file_pages_are_returned),
                cmocka_unit_test(shared_code_pages_are_returned),
                cmocka_unit_test(memory_in_use_keeps_its_contents),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
