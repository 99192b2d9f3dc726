"""A run of Python as the parts that a model reads, or as the reason for which the call failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ferrule.conversation import Image, Text
from ferrule.errors import FerruleError, ToolFailed, ToolRetry
from ferrule.sandbox.checks import explained
from ferrule.sandbox.python.run import Run
from ferrule.tools.values import images_in, value_text

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def parts_of(run: Run) -> list[Text | Image]:
    """What a run printed, its value and notes as one text, and its images.

    Raises `ToolRetry` where nothing ran, since the code can be written again: a syntax error, or what the checks
    refuse. Raises `ToolFailed` with the error and what was printed before it for every other error.
    """
    error = run.error
    if error is not None:
        if error.kind in ("syntax", "refused"):
            raise ToolRetry(f"not run: {str(error).rstrip()}")
        raise ToolFailed("\n".join((str(error).rstrip(), *_printed(run), *_notes(run))))
    found = [*images_in(run.value), *run.images, *_image_files(run)]
    images = list({image.hash: image for image in found}.values())
    texts = list(_printed(run))
    is_shown = run.value is not None and not isinstance(run.value, Image)
    if is_shown:
        value = value_text(run.value)
        texts.append(f"[value]\n{value}" if texts else value)
    texts += _notes(run)
    if not texts and not images:
        texts.append("[no output: the code printed nothing, and its last line has no value]")
    text = [Text("\n".join(texts))] if texts else []
    return [*text, *images]


def failure_of(error: FerruleError) -> ToolFailed:
    """What a model is told where nothing could run at all."""
    return ToolFailed(f"not run: {error}")


def _printed(run: Run) -> Iterator[str]:
    if run.stdout:
        yield run.stdout.rstrip("\n")
    if run.stderr:
        yield "[stderr]\n" + run.stderr.rstrip("\n")


def _notes(run: Run) -> Iterator[str]:
    if run.omitted:
        yield "[left out: " + "; ".join(run.omitted) + "]"
    if run.files:
        yield "[files, which are not kept: " + ", ".join(sorted(run.files)) + "]"
    advice = [finding for finding in run.findings if not finding.refuses]
    if advice:
        yield "[advice] " + explained(advice)


def _image_files(run: Run) -> Iterator[Image]:
    """Files that the code saved as images."""
    for data in run.files.values():
        for magic, media_type in _MAGIC:
            if data.startswith(magic):
                yield Image(data, media_type)
