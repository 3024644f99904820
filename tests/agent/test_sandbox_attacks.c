/*
 * What programs in a sandbox must not reach. Each test fails when its defence is removed;
 * tests/hostile/sandbox_defences removes them one by one.
 *
 * The tests run as the user who starts them and, if that is root, once more as nobody.
 */
#include "sandbox_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/sandbox/sandbox_private.h"

#define CANARY "canary-7f3a91"
#define HIDDEN "4711-hidden"
/* to look for them without finding the command that looks */
#define CANARY_SEEN "canary-7f3a9[1]"
#define HIDDEN_SEEN "4711-hidde[n]"

static char *path_of(const struct rig *r, const char *channel, const char *name)
{
        return mem_printf("%s/workspace/channels/tg/%s/%s", r->dir, channel, name);
}

/* ---- probes: this program, copied into the channel's folder and run inside ---- */

/* Calls that succeed or fail differently without the filter; prints those not refused. */
static void probe_calls(void)
{
        static char stack[65536];
        struct {
                const char *name;
                long rc;
                int wrong; /* errno; 0: EPERM is right */
        } rows[32];
        size_t n = 0;
        char page[64];
        struct {
                void *base;
                size_t len;
        } vec = { page, sizeof(page) };
        struct {
                uint32_t bytes;
                int32_t type;
                char handle[128];
        } handle = { .bytes = 128 };
        int mount_id, null = open("/dev/null", O_RDWR);

#define CALL(number, ...)                                                \
        do {                                                             \
                errno = 0;                                               \
                rows[n].name = #number;                                  \
                rows[n].rc = syscall(number, __VA_ARGS__);               \
                rows[n].wrong = errno == EPERM ? 0 : errno ? errno : -1; \
                n++;                                                     \
        } while (0)
        CALL(SYS_unshare, CLONE_NEWUSER);
        CALL(SYS_clone, CLONE_NEWUSER | SIGCHLD, stack + sizeof(stack) - 64, 0, 0, 0);
        CALL(SYS_keyctl, 0, -3, 1);
        CALL(SYS_add_key, "user", "x", "y", 1, -3);
        CALL(SYS_request_key, "user", "x", 0, 0);
        CALL(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
        CALL(SYS_process_vm_readv, getpid(), &vec, 1, &vec, 1, 0);
        CALL(SYS_process_vm_writev, getpid(), &vec, 1, &vec, 1, 0);
        CALL(SYS_kcmp, getpid(), getpid(), 0, 0, 0);
        CALL(SYS_pidfd_getfd, -1, 0, 0);
        CALL(SYS_io_uring_setup, 1, page);
        CALL(SYS_userfaultfd, 1);
        CALL(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0);
        CALL(SYS_personality, ADDR_NO_RANDOMIZE);
        CALL(SYS_ioctl, null, TIOCSTI, "x");
        CALL(SYS_ioctl, null, TIOCLINUX, "x");
        CALL(SYS_vmsplice, -1, 0, 0, 0);
        CALL(SYS_mbind, 0, 0, 0, 0, 0, 0);
        CALL(447 /* memfd_secret */, 0);
        CALL(SYS_setns, -1, 0);
        CALL(SYS_open_tree, -1, "", 1 << 20);
        for (size_t i = 0; i < n; i++)
                if (rows[i].wrong)
                        printf("%s: %s\n", rows[i].name, strerror(rows[i].wrong));
        if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
                printf("clone3: %s\n", strerror(errno));
        if (syscall(SYS_personality, 0xffffffff) < 0)
                printf("asking for the personality: %s\n", strerror(errno));
        for (int family = 0; family < 46; family++) {
                bool allowed = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                               family == AF_NETLINK;

                if (socket(family, SOCK_STREAM, 0) < 0 && errno != EAFNOSUPPORT && !allowed)
                        printf("socket family %d: %s\n", family, strerror(errno));
        }
        if (socket(AF_VSOCK, SOCK_STREAM, 0) >= 0)
                printf("vsock\n");
        printf("done\n");
}

/* Tries to connect to a socket: "@name" is abstract. */
static void probe_connect(const char *name)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

        memcpy(to.sun_path, name, strlen(name));
        if (name[0] == '@')
                to.sun_path[0] = '\0';
        printf("%s\n", connect(fd, (struct sockaddr *)&to, n) == 0 ? "connected" : strerror(errno));
}

