"""`ferrule sandbox run`: run the code of a file, or the cells of a session, and print the outcome."""

from __future__ import annotations

import codeop
import mimetypes
import sys
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from ferrule._util.background import enter_synchronously, run_synchronously
from ferrule._util.output_files import write_output
from ferrule._util.terminal_text import escape_json, escape_text
from ferrule.builtin_tools.python_values import find_images, render_value, to_plain_json
from ferrule.cli.standard_input import read_code, read_lines
from ferrule.conversation import Image
from ferrule.errors import SettingsError
from ferrule.sandbox.checks import CheckProfile, explain_findings
from ferrule.sandbox.python import PythonResult, PythonSandbox
from ferrule.sandbox.python.sandbox import PACKAGES
from ferrule.session.approvals import is_interactive
from ferrule.transcript import describe_image

_MB = 1024 * 1024
DONE, FAILED, REFUSED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CodeRunOptions:
    """How code is run and shown.

    `timeout` is in seconds, `memory` in megabytes, `inputs` are `NAME=FILE`, `checks` is a profile, and `out` a folder
    for files and images.
    """

    timeout: float
    memory: int
    inputs: tuple[str, ...]
    checks: CheckProfile
    out: Path | None
    as_json: bool


def run_file(file: str, options: CodeRunOptions) -> int:
    """Run the code of a file and print the outcome; returns the exit status.

    Raises `SettingsError`, `OSError` or `FerruleError` for bad input, and if nothing can be contained here.
    """
    inputs, code = _parse_inputs(options.inputs), read_code(file)
    # Preloading packages that this run doesn't import would only delay it.
    packages = [name for name in PACKAGES if name in code]
    with enter_synchronously(PythonSandbox(packages=packages, checks=options.checks)) as sandbox:
        run = run_synchronously(sandbox.run(code, inputs, timeout=options.timeout, memory=options.memory * _MB))
    print_run(run, options.out, options.as_json)
    return _choose_exit_status(run)


def run_session(file: str, options: CodeRunOptions) -> int:
    """Run cells that share their variables: the file's, unless it is `-`, then those read from stdin.

    Returns the exit status of the last cell. Raises like `run_file`.
    """
    inputs: dict[str, Any] | None = _parse_inputs(options.inputs)
    first = [] if file == "-" else [read_code(file)]
    status = DONE
    with enter_synchronously(PythonSandbox(checks=options.checks)) as sandbox:
        session = run_synchronously(sandbox.session(memory=options.memory * _MB))
        for cell in chain(first, split_cells(read_lines())):
            run = _run_interruptibly(session.run(cell, inputs, timeout=options.timeout))
            if run is not None:
                print_run(run, options.out, options.as_json)
                status, inputs = _choose_exit_status(run), None
        run_synchronously(session.aclose())
    return status


def _run_interruptibly(running: Coroutine[Any, Any, PythonResult]) -> PythonResult | None:
    """Await a run; returns None after Ctrl-C at a terminal, and raises it where stdin is no terminal."""
    try:
        return run_synchronously(running)
    except KeyboardInterrupt:
        if not is_interactive():
            raise
        print("interrupted", file=sys.stderr)
        return None


def split_cells(lines: Iterable[str]) -> Iterator[str]:
    """Split lines into cells, like Python's own prompt: a statement on one line, or a block up to an empty line."""
    cell: list[str] = []
    for line in lines:
        if cell or line.strip():
            cell.append(line)
        if cell and _is_complete("\n".join(cell)):
            yield "\n".join(cell)
            cell = []
    if cell:
        yield "\n".join(cell)


def _is_complete(cell: str) -> bool:
    try:
        return codeop.compile_command(cell, "<cell>", "single") is not None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return True


def _parse_inputs(given: tuple[str, ...]) -> dict[str, Any]:
    """Parse `NAME=FILE` pairs into paths by the names under which the code finds them."""
    inputs: dict[str, Any] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"--input must be NAME=FILE, not {text!r}")
        inputs[name] = Path(path)
    return inputs


def _choose_exit_status(run: PythonResult) -> int:
    if run.error is None:
        return DONE
    return REFUSED if run.error.kind == "refused" else FAILED


def print_run(run: PythonResult, folder: Path | None, as_json: bool) -> None:
    """Print a run: its stdout and value on stdout; its stderr, error and advice on stderr.

    Raises `OSError` if its files can't be written to `folder`.
    """
    images = list({image.hash: image for image in (*find_images(run.value), *run.images)}.values())
    paths = {} if folder is None else _write_files(run, images, folder)
    if as_json:
        print(escape_json(run_to_json(run, images, paths)), flush=True)
        return
    _print(run.stdout, sys.stdout)
    if run.value is not None and not isinstance(run.value, Image):
        _print(render_value(run.value), sys.stdout)
    for image in images:
        _print(paths.get(image.hash) or f"{describe_image(image)}; --out FOLDER writes it", sys.stdout)
    for name, data in run.files.items():
        _print(paths.get(name) or f"[{name}, {len(data):,} bytes]; --out FOLDER writes it", sys.stdout)
    _print(run.stderr, sys.stderr)
    _print("\n".join(f"left out: {one}" for one in run.omitted), sys.stderr)
    if run.error is not None:
        head = "refused:\n" if run.error.kind == "refused" else ""
        _print(f"{head}{run.error}", sys.stderr)
    advice = [finding for finding in run.findings if not finding.refuses and finding.rule != "syntax"]
    _print("".join(f"advice: {explain_findings([one])}\n" for one in advice), sys.stderr)


def run_to_json(run: PythonResult, images: list[Image], paths: dict[str, str]) -> dict[str, Any]:
    """Convert a run to JSON data. `paths` are those of the images and files that were written."""
    error = run.error
    return {
        "value": to_plain_json(run.value),
        "stdout": run.stdout,
        "stderr": run.stderr,
        "images": [_file_to_json(image.hash, image.data, paths) | {"media_type": image.media_type} for image in images],
        "files": [_file_to_json(name, data, paths) for name, data in run.files.items()],
        "error": error
        and {"kind": error.kind, "message": error.message, "traceback": error.traceback, "line": error.line},
        "findings": [asdict(finding) for finding in run.findings],
        "omitted": list(run.omitted),
        "usage": {"wall": run.usage.wall, "cpu": run.usage.cpu, "peak_memory": run.usage.peak_memory},
    }


def _file_to_json(name: str, data: bytes, paths: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "bytes": len(data), **({"path": paths[name]} if name in paths else {})}


def _write_files(run: PythonResult, images: list[Image], folder: Path) -> dict[str, str]:
    """Write the files and images of a run; returns their paths, by file name or image hash."""
    left = {name: (folder / name, data) for name, data in run.files.items()}
    for image in images:
        suffix = mimetypes.guess_extension(image.media_type) or ".bin"
        left[image.hash] = (folder / f"{image.hash}{suffix}", image.data)
    for path, data in left.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, data)
    return {name: str(path) for name, (path, _) in left.items()}


def _print(text: str, stream: TextIO) -> None:
    text = text.rstrip("\n")
    if text:
        print(escape_text(text) if stream.isatty() else text, file=stream, flush=True)
