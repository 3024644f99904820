#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/seccomp.h"

/* ---- memory ---- */

void confine_memory(bool allow, bool final, struct confine_report *report)
{
        struct rlimit cores;

        allow = allow || CONFINE_SANITIZED;
        report->dumps = allow;
        prctl(PR_SET_DUMPABLE, allow ? 1 : 0);
        if (getrlimit(RLIMIT_CORE, &cores) < 0)
                return;
        if (allow)
                cores.rlim_cur = cores.rlim_max;
        else
                cores.rlim_cur = 0;
        if (!allow && final)
                cores.rlim_max = 0;
        setrlimit(RLIMIT_CORE, &cores);
}

/* ---- Landlock: where it writes ---- */

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define LANDLOCK_OLDEST 2 /* before, files cannot be moved between folders; Linux 5.19 */

/* In a writable directory. Not links, devices, sockets or FIFOs: the daemon makes none. */
#define IN_FOLDER                                                        \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
         LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |  \
         LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)
#define IN_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
/* Refused elsewhere. Reading is not: secrets and certificates may be anywhere. */
#define CONTROLLED                                                               \
        (IN_FOLDER | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |           \
         LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

static int allow_writing(int rules, const char *path, uint64_t controlled, struct error *err)
{
        struct landlock_path_beneath_attr beneath = { .parent_fd = open(path, O_PATH | O_CLOEXEC) };
        struct stat st;
        int rc = -1;

        if (beneath.parent_fd >= 0 && fstat(beneath.parent_fd, &st) == 0) {
                beneath.allowed_access = (S_ISDIR(st.st_mode) ? IN_FOLDER : IN_FILE) & controlled;
                rc = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
                                  &beneath, 0);
        }
        if (rc < 0)
                error_set(err, ERR_INVALID, "cannot keep '%s' writable: %s", path, strerror(errno));
        if (beneath.parent_fd >= 0)
                close(beneath.parent_fd);
        return rc;
}

static int confine_writes(const char *const *writable, struct confine_report *report,
                          struct error *err)
{
        long version =
                syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        struct landlock_ruleset_attr attr = { .handled_access_fs = CONTROLLED };
        int rules, rc = 0;

        if (version < LANDLOCK_OLDEST) {
                snprintf(report->writes_why, sizeof(report->writes_why), "%s",
                         version > 0           ? "Landlock of this kernel is too old"
                         : errno == EOPNOTSUPP ? "Landlock is disabled in this kernel"
                                               : "this kernel has no Landlock, or it is filtered");
                return 0;
        }
        if (version < 3)
                attr.handled_access_fs &= ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
        rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
        if (rules < 0) {
                snprintf(report->writes_why, sizeof(report->writes_why), "%s", strerror(errno));
                return 0;
        }
        for (const char *const *path = writable; *path && rc == 0; path++)
                rc = allow_writing(rules, *path, attr.handled_access_fs, err);
        if (rc == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
                snprintf(report->writes_why, sizeof(report->writes_why), "%s", strerror(errno));
        else
                report->writes = rc == 0;
        close(rules);
        return rc;
}

/* ---- seccomp: which system calls it makes ---- */

/*
 * A list of refused calls, not of allowed ones: libraries change the calls they make with every
 * version. The unit's SystemCallFilter lists the allowed ones.
 */
static const int refused[] = {
#if !CONFINE_SANITIZED /* it reads memory by ptrace, and starts a program to find symbols */
        SYS_execve,
        SYS_execveat,
        SYS_ptrace,
        SYS_personality,
#endif
        /* memory and files of other processes */
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_kcmp,
        SYS_pidfd_getfd,
        /* namespaces and mounts */
        SYS_unshare,
        SYS_setns,
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
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        /* large, rarely used parts of the kernel, where most of its bugs are found */
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_fanotify_init,
        SYS_mbind,
        SYS_migrate_pages,
        SYS_move_pages,
        SYS_vmsplice,
        /* the machine */
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_sethostname,
        SYS_setdomainname,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_clock_adjtime,
        SYS_adjtimex,
        SYS_acct,
        SYS_quotactl,
        SYS_syslog,
        SYS_vhangup,
        /* other users and their rights */
        SYS_setuid,
        SYS_setgid,
        SYS_setreuid,
        SYS_setregid,
        SYS_setresuid,
        SYS_setresgid,
        SYS_setfsuid,
        SYS_setfsgid,
        SYS_setgroups,
        SYS_capset,
        SYS_mknodat,
#ifdef __x86_64__
        SYS_mknod,
        SYS_iopl,
        SYS_ioperm,
        SYS_modify_ldt,
        SYS_uselib,
#endif
};

static void confine_calls(struct confine_report *report)
{
        struct seccomp filter;
        struct sock_fprog program;

        if (!seccomp_begin(&filter)) {
                snprintf(report->calls_why, sizeof(report->calls_why), "unknown architecture");
                return;
        }
        seccomp_refuse(&filter, refused, COUNT(refused), EPERM);
        seccomp_refuse_namespaces(&filter);
        seccomp_refuse_typing(&filter);
        seccomp_refuse_families(&filter);
        seccomp_end(&filter);
        program = (struct sock_fprog){ .len = filter.n, .filter = filter.code };
        report->calls = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
        if (!report->calls)
                snprintf(report->calls_why, sizeof(report->calls_why), "%s",
                         errno == EINVAL ? "this kernel has no seccomp filters" : strerror(errno));
}

int confine_self(const char *const *writable, struct confine_report *report, struct error *err)
{
        /* both demand it: a program that is started later gains no rights */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                snprintf(report->writes_why, sizeof(report->writes_why), "%s", strerror(errno));
                snprintf(report->calls_why, sizeof(report->calls_why), "%s", strerror(errno));
                return 0;
        }
        if (confine_writes(writable, report, err) < 0)
                return -1;
        confine_calls(report);
        return 0;
}
