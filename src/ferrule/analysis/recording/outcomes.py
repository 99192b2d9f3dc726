"""What a run of code left, as JSON: readable in the recording, and the same values when it is read back.

Bytes and figures are blobs beside the recording. Data that JSON doesn't have is an object with one name that begins
with `$`, such as `{"$tuple": [1, 2]}`.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import fractions
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter

from ferrule.conversation import Image
from ferrule.sandbox.python.result import DataTable, Opaque, PythonResult, RunError

PutBlob: TypeAlias = Callable[[bytes], str]
GetBlob: TypeAlias = Callable[[str], bytes]


def _read_fraction(text: str) -> fractions.Fraction:
    # Of `1e999999999`, which a fraction could be made of too, all digits would be computed.
    if not re.fullmatch(r"-?\d+(/\d+)?", text):
        raise ValueError(f"{text!r:.100} is no fraction")
    return fractions.Fraction(text)


_TEXTS: dict[str, tuple[type[Any], Callable[[Any], str], Callable[[str], Any]]] = {
    "$datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "$date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "$time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "$decimal": (decimal.Decimal, str, decimal.Decimal),
    "$fraction": (fractions.Fraction, str, _read_fraction),
    "$complex": (complex, str, complex),
    "$float": (float, str, float),
}
"""Types that are written as text; a datetime is a date too, so it comes first."""
_ERROR = TypeAdapter(RunError)
Checked = TypeVar("Checked")


def encode_outcome(result: PythonResult, put: PutBlob) -> dict[str, Any]:
    """The outcome of a run; how long it took is left out, since no two runs share that."""
    error = result.error
    outcome: dict[str, Any] = {
        "value": encode_value(result.value, put),
        "stdout": result.stdout,
        "stderr": result.stderr,
        "files": {name: put(data) for name, data in sorted(result.files.items())},
        "images": [encode_value(image, put) for image in result.images],
        "omitted": list(result.omitted),
    }
    outcome = {name: value for name, value in outcome.items() if value or name == "value"}
    if error is not None:
        outcome["error"] = {
            "kind": error.kind, "message": error.message, "traceback": error.traceback, "line": error.line,
        }  # fmt: skip
    return outcome


def decode_outcome(outcome: Mapping[str, Any], get: GetBlob) -> PythonResult:
    """The result that `encode_outcome` wrote. Raises what `decode_value` raises."""
    error = outcome.get("error")
    return PythonResult(
        value=decode_value(outcome.get("value"), get),
        stdout=_check(str, outcome.get("stdout", "")),
        stderr=_check(str, outcome.get("stderr", "")),
        files={name: get(blob) for name, blob in outcome.get("files", {}).items()},
        images=tuple(_check(Image, decode_value(image, get)) for image in outcome.get("images", ())),
        error=None if error is None else _ERROR.validate_python(error),
        omitted=tuple(_check(str, one) for one in outcome.get("omitted", ())),
    )


def _check(kind: type[Checked], value: Any) -> Checked:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} is no {kind.__name__}")
    return value


def encode_value(value: Any, put: PutBlob) -> Any:
    """A value as JSON data. What has no form is kept as its type and text."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is list:
        return [encode_value(one, put) for one in value]
    if type(value) is dict:
        if all(type(name) is str and not name.startswith("$") for name in value):
            return {name: encode_value(one, put) for name, one in value.items()}
        return {"$dict": [[encode_value(name, put), encode_value(one, put)] for name, one in value.items()]}
    return _encode_tagged(value, put)


def _encode_tagged(value: Any, put: PutBlob) -> Any:
    if type(value) in (tuple, set, frozenset):
        items = [encode_value(one, put) for one in value]
        return {f"${type(value).__name__}": items if type(value) is tuple else sorted(items, key=repr)}
    if isinstance(value, bytes):
        return {"$bytes": put(value)}
    if isinstance(value, Image):
        return {"$image": [put(value.data), value.media_type]}
    if isinstance(value, DataTable):
        parts = {"columns": value.columns, "rows": value.rows, "index": value.index}
        listed = {name: [encode_value(one, put) for one in part] for name, part in parts.items()}
        return {"$table": {**listed, "total_rows": value.total_rows}}
    if isinstance(value, datetime.timedelta):
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}
    for name, (kind, write, _) in _TEXTS.items():
        if type(value) is kind:
            return {name: write(value)}
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and not value.dtype.hasobject:
        array = [str(value.dtype), list(value.shape), base64.b64encode(value.tobytes()).decode("ascii")]
        return {"$array": array}
    if isinstance(value, Opaque):
        return {"$opaque": [value.type, value.text, value.reason]}
    return {"$opaque": [type(value).__name__, repr(value)[:2000], "repr"]}


def decode_value(data: Any, get: GetBlob) -> Any:
    """The value that `encode_value` wrote. Raises one of `DAMAGE`, of recordings, for anything else."""
    if isinstance(data, list):
        return [decode_value(one, get) for one in data]
    if not isinstance(data, dict):
        return data
    tag, *others = data or {"": None}
    if not tag.startswith("$"):
        return {name: decode_value(one, get) for name, one in data.items()}
    if others:
        raise ValueError(f"{tag} stands beside {others[0]}")
    return _decode_tagged(tag, data[tag], get)


def _decode_tagged(tag: str, inner: Any, get: GetBlob) -> Any:
    if tag == "$dict":
        return {decode_value(name, get): decode_value(one, get) for name, one in inner}
    if tag in ("$tuple", "$set", "$frozenset"):
        kind = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}[tag]
        return kind(decode_value(one, get) for one in inner)
    if tag == "$bytes":
        return get(inner)
    if tag == "$image":
        name, media_type = inner
        return Image(get(name), _check(str, media_type))
    if tag == "$table":
        columns, rows, index = (decode_value(inner[name], get) for name in ("columns", "rows", "index"))
        if any(len(row) != len(columns) for row in rows) or len(index) != len(rows):
            raise ValueError("the rows of a table don't fit its columns or index")
        return DataTable(tuple(columns), tuple(map(tuple, rows)), tuple(index), _check(int, inner["total_rows"]))
    if tag == "$timedelta":
        return datetime.timedelta(*inner)
    if tag == "$opaque":
        return Opaque(*(_check(str, one) for one in inner))
    if tag == "$array":
        import numpy

        kind, shape, text = inner
        array = numpy.frombuffer(base64.b64decode(text), dtype=numpy.dtype(kind)).reshape(shape)
        return array.copy() if shape else array[()]
    return _TEXTS[tag][2](inner)