static long search_keyring(void)
{
        return syscall(SYS_keyctl, 10 /* search */, -3 /* session */, "user", "dragoman-test", 0);
}

static int probe(char **argv)
{
        if (strcmp(argv[0], "calls") == 0)
                probe_calls();
        else if (strcmp(argv[0], "connect") == 0 && argv[1])
                probe_connect(argv[1]);
        else if (strcmp(argv[0], "keyring") == 0)
                printf("%s\n", search_keyring() < 0 ? strerror(errno) : "found");
        return 0;
}

/* A sanitizer maps terabytes and looks for leaks by ptrace. */
static void put_probe(struct rig *r)
{
        char *to = path_of(r, "42", "probe");
        char *command = mem_printf("cp /proc/%d/exe '%s' && chmod 755 '%s'", getpid(), to, to);

        r->conf.memory_mb = 0;
        assert_int_equal(system(command), 0);
        free(command);
        free(to);
}

#define PROBE "ASAN_OPTIONS=detect_leaks=0 ./probe probe "

/* ---- secrets ---- */

static void no_secret_of_the_daemon_is_in_any_environment(void **state)
{
        struct rig *r = *state;

        setenv("DRAGOMAN_TEST_KEY", CANARY, 1);
        rig_expect(
                r,
                "grep -las " CANARY_SEEN " /proc/*/environ /proc/*/cmdline; env | grep " CANARY_SEEN
                "; env | cut -d= -f1 | sort | tr '\n' ' '",
                "DEBIAN_FRONTEND GIT_PAGER GIT_TERMINAL_PROMPT HOME LANG PAGER PATH PWD SHLVL TERM "
                "USER _ ");
        unsetenv("DRAGOMAN_TEST_KEY");
}

static void other_channels_do_not_exist_inside(void **state)
{
        struct rig *r = *state;

        rig_view(r, HIDDEN);
        scratch_put(r->dir, "workspace/channels/tg/" HIDDEN "/secret.txt", CANARY "\n");
        rig_view(r, "42");
        rig_expect(r, "ls /workspace/channels /workspace/channels/tg",
                   "/workspace/channels:\ntg\n\n/workspace/channels/tg:\n42\n");
        rig_expect(r, "cat ../" HIDDEN "/secret.txt /workspace/channels/tg/" HIDDEN "/secret.txt",
                   "");
        /* nor are their names in what can be seen of bubblewrap */
        rig_expect(r, "grep -las " HIDDEN_SEEN " /proc/*/cmdline /proc/*/environ /proc/*/mountinfo",
                   "");
        rig_expect(r,
                   "grep -rs " CANARY_SEEN
                   " /workspace /etc /run /tmp /home /dev/shm /proc/1/root/workspace",
                   "");
        /* nor is one that is made later */
        rig_view(r, "late");
        rig_view(r, "42");
        rig_expect(r, "ls /workspace/channels/tg", "42\n");
}

static void no_descriptor_of_ours_is_inherited(void **state)
{
        struct rig *r = *state;
        int root = open("/", O_RDONLY | O_DIRECTORY); /* not close-on-exec */

        assert_int_equal(dup2(root, 100), 100);
        rig_expect(r, "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ");
        /* the processes around it keep theirs to themselves */
        rig_expect(r, "for p in /proc/[0-9]*; do ls $p/fd/100 $p/fd/3/etc 2>/dev/null; done", "");
        close(100);
        close(root);
}

