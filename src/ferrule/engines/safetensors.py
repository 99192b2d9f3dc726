"""Reads the header of a safetensors file (https://github.com/huggingface/safetensors), without trusting it.

The format: eight bytes of header length, a JSON header with each tensor's type, shape and offsets, then the raw
little-endian data. Nothing is read of the data here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.errors import EngineError

_HEADER_LIMIT = 100_000_000  # bytes; the limit of the format's own reader
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
    "U16": 16, "U8": 8, "BOOL": 8, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""The bits of one value, by type."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor's type, shape, and its first byte and end in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_tensor_places(path: Path) -> dict[str, TensorPlace]:
    """Where each tensor lies, by name. Raises `EngineError` for an unreadable file and one with a false header."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = _read_header_length(file.read(8), path, size)
            entries = _read_entries(file.read(length), path)
    except OSError as error:
        raise EngineError(f"can't read weights from {path}: {error.strerror or error}") from error
    first = 8 + length
    places = {name: _check_place(name, entry, first, size - first, path) for name, entry in entries.items()}
    _check_that_they_tile(places, first, size, path)
    return places


def _read_header_length(prefix: bytes, path: Path, size: int) -> int:
    """The header's length in bytes, checked against the file's."""
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length > min(_HEADER_LIMIT, size - 8):
        raise EngineError(
            f"{path} is not a safetensors file: its header does not fit in it; it may be cut off, so download it again"
        )
    return length


def _read_entries(header: bytes, path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{path} is not a safetensors file: its header is not JSON ({error})") from error
    if not isinstance(entries, dict):
        raise EngineError(f"{path} is not a safetensors file: its header is not an object")
    entries.pop("__metadata__", None)
    return entries


def _check_place(name: str, entry: Any, first: int, data_size: int, path: Path) -> TensorPlace:
    """A tensor's place, each part checked; `first` is the first byte of the data."""
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]}:
            pass
        case _:
            raise EngineError(f"{path}: tensor {name!r} needs a dtype, a shape and two data_offsets")
    if dtype not in _BITS:
        raise EngineError(f"{path}: tensor {name!r} has the unknown type {dtype}")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise EngineError(f"{path}: tensor {name!r} has an impossible shape {shape}")
    if not 0 <= start <= end <= data_size:
        raise EngineError(f"{path}: tensor {name!r} lies at bytes {start} to {end}, but there are {data_size} of data")
    if (end - start) * 8 != math.prod(shape) * _BITS[dtype]:
        raise EngineError(f"{path}: tensor {name!r} of {dtype} {shape} does not take {end - start} bytes")
    return TensorPlace(dtype, tuple(shape), first + start, first + end)


def _check_that_they_tile(places: Mapping[str, TensorPlace], first: int, size: int, path: Path) -> None:
    """As the format's own reader does: tensors that overlap could take many times the memory of their file."""
    at = first
    for name, place in sorted(places.items(), key=lambda one: (one[1].start, one[1].end)):
        if place.start != at:
            raise EngineError(f"{path}: tensor {name!r} does not begin where the one before it ends")
        at = place.end
    if at != size:
        raise EngineError(f"{path}: {size - at} bytes after the last tensor belong to none")
