/* Commands in a sandbox: what they get, what comes back, and how they end. */
#include "sandbox_rig.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "agent/sandbox/box_image.h"
#include "base/confine.h"
#include "base/spawn_thread.h"

static void output_and_exit_code_arrive(void **state)
{
        struct rig *r = *state;
        struct ran c;

        ran_run(&c, r, "echo hello; echo oops >&2; pwd; exit 3");
        assert_string_equal(c.out.data, "hello\n/workspace/channels/tg/42\n");
        assert_string_equal(c.err.data, "oops\n");
        assert_int_equal(c.exit_code, 3);
        assert_int_equal(c.kind, ERR_NONE);
        ran_release(&c);
        ran_run(&c, r, "kill -TERM $$");
        assert_int_equal(c.exit_code, -1);
        assert_int_equal(c.signal, SIGTERM);
        ran_release(&c);
}

static void the_channels_folder_is_writable_and_kept(void **state)
{
        struct rig *r = *state;
        struct ran c;

        ran_run(&c, r,
                "mkdir -p scratch/sub && echo kept > scratch/sub/file && touch /workspace/x");
        assert_int_equal(c.exit_code, 1); /* the last one: only the folder is */
        ran_release(&c);
        sandbox_end(r->all, 1);
        rig_expect(r, "cat scratch/sub/file", "kept\n");
}

static void commands_of_a_conversation_share_a_sandbox(void **state)
{
        struct rig *r = *state;
        struct ran c;

        rig_expect(r, "echo mine > /tmp/note", "");
        rig_expect(r, "cat /tmp/note", "mine\n");
        r->key.conversation = 2;
        ran_run(&c, r, "cat /tmp/note");
        assert_int_equal(c.exit_code, 1);
        ran_release(&c);
}

/* A person with other rights in the same conversation sees other mounts, so it is another one. */
static void another_view_is_another_sandbox(void **state)
{
        struct rig *r = *state;

        rig_expect(r, "echo mine > /tmp/note", "");
        rig_view(r, "43");
        rig_expect(r, "cat /tmp/note; ls /workspace/channels/tg", "43\n");
        rig_view(r, "42"); /* opened anew: the same folders are the same sandbox */
        rig_expect(r, "cat /tmp/note", "mine\n");
}

static void a_command_is_data_and_input_comes_by_stdin(void **state)
{
        struct rig *r = *state;
        const char *argv[] = { "printf", "%s|", "a b", "$(id)", "'\"", NULL };
        char *big = mem_alloc(3000000);
        struct ran c;

        memset(big, 'x', 3000000);
        ran_begin_command(&c, r, &(struct sandbox_command){ .argv = argv });
        ran_await(&c);
        assert_string_equal(c.out.data, "a b|$(id)|'\"|");
        ran_release(&c);
        ran_begin_command(
                &c, r,
                &(struct sandbox_command){ .command = "wc -c", .input = big, .input_n = 3000000 });
        ran_await(&c);
        assert_string_equal(c.out.data, "3000000\n");
        ran_release(&c);
        rig_expect(r, "cat; readlink /proc/self/fd/0", "/dev/null\n");
        free(big);
}

static void commands_that_are_too_long_are_refused_with_advice(void **state)
{
        struct rig *r = *state;
        static const struct sandbox_handlers h = { rig_on_output, rig_on_exit };
        char *script = mem_zalloc(200001);
        struct error err = { 0 };

        memset(script, ' ', 200000);
        assert_null(sandbox_start(r->all, &r->key, &(struct sandbox_command){ .command = script },
                                  &h, NULL, &err));
        assert_int_equal(err.kind, ERR_LIMIT);
        assert_non_null(strstr(err.text, "write it to a file"));
        free(script);
}

static void commands_run_side_by_side(void **state)
{
        struct rig *r = *state;
        struct ran a, b;

        /* each waits for the other */
        ran_begin(&a, r, "mkfifo /tmp/f /tmp/g; echo 1 > /tmp/f; cat /tmp/g");
        ran_begin(&b, r, "until [ -p /tmp/g ]; do :; done; cat /tmp/f; echo 2 > /tmp/g");
        ran_await(&a);
        ran_await(&b);
        assert_string_equal(a.out.data, "2\n");
        assert_string_equal(b.out.data, "1\n");
        ran_release(&a);
        ran_release(&b);
}