static void the_keyring_is_not_ours(void **state)
{
        struct rig r;
        int32_t key;

        (void)state;
        syscall(SYS_keyctl, 1 /* join a session keyring */, "dragoman-test");
        key = (int32_t)syscall(SYS_add_key, "user", "dragoman-test", CANARY, strlen(CANARY),
                               -3 /* session */);
        if (key < 0)
                skip(); /* this kernel has none */
        rig_open(&r);
        put_probe(&r);
        assert_int_equal(search_keyring(), key);
        /* without the filter of bwrap: the launcher leaves the keyring behind */
        r.conf.kind = (char *)(uintptr_t) "host";
        rig_expect(&r, PROBE "keyring", "Required key not available\n");
        rig_close(&r);
        /* the kernel lists the names of all keys of the user, whatever the session */
        rig_open(&r);
        rig_expect(&r, "cat /proc/keys 2>/dev/null | grep dragoman-test; echo searched",
                   "searched\n");
        rig_close(&r);
        syscall(SYS_keyctl, 3 /* revoke */, key);
}

/* ---- files ---- */

static void the_system_is_read_only_and_ours(void **state)
{
        struct rig *r = *state;

        rig_expect(r, "ls /etc/shadow /root /sys /var /boot 2>/dev/null", "");
        rig_expect(
                r,
                "for d in / /usr /etc /dev /workspace /workspace/channels /workspace/channels/tg; "
                "do touch $d/x 2>/dev/null && echo $d; done",
                "");
        rig_expect(r, "cat /etc/passwd", "agent:x:1000:1000:agent:/home/agent:/bin/bash\n");
        rig_expect(r, "cat /etc/hostname 2>/dev/null; hostname", "sandbox\n");
        rig_expect(r, "mv /workspace/channels /workspace/c2 2>/dev/null || echo no", "no\n");
        rig_expect(r, "mv /workspace/channels/tg/42 /tmp/42 2>/dev/null || echo no", "no\n");
}

static void a_link_in_place_of_the_channel_is_not_followed(void **state)
{
        struct rig *r = *state;
        struct workspace_view *view = NULL;
        char *folder, *aside;

        folder = path_of(r, "42", "");
        folder[strlen(folder) - 1] = '\0';
        aside = path_of(r, "41", "");
        aside[strlen(aside) - 1] = '\0';
        assert_int_equal(rename(folder, aside), 0);
        assert_int_equal(symlink("/etc", folder), 0);
        assert_int_equal(workspace_view_open(r->dir, "tg", "42", &view, NULL), -1);
        /* the folder that was opened before is still the one */
        rig_expect(r, "ls -d passwd 2>/dev/null; pwd", "/workspace/channels/tg/42\n");
        free(folder);
        free(aside);
}

/* A daemon that is root changes the real user: the one inside is not root in disguise. */
static void files_of_root_are_closed(void **state)
{
        struct rig *r = *state;
        char *file;

        if (geteuid() != 0)
                skip();
        file = path_of(r, "42", "of-root");
        scratch_put(r->dir, "workspace/channels/tg/42/of-root", CANARY "\n");
        assert_int_equal(chmod(file, 0600), 0);
        rig_expect(r, "cat of-root 2>/dev/null || echo no", "no\n");
        free(file);
}

/* ---- rights ---- */

static void there_are_no_capabilities_and_no_way_to_new_ones(void **state)
{
        struct rig *r = *state;

        rig_expect(r,
                   "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status "
                   "| tr -d '\\t\\n'",
                   "CapInh:0000000000000000CapPrm:0000000000000000CapEff:0000000000000000"
                   "CapBnd:0000000000000000CapAmb:0000000000000000NoNewPrivs:1Seccomp:2");
        rig_expect(r, "id -u; id -g", "1000\n1000\n");
}

static void system_calls_are_refused(void **state)
{
        struct rig *r = *state;

        put_probe(r);
        rig_expect(r, PROBE "calls", "done\n");
}

/* Runs a filter as the kernel does. */
static uint32_t judge(const struct seccomp *s, const struct seccomp_data *call)
{
        uint32_t a = 0;

        for (size_t at = 0; at < s->n; at++) {
                const struct sock_filter *f = &s->code[at];
                bool yes = false;

                switch (f->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        memcpy(&a, (const char *)call + f->k, sizeof(a));
                        continue;
                case BPF_RET | BPF_K:
                        return f->k;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        yes = a == f->k;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        yes = a >= f->k;
                        break;
                case BPF_JMP | BPF_JSET | BPF_K:
                        yes = (a & f->k) != 0;
                        break;
                default:
                        fail();
                }
                at += yes ? f->jt : f->jf;
        }
        fail();
        return 0;
}

