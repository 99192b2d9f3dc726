"""Reads a `.safetensors` file into float32 arrays, without trusting its contents.

The format (https://github.com/huggingface/safetensors): eight bytes of header length, a JSON header with each tensor's
type, shape and offsets, then the raw little-endian data. `decoder` interprets the tensors.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrule.errors import EngineError

Array = NDArray[np.float32]

_HEADER_LIMIT = 100_000_000  # bytes; the limit of the format's own reader
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


def read_safetensors(path: Path) -> dict[str, Array]:
    """Every tensor of the file by name, as float32. Raises `EngineError` for an unreadable file."""
    try:
        with path.open("rb") as file:
            header, data_start = _read_header_length(file.read(8), path), file.tell()
            entries = _read_entries(file.read(header), path)
            data_size = path.stat().st_size - data_start - header
            tensors = {}
            for name, entry in entries.items():
                dtype, shape, start, end = _check_place(name, entry, data_size, path)
                file.seek(data_start + header + start)
                tensors[name] = _convert_to_float32(file.read(end - start), dtype, shape)
            return tensors
    except OSError as error:
        raise EngineError(f"can't read weights from {path}: {error.strerror or error}") from error


def _read_header_length(prefix: bytes, path: Path) -> int:
    """The header's length in bytes, checked against the file's."""
    length = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or length > min(_HEADER_LIMIT, path.stat().st_size - 8):
        raise EngineError(f"{path} is not a safetensors file: its header does not fit in it")
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


def _check_place(name: str, entry: Any, data_size: int, path: Path) -> tuple[str, tuple[int, ...], int, int]:
    """A tensor's type, shape, first byte and end, each checked."""
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]}:
            pass
        case _:
            raise EngineError(f"{path}: tensor {name!r} needs a dtype, a shape and two data_offsets")
    if dtype not in _DTYPES:
        raise EngineError(f"{path}: tensor {name!r} has type {dtype}; can read {', '.join(_DTYPES)}")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise EngineError(f"{path}: tensor {name!r} has an impossible shape {shape}")
    if not 0 <= start <= end <= data_size:
        raise EngineError(f"{path}: tensor {name!r} lies at bytes {start} to {end}, but there are {data_size} of data")
    if end - start != math.prod(shape) * _DTYPES[dtype].itemsize:
        raise EngineError(f"{path}: tensor {name!r} of {dtype} {shape} does not take {end - start} bytes")
    return dtype, tuple(shape), start, end


def _convert_to_float32(raw: bytes, dtype: str, shape: tuple[int, ...]) -> Array:
    values = np.frombuffer(raw, _DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(values, np.float32).reshape(shape)
