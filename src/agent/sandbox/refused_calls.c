#include <errno.h>
#include <sys/syscall.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"

/*
 * A list of refused calls: programs that agents run use most of the others. New calls have the same
 * number on every architecture; headers of Debian 12 do not know all of them.
 */
#define OPEN_TREE_ATTR 467

static const int refused[] = {
        /* mounts and namespaces */
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_move_mount,
        SYS_open_tree,
        OPEN_TREE_ATTR,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_fspick,
        SYS_mount_setattr,
        SYS_setns,
        SYS_unshare,
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        /* keyrings are not part of any namespace */
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        /* memory and files of other processes */
        SYS_process_madvise,
        SYS_kcmp,
        SYS_pidfd_getfd,
        /* large, rarely used parts of the kernel, where most of its bugs are found */
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_fanotify_init,
        SYS_vmsplice,
        SYS_mbind,
        SYS_migrate_pages,
        SYS_move_pages,
        SYS_set_mempolicy,
        447, /* memfd_secret */
        /* the machine */
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
        443, /* quotactl_fd */
        SYS_syslog,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_adjtimex,
        SYS_clock_adjtime,
        SYS_sethostname,
        SYS_setdomainname,
        SYS_vhangup,
        SYS_lookup_dcookie,
        SYS_nfsservctl,
#ifdef __x86_64__
        SYS_iopl,
        SYS_ioperm,
        SYS_modify_ldt,
        SYS_uselib,
        SYS_ustat,
        SYS_sysfs,
        SYS__sysctl,
        SYS_create_module,
        SYS_get_kernel_syms,
        SYS_query_module,
#endif
};

static const int of_debuggers[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev };

bool sandbox_filter(struct seccomp *s, bool debuggers)
{
        if (!seccomp_begin(s))
                return false;
        if (!debuggers)
                seccomp_refuse(s, of_debuggers, COUNT(of_debuggers), EPERM);
        seccomp_refuse(s, refused, COUNT(refused), EPERM);
        seccomp_refuse_namespaces(s);
        seccomp_refuse_typing(s);
        seccomp_refuse_families(s);
        seccomp_refuse_personality(s);
        seccomp_end(s);
        return true;
}
