/*
 * bench_store: durable writes per second with 1, 64 and 1024 in flight.
 *
 *     bench_store [folder]      (default: the current one, because /tmp may be memory)
 *
 * Each write appends one event of about 500 bytes with a unique key, as the inbox does. "writer" is
 * processor time of the writer's thread, which does not depend on the disk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "rows/schema.h"

struct run {
        struct store *store;
        int64_t started, completed, total;
        int64_t all_us; /* from asking to completion, summed up */
};

struct write {
        struct run *run;
        char key[24];
        uint64_t asked_ns;
        struct bus_batch batch;
};

static char payload[400];

static int append(struct store_tx *tx, void *arg, struct error *err)
{
        struct write *w = arg;
        struct bus_event e = { .type = "message.received",
                               .adapter = "bench",
                               .channel = "123456789",
                               .trace = "0123456789abcdef0123456789abcdef",
                               .key = w->key,
                               .time_ms = 1,
                               .payload = payload };

        bus_batch_reset(&w->batch);
        return bus_append(tx, &w->batch, &e, NULL, err) == 1 ? 0 : -1;
}

static void ask(struct write *w);

static void on_appended(void *arg, const struct error *err)
{
        struct write *w = arg;
        struct run *r = w->run;

        if (err) {
                fprintf(stderr, "%s\n", err->text);
                exit(1);
        }
        r->completed++;
        r->all_us += (int64_t)((clock_mono_ns() - w->asked_ns) / 1000);
        if (r->started < r->total)
                ask(w);
}

static void ask(struct write *w)
{
        snprintf(w->key, sizeof(w->key), "%" PRId64, w->run->started++);
        w->asked_ns = clock_mono_ns();
        store_write(w->run->store, append, on_appended, w);
}

/* Processor time of the whole process and of this thread. */
static int64_t cpu_us(int who)
{
        struct rusage u;

        getrusage(who, &u);
        return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec +
               u.ru_stime.tv_usec;
}

static void measure(const char *folder, int in_flight, int64_t total)
{
        char *dir = mem_printf("%s/bench-store-XXXXXX", folder);
        char *clean = mem_printf("rm -rf '%s'", mkdtemp(dir) ? dir : "");
        struct store_options o = { .url = "sqlite", .dir = dir, .migrations = schema_steps };
        struct loop *l = loop_new();
        struct error err = { 0 };
        struct run r = { .store = store_open(l, &o, &err), .total = total };
        struct write *w = mem_array((size_t)in_flight, sizeof(*w));
        struct store_health h;
        uint64_t start;
        int64_t took_us, writer_us, loop_us;

        if (!r.store) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
        }
        start = clock_mono_ns();
        writer_us = cpu_us(RUSAGE_SELF) - cpu_us(RUSAGE_THREAD);
        loop_us = cpu_us(RUSAGE_THREAD);
        for (int i = 0; i < in_flight; i++) {
                w[i].run = &r;
                ask(&w[i]);
        }
        loop_run(l);
        took_us = (int64_t)((clock_mono_ns() - start) / 1000);
        writer_us = cpu_us(RUSAGE_SELF) - cpu_us(RUSAGE_THREAD) - writer_us;
        loop_us = cpu_us(RUSAGE_THREAD) - loop_us;
        store_health(r.store, &h);
        printf("%9d %10.0f %12.1f %12.2f %12.2f %14.1f\n", in_flight,
               (double)r.completed * 1e6 / (double)took_us, (double)h.writes / (double)h.commits,
               (double)writer_us / (double)total, (double)loop_us / (double)total,
               (double)r.all_us / (double)total);
        store_close(r.store);
        loop_free(l);
        for (int i = 0; i < in_flight; i++)
                bus_batch_release(&w[i].batch);
        free(w);
        if (system(clean) != 0)
                fprintf(stderr, "cannot remove %s\n", dir);
        free(clean);
        free(dir);
}

int main(int argc, char **argv)
{
        const char *folder = argc > 1 ? argv[1] : ".";

        memset(payload, 'x', sizeof(payload) - 1);
        memcpy(payload, "{\"text\":\"", 9);
        memcpy(payload + sizeof(payload) - 3, "\"}", 2);
        printf("in flight     rows/s  rows/commit writer us/row  loop us/row mean latency us\n");
        measure(folder, 1, 3000);
        measure(folder, 64, 100000);
        measure(folder, 1024, 300000);
        return 0;
}
