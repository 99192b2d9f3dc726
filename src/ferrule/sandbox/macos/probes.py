"""The canaries' probes in the seatbelt tier: one short function for each promise, run in a contained process.

Each returns what it reached, or None if it was stopped, like those of Linux. Where the call itself must be refused,
only a refusal counts as stopped: another error shows that the call was permitted and its arguments were examined.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.sandbox.common_probes import read_secrets, succeeds, use_own_folder

__all__ = ["PROBES", "MacProbeContext"]

_ELSEWHERE: Final = ("/etc/passwd", "/private/etc/hosts", "/Users", "/Applications", "/private/var/log", "/bin")
_WRITABLE_ELSEWHERE: Final = ("/tmp", "/private/tmp", "/private/var/tmp", "/Users/Shared")
_PROGRAM: Final = "/usr/bin/true"
_SERVICES: Final = ("com.apple.coreservices.launchservicesd", "com.apple.SecurityServer", "com.apple.pasteboard.1")
_DISCARD: Final = ("127.0.0.1", 9)
_RESOLVER: Final = "/private/var/run/mDNSResponder"
_KEPT: Final = (0, 1, 2)
_REFUSALS: Final = (errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True)
class MacProbeContext:
    """What a probe knows about its environment."""

    witness: str
    """A file outside the run's folder, on the same file system, that contains `reached`."""
    home: str
    parent: int
    """The pid of the program that started the probes."""
    limits: Mapping[str, int]
    readable: tuple[str, ...]


def read_outside(context: MacProbeContext) -> str | None:
    """read a file, or list a folder, that isn't in the view"""
    outside = (context.witness, str(Path(context.witness).parent), context.home, *_ELSEWHERE)
    return next((path for path in outside if not _is_shown(path, context) and succeeds(_look_into, path)), None)


def write_outside(context: MacProbeContext) -> str | None:
    """create a file outside the run's own folder, or change a visible one"""
    for folder in (
        str(Path(context.witness).parent),
        context.home,
        str(Path(os.__file__).parent),
        *_WRITABLE_ELSEWHERE,
    ):
        made = Path(folder, f"ferrule-canary-{context.parent}")
        if succeeds(made.touch):
            made.unlink()
            return folder
    if succeeds(os.truncate, context.witness, 0):
        return context.witness
    mode = Path(os.__file__).stat().st_mode & 0o7777
    return f"the mode of {os.__file__}" if succeeds(os.chmod, os.__file__, mode) else None


def link_outside(context: MacProbeContext) -> str | None:
    """give a file outside a name in the run's own folder, under which it could be written"""
    for path in (context.witness, os.__file__):
        own = Path("linked")
        if succeeds(os.link, path, own):
            own.unlink()
            return path
        if succeeds(os.symlink, path, own):
            is_open = succeeds(_open_to_append, own)
            own.unlink()
            if is_open:
                return f"{path} by a symbolic link"
    return None


def use_network(_: MacProbeContext) -> str | None:
    """connect, send or listen, by TCP, UDP or a unix socket"""
    ways = {"TCP": _connect, "UDP": _send, "a listening socket": _listen, "a unix socket": _connect_by_path}
    return next((name for name, attempt in ways.items() if _is_looked_at(attempt)), None)


def make_process(_: MacProbeContext) -> str | None:
    """fork, or start another interpreter"""
    return next((attempt.__name__ for attempt in (os.fork, os.posix_spawn) if _makes_process(attempt)), None)


def reach_processes(context: MacProbeContext) -> str | None:
    """signal the program that started it"""
    try:
        os.kill(context.parent, 0)
    except (PermissionError, ProcessLookupError):
        return None
    return str(context.parent)


def look_up_services(_: MacProbeContext) -> str | None:
    """reach a service that starts programs, or hands out keys or the clipboard"""
    library = ctypes.CDLL(None)
    asking = ctypes.c_uint32.in_dll(library, "bootstrap_port")
    for name in _SERVICES:
        answer = ctypes.c_uint32()
        if library.bootstrap_look_up(asking, name.encode(), ctypes.byref(answer)) == 0:
            return name
    return None


def exceed_limits(context: MacProbeContext) -> str | None:
    """keep limits that are higher than a run's"""
    for name, wanted in context.limits.items():
        _, hard = resource.getrlimit(getattr(resource, name))
        if hard == resource.RLIM_INFINITY or hard > wanted:
            return f"{name} of {hard}"
    return None


def use_inherited_descriptors(_: MacProbeContext) -> str | None:
    """use a descriptor of the program that started it"""
    for descriptor in range(1024):
        if descriptor not in _KEPT and _is_inherited(descriptor):
            return f"descriptor {descriptor}"
    return None


def _is_inherited(descriptor: int) -> bool:
    """Check whether a descriptor is open and survived exec; those that libraries open (libffi) would not."""
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False


def become_program(_: MacProbeContext) -> str | None:
    """execute another program (tried last, since success replaces the interpreter)"""
    return _PROGRAM if _is_looked_at(os.execv, _PROGRAM, [_PROGRAM]) else None


PROBES: Final[tuple[Callable[[MacProbeContext], str | None], ...]] = (
    *(use_inherited_descriptors, use_own_folder, read_outside, write_outside, link_outside, use_network, make_process),
    *(reach_processes, look_up_services, exceed_limits, read_secrets, become_program),
)


def _makes_process(attempt: Callable[..., int]) -> bool:
    """Check whether the call created a process, which is then reaped, or wasn't refused."""
    command = [sys.executable, "-I", "-S", "-c", ""]
    try:
        child = attempt() if attempt is os.fork else attempt(sys.executable, command, {})
    except OSError as error:
        return error.errno not in _REFUSALS
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _is_shown(path: str, context: MacProbeContext) -> bool:
    real = os.path.realpath(path)
    return any(real == shown or real.startswith(f"{shown}/") for shown in context.readable)


def _look_into(path: str) -> None:
    try:
        os.scandir(path).close()
    except NotADirectoryError:
        Path(path).open("rb").close()


def _open_to_append(path: Path) -> None:
    path.open("ab").close()


def _connect() -> None:
    with socket.socket() as tried:
        tried.settimeout(1)
        tried.connect(_DISCARD)


def _send() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as tried:
        tried.sendto(b"x", _DISCARD)


def _listen() -> None:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        tried.listen()


def _connect_by_path() -> None:
    with socket.socket(socket.AF_UNIX) as tried:
        tried.connect(_RESOLVER)


def _is_looked_at(attempt: Callable[..., object], *arguments: object) -> bool:
    try:
        attempt(*arguments)
    except OSError as error:
        return error.errno not in _REFUSALS
    return True
