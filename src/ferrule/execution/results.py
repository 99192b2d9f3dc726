"""Turns what a tool returned into the parts that a model reads, cut to limits.

A tool returns text, a JSON value (or a pydantic model, dataclass or numpy value), a table of pandas, an image, a list
of texts and images, or a `ToolOutput` of one of these and data for programs. Text
over the limit is cut in the middle; the full text is stored by its content hash, where the tool `read_result` finds it.
Images over their limits are replaced by a note with their hash.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

from ferrule.blobs import BlobStore
from ferrule.conversation import Image, Text, ToolOutput, ToolResult
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope

LIMIT = 30_000
"""The default limit of characters of text in one result."""
_MOST_ROWS = 1000
"""The rows of a DataFrame that are shown; of more, the first and the last, and how many there are."""
MOST_IMAGES = 20
"""The default limit of images in one result."""
MOST_IMAGE_BYTES = 20 * 1024 * 1024
"""The default limit of bytes of all images in one result."""

# Tuples, since every result is checked, and a union type takes five times as long.
_PARTS = (Text, Image)
_LISTS = (list, tuple)
# Types without parts to look into; not float, which may be infinite.
_PLAIN = (int, bool, type(None))


def make_parts(value: Any) -> tuple[Text | Image, ...]:
    """Convert a returned value to parts, of any length.

    Raises `ToolFailed` for a value that is neither text, JSON nor an image.
    """
    if type(value) is str:
        return (Text(value if value.isascii() else _replace_surrogates(value)),)
    if type(value) in _PLAIN:
        return (Text(_get_json_writer()(value).decode()),)
    if isinstance(value, _PARTS):
        return (value,)
    if isinstance(value, ToolOutput):
        return make_parts(value.content)
    if isinstance(value, _LISTS) and any(isinstance(part, _PARTS) for part in value):
        return _join_texts([make_parts(part)[0] for part in value])
    if _is_table(value):
        shape = {"length": True} if value.ndim == 1 else {"show_dimensions": True}
        return (Text(_replace_surrogates(value.to_string(max_rows=_MOST_ROWS, **shape))),)
    return (Text(_write_json(value)),)


def make_data(value: Any, parts: tuple[Text | Image, ...]) -> Any:
    """Convert a returned value, whose `parts` were made, to JSON values; None for text and images.

    Raises `ToolFailed` for the data of a `ToolOutput` that isn't JSON.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return None
    if isinstance(value, ToolOutput):
        written = _write_json(value.data)
        return written if isinstance(value.data, str) else _read_json(written)  # a text is written as it is
    if isinstance(value, _PARTS) or (isinstance(value, _LISTS) and any(isinstance(part, _PARTS) for part in value)):
        return None
    if _is_table(value):
        try:
            return _read_json(_write_json(value))
        except ToolFailed:
            return None  # such as columns of the same name; the model reads the text
    return _read_json(parts[0].text)  # type: ignore[union-attr]


def _read_json(text: str) -> Any:
    from pydantic_core import from_json

    return from_json(text)


# Not frozen, although never changed: every run makes one, and that would take twice as long.
@dataclass(slots=True)
class ResultLimits:
    """The most that one result may hold: `characters` of text, and `images`, of `image_bytes` in all.

    What is left out is stored in `blobs`. `can_read` is whether the model has `read_result` to read it.
    """

    blobs: BlobStore
    characters: int = LIMIT
    images: int = MOST_IMAGES
    image_bytes: int = MOST_IMAGE_BYTES
    can_read: bool = True

    def cut(self, parts: tuple[Text | Image, ...]) -> tuple[Text | Image, ...]:
        """Cut parts to the limits, with a notice in place of what is left out. Returns `parts` itself if it fits.

        Several texts share the limit evenly; of images, the first ones are kept.
        """
        if len(parts) == 1 and type(parts[0]) is Text and len(parts[0].text) <= self.characters:
            return parts
        parts = self._leave_out_images(parts)
        texts = [part.text for part in parts if isinstance(part, Text)]
        if sum(map(len, texts)) <= self.characters:
            return parts
        share = self.characters // len(texts)
        return tuple(
            Text(cut_text(part.text, share, self.blobs, self.can_read)) if isinstance(part, Text) else part
            for part in parts
        )

    def cut_result(self, result: ToolResult) -> ToolResult:
        """Cut what a result holds. Returns `result` itself if it fits."""
        content = self.cut(result.content)
        return result if content is result.content else replace(result, content=content)

    def _leave_out_images(self, parts: tuple[Text | Image, ...]) -> tuple[Text | Image, ...]:
        images = [part for part in parts if isinstance(part, Image)]
        if len(images) <= self.images and sum(len(image.data) for image in images) <= self.image_bytes:
            return parts
        kept: list[Text | Image] = []
        count = size = 0
        for part in parts:
            if isinstance(part, Image):
                if count >= self.images or size + len(part.data) > self.image_bytes:
                    kept.append(Text(self._note_image(part)))
                    continue
                count, size = count + 1, size + len(part.data)
            kept.append(part)
        return _join_texts(kept)

    def _note_image(self, image: Image) -> str:
        name = self.blobs.put(image.data)
        limits = f"a result holds at most {self.images:,} images and {self.image_bytes:,} bytes of them"
        return f"[an image left out, {image.media_type}, {len(image.data):,} bytes, kept as {name}: {limits}]"


