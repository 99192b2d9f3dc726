"""Contains a process: the zygote enters once, prepares each run, and the run's own process completes the containment.

    entered = enter(view, tier, folder=folder)      # once, in the freshly exec'ed zygote, before the preload
    prepared = prepare(entered, limits, name="r1")  # in the zygote, before each fork
    if os.fork() == 0:
        confine(prepared, keep={0, 1, 2, 5})        # in the child, before anything else
    prepared.release()                              # in the zygote

After a fork, parent and child pay for each page that they touch. So whatever can be is prepared once, and a run itself
makes only about two dozen system calls.
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
from ferrule.sandbox.linux.python_filter import PythonFilter, make_fork_notify_filter
from ferrule.sandbox.mounted_files import MountedFile, link_files
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import VisiblePaths

__all__ = ["RunContainment", "RunLimits", "ZygoteContainment", "confine", "enter", "list_shared_mappings", "prepare"]

MB: Final = 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_EXTRA_TASKS: Final = 1024  # container tier: allowed beyond those the user had when the zygote started
_AT_FDCWD: Final = -100
_MAX_PLANS: Final = 64
_DEVICES: Final = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom"))


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The resource limits of one run."""

    memory: int = 512 * MB
    """Bytes of address space beyond what the zygote has already mapped."""
    scratch: int = 32 * MB
    """Bytes of its folder (full tier; the container tier enforces only `file_size`)."""
    entries: int = 4096
    """Files and folders in its folder (full tier)."""
    cpu: int = 60
    """Whole seconds of CPU time over all threads; a run that reaches the limit is killed."""
    files: int = 128
    """Open descriptors."""
    threads: int = 64
    """Threads, and processes where a session may fork (full tier; in the container tier about a thousand)."""
    file_size: int = 32 * MB
    """Bytes per file."""


@dataclass(frozen=True, slots=True)
class ZygoteContainment:
    """The state that a zygote keeps for its runs; other modules use only `tier`, `view` and `scratch`.

    `scratch` is mounted anew for each run in the full tier; otherwise it is the folder that holds the runs' folders.
    """

    tier: Tier
    view: VisiblePaths
    scratch: Path
    handles: namespaces.NamespaceHandles | None
    size: int
    """Descriptor of this process's `statm`."""
    maps: int
    """Descriptor of this process's `maps`."""
    capabilities: int
    tasks: int
    """The user's task limit; 0 where each run has a user namespace, which counts only its own tasks."""
    landlock: int
    rights: tuple[tuple[int, int], ...]
    """Descriptors, each with the Landlock rights granted beneath it."""
    filters: tuple[PythonFilter, PythonFilter]
    """Without and with forks."""
    attach_calls: tuple[syscalls.PreparedCall, syscalls.PreparedCall] | None
    """`filters` as prepared calls, in the full tier, where they are the same for every run."""
    plans: dict[tuple[object, ...], "_Plan"]
    """A cache: most runs have the same limits, so one plan serves many."""
    files: tuple[MountedFile, ...] = ()
    """Linked to from each run's folder."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The calls shared by all runs with the same limits."""

    before_fork: tuple[syscalls.PreparedCall, ...]
    """In the zygote, before the fork: enter namespaces, mount the scratch folder."""
    restore_parent: tuple[syscalls.PreparedCall, ...]
    """In the zygote, after the fork: leave those namespaces."""
    in_child: tuple[syscalls.PreparedCall, ...]
    close_descriptors: tuple[syscalls.PreparedCall, ...]
    """In the child, last before the filter."""
    folder: str | None
    """The run's folder, if it is the same for all runs."""


@dataclass(frozen=True, slots=True)
class RunContainment:
    """What one run's process needs to contain itself; the parent releases it after the fork."""

    entered: ZygoteContainment
    plan: _Plan
    rules: landlock.Ruleset | None
    calls: tuple[syscalls.PreparedCall, ...]
    """In the child, specific to this run."""

    def release(self) -> None:
        """Call in the zygote after the fork (or instead of it); from then on only the child holds what was prepared."""
        if self.rules is not None:
            self.rules.close()
        for call in self.plan.restore_parent:
            syscalls.invoke(call)


class _ZygoteRoot(NamedTuple):
    """The parts of a zygote's containment that differ between tiers."""

    scratch: Path
    granted: list[tuple[Path, int]]
    handles: namespaces.NamespaceHandles | None
    capabilities: int


