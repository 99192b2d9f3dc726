"""Checks and encodes the request of a run, before anything runs."""

from __future__ import annotations

import keyword
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ferrule._util.background import run_in_thread
from ferrule.errors import SandboxInputError
from ferrule.sandbox.python.parent.answer import is_safe_name
from ferrule.sandbox.python.result import MB
from ferrule.sandbox.python.wire.encoding import MAX_BLOB_BYTES, ValueEncoder
from ferrule.sandbox.python.wire.frames import WireError, pack_frame
from ferrule.sandbox.regular_files import open_regular_file

MAX_CODE: Final = MB
"""Characters of code."""
MIN_MEMORY: Final = 16 * MB
"""Bytes that Python needs at least, besides the loaded packages."""
MAX_TIMEOUT: Final = 24 * 60 * 60.0


def encode_request(code: str, inputs: Mapping[str, Any] | None, name: str) -> bytes:
    """Encode the frame that makes a child run `code`. Raises `SandboxInputError` if it can't be run or encoded.

    Reads files and copies values, so with inputs don't call it on an event loop.
    """
    check_code(code)
    encoder = ValueEncoder(rows=None, parts=1_000_000)
    variables: dict[str, Any] = {}
    files: list[Any] = []
    for key, value in _check_names(inputs or {}):
        if _is_variable(key) and not isinstance(value, Path):
            variables[key] = encoder.encode_named(key, value)
        else:
            files.append((key, value))
    # After the variables: the child takes the blobs in this order.
    written = [encoder.encode_bytes(_read_content(key, value, encoder.room), "file", name=key) for key, value in files]
    if encoder.omitted:
        raise SandboxInputError(f"inputs can't be encoded: {'; '.join(encoder.omitted)}")
    try:
        return pack_frame({"code": code, "name": name, "inputs": variables, "files": written}, encoder.blobs)
    except (WireError, UnicodeError) as error:
        raise SandboxInputError(f"inputs can't be encoded: {error}") from None


async def encode_request_in_thread(code: str, inputs: Mapping[str, Any] | None, name: str) -> bytes:
    """`encode_request`, in a thread if there are inputs."""
    if not inputs:
        return encode_request(code, inputs, name)
    return await run_in_thread(encode_request, code, inputs, name)


def check_code(code: Any) -> None:
    """Raises `SandboxInputError` for code that Python can't parse."""
    if not isinstance(code, str):
        raise SandboxInputError(f"code must be text, not {type(code).__name__}")
    if len(code) > MAX_CODE:
        raise SandboxInputError(f"code of {len(code)} characters; at most {MAX_CODE}: pass data as inputs")
    if "\0" in code:
        raise SandboxInputError(f"code has a null byte at character {code.index(chr(0))}: remove it")
    try:
        code.encode()
    except UnicodeEncodeError as error:
        raise SandboxInputError(f"code has a lone surrogate at character {error.start}: remove it") from None


def check_timeout(timeout: Any) -> float:
    """Check a timeout in seconds. Raises `SandboxInputError`."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not math.isfinite(timeout):
        raise SandboxInputError(f"timeout must be a number of seconds, not {timeout!r}")
    if not 0 < timeout <= MAX_TIMEOUT:
        raise SandboxInputError(f"a timeout of {timeout} s: it must be more than 0, at most {MAX_TIMEOUT:.0f}")
    return float(timeout)


def check_memory(memory: Any) -> int:
    """Check the bytes that a run may use besides the loaded packages. Raises `SandboxInputError`."""
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise SandboxInputError(f"memory must be a whole number of bytes, not {memory!r}")
    if not MIN_MEMORY <= memory < 2**60:
        raise SandboxInputError(f"memory of {memory} bytes: Python needs at least {MIN_MEMORY}")
    return memory


def _check_names(inputs: Any) -> list[tuple[str, Any]]:
    if not isinstance(inputs, Mapping):
        raise SandboxInputError(f"inputs must be a mapping of names to values, not {type(inputs).__name__}")
    for key in inputs:
        if not isinstance(key, str):
            raise SandboxInputError(f"names of inputs must be text, not {key!r}")
    return list(inputs.items())


def _is_variable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _read_content(name: str, value: Any, room: int) -> bytes:
    """Return the content of a file input, at most `room` bytes. Raises `SandboxInputError`."""
    if not is_safe_name(name):
        raise SandboxInputError(f"inputs[{name!r}]: neither a variable's name nor a file's relative path")
    if isinstance(value, Path):
        return _read_path(name, value, room)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
    else:
        raise SandboxInputError(f"inputs[{name!r}]: a file must be bytes, text or a Path, not {type(value).__name__}")
    _check_room(name, len(data), room)
    return data


def _read_path(name: str, path: Path, room: int) -> bytes:
    try:
        with open_regular_file(str(path)) as descriptor:
            if descriptor is None:
                raise SandboxInputError(f"inputs[{name!r}]: {path} is not a regular file")
            _check_room(name, os.fstat(descriptor).st_size, room)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(room + 1)
    except SandboxInputError:
        raise
    except (OSError, ValueError) as error:
        raise SandboxInputError(f"inputs[{name!r}]: {error}") from None
    _check_room(name, len(data), room)
    return data


def _check_room(name: str, size: int, room: int) -> None:
    if size > room:
        raise SandboxInputError(
            f"inputs[{name!r}]: {size:,} bytes are more than the {room:,} that are left of {MAX_BLOB_BYTES:,} for all "
            "inputs; a Mount is read without a copy and has no such limit"
        )
