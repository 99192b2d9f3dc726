"""The filters, run on a small interpreter of their language: what each system call is answered, on both machines."""

import struct

import pytest

from ferrule.sandbox.linux.bpf import (
    ALLOW,
    KILL,
    NOTIFY,
    ArgumentCheck,
    ArgumentRule,
    assemble,
    get_high_offset,
    get_low_offset,
    refuse,
)
from ferrule.sandbox.linux.python_filter import PythonFilter, make_fork_notify_filter
from ferrule.sandbox.linux.shell_filter import make_shell_filter
from ferrule.sandbox.linux.syscall_groups import ALLOWED_FOR_PYTHON, DANGEROUS, REFUSED_FOR_PYTHON
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, get_syscall_numbers
from tables import each_case

EPERM, ENOSYS, ENOTTY, EOPNOTSUPP, ENOPROTOOPT = map(refuse, (1, 38, 25, 95, 92))
MACHINES = ["x86_64", "aarch64"]
X86 = AUDIT_ARCH["x86_64"]


def answer(program, number, *arguments, architecture=X86):
    """What the kernel's interpreter returns for a call."""
    words = [value & (1 << 64) - 1 for value in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = value = 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        match operation:
            case 0x20:
                value = struct.unpack_from("<I", data, operand)[0]
            case 0x54:
                value &= operand
            case 0x05:
                at += operand
            case 0x15:
                at += if_true if value == operand else if_false
            case 0x35:
                at += if_true if value >= operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"operation {operation:#x} isn't one that the kernel can work out in advance")


@pytest.mark.parametrize("count", [1, 2, 3, 40, 70])
def test_each_number_finds_its_own_decision(count):
    decisions = {number * 2: refuse(number % 100 + 1) for number in range(count)}
    program = assemble(decisions, ALLOW, architecture=X86)
    for number in range(count * 2 + 2):
        assert answer(program, number) == decisions.get(number, ALLOW)


def test_neighbours_with_one_decision_are_one_interval():
    assert len(assemble(dict.fromkeys(range(400), ALLOW), EPERM, architecture=X86)) < 12 * 8


def test_too_many_intervals_are_refused():
    with pytest.raises(ValueError, match="too many"):
        assemble({number * 2: refuse(number) for number in range(1, 300)}, ALLOW, architecture=X86)


def test_other_architectures_and_the_x32_table_are_killed():
    program = assemble({1: ALLOW}, ALLOW, architecture=X86)
    assert answer(program, 1, architecture=0x40000003) == KILL
    assert answer(program, 0x40000001) == KILL
    assert answer(program, -1) == KILL


def test_checks_hold_all_together_and_by_their_masks():
    rule = ArgumentRule(
        (
            ArgumentCheck(get_low_offset(0), (1, 2)),
            ArgumentCheck(get_low_offset(1), (4,), mask=0xF4),
            ArgumentCheck(get_high_offset(2), (0,)),
        ),
        EPERM,
    )
    program = assemble({7: rule}, ENOSYS, architecture=X86)
    assert answer(program, 7, 1, 4, 9) == ALLOW
    assert answer(program, 7, 2, 0x0F, 9) == ALLOW
    assert answer(program, 7, 3, 4, 9) == EPERM
    assert answer(program, 7, 1, 0x84, 9) == EPERM
    assert answer(program, 7, 1, 4, 1 << 32) == EPERM
    assert answer(program, 8) == ENOSYS


def test_unwanted_values_are_refused_and_others_not():
    program = assemble(
        {7: ArgumentRule((ArgumentCheck(get_low_offset(0), (1, 2, 3), wanted=False),), EPERM)}, ENOSYS, architecture=X86
    )
    assert [answer(program, 7, value) for value in range(5)] == [ALLOW, EPERM, EPERM, EPERM, ALLOW]


@pytest.mark.parametrize("machine", MACHINES)
def test_python_may_what_is_listed_and_nothing_else(machine):
    numbers, architecture = get_syscall_numbers(machine), AUDIT_ARCH[machine]
    program = PythonFilter(metadata=False, machine=machine).build_program(5)
    for name, number in numbers.items():
        found = answer(program, number, architecture=architecture)
        if name in DANGEROUS + REFUSED_FOR_PYTHON and name != "personality":
            assert found == EPERM, name
        elif name in ALLOWED_FOR_PYTHON:
            assert found == ALLOW, name
    assert answer(program, numbers["clone3"], architecture=architecture) == ENOSYS
    assert answer(program, 1000, architecture=architecture) == ENOSYS