/* Most of these need rights that nobody has inside, so calling them would prove nothing. */
static void the_filter_refuses_the_whole_list(void **state)
{
        static const int calls[] = {
                SYS_mount,
                SYS_umount2,
                SYS_pivot_root,
                SYS_chroot,
                SYS_move_mount,
                SYS_open_tree,
                SYS_fsopen,
                SYS_fsconfig,
                SYS_fsmount,
                SYS_fspick,
                SYS_mount_setattr,
                SYS_setns,
                SYS_unshare,
                SYS_keyctl,
                SYS_add_key,
                SYS_request_key,
                SYS_bpf,
                SYS_perf_event_open,
                SYS_ptrace,
                SYS_process_vm_readv,
                SYS_process_vm_writev,
                SYS_kcmp,
                SYS_process_madvise,
                SYS_pidfd_getfd,
                SYS_userfaultfd,
                SYS_io_uring_setup,
                SYS_io_uring_enter,
                SYS_io_uring_register,
                SYS_name_to_handle_at,
                SYS_open_by_handle_at,
                SYS_kexec_load,
                SYS_kexec_file_load,
                SYS_init_module,
                SYS_finit_module,
                SYS_delete_module,
                SYS_reboot,
                SYS_swapon,
                SYS_swapoff,
                SYS_acct,
                SYS_quotactl,
                443 /* quotactl_fd */,
                SYS_syslog,
                SYS_settimeofday,
                SYS_clock_settime,
                SYS_adjtimex,
                SYS_clock_adjtime,
                SYS_fanotify_init,
                SYS_vmsplice,
                SYS_mbind,
                SYS_migrate_pages,
                SYS_move_pages,
                SYS_set_mempolicy,
                447 /* memfd_secret */,
                467 /* open_tree_attr */,
        };
        struct seccomp_data call = { .arch = 0 };
        struct seccomp s;

        (void)state;
        assert_true(sandbox_filter(&s, false));
        call.nr = SYS_getpid;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ERRNO | EPERM); /* of another machine */
        call.arch = s.code[1].k;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ALLOW);
        for (size_t i = 0; i < COUNT(calls); i++) {
                call.nr = calls[i];
                if (judge(&s, &call) != (SECCOMP_RET_ERRNO | EPERM))
                        fail_msg("call %d is not refused", calls[i]);
        }
        assert_true(sandbox_filter(&s, true));
        call.nr = SYS_ptrace;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ALLOW);
        call.nr = SYS_clone3;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ERRNO | ENOSYS);
        call.nr = SYS_socket;
        call.args[0] = AF_VSOCK;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
        call.args[0] = AF_INET6;
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ALLOW);
        call.nr = SYS_ioctl;
        call.args[1] = TIOCSTI | 1ULL << 32; /* the kernel reads 32 bits */
        assert_int_equal(judge(&s, &call), SECCOMP_RET_ERRNO | EPERM);
}

/*
 * Some arguments of bubblewrap have an equal in the filter or in how we start it, so no test inside
 * could tell that they are gone.
 */
static void the_argument_list_is_complete(void **state)
{
        struct rig *r = *state;
        static const char *const words[] = {
                "--unshare-all", "--unshare-user", "--disable-userns",
                "--cap-drop",    "--new-session",  "--die-with-parent",
                "--remount-ro",  "--seccomp",      "--json-status-fd"
        };
        char text[8192], *number = NULL;
        struct sandbox_launch l;
        ssize_t n = -1;

        assert_int_equal(launch_prepare(&l, &r->conf, r->view, NULL), 0);
        for (size_t i = 0; i + 1 < l.argc; i++)
                if (strcmp(l.argv[i], "--args") == 0)
                        number = mem_strdup(l.argv[i + 1]);
        assert_non_null(number);
        for (size_t i = 0; i < l.fd_count; i++)
                if (l.fds[i].child == strtol(number, NULL, 10))
                        n = read(l.fds[i].here, text, sizeof(text) - 1);
        assert_true(n > 0);
        for (size_t i = 0; i < COUNT(words); i++)
                if (!memmem(text, (size_t)n, words[i], strlen(words[i]) + 1))
                        fail_msg("%s is missing", words[i]);
        free(number);
        launch_release(&l);
}

