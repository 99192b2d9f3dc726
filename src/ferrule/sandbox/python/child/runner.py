"""A contained child: waits for code on its channel, runs it, answers, and ends. Lets no exception escape."""

from __future__ import annotations

import gc
import io
import os
import sys
from types import ModuleType
from typing import Any, NoReturn

from ferrule.sandbox.python.child import files as child_files
from ferrule.sandbox.python.child import inputs as child_inputs
from ferrule.sandbox.python.child.evaluate import (
    CodeFailure,
    describe_failure,
    evaluate,
    join_threads,
    make_main_module,
)
from ferrule.sandbox.python.wire.encoding import ValueEncoder
from ferrule.sandbox.python.wire.frames import pack_frame, read_frame


def serve_once(channel: int) -> NoReturn:
    """Run the one request on the channel, if the parent still exists."""
    set_own_home()
    # After a fork, first use of a page causes a page fault: a trial run takes them before anyone waits for a result.
    run({"code": "None", "name": "<run>", "inputs": {}, "files": []}, b"", make_main_module())
    gc.enable()
    write(channel, pack_frame({"confined": True}, []))
    request = read_frame(lambda size: read(channel, size))
    if request is not None:
        write(channel, run(*request, make_main_module()))
        # The parent reads the usage, then kills this process.
        os.read(channel, 1)
    os._exit(0)


def make_stdio() -> None:
    """Create the standard streams in the zygote; children only replace the descriptors below."""
    files: dict[str, Any] = {"stdin": io.BufferedReader(io.FileIO(0, "r", closefd=False))}
    files |= {"stdout": io.BufferedWriter(io.FileIO(1, "w", closefd=False))}
    files |= {"stderr": io.BufferedWriter(io.FileIO(2, "w", closefd=False))}
    for name, file in files.items():
        # Line buffering, so that what was printed before a kill isn't lost.
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def take_stdio(stdout: int, stderr: int) -> None:
    """Redirect this process's stdout and stderr to two pipes."""
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)


def reseed() -> None:
    """Reseed numpy for the next child, in the zygote; `random` reseeds itself after a fork."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little"))


def set_own_home() -> None:
    """Create a folder within the run's own for libraries' own files."""
    home = os.path.join(os.getcwd(), child_files.PRIVATE)  # noqa: PTH109, PTH118 - strings, for speed
    os.makedirs(home, exist_ok=True)  # noqa: PTH103
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR"):
        os.environ[name] = home


def run(tree: dict[str, Any], data: bytes, module: ModuleType, *, in_session: bool = False) -> bytes:
    """Run a request with `module` as `__main__`, and return the answer as a frame.

    Outside a session it first waits for the threads that a script would wait for.
    """
    namespace = module.__dict__
    sys.modules["__main__"] = module
    try:
        child_inputs.place_inputs(tree, data, namespace)
        before = child_files.record_marks() if in_session or tree["files"] else {}
    except BaseException as error:  # noqa: BLE001 - a lack of memory or disk space is the run's own failure
        return _encode_failure(describe_failure(error, tree["name"]))
    value, failure = evaluate(tree["code"], tree["name"], namespace)
    try:
        if not in_session:
            join_threads()
        elif value is not None:
            namespace["_"] = value  # as in Python's interactive mode
        answer = _encode_answer(value, failure, before)
        flush()
        return answer
    except BaseException as error:  # noqa: BLE001 - encoding runs the value's own methods
        return _encode_failure(failure or describe_failure(error, tree["name"]))


def _encode_answer(value: Any, failure: CodeFailure | None, before: child_files.Marks) -> bytes:
    encoder = ValueEncoder()
    answer = {
        "value": encoder.encode_named("value", value),
        "images": child_files.collect_figures(encoder),
        "files": child_files.collect_files(encoder, before),
        "error": failure,
    }
    return pack_frame({**answer, "omitted": encoder.omitted}, encoder.blobs)


def _encode_failure(failure: CodeFailure) -> bytes:
    return pack_frame({"error": failure, "omitted": []}, [])


def flush() -> None:
    """Flush the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def read(channel: int, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end."""
    parts = []
    while size > 0:
        part = os.read(channel, min(size, 1024 * 1024))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(channel: int, data: bytes) -> None:
    """Write all bytes."""
    left = memoryview(data)
    while left:
        left = left[os.write(channel, left) :]