static void the_working_directory_is_chosen_and_checked(void **state)
{
        struct rig *r = *state;
        struct ran c;

        rig_expect(r, "mkdir sub", "");
        ran_begin_command(&c, r, &(struct sandbox_command){ .command = "pwd", .cwd = "sub" });
        ran_await(&c);
        assert_string_equal(c.out.data, "/workspace/channels/tg/42/sub\n");
        ran_release(&c);
        ran_begin_command(&c, r, &(struct sandbox_command){ .command = "pwd", .cwd = "/none" });
        ran_await(&c);
        assert_int_equal(c.exit_code, 127);
        assert_string_equal(c.err.data, "cannot enter '/none': No such file or directory\n");
        ran_release(&c);
}

/* ---- the end of a command ---- */

static void a_call_ends_with_its_process_and_leftovers_are_killed(void **state)
{
        struct rig *r = *state;
        struct ran c;

        /* they hold the output open, have left the group and session, and have lost their parent */
        ran_run(&c, r, "sleep 600 & setsid sleep 601 & (setsid sleep 602 &); echo done");
        assert_string_equal(c.out.data, "done\n");
        assert_int_equal(c.exit_code, 0);
        assert_non_null(strstr(c.why, "background job"));
        ran_release(&c);
        rig_expect(r, "grep -l sleep /proc/[0-9]*/comm || echo gone", "gone\n");
}

static void leftovers_of_one_command_are_not_those_of_another(void **state)
{
        struct rig *r = *state;
        struct ran a, b;

        ran_begin(&a, r, "echo ready; (setsid sleep 0.5; echo late); echo end");
        ran_await_text(&a, "ready");
        ran_run(&b, r, "(setsid sleep 600 &)");
        ran_await(&a);
        assert_string_equal(a.out.data, "ready\nlate\nend\n");
        ran_release(&a);
        ran_release(&b);
}

static void the_timeout_ends_a_command_that_ignores_term(void **state)
{
        struct rig *r = *state;
        struct ran c;

        ran_begin_command(&c, r,
                          &(struct sandbox_command){
                                  .command = "trap '' TERM; (setsid sleep 600 &); sleep 601",
                                  .timeout_ms = 50 });
        ran_await(&c);
        assert_int_equal(c.kind, ERR_TIMEOUT);
        assert_non_null(strstr(c.why, "background job"));
        ran_release(&c);
        rig_expect(r, "grep -l sleep /proc/[0-9]*/comm || echo gone", "gone\n");
}

static void too_much_output_ends_a_command(void **state)
{
        struct rig *r = *state;
        struct ran c;

        r->conf.output_kb = 100;
        ran_run(&c, r, "yes");
        assert_int_equal(c.kind, ERR_LIMIT);
        assert_int_equal(c.out.len, 100 << 10);
        assert_string_equal(c.why, "ended: it printed more than 100 KiB");
        ran_release(&c);
        rig_expect(r, "echo next", "next\n");
}

static void an_abandoned_command_dies_without_a_report(void **state)
{
        struct rig *r = *state;
        struct ran a, b;

        ran_begin(&a, r, "echo ready; sleep 600");
        ran_await_text(&a, "ready");
        sandbox_abandon(a.run);
        ran_run(&b, r, "while grep -ql sleep /proc/[0-9]*/comm; do :; done; echo gone");
        assert_string_equal(b.out.data, "gone\n");
        assert_false(a.exited);
        ran_release(&a);
        ran_release(&b);
}

static void a_command_that_kills_its_sandbox_gets_a_report(void **state)
{
        struct rig *r = *state;
        struct ran c;

        ran_run(&c, r, "kill -9 -1; sleep 600");
        assert_int_equal(c.kind, ERR_IO);
        assert_non_null(strstr(c.why, "the next command gets a new one"));
        ran_release(&c);
        rig_expect(r, "echo alive", "alive\n");
}

/* Its keeper would have killed what it leaves behind. */
static void a_command_that_kills_or_stops_its_keeper_loses_its_sandbox(void **state)
{
        static const char *const scripts[] = { "kill -9 $PPID; setsid sleep 600 &",
                                               "kill -STOP $PPID; setsid sleep 600 &" };

        (void)state;
        for (size_t i = 0; i < COUNT(scripts); i++) {
                struct rig r;
                struct ran c;

                rig_open(&r);
                ran_run(&c, &r, "echo mine >/tmp/note");
                ran_release(&c);
                ran_begin_command(
                        &c, &r,
                        &(struct sandbox_command){ .command = scripts[i], .timeout_ms = 2000 });
                ran_await(&c);
                assert_int_equal(c.kind, i == 0 ? ERR_IO : ERR_TIMEOUT);
                ran_release(&c);
                ran_run(&c, &r, "cat /tmp/note; grep -l sleep /proc/[0-9]*/comm || echo gone");
                assert_string_equal(c.out.data, "gone\n");
                ran_release(&c);
                rig_close(&r);
        }
}

