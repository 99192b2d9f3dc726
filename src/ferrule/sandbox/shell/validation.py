"""Validates a caller's arguments before anything runs."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ferrule.errors import SandboxInputError
from ferrule.sandbox.shell.access_plan import Mode
from ferrule.sandbox.shell.host_rules import HostRules

__all__ = [
    "open_standard_input",
    "validate_command",
    "validate_environment",
    "validate_hosts",
    "validate_mode",
    "validate_seconds",
]

# The kernel's limit on one argument.
_MAX_COMMAND_BYTES = 128 * 1024 - 1


def validate_command(command: str) -> str:
    """Return the command. Raises `SandboxInputError` if a shell can't run it."""
    if not isinstance(command, str):
        raise SandboxInputError(f"a command is text, not {type(command).__name__}")
    if not command.strip():
        raise SandboxInputError("the command is empty")
    if "\0" in command:
        raise SandboxInputError("the command has a null byte, which a shell can't be given")
    try:
        length = len(command.encode())
    except UnicodeEncodeError as error:
        raise SandboxInputError(f"the command can't be written as UTF-8: {error}") from error
    if length > _MAX_COMMAND_BYTES:
        raise SandboxInputError(
            f"the command has {length} bytes and the limit is {_MAX_COMMAND_BYTES}: write it to a file and run that"
        )
    return command


def validate_seconds(name: str, seconds: float | None) -> float | None:
    """Return the seconds as a float; None means no limit. Raises `SandboxInputError` if not positive."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise SandboxInputError(f"`{name}` is {seconds!r}, and should be seconds above zero, or None")
    return float(seconds)


def validate_mode(mode: Mode | str | None) -> Mode | None:
    """Return the mode of one command. Raises `SandboxInputError` if it isn't one."""
    try:
        return None if mode is None else Mode(mode)
    except ValueError as error:
        raise SandboxInputError(str(error)) from error


def validate_hosts(hosts: Sequence[str], network: bool | Sequence[str]) -> HostRules | None:
    """Return the rules of a command with `hosts` in a sandbox with `network`, None if `hosts` add nothing to it.

    Raises `SandboxInputError` for an invalid rule.
    """
    if isinstance(hosts, str):
        raise SandboxInputError("`hosts` is a list of hosts, as in ['packages.example']")
    rules = HostRules([*(() if isinstance(network, bool) else network), *hosts])
    return rules if hosts and network is not True else None


def validate_environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables. Raises `SandboxInputError` if a process can't be started with them."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise SandboxInputError(
                f"the environment can't have {name!r}: it has a null byte, or the name is empty or has ="
            )
    return variables


@contextmanager
def open_standard_input(content: str | bytes | None) -> Iterator[int]:
    """Open a descriptor to read `content` from; empty for None."""
    if not isinstance(content, str | bytes | None):
        raise SandboxInputError(f"`input` is text or bytes, not {type(content).__name__}")
    if content is None:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _create_unnamed_file()
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _create_unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdin", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
