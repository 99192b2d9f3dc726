"""Containment of one process: begun once by a zygote, made ready by it for each run, completed by the run's process.

    entered = enter(view, tier, folder=folder)      # once, in the freshly exec'ed zygote, before anything is preloaded
    prepared = prepare(entered, limits, name="r1")  # in the zygote, before each fork
    if os.fork() == 0:
        confine(prepared, keep={0, 1, 2, 5})        # in the child, first of all
    prepared.release()                              # in the zygote

A process that was just forked, and the one that forked it, pay for each page that they touch. So what can be is made
ready once, and what is left for a run is two dozen system calls.
"""

import os
import resource
import signal
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ferrule.sandbox.linux import identity, landlock, limits, mounts, namespaces, seccomp, syscalls
from ferrule.sandbox.linux.limits import count_tasks
from ferrule.sandbox.linux.python_filter import PythonFilter, make_fork_filter
from ferrule.sandbox.mounted_files import MountedFile, link_files
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import VisiblePaths

__all__ = ["RunContainment", "RunLimits", "ZygoteContainment", "confine", "enter", "list_shared_mappings", "prepare"]

MB: Final = 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TASKS_BESIDE: Final = 1024  # container tier: how many more the user may have than when the zygote started
_HERE: Final = -100  # AT_FDCWD
_PLANS_AT_MOST: Final = 64
_DEVICES: Final = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom"))


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use."""

    memory: int = 512 * MB
    """Bytes of address space beyond what the zygote has mapped already."""
    scratch: int = 32 * MB
    """Bytes of its folder (full tier; in the container tier nothing but `file_size` holds)."""
    entries: int = 4096
    """Files and folders that its folder may hold (full tier)."""
    cpu: int = 60
    """Whole seconds of processor time, over all threads; a run that reaches them is killed."""
    files: int = 128
    """Descriptors open at a time."""
    threads: int = 64
    """Threads, and processes where a session may fork (full tier; in the container tier about a thousand)."""
    file_size: int = 32 * MB
    """Bytes of one file."""


@dataclass(frozen=True, slots=True)
class ZygoteContainment:
    """What a zygote keeps for its runs: `tier`, `view` and `scratch` are of use to others.

    `scratch` is, in the full tier, what is mounted anew for each run; else the folder that holds the runs' folders.
    """

    tier: Tier
    view: VisiblePaths
    scratch: Path
    home: namespaces.Home | None
    size: int
    """A descriptor of this process's `statm`."""
    maps: int
    """A descriptor of this process's `maps`."""
    capabilities: int
    tasks: int
    """How many tasks the user may have; 0 where a run has a user namespace, in which its own alone are counted."""
    landlock: int
    rights: tuple[tuple[int, int], ...]
    """Pairs of a descriptor and the Landlock rights granted beneath it."""
    filters: tuple[PythonFilter, PythonFilter]
    """Without forks, and with."""
    attach_call: tuple[syscalls.Ready, syscalls.Ready] | None
    """The same as calls, where they can be made ready once and for all: in the full tier."""
    plans: dict[tuple[object, ...], "_Plan"]
    """Runs mostly want the same: what was made ready for one serves the next."""
    files: tuple[MountedFile, ...] = ()
    """What each run's folder has links to."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The calls that are the same for every run of some limits."""

    zygotes: tuple[syscalls.Ready, ...]
    """Before the fork: namespaces and scratch."""
    back: tuple[syscalls.Ready, ...]
    """After the fork: out of those namespaces."""
    childs: tuple[syscalls.Ready, ...]
    last: tuple[syscalls.Ready, ...]
    """The child's closing of descriptors."""
    folder: str | None
    """The run's own, where it is the same for all."""


@dataclass(frozen=True, slots=True)
class RunContainment:
    """What one run's process needs to contain itself. Its parent releases it after the fork."""

    entered: ZygoteContainment
    plan: _Plan
    rules: landlock.Ruleset | None
    calls: tuple[syscalls.Ready, ...]
    """The child's that are this run's own."""

    def release(self) -> None:
        """In the zygote, after the fork (or instead of it): what was made ready is the child's alone from now on."""
        if self.rules is not None:
            self.rules.close()
        for call in self.plan.back:
            syscalls.make(call)


class _ZygoteRoot(NamedTuple):
    """Where the runs will be: what differs between the tiers."""

    scratch: Path
    granted: list[tuple[Path, int]]
    home: namespaces.Home | None
    capabilities: int