static void ending_a_conversation_ends_its_commands(void **state)
{
        struct rig r;
        struct ran a, b;

        (void)state;
        rig_open(&r);
        ran_begin(&a, &r, "sleep 600");
        r.key.conversation = 2;
        ran_begin(&b, &r, "echo other; sleep 600");
        sandbox_end(r.all, 1);
        assert_true(a.exited);
        assert_int_equal(a.kind, ERR_CANCELLED);
        ran_await_text(&b, "other");
        ran_release(&a);
        rig_close(&r); /* without a report for b, whose struct is on our stack */
        assert_false(b.exited);
        ran_release(&b);
}

static void an_idle_sandbox_ends(void **state)
{
        struct rig *r = *state;
        struct ran c;

        r->conf.idle_seconds = 1;
        ran_run(&c, r, "echo mine > /tmp/note; echo $PPID");
        ran_release(&c);
        /* nothing but the idle timer, which keeps no loop alive, and the process are left */
        while (loop_step(r->loop, true))
                ;
        ran_run(&c, r, "cat /tmp/note");
        assert_int_equal(c.exit_code, 1);
        ran_release(&c);
}

/* ---- jobs ---- */

static void await_job(struct rig *r, int id, struct buf *out, struct sandbox_job *job,
                      const char *text)
{
        for (;;) {
                assert_int_equal(sandbox_job_read(r->all, &r->key, id, out, job, NULL), 0);
                if (text ? strstr(out->data, text) != NULL : !job->running)
                        return;
                assert_true(loop_step(r->loop, true));
        }
}

static void count_job(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        int *n = arg;

        assert_int_equal(conversation, 1);
        *n += j->running;
}

static void a_job_is_read_fed_and_killed(void **state)
{
        struct rig *r = *state;
        struct sandbox_job job;
        struct buf out;
        int id, n = 0;

        buf_init(&out, 0);
        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){
                                                   .command = "echo up; while read x; do echo "
                                                              "\"got $x\"; done; exit 5" },
                                           &id, NULL),
                         0);
        await_job(r, id, &out, &job, "up");
        /* the end of a command leaves jobs alone */
        rig_expect(r, "echo meanwhile", "meanwhile\n");
        assert_int_equal(sandbox_job_write(r->all, &r->key, id, "one\n", 4, false, NULL), 0);
        buf_clear(&out);
        await_job(r, id, &out, &job, "got one\n");
        sandbox_jobs_each(r->all, 1, count_job, &n);
        assert_int_equal(n, 1);
        assert_int_equal(sandbox_job_write(r->all, &r->key, id, "", 0, true, NULL), 0);
        await_job(r, id, &out, &job, NULL);
        assert_int_equal(job.exit_code, 5);

        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){ .command = "sleep 600" }, &id,
                                           NULL),
                         0);
        assert_int_equal(sandbox_job_kill(r->all, &r->key, id, NULL), 0);
        await_job(r, id, &out, &job, NULL);
        assert_int_equal(job.signal, SIGTERM);
        buf_release(&out);
}

static void jobs_belong_to_their_conversation_and_are_limited(void **state)
{
        struct rig *r = *state;
        struct sandbox_job job;
        struct error err = { 0 };
        struct buf out;
        int id = 0;

        buf_init(&out, 0);
        r->conf.jobs = 1;
        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){ .command = "sleep 600" }, &id,
                                           NULL),
                         0);
        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){ .command = "true" }, &id,
                                           &err),
                         -1);
        assert_int_equal(err.kind, ERR_LIMIT);
        r->key.conversation = 2;
        assert_int_equal(sandbox_job_read(r->all, &r->key, id, &out, &job, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
        r->key.conversation = 1;
        sandbox_end(r->all, 1);
        assert_int_equal(sandbox_job_read(r->all, &r->key, id, &out, &job, &err), -1);
        buf_release(&out);
}

static void of_a_jobs_output_the_end_is_kept(void **state)
{
        struct rig *r = *state;
        struct sandbox_job job;
        struct buf out;
        int id;

        buf_init(&out, 0);
        r->conf.output_kb = 16;
        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){ .command = "seq 100000" },
                                           &id, NULL),
                         0);
        do {
                int n = 0;

                sandbox_jobs_each(r->all, 1, count_job, &n);
                job.running = n > 0;
        } while (job.running && loop_step(r->loop, true));
        assert_int_equal(sandbox_job_read(r->all, &r->key, id, &out, &job, NULL), 0);
        assert_true(out.len <= (16 << 10) + 100);
        assert_non_null(strstr(out.data, "earlier output is lost"));
        assert_non_null(strstr(out.data, "\n100000\n"));
        buf_release(&out);
}

