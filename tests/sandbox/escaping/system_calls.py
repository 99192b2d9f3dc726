"""Numbers of the system calls that payloads make by number, for this machine's processor."""

import platform

# From the kernel's tables: x86_64 first, then the generic table that aarch64 uses.
NUMBERS = {
    "read": (0, 63),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execveat": (322, 281),
    "fchmodat2": (452, 452),
    "fsopen": (430, 430),
    "io_uring_setup": (425, 425),
    "ioprio_get": (252, 31),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "renameat2": (316, 276),
    "rt_sigqueueinfo": (129, 138),
    "sched_setattr": (314, 274),
    "seccomp": (317, 277),
    "setns": (308, 268),
    "tkill": (200, 130),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utimensat": (280, 88),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "move_mount": (429, 429),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
}


def numbers() -> dict[str, int]:
    """By name, for the processor that this runs on."""
    column = ("x86_64", "aarch64").index(platform.machine())
    return {name: columns[column] for name, columns in NUMBERS.items()}
