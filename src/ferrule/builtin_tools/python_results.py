"""A run of Python as the parts that a model reads, or as the reason for which the call failed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from ferrule.blobs import BlobStore
from ferrule.builtin_tools.python_values import find_images, render_value
from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, ToolFailed, ToolRetry
from ferrule.sandbox.checks import explain_findings
from ferrule.sandbox.python.result import PythonResult

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


_MOST_IMAGES: Final = 16
_IMAGE_BYTES: Final = 8 * 1024 * 1024
"""Of all images of one result together."""


async def render_call(run: PythonResult, blobs: BlobStore) -> list[Text | Image]:
    """`render_result`, in a thread where the run left files: hashing and writing many bytes takes its time."""
    return await asyncio.to_thread(render_result, run, blobs) if run.files else render_result(run, blobs)


def render_result(run: PythonResult, blobs: BlobStore | None = None) -> list[Text | Image]:
    """What a run printed, its value and notes as one text, and its images, within their limits.

    The files that it left are put into `blobs`, and the notes refer to each by its content hash; so they do to images
    beyond the limits.

    Raises `ToolRetry` where nothing ran, since the code can be written again: a syntax error, or what the checks
    refuse. Raises `ToolFailed` with the error and what was printed before it for every other error.
    """
    error = run.error
    if error is not None:
        if error.kind in ("syntax", "refused"):
            raise ToolRetry(f"not run: {str(error).rstrip()}")
        raise ToolFailed("\n".join((str(error).rstrip(), *_printed(run), *_notes(run, blobs))))
    found = [*find_images(run.value), *run.images, *_image_files(run)]
    images, left = _limit_images(list({image.hash: image for image in found}.values()))
    texts = list(_printed(run))
    is_shown = run.value is not None and not isinstance(run.value, Image)
    if is_shown:
        value = render_value(run.value)
        texts.append(f"[value]\n{value}" if texts else value)
    if left:
        kept = f", kept as {', '.join(blobs.put(image.data) for image in left)}" if blobs is not None else ""
        texts.append(f"[left out: {len(left)} of {len(images) + len(left)} images{kept}]")
    texts += _notes(run, blobs)
    if not texts and not images:
        texts.append("[no output: the code printed nothing, and its last line has no value]")
    text = [Text("\n".join(texts))] if texts else []
    return [*text, *images]


def convert_error(error: FerruleError) -> ToolFailed:
    """What a model is told where nothing could run at all."""
    return ToolFailed(f"not run: {error}")


def _printed(run: PythonResult) -> Iterator[str]:
    if run.stdout:
        yield run.stdout.rstrip("\n")
    if run.stderr:
        yield "[stderr]\n" + run.stderr.rstrip("\n")


def _limit_images(images: Sequence[Image]) -> tuple[list[Image], list[Image]]:
    """The images that are shown, and those that are not since they are too many or too large."""
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


def _notes(run: PythonResult, blobs: BlobStore | None) -> Iterator[str]:
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


def _image_files(run: PythonResult) -> Iterator[Image]:
    """Files that the code saved as images."""
    for data in run.files.values():
        for magic, media_type in _MAGIC:
            if data.startswith(magic):
                yield Image(data, media_type)