static void add_unread(void *arg, int64_t conversation, const struct sandbox_job *j)
{
        (void)conversation;
        *(size_t *)arg += j->unread;
}

static void on_second(void *arg)
{
        *(bool *)arg = true;
}

/* Nobody reads it, so it must not cost the daemon much: 1 MiB in 50 ms. */
static void a_job_that_floods_is_slowed_down(void **state)
{
        struct rig *r = *state;
        bool over = false;
        size_t unread = 0;
        struct timer *t;
        int64_t start;
        int id;

        r->conf.output_kb = 1 << 20; /* all of it is kept */
        start = loop_now_ms(r->loop);
        t = timer_new(r->loop, on_second, &over);
        timer_start(t, 1000);
        assert_int_equal(sandbox_job_start(r->all, &r->key,
                                           &(struct sandbox_command){ .command = "yes & yes" }, &id,
                                           NULL),
                         0);
        while (!over)
                assert_true(loop_step(r->loop, true));
        sandbox_jobs_each(r->all, 1, add_unread, &unread);
        assert_true(unread > 0);
        assert_true((int64_t)(unread >> 20) <= (loop_now_ms(r->loop) - start) / 50 + 2);
        timer_free(t);
}

/* ---- other kinds ---- */

static void the_probe_tells_whether_it_works(void **state)
{
        struct rig *r = *state;
        struct error err = { 0 };

        if (sandbox_probe(&r->conf, r->dir, &err) < 0)
                fail_msg("%s", err.text);
        r->conf.kind = (char *)(uintptr_t) "none";
        assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
        assert_string_equal(err.text, "commands are switched off: sandbox.kind is \"none\"");
}

static void a_trial_at_the_start_tells_what_is_wrong(void **state)
{
        struct rig *r = *state;
        char *before = mem_strdup(getenv("PATH"));

        sandboxes_probe(r->all);
        while (loop_step(r->loop, true)) /* its sandbox is ended, too */
                ;
        assert_null(sandboxes_problem(r->all));
        setenv("PATH", "/nonexistent", 1);
        sandboxes_probe(r->all);
        assert_non_null(strstr(sandboxes_problem(r->all), "install the package bubblewrap"));
        setenv("PATH", before, 1);
        sandboxes_probe(r->all);
        while (loop_step(r->loop, true))
                ;
        assert_null(sandboxes_problem(r->all));
        free(before);
}

