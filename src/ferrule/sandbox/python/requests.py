"""What a run is asked to do, checked and encoded before anything runs."""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ferrule.errors import SandboxInputError
from ferrule.sandbox.python.answers import is_safe_name
from ferrule.sandbox.python.encoding import Encoder
from ferrule.sandbox.python.run import MB
from ferrule.sandbox.python.wire import WireError, frame

MAX_CODE: Final = MB
"""Characters of code."""
MIN_MEMORY: Final = 16 * MB
"""Bytes that Python needs to do anything at all, beyond what is loaded."""
MAX_TIMEOUT: Final = 24 * 60 * 60.0


def request(code: str, inputs: Mapping[str, Any] | None, name: str) -> bytes:
    """The frame that asks a child to run `code`. Raises `SandboxInputError` for what can't be run or encoded."""
    check_code(code)
    encoder = Encoder(rows=None, parts=1_000_000)
    variables: dict[str, Any] = {}
    files: list[Any] = []
    for key, value in _named(inputs or {}):
        if _is_variable(key) and not isinstance(value, Path):
            variables[key] = encoder.named(key, value)
        else:
            files.append((key, _content(key, value)))
    written = [encoder.blob(data, "file", name=key) for key, data in files]
    if encoder.omitted:
        raise SandboxInputError(f"inputs that can't be passed on: {'; '.join(encoder.omitted)}")
    try:
        return frame({"code": code, "name": name, "inputs": variables, "files": written}, encoder.blobs)
    except (WireError, UnicodeError) as error:
        raise SandboxInputError(f"inputs that can't be passed on: {error}") from None


def check_code(code: Any) -> None:
    """Raises `SandboxInputError` for code that Python can't read."""
    if not isinstance(code, str):
        raise SandboxInputError(f"code is text, not {type(code).__name__}")
    if len(code) > MAX_CODE:
        raise SandboxInputError(f"code of {len(code)} characters; at most {MAX_CODE}: pass data as inputs")
    if "\0" in code:
        raise SandboxInputError(f"code with a null byte at character {code.index(chr(0))}: leave it out")
    try:
        code.encode()
    except UnicodeEncodeError as error:
        raise SandboxInputError(f"code with half a surrogate pair at character {error.start}: leave it out") from None


def check_timeout(timeout: Any) -> float:
    """Seconds that a run may take. Raises `SandboxInputError`."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not math.isfinite(timeout):
        raise SandboxInputError(f"timeout is a number of seconds, not {timeout!r}")
    if not 0 < timeout <= MAX_TIMEOUT:
        raise SandboxInputError(f"a timeout of {timeout} s: more than 0, at most {MAX_TIMEOUT:.0f}")
    return float(timeout)


def check_memory(memory: Any) -> int:
    """Bytes that a run may use beyond what is loaded. Raises `SandboxInputError`."""
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise SandboxInputError(f"memory is a whole number of bytes, not {memory!r}")
    if not MIN_MEMORY <= memory < 2**60:
        raise SandboxInputError(f"memory of {memory} bytes: Python needs {MIN_MEMORY} at least")
    return memory


def _named(inputs: Any) -> list[tuple[str, Any]]:
    if not isinstance(inputs, Mapping):
        raise SandboxInputError(f"inputs are values by name, not {type(inputs).__name__}")
    for key in inputs:
        if not isinstance(key, str):
            raise SandboxInputError(f"inputs have names of text, not {key!r}")
    return list(inputs.items())


def _is_variable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _content(name: str, value: Any) -> bytes:
    """What is in an input that is a file. Raises `SandboxInputError`."""
    if not is_safe_name(name):
        raise SandboxInputError(f"inputs[{name!r}]: neither a variable's name nor a relative path of a file")
    if isinstance(value, Path):
        try:
            return value.read_bytes()
        except OSError as error:
            raise SandboxInputError(f"inputs[{name!r}]: {error}") from None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise SandboxInputError(f"inputs[{name!r}]: a file is bytes, text or a Path, not {type(value).__name__}")
