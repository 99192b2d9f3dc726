"""Parses a function's docstring: its first paragraph, and a text for each parameter.

Google, NumPy and Sphinx styles, parsed by griffe, which is imported only if a docstring has sections.
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
_PARAMETER_SECTIONS = ("parameters", "other parameters", "attributes")


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """A parsed docstring. `parameters` contains only the names that were asked for."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(docstring: str | None, names: Collection[str]) -> ParsedDocstring:
    """The first paragraph of `docstring`, and its texts for the parameters in `names`.

    The style is the one that explains most of them: guessing it from headings alone mistakes prose for sections.
    """
    text = inspect.cleandoc(docstring or "")
    if not _SECTION.search(text):
        return ParsedDocstring(_join_first_paragraph(text))
    readings = [_read(text, style, names) for style in ("google", "numpy", "sphinx")]
    return max(readings, key=lambda reading: len(reading.parameters))


def _join_first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _read(text: str, style: str, names: Collection[str]) -> ParsedDocstring:
    from griffe import Docstring, parse_google, parse_numpy, parse_sphinx

    parse = {"google": parse_google, "numpy": parse_numpy, "sphinx": parse_sphinx}[style]
    if style == "google":
        # griffe recognises a heading only after a blank line, which people omit.
        text = _HEADING.sub("\n", text)
    description = ""
    found: dict[str, str] = {}
    for section in parse(Docstring(text), warnings=False):
        if section.kind.value == "text" and not description and not found:
            description = _join_first_paragraph(section.value)
        elif section.kind.value in _PARAMETER_SECTIONS:
            for entry in section.value:
                # NumPy writes one text for several names: "width, height : int".
                for name in entry.name.replace("*", "").split(","):
                    if name.strip() in names and entry.description:
                        found[name.strip()] = " ".join(entry.description.split())
    return ParsedDocstring(description, found)
