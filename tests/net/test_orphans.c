/* What children leave behind is adopted and collected, and their own ends are still seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/spawn_thread.h"
#include "net/orphans.h"
#include "net/process.h"

#define PATIENCE_MS 60000

struct rig {
        struct loop *loop;
        struct orphans *orphans;
        struct timer *patience;
        struct buf out;
        unsigned running, failed;
};

static void on_impatient(void *arg)
{
        (void)arg;
        fail_msg("waited too long");
}

static void rig_open(struct rig *r)
{
        memset(r, 0, sizeof(*r));
        buf_init(&r->out, 0);
        assert_int_equal(spawn_thread_start(NULL), 0);
        r->loop = loop_new();
        r->orphans = orphans_adopt(r->loop);
        r->patience = timer_new(r->loop, on_impatient, r);
        timer_start(r->patience, PATIENCE_MS);
}

static void rig_close(struct rig *r)
{
        timer_free(r->patience);
        orphans_free(r->orphans);
        loop_free(r->loop);
        spawn_thread_stop();
        buf_release(&r->out);
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct rig *r = arg;

        (void)fd;
        buf_add(&r->out, bytes, n);
}

static void on_exit_seen(void *arg, const struct process_result *result)
{
        struct rig *r = arg;

        r->failed += result->exit_code != 7;
        r->running--;
}

static void begin(struct rig *r, const char *script, const struct process_fd *fd)
{
        const char *argv[] = { "sh", "-c", script, NULL };
        struct process_options o = { .argv = argv, .fds = fd, .fd_count = fd ? 1 : 0 };
        struct process_handlers h = { on_output, on_exit_seen };

        assert_non_null(process_start(r->loop, &o, &h, r, NULL));
        r->running++;
}

static void what_a_child_leaves_behind_is_collected(void **state)
{
        struct process_fd fd = { .child = 3 };
        struct rig r;
        int gate[2];
        pid_t orphan;

        (void)state;
        rig_open(&r);
        assert_int_equal(pipe(gate), 0);
        fd.here = gate[0];
        begin(&r, "setsid sh -c 'exec >&- 2>&-; read -r line <&3' & echo $!; exit 7", &fd);
        while (r.running > 0)
                loop_step(r.loop, true);
        orphan = (pid_t)strtol(r.out.data, NULL, 10);
        assert_true(orphan > 1);
        assert_int_equal(kill(orphan, 0), 0); /* it outlives its parent */
        close(gate[0]);
        close(gate[1]);
        while (kill(orphan, 0) == 0) /* a zombie is still there */
                loop_step(r.loop, true);
        assert_int_equal(errno, ESRCH);
        rig_close(&r);
}

static void the_ends_of_children_are_seen_by_those_who_started_them(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        for (int i = 0; i < 30; i++)
                begin(&r, "setsid true & exit 7", NULL);
        while (r.running > 0)
                loop_step(r.loop, true);
        assert_int_equal(r.failed, 0);
        rig_close(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_child_leaves_behind_is_collected),
                cmocka_unit_test(the_ends_of_children_are_seen_by_those_who_started_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
