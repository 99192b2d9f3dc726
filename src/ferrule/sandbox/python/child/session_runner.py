"""A session's contained process: runs requests in turn in one `__main__`, and forks on request.

A checkpoint is a fork that sleeps until the parent wakes it to replace the process that it was forked from, whose
channel it shares. A twin is a fork that runs in parallel, on a channel of its own. The kernel asks the parent about
every fork, so a fork that the parent didn't request is refused.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import warnings
from contextlib import suppress
from typing import Any, Final, NoReturn

from ferrule.sandbox.python.child import files as child_files
from ferrule.sandbox.python.child import runner
from ferrule.sandbox.python.child.evaluate import make_main_module
from ferrule.sandbox.python.wire.frames import TWIN_DESCRIPTORS, pack_frame, read_frame

_WAKE: Final = signal.SIGUSR1


def serve(channel: int) -> NoReturn:
    """Answer requests until the channel closes."""
    # A blocked signal waits for `sigwait`, and doesn't reach handlers of the user's code.
    signal.pthread_sigmask(signal.SIG_BLOCK, {_WAKE})
    runner.set_own_home()
    gc.enable()
    runner.write(channel, pack_frame({"confined": True}, []))
    module = make_main_module()
    while (request := read_frame(lambda size: runner.read(channel, size))) is not None:
        tree, data = request
        if "fork" in tree:
            _fork(channel, tree)
            continue
        runner.write(channel, runner.run(tree, data, module, in_session=True))
    os._exit(0)


def _fork(channel: int, tree: dict[str, Any]) -> None:
    for number in tree["drop"]:
        shutil.rmtree(_name_kept_folder(number), ignore_errors=True)
    for number in tree["closed"]:
        shutil.rmtree(_name_fork_folder(number), ignore_errors=True)
    runner.flush()
    is_twin = tree["fork"] == "twin"
    runner.reseed()
    with warnings.catch_warnings():
        # From 3.12 on Python warns about forks with threads: the user's code can do nothing about this one.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0 and is_twin:
        _become_twin(channel, tree["number"])
    elif pid == 0:
        _sleep(channel, tree["number"])
    for descriptor in TWIN_DESCRIPTORS if is_twin else ():
        os.close(descriptor)
    # Reap dropped checkpoints, which are this process's children.
    with suppress(ChildProcessError):
        while pid and os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _sleep(channel: int, number: int) -> None:
    """Copy the files, greet the parent and sleep; on waking, restore the files and continue as the session."""
    kept = _name_kept_folder(number)
    try:
        shutil.copytree(".", kept, symlinks=True, ignore=_ignore_private)
    except (OSError, shutil.Error):
        shutil.rmtree(kept, ignore_errors=True)
    runner.write(channel, pack_frame({"forked": number, "files": os.path.isdir(kept)}, []))  # noqa: PTH112
    signal.sigwait({_WAKE})
    if os.path.isdir(kept):  # noqa: PTH112
        _restore(kept)
        shutil.rmtree(kept, ignore_errors=True)
    # Discard messages to the dead process that it didn't read.
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=channel)
    with suppress(BlockingIOError):
        while end.recv(1 << 16, socket.MSG_DONTWAIT):
            pass
    end.detach()
    runner.write(channel, pack_frame({"awake": number}, []))


def _restore(kept: str) -> None:
    for entry in os.scandir("."):
        if entry.name == child_files.PRIVATE:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.name, ignore_errors=True)
        else:
            os.unlink(entry.name)  # noqa: PTH108
    shutil.copytree(kept, ".", symlinks=True, dirs_exist_ok=True)


def _become_twin(channel: int, number: int) -> None:
    """Use the descriptors that the parent installed, and a copy of the folder."""
    for descriptor, place in zip(TWIN_DESCRIPTORS, (channel, 1, 2), strict=True):
        os.dup2(descriptor, place)
    folder = _name_fork_folder(number)
    problem = ""
    try:
        shutil.copytree(".", folder, symlinks=True)
        os.chdir(folder)
    except (OSError, shutil.Error) as error:
        problem = f"its files can't be copied: {type(error).__name__}"
    runner.set_own_home()
    runner.write(channel, pack_frame({"forked": number, "problem": problem}, []))


def _name_fork_folder(number: int) -> str:
    return f"{os.getcwd()}-{number}"  # noqa: PTH109


def _name_kept_folder(number: int) -> str:
    return os.path.join(os.path.dirname(os.getcwd()), f".kept-{os.path.basename(os.getcwd())}-{number}")  # noqa: PTH109, PTH118, PTH119, PTH120


def _ignore_private(folder: str, _: list[str]) -> list[str]:
    return [child_files.PRIVATE] if folder == "." else []
