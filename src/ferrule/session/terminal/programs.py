"""Lets the person's editor and pager have the terminal."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ferrule.errors import SettingsError

_PAGERS = ("less -R", "more")


def find_editor(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Find the command of the person's editor: `$VISUAL` or `$EDITOR`. Raises `SettingsError` if there is none."""
    for name in ("VISUAL", "EDITOR"):
        command = environment.get(name, "").strip()
        if not command:
            continue
        try:
            argv = shlex.split(command)
        except ValueError as error:
            raise SettingsError(f"${name} can't be read as a command ({error}): {command}") from error
        if shutil.which(argv[0]) is None:
            raise SettingsError(f"${name} names a program that can't be found: {argv[0]}")
        return argv
    raise SettingsError("no editor is set; set $VISUAL or $EDITOR")


async def edit_text(argv: Sequence[str], text: str, name: str) -> str:
    """Let a person edit a text in a private file, and return it as they saved it.

    Raises `SettingsError` if there is no terminal, the editor fails, or what it saved isn't UTF-8.
    """
    try:
        with _write_private_file(name, text.encode("utf-8", "surrogatepass")) as path:
            status = await run_on_terminal([*argv, str(path)])
            if status != 0:
                raise SettingsError(f"{Path(argv[0]).name} ended with status {status}; nothing was changed")
            return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise SettingsError("what was saved is not UTF-8; nothing was changed") from None
    except OSError as error:
        raise SettingsError(f"the editor can't be used: {error}") from error


@contextmanager
def _write_private_file(name: str, data: bytes) -> Iterator[Path]:
    """Write a file that nobody else can read, and remove it after the block. Raises `OSError`."""
    folder = Path(tempfile.mkdtemp(prefix="ferrule-call-"))  # with the mode 0700
    try:
        path = folder / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def run_on_terminal(argv: Sequence[str]) -> int:
    """Run a program on the terminal of this process, and wait for it. Raises `OSError` if there is no terminal."""
    with Path("/dev/tty").open("r+b", buffering=0) as terminal, _leave_interrupts_to_child():
        process = await asyncio.create_subprocess_exec(*argv, stdin=terminal, stdout=terminal, stderr=terminal)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()


@contextmanager
def _leave_interrupts_to_child() -> Iterator[None]:
    """Let Ctrl-C reach only the program on the terminal, as it does in a shell."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not SIG_IGN, which the program would inherit.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def find_pager(environment: Mapping[str, str] = os.environ) -> list[str] | None:
    """Find the command of the person's pager: `$PAGER`, or `less`, or `more`; None if there is none."""
    for command in filter(None, (environment.get("PAGER", "").strip(), *_PAGERS)):
        try:
            argv = shlex.split(command)
        except ValueError:
            continue
        if argv and shutil.which(argv[0]) is not None:
            is_plain_less = Path(argv[0]).name == "less" and len(argv) == 1
            return [*argv, "-R"] if is_plain_less else argv
    return None


async def page_text(argv: Sequence[str], text: str) -> bool:
    """Show a text in a pager, from a private file; returns whether it was shown."""
    try:
        with _write_private_file("call", text.encode("utf-8", "backslashreplace")) as path:
            return await run_on_terminal([*argv, str(path)]) == 0
    except OSError:
        return False