static void wrong_settings_are_named(void **state)
{
        static const struct {
                const char *kind, *host, *key, *text;
        } rows[] = {
                { "bwrap", "example.org", NULL, NULL },
                { "docker:dev", NULL, NULL, NULL },
                { "none", NULL, NULL, NULL },
                { "docker", NULL, "kind", "docker:NAME" },
                { "docker:-v", NULL, "kind", "docker:NAME" },
                { "chroot", NULL, "kind", "'chroot' is no sandbox" },
                { "bwrap", "http://example.org", "hosts", "example.org:8080" },
                { "host", "example.org", "hosts", "works with \"kind\": \"bwrap\" only" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *host = mem_strdup(rows[i].host);
                struct sandbox_conf conf = { .kind = (char *)(uintptr_t)rows[i].kind,
                                             .hosts = { &host, rows[i].host ? 1 : 0, true } };
                struct error err = { 0 };
                const char *key = NULL;

                assert_int_equal(sandbox_conf_check(&conf, &key, &err), rows[i].key ? -1 : 0);
                if (rows[i].key) {
                        assert_string_equal(key, rows[i].key);
                        assert_non_null(strstr(err.text, rows[i].text));
                }
                free(host);
        }
}

static void on_the_host_only_the_manners_are_the_same(void **state)
{
        struct rig *r = *state;
        struct ran c;

        r->conf.kind = (char *)(uintptr_t) "host";
        setenv("DRAGOMAN_TEST_KEY", "hush", 1);
        ran_run(&c, r,
                "echo x >here; ls; [ $(id -u) = 0 ] && echo root; env | grep -c hush; "
                "(setsid sleep 600 &); mkdir sub");
        assert_non_null(strstr(c.out.data, "here\n"));
        assert_non_null(strstr(c.out.data, "\n0\n"));
        assert_null(strstr(c.out.data, "root"));
        assert_non_null(strstr(c.why, "1 processes"));
        ran_release(&c);
        ran_begin_command(&c, r,
                          &(struct sandbox_command){ .command = "basename $PWD",
                                                     .cwd = "/workspace/channels/tg/42/sub" });
        ran_await(&c);
        assert_string_equal(c.out.data, "sub\n");
        ran_release(&c);
        unsetenv("DRAGOMAN_TEST_KEY");
}

/* A program `docker` that has one container, "dev": a /tmp of its own, and a client that dies
 * alone. */
static void install_fake_docker(struct rig *r)
{
        char *program = scratch_path(r->dir, "docker"), *tmp = scratch_path(r->dir, "tmp"), *text;

        text = mem_printf(
                "#!/bin/bash\n"
                "[ \"$1 $2\" = 'exec -i' ] || exit 9\n"
                "shift 2; e=()\n"
                "while [ \"$1\" = -e ]; do e+=(\"$2\"); shift 2; done\n"
                "[ \"$1\" = dev ] || { echo \"Error: No such container: $1\" >&2; exit 1; }\n"
                "shift; exec setsid -w env -i PATH=/usr/bin:/bin \"${e[@]}\" "
                "bwrap --dev-bind / / --bind %s /tmp -- \"$@\"\n",
                tmp);
        scratch_put(r->dir, "docker", text);
        assert_int_equal(chmod(program, 0755), 0);
        assert_int_equal(mkdir(tmp, 0755), 0);
        free(program);
        free(text);
        free(tmp);
}

static void a_container_runs_commands_by_docker_exec(void **state)
{
        struct rig *r = *state;
        char *before = mem_strdup(getenv("PATH")), *path;
        struct error err = { 0 };
        struct ran c;

        install_fake_docker(r);
        path = mem_printf("%s:%s", r->dir, before);
        setenv("PATH", path, 1);
        r->conf.kind = (char *)(uintptr_t) "docker:dev";
        ran_begin_command(
                &c, r,
                &(struct sandbox_command){
                        .command = "echo \"$PAGER $HOME\"; pwd; cat; (setsid sleep 600 &)",
                        .input = "in",
                        .input_n = 2,
                        .cwd = "/tmp" });
        ran_await(&c);
        assert_string_equal(c.out.data, "cat \n/tmp\nin");
        assert_non_null(strstr(c.why, "1 processes"));
        ran_release(&c);
        /* the client dies, and the processes in the container with it */
        ran_begin_command(
                &c, r,
                &(struct sandbox_command){ .command = "exec 9>lock; flock 9; echo up; sleep 600",
                                           .cwd = "/tmp" });
        ran_await_text(&c, "up");
        sandbox_end(r->all, 1);
        ran_release(&c);
        ran_begin_command(&c, r,
                          &(struct sandbox_command){ .command = "exec 9>lock; flock 9; echo free",
                                                     .cwd = "/tmp" });
        ran_await(&c);
        assert_string_equal(c.out.data, "free\n");
        ran_release(&c);
        sandbox_end(r->all, 1);

        r->conf.kind = (char *)(uintptr_t) "docker:other";
        assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
        assert_non_null(strstr(err.text, "create and start it"));
        r->conf.kind = (char *)(uintptr_t) "docker:--privileged";
        assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
        assert_non_null(strstr(err.text, "names no container"));
        setenv("PATH", "/nonexistent", 1);
        r->conf.kind = (char *)(uintptr_t) "docker:dev";
        assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
        assert_non_null(strstr(err.text, "needs the program docker"));
        setenv("PATH", before, 1);
        free(before);
        free(path);
}

/* ---- control groups, as folders that only look like some ---- */

static void expect_file(const char *dir, const char *name, const char *text)
{
        char *path = scratch_path(dir, name), got[100] = "";
        FILE *f = fopen(path, "r");

        if (!f)
                fail_msg("there is no %s", path);
        assert_non_null(fgets(got, sizeof(got), f));
        assert_string_equal(got, text);
        fclose(f);
        free(path);
}

/* Returns the number of the process, which has ended. */
static pid_t launch_in(const char *dir)
{
        char *groups = mem_printf("groups=%s", dir);
        const char *argv[] = { "box", "launch", "group=100:20", groups, "/bin/true", NULL };
        int image = box_image_fd(NULL), status;
        pid_t pid = fork();

        if (pid == 0) {
                fexecve(image, (char **)(uintptr_t)argv, (char *[]){ NULL });
                _exit(9);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        free(groups);
        return pid;
}

static void a_sandbox_gets_a_control_group_where_the_daemon_has_one(void **state)
{
        char *dir = scratch_new(), *members = mem_printf("%d\n", getpid()), *mine, *number;

        (void)state;
        scratch_put(dir, "cgroup.controllers", "cpu memory pids\n");
        scratch_put(dir, "cgroup.procs", members);
        mine = mem_printf("%s/sandbox-%d", dir, (int)launch_in(dir));
        number = mem_printf("%d", getpid());
        expect_file(dir, "daemon/cgroup.procs", number);
        expect_file(dir, "cgroup.subtree_control", "+memory +pids");
        expect_file(mine, "memory.max", "104857600");
        expect_file(mine, "pids.max", "20");
        expect_file(mine, "cgroup.procs", "0");
        free(mine);
        free(number);
        free(members);
        scratch_free(dir);
}

static void a_control_group_of_others_is_left_alone(void **state)
{
        static const struct {
                const char *controllers, *members;
        } rows[] = { { "cpu memory pids\n", "1\n" }, { "cpu\n", "" } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *dir = scratch_new(), *daemon = scratch_path(dir, "daemon");

                scratch_put(dir, "cgroup.controllers", rows[i].controllers);
                scratch_put(dir, "cgroup.procs", rows[i].members);
                launch_in(dir);
                assert_int_equal(access(daemon, F_OK), -1);
                free(daemon);
                scratch_free(dir);
        }
}

/* Landlock and seccomp forbid the daemon what a sandbox needs; the spawner is started before. */
static void a_confined_daemon_makes_sandboxes(void **state)
{
        static char *hosts[] = { (char *)(uintptr_t) "example.org" };
        int status;
        pid_t child = fork();

        (void)state;
        if (child == 0) {
                struct confine_report report = { 0 };
                struct error err = { 0 };
                struct rig r;
                struct ran c;

                rig_open(&r);
                r.conf.hosts = (struct setting_list){ hosts, 1, true };
                if (spawn_thread_start(&err) < 0 ||
                    confine_self((const char *const[]){ r.dir, NULL }, &report, &err) < 0)
                        _exit(2);
                ran_run(&c, &r,
                        "echo x >file; cat file; "
                        "curl -s http://example.net/ | grep -c sandbox.hosts");
                _exit(strcmp(c.out.data, "x\n1\n") == 0 ? 0 : 3);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(output_and_exit_code_arrive),
                TEST(the_channels_folder_is_writable_and_kept),
                TEST(commands_of_a_conversation_share_a_sandbox),
                TEST(another_view_is_another_sandbox),
                TEST(a_command_is_data_and_input_comes_by_stdin),
                TEST(commands_that_are_too_long_are_refused_with_advice),
                TEST(commands_run_side_by_side),
                TEST(the_working_directory_is_chosen_and_checked),
                TEST(a_call_ends_with_its_process_and_leftovers_are_killed),
                TEST(leftovers_of_one_command_are_not_those_of_another),
                TEST(the_timeout_ends_a_command_that_ignores_term),
                TEST(too_much_output_ends_a_command),
                TEST(an_abandoned_command_dies_without_a_report),
                TEST(a_command_that_kills_its_sandbox_gets_a_report),
                cmocka_unit_test(a_command_that_kills_or_stops_its_keeper_loses_its_sandbox),
                cmocka_unit_test(ending_a_conversation_ends_its_commands),
                TEST(an_idle_sandbox_ends),
                TEST(a_job_is_read_fed_and_killed),
                TEST(jobs_belong_to_their_conversation_and_are_limited),
                TEST(of_a_jobs_output_the_end_is_kept),
                TEST(a_job_that_floods_is_slowed_down),
                TEST(the_probe_tells_whether_it_works),
                cmocka_unit_test(a_sandbox_gets_a_control_group_where_the_daemon_has_one),
                cmocka_unit_test(a_control_group_of_others_is_left_alone),
                TEST(a_trial_at_the_start_tells_what_is_wrong),
                cmocka_unit_test(wrong_settings_are_named),
                cmocka_unit_test(a_confined_daemon_makes_sandboxes),
                TEST(on_the_host_only_the_manners_are_the_same),
                TEST(a_container_runs_commands_by_docker_exec),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