@each_case(
    ("name", "arguments", "expected"),
    [
        ("kill", (5, 9), ALLOW),
        ("kill", (6, 9), EPERM),
        ("kill", (-1, 9), EPERM),
        ("kill", (0, 9), EPERM),
        ("kill", (5 | 1 << 32, 9), ALLOW),  # the kernel reads an int: this is 5
        ("tgkill", (5, 77, 9), ALLOW),
        ("tgkill", (77, 5, 9), EPERM),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (4,), EPERM),
        ("clone", (0x3D0F00,), ALLOW),
        ("clone", (0x01200011,), EPERM),
        ("clone", (0x3D0F00 | 0x10000000,), EPERM),
        ("clone", (0x3D0F00 & ~0x10000,), EPERM),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5412), ENOTTY),
        ("ioctl", (1, 0x541C), ENOTTY),
        ("ioctl", (1, 0x40049409), EOPNOTSUPP),
        ("ioctl", (1, 0x40049409 | 1 << 40), EOPNOTSUPP),
        ("ioctl", (1, 0x5401 | 1 << 40), ALLOW),
        ("fcntl", (1, 2), ALLOW),
        ("fcntl", (1, 8), EPERM),
        ("fcntl", (1, 10), EPERM),
        ("fcntl", (1, 1031), EPERM),
        ("prctl", (15,), ALLOW),
        ("prctl", (1,), EPERM),
        ("prctl", (22,), EPERM),
        ("socketpair", (1, 1 | 0x80000), ALLOW),
        ("socketpair", (1, 2), EPERM),
        ("socketpair", (2, 1), EPERM),
        ("getsockopt", (3, 1, 3), ALLOW),
        ("getsockopt", (3, 1, 17), ENOPROTOOPT),
        ("getsockopt", (3, 1, 77), ENOPROTOOPT),
        ("getsockopt", (3, 6, 3), ENOPROTOOPT),
        ("sendto", (3, 4, 5, 0x4000, 0, 0), ALLOW),
        ("sendto", (3, 4, 5, 0, 0x7FFF00000000, 0), EPERM),
        ("sendto", (3, 4, 5, 1, 0, 0), EPERM),
        ("mmap", (0, 1, 7, 0x22), ALLOW),
        ("mmap", (0, 1, 7, 0x40022), EPERM),
        ("futex", (0, 0x81), ALLOW),
        ("futex", (0, 0x86), ENOSYS),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x40000,), EPERM),
    ],
)
@each_case("machine", MACHINES)
def test_python_arguments(name, arguments, expected, machine):
    program = PythonFilter(metadata=True, machine=machine).build_program(5)
    number = get_syscall_numbers(machine)[name]
    assert answer(program, number, *arguments, architecture=AUDIT_ARCH[machine]) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_modes_are_changed_where_a_mount_holds_them(machine):
    number, architecture = get_syscall_numbers(machine)["fchmodat"], AUDIT_ARCH[machine]
    for metadata, expected in ((True, ALLOW), (False, EPERM)):
        program = PythonFilter(metadata=metadata, machine=machine).build_program(5)
        assert answer(program, number, architecture=architecture) == expected


def test_without_landlock_s_truncation_no_open_truncates_what_it_does_not_write():
    program = PythonFilter(metadata=False, truncation=False, machine="x86_64").build_program(5)
    numbers = get_syscall_numbers("x86_64")
    assert answer(program, numbers["truncate"]) == EPERM
    assert answer(program, numbers["openat"], 0, 0, 0o1000) == EPERM
    assert answer(program, numbers["openat"], 0, 0, 0o1003) == EPERM
    assert answer(program, numbers["openat"], 0, 0, 0o1001) == ALLOW  # to write: Landlock's to decide
    assert answer(program, numbers["open"], 0, 0o1000) == EPERM
    assert answer(program, numbers["open"], 0, 0) == ALLOW


