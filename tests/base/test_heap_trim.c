/* An idle process gives back what it does not need, and goes on. */
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

/*
 * How many KB of the mapping with this file or beginning are in our memory, as the kernel counts.
 */
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

static void pages_of_files_that_nobody_looks_at_are_given_back(void **state)
{
        char path[] = "/tmp/test_trim.XXXXXX";
        int fd = mkstemp(path);
        volatile char sum = 0;
        char *map;

        (void)state;
        assert_true(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
        for (size_t i = 0; i < FILE_BYTES; i += 4096)
                assert_int_equal(pwrite(fd, "x", 1, (off_t)i), 1);
        assert_int_equal(fsync(fd), 0); /* only clean pages can be dropped for nothing */
        map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_true(map != MAP_FAILED);
        for (size_t i = 0; i < FILE_BYTES; i += 4096)
                sum = (char)(sum + map[i]);
        assert_true(resident_kb(path) >= FILE_BYTES / 1024 / 2);
        heap_trim_idle();
        assert_true(resident_kb(path) < FILE_BYTES / 1024 / 2);
        assert_int_equal(map[4096], 'x'); /* and is there again when it is looked at */
        munmap(map, FILE_BYTES);
        close(fd);
        unlink(path);
}

/* A library that other programs use too: its pages are mapped elsewhere as well. */
static void code_is_given_back_whoever_else_uses_it(void **state)
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

static void what_is_in_use_is_as_it_was(void **state)
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
                cmocka_unit_test(pages_of_files_that_nobody_looks_at_are_given_back),
                cmocka_unit_test(code_is_given_back_whoever_else_uses_it),
                cmocka_unit_test(what_is_in_use_is_as_it_was),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
