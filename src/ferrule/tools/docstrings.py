"""Parses a function's docstring: the paragraphs before its parameters, and a text for each parameter.

Google, NumPy and Sphinx styles. The parameters are parsed by griffe, which is imported only if there are sections.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(r"^[ \t]*(:\w+.*:|[A-Z][\w ]*:[ \t]*$|-{3,}[ \t]*$)", re.MULTILINE)
_HEADING = re.compile(
    r"^(?=(Args|Arguments|Params|Parameters|Returns|Raises|Yields|Examples?|Notes?):[ \t]*\n[ \t]+\S)", re.MULTILINE
)
_END = re.compile(
    r"^(?:(?:Args|Arguments|Params|Parameters|Keyword Arg(?:ument)?s|Other (?:Parameters|Args)|Attributes|Returns"
    r"|Yields|Receives|Raises|Warns):[ \t]*\n[ \t]+\S"
    r"|(?:(?:Other )?Parameters|Attributes|Methods|Returns|Yields|Receives|Raises|Warn(?:s|ings)|See Also|Notes"
    r"|References|Examples)[ \t]*\n-{3,}[ \t]*$"
    r"|:(?:param(?:eter)?|arg(?:ument)?|key(?:word)?|type|returns?|rtype|raises?|except(?:ion)?|i?var|cvar|vartype|meta)"
    r"\b[^:\n]*:)",
    re.MULTILINE,
)
"""Where a description ends: at the first section of parameters or results, in any of the three styles.

Google's `Note:` and `Example:` are part of it if they come before: a docstring guides the model by them.
"""
_KEPT_LINE = re.compile(r"^(?:\s|[-*+>|#]|\d+[.)]\s)", re.MULTILINE)
"""A line of a list, a table, a heading or code, which must not be joined with the one before."""
_PARAMETER_SECTIONS = ("parameters", "other parameters", "attributes")


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """A parsed docstring. `parameters` contains only the names that were asked for."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(docstring: str | None, names: Collection[str]) -> ParsedDocstring:
    """The description in `docstring`, and its texts for the parameters in `names`.

    The style is the one that explains most of them: guessing it from headings alone mistakes prose for sections.
    """
    text = inspect.cleandoc(docstring or "")
    description = _read_description(text)
    if not _SECTION.search(text):
        return ParsedDocstring(description)
    readings = [_read_parameters(text, style, names) for style in ("google", "numpy", "sphinx")]
    return ParsedDocstring(description, max(readings, key=len))


def read_first_paragraph(docstring: str | None) -> str:
    """The first paragraph of `docstring`, on one line."""
    return _read_description(inspect.cleandoc(docstring or "").partition("\n\n")[0])


def _read_description(text: str) -> str:
    """Join the wrapped lines of each paragraph before the parameters; lists and code keep their lines."""
    end = _END.search(text)
    text = text[: end.start()].strip() if end else text
    if "```" in text:
        return text
    return "\n\n".join(map(_join_lines, re.split(r"\n(?:[ \t]*\n)+", text)))


def _join_lines(paragraph: str) -> str:
    return paragraph.rstrip() if _KEPT_LINE.search(paragraph) else " ".join(paragraph.split())


def _read_parameters(text: str, style: str, names: Collection[str]) -> dict[str, str]:
    from griffe import Docstring, parse_google, parse_numpy, parse_sphinx

    parse = {"google": parse_google, "numpy": parse_numpy, "sphinx": parse_sphinx}[style]
    if style == "google":
        # griffe recognises a heading only after a blank line, which people omit.
        text = _HEADING.sub("\n", text)
    found: dict[str, str] = {}
    for section in parse(Docstring(text), warnings=False):
        if section.kind.value in _PARAMETER_SECTIONS:
            for entry in section.value:
                # NumPy writes one text for several names: "width, height : int".
                for name in entry.name.replace("*", "").split(","):
                    if name.strip() in names and entry.description:
                        found[name.strip()] = " ".join(entry.description.split())
    return found
