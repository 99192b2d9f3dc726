"""System calls grouped by purpose, for the filters."""

from typing import Final

__all__ = [
    "ALLOWED_FOR_PYTHON",
    "ALLOWED_FOR_SHELL",
    "CHANGES_MODES",
    "CHANGES_OWNERS",
    "DANGEROUS",
    "NEW_NAMESPACES",
    "REFUSED_FOR_PYTHON",
    "SHARED_MEMORY",
]

NEW_NAMESPACES: Final = 0x7E020080
"""Every CLONE_NEW* flag of `clone`, including CLONE_NEWTIME."""

_FILES: Final = """
    read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek close close_range open openat creat
    stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat statfs fstatfs getdents getdents64
    getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat
    truncate ftruncate fallocate fsync fdatasync fadvise64 sendfile copy_file_range umask dup dup2 dup3 pipe pipe2
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
"""
_MEMORY: Final = "mmap mprotect munmap brk mremap msync madvise mincore munlock munlockall mlock mlock2"
_THREADS: Final = """
    set_robust_list rseq set_tid_address gettid sched_yield exit exit_group restart_syscall wait4 waitid
"""
_SIGNALS: Final = """
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause signalfd
    signalfd4
"""
_TIME: Final = """
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times getitimer setitimer alarm
    timerfd_create timerfd_settime timerfd_gettime
"""
_WAITING: Final = """
    select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
"""
_SELF: Final = """
    getpid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getgroups getresuid getresgid capget getrlimit
    setrlimit getrusage uname sysinfo getcpu getrandom getpriority sched_get_priority_max sched_get_priority_min
    sched_getaffinity sched_getscheduler sched_getparam
"""
# For the ends of a socketpair; nothing that takes an address or control messages.
_SOCKETPAIRS: Final = "shutdown getsockname getpeername"

ALLOWED_FOR_PYTHON: Final = tuple(
    " ".join((_FILES, _MEMORY, _THREADS, _SIGNALS, _TIME, _WAITING, _SELF, _SOCKETPAIRS)).split()
)

CHANGES_MODES: Final = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat")
_OWNERS: Final = "chown fchown lchown fchownat"
_ATTRIBUTES: Final = "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"
CHANGES_OWNERS: Final = (*_OWNERS.split(), *_ATTRIBUTES.split())

# Refused for every contained program: fails with EPERM, where an unknown call fails with ENOSYS.
_KERNEL: Final = """
    bpf perf_event_open io_uring_setup io_uring_enter io_uring_register userfaultfd keyctl add_key request_key
    init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load reboot
    syslog _sysctl sysfs uselib swapon swapoff acct quotactl quotactl_fd iopl ioperm modify_ldt lookup_dcookie
    nfsservctl settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname vhangup vserver
    lsm_set_self_attr
"""
_NAMESPACES: Final = """
    unshare setns mount umount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount
    fspick mount_setattr statmount listmount name_to_handle_at open_by_handle_at fanotify_init fanotify_mark
"""
_OTHER_PROCESSES: Final = """
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_open pidfd_getfd
    pidfd_send_signal migrate_pages move_pages get_robust_list
"""
_SHARED: Final = """
    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr
"""
_OTHER: Final = "memfd_secret vmsplice mknod mknodat"
SHARED_MEMORY: Final = tuple(_SHARED.split())
DANGEROUS: Final = tuple(" ".join((_KERNEL, _NAMESPACES, _OTHER_PROCESSES, _SHARED, _OTHER)).split())

# Also refused for Python; shell commands need some of these.
_PROGRAMS_AND_SOCKETS: Final = """
    execve execveat fork vfork socket connect bind listen accept accept4 sendmsg sendmmsg recvmsg recvmmsg setsockopt
"""
_LEAVES_TRACES: Final = """
    memfd_create inotify_init inotify_init1 inotify_add_watch inotify_rm_watch flock splice tee sync syncfs
    sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set tkill rt_sigqueueinfo
    rt_tgsigqueueinfo mbind set_mempolicy set_mempolicy_home_node remap_file_pages
"""
# A timer can send any signal, also SIGCONT to a stopped process.
_TIMERS: Final = "timer_create timer_settime timer_gettime timer_getoverrun timer_delete"
_IDENTITY: Final = """
    setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups setpgid setsid capset seccomp
    landlock_create_ruleset landlock_add_rule landlock_restrict_self
"""
REFUSED_FOR_PYTHON: Final = tuple(" ".join((_PROGRAMS_AND_SOCKETS, _LEAVES_TRACES, _TIMERS, _IDENTITY)).split())

# Exceptions to DANGEROUS that programs started by a shell need.
ALLOWED_FOR_SHELL: Final = ("pidfd_open", "pidfd_send_signal", "get_robust_list")