def test_a_session_may_fork_if_its_listener_agrees_and_sends_no_signal():
    program, numbers = (
        PythonFilter(metadata=True, forks=True, machine="x86_64").build_program(5),
        get_syscall_numbers("x86_64"),
    )
    assert answer(program, numbers["clone"], 0x01200011) == ALLOW
    assert answer(program, numbers["clone"], 0x01200011 | 0x20000000) == EPERM
    assert answer(program, numbers["kill"], 5) == EPERM
    assert answer(program, numbers["prlimit64"], 5) == EPERM
    questions = make_fork_notify_filter("x86_64")
    assert answer(questions, numbers["clone"], 0x01200011) == NOTIFY
    assert answer(questions, numbers["clone"], 0x3D0F00) == ALLOW
    assert answer(questions, numbers["read"]) == ALLOW


@each_case("machine", MACHINES)
@each_case("network", [False, True])
@each_case("unix", [False, True])
@each_case("namespaced", [False, True])
def test_shell_commands(machine, network, unix, namespaced):
    numbers, architecture = get_syscall_numbers(machine), AUDIT_ARCH[machine]
    program = make_shell_filter(network, unix, namespaced=namespaced, machine=machine)

    def said(name, *arguments):
        return answer(program, numbers[name], *arguments, architecture=architecture)

    def when(condition):
        return ALLOW if condition else EPERM

    assert said("execve") == said("clone", 17) == said("clone", 0x4111) == said("setsid") == said("openat") == ALLOW
    assert (
        said("clone", 0x10000000)
        == said("unshare")
        == said("mount")
        == said("ptrace")
        == said("io_uring_setup")
        == EPERM
    )
    assert said("clone3") == ENOSYS
    assert said("socket", 2, 1) == said("socket", 10, 0x80002) == when(network)
    assert said("socket", 1, 1) == when(unix)
    assert said("socket", 16, 3) == said("socket", 17, 3) == said("socket", 2, 3) == said("socket", 40, 1) == EPERM
    assert said("socketpair", 1, 1) == ALLOW
    assert said("socketpair", 1, 2) == when(unix)
    assert said("connect") == when(network or unix)
    assert said("ioctl", 0, 0x5412) == said("ioctl", 0, 0x541C) == EPERM
    assert said("ioctl", 0, 0x5413) == ALLOW
    for option in (76, 77, 77 | 1 << 40):
        assert said("getsockopt", 3, 1, option) == said("setsockopt", 3, 1, option) == ENOPROTOOPT
    assert said("getsockopt", 3, 41, 77) == said("setsockopt", 3, 1, 9) == said("getsockopt", 3, 1, 17) == ALLOW
    for terminal_or_pipe in (0x5401, 0x5402, 0x802C542A, 0x541B, 0x5421, 0x80045430, 0x8912, 0x801C581F, 0x40049409):
        assert said("ioctl", 0, terminal_or_pipe) == ALLOW
    # FS_IOC_SETFLAGS, of 32 bits too, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC_ENABLE_VERITY,
    # FS_IOC_SET_ENCRYPTION_POLICY, FIDEDUPERANGE, FAT_IOCTL_SET_ATTRIBUTES, EXT4_IOC_MIGRATE, BTRFS_IOC_DEFRAG
    for of_a_file in (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40806685, 0x800C6613, 0xC0189436, 0x40047211):
        assert said("ioctl", 0, of_a_file) == said("ioctl", 0, of_a_file | 1 << 40) == (ALLOW if namespaced else ENOTTY)
    for of_a_filesystem in (0x6609, 0x50009402, 0xB701, 0xFF01):
        assert said("ioctl", 0, of_a_filesystem) == (ALLOW if namespaced else ENOTTY)
    assert said("ioctl", 0, 0x8901) == said("ioctl", 0, 0x8902) == said("fcntl", 0, 8) == when(namespaced)
    assert said("fcntl", 0, 1024) == said("fcntl", 0, 1026) == said("fcntl", 0, 1036) == said("fcntl", 0, 1038) == EPERM
    assert said("fcntl", 0, 2) == said("fcntl", 0, 1030) == said("fcntl", 0, 1031) == said("fcntl", 0, 1025) == ALLOW
    assert said("mknodat", 0, 0, 0o010644) == ALLOW
    assert said("mknodat", 0, 0, 0o020644) == EPERM
    assert said("fchmodat") == said("fchownat") == said("setxattr") == said("shmget") == when(namespaced)
    assert said("prlimit64", 7) == said("setpriority", 2, 0) == when(namespaced)
    assert said("prlimit64", 0) == said("setpriority", 0, 0) == ALLOW
    assert answer(program, 1000, architecture=architecture) == ENOSYS
