"""What came of a run in the sandbox, shown to people or as JSON, with its files and images written to a folder."""

from __future__ import annotations

import json
import mimetypes
import sys
from pathlib import Path
from typing import Any, TextIO

from ferrule.cli.files import written
from ferrule.cli.sandbox_checking import finding_json
from ferrule.cli.words import answer_words, image_words
from ferrule.conversation import Image
from ferrule.sandbox.checks import explained
from ferrule.sandbox.python import Run
from ferrule.tools.values import images_in, plain_json, value_text


def show_run(run: Run, folder: Path | None, as_json: bool) -> None:
    """Print a run: what it printed and its value on stdout, its stderr, error and advice on stderr.

    Raises `OSError` where its files can't be written to `folder`.
    """
    images = list({image.hash: image for image in (*images_in(run.value), *run.images)}.values())
    paths = {} if folder is None else _write(run, images, folder)
    if as_json:
        print(json.dumps(run_json(run, images, paths), ensure_ascii=False), flush=True)
        return
    _say(run.stdout, sys.stdout)
    if run.value is not None and not isinstance(run.value, Image):
        _say(value_text(run.value), sys.stdout)
    for image in images:
        _say(paths.get(image.hash) or f"{image_words(image)}; --out FOLDER writes it", sys.stdout)
    for name, data in run.files.items():
        _say(paths.get(name) or f"[{name}, {len(data):,} bytes]; --out FOLDER writes it", sys.stdout)
    _say(run.stderr, sys.stderr)
    _say("\n".join(f"left out: {one}" for one in run.omitted), sys.stderr)
    if run.error is not None:
        head = "refused:\n" if run.error.kind == "refused" else ""
        _say(f"{head}{run.error}", sys.stderr)
    advice = [finding for finding in run.findings if not finding.refuses and finding.rule != "syntax"]
    _say("".join(f"advice: {explained([one])}\n" for one in advice), sys.stderr)


def run_json(run: Run, images: list[Image], paths: dict[str, str]) -> dict[str, Any]:
    """A run for programs. An image or file has a `path` where it was written."""
    error = run.error
    return {
        "value": plain_json(run.value),
        "stdout": run.stdout,
        "stderr": run.stderr,
        "images": [_kept(image.hash, image.data, paths) | {"media_type": image.media_type} for image in images],
        "files": [_kept(name, data, paths) for name, data in run.files.items()],
        "error": error
        and {"kind": error.kind, "message": error.message, "traceback": error.traceback, "line": error.line},
        "findings": [finding_json(finding) for finding in run.findings],
        "omitted": list(run.omitted),
        "usage": {"wall": run.usage.wall, "cpu": run.usage.cpu, "peak_memory": run.usage.peak_memory},
    }


def _kept(name: str, data: bytes, paths: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "bytes": len(data), **({"path": paths[name]} if name in paths else {})}


def _write(run: Run, images: list[Image], folder: Path) -> dict[str, str]:
    """Write what a run left; the paths by a file's name and an image's hash."""
    left = {name: (folder / name, data) for name, data in run.files.items()}
    for image in images:
        suffix = mimetypes.guess_extension(image.media_type) or ".bin"
        left[image.hash] = (folder / f"{image.hash}{suffix}", image.data)
    for path, data in left.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        written(path, data)
    return {name: str(path) for name, (path, _) in left.items()}


def _say(text: str, stream: TextIO) -> None:
    text = text.rstrip("\n")
    if text:
        print(answer_words(text) if stream.isatty() else text, file=stream, flush=True)
