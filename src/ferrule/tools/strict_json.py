"""Strict JSON for arguments: one object, no duplicate keys, no NaN, only finite numbers.

The standard parser is used because it can detect duplicate keys; the error says where and what to write.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from ferrule.errors import ArgumentProblem, ArgumentsInvalid
from ferrule.tools.argument_errors import WHOLE, describe_value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON; give a finite number or null")


def _parse_finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large; give a smaller one")
    return number


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    decoded = dict(pairs)
    if len(decoded) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {json.dumps(repeated)} is given more than once; give it once")
    return decoded


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant, parse_float=_parse_finite
)


def decode_json(text: str) -> Any:
    """Decode strict JSON. Raises `ValueError` with a text that a model can act on."""
    try:
        decoded, end = _DECODER.raw_decode(text) if text[:1] == "{" else (None, -1)
        if end < len(text):  # white space around the value, or something else than an object
            decoded = _DECODER.decode(text)
        if not text.isascii() or "\\u" in text:
            json.dumps(decoded, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        near = json.dumps(text[max(0, error.pos - 20) : error.pos + 20], ensure_ascii=False)
        cure = "; write a line break inside a string as \\n" if "control character" in error.msg else ""
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"not valid JSON at {place}, near {near}: {error.msg}{cure}") from None
    except RecursionError:
        raise ValueError("nested too deeply; give a flatter value") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not a character; write the character itself") from None
    except ValueError as error:
        if str(error).startswith("Exceeds the limit"):
            raise ValueError("a number has too many digits; give a shorter one") from None
        raise
    return decoded


def decode_json_at(text: str, start: int) -> tuple[Any, int]:
    """Decode the strict JSON that begins at `start`; returns it, and where it ends.

    Raises `json.JSONDecodeError`, `RecursionError`, or another `ValueError` for what `decode_json` refuses.
    """
    value, end = _DECODER.raw_decode(text, start)
    json.dumps(value, ensure_ascii=False).encode()
    return value, end


def decode_arguments(text: str) -> tuple[dict[str, Any], str]:
    """The object in `text`, and its JSON text; an empty text is an object without fields.

    An object that was encoded twice (a JSON string that contains one) is accepted. Raises `ArgumentsInvalid`.
    """
    if text[:1] != "{" and not text.strip():
        return {}, "{}"
    try:
        decoded = decode_json(text)
        if type(decoded) is dict:
            return decoded, text
        if isinstance(decoded, str) and decoded.lstrip().startswith("{"):
            text = decoded
            decoded = decode_json(text)
    except ValueError as error:
        raise ArgumentsInvalid((ArgumentProblem(WHOLE, "", str(error)),)) from None
    if not isinstance(decoded, dict):
        expected = "expected one JSON object with the arguments by name"
        raise ArgumentsInvalid((ArgumentProblem(WHOLE, describe_value(decoded), expected),))
    return decoded, text


def encode_json(value: Any) -> str:
    """Encode a value as JSON. Raises `ArgumentsInvalid` if it contains something that JSON can't express."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentsInvalid((ArgumentProblem(WHOLE, "", f"not a JSON value: {error}"),)) from None
