"""Renders a run of Python as the parts that a model reads, or as the reason why the call failed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from ferrule.blobs import BlobStore
from ferrule.builtin_tools.python_values import find_images, render_value
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, ToolFailed, ToolRetry
from ferrule.media import find_image_type
from ferrule.sandbox.checks import explain_findings
from ferrule.sandbox.python.result import PythonResult

_MOST_IMAGES: Final = 16
_IMAGE_BYTES: Final = 8 * 1024 * 1024
"""The limit of all images of one result together."""


async def render_call(run: PythonResult, blobs: BlobStore) -> list[Text | Image]:
    """Run `render_result`, in a thread if the run left files, since hashing and writing them takes time."""
    return await asyncio.to_thread(render_result, run, blobs) if run.files else render_result(run, blobs)


def render_result(run: PythonResult, blobs: BlobStore | None = None) -> list[Text | Image]:
    """Render a run: its output, value and notes as one text, and its images, within their limits.

    The files that it left, and images beyond the limits, are stored in `blobs`, and the notes give their content
    hashes.

    Raises `ToolRetry` if nothing ran, because of a syntax error or refused code, since the model can write the code
    again. Raises `ToolFailed` for every other error, with the output before it.
    """
    error = run.error
    if error is not None:
        if error.kind in ("syntax", "refused"):
            raise ToolRetry(f"not run: {str(error).rstrip()}")
        raise ToolFailed("\n".join((str(error).rstrip(), *_list_output(run), *_list_notes(run, blobs))))
    found = [*find_images(run.value), *run.images, *_find_image_files(run)]
    images, left = _limit_images(list({image.hash: image for image in found}.values()))
    texts = list(_list_output(run))
    is_shown = run.value is not None and not isinstance(run.value, Image)
    if is_shown:
        value = render_value(run.value)
        texts.append(f"[value]\n{value}" if texts else value)
    if left:
        kept = f", kept as {', '.join(blobs.put(image.data) for image in left)}" if blobs is not None else ""
        texts.append(f"[left out: {len(left)} of {len(images) + len(left)} images{kept}]")
    texts += _list_notes(run, blobs)
    if not texts and not images:
        texts.append("[no output: the code printed nothing, and its last line has no value]")
    text = [Text("\n".join(texts))] if texts else []
    return [*text, *images]


def convert_error(error: FerruleError) -> ToolFailed:
    """Convert the error of a run that couldn't start."""
    return ToolFailed(f"not run: {error}")


def _list_output(run: PythonResult) -> Iterator[str]:
    if run.stdout:
        yield run.stdout.rstrip("\n")
    if run.stderr:
        yield "[stderr]\n" + run.stderr.rstrip("\n")


def _limit_images(images: Sequence[Image]) -> tuple[list[Image], list[Image]]:
    """Split images into those that are shown, and those beyond the limits."""
    shown: list[Image] = []
    left: list[Image] = []
    room = _IMAGE_BYTES
    for image in images:
        if len(shown) < _MOST_IMAGES and len(image.data) <= room:
            shown.append(image)
            room -= len(image.data)
        else:
            left.append(image)
    return shown, left


def _list_notes(run: PythonResult, blobs: BlobStore | None) -> Iterator[str]:
    if run.omitted:
        yield "[left out: " + "; ".join(run.omitted) + "]"
    if run.files and blobs is not None:
        kept = (f"{file.name} ({file.size:,} bytes) as {file.blob}" for file in run.keep_files(blobs))
        yield f"[files, kept by content: {', '.join(kept)}]"
    elif run.files:
        yield "[files, which are not kept: " + ", ".join(sorted(run.files)) + "]"
    advice = [finding for finding in run.findings if not finding.refuses]
    if advice:
        yield "[advice] " + explain_findings(advice)


def _find_image_files(run: PythonResult) -> Iterator[Image]:
    """Find the files that are images."""
    for data in run.files.values():
        media_type = find_image_type(data)
        if media_type is not None:
            yield Image(data, media_type)
