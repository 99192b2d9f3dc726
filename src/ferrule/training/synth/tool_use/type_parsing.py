"""Parses the parameter lines of a tool template: `days: int 1..14 = 1; also day_count, n_days`."""

import ast
import keyword
import re
from typing import get_args

from ferrule.training.synth.tool_use.templates import Scalar, ScalarName, TemplateParameter, Value, ValueType
from ferrule.training.synth.words import split_words

SOURCES = frozenset(
    split_words(
        "city country person full_name company email phone url path file folder date day time word topic title text id"
        " currency language color food product street username"
    )
)
"""The sources of texts that a template may name."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_LINE = re.compile(
    r"(?P<type>\S.*?)(?:\s+from\s+(?P<source>\[[^\]]*\]|\S+))?(?:\s*=\s*(?P<default>[^=]+?))?(?:;\s*also\s+(?P<also>.+))?\Z"
)
_LIST = re.compile(r"list\[(.+)\](.*)\Z")
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)\Z")
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float), "bool": bool}


def parse_parameter(name: str, text: str) -> TemplateParameter:
    """A parameter from the text after its name and colon. Raises ValueError with the reason."""
    match = _LINE.match(text.strip())
    if not match:
        raise ValueError(f"parameter {name!r} has no type")
    type_, low, high, decimals = _parse_type(match["type"].strip())
    default, required = None, match["default"] is None
    if match["default"] is not None:
        default = parse_value(match["default"].strip(), type_)
    others = tuple(other.strip() for other in (match["also"] or "").split(",") if other.strip())
    for other in (name, *others):
        if not NAME.match(other):
            raise ValueError(f"{other!r} is no name of a parameter: letters, digits and _ only")
        if keyword.iskeyword(other):
            raise ValueError(f"{other!r} is a keyword of Python, which can't name an argument")
    source = _parse_source(match["source"], type_)
    return TemplateParameter(name, type_, source, low, high, decimals, required, default, others)


def _parse_type(text: str) -> tuple[ValueType, float, float, int]:
    listed = _LIST.match(text)
    inner = f"{listed[1]}{listed[2]}" if listed else text
    if inner.startswith('"') or re.match(r"-?\d+\s*(?:\||\Z)", inner):
        return _parse_options(inner, listed is not None), 0, 0, 0
    scalar, _, bounds = inner.partition(" ")
    bounds = bounds.strip()
    name = next((name for name in get_args(ScalarName) if name == scalar), None)
    if name is None:
        raise ValueError(f'unknown type {scalar!r}: str, int, float, bool, list[…] of these, or "a" | "b"')
    if not bounds:
        return ValueType(name, listed is not None), 0, 0, 0
    match = _RANGE.match(bounds)
    if scalar not in ("int", "float") or not match:
        raise ValueError(f"unexpected {bounds!r} after {scalar}: only numbers have a range, such as 1..14")
    low, high, decimals = parse_range(match[1], match[2], scalar)
    return ValueType(name, listed is not None), low, high, decimals


def parse_range(low: str, high: str, scalar: str) -> tuple[float, float, int]:
    """The bounds of a range and how many decimals its numbers have. Raises ValueError."""
    decimals = max(len(bound.partition(".")[2]) for bound in (low, high))
    if scalar == "int" and decimals:
        raise ValueError(f"the range {low}..{high} of an int has decimals")
    if float(low) >= float(high):
        raise ValueError(f"the range {low}..{high} is empty")
    return float(low), float(high), decimals if scalar == "int" else max(1, decimals)


def _parse_options(text: str, is_list: bool) -> ValueType:
    try:
        options = [ast.literal_eval(option.strip()) for option in text.split("|")]
    except (SyntaxError, ValueError) as error:
        raise ValueError(f'{text!r} is no enum: write "a" | "b", or 1 | 2') from error
    if len(options) < 2 or len({type(option) for option in options}) > 1 or not isinstance(options[0], str | int):
        raise ValueError(f"the enum {text!r} needs two or more texts, or two or more whole numbers")
    if len(set(options)) < len(options):
        raise ValueError(f"the enum {text!r} has an option twice")
    return ValueType("str" if isinstance(options[0], str) else "int", is_list, tuple(options))


def _parse_source(text: str | None, type_: ValueType) -> str | tuple[str, ...] | None:
    if text is None:
        return None
    if type_.scalar != "str" or type_.options:
        raise ValueError("only a str, or a list of them, has a source ('from')")
    if text.startswith("["):
        entries = tuple(dict.fromkeys(entry.strip() for entry in text[1:-1].split(";") if entry.strip()))
        if len(entries) < 2:
            raise ValueError("a list of its own needs at least two entries: from [oak; birch]")
        return entries
    if text not in SOURCES:
        raise ValueError(f"unknown source {text!r}: {', '.join(sorted(SOURCES))}, or a list [oak; birch]")
    return text


def parse_value(text: str, type_: ValueType) -> Value:
    """A default, or the value that some words set: a Python literal, or the bare text of a str. Raises ValueError."""
    if text == "None":
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if type_.is_list:
        values = list(value) if isinstance(value, list | tuple) else [value]
        return [_check_scalar(entry, text, type_) for entry in values]
    if type_.scalar == "str" and not isinstance(value, str):
        value = text
    return _check_scalar(value, text, type_)


def _check_scalar(value: object, text: str, type_: ValueType) -> Scalar:
    is_bool = isinstance(value, bool)
    if not isinstance(value, _PYTHON_TYPES[type_.scalar]) or is_bool is not (type_.scalar == "bool"):
        raise ValueError(f"{text!r} is no {type_.scalar}")
    if type_.options and value not in type_.options:
        raise ValueError(f"{text!r} is none of {', '.join(map(repr, type_.options))}")
    assert isinstance(value, str | int | float | bool)
    return float(value) if type_.scalar == "float" else value
