"""Writes the value of a task for the tasks after it, and reads it. Runs in the sandbox, at both ends.

The value is pickled, so that it keeps its types: numpy's and pandas' objects, numbers without a JSON form, tuples,
sets, fitted models. It is unpickled only where code of the same analysis runs, as contained as the code that wrote it,
and never in the process of ferrule, for which it is bytes.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import io
import math
import os
import pickle
import sys
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import suppress
from types import MethodType
from typing import Any

FILE = "result.pickle"
"""Where a run leaves its value, in its folder."""
_PLAIN_PARTS = 10_000
_PLAIN_DEPTH = 30
_PLAIN_BITS = 1024
_MOST_NOTES = 10
_LONGEST = 200
_BASES: tuple[Any, ...] = (dict, list, tuple, set, frozenset, str, bytes, float, int)


def write_value(value: Any, path: str = FILE) -> list[str]:
    """Leave a value in a file, or none if JSON has all of it; returns what is not as it was, a sentence each."""
    if is_plain(value):
        return []
    try:
        data, notes = dump_value(value)
        _check_loads(data)
    except Exception as error:  # noqa: BLE001 - a value's own methods may raise anything
        return [f"later tasks have the result as JSON, since it can't be kept as it is: {_explain(error)}"]
    try:
        _write_compressed(data, path)
    except (OSError, MemoryError) as error:
        # What was written until then is no value.
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - in the sandbox
        return [f"later tasks have the result as it is shown here: its {len(data):,} bytes can't be kept ({error})"]
    return notes


def describe_type(value: Any) -> str:
    """The type of a value that JSON hasn't all of, and of the parts of a dictionary: "dict with by: Series"; or ""."""
    if is_plain(value):
        return ""
    if type(value) is not dict:
        return type(value).__name__
    parts = [f"{_write(key, 40)}: {type(part).__name__}" for key, part in list(value.items())[:_MOST_NOTES]]
    more = ", …" if len(value) > _MOST_NOTES else ""
    return f"dict with {', '.join(parts)}{more}"


def read_value(path: str) -> Any:
    """Read what `write_value` left. Raises `ValueError` if this Python or its packages can't."""
    import pyarrow

    try:
        with pyarrow.input_stream(path, compression="zstd") as file:
            return pickle.loads(file.read())
    except Exception as error:
        raise ValueError(f"it can't be read by the packages that are installed: {_explain(error)}") from error


def dump_value(value: Any) -> tuple[bytes, list[str]]:
    """Pickle a value; parts that can't be pickled become the nearest plain value or their text, and are listed."""
    file = io.BytesIO()
    pickler = _ValuePickler(file)
    pickler.dump(value)
    notes = list(dict.fromkeys(pickler.notes))
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more parts of the result are not as they were"]
    return file.getvalue(), notes


def is_plain(value: Any) -> bool:
    """Whether JSON has all of a value, and the value isn't too large to be returned as JSON."""
    return all(_list_plain_parts(value))


def _list_plain_parts(value: Any) -> Iterator[bool]:
    """Whether each part is plain; ends with one that isn't where there are too many."""
    left: list[tuple[Any, int]] = [(value, 0)]
    size = 0
    while left:
        part, depth = left.pop()
        kind = type(part)
        size += 1 + (len(part) // 10 if kind is str else 0)
        if kind is dict:
            yield all(type(key) is str for key in part)
            left += [(inner, depth + 1) for inner in part.values()]
        elif kind is list:
            left += [(inner, depth + 1) for inner in part]
        elif kind is int:
            yield part.bit_length() < _PLAIN_BITS
        else:
            yield part is None or kind in (str, bool) or (kind is float and math.isfinite(part))
        yield depth < _PLAIN_DEPTH and size + len(left) < _PLAIN_PARTS


class _ValuePickler(pickle.Pickler):
    """Pickles what another run can read: classes and functions of the code itself aren't there."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.notes: list[str] = []

    def reducer_override(self, value: Any) -> Any:
        """Say how a value is pickled; called for all but plain ones, which pickle has a form for."""
        kind = type(value)
        if isinstance(value, type) or (callable(value) and not isinstance(value, MethodType) and _has_name(value)):
            return NotImplemented if _is_importable(value) else self._write_as_text(value)
        if isinstance(value, KeysView | ValuesView | ItemsView):
            return self._replace(value, list(value), "a list")
        if not _is_importable(kind) or not _is_importable(getattr(value, "default_factory", None) or dict):
            return self._simplify(value)
        package = kind.__module__.partition(".")[0]
        if package in ("duckdb", "_duckdb") and hasattr(value, "df"):
            return _return, (value.df(),)
        # A figure that is unpickled would be open in the later task, and be shown by it again.
        if package == "matplotlib":
            return self._write_as_text(value)
        try:
            special = copyreg.dispatch_table.get(kind)
            reduced = special(value) if special is not None else value.__reduce_ex__(5)
            # A name, which pickle writes itself.
            return NotImplemented if isinstance(reduced, str) else reduced
        except Exception:  # noqa: BLE001 - a value's own methods may raise anything
            return self._write_as_text(value)

    def _simplify(self, value: Any) -> Any:
        """An object of a class that only this run has, as the plain value that it is nearest to."""
        if isinstance(value, enum.Enum):
            return self._replace(value, value.value, "its value")
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._replace(value, fields, "a dict of its fields")
        for base in _BASES:
            if isinstance(value, base):
                return self._replace(value, base(value), f"a {base.__name__}")
        return self._write_as_text(value)

    def _write_as_text(self, value: Any) -> Any:
        return self._replace(value, _write(value), "its text")

    def _replace(self, value: Any, by: Any, name: str) -> Any:
        self.notes.append(
            f"later tasks have {_write(value, _LONGEST)} ({type(value).__name__}) of the result as {name}"
        )
        return _return, (by,)


def _return(value: Any) -> Any:
    return value


def _has_name(value: Any) -> bool:
    """Whether it is a function, of Python, C or Cython."""
    return isinstance(getattr(value, "__qualname__", None), str)


def _is_importable(named: Any) -> bool:
    """Whether another run finds a class or a function by its name."""
    module, name = getattr(named, "__module__", None), getattr(named, "__qualname__", "")
    if not isinstance(module, str):
        # Methods of built-in classes have none, and pickle their own way.
        return not isinstance(named, type)
    found: Any = sys.modules.get(module)
    if module == "__main__" or found is None or "<" in name:
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None or not isinstance(named, type)


class _Loader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":
            raise pickle.UnpicklingError(f"{name} is of the task's own code")
        return super().find_class(module, name)


def _check_loads(data: bytes) -> None:
    """Raise what reading raises: some objects can be pickled and not unpickled."""
    _Loader(io.BytesIO(data)).load()


def _write_compressed(data: bytes, path: str) -> None:
    import pyarrow

    with pyarrow.output_stream(path, compression="zstd") as file:
        file.write(data)


def _write(value: Any, longest: int = 2000) -> str:
    try:
        text = " ".join(repr(value).split()) if longest < 2000 else repr(value)
    except Exception:  # noqa: BLE001 - a value's own `repr` may raise anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _explain(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
