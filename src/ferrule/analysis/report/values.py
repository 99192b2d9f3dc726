"""Structured values as HTML: a mapping of mappings as a table, other named values as definitions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from pydantic import BaseModel

from ferrule.pages.code import show_text
from ferrule.pages.elements import element

_MOST_COLUMNS: Final = 12


def show_value(value: Any) -> Markup:
    """Structured data: named values as a list of definitions, anything else as JSON or text."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        pairs = [
            (element("dt", str(name).replace("_", " ")), element("dd", show_value(inner)))
            for name, inner in value.items()
            if inner not in (None, "", [], (), {})
        ]
        return element("dl", pairs)
    if isinstance(value, list | tuple):
        if all(isinstance(inner, str | int | float) for inner in value) and sum(map(len, map(str, value))) < 80:
            return element("span", ", ".join(map(str, value)))
        return element("ul", [element("li", show_value(inner)) for inner in value])
    if isinstance(value, str):
        return element("span", value)
    return element("code", json.dumps(value, ensure_ascii=False, default=str))


def show_result(text: str) -> list[Markup]:
    """The result of code as a model saw it; a JSON object at its beginning as a table, with all of its digits."""
    value, rest = _read_object(text)
    if value is None:
        return [show_text(text)]
    shown = [_show_object(value)]
    return [*shown, show_text(rest)] if rest else shown


def _read_object(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that a text begins with, if it has values to show, and the text after it."""
    if not text.startswith("{"):
        return None, text
    try:
        value, end = json.JSONDecoder(parse_float=_Digits, parse_int=_Digits).raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    rest = text[end:]
    is_whole = not rest or rest.startswith("\n")
    return (value, rest.strip("\n")) if value and is_whole and _is_shown(value) else (None, text)


class _Digits(str):
    """A number of JSON as it was written."""

    __slots__ = ()


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool)


def _is_shown(value: Mapping[str, Any]) -> bool:
    """Whether it is a mapping of scalars, or of mappings or short lists of them."""
    inner = [one for part in value.values() for one in _list_parts(part)]
    return all(map(_is_scalar, inner))


def _list_parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _show_object(value: Mapping[str, Any]) -> Markup:
    """A table of named values, one of all mappings that are alike, and one of each other mapping."""
    parts = {name: part for name, part in value.items() if isinstance(part, Mapping)}
    single = [(name, [part]) for name, part in value.items() if name not in parts]
    shown = [_show_rows([], single)] if single else []
    columns = list(dict.fromkeys(name for part in parts.values() for name in part))
    are_alike = len({tuple(part) for part in parts.values()}) == 1
    if len(parts) > 1 and (are_alike or not single) and len(columns) <= _MOST_COLUMNS and len(columns) <= len(parts):
        rows = [(name, [part.get(column, "") for column in columns]) for name, part in parts.items()]
        return element("div", shown, _show_rows(["", *columns], rows))
    if len(parts) > 1 and are_alike and len(parts) <= _MOST_COLUMNS:
        rows = [(column, [part[column] for part in parts.values()]) for column in columns]
        return element("div", shown, _show_rows(["", *parts], rows))
    each = [_show_rows([name, ""], [(key, [inner]) for key, inner in part.items()]) for name, part in parts.items()]
    return element("div", shown, each)


def _show_rows(header: list[str], rows: list[tuple[str, list[Any]]]) -> Markup:
    head = element("thead", element("tr", [element("th", name, scope="col") for name in header])) if header else None
    body = [element("tr", element("th", name, scope="row"), map(_show_cell, cells)) for name, cells in rows]
    return element("div", element("table", head, element("tbody", body), class_="values"), class_="scrolled")


def _show_cell(value: Any) -> Markup:
    if isinstance(value, list):
        return element("td", ", ".join(map(_write, value)))
    return element("td", _write(value), class_="digits" if isinstance(value, _Digits) else None)


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
