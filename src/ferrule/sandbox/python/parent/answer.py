"""Parses a child's answer defensively: any bytes give a `ChildAnswer` or raise `WireError`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, get_args

from ferrule.conversation import Image
from ferrule.sandbox.python.result import DataTable, ErrorKind, Opaque, RunError
from ferrule.sandbox.python.wire.decoding import ValueBuilder, ValueDecoder
from ferrule.sandbox.python.wire.frames import PARTS_LIMIT, FrameBlobs, WireError, parse_tree

CHILD_KINDS: Final = ("syntax", "exception", "memory")
"""The kinds of error that a child may report; the parent itself detects the others."""
MAX_FILES: Final = 256
_TEXT: Final = 200_000


@dataclass(slots=True)
class ChildAnswer:
    """What a child reports of its run."""

    value: Any = None
    error: RunError | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    omitted: tuple[str, ...] = ()


def parse_answer(head: bytes, data: bytes) -> ChildAnswer:
    """Parse the answer in a frame's two parts. Raises `WireError` if it isn't one."""
    tree = parse_tree(head, PARTS_LIMIT)
    if not isinstance(tree, dict) or not tree.keys() & {"value", "error"}:
        raise WireError("not an answer")
    decoder = ValueDecoder(FrameBlobs(data), _BUILDERS)
    value = decoder.decode(tree.get("value"))
    images = tuple(_build_image(decoder, item) for item in _get_list(tree, "images", MAX_FILES))
    files = {_parse_file_name(item): decoder.take_blob(item) for item in _get_list(tree, "files", MAX_FILES)}
    omitted = tuple(_parse_text(line)[:1000] for line in _get_list(tree, "omitted", 1000))
    return ChildAnswer(value, _parse_error(tree.get("error")), files, images, omitted)


def _get_list(tree: dict[str, Any], key: str, limit: int) -> list[Any]:
    found = tree.get(key, [])
    if not isinstance(found, list) or len(found) > limit:
        raise WireError(f"{key} of the answer is not a list, or is too long")
    return found


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError("expected text in the answer")
    return value[:_TEXT]


def _parse_error(tree: Any) -> RunError | None:
    if tree is None:
        return None
    if not isinstance(tree, dict) or tree.get("kind") not in CHILD_KINDS:
        raise WireError("the answer's error has an unknown kind")
    line = tree.get("line")
    kind: ErrorKind = next(kind for kind in get_args(ErrorKind) if kind == tree["kind"])
    known = type(line) is int and 0 < line < 2**31
    return RunError(kind, _parse_text(tree.get("message")), _parse_text(tree.get("traceback")), line if known else None)


def _parse_file_name(tree: Any) -> str:
    """Parse the name of a returned file: a relative path that is safe to write to a disk."""
    name = tree.get("name") if isinstance(tree, dict) else None
    if not isinstance(name, str) or not is_safe_name(name):
        raise WireError("a file in the answer has an unsafe name")
    return name


def is_safe_name(name: str) -> bool:
    """Is it a relative path of ordinary parts, which stays in its folder?"""
    parts = PurePosixPath(name).parts
    return (
        0 < len(name) <= 1000
        and "/".join(parts) == name
        and not name.startswith("/")
        and not any(part in {".", ".."} or len(part.encode("utf-8", "replace")) > 255 for part in parts)
        and name.isprintable()
        and "\\" not in name
    )


def _build_image(decoder: ValueDecoder, tree: Any) -> Image:
    data = decoder.take_blob(tree)
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        raise WireError("an image in the answer is not a PNG")
    return Image(data)


def _build_opaque(_: ValueDecoder, tree: dict[str, Any]) -> Opaque:
    return Opaque(_parse_text(tree["type"]), _parse_text(tree["text"]), _parse_text(tree["reason"]))


def _build_table(decoder: ValueDecoder, tree: dict[str, Any]) -> DataTable:
    names = decoder.decode_list(tree["names"])
    columns = [decoder.decode_list(column) for column in tree["of"]]
    index = decoder.decode_list(tree["index"])
    total = tree["total"]
    if len(columns) != len(names) or any(len(column) != len(index) for column in columns) or type(total) is not int:
        raise WireError("a table's columns differ in length")
    rows = tuple(zip(*columns, strict=True)) if columns else ((),) * len(index)
    return DataTable(tuple(names), rows, tuple(index), max(total, len(index)))


_BUILDERS: Final[dict[str, ValueBuilder]] = {
    "opaque": _build_opaque,
    "table": _build_table,
    "image": _build_image,
}