/* ---- other processes ---- */

static void processes_outside_are_invisible(void **state)
{
        struct rig *r = *state;
        struct ran c;

        ran_run(&c, r,
                "for p in /proc/[0-9]*; do cat $p/comm; done | sort | uniq -c | wc -l; "
                "ls /proc/1/root/ | grep -c workspace; readlink /proc/1/cwd; "
                "ls -d /proc/[0-9]* | wc -l");
        /* bwrap, the server, the keeper, bash, and what bash starts here */
        assert_true(strtol(strrchr(c.out.data, '\n') - 1, NULL, 10) < 9);
        ran_release(&c);
        /* no process of the server can be looked into or changed */
        rig_expect(r,
                   "for p in $PPID 2; do cat /proc/$p/environ /proc/$p/mem 2>/dev/null; "
                   "ls /proc/$p/fd 2>/dev/null; : >/proc/$p/mem && echo open; done 2>/dev/null",
                   "");
}

/* A session of its own: there is no terminal to type into. */
static void there_is_no_terminal(void **state)
{
        struct rig *r = *state;

        rig_expect(r, "echo x >/dev/tty || echo none; cut -d' ' -f6,7 /proc/2/stat", "none\n1 0\n");
}

static int listen_at(const char *name)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));

        assert_true(strlen(name) < sizeof(at.sun_path));
        memcpy(at.sun_path, name, strlen(name));
        if (name[0] == '@')
                at.sun_path[0] = '\0';
        assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(listen(fd, 1), 0);
        return fd;
}

static void sockets_of_programs_outside_cannot_be_reached(void **state)
{
        struct rig *r = *state;
        char abstract[64];
        char *path, *command;
        int a, b;

        put_probe(r);
        snprintf(abstract, sizeof(abstract), "@dragoman-test-%d", getpid());
        path = path_of(r, "42", "planted");
        a = listen_at(abstract);
        b = listen_at(path);
        assert_int_equal(chmod(path, 0777), 0);
        command = mem_printf(PROBE "connect %s", abstract);
        rig_expect(r, command, "Connection refused\n");
        free(command);
        rig_expect(r, PROBE "connect planted", "No such file or directory\n");
        close(a);
        close(b);
        free(path);
}

static void there_is_no_network(void **state)
{
        struct rig *r = *state;
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t n = sizeof(at);
        char *command;

        assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
        command = mem_printf("(exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null || echo refused",
                             ntohs(at.sin_port));
        rig_expect(r, command, "refused\n");
        rig_expect(r, "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '", "lo\n");
        free(command);
        close(fd);
}

/* ---- limits ---- */

static void a_fork_bomb_is_limited(void **state)
{
        struct rig *r = *state;
        struct ran c;
        long n;

        r->conf.processes = 30;
        /* dash gives up at once when it cannot fork; bash would wait and try again */
        ran_run(&c, r,
                "exec sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do for k in 1 2 3 4 5 6 7 8; do "
                "sleep 600 & echo x; done; done'");
        n = (long)c.out.len / 2;
        assert_true(n > 10 && n < 30);
        ran_release(&c);
        rig_expect(r, "echo alive", "alive\n");
}

static void memory_is_limited(void **state)
{
        struct rig *r = *state;

        r->conf.memory_mb = 100;
        /* tail keeps what has no lines */
        rig_expect(r, "head -c 300M /dev/zero | tail -n 1 | wc -c", "0\n");
}

