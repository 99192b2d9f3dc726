"""`DataSource`: a file of data and the name of its tables, checked before anything is read."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.errors import DataError

_MAX_BYTES: Final = 20 * 1024**3
_COMPRESSED: Final = (".gz", ".bz2", ".xz")


@dataclass(frozen=True, slots=True)
class DataSource:
    """A file to read. `name` is that of its table, or the start of its tables' names; None: made from the file's."""

    path: Path
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    @property
    def table_name(self) -> str:
        """The name of its table, if it has only one."""
        return self.name or make_table_name(self.path)


def parse_data_argument(text: str) -> tuple[str | None, Path]:
    """Split `NAME=FILE` into the name of the table and the file; without a name the first is None.

    A file that exists is always meant as such, whatever its name. Raises `DataError` for an invalid name.
    """
    if not text.strip():
        raise DataError("the data has no file name: give a file, as in --data sales.csv or --data q3=sales.csv")
    if re.match(r"(?:\w+=)?\w+://", text):
        raise DataError(f"{text} is an address, and only files are read: download it, and name the file")
    name, equals, path = text.partition("=")
    if not equals or _is_file(text) or "/" in name or "." in name:
        return None, Path(text)
    _check_name(name)
    if not path:
        raise DataError(f"{text!r} names no file: write it as {name}=FILE")
    return name, Path(path)


def make_sources(data: Mapping[str, Path | str] | Iterable[Path | str]) -> tuple[DataSource, ...]:
    """Return the sources of `{"q3": "sales.csv"}`, or of a sequence of files, each of which may be `NAME=FILE`."""
    if isinstance(data, str | Path):
        data = [data]
    if isinstance(data, Mapping):
        for name in data:
            _check_name(name)
        return tuple(DataSource(Path(path), name) for name, path in data.items())
    data = list(data)
    for path in data:
        if not isinstance(path, str | Path):
            raise DataError(
                f"data holds a value of the type {type(path).__name__}, which is no file: give paths, as text or Path, "
                "or {name: path}; a table in memory must be saved first"
            )
    pairs = [(None, path) if isinstance(path, Path) else parse_data_argument(path) for path in data]
    return tuple(DataSource(path, name) for name, path in pairs)


def check_sources(sources: Iterable[DataSource]) -> None:
    """Raise `DataError` for a file that is missing, empty, huge or no file, and for two with one name."""
    names: dict[str, DataSource] = {}
    for source in sources:
        if source.name is not None:
            _check_name(source.name)
        _check_file(source.path)
        other = names.setdefault(source.table_name.casefold(), source)
        if other is not source:
            raise DataError(
                f"{other.path} and {source.path} would both be tables[{source.table_name!r}]: "
                f"give one another name, as in other={source.path}"
            )


def make_table_name(path: Path) -> str:
    """Make a table's name of a file's: letters, digits and underscores."""
    stem = path.name
    for suffix in reversed(path.suffixes[-2:]):
        if suffix.lower() in _COMPRESSED or stem.endswith(suffix):
            stem = stem.removesuffix(suffix)
        if suffix.lower() not in _COMPRESSED:
            break
    return make_identifier(stem)


def make_identifier(text: str) -> str:
    """Make a variable's name of any text."""
    name = re.sub(r"\W+", "_", text).strip("_")[:60]
    if not name:
        return "table"
    return f"table_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or len(name) > 60:
        starts = "; it begins with a digit" if isinstance(name, str) and name[:1].isdigit() else ""
        raise DataError(
            f"{name!r} can't be the name of a table{starts}: use at most 60 letters, digits and underscores, not a "
            "digit first, as in q3=sales.csv"
        )
    if keyword.iskeyword(name):
        raise DataError(
            f"{name!r} can't be the name of a table: it is a word of Python; use another, as in q3=sales.csv"
        )


def _is_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _check_file(path: Path) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DataError(f"{path} doesn't exist: check the path") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} can't be opened: {error}") from None
    if path.is_dir():
        raise DataError(f"{path} is a folder: name each file in it, as in --data {path}/FILE")
    if not path.is_file():
        raise DataError(f"{path} isn't a regular file: save its data as a file first")
    if status.st_size == 0:
        raise DataError(f"{path} is empty: it has no data to analyse")
    if status.st_size > _MAX_BYTES:
        raise DataError(
            f"{path} has {status.st_size / 1024**3:.0f} GiB, and at most {_MAX_BYTES // 1024**3} are read: "
            "extract the rows and columns that the question needs"
        )