def enter(
    view: VisiblePaths, tier: Tier, *, folder: Path | None = None, files: Sequence[MountedFile] = ()
) -> ZygoteContainment:
    """Contain this process, the zygote. It must be freshly exec'ed, with one thread.

    Full tier: on return the process is another one, pid 1 of its own pid namespace and forked from the caller, in
    user, net, ipc, uts, mount and cgroup namespaces of its own, with a root that holds the view alone. The caller's
    process never returns: it waits, holds no descriptors, and ends as the zygote ends; killing it kills the zygote.
    Container tier: `folder` (absolute, existing, the caller's own) is where the runs' own folders are made; a caller
    that is root becomes nobody, and so does the folder's owner. No tier: nothing is done, and `folder` serves the same.
    `files` are seen besides the view, and each run's folder has a link to each. Raises OSError where the kernel
    refuses, and for a file that isn't what it was when it was checked; ValueError for a view or folder that can't be.
    """
    zygote_root = _enter_full_root(view, files) if tier is Tier.FULL else _enter_shared_root(view, tier, folder)
    # Now that no path can lead elsewhere any more; or, where it still can, by what is granted itself.
    pinned = [file.open_pinned() for file in files]
    version = landlock.read_abi() if tier is not Tier.NONE else 0
    if zygote_root.home is not None:
        size, maps = zygote_root.home.size, zygote_root.home.maps
    else:
        size, maps = (os.open(f"/proc/self/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("statm", "maps"))
    _tighten(tier)
    # In the full tier whatever isn't the run's own is mounted read-only, so modes and lengths are safe with it.
    is_full = tier is Tier.FULL
    without, with_forks = (
        PythonFilter(metadata=is_full, truncation=is_full or version >= 3, forks=forks) for forks in (False, True)
    )
    calls = seccomp.attach_call(without.program(1)), seccomp.attach_call(with_forks.program(1))
    return ZygoteContainment(
        tier=tier,
        view=view,
        scratch=zygote_root.scratch,
        home=zygote_root.home,
        size=size,
        maps=maps,
        capabilities=zygote_root.capabilities,
        tasks=0 if is_full else count_tasks(os.getuid()) + _TASKS_BESIDE,
        landlock=version,
        rights=(
            *((os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in zygote_root.granted),
            *((descriptor, landlock.READ) for descriptor in pinned),
        ),
        filters=(without, with_forks),
        attach_call=calls if is_full else None,
        plans={},
        files=tuple(files),
    )


def list_shared_mappings(entered: ZygoteContainment) -> tuple[str, ...]:
    """The zygote's writable memory that its children would not get copies of, but share: lines of its `maps`.

    What one run writes there, the next one reads; so a zygote that has any after its preload must not serve.
    """
    os.lseek(entered.maps, 0, os.SEEK_SET)
    with open(entered.maps, "rb", closefd=False) as maps:
        lines = maps.read().decode(errors="replace").splitlines()
    return tuple(line for line in lines if line.split()[1][1] == "w" and line.split()[1][3] == "s")


def prepare(
    entered: ZygoteContainment,
    wanted: RunLimits,
    *,
    name: str = "run",
    keep: Collection[int] = (0, 1, 2),
    with_files: bool = True,
) -> RunContainment:
    """Make the next child's containment ready, in the zygote before the fork; the caller releases it after that.

    Full tier: the next child is pid 1 of a pid namespace of its own, and its scratch is mounted where it alone sees it.
    Else its folder `name` is made in the zygote's `folder`. `keep` are the descriptors that the child will keep;
    `with_files`: the folder has links to the zygote's files. Raises OSError; nothing is left to be released then.
    """
    plan = entered.plans.get((wanted, *keep))
    if plan is None:
        if len(entered.plans) >= _PLANS_AT_MOST:
            entered.plans.clear()
        plan = entered.plans[wanted, *keep] = _make_plan(entered, wanted, keep)
    memory = wanted.memory + _PAGE * int(os.pread(entered.size, 32, 0).split()[0])
    try:
        for call in plan.zygotes:
            syscalls.make(call)
        folder = plan.folder or _make_folder(entered.scratch / name)
        if with_files:
            link_files(entered.files, Path(folder))
        rules = None if entered.tier is Tier.NONE else _make_ruleset(entered, folder)
    except OSError:
        RunContainment(entered, plan, None, ()).release()
        raise
    calls = [syscalls.prepare_call("chdir", os.fsencode(folder)), *limits.lower_calls({resource.RLIMIT_AS: memory})]
    if rules is not None:
        calls.append(rules.restrict_call())
    return RunContainment(entered, plan, rules, tuple(calls))


def confine(
    prepared: RunContainment,
    *,
    keep: Collection[int] | None = None,
    parent: int | None = None,
    forks_through: int | None = None,
) -> None:
    """Contain this process, a child of the zygote, first of all after the fork; there is no way back.

    When it returns, the working directory is the run's own folder, empty but for links to the zygote's files: full
    tier, `/tmp/run` in a tmpfs of its own, where all of `/tmp` may be written, or `/scratch/run` where the view shows
    something below `/tmp`; container tier,
    `FOLDER/NAME`, which the parent removes (`temporary_folders.remove_tree`). Descriptors other than `keep` are closed;
    it is what `prepare` was told where it isn't given. `parent` is the forking process's pid, noted before the fork:
    where it has died meanwhile, this one ends (not needed in the full tier, where a pid namespace ends with its first).
    `forks_through` is for sessions: a connected unix socket through which the listener that decides about forks is sent
    (`linux.seccomp_notify`), and which is then closed; without it, no process is ever made. Raises OSError where the
    kernel refuses; the caller must then end without running anything.
    """
    entered, plan = prepared.entered, prepared.plan
    if entered.tier is not Tier.FULL:
        _die_with(os.getppid() if parent is None else parent)
    if forks_through is not None and entered.tier is not Tier.NONE:
        _send_listener(forks_through)
    for call in plan.childs:
        syscalls.make(call)
    for call in prepared.calls:
        syscalls.make(call)
    for call in plan.last if keep is None else syscalls.close_all_but_calls(keep):
        syscalls.make(call)
    if entered.tier is not Tier.NONE:
        syscalls.make(_make_filter_call(entered, forks_through is not None))


def _make_plan(entered: ZygoteContainment, wanted: RunLimits, keep: Collection[int]) -> _Plan:
    resources = {
        resource.RLIMIT_CPU: wanted.cpu,
        resource.RLIMIT_NOFILE: wanted.files,
        resource.RLIMIT_NPROC: entered.tasks or wanted.threads,
        resource.RLIMIT_FSIZE: wanted.file_size,
    }
    childs = [syscalls.prepare_call("setsid")]
    zygotes: list[syscalls.Ready] = []
    back: list[syscalls.Ready] = []
    folder = None
    if entered.home is not None:
        folder = str(entered.scratch / "run")
        back = namespaces.return_home_calls(entered.home)
        zygotes = [
            *namespaces.leave_for_next_child_calls(entered.home),
            mounts.mount_scratch_call(entered.scratch, wanted.scratch, wanted.entries),
            syscalls.prepare_call("mkdirat", _HERE, os.fsencode(folder), 0o700),
        ]
        # The last of its namespaces: from here on it owns nothing that runs share, and its tasks are counted alone.
        childs.append(syscalls.prepare_call("unshare", syscalls.CLONE_NEWUSER))
    childs += [*limits.lower_calls(resources), identity.drop_capabilities_call(keep=entered.capabilities)]
    return _Plan(tuple(zygotes), tuple(back), tuple(childs), tuple(syscalls.close_all_but_calls(keep)), folder)


def _make_folder(folder: Path) -> str:
    folder.mkdir(mode=0o700)
    return str(folder)


def _make_filter_call(entered: ZygoteContainment, forks: bool) -> syscalls.Ready:
    """In the full tier the pid is known before: a run's is 1, and the filter of what forks holds none."""
    if entered.attach_call is not None and (forks or os.getpid() == 1):
        return entered.attach_call[forks]
    return seccomp.attach_call(entered.filters[forks].program(os.getpid()))


def _tighten(tier: Tier) -> None:
    """What the zygote itself can do without, and each child inherits."""
    os.umask(0o022)
    limits.lower_for_all_runs()
    if tier is not Tier.NONE:
        seccomp.set_no_new_privileges()
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # no process of the same user traces it or reads its memory


def _make_ruleset(entered: ZygoteContainment, folder: str) -> landlock.Ruleset:
    rules = landlock.Ruleset(entered.landlock)
    for descriptor, rights in entered.rights:
        rules.grant(descriptor, rights)
    if entered.tier is Tier.FULL:
        rules.grant(str(entered.scratch), landlock.READ | landlock.WRITE | landlock.MAKE_SYMLINK)
    else:  # no links there: it is the parent that empties the folder
        rules.grant(folder, landlock.READ | landlock.WRITE)
    return rules


def _send_listener(through: int) -> None:
    listener = seccomp.attach_listening(make_fork_filter())
    with socket.socket(fileno=through) as keeper:
        socket.send_fds(keeper, [b"L"], [listener])
    os.close(listener)


def _die_with(parent: int) -> None:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _enter_full_root(view: VisiblePaths, files: Sequence[MountedFile]) -> _ZygoteRoot:
    paths, links = VisiblePaths((*view.readable, *(Path(file.path) for file in files))).plan()
    shown_in_tmp = any(Path("/tmp") in (path, *path.parents) for path in paths)
    scratch = Path("/scratch" if shown_in_tmp else "/tmp")
    home = namespaces.enter_namespaces(paths, links, scratch)
    granted = [(Path("/"), landlock.READ), (Path("/dev"), landlock.READ | landlock.WRITE_FILE)]
    return _ZygoteRoot(scratch, granted, home, 0)


def _enter_shared_root(view: VisiblePaths, tier: Tier, folder: Path | None) -> _ZygoteRoot:
    paths, _ = view.plan()
    if folder is None or not folder.is_absolute():
        raise ValueError(f"the {tier} tier needs an absolute folder in which the runs' own folders are made")
    devices = [(device, landlock.READ | landlock.WRITE_FILE) for device in _DEVICES if device.exists()]
    granted = [*((path, landlock.READ) for path in paths), *devices]
    if os.geteuid() != 0 or tier is not Tier.CONTAINER or not identity.has_user(identity.NOBODY):
        return _ZygoteRoot(folder, granted, None, 0)
    os.chown(folder, identity.NOBODY, identity.NOBODY)
    identity.become_nobody()
    # Root's capability to read is what is left, where Python may lie in a folder of root's own.
    return _ZygoteRoot(folder, granted, None, identity.CAP_DAC_READ_SEARCH)