static void files_and_folders_in_memory_are_limited(void **state)
{
        struct rig *r = *state;
        struct ran c;

        r->conf.file_mb = 2048;
        rig_expect(r,
                   "for d in /tmp /home/agent /dev/shm; do head -c 300M /dev/zero >$d/x && echo "
                   "$d; rm $d/x; done 2>/dev/null",
                   "");
        sandbox_end(r->all, 1);
        r->conf.file_mb = 1;
        ran_run(&c, r, "exec head -c 3M /dev/zero >big");
        assert_int_equal(c.signal, SIGXFSZ);
        assert_string_equal(c.why, "it wrote a file of more than 1 MiB");
        ran_release(&c);
}

static void a_full_folder_can_only_be_emptied(void **state)
{
        struct rig *r = *state;
        struct ran c;
        bool refused = false;

        r->conf.disk_mb = 4;
        rig_expect(r, "for i in 1 2 3 4 5; do head -c 1M /dev/urandom >file$i; done", "");
        for (int i = 0; i < 1000 && !refused; i++) { /* until it was measured */
                ran_run(&c, r, "echo x >one-more");
                refused = strstr(c.why, "is full (5 of 4 MiB)") != NULL;
                ran_release(&c);
        }
        assert_true(refused);
        rig_expect(r, "rm file1 file2 file3 one-more", "");
        for (int i = 0; i < 1000 && refused; i++) {
                ran_run(&c, r, "echo x >one-more");
                refused = c.why[0] != '\0';
                ran_release(&c);
        }
        assert_false(refused);
}

static void cpu_time_is_limited(void **state)
{
        struct rig *r = *state;
        struct ran c;

        r->conf.cpu_seconds = 1;
        ran_run(&c, r, "while :; do :; done");
        assert_true(c.signal == SIGXCPU || c.signal == SIGKILL);
        ran_release(&c);
}

/* ---- the end ---- */

static void on_alarm(int signal)
{
        (void)signal;
}

/* Runs a command that has a lock, tells when it has, and waits to be killed. No assertions here. */
static void be_daemon(struct rig *r, int up)
{
        static const struct sandbox_handlers h = { rig_on_output, rig_on_exit };
        static const char script[] = "exec 9>lock; flock 9; (setsid sleep 90 &); echo up; sleep 91";
        struct ran c = { .rig = r };

        buf_init(&c.out, 0);
        buf_init(&c.err, 0);
        r->loop = loop_new(); /* a loop does not survive a fork */
        r->all = sandboxes_new(r->loop, &r->conf, r->dir);
        c.run = sandbox_start(r->all, &r->key, &(struct sandbox_command){ .command = script }, &h,
                              &c, NULL);
        while (c.run && !c.exited && !strstr(c.out.data, "up"))
                loop_step(r->loop, true);
        if (c.run && !c.exited && write(up, "x", 1) == 1)
                pause();
        _exit(1);
}

/* After a crash of the daemon nothing of it lives on. */
static void everything_dies_with_the_daemon(void **state)
{
        struct rig *r = *state;
        char *path, c;
        int up[2], status, fd;
        pid_t daemon;

        assert_int_equal(pipe(up), 0);
        daemon = fork();
        if (daemon == 0)
                be_daemon(r, up[1]);
        close(up[1]);
        assert_int_equal(read(up[0], &c, 1), 1);
        assert_int_equal(kill(daemon, SIGKILL), 0);
        assert_int_equal(waitpid(daemon, &status, 0), daemon);
        path = path_of(r, "42", "lock");
        fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
        alarm(PATIENCE_MS / 1000);
        assert_int_equal(flock(fd, LOCK_EX), 0); /* waits for the last process that has it */
        alarm(0);
        close(fd);
        close(up[0]);
        free(path);
}

/* ---- where it does not work ---- */

