"""Turns a docstring of the scientific packages into the parts of a `FunctionDoc`. They are written in NumPy's style."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_LONGEST_TEXT: Final = 400
_LONGEST_EXAMPLE: Final = 800
_MOST_EXAMPLES: Final = 3
_ROLE: Final = re.compile(r":[a-z:]+:`[~!]?([^`<]+?)(?:\s*<[^`>]*>)?`")
_DIRECTIVE: Final = re.compile(r"^\s*\.\. \w[\w-]*::.*(?:\n(?:[ \t]+\S.*|[ \t]*(?=\n[ \t]+\S)))*", re.MULTILINE)
_SIGNATURE_LINE: Final = re.compile(r"^[\w.]+\(.*\)(\s*->.*)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """The parts of a docstring that a `FunctionDoc` shows; `signature` is what a first line like `f(x)` says."""

    signature: str
    purpose: str
    parameters: tuple[tuple[str, str], ...]
    returns: str
    examples: tuple[str, ...]


def split_docstring(docstring: str) -> DocstringParts:
    """Split a docstring into its parts; those that it lacks are empty."""
    from griffe import Docstring, parse_numpy

    sections = parse_numpy(Docstring(docstring), warnings=False, warn_unknown_params=False, ignore_init_summary=False)
    parameters, returns, examples = [], [], list[str]()
    text = ""
    for section in sections:
        value: Any = section.value
        match section.kind.value:
            case "text" if not text:
                text = value
            case "parameters" | "other parameters":
                parameters += [(each.name, _describe_value(each)) for each in value]
            case "returns" | "yields":
                returns += [": ".join(filter(None, (each.name, _describe_value(each)))) for each in value]
            case "examples":
                examples += _list_examples(value)
    signature, purpose = _read_summary(text)
    return DocstringParts(signature, purpose, tuple(parameters), "; ".join(returns), tuple(examples[:_MOST_EXAMPLES]))


def _read_summary(text: str) -> tuple[str, str]:
    """The signature, if the first paragraph is one, and the first paragraph of words."""
    signature = ""
    for paragraph in re.split(r"\n\s*\n", _DIRECTIVE.sub("", text).strip()):
        first, _, rest = paragraph.strip().partition("\n")
        if _SIGNATURE_LINE.match(first) and not signature:
            signature = first[first.index("(") :].partition(" ->")[0]
            paragraph = rest  # noqa: PLW2901 - what follows on the next line is the summary
        if paragraph.strip():
            return signature, _join(paragraph)
    return signature, ""


def _describe_value(element: Any) -> str:
    """The type of a parameter or result, and the first paragraph of what is said of it."""
    annotation = str(element.annotation or "")
    description = _join(_DIRECTIVE.sub("", element.description or "").strip().partition("\n\n")[0])
    return ". ".join(filter(None, (_join(annotation), description)))


def _list_examples(parts: Any) -> Iterator[str]:
    """The code of each example with its output, without the prose between."""
    for kind, text in parts:
        if kind.value == "examples" and len(text) <= _LONGEST_EXAMPLE:
            yield text


def _join(text: str) -> str:
    """A paragraph on one line, without the markup of reStructuredText, cut where it is long."""
    line = " ".join(_ROLE.sub(r"\1", text).replace("``", "`").split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1].rstrip()}…"
