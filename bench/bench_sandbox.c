/*
 * bench_sandbox: what a sandbox costs over a plain spawn.
 *
 *     bench_sandbox [ROUNDS]
 *
 * Each round runs the same command once in every way, so that all of them meet the same machine.
 * Prints a line for each: the median and the tenth fastest of a hundred in milliseconds, the median
 * of the differences to the plain spawn of the same round, and how many times that spawn it takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sandbox/sandbox.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/process.h"

#define ROUNDS 200

static struct {
        struct loop *loop;
        struct sandbox_conf conf;
        struct sandboxes *all;
        struct workspace_view *view;
        bool done;
} bench;

static void fail(const char *what, const char *why)
{
        fprintf(stderr, "bench_sandbox: %s: %s\n", what, why ? why : "?");
        exit(1);
}

static void await(void)
{
        while (!bench.done)
                loop_step(bench.loop, true);
        bench.done = false;
}

static void on_process_exit(void *arg, const struct process_result *r)
{
        (void)arg;
        if (r->exit_code != 0)
                fail("sh", "it failed");
        bench.done = true;
}

static void run_plain(int64_t round)
{
        static const struct process_handlers h = { .on_exit = on_process_exit };
        const char *argv[] = { "bash", "-c", "true", NULL };
        struct error err = { 0 };

        (void)round;
        if (!process_start(bench.loop, &(struct process_options){ .argv = argv }, &h, NULL, &err))
                fail("process_start", err.text);
        await();
}

static void on_run_exit(void *arg, const struct sandbox_result *r)
{
        (void)arg;
        if (r->exit_code != 0)
                fail("sandbox", r->why);
        bench.done = true;
}

static void run_in(int64_t conversation)
{
        static const struct sandbox_handlers h = { .on_exit = on_run_exit };
        struct sandbox_key key = { conversation, bench.view };
        struct error err = { 0 };

        if (!sandbox_start(bench.all, &key, &(struct sandbox_command){ .command = "true" }, &h,
                           NULL, &err))
                fail("sandbox_start", err.text);
        await();
}

/* A sandbox for this command alone. */
static void run_new(int64_t round)
{
        run_in(round + 2);
}

static void run_standing(int64_t round)
{
        (void)round;
        run_in(1);
}

static const struct {
        const char *name;
        void (*run)(int64_t round);
} ways[] = {
        { "plain-spawn", run_plain },
        { "new-sandbox", run_new },
        { "standing-sandbox", run_standing },
};

static int ascending(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double at(double *sorted, long n, double share)
{
        return sorted[(long)((double)(n - 1) * share)];
}

static void print_way(const char *name, double *ms, const double *plain, long n)
{
        double *more = mem_array((size_t)n, sizeof(*more));
        double *times = mem_array((size_t)n, sizeof(*times));
        double of_plain;

        for (long i = 0; i < n; i++) {
                more[i] = ms[i] - plain[i];
                times[i] = ms[i] / plain[i];
        }
        qsort(more, (size_t)n, sizeof(*more), ascending);
        qsort(times, (size_t)n, sizeof(*times), ascending);
        of_plain = at(times, n, 0.5);
        qsort(ms, (size_t)n, sizeof(*ms), ascending);
        printf("%s %.2f %.2f %.2f %.2f\n", name, at(ms, n, 0.5), at(ms, n, 0.1), at(more, n, 0.5),
               of_plain);
        free(more);
        free(times);
}

static void measure(long rounds)
{
        double *ms[COUNT(ways)], *plain;

        for (size_t w = 0; w < COUNT(ways); w++)
                ms[w] = mem_array((size_t)rounds, sizeof(double));
        run_standing(0);
        for (long i = 0; i < rounds; i++) {
                for (size_t w = 0; w < COUNT(ways); w++) {
                        uint64_t start = clock_mono_ns();

                        ways[w].run(i);
                        ms[w][i] = (double)(clock_mono_ns() - start) / 1e6;
                }
                sandbox_end(bench.all, i + 2);
                for (int k = 0; k < 20; k++) /* its processes are waited for */
                        loop_step(bench.loop, false);
        }
        plain = mem_dup(ms[0], (size_t)rounds * sizeof(double));
        puts("way median p10 more times");
        for (size_t w = 0; w < COUNT(ways); w++) {
                print_way(ways[w].name, ms[w], plain, rounds);
                free(ms[w]);
        }
        free(plain);
}

int main(int argc, char **argv)
{
        char dir[] = "/tmp/dragoman-bench-XXXXXX", *removal;
        struct error err = { 0 };

        if (!mkdtemp(dir))
                fail("mkdtemp", dir);
        bench.loop = loop_new();
        bench.conf = (struct sandbox_conf){ .kind = (char *)(uintptr_t) "bwrap",
                                            .memory_mb = 1024,
                                            .total_mb = 2048,
                                            .processes = 256,
                                            .file_mb = 64,
                                            .disk_mb = 1024,
                                            .cpu_seconds = 300,
                                            .timeout_seconds = 60,
                                            .output_kb = 1024,
                                            .idle_seconds = 300,
                                            .jobs = 4,
                                            .job_seconds = 60 };
        bench.all = sandboxes_new(bench.loop, &bench.conf, dir);
        if (workspace_view_open(dir, "bench", "1", &bench.view, &err) < 0)
                fail("workspace", err.text);
        measure(argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS);
        sandboxes_free(bench.all);
        workspace_view_free(bench.view);
        loop_free(bench.loop);
        removal = mem_printf("rm -rf '%s'", dir);
        if (system(removal) != 0)
                fail("rm", dir);
        free(removal);
        return 0;
}