static void a_machine_without_user_namespaces_is_refused_with_advice(void **state)
{
        int status;
        pid_t child = fork();

        (void)state;
        if (child == 0) {
                static const int unshare_call[] = { SYS_unshare };
                struct sock_fprog program;
                struct error err = { 0 };
                struct seccomp s;
                struct rig r;

                rig_open(&r);
                seccomp_begin(&s);
                seccomp_refuse(&s, unshare_call, 1, EPERM);
                seccomp_refuse_namespaces(&s);
                seccomp_end(&s);
                program = (struct sock_fprog){ s.n, s.code };
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                        _exit(2);
                if (sandbox_probe(&r.conf, r.dir, &err) == 0)
                        _exit(3);
                if (err.kind != ERR_REFUSED || !strstr(err.text, "new namespace") ||
                    !strstr(err.text, "user.max_user_namespaces"))
                        _exit(4);
                rig_close(&r);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* What bubblewrap really says there, from a program that says it. */
static void each_place_where_it_fails_has_its_advice(void **state)
{
        struct rig *r = *state;
        static const struct {
                const char *says, *advice;
        } rows[] = {
                { "bwrap: Creating new namespace failed: Operation not permitted",
                  "user.max_user_namespaces" },
                { "bwrap: No permissions to create new namespace, likely because the kernel does "
                  "not allow non-privileged user namespaces.",
                  "kernel.unprivileged_userns_clone" },
                { "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
                  "systempaths=unconfined" },
                { "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
                  "bwrap-userns-restrict" },
                { "bwrap: setting up uid map: Permission denied", "bwrap-userns-restrict" },
                { "bwrap: Unknown option --bind-fd", "too old" },
                { "", "docs/AGENT.md" },
        };
        char *before = mem_strdup(getenv("PATH"));
        char *program, *path;

        chmod(r->dir, 0755);
        program = scratch_path(r->dir, "bwrap");
        path = mem_printf("%s:%s", r->dir, before);
        setenv("PATH", path, 1);
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *script = mem_printf("#!/bin/sh\necho \"%s\" >&2\nexit 1\n", rows[i].says);
                struct error err = { 0 };

                scratch_put(r->dir, "bwrap", script);
                assert_int_equal(chmod(program, 0755), 0);
                assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
                assert_int_equal(err.kind, ERR_REFUSED);
                if (!strstr(err.text, rows[i].advice) || !strstr(err.text, rows[i].says))
                        fail_msg("%s", err.text);
                free(script);
        }
        setenv("PATH", "/nonexistent", 1);
        {
                struct error err = { 0 };

                assert_int_equal(sandbox_probe(&r->conf, r->dir, &err), -1);
                assert_non_null(strstr(err.text, "install the package bubblewrap"));
        }
        setenv("PATH", before, 1);
        free(before);
        free(program);
        free(path);
}

static int run_all(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(no_secret_of_the_daemon_is_in_any_environment),
                TEST(other_channels_do_not_exist_inside),
                TEST(no_descriptor_of_ours_is_inherited),
                cmocka_unit_test(the_keyring_is_not_ours),
                TEST(the_system_is_read_only_and_ours),
                TEST(a_link_in_place_of_the_channel_is_not_followed),
                TEST(files_of_root_are_closed),
                TEST(there_are_no_capabilities_and_no_way_to_new_ones),
                TEST(system_calls_are_refused),
                cmocka_unit_test(the_filter_refuses_the_whole_list),
                TEST(the_argument_list_is_complete),
                TEST(processes_outside_are_invisible),
                TEST(there_is_no_terminal),
                TEST(sockets_of_programs_outside_cannot_be_reached),
                TEST(there_is_no_network),
                TEST(a_fork_bomb_is_limited),
                TEST(memory_is_limited),
                TEST(files_and_folders_in_memory_are_limited),
                TEST(a_full_folder_can_only_be_emptied),
                TEST(cpu_time_is_limited),
                TEST(everything_dies_with_the_daemon),
                cmocka_unit_test(a_machine_without_user_namespaces_is_refused_with_advice),
                TEST(each_place_where_it_fails_has_its_advice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Once more as a user without rights. */
static int run_as_nobody(char **argv)
{
        int status;
        pid_t child = fork();

        if (child == 0) {
                if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
                    setresuid(65534, 65534, 65534) < 0)
                        _exit(1);
                execv("/proc/self/exe", argv);
                _exit(1);
        }
        return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
        int failed;

        if (argc > 2 && strcmp(argv[1], "probe") == 0)
                return probe(argv + 2);
        failed = run_all();
        return geteuid() == 0 ? failed + run_as_nobody(argv) : failed;
}