def cut_text(text: str, limit: int, blobs: BlobStore, can_read: bool = True) -> str:
    """Replace the middle of a text longer than `limit` by a notice."""
    if len(text) <= limit:
        return text
    name = blobs.put(text.encode())
    head, tail = limit - limit // 2, limit // 2
    opener = f'; read_result("{name}", {head}) opens it' if can_read else ""
    notice = f"[… {len(text) - head - tail:,} characters left out; the whole is kept as {name}{opener} …]"
    return f"{text[:head]}\n{notice}\n{text[len(text) - tail :]}"


def _join_texts(parts: list[Text | Image]) -> tuple[Text | Image, ...]:
    """Join consecutive texts, each on a line of its own."""
    joined: list[Text | Image] = []
    for part in parts:
        if isinstance(part, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(f"{joined[-1].text}\n{part.text}")
        else:
            joined.append(part)
    return tuple(joined)


@cache
def _get_json_writer() -> Callable[[Any], bytes]:
    """Import pydantic's writer of JSON, once: the import statement alone would take longer than it does."""
    from pydantic_core import to_json

    return to_json


def _write_json(value: Any) -> str:
    if isinstance(value, str):
        return _replace_surrogates(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        raise ToolFailed("the tool returned bytes, which can't be shown; it must return text, JSON values or an image")
    if inspect.isgenerator(value) or inspect.isasyncgen(value) or inspect.iscoroutine(value):
        if inspect.iscoroutine(value):
            value.close()
        raise ToolFailed(f"the tool returned a value of type {type(value).__name__}; it must return the result itself")
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(_sort_sets(value), inf_nan_mode="strings", fallback=_convert_scientific).decode()
    except (PydanticSerializationError, RecursionError, ValueError) as error:
        said = str(error).partition("\n")[0].removeprefix("Error serializing to JSON: ").removeprefix("TypeError: ")
        reason = "nested too deeply" if isinstance(error, RecursionError) else said
        raise ToolFailed(
            f"the tool returned a value of type {type(value).__name__} that can't be written as JSON ({reason}); "
            "it must return text, JSON values, a dataclass or an image"
        ) from error


def _is_table(value: Any) -> bool:
    """Whether it is a DataFrame or a Series, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series))


def _convert_scientific(value: Any) -> Any:
    """What pydantic can't write: numpy's scalars and arrays, a DataFrame as its rows, a Series as its values."""
    numpy = sys.modules.get("numpy")
    if _is_table(value):
        # Pandas writes what pydantic doesn't know, such as missing times.
        return _read_json(value.to_json(orient="records", date_format="iso"))
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.tolist()
    if (
        numpy is not None
        and isinstance(value, numpy.generic)
        and not isinstance(converted := value.item(), numpy.generic)
    ):
        return converted
    # Without its module, which for a discovered file has a name of our own.
    raise TypeError(f"{type(value).__name__} isn't a JSON value")


def _sort_sets(value: Any) -> Any:
    """Sort the sets in a value, since their own order differs from run to run."""
    if isinstance(value, set | frozenset):
        return sorted(
            (_sort_sets(element) for element in value), key=lambda element: (str(type(element)), str(element))
        )
    if type(value) is dict:
        return {key: _sort_sets(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return [_sort_sets(element) for element in value]
    return value


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which can't be encoded; pairs become their character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


NAME = "read_result"
_PAGE = 20_000


def read_result_tool(page: int = _PAGE) -> Tool:
    """Make the tool `read_result(name, offset)`, which returns `page` characters of a stored result.

    Offer it like any other tool; it reads from the blob store of its executor.
    """

    def read_result(
        name: Annotated[str, "The name that the notice gave"],
        scope: CallScope,
        offset: Annotated[int, "The character to start at"] = 0,
    ) -> str:
        """Open a result that was cut: a part of its text, from a character on."""
        data = scope.blobs.get(name)
        if data is None:
            raise ToolFailed(f"no result is kept as {name!r}; it was never there or has been dropped")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{name!r} is not text") from None
        if not 0 <= offset < max(1, len(text)):
            raise ToolRetry(f"offset must be from 0 to {len(text) - 1}")
        end = offset + page
        if end >= len(text):
            return text[offset:]
        return f"{text[offset:end]}\n[… {len(text) - end:,} characters follow; go on at offset {end} …]"

    return Tool.from_callable(read_result, name=NAME, read_only=True, open_world=False)