def enter(
    view: VisiblePaths, tier: Tier, *, folder: Path | None = None, files: Sequence[MountedFile] = ()
) -> ZygoteContainment:
    """Contain this process, the zygote, which must be freshly exec'ed and have a single thread.

    Full tier: returns only in a forked child, pid 1 of its own pid namespace, in new user, net, ipc, uts, mount and
    cgroup namespaces, with a root that holds only the view. The calling process never returns: it closes all
    descriptors, waits, and exits with the zygote's status; killing it kills the zygote.
    Container tier: the runs' folders are created in `folder` (absolute, existing, owned by the caller); if the caller
    is root, it and the folder's owner become nobody. No tier: only `folder` is used, in the same way.
    `files` are visible besides the view, and each run's folder has a link to each. Raises OSError if the kernel
    refuses, or if a file was replaced since it was checked; ValueError for an unusable view or folder.
    """
    zygote_root = _enter_full_root(view, files) if tier is Tier.FULL else _enter_shared_root(view, tier, folder)
    # Only now, when paths can no longer be redirected; where they still can, the granted descriptor is what counts.
    pinned = [file.open_pinned() for file in files]
    version = landlock.read_abi() if tier is not Tier.NONE else 0
    if zygote_root.handles is not None:
        size, maps = zygote_root.handles.size, zygote_root.handles.maps
    else:
        size, maps = (os.open(f"/proc/self/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("statm", "maps"))
    _tighten(tier)
    # In the full tier everything but the run's own folder is mounted read-only, so changing modes and lengths is safe.
    is_full = tier is Tier.FULL
    without, with_forks = (
        PythonFilter(metadata=is_full, truncation=is_full or version >= 3, forks=forks) for forks in (False, True)
    )
    calls = seccomp.prepare_attach(without.build_program(1)), seccomp.prepare_attach(with_forks.build_program(1))
    return ZygoteContainment(
        tier=tier,
        view=view,
        scratch=zygote_root.scratch,
        handles=zygote_root.handles,
        size=size,
        maps=maps,
        capabilities=zygote_root.capabilities,
        tasks=0 if is_full else count_tasks(os.getuid()) + _EXTRA_TASKS,
        landlock=version,
        rights=(
            *((os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in zygote_root.granted),
            *((descriptor, landlock.READ) for descriptor in pinned),
        ),
        filters=(without, with_forks),
        attach_calls=calls if is_full else None,
        plans={},
        files=tuple(files),
    )


def list_shared_mappings(entered: ZygoteContainment) -> tuple[str, ...]:
    """The lines of the zygote's `maps` for writable memory that its children would share instead of copying.

    What one run writes there, the next one reads; so a zygote with such memory after its preload must not serve.
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
    """Prepare the next child's containment, in the zygote before the fork; the caller releases it afterwards.

    Full tier: the next child is pid 1 of a new pid namespace, and its scratch folder is mounted where only it sees it.
    Otherwise its folder `name` is created in the zygote's `folder`. `keep` are the descriptors that the child keeps;
    `with_files` links the zygote's files into the folder. On OSError everything has been released already.
    """
    plan = entered.plans.get((wanted, *keep))
    if plan is None:
        if len(entered.plans) >= _MAX_PLANS:
            entered.plans.clear()
        plan = entered.plans[wanted, *keep] = _make_plan(entered, wanted, keep)
    memory = wanted.memory + _PAGE * int(os.pread(entered.size, 32, 0).split()[0])
    try:
        for call in plan.before_fork:
            syscalls.invoke(call)
        folder = plan.folder or _make_folder(entered.scratch / name)
        if with_files:
            link_files(entered.files, Path(folder))
        rules = None if entered.tier is Tier.NONE else _make_ruleset(entered, folder)
    except OSError:
        RunContainment(entered, plan, None, ()).release()
        raise
    calls = [syscalls.prepare_call("chdir", os.fsencode(folder)), *limits.prepare_lower({resource.RLIMIT_AS: memory})]
    if rules is not None:
        calls.append(rules.prepare_restrict())
    return RunContainment(entered, plan, rules, tuple(calls))


def confine(
    prepared: RunContainment,
    *,
    keep: Collection[int] | None = None,
    parent: int | None = None,
    forks_through: int | None = None,
) -> None:
    """Contain this process, a child of the zygote, as the first thing after the fork. It can't be undone.

    On return the working directory is the run's own folder, empty but for links to the zygote's files. Full tier:
    `/tmp/run` in a tmpfs of its own, with all of `/tmp` writable, or `/scratch/run` if the view shows something below
    `/tmp`. Container tier: `FOLDER/NAME`, which the parent removes (`temporary_folders.remove_tree`). All descriptors
    but `keep` are closed; it defaults to what `prepare` got. `parent` is the forking process's pid, read before the
    fork: if the parent has died since, this process exits (the full tier doesn't need it: a pid namespace ends with
    its pid 1). `forks_through` is for sessions: a connected unix socket over which the listener that decides about
    forks is sent (`linux.seccomp_notify`), and which is then closed; without it, forks are refused. Raises OSError if
    the kernel refuses; the caller must then exit without running anything.
    """
    entered, plan = prepared.entered, prepared.plan
    if entered.tier is not Tier.FULL:
        _die_with(os.getppid() if parent is None else parent)
    if forks_through is not None and entered.tier is not Tier.NONE:
        _send_listener(forks_through)
    for call in plan.in_child:
        syscalls.invoke(call)
    for call in prepared.calls:
        syscalls.invoke(call)
    for call in plan.close_descriptors if keep is None else syscalls.prepare_close_all_but(keep):
        syscalls.invoke(call)
    if entered.tier is not Tier.NONE:
        syscalls.invoke(_make_filter_call(entered, forks_through is not None))


def _make_plan(entered: ZygoteContainment, wanted: RunLimits, keep: Collection[int]) -> _Plan:
    resources = {
        resource.RLIMIT_CPU: wanted.cpu,
        resource.RLIMIT_NOFILE: wanted.files,
        resource.RLIMIT_NPROC: entered.tasks or wanted.threads,
        resource.RLIMIT_FSIZE: wanted.file_size,
    }
    in_child = [syscalls.prepare_call("setsid")]
    before_fork: list[syscalls.PreparedCall] = []
    restore_parent: list[syscalls.PreparedCall] = []
    folder = None
    if entered.handles is not None:
        folder = str(entered.scratch / "run")
        restore_parent = namespaces.prepare_return(entered.handles)
        before_fork = [
            *namespaces.prepare_child_namespaces(entered.handles),
            mounts.prepare_scratch_mount(entered.scratch, wanted.scratch, wanted.entries),
            syscalls.prepare_call("mkdirat", _AT_FDCWD, os.fsencode(folder), 0o700),
        ]
        # The last namespace: from here on it owns nothing that runs share, and only its own tasks are counted.
        in_child.append(syscalls.prepare_call("unshare", syscalls.CLONE_NEWUSER))
    in_child += [*limits.prepare_lower(resources), identity.prepare_drop_capabilities(keep=entered.capabilities)]
    return _Plan(
        tuple(before_fork), tuple(restore_parent), tuple(in_child), tuple(syscalls.prepare_close_all_but(keep)), folder
    )


def _make_folder(folder: Path) -> str:
    folder.mkdir(mode=0o700)
    return str(folder)


def _make_filter_call(entered: ZygoteContainment, forks: bool) -> syscalls.PreparedCall:
    """In the full tier the pid is known beforehand: it is 1, and the filter for forks contains none."""
    if entered.attach_calls is not None and (forks or os.getpid() == 1):
        return entered.attach_calls[forks]
    return seccomp.prepare_attach(entered.filters[forks].build_program(os.getpid()))


def _tighten(tier: Tier) -> None:
    """Drop what the zygote itself doesn't need; each child inherits it."""
    os.umask(0o022)
    limits.lower_for_all_runs()
    if tier is not Tier.NONE:
        seccomp.set_no_new_privileges()
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # so no process of the same user can trace it or read its memory


def _make_ruleset(entered: ZygoteContainment, folder: str) -> landlock.Ruleset:
    rules = landlock.Ruleset(entered.landlock)
    for descriptor, rights in entered.rights:
        rules.grant(descriptor, rights)
    if entered.tier is Tier.FULL:
        rules.grant(str(entered.scratch), landlock.READ | landlock.WRITE | landlock.MAKE_SYMLINK)
    else:  # no links there, since the parent empties the folder
        rules.grant(folder, landlock.READ | landlock.WRITE)
    return rules


def _send_listener(through: int) -> None:
    listener = seccomp.attach_with_listener(make_fork_notify_filter())
    with socket.socket(fileno=through) as supervisor:
        socket.send_fds(supervisor, [b"L"], [listener])
    os.close(listener)


def _die_with(parent: int) -> None:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _enter_full_root(view: VisiblePaths, files: Sequence[MountedFile]) -> _ZygoteRoot:
    paths, links = VisiblePaths((*view.readable, *(Path(file.path) for file in files))).plan()
    shown_in_tmp = any(Path("/tmp") in (path, *path.parents) for path in paths)
    scratch = Path("/scratch" if shown_in_tmp else "/tmp")
    handles = namespaces.enter_namespaces(paths, links, scratch)
    granted = [(Path("/"), landlock.READ), (Path("/dev"), landlock.READ | landlock.WRITE_FILE)]
    return _ZygoteRoot(scratch, granted, handles, 0)


def _enter_shared_root(view: VisiblePaths, tier: Tier, folder: Path | None) -> _ZygoteRoot:
    paths, _ = view.plan()
    if folder is None or not folder.is_absolute():
        raise ValueError(f"the {tier} tier needs an absolute folder to create the runs' folders in")
    devices = [(device, landlock.READ | landlock.WRITE_FILE) for device in _DEVICES if device.exists()]
    granted = [*((path, landlock.READ) for path in paths), *devices]
    if os.geteuid() != 0 or tier is not Tier.CONTAINER or not identity.has_user(identity.NOBODY):
        return _ZygoteRoot(folder, granted, None, 0)
    os.chown(folder, identity.NOBODY, identity.NOBODY)
    identity.become_nobody()
    # Keeps root's capability to read, since Python may be installed in a folder that only root can read.
    return _ZygoteRoot(folder, granted, None, identity.CAP_DAC_READ_SEARCH)
